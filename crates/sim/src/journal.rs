//! What happened in a world, when and where: for traces of a run.
//!
//! The parts of a world note what they do in one ring of a fixed number of entries, from which the oldest go. Without a
//! journal, noting is one comparison. Entries may be noted late, each with its own time, so their order is not that of times.

use crate::host::CpuTimes;
use crate::parcel::Parcel;
use crate::world::NodeId;
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::units::Instant;
use linerate_wire::{ipv4, ipv6, tcp};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A segment on its way: the same number wherever it is seen, and at no other segment. A duplicate has its original's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u64);

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// A TCP segment.
    Tcp {
        /// Its first sequence number.
        sequence: u32,
        /// Bytes of payload.
        payload: u32,
        /// Its flags, as in the header.
        flags: u8,
    },
    /// Anything else.
    Other,
}

/// Why a segment went no further.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Drop {
    /// The model of loss took it, or a script.
    Lost,
    /// The queue was full.
    QueueFull,
    /// CoDel dropped it.
    Codel,
    /// It was longer than the path carries.
    TooLong,
    /// The receive ring was full.
    RingFull,
    /// There was no receive buffer.
    NoBuffer,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A segment has left the interface; its first bit left at `from`.
    Sent {
        /// Which one.
        segment: SegmentId,
        /// When it began to leave.
        from: Instant,
        /// Bytes of its frame.
        len: u32,
        /// What it carries.
        load: Load,
    },
    /// A segment has reached the interface.
    Received {
        /// Which one.
        segment: SegmentId,
        /// Bytes of its frame.
        len: u32,
    },
    /// A segment has left the path's queue and gone onto the wire; its first bit did at `from`.
    OnWire {
        /// Which one.
        segment: SegmentId,
        /// When it began to leave.
        from: Instant,
        /// Bytes of its frame.
        len: u32,
    },
    /// What waits in the path's queue from now on.
    Queue {
        /// Segments.
        segments: u32,
        /// Bytes of their frames.
        bytes: u64,
    },
    /// A segment went no further.
    Dropped {
        /// Which one; `None` where only their number is known.
        segment: Option<SegmentId>,
        /// Why.
        why: Drop,
    },
    /// Packets in the transmit ring from now on.
    TransmitRing(u32),
    /// Frames in the receive ring from now on.
    ReceiveRing(u32),
    /// The host took an interrupt, which so many segments had asked for.
    Interrupt(u64),
    /// A turn of the loop.
    Turn {
        /// What it costs the processor, from now on.
        cost: CpuTimes,
        /// Frames and packets that it handled.
        packets: u64,
    },
}

/// Where something happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// At the interface.
    Interface,
    /// At this queue of the interface, or the core that serves it.
    Core(u16),
    /// On the way from the node.
    Up,
    /// On the way to the node.
    Down,
}

/// An entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// At which node.
    pub node: NodeId,
    /// At which part of it.
    pub part: Part,
    /// What.
    pub what: What,
}

/// The last entries.
#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    room: usize,
    lost: u64,
}

/// The journal of a world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    ring: Rc<RefCell<Ring>>,
}

impl Journal {
    /// A journal of the last `room` entries.
    pub(crate) fn new(room: usize) -> Journal {
        let ring = Ring { entries: VecDeque::new(), room, lost: 0 };
        Journal { ring: Rc::new(RefCell::new(ring)) }
    }

    /// A pen for a part of a node.
    pub(crate) fn pen(&self, node: usize, part: Part) -> Pen {
        Pen { journal: Some((self.clone(), NodeId(node), part)) }
    }

    /// What is in it, in the order of times, and how many older entries are not.
    pub(crate) fn entries(&self) -> (Vec<Entry>, u64) {
        let ring = self.ring.borrow();
        let mut entries: Vec<Entry> = ring.entries.iter().copied().collect();
        entries.sort_by_key(|entry| entry.at);
        (entries, ring.lost)
    }
}

/// What a part of a world notes with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pen {
    journal: Option<(Journal, NodeId, Part)>,
}

impl Pen {
    /// Whether anything is noted.
    pub(crate) fn writes(&self) -> bool {
        self.journal.is_some()
    }

    /// Notes what happens at `at`; `what` is asked only if there is a journal.
    pub(crate) fn note(&self, at: Instant, what: impl FnOnce() -> What) {
        let Some((journal, node, part)) = &self.journal else { return };
        let mut ring = journal.ring.borrow_mut();
        if ring.entries.len() >= ring.room {
            ring.lost += 1;
            if ring.entries.pop_front().is_none() {
                return;
            }
        }
        ring.entries.push_back(Entry { at, node: *node, part: *part, what: what() });
    }
}

/// Segments begin to leave a node's interface at `from`, one after the other; each has left at its time.
pub(crate) fn sent(pen: &Pen, parcel: &Parcel, mut from: Instant, time_of: impl Fn(&Parcel) -> Instant) {
    if !pen.writes() {
        return;
    }
    let mut rest = parcel.clone();
    // As many turns as segments.
    loop {
        let segment = if rest.count() > 1 { rest.split_front(1) } else { rest.clone() };
        let at = time_of(&segment);
        let (id, len, load) = (segment.id(), segment.len() as u32, load_of(&segment));
        pen.note(at, || What::Sent { segment: id, from, len, load });
        from = at;
        if segment.id() == rest.id() {
            return;
        }
    }
}

/// A segment has reached a node's interface.
pub(crate) fn received(pen: &Pen, segment: &Parcel, at: Instant) {
    pen.note(at, || What::Received { segment: segment.id(), len: segment.len() as u32 });
}

/// What a single segment carries.
fn load_of(segment: &Parcel) -> Load {
    let mut header = [0; linerate_nic::MAX_HEADER];
    let len = segment.write_header(&mut header);
    tcp_of(&header[..len], segment.len()).unwrap_or(Load::Other)
}

/// The TCP segment at the front of a frame of `len` bytes.
fn tcp_of(front: &[u8], len: usize) -> Option<Load> {
    let ethernet = ethernet::Header::parse(front).ok()?;
    let packet = ethernet.payload();
    let (protocol, segment, ip_len) = match ethernet.ether_type() {
        EtherType::IPV4 => {
            let ip = ipv4::Header::parse_quoted(packet).ok()?;
            (ip.protocol(), ip.payload(), ip.header_len())
        }
        EtherType::IPV6 => {
            let ip = ipv6::Header::parse_quoted(packet).ok()?;
            (ip.next_header(), ip.payload(), ipv6::HEADER_LEN)
        }
        _ => return None,
    };
    let tcp = tcp::Header::parse(segment).ok().filter(|_| protocol == Protocol::TCP)?;
    let headers = ethernet.header_len() + ip_len + tcp.header_len();
    let (sequence, flags) = (tcp.sequence().0, tcp.flags().0);
    Some(Load::Tcp { sequence, payload: len.saturating_sub(headers) as u32, flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept() {
        let check = |room: usize, count: u64, expected: &[u64], lost: u64| {
            let journal = Journal::new(room);
            let pen = journal.pen(0, Part::Interface);
            (0..count).for_each(|at| pen.note(Instant::from_nanos(at), || What::Interrupt(at)));
            let (entries, gone) = journal.entries();
            let times: Vec<u64> = entries.iter().map(|entry| entry.at.as_nanos()).collect();
            assert_eq!((times.as_slice(), gone), (expected, lost), "{room} {count}");
        };
        check(3, 2, &[0, 1], 0);
        check(3, 5, &[2, 3, 4], 2);
        check(0, 2, &[], 2);
    }
}
