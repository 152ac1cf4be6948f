//! Time, from a timer of 25 MHz that counts down.

use crate::registers::{read, write};
use core::cell::Cell;
use critical_section::Mutex;
use linerate_wire::units::Instant;

const TIMER0: usize = 0x4000_0000;
const CTRL: usize = TIMER0;
const VALUE: usize = TIMER0 + 4;
const RELOAD: usize = TIMER0 + 8;
const NS_PER_TICK: u64 = 40;

/// The last value of the counter, and how often it has begun anew. It does so every 171 seconds; the network task turns every
/// second.
static SEEN: Mutex<Cell<(u32, u32)>> = Mutex::new(Cell::new((0, 0)));

/// Starts the timer.
pub fn start() {
    write(RELOAD, u32::MAX);
    write(VALUE, u32::MAX);
    write(CTRL, 1);
}

fn ticks() -> u64 {
    critical_section::with(|cs| {
        let (last, mut rounds) = SEEN.borrow(cs).get();
        let low = u32::MAX - read(VALUE);
        rounds += u32::from(low < last);
        SEEN.borrow(cs).set((low, rounds));
        u64::from(rounds) << 32 | u64::from(low)
    })
}

/// Time since the start.
pub fn now() -> Instant {
    Instant::from_nanos(ticks() * NS_PER_TICK)
}

/// Microseconds since the start, for FreeRTOS, which counts what each task has of them.
// SAFETY: no other function has this name; the header freertos/UserConfig.h declares it with this type.
#[unsafe(no_mangle)]
extern "C" fn board_microseconds() -> u32 {
    (ticks() / 25) as u32
}
