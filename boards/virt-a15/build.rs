//! Settings and files, FreeRTOS for this processor unless Embassy has the tasks, and where things lie.

use linerate_firmware_settings::Limits;
use std::env;
use std::path::{Path, PathBuf};

/// Tasks and everything that they allocate, as in `src/board.rs`: what sockets, RAM disk and receive buffers may take together, and room beside.
const HEAP: usize = 64 << 20;
/// Bytes of the stack that Embassy polls all tasks on.
#[cfg(not(feature = "freertos"))]
const STACK: usize = 192 << 10;

/// Most frames that the interface is told to wait for: a quarter of its ring of 512. Receive buffers as in `src/ethernet.rs`.
const LIMITS: Limits = Limits { frames: 128, heap: HEAP, receive_buffer: 4_096 };

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    if let Err(error) = linerate_firmware_settings::generate(&folder, &out, &LIMITS) {
        // One line, without a backtrace: it is about a file that the reader has just changed.
        eprintln!("{error:#}");
        std::process::exit(1);
    }
    println!("cargo::rerun-if-changed=memory.x");
    for file in ["start.s", "bare.s", "freertos.s"] {
        println!("cargo::rerun-if-changed=src/{file}");
    }
    println!("cargo::rustc-link-arg-bins=-T{}", folder.join("memory.x").display());
    build_system(&folder);
}

/// Embassy: where its stack ends.
#[cfg(not(feature = "freertos"))]
fn build_system(_: &Path) {
    println!("cargo::rustc-link-arg-bins=--defsym=__tasks_stack={STACK}");
}

/// FreeRTOS.
#[cfg(feature = "freertos")]
fn build_system(folder: &Path) {
    for header in ["freertos/UserConfig.h", "../freertos/trace.h"] {
        println!("cargo::rerun-if-changed={header}");
    }
    let mut freertos = freertos_build::Builder::new();
    freertos.freertos_port("GCC/ARM_CA9");
    freertos.user_config_dir(folder.join("freertos"));
    freertos.heap_size(HEAP);
    freertos.minimal_stack_size(512);
    freertos.max_task_priorities(5);
    freertos.check_for_stack_overflow(2);
    let cc = freertos.get_cc();
    // Not what is chosen for the target: that is another processor of the family.
    cc.no_default_flags(true).flag("-O2").flag("-ffunction-sections").flag("-fdata-sections");
    cc.flag("-mcpu=cortex-a15").flag("-mfpu=neon-vfpv4").flag("-mfloat-abi=softfp");
    cc.flag("-fno-unwind-tables").flag("-fno-asynchronous-unwind-tables");
    if let Err(error) = freertos.compile() {
        panic!("FreeRTOS: {error:?}");
    }
}
