//! Settings and files, and where things lie.

use linerate_firmware_settings::{Limits, MOST_FRAMES};
use std::env;
use std::path::PathBuf;

/// As in `src/heap.rs`.
const HEAP: usize = 64 << 20;
/// The interface counts no frames, or as many as there may be. Receive buffers as in `src/ethernet.rs`.
const LIMITS: Limits = Limits { frames: MOST_FRAMES, heap: HEAP, receive_buffer: 1_536 };

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    if let Err(error) = linerate_firmware_settings::generate(&folder, &out, &LIMITS) {
        // One line, without a backtrace: it is about a file that the reader has just changed.
        eprintln!("{error:#}");
        std::process::exit(1);
    }
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=src/start.s");
    println!("cargo::rustc-link-arg-bins=-T{}", folder.join("memory.x").display());
}
