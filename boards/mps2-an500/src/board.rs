//! The board as the shared part of the firmware sees it.

use crate::{HEAP, application, clock, console, interrupts};
use alloc::string::String;
use alloc::vec::Vec;
use freertos_next::{CurrentTask, Duration, FreeRtosTaskState, FreeRtosUtils};
use linerate_firmware::{Board, Heap, INTERVALS, Task};
use linerate_serve::Host;
use linerate_wire::units::Instant;

/// Bytes of the heap (`build.rs`).
const HEAP_BYTES: usize = 1 << 20;

/// The board.
pub struct An500 {
    random: u64,
}

impl An500 {
    /// The board, with whatever there is of chance: the time that the start took, to 40 ns. This board has no source of
    /// random numbers; one that has feeds it in here.
    pub fn new() -> Self {
        An500 { random: clock::now().as_nanos() ^ 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Host for An500 {
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn wall_ns(&mut self) -> i64 {
        // Nobody knows the date: files get that of the image, and grow older from there.
        crate::BUILT_NS + clock::now().as_nanos() as i64
    }

    fn random(&mut self) -> u64 {
        // SplitMix64, stirred with the time of each call.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15 ^ clock::now().as_nanos());
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

impl Board for An500 {
    fn sleep(&mut self, until: Option<Instant>) {
        // Ticks of FreeRTOS are a millisecond: too long between two datagrams.
        if let Some(at) = until {
            let left = at.as_nanos().saturating_sub(clock::now().as_nanos());
            if left == 0 {
                return;
            }
            clock::wake_after(left);
        }
        CurrentTask::take_notification(true, Duration::infinite());
    }

    fn command(&mut self) -> Option<String> {
        console::take_command()
    }

    fn command_of_its_own(&mut self, line: &str) -> Option<String> {
        let is_on = match line {
            "compute on" => true,
            "compute off" => false,
            "compute" => return Some(alloc::format!("{} rounds\n", application::rounds())),
            _ => return None,
        };
        application::switch(is_on);
        Some(String::new())
    }

    fn help_of_its_own(&self) -> &'static str {
        "compute   rounds of the application's work so far; compute on and compute off switch it\n"
    }

    fn answer(&mut self, text: String) {
        console::answer(text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        let tasks = FreeRtosUtils::get_all_tasks(None).tasks.into_iter();
        let view = |task: freertos_next::FreeRtosTaskStatus| Task {
            name: task.name,
            priority: task.current_priority.0.into(),
            state: match task.task_state {
                FreeRtosTaskState::Running => "running",
                FreeRtosTaskState::Ready => "ready",
                FreeRtosTaskState::Blocked => "blocked",
                FreeRtosTaskState::Suspended => "suspended",
                _ => "gone",
            },
            run_ms: u64::from(task.run_time_counter as u32) / 1_000,
            stack_free: usize::from(task.stack_high_water_mark) * size_of::<usize>(),
        };
        tasks.map(view).collect()
    }

    fn heap(&mut self) -> Heap {
        Heap { total: HEAP_BYTES, free: HEAP.get_free_size(), lowest: HEAP.get_min_free_size() }
    }

    fn intervals(&mut self) -> [u32; INTERVALS] {
        interrupts::intervals()
    }

    fn log(&mut self) -> String {
        console::log_lines()
    }
}
