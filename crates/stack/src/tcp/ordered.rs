//! A map in the order of its keys whose memory is used again: what loss and reordering need without allocating for each packet.
//!
//! Entries lie side by side. Finding one costs O(log n); adding or removing one moves those on the shorter side of it, and
//! what TCP adds and removes lies near the ends. A map that became empty many times keeps room for what it held meanwhile.

use alloc::collections::VecDeque;

/// Entries that an empty map always keeps room for.
const KEPT: usize = 64;

/// How often a map becomes empty before it gives memory back that it did not use since.
const ROUNDS: u32 = 32;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct OrderedMap<K, V> {
    entries: VecDeque<(K, V)>,
    /// Most entries since it last gave memory back, or could have.
    most: u32,
    /// How often it became empty since.
    rounds: u32,
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap { entries: VecDeque::new(), most: 0, rounds: 0 }
    }
}

impl<K: Ord + Copy, V> OrderedMap<K, V> {
    /// The place of the first entry whose key is not below `key`.
    fn place(&self, key: K) -> usize {
        // New entries mostly come last, and acknowledged ones are first.
        match self.entries.back() {
            Some((last, _)) if *last < key => self.entries.len(),
            _ => self.entries.partition_point(|(other, _)| *other < key),
        }
    }

    fn found(&self, key: K) -> Option<usize> {
        let place = self.place(key);
        self.entries.get(place).is_some_and(|(other, _)| *other == key).then_some(place)
    }

    /// Adds an entry, in the place of one with the same key.
    pub fn insert(&mut self, key: K, value: V) {
        let place = self.place(key);
        match self.entries.get_mut(place) {
            Some((other, old)) if *other == key => *old = value,
            _ => {
                self.entries.insert(place, (key, value));
                self.most = self.most.max(self.entries.len() as u32);
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let place = self.found(key)?;
        let (_, value) = self.entries.remove(place)?;
        self.rest();
        Some(value)
    }

    /// Takes the first entry out.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let first = self.entries.pop_front();
        self.rest();
        first
    }

    /// An empty map gives back what it has not used for a while.
    fn rest(&mut self) {
        if !self.entries.is_empty() || self.entries.capacity() <= KEPT {
            return;
        }
        self.rounds += 1;
        if self.rounds == ROUNDS {
            let most = self.most as usize;
            if most * 4 <= self.entries.capacity() {
                self.entries.shrink_to((most * 2).max(KEPT));
            }
            (self.most, self.rounds) = (0, 0);
        }
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.rest();
    }

    /// The value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        self.found(key).map(|place| &self.entries[place].1)
    }

    /// The entry with the lowest key.
    pub fn first(&self) -> Option<(K, &V)> {
        self.entries.front().map(|(key, value)| (*key, value))
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Option<(K, &V)> {
        self.entries.back().map(|(key, value)| (*key, value))
    }

    /// The last entry whose key is below `key`.
    pub fn below(&self, key: K) -> Option<(K, &V)> {
        let place = self.place(key).checked_sub(1)?;
        self.entries.get(place).map(|(key, value)| (*key, value))
    }

    /// The last entry whose key is below `key`, to be changed.
    pub fn below_mut(&mut self, key: K) -> Option<(K, &mut V)> {
        let place = self.place(key).checked_sub(1)?;
        self.entries.get_mut(place).map(|(key, value)| (*key, value))
    }

    /// The first entry whose key is not below `key`.
    pub fn from(&self, key: K) -> Option<(K, &V)> {
        self.entries.get(self.place(key)).map(|(key, value)| (*key, value))
    }

    /// The entries from one key to another (exclusive), to be changed.
    pub fn range_mut(&mut self, from: K, to: K) -> impl Iterator<Item = (K, &mut V)> {
        let (from, to) = (self.place(from), self.place(to));
        self.entries.range_mut(from..to.max(from)).map(|(key, value)| (*key, value))
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + Clone {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    /// All entries in order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (*key, value))
    }

    /// Entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_tree_does(steps in proptest::collection::vec((0u8..5, 0u64..40, 0u64..40), 1..120)) {
            let (mut map, mut model) = (OrderedMap::default(), BTreeMap::new());
            for (step, (kind, key, other)) in steps.into_iter().enumerate() {
                match kind {
                    0 | 1 => {
                        map.insert(key, step);
                        model.insert(key, step);
                    }
                    2 => prop_assert_eq!(map.remove(key), model.remove(&key)),
                    3 => prop_assert_eq!(map.pop_first(), model.pop_first()),
                    _ => {
                        let (from, to) = (key.min(other), key.max(other));
                        map.range_mut(from, to).for_each(|(_, value)| *value += 1_000);
                        model.range_mut(from..to).for_each(|(_, value)| *value += 1_000);
                    }
                }
                let pair = |(key, value): (&u64, &usize)| (*key, *value);
                let own = |(key, value): (u64, &usize)| (key, *value);
                prop_assert_eq!(map.iter().map(own).collect::<Vec<_>>(), model.iter().map(pair).collect::<Vec<_>>());
                prop_assert_eq!(map.below(other).map(own), model.range(..other).next_back().map(pair));
                prop_assert_eq!(map.from(other).map(own), model.range(other..).next().map(pair));
                prop_assert_eq!(map.get(other), model.get(&other));
                prop_assert_eq!(map.first().map(own), model.first_key_value().map(pair));
                prop_assert_eq!(map.last().map(own), model.last_key_value().map(pair));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn a_map_gives_back_what_it_does_not_use_and_keeps_what_it_does() {
        let mut map = OrderedMap::default();
        let mut fill = |count: u64| {
            (0..count).for_each(|key| map.insert(key, ()));
            while map.pop_first().is_some() {}
            map.entries.capacity()
        };
        let large = fill(1_000);
        assert!((0..100).all(|_| fill(800) == large), "used again and again");
        (0..2 * ROUNDS).for_each(|_| {
            fill(3);
        });
        let few = fill(3);
        assert!(few <= 2 * KEPT, "{few}");
        assert!((0..100).all(|_| fill(KEPT as u64) == few), "room for a few stays");
    }
}
