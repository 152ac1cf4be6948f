//! Proof that the portable crates need no operating system: a build for a bare Cortex-M.

use crate::{packages, shell};
use anyhow::Result;
use std::process::Command;

const TARGET: &str = "thumbv7em-none-eabihf";
const CRATES: [&str; 5] =
    ["linerate-wire", "linerate-nic", "linerate-transport", "linerate-stack", "linerate-serve"];

/// Builds the portable crates for the target, with rustup's standard library when it has one for it, and otherwise
/// with Debian's compiler, which builds `core` and `alloc` from source.
pub fn run() -> Result<()> {
    let installed = shell::output(Command::new("rustup").args(["target", "list", "--installed"]))
        .is_ok_and(|targets| targets.lines().any(|line| line == TARGET));
    let mut cargo = if installed {
        shell::cargo()
    } else {
        println!("no rustup target {TARGET}: building core and alloc with Debian's compiler");
        packages::require(&["rustc-web", "rust-web-src", "cargo-web"])?;
        let mut cargo = Command::new("/usr/bin/cargo");
        cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1").env_remove("RUSTUP_TOOLCHAIN");
        cargo.env_remove("CARGO");
        cargo.arg("-Zbuild-std=core,alloc");
        cargo
    };
    cargo.args(["build", "--release", "--target", TARGET, "--target-dir", "target/firmware"]);
    for name in CRATES {
        cargo.args(["--package", name]);
    }
    shell::run(&mut cargo)
}
