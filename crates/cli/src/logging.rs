//! The log on standard error, gathered and written when the loop has nothing better to do.
//!
//! A line for every request would otherwise cost a system call each: more than the request itself.

use crate::args::LogFormat;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Most bytes gathered before they are written in any case.
const GATHERED: usize = 64 << 10;

static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Starts the log. `verbose` 0 is info, 1 debug, 2 and more trace; the variable `LINERATE_LOG` overrides it by target.
pub fn start(format: LogFormat, verbose: u8) {
    let level = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::builder()
        .with_env_var("LINERATE_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new(level));
    // The crates below speak `log`, which needs no allocator; the subscriber takes both.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(Gathered);
    let started = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        eprintln!("linerate: the log cannot start: {error}");
    }
    // What was said before a panic is the most wanted part of a log.
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Not waiting: the panic may have come while this thread held the buffer.
        if let Ok(mut buffer) = BUFFER.try_lock() {
            write_out(&mut buffer);
        }
        default(info);
    }));
}

/// Writes what was gathered. To be called before sleeping, and before the process ends.
pub fn flush() {
    write_out(&mut lock());
}

fn lock() -> MutexGuard<'static, Vec<u8>> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_out(buffer: &mut Vec<u8>) {
    if !buffer.is_empty() {
        // There is nowhere to say that the log cannot be written.
        let _ = io::stderr().write_all(buffer);
        buffer.clear();
    }
}

struct Gathered;

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = lock();
        buffer.extend_from_slice(bytes);
        if buffer.len() >= GATHERED {
            write_out(&mut buffer);
        }
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
