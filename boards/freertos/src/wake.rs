//! Who is woken by an interrupt or by another task, and how long after each other the interface interrupted.
//!
//! A handle of a task is copied within the critical section, and FreeRTOS is called after it.

use crate::trace::TRACE;
use core::cell::RefCell;
use critical_section::Mutex;
use freertos_next::{InterruptContext, Task, TaskNotification};
use linerate_firmware::trace::Interrupt;
use linerate_firmware::{INTERVALS, Intervals};
use linerate_wire::units::Instant;

type Sleeper = Mutex<RefCell<Option<Task>>>;

/// Who sleeps until the interface has something, and who until a key is pressed.
static NETWORK: Sleeper = Mutex::new(RefCell::new(None));
static CONSOLE: Sleeper = Mutex::new(RefCell::new(None));
/// How long after each other the interface interrupted.
static FRAMES: Mutex<RefCell<Intervals>> = Mutex::new(RefCell::new(Intervals::new()));

/// The task that the interface's interrupt and the timer's wake.
pub(crate) fn set_network(task: Task) {
    critical_section::with(|cs| NETWORK.borrow_ref_mut(cs).replace(task));
}

/// The task that a key wakes.
pub(crate) fn set_console(task: Task) {
    critical_section::with(|cs| CONSOLE.borrow_ref_mut(cs).replace(task));
}

/// Wakes the network task from another task.
pub(crate) fn network() {
    wake(&NETWORK);
}

/// Wakes the console task from another task.
pub(crate) fn console() {
    wake(&CONSOLE);
}

fn wake(sleeper: &Sleeper) {
    let task = critical_section::with(|cs| sleeper.borrow_ref(cs).clone());
    if let Some(task) = task {
        task.notify(TaskNotification::Increment);
    }
}

/// How long after each other the interface interrupted.
pub(crate) fn intervals() -> [u32; INTERVALS] {
    critical_section::with(|cs| FRAMES.borrow_ref(cs).counts())
}

/// What the interface's interrupt handler calls, once the interface keeps quiet.
pub fn on_frame(now: Instant) {
    let begun = TRACE.begin();
    critical_section::with(|cs| FRAMES.borrow_ref_mut(cs).add(now));
    wake_from_interrupt(&NETWORK);
    TRACE.end(Interrupt::Ethernet, begun);
}

/// What the timer's interrupt handler calls.
pub fn on_time() {
    let begun = TRACE.begin();
    wake_from_interrupt(&NETWORK);
    TRACE.end(Interrupt::Timer, begun);
}

/// What the serial line's interrupt handler calls.
pub fn on_key() {
    let begun = TRACE.begin();
    wake_from_interrupt(&CONSOLE);
    TRACE.end(Interrupt::Serial, begun);
}

fn wake_from_interrupt(sleeper: &Sleeper) {
    let task = critical_section::with(|cs| sleeper.borrow_ref(cs).clone());
    let mut context = InterruptContext::new();
    if let Some(task) = task {
        // A task that was notified already is awake.
        let _is_new = task.notify_from_isr(&mut context, TaskNotification::Increment).is_ok();
    }
}
