//! Settings and files, FreeRTOS for this processor, and where things lie.

use freertos_build::{Builder, prelude::*};
use linerate_firmware_settings::Limits;
use std::path::PathBuf;
use std::{env, fs};

/// The clock of the processor, which counts ticks.
const CLOCK_HZ: u32 = 25_000_000;
/// Tasks and everything that they allocate.
const HEAP: usize = 1 << 20;

/// Most frames that the LAN9118 is told to wait for, as its driver has it. Receive buffers have memory of their own.
const LIMITS: Limits = Limits { frames: 4, heap: HEAP, receive_buffer: 0 };

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    if let Err(error) = linerate_firmware_settings::generate(&folder, &out, &LIMITS) {
        // One line, without a backtrace: it is about a file that the reader has just changed.
        eprintln!("{error:#}");
        std::process::exit(1);
    }
    for name in ["memory.x", "device.x"] {
        println!("cargo::rerun-if-changed={name}");
        fs::copy(folder.join(name), out.join(name)).expect("the linker scripts beside the manifest");
    }
    println!("cargo::rustc-link-search={}", out.display());
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    for header in ["freertos/UserConfig.h", "../freertos/trace.h"] {
        println!("cargo::rerun-if-changed={header}");
    }
    let mut freertos = Builder::new();
    freertos.freertos_port("GCC/ARM_CM7/r0p1");
    freertos.user_config_dir(folder.join("freertos"));
    freertos.cpu_clock(CLOCK_HZ.Hz());
    freertos.heap_size(HEAP);
    freertos.minimal_stack_size(256);
    freertos.max_task_priorities(5);
    freertos.check_for_stack_overflow(2);
    // The emulated processor has all eight bits of a priority, a Cortex-M7 of this board three: these hold for both.
    freertos.interrupt_priority(0xa0, 0xe0);
    let cc = freertos.get_cc();
    cc.flag("-mcpu=cortex-m7").flag("-mfpu=fpv5-d16").flag("-mfloat-abi=hard").opt_level(2);
    cc.flag("-fno-unwind-tables").flag("-fno-asynchronous-unwind-tables");
    if let Err(error) = freertos.compile() {
        panic!("FreeRTOS: {error:?}");
    }
}
