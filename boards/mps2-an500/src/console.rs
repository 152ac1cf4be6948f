//! The console: a task of its own, which hands commands to the network task and prints what that answers.

use crate::{interrupts, uart};
use alloc::collections::VecDeque;
use alloc::string::String;
use core::cell::RefCell;
use core::fmt::Write;
use critical_section::Mutex;
use freertos_next::{CurrentTask, Duration};
use linerate_firmware::console::{Key, Line, PROMPT};
use log::{LevelFilter, Log, Metadata, Record};

/// Lines of the log that are kept.
const KEPT: usize = 16;

static COMMAND: Mutex<RefCell<Option<String>>> = Mutex::new(RefCell::new(None));
static ANSWER: Mutex<RefCell<Option<String>>> = Mutex::new(RefCell::new(None));
static LOG: Mutex<RefCell<VecDeque<String>>> = Mutex::new(RefCell::new(VecDeque::new()));

/// A command that waits for the network task.
pub fn take_command() -> Option<String> {
    critical_section::with(|cs| COMMAND.borrow_ref_mut(cs).take())
}

/// The network task's answer.
pub fn answer(text: String) {
    let before = critical_section::with(|cs| ANSWER.borrow_ref_mut(cs).replace(text));
    drop(before);
    interrupts::wake_console();
}

/// The task: keys in, answers out. It sleeps until there is one of them.
pub fn run() {
    let mut line = Line::default();
    loop {
        let answer = critical_section::with(|cs| ANSWER.borrow_ref_mut(cs).take());
        if let Some(text) = answer {
            uart::print(&text);
            uart::print(PROMPT);
        }
        while let Some(byte) = uart::take() {
            match line.key(byte) {
                Key::Echo(text) => uart::print(text),
                Key::Char(char) => uart::print(char.encode_utf8(&mut [0; 4])),
                Key::Enter(text) => {
                    uart::print("\n");
                    let before = critical_section::with(|cs| COMMAND.borrow_ref_mut(cs).replace(text));
                    drop(before);
                    interrupts::wake_network();
                }
                Key::Nothing => {}
            }
        }
        CurrentTask::take_notification(true, Duration::infinite());
    }
}

struct Ring;

impl Log for Ring {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut line = String::new();
        let at = crate::clock::now().as_nanos() / 1_000_000;
        // Writing to a String does not fail.
        let _fits = writeln!(line, "{at:>8} ms {} {}", record.level(), record.args());
        let oldest = critical_section::with(|cs| {
            let mut log = LOG.borrow_ref_mut(cs);
            let oldest = if log.len() == KEPT { log.pop_front() } else { None };
            log.push_back(line);
            oldest
        });
        drop(oldest);
    }

    fn flush(&self) {}
}

/// Keeps the last lines that are logged.
pub fn log_to_ring() {
    // It fails when there is a logger already, and there is none.
    let _is_first = log::set_logger(&Ring).is_ok();
    log::set_max_level(LevelFilter::Info);
}

/// The last lines of the log.
pub fn log_lines() -> String {
    let lines = critical_section::with(|cs| LOG.borrow_ref(cs).clone());
    lines.into_iter().collect()
}
