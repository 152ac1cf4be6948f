//! A split virtqueue (virtio 1.2 section 2.7): a table of descriptors, a ring of chains that the device may have, and one
//! of those that it is done with.
//!
//! All of it is read and written in words of 32 bits; the fields of 16 bits come in pairs.

use crate::virtio::Transport;
use crate::virtio::regs;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

/// The end of a chain.
const END: u16 = u16::MAX;
/// What flags of either ring say without event indices: no interrupt, no notification.
const NO_EVENT: u32 = 1;

/// A chain that the device is done with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// Its first descriptor, as the device says.
    pub id: u32,
    /// Bytes that it has written, as it says.
    pub len: u32,
}

/// The ring.
pub(super) struct Ring<P> {
    board: P,
    /// The queue's number.
    index: u32,
    base: u64,
    /// Descriptors, a power of two.
    len: u16,
    has_events: bool,
    /// Of the ring of available chains.
    flags: u32,
    /// The ring of available chains, as it is written: two in a word.
    entries: Vec<u32>,
    /// For each descriptor the next of its chain.
    next: Vec<u16>,
    free: Vec<u16>,
    /// Chains ever made available, and those of them that the device knows of.
    available: u16,
    published: u16,
    /// Chains ever taken back.
    used: u16,
}

/// Bytes of the table and the ring of available chains, with the event index behind it.
const fn used_offset(len: u16) -> u64 {
    // The ring of used chains begins with a word.
    16 * len as u64 + 4 + 2 * len as u64 + 4
}

/// Bytes of a ring; it begins at a multiple of 16.
pub(super) const fn bytes(len: u16) -> u64 {
    (used_offset(len) + 4 + 8 * len as u64 + 4).next_multiple_of(16)
}

impl<P: Transport> Ring<P> {
    pub fn new(board: P, index: u32, base: u64, len: u16) -> Self {
        let mut ring = Ring {
            board,
            index,
            base,
            len,
            has_events: false,
            flags: 0,
            entries: Vec::new(),
            next: Vec::new(),
            free: Vec::with_capacity(len.into()),
            available: 0,
            published: 0,
            used: 0,
        };
        ring.entries.resize(usize::from(len) / 2, 0);
        ring.next.resize(len.into(), END);
        ring
    }

    /// Empties the ring and tells the device where it lies; false if the device has no such queue.
    pub fn start(&mut self, has_events: bool) -> bool {
        self.has_events = has_events;
        (self.available, self.published, self.used, self.flags) = (0, 0, 0, 0);
        self.free.clear();
        // The first is taken first.
        self.free.extend((0..self.len).rev());
        let words = bytes(self.len) / 4;
        (0..words).for_each(|at| self.board.store(self.base + 4 * at, 0));
        self.board.write(regs::QUEUE_SEL, self.index);
        let has = self.board.read(regs::QUEUE_NUM_MAX);
        if self.board.read(regs::QUEUE_READY) != 0 || has < u32::from(self.len) {
            return false;
        }
        self.board.write(regs::QUEUE_NUM, self.len.into());
        let parts = [
            (regs::QUEUE_DESC, self.base),
            (regs::QUEUE_DRIVER, self.driver()),
            (regs::QUEUE_DEVICE, self.device()),
        ];
        for (register, address) in parts {
            self.board.write(register, address as u32);
            self.board.write(register + 4, (address >> 32) as u32);
        }
        self.board.write(regs::QUEUE_READY, 1);
        if has_events {
            // An entry just behind: it is the last to come round.
            let event = self.used.wrapping_sub(1);
            self.board.store(self.driver() + 4 + 2 * u64::from(self.len), event.into());
        }
        self.silence();
        true
    }

    /// Free descriptors.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// Chains that the device has.
    pub fn in_use(&self) -> u16 {
        self.available.wrapping_sub(self.used)
    }

