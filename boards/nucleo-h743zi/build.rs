//! Settings and files, and where things lie.

use linerate_firmware_settings::{Limits, MOST_FRAMES};
use std::path::PathBuf;
use std::{env, fs};

/// As in `src/heap.rs`.
const HEAP: usize = 512 << 10;
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
    fs::copy(folder.join("memory.x"), out.join("memory.x")).expect("the linker script beside the manifest");
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
