//! The log on standard error, gathered and written when the loop has nothing better to do.
//!
//! A line for every request would otherwise cost a system call each, and the subscriber's formatter: more than the request
//! itself. Lines of the access log are therefore written by `access`, and may wait a little for others; all lines go
//! through one buffer and leave in their order. Who does not read the log is not waited for.

mod access;

use crate::args::LogFormat;
use crate::outlet::Outlet;
use crate::output;
use crate::settings::SettingsError;
use linerate_linux::clock::wall_clock_ns;
use linerate_linux::unread::write_without_waiting;
use linerate_serve::http::access_log;
use linerate_wire::units::Instant;
use log::{Level, Log, Metadata, Record};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing_log::{AsLog as _, LogTracer};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

/// The environment variable that sets levels.
const VARIABLE: &str = "LINERATE_LOG";
/// Most bytes gathered before they are written in any case.
const GATHERED: usize = 64 << 10;
/// How long lines of the access log wait for others at most, while a server sleeps between requests.
const PATIENCE: Duration = Duration::from_millis(20);

/// How soon it is tried again to write to somebody who does not read.
const RETRY: Duration = Duration::from_millis(100);
/// How long somebody who does not read is waited for at the end.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

static BUFFER: Mutex<Buffer> = Mutex::new(Buffer::new(|bytes| write_without_waiting(io::stderr(), bytes)));

thread_local! {
    static WRITER: RefCell<access::Writer> = const { RefCell::new(access::Writer::new()) };
}

/// What was logged and not written.
struct Buffer {
    outlet: Outlet,
    /// Not all of it is of the access log.
    is_urgent: bool,
    /// When the rest is to be written.
    due: Option<Instant>,
    /// Nobody reads it at the moment.
    is_blocked: bool,
}

/// Starts the log. `verbose` 0 is info, 1 debug, 2 and more trace; the variable `LINERATE_LOG` overrides it by target.
///
/// # Errors
/// When the variable is none of these levels.
pub fn start(format: LogFormat, verbose: u8) -> Result<(), SettingsError> {
    start_at(
        format,
        match verbose {
            0 => "info",
            1 => "debug",
            _ => "trace",
        },
    )
}

/// Starts the log at this level.
///
/// # Errors
/// As [`start`].
pub fn start_at(format: LogFormat, level: &str) -> Result<(), SettingsError> {
    let variable = std::env::var_os(VARIABLE);
    let filter = filter(variable.as_deref().map(OsStr::to_string_lossy).as_deref(), level)?;
    start_with(format, filter);
    Ok(())
}

fn start_with(format: LogFormat, filter: Targets) {
    let colours = format == LogFormat::Text && io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(Gathered);
    let started = match format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(builder.with_ansi(colours).finish().with(filter))
        }
        LogFormat::Json => tracing::subscriber::set_global_default(builder.json().finish().with(filter)),
    };
    if let Err(error) = started {
        eprintln!("linerate: the log cannot start: {error}");
    }
    // The crates below speak `log`, which needs no allocator; the subscriber takes both.
    let rest = LogTracer::new();
    let metadata = Metadata::builder().level(Level::Info).target(access_log::TARGET).build();
    let form = access::Form { format, colours };
    let access = rest.enabled(&metadata).then_some(form);
    let json = (format == LogFormat::Json).then_some(form);
    match log::set_boxed_logger(Box::new(Logger { access, json, rest })) {
        Ok(()) => log::set_max_level(LevelFilter::current().as_log()),
        Err(error) => eprintln!("linerate: the log cannot start: {error}"),
    }
    // What was said before a panic is the most wanted part of a log.
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Not waiting: the panic may have come while this thread held the buffer.
        if let Ok(mut buffer) = BUFFER.try_lock() {
            buffer.write_out();
        }
        default(info);
    }));
}

