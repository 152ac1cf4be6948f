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

/// Installs packages that not every distribution has, where it has them; says so where it does not, or where we are not
/// root.
pub fn offer(packages: &[&str]) -> Result<()> {
    let missing = || packages.iter().copied().filter(|package| !installed(package));
    if missing().next().is_none() {
        return Ok(());
    }
    let root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    if root {
        shell::run(apt().arg("update"))?;
    }
    for package in missing() {
        let policy = shell::output(Command::new("apt-cache").args(["policy", package])).unwrap_or_default();
        if !has_candidate(&policy) {
            println!("this distribution has no package {package}: tests that need it are skipped");
        } else if root {
            require(&[package])?;
        } else {
            println!("tests that need {package} are skipped; as root: apt-get install {package}");
        }
    }
    Ok(())
}

/// Whether `apt-cache policy` knows a version that can be installed.
fn has_candidate(policy: &str) -> bool {
    let candidates = policy.lines().filter_map(|line| line.trim().strip_prefix("Candidate:"));
    candidates.map(str::trim).any(|version| version != "(none)")
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    // Others may install at the same time.
    command.args(["-qq", "-o", "DPkg::Lock::Timeout=600"]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn installed(package: &str) -> bool {
    shell::output(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]))
        .is_ok_and(|status| status == "installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_only_a_name_has_no_candidate() {
        assert!(has_candidate("chromium:\n  Installed: (none)\n  Candidate: 150.0-1~deb12u1\n"));
        assert!(!has_candidate("chromium:\n  Installed: (none)\n  Candidate: (none)\n"));
        assert!(!has_candidate(""));
    }
}
