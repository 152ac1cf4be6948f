//! The board as the loop sees it.

use crate::trace::{IDLE, NETWORK, TRACE};
use crate::{clock, heap, interrupts, panic, uart};
use alloc::string::String;
use alloc::vec::Vec;
use embassy_stm32::peripherals::{IWDG1, RNG};
use embassy_stm32::rng::Rng;
use embassy_stm32::wdg::IndependentWatchdog;
use linerate_firmware::console::Console;
use linerate_firmware::watchdog::panic_on_purpose;
use linerate_firmware::{Board, Heap, INTERVALS, Task, log};
use linerate_serve::Host;
use linerate_wire::units::Instant;

const HELP: &str = "panic     ends the machine, with a report\n";

/// The board.
pub struct Nucleo {
    random: Rng<'static, RNG>,
    watchdog: Option<IndependentWatchdog<'static, IWDG1>>,
    console: Console,
    /// Time asleep, in ns.
    idle_ns: u64,
}

impl Nucleo {
    /// The board with its source of random numbers, and a watchdog that has begun to count, if there is to be one.
    pub fn new(random: Rng<'static, RNG>, watchdog: Option<IndependentWatchdog<'static, IWDG1>>) -> Nucleo {
        interrupts::start();
        Nucleo { random, watchdog, console: Console::new(uart::take, uart::print), idle_ns: 0 }
    }

    /// Takes what has been typed and sends what waits; whether a command is complete.
    fn typed(&mut self) -> bool {
        let is_complete = self.console.read();
        uart::pump();
        is_complete
    }
}

impl Host for Nucleo {
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn wall_ns(&mut self) -> i64 {
        clock::wall_ns()
    }

    fn random(&mut self) -> u64 {
        self.random.next_u64()
    }
}

impl Board for Nucleo {
    async fn sleep(&mut self, until: Option<Instant>) {
        let began = clock::now();
        match until {
            Some(at) if at <= began => return,
            Some(at) => {
                clock::wake_at(at);
                // A time that went by before the timer knew of it would not come again for minutes.
                if at <= clock::now() {
                    return;
                }
            }
            None => {}
        }
        TRACE.run_task(IDLE);
        // An interrupt of the line wakes too, and may concern only itself.
        while !interrupts::wait() && !self.typed() {}
        TRACE.run_task(NETWORK);
        self.idle_ns += (clock::now() - began).as_nanos() as u64;
    }

    fn turns(&mut self) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.pet();
        }
    }

    fn command(&mut self) -> Option<String> {
        let command = self.console.command();
        uart::pump();
        command
    }

    fn command_of_its_own(&mut self, line: &str) -> Option<String> {
        if line == "panic" {
            panic_on_purpose();
        }
        None
    }

    fn help_of_its_own(&self) -> String {
        HELP.into()
    }

    fn answer(&mut self, text: String) {
        self.console.answer(&text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        let (idle_us, all_us) = (self.idle_ns / 1_000, clock::now().as_nanos() / 1_000);
        let stack_free = panic::stack_never_used();
        let task = |number: u16, name: &str, priority, state, run_us| Task {
            number: number.into(),
            name: name.into(),
            priority,
            state,
            run_us,
            stack_free,
        };
        alloc::vec![
            task(NETWORK, "network", 1, "running", all_us.saturating_sub(idle_us)),
            task(IDLE, "idle", 0, "ready", idle_us),
        ]
    }

    fn heap(&mut self) -> Heap {
        heap::state()
    }

    fn intervals(&mut self) -> [u32; INTERVALS] {
        interrupts::intervals()
    }

    fn log(&mut self) -> String {
        log::lines()
    }
}
