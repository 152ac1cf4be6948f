//! Deadlines of everything that has one: a binary heap that knows where each timer lies.
//!
//! Every [`Timer`] has at most one entry, so the heap's size is fixed when it is made, and setting, moving and
//! clearing cost O(log n) at most. Setting a timer *later* does not move the entry: it fires early, its owner
//! compares and sets it again. A retransmission timer that every ACK pushes back costs one comparison per ACK.

use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_wire::units::Instant;

/// Everything that can have a deadline. The heap is sized from this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// Address configuration: duplicate address detection, announcements, router solicitations, lifetimes.
    Address,
    /// The DHCP client.
    Dhcp,
    /// Incomplete datagrams.
    Reassembly,
    /// Connections to look over while memory is short.
    Pressure,
    /// Connections to send to sleep.
    Dormancy,
    /// The connections in TIME-WAIT, all of them: they wait equally long, so that a list has them in order.
    TimeWait,
    /// Entry of the neighbour cache.
    Neighbor(u32),
    /// A TCP connection.
    Conn(u32),
}

/// Timers that are not counted by a table.
const SINGLE: u32 = 6;
const ABSENT: u32 = u32::MAX;

/// The heap.
pub(crate) struct Timers {
    /// The heap: deadlines, and at the same places the numbers of their timers.
    heap: Vec<Instant>,
    numbers: Vec<u32>,
    /// Where in `heap` the timer with this number lies.
    place: Box<[u32]>,
    neighbors: u32,
}

impl Timers {
    /// Room for every timer of a stack with so many neighbours and connections.
    pub(crate) fn new(neighbors: usize, connections: usize) -> Self {
        let total = SINGLE as usize + neighbors + connections;
        Timers {
            heap: Vec::with_capacity(total),
            numbers: Vec::with_capacity(total),
            place: alloc::vec![ABSENT; total].into_boxed_slice(),
            neighbors: neighbors as u32,
        }
    }

    #[inline]
    fn number(&self, timer: Timer) -> u32 {
        match timer {
            Timer::Address => 0,
            Timer::Dhcp => 1,
            Timer::Reassembly => 2,
            Timer::Pressure => 3,
            Timer::Dormancy => 4,
            Timer::TimeWait => 5,
            Timer::Neighbor(slot) => SINGLE + slot,
            Timer::Conn(slot) => SINGLE + self.neighbors + slot,
        }
    }

    fn timer(&self, number: u32) -> Timer {
        match number {
            0 => Timer::Address,
            1 => Timer::Dhcp,
            2 => Timer::Reassembly,
            3 => Timer::Pressure,
            4 => Timer::Dormancy,
            5 => Timer::TimeWait,
            n if n < SINGLE + self.neighbors => Timer::Neighbor(n - SINGLE),
            n => Timer::Conn(n - SINGLE - self.neighbors),
        }
    }

    /// Asks for `timer` to fire at `deadline` or before; `None` clears it. A later deadline than the one set is
    /// remembered by the owner, not here.
    #[inline]
    pub(crate) fn set(&mut self, timer: Timer, deadline: Option<Instant>) {
        if !self.is_set_for(timer, deadline) {
            self.change(timer, deadline);
        }
    }

    #[inline(never)]
    fn change(&mut self, timer: Timer, deadline: Option<Instant>) {
        let number = self.number(timer);
        let Some(&at) = self.place.get(number as usize) else { return };
        match (deadline, at) {
            (None, ABSENT) => {}
            (None, at) => self.remove(at as usize),
            (Some(deadline), ABSENT) => {
                self.heap.push(deadline);
                self.numbers.push(number);
                self.place[number as usize] = self.heap.len() as u32 - 1;
                self.rise(self.heap.len() - 1);
            }
            (Some(deadline), at) => {
                let at = at as usize;
                if deadline < self.heap[at] {
                    self.heap[at] = deadline;
                    self.rise(at);
                }
            }
        }
    }

