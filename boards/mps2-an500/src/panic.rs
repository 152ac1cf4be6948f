//! The end: what happened is printed, and the emulator or the watchdog goes on from there.

use crate::uart;
use core::panic::PanicInfo;
use cortex_m_rt::{ExceptionFrame, exception};
use freertos_next::Task;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    uart::print("\n*** panic");
    task();
    uart::print(&alloc::format!("\n{info}\n"));
    stop()
}

fn task() {
    if let Ok(name) = Task::current().ok().map_or(Err(()), |task| task.get_name()) {
        uart::print(" in task ");
        uart::print(&name);
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
    uart::print(&alloc::format!("\n{frame:#x?}\n"));
    stop()
}

/// FreeRTOS found that a task went beyond its stack.
// SAFETY: the name and the type are those that FreeRTOS demands.
#[unsafe(no_mangle)]
extern "C" fn vApplicationStackOverflowHook(_task: *const core::ffi::c_void, _name: *const u8) {
    panic!("a task needs more stack");
}
