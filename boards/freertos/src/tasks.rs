//! The tasks: the one with a period above network, console and application.

use crate::board::Rtos;
use crate::trace::TRACE;
use crate::{Hardware, application, backtrace, console, control, wake, watch};
use freertos_next::{Task, TaskPriority};
use linerate_firmware::{open, run};

/// Bytes of the console's stack, and of the application's and the periodic task's.
const CONSOLE_STACK: usize = 4 << 10;
const APPLICATION_STACK: usize = 2 << 10;

/// Makes the tasks; they begin when the scheduler does.
pub(crate) fn spawn<H: Hardware>() {
    task(watch::NETWORK, 3, H::NETWORK_STACK, network::<H>);
    task(watch::CONSOLE, 2, CONSOLE_STACK, || {
        wake::set_console(Task::current().expect("this is a task"));
        H::enable_keys();
        console::run::<H>();
    });
    task(watch::CONTROL, 4, APPLICATION_STACK, control::run::<H>);
    task(watch::COMPUTE, 0, APPLICATION_STACK, application::run::<H>);
}

/// A task with the name that the watchdog has at this place.
fn task(who: usize, priority: u8, stack: usize, work: fn()) {
    let name = watch::WATCHDOG.name(who);
    let mut builder = Task::new();
    builder.name(name).priority(TaskPriority(priority)).stack_size_bytes(stack);
    let begin = move |_| {
        backtrace::note_stack();
        watch::note_task(who);
        work();
    };
    if builder.start(begin).is_err() {
        panic!("no memory for the task {name}");
    }
}

fn network<H: Hardware>() {
    wake::set_network(Task::current().expect("this is a task"));
    H::enable_timer();
    // From here on it has to get somewhere.
    watch::WATCHDOG.turns(watch::NETWORK);
    let mut board = Rtos::<H>::new();
    match run(&mut board, H::SETTINGS, open::<H>(&TRACE)) {
        Ok(never) => match never {},
        Err(error) => H::print(&alloc::format!("\nthe network ended: {error}\n")),
    }
}
