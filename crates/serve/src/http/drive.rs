//! A connection's turn: reads requests, has them answered, hands over what is to be sent, and ends it.

use super::access_log::{self, Quoted, Record};
use super::answer::Answer;
use super::body::Body;
use super::connection::{Connection, Piece, State};
use super::exchange::Exchange;
use super::headers::{HeadEnd, HeadLimits, HeadScan};
use super::request::{Expectation, Framing, RequestError, check_line};
use super::response::{After, HeadWriter, Status, append_page};
use super::server::Server;
use crate::Context;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_transport::{Bytes, ConnState, SendError};

/// Requests answered per turn; a client with more of them waits for its next turn.
const REQUESTS_PER_TURN: usize = 64;
/// Output gathered before it is handed over.
pub(super) const GATHER_MAX: usize = 32 << 10;
/// Bytes of a head that are copied at once.
const HEAD_STEP: usize = 4 << 10;
/// Bytes that a peer may send after we are done with it.
const LINGER_MAX: usize = 256 << 10;
/// Bytes of a refused head that are logged.
const LOGGED_MAX: usize = 256;

/// How a turn goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// There may be more to do.
    Again,
    /// Something must come first: input, room, a file.
    Wait,
    /// The connection was given back to the transport.
    Gone,
}

impl Server {
    /// Does all that the connection can do now, and puts it back unless it is over.
    pub(super) fn drive(&mut self, ctx: &mut Context<'_>, mut conn: Box<Connection>) {
        if self.turn(ctx, &mut conn) {
            self.keep(conn);
        } else {
            self.drop_conn(ctx, conn);
        }
    }

