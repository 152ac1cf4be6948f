//! The calls of the application and of its file system.

use super::super::autotune::LEAST_BUFFER;
use super::super::config::Config;
use super::super::congestion::{CongestionControl as _, Control};
use super::super::delayed_ack::AckDue;
use super::super::send_queue::Wanted;
use super::super::shortcuts_are_off;
use super::super::state::State;
use super::super::timers::Timer;
use super::{Connection, FileRead};
use alloc::rc::Rc;
use core::time::Duration;
use linerate_nic::Chunk;
use linerate_transport::{
    Bytes, CloseReason, ConnState, FileError, FileRange, MAX_PAYLOAD, Payload, Ready, SendError,
    SocketOptions,
};
use linerate_wire::units::Instant;

/// After so long an application that was refused for want of memory shall try again.
const MEMORY_RETRY: Duration = Duration::from_millis(10);

impl Connection {
    /// The first contiguous piece of received data, in place; empty when there is none.
    #[inline]
    pub fn peek(&self) -> &[u8] {
        self.receiving.receiver.peek()
    }

    /// All that can be read, in pieces, in place.
    pub fn received(&self) -> impl Iterator<Item = &[u8]> {
        self.receiving.receiver.pieces()
    }

    /// Releases the first `len` received bytes (at most [`Connection::readable`]).
    #[inline]
    pub fn consume(&mut self, now: Instant, len: usize) {
        let count = self.receiving.receiver.consume(len);
        self.receiving.receiver.read(now, count);
        self.update_peer();
    }

    /// Whether an acknowledgement is to leave now.
    pub(crate) fn owes_ack(&self) -> bool {
        self.receiving.ack.due() == AckDue::Now
    }

    /// Tells the peer of a window that has grown much. A SYN-ACK needs no help by that.
    fn update_peer(&mut self) {
        let may_tell = self.life.state.can_receive() && !self.is_early();
        let is_told = self.receiving.ack.due() == AckDue::Now && !shortcuts_are_off();
        if may_tell && !is_told && self.receiving.receiver.is_update_due() {
            self.receiving.ack.now();
        }
    }

    /// Drops data that waits for data before it: the peer sends it again (RFC 2018 section 8). False if there is none.
    pub fn drop_out_of_order(&mut self) -> bool {
        self.receiving.receiver.drop_waiting()
    }

    /// Nothing came for a while: its window does not count any more, beyond the least.
    pub fn rest(&mut self) {
        self.receiving.receiver.rest();
    }

    /// Bytes received and not consumed.
    pub fn readable(&self) -> usize {
        self.receiving.receiver.readable()
    }

    /// Queues owned payload without copying it; see `Transport::send`.
    ///
    /// # Errors
    ///
    /// No room, the wrong state, or more than 64 KiB of memory.
    pub fn send(&mut self, now: Instant, payload: Payload) -> Result<(), SendError> {
        match payload {
            Payload::Static(bytes) => self.send_chunk(now, Chunk::constant(bytes), 0),
            Payload::Shared(bytes) => {
                let len = bytes.len();
                self.send_chunk(now, Chunk::Shared(bytes), len)
            }
            Payload::File(range) => self.send_file(now, range),
        }
    }

    /// Queues a piece of memory that the budget is charged `cost` bytes for.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`].
    pub fn send_chunk(&mut self, now: Instant, chunk: Chunk, cost: usize) -> Result<(), SendError> {
        self.close_open(now);
        self.check_send(now, chunk.len())?;
        if self.sender.queue.push(chunk, cost).is_err() {
            return Err(self.refuse(now));
        }
        self.note_full();
        self.note_work(now);
        Ok(())
    }

    fn send_file(&mut self, now: Instant, range: FileRange) -> Result<(), SendError> {
        self.close_open(now);
        if !self.may_send() {
            return Err(SendError::Closed);
        }
        if !range.is_possible() || !self.sender.queue.can_count(range.len) {
            return Err(SendError::TooLong);
        }
        if !self.sender.queue.has_room() {
            return Err(self.refuse(now));
        }
        self.sender.queue.push_file(range);
        self.note_work(now);
        Ok(())
    }

