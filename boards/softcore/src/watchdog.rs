//! The watchdog of this board: while the loop works, the timer is its and the only interrupt that is ever taken. It asks once a second
//! whether the loop has turned. The board has no reset; the image begins again with what it began with.

use crate::registers::{read, write};
use crate::{SETTINGS, clock, ethernet, panic, processor};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use linerate_firmware::watchdog::{CHECK_NS, Verdict};
use linerate_firmware::{LastStart, Starts, Watchdog};

/// It watches the loop, which is the only one.
pub static WATCHDOG: Watchdog<1> = Watchdog::new(["network"], SETTINGS.watchdog);
pub const NETWORK: usize = 0;

/// Whether this image has one.
pub const IS_THERE: bool = SETTINGS.watchdog > 0;

/// How often it asks. A hang on purpose makes it a millisecond, as every clock is simulated.
static EVERY_NS: AtomicU32 = AtomicU32::new(CHECK_NS as u32);
const HURRY_NS: u32 = 1_000_000;

/// Why the board started.
static STARTS: Starts = Starts::new(|word| read(address(word)), |word, value| write(address(word), value));

// SAFETY: the linker script has the first name, and start.s the second: memory which a start leaves as it is, and where the image begins
// again, which takes nothing and never returns. Only their addresses are used.
unsafe extern "C" {
    static __kept: u8;
    static _start_anew: u8;
}

/// Looks why the board starts; once, at the start.
pub fn note_start() {
    STARTS.note();
}

/// Why the board started.
pub fn last_start() -> LastStart {
    STARTS.last()
}

/// From here on the timer is the watchdog's.
pub fn listen() {
    if IS_THERE {
        next();
        processor::hear_timer();
    }
}

/// From here on nothing interrupts, everything ends a sleep, and the timer is the loop's.
pub fn sleep() {
    if IS_THERE {
        processor::hear_nothing();
    }
}

/// Has it ask each millisecond, until the next start.
pub fn hurry() {
    EVERY_NS.store(HURRY_NS, Ordering::Relaxed);
    listen();
}

fn next() {
    clock::wake_at(clock::now() + Duration::from_nanos(EVERY_NS.load(Ordering::Relaxed).into()));
}

/// Its interrupt. `registers` are those of the loop.
pub fn on_time(registers: &[u32; 32]) {
    next();
    if let Some(verdict @ Verdict::Stuck(_)) = WATCHDOG.check() {
        panic::report_stuck(registers);
        start_anew(verdict)
    }
}

/// The end of a report: the board starts anew when as much time has passed as without progress; unless there is no watchdog.
pub fn wait_and_start_anew() -> ! {
    let seconds = WATCHDOG.seconds();
    if IS_THERE && seconds > 0 {
        let until = clock::now() + Duration::from_secs(seconds.into());
        while clock::now() < until {}
        start_anew(Verdict::Ended)
    }
    loop {
        processor::wait_for_interrupt();
    }
}

fn start_anew(verdict: Verdict) -> ! {
    STARTS.before_reset(verdict);
    ethernet::silence();
    processor::go_to((&raw const _start_anew).addr())
}

fn address(word: usize) -> usize {
    (&raw const __kept).addr() + word * size_of::<u32>()
}
