//! What a board is there for besides serving: here the search for the largest prime below a bound, over and over, at the
//! lowest priority; and the processor's sleep while it is switched off. How many rounds it makes while the network is busy
//! says what the network leaves of the processor.

use crate::Hardware;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const BOUND: u32 = 65_536;

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
    loop {
        if !IS_ON.load(Ordering::Relaxed) {
            // Nobody has work: the processor sleeps until the next interrupt.
            H::wait_for_interrupt();
            continue;
        }
        let is_prime =
            |number: &u32| (2..).take_while(|by| by * by <= *number).all(|by| !number.is_multiple_of(by));
        core::hint::black_box((2..core::hint::black_box(BOUND)).rev().find(is_prime));
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
}
