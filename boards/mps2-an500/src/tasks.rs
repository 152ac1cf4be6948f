//! The tasks: network above console above application.

use crate::board::An500;
use crate::{BUILT_NS, FILES, SETTINGS, application, console, ethernet, interrupts, uart};
use freertos_next::{Task, TaskPriority};
use linerate_firmware::{Parts, run};

/// Bytes of the network task's stack.
const NETWORK_STACK: usize = 48 << 10;

/// Makes the tasks; they begin when the scheduler does.
pub fn spawn() {
    task("network", 3, NETWORK_STACK, network);
    task("console", 2, 4 << 10, || {
        interrupts::set_console(Task::current().expect("this is a task"));
        console::run();
    });
    task("compute", 0, 2 << 10, application::run);
}

fn task(name: &str, priority: u8, stack: usize, work: fn()) {
    let mut builder = Task::new();
    builder.name(name).priority(TaskPriority(priority)).stack_size_bytes(stack);
    if builder.start(move |_| work()).is_err() {
        panic!("no memory for the task {name}");
    }
}

fn network() {
    interrupts::set_network(Task::current().expect("this is a task"));
    let mut board = An500::new();
    let (device, receive) = match ethernet::open() {
        Ok(parts) => parts,
        Err(error) => panic!("{error}"),
    };
    let parts = Parts { device, receive, device_queue: ethernet::QUEUE, flash: FILES, built_ns: BUILT_NS };
    match run(&mut board, &SETTINGS, parts) {
        Ok(never) => match never {},
        Err(error) => uart::print(&alloc::format!("\nthe network ended: {error}\n")),
    }
}
