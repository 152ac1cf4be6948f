//! The executor, and the processor's sleep while no task is to be polled.

use crate::tasks::{self, Task};
use crate::{Hardware, Memory, heap, stack, trace, watch};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};
use embassy_executor::raw::{Executor, TaskStorage};
use linerate_firmware::log;

/// A task was woken since they were polled.
static PENDING: AtomicBool = AtomicBool::new(true);

/// What the executor calls when a task is woken, from wherever that happens.
// SAFETY: the name and the type are those that the executor demands.
#[unsafe(export_name = "__pender")]
fn pend(_: *mut ()) {
    PENDING.store(true, Ordering::Relaxed);
}

/// Makes the tasks and polls them for ever.
///
/// # Safety
/// The heap is nobody else's, and this is called once, on that stack, which is mapped.
pub unsafe fn start<H: Hardware>(memory: Memory) -> ! {
    // SAFETY: the caller's promises.
    unsafe {
        heap::start(memory.heap);
        stack::start(memory.stack);
    }
    log::to_ring(H::now);
    trace::TRACE.prepare(H::SETTINGS.trace, H::now);
    if H::SETTINGS.watchdog > 0 {
        watch::WATCHDOG.set(H::SETTINGS.watchdog);
        H::start_watchdog();
    }
    run::<H>(tasks::all::<H>())
}

/// Polls these for ever.
fn run<H: Hardware>(tasks: impl IntoIterator<Item = Task>) -> ! {
    let executor = Box::leak(Box::new(Executor::new(core::ptr::null_mut())));
    for task in tasks {
        let storage = Box::leak(Box::new(TaskStorage::new()));
        match storage.spawn(|| task) {
            Ok(token) => executor.spawner().spawn(token),
            Err(error) => panic!("a task did not start: {error:?}"),
        }
    }
    loop {
        // SAFETY: nobody else polls it, and it is not polled in a task: those have no handle of it.
        unsafe { executor.poll() };
        sleep::<H>();
    }
}

/// Sleeps until an interrupt, unless a task was woken. A function of its own, so that whoever counts instructions can leave it out.
#[inline(never)]
fn sleep<H: Hardware>() {
    // What comes between the question and the sleep waits for the end of the section, and ends the sleep.
    critical_section::with(|_| {
        if !PENDING.swap(false, Ordering::Relaxed) {
            H::wait_for_interrupt();
        }
    });
}