    fn turn(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> bool {
        self.end_those_that_left(ctx, conn);
        let mut budget = REQUESTS_PER_TURN;
        loop {
            let step = match conn.state {
                State::Head if !conn.pieces.is_empty() => {
                    conn.enter(State::Sending, ctx.now, self.moved(ctx, conn));
                    Step::Again
                }
                State::Head if budget == 0 => {
                    self.queue_again(conn);
                    Step::Wait
                }
                State::Head => {
                    budget -= 1;
                    self.read_head(ctx, conn)
                }
                State::Body(body) => self.read_body(ctx, conn, body),
                State::Resolving | State::Listing(_) => Step::Wait,
                State::Sending => self.pump(ctx, conn),
                State::Lingering(left) => self.discard(ctx, conn, left),
            };
            match step {
                Step::Again => {}
                Step::Gone => return false,
                Step::Wait if self.out.is_empty() => return true,
                // What was gathered goes out now; if it does not fit, waiting for room begins.
                Step::Wait => {
                    self.flush(ctx, conn);
                    if conn.pieces.is_empty() || !matches!(conn.state, State::Head) {
                        return true;
                    }
                }
            }
        }
    }

    /// Goes on with a connection whose files may be known now.
    pub(super) fn resume(&mut self, ctx: &mut Context<'_>, mut conn: Box<Connection>) {
        let kept = match conn.exchange.take() {
            Some(ex) if matches!(conn.state, State::Resolving) => {
                self.answer_now(ctx, &mut conn, *ex) != Step::Gone && self.turn(ctx, &mut conn)
            }
            other => {
                conn.exchange = other;
                true
            }
        };
        if kept { self.keep(conn) } else { self.drop_conn(ctx, conn) }
    }

    /// Goes on with a connection whose listing is complete.
    pub(super) fn resume_listing(
        &mut self,
        ctx: &mut Context<'_>,
        mut conn: Box<Connection>,
        page: Result<Vec<u8>, linerate_transport::FileError>,
    ) {
        let kept = match conn.exchange.take() {
            Some(mut ex) if matches!(conn.state, State::Listing(_)) => {
                self.answer_listing(ctx, &mut conn, &mut ex, page);
                self.responded(ctx, &mut conn, *ex) != Step::Gone && self.turn(ctx, &mut conn)
            }
            other => {
                conn.exchange = other;
                true
            }
        };
        if kept { self.keep(conn) } else { self.drop_conn(ctx, conn) }
    }

    /// Says why a connection was given up waiting for, and ends it.
    pub(super) fn time_out(
        &mut self,
        ctx: &mut Context<'_>,
        mut conn: Box<Connection>,
        status: Status,
        line: &[u8],
    ) {
        let step = match conn.exchange.take() {
            Some(ex) => self.answer_last(ctx, &mut conn, *ex, status),
            None => self.refuse(ctx, &mut conn, status, line),
        };
        let kept = step != Step::Gone && self.turn(ctx, &mut conn);
        if kept { self.keep(conn) } else { self.drop_conn(ctx, conn) }
    }

    // Requests in.

    fn read_head(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Step {
        if conn.head.is_empty()
            && let Some(step) = self.answer_ready(ctx, conn)
        {
            return step;
        }
        let limits =
            HeadLimits { line: self.config.limits.request_line, fields: self.config.limits.header_fields };
        loop {
            let bytes = ctx.net.peek(conn.id);
            if bytes.is_empty() {
                return self.no_input(ctx, conn);
            }
            if conn.head.is_empty() {
                // All of it in one piece is the usual case: it is copied once, and only it.
                conn.scan = HeadScan::default();
                match conn.scan.scan(bytes, &limits) {
                    Ok(Some(place)) => {
                        let mut head = self.spare.pop().unwrap_or_default();
                        head.extend_from_slice(bytes.get(..place.end).unwrap_or(bytes));
                        ctx.net.consume(conn.id, place.end);
                        return self.on_head(ctx, conn, head, place);
                    }
                    Ok(None) => {
                        conn.since = ctx.now;
                        conn.scan = HeadScan::default();
                        conn.head = self.spare.pop().unwrap_or_default();
                    }
                    Err(error) => {
                        let line = first_line(bytes).to_vec();
                        return self.reject(ctx, conn, error, &line);
                    }
                }
            }
            let before = conn.head.len();
            let step = bytes.len().min(HEAD_STEP);
            conn.head.extend_from_slice(bytes.get(..step).unwrap_or(bytes));
            let mut found = conn.scan.scan(&conn.head, &limits);
            // A client of HTTP/0.9 sends no more than a line without version.
            if let Some(line) = conn.scan.lone_line(&conn.head)
                && let Err(error) = check_line(line)
            {
                found = Err(error);
            }
            match found {
                Ok(Some(place)) => {
                    ctx.net.consume(conn.id, place.end.saturating_sub(before));
                    let mut head = core::mem::take(&mut conn.head);
                    head.truncate(place.end);
                    return self.on_head(ctx, conn, head, place);
                }
                Ok(None) => ctx.net.consume(conn.id, step),
                Err(error) => {
                    let head = core::mem::take(&mut conn.head);
                    let step = self.reject(ctx, conn, error, first_line(&head));
                    self.recycle(head);
                    return step;
                }
            }
            if self.is_short_of_memory(conn, 0) {
                self.counters.head_memory_refused += 1;
                let head = core::mem::take(&mut conn.head);
                let step = self.refuse(ctx, conn, Status::Unavailable, first_line(&head));
                self.recycle(head);
                return step;
            }
        }
    }

    /// There is nothing to read: perhaps never again.
    pub(super) fn no_input(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Step {
        match ctx.net.state(conn.id) {
            ConnState::Open { finished: false } | ConnState::Connecting => {
                if !conn.on_their_way.is_empty() {
                    conn.enter(State::Sending, ctx.now, self.moved(ctx, conn));
                }
                Step::Wait
            }
            ConnState::Open { finished: true } => self.end(ctx, conn),
            ConnState::Closed(_) => {
                ctx.net.close(conn.id);
                Step::Gone
            }
        }
    }

    fn on_head(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        head: Vec<u8>,
        place: HeadEnd,
    ) -> Step {
        let mut ex = match Exchange::parse(head, place, self.config.memory_files, ctx.now) {
            Ok(ex) => ex,
            Err((error, head)) => {
                let line = head.get(place.start..place.fields).unwrap_or(b"");
                let step = self.reject(ctx, conn, error, first_line(line));
                self.recycle(head);
                return step;
            }
        };
        conn.is_last = !ex.keep_alive && ex.framing == Framing::Empty;
        let too_long = match ex.framing {
            Framing::Length(len) => len > self.config.limits.body && !ex.swallows(),
            _ => false,
        };
        let status = match ex.expectation {
            Expectation::Unknown => Some(Status::ExpectationFailed),
            _ if too_long => Some(Status::ContentTooLarge),
            // The client has not sent its body yet, and need not.
            Expectation::Continue if !ex.is_allowed() => Some(Status::MethodNotAllowed),
            _ => None,
        };
        if let Some(status) = status {
            return self.answer_last(ctx, conn, ex, status);
        }
        if ex.framing == Framing::Empty {
            return self.answer_now(ctx, conn, ex);
        }
        if self.is_short_of_memory(conn, ex.head.capacity()) {
            self.counters.head_memory_refused += 1;
            return self.answer_last(ctx, conn, ex, Status::Unavailable);
        }
        if ex.expectation == Expectation::Continue {
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        ex.keep_alive &= !self.draining;
        let body = Body::new(ex.framing);
        conn.exchange = Some(Box::new(ex));
        conn.enter(State::Body(body), ctx.now, conn.received);
        Step::Again
    }

    fn read_body(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, mut body: Body) -> Step {
        // An interim response may still wait for room.
        hand_over(ctx, conn);
        let bytes = ctx.net.peek(conn.id);
        if bytes.is_empty() {
            return match ctx.net.state(conn.id) {
                ConnState::Open { finished: false } | ConnState::Connecting => Step::Wait,
                // It will never be complete, but the answers to the requests before it may not have left.
                _ => {
                    self.counters.aborted += 1;
                    if let Some(ex) = conn.exchange.take() {
                        self.recycle(ex.head);
                    }
                    self.end(ctx, conn)
                }
            };
        }
        let progress = body.feed(bytes);
        let Some(mut ex) = conn.exchange.take() else {
            ctx.net.close(conn.id);
            return Step::Gone;
        };
        let progress = match progress {
            Ok(progress) => progress,
            Err(error) => {
                log::info!(target: "http::refused", "{}: malformed body: {error}", conn.remote);
                self.counters.bad_bodies += 1;
                return self.answer_last(ctx, conn, *ex, Status::BadRequest);
            }
        };
        ctx.net.consume(conn.id, progress.used);
        conn.received += progress.content;
        ex.received += progress.content;
        self.counters.content_received += progress.content;
        if ex.received > self.config.limits.body && !ex.swallows() {
            return self.answer_last(ctx, conn, *ex, Status::ContentTooLarge);
        }
        if progress.done {
            return self.answer_now(ctx, conn, *ex);
        }
        conn.exchange = Some(ex);
        conn.state = State::Body(body);
        Step::Again
    }

    // Answers out.

    fn answer_now(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, mut ex: Exchange) -> Step {
        let answer = self.answer(ctx, conn, &mut ex);
        let waits = matches!(answer, Answer::Resolving | Answer::Blocked);
        if answer != Answer::Complete {
            self.answers.draft = None;
        }
        if waits && self.is_short_of_memory(conn, ex.head.capacity()) {
            self.counters.head_memory_refused += 1;
            return self.answer_last(ctx, conn, ex, Status::Unavailable);
        }
        match answer {
            Answer::Complete => return self.responded(ctx, conn, ex),
            Answer::Resolving | Answer::Blocked => {
                if answer == Answer::Blocked {
                    self.blocked.push_back(conn.id);
                } else if !ex.resolving {
                    ex.resolving = true;
                    self.resolving += 1;
                }
                if !matches!(conn.state, State::Resolving) {
                    conn.enter(State::Resolving, ctx.now, 0);
                }
            }
            Answer::Listing(slot) => {
                self.end_resolving(&mut ex);
                conn.enter(State::Listing(slot), ctx.now, 0);
            }
        }
        conn.exchange = Some(Box::new(ex));
        Step::Wait
    }

    /// Answers a request that leaves the connection in a state in which no other can follow.
    fn answer_last(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        mut ex: Exchange,
        status: Status,
    ) -> Step {
        ex.keep_alive = false;
        conn.linger = true;
        self.say(ctx, conn, &mut ex, status);
        self.responded(ctx, conn, ex)
    }

    /// Goes on after a response was queued as far as there was room.
    fn responded(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, mut ex: Exchange) -> Step {
        self.end_resolving(&mut ex);
        if let Some(status) = ex.status {
            self.counters.count_response(status);
        }
        conn.closing |= !ex.keep_alive;
        if conn.pieces.is_empty() && conn.file.is_none() {
            self.finish(ctx, conn, ex);
            return self.next_request(ctx, conn);
        }
        self.answers.draft = None;
        conn.exchange = Some(Box::new(ex));
        self.flush(ctx, conn);
        conn.enter(State::Sending, ctx.now, self.moved(ctx, conn));
        Step::Again
    }

    /// Hands over what is queued, and goes on when all of it is where it belongs.
    fn pump(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Step {
        if !hand_over(ctx, conn) {
            return Step::Wait;
        }
        if conn.file.is_some() && !self.has_left(ctx, conn) && !self.go_on_behind(ctx, conn) {
            return Step::Wait;
        }
        if let Some(file) = conn.file.take() {
            self.let_go(ctx, file);
        }
        if let Some(ex) = conn.exchange.take() {
            self.finish(ctx, conn, *ex);
        }
        if !conn.on_their_way.is_empty() && (conn.closing || ctx.net.readable(conn.id) == 0) {
            return Step::Wait;
        }
        self.next_request(ctx, conn)
    }

    /// Logs a response that is complete, and keeps what can be used again.
    pub(super) fn finish(&mut self, ctx: &mut Context<'_>, conn: &Connection, ex: Exchange) {
        self.counters.content_sent += ex.content;
        self.log_exchange(ctx, conn, &ex, ex.content);
        if let Some(head) = self.answers.keep(ex, self.config.limits.ready_answers) {
            self.recycle(head);
        }
    }

    pub(super) fn log_exchange(&mut self, ctx: &Context<'_>, conn: &Connection, ex: &Exchange, sent: u64) {
        if let Some(format) = self.config.access_log
            && log::log_enabled!(target: access_log::TARGET, log::Level::Info)
        {
            let secs = self.common.secs();
            ex.log(&mut self.scribe, format, conn.remote, ctx.now, secs, sent);
        }
    }

    pub(super) fn next_request(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Step {
        // A server that stops answers what has come already, and nothing more.
        if self.draining && (conn.closing || ctx.net.peek(conn.id).is_empty()) {
            conn.closing = true;
            conn.linger = true;
        }
        if conn.closing {
            return self.end(ctx, conn);
        }
        conn.state = State::Head;
        conn.since = ctx.now;
        Step::Again
    }

    /// Refuses what is no request.
    fn reject(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        error: RequestError,
        line: &[u8],
    ) -> Step {
        self.counters.malformed += 1;
        log::info!(target: "http::refused", "{}: {error}: \"{}\"", conn.remote, Quoted(line));
        self.refuse(ctx, conn, error.status(), line)
    }

    /// Answers with a status where there is no exchange, and ends the connection.
    fn refuse(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, status: Status, line: &[u8]) -> Step {
        self.make_room(ctx, conn);
        let mut page = Vec::with_capacity(160);
        append_page(&mut page, status);
        let mut head = HeadWriter::begin(&mut self.out, &self.common, status, After::Close);
        if status == Status::Unavailable {
            head.field("Retry-After", b"1");
        }
        head.field("Content-Type", b"text/html; charset=utf-8").content_length(page.len() as u64);
        head.end().extend_from_slice(&page);
        self.counters.count_response(status);
        self.counters.content_sent += page.len() as u64;
        if let Some(format) = self.config.access_log
            && log::log_enabled!(target: access_log::TARGET, log::Level::Info)
        {
            let record = Record {
                format,
                remote: conn.remote,
                wall_secs: self.common.secs(),
                line,
                status: status.code(),
                bytes: page.len() as u64,
                is_cut: false,
                duration: ctx.now - conn.since,
                referer: None,
                user_agent: None,
            };
            log::info!(target: access_log::TARGET, "{}", self.scribe.line(&record));
        }
        conn.linger = true;
        self.end(ctx, conn)
    }

    // The end of a connection.

    /// Ends a connection after what is queued.
    fn end(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Step {
        self.flush(ctx, conn);
        conn.closing = true;
        if !conn.pieces.is_empty() || !conn.on_their_way.is_empty() {
            conn.enter(State::Sending, ctx.now, self.moved(ctx, conn));
            return Step::Wait;
        }
        let finished = matches!(ctx.net.state(conn.id), ConnState::Open { finished: true });
        if finished || !(conn.linger || ctx.net.readable(conn.id) > 0) {
            // Closing with input that nobody read would reset the connection and lose the response; a client that asked
            // for the end sends none.
            if conn.is_last {
                ctx.net.close_done(conn.id);
            } else {
                ctx.net.close(conn.id);
            }
            return Step::Gone;
        }
        ctx.net.shutdown(conn.id);
        conn.enter(State::Lingering(LINGER_MAX), ctx.now, 0);
        Step::Again
    }

    /// Throws away what a peer sends that has got its last response.
    fn discard(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, mut left: usize) -> Step {
        loop {
            let len = ctx.net.peek(conn.id).len();
            if len == 0 {
                break;
            }
            ctx.net.consume(conn.id, len);
            left = left.saturating_sub(len);
        }
        conn.state = State::Lingering(left);
        match ctx.net.state(conn.id) {
            ConnState::Open { finished: false } if left > 0 => Step::Wait,
            _ => {
                ctx.net.close(conn.id);
                Step::Gone
            }
        }
    }

    // Output.

    /// Bytes that have left for good: what was handed over, less what the transport still holds.
    pub(super) fn moved(&self, ctx: &Context<'_>, conn: &Connection) -> u64 {
        conn.queued.saturating_sub(ctx.net.unsent(conn.id))
    }

    /// Keeps the output buffer short.
    pub(super) fn make_room(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        if self.out.len() >= GATHER_MAX {
            self.flush(ctx, conn);
        }
    }

    /// Hands over the output buffer, or queues it.
    pub(super) fn flush(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        if self.out.is_empty() {
            return;
        }
        if conn.pieces.is_empty() && self.out.len() <= 2 * GATHER_MAX {
            match ctx.net.write(conn.id, &self.out) {
                Ok(()) => {
                    conn.queued += self.out.len() as u64;
                    return self.out.clear();
                }
                Err(SendError::Full) => {}
                Err(SendError::Closed | SendError::TooLong) => return self.out.clear(),
            }
        }
        for chunk in self.out.chunks(2 * GATHER_MAX) {
            conn.pieces.push_back(Piece::Bytes(Bytes::from(chunk.to_vec())));
        }
        self.out.clear();
        // Nobody has said yet whether there is room for what is too long for one write.
        hand_over(ctx, conn);
    }

    /// Hands a piece over behind the output buffer, or queues what there is no room for.
    pub(super) fn send_piece(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, piece: Piece) {
        self.flush(ctx, conn);
        conn.pieces.push_back(piece);
        hand_over(ctx, conn);
    }
}

/// Hands over what is queued, as far as there is room; whether that was all.
fn hand_over(ctx: &mut Context<'_>, conn: &mut Connection) -> bool {
    while let Some(piece) = conn.pieces.front() {
        let (payload, rest) = piece.next();
        let len = payload.len();
        match ctx.net.send(conn.id, payload) {
            Ok(()) => {
                conn.queued += len;
                conn.pieces.pop_front();
                if let Some(rest) = rest {
                    conn.pieces.push_front(rest);
                }
            }
            Err(SendError::Full) => return false,
            // The event that says so is on its way, and what was not handed over is told by what is left.
            Err(SendError::Closed) => return false,
            Err(SendError::TooLong) => conn.pieces.clear(),
        }
    }
    true
}

/// The first line of what came, for the log.
pub(super) fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(bytes.len());
    &bytes[..end.min(LOGGED_MAX)]
}
