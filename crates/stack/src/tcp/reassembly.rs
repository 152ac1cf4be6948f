//! Received data that waits for what is missing before it.

use super::ordered::OrderedMap;
use super::ranges::RangeSet;
use alloc::collections::VecDeque;
use linerate_nic::Slice;
use linerate_wire::tcp::{SackBlock, SackBlocks, SeqNumber};

/// Most ranges whose change is remembered until it is reported: more than the frames of an interrupt.
const MOST_RECENT: usize = 64;

/// Payload out of order: disjoint pieces by position, and the ranges they form.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    pieces: OrderedMap<u64, Slice>,
    ranges: RangeSet,
    /// Starts of the ranges that changed last, newest first (RFC 2018 section 4). Some may have become readable since.
    recent: VecDeque<u64>,
    /// So many of them, the newest, changed since they were reported.
    unreported: usize,
}

impl Reassembly {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Pieces that wait.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The first part of `from..to` that is not here yet: what came first is kept, whatever comes later.
    pub fn first_gap(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        self.ranges.first_gap(from, to)
    }

    /// Adds a piece, which must lie in a gap.
    pub fn insert(&mut self, at: u64, piece: Slice) {
        self.ranges.insert(at, at + piece.len() as u64);
        self.pieces.insert(at, piece);
    }

    /// Copies `bytes`, which begin at `at` and lie in a gap, behind the piece that ends there, if its buffer has room.
    pub fn append(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some((start, last)) = self.pieces.below_mut(at) else { return false };
        if start + last.len() as u64 != at || !last.extend(bytes) {
            return false;
        }
        self.ranges.insert(at, at + bytes.len() as u64);
        true
    }

    /// Notes that the range around `at` is the one that changed last.
    pub fn touch(&mut self, at: u64) {
        let Some((start, end)) = self.ranges.containing(at) else { return };
        let (mut unreported, mut index) = (1, 0);
        // Ranges that grew together are the same one now.
        self.recent.retain(|&other| {
            let is_other = other < start || other >= end;
            unreported += usize::from(is_other && index < self.unreported);
            index += 1;
            is_other
        });
        self.recent.truncate(MOST_RECENT - 1);
        self.recent.push_front(start);
        self.unreported = unreported.min(MOST_RECENT);
    }

    /// Takes the piece at `next`, if it is here.
    pub fn take(&mut self, next: u64) -> Option<Slice> {
        if self.pieces.first().is_none_or(|(first, _)| first != next) {
            return None;
        }
        let (_, piece) = self.pieces.pop_first()?;
        self.ranges.remove_below(next + piece.len() as u64);
        Some(piece)
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.ranges.clear();
        self.recent.clear();
        self.unreported = 0;
    }

    /// Position after the last byte here.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last().map(|(_, end)| end)
    }

    /// The `room` SACK blocks to report next: `duplicate` first (RFC 2883), then the ranges that changed, newest first. When
    /// more changed than fit, the oldest are reported before the newest, as if each segment had been answered at once
    /// (RFC 2018 section 4).
    pub fn blocks(&self, duplicate: Option<(u64, u64)>, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.pieces.is_empty() && duplicate.is_none() {
            return blocks;
        }
        let block = |(start, end): (u64, u64)| SackBlock {
            left: SeqNumber(start as u32),
            right: SeqNumber(end as u32),
        };
        if let Some(duplicate) = duplicate {
            blocks.push(block(duplicate));
        }
        let room = room.saturating_sub(blocks.as_slice().len());
        let recent = self.recent.iter().skip(self.unreported.saturating_sub(room));
        let ranges = recent.filter_map(|&start| self.ranges.containing(start));
        for range in ranges.take(room) {
            blocks.push(block(range));
        }
        blocks
    }

    /// `room` of the ranges that changed were reported.
    pub fn reported(&mut self, room: usize) {
        self.unreported = self.unreported.saturating_sub(room);
    }

    /// Whether a change was not reported yet.
    pub fn has_unreported(&self) -> bool {
        !self.pieces.is_empty()
            && self.recent.iter().take(self.unreported).any(|&start| self.ranges.containing(start).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use linerate_nic::Pool;

    fn piece(pool: &Pool, len: usize) -> Slice {
        pool.take().unwrap().freeze(0..len)
    }

    fn blocks(reassembly: &Reassembly, duplicate: Option<(u64, u64)>) -> Vec<(u32, u32)> {
        let blocks = reassembly.blocks(duplicate, 4);
        blocks.as_slice().iter().map(|block| (block.left.0, block.right.0)).collect()
    }

    #[test]
    fn reports_the_newest_range_first() {
        let pool = Pool::new(16, 16);
        let mut reassembly = Reassembly::default();
        for at in [10, 30, 50, 70, 90] {
            reassembly.insert(at, piece(&pool, 10));
            reassembly.touch(at);
            reassembly.reported(4);
        }
        assert!(!reassembly.has_unreported());
        assert_eq!(blocks(&reassembly, None), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        reassembly.insert(40, piece(&pool, 10));
        reassembly.touch(40);
        let grown = [(30, 60), (90, 100), (70, 80), (10, 20)];
        assert_eq!(blocks(&reassembly, None), grown, "grown together");
        assert_eq!(blocks(&reassembly, Some((1, 2)))[0], (1, 2), "a duplicate comes before all");
        assert!(reassembly.take(0).is_none());
        for at in [10, 30, 40, 50] {
            assert_eq!(reassembly.take(at).unwrap().len(), 10);
        }
        assert_eq!(blocks(&reassembly, None), [(90, 100), (70, 80)]);
        assert_eq!(reassembly.end(), Some(100));
    }

    #[test]
    fn rfc_2018_4_all_that_changed_is_reported_once_oldest_first() {
        let pool = Pool::new(16, 16);
        let mut reassembly = Reassembly::default();
        for at in [10, 30, 50, 70, 90] {
            reassembly.insert(at, piece(&pool, 10));
            reassembly.touch(at);
        }
        let reported: Vec<_> = core::iter::from_fn(|| {
            let more = reassembly.has_unreported();
            let next = reassembly.blocks(None, 2).as_slice().iter().map(|b| b.left.0).collect::<Vec<_>>();
            reassembly.reported(2);
            more.then_some(next)
        })
        .collect();
        assert_eq!(reported, [[30, 10], [70, 50], [90, 70]]);
        // What became readable meanwhile needs no report.
        reassembly.insert(0, piece(&pool, 10));
        reassembly.touch(0);
        assert!(reassembly.has_unreported());
        assert!(reassembly.take(0).is_some() && reassembly.take(10).is_some());
        assert!(!reassembly.has_unreported());
    }

    #[test]
    fn what_came_first_leaves_gaps_for_the_rest() {
        let pool = Pool::new(4, 16);
        let mut reassembly = Reassembly::default();
        reassembly.insert(20, piece(&pool, 5));
        reassembly.insert(30, piece(&pool, 5));
        assert_eq!(reassembly.first_gap(10, 40), Some((10, 20)));
        assert_eq!(reassembly.first_gap(20, 40), Some((25, 30)));
        assert_eq!(reassembly.first_gap(30, 40), Some((35, 40)));
        assert_eq!(reassembly.first_gap(31, 35), None);
    }
}
