//! A driver for the SMSC LAN9118 family: 100 Mb/s Ethernet with a FIFO each way and no DMA.
//!
//! Every word of a frame passes through the processor, so the cost of a frame is that of the copy. On receive the sum that
//! checksums need is made along the way ([`Registers::read_summed`]): nothing reads the frame again. On transmit
//! header and payload go straight from where they lie, piece by piece. What is in the FIFO is the chip's: a packet is complete
//! when its last word was written.
//!
//! The driver knows registers by their offset alone and waits by the chip's own clock, so that it runs on the host against
//! a model of the registers.

mod control;
#[cfg(test)]
mod model;
mod open;
mod queue;
mod regs;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use core::fmt;
use linerate_nic::{LinkState, MacAddr, Pool, TxToken};
use linerate_wire::checksum::raw_sum;
use linerate_wire::figures::Figures;
use linerate_wire::units::Instant;

/// Bytes that a receive buffer must have: the longest frame with a VLAN tag and FCS, behind two bytes that bring
/// the IP header to a multiple of four.
pub const BUFFER_SIZE: usize = 1_528;

/// Full frames that fit into the receive FIFO: what windows may promise beyond the buffers.
pub const FIFO_FRAMES: usize = 6;

/// The registers of the chip.
pub trait Registers {
    /// Reads the register at this offset.
    fn read(&mut self, offset: usize) -> u32;

    /// Writes the register at this offset.
    fn write(&mut self, offset: usize, value: u32);

    /// Reads as many words from the data FIFO as fill `out`, whose length is a multiple of four.
    fn read_data(&mut self, out: &mut [u8]) {
        for word in out.as_chunks_mut::<4>().0 {
            *word = self.read(regs::RX_DATA_FIFO).to_le_bytes();
        }
    }

    /// The same, and the raw sum of what was read (see `linerate_wire::checksum`).
    fn read_summed(&mut self, out: &mut [u8]) -> u64 {
        self.read_data(out);
        raw_sum(out)
    }

    /// Writes `bytes` to the data FIFO; the last word is filled up with anything.
    fn write_data(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            self.write(regs::TX_DATA_FIFO, u32::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 4];
            word[..rest.len()].copy_from_slice(rest);
            self.write(regs::TX_DATA_FIFO, u32::from_le_bytes(word));
        }
    }
}

/// Why the chip cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// `BYTE_TEST` reads as this and not as 0x87654321: nothing is there, or the bus is set up wrongly.
    NoAnswer(u32),
    /// `ID_REV` is that of another chip.
    OtherChip(u32),
    /// This did not end in time.
    Stuck(&'static str),
    /// The receive pool's buffers have so many bytes, and [`BUFFER_SIZE`] are needed.
    SmallBuffers(usize),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoAnswer(value) => {
                write!(f, "no LAN9118 there: BYTE_TEST reads as {value:#010x}, expected 0x87654321")
            }
            OpenError::OtherChip(value) => write!(f, "ID_REV {value:#010x} is none of a LAN9118 or LAN9220"),
            OpenError::Stuck(what) => write!(f, "the chip does not answer: {what} did not end in time"),
            OpenError::SmallBuffers(size) => {
                write!(f, "receive buffers of {size} bytes: expected at least {BUFFER_SIZE}")
            }
        }
    }
}

impl core::error::Error for OpenError {}

linerate_wire::figures! {
    /// What the driver has counted.
    pub struct Stats {
        /// Frames handed over.
        rx_frames,
        /// Frames put into the transmit FIFO.
        tx_frames,
        /// Received frames with an error: bad FCS, too long, too short.
        drop_rx_errors,
        /// Frames that the chip had no room for.
        drop_rx_overrun,
        /// Frames that the chip took and did not send: no carrier, too many collisions.
        drop_tx_errors,
        /// How often receiving found no buffer free.
        rx_starved,
        /// How often sending found no room.
        tx_full,
        /// How often the receiver was emptied, as its FIFO was in disorder.
        rx_resets,
        /// How often the transmitter was emptied, as its FIFO was in disorder.
        tx_resets,
        /// Interrupts armed.
        arms,
        /// How often the link came or went.
        link_changes,
    }
}

/// Packets whose completion nobody has asked for yet; with more of them, sending waits.
const COMPLETIONS: usize = 64;

/// The driver.
pub struct Lan9118<R> {
    registers: R,
    mac: MacAddr,
    link: LinkState,
    pool: Pool,
    /// `MAC_CR` without the filter.
    mac_cr: u32,
    /// Bits of `MAC_CR` for the filter.
    filter: u32,
    completions: VecDeque<TxToken>,
    /// Bytes of the transmit FIFO that the next packet waits for.
    wants_room: Option<usize>,
    /// Receiving ended because no buffer was free, and is tried again then.
    starved_until: Option<Instant>,
    stats: Stats,
}

impl<R: Registers> Lan9118<R> {
    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The registers, for what a board does with them outside of the driver.
    pub fn registers_mut(&mut self) -> &mut R {
        &mut self.registers
    }
}

/// Keeps the chip from asking for another interrupt until the driver is armed again: what an interrupt handler does.
pub fn silence(registers: &mut impl Registers) {
    registers.write(regs::INT_EN, 0);
}

impl<R> crate::counting::Counting for Lan9118<R> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.stats.figures().for_each(|(figure, value)| visit(figure.name, value));
    }
}