    /// Whether it is known that [`Timers::set`] to `not_before` or any time after it changes nothing; `None`: to clear it.
    #[inline]
    pub(crate) fn is_set_for(&self, timer: Timer, not_before: Option<Instant>) -> bool {
        let at = self.place.get(self.number(timer) as usize).and_then(|&at| self.heap.get(at as usize));
        match (at, not_before) {
            (Some(set), Some(not_before)) => *set <= not_before,
            (None, None) => true,
            _ => false,
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().copied()
    }

    /// Takes the earliest timer that is due at `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Timer> {
        let (&deadline, &number) = (self.heap.first()?, self.numbers.first()?);
        if deadline > now {
            return None;
        }
        self.remove(0);
        Some(self.timer(number))
    }

    /// Timers set.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    fn remove(&mut self, at: usize) {
        self.heap.swap_remove(at);
        let number = self.numbers.swap_remove(at);
        self.place[number as usize] = ABSENT;
        if at < self.heap.len() {
            self.place[self.numbers[at] as usize] = at as u32;
            self.sink(at);
            self.rise(at);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = (self.heap[at], self.numbers[at]);
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= entry.0 {
                break;
            }
            self.put(at, (self.heap[parent], self.numbers[parent]));
            at = parent;
        }
        self.put(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = (self.heap[at], self.numbers[at]);
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let child =
                if right < self.heap.len() && self.heap[right] < self.heap[left] { right } else { left };
            if entry.0 <= self.heap[child] {
                break;
            }
            self.put(at, (self.heap[child], self.numbers[child]));
            at = child;
        }
        self.put(at, entry);
    }

    /// Writes an entry to its place; who moves one through the heap writes it once, at the end.
    fn put(&mut self, at: usize, (deadline, number): (Instant, u32)) {
        self.heap[at] = deadline;
        self.numbers[at] = number;
        self.place[number as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn a_later_deadline_waits_for_the_early_wake_up() {
        let mut timers = Timers::new(2, 2);
        timers.set(Timer::Conn(1), Some(Instant::from_millis(10)));
        timers.set(Timer::Conn(1), Some(Instant::from_millis(99)));
        assert_eq!(timers.next(), Some(Instant::from_millis(10)));
        timers.set(Timer::Conn(1), Some(Instant::from_millis(5)));
        assert_eq!(timers.pop(Instant::from_millis(4)), None);
        assert_eq!(timers.pop(Instant::from_millis(5)), Some(Timer::Conn(1)));
        assert_eq!(timers.pop(Instant::from_millis(999)), None);
        timers.set(Timer::Neighbor(1), Some(Instant::ZERO));
        timers.set(Timer::Neighbor(1), None);
        assert_eq!(timers.next(), None);
    }

    proptest! {
        /// Against a sorted map: what is due comes out in order, once, and nothing is lost.
        #[test]
        fn the_heap_agrees_with_a_map(ops in proptest::collection::vec((0u32..14, 0u64..50, 0u8..4), 0..300)) {
            let mut timers = Timers::new(4, 4);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            for (number, ms, op) in ops {
                let timer = timers.timer(number);
                match op {
                    0 => {
                        timers.set(timer, None);
                        prop_assert!(timers.is_set_for(timer, None));
                        model.remove(&number);
                    }
                    1 => {
                        if let Some(timer) = timers.pop(Instant::from_millis(ms)) {
                            let earliest = *model.values().min().unwrap();
                            let number = timers.number(timer);
                            prop_assert_eq!(model.remove(&number), Some(earliest));
                            prop_assert!(earliest <= ms);
                        } else {
                            prop_assert!(model.values().all(|&at| at > ms));
                        }
                    }
                    _ => {
                        let before = (timers.heap.clone(), timers.place.clone());
                        let is_set = timers.is_set_for(timer, Some(Instant::from_millis(ms)));
                        timers.set(timer, Some(Instant::from_millis(ms)));
                        prop_assert_eq!(is_set, before == (timers.heap.clone(), timers.place.clone()));
                        prop_assert!(!timers.is_set_for(timer, None));
                        let entry = model.entry(number).or_insert(ms);
                        *entry = (*entry).min(ms);
                    }
                }
                prop_assert_eq!(timers.len(), model.len());
                prop_assert_eq!(timers.next().map(Instant::as_millis), model.values().min().copied());
            }
        }
    }
}
