//! Ctrl-C in the middle of an experiment: what it made on the machine goes, and the exit code says so.

use linerate_lab::measure::place;
use linerate_linux::poller::{PollFd, PollFlags, wait};
use linerate_linux::signals::{Signal, Signals};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static ENDING: AtomicBool = AtomicBool::new(false);

/// Listens to SIGINT, SIGTERM and SIGHUP from now on, as far as whoever started this process lets them through (`nohup`).
pub fn watch() {
    let ignored = ignored();
    let Ok(signals) = Signals::catch() else { return };
    // Without a thread of its own the signals would be lost; there is always one to be had.
    thread::spawn(move || listen(signals, ignored));
}

/// An experiment has ended. If that was because it is interrupted, the thread that cleans up ends the process.
pub fn settle() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

fn listen(mut signals: Signals, ignored: u64) {
    loop {
        if wait(&mut [PollFd::new(&signals, PollFlags::IN)], None).is_err() {
            return;
        }
        while let Some(signal) = signals.take() {
            let number = match signal {
                Signal::Hangup => 1,
                Signal::Interrupt => 2,
                Signal::Terminate => 15,
                // It is not asked for here.
                Signal::User => continue,
            };
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            ENDING.store(true, Ordering::SeqCst);
            place::end();
            eprintln!("\nlinerate: interrupted");
            // As shells tell of a signal.
            std::process::exit(128 + number);
        }
    }
}

/// The signals that this process was told to ignore, a bit for each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
