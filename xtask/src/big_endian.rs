//! The portable crates and their tests on a processor whose bytes lie the other way round, under user-mode emulation.

use crate::{packages, shell, targets};
use anyhow::Result;
use std::process::Command;

const TARGET: &str = "s390x-unknown-linux-gnu";
const PACKAGES: [&str; 3] = ["gcc-s390x-linux-gnu", "libc6-dev-s390x-cross", "qemu-user"];
/// Tests of the stack that take seconds under emulation, and go through all of it.
const SHORT: [&str; 7] = ["tcp", "model", "node", "link", "limits", "autoconf", "allocations"];

/// Runs the tests; `long`: also those of the stack that take minutes.
pub fn run(long: bool) -> Result<()> {
    if !targets::install(TARGET) {
        println!("big-endian: skipped, as rustup has no standard library for {TARGET} to install");
        return Ok(());
    }
    packages::require(&PACKAGES)?;
    let small = ["linerate-wire", "linerate-nic", "linerate-transport"];
    shell::run(test().args(["--lib", "--tests"]).args(small.iter().flat_map(|name| ["--package", name])))?;
    let mut stack = test();
    stack.args(["--package", "linerate-stack"]);
    if long {
        stack.args(["--lib", "--tests"]);
    } else {
        stack.args(SHORT.iter().flat_map(|name| ["--test", name]));
    }
    shell::run(&mut stack)
}

/// Cargo, about to run tests under emulation.
fn test() -> Command {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--quiet", "--locked", "--target", TARGET]);
    cargo.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", "qemu-s390x -L /usr/s390x-linux-gnu");
    cargo
}
