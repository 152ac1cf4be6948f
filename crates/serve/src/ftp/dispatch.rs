//! Which command does what, after the checks that all of them share.

use super::command::{Arg, Command, Verb};
use super::help;
use super::hub::Turn;
use super::reply::{Replies, reply};
use super::session::Session;

/// Carries out a command. `line_len` is the length of its line.
pub(super) fn command(s: &mut Session, turn: &mut Turn<'_, '_>, command: Command<'_>, line_len: usize) {
    turn.hub.stats.commands += 1;
    let spec = command.verb.spec();
    if !spec.arg.is_path() && line_len > turn.hub.config.limits.line_len {
        turn.hub.stats.overlong_lines += 1;
        return s.control.reply(reply(500, "Line too long"));
    }
    if spec.login && !s.access.is_logged_in() {
        return s.control.reply(reply(530, "Log in with USER and PASS"));
    }
    let fits = match spec.arg {
        Arg::None => command.arg.is_empty(),
        Arg::Required | Arg::Path => !command.arg.is_empty(),
        Arg::Optional | Arg::OptionalPath => true,
    };
    if !fits {
        return s.control.reply(reply(501, format_args!("Syntax: {} {}", spec.name, spec.syntax)));
    }
    let verb = command.verb.canonical();
    if verb != Verb::Rnto {
        // "This command must be immediately followed by a rename to" (RFC 959 section 4.1.3).
        s.settings.rename_from = None;
    }
    dispatch(s, turn, verb, command.arg);
}

fn dispatch(s: &mut Session, turn: &mut Turn<'_, '_>, verb: Verb, arg: &str) {
    match verb {
        Verb::Pass => s.pass(turn, arg),
        Verb::Quit => s.control.end_with(reply(221, "Goodbye")),
        Verb::Abor => s.abort_job(turn),
        Verb::Retr => s.open(turn, |opener, turn| opener.retr(turn, arg)),
        Verb::Stor => s.open(turn, |opener, turn| opener.stor(turn, arg)),
        Verb::Appe => s.open(turn, |opener, turn| opener.appe(turn, arg)),
        Verb::Stou => s.open(turn, |opener, turn| opener.stou(turn, arg)),
        Verb::List => s.open(turn, |opener, turn| opener.list(turn, arg)),
        Verb::Nlst => s.open(turn, |opener, turn| opener.nlst(turn, arg)),
        Verb::Mlsd => s.open(turn, |opener, turn| opener.mlsd(turn, arg)),
        Verb::Stat if !arg.is_empty() => s.open(turn, |opener, turn| opener.stat(turn, arg)),
        Verb::Hash => s.open(turn, |opener, turn| opener.hash(turn, arg)),
        Verb::Cwd => s.path(turn, |paths, turn| paths.cwd(turn, arg)),
        Verb::Cdup => s.path(turn, |paths, turn| paths.cdup(turn)),
        Verb::Size => s.path(turn, |paths, turn| paths.size(turn, arg)),
        Verb::Mdtm => s.path(turn, |paths, turn| paths.mdtm(turn, arg)),
        Verb::Mfmt => s.path(turn, |paths, turn| paths.mfmt(turn, arg)),
        Verb::Mlst => s.path(turn, |paths, turn| paths.mlst(turn, arg)),
        Verb::Mkd => s.path(turn, |paths, turn| paths.mkd(turn, arg)),
        Verb::Rmd => s.path(turn, |paths, turn| paths.rmd(turn, arg)),
        Verb::Dele => s.path(turn, |paths, turn| paths.dele(turn, arg)),
        Verb::Rnfr => s.path(turn, |paths, turn| paths.rnfr(turn, arg)),
        Verb::Rnto => s.path(turn, |paths, turn| paths.rnto(turn, arg)),
        Verb::Site => s.path(turn, |paths, turn| paths.site(turn, arg)),
        _ => {
            let replies = answer(s, turn, verb, arg);
            s.control.reply(replies);
        }
    }
}

/// Commands that only set or tell something.
fn answer(s: &mut Session, turn: &mut Turn<'_, '_>, verb: Verb, arg: &str) -> Replies {
    match verb {
        Verb::User => s.access.user(turn, arg),
        Verb::Acct => reply(202, "No account is needed"),
        Verb::Rein => {
            s.data.reset(turn);
            s.access.reset();
            s.settings.reset();
            reply(220, "Ready for a new user")
        }
        Verb::Host => s.access.host(arg),
        Verb::Port => s.data.port(turn, arg),
        Verb::Pasv => s.data.pasv(turn),
        Verb::Eprt => s.data.eprt(turn, arg),
        Verb::Epsv => s.data.epsv(turn, arg),
        Verb::Pwd => s.settings.at_cwd(257),
        Verb::Stat => s.status(turn),
        Verb::Type => s.settings.set_type(arg),
        Verb::Mode => only_value(verb, arg, "S", &["B", "C", "Z"]),
        Verb::Stru => only_value(verb, arg, "F", &["R", "P"]),
        Verb::Rest => s.settings.rest(arg),
        Verb::Opts => s.settings.opts(arg),
        Verb::Feat => help::feat(&s.settings),
        Verb::Help => help::help(arg),
        Verb::Allo => reply(202, "No space need be allocated"),
        Verb::Noop => reply(200, "Nothing done"),
        Verb::Syst => reply(215, "UNIX Type: L8"),
        Verb::Clnt => reply(200, "Noted"),
        Verb::Lang => match arg {
            "" => reply(200, "English"),
            _ if arg.eq_ignore_ascii_case("en") || arg.to_ascii_lowercase().starts_with("en-") => {
                reply(200, "English")
            }
            _ => reply(504, "English only"),
        },
        Verb::Auth | Verb::Pbsz | Verb::Prot | Verb::Ccc => reply(502, "TLS is not available"),
        Verb::Adat | Verb::Conf | Verb::Enc | Verb::Mic => reply(502, "No security mechanism is available"),
        _ => reply(502, format_args!("{verb} is not available")),
    }
}

/// MODE and STRU: one value is there, others are known to the RFC but not to us.
fn only_value(verb: Verb, arg: &str, value: &str, known: &[&str]) -> Replies {
    if arg.eq_ignore_ascii_case(value) {
        reply(200, format_args!("{verb} is {value}"))
    } else if known.iter().any(|k| arg.eq_ignore_ascii_case(k)) {
        reply(504, format_args!("Only {verb} {value} is available"))
    } else {
        reply(501, format_args!("Syntax: {verb} {value}"))
    }
}
