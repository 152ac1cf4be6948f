//! One TCP connection over a kernel socket.
//!
//! ```text
//!  connect ──> Connecting ──> Open ──────────────> Closed(Done)      both FINs went, all was read
//!  accept ────────────────────┘ │                  Closed(reason)    reset, refused, timed out, file failed
//!                               │ close
//!                               └──> released: sends what is queued, then FIN; discards what comes until the
//!                                    peer's FIN or the deadline; the server's id is stale already
//! ```

mod input;

use super::hub::{Hub, conn_id};
use super::info;
use super::receive::ReceiveBuffer;
use super::send_queue::{Flush, SendQueue, queue_limit};
use super::socket;
use crate::slab::Key;
use linerate_transport::{
    CloseReason, ConnInfo, ConnState, MAX_PAYLOAD, Owner, Ready, SocketOptions, Source,
};
use linerate_wire::units::Instant;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, sockopt};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Most bytes each way per connection and turn.
pub(crate) const BUDGET: u64 = 256 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Connecting,
    Open,
    Closed(CloseReason),
}

/// Where our FIN stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    No,
    Wanted,
    Sent,
}

/// What the owner of the table shall do with a connection after a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Keep,
    Remove,
}

#[derive(Debug)]
pub(crate) struct Conn {
    key: Key,
    /// `None` once the connection broke.
    fd: Option<OwnedFd>,
    pub(crate) owner: Owner,
    remote: SocketAddr,
    established: Instant,
    queue_limit: usize,
    user_timeout: Duration,
    pub(super) phase: Phase,
    /// The peer's FIN was read.
    finished: bool,
    fin: Fin,
    /// The server has closed it and knows it no more.
    pub(super) released: bool,
    /// The peer has said that it sends nothing more: closing the descriptor makes no reset that overtakes our data.
    peer_is_done: bool,
    can_read: bool,
    can_write: bool,
    /// The peer's FIN waits in the kernel: read until it is met, as no further edge will come for it.
    hang_up: bool,
    /// There is an urgent byte: a read stops before it although more is there.
    urgent: bool,
    /// In the run queue.
    running: bool,
    /// What comes goes from the socket to a file: nothing is read before the server asks.
    stores: bool,
    /// A worker reads the file at the front of the queue.
    waits_for_file: bool,
    /// The server met a full queue: tell when there is room.
    full: bool,
    /// Something was queued since the last `SENT`.
    owes_sent: bool,
    ready: Ready,
    in_events: bool,
    pub(super) receive: ReceiveBuffer,
    pub(super) send: SendQueue,
    /// Payload bytes taken by the kernel, and received.
    pub(super) moved: (u64, u64),
    /// When something last moved, for the deadline of a closed connection.
    progress: Instant,
    deadline: Option<Instant>,
    /// Measurements of a connection that broke.
    last_info: Option<Box<ConnInfo>>,
}

impl Conn {
    pub(crate) fn new(
        fd: OwnedFd,
        owner: Owner,
        remote: SocketAddr,
        options: &SocketOptions,
        connecting: bool,
        now: Instant,
    ) -> Conn {
        Conn {
            key: Key { index: 0, generation: 0 },
            fd: Some(fd),
            owner,
            remote,
            established: now,
            queue_limit: queue_limit(options.send_buffer),
            user_timeout: options.user_timeout,
            phase: if connecting { Phase::Connecting } else { Phase::Open },
            finished: false,
            fin: Fin::No,
            released: false,
            peer_is_done: false,
            can_read: false,
            can_write: !connecting,
            hang_up: false,
            urgent: false,
            running: false,
            stores: false,
            waits_for_file: false,
            full: false,
            owes_sent: false,
            ready: Ready::NONE,
            in_events: false,
            receive: ReceiveBuffer::default(),
            send: SendQueue::default(),
            moved: (0, 0),
            progress: now,
            deadline: None,
            last_info: None,
        }
    }

