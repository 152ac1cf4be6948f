//! One end of a connection that sends a pattern, checks the other's, and notes what happens.

use super::{App, AppWork, Context, Pattern};
use linerate_transport::{
    Bytes, CloseReason, ConnId, ConnInfo, ConnState, Event, ListenAddr, ListenOptions, ListenerId, Payload,
    Ready, SendError, SocketOptions, Source, Transport,
};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes queued at once.
const PIECE: u64 = 64 << 10;

/// How much one end sends before it finishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Amount {
    /// Nothing: it finishes at once.
    #[default]
    Nothing,
    /// So many bytes.
    Bytes(u64),
    /// As much as it can until this point in time.
    Until(Instant),
}

/// How one end reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reader {
    /// Everything as it comes.
    #[default]
    Eager,
    /// So many bytes at most, every so often.
    Paced {
        /// Bytes at once.
        bytes: usize,
        /// Time between two reads.
        every: Duration,
    },
    /// Everything, but not before this point in time.
    From(Instant),
    /// Never.
    Never,
}

/// How one end writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writer {
    /// As much as the send buffer takes, at once.
    #[default]
    Eager,
    /// So many bytes in one piece, every so often; later where the send buffer has no room.
    Paced {
        /// Bytes at once.
        bytes: u64,
        /// Time between two pieces.
        every: Duration,
    },
    /// Calls of so many bytes each, whenever the send buffer has room.
    Calls {
        /// Bytes of each call.
        bytes: u64,
        /// Whether the application gives way after each: then one is written in a turn of the loop, and what it wrote is
        /// sent before the next.
        gives_way: bool,
    },
    /// Requests: so many bytes in one piece, and the next when the peer has answered the one before with a byte.
    Exchange {
        /// Bytes at once.
        bytes: u64,
    },
}

impl Writer {
    /// After how many bytes the peer answers.
    fn answered_every(self) -> Option<u64> {
        match self {
            Writer::Exchange { bytes } => Some(bytes.max(1)),
            _ => None,
        }
    }
}

/// Who opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It listens on this port for one connection.
    Server {
        /// The port.
        port: u16,
    },
    /// It connects at this time.
    Client {
        /// Where to.
        remote: SocketAddr,
        /// When.
        at: Instant,
    },
}

/// What one end does.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Who opens.
    pub role: Role,
    /// What it sends.
    pub send: Amount,
    /// The number of the pattern that it sends.
    pub sends: u64,
    /// The number of the pattern that it expects.
    pub expects: u64,
    /// How it reads.
    pub reader: Reader,
    /// How it writes.
    pub writer: Writer,
    /// How the peer writes: [`Writer::Exchange`] is answered, instead of what `send` says.
    pub peer_writer: Writer,
    /// Its socket's settings.
    pub options: SocketOptions,
}

/// What one end has seen. Times are `None` until it happened.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EndReport {
    /// When the connection was established.
    pub opened_at: Option<Instant>,
    /// Bytes queued for sending.
    pub bytes_sent: u64,
    /// Bytes received, in order and right.
    pub bytes_received: u64,
    /// When the first byte was read.
    pub first_byte_at: Option<Instant>,
    /// When the last byte so far was read.
    pub last_byte_at: Option<Instant>,
    /// When the peer's FIN was seen, all data before it read.
    pub finished_at: Option<Instant>,
    /// When all that was queued, and the FIN, had been acknowledged.
    pub sent_at: Option<Instant>,
    /// When the connection ended here.
    pub closed_at: Option<Instant>,
    /// Why.
    pub closed: Option<CloseReason>,
    /// Bytes that wait to be read, while the connection is open.
    pub unread: u64,
    /// The connection's measurements: live ones while it is open, the last ones after.
    pub info: Option<ConnInfo>,
    /// What is wrong: a byte that is not what was sent, or a socket that could not be opened.
    pub error: Option<String>,
}

impl EndReport {
    /// Bits per second received, from the first byte read to the last one; `None` before there is time between them.
    pub fn goodput_bps(&self) -> Option<f64> {
        let time = self.last_byte_at? - self.first_byte_at?;
        (!time.is_zero()).then(|| self.bytes_received as f64 * 8.0 / time.as_secs_f64())
    }
}

