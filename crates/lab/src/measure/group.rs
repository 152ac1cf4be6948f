//! A control group for a server, which counts the processor time of all its processes, of those that have ended as well: a server
//! that lets its children go unnoticed is counted whole.

use super::place;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PREFIX: &str = "linerate-lab-";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A group of version 2, removed with the value.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// A new one; `None` on a machine where no groups of version 2 are mounted, or none can be made.
    pub fn new() -> Option<Group> {
        // Nobody would remove it.
        if place::is_ending() {
            return None;
        }
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let group = Group(root()?.join(name));
        fs::create_dir(&group.0).ok()?;
        group.seconds().is_some().then_some(group)
    }

    /// The command inside of the group, from its first moment.
    pub fn around(&self, command: &Command) -> Command {
        let mut outer = Command::new("sh");
        outer.args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        outer.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                outer.env(name, value);
            }
        }
        outer
    }

    /// Takes a process in that runs already, with all of its threads; what it has used before is not counted.
    pub fn admit(&self, pid: u32) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }

    /// Its name below the place where groups are mounted.
    pub fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Processor seconds that it has used.
    pub fn seconds(&self) -> Option<f64> {
        let text = fs::read_to_string(self.0.join("cpu.stat")).ok()?;
        usage(&text)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..50 {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {}
                _ => return,
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Removes the groups of this process, which is about to end. What ran in them was told to end, and may take a moment.
pub(super) fn end() {
    let own = std::process::id();
    paths(|pid| pid == own).into_iter().for_each(|path| drop(Group(path)));
}

/// Removes groups whose run is over and could not.
pub(super) fn sweep() {
    for path in paths(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
        // A server that has outlived its run keeps its group.
        let _ = fs::remove_dir(path);
    }
}

/// Where the groups are that processes have made whose number is `wanted`.
fn paths(wanted: impl Fn(u32) -> bool) -> Vec<PathBuf> {
    let entries = root().and_then(|root| fs::read_dir(root).ok()).into_iter().flatten().flatten();
    let maker = |entry: &fs::DirEntry| maker(entry.file_name().to_str()?);
    entries.filter(|entry| maker(entry).is_some_and(&wanted)).map(|entry| entry.path()).collect()
}

/// The number of the process that has made a group of this name.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Where groups of version 2 are mounted.
fn root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mount(&mounts).map(PathBuf::from)
}

fn mount(mounts: &str) -> Option<&str> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.filter(|fields| fields.get(2) == Some(&"cgroup2")).find_map(|fields| fields.get(1).copied())
}

fn usage(stat: &str) -> Option<f64> {
    let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    microseconds.trim().parse::<f64>().ok().map(|us| us / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_runs_that_are_over_are_removed_and_others_stay() {
        let Some(own) = Group::new() else { return };
        // No process has such a number.
        let left = own.0.with_file_name(format!("{PREFIX}4194305-0"));
        fs::create_dir(&left).unwrap();
        sweep();
        assert!(!left.exists() && own.0.exists());
    }

    #[test]
    fn files_of_the_kernel() {
        let mounts =
            "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount("proc /proc proc rw 0 0\n"), None);
        assert_eq!(usage("usage_usec 2500000\nuser_usec 1\n"), Some(2.5));
        assert_eq!(usage(""), None);
        assert_eq!(maker("linerate-lab-77-3"), Some(77));
        assert_eq!([maker("linerate-lab-x-3"), maker("linerate-78-3"), maker("system.slice")], [None; 3]);
    }
}
