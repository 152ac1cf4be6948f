//! The driver for network devices of virtio 1.0 and later behind registers in memory (virtio 1.2 sections 4.2 and 5.1): two rings,
//! checksums, segmentation, frames coalesced over several buffers, interrupts and notifications only when somebody waits for them.
//!
//! Emulators and hypervisors have it for processors of every kind. Like [`mcdma`](crate::mcdma) it knows nothing of where it runs:
//! a [`Transport`] reads and writes registers and ring memory, a [`Dma`](crate::Dma) tells bus addresses.
//!
//! | file | concept |
//! |---|---|
//! | `regs` | registers, status and feature bits |
//! | `ring` | a split virtqueue: descriptors, what is available, what was used |
//! | `receive`, `transmit` | who owns which buffer when |
//! | `device` | the contracts of this crate, link, reset |
//! | [`open`](mod@open) | from a board and some memory to an interface |
//! | [`vnet`](crate::vnet) | the header in front of each frame |

mod device;
pub mod open;
mod receive;
mod regs;
mod ring;
mod transmit;

use crate::bus::{Bus, Platform};
use crate::device::{Capabilities, LinkState};
use crate::meta::MacAddr;
use open::Rings;
use receive::Receiver;
use transmit::Transmitter;

pub use open::{OpenError, Settings, is_network, memory_len};

/// What the driver asks of the board beyond [`Bus`]: fields of the configuration are read with their own width (section 4.2.2.2).
pub trait Transport: Platform {
    /// Reads a byte of the configuration at this offset of the registers.
    fn read8(&self, register: u32) -> u8;

    /// Reads a half word of it.
    fn read16(&self, register: u32) -> u16;
}

linerate_wire::figures! {
    /// What the driver has counted.
    pub struct Stats {
        /// Frames handed over.
        rx_frames,
        /// Of them those that the device had coalesced.
        rx_coalesced,
        /// Packets given to the device.
        tx_packets,
        /// Of them those that the device splits.
        tx_split,
        /// Received frames that no buffer was left for, or no list for their buffers.
        drop_rx_no_buffer,
        /// Received frames with a header that means nothing, or without a byte behind it.
        drop_rx_errors,
        /// Packets that the device cannot be given: out of its reach, or longer than it takes.
        drop_tx_errors,
        /// How often sending found the ring full.
        tx_full,
        /// How often the device was told of received buffers or of packets.
        notifications,
        /// Interrupts armed.
        arms,
        /// How often the device was begun anew: it asked for that, or spoke of what it was never given.
        resets,
        /// How often the link came or went.
        link_changes,
    }
}

/// The interface.
///
/// Dropping it resets the device first, so that it writes to no memory that is somebody else's by then.
pub struct Virtio<P: Transport> {
    board: P,
    rings: Rings,
    mac: MacAddr,
    mtu: usize,
    /// What was agreed on.
    features: u64,
    capabilities: Capabilities,
    enabled: Capabilities,
    link: LinkState,
    receiver: Receiver<P>,
    transmitter: Transmitter<P>,
    stats: Stats,
    /// The device did not come out of a reset.
    is_lost: bool,
}

impl<P: Transport> Virtio<P> {
    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// For the interrupt's handler.
    pub fn interrupt(&self) -> Interrupt<P> {
        Interrupt { board: self.board.clone(), note: self.rings.note }
    }
}

/// What the interrupt handler does. It lives there, apart from the interface: the two share registers and a word of ring
/// memory.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<P> {
    board: P,
    note: u64,
}

impl<P: Bus> Interrupt<P> {
    /// Acknowledges what has come. True if there was something: the loop is to be woken. No further interrupt follows for a
    /// ring until it is armed again.
    pub fn handle(&self) -> bool {
        let come = self.board.read(regs::INTERRUPT_STATUS);
        if come != 0 {
            self.board.write(regs::INTERRUPT_ACK, come);
        }
        if come & regs::INTERRUPT_CONFIG != 0 {
            // The loop looks at link and status: here it would read them between two of its accesses.
            self.board.store(self.note, 1);
        }
        come != 0
    }
}
