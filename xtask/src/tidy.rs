//! Rules of the house that no compiler checks: size and docs of modules, place of `unsafe`, direction of dependencies
//! between crates and between modules.

use crate::{circles, shell};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_LINES: usize = 600;

/// Crates in which nothing may be unsafe, and which need no standard library.
const PURE: [&str; 5] = ["wire", "transport", "stack", "serve", "embedded"];

/// Crates whose modules use each other in one direction only.
const PORTABLE: [&str; 6] = ["wire", "nic", "transport", "stack", "serve", "embedded"];

/// Files outside the pure crates that may hold `unsafe`, by the start of their path. The three tests and the bench count
/// allocations, and an allocator is an unsafe trait.
const UNSAFE: [&str; 59] = [
    "benches/segments/src/bin/crowd/weight.rs",
    "boards/embassy/src/backtrace.rs",
    "boards/embassy/src/executor.rs",
    "boards/embassy/src/heap.rs",
    "boards/embassy/src/stack.rs",
    "boards/embassy/src/watch.rs",
    "boards/firmware/tests/day/main.rs",
    "boards/freertos/src/backtrace.rs",
    "boards/freertos/src/heap.rs",
    "boards/freertos/src/memory.rs",
    "boards/freertos/src/trace.rs",
    "boards/freertos/src/watch.rs",
    "boards/mps2-an500/src/clock.rs",
    "boards/mps2-an500/src/ethernet.rs",
    "boards/mps2-an500/src/interrupts.rs",
    "boards/mps2-an500/src/marks.rs",
    "boards/mps2-an500/src/panic.rs",
    "boards/mps2-an500/src/registers.rs",
    "boards/mps2-an500/src/watchdog.rs",
    "boards/nucleo-h743zi/src/caches.rs",
    "boards/nucleo-h743zi/src/ethernet.rs",
    "boards/nucleo-h743zi/src/heap.rs",
    "boards/nucleo-h743zi/src/interrupts.rs",
    "boards/nucleo-h743zi/src/panic.rs",
    "boards/softcore/src/ethernet.rs",
    "boards/softcore/src/heap.rs",
    "boards/softcore/src/panic.rs",
    "boards/softcore/src/processor.rs",
    "boards/softcore/src/registers.rs",
    "boards/softcore/src/stack.rs",
    "boards/softcore/src/start.rs",
    "boards/softcore/src/watchdog.rs",
    "boards/virt-a15/src/clock.rs",
    "boards/virt-a15/src/critical.rs",
    "boards/virt-a15/src/embassy.rs",
    "boards/virt-a15/src/interrupts.rs",
    "boards/virt-a15/src/marks.rs",
    "boards/virt-a15/src/panic.rs",
    "boards/virt-a15/src/registers.rs",
    "boards/virt-a15/src/start.rs",
    "boards/virt-a15/src/watchdog.rs",
    "boards/xlnx-zcu102/src/ethernet.rs",
    "boards/xlnx-zcu102/src/heap.rs",
    "boards/xlnx-zcu102/src/marks.rs",
    "boards/xlnx-zcu102/src/panic.rs",
    "boards/xlnx-zcu102/src/processor.rs",
    "boards/xlnx-zcu102/src/registers.rs",
    "boards/xlnx-zcu102/src/stack.rs",
    "boards/xlnx-zcu102/src/start.rs",
    "boards/xlnx-zcu102/src/watchdog.rs",
    "crates/nic/src/checksum_aarch64.rs",
    "crates/nic/src/checksum_arm.rs",
    "crates/nic/src/checksum_avx2.rs",
    "crates/linux/src/",
    "crates/capi/src/",
    "crates/rtl-sim/src/dut.rs",
    // Writes the declarations of the functions that dut.rs calls.
    "crates/rtl-sim/build.rs",
    "crates/nic/tests/allocations.rs",
    "crates/stack/tests/allocations.rs",
];

/// Which crate of ours may depend on which (ARCHITECTURE.md, "Who may know whom").
const MAY_USE: [(&str, &[&str]); 17] = [
    ("linerate-wire", &[]),
    ("linerate-nic", &["linerate-wire"]),
    ("linerate-transport", &["linerate-wire"]),
    ("linerate-stack", &["linerate-wire", "linerate-nic", "linerate-transport"]),
    ("linerate-serve", &["linerate-wire", "linerate-transport"]),
    ("linerate-linux", &["linerate-wire", "linerate-nic", "linerate-transport"]),
    ("linerate-embedded", &["linerate-wire", "linerate-nic", "linerate-transport"]),
    (
        "linerate-firmware",
        &["linerate-wire", "linerate-nic", "linerate-transport", "linerate-stack", "linerate-serve"],
    ),
    ("linerate-firmware-settings", &[]),
    ("linerate-fabric", &[]),
    ("linerate-sim", &["linerate-wire", "linerate-nic", "linerate-transport", "linerate-stack"]),
    ("linerate-rtl-sim", &["linerate-wire", "linerate-nic"]),
    ("linerate-capi", &["linerate-wire", "linerate-nic", "linerate-transport", "linerate-stack"]),
    ("echo", &["linerate-nic", "linerate-transport", "linerate-stack", "linerate-linux"]),
    (
        "linerate-lab",
        &[
            "linerate-wire",
            "linerate-nic",
            "linerate-transport",
            "linerate-stack",
            "linerate-serve",
            "linerate-fabric",
            "linerate-sim",
        ],
    ),
    (
        "linerate-cli",
        &[
            "linerate-wire",
            "linerate-nic",
            "linerate-transport",
            "linerate-stack",
            "linerate-serve",
            "linerate-linux",
            "linerate-fabric",
            "linerate-sim",
            "linerate-lab",
            "linerate-rtl-sim",
        ],
    ),
    ("xtask", &[]),
];