/// See the module.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    conn: Option<ConnId>,
    listener: Option<ListenerId>,
    started: bool,
    out: Generator,
    is_shut_down: bool,
    expected: Pattern,
    /// When it reads next; at once if `None`.
    read_at: Option<Instant>,
    /// When it writes the next piece, and what is left of the piece that it writes.
    write_at: Option<Instant>,
    to_write: u64,
    /// The connection has ended in order, and there may be something left to read.
    is_over: bool,
    work: AppWork,
    /// It gave way, and the send buffer has no room since.
    is_full: bool,
    report: EndReport,
}

impl Endpoint {
    /// One end, not started.
    pub fn new(config: EndpointConfig) -> Endpoint {
        Endpoint {
            out: Generator::new(Pattern::new(config.sends)),
            expected: Pattern::new(config.expects),
            conn: None,
            listener: None,
            started: false,
            is_shut_down: false,
            read_at: match config.reader {
                Reader::From(at) => Some(at),
                _ => None,
            },
            write_at: None,
            to_write: match config.writer {
                Writer::Eager => u64::MAX,
                Writer::Paced { bytes, .. } | Writer::Exchange { bytes } => bytes.max(1),
                Writer::Calls { .. } => 0,
            },
            is_over: false,
            work: AppWork::default(),
            is_full: false,
            report: EndReport::default(),
            config,
        }
    }

    /// The connection, while there is one.
    pub fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// Whether it is over, or never came to be.
    pub fn is_done(&self) -> bool {
        self.report.closed.is_some() || self.report.error.is_some()
    }

    /// What it has seen so far, with live measurements.
    pub fn report(&self, stack: &linerate_stack::Stack) -> EndReport {
        let live = self.conn.and_then(|conn| stack.info(conn));
        let unread = self.conn.map_or(0, |conn| stack.readable(conn) as u64);
        EndReport { info: live.or(self.report.info), unread, ..self.report.clone() }
    }

    /// What it has seen so far, without measurements of a live connection.
    pub fn seen(&self) -> &EndReport {
        &self.report
    }

    /// Resets the connection.
    pub fn abort(&mut self, context: &mut Context<'_>) {
        if let Some(conn) = self.conn.take() {
            self.report.info = context.stack.info(conn);
            context.stack.abort(conn);
            self.report.closed = Some(CloseReason::Reset);
            self.report.closed_at = Some(context.now);
        }
    }

    fn start(&mut self, context: &mut Context<'_>) {
        self.started = true;
        let options = &self.config.options;
        match self.config.role {
            Role::Server { port } => {
                let options = ListenOptions { socket: options.clone(), ..ListenOptions::default() };
                let addr = ListenAddr { ip: None, port };
                match context.stack.listen(context.owner, addr, &options) {
                    Ok(listener) => self.listener = Some(listener),
                    Err(error) => self.report.error = Some(format!("cannot listen on port {port}: {error}")),
                }
            }
            Role::Client { remote, .. } => {
                match context.stack.connect(context.owner, None, remote, options) {
                    Ok(conn) => self.conn = Some(conn),
                    Err(error) => self.report.error = Some(format!("cannot connect to {remote}: {error:?}")),
                }
            }
        }
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        let Some(listener) = self.listener else { return };
        if let Some(conn) = context.stack.accept(listener) {
            context.stack.close_listener(listener);
            self.listener = None;
            self.conn = Some(conn);
            self.report.opened_at = Some(context.now);
        }
    }

    /// Queues what there is room for: never more than the send buffer holds, as a socket that takes a part of a write.
    fn send(&mut self, context: &mut Context<'_>, conn: ConnId) {
        if self.is_shut_down || self.report.opened_at.is_none() {
            return;
        }
        let calls = self.call_size();
        let gives_way = matches!(self.config.writer, Writer::Calls { gives_way: true, .. });
        if gives_way && self.write_at.is_some_and(|at| context.now < at) {
            return;
        }
        loop {
            let left = self.left(context, conn);
            if left == Some(0) {
                self.is_shut_down = true;
                context.stack.shutdown(conn);
                return;
            }
            let room = match context.stack.sendable(conn) as u64 {
                // A call is taken whole where there is any room.
                1.. if calls.is_some() => u64::MAX,
                room => room,
            };
            let wanted = left.unwrap_or(0).min(self.wanted(context.now)).min(room);
            self.is_full = gives_way && room == 0;
            if wanted == 0 {
                return;
            }
            let piece = self.out.next(self.report.bytes_sent, wanted, calls.is_some());
            let len = piece.len() as u64;
            match context.stack.send(conn, Payload::Shared(piece)) {
                Ok(()) => {
                    self.wrote(context.now, len);
                    if gives_way {
                        self.write_at = Some(context.now + Duration::from_nanos(1));
                        self.work.ways += 1;
                        return;
                    }
                }
                Err(SendError::Full) => return,
                Err(_) => {
                    self.is_shut_down = true;
                    return;
                }
            }
        }
    }

