//! Logging in and out: USER, PASS, REIN and HOST; and what those may do who have.

use super::config::is_anonymous;
use super::hub::Turn;
use super::login::{self, HashError};
use super::reply::{Replies, reply};
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use core::net::SocketAddr;
use linerate_transport::{FileError, FileReply, Work};
use linerate_wire::units::Instant;

/// What checking a password comes to.
const RIGHT: &[u8] = b"right";
const WRONG: &[u8] = b"wrong";
const NO_MEMORY: &[u8] = b"no memory";

/// Who the client is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Login {
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

/// Who the client is, and how often he was wrong.
pub(super) struct Access {
    peer: SocketAddr,
    login: Login,
    /// Until when a wrong password is not answered.
    pub(super) refusing_until: Option<Instant>,
    /// Wrong passwords so far.
    wrong_passwords: u32,
    /// Unknown commands before login so far.
    unknown_commands: u32,
}

/// What comes of a check.
pub(super) enum Checked {
    /// It was right, or there is nobody to check any more.
    Done(Replies),
    /// It could not be made; these are the last words.
    Failed(Replies),
    /// It was wrong, which is said at this time.
    Wrong(Instant),
}

impl Access {
    pub(super) fn new(peer: SocketAddr) -> Self {
        Access { peer, login: Login::Nobody, refusing_until: None, wrong_passwords: 0, unknown_commands: 0 }
    }

    pub(super) fn is_logged_in(&self) -> bool {
        matches!(self.login, Login::User { .. })
    }

    /// The name for the logs.
    pub(super) fn user_name(&self) -> &str {
        match &self.login {
            Login::User { name, .. } => name,
            _ => "-",
        }
    }

    /// Whether the user may upload, change and delete.
    pub(super) fn may_write(&self, turn: &Turn<'_, '_>) -> bool {
        turn.hub.config.writable && matches!(self.login, Login::User { anonymous: false, .. })
    }

    /// The same; replies with `code` when not.
    pub(super) fn check_may_write(&self, turn: &Turn<'_, '_>, code: u16) -> Result<(), Replies> {
        if self.may_write(turn) {
            return Ok(());
        }
        Err(reply(code, "Permission denied: read-only"))
    }

    /// USER. Any name is asked for a password, so that the answer does not tell which exist.
    pub(super) fn user(&mut self, turn: &Turn<'_, '_>, name: &str) -> Replies {
        if name.chars().any(char::is_control) {
            return reply(501, "Control character in the name");
        }
        self.login = Login::Named(String::from(name));
        if is_anonymous(name) && turn.hub.config.anonymous {
            reply(331, "Any password will do, your e-mail address for example")
        } else {
            reply(331, "Password required")
        }
    }

    /// PASS: whether the password is to be checked. Otherwise that is all, with these replies.
    pub(super) fn pass(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), Replies> {
        let Login::Named(name) = &self.login else {
            return Err(reply(503, "USER comes first"));
        };
        if is_anonymous(name) && turn.hub.config.anonymous {
            let name = name.clone();
            return Err(self.log_in(turn, name, true));
        }
        Ok(())
    }

    /// The check of a password.
    pub(super) fn check(&self, turn: &Turn<'_, '_>, password: Vec<u8>) -> Option<Work> {
        let Login::Named(name) = &self.login else { return None };
        let config = turn.config();
        // A name without a password takes as long to refuse as one with a wrong one.
        let exists = config.user(name).is_some();
        let user = config.user(name).or(config.users.first());
        let hash = user.map(|user| user.password_hash.clone());
        Some(Work::new(move || {
            Vec::from(match login::verify(hash.as_deref(), &password) {
                Ok(true) if exists => RIGHT,
                Err(HashError::NoMemory) => NO_MEMORY,
                Ok(_) | Err(_) => WRONG,
            })
        }))
    }

    /// The password was checked.
    pub(super) fn on_checked(
        &mut self,
        turn: &mut Turn<'_, '_>,
        result: Result<FileReply, FileError>,
    ) -> Checked {
        let Login::Named(name) = mem::replace(&mut self.login, Login::Nobody) else {
            return Checked::Done(Replies::default());
        };
        let Ok(FileReply::Data(outcome)) = result else {
            return Checked::Failed(reply(421, "The password cannot be checked now, try later"));
        };
        match outcome.as_ref() {
            RIGHT if turn.hub.config.user(&name).is_some() => {
                let now = turn.now();
                turn.hub.throttle.right(self.peer.ip(), now);
                Checked::Done(self.log_in(turn, name, false))
            }
            NO_MEMORY => Checked::Failed(reply(421, "Not enough memory to check the password, try later")),
            _ => Checked::Wrong(self.refuse(turn, &name)),
        }
    }

    fn log_in(&mut self, turn: &mut Turn<'_, '_>, name: String, anonymous: bool) -> Replies {
        turn.hub.stats.logins += 1;
        log::debug!(target: "ftp", "{}: {name} logs in", self.peer);
        self.login = Login::User { name, anonymous };
        if self.may_write(turn) { reply(230, "Logged in") } else { reply(230, "Logged in, read-only") }
    }

    /// Counts a wrong password; the time at which to say so.
    fn refuse(&mut self, turn: &mut Turn<'_, '_>, name: &str) -> Instant {
        turn.hub.stats.login_failures += 1;
        self.wrong_passwords += 1;
        let (now, delay) = (turn.now(), turn.hub.config.limits.login_delay);
        let at = now + turn.hub.throttle.wrong(self.peer.ip(), now, delay);
        log::warn!(target: "ftp", "{}: wrong password for {name:?}", self.peer);
        self.refusing_until = Some(at);
        if self.has_tried_enough(turn) {
            turn.hub.stats.login_ends += 1;
        }
        at
    }

    /// The time has come to say that the password was wrong.
    pub(super) fn refusal(&mut self) -> Replies {
        self.refusing_until = None;
        reply(530, "Wrong name or password")
    }

    /// Whether so many passwords were wrong that the session ends.
    pub(super) fn has_tried_enough(&self, turn: &Turn<'_, '_>) -> bool {
        self.wrong_passwords >= turn.hub.config.limits.login_tries
    }

    /// Counts an unknown command. True when somebody without a login has sent so many that the session ends.
    pub(super) fn on_unknown_command(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        turn.hub.stats.unknown_commands += 1;
        if self.is_logged_in() {
            return false;
        }
        self.unknown_commands += 1;
        let enough = self.unknown_commands >= turn.hub.config.limits.unknown_commands;
        if enough {
            turn.hub.stats.unknown_ends += 1;
        }
        enough
    }

    /// REIN: as after connecting (RFC 959 section 4.1.1). Wrong passwords stay counted.
    pub(super) fn reset(&mut self) {
        self.login = Login::Nobody;
    }

    /// HOST (RFC 7151): all names lead to the same files.
    pub(super) fn host(&self, name: &str) -> Replies {
        if self.login != Login::Nobody {
            return reply(503, "HOST comes before USER");
        }
        let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let fits = match literal {
            Some(ip) => ip.parse::<core::net::IpAddr>().is_ok(),
            None => name.split('.').all(is_label),
        };
        if fits && name.len() <= 255 {
            reply(220, "Host accepted")
        } else {
            reply(501, "Not the name of a host")
        }
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}
