//! What this process costs: processor time and memory.

use crate::clock::nanos;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Processor time of all threads of this process in nanoseconds, in user mode and in the kernel. Of what the kernel
/// does on our behalf, it has what runs in our system calls (a write to a TAP runs the host's whole receive path).
pub fn process_time_ns() -> u64 {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

/// Processor time of the calling thread in nanoseconds, in user mode and in the kernel.
pub fn thread_time_ns() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time of this process in user mode and in the kernel, in nanoseconds, to the clock tick of the system
/// (10 ms as a rule); `None` where there is no /proc.
pub fn user_and_system_time_ns() -> Option<(u64, u64)> {
    let ticks = rustix::param::clock_ticks_per_second();
    parse_stat(&fs::read_to_string("/proc/self/stat").ok()?, ticks)
}

/// Fields 14 and 15 of `stat` (proc_pid_stat(5)). The second field is the program's name in parentheses, which may hold
/// anything, parentheses and spaces too.
fn parse_stat(text: &str, ticks_per_second: u64) -> Option<(u64, u64)> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut time_ns =
        || fields.next()?.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_div(ticks_per_second);
    Some((time_ns()?, time_ns()?))
}

/// Memory of this process that is resident, in bytes; `None` where there is no /proc.
pub fn resident_bytes() -> Option<u64> {
    parse_statm(&fs::read_to_string("/proc/self/statm").ok()?, rustix::param::page_size() as u64)
}

/// The second field of `statm` (proc_pid_statm(5)) counts resident pages.
fn parse_statm(text: &str, page_size: u64) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(page_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_time() {
        let (process, thread) = (process_time_ns(), thread_time_ns());
        let mut sum = 0u64;
        while thread_time_ns() - thread < 1_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_time_ns() - process >= 1_000_000);
    }

    #[test]
    fn memory_that_is_touched_is_resident() {
        let before = resident_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let with = resident_bytes().unwrap();
        assert!(with >= before + (48 << 20), "{before} {with} {}", block.len());
    }

    #[test]
    fn stat_is_read_with_care() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 100 1000 10";
        assert_eq!(parse_stat(text, 100), Some((2_500_000_000, 500_000_000)));
        assert!(user_and_system_time_ns().is_some());
        for bad in ["", "7 (a", "7 (a) S 1", "7 (a) S 1 7 7 0 -1 4 1 0 0 0 x 50"] {
            assert_eq!(parse_stat(bad, 100), None, "{bad:?}");
        }
        assert_eq!(parse_stat(text, 0), None);
    }

    #[test]
    fn statm_is_read_with_care() {
        assert_eq!(parse_statm("2000 100 30 1 0 80 0\n", 4096), Some(409_600));
        for bad in ["", "1", "1 x", "1 18446744073709551615"] {
            assert_eq!(parse_statm(bad, 4096), None, "{bad:?}");
        }
    }
}