    /// How much there is to send in all; `None` while that is nothing, but more will come.
    fn left(&self, context: &mut Context<'_>, conn: ConnId) -> Option<u64> {
        let sent = self.report.bytes_sent;
        if let Some(every) = self.config.peer_writer.answered_every() {
            let answers = self.report.bytes_received.div_ceil(every);
            let due =
                if self.report.finished_at.is_some() { answers } else { self.report.bytes_received / every };
            let is_over = self.report.finished_at.is_some()
                || matches!(context.stack.state(conn), ConnState::Closed(_));
            return Some(due - sent.min(due)).filter(|left| *left > 0 || is_over);
        }
        Some(match self.config.send {
            Amount::Nothing => 0,
            Amount::Bytes(bytes) => bytes - sent.min(bytes),
            Amount::Until(end) if context.now < end => u64::MAX,
            Amount::Until(_) => 0,
        })
    }

    /// How many bytes a call has, where the writer makes calls.
    fn call_size(&self) -> Option<u64> {
        match self.config.writer {
            Writer::Calls { bytes, .. } => Some(bytes.clamp(1, PIECE)),
            _ => None,
        }
    }

    /// How much the writer wants to write now.
    fn wanted(&mut self, now: Instant) -> u64 {
        if self.to_write == 0 {
            match self.config.writer {
                Writer::Exchange { bytes } => {
                    let answered = self.report.bytes_received.saturating_mul(bytes.max(1));
                    if answered >= self.report.bytes_sent {
                        self.to_write = bytes.max(1);
                    }
                }
                Writer::Paced { bytes, .. } if self.write_at.is_some_and(|at| at <= now) => {
                    self.to_write = bytes.max(1);
                }
                Writer::Paced { .. } => {}
                Writer::Calls { .. } => self.to_write = self.call_size().unwrap_or(1),
                Writer::Eager => self.to_write = u64::MAX,
            }
        }
        self.to_write
    }

    fn wrote(&mut self, now: Instant, len: u64) {
        self.report.bytes_sent += len;
        self.work.calls += 1;
        self.work.bytes += len;
        self.to_write -= len.min(self.to_write);
        if let Writer::Paced { every, .. } = self.config.writer
            && self.to_write == 0
        {
            // Who was held up does not make up for it.
            self.write_at = Some((self.write_at.unwrap_or(now) + every).max(now));
        }
    }

    /// Reads and checks what the reader wants now.
    fn read(&mut self, context: &mut Context<'_>, conn: ConnId) {
        let now = context.now;
        if self.read_at.is_some_and(|at| now < at) {
            return;
        }
        self.read_at = None;
        let mut budget = match self.config.reader {
            Reader::Eager | Reader::From(_) => usize::MAX,
            Reader::Paced { bytes, .. } => bytes,
            Reader::Never => 0,
        };
        let before = self.report.bytes_received;
        while budget > 0 && self.report.error.is_none() {
            let piece = context.stack.peek(conn);
            let piece = &piece[..piece.len().min(budget)];
            if piece.is_empty() {
                break;
            }
            let at = self.report.bytes_received;
            if let Err(wrong) = self.expected.check(at, piece) {
                self.report.error = Some(format!("byte {wrong} of the stream is not what was sent"));
                break;
            }
            let len = piece.len();
            context.stack.consume(conn, len);
            self.work.calls += 1;
            self.work.bytes += len as u64;
            self.report.bytes_received += len as u64;
            self.report.first_byte_at.get_or_insert(now);
            self.report.last_byte_at = Some(now);
            budget -= len;
        }
        if let Reader::Paced { every, .. } = self.config.reader
            && self.report.bytes_received > before
        {
            self.read_at = Some(now + every);
        }
        let is_finished = matches!(context.stack.state(conn), ConnState::Open { finished: true });
        if is_finished && context.stack.readable(conn) == 0 {
            self.report.finished_at.get_or_insert(now);
        }
    }

