//! The cores that this process may use, and threads that keep to one of them.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that the calling thread may run on, by number.
pub fn allowed() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).collect(),
    }
}

/// Keeps the calling thread on one core.
///
/// # Errors
/// When the system refuses: no such core, or no right to it.
pub fn keep_to(core: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(format!("core {core}; expected a number below {}", CpuSet::MAX_CPU));
    }
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| format!("cannot keep a thread on core {core}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_its_core() {
        let all = allowed();
        let last = *all.last().expect("this test runs on a core");
        let kept = std::thread::spawn(move || keep_to(last).map(|()| allowed())).join().unwrap();
        assert_eq!(kept, Ok(vec![last]));
        let no_core = std::thread::spawn(|| keep_to(1023)).join().unwrap().unwrap_err();
        assert!(no_core.contains("core 1023"), "{no_core}");
        assert!(keep_to(usize::MAX).unwrap_err().contains("expected a number below"));
    }
}
