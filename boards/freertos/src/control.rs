//! A task with a period of a tick, above the network: how late it comes to run, which is what the network and its interrupts do to a
//! control loop beside them.

use crate::Hardware;
use crate::watch::{CONTROL, WATCHDOG};
use alloc::string::String;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use critical_section::Mutex;
use freertos_next::{CurrentTask, Duration, Task, TaskNotification};
use linerate_firmware::Latency;

/// What `help` says of it.
pub(crate) const HELP: &str =
    "latency   how late a task runs that is due each millisecond; latency on and latency off switch it\n";
/// A tick of FreeRTOS (`configTICK_RATE_HZ` is 1,000).
const TICK_NS: u64 = 1_000_000;

static IS_ON: AtomicBool = AtomicBool::new(false);
static HANGS: AtomicBool = AtomicBool::new(false);
static LATENCY: Mutex<RefCell<Latency>> = Mutex::new(RefCell::new(Latency::new()));
static TASK: Mutex<RefCell<Option<Task>>> = Mutex::new(RefCell::new(None));

/// The task. While it is off it is asleep.
pub(crate) fn run<H: Hardware>() {
    let own = Task::current().expect("this is a task");
    critical_section::with(|cs| TASK.borrow_ref_mut(cs).replace(own));
    loop {
        if !IS_ON.load(Ordering::Relaxed) {
            WATCHDOG.rests(CONTROL);
            CurrentTask::take_notification(true, Duration::infinite());
            WATCHDOG.turns(CONTROL);
            if HANGS.load(Ordering::Relaxed) {
                wait_on_purpose();
            }
            continue;
        }
        WATCHDOG.turns(CONTROL);
        let now = H::now();
        critical_section::with(|cs| LATENCY.borrow_ref_mut(cs).add(now, TICK_NS));
        CurrentTask::delay(Duration::ticks(1));
    }
}

/// Switches it on, from nothing, or off.
pub(crate) fn switch(is_on: bool) {
    if is_on {
        critical_section::with(|cs| LATENCY.borrow_ref_mut(cs).clone_from(&Latency::new()));
    }
    IS_ON.store(is_on, Ordering::Relaxed);
    wake();
}

/// Lets it wait for what never comes, to show what the watchdog does.
pub(crate) fn hang() {
    HANGS.store(true, Ordering::Relaxed);
    switch(false);
}

/// Never comes back, and leaves the processor to others meanwhile. A function of its own, so that there is a name to be found in the report.
#[inline(never)]
fn wait_on_purpose() {
    while core::hint::black_box(true) {
        CurrentTask::take_notification(true, Duration::infinite());
    }
}

fn wake() {
    let task = critical_section::with(|cs| TASK.borrow_ref(cs).clone());
    if let Some(task) = task {
        task.notify(TaskNotification::Increment);
    }
}

/// What was measured.
pub(crate) fn report() -> String {
    critical_section::with(|cs| *LATENCY.borrow_ref(cs)).report()
}
