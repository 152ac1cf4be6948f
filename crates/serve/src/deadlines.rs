//! Deadlines by key: what a server asks for its next timeout, and what tells it which of them have passed.

use alloc::collections::{BTreeMap, BTreeSet};
use linerate_wire::units::Instant;

/// Deadlines in the order of time, of keys whose owners remember theirs: [`Instant::FAR_FUTURE`] where there is none. Setting,
/// clearing and finding the earliest cost O(log n), nothing scans.
#[derive(Clone, Debug)]
pub struct Alarms<K>(BTreeSet<(Instant, K)>);

impl<K: Ord + Copy> Alarms<K> {
    /// No deadline.
    pub const fn new() -> Self {
        Alarms(BTreeSet::new())
    }

    /// Sets the deadline of `key`, which was `old`, to `at`.
    pub fn set(&mut self, key: K, old: Instant, at: Instant) {
        if old == at {
            return;
        }
        self.clear(key, old);
        if at != Instant::FAR_FUTURE {
            self.0.insert((at, key));
        }
    }

    /// Takes the deadline of `key`, which was `old`, away; tells whether there was one.
    pub fn clear(&mut self, key: K, old: Instant) -> bool {
        old != Instant::FAR_FUTURE && self.0.remove(&(old, key))
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes the earliest deadline that is at or before `now`.
    pub fn pop_expired(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some(key)
    }
}

impl<K: Ord + Copy> Default for Alarms<K> {
    fn default() -> Self {
        Alarms::new()
    }
}

/// At most one deadline per key; costs as those of [`Alarms`].
///
/// A timeout that is pushed back by each piece of data (idle, stalled) is cheaper kept lazily: note the time of the
/// last activity, leave the deadline alone, and when it expires set it again from the activity if that is later.
#[derive(Clone, Debug)]
pub struct Deadlines<K> {
    by_key: BTreeMap<K, Instant>,
    by_time: Alarms<K>,
}

impl<K: Ord + Copy> Deadlines<K> {
    /// No deadline.
    pub const fn new() -> Self {
        Deadlines { by_key: BTreeMap::new(), by_time: Alarms::new() }
    }

    /// Sets the deadline of `key` to `at`, in place of the one it had; [`Instant::FAR_FUTURE`] is none.
    pub fn set(&mut self, key: K, at: Instant) {
        if at == Instant::FAR_FUTURE {
            self.clear(key);
            return;
        }
        let old = self.by_key.insert(key, at).unwrap_or(Instant::FAR_FUTURE);
        self.by_time.set(key, old, at);
    }

    /// Takes the deadline of `key` away; tells whether there was one.
    pub fn clear(&mut self, key: K) -> bool {
        self.by_key.remove(&key).is_some_and(|at| self.by_time.clear(key, at))
    }

    /// The deadline of `key`.
    pub fn at(&self, key: K) -> Option<Instant> {
        self.by_key.get(&key).copied()
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.by_time.next()
    }

    /// Takes the earliest deadline that is at or before `now`.
    pub fn pop_expired(&mut self, now: Instant) -> Option<K> {
        let key = self.by_time.pop_expired(now)?;
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
