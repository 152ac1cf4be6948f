//! The end: what happened is printed, and the watchdog starts the board anew a little later.
//!
//! Nothing is allocated, and the system is asked for nothing but names: its state may be what broke.

use crate::system::{backtrace, watch};
use crate::uart::Out;
use crate::{critical, interrupts};
use core::arch::asm;
use core::fmt::Write;
use core::ops::Range;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};
use linerate_firmware::backtrace::{Code, Instructions};

/// Something has ended the machine already, and is being printed.
static IS_OVER: AtomicBool = AtomicBool::new(false);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    begin();
    say(format_args!("\n*** panic\n{info}\n"));
    watch::print_task(say);
    say(format_args!("\n"));
    let here = 0_u8;
    calls((&raw const here).addr());
    stop()
}

// What the linker tells by addresses: where code begins and ends, where memory that is written begins, and its end.
// SAFETY: memory.x has these names; nothing is read through them.
unsafe extern "C" {
    static __code_start: u8;
    static __text_end: u8;
    static __code_end: u8;
    static __memory_end: u8;
}

/// The calls that led to the place where the stack pointer is this.
fn calls(stack: usize) {
    // SAFETY: interrupts are masked for good, or below the watchdog's.
    with_code(|memory, code| unsafe { backtrace::print(stack, memory, code, say) });
}

/// Memory of the image (memory.x), and the code that a call may lie in.
fn with_code(look: impl FnOnce(Range<usize>, &Code<'_>)) {
    let (start, end) = (&raw const __code_start, (&raw const __text_end).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::Arm };
    let memory = (&raw const __code_end).addr()..(&raw const __memory_end).addr();
    look(memory, &code);
}

/// What comes before the report. A second one, about what the first one met, would never end.
fn begin() {
    critical::mask_for_good();
    watch::end();
    if IS_OVER.swap(true, Ordering::Relaxed) {
        say(format_args!("\n*** and the report of it failed\n"));
        stop();
    }
}

fn say(what: core::fmt::Arguments<'_>) {
    // Writing to the line does not fail.
    let _sent = Out.write_fmt(what);
}

fn stop() -> ! {
    // Else what waits would end the sleep at once.
    interrupts::stop();
    critical::hear_watchdog();
    loop {
        critical::wait_for_interrupt();
    }
}

/// The registers when a fault or the watchdog came, as `start.s` lays them down.
#[repr(C)]
pub struct Registers {
    r: [u32; 13],
    sp: u32,
    lr: u32,
    pc: u32,
    cpsr: u32,
}

/// What the processor cannot go on from.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_fault(kind: u32, registers: &Registers) -> ! {
    begin();
    let name = match kind {
        0 => "undefined instruction",
        1 => "no instruction there",
        2 => "data fault",
        _ => "unexpected exception",
    };
    say(format_args!("\n*** {name}"));
    print_registers(registers);
    print_fault(kind);
    say(format_args!("\n"));
    // Last, as it trusts what the system keeps.
    place(registers);
    stop()
}

/// What the watchdog has to say of a task that makes no progress, by its place; these are the registers of whatever runs.
pub fn report_stuck(who: usize, registers: &Registers) {
    watch::print_stuck(who, say);
    say(format_args!("\nthe processor is at"));
    print_registers(registers);
    say(format_args!("\n"));
    place(registers);
    // SAFETY: nothing interrupts the watchdog.
    with_code(|memory, code| unsafe { watch::print_waiting(who, memory, code, say) });
}

/// The task that the registers are of, and the calls that led to where it is.
fn place(registers: &Registers) {
    watch::print_task(say);
    say(format_args!("\n"));
    say(format_args!("  at {:#010x}\n", registers.pc));
    calls(registers.sp as usize);
}

fn print_registers(registers: &Registers) {
    let Registers { r, sp, lr, pc, cpsr } = registers;
    say(format_args!("\npc {pc:#010x} lr {lr:#010x} sp {sp:#010x} cpsr {cpsr:#010x}"));
    for (number, value) in r.iter().enumerate() {
        let before = if number % 4 == 0 { '\n' } else { ' ' };
        say(format_args!("{before}r{number:<2} {value:#010x}"));
    }
}

/// Where the processor says that a fault was, and why.
fn print_fault(kind: u32) {
    let (data_status, data_address, status, address): (u32, u32, u32, u32);
    // SAFETY: reads DFSR, DFAR, IFSR and IFAR, which changes nothing.
    unsafe {
        asm!(
            "mrc p15, 0, {}, c5, c0, 0",
            "mrc p15, 0, {}, c6, c0, 0",
            "mrc p15, 0, {}, c5, c0, 1",
            "mrc p15, 0, {}, c6, c0, 2",
            out(reg) data_status, out(reg) data_address, out(reg) status, out(reg) address,
            options(nomem, nostack, preserves_flags)
        );
    }
    match kind {
        1 => say(format_args!("\naddress {address:#010x} status {status:#x}")),
        2 => say(format_args!("\naddress {data_address:#010x} status {data_status:#x}")),
        _ => {}
    }
}

/// FreeRTOS found that a task went beyond its stack.
#[cfg(feature = "freertos")]
// SAFETY: the name and the type are those that FreeRTOS demands.
#[unsafe(no_mangle)]
extern "C" fn vApplicationStackOverflowHook(_task: *const core::ffi::c_void, _name: *const u8) {
    panic!("a task needs more stack");
}
