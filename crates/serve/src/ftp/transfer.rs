//! A transfer, from the preliminary reply to the final one.
//!
//! ```text
//!                     data connection          everything queued and
//!   150 ─> Connecting ───────────────> Moving ─────────────────────────> (sending) 226
//!              │ 425                     │      sent with FIN (`Ready::SENT`)
//!              v                         │ FIN received, and the control connection lasts, or a failure
//!            over                        └──────────────> Closing ─────> (receiving) 226
//!                                                         all written and closed
//! ```
//! A failure answers 426 (connection lost, stalled or aborted), 451 or 452 (files). What was received stays on the
//! disk, so that the client may resume.

use super::data::{Begun, Channel, Data};
use super::hub::{JobId, Kind, Timer, Turn};
use super::receive::Receiver;
use super::reply::{Replies, error_code, reply};
use super::send::{Pump, Sender};
use crate::delivered::delivered;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnId, ConnState, FileError, FileReply, Ready, VirtualPath};
use linerate_wire::units::Instant;

/// How long a client that is still sending has to read that its upload failed.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Until the next try when there was no room for the data connection.
const CONNECT_AGAIN: Duration = Duration::from_millis(50);
/// Looks at a transfer's progress within the time that it may stall.
const STALL_LOOKS: u32 = 4;

/// From the end of the data to the end of an upload: so long at most, and one part in so many of the time that it took. A client that was killed
/// closes its control connection some microseconds after this one, or milliseconds on a busy machine, and what came is not the whole file then.
const DOUBT_MAX: Duration = Duration::from_millis(10);
const DOUBT_SHARE: u32 = 64;

/// Which half does the work.
pub(super) enum Body {
    Send(Sender),
    Receive(Receiver),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connecting,
    Moving,
    /// The file is being written and closed; then this outcome is told.
    Closing(Outcome),
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Complete,
    /// The data connection did not come about.
    NotConnected,
    /// ABOR.
    Aborted,
    /// No progress for too long.
    Stalled,
    /// The data connection was lost.
    Lost(CloseReason),
    /// The file could not be read or written.
    File(FileError),
    /// The session ended before.
    SessionOver,
    /// The server ended before.
    CutOff,
}

impl core::fmt::Display for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Outcome::Complete => f.write_str("complete"),
            Outcome::NotConnected => f.write_str("no data connection"),
            Outcome::Aborted => f.write_str("aborted by the client"),
            Outcome::Stalled => f.write_str("no progress for too long"),
            Outcome::Lost(reason) => write!(f, "data connection {reason}"),
            Outcome::File(error) => error.fmt(f),
            Outcome::SessionOver => f.write_str("the session ended"),
            Outcome::CutOff => f.write_str("cut off by the end of the server"),
        }
    }
}

/// A transfer is over, and only has to be told of.
pub(super) struct Ended {
    outcome: Outcome,
    /// Bytes that the client has, of a sending transfer.
    sent: u64,
}

/// A transfer under way.
pub(super) struct Transfer {
    job: JobId,
    verb: &'static str,
    path: VirtualPath,
    ascii: bool,
    phase: Phase,
    body: Body,
    started: Instant,
    /// Progress at the last look, and at how many looks there was none.
    seen: u64,
    quiet: u32,
    /// The client has sent everything, if its control connection lasts until then.
    whole_at: Option<Instant>,
}

impl Transfer {
    pub(super) fn new(job: JobId, verb: &'static str, path: VirtualPath, ascii: bool, body: Body) -> Self {
        let (phase, started) = (Phase::Connecting, Instant::ZERO);
        Transfer { job, verb, path, ascii, phase, body, started, seen: 0, quiet: 0, whole_at: None }
    }

    /// Bytes that the client has, or that we have of him.
    fn bytes(&self, turn: &Turn<'_, '_>, data: &Data) -> u64 {
        match &self.body {
            Body::Send(sender) => {
                let unsent = data.channel.conn().map_or(0, |conn| turn.ctx.net.unsent(conn));
                sender.queued.saturating_sub(unsent)
            }
            Body::Receive(receiver) => receiver.received,
        }
    }

    /// The same at the end: of what a connection still held when it broke, nothing counts.
    fn bytes_at_end(&self, turn: &Turn<'_, '_>, data: &Data, outcome: Outcome) -> u64 {
        match (&self.body, data.channel.conn()) {
            (Body::Send(sender), Some(conn)) if outcome != Outcome::Complete => {
                delivered(turn.ctx.net, conn, sender.queued)
            }
            _ => self.bytes(turn, data),
        }
    }

    /// Whether it is this job.
    pub(super) fn is_of(&self, job: JobId) -> bool {
        self.job == job
    }

    /// For STAT.
    pub(super) fn status(&self, turn: &Turn<'_, '_>, data: &Data) -> String {
        format!("{} {}: {} bytes so far", self.verb, self.path, self.bytes(turn, data))
    }

