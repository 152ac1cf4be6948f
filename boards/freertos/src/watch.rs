//! The watchdog of boards under FreeRTOS: whom it watches, and where one that is stuck waits.
//!
//! FreeRTOS is asked for nothing but which task runs: its state may be what broke.

use crate::backtrace;
use core::fmt::Arguments;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use freertos_next::{Task, freertos_rs_task_get_name, str_from_c_string};
use linerate_firmware::Watchdog;
use linerate_firmware::backtrace::Code;
use linerate_firmware::watchdog::Verdict;

/// The tasks by their places: the network, which turns once a second at least;
pub(crate) const NETWORK: usize = 0;
/// the console, which rests until a key or an answer comes;
pub(crate) const CONSOLE: usize = 1;
/// the task with a period, and the application, which rest while they are switched off.
pub(crate) const CONTROL: usize = 2;
pub(crate) const COMPUTE: usize = 3;
const TASKS: usize = 4;

/// The watchdog.
pub(crate) static WATCHDOG: Watchdog<TASKS> = Watchdog::new(["network", "console", "control", "compute"], 0);

/// What FreeRTOS calls each of them.
static HANDLES: [AtomicUsize; TASKS] = [const { AtomicUsize::new(0) }; TASKS];

/// The task at this place begins.
pub(crate) fn note_task(who: usize) {
    let own = Task::current().expect("this is a task");
    HANDLES[who].store(own.raw_handle().expose_provenance(), Ordering::Relaxed);
}

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

/// The task that runs, or that was interrupted.
pub fn print_task(mut say: impl FnMut(Arguments<'_>)) {
    let Ok(task) = Task::current() else { return };
    // SAFETY: the handle is that of a task, whose name lies in it and ends with a zero. A copy of it would want memory, which
    // FreeRTOS does not give within an exception.
    let name = unsafe { str_from_c_string(freertos_rs_task_get_name(task.raw_handle())) };
    if let Ok(name) = name {
        say(format_args!("in task {name}"));
    }
}

/// Says which calls led to where the task at this place waits, unless it is the one that runs.
///
/// # Safety
/// `memory` is mapped, and nothing but the caller runs: no task, no interrupt.
pub unsafe fn print_waiting(
    who: usize,
    memory: Range<usize>,
    code: &Code<'_>,
    mut say: impl FnMut(Arguments<'_>),
) {
    let handle = HANDLES[who].load(Ordering::Relaxed);
    let running = Task::current().map_or(0, |task| task.raw_handle().addr());
    if handle == running || !memory.contains(&handle) {
        return;
    }
    // SAFETY: the handle is that of a task, whose first word is the pointer to its stack, stored when it last ran (tskTCB's
    // pxTopOfStack, which the assembly of all ports finds there); nothing changes it meanwhile, says the caller.
    let stack = unsafe { core::ptr::with_exposed_provenance::<usize>(handle).read_volatile() };
    say(format_args!("task {} waits, by its own stack:\n", WATCHDOG.name(who)));
    // SAFETY: as this function's.
    unsafe { backtrace::print(stack, memory, code, say) };
}
