//! The log: its last lines are kept in memory.

use alloc::string::String;
use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use critical_section::Mutex;
use linerate_wire::units::Instant;
use log::{LevelFilter, Log, Metadata, Record};

/// Lines that are kept.
const KEPT: usize = 16;

/// The lines, the oldest first. They are shared, so that to take one out of the critical section allocates nothing.
static LINES: Mutex<RefCell<[Option<Arc<str>>; KEPT]>> = Mutex::new(RefCell::new([const { None }; KEPT]));
static CLOCK: Mutex<Cell<Option<Clock>>> = Mutex::new(Cell::new(None));

/// Tells the time since the start.
type Clock = fn() -> Instant;

struct Ring;

impl Log for Ring {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let clock = critical_section::with(|cs| CLOCK.borrow(cs).get());
        let at = clock.map_or(0, |now| now().as_nanos() / 1_000_000);
        let line: Arc<str> = alloc::format!("{at:>8} ms {} {}\n", record.level(), record.args()).into();
        let oldest = critical_section::with(|cs| {
            let mut lines = LINES.borrow_ref_mut(cs);
            lines.rotate_left(1);
            lines[KEPT - 1].replace(line)
        });
        drop(oldest);
    }

    fn flush(&self) {}
}

/// Keeps the last lines that are logged, with the time since the start, which `now` tells.
pub fn to_ring(now: Clock) {
    critical_section::with(|cs| CLOCK.borrow(cs).set(Some(now)));
    // It fails when there is a logger already, and there is none.
    let _is_first = log::set_logger(&Ring).is_ok();
    log::set_max_level(LevelFilter::Info);
}

/// The last lines of the log.
pub fn lines() -> String {
    let lines = critical_section::with(|cs| LINES.borrow_ref(cs).clone());
    lines.iter().flatten().map(|line| &**line).collect()
}
