//! The log on standard error.

use crate::args::LogFormat;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;

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
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        eprintln!("linerate: the log cannot start: {error}");
    }
}
