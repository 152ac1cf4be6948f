//! What became of every byte in flight, as far as the sender can know (RFC 6675, RFC 6582).
//!
//! A byte between the oldest unacknowledged one and the next to be sent is in at most one of three sets:
//!
//! - **sacked**: the peer reported it;
//! - **lost**: it is taken to be lost and waits to be sent again;
//! - **resent**: it was sent again and is in flight.
//!
//! All others are in flight for the first time. So the bytes in the network ("pipe" of RFC 6675) are those in flight
//! less sacked and lost, and each operation is O(log n) in the number of holes, however much is in flight.
//!
//! A retransmission can be lost too. Each one notes how far new data had been sent (its *fence*) and which retransmission
//! it was (its *serial*). When data from beyond the fence, or three later retransmissions, arrive and it does not, it is
//! lost again and comes back into the lost set: no timeout is needed.

use super::ranges::RangeSet;
use alloc::collections::{BTreeMap, BTreeSet};

/// Duplicates that make a loss (RFC 5681 section 3.2, RFC 6675 DupThresh).
pub(super) const DUPLICATE_THRESHOLD: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Resent {
    end: u64,
    serial: u64,
    fence: u64,
}

/// The sender's view of what is in flight.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    sacked: RangeSet,
    lost: RangeSet,
    /// By start.
    resent: BTreeMap<u64, Resent>,
    /// The same by time: (serial, start).
    order: BTreeSet<(u64, u64)>,
    next_serial: u64,
    /// Highest serial of a retransmission that arrived.
    arrived_serial: u64,
    /// Everything below was judged for loss.
    judged: u64,
    /// Without SACK: bytes that left the network according to duplicate acknowledgements.
    assumed: u64,
}

