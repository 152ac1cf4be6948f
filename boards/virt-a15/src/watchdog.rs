//! The watchdog of this board. The emulator's has none of its own: the alarm of the clock that tells the date (PL031) comes once a second as
//! a fast interrupt, which nothing else here is and nothing masks but a report that is being printed. It asks all who have to make
//! progress.

use crate::registers::{read, write};
use crate::system::watch;
use crate::{critical, interrupts, panic};
use linerate_firmware::watchdog::Verdict;
use linerate_firmware::{LastStart, Starts};

const CLOCK: usize = 0x0901_0000;
const DATE: usize = CLOCK;
const ALARM: usize = CLOCK + 0x04;
const INTERRUPT_MASK: usize = CLOCK + 0x10;
const INTERRUPT_CLEAR: usize = CLOCK + 0x1c;

/// Why the board started.
static STARTS: Starts = Starts::new(|word| read(address(word)), |word, value| write(address(word), value));

// SAFETY: memory.x has this name; only its address is used, that of memory which a start leaves as it is.
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
    next();
    write(INTERRUPT_MASK, 1);
    interrupts::enable_watchdog();
}

/// It comes again in a second.
fn next() {
    write(INTERRUPT_CLEAR, 1);
    write(ALARM, read(DATE).wrapping_add(1));
}

/// Its interrupt. `registers` are those of whatever runs.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_watchdog(registers: &panic::Registers) {
    next();
    interrupts::end_watchdog();
    let Some(verdict) = watch::check() else { return };
    if let Verdict::Stuck(who) = verdict {
        panic::report_stuck(who, registers);
    }
    STARTS.before_reset(verdict);
    critical::reset()
}

fn address(word: usize) -> usize {
    (&raw const __kept).addr() + word * size_of::<u32>()
}
