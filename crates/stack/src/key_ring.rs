//! A secret key that changes by generations, with the one before it still at hand.

use crate::random::Key;

/// The keys of this generation and of the last.
pub(crate) struct KeyRing {
    current: Key,
    previous: Key,
    generation: u64,
}

impl KeyRing {
    /// The keys for `purpose` that belong to `seed`, in generation 0.
    pub(crate) fn new(seed: &[u8; 32], purpose: u64) -> KeyRing {
        let current = Key::derive(seed, purpose);
        KeyRing { current, previous: current.next(0), generation: 0 }
    }

    /// The key of now.
    pub(crate) fn current(&self) -> &Key {
        &self.current
    }

    /// The key of `generation`, if it is this one or the last.
    pub(crate) fn key_of(&self, generation: u64) -> Option<&Key> {
        match self.generation.checked_sub(generation)? {
            0 => Some(&self.current),
            1 => Some(&self.previous),
            _ => None,
        }
    }

    /// Steps to the key of `generation`. After a long silence the steps between are skipped: nobody can hold anything made
    /// with their keys.
    pub(crate) fn rotate(&mut self, generation: u64) {
        if generation == self.generation {
            return;
        }
        let next = self.current.next(generation);
        self.previous = if generation == self.generation + 1 { self.current } else { next.next(0) };
        self.current = next;
        self.generation = generation;
    }

    /// Which generation it is.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}