/// What is logged: by the variable, as `info,linerate_stack=debug`, or at this level where it is not there or says nothing.
fn filter(variable: Option<&str>, level: &str) -> Result<Targets, SettingsError> {
    let text = variable.filter(|text| !text.trim().is_empty()).unwrap_or(level);
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    // The parser would take a word alone for a target, of which all is logged, and nothing of the others: `inof` as silence.
    let is_known = |part: &&str| {
        let (target, level) = part.rsplit_once('=').unwrap_or(("target", part));
        !target.is_empty() && !level.is_empty() && level.parse::<LevelFilter>().is_ok()
    };
    let targets = parts.join(",").parse().ok().filter(|_| parts.iter().all(is_known));
    targets.ok_or_else(|| {
        SettingsError::Together(format!(
            "invalid value '{text}' for the environment variable {VARIABLE}: expected off, error, warn, info, debug or \
             trace, and target=LEVEL, separated by commas, as in warn,http::access=info"
        ))
    })
}

/// Writes what was gathered, and what was printed. To be called before the process ends.
pub fn flush() {
    lock().outlet.finish(LAST_PATIENCE);
    output::finish(LAST_PATIENCE);
}

/// Writes a line behind all others, in no form of the log.
pub fn last_words(line: &str) {
    let mut buffer = lock();
    buffer.outlet.append(format!("{line}\n").as_bytes());
    buffer.outlet.finish(LAST_PATIENCE);
}

/// Writes what was gathered, unless it can wait; returns until when. To be called before sleeping, and now and then.
pub fn settle(now: Instant) -> Option<Instant> {
    let (until, dropped) = {
        let mut buffer = lock();
        (buffer.settle(now), buffer.outlet.take_dropped())
    };
    let dropped = [(dropped, "the log"), (output::settle(), "standard output")];
    for (count, what) in dropped.iter().filter(|(count, _)| *count > 0) {
        log::warn!("{count} lines of {what} were dropped, as nobody read it");
    }
    // That is to be written, too.
    if dropped.iter().any(|(count, _)| *count > 0) { lock().settle(now) } else { until }
}

fn lock() -> MutexGuard<'static, Buffer> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    const fn new(write: fn(&[u8]) -> usize) -> Buffer {
        Buffer { outlet: Outlet::new(write), is_urgent: false, due: None, is_blocked: false }
    }

    fn append(&mut self, bytes: &[u8], is_urgent: bool) {
        self.outlet.append(bytes);
        self.is_urgent |= is_urgent;
        if self.outlet.len() >= GATHERED && !self.is_blocked {
            self.write_out();
        }
    }

    fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.outlet.len() == 0 {
            return None;
        }
        let due = *self.due.get_or_insert(now + if self.is_blocked { RETRY } else { PATIENCE });
        if self.is_urgent && !self.is_blocked || due <= now {
            self.write_out();
            self.due = self.is_blocked.then(|| now + RETRY);
            return self.due;
        }
        Some(due)
    }

    fn write_out(&mut self) {
        self.is_blocked = !self.outlet.write_out();
        (self.is_urgent, self.due) = (false, None);
    }
}

/// Takes lines of the access log apart from the rest, and all lines in JSON: what the subscriber makes of them has fields of the bridge from `log`
/// beside the message.
struct Logger {
    /// The form of the access log's lines; `None` while they are not wanted.
    access: Option<access::Form>,
    /// The form of all lines, where that is JSON.
    json: Option<access::Form>,
    rest: LogTracer,
}

fn is_access(metadata: &Metadata<'_>) -> bool {
    metadata.level() == Level::Info && metadata.target() == access_log::TARGET
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if is_access(metadata) { self.access.is_some() } else { self.rest.enabled(metadata) }
    }

    fn log(&self, record: &Record<'_>) {
        let is_access = is_access(record.metadata());
        if !self.enabled(record.metadata()) {
            return;
        }
        let Some(form) = (if is_access { self.access } else { self.json }) else {
            return self.rest.log(record);
        };
        let wall = Duration::from_nanos(wall_clock_ns());
        // The buffer, which other threads may wait for, is only held for a copy.
        WRITER.with(|writer| match writer.try_borrow_mut() {
            Ok(mut writer) => {
                let line = writer.line(form, record, wall);
                lock().append(line, !is_access);
            }
            // Something that is logged logs itself.
            Err(_) => self.rest.log(record),
        });
    }

    fn flush(&self) {
        flush();
    }
}

