//! The end: what happened is printed, and the watchdog starts the board anew. Nothing is allocated. And the stack,
//! which the report goes through.

use crate::uart::Out;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};
use cortex_m_rt::{ExceptionFrame, STACK_PAINT_VALUE, exception};
use linerate_firmware::backtrace::{Code, Instructions};

/// Calls that are shown.
const SHOWN: usize = 32;
const MEMORY: usize = 0x2000_0000;
const WORD: usize = size_of::<u32>();

/// Something has ended the machine already, and is being printed.
static IS_OVER: AtomicBool = AtomicBool::new(false);

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
    cortex_m::interrupt::disable();
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
    loop {
        cortex_m::asm::wfi();
    }
}

// What the linker tells by addresses: where code begins and ends, the end of variables and that of memory, where the stack begins.
// SAFETY: cortex-m-rt's link.x has these names; nothing is read through them.
unsafe extern "C" {
    static __stext: u8;
    static __etext: u8;
    static _stack_end: u8;
    static _stack_start: u8;
}

/// The words of memory from an address on, to the end, where the stack began; none for an address elsewhere.
fn words(from: usize) -> impl Iterator<Item = u32> {
    let top = (&raw const _stack_start).addr();
    let from = if (MEMORY..top).contains(&from) { from.next_multiple_of(WORD) } else { top };
    // SAFETY: these are aligned words of memory (memory.x), which any bytes are; one that is in use is any word.
    let word = |at: usize| unsafe { core::ptr::with_exposed_provenance::<u32>(at).read_volatile() };
    (from..top).step_by(WORD).map(word)
}

/// Bytes of the stack that were never used: cortex-m-rt has painted it.
pub fn stack_never_used() -> usize {
    let end = (&raw const _stack_end).addr();
    words(end).take_while(|word| *word == STACK_PAINT_VALUE).count() * WORD
}

/// The calls that led to the place where the stack pointer is this.
fn calls(stack: usize) {
    let (start, end) = (&raw const __stext, (&raw const __etext).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::Thumb };
    say(format_args!("calls that the stack tells of, the last one first; some may be old:\n"));
    for call in words(stack).filter_map(|word| code.call_before(word)).take(SHOWN) {
        say(format_args!("  at {call:#010x}\n"));
    }
}

// SAFETY: called by the processor alone; it only prints.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    begin();
    say(format_args!("\n*** fault\n{frame:#x?}\n  at {:#010x}\n", frame.pc()));
    // The processor has stored the registers on the stack of whoever ran.
    calls(core::ptr::from_ref(frame).addr());
    stop()
}
