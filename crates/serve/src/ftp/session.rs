//! A session: its parts, what it is doing, and what comes of that.
//!
//! The parts own what they need and do not know the session: `control`, `access`, `settings`, `data` and `upload`.
//! What the session is doing is a machine of its own (`paths`, `open`, `transfer`, `status`, `hash`), which answers
//! with what comes next and what to reply.

use super::access::{Access, Checked};
use super::control::{Control, Flush};
use super::data::{Channel, Data};
use super::hash::HashJob;
use super::help;
use super::hub::{JobId, Kind, SessionId, Timer, Turn};
use super::open::{self, Next, Opener, Opening};
use super::paths::{self, PathJob, Paths};
use super::reply::{Replies, reply};
use super::settings::Settings;
use super::status::StatusJob;
use super::transfer::{Ended, Transfer};
use super::upload::UploadName;
use crate::admission::Standing;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::net::SocketAddr;
use linerate_transport::{ConnId, FileError, FileOp, FileReply, Ready};
use linerate_wire::units::Instant;

/// What the session is doing; while it does something, commands wait.
pub(super) enum Job {
    /// Nothing: commands are carried out.
    None,
    /// This password is to be checked; `None` while it is.
    Login(Option<Vec<u8>>),
    /// A wrong password will be answered when its time has come.
    Refusing,
    /// An operation on a path.
    Path(PathJob),
    /// A file or directory is being opened.
    Open(Opening),
    /// A transfer over the data connection.
    Transfer(Box<Transfer>),
    /// A listing over the control connection (STAT).
    Status(Box<StatusJob>),
    /// HASH.
    Hash(Box<HashJob>),
}

/// A session.
pub(super) struct Session {
    id: SessionId,
    /// The client, its address never an IPv4 one in IPv6 clothes.
    pub(super) peer: SocketAddr,
    pub(super) control: Control,
    pub(super) access: Access,
    pub(super) settings: Settings,
    pub(super) data: Data,
    upload: UploadName,
    pub(super) job: Job,
    job_id: JobId,
    /// The session is over and to be forgotten.
    pub(super) over: bool,
    /// An upload that it had then, while that is being written.
    pub(super) left: Option<Box<Transfer>>,
    /// When it began.
    begun: Instant,
}

