//! What a device is opened with.

use crate::mcdma::descriptor;
use crate::mcdma::transmit::ETHERNET;
use crate::mcdma::words::{AppWords, Seeding};
use crate::meta::MacAddr;
use core::time::Duration;

/// Most queues.
pub const MAX_QUEUES: usize = 8;

/// What a device is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The device's address.
    pub mac: MacAddr,
    /// Largest IP packet in bytes.
    pub mtu: usize,
    /// Queues: one for each core that shall have one.
    pub queues: usize,
    /// Descriptors of each transmit ring. A packet takes two at least: headers and payload.
    pub transmit_ring: usize,
    /// Descriptors, and so buffers, of each receive ring.
    pub receive_ring: usize,
    /// A tick of the engine's delay timer in nanoseconds: 125 of its clocks.
    pub delay_tick_ns: u32,
    /// How often a queue is to be looked at though nothing interrupts, in case an interrupt was lost or the engine stands
    /// still; `None` where that cannot happen or somebody else sees to it.
    pub look_every: Option<Duration>,
    /// Whose app words the hardware has; `None` to ask it, where it has a register that says so.
    pub words: Option<AppWords>,
    /// How the sum of the pseudo-header reaches the hardware.
    pub seeding: Seeding,
}

impl Settings {
    /// One queue with rings of 256 (what the engine's manual recommends with checksums in hardware), an MTU of 1,500 bytes, a clock of
    /// 156.25 MHz, a look every second.
    pub fn new(mac: MacAddr) -> Self {
        Settings {
            mac,
            mtu: 1_500,
            queues: 1,
            transmit_ring: 256,
            receive_ring: 256,
            delay_tick_ns: 800,
            look_every: Some(Duration::from_secs(1)),
            words: None,
            seeding: Seeding::default(),
        }
    }

    /// Bytes of the longest frame: what a buffer has to hold.
    pub fn longest(&self) -> usize {
        self.mtu.saturating_add(ETHERNET)
    }

    /// Bytes of descriptor memory that [`open`](fn@crate::mcdma::open) needs.
    pub fn memory_needed(&self) -> usize {
        let descriptors = self.transmit_ring.saturating_add(self.receive_ring).saturating_mul(self.queues);
        descriptors.saturating_add(1).saturating_mul(descriptor::SIZE as usize)
    }
}