impl Scoreboard {
    /// Bytes of `una..nxt` that are in the network.
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        (nxt - una).saturating_sub(self.sacked.bytes() + self.lost.bytes() + self.assumed)
    }

    /// Whether nothing is known but that bytes are in flight.
    pub fn is_clean(&self) -> bool {
        self.sacked.is_empty() && self.lost.is_empty() && self.resent.is_empty() && self.assumed == 0
    }

    /// Bytes the peer reported.
    #[cfg(test)]
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    /// Bytes that wait to be sent again.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.bytes()
    }

    /// The first range to send again.
    pub fn next_lost(&self) -> Option<(u64, u64)> {
        self.lost.first()
    }

    /// The acknowledgement moved up to `una`; returns how many of the bytes below had not been reported before.
    pub fn acknowledge(&mut self, old_una: u64, una: u64) -> u64 {
        let known = self.sacked.remove_below(una);
        self.lost.remove_below(una);
        self.remove_resent(old_una, una);
        self.judged = self.judged.max(una);
        (una - old_una) - known
    }

    /// The peer reported `start..end`; returns how many bytes of it are news.
    pub fn sack(&mut self, start: u64, end: u64) -> u64 {
        let new = self.sacked.insert(start, end);
        if new > 0 {
            self.lost.remove(start, end);
            self.remove_resent(start, end);
        }
        new
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

    /// A duplicate acknowledgement came from a peer without SACK: a segment of `len` bytes left the network.
    pub fn assume_arrived(&mut self, len: u64, una: u64, nxt: u64) {
        // At least the first segment, which the duplicate asks for, did not arrive.
        self.assumed = (self.assumed + len).min((nxt - una).saturating_sub(len));
    }

    /// An acknowledgement of `len` bytes came from a peer without SACK: so much less of what duplicates told remains.
    pub fn settle_assumed(&mut self, len: u64) {
        self.assumed = self.assumed.saturating_sub(len);
    }

    /// Forgets what duplicates told.
    pub fn forget_assumed(&mut self) {
        self.assumed = 0;
    }

    /// Takes `start..end`, unless reported, to be lost.
    pub fn mark_lost(&mut self, start: u64, end: u64) {
        self.remove_resent_only(start, end);
        let mut from = start;
        while let Some((gap, gap_end)) = self.sacked.first_gap(from, end) {
            self.lost.insert(gap, gap_end);
            from = gap_end;
        }
    }

    /// Judges what the reports tell (RFC 6675 IsLost, with `mss`); returns whether anything is newly taken to be lost,
    /// and how many retransmissions are.
    pub fn judge(&mut self, una: u64, mss: u64) -> (bool, u64) {
        let mut news = false;
        if let Some(bound) = self.loss_bound(mss) {
            let mut from = self.judged.max(una);
            while let Some((gap, gap_end)) = self.sacked.first_gap(from, bound) {
                news |= self.lose_originals(gap, gap_end);
                from = gap_end;
            }
            self.judged = self.judged.max(bound);
        }
        (news, self.judge_resent(mss))
    }

    /// `start..end` was sent again as `segments` segments when new data had been sent up to `fence`.
    pub fn mark_resent(&mut self, start: u64, end: u64, fence: u64, segments: u64) {
        self.lost.remove(start, end);
        self.remove_resent_only(start, end);
        self.next_serial += segments.max(1);
        let serial = self.next_serial;
        self.resent.insert(start, Resent { end, serial, fence });
        self.order.insert((serial, start));
    }

    /// Everything before this is lost, as far as the reports tell: there is enough data reported above.
    fn loss_bound(&self, mss: u64) -> Option<u64> {
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.sacked.descending() {
            ranges += 1;
            bytes += end - start;
            if ranges >= DUPLICATE_THRESHOLD || bytes > (DUPLICATE_THRESHOLD - 1) * mss {
                return Some(start);
            }
        }
        None
    }

    /// Whether enough data was reported beyond `fence` to call what was sent before it lost.
    fn is_passed(&self, fence: u64, mss: u64) -> bool {
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.sacked.descending().take_while(|&(_, end)| end > fence) {
            ranges += 1;
            bytes += end - start.max(fence);
            if ranges >= DUPLICATE_THRESHOLD || bytes > (DUPLICATE_THRESHOLD - 1) * mss {
                return true;
            }
        }
        false
    }

    /// Puts the parts of `start..end` that were sent only once into the lost set.
    fn lose_originals(&mut self, start: u64, end: u64) -> bool {
        let mut from = start;
        if let Some((_, before)) = self.resent.range(..start).next_back() {
            from = from.max(before.end);
        }
        let mut news = false;
        while from < end {
            let next = self.resent.range(from..end).next().map(|(&at, resent)| (at, resent.end));
            let (gap_end, after) = next.unwrap_or((end, end));
            news |= self.lost.insert(from, gap_end) > 0;
            from = after;
        }
        news
    }

    fn judge_resent(&mut self, mss: u64) -> u64 {
        let mut count = 0;
        while let Some(&(serial, start)) = self.order.first() {
            let Some(&Resent { end, fence, .. }) = self.resent.get(&start) else {
                self.order.pop_first();
                continue;
            };
            if self.arrived_serial < serial + DUPLICATE_THRESHOLD && !self.is_passed(fence, mss) {
                break;
            }
            self.order.pop_first();
            self.resent.remove(&start);
            self.lost.insert(start, end);
            count += 1;
        }
        count
    }

    /// Takes `start..end`, which arrived, out of the resent set.
    fn remove_resent(&mut self, start: u64, end: u64) {
        let serial = self.remove_resent_only(start, end);
        self.arrived_serial = self.arrived_serial.max(serial);
    }

    /// The same without drawing conclusions; returns the highest serial removed.
    fn remove_resent_only(&mut self, start: u64, end: u64) -> u64 {
        if self.resent.is_empty() {
            return 0;
        }
        let mut highest = 0;
        let before = self.resent.range(..start).next_back().map(|(&at, &resent)| (at, resent));
        if let Some((at, resent)) = before
            && resent.end > start
        {
            highest = resent.serial;
            self.resent.insert(at, Resent { end: start, ..resent });
            if resent.end > end {
                self.keep_resent(end, resent);
            }
        }
        loop {
            let next = self.resent.range(start..end).next().map(|(&at, &resent)| (at, resent));
            let Some((at, resent)) = next else { break };
            self.resent.remove(&at);
            self.order.remove(&(resent.serial, at));
            highest = highest.max(resent.serial);
            if resent.end > end {
                self.keep_resent(end, resent);
            }
        }
        highest
    }

    fn keep_resent(&mut self, start: u64, resent: Resent) {
        self.resent.insert(start, resent);
        self.order.insert((resent.serial, start));
    }
}

#[cfg(test)]
mod tests;
