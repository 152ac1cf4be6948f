//! Screeners: which frames go to the second queue.

use crate::bus::Bus;
use crate::gem::regs;
use crate::gem::settings::ScreenerCounts;
use core::fmt;

/// Type 1: the fields of a register.
const CLASS_SHIFT: u32 = 4;
const PORT_SHIFT: u32 = 12;
const CLASS_ENABLE: u32 = 1 << 28;
const PORT_ENABLE: u32 = 1 << 29;
/// Type 2: which EtherType, which compare.
const ETHERTYPE_SHIFT: u32 = 9;
const ETHERTYPE_ENABLE: u32 = 1 << 12;
const COMPARE_SHIFT: u32 = 13;
const COMPARE_ENABLE: u32 = 1 << 18;
/// The second word of a compare: where it counts from, and that all 32 bits are compared.
const ORIGIN_SHIFT: u32 = 7;
const WHOLE: u32 = 1 << 9;
/// The last byte that a compare reaches.
const LAST_OFFSET: u8 = 127;

/// A rule: frames that meet the condition go to the queue. Others go to queue 0. Of a frame that meets several, the hardware
/// chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Screener {
    /// Which frames.
    pub condition: Condition,
    /// Where they go.
    pub queue: u16,
}

/// What a screener looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The destination port of UDP over IPv4 or IPv6 (type 1).
    UdpPort(u16),
    /// The traffic class of IPv6 or its counterpart of IPv4, all eight bits: DSCP times four, and ECN (type 1).
    TrafficClass(u8),
    /// The EtherType (type 2).
    EtherType(u16),
    /// Some bytes (type 2).
    Compare(Compare),
    /// Some bytes of frames of an EtherType (type 2).
    EtherTypeCompare(u16, Compare),
}

impl Condition {
    fn is_type_1(&self) -> bool {
        matches!(self, Condition::UdpPort(_) | Condition::TrafficClass(_))
    }

    fn ethertype(&self) -> Option<u16> {
        match self {
            Condition::EtherType(value) | Condition::EtherTypeCompare(value, _) => Some(*value),
            _ => None,
        }
    }

    fn compare(&self) -> Option<Compare> {
        match self {
            Condition::Compare(compare) | Condition::EtherTypeCompare(_, compare) => Some(*compare),
            _ => None,
        }
    }
}

/// Bytes of a frame that are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compare {
    /// What the offset counts from.
    pub origin: Origin,
    /// Where the bytes begin, from 0 to 127.
    pub offset: u8,
    /// What they are.
    pub value: Value,
}

impl Compare {
    /// The two words of its registers. The first byte of the frame is the lowest.
    fn words(&self) -> (u32, u32) {
        let place = u32::from(self.offset) | (self.origin as u32) << ORIGIN_SHIFT;
        match self.value {
            Value::Two { value: [a, b], mask: [c, d] } => (u32::from_le_bytes([c, d, a, b]), place),
            Value::Four(value) => (u32::from_le_bytes(value), place | WHOLE),
        }
    }
}

/// What an offset counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The start of the frame.
    Frame = 0,
    /// The byte behind the EtherType.
    EtherType = 1,
    /// The byte behind the IP header; other frames do not match.
    Ip = 2,
    /// The byte behind the header of TCP or UDP; other frames do not match.
    Transport = 3,
}

/// What bytes are compared with, in the order of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// Two bytes, of which the bits count that are set in the mask.
    Two {
        /// The bytes.
        value: [u8; 2],
        /// Which bits count.
        mask: [u8; 2],
    },
    /// Four bytes, all of whose bits count.
    Four([u8; 4]),
}

/// Why screeners are not set. Those that were set before stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenerError {
    /// The device has too few of something.
    Few {
        /// Of what: "type 1 screeners", "type 2 screeners", "EtherTypes" or "compares".
        what: &'static str,
        /// How many are needed.
        want: usize,
        /// How many there are.
        have: usize,
    },
    /// A queue that was not opened.
    Queue {
        /// Which.
        queue: u16,
        /// How many there are.
        have: usize,
    },
    /// A compare that begins beyond byte 127.
    Offset(u8),
}

