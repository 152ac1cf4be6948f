//! Which command does what, after the checks that all of them share; and the commands that only set or tell something.

use super::command::{Arg, Command, Verb};
use super::facts::FactSet;
use super::hash::HashAlgorithm;
use super::hub::Turn;
use super::reply::{Quoted, shortened};
use super::session::{Job, Login, Session};

impl Session {
    /// Carries out a command. `line_len` is the length of its line.
    pub(super) fn command(&mut self, turn: &mut Turn<'_, '_>, command: Command<'_>, line_len: usize) {
        turn.hub.stats.commands += 1;
        let spec = command.verb.spec();
        if !spec.arg.is_path() && line_len > turn.hub.config.limits.line_len {
            turn.hub.stats.overlong_lines += 1;
            return self.reply(500, "Line too long");
        }
        if spec.login && !matches!(self.login, Login::User { .. }) {
            return self.reply(530, "Log in with USER and PASS");
        }
        let fits = match spec.arg {
            Arg::None => command.arg.is_empty(),
            Arg::Required | Arg::Path => !command.arg.is_empty(),
            Arg::Optional | Arg::OptionalPath => true,
        };
        if !fits {
            return self.reply(501, format_args!("Syntax: {} {}", spec.name, spec.syntax));
        }
        let verb = command.verb.canonical();
        if verb != Verb::Rnto {
            // "This command must be immediately followed by a rename to" (RFC 959 section 4.1.3).
            self.rename_from = None;
        }
        self.dispatch(turn, verb, command.arg);
    }

    fn dispatch(&mut self, turn: &mut Turn<'_, '_>, verb: Verb, arg: &str) {
        match verb {
            Verb::User => self.user(turn, arg),
            Verb::Pass => self.pass(turn, arg),
            Verb::Acct => self.reply(202, "No account is needed"),
            Verb::Rein => self.rein(turn),
            Verb::Host => self.host(arg),
            Verb::Quit => {
                self.reply(221, "Goodbye");
                self.end_after_replies();
            }
            Verb::Port => self.port(turn, arg),
            Verb::Pasv => self.pasv(turn),
            Verb::Eprt => self.eprt(turn, arg),
            Verb::Epsv => self.epsv(turn, arg),
            Verb::Retr => self.retr(turn, arg),
            Verb::Stor => self.stor(turn, arg),
            Verb::Appe => self.appe(turn, arg),
            Verb::Stou => self.stou(turn, arg),
            Verb::List => self.list(turn, arg),
            Verb::Nlst => self.nlst(turn, arg),
            Verb::Mlsd => self.mlsd(turn, arg),
            Verb::Hash => self.hash_file(turn, arg),
            Verb::Abor => self.abort_job(turn),
            Verb::Cwd => self.cwd(turn, arg),
            Verb::Cdup => self.cdup(turn),
            Verb::Pwd => {
                let cwd = self.cwd.clone();
                self.reply(257, format_args!("{} is the working directory", Quoted(cwd.as_str())));
            }
            Verb::Size => self.size(turn, arg),
            Verb::Mdtm => self.mdtm(turn, arg),
            Verb::Mfmt => self.mfmt(turn, arg),
            Verb::Mlst => self.mlst(turn, arg),
            Verb::Mkd => self.mkd(turn, arg),
            Verb::Rmd => self.rmd(turn, arg),
            Verb::Dele => self.dele(turn, arg),
            Verb::Rnfr => self.rnfr(turn, arg),
            Verb::Rnto => self.rnto(turn, arg),
            Verb::Site => self.site(turn, arg),
            Verb::Stat if arg.is_empty() => self.stat_server(turn),
            Verb::Stat => self.stat_path(turn, arg),
            _ => self.parameter(verb, arg),
        }
    }

    /// Commands that need nothing but the session.
    fn parameter(&mut self, verb: Verb, arg: &str) {
        match verb {
            Verb::Type => self.set_type(arg),
            Verb::Mode => self.only_value(verb, arg, "S", &["B", "C", "Z"]),
            Verb::Stru => self.only_value(verb, arg, "F", &["R", "P"]),
            Verb::Rest => self.rest(arg),
            Verb::Opts => self.opts(arg),
            Verb::Feat => self.feat(),
            Verb::Help => self.help(arg),
            Verb::Allo => self.reply(202, "No space need be allocated"),
            Verb::Noop => self.reply(200, "Nothing done"),
            Verb::Syst => self.reply(215, "UNIX Type: L8"),
            Verb::Clnt => self.reply(200, "Noted"),
            Verb::Lang => match arg {
                "" => self.reply(200, "English"),
                _ if arg.eq_ignore_ascii_case("en") || arg.to_ascii_lowercase().starts_with("en-") => {
                    self.reply(200, "English");
                }
                _ => self.reply(504, "English only"),
            },
            Verb::Auth | Verb::Pbsz | Verb::Prot | Verb::Ccc => self.reply(502, "TLS is not available"),
            Verb::Adat | Verb::Conf | Verb::Enc | Verb::Mic => {
                self.reply(502, "No security mechanism is available");
            }
            _ => self.reply(502, format_args!("{verb} is not available")),
        }
    }

