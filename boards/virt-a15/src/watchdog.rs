//! The watchdog of this board. The emulator's has none of its own: the alarm of the clock that tells the date (PL031) comes once a second as
//! a fast interrupt, which nothing else here is and nothing masks but a report that is being printed. It asks all who have to make
//! progress.

use crate::registers::{read, write};
use crate::system::watch;
use crate::{critical, interrupts, panic};
use core::sync::atomic::{AtomicU32, Ordering};
use linerate_firmware::LastStart;
use linerate_firmware::watchdog::{Kept, Verdict};

const CLOCK: usize = 0x0901_0000;
const DATE: usize = CLOCK;
const ALARM: usize = CLOCK + 0x04;
const INTERRUPT_MASK: usize = CLOCK + 0x10;
const INTERRUPT_CLEAR: usize = CLOCK + 0x1c;

/// Why the board started, as its words.
static CAUSE: [AtomicU32; Kept::WORDS] = [const { AtomicU32::new(0) }; Kept::WORDS];

// SAFETY: memory.x has this name; only its address is used, that of memory which a start leaves as it is.
unsafe extern "C" {
    static __kept: u8;
}

/// Looks why the board starts; once, at the start.
pub fn note_start() {
    CAUSE.iter().zip(kept().words()).for_each(|(cause, word)| cause.store(word, Ordering::Relaxed));
    keep(kept().start().1);
}

/// Why the board started.
pub fn last_start() -> LastStart {
    let words = core::array::from_fn(|at| CAUSE[at].load(Ordering::Relaxed));
    Kept::new(words).start().0
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
    keep(kept().before_reset(verdict));
    critical::reset()
}

fn address(word: usize) -> usize {
    (&raw const __kept).addr() + word * size_of::<u32>()
}

fn kept() -> Kept {
    Kept::new(core::array::from_fn(|at| read(address(at))))
}

fn keep(kept: Kept) {
    kept.words().into_iter().enumerate().for_each(|(at, word)| write(address(at), word));
}
