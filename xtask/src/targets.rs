//! Standard libraries for other processors, as rustup has them.

use crate::shell;
use std::process::Command;

/// Whether there is one for `target`, installed now if it was not; a minute is given to the download.
pub fn install(target: &str) -> bool {
    let add = || shell::output(Command::new("timeout").args(["60", "rustup", "target", "add", target]));
    is_installed(target) || (add().is_ok() && is_installed(target))
}

fn is_installed(target: &str) -> bool {
    shell::output(Command::new("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|targets| targets.lines().any(|line| line == target))
}
