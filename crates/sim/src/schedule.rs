//! Which part of the world is due when: a heap with one live entry per part.

use linerate_wire::units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// See the module. Parts that are due at the same time come in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    /// The live entry's time and number, by part.
    live: Vec<Option<(Instant, u64)>>,
    number: u64,
}

impl Schedule {
    /// Makes room for so many parts.
    pub(crate) fn grow(&mut self, parts: usize) {
        self.live.resize(parts, None);
    }

    /// The part is due at `at` and not before; `None` if never.
    pub(crate) fn set(&mut self, part: usize, at: Option<Instant>) {
        if self.live[part].map(|(at, _)| at) == at {
            return;
        }
        self.live[part] = at.map(|at| {
            self.number += 1;
            self.heap.push(Reverse((at, self.number, part)));
            (at, self.number)
        });
        if self.heap.len() > 4 * self.live.len() + 1_024 {
            self.rebuild();
        }
    }

    /// Drops all entries that are not live: timers that are moved over and over leave many behind.
    fn rebuild(&mut self) {
        let live = self.live.iter().enumerate();
        self.heap =
            live.filter_map(|(part, live)| live.map(|(at, number)| Reverse((at, number, part)))).collect();
    }

    fn drop_stale(&mut self) {
        while let Some(Reverse((at, number, part))) = self.heap.peek() {
            if self.live[*part] == Some((*at, *number)) {
                return;
            }
            self.heap.pop();
        }
    }

    /// The earliest time.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        self.drop_stale();
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next part that is due at `now`; it is not scheduled any more.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<usize> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, _, part)) = self.heap.pop()?;
        self.live[part] = None;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_that_move_leave_no_trail() {
        let mut schedule = Schedule::default();
        schedule.grow(2);
        schedule.set(1, Some(Instant::ZERO));
        (1..100_000).for_each(|ns| schedule.set(0, Some(Instant::from_nanos(1_000_000 - ns))));
        assert!(schedule.heap.len() < 2_000);
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(Instant::FAR_FUTURE)).collect();
        assert_eq!(order, [1, 0]);
    }

    #[test]
    fn parts_come_in_order_of_time_and_only_once() {
        let at = Instant::from_nanos;
        let mut schedule = Schedule::default();
        schedule.grow(4);
        schedule.set(0, Some(at(30)));
        schedule.set(1, Some(at(20)));
        schedule.set(2, Some(at(20)));
        schedule.set(3, Some(at(5)));
        schedule.set(3, None);
        schedule.set(0, Some(at(10)));
        schedule.set(0, Some(at(40)));
        assert_eq!(schedule.next(), Some(at(20)));
        assert_eq!(schedule.pop(at(19)), None);
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(at(50))).collect();
        assert_eq!(order, [1, 2, 0]);
        assert_eq!(schedule.next(), None);
    }
}
