//! Segments on their way to one place, in order of their times there.

use crate::parcel::Parcel;
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// When the segments of a packet leave a sender that works at a steady rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// When the packet's first bit left, plus all delays since.
    pub(crate) start: Instant,
    /// The part of a nanosecond that `start` lacks, in units of 1 / `bps`.
    pub(crate) rest: u64,
    /// Bits per second.
    pub(crate) bps: u64,
}

impl Pace {
    /// When the last bit of the segment with this number passes.
    pub(crate) fn at(&self, parcel: &Parcel, index: u16) -> Instant {
        let bits = u128::from(parcel.wire_bytes_through(index)) * 8_000_000_000 + u128::from(self.rest);
        self.start + Duration::from_nanos((bits / u128::from(self.bps)) as u64)
    }
}

/// Segments with their times.
#[derive(Debug)]
pub(crate) struct Entry {
    /// When its first segment is there.
    at: Instant,
    /// How the others follow; at once, if `None`.
    pace: Option<Pace>,
    parcel: Parcel,
}

impl Entry {
    /// The segments.
    pub(crate) fn parcel(&self) -> &Parcel {
        &self.parcel
    }

    /// When its segment with this number is there, counted from 1.
    fn time_of(&self, number: u16) -> Instant {
        self.pace.map_or(self.at, |pace| pace.at(&self.parcel, self.parcel.first() + number - 1))
    }
}

/// See the module. Among equal times, first in is first out.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    entries: VecDeque<Entry>,
}

impl Timeline {
    /// Adds segments that are all there at `at`.
    pub(crate) fn insert(&mut self, at: Instant, parcel: Parcel) {
        self.place(Entry { at, pace: None, parcel });
    }

    /// Adds segments that follow each other at a steady rate.
    pub(crate) fn insert_paced(&mut self, pace: Pace, parcel: Parcel) {
        self.place(Entry { at: pace.at(&parcel, parcel.first()), pace: Some(pace), parcel });
    }

    /// Takes everything, to be placed elsewhere.
    pub(crate) fn take_all(&mut self) -> VecDeque<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Adds what was taken from elsewhere.
    pub(crate) fn place(&mut self, entry: Entry) {
        let behind = self.entries.iter().rev().take_while(|other| other.at > entry.at).count();
        let index = self.entries.len() - behind;
        self.entries.insert(index, entry);
    }

    /// When the next segment is there.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.at)
    }

    /// The next segment that is there at `now`, with its time.
    pub(crate) fn take_one(&mut self, now: Instant) -> Option<(Instant, Parcel)> {
        self.take(now, 1).map(|(at, _, parcel)| (at, parcel))
    }

    /// The next segments of one packet that are there at `now`, `most` of them at most, and which no other comes between;
    /// with the times of the first and of the last.
    pub(crate) fn take(&mut self, now: Instant, most: u16) -> Option<(Instant, Instant, Parcel)> {
        let next = self.entries.get(1).map_or(Instant::FAR_FUTURE, |entry| entry.at);
        let front = self.entries.front_mut()?;
        if front.at > now {
            return None;
        }
        let until = now.min(next);
        let (first_at, mut last_at) = (front.at, front.at);
        let mut taken = 1;
        while taken < front.parcel.count().min(most.max(1)) {
            let at = front.time_of(taken + 1);
            if at > until {
                break;
            }
            last_at = at;
            taken += 1;
        }
        if taken == front.parcel.count() {
            let entry = self.entries.pop_front()?;
            return Some((first_at, last_at, entry.parcel));
        }
        let part = front.parcel.split_front(taken);
        if let Some(pace) = front.pace {
            front.at = pace.at(&front.parcel, front.parcel.first());
            if front.at > next
                && let Some(entry) = self.entries.pop_front()
            {
                self.place(entry);
            }
        }
        Some((first_at, last_at, part))
    }

    /// When the `number`th segment from now on is there (counted from 1), if that is before `limit`. May be too early, never
    /// too late.
    pub(crate) fn time_of(&self, mut number: u64, limit: Instant) -> Option<Instant> {
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.at >= limit {
                return None;
            }
            let last = entry.time_of(entry.parcel.count());
            let is_mixed = self.entries.get(index + 1).is_some_and(|next| next.at < last);
            if is_mixed {
                return Some(entry.at);
            }
            let count = u64::from(entry.parcel.count());
            if number <= count {
                return Some(entry.time_of(number as u16)).filter(|at| *at < limit);
            }
            number -= count;
        }
        None
    }

    /// Entries (runs of segments).
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
