//! The tasks: the one with a period above network, console and application.

use crate::board::Rtos;
use crate::trace::TRACE;
use crate::{Hardware, application, backtrace, console, control, wake};
use freertos_next::{Task, TaskPriority};
use linerate_firmware::{Parts, run};

/// Bytes of the console's stack, and of the application's and the periodic task's.
const CONSOLE_STACK: usize = 4 << 10;
const APPLICATION_STACK: usize = 2 << 10;

/// Makes the tasks; they begin when the scheduler does.
pub(crate) fn spawn<H: Hardware>() {
    task("network", 3, H::NETWORK_STACK, network::<H>);
    task("console", 2, CONSOLE_STACK, || {
        wake::set_console(Task::current().expect("this is a task"));
        H::enable_keys();
        console::run::<H>();
    });
    task("control", 4, APPLICATION_STACK, control::run::<H>);
    task("compute", 0, APPLICATION_STACK, application::run::<H>);
}

fn task(name: &str, priority: u8, stack: usize, work: fn()) {
    let mut builder = Task::new();
    builder.name(name).priority(TaskPriority(priority)).stack_size_bytes(stack);
    let begin = move |_| {
        backtrace::note_stack();
        work();
    };
    if builder.start(begin).is_err() {
        panic!("no memory for the task {name}");
    }
}

fn network<H: Hardware>() {
    wake::set_network(Task::current().expect("this is a task"));
    H::enable_timer();
    let mut board = Rtos::<H>::new();
    let opened = match H::open() {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    };
    let parts = Parts {
        device: opened.device,
        receive: opened.receive,
        device_queue: opened.queue,
        batch: opened.batch,
        flash: H::FILES,
        built_ns: H::BUILT_NS,
        tracer: &TRACE,
        exchange: None,
    };
    match run(&mut board, H::SETTINGS, parts) {
        Ok(never) => match never {},
        Err(error) => H::print(&alloc::format!("\nthe network ended: {error}\n")),
    }
}