    /// MODE and STRU: one value is there, others are known to the RFC but not to us.
    fn only_value(&mut self, verb: Verb, arg: &str, value: &str, known: &[&str]) {
        if arg.eq_ignore_ascii_case(value) {
            self.reply(200, format_args!("{verb} is {value}"));
        } else if known.iter().any(|k| arg.eq_ignore_ascii_case(k)) {
            self.reply(504, format_args!("Only {verb} {value} is available"));
        } else {
            self.reply(501, format_args!("Syntax: {verb} {value}"));
        }
    }

    fn set_type(&mut self, arg: &str) {
        let mut words = arg.split(' ').filter(|word| !word.is_empty());
        let (kind, form) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        if words.next().is_some() {
            self.reply(501, "Syntax: TYPE A [N] | I | L 8");
        } else if is(kind, "A") && (form.is_empty() || is(form, "N")) {
            self.ascii = true;
            self.reply(200, "Type is A: lines end in CR LF");
        } else if is(kind, "I") && form.is_empty() || is(kind, "L") && form == "8" {
            self.ascii = false;
            self.reply(200, "Type is I: bytes as they are");
        } else if is(kind, "A") || is(kind, "E") || is(kind, "L") {
            self.reply(504, "Only TYPE A N, I and L 8 are available");
        } else {
            self.reply(501, "Syntax: TYPE A [N] | I | L 8");
        }
    }

    /// REST (RFC 3659 section 5).
    fn rest(&mut self, arg: &str) {
        // An i64 is what file systems can address.
        match arg.parse::<u64>().ok().filter(|offset| i64::try_from(*offset).is_ok()) {
            Some(offset) if arg.bytes().all(|b| b.is_ascii_digit()) => {
                self.restart = offset;
                self.reply(350, format_args!("The next transfer begins at {offset}"));
            }
            _ => self.reply(501, "Syntax: REST <offset>"),
        }
    }

    /// OPTS (RFC 2389 section 4).
    fn opts(&mut self, arg: &str) {
        let (name, options) = arg.split_once(' ').unwrap_or((arg, ""));
        let options = options.trim_matches(' ');
        match name.to_ascii_uppercase().as_str() {
            "UTF8" | "UTF-8" => match options.to_ascii_uppercase().as_str() {
                "ON" | "NLST" | "" => self.reply(200, "Names are UTF-8"),
                _ => self.reply(501, "Names are always UTF-8"),
            },
            "MLST" => {
                self.facts = FactSet::parse(options);
                let facts = self.facts;
                self.reply(200, format_args!("MLST OPTS {facts}"));
            }
            "HASH" => match (options, HashAlgorithm::by_name(options)) {
                ("", _) => self.reply(200, self.hash.name()),
                (_, Some(algorithm)) => {
                    self.hash = algorithm;
                    self.reply(200, algorithm.name());
                }
                (_, None) => self.reply(501, "Only SHA-256 and CRC32 are available"),
            },
            _ => self.reply(501, format_args!("{} has no options", shortened(name, 16))),
        }
    }

    /// ABOR: whatever is under way ends, and its command is answered before (RFC 959 section 4.1.3).
    pub(super) fn abort_job(&mut self, turn: &mut Turn<'_, '_>) {
        match &mut self.job {
            Job::None | Job::Login(_) | Job::Refusing | Job::Path(_) => {
                self.close_channel(turn);
                self.reply(226, "No transfer is under way");
            }
            Job::Transfer(_) => self.abort_transfer(turn),
            Job::Status(_) => {
                self.drop_job(turn);
                self.reply(213, "Aborted");
                self.reply(226, "Aborted");
            }
            Job::Open(_) | Job::Hash(_) => {
                self.drop_job(turn);
                self.close_channel(turn);
                self.reply(426, "Aborted");
                self.reply(226, "Aborted");
            }
        }
    }
}
