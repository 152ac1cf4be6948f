//! Settings and files, FreeRTOS for this processor, and where things lie.

use freertos_build::Builder;
use std::env;
use std::path::PathBuf;

/// Tasks and everything that they allocate: what sockets, RAM disk and receive buffers may take together, and room beside.
const HEAP: usize = 64 << 20;

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    if let Err(error) = linerate_firmware_settings::generate(&folder, &out) {
        // One line, without a backtrace: it is about a file that the reader has just changed.
        eprintln!("{error:#}");
        std::process::exit(1);
    }
    println!("cargo::rerun-if-changed=memory.x");
    println!("cargo::rerun-if-changed=src/start.s");
    println!("cargo::rustc-link-arg-bins=-T{}", folder.join("memory.x").display());
    for header in ["freertos/UserConfig.h", "../freertos/trace.h"] {
        println!("cargo::rerun-if-changed={header}");
    }
    let mut freertos = Builder::new();
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
