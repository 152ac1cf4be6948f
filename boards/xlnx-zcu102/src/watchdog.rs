//! The watchdog of each core. The emulator's chip has none of its own: the core's physical timer comes once a second as the only interrupt
//! that is ever taken here, while the loop works; where the loop sleeps it is asked for as the others are. It asks whether the core's
//! loop has turned.

use crate::registers::{read, write};
use crate::{SETTINGS, clock, interrupts, panic, processor, uart};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use linerate_firmware::watchdog::Verdict;
use linerate_firmware::{LastStart, Starts, Watchdog};

/// Soft reset of the whole chip (UG1087, module CRL_APB, `RESET_CTRL`), for an image without a monitor.
const RESET_CONTROL: usize = 0xff5e_0218;
const SOFT_RESET: u32 = 1 << 4;

/// Each core's, which watches its loop.
pub static CORES: [Watchdog<1>; crate::cores::MOST] = [
    Watchdog::new(["network"], SETTINGS.watchdog),
    Watchdog::new(["network 1"], SETTINGS.watchdog),
    Watchdog::new(["network 2"], SETTINGS.watchdog),
    Watchdog::new(["network 3"], SETTINGS.watchdog),
];
/// Of what each of them watches, the only one.
pub const NETWORK: usize = 0;

/// Why the board started; and the exception level that the image began at.
static STARTS: Starts = Starts::new(|word| read(address(word)), |word, value| write(address(word), value));
static LEVEL: AtomicU32 = AtomicU32::new(0);

// SAFETY: memory.x has this name; only its address is used, that of memory which a start leaves as it is.
unsafe extern "C" {
    static __kept: u8;
}

/// Whether this image has one.
pub const IS_THERE: bool = SETTINGS.watchdog > 0;

/// Looks why the board starts; once, at the start.
pub fn note_start(level: u64) {
    LEVEL.store(level as u32, Ordering::Relaxed);
    STARTS.note();
}

/// Whether there is a monitor above this level.
pub fn has_monitor() -> bool {
    LEVEL.load(Ordering::Relaxed) < 3
}

/// Why the board started.
pub fn last_start() -> LastStart {
    STARTS.last()
}

/// Switches on this core's.
pub fn start() {
    if IS_THERE {
        ask_in_a_second();
        interrupts::enable_watchdog();
        listen();
    }
}

fn ask_in_a_second() {
    processor::watchdog_after(clock::hz());
}

/// From here on nothing but the watchdog interrupts, while this core's loop works.
pub fn listen() {
    if IS_THERE {
        interrupts::hear_watchdog();
        processor::unmask();
    }
}

/// From here on nothing interrupts, and everything ends a sleep.
pub fn sleep() {
    if IS_THERE {
        processor::mask();
        interrupts::hear_all();
    }
}

/// This core's was due while it slept: it is asked for in between, and nothing is to be saved.
pub fn hear() {
    ask_in_a_second();
    if let Some(Verdict::Stuck(_)) = CORES[processor::core()].check() {
        panic!("watchdog: nothing ends the sleep of this core");
    }
}

/// Carries out the command `watchdog`: for all cores.
pub fn command(line: &str) -> Option<alloc::string::String> {
    let answers = CORES.each_ref().map(|core| core.command(line, IS_THERE, last_start()));
    answers.into_iter().next().flatten()
}

/// Its interrupt, on any core. `registers` are those of the loop.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_watchdog(registers: &panic::Registers) {
    let Some(due) = interrupts::take() else { return };
    ask_in_a_second();
    due.end();
    let core = processor::core();
    let Some(verdict) = CORES[core].check() else { return };
    panic::report_stuck(&CORES[core], registers);
    reset(verdict)
}

/// The end of a report: the board starts anew when as much time has passed as without progress, or at once where the clock has not
/// started, so that no time passes; unless there is no watchdog.
pub fn wait_and_reset() -> ! {
    let seconds = CORES[processor::core()].seconds();
    if IS_THERE && seconds > 0 {
        if clock::hz() > 0 {
            let until = clock::now() + Duration::from_secs(seconds.into());
            while clock::now() < until {}
        }
        reset(Verdict::Ended)
    }
    loop {
        processor::wait_for_interrupt();
    }
}

fn reset(verdict: Verdict) -> ! {
    STARTS.before_reset(verdict);
    // The end of the report, which the reset would take out of the line's FIFO.
    uart::drain();
    if has_monitor() {
        processor::reset()
    }
    write(RESET_CONTROL, SOFT_RESET);
    loop {
        processor::wait_for_interrupt();
    }
}

fn address(word: usize) -> usize {
    (&raw const __kept).addr() + word * size_of::<u32>()
}
