//! Logging in and out: USER, PASS, REIN and HOST.

use super::config::is_anonymous;
use super::facts::FactSet;
use super::hash::HashAlgorithm;
use super::hub::{Kind, Timer, Turn};
use super::login::{self, HashError};
use super::session::{Job, Login, Session};
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use linerate_transport::{FileError, FileOp, FileReply, VirtualPath, Work};

/// What checking a password comes to.
const RIGHT: &[u8] = b"right";
const WRONG: &[u8] = b"wrong";
const NO_MEMORY: &[u8] = b"no memory";

impl Session {
    /// Whether the user may upload, change and delete.
    pub(super) fn may_write(&self, turn: &Turn<'_, '_>) -> bool {
        turn.hub.config.writable && matches!(self.login, Login::User { anonymous: false, .. })
    }

    /// USER. Any name is asked for a password, so that the answer does not tell which exist.
    pub(super) fn user(&mut self, turn: &Turn<'_, '_>, name: &str) {
        if name.chars().any(char::is_control) {
            return self.reply(501, "Control character in the name");
        }
        self.login = Login::Named(String::from(name));
        if is_anonymous(name) && turn.hub.config.anonymous {
            self.reply(331, "Any password will do, your e-mail address for example");
        } else {
            self.reply(331, "Password required");
        }
    }

    /// PASS. A password is checked when its turn comes; until then other commands wait.
    pub(super) fn pass(&mut self, turn: &mut Turn<'_, '_>, password: &str) {
        let Login::Named(name) = &self.login else {
            return self.reply(503, "USER comes first");
        };
        if is_anonymous(name) && turn.hub.config.anonymous {
            let name = name.clone();
            return self.log_in(turn, name, true);
        }
        self.new_job();
        self.job = Job::Login(Some(password.as_bytes().into()));
        turn.hub.checks.add(self.peer.ip(), self.id);
    }

    /// Begins to check the password that waits; false when none does.
    pub(super) fn begin_check(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let (Job::Login(password), Login::Named(name)) = (&mut self.job, &self.login) else { return false };
        let Some(password) = password.take() else { return false };
        let config = turn.config();
        // A name without a password takes as long to refuse as one with a wrong one.
        let exists = config.user(name).is_some();
        let user = config.user(name).or(config.users.first());
        let hash = user.map(|user| user.password_hash.clone());
        let work = Work::new(move || {
            Vec::from(match login::verify(hash.as_deref(), &password) {
                Ok(true) if exists => RIGHT,
                Err(HashError::NoMemory) => NO_MEMORY,
                Ok(_) | Err(_) => WRONG,
            })
        });
        turn.submit(self.job_id, Kind::Check, FileOp::Compute { work });
        true
    }

    /// The password was checked.
    pub(super) fn on_checked(&mut self, turn: &mut Turn<'_, '_>, result: Result<FileReply, FileError>) {
        self.job = Job::None;
        let Login::Named(name) = mem::replace(&mut self.login, Login::Nobody) else { return };
        let Ok(FileReply::Data(outcome)) = result else {
            self.reply(421, "The password cannot be checked now, try later");
            return self.end_after_replies();
        };
        match outcome.as_ref() {
            RIGHT if turn.hub.config.user(&name).is_some() => {
                let now = turn.now();
                turn.hub.throttle.right(self.peer.ip(), now);
                self.log_in(turn, name, false);
            }
            NO_MEMORY => {
                self.reply(421, "Not enough memory to check the password, try later");
                self.end_after_replies();
            }
            _ => self.refuse_password(turn, &name),
        }
    }

    fn log_in(&mut self, turn: &mut Turn<'_, '_>, name: String, anonymous: bool) {
        turn.hub.stats.logins += 1;
        log::debug!(target: "ftp", "{}: {name} logs in", self.peer);
        self.login = Login::User { name, anonymous };
        if self.may_write(turn) {
            self.reply(230, "Logged in");
        } else {
            self.reply(230, "Logged in, read-only");
        }
    }

    fn refuse_password(&mut self, turn: &mut Turn<'_, '_>, name: &str) {
        turn.hub.stats.login_failures += 1;
        self.wrong_passwords += 1;
        let (now, delay) = (turn.now(), turn.hub.config.limits.login_delay);
        let at = now + turn.hub.throttle.wrong(self.peer.ip(), now, delay);
        log::warn!(target: "ftp", "{}: wrong password for {name:?}", self.peer);
        self.job = Job::Refusing;
        self.refusing_until = Some(at);
        if self.wrong_passwords >= turn.hub.config.limits.login_tries {
            turn.hub.stats.login_ends += 1;
        }
        turn.set_timer(self.id, Timer::Login, at);
    }

    /// The time has come to say that the password was wrong.
    pub(super) fn on_login_timer(&mut self, turn: &mut Turn<'_, '_>) {
        if !matches!(self.job, Job::Refusing) {
            return;
        }
        self.job = Job::None;
        self.refusing_until = None;
        self.touch(turn.now());
        self.reply(530, "Wrong name or password");
        if self.wrong_passwords >= turn.hub.config.limits.login_tries {
            self.reply(421, "Too many wrong passwords, closing the control connection");
            self.end_after_replies();
        }
    }

    /// REIN: as after connecting (RFC 959 section 4.1.1). Wrong passwords stay counted.
    pub(super) fn rein(&mut self, turn: &mut Turn<'_, '_>) {
        self.close_channel(turn);
        self.login = Login::Nobody;
        self.cwd = VirtualPath::root();
        self.restart = 0;
        self.ascii = true;
        self.epsv_all = false;
        self.facts = FactSet::default();
        self.hash = HashAlgorithm::default();
        self.reply(220, "Ready for a new user");
    }

    /// HOST (RFC 7151): all names lead to the same files.
    pub(super) fn host(&mut self, name: &str) {
        if self.login != Login::Nobody {
            return self.reply(503, "HOST comes before USER");
        }
        let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let fits = match literal {
            Some(ip) => ip.parse::<core::net::IpAddr>().is_ok(),
            None => name.split('.').all(is_label),
        };
        if fits && name.len() <= 255 {
            self.reply(220, "Host accepted");
        } else {
            self.reply(501, "Not the name of a host");
        }
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}
