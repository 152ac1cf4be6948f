//! The loop of commands of a session, after each event.

use super::command::{ParseError, Verb, parse};
use super::dispatch;
use super::hub::{JobId, Kind, Timer, Turn};
use super::line::Line;
use super::reply::reply;
use super::session::{Job, Session};
use linerate_transport::{ConnId, FileError, FileReply, Ready};

/// Commands carried out in one turn; the rest waits for the next, so that others get theirs.
const COMMANDS_PER_TURN: usize = 32;

/// Something happened on a connection of the session.
pub(super) fn on_conn(s: &mut Session, turn: &mut Turn<'_, '_>, conn: ConnId, ready: Ready) {
    if conn != s.control.conn {
        // First: the end of both connections is no end of a file.
        give_up_upload(s, turn);
        s.on_data(turn, conn, ready);
    } else if ready.contains(Ready::CLOSED) {
        return s.end(turn, true);
    }
    progress(s, turn);
}

/// Somebody connected to the session's passive port.
pub(super) fn on_data_listener(s: &mut Session, turn: &mut Turn<'_, '_>) {
    s.on_data_listener(turn);
    progress(s, turn);
}

/// A file operation ended.
pub(super) fn on_file(
    s: &mut Session,
    turn: &mut Turn<'_, '_>,
    job: JobId,
    kind: Kind,
    result: Result<FileReply, FileError>,
) {
    if s.on_file(turn, job, kind, result) {
        progress(s, turn);
    }
}

/// A timer expired.
pub(super) fn on_timer(s: &mut Session, turn: &mut Turn<'_, '_>, timer: Timer) {
    give_up_upload(s, turn);
    s.on_timer(turn, timer);
    progress(s, turn);
}

/// Goes on as far as possible: writes replies, carries out commands that wait, reads new ones.
pub(super) fn progress(s: &mut Session, turn: &mut Turn<'_, '_>) {
    for _ in 0..COMMANDS_PER_TURN {
        if s.over || !s.make_room(turn) {
            return;
        }
        if s.control.is_ending() || must_drain(s, turn) {
            return s.end(turn, false);
        }
        s.write_status(turn);
        if next_command(s, turn) {
            continue;
        }
        if !s.flush(turn) {
            return;
        }
        if matches!(s.job, Job::None) && s.control.is_abandoned(turn) {
            return s.end(turn, false);
        }
        if give_up_upload(s, turn) {
            continue;
        }
        // A listing goes on until the replies cannot be written, or a page must be read.
        if !matches!(&s.job, Job::Status(status) if !status.waiting) {
            return;
        }
    }
    if s.flush(turn) && !s.over {
        s.resume_later(turn);
    }
}

/// Ends an upload whose client has closed the control connection, as ABOR would (RFC 959 section 4.1.1, QUIT): the process may have been
/// killed, and what has come need not be all. Not so where it has sent QUIT before, as scripts do that are piped to the server: that
/// waits for the upload's end. True if there was one.
fn give_up_upload(s: &mut Session, turn: &mut Turn<'_, '_>) -> bool {
    let is_moving =
        matches!(&s.job, Job::Transfer(transfer) if transfer.is_upload() && !transfer.is_closing());
    let gives_up = is_moving && s.control.is_broken_off(turn);
    if gives_up {
        s.abort_job(turn);
    }
    gives_up
}

/// Carries out one command: one that waited, or one that is read now. False when there is none.
fn next_command(s: &mut Session, turn: &mut Turn<'_, '_>) -> bool {
    let line = match s.job {
        Job::None => s.control.next_deferred(),
        _ => None,
    };
    let Some(line) = line.or_else(|| s.control.read_line(turn)) else { return false };
    if matches!(s.job, Job::None) {
        execute(s, turn, line);
    } else if !execute_urgent(s, turn, &line) {
        s.control.defer(line);
    }
    true
}

fn execute(s: &mut Session, turn: &mut Turn<'_, '_>, line: Line) {
    s.control.touch(turn.now());
    let Line::Text(text) = line else {
        turn.hub.stats.overlong_lines += 1;
        return s.control.reply(reply(500, "Line too long"));
    };
    match parse(&text) {
        Ok(command) => dispatch::command(s, turn, command, text.len()),
        Err(ParseError::NotUtf8) => s.control.reply(reply(501, "Names must be UTF-8")),
        Err(ParseError::Http) => {
            turn.hub.stats.http_ends += 1;
            log::warn!(target: "ftp", "{}: HTTP on the FTP port", s.peer);
            s.control.end_with(reply(500, "This is an FTP server"));
        }
        Err(ParseError::Unknown) => {
            s.control.reply(reply(500, "Command not understood"));
            if s.access.on_unknown_command(turn) {
                let why = "Too many unknown commands, closing the control connection";
                s.control.end_with(reply(421, why));
            }
        }
    }
}

/// Commands that are carried out at once even while something is under way: ABOR, STAT without a path, and QUIT
/// insofar as it gives up a data connection that does not come about. True when the line needs no place in the
/// queue.
fn execute_urgent(s: &mut Session, turn: &mut Turn<'_, '_>, line: &Line) -> bool {
    if !matches!(s.job, Job::Open(_) | Job::Transfer(_) | Job::Status(_) | Job::Hash(_)) {
        return false;
    }
    let Line::Text(text) = line else { return false };
    let Ok(command) = parse(text) else { return false };
    match command.verb {
        Verb::Abor if command.arg.is_empty() => s.abort_job(turn),
        Verb::Stat if command.arg.is_empty() && !matches!(s.job, Job::Status(_)) => {
            let replies = s.status(turn);
            s.control.reply(replies);
        }
        Verb::Quit => {
            s.give_up_waiting(turn);
            return false;
        }
        _ => return false,
    }
    turn.hub.stats.commands += 1;
    true
}

fn must_drain(s: &mut Session, turn: &Turn<'_, '_>) -> bool {
    let drain = turn.hub.draining && matches!(s.job, Job::None | Job::Login(_) | Job::Refusing);
    if drain {
        s.control.reply(reply(421, "The server is going down, closing the control connection"));
    }
    drain
}