    fn closed(&mut self, context: &mut Context<'_>, conn: ConnId) {
        if let ConnState::Closed(reason) = context.stack.state(conn) {
            self.report.info = context.stack.info(conn);
            self.is_over = reason == CloseReason::Done
                && self.config.reader != Reader::Never
                && self.report.error.is_none()
                && context.stack.readable(conn) > 0;
            if self.is_over {
                return;
            }
            self.report.closed = Some(reason);
            self.report.closed_at = Some(context.now);
            if reason == CloseReason::Done {
                self.report.finished_at.get_or_insert(context.now);
            }
            self.conn = None;
            context.stack.close(conn);
        }
    }
}

impl App for Endpoint {
    fn handle_event(&mut self, context: &mut Context<'_>, event: Event) {
        if matches!(event.source, Source::Listener(_)) {
            self.accept(context);
        }
        let Some(conn) = self.conn else { return };
        if event.ready.contains(Ready::WRITABLE) {
            self.report.opened_at.get_or_insert(context.now);
        }
        if event.ready.contains(Ready::SENT) && self.is_shut_down {
            self.report.sent_at.get_or_insert(context.now);
        }
        self.read(context, conn);
        self.send(context, conn);
        if event.ready.contains(Ready::CLOSED) {
            self.closed(context, conn);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>) {
        if !self.started {
            let at = match self.config.role {
                Role::Server { .. } => Instant::ZERO,
                Role::Client { at, .. } => at,
            };
            if at <= context.now {
                self.start(context);
            }
        }
        if let Some(conn) = self.conn {
            self.read(context, conn);
            self.send(context, conn);
            if self.is_over {
                self.closed(context, conn);
            }
        }
    }

    fn work(&self) -> AppWork {
        self.work
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.started {
            return Some(match self.config.role {
                Role::Server { .. } => Instant::ZERO,
                Role::Client { at, .. } => at,
            });
        }
        self.conn?;
        let ends = match self.config.send {
            Amount::Until(end) if !self.is_shut_down && self.report.opened_at.is_some() => Some(end),
            _ => None,
        };
        let writes = self.write_at.filter(|_| self.to_write == 0 && !self.is_shut_down && !self.is_full);
        [self.read_at, ends, writes].into_iter().flatten().min()
    }
}

/// Makes payload in buffers that are used again when nobody holds them any more.
/// A buffer as payload; it is free again when the generator holds the only other handle no more.
struct Piece(Arc<Vec<u8>>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Debug)]
struct Generator {
    pattern: Pattern,
    buffers: VecDeque<Arc<Vec<u8>>>,
    /// The buffer from which payload is cut, and where its first byte is in the stream.
    open: Option<(u64, Bytes)>,
}

impl Generator {
    fn new(pattern: Pattern) -> Generator {
        Generator { pattern, buffers: VecDeque::new(), open: None }
    }

    /// Up to `len` bytes from `offset` on, at least one; all of them (up to [`PIECE`]) where they are to be `whole`.
    fn next(&mut self, offset: u64, len: u64, whole: bool) -> Bytes {
        if whole && self.open.as_ref().is_some_and(|(base, _)| offset + len > base + PIECE) {
            self.open = None;
        }
        let piece = |(base, whole): &(u64, Bytes)| {
            let from = offset.checked_sub(*base).filter(|from| *from < PIECE)?;
            Some(whole.slice(from as usize..(from + len).min(PIECE) as usize))
        };
        if let Some(piece) = self.open.as_ref().and_then(piece) {
            return piece;
        }
        self.open = None;
        let is_free = self.buffers.front().is_some_and(|buffer| Arc::strong_count(buffer) == 1);
        let free = if is_free { self.buffers.pop_front() } else { None };
        let mut buffer = free.unwrap_or_else(|| Arc::new(vec![0; PIECE as usize]));
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            self.pattern.fill(offset, bytes);
        }
        self.buffers.push_back(Arc::clone(&buffer));
        let whole = Bytes::from_owner(Piece(buffer));
        let first = piece(&(offset, whole.clone())).unwrap_or_else(|| whole.clone());
        self.open = Some((offset, whole));
        first
    }
}
