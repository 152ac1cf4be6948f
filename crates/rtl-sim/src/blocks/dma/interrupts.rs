//! A queue's control, status and interrupt, clock by clock, from the frames and drops that the engine reports and the accesses that
//! its register bus takes. What the queue's state is (halted, idle) and why it has failed is not followed here.

use super::lite::Taken;
use super::world::{Way, queue};
use std::collections::VecDeque;

/// Clocks from the one in which an access is taken to the one in which it takes effect, or sees its register; that of all lines is seen
/// later than those of a queue.
const WRITES_AFTER: u64 = 2;
const READS_AFTER: u64 = 1;
const LINES_AFTER: u64 = 2;

/// Registers of all lines of a direction.
const TX_LINES: u32 = 0x028;
const RX_LINES: u32 = 0x520;
/// Clocks of the delay counter's step.
const TICK: u64 = 125;

/// Bits of CR.
const PKTDROP_EN: u32 = 1 << 4;
const IOC_EN: u32 = 1 << 5;
const DLY_EN: u32 = 1 << 6;
const ERR_EN: u32 = 1 << 7;

/// What happens to a queue in a clock.
#[derive(Clone, Copy, Default, Debug)]
struct Event {
    is_done: bool,
    is_dropped: bool,
    is_paced: bool,
    is_tick: bool,
    control: Option<u32>,
    status: Option<u32>,
}

#[derive(Clone, Debug)]
struct Channel {
    is_receive: bool,
    /// False between a reset's start and the moment when software sees that it is over.
    is_known: bool,
    /// An error is on its way or has come, and has not been acknowledged.
    may_fail: bool,
    may_interrupt: bool,
    /// CR without RESET.
    control: u32,
    counted: u8,
    elapsed: u8,
    is_armed: bool,
    is_due: bool,
    has_dropped: bool,
    has_counted: bool,
    has_waited: bool,
    line: bool,
    frames: u32,
    drops: u32,
}

impl Channel {
    fn new(is_receive: bool) -> Self {
        Channel {
            is_receive,
            is_known: true,
            may_fail: false,
            may_interrupt: false,
            control: 1 << 16,
            counted: 0,
            elapsed: 0,
            is_armed: false,
            is_due: false,
            has_dropped: false,
            has_counted: false,
            has_waited: false,
            line: false,
            frames: 0,
            drops: 0,
        }
    }

    /// The bits of SR that are followed.
    fn status(&self) -> u32 {
        u32::from(self.counted) << 16
            | u32::from(self.has_waited) << 6
            | u32::from(self.has_counted) << 5
            | u32::from(self.has_dropped) << 4
    }

    fn step(&mut self, event: Event) {
        let Event { is_done, is_dropped, is_paced, is_tick, control, status } = event;
        let (threshold, delay) = ((self.control >> 16) as u8, (self.control >> 24) as u8);
        self.line = (self.has_dropped && self.control & PKTDROP_EN != 0)
            || (self.has_counted && self.control & IOC_EN != 0)
            || (self.has_waited && self.control & DLY_EN != 0);
        let is_full = is_done && threshold != 0 && self.counted == threshold.wrapping_sub(1);
        let is_overdue = self.is_armed && is_tick && self.is_due && !is_done;
        self.is_due = delay != 0 && self.elapsed.wrapping_add(1) == delay && !is_done;
        if let Some(status) = status {
            self.has_dropped &= status & queue::DROPPED == 0;
            self.has_counted &= status & queue::IOC == 0;
            self.has_waited &= status & queue::DELAYED == 0;
        }
        if is_done {
            self.frames = self.frames.wrapping_add(1);
            self.elapsed = 0;
            self.counted = self.counted.wrapping_add(1);
        } else if self.is_armed && is_tick {
            self.elapsed = self.elapsed.wrapping_add(1);
        }
        self.is_armed |= is_done;
        if let Some(control) = control {
            let unused = if self.is_receive { 0xFF0A } else { 0xFF1A };
            self.control = control & !unused & !queue::RESET;
            self.counted = 0;
        }
        self.has_counted |= is_full || is_paced;
        self.has_waited |= is_overdue;
        if is_full || is_paced || is_overdue {
            (self.counted, self.is_armed) = (0, false);
        }
        self.has_dropped |= is_dropped;
        self.drops = self.drops.wrapping_add(u32::from(is_dropped));
    }
}

/// A bit for each queue in each direction: frames done, frames dropped, pulses of the pacer, lines.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bits {
    pub done: [u64; 2],
    pub dropped: u64,
    pub pace: [u64; 2],
    pub lines: [u64; 2],
}

/// All queues of both directions.
#[derive(Debug)]
pub struct Interrupts {
    /// The clock behind the engine's reset.
    began: u64,
    channels: [Vec<Channel>; 2],
    writes: VecDeque<(u64, u32, u32)>,
    reads: VecDeque<(u64, u32)>,
    /// The value and the bits of it that count, of the register that was read last.
    seen: Option<(u32, u32)>,
    /// Drops of a queue when its counter was read last.
    drops_at_read: u32,
}

impl Interrupts {
    pub fn new(queues: usize, began: u64) -> Self {
        let of = |is_receive| vec![Channel::new(is_receive); queues];
        Interrupts {
            began,
            channels: [of(false), of(true)],
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            seen: None,
            drops_at_read: 0,
        }
    }

