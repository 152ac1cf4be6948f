//! Deadlines by key: what a server asks for its next timeout, and what tells it which of them have passed.

use alloc::collections::{BTreeMap, BTreeSet};
use linerate_wire::units::Instant;

/// At most one deadline per key; setting, clearing and finding the earliest cost O(log n), nothing scans.
///
/// A timeout that is pushed back by each piece of data (idle, stalled) is cheaper kept lazily: note the time of the
/// last activity, leave the deadline alone, and when it expires set it again from the activity if that is later.
#[derive(Clone, Debug)]
pub struct Deadlines<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Deadlines<K> {
    /// No deadline.
    pub const fn new() -> Self {
        Deadlines { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// Sets the deadline of `key` to `at`, in place of the one it had.
    pub fn set(&mut self, key: K, at: Instant) {
        match self.by_key.insert(key, at) {
            Some(old) if old == at => return,
            Some(old) => {
                self.by_time.remove(&(old, key));
            }
            None => {}
        }
        self.by_time.insert((at, key));
    }

    /// Takes the deadline of `key` away; tells whether there was one.
    pub fn clear(&mut self, key: K) -> bool {
        match self.by_key.remove(&key) {
            Some(at) => self.by_time.remove(&(at, key)),
            None => false,
        }
    }

    /// The deadline of `key`.
    pub fn at(&self, key: K) -> Option<Instant> {
        self.by_key.get(&key).copied()
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline that is at or before `now`.
    pub fn pop_expired(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.by_time.pop_first();
        self.by_key.remove(&key);
        Some(key)
    }

    /// How many deadlines run.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

impl<K: Ord + Copy> Default for Deadlines<K> {
    fn default() -> Self {
        Deadlines::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_deadline_is_replaced_cleared_and_popped_in_order() {
        let mut deadlines = Deadlines::new();
        deadlines.set('a', Instant::from_millis(30));
        deadlines.set('b', Instant::from_millis(20));
        deadlines.set('c', Instant::from_millis(10));
        deadlines.set('a', Instant::from_millis(5));
        assert!(deadlines.clear('c'));
        assert!(!deadlines.clear('c'));
        assert_eq!(deadlines.next(), Some(Instant::from_millis(5)));
        assert_eq!(deadlines.at('b'), Some(Instant::from_millis(20)));
        assert_eq!(deadlines.pop_expired(Instant::from_millis(4)), None);
        assert_eq!(deadlines.pop_expired(Instant::from_millis(20)), Some('a'));
        assert_eq!(deadlines.pop_expired(Instant::from_millis(20)), Some('b'));
        assert_eq!(deadlines.pop_expired(Instant::FAR_FUTURE), None);
        assert!(deadlines.is_empty());
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_list(steps in proptest::collection::vec((0u8..6, 0u64..50, 0u8..3), 0..200)) {
            let mut deadlines = Deadlines::new();
            let mut list: Vec<(u64, u8)> = Vec::new();
            for (key, ns, what) in steps {
                match what {
                    0 => {
                        list.retain(|entry| entry.1 != key);
                        list.push((ns, key));
                        deadlines.set(key, Instant::from_nanos(ns));
                    }
                    1 => {
                        let had = list.iter().any(|entry| entry.1 == key);
                        list.retain(|entry| entry.1 != key);
                        prop_assert_eq!(deadlines.clear(key), had);
                    }
                    _ => {
                        list.sort();
                        let expected = list.first().filter(|entry| entry.0 <= ns).map(|entry| entry.1);
                        if expected.is_some() {
                            list.remove(0);
                        }
                        prop_assert_eq!(deadlines.pop_expired(Instant::from_nanos(ns)), expected);
                    }
                }
                prop_assert_eq!(deadlines.len(), list.len());
                prop_assert_eq!(deadlines.next(), list.iter().map(|e| Instant::from_nanos(e.0)).min());
            }
        }
    }
}
