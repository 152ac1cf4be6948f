//! The tasks: network above console above application.

use crate::board::An500;
use crate::{BUILT_NS, FILES, SETTINGS, console, ethernet, interrupts, uart};
use core::sync::atomic::{AtomicU32, Ordering};
use freertos_next::{Task, TaskPriority};
use linerate_firmware::{Parts, run};

/// Rounds of the application's work so far.
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Makes the tasks; they begin when the scheduler does.
pub fn spawn() {
    task("network", 3, 24 << 10, network);
    task("console", 2, 4 << 10, || {
        interrupts::set_console(Task::current().expect("this is a task"));
        console::run();
    });
    task("compute", 0, 2 << 10, compute);
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

/// What the board is there for besides serving: here a sum that never ends.
fn compute() {
    loop {
        ROUNDS.fetch_add(1, Ordering::Relaxed);
        cortex_m::asm::wfi();
    }
}
