//! A session: its control connection, the commands that wait, what it is doing, and its timers.

use super::command::{ParseError, Verb, parse};
use super::data::Channel;
use super::facts::FactSet;
use super::hash::{HashAlgorithm, HashJob};
use super::hub::{JobId, Kind, SessionId, Timer, Turn};
use super::line::{Line, LineReader};
use super::listing::Listing;
use super::open::Opening;
use super::paths::PathJob;
use super::reply::Replies;
use super::transfer::Transfer;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use linerate_transport::{
    ConnId, ConnState, FileError, FileId, FileOp, FileReply, Ready, SendError, VirtualPath,
};
use linerate_wire::units::Instant;

/// Commands carried out in one turn; the rest waits for the next, so that others get theirs.
const COMMANDS_PER_TURN: usize = 32;
/// Bytes of replies gathered before they are written.
const REPLIES_LEN: usize = 8 << 10;

/// Who the client is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Login {
    /// Nobody yet.
    Nobody,
    /// USER came, PASS is due.
    Named(String),
    /// Logged in.
    User {
        /// The name, as given with USER.
        name: String,
        /// Whether it was without a password.
        anonymous: bool,
    },
}

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

/// A listing over the control connection.
pub(super) struct StatusJob {
    pub(super) listing: Listing,
    pub(super) dir: Option<FileId>,
    pub(super) waiting: bool,
}

/// A session. Everything that its commands have set.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) control: ConnId,
    /// The client, its address never an IPv4 one in IPv6 clothes.
    pub(super) peer: SocketAddr,
    /// Our end of the control connection, likewise.
    pub(super) local: SocketAddr,
    reader: LineReader,
    queue: VecDeque<Line>,
    replies: Replies,
    pub(super) login: Login,
    /// Until when a wrong password is not answered.
    pub(super) refusing_until: Option<Instant>,
    /// Wrong passwords so far.
    pub(super) wrong_passwords: u32,
    /// Unknown commands before login so far.
    unknown_commands: u32,
    pub(super) job: Job,
    pub(super) job_id: JobId,
    pub(super) channel: Channel,
    pub(super) cwd: VirtualPath,
    pub(super) rename_from: Option<VirtualPath>,
    /// The name that it uploads to.
    pub(super) uploads_to: Option<VirtualPath>,
    /// The names that the operation under way changes.
    pub(super) changing: [Option<VirtualPath>; 2],
    /// The offset of REST for the next transfer.
    pub(super) restart: u64,
    /// TYPE A.
    pub(super) ascii: bool,
    pub(super) epsv_all: bool,
    pub(super) facts: FactSet,
    pub(super) hash: HashAlgorithm,
    /// The replies are the last ones.
    ending: bool,
    /// The session is over and to be forgotten.
    pub(super) over: bool,
    pub(super) last_active: Instant,
    /// When it began.
    pub(super) begun: Instant,
}

/// The address without an IPv4 address in IPv6 clothes.
pub(super) fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr.ip().to_canonical() {
        ip if ip == addr.ip() => addr,
        ip => SocketAddr::new(ip, addr.port()),
    }
}

