//! What a board is there for besides serving: a task that does a little and gives way, again and again.

use crate::wake;
use crate::watch::{COMPUTE, WATCHDOG};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use linerate_firmware::Primes;

static IS_ON: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Switches the work on or off.
pub(crate) fn switch(is_on: bool) {
    IS_ON.store(is_on, Ordering::Relaxed);
    wake::COMPUTE.set();
}

/// Rounds so far.
pub(crate) fn rounds() -> u32 {
    ROUNDS.load(Ordering::Relaxed)
}

/// The task.
pub(crate) async fn run() {
    let mut primes = Primes::new();
    loop {
        if !IS_ON.load(Ordering::Relaxed) {
            WATCHDOG.rests(COMPUTE);
            wake::COMPUTE.wait().await;
            continue;
        }
        WATCHDOG.turns(COMPUTE);
        primes.step();
        ROUNDS.store(primes.rounds(), Ordering::Relaxed);
        wake::give_way().await;
    }
}
