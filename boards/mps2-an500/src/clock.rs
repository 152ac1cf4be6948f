//! Time, from a timer of 25 MHz that counts down, and another that wakes at a time.

use crate::registers::{read, write};
use core::cell::Cell;
use critical_section::Mutex;
use linerate_wire::units::Instant;

const TIMER0: usize = 0x4000_0000;
const CTRL: usize = TIMER0;
const VALUE: usize = TIMER0 + 4;
const RELOAD: usize = TIMER0 + 8;
const TIMER1: usize = 0x4000_1000;
const WAKE_CTRL: usize = TIMER1;
const WAKE_VALUE: usize = TIMER1 + 4;
const WAKE_RELOAD: usize = TIMER1 + 8;
const WAKE_INTERRUPT: usize = TIMER1 + 12;
const RUN: u32 = 1;
const INTERRUPT: u32 = 8;
const NS_PER_TICK: u64 = 40;

/// The last value of the counter, and how often it has begun anew. It does so every 171 seconds; the network task turns every
/// second.
static SEEN: Mutex<Cell<(u32, u32)>> = Mutex::new(Cell::new((0, 0)));

/// Starts the timer.
pub fn start() {
    write(RELOAD, u32::MAX);
    write(VALUE, u32::MAX);
    write(CTRL, RUN);
}

/// Has the timer's interrupt come after so many nanoseconds, instead of what was asked for before.
pub fn wake_after(ns: u64) {
    let ticks = u32::try_from(ns.div_ceil(NS_PER_TICK)).unwrap_or(u32::MAX).max(1);
    write(WAKE_CTRL, 0);
    write(WAKE_INTERRUPT, 1);
    write(WAKE_RELOAD, ticks);
    write(WAKE_VALUE, ticks);
    write(WAKE_CTRL, RUN | INTERRUPT);
}

/// Once is enough: the timer would begin anew.
pub fn stop_waking() {
    write(WAKE_CTRL, 0);
    write(WAKE_INTERRUPT, 1);
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
    now().as_micros() as u32
}
