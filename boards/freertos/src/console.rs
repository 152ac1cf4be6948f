//! The console: a task of its own, which hands commands to the network task and prints what that answers.

use crate::watch::{CONSOLE, WATCHDOG};
use crate::{Hardware, wake};
use alloc::string::String;
use freertos_next::{CurrentTask, Duration};
use linerate_firmware::console::{Console, Queue};

static COMMANDS: Queue = Queue::new();
static ANSWERS: Queue = Queue::new();

/// The first command that waits for the network task; not before the answers so far were printed, so that there is always a place for
/// the next one.
pub(crate) fn take_command() -> Option<String> {
    if ANSWERS.is_empty() { COMMANDS.take() } else { None }
}

/// The network task's answer.
pub(crate) fn answer(text: String) {
    // Beside the answer to one command there are the greeting and the report of one test: that is less than there are places.
    let placed = ANSWERS.put(text);
    debug_assert!(placed.is_ok(), "no place for {placed:?}");
    wake::console();
}

/// The task: keys in, answers out. It sleeps until there is one of them.
pub(crate) fn run<H: Hardware>() {
    let mut console = Console::new(H::take_key, H::print);
    loop {
        WATCHDOG.turns(CONSOLE);
        while let Some(text) = ANSWERS.take() {
            console.answer(&text);
        }
        // Where it is full keys stay in the line's hardware until the network task has taken a command, which it answers.
        while !COMMANDS.is_full()
            && let Some(command) = console.command()
        {
            WATCHDOG.turns(CONSOLE);
            // There is a place: nobody else puts commands there.
            let placed = COMMANDS.put(command);
            debug_assert!(placed.is_ok(), "no place for {placed:?}");
        }
        if !COMMANDS.is_empty() {
            wake::network();
        }
        WATCHDOG.rests(CONSOLE);
        CurrentTask::take_notification(true, Duration::infinite());
    }
}
