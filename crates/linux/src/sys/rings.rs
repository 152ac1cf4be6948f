//! The rings between an AF_XDP socket and the kernel (`linux/if_xdp.h`): two counters that only grow, one of whoever puts entries
//! in and one of whoever takes them out, and entries at the counters modulo the size.
#![allow(unsafe_code)]

use super::map::Scoped;
use core::mem::{align_of, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// In a ring's flags: the kernel sleeps and wants a system call.
const NEED_WAKEUP: u32 = 1;

/// One frame, or a piece of one: `struct xdp_desc`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Descriptor {
    /// Where it begins, in bytes from the start of the shared memory.
    pub(crate) address: u64,
    /// Its length in bytes.
    pub(crate) len: u32,
    /// A set of [`CONTINUES`] and [`HAS_METADATA`].
    pub(crate) options: u32,
}

/// Of a descriptor: the frame goes on in the next one.
pub(crate) const CONTINUES: u32 = 1 << 0;
/// Of a descriptor to transmit: metadata lie in front of the frame.
pub(crate) const HAS_METADATA: u32 = 1 << 1;

/// What rings are made of: integers for which all bits are values, without padding.
pub(crate) trait Entry: Copy + sealed::Sealed {}

impl Entry for u64 {}
impl Entry for Descriptor {}

mod sealed {
    pub(crate) trait Sealed {}

    impl Sealed for u64 {}
    impl Sealed for super::Descriptor {}
}

/// Where the parts of a ring are in its mapping, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Layout {
    /// The counter of whoever puts entries in.
    pub(crate) producer: usize,
    /// The counter of whoever takes them out.
    pub(crate) consumer: usize,
    /// Flags.
    pub(crate) flags: usize,
    /// The first entry.
    pub(crate) entries: usize,
}

/// A mapped ring, of which we have one end.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// A power of two.
    size: u32,
    /// Our counter, ahead of the shared one until that is written.
    ours: u32,
    /// The other end's counter as last read.
    theirs: u32,
    /// What the pointers above point into.
    _mapping: Scoped,
}

// SAFETY: it is the only owner of our end of the ring, and nothing in it belongs to a thread; the mapping moves with it.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// `None` where the size is not a power of two, or a part would lie outside of the mapping or on an odd place.
    fn new(mapping: Scoped, layout: Layout, size: u32) -> Option<Self> {
        let inside = |at: usize, bytes: usize, align: usize| {
            at.is_multiple_of(align) && at.checked_add(bytes).is_some_and(|end| end <= mapping.len())
        };
        let counter = |at: usize| {
            if !inside(at, size_of::<u32>(), align_of::<AtomicU32>()) {
                return None;
            }
            // SAFETY: the word was just found to be inside the mapping.
            Some(unsafe { mapping.start().add(at).cast() })
        };
        let bytes = (size as usize).checked_mul(size_of::<T>())?;
        if !size.is_power_of_two() || !inside(layout.entries, bytes, align_of::<T>()) {
            return None;
        }
        // SAFETY: the entries were just found to be inside the mapping.
        let entries = unsafe { mapping.start().add(layout.entries).cast() };
        Some(Ring {
            producer: counter(layout.producer)?,
            consumer: counter(layout.consumer)?,
            flags: counter(layout.flags)?,
            entries,
            size,
            ours: 0,
            theirs: 0,
            _mapping: mapping,
        })
    }

    /// One of the counters, or the flags.
    fn word(&self, at: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: callers pass `producer`, `consumer` or `flags`, which are inside the mapping, and aligned, as it begins at a page.
        // It lives as long as `self`; the word is only ever accessed as an atomic by us, and by single accesses by the kernel.
        unsafe { at.as_ref() }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.consumer)
    }

    /// The place of the entry with this number.
    fn place(&self, number: u32) -> NonNull<T> {
        let at = number & (self.size - 1);
        // SAFETY: the masked number is below the size, and so many entries lie in the mapping.
        unsafe { self.entries.add(at as usize) }
    }
}

