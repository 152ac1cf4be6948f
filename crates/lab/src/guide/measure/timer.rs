//! The time, and what took the core away meanwhile.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

/// What a measurement asks of a machine.
pub trait Timer {
    /// Nanoseconds since some moment.
    fn now_ns(&mut self) -> u64;

    /// Nanoseconds until now in which the thread was ready and did not run, as far as the machine tells.
    fn lost_ns(&mut self) -> u64;
}

/// The clock of this machine and the scheduler's account of this thread.
#[derive(Debug)]
pub struct Machine {
    start: Instant,
    /// The scheduler's account: time run, time waited, slices.
    account: Option<File>,
    /// What the host took from each core.
    stat: Option<File>,
    /// The core that the thread keeps to.
    core: Option<usize>,
}

/// A clock tick of `/proc/stat` in nanoseconds.
const TICK_NS: u64 = 10_000_000;

impl Machine {
    /// For the thread that calls, which keeps to `core`. The account is that thread's, so the value must not leave it.
    pub fn new(core: Option<usize>) -> Machine {
        Machine {
            start: Instant::now(),
            account: File::open("/proc/thread-self/schedstat").ok(),
            stat: File::open("/proc/stat").ok(),
            core,
        }
    }

    /// Whether the machine tells of anything that takes the core away.
    pub fn tells(&self) -> bool {
        self.account.is_some()
    }
}

impl Timer for Machine {
    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn lost_ns(&mut self) -> u64 {
        let mut text = [0; 4096];
        let mut read = |file: &Option<File>| {
            let length = file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
            String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned()
        };
        let waited = waited_ns(&read(&self.account));
        let stolen = self.core.map_or(0, |core| stolen_ticks(&read(&self.stat), core));
        waited.saturating_add(stolen.saturating_mul(TICK_NS))
    }
}

/// The second number of `schedstat`: nanoseconds on the run queue.
fn waited_ns(account: &str) -> u64 {
    account.split_whitespace().nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0)
}

/// The eighth number of a core's line of `/proc/stat`: ticks that the host gave to others.
fn stolen_ticks(stat: &str, core: usize) -> u64 {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split_whitespace().next() == Some(&name));
    line.and_then(|line| line.split_whitespace().nth(8)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_the_core_is_read() {
        assert_eq!(waited_ns("1000 250 7\n"), 250);
        assert_eq!(waited_ns(""), 0);
        let stat = "cpu  1 2 3 4 5 6 7 99 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu10 1 2 3 4 5 6 7 10 0 0\n";
        assert_eq!(stolen_ticks(stat, 0), 8);
        assert_eq!(stolen_ticks(stat, 10), 10);
        assert_eq!(stolen_ticks(stat, 1), 0);
    }
}
