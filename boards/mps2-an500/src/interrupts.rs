//! The interrupts of this board that are used, and who is woken by them.

use crate::{clock, ethernet, uart};
use core::cell::{Cell, RefCell};
use cortex_m::peripheral::NVIC;
use critical_section::Mutex;
use freertos_next::{InterruptContext, Task, TaskNotification};
use linerate_firmware::INTERVALS;

/// Lines of the interrupt controller.
const UART0_RECEIVE: u16 = 0;
const TIMER1: u16 = 9;
const ETHERNET: u16 = 13;
const LINES: usize = 32;
/// Below what FreeRTOS may be called from (`build.rs`).
const PRIORITY: u8 = 0xc0;

/// Who sleeps until the interface has something, and who until a key is pressed.
static NETWORK: Mutex<RefCell<Option<Task>>> = Mutex::new(RefCell::new(None));
static CONSOLE: Mutex<RefCell<Option<Task>>> = Mutex::new(RefCell::new(None));
/// When the interface interrupted last, in microseconds, and how often so long after the time before.
static LAST_US: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));
static HISTOGRAM: Mutex<Cell<[u32; INTERVALS]>> = Mutex::new(Cell::new([0; INTERVALS]));

/// A line of the interrupt controller.
#[derive(Clone, Copy)]
struct Line(u16);

// SAFETY: the numbers are those of the board, below the number of its lines.
unsafe impl cortex_m::interrupt::InterruptNumber for Line {
    fn number(self) -> u16 {
        self.0
    }
}

type Handler = unsafe extern "C" fn();

// SAFETY: provided by cortex-m-rt.
unsafe extern "C" {
    fn DefaultHandler();
}

/// The part of the vector table that is the board's.
// SAFETY: cortex-m-rt expects it under this name in this section, one pointer to a handler for each line.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Handler; LINES] = {
    let mut table: [Handler; LINES] = [DefaultHandler; LINES];
    table[UART0_RECEIVE as usize] = on_key;
    table[TIMER1 as usize] = on_time;
    table[ETHERNET as usize] = on_frame;
    table
};

/// The task that the interface's interrupt and the timer's wake.
pub fn set_network(task: Task) {
    critical_section::with(|cs| NETWORK.borrow_ref_mut(cs).replace(task));
    enable(Line(TIMER1));
}

/// The task that a key wakes.
pub fn set_console(task: Task) {
    critical_section::with(|cs| CONSOLE.borrow_ref_mut(cs).replace(task));
    enable(Line(UART0_RECEIVE));
}

/// Wakes the network task from another task.
pub fn wake_network() {
    let task = critical_section::with(|cs| NETWORK.borrow_ref(cs).clone());
    if let Some(task) = task {
        task.notify(TaskNotification::Increment);
    }
}

/// Wakes the console task from another task.
pub fn wake_console() {
    let task = critical_section::with(|cs| CONSOLE.borrow_ref(cs).clone());
    if let Some(task) = task {
        task.notify(TaskNotification::Increment);
    }
}

/// Lets the interface interrupt.
pub fn enable_ethernet() {
    enable(Line(ETHERNET));
}

fn enable(line: Line) {
    // SAFETY: only this function writes priorities, before the line is enabled; unmasking breaks no critical section that a
    // mask of lines would be, as there is none.
    unsafe {
        let mut core = cortex_m::Peripherals::steal();
        core.NVIC.set_priority(line, PRIORITY);
        NVIC::unmask(line);
    }
}

/// How long after each other the interface interrupted.
pub fn intervals() -> [u32; INTERVALS] {
    critical_section::with(|cs| HISTOGRAM.borrow(cs).get())
}

extern "C" fn on_frame() {
    ethernet::hold_interrupts();
    let now = clock::now().as_nanos() / 1_000;
    critical_section::with(|cs| {
        let since = now - LAST_US.borrow(cs).replace(now);
        let place = since.max(1).ilog2() as usize;
        let mut histogram = HISTOGRAM.borrow(cs).get();
        histogram[place.min(INTERVALS - 1)] += 1;
        HISTOGRAM.borrow(cs).set(histogram);
    });
    wake(&NETWORK);
}

extern "C" fn on_time() {
    clock::stop_waking();
    wake(&NETWORK);
}

extern "C" fn on_key() {
    uart::acknowledge();
    wake(&CONSOLE);
}

fn wake(task: &Mutex<RefCell<Option<Task>>>) {
    let task = critical_section::with(|cs| task.borrow_ref(cs).clone());
    let mut context = InterruptContext::new();
    if let Some(task) = task {
        // A task that was notified already is awake.
        let _is_new = task.notify_from_isr(&mut context, TaskNotification::Increment).is_ok();
    }
}