    /// A queue's error is on its way.
    pub fn expect_failure(&mut self, way: Way, queue: usize) {
        let channel = &mut self.channels[way as usize][queue];
        (channel.may_fail, channel.may_interrupt) = (true, true);
    }

    /// A queue's error has come and its interrupt has been acknowledged.
    pub fn acknowledge_failure(&mut self, way: Way, queue: usize) {
        self.channels[way as usize][queue].may_interrupt = false;
    }

    /// A queue's reset is over. Frames that came since then have been dropped: `drops` when the counter was read last.
    pub fn reset(&mut self, way: Way, queue: usize, drops: u32) {
        let channel = &mut self.channels[way as usize][queue];
        let since = if way == Way::Receive { channel.drops.wrapping_sub(self.drops_at_read) } else { 0 };
        let drops = drops.wrapping_add(since);
        *channel = Channel { has_dropped: drops != 0, drops, ..Channel::new(way == Way::Receive) };
    }

    /// Follows a clock: what the register bus took in it, and what was seen in it.
    pub fn step(&mut self, now: u64, taken: Option<Taken>, bits: Bits) -> Result<(), String> {
        for (way, lines) in bits.lines.into_iter().enumerate() {
            for (index, channel) in self.channels[way].iter().enumerate().filter(|(_, it)| it.is_known) {
                let (line, bit) = (lines >> index & 1 != 0, channel.line);
                let has_failed = channel.may_interrupt && channel.control & ERR_EN != 0;
                if line != bit && !(line && has_failed) {
                    return Err(format!("the line of queue {index}, direction {way}, is {line}"));
                }
            }
        }
        match taken {
            Some(Taken::Write(address, value, 0xF)) => {
                self.writes.push_back((now + WRITES_AFTER, address & !3, value));
            }
            Some(Taken::Read(address)) => {
                let address = address & !3;
                let after = if matches!(address, TX_LINES | RX_LINES) { LINES_AFTER } else { READS_AFTER };
                self.reads.push_back((now + after, address));
            }
            _ => {}
        }
        if let Some((_, address)) = self.reads.pop_front_if(|(due, _)| *due == now) {
            self.seen = self.look(address, bits);
            for (index, channel) in self.channels[1].iter().enumerate() {
                if address == Way::Receive.queue(index) + queue::RX_DROPS {
                    self.drops_at_read = channel.drops;
                }
            }
        }
        let write =
            self.writes.pop_front_if(|(due, ..)| *due == now).map(|(_, address, value)| (address, value));
        for (way, of) in [Way::Transmit, Way::Receive].into_iter().enumerate() {
            let reset_all = write.is_some_and(|(at, value)| at == of.base() && value & queue::RESET != 0);
            for (index, channel) in self.channels[way].iter_mut().enumerate() {
                let mine = write.filter(|(at, _)| at & !0x3F == of.queue(index));
                let at = |offset| mine.filter(|(at, _)| at & 0x3F == offset).map(|(_, value)| value);
                let event = Event {
                    is_done: bits.done[way] >> index & 1 != 0,
                    is_dropped: way == 1 && bits.dropped >> index & 1 != 0,
                    is_paced: bits.pace[way] >> index & 1 != 0,
                    is_tick: now > self.began && (now - self.began).is_multiple_of(TICK),
                    control: at(queue::CONTROL),
                    status: at(queue::STATUS),
                };
                channel.step(event);
                if reset_all || event.control.is_some_and(|value| value & queue::RESET != 0) {
                    channel.is_known = false;
                }
            }
        }
        Ok(())
    }

    /// What a register shows now, and which of its bits are followed.
    fn look(&self, address: u32, bits: Bits) -> Option<(u32, u32)> {
        match address {
            TX_LINES => return Some((bits.lines[0] as u32, u32::MAX)),
            RX_LINES => return Some((bits.lines[1] as u32, u32::MAX)),
            _ => {}
        }
        for (way, of) in [Way::Transmit, Way::Receive].into_iter().enumerate() {
            for (index, channel) in self.channels[way].iter().enumerate().filter(|(_, it)| it.is_known) {
                if address & !0x3F != of.queue(index) {
                    continue;
                }
                // RS falls, ERR and its kinds rise at an error.
                let (control, status) = if channel.may_fail { (!1, !0xF80) } else { (u32::MAX, u32::MAX) };
                return match (way, address & 0x3F) {
                    (_, queue::CONTROL) => Some((channel.control, control)),
                    (_, queue::STATUS) => Some((channel.status(), status & !(queue::IDLE | queue::HALTED))),
                    (0, queue::TX_FRAMES) | (1, queue::RX_FRAMES) => Some((channel.frames, u32::MAX)),
                    (1, queue::RX_DROPS) => Some((channel.drops, u32::MAX)),
                    _ => None,
                };
            }
        }
        None
    }

    /// Holds what software has read against what the register showed.
    pub fn check(&mut self, address: u32, value: u32) -> Result<(), String> {
        match self.seen.take() {
            Some((expected, bits)) if (value ^ expected) & bits != 0 => Err(format!(
                "the register at {address:#x} is {value:#x} instead of {expected:#x} ({bits:#x})"
            )),
            _ => Ok(()),
        }
    }
}
