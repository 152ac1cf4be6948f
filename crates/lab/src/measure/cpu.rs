//! Processor time: of a process with its descendants, of clients that have ended, and of the cores.

use std::collections::BTreeMap;
use std::fs::read_to_string;

/// Clock ticks in a second, as Linux reports them to programs.
const TICKS: f64 = 100.0;

/// Fields of `/proc/PID/stat` behind the name, which may have blanks and brackets: the first is the state.
fn fields(pid: u32) -> Option<Vec<u64>> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect())
}

/// The process and all that it started and that is alive.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = fields(pid).and_then(|fields| fields.get(1).copied()) {
            children.entry(parent as u32).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.get(pid).into_iter().flatten().copied());
        at += 1;
    }
    found
}

/// Nanoseconds that the threads of a process have run.
fn threads_ns(pid: u32) -> f64 {
    scheduled_ns(pid, 0)
}

/// A field of the scheduler's count, of all threads of a process: 0 is the time they ran, 1 the time they were ready and did not.
fn scheduled_ns(pid: u32, field: usize) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().nth(field)?.parse::<f64>().ok())
        .sum()
}

/// Seconds that the threads of a process and of its descendants were ready to run while others had the cores.
pub fn kept_of_tree(root: u32) -> f64 {
    tree(root).into_iter().map(|pid| scheduled_ns(pid, 1)).sum::<f64>() / 1e9
}

/// Seconds that a process and its descendants have used, those that have ended included.
pub fn of_tree(root: u32) -> f64 {
    tree(root)
        .into_iter()
        .filter_map(|pid| {
            let fields = fields(pid)?;
            let field = |at: usize| fields.get(at).copied().unwrap_or(0) as f64 / TICKS;
            // The scheduler's own count is finer, but knows no thread that has ended.
            let own = (threads_ns(pid) / 1e9).max(field(11) + field(12) - 2.0 / TICKS);
            Some(own + field(13) + field(14))
        })
        .sum()
}

/// Seconds that each thread of a process and of its descendants has run, by number of the thread.
pub fn threads_of_tree(root: u32) -> BTreeMap<u32, f64> {
    let mut found = BTreeMap::new();
    for pid in tree(root) {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        found.extend(tasks.filter_map(|task| {
            let number = task.file_name().to_str()?.parse().ok()?;
            let text = read_to_string(task.path().join("schedstat")).ok()?;
            Some((number, text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9))
        }));
    }
    found
}

/// Seconds that all cores have spent in interrupts of hardware and software.
pub fn interrupts() -> f64 {
    parse_interrupts(&read_to_string("/proc/stat").unwrap_or_default())
}

fn parse_interrupts(stat: &str) -> f64 {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    // irq and softirq stand behind user, nice, system, idle and iowait.
    all.split_whitespace().skip(5).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Seconds that the kernel's own threads have used.
pub fn of_kernel() -> f64 {
    // All of them are children of process 2.
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let threads = pids.filter(|pid| fields(*pid).is_some_and(|fields| fields.get(1) == Some(&2)));
    threads.map(threads_ns).sum::<f64>() / 1e9
}

/// Seconds that our own children had used when they ended.
pub fn of_clients() -> f64 {
    let fields = fields(std::process::id()).unwrap_or_default();
    fields.iter().skip(13).take(2).sum::<u64>() as f64 / TICKS
}

/// Seconds that each core was busy, and seconds that the machine's host took from it.
pub fn cores() -> Vec<(f64, f64)> {
    parse_cores(&read_to_string("/proc/stat").unwrap_or_default())
}

fn parse_cores(stat: &str) -> Vec<(f64, f64)> {
    parse_core_times(stat).iter().map(|core| (core.busy_s, core.stolen_s)).collect()
}

/// What a core did since the machine started, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CoreTime {
    /// It worked: programs, the kernel, interrupts.
    pub busy_s: f64,
    /// It had nothing to do, also not for want of a disk (that is counted apart, and not here).
    pub idle_s: f64,
    /// The machine's host took it.
    pub stolen_s: f64,
}

/// What each core did.
pub fn core_times() -> Vec<CoreTime> {
    parse_core_times(&read_to_string("/proc/stat").unwrap_or_default())
}

fn parse_core_times(stat: &str) -> Vec<CoreTime> {
    let cores = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    cores
        .map(|line| {
            let fields: Vec<f64> =
                line.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
            let sum = |places: &[usize]| {
                places.iter().map(|at| fields.get(*at).copied().unwrap_or(0.0)).sum::<f64>() / TICKS
            };
            // user, nice, system, idle, iowait, irq, softirq, steal
            CoreTime { busy_s: sum(&[0, 1, 2, 5, 6]), idle_s: sum(&[3]), stolen_s: sum(&[7]) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 50 1000 5 1 9 20 0 0\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(parse_interrupts(stat), 0.18);
        assert_eq!(parse_cores(stat), [(1.6, 0.2), (0.19, 0.08)]);
        assert_eq!(parse_core_times(stat)[0].idle_s, 10.0);
    }

    #[test]
    fn a_tree_has_its_children() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let found = tree(std::process::id());
        let threads = threads_of_tree(std::process::id());
        child.kill().and_then(|()| child.wait()).unwrap();
        assert!(found.contains(&child.id()) && found.contains(&std::process::id()));
        assert!(of_tree(std::process::id()) > 0.0);
        let kept = kept_of_tree(std::process::id());
        assert!((0.0..86_400.0).contains(&kept), "{kept}");
        assert!(threads.contains_key(&std::process::id()) && threads.contains_key(&child.id()));
    }
}
