//! When the bytes in flight left the device for the first time: one entry a packet, in the order of transmission, which for
//! first transmissions is the order of sequence numbers too.
//!
//! An entry is never split. What became of parts of a packet is on the [`super::scoreboard::Scoreboard`]; here a position
//! only finds its packet. So adding and acknowledging are O(1), and finding is O(log n).

use super::spare;
use alloc::collections::VecDeque;
use linerate_wire::units::Instant;

/// From this many entries on, packets of fewer than [`SMALL`] bytes share one: what bounds the log when an application
/// sends byte by byte.
const LONG: usize = 4_096;
const SMALL: u64 = 512;

/// A packet that left the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    /// First position after it. It begins where the one before ends.
    pub end: u64,
    /// Number of the transmission; a later one has a higher number.
    pub serial: u64,
    /// When it left.
    pub left: Instant,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Departures {
    log: VecDeque<Departure>,
}

impl Departures {
    /// A packet left. `departure.end` is beyond all before.
    pub fn push(&mut self, departure: Departure) {
        let before = self.log.len().checked_sub(2).map(|index| self.log[index].end);
        if self.log.len() >= LONG
            && let (Some(before), Some(last)) = (before, self.log.back_mut())
            && departure.end - before <= SMALL
        {
            // As if all of it had left now: it is taken to be lost later, never earlier.
            *last = departure;
            return;
        }
        self.log.push_back(departure);
    }

    /// The packet that holds `position`.
    pub fn find(&self, position: u64) -> Option<Departure> {
        match self.log.front() {
            Some(first) if position < first.end => Some(*first),
            _ => self.log.get(self.log.partition_point(|packet| packet.end <= position)).copied(),
        }
    }

    /// Everything before `una` is acknowledged.
    pub fn acknowledge(&mut self, una: u64) {
        while self.log.front().is_some_and(|packet| packet.end <= una) {
            self.log.pop_front();
        }
    }

    /// Everything before this position was sent before the byte in front of `end` in transmission `serial`.
    pub fn end_before(&self, serial: u64, end: u64) -> u64 {
        let index = self.log.partition_point(|packet| packet.serial < serial);
        match self.log.get(index) {
            Some(packet) if packet.serial == serial => end.min(packet.end),
            _ => self.end_of(index),
        }
    }

    /// Everything before this position left at `time` or earlier.
    pub fn end_by(&self, time: Instant) -> u64 {
        self.end_of(self.log.partition_point(|packet| packet.left <= time))
    }

    /// The last packet: where it begins, if it is not the only one, and where it ends.
    pub fn last(&self) -> Option<(u64, u64)> {
        let last = self.log.back()?;
        Some((self.end_of(self.log.len() - 1), last.end))
    }

    /// Memory for it that another has left, where there is none.
    pub fn lend(&mut self, log: VecDeque<Departure>) {
        spare::lend(&mut self.log, log);
    }

    /// What is left of that; this is done with.
    pub fn take_memory(&mut self) -> VecDeque<Departure> {
        spare::left_of(&mut self.log)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.log.clear();
    }

    /// Where the first `count` packets end; 0 for none.
    fn end_of(&self, count: usize) -> u64 {
        count.checked_sub(1).and_then(|index| self.log.get(index)).map_or(0, |packet| packet.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(packets: &[(u64, u64, u64)]) -> Departures {
        let mut log = Departures::default();
        for &(end, serial, ms) in packets {
            log.push(Departure { end, serial, left: Instant::from_millis(ms) });
        }
        log
    }

    #[test]
    fn a_position_finds_its_packet() {
        let mut log = log(&[(100, 1, 5), (200, 2, 5), (250, 5, 9)]);
        for (position, serial) in [(0, Some(1)), (99, Some(1)), (100, Some(2)), (249, Some(5)), (250, None)] {
            assert_eq!(log.find(position).map(|packet| packet.serial), serial, "at {position}");
        }
        assert_eq!(log.last(), Some((200, 250)));
        log.acknowledge(150);
        assert_eq!(log.find(150).map(|packet| packet.serial), Some(2), "the rest of a packet keeps its time");
        log.acknowledge(250);
        assert_eq!((log.find(250), log.last()), (None, None));
    }

    #[test]
    fn the_order_of_transmission_is_a_prefix() {
        let log = log(&[(100, 1, 5), (200, 2, 6), (250, 5, 9)]);
        for (serial, end, expected) in
            [(1, 60, 60), (2, 150, 150), (3, 10, 200), (5, 250, 250), (9, 1, 250), (0, 9, 0)]
        {
            assert_eq!(log.end_before(serial, end), expected, "{serial} {end}");
        }
        for (ms, expected) in [(4, 0), (5, 100), (8, 200), (9, 250)] {
            assert_eq!(log.end_by(Instant::from_millis(ms)), expected, "at {ms}");
        }
    }

    #[test]
    fn single_bytes_share_entries_once_there_are_many() {
        let mut log = Departures::default();
        for n in 1..1_000_000u64 {
            log.push(Departure { end: n, serial: n, left: Instant::from_nanos(n) });
        }
        assert!(log.log.len() < LONG + 3_000, "{}", log.log.len());
        assert_eq!(log.find(999_998).map(|packet| packet.end), Some(999_999));
    }
}