/// Checks all rules and reports every fault.
pub fn run() -> Result<()> {
    let mut faults = Vec::new();
    let mut files = Vec::new();
    for folder in ["benches", "boards", "examples", "crates", "xtask", "fuzz"] {
        rust_files(Path::new(folder), &mut files)?;
    }
    for path in &files {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        check_file(&path.to_string_lossy(), &text, &mut faults);
    }
    check_verilog(Path::new("rtl"), &mut faults)?;
    for name in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let text = std::fs::read_to_string(&path)?;
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !text.contains(attribute) {
                faults.push(format!("{path}: must have {attribute}"));
            }
        }
    }
    check_dependencies(&mut faults)?;
    check_built(&mut faults);
    circles::check(&PORTABLE, &files, &mut faults)?;
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    println!("tidy: {} files in order", files.len());
    Ok(())
}

/// What a compiler made is not kept. (Outside of a checkout there is nothing to ask.)
fn check_built(faults: &mut Vec<String>) {
    let kept = shell::output(Command::new("git").args(["ls-files", "--", "*/target/*"])).unwrap_or_default();
    if let Some(first) = kept.lines().next() {
        faults.push(format!("{first}: made by the compiler; to be named in .gitignore"));
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn check_file(path: &str, text: &str, faults: &mut Vec<String>) {
    let lines = text.lines().count();
    // A longer file says why in a line of its own.
    if lines > MAX_LINES && !text.contains("//! Over 600 lines because ") {
        faults.push(format!(
            "{path}: {lines} lines; at most {MAX_LINES}, or a line `//! Over 600 lines because ...`"
        ));
    }
    let mut head = text.lines().skip_while(|line| line.starts_with("#!") || line.trim().is_empty());
    if !head.next().is_some_and(|line| line.starts_with("//! ")) {
        faults.push(format!("{path}: must open with a module comment (//! ...)"));
    }
    let unsafe_here = UNSAFE.iter().any(|start| path.starts_with(start));
    for (at, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        let word = |word: &str| {
            code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|found| found == word)
        };
        if word("unsafe") && !unsafe_here && !path.starts_with("xtask/") {
            faults.push(format!("{path}:{}: unsafe is not allowed here", at + 1));
        }
        let is_core = ["crates/stack/src/", "crates/nic/src/"].iter().any(|start| path.starts_with(start));
        if is_core && !path.contains("tests") && code.contains("let _ =") {
            faults.push(format!(
                "{path}:{}: a result thrown away; assert that it is none, or handle it",
                at + 1
            ));
        }
        // Spelled in two pieces, so that this line does not find itself.
        if [concat!("TO", "DO"), concat!("FIX", "ME")].iter().any(|mark| line.contains(mark)) {
            faults.push(format!("{path}:{}: unfinished", at + 1));
        }
    }
}

/// Modules of the RTL: as long as files of Rust, opened by a comment, without implicit nets.
fn check_verilog(folder: &Path, faults: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            check_verilog(&path, faults)?;
        }
        if path.extension().is_none_or(|extension| extension != "sv") {
            continue;
        }
        let (text, name) = (std::fs::read_to_string(&path)?, path.display());
        let lines = text.lines().count();
        if lines > MAX_LINES && !text.contains("// Over 600 lines because ") {
            faults.push(format!(
                "{name}: {lines} lines; at most {MAX_LINES}, or a line `// Over 600 lines because ...`"
            ));
        }
        if !text.starts_with("// ") {
            faults.push(format!("{name}: must open with a comment that says what it is"));
        }
        if !text.contains("`default_nettype none") || !text.trim_end().ends_with("`default_nettype wire") {
            faults.push(format!(
                "{name}: must stand between `default_nettype none` and `default_nettype wire`"
            ));
        }
    }
    Ok(())
}

fn check_dependencies(faults: &mut Vec<String>) -> Result<()> {
    let metadata =
        shell::output(shell::cargo().args(["metadata", "--format-version=1", "--no-deps", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or("?");
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            faults.push(format!("{name}: not in the table of who may use whom (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or("?");
            // Tests may bring the parts together.
            let ours = used.starts_with("linerate-") && dependency["kind"].is_null();
            if ours && !allowed.contains(&used) {
                faults.push(format!("{name}: must not depend on {used}"));
            }
        }
    }
    Ok(())
}