/// The end of a ring that puts entries in: buffers to fill, frames to transmit.
#[derive(Debug)]
pub(crate) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    /// Our end of the ring in `mapping`; `None` where the layout does not fit.
    pub(crate) fn new(mapping: Scoped, layout: Layout, size: u32) -> Option<Self> {
        let mut ring = Ring::new(mapping, layout, size)?;
        ring.ours = ring.producer().load(Ordering::Relaxed);
        ring.theirs = ring.consumer().load(Ordering::Acquire);
        Some(Producer(ring))
    }

    /// Entries that the other end has not taken out, published or not; the size of the ring where its counter is impossible.
    pub(crate) fn pending(&mut self) -> u32 {
        let ring = &mut self.0;
        ring.theirs = ring.consumer().load(Ordering::Acquire);
        ring.ours.wrapping_sub(ring.theirs).min(ring.size)
    }

    /// Entries that still fit.
    pub(crate) fn room(&mut self) -> u32 {
        self.0.size - self.pending()
    }

    /// Puts an entry in, which the other end sees with the next [`Producer::publish`]. False when the ring is full.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.0.ours.wrapping_sub(self.0.theirs) >= self.0.size && self.room() == 0 {
            return false;
        }
        let place = self.0.place(self.0.ours);
        // SAFETY: `place` is inside the mapping and aligned; the entry is ours, as the other end takes out none beyond the shared
        // counter, which is at most `ours`, and none is overwritten that it has not taken out.
        unsafe { place.write_volatile(entry) };
        self.0.ours = self.0.ours.wrapping_add(1);
        true
    }

    /// Shows the other end what was put in, and what was written to the memory that it speaks of.
    pub(crate) fn publish(&mut self) {
        self.0.producer().store(self.0.ours, Ordering::Release);
    }

    /// Whether the kernel goes on only after a system call. To be asked after [`Producer::publish`].
    pub(crate) fn needs_wakeup(&self) -> bool {
        // The kernel sets the flag and looks at the counter then: one of us sees what the other wrote.
        fence(Ordering::SeqCst);
        self.0.word(self.0.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// The end of a ring that takes entries out: frames that came, buffers that were sent.
#[derive(Debug)]
pub(crate) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    /// Our end of the ring in `mapping`; `None` where the layout does not fit.
    pub(crate) fn new(mapping: Scoped, layout: Layout, size: u32) -> Option<Self> {
        let mut ring = Ring::new(mapping, layout, size)?;
        ring.ours = ring.consumer().load(Ordering::Relaxed);
        ring.theirs = ring.ours;
        Some(Consumer(ring))
    }

    /// Entries that wait. None where the other end's counter is impossible: nothing that lies there would be its word.
    pub(crate) fn waiting(&mut self) -> u32 {
        let ring = &mut self.0;
        let theirs = ring.producer().load(Ordering::Acquire);
        let count = theirs.wrapping_sub(ring.ours);
        let count = if count > ring.size { 0 } else { count };
        ring.theirs = ring.ours.wrapping_add(count);
        count
    }

    /// Takes the oldest entry out; its place is free for the other end after the next [`Consumer::release`].
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.0.theirs == self.0.ours && self.waiting() == 0 {
            return None;
        }
        let place = self.0.place(self.0.ours);
        // SAFETY: `place` is inside the mapping and aligned, and all bits are values of an entry; it was written before the counter
        // that `waiting` has read, and is not written again before `release`.
        let entry = unsafe { place.read_volatile() };
        self.0.ours = self.0.ours.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was taken out back.
    pub(crate) fn release(&mut self) {
        self.0.consumer().store(self.0.ours, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::map::{Words, map};
    use super::*;
    use rustix::fd::{AsFd as _, OwnedFd};
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };
    const LEN: usize = 4_096;

    /// A file that stands for the kernel's memory, and its words.
    fn shared() -> (OwnedFd, Words) {
        let fd = memfd_create("rings", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, LEN as u64).unwrap();
        let words = map(fd.as_fd(), LEN).unwrap().into_words();
        (fd, words)
    }

    fn producer(fd: &OwnedFd, size: u32) -> Producer<u64> {
        Producer::new(map(fd.as_fd(), LEN).unwrap().scoped(), LAYOUT, size).unwrap()
    }

    fn consumer(fd: &OwnedFd, size: u32) -> Consumer<u64> {
        Consumer::new(map(fd.as_fd(), LEN).unwrap().scoped(), LAYOUT, size).unwrap()
    }

    #[test]
    fn entries_pass_in_order_while_the_counters_wrap() {
        let (fd, words) = shared();
        let start = u32::MAX - 5;
        words.write(LAYOUT.producer, start);
        words.write(LAYOUT.consumer, start);
        let (mut input, mut output) = (producer(&fd, 4), consumer(&fd, 4));
        let mut next = (0u64, 0u64);
        for _ in 0..10 {
            for count in 1..=4 {
                for _ in 0..count {
                    assert!(input.push(next.0));
                    next.0 += 1;
                }
                // Nothing shows before it is published.
                assert_eq!((output.waiting(), output.pop()), (0, None));
                input.publish();
                assert_eq!((output.waiting(), input.room()), (count, 4 - count));
                while let Some(entry) = output.pop() {
                    assert_eq!(entry, next.1);
                    next.1 += 1;
                }
                // No place is free before it is released.
                assert_eq!(input.pending(), count);
                output.release();
                assert_eq!((input.pending(), input.room()), (0, 4));
            }
        }
        assert_eq!(next.0, next.1);
        assert!(words.read(LAYOUT.producer) < start, "the counters have wrapped");
    }

    #[test]
    fn a_full_ring_takes_no_more() {
        let (fd, words) = shared();
        let mut input = producer(&fd, 8);
        let taken = (0..20).filter(|entry| input.push(*entry)).count();
        assert_eq!((taken, input.room()), (8, 0));
        input.publish();
        words.write(LAYOUT.consumer, 3);
        assert_eq!(input.room(), 3);
        assert_eq!((0..20).filter(|entry| input.push(*entry)).count(), 3);
        assert_eq!(words.read(LAYOUT.producer), 8, "not published yet");
        input.publish();
        assert_eq!(words.read(LAYOUT.producer), 11);
    }

    #[test]
    fn impossible_counters_give_nothing_and_take_nothing() {
        let (fd, words) = shared();
        let (mut input, mut output) = (producer(&fd, 8), consumer(&fd, 8));
        for wrong in [9, 1_000, 1 << 31, u32::MAX] {
            words.write(LAYOUT.producer, wrong);
            assert_eq!((output.waiting(), output.pop()), (0, None), "{wrong}");
        }
        words.write(LAYOUT.producer, 0);
        // The other end claims to have taken out what was never there.
        for wrong in [1, 8, 1 << 31] {
            words.write(LAYOUT.consumer, wrong);
            assert_eq!(input.room(), 0, "{wrong}");
            assert!(!input.push(1), "{wrong}");
        }
        // And it recovers when the counter does.
        words.write(LAYOUT.consumer, 0);
        assert!(input.push(1));
    }

    #[test]
    fn the_flag_asks_for_a_system_call() {
        let (fd, words) = shared();
        let input = producer(&fd, 8);
        assert!(!input.needs_wakeup());
        words.write(LAYOUT.flags, 1);
        assert!(input.needs_wakeup());
        words.write(LAYOUT.flags, 2);
        assert!(!input.needs_wakeup());
    }

    #[test]
    fn layouts_that_do_not_fit_are_refused() {
        let (fd, _) = shared();
        let check = |layout: Layout, size: u32| {
            let mapping = map(fd.as_fd(), LEN).unwrap().scoped();
            Consumer::<Descriptor>::new(mapping, layout, size).is_some()
        };
        assert!(check(LAYOUT, 128));
        assert!(!check(LAYOUT, 0) && !check(LAYOUT, 3) && !check(LAYOUT, 256) && !check(LAYOUT, 1 << 31));
        assert!(!check(Layout { producer: 2, ..LAYOUT }, 8));
        assert!(!check(Layout { consumer: LEN, ..LAYOUT }, 8));
        assert!(!check(Layout { flags: usize::MAX - 3, ..LAYOUT }, 8));
        assert!(!check(Layout { entries: 196, ..LAYOUT }, 8));
        assert!(!check(Layout { entries: usize::MAX - 7, ..LAYOUT }, 8));
    }
}