impl fmt::Display for ScreenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScreenerError::Few { what, want, have } => write!(f, "{want} {what}: the device has {have}"),
            ScreenerError::Queue { queue, have } => {
                write!(f, "a screener for queue {queue}: opened with {have} queues")
            }
            ScreenerError::Offset(offset) => {
                write!(f, "a compare at offset {offset}: expected 0 to {LAST_OFFSET}")
            }
        }
    }
}

impl core::error::Error for ScreenerError {}

/// What the device says that it has (`designcfg_debug8`), as far as there are registers.
pub(super) fn built_in(bus: &impl Bus) -> ScreenerCounts {
    let [compares, ethertypes, type_2, type_1] = bus.read(regs::DESIGN_8).to_le_bytes();
    ScreenerCounts {
        type_1: type_1.min(16),
        type_2: type_2.min(16),
        ethertypes: ethertypes.min(8),
        compares: compares.min(32),
    }
}

/// Whether the device can do it.
fn check(counts: ScreenerCounts, queues: usize, screeners: &[Screener]) -> Result<(), ScreenerError> {
    for screener in screeners {
        if usize::from(screener.queue) >= queues {
            return Err(ScreenerError::Queue { queue: screener.queue, have: queues });
        }
        if let Some(compare) = screener.condition.compare()
            && compare.offset > LAST_OFFSET
        {
            return Err(ScreenerError::Offset(compare.offset));
        }
    }
    let count = |which: fn(&Condition) -> bool| {
        screeners.iter().filter(|screener| which(&screener.condition)).count()
    };
    for (what, want, have) in [
        ("type 1 screeners", count(Condition::is_type_1), counts.type_1),
        ("type 2 screeners", count(|condition| !condition.is_type_1()), counts.type_2),
        ("EtherTypes", count(|condition| condition.ethertype().is_some()), counts.ethertypes),
        ("compares", count(|condition| condition.compare().is_some()), counts.compares),
    ] {
        if want > usize::from(have) {
            return Err(ScreenerError::Few { what, want, have: have.into() });
        }
    }
    Ok(())
}

/// Sets these screeners, and no others.
pub(super) fn set(
    bus: &impl Bus,
    counts: ScreenerCounts,
    queues: usize,
    screeners: &[Screener],
) -> Result<(), ScreenerError> {
    check(counts, queues, screeners)?;
    // None is half new at any time: first all are switched off.
    (0..u32::from(counts.type_1)).for_each(|at| bus.write(regs::SCREENER_1 + 4 * at, 0));
    (0..u32::from(counts.type_2)).for_each(|at| bus.write(regs::SCREENER_2 + 4 * at, 0));
    let (mut first, mut second, mut ethertypes, mut compares) = (0, 0, 0, 0);
    for Screener { condition, queue } in screeners {
        let queue = u32::from(*queue);
        let word = match condition {
            Condition::UdpPort(port) => PORT_ENABLE | u32::from(*port) << PORT_SHIFT,
            Condition::TrafficClass(class) => CLASS_ENABLE | u32::from(*class) << CLASS_SHIFT,
            _ => 0,
        };
        if word != 0 {
            bus.write(regs::SCREENER_1 + 4 * first, word | queue);
            first += 1;
            continue;
        }
        let mut word = queue;
        if let Some(ethertype) = condition.ethertype() {
            bus.write(regs::SCREENER_ETHERTYPE + 4 * ethertypes, ethertype.into());
            word |= ETHERTYPE_ENABLE | ethertypes << ETHERTYPE_SHIFT;
            ethertypes += 1;
        }
        if let Some(compare) = condition.compare() {
            let (low, high) = compare.words();
            bus.write(regs::SCREENER_COMPARE + 8 * compares, low);
            bus.write(regs::SCREENER_COMPARE + 8 * compares + 4, high);
            word |= COMPARE_ENABLE | compares << COMPARE_SHIFT;
            compares += 1;
        }
        bus.write(regs::SCREENER_2 + 4 * second, word);
        second += 1;
    }
    Ok(())
}
