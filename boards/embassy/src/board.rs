//! A board under Embassy as the rest of the firmware sees it.

use crate::watch::{self, NETWORK, WATCHDOG};
use crate::{Hardware, application, console, heap, stack, tasks, wake};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use linerate_firmware::{Board, Chance, Heap, INTERVALS, LastStart, Task, log, watchdog};
use linerate_serve::Host;
use linerate_wire::units::Instant;

/// The board.
pub(crate) struct Embassy<H> {
    random: Chance,
    hardware: PhantomData<H>,
}

impl<H: Hardware> Embassy<H> {
    /// The board, with whatever there is of chance: the time that the start took, to a tick of its clock.
    pub(crate) fn new() -> Self {
        Embassy { random: Chance::new(H::now().as_nanos()), hardware: PhantomData }
    }
}

impl<H: Hardware> Host for Embassy<H> {
    fn now(&mut self) -> Instant {
        H::now()
    }

    fn wall_ns(&mut self) -> i64 {
        // Nobody knows the date: files get that of the image, and grow older from there.
        H::BUILT_NS + H::now().as_nanos() as i64
    }

    fn random(&mut self) -> u64 {
        self.random.next(H::now())
    }
}

impl<H: Hardware> Board for Embassy<H> {
    async fn sleep(&mut self, until: Option<Instant>) {
        if let Some(at) = until {
            let left = at.as_nanos().saturating_sub(H::now().as_nanos());
            if left == 0 {
                return;
            }
            H::wake_after(left);
        }
        wake::NETWORK.wait().await;
    }

    async fn give_way(&mut self) {
        wake::give_way().await;
    }

    fn turns(&mut self) {
        WATCHDOG.turns(NETWORK);
    }

    fn last_start(&mut self) -> LastStart {
        H::last_start()
    }

    fn command(&mut self) -> Option<String> {
        console::take_command()
    }

    fn command_of_its_own(&mut self, line: &str) -> Option<String> {
        let told = WATCHDOG.command(line, H::SETTINGS.watchdog > 0, H::last_start());
        if told.is_some() {
            return told;
        }
        match line {
            "compute on" | "compute off" => application::switch(line.ends_with("on")),
            "compute" => return Some(alloc::format!("{} rounds\n", application::rounds())),
            "panic" => watchdog::panic_on_purpose(),
            // With interrupts masked, which the watchdog's is not.
            "hang network" => critical_section::with(|_| watchdog::hang_on_purpose()),
            "count on" | "count off" => H::mark(line.ends_with("on")),
            _ => return H::command(line).or_else(|| watchdog::hangs_nobody(line, "network")),
        }
        Some(String::new())
    }

    fn help_of_its_own(&self) -> String {
        let ours = "compute   rounds of the application's work so far; compute on and compute off switch it\n\
                    count     count on and count off mark what is counted from outside\n\
                    panic     ends the machine, with a report\n\
                    hang      hang network keeps that task from going on, to show what the watchdog does\n";
        [ours, watchdog::HELP, H::HELP].concat()
    }

    fn answer(&mut self, text: String) {
        console::answer(text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        // There is one stack.
        let stack_free = stack::never_used();
        let ran = tasks::ran_ns();
        let all_ns = H::now().as_nanos();
        let task = |who: usize, name: &str, priority, state, ns: u64| Task {
            number: tasks::number(who).into(),
            name: name.into(),
            priority,
            state,
            run_us: ns / 1_000,
            stack_free,
        };
        let state = |who| if tasks::running() == Some(who) { "running" } else { "waiting" };
        let mut tasks: Vec<Task> = (0..watch::TASKS)
            .map(|who| task(who, WATCHDOG.name(who), u32::from(who != watch::COMPUTE), state(who), ran[who]))
            .collect();
        let idle_ns = all_ns.saturating_sub(ran.iter().sum());
        tasks.push(task(watch::TASKS, "idle", 0, "ready", idle_ns));
        tasks
    }

    fn heap(&mut self) -> Heap {
        heap::state()
    }

    fn intervals(&mut self) -> [u32; INTERVALS] {
        wake::intervals()
    }

    fn log(&mut self) -> String {
        log::lines()
    }
}
