//! A board under FreeRTOS as the rest of the firmware sees it.

use crate::watch::{NETWORK, WATCHDOG};
use crate::{HEAP, Hardware, application, console, control, wake};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use freertos_next::{CurrentTask, Duration, FreeRtosTaskState, FreeRtosUtils};
use linerate_firmware::{Board, Chance, Heap, INTERVALS, LastStart, Task, log, watchdog};
use linerate_serve::Host;
use linerate_wire::units::Instant;

/// How long a task ran by a counter of 32 bits, and by all its rounds.
struct Ran {
    name: String,
    last: u32,
    total_us: u64,
}

/// The counters of tasks begin anew after 71 minutes: they are read this often at least.
const READ_EVERY_NS: u64 = 60_000_000_000;

/// The board.
pub(crate) struct Rtos<H> {
    random: Chance,
    ran: Vec<Ran>,
    read_at_ns: u64,
    hardware: PhantomData<H>,
}

impl<H: Hardware> Rtos<H> {
    /// The board, with whatever there is of chance: the time that the start took, to a tick of its clock. The boards so far have no
    /// source of random numbers; one that has feeds it in here.
    pub(crate) fn new() -> Self {
        let now = H::now().as_nanos();
        Rtos { random: Chance::new(now), ran: Vec::new(), read_at_ns: now, hardware: PhantomData }
    }

    /// Microseconds that a task ran, by its counter now.
    fn ran_us(&mut self, name: &str, counter: u32) -> u64 {
        let place = match self.ran.iter().position(|ran| ran.name == name) {
            Some(place) => place,
            None => {
                self.ran.push(Ran { name: name.into(), last: 0, total_us: 0 });
                self.ran.len() - 1
            }
        };
        let ran = &mut self.ran[place];
        ran.total_us += u64::from(counter.wrapping_sub(ran.last));
        ran.last = counter;
        ran.total_us
    }
}

impl<H: Hardware> Host for Rtos<H> {
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

impl<H: Hardware> Board for Rtos<H> {
    async fn sleep(&mut self, until: Option<Instant>) {
        let now = H::now().as_nanos();
        if now - self.read_at_ns > READ_EVERY_NS {
            self.read_at_ns = now;
            self.tasks();
        }
        // Ticks of FreeRTOS are a millisecond: too long between two datagrams.
        if let Some(at) = until {
            let left = at.as_nanos().saturating_sub(now);
            if left == 0 {
                return;
            }
            H::wake_after(left);
        }
        CurrentTask::take_notification(true, Duration::infinite());
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
            "latency on" | "latency off" => control::switch(line.ends_with("on")),
            "latency" => return Some(control::report()),
            "panic" => watchdog::panic_on_purpose(),
            // With interrupts masked, which the watchdog's is not.
            "hang network" => critical_section::with(|_| watchdog::hang_on_purpose()),
            "hang control" => control::hang(),
            "count on" | "count off" => H::mark(line.ends_with("on")),
            _ => return H::command(line).or_else(|| watchdog::hangs_nobody(line, "network or control")),
        }
        Some(String::new())
    }

    fn help_of_its_own(&self) -> String {
        let ours = "compute   rounds of the application's work so far; compute on and compute off switch it\n\
                    count     count on and count off mark what is counted from outside\n\
                    panic     ends the machine, with a report\n\
                    hang      hang network and hang control keep that task from going on, to show what the watchdog does\n";
        [ours, control::HELP, watchdog::HELP, H::HELP].concat()
    }

    fn answer(&mut self, text: String) {
        console::answer(text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        let tasks = FreeRtosUtils::get_all_tasks(None).tasks.into_iter();
        let view = |task: freertos_next::FreeRtosTaskStatus| Task {
            number: task.task_number as _,
            run_us: self.ran_us(&task.name, task.run_time_counter),
            name: task.name,
            priority: task.current_priority.0.into(),
            state: match task.task_state {
                FreeRtosTaskState::Running => "running",
                FreeRtosTaskState::Ready => "ready",
                FreeRtosTaskState::Blocked => "blocked",
                FreeRtosTaskState::Suspended => "suspended",
                _ => "gone",
            },
            stack_free: usize::from(task.stack_high_water_mark) * size_of::<usize>(),
        };
        tasks.map(view).collect()
    }

    fn heap(&mut self) -> Heap {
        let (free, lowest) = HEAP.free();
        Heap { total: H::HEAP, free, lowest }
    }

    fn intervals(&mut self) -> [u32; INTERVALS] {
        wake::intervals()
    }

    fn log(&mut self) -> String {
        log::lines()
    }
}
