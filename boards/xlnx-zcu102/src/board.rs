//! The board as the loop sees it.

use crate::interrupts::{self, BELL, TIMER, UART, WATCHDOG};
use crate::trace::{IDLE, NETWORK, TRACE};
use crate::watchdog::{self, CORES};
use crate::{clock, ethernet, heap, marks, processor, stack, uart};
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use linerate_firmware::console::Console;
use linerate_firmware::trace::Interrupt;
use linerate_firmware::watchdog::{HELP as WATCHDOG_HELP, hang_on_purpose, hangs_nobody, panic_on_purpose};
use linerate_firmware::{Board, Chance, Heap, INTERVALS, Intervals, LastStart, Primes, Task, log};
use linerate_serve::Host;
use linerate_wire::units::Instant;

const HELP: &str = "compute   rounds of the application's work so far; compute on and compute off switch it\n\
                    count     count on and count off mark what is counted from outside\n\
                    panic     ends the machine, with a report\n\
                    hang      hang NUMBER keeps the loop of that core from going on, to show what the watchdog does\n";

/// The core that is to hang where it would sleep, and one; 0 for none.
static HANGS: AtomicUsize = AtomicUsize::new(0);

/// The board.
pub struct Zcu102 {
    core: usize,
    /// The first core hears the interface, and has the console.
    ethernet: Option<ethernet::Interrupt>,
    random: Chance,
    console: Console,
    /// Whether the application has work, and how far it is.
    computes: bool,
    primes: Primes,
    /// Time asleep or with the application, in ns.
    idle_ns: u64,
    frames: Intervals,
}

impl Zcu102 {
    /// The board as the first core sees it, with the interface's interrupt.
    pub fn first(ethernet: ethernet::Interrupt) -> Zcu102 {
        Zcu102::new(0, Some(ethernet))
    }

    /// The board as another core sees it.
    pub fn other(core: usize) -> Zcu102 {
        Zcu102::new(core, None)
    }

    /// The processor has no source of random numbers: there is the date, and the time that
    /// the start took, to a tick of the clock.
    fn new(core: usize, ethernet: Option<ethernet::Interrupt>) -> Zcu102 {
        let chance =
            clock::wall_ns() as u64 ^ clock::now().as_nanos().rotate_left(32) ^ (core as u64).rotate_left(16);
        Zcu102 {
            core,
            ethernet,
            random: Chance::new(chance),
            console: Console::new(uart::take, uart::print),
            computes: false,
            primes: Primes::new(),
            idle_ns: 0,
            frames: Intervals::new(),
        }
    }

    fn is_first(&self) -> bool {
        self.core == 0
    }

    /// Tells the trace which task of the first core goes on; those of the others are not in it.
    fn trace_task(&self, number: u16) {
        if self.is_first() {
            TRACE.run_task(number);
        }
    }

    /// Asks what is due and quiets it: whether the loop has to look.
    fn hear(&mut self) -> bool {
        let Some(due) = interrupts::take() else { return false };
        if due.interrupt() == WATCHDOG {
            watchdog::hear();
            due.end();
            return false;
        }
        if due.interrupt() == BELL {
            // Something is in the mailbox.
            due.end();
            return true;
        }
        let begun = if self.is_first() { TRACE.begin() } else { None };
        let (traced, concerns_us) = match due.interrupt() {
            TIMER => {
                processor::timer_off();
                (Interrupt::Timer, true)
            }
            UART => {
                uart::acknowledge();
                (Interrupt::Serial, self.console.read())
            }
            // No other is switched on.
            _ => {
                // The loop looks at everything, whatever the cause was.
                let _had_a_cause = self.ethernet.as_ref().is_some_and(ethernet::Interrupt::handle);
                self.frames.add(clock::now());
                (Interrupt::Ethernet, true)
            }
        };
        due.end();
        TRACE.end(traced, begun);
        concerns_us
    }
}

impl Host for Zcu102 {
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn wall_ns(&mut self) -> i64 {
        clock::wall_ns()
    }

    fn random(&mut self) -> u64 {
        self.random.next(clock::now())
    }
}

impl Board for Zcu102 {
    async fn sleep(&mut self, until: Option<Instant>) {
        let began = clock::now();
        match until {
            Some(at) if at <= began => return,
            Some(at) => clock::wake_at(at),
            None => {}
        }
        if HANGS.load(Ordering::Relaxed) == self.core + 1 {
            hang_on_purpose();
        }
        self.trace_task(IDLE);
        watchdog::sleep();
        while !self.hear() {
            idle(self.computes.then_some(&mut self.primes));
        }
        watchdog::listen();
        self.trace_task(NETWORK);
        self.idle_ns += (clock::now() - began).as_nanos() as u64;
    }

    fn turns(&mut self) {
        CORES[self.core].turns(watchdog::NETWORK);
    }

    fn last_start(&mut self) -> LastStart {
        watchdog::last_start()
    }

    fn command(&mut self) -> Option<String> {
        if self.is_first() { self.console.command() } else { None }
    }

    fn command_of_its_own(&mut self, line: &str) -> Option<String> {
        match line {
            "compute on" | "compute off" => self.computes = line.ends_with("on"),
            "compute" => return Some(alloc::format!("{} rounds\n", self.primes.rounds())),
            "panic" => panic_on_purpose(),
            "count on" | "count off" => marks::mark(line.ends_with("on")),
            _ => {
                return watchdog::command(line)
                    .or_else(|| hang(line))
                    .or_else(|| hangs_nobody(line, "0 to 3"));
            }
        }
        Some(String::new())
    }

    fn help_of_its_own(&self) -> String {
        [HELP, WATCHDOG_HELP].concat()
    }

    fn answer(&mut self, text: String) {
        self.console.answer(&text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        let (idle_us, all_us) = (self.idle_ns / 1_000, clock::now().as_nanos() / 1_000);
        // This core's.
        let stack_free = stack::never_used();
        let core = self.core as u16;
        let task = |number: u16, name: &str, priority, state, run_us| Task {
            number: (number + 2 * core).into(),
            name: if core == 0 { name.into() } else { alloc::format!("{name} {core}") },
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
        self.frames.counts()
    }

    fn log(&mut self) -> String {
        log::lines()
    }
}

/// Keeps a core from going on, if a line asks for that.
fn hang(line: &str) -> Option<String> {
    let core: usize = line.strip_prefix("hang ")?.parse().ok().filter(|core| *core < CORES.len())?;
    HANGS.store(core + 1, Ordering::Relaxed);
    interrupts::ring(core);
    Some(String::new())
}

/// Lets the application work a little, or sleeps until something is due. A function of its own, so that whoever counts instructions
/// can leave it out.
#[inline(never)]
fn idle(application: Option<&mut Primes>) {
    match application {
        Some(primes) => primes.step(),
        // What is due ends the sleep at once, also if it came after the question.
        None => processor::wait_for_interrupt(),
    }
}