    /// Whether the client sends.
    pub(super) fn is_upload(&self) -> bool {
        matches!(self.body, Body::Receive(_))
    }

    /// Whether only the file still has to be written and closed.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing(_))
    }

    fn set_timer(&self, turn: &mut Turn<'_, '_>, timer: Timer, at: Instant) {
        turn.set_timer(self.job.session, timer, at);
    }

    // Every step answers with how the transfer ended, if it did.

    /// Sees to the data connection.
    #[must_use]
    pub(super) fn begin(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        let now = turn.now();
        self.started = now;
        self.set_timer(turn, Timer::Data, now + turn.hub.config.limits.data_open);
        self.connect(turn, data)
    }

    #[must_use]
    fn connect(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        match data.connect(turn) {
            Begun::No => return self.end(turn, data, Outcome::NotConnected),
            Begun::NoRoom => self.set_timer(turn, Timer::Resume, turn.now() + CONNECT_AGAIN),
            Begun::Yes => {}
        }
        match data.channel {
            Channel::Open(_) => self.established(turn, data),
            _ => None,
        }
    }

    /// Goes on with what was put off.
    #[must_use]
    pub(super) fn resume(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        match self.phase {
            Phase::Connecting => self.connect(turn, data),
            _ => self.pump(turn, data),
        }
    }

    /// The data connection is there; a transfer that waits for it moves.
    #[must_use]
    pub(super) fn established(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        if self.phase != Phase::Connecting {
            return None;
        }
        self.phase = Phase::Moving;
        self.started = turn.now();
        if let Body::Receive(receiver) = &mut self.body {
            receiver.start(turn, self.job);
        }
        self.set_timer(turn, Timer::Data, turn.now() + turn.hub.config.limits.data_idle / STALL_LOOKS);
        self.pump(turn, data)
    }

    /// The data connection did not come about, or nobody will make it any more.
    #[must_use]
    pub(super) fn not_connected(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        match self.phase {
            Phase::Connecting => self.end(turn, data, Outcome::NotConnected),
            _ => None,
        }
    }

    /// Something happened on the open data connection.
    #[must_use]
    pub(super) fn on_data(
        &mut self,
        turn: &mut Turn<'_, '_>,
        data: &mut Data,
        conn: ConnId,
        ready: Ready,
    ) -> Option<Ended> {
        match self.pump(turn, data) {
            None => self.check_sent(turn, data, conn, ready),
            ended => ended,
        }
    }

    /// Moves what can be moved now.
    #[must_use]
    pub(super) fn pump(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        let Channel::Open(conn) = data.channel else { return None };
        if self.phase != Phase::Moving {
            return None;
        }
        let (pumped, receiving) = match &mut self.body {
            Body::Send(sender) => {
                let pumped = sender.pump(turn, self.job, conn);
                (pumped.map_err(|_| close_reason(turn, conn)), false)
            }
            Body::Receive(receiver) => {
                let pumped = receiver.pump(turn, self.job, conn);
                if let Some(error) = receiver.failed {
                    return self.end(turn, data, Outcome::File(error));
                }
                (pumped, true)
            }
        };
        match pumped {
            Ok(Pump::Again) => self.set_timer(turn, Timer::Resume, turn.now()),
            Ok(Pump::Done) if receiving => return self.received_all(turn, data),
            Ok(_) => {}
            Err(reason) => return self.end(turn, data, lost(reason)),
        }
        None
    }

    /// The client has ended the data; who looks at the control connection ends the transfer where that ends, too.
    fn received_all(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        let now = turn.now();
        let doubt = ((now - self.started) / DOUBT_SHARE).min(DOUBT_MAX);
        let at = *self.whole_at.get_or_insert(now + doubt);
        if now >= at {
            return self.end(turn, data, Outcome::Complete);
        }
        self.set_timer(turn, Timer::Resume, at);
        None
    }

    /// Ends a sending transfer when everything was sent, as the transport sees it ([`Ready::SENT`]), or will never be.
    fn check_sent(
        &mut self,
        turn: &mut Turn<'_, '_>,
        data: &mut Data,
        conn: ConnId,
        ready: Ready,
    ) -> Option<Ended> {
        let (Phase::Moving, Body::Send(sender)) = (self.phase, &self.body) else { return None };
        let sent = sender.shut && turn.ctx.net.unsent(conn) == 0;
        let closed = ready.contains(Ready::CLOSED).then(|| close_reason(turn, conn));
        let outcome = match closed {
            // The range ended before its promised length, whatever was sent.
            Some(CloseReason::File) => lost(CloseReason::File),
            Some(CloseReason::Done) if sent => Outcome::Complete,
            _ if sent && ready.contains(Ready::SENT) => Outcome::Complete,
            Some(reason) => lost(reason),
            None => return None,
        };
        self.end(turn, data, outcome)
    }

    /// A file operation of the transfer ended.
    #[must_use]
    pub(super) fn on_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        data: &mut Data,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) -> Option<Ended> {
        match (&mut self.body, kind) {
            (Body::Send(sender), Kind::Read | Kind::ReadDir) => match result {
                Ok(FileReply::Data(piece)) => {
                    if !sender.on_data(&piece) {
                        return self.end(turn, data, lost(CloseReason::File));
                    }
                }
                Ok(FileReply::Entries(page)) => turn.hub.stats.unfit_names += sender.on_entries(page),
                Ok(_) => {}
                Err(error) => return self.end(turn, data, Outcome::File(error)),
            },
            (Body::Receive(receiver), _) => {
                receiver.on_done(turn, self.job, kind, result.map(|_| ()));
                match (self.phase, receiver.failed) {
                    (Phase::Closing(Outcome::Complete), Some(error)) if kind == Kind::Close => {
                        return Some(Ended { outcome: Outcome::File(error), sent: 0 });
                    }
                    (Phase::Closing(outcome), _) if kind == Kind::Close => {
                        return Some(Ended { outcome, sent: 0 });
                    }
                    (Phase::Moving, Some(error)) => return self.end(turn, data, Outcome::File(error)),
                    _ => {}
                }
            }
            (Body::Send(_), _) => turn.discard(self.job, result),
        }
        data.drain(turn);
        self.pump(turn, data)
    }

    /// The data connection did not come about in time, or it is time to look at the progress.
    #[must_use]
    pub(super) fn on_timer(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        match self.phase {
            Phase::Connecting => {
                turn.hub.stats.data_open_failures += 1;
                return self.end(turn, data, Outcome::NotConnected);
            }
            Phase::Moving => {
                let bytes = self.bytes(turn, data);
                let ours = match &self.body {
                    Body::Send(sender) => sender.awaits_files(),
                    Body::Receive(receiver) => receiver.awaits_files(),
                };
                self.quiet = if bytes != self.seen || ours { 0 } else { self.quiet + 1 };
                self.seen = bytes;
                if self.quiet >= STALL_LOOKS {
                    turn.hub.stats.stalls += 1;
                    return self.end(turn, data, Outcome::Stalled);
                }
                let at = turn.now() + turn.hub.config.limits.data_idle / STALL_LOOKS;
                self.set_timer(turn, Timer::Data, at);
            }
            Phase::Closing(_) => {}
        }
        None
    }

    /// ABOR.
    #[must_use]
    pub(super) fn abort(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> Option<Ended> {
        self.end(turn, data, Outcome::Aborted)
    }

    /// The data part is over: lets the connection go and sees to the file; the transfer has ended when that is done.
    fn end(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data, outcome: Outcome) -> Option<Ended> {
        let sent = self.bytes_at_end(turn, data, outcome);
        turn.clear_timer(self.job.session, Timer::Data);
        turn.clear_timer(self.job.session, Timer::Resume);
        match &mut self.body {
            Body::Receive(receiver) => {
                let closing = receiver.finish(turn, self.job, outcome == Outcome::Complete);
                self.phase = Phase::Closing(outcome);
                match (outcome, data.channel) {
                    (Outcome::File(_), Channel::Open(conn)) => {
                        data.channel = Channel::Draining(conn);
                        data.drain(turn);
                    }
                    _ => release(turn, data, outcome),
                }
                if closing {
                    return None;
                }
            }
            Body::Send(sender) => {
                let file = sender.file.take();
                // The connection first: it may still read the file.
                release(turn, data, outcome);
                turn.close(self.job, file);
            }
        }
        Some(Ended { outcome, sent })
    }

    /// Tells of the end: the log, the counters and the client.
    pub(super) fn finish(
        self,
        turn: &mut Turn<'_, '_>,
        data: &Data,
        ended: Ended,
        peer: SocketAddr,
        user: &str,
    ) -> Replies {
        let Ended { outcome, sent } = ended;
        let now = turn.now();
        if matches!(data.channel, Channel::Draining(_)) {
            self.set_timer(turn, Timer::Data, now + DRAIN_TIME);
        }
        let stats = &mut turn.hub.stats;
        let (bytes, stored, kept) = match &self.body {
            Body::Send(_) => (sent, sent, None),
            Body::Receive(receiver) => (receiver.received, receiver.stored, receiver.kept),
        };
        match &self.body {
            Body::Send(_) => stats.bytes_sent += bytes,
            Body::Receive(_) => stats.bytes_received += bytes,
        }
        match outcome {
            Outcome::Complete => stats.transfers += 1,
            _ => stats.failed_transfers += 1,
        }
        self.log(peer, user, sent, now, outcome);
        let left = Left(kept, stored);
        match outcome {
            Outcome::Complete => reply(226, format_args!("Transfer complete, {bytes} bytes")),
            Outcome::NotConnected => reply(425, "The data connection did not come about"),
            Outcome::Stalled => reply(426, format_args!("No progress for too long, transfer ended{left}")),
            // Nobody reads the last two.
            Outcome::Lost(_) | Outcome::SessionOver | Outcome::CutOff => {
                reply(426, format_args!("Data connection lost{left}"))
            }
            Outcome::File(error) => {
                let code = match error_code(error) {
                    550 => 451,
                    code => code,
                };
                reply(code, format_args!("{error}{left}"))
            }
            Outcome::Aborted => {
                let mut replies = reply(426, format_args!("Transfer aborted{left}"));
                replies.line(226, "Aborted");
                replies
            }
        }
    }

    /// The line in the log. `sent`: bytes that the client has, of a sending transfer.
    fn log(&self, peer: SocketAddr, user: &str, sent: u64, now: Instant, outcome: Outcome) {
        let (direction, bytes) = match &self.body {
            Body::Send(_) => ("sent", sent),
            Body::Receive(receiver) => ("received", receiver.counted()),
        };
        let us = now.saturating_since(self.started).as_micros().max(1);
        let kilobits = u128::from(bytes) * 8_000 / us;
        log::info!(
            target: "ftp::transfer",
            "{peer} {user} {} {} {direction} {bytes} bytes in {}.{:06} s, {}.{:03} Mb/s, type {}, {outcome}",
            self.verb,
            self.path,
            us / 1_000_000,
            us % 1_000_000,
            kilobits / 1_000,
            kilobits % 1_000,
            if self.ascii { 'A' } else { 'I' },
        );
    }

    /// Gives the transfer up without a reply; the file is closed, and what was received is written. False while that goes on: it is
    /// to be told of [when it is done](Transfer::on_written).
    pub(super) fn abandon(&mut self, turn: &mut Turn<'_, '_>, data: &mut Data) -> bool {
        turn.hub.stats.failed_transfers += 1;
        let outcome = if turn.hub.cut_off { Outcome::CutOff } else { Outcome::SessionOver };
        let sent = self.bytes_at_end(turn, data, outcome);
        data.close(turn);
        match &mut self.body {
            Body::Send(sender) => {
                sender.queued = sent;
                turn.close(self.job, sender.file.take());
                self.phase = Phase::Closing(outcome);
                true
            }
            Body::Receive(receiver) => {
                // One that was ending already ends as it was to.
                if receiver.abandon(turn, self.job) || !matches!(self.phase, Phase::Closing(_)) {
                    self.phase = Phase::Closing(outcome);
                }
                !receiver.stores()
            }
        }
    }

    /// An operation on the file of an abandoned upload ended; true when that was the last one.
    pub(super) fn on_written(
        &mut self,
        turn: &mut Turn<'_, '_>,
        kind: Kind,
        result: Result<(), FileError>,
    ) -> bool {
        if let Body::Receive(receiver) = &mut self.body {
            receiver.on_done(turn, self.job, kind, result);
        }
        kind == Kind::Close
    }

    /// Writes the line of an abandoned transfer.
    pub(super) fn tell(&self, peer: SocketAddr, user: &str, now: Instant) {
        let (sent, failed) = match &self.body {
            Body::Send(sender) => (sender.queued, None),
            Body::Receive(receiver) => (0, receiver.failed),
        };
        let outcome = match (failed, self.phase) {
            (Some(error), _) => Outcome::File(error),
            (None, Phase::Closing(outcome)) => outcome,
            (None, _) => Outcome::SessionOver,
        };
        self.log(peer, user, sent, now, outcome);
    }
}

fn release(turn: &mut Turn<'_, '_>, data: &mut Data, outcome: Outcome) {
    match outcome {
        Outcome::Complete => data.finish(turn),
        _ => data.close(turn),
    }
}

/// What an upload that failed leaves, for the reply: whether it has its name, and how many bytes were stored.
struct Left(Option<bool>, u64);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left(Some(true), stored) => write!(f, "; {stored} bytes are kept"),
            Left(Some(false), _) => f.write_str("; the old file stays"),
            Left(None, _) => Ok(()),
        }
    }
}

/// Why the connection is over, or `Reset` where it is not known.
fn close_reason(turn: &Turn<'_, '_>, conn: ConnId) -> CloseReason {
    match turn.ctx.net.state(conn) {
        ConnState::Closed(reason) => reason,
        _ => CloseReason::Reset,
    }
}

fn lost(reason: CloseReason) -> Outcome {
    match reason {
        CloseReason::File => Outcome::File(FileError::Io),
        reason => Outcome::Lost(reason),
    }
}
