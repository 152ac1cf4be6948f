//! A transfer, from the preliminary reply to the final one.
//!
//! ```text
//!                     data connection          everything queued and
//!   150 ─> Connecting ───────────────> Moving ─────────────────────────> (sending) 226
//!              │ 425                     │      acknowledged with FIN
//!              v                         │ FIN received, or a failure
//!            over                        └──────────────> Closing ─────> (receiving) 226
//!                                                         all written and closed
//! ```
//! A failure answers 426 (connection lost, stalled or aborted), 451 or 452 (files). What was received stays on the
//! disk, so that the client may resume.

use super::data::Channel;
use super::hub::{Kind, Timer, Turn};
use super::paths::error_code;
use super::receive::Receiver;
use super::send::{Pump, Sender};
use super::session::{Job, Session};
use crate::Change;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::time::Duration;
use core::{fmt, mem};
use linerate_transport::{CloseReason, ConnId, ConnState, FileError, FileReply, Ready, VirtualPath};
use linerate_wire::units::Instant;

/// How long a client that is still sending has to read that its upload failed.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Looks at a transfer's progress within the time that it may stall.
const STALL_LOOKS: u32 = 4;

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
pub(super) enum Outcome {
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
        }
    }
}

/// A transfer under way.
pub(super) struct Transfer {
    verb: &'static str,
    path: VirtualPath,
    ascii: bool,
    phase: Phase,
    body: Body,
    started: Instant,
    /// Progress at the last look, and at how many looks there was none.
    seen: u64,
    quiet: u32,
}

impl Transfer {
    pub(super) fn new(verb: &'static str, path: VirtualPath, ascii: bool, body: Body) -> Self {
        let phase = Phase::Connecting;
        Transfer { verb, path, ascii, phase, body, started: Instant::ZERO, seen: 0, quiet: 0 }
    }

    /// Bytes that the client has, or that we have of him.
    fn bytes(&self, turn: &Turn<'_, '_>, channel: Channel) -> u64 {
        match &self.body {
            Body::Send(sender) => {
                let unsent = channel.conn().map_or(0, |conn| turn.ctx.net.unsent(conn));
                sender.queued.saturating_sub(unsent)
            }
            Body::Receive(receiver) => receiver.received,
        }
    }

    /// For STAT.
    pub(super) fn status(&self, turn: &Turn<'_, '_>, channel: Channel) -> String {
        format!("{} {}: {} bytes so far", self.verb, self.path, self.bytes(turn, channel))
    }

    fn log(&self, session: &Session, bytes: u64, now: Instant, outcome: Outcome) {
        let direction = if matches!(self.body, Body::Send(_)) { "sent" } else { "received" };
        let us = now.saturating_since(self.started).as_micros().max(1);
        let kilobits = u128::from(bytes) * 8_000 / us;
        log::info!(
            target: "ftp::transfer",
            "{} {} {} {} {direction} {bytes} bytes in {}.{:06} s, {}.{:03} Mb/s, type {}, {outcome}",
            session.peer,
            session.user_name(),
            self.verb,
            self.path,
            us / 1_000_000,
            us % 1_000_000,
            kilobits / 1_000,
            kilobits % 1_000,
            if self.ascii { 'A' } else { 'I' },
        );
    }
}

