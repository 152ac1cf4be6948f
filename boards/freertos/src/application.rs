//! What a board is there for besides serving, at the lowest priority; and the processor's sleep while it is switched off.

use crate::Hardware;
use crate::watch::{COMPUTE, WATCHDOG};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use linerate_firmware::Primes;

static IS_ON: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Switches the work on or off.
pub(crate) fn switch(is_on: bool) {
    IS_ON.store(is_on, Ordering::Relaxed);
}

/// Rounds so far.
pub(crate) fn rounds() -> u32 {
    ROUNDS.load(Ordering::Relaxed)
}

/// The task. A function of its own, so that whoever counts instructions can leave it out.
#[inline(never)]
pub(crate) fn run<H: Hardware>() {
    let mut primes = Primes::new();
    loop {
        if !IS_ON.load(Ordering::Relaxed) {
            WATCHDOG.rests(COMPUTE);
            // Nobody has work: the processor sleeps until the next interrupt.
            H::wait_for_interrupt();
            continue;
        }
        WATCHDOG.turns(COMPUTE);
        primes.step();
        ROUNDS.store(primes.rounds(), Ordering::Relaxed);
    }
}
