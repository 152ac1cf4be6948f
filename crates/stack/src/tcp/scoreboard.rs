//! What became of every byte in flight, as far as the sender can know (RFC 8985 section 5, RFC 6582).
//!
//! Of the bytes between the oldest unacknowledged one and the next to be sent,
//!
//! - **sacked** ones were reported by the peer,
//! - **lost** ones are taken to be lost and wait to be sent again,
//! - all others are in the network: "pipe" of RFC 6675 is what is in flight less sacked and lost.
//!
//! When each of them was sent is known from two logs, both in the order of transmission: [`Departures`] has the first
//! transmissions, and `resent` those that followed. RACK asks for what was sent before the newest arrival, and long enough
//! ago. In the first log that is a prefix, which a cursor (`judged`) passes once; in the second it is what the head of
//! `order` shows. So an acknowledgement costs O(log n) plus what is newly lost, however much is in flight.
//!
//! A packet that waits in the device is in neither log: nothing in it can be lost.

use super::departures::{Departure, Departures};
use super::ordered::OrderedMap;
use super::rack::{Newest, Rule};
use super::ranges::RangeSet;
use alloc::collections::VecDeque;
use core::time::Duration;
use linerate_wire::units::{Instant, nanos};

/// Duplicates that make a loss (RFC 5681 section 3.2, RFC 8985 DupThresh).
pub(super) const DUPLICATE_THRESHOLD: u64 = 3;

/// A range that was sent again and has not arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Resent {
    end: u64,
    /// Number of its last transmission.
    serial: u64,
    /// When that was given to the device, and when it left; `None` while it waits there.
    queued: Instant,
    left: Option<Instant>,
    /// The timestamp in the first of its retransmissions, and whether there were more.
    stamp: u32,
    twice: bool,
    /// It is in the lost set again.
    lost: bool,
}

/// What is known besides the reports when an acknowledgement is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clues {
    pub now: Instant,
    /// The highest position that had arrived before.
    pub fack: u64,
    /// The least round-trip time that the path has shown.
    pub least_rtt: Duration,
    /// What arrives sooner than this after it was sent again came by its first transmission.
    pub early: Duration,
    /// The timestamp that the peer echoes, where it tells of the oldest unacknowledged segment (RFC 3522).
    pub echo: Option<u32>,
}

/// What one acknowledgement told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// Bytes newly known to have arrived.
    pub delivered: u64,
    /// The newest first transmission among them.
    pub original: Option<Newest>,
    /// The newest transmission among them, as far as it is certain which one arrived.
    pub newest: Option<Newest>,
    /// One past the highest position among them.
    pub end: u64,
    /// Some had been sent again: a cumulative acknowledgement of them measures nothing (Karn).
    pub resent: bool,
    /// A first transmission arrived after what was sent later.
    pub reordered: bool,
    /// How far behind the highest position that had arrived it lay, in bytes, at most.
    pub distance: u64,
    /// Bytes that arrived by their first transmission, taken to be lost and not sent again.
    pub unexpected: u64,
}

/// What [`Scoreboard::detect`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Something is newly taken to be lost.
    pub lost: bool,
    /// Retransmissions among it.
    pub again: u64,
    /// When to look again, if nothing arrives before.
    pub next: Option<Instant>,
}

/// The sender's view of what is in flight.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    departures: Departures,
    sacked: RangeSet,
    lost: RangeSet,
    /// By start.
    resent: OrderedMap<u64, Resent>,
    /// Those of them that are not lost by time of transmission: (serial, start).
    order: OrderedMap<(u64, u64), ()>,
    /// What was sent again in this recovery, without what turned out to be spurious.
    repeated: RangeSet,
    serial: u64,
    /// First transmissions below were judged.
    judged: u64,
    /// Without SACK: bytes that left the network according to duplicate acknowledgements.
    assumed: u64,
    /// Ranges looked at, to bound the cost of acknowledgements in tests.
    #[cfg(test)]
    pub steps: u64,
}

