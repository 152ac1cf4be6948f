//! The queue in front of a link that has a rate: drop-tail, CoDel (RFC 8289), or marking above a threshold.

use crate::codel::{Codel, CodelConfig};
use crate::parcel::Parcel;
use linerate_wire::units::Instant;
use std::collections::VecDeque;

/// How a queue is bounded and managed. Bytes are those of frames, without preamble, check sequence and gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// Segments that do not fit are dropped.
    DropTail {
        /// Most segments that wait; the one being sent does not count.
        packets: usize,
        /// Most bytes that wait.
        bytes: usize,
    },
    /// Drop-tail that also marks (RFC 3168) what is put behind `mark_bytes` or more, if its sender can use that; as data
    /// centre switches do (RFC 8257 section 3.1).
    Threshold {
        /// Bytes from which on segments are marked.
        mark_bytes: usize,
        /// Most bytes that wait.
        bytes: usize,
    },
    /// Controlled delay (RFC 8289).
    Codel(CodelConfig),
}

impl Queue {
    /// Drop-tail by number of segments.
    pub const fn packets(packets: usize) -> Queue {
        Queue::DropTail { packets, bytes: usize::MAX }
    }

    /// Drop-tail by bytes.
    pub const fn bytes(bytes: usize) -> Queue {
        Queue::DropTail { packets: usize::MAX, bytes }
    }
}

impl Default for Queue {
    /// 1,000 segments: the length of a Linux interface's queue.
    fn default() -> Self {
        Queue::packets(1_000)
    }
}

/// What waits.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: VecDeque<(Instant, Parcel)>,
    bytes: usize,
    codel: Codel,
    /// When the segment taken last was put in.
    pub(crate) taken_from: Instant,
}

/// What became of segments at the head of the queue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Managed {
    /// Dropped by CoDel.
    pub(crate) dropped: u64,
    /// Marked by CoDel.
    pub(crate) marked: u64,
}

impl Backlog {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a segment at the end; `Ok(true)` if it was marked; gives it back if it does not fit.
    pub(crate) fn push(&mut self, queue: &Queue, now: Instant, mut parcel: Parcel) -> Result<bool, Parcel> {
        let len = parcel.len();
        let (packets, bytes) = match queue {
            Queue::DropTail { packets, bytes } => (*packets, *bytes),
            Queue::Threshold { bytes, .. } => (usize::MAX, *bytes),
            Queue::Codel(config) => (config.packets, usize::MAX),
        };
        if self.waiting.len() >= packets || self.bytes.saturating_add(len) > bytes {
            return Err(parcel);
        }
        let marks = matches!(queue, Queue::Threshold { mark_bytes, .. } if self.bytes >= *mark_bytes)
            && parcel.is_ecn_capable();
        if marks {
            parcel.mark();
        }
        self.bytes += len;
        self.waiting.push_back((now, parcel));
        Ok(marks)
    }

    /// Takes the segment to be sent next.
    pub(crate) fn pop(&mut self, queue: &Queue, now: Instant, managed: &mut Managed) -> Option<Parcel> {
        let Queue::Codel(config) = queue else { return self.take().map(|(_, parcel)| parcel) };
        let mut codel = std::mem::take(&mut self.codel);
        let next = codel.dequeue(config, now, self, managed);
        self.codel = codel;
        next
    }

    /// The oldest segment, whatever the discipline says, and when it was put in.
    pub(crate) fn take(&mut self) -> Option<(Instant, Parcel)> {
        let (at, parcel) = self.waiting.pop_front()?;
        self.bytes -= parcel.len();
        self.taken_from = at;
        Some((at, parcel))
    }
}
