//! The end: what happened is printed, and the emulator or the watchdog goes on from there.

use crate::uart;
use core::fmt::Write;
use core::panic::PanicInfo;
use cortex_m_rt::{ExceptionFrame, exception};
use freertos_next::{Task, freertos_rs_task_get_name, str_from_c_string};
use linerate_firmware::backtrace::{Code, Instructions};
use linerate_firmware_freertos::backtrace;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    uart::print("\n*** panic");
    task();
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
    let (start, end) = (&raw const __stext, (&raw const __etext).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::Thumb };
    // SAFETY: memory ends where the first stack begins (memory.x); interrupts are off, or below this exception.
    unsafe { backtrace::print(stack, MEMORY..(&raw const _stack_start).addr(), &code, say) };
}

fn task() {
    let Ok(task) = Task::current() else { return };
    // SAFETY: the handle is that of a task, whose name lies in it and ends with a zero. A copy of it would want memory, which
    // FreeRTOS does not give within an exception.
    let name = unsafe { str_from_c_string(freertos_rs_task_get_name(task.raw_handle())) };
    if let Ok(name) = name {
        say(format_args!(" in task {name}"));
    }
}

fn stop() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

// SAFETY: called by the processor alone; it only prints.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    uart::print("\n*** fault");
    task();
    say(format_args!("\n{frame:#x?}\n  at {:#010x}\n", frame.pc()));
    // The processor has stored the registers on the stack of whoever ran.
    calls(core::ptr::from_ref(frame).addr());
    stop()
}

/// FreeRTOS found that a task went beyond its stack.
// SAFETY: the name and the type are those that FreeRTOS demands.
#[unsafe(no_mangle)]
extern "C" fn vApplicationStackOverflowHook(_task: *const core::ffi::c_void, _name: *const u8) {
    panic!("a task needs more stack");
}