struct Gathered;

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock().append(bytes, true);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Gathered {
    type Writer = Gathered;

    fn make_writer(&self) -> Gathered {
        Gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_sets_levels_by_target() {
        let enabled = |variable, target| {
            let filter = filter(variable, "info").unwrap();
            [tracing::Level::WARN, tracing::Level::INFO, tracing::Level::DEBUG]
                .map(|level| filter.would_enable(target, &level))
        };
        assert_eq!(enabled(None, "linerate_stack::tcp"), [true, true, false]);
        for (variable, server, access) in [
            ("warn,http::access=info", [true, false, false], [true, true, false]),
            ("linerate_stack=debug,warn", [true, true, true], [true, false, false]),
            ("off", [false; 3], [false; 3]),
            // What says nothing changes nothing.
            ("", [true, true, false], [true, true, false]),
            (" ", [true, true, false], [true, true, false]),
            ("warn, http::access=info", [true, false, false], [true, true, false]),
        ] {
            assert_eq!(enabled(Some(variable), "linerate_stack::tcp"), server, "{variable:?}");
            assert_eq!(enabled(Some(variable), "http::access"), access, "{variable:?}");
        }
    }

    #[test]
    fn a_mistake_in_the_variable_is_told() {
        for text in ["inof", "http=loud", "warn,http=loud", "http", "warn,", "=info", "http=", "info debug"] {
            let told = filter(Some(text), "info").unwrap_err().to_string();
            let start =
                format!("invalid value '{text}' for the environment variable LINERATE_LOG: expected off, ");
            assert!(told.starts_with(&start), "{told}");
        }
    }

    #[test]
    fn only_the_access_log_waits_and_not_for_long() {
        let (mut buffer, now) = (Buffer::new(<[u8]>::len), Instant::from_millis(5));
        assert_eq!(buffer.settle(now), None);
        buffer.append(b"a request\n", false);
        assert_eq!(buffer.settle(now), Some(now + PATIENCE));
        // What comes later does not put it off.
        buffer.append(b"another\n", false);
        assert_eq!(buffer.settle(now + PATIENCE / 2), Some(now + PATIENCE));
        assert_eq!(buffer.outlet.len(), b"a request\nanother\n".len());
        assert_eq!(buffer.settle(now + PATIENCE), None);
        assert_eq!(buffer.outlet.len(), 0);
        // Another line takes along what waits, in its order.
        buffer.append(b"a request\n", false);
        buffer.append(b"a warning\n", true);
        buffer.append(b"another\n", false);
        assert_eq!(buffer.settle(now), None);
        assert_eq!(buffer.outlet.len(), 0);
        buffer.append(b"a request\n", false);
        assert_eq!(buffer.settle(now), Some(now + PATIENCE));
    }

    #[test]
    fn the_buffer_is_bounded() {
        let mut buffer = Buffer::new(|bytes| {
            assert_eq!(bytes.len(), GATHERED);
            GATHERED
        });
        buffer.append(&[b'\n'; GATHERED - 1], false);
        assert_eq!(buffer.outlet.len(), GATHERED - 1);
        buffer.append(b"\n", false);
        assert_eq!(buffer.outlet.len(), 0);
    }

    #[test]
    fn who_does_not_read_is_asked_again_now_and_then() {
        let (mut buffer, now) = (Buffer::new(|_| 0), Instant::from_millis(5));
        buffer.append(b"a warning\n", true);
        assert_eq!(buffer.settle(now), Some(now + RETRY));
        // Neither an urgent line nor many of them ask earlier.
        buffer.append(&[b'\n'; GATHERED], true);
        assert_eq!(buffer.settle(now + RETRY / 2), Some(now + RETRY));
        assert_eq!(buffer.settle(now + RETRY), Some(now + 2 * RETRY));
        let waiting = buffer.outlet.len();
        buffer.outlet = Outlet::new(<[u8]>::len);
        buffer.append(b"another\n", false);
        assert!(waiting > GATHERED);
        assert_eq!(buffer.settle(now + 2 * RETRY), None);
        assert_eq!(buffer.settle(now + 3 * RETRY), None);
    }
}