    /// Queues a copy of `bytes`, all or nothing, in pages of [`super::super::Resources::pages`]; see
    /// `Transport::write`.
    ///
    /// # Errors
    ///
    /// No room, the wrong state, or more than 64 KiB.
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> Result<(), SendError> {
        self.close_open(now);
        self.check_send(now, bytes.len())?;
        if !bytes.is_empty() && !self.sender.queue.copy(bytes, &self.pages) {
            return Err(self.refuse(now));
        }
        self.note_full();
        self.note_work(now);
        Ok(())
    }

    /// Remembers that the send buffer is full, whether the application has noticed or not: it may only have asked
    /// [`Connection::sendable`], and must hear when there is room.
    pub(super) fn note_full(&mut self) {
        self.sender.write_refused |= self.may_send() && self.is_full();
    }

    fn check_send(&mut self, now: Instant, len: usize) -> Result<(), SendError> {
        if !self.may_send() {
            return Err(SendError::Closed);
        }
        if len > MAX_PAYLOAD {
            return Err(SendError::TooLong);
        }
        if self.is_full() {
            return Err(self.refuse(now));
        }
        Ok(())
    }

    /// Whether nothing more may be queued of a connection that may send.
    fn is_full(&self) -> bool {
        // The shortest buffer has room for so much while memory is not tight.
        let is_short = self.sender.queue.loaded() < LEAST_BUFFER as u64 && self.sender.queue.has_room();
        (!is_short || self.is_tight()) && self.sendable() == 0
    }

    /// Remembers to tell the application when there is room. Where the connection itself has nothing under way that
    /// could make room, memory is short elsewhere: a timer tells.
    fn refuse(&mut self, now: Instant) -> SendError {
        self.sender.write_refused = true;
        let own_fault =
            self.sender.queue.loaded() >= self.send_limit() as u64 || !self.sender.queue.has_room();
        if !own_fault {
            self.timers.set_if_idle(Timer::Memory, now + MEMORY_RETRY);
        }
        SendError::Full
    }

    fn may_send(&self) -> bool {
        (self.life.state.can_send() || self.is_early()) && !self.sender.fin_queued
    }

    /// Bytes of memory payload that may be queued now; zero when full or closed. A send can still be refused when all
    /// connections together have run out of memory; `WRITABLE` comes then too.
    pub fn sendable(&self) -> usize {
        if !self.may_send() || !self.sender.queue.has_room() {
            return 0;
        }
        self.send_limit().saturating_sub(usize::try_from(self.sender.queue.loaded()).unwrap_or(usize::MAX))
    }

    /// Bytes queued and not acknowledged; file ranges count with their whole length.
    pub fn unsent(&self) -> u64 {
        self.sender.queue.len()
    }

    /// The next file range to read, if one is wanted now. It stays the next one until
    /// [`Connection::file_read_started`].
    pub fn next_file_read(&self) -> Option<FileRead> {
        if !self.sender.queue.has_unread() || (!self.life.state.can_transmit() && !self.is_early()) {
            return None;
        }
        let queue = &self.sender.queue;
        let share = self.receiving.receiver.budget().share_to_read(queue.held());
        // Without a share, what all behind it waits for is read all the same, in small pieces.
        let limit = (self.send_limit() as u64).min(queue.loaded() + share as u64);
        let wanted = queue.next_read(limit)?;
        Some(FileRead {
            index: wanted.at,
            file: wanted.range.file,
            offset: wanted.range.offset,
            len: wanted.range.len as usize,
        })
    }

    /// The read was submitted; [`Connection::handle_file_data`] will answer it.
    pub fn file_read_started(&mut self, read: &FileRead) {
        let range = FileRange { file: read.file, offset: read.offset, len: read.len as u64 };
        self.sender.queue.read_started(&Wanted { at: read.index, range });
        self.note_full();
    }

    /// Bytes of a file, in any order of the requests. Fewer than asked for, or an error, resets the connection
    /// ([`CloseReason::File`]).
    pub fn handle_file_data(&mut self, now: Instant, index: u64, data: Result<Bytes, FileError>) {
        self.close_open(now);
        if self.life.reason.is_some() || self.life.state == State::Closed {
            return;
        }
        let taken = data.is_ok_and(|data| self.sender.queue.read_done(index, data).is_ok());
        if taken {
            self.note_work(now);
        } else {
            self.abort(now, CloseReason::File);
        }
    }

