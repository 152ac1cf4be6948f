//! Received data that waits for what is missing before it.

use super::ranges::RangeSet;
use alloc::collections::BTreeMap;
use linerate_nic::Slice;
use linerate_wire::tcp::{MAX_SACK_BLOCKS, SackBlock, SackBlocks, SeqNumber};

/// Payload out of order: disjoint pieces by position, and the ranges they form.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    pieces: BTreeMap<u64, Slice>,
    ranges: RangeSet,
    /// Starts of the ranges that changed last, newest first (RFC 2018 section 4).
    recent: [Option<u64>; MAX_SACK_BLOCKS],
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

    /// Notes that the range around `at` is the one that changed last.
    pub fn touch(&mut self, at: u64) {
        let Some((start, end)) = self.ranges.containing(at) else { return };
        let mut kept = [None; MAX_SACK_BLOCKS];
        kept[0] = Some(start);
        // Blocks that grew together name the same range: one of them is enough.
        let others = self.recent.iter().flatten().filter(|&&other| other < start || other >= end);
        for (slot, &other) in kept[1..].iter_mut().zip(others) {
            *slot = Some(other);
        }
        self.recent = kept;
    }

    /// Takes the piece at `next`, if it is here.
    pub fn take(&mut self, next: u64) -> Option<Slice> {
        let first = self.pieces.first_entry()?;
        if *first.key() != next {
            return None;
        }
        let piece = first.remove();
        self.ranges.remove_below(next + piece.len() as u64);
        Some(piece)
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.ranges.clear();
        self.recent = [None; MAX_SACK_BLOCKS];
    }

    /// Position after the last byte here.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last().map(|(_, end)| end)
    }

    /// The SACK blocks to report: `duplicate` first (RFC 2883), then what changed last.
    pub fn blocks(&self, duplicate: Option<(u64, u64)>) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let block = |(start, end): (u64, u64)| SackBlock {
            left: SeqNumber(start as u32),
            right: SeqNumber(end as u32),
        };
        if let Some(duplicate) = duplicate {
            blocks.push(block(duplicate));
        }
        for &start in self.recent.iter().flatten() {
            if let Some(range) = self.ranges.containing(start) {
                blocks.push(block(range));
            }
        }
        blocks
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
        let blocks = reassembly.blocks(duplicate);
        blocks.as_slice().iter().map(|block| (block.left.0, block.right.0)).collect()
    }

    #[test]
    fn reports_the_newest_range_first() {
        let pool = Pool::new(16, 16);
        let mut reassembly = Reassembly::default();
        for at in [10, 30, 50, 70, 90] {
            reassembly.insert(at, piece(&pool, 10));
            reassembly.touch(at);
        }
        assert_eq!(blocks(&reassembly, None), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        reassembly.insert(40, piece(&pool, 10));
        reassembly.touch(40);
        assert_eq!(blocks(&reassembly, None), [(30, 60), (90, 100), (70, 80)], "grown together");
        assert_eq!(blocks(&reassembly, Some((1, 2)))[0], (1, 2), "a duplicate comes before all");
        assert!(reassembly.take(0).is_none());
        for at in [10, 30, 40, 50] {
            assert_eq!(reassembly.take(at).unwrap().len(), 10);
        }
        assert_eq!(blocks(&reassembly, None), [(90, 100), (70, 80)]);
        assert_eq!(reassembly.end(), Some(100));
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
