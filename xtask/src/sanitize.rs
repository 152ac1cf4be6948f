//! The tests of every crate that has `unsafe` code, under the address sanitizer (which finds leaks too) and the thread
//! sanitizer.
//!
//! Both need a nightly compiler. The thread sanitizer must see every atomic, those of the standard library too, and so
//! needs its source to build it anew. Miri is no alternative here: it has no system calls and no vector instructions.

use crate::shell;
use anyhow::Result;
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Crates with `unsafe` in them: vector checksums, system calls, the boundary to C.
const CRATES: [&str; 3] = ["linerate-nic", "linerate-linux", "linerate-capi"];

/// Runs the tests twice.
pub fn run() -> Result<()> {
    shell::run(Command::new("rustup").args(["component", "add", "rust-src", "--toolchain", "nightly"]))?;
    sanitize("address", &[])?;
    sanitize("thread", &["-Zbuild-std"])
}

fn sanitize(name: &str, more: &[&str]) -> Result<()> {
    println!("the {name} sanitizer:");
    let mut test = Command::new("cargo");
    test.args(["+nightly", "test", "--quiet", "--lib", "--tests", "--target", TARGET]).args(more);
    test.args(CRATES.iter().flat_map(|name| ["--package", name]));
    // Apart from other builds, and one sanitizer from the other: they share no object code.
    test.arg(format!("--target-dir=target/sanitize/{name}"));
    test.env("RUSTFLAGS", format!("-Zsanitizer={name}"));
    // Any report ends the run; a pool that was not freed is a fault, not a remark.
    // Memory that cannot be had is answered as the system's allocator answers it: what becomes of it is tested.
    test.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1");
    test.env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1");
    shell::run(&mut test)
}
