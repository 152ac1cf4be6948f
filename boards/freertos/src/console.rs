//! The console: a task of its own, which hands commands to the network task and prints what that answers.

use crate::watch::{CONSOLE, WATCHDOG};
use crate::{Hardware, wake};
use alloc::string::String;
use freertos_next::{CurrentTask, Duration};
use linerate_firmware::console::{Console, Slot};

static COMMAND: Slot = Slot::new();
static ANSWER: Slot = Slot::new();

/// A command that waits for the network task.
pub(crate) fn take_command() -> Option<String> {
    COMMAND.take()
}

/// The network task's answer.
pub(crate) fn answer(text: String) {
    ANSWER.put(text);
    wake::console();
}

/// The task: keys in, answers out. It sleeps until there is one of them.
pub(crate) fn run<H: Hardware>() {
    let mut console = Console::new(H::take_key, H::print);
    loop {
        WATCHDOG.turns(CONSOLE);
        if let Some(text) = ANSWER.take() {
            console.answer(&text);
        }
        while let Some(command) = console.command() {
            WATCHDOG.turns(CONSOLE);
            COMMAND.put(command);
            wake::network();
        }
        WATCHDOG.rests(CONSOLE);
        CurrentTask::take_notification(true, Duration::infinite());
    }
}
