//! What this process may do with a file, by the file's owner, group and permission bits: a `stat` tells these already, so that it
//! costs nothing in a listing of many files. Access control lists may say otherwise.

use crate::privileges;
use linerate_transport::Rights;
use rustix::fs::Stat;
use std::sync::OnceLock;

/// Whose rights the process has.
#[derive(Debug)]
struct Who {
    uid: u32,
    groups: Vec<u32>,
}

impl Who {
    fn now() -> Who {
        // Without the others, the first group counts alone, and less is promised than could be done.
        let mut groups: Vec<u32> =
            rustix::process::getgroups().unwrap_or_default().iter().map(|gid| gid.as_raw()).collect();
        groups.push(rustix::process::getegid().as_raw());
        Who { uid: rustix::process::geteuid().as_raw(), groups }
    }

    /// The class that the process is in decides, even where another one may do more.
    fn rights(&self, stat: &Stat) -> Rights {
        let mode = stat.st_mode as u16;
        match self.uid {
            0 => Rights::ALL,
            uid if uid == stat.st_uid => Rights::of_class(mode >> 6),
            _ if self.groups.contains(&stat.st_gid) => Rights::of_class(mode >> 3),
            _ => Rights::of_class(mode),
        }
    }
}

/// The same, asked once, and once more after the rights of root were given up.
#[derive(Debug, Default)]
pub(super) struct OurRights {
    at_first: OnceLock<Who>,
    later: OnceLock<Who>,
}

impl OurRights {
    /// What the process may do with this file.
    pub(super) fn of(&self, stat: &Stat) -> Rights {
        let who = if privileges::were_given_up() { &self.later } else { &self.at_first };
        who.get_or_init(Who::now).rights(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{AtFlags, CWD};

    #[test]
    fn the_first_class_that_fits_decides() {
        let mut stat = rustix::fs::statat(CWD, "/", AtFlags::empty()).unwrap();
        let mut check = |uid, groups: &[u32], mode, expected| {
            (stat.st_uid, stat.st_gid, stat.st_mode) = (1_000, 100, mode);
            let rights = Who { uid, groups: groups.to_vec() }.rights(&stat);
            assert_eq!(rights, Rights::of_class(expected), "{uid} {groups:?} {mode:o}");
        };
        check(1_000, &[100], 0o640, 0o6);
        check(1_001, &[5, 100], 0o640, 0o4);
        check(1_001, &[5], 0o640, 0o0);
        check(1_001, &[5], 0o755, 0o5);
        check(1_000, &[100], 0o077, 0o0);
        check(0, &[0], 0o000, 0o7);
    }

    #[test]
    fn it_is_told_as_the_kernel_sees_it() {
        let groups = Who::now().groups;
        assert!(groups.contains(&rustix::process::getegid().as_raw()), "{groups:?}");
    }
}
