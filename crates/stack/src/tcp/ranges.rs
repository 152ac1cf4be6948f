//! Sets of byte ranges on the 64-bit number line.

use super::ordered::OrderedMap;

/// A set of numbers, kept as disjoint ranges that do not touch each other.
#[derive(Clone, Debug, Default)]
pub(super) struct RangeSet {
    /// Start to end (exclusive).
    map: OrderedMap<u64, u64>,
    bytes: u64,
}

impl RangeSet {
    /// Adds `start..end`; returns how many numbers are new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut from, mut to, mut covered) = (start, end, 0);
        if let Some((before, &before_end)) = self.map.below(start)
            && before_end >= start
        {
            if before_end >= end {
                return 0;
            }
            self.map.remove(before);
            from = before;
            covered = before_end - before;
        }
        while let Some((next, &next_end)) = self.map.from(start)
            && next <= to
        {
            self.map.remove(next);
            covered += next_end - next;
            to = to.max(next_end);
        }
        self.map.insert(from, to);
        let added = (to - from) - covered;
        self.bytes += added;
        added
    }

    /// Takes `start..end` out; returns how many numbers were in the set.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let mut removed = 0;
        if let Some((before, &before_end)) = self.map.below(start)
            && before_end > start
        {
            self.map.insert(before, start);
            removed += before_end.min(end) - start;
            if before_end > end {
                self.map.insert(end, before_end);
            }
        }
        while let Some((next, &next_end)) = self.map.from(start)
            && next < end
        {
            self.map.remove(next);
            removed += next_end.min(end) - next;
            if next_end > end {
                self.map.insert(end, next_end);
            }
        }
        self.bytes -= removed;
        removed
    }

    /// Takes everything below `bound` out; returns how much that was.
    pub fn remove_below(&mut self, bound: u64) -> u64 {
        match self.first() {
            Some((first, _)) if first < bound => self.remove(first, bound),
            _ => 0,
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.map.clear();
        self.bytes = 0;
    }

    /// Numbers in the set.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.map.first().map(|(start, &end)| (start, end))
    }

    /// The highest range.
    pub fn last(&self) -> Option<(u64, u64)> {
        self.map.last().map(|(start, &end)| (start, end))
    }

    /// The range that holds `at`.
    pub fn containing(&self, at: u64) -> Option<(u64, u64)> {
        let (start, &end) = self.map.below(at.saturating_add(1))?;
        (end > at).then_some((start, end))
    }

    /// The first part of `from..to` that is not in the set.
    pub fn first_gap(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let from = self.containing(from).map_or(from, |(_, end)| end);
        if from >= to {
            return None;
        }
        let next = self.map.from(from).map_or(to, |(start, _)| start.min(to));
        Some((from, next))
    }

    /// The ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.map.iter().rev().map(|(start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn members(set: &RangeSet) -> BTreeSet<u64> {
        set.map.iter().flat_map(|(start, &end)| start..end).collect()
    }

    fn is_canonical(set: &RangeSet) -> bool {
        let ranges: Vec<_> = set.map.iter().collect();
        ranges.iter().all(|&(start, &end)| start < end)
            && ranges.windows(2).all(|pair| *pair[0].1 < pair[1].0)
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_numbers(
            steps in proptest::collection::vec((0u8..3, 0u64..60, 0u64..20), 1..60)
        ) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for (kind, start, len) in steps {
                let end = start + len;
                let before = model.len() as u64;
                match kind {
                    0 => {
                        model.extend(start..end);
                        prop_assert_eq!(set.insert(start, end), model.len() as u64 - before);
                    }
                    1 => {
                        model.retain(|&n| n < start || n >= end);
                        prop_assert_eq!(set.remove(start, end), before - model.len() as u64);
                    }
                    _ => {
                        let gap = set.first_gap(start, end);
                        let expected = (start..end).find(|n| !model.contains(n));
                        prop_assert_eq!(gap.map(|g| g.0), expected);
                        if let Some((from, to)) = gap {
                            prop_assert!((from..to).all(|n| !model.contains(&n)));
                            prop_assert!(to == end || model.contains(&to));
                        }
                    }
                }
                prop_assert_eq!(members(&set), model.clone());
                prop_assert_eq!(set.bytes(), model.len() as u64);
                prop_assert!(is_canonical(&set));
            }
        }
    }
}
