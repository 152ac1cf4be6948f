//! The registers of one channel.

use crate::bus::Bus;
use crate::registers::{Direction, channel};

/// Reads of the control register after which a reset counts as failed.
const RESET_READS: usize = 10_000;

/// One channel of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Channel<P> {
    bus: P,
    base: u32,
}

impl<P: Bus> Channel<P> {
    /// Channel `number`, counted from 1.
    pub fn new(bus: P, direction: Direction, number: u32) -> Self {
        Channel { bus, base: direction.channel(number) }
    }

    /// Stops it and makes it forget its descriptors; false if it does not come to an end. After that the engine may
    /// still write to whatever it was given.
    #[must_use]
    pub fn reset(&self) -> bool {
        self.write(channel::CONTROL, channel::RESET);
        (0..RESET_READS).any(|_| self.read(channel::CONTROL) & channel::RESET == 0)
    }

    /// Lets it run from the descriptor at `first` on, with an interrupt after each packet once interrupts are let through.
    pub fn start(&self, first: u64) {
        self.write(channel::CURRENT + 4, (first >> 32) as u32);
        self.write(channel::CURRENT, first as u32);
        self.write(channel::CONTROL, channel::RUN | 1 << channel::THRESHOLD_SHIFT);
    }

    /// The doorbell: the engine may work up to and including the descriptor at `tail`.
    pub fn ring(&self, tail: u64) {
        self.write(channel::TAIL + 4, (tail >> 32) as u32);
        self.write(channel::TAIL, tail as u32);
    }

    /// The descriptor at which the engine is.
    pub fn current(&self) -> u64 {
        u64::from(self.read(channel::CURRENT + 4)) << 32 | u64::from(self.read(channel::CURRENT))
    }

    /// Whether only a reset helps.
    pub fn has_failed(&self) -> bool {
        self.read(channel::STATUS) & channel::FAILED != 0
    }

    /// Clears interrupts that have come; which ones.
    pub fn acknowledge(&self) -> u32 {
        let come = self.read(channel::STATUS) & channel::INTERRUPTS;
        if come != 0 {
            self.write(channel::STATUS, come);
        }
        come
    }

    /// Lets interrupts through, or none.
    ///
    /// Reading and writing back is no race although the interrupt handler does it too, on the same core: whoever is
    /// interrupted here lets interrupts through that the handler has just shut, which is one interrupt too many and none too
    /// few. A handler that comes while the channel is being reset must not ask for a second reset.
    pub fn let_through(&self, interrupts: bool) {
        let rest = self.read(channel::CONTROL) & !(channel::INTERRUPTS | channel::RESET);
        self.write(channel::CONTROL, rest | if interrupts { channel::INTERRUPTS } else { 0 });
    }

    /// Sets after how many packets, and how many ticks after the newest, an interrupt comes.
    pub fn set_pacing(&self, threshold: u8, delay: u8) {
        let rest = self.read(channel::CONTROL) & 0xFFFF;
        let pacing =
            u32::from(threshold) << channel::THRESHOLD_SHIFT | u32::from(delay) << channel::DELAY_SHIFT;
        self.write(channel::CONTROL, rest | pacing);
    }

    fn read(&self, register: u32) -> u32 {
        self.bus.read(self.base + register)
    }

    fn write(&self, register: u32, value: u32) {
        self.bus.write(self.base + register, value);
    }
}
