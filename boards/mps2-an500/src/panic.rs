//! The end: what happened is printed, and the watchdog starts the board anew a little later.

use crate::uart;
use core::fmt::Write;
use core::ops::Range;
use core::panic::PanicInfo;
use cortex_m_rt::{ExceptionFrame, exception};
use linerate_firmware::backtrace::{Code, Instructions};
use linerate_firmware_freertos::{backtrace, watch};

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    watch::end();
    uart::print("\n*** panic ");
    watch::print_task(say);
    say(format_args!("\n{info}\n"));
    let here = 0_u8;
    calls((&raw const here).addr());
    stop()
}

fn say(what: core::fmt::Arguments<'_>) {
    // Writing to the line does not fail.
    let _sent = uart::Out.write_fmt(what);
}

// What the linker tells by addresses: where code begins and ends, and the end of memory.
// SAFETY: cortex-m-rt's link.x has these names; nothing is read through them.
unsafe extern "C" {
    static __stext: u8;
    static __etext: u8;
    static _stack_start: u8;
}

const MEMORY: usize = 0x2000_0000;

/// The calls that led to the place where the stack pointer is this.
fn calls(stack: usize) {
    // SAFETY: interrupts are off, or below this exception.
    with_code(|memory, code| unsafe { backtrace::print(stack, memory, code, say) });
}

/// Memory, and the code that a call may lie in.
fn with_code(look: impl FnOnce(Range<usize>, &Code<'_>)) {
    let (start, end) = (&raw const __stext, (&raw const __etext).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::Thumb };
    // Memory ends where the first stack begins (memory.x).
    look(MEMORY..(&raw const _stack_start).addr(), &code);
}

/// Nothing but the watchdog comes any more.
fn stop() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

// SAFETY: called by the processor alone; it only prints.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    watch::end();
    uart::print("\n*** fault ");
    registers(frame);
    stop()
}

/// What the watchdog has to say of a task that makes no progress, by its place; these are the registers of whatever runs.
pub fn report_stuck(who: usize, frame: &ExceptionFrame) {
    watch::print_stuck(who, say);
    uart::print("\nthe processor is ");
    registers(frame);
    // SAFETY: memory as above; nothing interrupts the watchdog.
    with_code(|memory, code| unsafe { watch::print_waiting(who, memory, code, say) });
}

/// The task, its registers, and the calls that led there.
fn registers(frame: &ExceptionFrame) {
    watch::print_task(say);
    say(format_args!("\n{frame:#x?}\n  at {:#010x}\n", frame.pc()));
    // The processor has stored the registers on the stack of whoever ran.
    calls(core::ptr::from_ref(frame).addr());
}

/// FreeRTOS found that a task went beyond its stack.
// SAFETY: the name and the type are those that FreeRTOS demands.
#[unsafe(no_mangle)]
extern "C" fn vApplicationStackOverflowHook(_task: *const core::ffi::c_void, _name: *const u8) {
    panic!("a task needs more stack");
}