    /// Tells it its key, once it is in the table.
    pub(crate) fn set_key(&mut self, key: Key) {
        self.key = key;
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the server still knows it.
    pub(crate) fn is_known(&self) -> bool {
        !self.released
    }

    pub(crate) fn state(&self) -> ConnState {
        match self.phase {
            Phase::Connecting => ConnState::Connecting,
            Phase::Open => ConnState::Open { finished: self.finished },
            Phase::Closed(reason) => ConnState::Closed(reason),
        }
    }

    /// Whether payload may be queued at all.
    pub(crate) fn takes_payload(&self) -> bool {
        self.phase == Phase::Open && self.fin == Fin::No
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.send.total()
    }

    pub(crate) fn readable(&self) -> usize {
        self.receive.len()
    }

    pub(crate) fn peek(&self) -> &[u8] {
        self.receive.peek()
    }

    fn limit(&self, hub: &Hub) -> usize {
        if hub.is_tight() { self.queue_limit.min(MAX_PAYLOAD) } else { self.queue_limit }
    }

    pub(crate) fn sendable(&self, hub: &Hub) -> usize {
        if !self.takes_payload() || self.send.is_crowded() {
            return 0;
        }
        self.limit(hub).saturating_sub(self.send.memory())
    }

    pub(crate) fn set_full(&mut self) {
        self.full = true;
    }

    /// Adds to the queue by `push`, and sees to it that it is sent.
    pub(crate) fn enqueue(&mut self, hub: &mut Hub, push: impl FnOnce(&mut SendQueue, &mut Vec<Vec<u8>>)) {
        let before = self.send.memory();
        push(&mut self.send, &mut hub.spare);
        hub.queued_memory += self.send.memory() - before;
        self.owes_sent = true;
        if self.sendable(hub) == 0 {
            self.full = true;
        }
        self.schedule(hub);
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.send.is_crowded()
    }

    pub(crate) fn consume(&mut self, len: usize, hub: &mut Hub) {
        self.receive.consume(len, &mut hub.pool);
        if self.can_read {
            self.schedule(hub);
        }
        self.check_done(hub);
    }

    pub(crate) fn shutdown(&mut self, hub: &mut Hub) {
        if self.phase == Phase::Open && self.fin == Fin::No {
            self.fin = Fin::Wanted;
            self.owes_sent = true;
            self.schedule(hub);
        }
    }

    pub(crate) fn set_options(&mut self, options: &SocketOptions) {
        self.queue_limit = queue_limit(options.send_buffer);
        self.user_timeout = options.user_timeout;
        if let Some(fd) = &self.fd {
            socket::apply(fd.as_fd(), options);
        }
    }

    /// The peer's address, known since the connection was made.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(crate) fn info(&self, now: Instant) -> ConnInfo {
        let unknown = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        match (&self.last_info, &self.fd) {
            (None, Some(fd)) => {
                let local = socket::local_addr(fd).unwrap_or(unknown);
                let age = now.saturating_since(self.established).as_nanos() as u64;
                let age = if self.phase == Phase::Connecting { 0 } else { age };
                info::conn_info(fd.as_fd(), local, self.remote, age)
            }
            (Some(info), _) => **info,
            // A broken connection always left its measurements.
            (None, None) => info::unknown(unknown, self.remote),
        }
    }

    /// The events to report, and forgets them.
    pub(crate) fn take_events(&mut self) -> Ready {
        self.in_events = false;
        std::mem::take(&mut self.ready)
    }

    fn mark(&mut self, ready: Ready, hub: &mut Hub) {
        if self.released {
            return;
        }
        self.ready |= ready;
        if !self.in_events {
            self.in_events = true;
            hub.events.push_back(Source::Conn(conn_id(self.key)));
        }
    }

    pub(crate) fn schedule(&mut self, hub: &mut Hub) {
        if !self.running {
            self.running = true;
            hub.run.push_back(self.key);
        }
    }

    /// It was accepted: what its peer has sent may be there already, so that it is read before epoll is asked.
    pub(crate) fn expect(&mut self, hub: &mut Hub) {
        self.can_read = true;
        self.schedule(hub);
        hub.unwatched.push_back(self.key);
    }

    /// Whether it has input or output to do, or its server has not heard of all that it did.
    pub(crate) fn is_occupied(&self) -> bool {
        self.running || self.in_events
    }

    /// Sets the time at which [`Conn::expire`] shall be called.
    pub(crate) fn set_deadline(&mut self, at: Option<Instant>, hub: &mut Hub) {
        if let Some(old) = self.deadline.take() {
            hub.deadlines.remove(&(old, self.key));
        }
        if let Some(at) = at {
            hub.deadlines.insert((at, self.key));
            self.deadline = Some(at);
        }
    }

    /// Starts the deadline of an active open.
    pub(crate) fn limit_connecting(&mut self, hub: &mut Hub) {
        self.set_deadline(Some(hub.now + self.user_timeout), hub);
    }

