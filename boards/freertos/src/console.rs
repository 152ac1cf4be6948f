//! The console: a task of its own, which hands commands to the network task and prints what that answers.

use crate::watch::{CONSOLE, WATCHDOG};
use crate::{Hardware, wake};
use alloc::string::String;
use core::cell::RefCell;
use critical_section::Mutex;
use freertos_next::{CurrentTask, Duration};
use linerate_firmware::console::{Key, Line, PROMPT};

static COMMAND: Mutex<RefCell<Option<String>>> = Mutex::new(RefCell::new(None));
static ANSWER: Mutex<RefCell<Option<String>>> = Mutex::new(RefCell::new(None));

/// A command that waits for the network task.
pub(crate) fn take_command() -> Option<String> {
    critical_section::with(|cs| COMMAND.borrow_ref_mut(cs).take())
}

/// The network task's answer.
pub(crate) fn answer(text: String) {
    let before = critical_section::with(|cs| ANSWER.borrow_ref_mut(cs).replace(text));
    drop(before);
    wake::console();
}

/// The task: keys in, answers out. It sleeps until there is one of them.
pub(crate) fn run<H: Hardware>() {
    let mut line = Line::default();
    loop {
        WATCHDOG.turns(CONSOLE);
        let answer = critical_section::with(|cs| ANSWER.borrow_ref_mut(cs).take());
        if let Some(text) = answer {
            H::print(&text);
            H::print(PROMPT);
        }
        while let Some(byte) = H::take_key() {
            WATCHDOG.turns(CONSOLE);
            match line.key(byte) {
                Key::Echo(text) => H::print(text),
                Key::Char(char) => H::print(char.encode_utf8(&mut [0; 4])),
                Key::Enter(text) => {
                    H::print("\n");
                    let before = critical_section::with(|cs| COMMAND.borrow_ref_mut(cs).replace(text));
                    drop(before);
                    wake::network();
                }
                Key::Nothing => {}
            }
        }
        WATCHDOG.rests(CONSOLE);
        CurrentTask::take_notification(true, Duration::infinite());
    }
}
