//! The descriptors of a ring: where they lie, how they are chained, and which of them are software's.

use super::memory::READ;
use super::world::World;
use std::ops::RangeInclusive;

/// Descriptors of a ring that lies in a row in any case.
pub const LONG: usize = 64;

/// How a ring lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One behind the other, and back to the first.
    Row,
    /// In any order, the same in each lap, with gaps.
    Scattered,
    /// In another order in each lap.
    Wandering,
}

/// Descriptors of a ring.
#[derive(Debug)]
pub struct Slots {
    addresses: Vec<u64>,
    /// The lowest of them and the highest.
    span: RangeInclusive<u64>,
    order: Order,
    is_free: Vec<bool>,
    free: usize,
    /// The next one: where the last one that was handed over leads.
    next: usize,
    last: usize,
    /// What hardware may do with a descriptor that is software's: read it where the ring jumps, as it guesses then.
    rights: u8,
}

impl Slots {
    /// `len` descriptors, all of them software's.
    pub fn new(world: &mut World<'_>, len: usize, order: Order) -> Self {
        let gap = match order {
            Order::Row => 1,
            Order::Scattered => 2,
            Order::Wandering => world.rng.between(1, 2) as u64,
        };
        // A guess may lead one further than the last.
        let bytes = 64 * (gap as usize * len + 1);
        let base = world.memory.add(&mut world.rng, bytes, 0xD5);
        let rights = if order == Order::Row { 0 } else { READ };
        world.memory.allow(base, bytes, rights);
        let mut addresses: Vec<u64> = (0..len as u64).map(|at| base + 64 * at * gap).collect();
        if order == Order::Scattered {
            for at in (1..len).rev() {
                addresses.swap(at, world.rng.below(at as u64 + 1) as usize);
            }
        }
        let span = base..=base + 64 * (len as u64 - 1) * gap;
        let is_free = vec![true; len];
        let mut slots = Slots { addresses, span, order, is_free, free: len, next: 0, last: len - 1, rights };
        slots.rewind(world);
        slots
    }

    /// All descriptors are software's again, and any of them is the next.
    pub fn rewind(&mut self, world: &mut World<'_>) {
        for at in 0..self.addresses.len() {
            self.scribble(world, at);
        }
        self.is_free.fill(true);
        self.free = self.addresses.len();
        // A long one begins with its first, so that where it jumps is far.
        let any = world.rng.below(self.addresses.len() as u64) as usize;
        self.next = if self.addresses.len() < LONG { any } else { 0 };
    }

    /// Software's own descriptors hold anything at all.
    fn scribble(&self, world: &mut World<'_>, slot: usize) {
        let mut bytes = [0; 64];
        world.rng.fill(&mut bytes);
        world.memory.store(self.addresses[slot], &bytes);
        world.memory.allow(self.addresses[slot], 64, self.rights);
    }

    /// How many can be handed over. One that leads elsewhere each time needs a free one to lead to.
    pub fn room(&self) -> usize {
        self.free - usize::from(self.order == Order::Wandering)
    }

    pub fn address(&self, slot: usize) -> u64 {
        self.addresses[slot]
    }

    /// Where the next descriptor lies.
    pub fn next_address(&self) -> u64 {
        self.addresses[self.next]
    }

    /// Where the descriptor lies that was handed over last.
    pub fn last_address(&self) -> u64 {
        self.addresses[self.last]
    }

    /// The next descriptor, filled with anything but for its link: it is hardware's to read.
    pub fn take(&mut self, world: &mut World<'_>) -> usize {
        let slot = self.next;
        self.is_free[slot] = false;
        self.free -= 1;
        self.scribble(world, slot);
        self.next = match self.order {
            Order::Wandering => {
                let mut at = world.rng.below(self.addresses.len() as u64) as usize;
                while !self.is_free[at] {
                    at = (at + 1) % self.addresses.len();
                }
                at
            }
            _ => (slot + 1) % self.addresses.len(),
        };
        // The lowest bits are not used.
        let link = self.addresses[self.next] | world.rng.below(64);
        world.memory.store(self.addresses[slot], &link.to_le_bytes());
        world.memory.allow(self.addresses[slot], 64, READ);
        self.last = slot;
        slot
    }

    /// Those of `reads` (clock and address) that are of this ring.
    pub fn mine(&self, reads: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> {
        reads.iter().copied().filter(|(_, address)| self.holds(*address))
    }

    /// Whether it lies among this ring's descriptors.
    pub fn holds(&self, address: u64) -> bool {
        self.span.contains(&address)
    }

    /// In a ring that lies in a row and was not stopped no guess is wrong: each descriptor is read once, in its turn.
    pub fn check_reads(&self, reads: &[(u64, u64)]) -> Result<(), String> {
        let (low, high) = (*self.span.start(), *self.span.end());
        let mut last = None;
        for (_, address) in self.mine(reads).filter(|_| self.order == Order::Row) {
            let next = if address == high { low } else { address + 64 };
            if last.replace(next).is_some_and(|expected| expected != address) {
                return Err(format!("the descriptor at {address:#x} was read out of turn, or again"));
            }
        }
        Ok(())
    }

    /// Hardware is done with it.
    pub fn give_back(&mut self, world: &mut World<'_>, slot: usize) {
        world.memory.allow(self.addresses[slot], 64, self.rights);
        self.is_free[slot] = true;
        self.free += 1;
    }
}
