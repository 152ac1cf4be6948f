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
    /// Begins `total` steps of `what`; 0 where it is not known how many there will be.
    pub fn new(what: &'static str, total: u64) -> Progress {
        let as_lines = !std::io::stderr().is_terminal();
        let bar = match total {
            _ if as_lines => ProgressBar::hidden(),
            0 => ProgressBar::no_length(),
            total => ProgressBar::new(total),
        };
        let style = ProgressStyle::with_template(match total {
            0 => "{prefix} {pos} done, {elapsed}: {wide_msg}",
            _ => "{prefix} [{bar:24}] {pos}/{len} {elapsed}, {eta} left: {wide_msg}",
        });
        // The template is a constant of ours; should it not parse, the default will do.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(what);
        Progress { bar, what, total, done: 0, as_lines }
    }

    /// Tells what is under way.
    pub fn begin(&mut self, step: &str) {
        self.bar.set_message(step.to_owned());
        if self.as_lines {
            match self.total {
                0 => eprintln!("{} {}: {step}", self.what, self.done + 1),
                total => eprintln!("{} {}/{total}: {step}", self.what, self.done + 1),
            }
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
