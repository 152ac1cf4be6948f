//! Debian packages that tests need: named when missing, installed when we are root.

use crate::shell;
use anyhow::{Result, bail};
use std::process::Command;

/// Makes sure that the packages are installed, and says what it does.
pub fn require(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing Debian packages: {}", missing.join(" "));
    let root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    if !root {
        bail!("install them as root: apt-get install {}", missing.join(" "));
    }
    shell::run(apt().arg("update"))?;
    shell::run(apt().args(["install", "--yes", "--no-install-recommends"]).args(&missing))
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn installed(package: &str) -> bool {
    shell::output(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]))
        .is_ok_and(|status| status == "installed")
}
