//! The end: what happened is printed. Nothing is allocated.

use crate::uart::Out;
use crate::{amo, processor};
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

/// Something has ended the machine already, and is being printed.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// `mcause` of an instruction that the core does not have.
const ILLEGAL: u32 = 2;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    begin();
    say(format_args!("\n*** panic\n{info}\n"));
    stop()
}

/// What comes before the report. A second one, about what the first one met, would never end.
fn begin() {
    if IS_OVER.load(Ordering::Relaxed) {
        say(format_args!("\n*** and the report of it failed\n"));
        stop();
    }
    IS_OVER.store(true, Ordering::Relaxed);
}

fn say(what: core::fmt::Arguments<'_>) {
    // Writing to the line does not fail.
    let _sent = Out.write_fmt(what);
}

fn stop() -> ! {
    loop {
        processor::wait_for_interrupt();
    }
}

/// What came instead of the next instruction. `registers` are the instruction's address and x1 to x31.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_trap(registers: &mut [u32; 32]) {
    let (cause, value) = processor::trap();
    if cause == ILLEGAL && amo::emulate(registers) {
        return;
    }
    begin();
    // The privileged architecture, table 14.
    let name = match cause {
        0 | 4 | 6 => "unaligned access",
        1 => "no instruction there",
        ILLEGAL => "illegal instruction",
        5 | 7 => "nothing at this address",
        _ => "unexpected exception",
    };
    say(format_args!("\n*** {name}\npc {:#x} cause {cause} value {value:#x}", registers[0]));
    for (number, register) in registers.iter().enumerate().skip(1) {
        let before = if number % 4 == 1 { '\n' } else { ' ' };
        say(format_args!("{before}x{number:<2} {register:#010x}"));
    }
    say(format_args!("\n"));
    stop()
}
