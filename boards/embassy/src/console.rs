//! The console: a task of its own, which hands commands to the network task and prints what that answers.

use crate::watch::{CONSOLE, WATCHDOG};
use crate::{Hardware, wake};
use alloc::string::String;
use linerate_firmware::console::{Console, Desk};

static DESK: Desk = Desk::new();

/// The first command that waits for the network task.
pub(crate) fn take_command() -> Option<String> {
    DESK.take_command()
}

/// The network task's answer.
pub(crate) fn answer(text: String) {
    DESK.answer(text);
    wake::CONSOLE.set();
}

/// The task: keys in, answers out. It waits until there is one of them.
pub(crate) async fn run<H: Hardware>() {
    let mut console = Console::new(H::take_key, H::print);
    loop {
        WATCHDOG.turns(CONSOLE);
        if DESK.serve(&mut console, || WATCHDOG.turns(CONSOLE)) {
            wake::NETWORK.set();
        }
        WATCHDOG.rests(CONSOLE);
        wake::CONSOLE.wait().await;
    }
}
