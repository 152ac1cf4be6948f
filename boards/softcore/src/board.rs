//! The board as the loop sees it.

use crate::trace::{IDLE, NETWORK, TRACE};
use crate::watchdog::{self, NETWORK as THE_LOOP, WATCHDOG};
use crate::{caches, clock, copies, ethernet, heap, processor, stack, uart};
use alloc::string::String;
use alloc::vec::Vec;
use linerate_firmware::console::Console;
use linerate_firmware::trace::Interrupt;
use linerate_firmware::watchdog::{HELP as WATCHDOG_HELP, hang_on_purpose, hangs_nobody, panic_on_purpose};
use linerate_firmware::{Board, Chance, Heap, INTERVALS, Intervals, LastStart, Primes, Task, log};
use linerate_nic::mcdma;
use linerate_serve::Host;
use linerate_wire::units::Instant;

const HELP: &str = "caches    what the data cache makes of a word that changes behind its back\n\
                    copies    copies and comparisons of all lengths and places, and what should come of them\n\
                    compute   rounds of the application's work so far; compute on and compute off switch it\n\
                    panic     ends the machine, with a report\n\
                    hang      keeps the loop from going on, to show what the watchdog does, each second in a millisecond\n";

/// Lines of the interrupts' array: receive and transmit; keys. (The link's is not asked for: it is looked at in each turn.)
const FRAMES: u32 = 3;
const KEYS: u32 = 1 << 3;

/// The board.
pub struct Softcore {
    ethernet: mcdma::Interrupt<ethernet::Hardware>,
    random: Chance,
    console: Console,
    /// Whether the application has work, and how far it is.
    computes: bool,
    primes: Primes,
    /// Time asleep or with the application, in ns.
    idle_ns: u64,
    frames: Intervals,
}

impl Softcore {
    /// The board with its interface's interrupt. The processor has no source of random numbers: there is the date, and the time that
    /// the start took, to a tick of the clock.
    pub fn new(ethernet: mcdma::Interrupt<ethernet::Hardware>) -> Softcore {
        Softcore {
            ethernet,
            random: Chance::new(clock::wall_ns() as u64 ^ clock::now().as_nanos().rotate_left(32)),
            console: Console::new(uart::take, uart::print),
            computes: false,
            primes: Primes::new(),
            idle_ns: 0,
            frames: Intervals::new(),
        }
    }

    /// Asks what is due and quiets it: whether the loop has to look.
    fn hear(&mut self) -> bool {
        let begun = TRACE.begin();
        let lines = processor::due();
        let mut concerns_us = false;
        if clock::is_due() {
            clock::timer_off();
            TRACE.end(Interrupt::Timer, begun);
            concerns_us = true;
        }
        if lines & KEYS != 0 {
            concerns_us |= self.console.read();
            TRACE.end(Interrupt::Serial, begun);
        }
        if lines & FRAMES != 0 {
            // The loop looks at everything, whatever the cause was.
            let _had_a_cause = self.ethernet.handle();
            self.frames.add(clock::now());
            TRACE.end(Interrupt::Ethernet, begun);
            concerns_us = true;
        }
        concerns_us
    }
}

impl Host for Softcore {
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

impl Board for Softcore {
    async fn sleep(&mut self, until: Option<Instant>) {
        let began = clock::now();
        match until {
            Some(at) if at <= began => return,
            Some(at) => {
                watchdog::sleep();
                clock::wake_at(at);
            }
            None => watchdog::sleep(),
        }
        TRACE.run_task(IDLE);
        while !self.hear() {
            idle(self.computes.then_some(&mut self.primes));
        }
        watchdog::listen();
        TRACE.run_task(NETWORK);
        self.idle_ns += (clock::now() - began).as_nanos() as u64;
    }

    fn turns(&mut self) {
        WATCHDOG.turns(THE_LOOP);
    }

    fn last_start(&mut self) -> LastStart {
        watchdog::last_start()
    }

    fn command(&mut self) -> Option<String> {
        self.console.command()
    }

    fn command_of_its_own(&mut self, line: &str) -> Option<String> {
        match line {
            "compute on" | "compute off" => self.computes = line.ends_with("on"),
            "compute" => return Some(alloc::format!("{} rounds\n", self.primes.rounds())),
            "caches" => {
                let (stale, fresh) = caches::look_behind();
                return Some(alloc::format!(
                    "a 1 became 2: read {stale}, and {fresh} once the cache was emptied\n"
                ));
            }
            "copies" => {
                let ((copies, bad_copies), (orders, bad_orders)) = (copies::compare(), copies::order());
                return Some(alloc::format!(
                    "{copies} copies, {bad_copies} wrong; {orders} comparisons, {bad_orders} wrong\n"
                ));
            }
            "counters" => crate::counters::send(),
            "panic" => panic_on_purpose(),
            "hang" => {
                watchdog::hurry();
                hang_on_purpose();
            }
            _ => {
                let told = WATCHDOG.command(line, watchdog::IS_THERE, watchdog::last_start());
                return told.or_else(|| hangs_nobody(line, "nothing"));
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
        // There is one stack.
        let stack_free = stack::never_used();
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
        self.frames.counts()
    }

    fn log(&mut self) -> String {
        log::lines()
    }
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
