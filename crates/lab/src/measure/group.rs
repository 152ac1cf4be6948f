//! A control group for a server, which counts the processor time of all its processes, of those that have ended as well: a server
//! that lets its children go unnoticed is counted whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A group of version 2, removed with the value.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// A new one; `None` on a machine where no groups of version 2 are mounted, or none can be made.
    pub fn new() -> Option<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let root = mount(&mounts)?;
        let name = format!("linerate-lab-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let group = Group(Path::new(root).join(name));
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
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
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
    fn files_of_the_kernel() {
        let mounts =
            "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mount(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount("proc /proc proc rw 0 0\n"), None);
        assert_eq!(usage("usage_usec 2500000\nuser_usec 1\n"), Some(2.5));
        assert_eq!(usage(""), None);
    }
}
