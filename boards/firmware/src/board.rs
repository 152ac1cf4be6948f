//! What the shared part asks of a board.

use crate::intervals::INTERVALS;
use crate::watchdog::LastStart;
use alloc::string::String;
use alloc::vec::Vec;
use linerate_serve::Host;
use linerate_wire::units::Instant;

/// A board, as the network task sees it.
pub trait Board: Host {
    /// Sleeps until `until` at the latest; the interface's interrupt and a command at the console wake it earlier. Under an executor it is the
    /// task that sleeps; elsewhere this comes back when the sleep is over.
    fn sleep(&mut self, until: Option<Instant>) -> impl Future<Output = ()>;

    /// Called after a turn that another one follows at once: lets tasks that only run when this one waits have their turn.
    fn give_way(&mut self) -> impl Future<Output = ()> {
        core::future::ready(())
    }

    /// Called in every turn of the loop, which comes once a second at least: a sign of life for the watchdog.
    fn turns(&mut self);

    /// Why the board started, as far as it knows.
    fn last_start(&mut self) -> LastStart {
        LastStart::default()
    }

    /// A command that somebody gave at the console; the answer goes to [`Board::answer`].
    fn command(&mut self) -> Option<String>;

    /// Carries out a command that only this board has.
    fn command_of_its_own(&mut self, _line: &str) -> Option<String> {
        None
    }

    /// What `help` says of these commands, a line each.
    fn help_of_its_own(&self) -> String {
        String::new()
    }

    /// The answer to the last command.
    fn answer(&mut self, text: String);

    /// The tasks.
    fn tasks(&mut self) -> Vec<Task>;

    /// The heap.
    fn heap(&mut self) -> Heap;

    /// How long after each other the interface interrupted ([`Intervals::counts`](crate::Intervals::counts)).
    fn intervals(&mut self) -> [u32; INTERVALS];

    /// The last lines of the log.
    fn log(&mut self) -> String;
}

/// A task of the operating system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its priority; higher runs first.
    pub priority: u32,
    /// What it does: `running`, `ready`, `blocked`, `suspended`.
    pub state: &'static str,
    /// Time on the processor since the start, in microseconds.
    pub run_us: u64,
    /// Bytes of its stack that it never used.
    pub stack_free: usize,
}

/// How full the heap is, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heap {
    /// All of it.
    pub total: usize,
    /// Free now.
    pub free: usize,
    /// The least that was ever free.
    pub lowest: usize,
}
