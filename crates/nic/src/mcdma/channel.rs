//! The registers of one channel.

use crate::bus::Bus;
use crate::mcdma::regs::{mm2s_ch as ch, register, s2mm_ch};

/// Reads of the control register after which a reset counts as failed.
const RESET_READS: usize = 10_000;

// Both directions have the same registers where a driver looks.
const _: () = assert!(ch::CR == s2mm_ch::CR && ch::SR == s2mm_ch::SR);
const _: () = assert!(ch::CURDESC == s2mm_ch::CURDESC && ch::TAILDESC == s2mm_ch::TAILDESC);
const _: () = assert!(ch::CR_RESET == s2mm_ch::CR_RESET && ch::SR_HALTED == s2mm_ch::SR_HALTED);
const _: () = assert!(ch::CR_THRESHOLD == s2mm_ch::CR_THRESHOLD && ch::CR_DELAY == s2mm_ch::CR_DELAY);

/// After which only a reset helps.
const FAILED: u32 = ch::SR_HALTED | ch::SR_INT_ERR | ch::SR_SLV_ERR | ch::SR_DEC_ERR | ch::SR_SG_ERR;
/// The interrupts that a queue is let to have.
const ENABLES: u32 = ch::CR_IOC_EN | ch::CR_DLY_EN | ch::CR_ERR_EN;
/// The same where they have come.
const INTERRUPTS: u32 = ch::SR_IOC | ch::SR_DLY | ch::SR_ERR;

/// A direction of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From memory to the wire (MM2S).
    Transmit,
    /// From the wire to memory (S2MM).
    Receive,
}

impl Direction {
    /// Both.
    pub const BOTH: [Direction; 2] = [Direction::Transmit, Direction::Receive];

    /// Where the registers of a queue's channel begin.
    pub const fn channel(self, queue: u16) -> u32 {
        match self {
            Direction::Transmit => register::MM2S_CH_BASE + register::MM2S_CH_STRIDE * queue as u32,
            Direction::Receive => register::S2MM_CH_BASE + register::S2MM_CH_STRIDE * queue as u32,
        }
    }

    /// Resets all channels of the direction and lets none run; false if that does not come to an end.
    #[must_use]
    pub(crate) fn reset(self, bus: &impl Bus) -> bool {
        let (control, bit) = match self {
            Direction::Transmit => (register::MM2S_CCR, register::MM2S_CCR_RESET),
            Direction::Receive => (register::S2MM_CCR, register::S2MM_CCR_RESET),
        };
        bus.write(control, bit);
        has_ended(bus, control, bit)
    }

    /// Lets the channels of so many queues run once they are started.
    pub(crate) fn run(self, bus: &impl Bus, queues: usize) {
        let (enable, control, bit) = match self {
            Direction::Transmit => (register::MM2S_CHEN, register::MM2S_CCR, register::MM2S_CCR_RS),
            Direction::Receive => (register::S2MM_CHEN, register::S2MM_CCR, register::S2MM_CCR_RS),
        };
        bus.write(enable, (1 << queues) - 1);
        bus.write(control, bit);
    }
}

/// One channel of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Channel<P> {
    bus: P,
    base: u32,
}

impl<P: Bus> Channel<P> {
    /// The channel of a queue.
    pub fn new(bus: P, direction: Direction, queue: u16) -> Self {
        Channel { bus, base: direction.channel(queue) }
    }

    /// Stops it and makes it forget its descriptors; false if it does not come to an end. After that the engine may
    /// still write to whatever it was given.
    #[must_use]
    pub fn reset(&self) -> bool {
        self.write(ch::CR, ch::CR_RESET);
        has_ended(&self.bus, self.base + ch::CR, ch::CR_RESET)
    }

    /// Lets it run from the descriptor at `first` on, with an interrupt after each packet once interrupts are let through.
    pub fn start(&self, first: u64) {
        self.write(ch::CURDESC_MSB, (first >> 32) as u32);
        self.write(ch::CURDESC, first as u32);
        self.write(ch::CR, ch::CR_RS | 1 << ch::CR_THRESHOLD_SHIFT);
    }

    /// The doorbell: the engine may work up to and including the descriptor at `tail`.
    pub fn ring(&self, tail: u64) {
        self.write(ch::TAILDESC_MSB, (tail >> 32) as u32);
        self.write(ch::TAILDESC, tail as u32);
    }

    /// Whether only a reset helps.
    pub fn has_failed(&self) -> bool {
        self.read(ch::SR) & FAILED != 0
    }

    /// Clears interrupts that have come; which ones.
    pub fn acknowledge(&self) -> u32 {
        let come = self.read(ch::SR) & INTERRUPTS;
        if come != 0 {
            self.write(ch::SR, come);
        }
        come
    }

    /// Lets interrupts through, or none.
    ///
    /// Reading and writing back is no race although the interrupt handler does it too, on the same core: whoever is
    /// interrupted here lets interrupts through that the handler has just shut, which is one interrupt too many and none too
    /// few. A handler that comes while the channel is being reset must not ask for a second reset.
    pub fn let_through(&self, interrupts: bool) {
        let rest = self.read(ch::CR) & !(ENABLES | ch::CR_RESET);
        self.write(ch::CR, rest | if interrupts { ENABLES } else { 0 });
    }

    /// Sets after how many packets, and how many ticks after the newest, an interrupt comes. A threshold of 0: somebody else
    /// counts.
    pub fn set_pacing(&self, threshold: u8, delay: u8) {
        let rest = self.read(ch::CR) & !(ch::CR_THRESHOLD | ch::CR_DELAY);
        let pacing = u32::from(threshold) << ch::CR_THRESHOLD_SHIFT | u32::from(delay) << ch::CR_DELAY_SHIFT;
        self.write(ch::CR, rest | pacing);
    }

    fn read(&self, register: u32) -> u32 {
        self.bus.read(self.base + register)
    }

    fn write(&self, register: u32, value: u32) {
        self.bus.write(self.base + register, value);
    }
}

/// Whether a reset comes to an end.
fn has_ended(bus: &impl Bus, register: u32, bit: u32) -> bool {
    (0..RESET_READS).any(|look| {
        if look > 0 {
            bus.pause();
        }
        bus.read(register) & bit == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_lie_where_the_manual_says() {
        for (direction, queue, offset) in [
            (Direction::Transmit, 0, 0x40),
            (Direction::Transmit, 7, 0x200),
            (Direction::Receive, 0, 0x540),
            (Direction::Receive, 1, 0x580),
        ] {
            assert_eq!(direction.channel(queue), offset, "{direction:?} {queue}");
        }
    }
}
