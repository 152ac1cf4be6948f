//! A bounded table whose keys are generational: a key that outlived its entry finds nothing.

/// A bounded table of `T` by index and generation.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    max: usize,
    len: usize,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// Index and generation of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// Generations wrap here, so that index, generation and two bits of kind fit the 64 bits of an epoll event.
const GENERATION_MASK: u32 = (1 << 30) - 1;

impl<T> Slab<T> {
    /// A table of at most `max` entries; it allocates as it grows.
    pub(crate) fn new(max: usize) -> Self {
        Slab { entries: Vec::new(), free: Vec::new(), max: max.min(u32::MAX as usize), len: 0 }
    }

    /// Entries in use.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether no entry may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.max
    }

    /// Adds `value`; gives it back when the table is full.
    pub(crate) fn insert(&mut self, value: T) -> Result<Key, T> {
        if self.is_full() {
            return Err(value);
        }
        self.len += 1;
        if let Some(index) = self.free.pop()
            && let Some(entry) = self.entries.get_mut(index as usize)
        {
            entry.value = Some(value);
            return Ok(Key { index, generation: entry.generation });
        }
        let index = self.entries.len() as u32;
        self.entries.push(Entry { generation: 0, value: Some(value) });
        Ok(Key { index, generation: 0 })
    }

    /// All entries with their keys, for rare work.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let key = Key { index: index as u32, generation: entry.generation };
            Some((key, entry.value.as_ref()?))
        })
    }

    /// The entry of `key`.
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    /// The entry of `key`, to change.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    /// Takes the entry of `key` out; the key finds nothing from now on.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = (entry.generation + 1) & GENERATION_MASK;
        self.free.push(key.index);
        self.len -= 1;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing_and_the_bound_holds() {
        let mut slab = Slab::new(2);
        let a = slab.insert('a').unwrap();
        let b = slab.insert('b').unwrap();
        assert_eq!(slab.insert('c'), Err('c'));
        assert_eq!(slab.remove(a), Some('a'));
        assert_eq!(slab.remove(a), None);
        let c = slab.insert('c').unwrap();
        assert_eq!(c.index, a.index);
        assert_eq!((slab.get(a), slab.get(b), slab.get(c)), (None, Some(&'b'), Some(&'c')));
        assert_eq!(slab.len(), 2);
    }
}
