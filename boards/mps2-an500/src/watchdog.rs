//! The watchdog of this board: that of the chip (CMSDK APB watchdog), which interrupts where nothing else can, once a second, and resets
//! the board when nobody hears it twice. In between all who have to make progress are asked.

use crate::panic;
use crate::registers::{read, write};
use core::arch::global_asm;
use cortex_m::peripheral::SCB;
use cortex_m_rt::ExceptionFrame;
use linerate_firmware::watchdog::{CHECK_NS, Verdict};
use linerate_firmware::{LastStart, Starts};
use linerate_firmware_freertos::watch;

const BASE: usize = 0x4000_8000;
const LOAD: usize = BASE;
const CONTROL: usize = BASE + 0x08;
const CLEAR_INTERRUPT: usize = BASE + 0x0c;
const LOCK: usize = BASE + 0xc00;

/// What opens the registers for writing.
const KEY: u32 = 0x1acc_e551;
const INTERRUPT: u32 = 1;
const RESET: u32 = 2;
const NS_PER_TICK: u64 = 40;
const SECOND: u32 = (CHECK_NS / NS_PER_TICK) as u32;

/// Of what an exception returns with: that what it interrupted used the stack of a task.
const OF_A_TASK: u32 = 4;

/// Why the board started.
static STARTS: Starts = Starts::new(|word| read(address(word)), |word, value| write(address(word), value));

// SAFETY: the linker script has this name; only its address is used, that of memory which a start leaves as it is.
unsafe extern "C" {
    static __kept: u8;
}

/// Looks why the board starts; once, at the start.
pub fn note_start() {
    STARTS.note();
}

/// Why the board started.
pub fn last_start() -> LastStart {
    STARTS.last()
}

/// Switches it on.
pub fn start() {
    write(LOCK, KEY);
    write(LOAD, SECOND);
    write(CONTROL, INTERRUPT | RESET);
}

// It interrupts as no other can, masked interrupts or not. Where what was interrupted has stored its registers is told by what this
// exception returns with, and the two stack pointers; the handler returns there itself.
global_asm!(
    ".syntax unified",
    ".section .text.NonMaskableInt, \"ax\"",
    ".thumb_func",
    ".type NonMaskableInt, %function",
    ".global NonMaskableInt",
    "NonMaskableInt:",
    "mov r0, lr",
    "mrs r1, msp",
    "mrs r2, psp",
    "b board_watchdog",
    ".size NonMaskableInt, . - NonMaskableInt",
);

// SAFETY: no other function has this name; only the exception above calls it.
#[unsafe(no_mangle)]
extern "C" fn board_watchdog(returns_with: u32, main_stack: usize, task_stack: usize) {
    // From here on there are two seconds until the reset, whatever becomes of what follows.
    write(CLEAR_INTERRUPT, 1);
    let Some(verdict) = watch::check() else { return };
    if let Verdict::Stuck(who) = verdict {
        let stack = if returns_with & OF_A_TASK != 0 { task_stack } else { main_stack };
        // SAFETY: the processor has just stored the registers there, as it does with every exception.
        let frame = unsafe { &*core::ptr::with_exposed_provenance::<ExceptionFrame>(stack) };
        panic::report_stuck(who, frame);
    }
    STARTS.before_reset(verdict);
    SCB::sys_reset()
}

fn address(word: usize) -> usize {
    (&raw const __kept).addr() + word * size_of::<u32>()
}