impl Session {
    /// Sends the preliminary reply and sees to the data connection.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_, '_>, mut transfer: Transfer, text: &str) {
        self.reply(150, text);
        let now = turn.now();
        transfer.started = now;
        self.job = Job::Transfer(Box::new(transfer));
        turn.set_timer(self.id, Timer::Data, now + turn.hub.config.limits.data_open);
        if !self.connect_active(turn) {
            return self.end_transfer(turn, Outcome::NotConnected);
        }
        if matches!(self.channel, Channel::Open(_)) {
            self.data_established(turn);
        }
    }

    /// The data connection is there; if a transfer waits for it, it moves.
    pub(super) fn data_established(&mut self, turn: &mut Turn<'_, '_>) {
        let Job::Transfer(transfer) = &mut self.job else { return };
        if transfer.phase != Phase::Connecting {
            return;
        }
        transfer.phase = Phase::Moving;
        transfer.started = turn.ctx.now;
        if let Body::Receive(receiver) = &mut transfer.body {
            receiver.start(turn, self.job_id);
        }
        turn.set_timer(self.id, Timer::Data, turn.ctx.now + turn.hub.config.limits.data_idle / STALL_LOOKS);
        self.pump(turn);
    }

    /// Something happened on the data connection.
    pub(super) fn on_data(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, ready: Ready) {
        match self.channel {
            Channel::Connecting(c) if c == conn => {
                if ready.contains(Ready::CLOSED) {
                    turn.hub.stats.data_open_failures += 1;
                    self.end_transfer(turn, Outcome::NotConnected);
                } else if ready.contains(Ready::WRITABLE) {
                    self.channel = Channel::Open(conn);
                    self.data_established(turn);
                }
            }
            Channel::Draining(c) if c == conn => self.drain_channel(turn),
            Channel::Open(c) if c == conn => {
                self.pump(turn);
                self.check_sent(turn, conn, ready);
            }
            _ => {}
        }
        self.progress(turn);
    }

    /// Moves what can be moved now.
    pub(super) fn pump(&mut self, turn: &mut Turn<'_, '_>) {
        self.drain_channel(turn);
        let (Job::Transfer(transfer), Channel::Open(conn)) = (&mut self.job, self.channel) else { return };
        if transfer.phase != Phase::Moving {
            return;
        }
        let (pumped, receiving) = match &mut transfer.body {
            Body::Send(sender) => {
                let pumped = sender.pump(turn, self.job_id, conn);
                (pumped.map_err(|_| close_reason(turn, conn)), false)
            }
            Body::Receive(receiver) => (receiver.pump(turn, self.job_id, conn), true),
        };
        match pumped {
            Ok(Pump::Again) => turn.set_timer(self.id, Timer::Resume, turn.ctx.now),
            Ok(Pump::Done) if receiving => self.end_transfer(turn, Outcome::Complete),
            Ok(_) => {}
            Err(reason) => self.end_transfer(turn, lost(reason)),
        }
    }

    /// Ends a sending transfer when everything was acknowledged, or will never be.
    fn check_sent(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, ready: Ready) {
        let Job::Transfer(transfer) = &self.job else { return };
        let (Phase::Moving, Body::Send(sender)) = (transfer.phase, &transfer.body) else { return };
        let acknowledged = sender.shut && turn.ctx.net.unsent(conn) == 0;
        let closed = ready.contains(Ready::CLOSED).then(|| close_reason(turn, conn));
        match closed {
            // The range ended before its promised length, whatever was acknowledged.
            Some(CloseReason::File) => self.end_transfer(turn, lost(CloseReason::File)),
            Some(CloseReason::Done) if acknowledged => self.end_transfer(turn, Outcome::Complete),
            _ if acknowledged && ready.contains(Ready::SENT) => self.end_transfer(turn, Outcome::Complete),
            Some(reason) => self.end_transfer(turn, lost(reason)),
            None => {}
        }
    }

    /// A file operation of the transfer ended.
    pub(super) fn on_transfer_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) {
        let Job::Transfer(transfer) = &mut self.job else { return };
        match (&mut transfer.body, kind) {
            (Body::Send(sender), Kind::Read | Kind::ReadDir) => match result {
                Ok(FileReply::Data(data)) => sender.on_data(&data),
                Ok(FileReply::Entries(page)) => turn.hub.stats.unfit_names += sender.on_entries(page),
                Ok(_) => {}
                Err(error) => return self.end_transfer(turn, Outcome::File(error)),
            },
            (Body::Receive(receiver), _) => {
                receiver.on_done(turn, self.job_id, kind, result.map(|_| ()));
                let failed = receiver.failed;
                match transfer.phase {
                    Phase::Closing(outcome) if kind == Kind::Close => {
                        let outcome = match (outcome, failed) {
                            (Outcome::Complete, Some(error)) => Outcome::File(error),
                            _ => outcome,
                        };
                        return self.finish_transfer(turn, outcome, 0);
                    }
                    Phase::Moving if failed.is_some() => {
                        let error = failed.unwrap_or(FileError::Io);
                        return self.end_transfer(turn, Outcome::File(error));
                    }
                    _ => {}
                }
            }
            (Body::Send(_), _) => {}
        }
        self.pump(turn);
    }

    /// The data connection did not come about in time, or it is time to look at the progress.
    pub(super) fn on_data_timer(&mut self, turn: &mut Turn<'_, '_>) {
        let channel = self.channel;
        if matches!(self.channel, Channel::Draining(_)) {
            return self.close_channel(turn);
        }
        let Job::Transfer(transfer) = &mut self.job else { return };
        match transfer.phase {
            Phase::Connecting => {
                turn.hub.stats.data_open_failures += 1;
                self.end_transfer(turn, Outcome::NotConnected);
            }
            Phase::Moving => {
                let bytes = transfer.bytes(turn, channel);
                let ours = match &transfer.body {
                    Body::Send(sender) => sender.awaits_files(),
                    Body::Receive(receiver) => receiver.awaits_files(),
                };
                transfer.quiet = if bytes != transfer.seen || ours { 0 } else { transfer.quiet + 1 };
                transfer.seen = bytes;
                if transfer.quiet >= STALL_LOOKS {
                    turn.hub.stats.stalls += 1;
                    return self.end_transfer(turn, Outcome::Stalled);
                }
                let at = turn.ctx.now + turn.hub.config.limits.data_idle / STALL_LOOKS;
                turn.set_timer(self.id, Timer::Data, at);
            }
            Phase::Closing(_) => {}
        }
    }

    /// ABOR during a transfer.
    pub(super) fn abort_transfer(&mut self, turn: &mut Turn<'_, '_>) {
        match &self.job {
            // It is ending anyway; its reply comes by itself.
            Job::Transfer(transfer) if matches!(transfer.phase, Phase::Closing(_)) => {
                self.reply(226, "The transfer has ended");
            }
            _ => self.end_transfer(turn, Outcome::Aborted),
        }
    }

    /// QUIT came while a transfer waits for its data connection: nobody will make it any more.
    pub(super) fn give_up_waiting(&mut self, turn: &mut Turn<'_, '_>) {
        if matches!(&self.job, Job::Transfer(transfer) if transfer.phase == Phase::Connecting) {
            self.end_transfer(turn, Outcome::NotConnected);
        }
    }

    /// The data part is over: lets the connection go, sees to the file, and replies when that is done.
    fn end_transfer(&mut self, turn: &mut Turn<'_, '_>, outcome: Outcome) {
        let Job::Transfer(transfer) = &mut self.job else { return };
        let bytes = transfer.bytes(turn, self.channel);
        turn.clear_timer(self.id, Timer::Data);
        turn.clear_timer(self.id, Timer::Resume);
        match &mut transfer.body {
            Body::Receive(receiver) => {
                let closing = receiver.finish(turn, self.job_id, outcome == Outcome::Complete);
                transfer.phase = Phase::Closing(outcome);
                match (outcome, self.channel) {
                    (Outcome::File(_), Channel::Open(conn)) => {
                        self.channel = Channel::Draining(conn);
                        self.drain_channel(turn);
                    }
                    _ => self.release_channel(turn, outcome),
                }
                if !closing {
                    self.finish_transfer(turn, outcome, bytes);
                }
            }
            Body::Send(sender) => {
                let file = sender.file.take();
                // The connection first: it may still read the file.
                self.release_channel(turn, outcome);
                self.close_file(turn, file);
                self.finish_transfer(turn, outcome, bytes);
            }
        }
    }

    fn release_channel(&mut self, turn: &mut Turn<'_, '_>, outcome: Outcome) {
        match outcome {
            Outcome::Complete => self.finish_channel(turn),
            _ => self.close_channel(turn),
        }
    }

    fn finish_transfer(&mut self, turn: &mut Turn<'_, '_>, outcome: Outcome, sent: u64) {
        let Job::Transfer(transfer) = mem::replace(&mut self.job, Job::None) else { return };
        let now = turn.now();
        self.touch(now);
        if matches!(self.channel, Channel::Draining(_)) {
            turn.set_timer(self.id, Timer::Data, now + DRAIN_TIME);
        }
        let (bytes, stored, kept) = match &transfer.body {
            Body::Send(_) => (sent, sent, None),
            Body::Receive(receiver) => (receiver.received, receiver.counted(), receiver.kept),
        };
        if let Some(path) = self.uploads_to.clone() {
            turn.hub.changes.push(Change::Path(path));
        }
        self.release_name(turn);
        let stats = &mut turn.hub.stats;
        match &transfer.body {
            Body::Send(_) => stats.bytes_sent += bytes,
            Body::Receive(_) => stats.bytes_received += bytes,
        }
        match outcome {
            Outcome::Complete => stats.transfers += 1,
            _ => stats.failed_transfers += 1,
        }
        transfer.log(self, stored, now, outcome);
        match outcome {
            Outcome::Complete => self.reply(226, format_args!("Transfer complete, {bytes} bytes")),
            Outcome::NotConnected => self.reply(425, "The data connection did not come about"),
            Outcome::Stalled => {
                self.reply(
                    426,
                    format_args!("No progress for too long, transfer ended{}", Left(kept, stored)),
                );
            }
            Outcome::Lost(_) => self.reply(426, format_args!("Data connection lost{}", Left(kept, stored))),
            Outcome::File(error) => {
                let code = match error_code(error) {
                    550 => 451,
                    code => code,
                };
                self.reply(code, format_args!("{error}{}", Left(kept, stored)));
            }
            Outcome::Aborted => {
                self.reply(426, format_args!("Transfer aborted{}", Left(kept, stored)));
                self.reply(226, "Aborted");
            }
        }
    }

    /// Gives up what is under way without a reply; files are closed, and what was received is written.
    pub(super) fn drop_job(&mut self, turn: &mut Turn<'_, '_>) {
        self.release_name(turn);
        match mem::replace(&mut self.job, Job::None) {
            Job::None | Job::Login(_) | Job::Refusing | Job::Path(_) | Job::Open(_) => {}
            Job::Hash(job) => self.close_file(turn, Some(job.file)),
            Job::Status(job) => self.close_file(turn, job.dir),
            Job::Transfer(transfer) => {
                turn.hub.stats.failed_transfers += 1;
                self.close_channel(turn);
                match transfer.body {
                    Body::Send(sender) => self.close_file(turn, sender.file),
                    Body::Receive(mut receiver) => receiver.abandon(turn, self.job_id),
                }
            }
        }
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
