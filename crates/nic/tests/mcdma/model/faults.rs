//! What goes wrong, how often, and the dice.

use core::time::Duration;

/// Faults of the hardware; how often is in thousandths.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A write-back comes later, by up to `late_by`.
    pub late: u64,
    pub late_by: Duration,
    /// By exactly that.
    pub late_exactly: bool,
    /// Write-backs of a channel pass each other.
    pub any_order: bool,
    /// A write-back never comes.
    pub never: u64,
    /// An interrupt does not reach the processor.
    pub lost_interrupt: u64,
    /// An interrupt comes without a cause, after a packet.
    pub spurious: u64,
    /// A channel stops with an error instead of working on a packet.
    pub channel_error: u64,
    /// A channel forgets everything, and says nothing.
    pub self_reset: u64,
    /// A descriptor is marked with an error; the packet is lost.
    pub packet_error: u64,
    /// A frame is lost on the wire.
    pub frame_loss: u64,
    /// Channels do not come out of a reset.
    pub stuck_reset: bool,
    /// The checksum unit inserts what is wrong.
    pub transmit_lies: bool,
    /// The checksum unit finds everything right.
    pub receive_lies: bool,
}

/// A generator of pseudo-random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True so many times of a thousand.
    pub fn per_mille(&mut self, chance: u64) -> bool {
        chance > 0 && self.below(1_000) < chance
    }
}
