//! The tests of `unsafe` code under the address sanitizer (which finds leaks too), and of what threads share under the thread sanitizer.
//!
//! Both need a nightly compiler. The thread sanitizer must see every atomic, those of the standard library too, and so
//! needs its source to build it anew. Miri is no alternative here: it has no system calls and no vector instructions.

use crate::shell;
use anyhow::Result;
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Crates with `unsafe` in them: vector checksums, system calls, the boundary to C.
const UNSAFE: [&str; 3] = ["linerate-nic", "linerate-linux", "linerate-capi"];
/// Of these, the one whose threads share memory. The others say of each object that one thread has it.
const SHARING: [&str; 1] = ["linerate-linux"];
/// Beside what is tested within the crates, tests of theirs that lead to `unsafe` code: a device whose registers and memory are mapped.
/// The drivers that the others test have none.
const TESTS: [&str; 1] = ["uio"];

/// Runs the tests under both.
pub fn run() -> Result<()> {
    shell::run(Command::new("rustup").args(["component", "add", "rust-src", "--toolchain", "nightly"]))?;
    sanitize("address", &UNSAFE, &[])?;
    sanitize("thread", &SHARING, &["-Zbuild-std"])
}

fn sanitize(name: &str, crates: &[&str], more: &[&str]) -> Result<()> {
    println!("the {name} sanitizer:");
    let mut test = Command::new("cargo");
    test.args(["+nightly", "test", "--quiet", "--lib", "--target", TARGET]).args(more);
    test.args(TESTS.iter().flat_map(|name| ["--test", name]));
    test.args(crates.iter().flat_map(|name| ["--package", name]));
    // Apart from other builds, and one sanitizer from the other: they share no object code.
    test.arg(format!("--target-dir=target/sanitize/{name}"));
    test.env("RUSTFLAGS", format!("-Zsanitizer={name}"));
    // Any report ends the run; a pool that was not freed is a fault, not a remark.
    // Memory that cannot be had is answered as the system's allocator answers it: what becomes of it is tested.
    test.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1");
    test.env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1");
    shell::run(&mut test)
}