impl Scoreboard {
    /// Bytes of `una..nxt` that are in the network.
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        (nxt - una).saturating_sub(self.reported() + self.lost.bytes())
    }

    /// Bytes that the peer reported, or whose arrival its duplicates tell of.
    pub fn reported(&self) -> u64 {
        self.sacked.bytes() + self.assumed
    }

    /// Bytes that were sent again and are in the network.
    pub fn resent_bytes(&self) -> u64 {
        let waiting = self.resent.iter().filter(|(_, resent)| !resent.lost);
        waiting.map(|(start, resent)| resent.end - start).sum()
    }

    /// Whether something that was sent again is in the network.
    pub fn has_resent(&self) -> bool {
        !self.order.is_empty()
    }

    /// Whether the peer reported something that it has not acknowledged.
    pub fn has_reports(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// Whether three segments are reported: three ranges, or more bytes than two segments of `mss` have.
    pub fn has_enough_reports(&self, mss: u64) -> bool {
        let ranges = self.sacked.descending().take(DUPLICATE_THRESHOLD as usize).count() as u64;
        ranges >= DUPLICATE_THRESHOLD || self.sacked.bytes() > (DUPLICATE_THRESHOLD - 1) * mss
    }

    /// Whether nothing is known but that bytes are in flight.
    pub fn is_clean(&self) -> bool {
        self.reported() == 0 && self.lost.is_empty() && self.resent.is_empty()
    }

    /// Whether nothing is on it: nothing is in flight, and whatever was is forgotten.
    pub fn is_empty(&self) -> bool {
        self.is_clean() && self.departures.last().is_none()
    }

    /// Bytes that are taken to be lost and wait to be sent again.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.bytes()
    }

    /// The first range to send again.
    pub fn next_lost(&self) -> Option<(u64, u64)> {
        self.lost.first()
    }

    /// A number for the next transmission.
    pub fn new_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The first transmission `serial`, up to `end`, left the device.
    pub fn left_first(&mut self, end: u64, serial: u64, now: Instant) {
        self.departures.push(Departure { end, serial, left: now });
    }

    /// The retransmission `serial` of `start..end` left the device.
    pub fn left_again(&mut self, start: u64, end: u64, serial: u64, now: Instant) {
        for (_, resent) in self.resent.range_mut(start, end) {
            if resent.serial == serial {
                resent.left = Some(now);
            }
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        let departures = self.take_memory();
        *self = Scoreboard::default();
        self.departures.lend(departures);
    }

    /// Memory for departures that another has left, where there is none.
    pub fn lend(&mut self, departures: VecDeque<Departure>) {
        self.departures.lend(departures);
    }

    /// What is left of that; departures are done with.
    pub fn take_memory(&mut self) -> VecDeque<Departure> {
        self.departures.take_memory()
    }

    /// Forgets when packets left: what comes now measures nothing.
    pub fn forget_departures(&mut self) {
        self.departures.clear();
    }

    /// The last packet that left: where it begins (0 if it is not known) and where it ends.
    pub fn last_departure(&self) -> Option<(u64, u64)> {
        self.departures.last()
    }

    /// The acknowledgement moved up to `una`.
    pub fn acknowledge(&mut self, old_una: u64, una: u64, clues: &Clues, arrivals: &mut Arrivals) {
        let mut from = old_una;
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, una) {
            let echo = clues.echo.filter(|_| gap == old_una);
            self.arrive(gap, gap_end, &Clues { echo, ..*clues }, arrivals);
            from = gap_end;
        }
        self.sacked.remove_below(una);
        self.departures.acknowledge(una);
        self.judged = self.judged.max(una);
    }

    /// When the byte at `position` left for the first time, as far as that is known.
    pub fn departure_of(&self, position: u64) -> Option<Departure> {
        self.departures.find(position)
    }

    /// As [`Scoreboard::acknowledge`], where it [is clean](Scoreboard::is_clean) and what arrived is all that is in flight.
    pub fn all_arrived(&mut self, una: u64) {
        self.step();
        self.departures.acknowledge(una);
        self.judged = self.judged.max(una);
    }

    /// The peer reported `start..end`.
    pub fn sack(&mut self, start: u64, end: u64, clues: &Clues, arrivals: &mut Arrivals) {
        let clues = Clues { echo: None, ..*clues };
        let mut from = start;
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, end) {
            self.arrive(gap, gap_end, &clues, arrivals);
            from = gap_end;
        }
        self.sacked.insert(start, end);
    }

    /// `start..end` is newly known to have arrived. An echo in `clues` is that of the segment at `start`.
    fn arrive(&mut self, start: u64, end: u64, clues: &Clues, arrivals: &mut Arrivals) {
        self.step();
        arrivals.delivered += end - start;
        arrivals.end = arrivals.end.max(end);
        let mut unexpected = self.lost.remove(start, end);
        let mut from = start;
        while let Some((at, resent)) = self.take_resent(start, end) {
            if from < at {
                self.arrive_first(from, at, clues, arrivals);
            }
            if resent.lost {
                unexpected -= resent.end - at;
            }
            let echo = clues.echo.filter(|_| at == start);
            self.arrive_again(at, resent, &Clues { echo, ..*clues }, arrivals);
            from = resent.end;
        }
        if from < end {
            self.arrive_first(from, end, clues, arrivals);
        }
        arrivals.unexpected += unexpected;
    }

    /// What was sent only once, up to `end`, arrived.
    fn arrive_first(&mut self, start: u64, end: u64, clues: &Clues, arrivals: &mut Arrivals) {
        if end <= clues.fack {
            arrivals.reordered = true;
            arrivals.distance = arrivals.distance.max(clues.fack - start);
        }
        if let Some(packet) = self.departures.find(end - 1) {
            arrivals.see_original(Newest { serial: packet.serial, end, left: packet.left });
        }
    }

    /// What was sent again arrived, by the first or by a later transmission.
    fn arrive_again(&mut self, start: u64, resent: Resent, clues: &Clues, arrivals: &mut Arrivals) {
        arrivals.resent = true;
        if clues.echo.is_some_and(|echo| (echo.wrapping_sub(resent.stamp) as i32) < 0) {
            // The echo is that of an older segment (RFC 3522): the retransmission was spurious.
            self.repeated.remove(start, resent.end);
            self.arrive_first(start, resent.end, clues, arrivals);
            return;
        }
        // An echo that is there is that of the retransmission.
        if clues.now - resent.queued < clues.early && clues.echo.is_none() && !resent.twice {
            self.repeated.remove(start, resent.end);
        }
        // Faster than the path ever was: it may have been the first transmission (RFC 8985 section 6.2 step 2). One that
        // seems not to have left tells nothing: devices may report that late.
        if let Some(left) = resent.left.filter(|&left| clues.now - left >= clues.least_rtt) {
            arrivals.see(Newest { serial: resent.serial, end: resent.end, left });
        }
    }

    /// The peer reported that `start..end` came twice: the retransmission was spurious (RFC 3708).
    pub fn duplicated(&mut self, start: u64, end: u64) {
        self.repeated.remove(start, end);
    }

    /// Whether all that was sent again since [`Scoreboard::watch_repeats`] was spurious.
    pub fn repeated_in_vain(&self) -> bool {
        self.repeated.is_empty()
    }

    /// From now on it counts whether the retransmission was spurious.
    pub fn watch_repeats(&mut self) {
        self.repeated.clear();
    }

    /// Whether the peer reported a range that starts right at `una` and yet does not acknowledge it: it has dropped
    /// data that it had reported (RFC 2018 section 8).
    pub fn is_reneged(&self, una: u64) -> bool {
        self.sacked.first().is_some_and(|(start, _)| start <= una)
    }

    /// Forgets all reports (RFC 2018 section 8).
    pub fn forget_reports(&mut self) {
        self.sacked.clear();
        self.judged = 0;
    }

    /// A duplicate acknowledgement came from a peer without SACK: a segment of `len` bytes left the network. Returns how
    /// many bytes that is.
    pub fn assume_arrived(&mut self, len: u64, una: u64, nxt: u64) -> u64 {
        // At least the first segment, which the duplicate asks for, did not arrive.
        let before = self.assumed;
        self.assumed = (self.assumed + len).min((nxt - una).saturating_sub(len)).max(before);
        self.assumed - before
    }

    /// An acknowledgement of `len` bytes came from a peer without SACK: so much less of what duplicates told remains.
    /// Returns how much of it they had told.
    pub fn settle_assumed(&mut self, len: u64) -> u64 {
        let settled = self.assumed.min(len);
        self.assumed -= settled;
        settled
    }

    /// Forgets what duplicates told.
    pub fn forget_assumed(&mut self) {
        self.assumed = 0;
    }

    /// Takes `start..end`, unless reported, to be lost; returns whether any of it was not before.
    pub fn mark_lost(&mut self, start: u64, end: u64) -> bool {
        let mut news = false;
        let mut from = start;
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, end) {
            news |= self.lost.insert(gap, gap_end) > 0;
            from = gap_end;
        }
        let mut from = start;
        while let Some((at, resent)) = self.take_resent(from, end) {
            self.keep_resent(at, Resent { lost: true, ..resent });
            from = resent.end;
        }
        news
    }

    /// After a timeout (RFC 8985 section 6.3): the segment at `una`, `len` bytes, is lost, and everything that has been
    /// outstanding for `patience`; everything that left if that is not known.
    pub fn mark_timed_out(&mut self, una: u64, len: u64, now: Instant, patience: Option<Duration>) {
        let patience = patience.map_or(0, nanos);
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(patience));
        let bound = self.departures.end_by(before);
        let mut from = una;
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, bound) {
            self.lose_first(gap, gap_end);
            from = gap_end;
        }
        while let Some((at, resent)) = self.oldest_resent()
            && resent.left.is_some_and(|left| left <= before)
        {
            self.lose_again(at, resent);
        }
        self.mark_lost(una, una + len);
    }

    /// Sent before the newest arrival, and long enough ago: takes that to be lost (RACK_detect_loss, RFC 8985 section 6.2
    /// step 5).
    pub fn detect(&mut self, una: u64, rule: &Rule) -> Found {
        let mut found = Found::default();
        self.detect_first(una, rule, &mut found);
        while let Some((at, resent)) = self.oldest_resent()
            && let Some(left) = resent.left
            && (resent.serial, resent.end) < (rule.newest.serial, rule.newest.end)
        {
            self.step();
            if found.must_wait(left + rule.wait, rule.now) {
                break;
            }
            self.lose_again(at, resent);
            found.again += 1;
        }
        found
    }

    fn detect_first(&mut self, una: u64, rule: &Rule, found: &mut Found) {
        let bound = self.departures.end_before(rule.newest.serial, rule.newest.end);
        let mut from = self.judged.max(una);
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, bound)
            && let Some(packet) = self.departures.find(gap)
        {
            self.step();
            from = gap;
            if found.must_wait(packet.left + rule.wait, rule.now) {
                break;
            }
            from = gap_end.min(packet.end);
            found.lost |= self.lose_first(gap, from);
        }
        self.judged = from;
    }

    /// `start..end` is given to the device again; `stamp`: the timestamp in it. Returns the number of the transmission, and whether any of
    /// it had been sent again before.
    pub fn mark_resent(&mut self, now: Instant, start: u64, end: u64, stamp: u32) -> (u64, bool) {
        self.lost.remove(start, end);
        let mut first_stamp = None;
        while let Some((_, resent)) = self.take_resent(start, end) {
            first_stamp.get_or_insert(resent.stamp);
        }
        let (serial, twice) = (self.new_serial(), first_stamp.is_some());
        let stamp = first_stamp.unwrap_or(stamp);
        self.keep_resent(start, Resent { end, serial, queued: now, left: None, stamp, twice, lost: false });
        (serial, twice)
    }

    /// Remembers that `start..end` is sent again because it was taken to be lost.
    pub fn note_repeat(&mut self, start: u64, end: u64) {
        self.repeated.insert(start, end);
    }

    /// Nothing was lost after all: all is in the network again, and judged anew.
    pub fn restore(&mut self) {
        self.lost.clear();
        for (at, resent) in self.resent.iter_mut().filter(|(_, resent)| resent.lost) {
            resent.lost = false;
            self.order.insert((resent.serial, at), ());
        }
        self.repeated.clear();
        self.judged = 0;
    }

    /// Puts the parts of `start..end` that were sent only once into the lost set.
    fn lose_first(&mut self, start: u64, end: u64) -> bool {
        if self.resent.is_empty() {
            return self.lost.insert(start, end) > 0;
        }
        let (mut from, mut news) = (start, false);
        while from < end {
            let (gap_end, after) =
                self.first_resent(from, end).map_or((end, end), |(at, resent)| (at, resent.end));
            news |= self.lost.insert(from, gap_end) > 0;
            from = after;
        }
        news
    }

    /// The retransmission that was sent first and is not lost.
    fn oldest_resent(&self) -> Option<(u64, Resent)> {
        let ((_, at), ()) = self.order.first()?;
        self.resent.get(at).map(|&resent| (at, resent))
    }

    fn lose_again(&mut self, at: u64, resent: Resent) {
        self.order.remove((resent.serial, at));
        self.resent.insert(at, Resent { lost: true, ..resent });
        self.lost.insert(at, resent.end);
    }

    /// The first range sent again that overlaps `start..end`.
    fn first_resent(&self, start: u64, end: u64) -> Option<(u64, Resent)> {
        let before = self.resent.below(start).filter(|(_, resent)| resent.end > start);
        let next = || self.resent.from(start).filter(|(at, _)| *at < end);
        before.or_else(next).map(|(at, &resent)| (at, resent))
    }

    /// Takes the first part of `start..end` that was sent again out of the log.
    fn take_resent(&mut self, start: u64, end: u64) -> Option<(u64, Resent)> {
        if self.resent.is_empty() || start >= end {
            return None;
        }
        let (at, resent) = self.first_resent(start, end)?;
        self.resent.remove(at);
        self.order.remove((resent.serial, at));
        if at < start {
            self.keep_resent(at, Resent { end: start, ..resent });
        }
        if resent.end > end {
            self.keep_resent(end, resent);
        }
        Some((at.max(start), Resent { end: resent.end.min(end), ..resent }))
    }

    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    fn keep_resent(&mut self, start: u64, resent: Resent) {
        self.resent.insert(start, resent);
        if !resent.lost {
            self.order.insert((resent.serial, start), ());
        }
    }
}

impl Arrivals {
    fn see(&mut self, seen: Newest) {
        if self.newest.is_none_or(|newest| (newest.serial, newest.end) < (seen.serial, seen.end)) {
            self.newest = Some(seen);
        }
    }

    fn see_original(&mut self, seen: Newest) {
        if self.original.is_none_or(|newest| newest.end < seen.end) {
            self.original = Some(seen);
        }
        self.see(seen);
    }
}

impl Found {
    /// Whether what is due then is not due yet; notes when to look again.
    fn must_wait(&mut self, due: Instant, now: Instant) -> bool {
        if due <= now {
            return false;
        }
        self.next = Some(self.next.map_or(due, |next| next.min(due)));
        true
    }
}

#[cfg(test)]
mod tests;
