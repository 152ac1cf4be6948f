//! Settings and files, and where things lie.

use linerate_firmware_settings::{Limits, MOST_FRAMES};
use std::env;
use std::path::PathBuf;

/// As in `src/heap.rs`.
const HEAP: usize = 24 << 20;
/// The interface counts no frames, or as many as there may be. Receive buffers as in `src/caches.rs`.
const LIMITS: Limits = Limits { frames: MOST_FRAMES, heap: HEAP, receive_buffer: 2_048 };

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
    println!("cargo::rerun-if-changed=src/memory.s");
    println!("cargo::rerun-if-changed=src/rates.s");
    println!("cargo::rerun-if-changed=order.x");
    println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    println!("cargo::rustc-link-arg-bins=-T{}", folder.join("memory.x").display());
}