    /// The server gives it up, and may know that the peer sends nothing more. Whether to remove it at once.
    pub(crate) fn release(&mut self, peer_is_done: bool, hub: &mut Hub) -> Fate {
        self.released = true;
        self.peer_is_done = peer_is_done;
        self.receive.clear(&mut hub.pool);
        if self.phase != Phase::Open {
            return Fate::Remove;
        }
        if self.fin == Fin::No {
            self.fin = Fin::Wanted;
        }
        self.progress = hub.now;
        self.set_deadline(Some(hub.now + self.user_timeout), hub);
        self.schedule(hub);
        Fate::Keep
    }

    /// Whether its server has closed it, and if so whether everything is sent.
    pub(crate) fn closing(&self) -> Option<bool> {
        self.released.then_some(self.fin == Fin::Sent)
    }

    /// Makes closing the descriptor send a reset.
    pub(crate) fn reset_on_close(&self) {
        if let Some(fd) = &self.fd {
            // If it fails the peer gets a FIN instead, or a reset as soon as it sends something.
            let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
        }
    }

    /// Whether something of it would be lost if the process ended now. What the kernel has taken it delivers by itself.
    pub(crate) fn is_unfinished(&self) -> bool {
        let is_delivered = self.released && self.fin == Fin::Sent;
        !matches!(self.phase, Phase::Closed(_)) && !is_delivered
    }

    /// Gives back what it holds of the shared means; the connection is dropped after that.
    pub(crate) fn dismantle(&mut self, hub: &mut Hub) {
        self.receive.clear(&mut hub.pool);
        hub.queued_memory -= self.send.memory();
        self.send.clear();
        self.set_deadline(None, hub);
    }

    /// Its deadline has passed.
    pub(crate) fn expire(&mut self, hub: &mut Hub) -> Fate {
        self.deadline = None;
        if self.phase == Phase::Connecting {
            self.fail(CloseReason::TimedOut, hub);
            return if self.released { Fate::Remove } else { Fate::Keep };
        }
        if !self.released {
            return Fate::Keep;
        }
        let patience =
            if self.fin == Fin::Sent { self.user_timeout.min(hub.config.linger) } else { self.user_timeout };
        let due = self.progress + patience;
        if due > hub.now {
            self.set_deadline(Some(due), hub);
            return Fate::Keep;
        }
        hub.counters.linger_expired += 1;
        if self.fin != Fin::Sent {
            self.reset_on_close();
        }
        Fate::Remove
    }

    /// Takes what epoll reports.
    pub(crate) fn handle_edge(&mut self, flags: EventFlags, hub: &mut Hub) {
        let Some(fd) = &self.fd else { return };
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        if flags.contains(EventFlags::ERR) || self.phase == Phase::Connecting {
            let error = match sockopt::socket_error(fd) {
                Ok(Ok(())) => None,
                Ok(Err(errno)) | Err(errno) => Some(errno),
            };
            if let Some(errno) = error {
                return self.fail_with(errno, hub);
            }
        }
        if self.phase == Phase::Connecting {
            if !flags.contains(EventFlags::OUT) || flags.contains(EventFlags::HUP) {
                return;
            }
            self.phase = Phase::Open;
            self.established = hub.now;
            hub.counters.connected += 1;
            self.set_deadline(None, hub);
            self.mark(Ready::WRITABLE, hub);
        }
        self.can_write |= flags.contains(EventFlags::OUT);
        self.hang_up |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        self.urgent |= flags.contains(EventFlags::PRI);
        self.can_read |= self.hang_up || flags.contains(EventFlags::IN);
        self.schedule(hub);
    }

    /// A worker has brought the file at the front into memory, up to this offset.
    pub(crate) fn handle_read_ahead(&mut self, up_to: u64, hub: &mut Hub) {
        if self.waits_for_file {
            self.waits_for_file = false;
            self.send.set_resident(up_to);
            self.schedule(hub);
        }
    }

    /// Reads and writes within its budget; adds the bytes moved to `moved`.
    pub(crate) fn turn(&mut self, hub: &mut Hub, moved: &mut u64) -> Fate {
        self.running = false;
        if self.phase != Phase::Open {
            return if self.released { Fate::Remove } else { Fate::Keep };
        }
        let again = if self.released { self.discard(hub, moved) } else { self.read(hub, moved) };
        let again = self.write(hub, moved) | again;
        let over = self.fin == Fin::Sent && (self.finished || (self.peer_is_done && !self.can_read));
        if self.released && (self.phase != Phase::Open || over) {
            return Fate::Remove;
        }
        if again && self.phase == Phase::Open {
            self.schedule(hub);
        }
        Fate::Keep
    }