    /// Half-close: FIN after everything queued.
    pub fn shutdown(&mut self, now: Instant) {
        match self.life.state {
            State::SynSent => self.end(now, CloseReason::Done),
            State::Closed | State::TimeWait => {}
            _ => {
                self.sender.fin_queued = true;
                // Nobody waits for room any more.
                self.sender.write_refused = false;
            }
        }
    }

    /// The application lets go: queued data and FIN are still delivered, what arrives is acknowledged and discarded (once all is
    /// delivered, a window of it, and then the peer is reset),
    /// bounded by the user timeout and the FIN-WAIT-2 timeout. No readiness is reported any more.
    pub fn close(&mut self, now: Instant) {
        self.life.ready = Ready::NONE;
        self.life.released = true;
        self.receiving.receiver.discard();
        self.shutdown(now);
        if self.life.state == State::FinWait2 {
            self.timers.set_if_idle(Timer::FinWait2, now + self.config.fin_wait_timeout);
        }
        self.update_peer();
    }

    /// As [`Connection::close`], but the peer is not left in the belief that anybody takes what it still sends: data that
    /// comes from now on is answered with a RST (RFC 1122 section 4.2.2.13). The caller looks for data that was not read.
    pub fn close_strictly(&mut self, now: Instant) {
        self.life.is_strict = true;
        self.close(now);
    }

    /// Ends the connection at once with `reason`; a RST is due where the peer knows of the connection (RFC 9293 section
    /// 3.10.5).
    pub fn abort(&mut self, now: Instant, reason: CloseReason) {
        self.life.reset_due = match self.life.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck => true,
            State::Listen | State::SynSent | State::TimeWait | State::Closed => self.life.reset_due,
        };
        match self.life.state {
            State::Closed => {}
            // The peer has sent everything, and what is not read yet can be read still.
            State::TimeWait => self.end(now, CloseReason::Done),
            _ => {
                self.end(now, reason);
                self.receiving.receiver.clear();
            }
        }
    }

    /// The state as applications see it.
    pub fn state(&self) -> ConnState {
        match (self.life.reason, self.life.state) {
            (Some(reason), _) => ConnState::Closed(reason),
            (None, State::SynReceived) if self.is_early() => ConnState::Open { finished: false },
            (None, State::SynSent | State::SynReceived | State::Listen) => ConnState::Connecting,
            (None, _) => ConnState::Open { finished: self.receiving.receiver.is_finished() },
        }
    }

    /// Changes the settings that can change on a live connection: all but an MSS above the negotiated one.
    pub fn set_options(&mut self, now: Instant, options: &SocketOptions) {
        self.set_config(now, Rc::new(Config { socket: options.clone(), ..(*self.config).clone() }));
    }

    /// The settings.
    pub(crate) fn config(&self) -> &Rc<Config> {
        &self.config
    }

    /// The same as [`Connection::set_options`] with settings that others may share, which differ in those of the socket.
    pub(crate) fn set_config(&mut self, now: Instant, config: Rc<Config>) {
        self.close_open(now);
        let old = self.mss();
        let before = core::mem::replace(&mut self.config, config);
        let options = &self.config.socket;
        let receive_buffer_changed = options.receive_buffer != before.socket.receive_buffer;
        let congestion_changed = options.congestion != before.socket.congestion;
        let (receive_buffer, user_timeout) = (options.receive_buffer, options.user_timeout);
        if congestion_changed {
            let segments = self.config.initial_window_segments;
            self.sender.congestion = Control::new(self.config.socket.congestion, self.mss(), segments);
        }
        if receive_buffer_changed {
            self.receiving.receiver.tuner.set(receive_buffer);
        }
        if self.mss() != old {
            self.sender.congestion.on_segment_size(self.mss());
        }
        self.life.keep_alives = 0;
        self.arm_keep_alive(now);
        if self.timers.is_running(Timer::UserTimeout) {
            // Maybe since the handshake, by the old timeout. Checked anew, with the new timeout, when the timer fires.
            self.timers.set(Timer::UserTimeout, now + user_timeout);
        }
        // The send buffer may be smaller now.
        self.note_full();
        self.note_work(now);
    }
}
