//! The end: what happened is printed, and the image begins again a little later. Nothing is allocated.

use crate::uart::Out;
use crate::{amo, processor, stack, watchdog};
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};
use linerate_firmware::backtrace::{Code, Instructions};

/// Something has ended the machine already, and is being printed.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// `mcause` of an instruction that the core does not have.
const ILLEGAL: u32 = 2;
/// That of the timer's interrupt.
const TIMER: u32 = 1 << 31 | 7;
/// Calls that are shown.
const SHOWN: usize = 32;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    begin();
    say(format_args!("\n*** panic\n{info}\n"));
    let here = 0_u32;
    calls((&raw const here).addr());
    stop()
}

/// What comes before the report. A second one, about what the first one met, would never end.
fn begin() {
    // The watchdog has nothing more to say.
    processor::hear_nothing();
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
    watchdog::wait_and_start_anew()
}

// What the linker tells by addresses: where code begins and ends.
// SAFETY: memory.x has these names; nothing is read through them.
unsafe extern "C" {
    static __code_start: u8;
    static __text_end: u8;
}

/// The calls that led to the place where the stack pointer is this.
fn calls(pointer: usize) {
    let (start, end) = (&raw const __code_start, (&raw const __text_end).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::RiscV };
    say(format_args!("calls that the stack tells of, the last one first; some may be old:\n"));
    for call in stack::words(pointer).filter_map(|word| code.call_before(word)).take(SHOWN) {
        say(format_args!("  at {call:#010x}\n"));
    }
}

/// What the watchdog has to say of the loop, which makes no progress.
pub fn report_stuck(registers: &[u32; 32]) {
    begin();
    watchdog::WATCHDOG.say_stuck(watchdog::NETWORK, say);
    print(registers);
}

/// The registers, and the calls that led there.
fn print(registers: &[u32; 32]) {
    say(format_args!("\npc {:#x}", registers[0]));
    for (number, register) in registers.iter().enumerate().skip(1) {
        let before = if number % 4 == 1 { '\n' } else { ' ' };
        say(format_args!("{before}x{number:<2} {register:#010x}"));
    }
    say(format_args!("\n  at {:#010x}\n", registers[0]));
    calls(registers[2] as usize);
}

/// What came instead of the next instruction. `registers` are the instruction's address and x1 to x31.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_trap(registers: &mut [u32; 32]) {
    let (cause, value) = processor::trap();
    if cause == TIMER {
        return watchdog::on_time(registers);
    }
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
    say(format_args!("\n*** {name}, cause {cause} value {value:#x}"));
    print(registers);
    stop()
}
