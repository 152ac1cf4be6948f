//! Progress of an experiment on standard error: a bar on a terminal, a line for each step elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;

/// Steps of an experiment, told while it runs. Results go to standard output, so this can be left out by `2>/dev/null`.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    what: &'static str,
    total: u64,
    done: u64,
    as_lines: bool,
}

impl Progress {
    /// Begins `total` steps of `what`.
    pub fn new(what: &'static str, total: u64) -> Progress {
        let as_lines = !std::io::stderr().is_terminal();
        let bar = if as_lines { ProgressBar::hidden() } else { ProgressBar::new(total) };
        let style =
            ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {elapsed}, {eta} left: {wide_msg}");
        // The template is a constant of ours; should it not parse, the default will do.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(what);
        Progress { bar, what, total, done: 0, as_lines }
    }

    /// Tells what is under way.
    pub fn begin(&mut self, step: &str) {
        self.bar.set_message(step.to_owned());
        if self.as_lines {
            eprintln!("{} {}/{}: {step}", self.what, self.done + 1, self.total);
        }
    }

    /// That much is done.
    pub fn done(&mut self, steps: u64) {
        self.done += steps;
        self.bar.inc(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
