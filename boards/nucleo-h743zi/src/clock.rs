//! Time, from a timer of 10 MHz, which also wakes at a time; the date is that of the build, there is no battery.

use crate::rates::TIMER_HZ;
use core::cell::Cell;
use critical_section::Mutex;
use embassy_stm32::pac::{RCC, TIM2};
use linerate_wire::units::Instant;

const HZ: u32 = 10_000_000;
const NS_PER_TICK: u64 = 100;
/// The channel that compares.
const WAKE: usize = 0;

/// The last value of the counter, and how often it has begun anew. It does so every 429 seconds; the loop turns every second.
static SEEN: Mutex<Cell<(u32, u32)>> = Mutex::new(Cell::new((0, 0)));
/// The date when it began, in ns since 1970.
static EPOCH_NS: Mutex<Cell<i64>> = Mutex::new(Cell::new(0));

/// Starts the timer, in an image that was built at `built_ns`.
pub fn start(built_ns: i64) {
    RCC.apb1lenr().modify(|w| w.set_tim2en(true));
    TIM2.psc().write_value((TIMER_HZ / HZ - 1) as u16);
    TIM2.arr().write_value(u32::MAX);
    // The divider counts from the next update on.
    TIM2.egr().write(|w| w.set_ug(true));
    TIM2.sr().write(|w| w.set_uif(false));
    TIM2.cr1().write(|w| w.set_cen(true));
    critical_section::with(|cs| EPOCH_NS.borrow(cs).set(built_ns));
}

fn ticks() -> u64 {
    critical_section::with(|cs| {
        let (last, mut rounds) = SEEN.borrow(cs).get();
        let low = TIM2.cnt().read();
        rounds += u32::from(low < last);
        SEEN.borrow(cs).set((low, rounds));
        u64::from(rounds) << 32 | u64::from(low)
    })
}

/// Time since the start.
pub fn now() -> Instant {
    Instant::from_nanos(ticks() * NS_PER_TICK)
}

/// The date in ns since 1970.
pub fn wall_ns() -> i64 {
    critical_section::with(|cs| EPOCH_NS.borrow(cs).get()) + now().as_nanos() as i64
}

/// Has the timer interrupt at `at`, which is not further away than it counts.
pub fn wake_at(at: Instant) {
    TIM2.ccr(WAKE).write_value(at.as_nanos().div_ceil(NS_PER_TICK) as u32);
    stop_waking();
    TIM2.dier().write(|w| w.set_ccie(WAKE, true));
}

/// The interrupt has come, or is not wanted any more.
pub fn stop_waking() {
    TIM2.dier().write(|w| w.set_ccie(WAKE, false));
    // Flags are cleared by zeros; ones leave them.
    TIM2.sr().write(|w| {
        w.0 = !0;
        w.set_ccif(WAKE, false);
    });
}