impl Session {
    pub(super) fn new(
        turn: &mut Turn<'_, '_>,
        id: SessionId,
        control: ConnId,
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Self {
        let now = turn.now();
        turn.set_timer(id, Timer::Idle, now + turn.hub.config.limits.idle);
        let mut session = Session {
            id,
            control,
            peer,
            local,
            reader: LineReader::new(),
            queue: VecDeque::new(),
            replies: Replies::default(),
            login: Login::Nobody,
            refusing_until: None,
            wrong_passwords: 0,
            unknown_commands: 0,
            job: Job::None,
            job_id: JobId { session: id, number: 0 },
            channel: Channel::None,
            cwd: VirtualPath::root(),
            rename_from: None,
            uploads_to: None,
            changing: [None, None],
            restart: 0,
            ascii: true,
            epsv_all: false,
            facts: FactSet::default(),
            hash: HashAlgorithm::default(),
            ending: false,
            over: false,
            last_active: now,
            begun: now,
        };
        let config = turn.config();
        let mut lines = config.banner.lines().peekable();
        while let Some(line) = lines.next() {
            match lines.peek() {
                Some(_) => session.replies.first(220, line),
                None => session.reply(220, line),
            }
        }
        if config.banner.is_empty() {
            session.reply(220, "Ready");
        }
        session
    }

    // Replies.

    pub(super) fn reply(&mut self, code: u16, text: impl fmt::Display) {
        self.replies.line(code, text);
    }

    /// The replies, for those of several lines.
    pub(super) fn replies(&mut self) -> &mut Replies {
        &mut self.replies
    }

    /// Nothing more will be done after the replies so far.
    pub(super) fn end_after_replies(&mut self) {
        self.ending = true;
    }

    // What the session does.

    /// Numbers the next job, so that answers to earlier ones are known.
    pub(super) fn new_job(&mut self) -> JobId {
        self.job_id = self.job_id.next();
        self.job_id
    }

    /// Something happened that shows the client to be alive.
    pub(super) fn touch(&mut self, now: Instant) {
        self.last_active = now;
    }

    /// The name for the logs.
    pub(super) fn user_name(&self) -> &str {
        match &self.login {
            Login::User { name, .. } => name,
            _ => "-",
        }
    }

    // Events.

    /// Something happened on the control connection.
    pub(super) fn on_control(&mut self, turn: &mut Turn<'_, '_>, ready: Ready) {
        if ready.contains(Ready::CLOSED) {
            return self.end(turn, true);
        }
        self.progress(turn);
    }

    /// A file operation ended.
    pub(super) fn on_file(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) {
        if job != self.job_id {
            return discard(turn, job, result);
        }
        match &mut self.job {
            Job::Path(_) => self.on_path_done(turn, result),
            Job::Open(_) => self.on_opened(turn, result),
            Job::Transfer(_) => self.on_transfer_file(turn, kind, result),
            Job::Status(_) => self.on_status_page(turn, result),
            Job::Hash(_) => self.on_hash_data(turn, kind, result),
            Job::Login(_) => self.on_checked(turn, result),
            Job::None | Job::Refusing => return discard(turn, job, result),
        }
        self.progress(turn);
    }

    /// A timer expired.
    pub(super) fn on_timer(&mut self, turn: &mut Turn<'_, '_>, timer: Timer) {
        match timer {
            Timer::Idle => self.on_idle(turn),
            Timer::Data => self.on_data_timer(turn),
            Timer::Login => self.on_login_timer(turn),
            Timer::Resume => self.pump(turn),
        }
        self.progress(turn);
    }

    fn on_idle(&mut self, turn: &mut Turn<'_, '_>) {
        let idle = turn.hub.config.limits.idle;
        // A transfer has its own deadlines, and while a job runs it is not the client who is idle.
        let since =
            if matches!(self.job, Job::None | Job::Status(_)) { self.last_active } else { turn.now() };
        if since + idle > turn.now() {
            return turn.set_timer(self.id, Timer::Idle, since + idle);
        }
        turn.hub.stats.idle_ends += 1;
        log::debug!(target: "ftp", "{}: idle", self.peer);
        self.reply(421, "Idle for too long, closing the control connection");
        self.ending = true;
    }

    // The loop of commands.

    /// Goes on as far as possible: writes replies, carries out commands that wait, reads new ones.
    pub(super) fn progress(&mut self, turn: &mut Turn<'_, '_>) {
        for _ in 0..COMMANDS_PER_TURN {
            if self.over || !self.make_room(turn) {
                return;
            }
            if self.ending || self.must_drain(turn) {
                return self.end(turn, false);
            }
            self.write_status(turn);
            if self.next_command(turn) {
                continue;
            }
            if !self.flush(turn) {
                return;
            }
            if self.is_abandoned(turn) {
                self.end(turn, false);
            }
            if !matches!(self.job, Job::Status(_)) || self.over {
                return;
            }
            // The listing goes on until the replies cannot be written, or a page must be read.
            if matches!(&self.job, Job::Status(status) if status.waiting) {
                return;
            }
        }
        if self.flush(turn) && !self.over {
            turn.set_timer(self.id, Timer::Resume, turn.ctx.now);
        }
    }

    /// Carries out one command: one that waited, or one that is read now. False when there is none.
    fn next_command(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let line = match &self.job {
            Job::None => self.queue.pop_front(),
            _ => None,
        };
        let Some(line) = line.or_else(|| self.read_line(turn)) else { return false };
        if matches!(self.job, Job::None) {
            self.execute(turn, line);
        } else if !self.execute_urgent(turn, &line) {
            self.queue.push_back(line);
        }
        true
    }

    fn read_line(&mut self, turn: &mut Turn<'_, '_>) -> Option<Line> {
        let limits = &turn.hub.config.limits;
        let max = limits.path_line_len.max(limits.line_len);
        if self.queue.len() >= limits.queued_commands || self.queued_len() >= max {
            return None;
        }
        loop {
            let piece = turn.ctx.net.peek(self.control);
            if piece.is_empty() {
                return None;
            }
            let (taken, line) = self.reader.next(piece, max);
            turn.ctx.net.consume(self.control, taken);
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

    fn execute(&mut self, turn: &mut Turn<'_, '_>, line: Line) {
        self.touch(turn.now());
        let Line::Text(text) = line else {
            turn.hub.stats.overlong_lines += 1;
            return self.reply(500, "Line too long");
        };
        match parse(&text) {
            Ok(command) => self.command(turn, command, text.len()),
            Err(ParseError::NotUtf8) => self.reply(501, "Names must be UTF-8"),
            Err(ParseError::Http) => {
                turn.hub.stats.http_ends += 1;
                log::warn!(target: "ftp", "{}: HTTP on the FTP port", self.peer);
                self.reply(500, "This is an FTP server");
                self.ending = true;
            }
            Err(ParseError::Unknown) => self.unknown(turn),
        }
    }

    fn unknown(&mut self, turn: &mut Turn<'_, '_>) {
        turn.hub.stats.unknown_commands += 1;
        self.reply(500, "Command not understood");
        if !matches!(self.login, Login::User { .. }) {
            self.unknown_commands += 1;
            if self.unknown_commands >= turn.hub.config.limits.unknown_commands {
                turn.hub.stats.unknown_ends += 1;
                self.reply(421, "Too many unknown commands, closing the control connection");
                self.ending = true;
            }
        }
    }

    /// Commands that are carried out at once even while something is under way: ABOR, STAT without a path, and QUIT
    /// insofar as it gives up a data connection that does not come about. True when the line needs no place in the
    /// queue.
    fn execute_urgent(&mut self, turn: &mut Turn<'_, '_>, line: &Line) -> bool {
        if !matches!(self.job, Job::Open(_) | Job::Transfer(_) | Job::Status(_) | Job::Hash(_)) {
            return false;
        }
        let Line::Text(text) = line else { return false };
        let Ok(command) = parse(text) else { return false };
        match command.verb {
            Verb::Abor if command.arg.is_empty() => self.abort_job(turn),
            Verb::Stat if command.arg.is_empty() && !matches!(self.job, Job::Status(_)) => {
                self.stat_server(turn)
            }
            Verb::Quit => {
                self.give_up_waiting(turn);
                return false;
            }
            _ => return false,
        }
        turn.hub.stats.commands += 1;
        true
    }

    fn must_drain(&mut self, turn: &Turn<'_, '_>) -> bool {
        let drain = turn.hub.draining && matches!(self.job, Job::None | Job::Login(_) | Job::Refusing);
        if drain {
            self.reply(421, "The server is going down, closing the control connection");
        }
        drain
    }

    /// Whether the client closed its side and everything that it had asked for was done.
    fn is_abandoned(&self, turn: &mut Turn<'_, '_>) -> bool {
        let finished = match turn.ctx.net.state(self.control) {
            ConnState::Open { finished } => finished,
            ConnState::Closed(_) => true,
            ConnState::Connecting => false,
        };
        finished
            && matches!(self.job, Job::None)
            && self.queue.is_empty()
            && turn.ctx.net.peek(self.control).is_empty()
    }

    // Writing.

    /// Whether there is room for more replies; a client that does not read them gets nothing more done.
    fn make_room(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        if self.ending || self.replies.bytes().len() >= REPLIES_LEN {
            return self.flush(turn);
        }
        true
    }

    /// Writes all replies; false when that is not possible now.
    fn flush(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        while !self.replies.is_empty() {
            let bytes = self.replies.bytes();
            let len = bytes.len().min(turn.ctx.net.sendable(self.control).clamp(1, 65_536));
            match turn.ctx.net.write(self.control, &bytes[..len]) {
                Ok(()) => {
                    self.replies.written(len);
                    self.last_active = turn.ctx.now;
                }
                Err(SendError::Full) if !self.ending => return false,
                Err(_) => {
                    self.end(turn, true);
                    return false;
                }
            }
        }
        true
    }

    /// Ends the session: everything that it holds is released.
    pub(super) fn end(&mut self, turn: &mut Turn<'_, '_>, reset: bool) {
        if self.over {
            return;
        }
        // The last words go out if they can; otherwise nobody reads them.
        let len = self.replies.bytes().len();
        let told = len == 0 || !reset && turn.ctx.net.write(self.control, self.replies.bytes()).is_ok();
        self.over = true;
        self.drop_job(turn);
        self.close_channel(turn);
        turn.hub.conns.remove(&self.control);
        if reset || !told {
            turn.ctx.net.abort(self.control);
        } else {
            turn.ctx.net.close(self.control);
        }
        for timer in Timer::ALL {
            turn.clear_timer(self.id, timer);
        }
        log::debug!(target: "ftp", "{}: session of {} ends", self.peer, self.user_name());
    }
}

#[cfg(test)]
impl Session {
    /// Bytes that the client made the session hold on its control connection.
    pub(super) fn held_len(&self) -> usize {
        self.queued_len() + self.replies.bytes().len() + self.reader.held_len()
    }
}

/// Releases what came of an operation that nobody waits for any more.
pub(super) fn discard(turn: &mut Turn<'_, '_>, job: JobId, result: Result<FileReply, FileError>) {
    if let Ok(FileReply::Opened { file, .. }) = result {
        turn.submit(job, Kind::Close, FileOp::Close { file });
    }
}