impl Session {
    /// `peer` and `local` are the ends of the control connection.
    pub(super) fn new(
        turn: &mut Turn<'_, '_>,
        id: SessionId,
        conn: ConnId,
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Self {
        let now = turn.now();
        turn.set_timer(id, Timer::Idle, now + turn.hub.config.limits.idle);
        let mut control = Control::new(conn, now);
        let replies = control.replies();
        let config = turn.config();
        let mut lines = config.banner.lines().peekable();
        while let Some(line) = lines.next() {
            match lines.peek() {
                Some(_) => replies.first(220, line),
                None => replies.line(220, line),
            }
        }
        if config.banner.is_empty() {
            replies.line(220, "Ready");
        }
        Session {
            id,
            peer,
            control,
            access: Access::new(peer),
            settings: Settings::new(peer),
            data: Data::new(id, peer, local),
            upload: UploadName::default(),
            job: Job::None,
            job_id: JobId { session: id, number: 0 },
            over: false,
            left: None,
            begun: now,
        }
    }

    /// What it is doing, as far as giving way is concerned, and since when: without a login it waits from its beginning,
    /// whatever it says; with one, from its last command, and goes after those without.
    pub(super) fn standing(&self) -> (Standing, Instant) {
        match self.job {
            Job::None if !self.access.is_logged_in() => (Standing::Waiting, self.begun),
            Job::None => (Standing::Moving, self.control.last_active()),
            _ => (Standing::Busy, self.begun),
        }
    }

    /// STAT without a path.
    pub(super) fn status(&self, turn: &Turn<'_, '_>) -> Replies {
        let transfer = match &self.job {
            Job::Transfer(transfer) => Some(transfer.status(turn, &self.data)),
            _ => None,
        };
        help::status(self.peer, self.access.user_name(), &self.settings, transfer)
    }

    // What the session begins to do.

    /// Numbers the next job, so that answers to earlier ones are known.
    fn next_job(&mut self, job: Job) -> JobId {
        self.job = job;
        self.job_id = self.job_id.next();
        self.job_id
    }

    /// PASS. A password is checked when its turn comes; until then other commands wait.
    pub(super) fn pass(&mut self, turn: &mut Turn<'_, '_>, password: &str) {
        match self.access.pass(turn) {
            Ok(()) => {
                self.next_job(Job::Login(Some(password.as_bytes().into())));
                turn.hub.checks.add(self.peer.ip(), self.id);
            }
            Err(replies) => self.control.reply(replies),
        }
    }

    /// Begins to check the password that waits; false when none does.
    pub(super) fn begin_check(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let Job::Login(password) = &mut self.job else { return false };
        let Some(work) = password.take().and_then(|password| self.access.check(turn, password)) else {
            return false;
        };
        turn.submit(self.job_id, Kind::Check, FileOp::Compute { work });
        true
    }

    /// A command on a path.
    pub(super) fn path(
        &mut self,
        turn: &mut Turn<'_, '_>,
        command: impl FnOnce(&mut Paths<'_>, &mut Turn<'_, '_>) -> paths::Begun,
    ) {
        let mut paths = Paths { settings: &mut self.settings, access: &self.access };
        match command(&mut paths, turn) {
            Ok((job, op)) => {
                let id = self.next_job(Job::Path(job));
                turn.submit(id, Kind::Path, op);
            }
            Err(replies) => self.control.reply(replies),
        }
    }

    /// A command that opens a file or directory, or what comes of that. It has a number of its own even if it opens nothing: a file that
    /// was opened for the one before it, or read, may still come.
    pub(super) fn open(
        &mut self,
        turn: &mut Turn<'_, '_>,
        command: impl FnOnce(&mut Opener<'_>, &mut Turn<'_, '_>) -> open::Begun,
    ) {
        self.job_id = self.job_id.next();
        let mut opener = Opener {
            job: self.job_id,
            settings: &mut self.settings,
            access: &self.access,
            data: &mut self.data,
            upload: &mut self.upload,
        };
        match command(&mut opener, turn) {
            Ok(Next::Open(opening, mode)) => {
                let path = opening.path.clone();
                self.job = Job::Open(opening);
                turn.submit(self.job_id, Kind::Open, FileOp::Open { path, mode });
            }
            Ok(Next::Transfer(transfer, replies)) => {
                self.control.reply(replies);
                self.job = Job::Transfer(transfer);
                self.transfer(turn, Transfer::begin);
            }
            Ok(Next::Status(status, replies)) => {
                self.control.reply(replies);
                self.job = Job::Status(status);
            }
            Ok(Next::Hash(hash)) => self.job = Job::Hash(hash),
            Err(replies) => self.control.reply(replies),
        }
    }

    /// A step of the transfer under way, if there is one.
    fn transfer(
        &mut self,
        turn: &mut Turn<'_, '_>,
        step: impl FnOnce(&mut Transfer, &mut Turn<'_, '_>, &mut Data) -> Option<Ended>,
    ) {
        let Job::Transfer(transfer) = &mut self.job else { return };
        let Some(ended) = step(transfer, turn, &mut self.data) else { return };
        let Job::Transfer(transfer) = mem::replace(&mut self.job, Job::None) else { return };
        self.control.touch(turn.now());
        self.upload.finish(turn);
        let replies = transfer.finish(turn, &self.data, ended, self.peer, self.access.user_name());
        self.control.reply(replies);
    }

    // Events.

    /// Somebody connected to our passive port.
    pub(super) fn on_data_listener(&mut self, turn: &mut Turn<'_, '_>) {
        if self.data.accept(turn) {
            self.transfer(turn, Transfer::established);
        }
    }

    /// Something happened on the data connection.
    pub(super) fn on_data(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, ready: Ready) {
        match self.data.channel {
            Channel::Connecting(c) if c == conn => {
                if ready.contains(Ready::CLOSED) {
                    turn.hub.stats.data_open_failures += 1;
                    self.transfer(turn, Transfer::not_connected);
                } else if ready.contains(Ready::WRITABLE) {
                    self.data.channel = Channel::Open(conn);
                    self.transfer(turn, Transfer::established);
                }
            }
            Channel::Draining(c) if c == conn => self.data.drain(turn),
            Channel::Open(c) if c == conn => {
                self.transfer(turn, |transfer, turn, data| transfer.on_data(turn, data, conn, ready));
            }
            _ => {}
        }
    }

    /// A file operation ended. False when that is of no concern any more.
    pub(super) fn on_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) -> bool {
        if job != self.job_id {
            turn.discard(job, result);
            return false;
        }
        match mem::replace(&mut self.job, Job::None) {
            Job::Path(path) => {
                self.control.touch(turn.now());
                let mut paths = Paths { settings: &mut self.settings, access: &self.access };
                let replies = paths.on_done(turn, path, result);
                self.control.reply(replies);
            }
            Job::Open(opening) => {
                self.control.touch(turn.now());
                self.open(turn, |opener, turn| opener.on_opened(turn, opening, result));
            }
            Job::Transfer(transfer) => {
                self.job = Job::Transfer(transfer);
                self.transfer(turn, |transfer, turn, data| transfer.on_file(turn, data, kind, result));
            }
            Job::Status(mut status) => {
                let page = status.on_page(turn, result);
                self.job = Job::Status(status);
                if let Err(error) = page {
                    self.drop_job(turn);
                    self.control.reply(reply(213, error));
                }
            }
            Job::Hash(hash) => match hash.on_file(turn, kind, result) {
                Ok(hash) => self.job = Job::Hash(hash),
                Err(replies) => {
                    self.control.touch(turn.now());
                    self.control.reply(replies);
                }
            },
            Job::Login(_) => self.on_checked(turn, result),
            idle @ (Job::None | Job::Refusing) => {
                self.job = idle;
                turn.discard(job, result);
                return false;
            }
        }
        true
    }

    fn on_checked(&mut self, turn: &mut Turn<'_, '_>, result: Result<FileReply, FileError>) {
        match self.access.on_checked(turn, result) {
            Checked::Done(replies) => self.control.reply(replies),
            Checked::Failed(replies) => self.control.end_with(replies),
            Checked::Wrong(at) => {
                self.job = Job::Refusing;
                turn.set_timer(self.id, Timer::Login, at);
            }
        }
    }

    /// A timer expired.
    pub(super) fn on_timer(&mut self, turn: &mut Turn<'_, '_>, timer: Timer) {
        match timer {
            Timer::Idle => self.on_idle(turn),
            Timer::Login => self.on_login_timer(turn),
            Timer::Data => match self.data.channel {
                Channel::Draining(_) => self.data.close(turn),
                _ => self.transfer(turn, Transfer::on_timer),
            },
            Timer::Resume => {
                self.data.drain(turn);
                self.transfer(turn, Transfer::resume);
            }
        }
    }

    fn on_idle(&mut self, turn: &mut Turn<'_, '_>) {
        let idle = turn.hub.config.limits.idle;
        // A transfer has its own deadlines, and while a job runs it is not the client who is idle.
        let since = match self.job {
            Job::None | Job::Status(_) => self.control.last_active(),
            _ => turn.now(),
        };
        if since + idle > turn.now() {
            return turn.set_timer(self.id, Timer::Idle, since + idle);
        }
        turn.hub.stats.idle_ends += 1;
        log::debug!(target: "ftp", "{}: idle", self.peer);
        self.control.end_with(reply(421, "Idle for too long, closing the control connection"));
    }

    /// The time has come to say that the password was wrong.
    fn on_login_timer(&mut self, turn: &mut Turn<'_, '_>) {
        if !matches!(self.job, Job::Refusing) {
            return;
        }
        self.job = Job::None;
        self.control.touch(turn.now());
        self.control.reply(self.access.refusal());
        if self.access.has_tried_enough(turn) {
            self.control.end_with(reply(421, "Too many wrong passwords, closing the control connection"));
        }
    }

    /// Adds lines of a listing to the replies.
    pub(super) fn write_status(&mut self, turn: &mut Turn<'_, '_>) {
        if let Job::Status(status) = &mut self.job
            && status.write(turn, self.control.replies())
        {
            self.job = Job::None;
        }
    }

    /// Work is left over for the next turn.
    pub(super) fn resume_later(&self, turn: &mut Turn<'_, '_>) {
        turn.set_timer(self.id, Timer::Resume, turn.ctx.now);
    }

    // The end of a job.

    /// ABOR: whatever is under way ends, and its command is answered before (RFC 959 section 4.1.3).
    pub(super) fn abort_job(&mut self, turn: &mut Turn<'_, '_>) {
        match &self.job {
            Job::None | Job::Login(_) | Job::Refusing | Job::Path(_) => {
                self.data.close(turn);
                self.control.reply(reply(226, "No transfer is under way"));
            }
            // It is ending anyway; its reply comes by itself.
            Job::Transfer(transfer) if transfer.is_closing() => {
                self.control.reply(reply(226, "The transfer has ended"));
            }
            Job::Transfer(_) => self.transfer(turn, Transfer::abort),
            Job::Status(_) => {
                self.drop_job(turn);
                self.control.reply(reply(213, "Aborted"));
                self.control.reply(reply(226, "Aborted"));
            }
            Job::Open(_) | Job::Hash(_) => {
                self.drop_job(turn);
                self.data.close(turn);
                self.control.reply(reply(426, "Aborted"));
                self.control.reply(reply(226, "Aborted"));
            }
        }
    }

    /// QUIT came: if a transfer waits for its data connection, nobody will make it any more.
    pub(super) fn give_up_waiting(&mut self, turn: &mut Turn<'_, '_>) {
        self.transfer(turn, Transfer::not_connected);
    }

    /// Gives up what is under way without a reply; files are closed, and what was received is written.
    fn drop_job(&mut self, turn: &mut Turn<'_, '_>) {
        self.upload.release(turn);
        match mem::replace(&mut self.job, Job::None) {
            Job::None | Job::Login(_) | Job::Refusing | Job::Path(_) | Job::Open(_) => {}
            Job::Hash(hash) => hash.abandon(turn),
            Job::Status(status) => status.abandon(turn),
            Job::Transfer(mut transfer) => {
                let is_written = transfer.abandon(turn, &mut self.data);
                if is_written {
                    transfer.tell(self.peer, self.access.user_name(), turn.now());
                } else {
                    self.left = Some(transfer);
                }
            }
        }
    }

    // The end of the session.

    /// Whether there is room for more replies.
    pub(super) fn make_room(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let flush = self.control.make_room(turn);
        self.flushed(turn, flush)
    }

    /// Writes all replies; false when that is not possible now.
    pub(super) fn flush(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let flush = self.control.flush(turn);
        self.flushed(turn, flush)
    }

    fn flushed(&mut self, turn: &mut Turn<'_, '_>, flush: Flush) -> bool {
        if flush == Flush::Lost {
            self.end(turn, true);
        }
        flush == Flush::Done
    }

    /// Ends the session so that another one can begin.
    pub(super) fn give_way(&mut self, turn: &mut Turn<'_, '_>) {
        log::debug!(target: "ftp", "{}: gives way to a newcomer", self.peer);
        let why = "Too many sessions, and this one waited longest; closing the control connection";
        self.control.reply(reply(421, why));
        self.end(turn, false);
    }

    /// Ends the session: everything that it holds is released.
    pub(super) fn end(&mut self, turn: &mut Turn<'_, '_>, reset: bool) {
        if self.over {
            return;
        }
        // The last words go out if they can; otherwise nobody reads them.
        let reset = reset || !self.control.write_last(turn);
        self.over = true;
        self.drop_job(turn);
        self.data.close(turn);
        self.control.close(turn, reset);
        for timer in Timer::ALL {
            turn.clear_timer(self.id, timer);
        }
        log::debug!(target: "ftp", "{}: session of {} ends", self.peer, self.access.user_name());
    }
}
