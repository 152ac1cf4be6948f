//! The control connection: lines that come, commands that wait, replies that go.

use super::command::{Verb, parse};
use super::config::Limits;
use super::hub::Turn;
use super::line::{Line, LineReader};
use super::reply::Replies;
use alloc::collections::VecDeque;
use linerate_transport::{ConnId, ConnState, SendError};
use linerate_wire::units::Instant;

/// Bytes of replies gathered before they are written.
const REPLIES_LEN: usize = 8 << 10;

/// A session's control connection.
pub(super) struct Control {
    pub(super) conn: ConnId,
    reader: LineReader,
    queue: VecDeque<Line>,
    replies: Replies,
    /// The replies are the last ones.
    ending: bool,
    last_active: Instant,
}

/// What comes of writing the replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flush {
    /// All are written.
    Done,
    /// The client must read first.
    Full,
    /// They will never be.
    Lost,
}

impl Control {
    pub(super) fn new(conn: ConnId, now: Instant) -> Self {
        Control {
            conn,
            reader: LineReader::new(),
            queue: VecDeque::new(),
            replies: Replies::default(),
            ending: false,
            last_active: now,
        }
    }

    pub(super) fn reply(&mut self, replies: Replies) {
        self.replies.add(replies);
    }

    /// What waits to be written, to add to it.
    pub(super) fn replies(&mut self) -> &mut Replies {
        &mut self.replies
    }

    /// Adds the last replies; nothing more will be done after them.
    pub(super) fn end_with(&mut self, replies: Replies) {
        self.reply(replies);
        self.ending = true;
    }

    /// Whether nothing more is to be done after the replies.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Something happened that shows the client to be alive.
    pub(super) fn touch(&mut self, now: Instant) {
        self.last_active = now;
    }

    /// When the client was last known to be alive.
    pub(super) fn last_active(&self) -> Instant {
        self.last_active
    }

    /// Keeps a command for later.
    pub(super) fn defer(&mut self, line: Line) {
        self.queue.push_back(line);
    }

    /// The first command that waits.
    pub(super) fn next_deferred(&mut self) -> Option<Line> {
        self.queue.pop_front()
    }

    /// Reads a command, unless too many wait already.
    pub(super) fn read_line(&mut self, turn: &mut Turn<'_, '_>) -> Option<Line> {
        let limits = &turn.hub.config.limits;
        let max = longest_line(limits);
        if self.queue.len() >= limits.queued_commands || self.queued_len() >= max {
            return None;
        }
        loop {
            let piece = turn.ctx.net.peek(self.conn);
            if piece.is_empty() {
                return None;
            }
            let (taken, line) = self.reader.next(piece, max);
            turn.ctx.net.consume(self.conn, taken);
            self.replies.raw(&self.reader.take_refusals());
            if line.is_some() {
                return line;
            }
        }
    }

    /// Bytes of the commands that wait.
    fn queued_len(&self) -> usize {
        let len = |line: &Line| if let Line::Text(text) = line { text.len() } else { 0 };
        self.queue.iter().map(len).sum()
    }

    /// Whether the client closed its side and no command is left.
    pub(super) fn is_abandoned(&self, turn: &mut Turn<'_, '_>) -> bool {
        self.has_finished(turn) && self.queue.is_empty() && turn.ctx.net.peek(self.conn).is_empty()
    }

    /// Whether the client closed its side without having said QUIT. Other commands that wait tell nothing: a client that is
    /// killed may have sent NOOP to keep the connection.
    pub(super) fn is_broken_off(&self, turn: &mut Turn<'_, '_>) -> bool {
        self.has_finished(turn) && !self.queue.iter().any(is_quit) && !self.finds_quit(turn)
    }

    fn has_finished(&self, turn: &Turn<'_, '_>) -> bool {
        match turn.ctx.net.state(self.conn) {
            ConnState::Open { finished } => finished,
            ConnState::Closed(_) => true,
            ConnState::Connecting => false,
        }
    }

    /// Whether QUIT is among what has come and was not read yet.
    fn finds_quit(&self, turn: &mut Turn<'_, '_>) -> bool {
        let max = longest_line(&turn.hub.config.limits);
        let mut reader = self.reader.clone();
        let mut unread = turn.ctx.net.peek(self.conn);
        while let (taken, Some(line)) = reader.next(unread, max) {
            if is_quit(&line) {
                return true;
            }
            unread = &unread[taken..];
        }
        false
    }

    /// Makes room for more replies; a client that does not read them gets nothing more done.
    pub(super) fn make_room(&mut self, turn: &mut Turn<'_, '_>) -> Flush {
        if self.ending || self.replies.bytes().len() >= REPLIES_LEN {
            return self.flush(turn);
        }
        Flush::Done
    }

    /// Writes all replies.
    pub(super) fn flush(&mut self, turn: &mut Turn<'_, '_>) -> Flush {
        while !self.replies.is_empty() {
            let bytes = self.replies.bytes();
            let len = bytes.len().min(turn.ctx.net.sendable(self.conn).clamp(1, 65_536));
            match turn.ctx.net.write(self.conn, &bytes[..len]) {
                Ok(()) => {
                    self.replies.written(len);
                    self.last_active = turn.ctx.now;
                }
                Err(SendError::Full) if !self.ending => return Flush::Full,
                Err(_) => return Flush::Lost,
            }
        }
        Flush::Done
    }

    /// Writes what still waits, all at once. False when that is not possible: then nobody reads it.
    pub(super) fn write_last(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        self.replies.is_empty() || turn.ctx.net.write(self.conn, self.replies.bytes()).is_ok()
    }

    /// Ends the connection, in order or at once.
    pub(super) fn close(&mut self, turn: &mut Turn<'_, '_>, reset: bool) {
        turn.hub.conns.remove(&self.conn);
        if reset {
            turn.ctx.net.abort(self.conn);
        } else {
            turn.ctx.net.close(self.conn);
        }
    }
}

fn longest_line(limits: &Limits) -> usize {
    limits.path_line_len.max(limits.line_len)
}

fn is_quit(line: &Line) -> bool {
    matches!(line, Line::Text(text) if parse(text).is_ok_and(|command| command.verb == Verb::Quit))
}

#[cfg(test)]
impl Control {
    /// Bytes that the client made the session hold.
    pub(super) fn held_len(&self) -> usize {
        self.queued_len() + self.replies.bytes().len() + self.reader.held_len()
    }
}