    /// A free descriptor.
    pub fn take(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Describes memory, and the descriptor that follows in the chain.
    pub fn describe(&mut self, at: u16, address: u64, len: u32, flags: u16, next: Option<u16>) {
        let entry = self.base + 16 * u64::from(at);
        self.board.store(entry, address as u32);
        self.board.store(entry + 4, (address >> 32) as u32);
        self.board.store(entry + 8, len);
        let flags = if next.is_some() { flags | regs::NEXT } else { flags };
        let next = next.unwrap_or(END);
        self.board.store(entry + 12, u32::from(flags) | u32::from(next) << 16);
        self.next[usize::from(at)] = next;
    }

    /// Makes a chain available; [`Ring::publish`] tells.
    pub fn offer(&mut self, head: u16) {
        let place = usize::from(self.available & (self.len - 1));
        let pair = &mut self.entries[place / 2];
        let shift = 16 * (place % 2);
        // The other half may be an entry that the device has not read yet.
        *pair = *pair & !(0xffff << shift) | u32::from(head) << shift;
        let pair = *pair;
        self.board.store(self.driver() + 4 + 2 * (place as u64 & !1), pair);
        self.available = self.available.wrapping_add(1);
    }

    /// Lets the device see what is available; true if it had to be notified.
    pub fn publish(&mut self) -> bool {
        if self.available == self.published {
            return false;
        }
        let (from, to) = (self.published, self.available);
        self.published = to;
        // Descriptors before the index; the index before the device's wish is read.
        fence(Ordering::SeqCst);
        self.store_index();
        fence(Ordering::SeqCst);
        let wants = if self.has_events {
            let event = self.board.load(self.device() + 4 + 8 * u64::from(self.len)) as u16;
            passes(event, from, to)
        } else {
            self.board.load(self.device()) & NO_EVENT == 0
        };
        if wants {
            self.board.write(regs::QUEUE_NOTIFY, self.index);
        }
        wants
    }

    /// Chains that have come back and were not taken.
    pub fn waiting(&self) -> u16 {
        let index = (self.board.load(self.device()) >> 16) as u16;
        index.wrapping_sub(self.used)
    }

    /// The chain `ahead` behind the oldest that has come back; there must be one.
    pub fn peek(&self, ahead: u16) -> Used {
        let place = self.used.wrapping_add(ahead) & (self.len - 1);
        let entry = self.device() + 4 + 8 * u64::from(place);
        Used { id: self.board.load(entry), len: self.board.load(entry + 4) }
    }

    /// Takes back the oldest chain, whose first descriptor is `head`.
    pub fn take_back(&mut self, head: u16) {
        self.used = self.used.wrapping_add(1);
        let mut at = head;
        // Never further than there are descriptors.
        for _ in 0..self.len {
            let next = core::mem::replace(&mut self.next[usize::from(at)], END);
            self.free.push(at);
            if next == END {
                break;
            }
            at = next;
        }
    }

    /// Asks for an interrupt when `count` further chains have come back. What has come before is the caller's to look for,
    /// afterwards.
    pub fn interrupt_after(&mut self, count: u16) {
        if self.has_events {
            let event = self.used.wrapping_add(count.max(1) - 1);
            self.board.store(self.driver() + 4 + 2 * u64::from(self.len), event.into());
        } else {
            self.flags = 0;
            self.store_index();
        }
        // The wish before the look.
        fence(Ordering::SeqCst);
    }

    /// Asks for no interrupt any more. Where an entry is named that interrupts, none behind it does, and this does nothing.
    pub fn silence(&mut self) {
        if !self.has_events && self.flags == 0 {
            self.flags = NO_EVENT;
            self.store_index();
        }
    }

    fn store_index(&mut self) {
        self.board.store(self.driver(), self.flags | u32::from(self.published) << 16);
    }

    /// Where the driver's ring lies.
    fn driver(&self) -> u64 {
        self.base + 16 * u64::from(self.len)
    }

    /// Where the device's ring lies.
    fn device(&self) -> u64 {
        self.base + used_offset(self.len)
    }
}

/// Whether going on from `from` to `to` comes by the entry `event` (section 2.7.10).
fn passes(event: u16, from: u16, to: u16) -> bool {
    to.wrapping_sub(event).wrapping_sub(1) < to.wrapping_sub(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_those_between() {
        assert!(passes(5, 5, 6));
        assert!(!passes(4, 5, 6));
        assert!(!passes(6, 5, 6));
        assert!(passes(u16::MAX, u16::MAX, 3));
        assert!(passes(2, u16::MAX, 3));
        assert!(!passes(3, u16::MAX, 3));
    }

    #[test]
    fn parts_are_aligned_as_they_must_be() {
        for len in [2, 4, 64, 256, 1_024] {
            assert!(used_offset(len).is_multiple_of(4) && bytes(len).is_multiple_of(16), "{len}");
            assert!(used_offset(len) >= 16 * u64::from(len) + 6 + 2 * u64::from(len));
        }
    }
}
