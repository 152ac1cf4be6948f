//! One connection: what it is doing, what it holds, and until when.
//!
//! ```text
//!            request line and fields            body read                  files known
//!   Head ───────────────────────────────> Body ───────────> (answer) ──┬──────────────> Sending ──┐
//!    ▲  └───────── no body ──────────────────────────────────┘         ├─> Resolving ─────┘  ▲    │
//!    │                                                                 └─> Listing ──────────┘    │
//!    └────────────────────────────── all sent, connection kept ───────────────────────────────────┘
//!   any ── error, or the last response ──> Lingering ──> gone
//! ```

use super::body::Body;
use super::config::Timeouts;
use super::exchange::Exchange;
use super::file_info::FileInfo;
use super::headers::HeadScan;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_transport::{Bytes, ConnId, FileRange, Payload};
use linerate_wire::units::Instant;

/// What a connection is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Waiting for a request, or for the rest of its head.
    Head,
    /// Reading a body.
    Body(Body),
    /// Waiting for the file cache.
    Resolving,
    /// Waiting for the directory listing of this slot.
    Listing(u32),
    /// Handing over what is queued, and waiting until an open file was sent.
    Sending,
    /// Sent FIN; this many bytes of what the peer still sends are thrown away, before the connection is closed.
    Lingering(usize),
}

/// Something to send.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// Bytes, at most 64 KiB of them.
    Bytes(Bytes),
    /// A piece of a memory file.
    Pattern { offset: u64, len: u64 },
    /// A range of an open file.
    File(FileRange),
}

impl Piece {
    /// Bytes of it that were not handed over.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Pattern { len, .. } => *len,
            Piece::File(range) => range.len,
        }
    }

    /// The next payload to hand over, and what is left after it.
    pub fn next(&self) -> (Payload, Option<Piece>) {
        match self {
            Piece::Bytes(bytes) => (Payload::Shared(bytes.clone()), None),
            Piece::Pattern { offset, len } => {
                let bytes = crate::memory::pattern(*offset, *len);
                let taken = bytes.len() as u64;
                let rest = Piece::Pattern { offset: offset + taken, len: len - taken };
                (Payload::Static(bytes), (taken < *len).then_some(rest))
            }
            Piece::File(range) => (Payload::File(*range), None),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub id: ConnId,
    pub remote: IpAddr,
    pub state: State,
    /// The part of a head that arrived without its end.
    pub head: Vec<u8>,
    /// How far that was looked at.
    pub scan: HeadScan,
    /// The request that is not answered yet, while it waits for something.
    pub exchange: Option<Box<Exchange>>,
    /// What the transport would not take yet, in order.
    pub pieces: VecDeque<Piece>,
    /// The file whose ranges are queued; it stays open until they are sent.
    pub file: Option<Rc<FileInfo>>,
    /// Close after what is queued.
    pub closing: bool,
    /// The peer may still be sending when we close.
    pub linger: bool,
    /// The client has said that the request it sent, which has no body, is its last (RFC 9112 section 9.6).
    pub is_last: bool,
    /// Bytes handed to the transport.
    pub queued: u64,
    /// Bytes of bodies received.
    pub received: u64,
    /// When the state, or the period in which progress is due, began.
    pub since: Instant,
    /// Bytes moved at that time.
    pub mark: u64,
    /// For when its timer is set; the real deadline may be later.
    pub armed: Instant,
    /// Bytes of head memory that it was charged for.
    pub charged: usize,
    /// It is in the queue of those that were not done with their input.
    pub in_ready: bool,
}

impl Connection {
    pub fn new(id: ConnId, remote: IpAddr, now: Instant) -> Connection {
        Connection {
            id,
            remote,
            state: State::Head,
            head: Vec::new(),
            scan: HeadScan::default(),
            exchange: None,
            pieces: VecDeque::new(),
            file: None,
            closing: false,
            linger: false,
            is_last: false,
            queued: 0,
            received: 0,
            since: now,
            mark: 0,
            armed: Instant::FAR_FUTURE,
            charged: 0,
            in_ready: false,
        }
    }

    /// Enters a state in which progress of a body is due.
    pub fn enter(&mut self, state: State, now: Instant, moved: u64) {
        self.state = state;
        self.since = now;
        self.mark = moved;
    }

    /// Whether it waits for the first byte of a request.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Head) && self.head.is_empty()
    }

    /// Whether it waits for a request, or for the rest of one, and for nothing else.
    pub fn awaits_request(&self) -> bool {
        matches!(self.state, State::Head) && self.pieces.is_empty() && !self.in_ready
    }

    /// When the server must look after it by itself.
    pub fn deadline(&self, timeouts: &Timeouts) -> Instant {
        self.since
            + match self.state {
                State::Head if self.head.is_empty() => timeouts.idle,
                State::Head => timeouts.head,
                State::Resolving | State::Listing(_) => timeouts.file,
                State::Body(_) | State::Sending => timeouts.progress,
                State::Lingering(_) => timeouts.linger,
            }
    }

    /// Bytes of heads that it holds.
    pub fn head_memory(&self) -> usize {
        self.head.capacity() + self.exchange.as_ref().map_or(0, |exchange| exchange.head.capacity())
    }
}

/// All connections, by the slot of their id; transports number their connections densely.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<Box<Connection>>>,
    count: usize,
}

impl Table {
    /// How many there are, those taken out for a moment included.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a connection.
    pub fn add(&mut self, conn: Box<Connection>) {
        self.count += 1;
        self.put_back(conn);
    }

    /// A connection, unless it is taken out.
    pub fn get(&self, id: ConnId) -> Option<&Connection> {
        self.slots.get(id.index() as usize)?.as_deref().filter(|conn| conn.id == id)
    }

    /// Takes a connection out for a moment.
    pub fn take(&mut self, id: ConnId) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(id.index() as usize)?;
        if slot.as_ref().is_some_and(|conn| conn.id == id) { slot.take() } else { None }
    }

    /// Puts it back.
    pub fn put_back(&mut self, conn: Box<Connection>) {
        let at = conn.id.index() as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(conn);
    }

    /// Notes that one that was taken out does not come back.
    pub fn forget_one(&mut self) {
        self.count -= 1;
    }

    /// The ids of all.
    pub fn ids(&self) -> Vec<ConnId> {
        self.slots.iter().flatten().map(|conn| conn.id).collect()
    }
}
