//! The watchdog of boards under Embassy: whom it watches.

use crate::tasks;
use core::fmt::Arguments;
use core::ops::Range;
use linerate_firmware::Watchdog;
use linerate_firmware::backtrace::Code;
use linerate_firmware::watchdog::Verdict;

/// The tasks by their places: the network, which turns once a second at least;
pub(crate) const NETWORK: usize = 0;
/// the console, which rests until a key or an answer comes;
pub(crate) const CONSOLE: usize = 1;
/// and the application, which rests while it is switched off.
pub(crate) const COMPUTE: usize = 2;
pub(crate) const TASKS: usize = 3;

/// The watchdog.
pub(crate) static WATCHDOG: Watchdog<TASKS> = Watchdog::new(["network", "console", "compute"], 0);

/// What the interrupt of the watchdog calls once a second: what is to be done, if anything.
pub fn check() -> Option<Verdict> {
    WATCHDOG.check()
}

/// A panic or a fault is about to be reported: nobody makes progress any more, and the board is started anew later.
pub fn end() {
    WATCHDOG.end();
}

/// The first line about a task that is stuck, by its place.
pub fn print_stuck(who: usize, say: impl FnMut(Arguments<'_>)) {
    WATCHDOG.say_stuck(who, say);
}

/// The task that is being polled.
pub fn print_task(mut say: impl FnMut(Arguments<'_>)) {
    if let Some(who) = tasks::running() {
        say(format_args!("in task {}", WATCHDOG.name(who)));
    }
}

/// Says that a task waits, unless it is the one that is being polled: it has no stack that would tell where.
///
/// # Safety
/// None is needed here; FreeRTOS' tasks have stacks, which that function of this name reads.
pub unsafe fn print_waiting(who: usize, _: Range<usize>, _: &Code<'_>, mut say: impl FnMut(Arguments<'_>)) {
    if tasks::running() != Some(who) {
        say(format_args!("task {} waits to be woken or polled\n", WATCHDOG.name(who)));
    }
}
