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
use super::pipeline::OnItsWay;
use crate::crowd;
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
    /// Responses before that one of which not all has left, the oldest first.
    pub on_their_way: VecDeque<OnItsWay>,
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
    fn new(id: ConnId, rest: Rest) -> Connection {
        let Rest { generation: _, remote, queued, since, armed } = rest;
        Connection {
            id,
            remote,
            state: State::Head,
            head: Vec::new(),
            scan: HeadScan::default(),
            exchange: None,
            pieces: VecDeque::new(),
            file: None,
            on_their_way: VecDeque::new(),
            closing: false,
            linger: false,
            is_last: false,
            queued,
            received: 0,
            since,
            mark: 0,
            armed,
            charged: 0,
            in_ready: false,
        }
    }

    /// Whether [`Connection::rest`] is all there is to know of it. What was received counts from where a body began, so that it
    /// may begin at zero again.
    fn is_at_rest(&self) -> bool {
        self.awaits_request()
            && self.head.capacity() == 0
            && self.exchange.is_none()
            && self.file.is_none()
            && self.on_their_way.is_empty()
            && self.charged == 0
            && !(self.closing || self.linger || self.is_last)
    }

    fn rest(&self) -> Rest {
        let Connection { id, remote, queued, since, armed, .. } = *self;
        Rest { generation: id.generation(), remote, queued, since, armed }
    }

    /// Becomes, from one that is at rest, the connection of which this was left.
    fn resume(&mut self, id: ConnId, rest: Rest) {
        let Rest { generation: _, remote, queued, since, armed } = rest;
        (self.id, self.remote, self.queued, self.since, self.armed) = (id, remote, queued, since, armed);
        (self.received, self.mark) = (0, 0);
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
        let on_their_way = self.on_their_way.iter().map(OnItsWay::head_memory).sum::<usize>();
        self.head.capacity()
            + self.exchange.as_ref().map_or(0, |exchange| exchange.head.capacity())
            + on_their_way
    }
}

/// What is left of a connection that waits for its next request; its slot is where it lies.
#[derive(Debug)]
struct Rest {
    generation: u32,
    remote: IpAddr,
    queued: u64,
    since: Instant,
    armed: Instant,
}

#[derive(Debug)]
enum Slot {
    /// Nobody's, or taken out.
    Empty,
    Working(Box<Connection>),
    Resting(Rest),
}

impl Slot {
    fn generation(&self) -> Option<u32> {
        match self {
            Slot::Empty => None,
            Slot::Working(conn) => Some(conn.id.generation()),
            Slot::Resting(rest) => Some(rest.generation),
        }
    }
}

/// A connection as it lies in the table.
pub(super) enum Seen<'a> {
    /// It waits for its next request, of which its server has seen nothing.
    Resting,
    Working(&'a Connection),
}

/// Most unused connections that are kept, and what each has room for in its queue.
const SPARES: usize = 64;
const SPARE_PIECES: usize = 16;

/// All connections, by the slot of their id; transports number their connections densely. Of one that waits for its next request
/// few bytes are kept; what it had beyond that is used by the next that has something to do.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    #[expect(clippy::vec_box, reason = "they go into slots and come out of them without being moved")]
    spares: Vec<Box<Connection>>,
    count: usize,
}

impl Table {
    /// How many there are, those taken out for a moment included.
    pub fn len(&self) -> usize {
        self.count
    }

    /// A new connection, taken out.
    pub fn add(&mut self, id: ConnId, remote: IpAddr, now: Instant) -> Box<Connection> {
        self.count += 1;
        let rest =
            Rest { generation: id.generation(), remote, queued: 0, since: now, armed: Instant::FAR_FUTURE };
        self.working(id, rest)
    }

    /// A connection, unless it is taken out.
    pub fn get(&self, id: ConnId) -> Option<Seen<'_>> {
        match self.slots.get(id.index() as usize)? {
            Slot::Working(conn) if conn.id == id => Some(Seen::Working(conn)),
            Slot::Resting(rest) if rest.generation == id.generation() => Some(Seen::Resting),
            _ => None,
        }
    }

    /// Takes a connection out for a moment.
    pub fn take(&mut self, id: ConnId) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(id.index() as usize)?;
        if slot.generation() != Some(id.generation()) {
            return None;
        }
        match core::mem::replace(slot, Slot::Empty) {
            Slot::Working(conn) => Some(conn),
            Slot::Resting(rest) => Some(self.working(id, rest)),
            Slot::Empty => None,
        }
    }

    /// Puts it back.
    pub fn put_back(&mut self, conn: Box<Connection>) {
        let at = conn.id.index() as usize;
        if at >= self.slots.len() {
            crowd::grow(&mut self.slots, at + 1, || Slot::Empty);
        }
        self.slots[at] = if conn.is_at_rest() {
            let rest = conn.rest();
            self.spare(conn);
            Slot::Resting(rest)
        } else {
            Slot::Working(conn)
        };
    }

    /// Takes back one that was taken out and is over.
    pub fn forget(&mut self, mut conn: Box<Connection>) {
        self.count -= 1;
        // The queue keeps its memory.
        let mut pieces = core::mem::take(&mut conn.pieces);
        pieces.clear();
        *conn = Connection { pieces, ..Connection::new(conn.id, conn.rest()) };
        self.spare(conn);
    }

    /// The ids of all.
    pub fn ids(&self) -> Vec<ConnId> {
        let id = |(at, slot): (usize, &Slot)| Some(ConnId::new(at as u32, slot.generation()?));
        self.slots.iter().enumerate().filter_map(id).collect()
    }

    fn working(&mut self, id: ConnId, rest: Rest) -> Box<Connection> {
        match self.spares.pop() {
            Some(mut conn) => {
                conn.resume(id, rest);
                conn
            }
            None => Box::new(Connection::new(id, rest)),
        }
    }

    /// Keeps one that is at rest, to be another connection.
    fn spare(&mut self, mut conn: Box<Connection>) {
        debug_assert!(conn.is_at_rest(), "{conn:?}");
        conn.pieces.shrink_to(SPARE_PIECES);
        if self.spares.len() < SPARES {
            self.spares.push(conn);
        }
    }
}
