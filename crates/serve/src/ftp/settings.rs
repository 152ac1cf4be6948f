//! What the client has set for the commands that follow: working directory, TYPE, REST, RNFR and OPTS.

use super::facts::FactSet;
use super::hash::HashAlgorithm;
use super::hub::Turn;
use super::reply::{Quoted, Replies, reply, shortened};
use core::net::SocketAddr;
use linerate_transport::{PathError, VirtualPath};

/// What the client has set.
pub(super) struct Settings {
    /// For the logs.
    peer: SocketAddr,
    pub(super) cwd: VirtualPath,
    pub(super) rename_from: Option<VirtualPath>,
    /// The offset of REST for the next transfer.
    pub(super) restart: u64,
    /// TYPE A.
    pub(super) ascii: bool,
    pub(super) facts: FactSet,
    pub(super) hash: HashAlgorithm,
}

impl Settings {
    /// Those of a new session.
    pub(super) fn new(peer: SocketAddr) -> Self {
        Settings {
            peer,
            cwd: VirtualPath::root(),
            rename_from: None,
            restart: 0,
            ascii: true,
            facts: FactSet::default(),
            hash: HashAlgorithm::default(),
        }
    }

    /// As in a new session (REIN).
    pub(super) fn reset(&mut self) {
        *self = Settings::new(self.peer);
    }

    /// Resolves a path against the working directory. When it is none, replies with `code` (501 for a path that has
    /// no right form).
    pub(super) fn resolve(
        &self,
        turn: &mut Turn<'_, '_>,
        arg: &str,
        code: u16,
    ) -> Result<VirtualPath, Replies> {
        self.cwd.join(arg).map_err(|error| match error {
            PathError::ControlCharacter => reply(501, "Control character in the path"),
            error => {
                if error == PathError::AboveRoot {
                    turn.hub.stats.above_root += 1;
                    log::warn!(target: "ftp", "{}: path above the root", self.peer);
                }
                reply(code, error)
            }
        })
    }

    /// The same for a path that is to name a file: one with a slash at its end names a directory at best (POSIX.1-2017
    /// section 4.13).
    pub(super) fn resolve_file(
        &self,
        turn: &mut Turn<'_, '_>,
        arg: &str,
        code: u16,
    ) -> Result<VirtualPath, Replies> {
        let path = self.resolve(turn, arg, code)?;
        if names_directory(arg) {
            return Err(reply(code, "Not a file: the name ends like that of a directory"));
        }
        Ok(path)
    }

    /// Tells the working directory, for PWD and after CWD.
    pub(super) fn at_cwd(&self, code: u16) -> Replies {
        reply(code, format_args!("{} is the working directory", Quoted(self.cwd.as_str())))
    }

    /// TYPE (RFC 959 section 3.1.1).
    pub(super) fn set_type(&mut self, arg: &str) -> Replies {
        let mut words = arg.split(' ').filter(|word| !word.is_empty());
        let (kind, form) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        if words.next().is_some() {
            reply(501, "Syntax: TYPE A [N] | I | L 8")
        } else if is(kind, "A") && (form.is_empty() || is(form, "N")) {
            self.ascii = true;
            reply(200, "Type is A: lines end in CR LF")
        } else if is(kind, "I") && form.is_empty() || is(kind, "L") && form == "8" {
            self.ascii = false;
            reply(200, "Type is I: bytes as they are")
        } else if is(kind, "A") || is(kind, "E") || is(kind, "L") {
            reply(504, "Only TYPE A N, I and L 8 are available")
        } else {
            reply(501, "Syntax: TYPE A [N] | I | L 8")
        }
    }

    /// REST (RFC 3659 section 5).
    pub(super) fn rest(&mut self, arg: &str) -> Replies {
        // An i64 is what file systems can address.
        match arg.parse::<u64>().ok().filter(|offset| i64::try_from(*offset).is_ok()) {
            Some(offset) if arg.bytes().all(|b| b.is_ascii_digit()) => {
                self.restart = offset;
                reply(350, format_args!("The next transfer begins at {offset}"))
            }
            _ => reply(501, "Syntax: REST <offset>"),
        }
    }

    /// OPTS (RFC 2389 section 4).
    pub(super) fn opts(&mut self, arg: &str) -> Replies {
        let (name, options) = arg.split_once(' ').unwrap_or((arg, ""));
        let options = options.trim_matches(' ');
        match name.to_ascii_uppercase().as_str() {
            "UTF8" | "UTF-8" => match options.to_ascii_uppercase().as_str() {
                "ON" | "NLST" | "" => reply(200, "Names are UTF-8"),
                _ => reply(501, "Names are always UTF-8"),
            },
            "MLST" => {
                self.facts = FactSet::parse(options);
                reply(200, format_args!("MLST OPTS {}", self.facts))
            }
            "HASH" => match (options, HashAlgorithm::by_name(options)) {
                ("", _) => reply(200, self.hash.name()),
                (_, Some(algorithm)) => {
                    self.hash = algorithm;
                    reply(200, algorithm.name())
                }
                (_, None) => reply(501, "Only SHA-256 and CRC32 are available"),
            },
            _ => reply(501, format_args!("{} has no options", shortened(name, 16))),
        }
    }
}

/// Whether a path is written as that of a directory: with a slash, `.` or `..` at its end.
pub(super) fn names_directory(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("." | "..")) || path.ends_with('/')
}