    /// Hands what is queued to the kernel, then the FIN if it is due; whether there is more to do now.
    fn write(&mut self, hub: &mut Hub, moved: &mut u64) -> bool {
        let Some(fd) = &self.fd else { return false };
        if self.waits_for_file || (!self.can_write && self.send.total() > 0) {
            return false;
        }
        let before = self.send.memory();
        let mut sent = 0;
        let fin_follows = self.fin == Fin::Wanted;
        let end = self.send.flush(fd.as_fd(), BUDGET, fin_follows, &mut sent, &mut hub.spare);
        hub.queued_memory -= before - self.send.memory();
        if sent > 0 {
            *moved += sent;
            self.moved.0 += sent;
            hub.counters.bytes_sent += sent;
            self.progress = hub.now;
        }
        let mut again = false;
        match end {
            Flush::Empty => self.handle_empty(hub),
            Flush::Budget => again = true,
            Flush::Blocked => self.can_write = false,
            Flush::NeedsFile { file, offset, len } => {
                self.waits_for_file = true;
                hub.counters.read_aheads += 1;
                hub.files.read_ahead(file, offset, len, self.key, &hub.ahead);
            }
            Flush::FileFailed => {
                hub.counters.file_failed += 1;
                self.reset_on_close();
                self.fail(CloseReason::File, hub);
            }
            Flush::Error(errno) => self.fail_with(errno, hub),
        }
        // Half the queue is what makes a call worth its while.
        let room = self.send.memory() <= self.limit(hub) / 2 && self.send.is_airy();
        if self.full && room && self.takes_payload() {
            self.full = false;
            self.mark(Ready::WRITABLE, hub);
        }
        again
    }

    fn handle_empty(&mut self, hub: &mut Hub) {
        if self.fin == Fin::Wanted && self.released && self.peer_is_done && !self.can_read {
            // Closing the descriptor, which follows, sends it.
            self.fin = Fin::Sent;
        } else if self.fin == Fin::Wanted
            && let Some(fd) = &self.fd
        {
            // Fails only on a connection that broke meanwhile, which an event reports.
            let _ = rustix::net::shutdown(fd, Shutdown::Write);
            self.fin = Fin::Sent;
            self.progress = hub.now;
            if self.released {
                let patience = self.user_timeout.min(hub.config.linger);
                self.set_deadline(Some(hub.now + patience), hub);
            }
        }
        if self.owes_sent {
            self.owes_sent = false;
            self.mark(Ready::SENT, hub);
        }
        self.check_done(hub);
    }

    /// Ends the connection once both sides have finished and everything received was read.
    fn check_done(&mut self, hub: &mut Hub) {
        let done = self.finished && self.fin == Fin::Sent && self.receive.len() == 0;
        if done && self.phase == Phase::Open && !self.released {
            self.phase = Phase::Closed(CloseReason::Done);
            self.mark(Ready::CLOSED, hub);
        }
    }

    pub(crate) fn fail_with(&mut self, errno: Errno, hub: &mut Hub) {
        let reason = match errno {
            Errno::CONNREFUSED => CloseReason::Refused,
            Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::HOSTDOWN | Errno::NETDOWN | Errno::PERM => {
                CloseReason::Unreachable
            }
            Errno::TIMEDOUT => {
                let idle = self.phase == Phase::Open
                    && self.send.total() == 0
                    && self.fd().is_some_and(info::timed_out_idle);
                if idle { CloseReason::KeepAlive } else { CloseReason::TimedOut }
            }
            Errno::NOMEM | Errno::NOBUFS => CloseReason::NoMemory,
            _ => CloseReason::Reset,
        };
        hub.counters.broken += 1;
        self.fail(reason, hub);
    }

    /// Ends the connection: measurements are kept, everything else is released at once.
    pub(crate) fn fail(&mut self, reason: CloseReason, hub: &mut Hub) {
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        self.last_info = Some(Box::new(self.info(hub.now)));
        self.phase = Phase::Closed(reason);
        self.dismantle(hub);
        self.fd = None;
        self.can_read = false;
        self.can_write = false;
        self.mark(Ready::CLOSED, hub);
        if self.released {
            // Its turn is what removes it.
            self.schedule(hub);
        }
    }
}
