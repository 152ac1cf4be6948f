//! Where received frames land: small buffers that hold a frame of the MTU, and large ones for super-frames.
//!
//! What windows promise is promised of the small buffers ([`linerate_stack::tcp::MemoryBudget`]): any frame finds room in
//! them, a super-frame of 64 KiB in 33 of 2 KiB. The large ones come on top and make a super-frame cheap: it lies in one
//! piece. When all are held, as by a server that reads slowly, super-frames scatter over small buffers.
//!
//! Nobody knows beforehand how large the next frame will be; frames come in trains, so the last ones decide. While small
//! ones are expected, a read gets a small buffer first, and a large one (or spare memory) behind it; otherwise it gets a
//! large one, or as many small ones as the longest frame takes. Where the guess was wrong, at most a small buffer's worth
//! is copied; a frame that would fill less than a quarter of a large buffer is copied into small ones.

use linerate_nic::{Buffer, PieceShelf, Pieces, Pool};
use std::io::IoSliceMut;
use std::rc::Rc;

/// Free bytes before each frame: room for a VLAN tag to be put back in, and 2 that align the IP header to 4 bytes.
pub(crate) const HEADROOM: usize = 6;

/// The longest frame: an IP packet of 65,535 bytes with Ethernet and VLAN header.
const LONGEST: usize = 18 + 65_535;

/// Smallest size of a small buffer, in bytes: it holds a frame of 1,500 bytes MTU.
pub const MIN_SMALL_BUFFER: usize = 2 << 10;

/// Smallest size of a large buffer, in bytes: the longest frame, and headroom.
pub const MIN_LARGE_BUFFER: usize = HEADROOM + LONGEST;

/// A frame stays in a large buffer if it fills one part in this many of it.
const WORTH_LARGE: usize = 4;

/// Most places of one read.
pub(crate) const MAX_PLACES: usize = (HEADROOM + LONGEST).div_ceil(MIN_SMALL_BUFFER) + 1;

/// Most places of one read while no large frame is expected: a small buffer, and what lies behind it.
pub(crate) const FEW_PLACES: usize = 2;

/// So many frames after a large one the next large one is expected.
const EXPECTED_FOR: u8 = 64;

/// Most lists of pieces: more frames are not under way between device and stack.
const MOST_LISTS: usize = 512;

/// The buffers that a device receives into. Clone the pools to keep an eye on them.
#[derive(Clone, Debug)]
pub struct RxPools {
    /// Buffers of at least [`MIN_SMALL_BUFFER`] bytes. Windows are to be promised of these.
    pub small: Pool,
    /// Buffers of at least [`MIN_LARGE_BUFFER`] bytes; there may be none.
    pub large: Pool,
}

impl RxPools {
    /// Up to `large` buffers of 64 KiB + 256 and `small` ones of 2 KiB, each made when it is needed.
    pub fn new(large: usize, small: usize) -> Self {
        let large = Pool::on_demand(large, MIN_LARGE_BUFFER.next_multiple_of(256));
        RxPools { small: Pool::on_demand(small, MIN_SMALL_BUFFER), large }
    }

    /// Buffers for a device of this MTU: four fifths of `memory` bytes in small ones, 64 at least, the rest in large ones.
    /// Each takes its memory when it is used for the first time.
    pub fn for_memory(memory: usize, mtu: usize) -> Self {
        let small = (HEADROOM + 18 + mtu).next_multiple_of(256).max(MIN_SMALL_BUFFER);
        let large = MIN_LARGE_BUFFER.next_multiple_of(256);
        RxPools {
            small: Pool::on_demand((memory / 5 * 4 / small).max(64), small),
            large: Pool::on_demand(memory / 5 / large, large),
        }
    }

    /// Which buffers are too small, what they have and what they should have, if any are.
    pub(crate) fn flaw(&self) -> Option<(&'static str, usize, usize)> {
        let kinds = [("small", &self.small, MIN_SMALL_BUFFER), ("large", &self.large, MIN_LARGE_BUFFER)];
        let flaw = |(kind, pool, needs): (&'static str, &Pool, usize)| {
            let has = pool.buffer_size();
            (has < needs).then_some((kind, has, needs))
        };
        kinds.into_iter().find_map(flaw)
    }

    /// Small buffers that the longest frame takes.
    pub(crate) fn most_small(&self) -> usize {
        (HEADROOM + LONGEST).div_ceil(self.small.buffer_size().max(MIN_SMALL_BUFFER))
    }

    /// Lists for the pieces of frames in small buffers.
    pub(crate) fn piece_lists(&self) -> Rc<PieceShelf> {
        let count = (self.small.len() / 2).clamp(1, MOST_LISTS);
        Rc::new(PieceShelf::new(count, self.most_small()))
    }

    /// Whether a frame of so many bytes takes more than one small buffer.
    pub(crate) fn is_large(&self, len: usize) -> bool {
        HEADROOM + len > self.small.buffer_size()
    }
}

/// What became of one read.
pub(crate) enum Landed {
    /// A frame that begins at [`HEADROOM`] of the buffer and goes on in the pieces.
    Frame(Buffer, Pieces),
    /// The frame did not fit where there was room and is lost.
    Cut,
}

/// Whether the next frame may be a large one.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    left: u8,
}

impl Forecast {
    /// A frame came.
    pub(crate) fn note(&mut self, is_large: bool) {
        self.left = if is_large { EXPECTED_FOR } else { self.left.saturating_sub(1) };
    }

    /// Whether large ones are to be expected.
    pub(crate) fn expects_large(&self) -> bool {
        self.left > 0
    }
}

/// Holds the buffers of the next read.
pub(crate) struct Landing {
    pools: RxPools,
    lists: Rc<PieceShelf>,
    large: Option<Buffer>,
    /// Small buffers of the next frame, its first one last.
    small: Vec<Buffer>,
    /// Takes what lies beyond the buffers that were offered.
    overflow: Box<[u8]>,
    /// Small buffers of the longest frame.
    most: usize,
    /// Whether a small buffer comes before the large one in the read that is under way.
    small_first: bool,
}

impl Landing {
    /// Nothing is taken from the pools yet.
    pub(crate) fn new(pools: RxPools, lists: Rc<PieceShelf>) -> Self {
        let most = pools.most_small();
        let overflow = vec![0; HEADROOM + LONGEST].into_boxed_slice();
        Landing {
            pools,
            lists,
            large: None,
            small: Vec::with_capacity(most),
            overflow,
            most,
            small_first: false,
        }
    }

    /// Whether a large buffer is at hand for the next read.
    pub(crate) fn find_large(&mut self) -> bool {
        if self.large.is_none() {
            self.large = self.pools.large.take();
        }
        self.large.is_some()
    }

    /// Takes the buffers of the next read, for a large frame or a small one. False when too few are free for the longest
    /// frame, so that it would be lost; with `scrape` only when none is.
    pub(crate) fn prepare(&mut self, large: bool, scrape: bool) -> bool {
        let has_large = self.find_large();
        let is_short = self.small.len() + self.pools.small.free() < self.most || self.lists.free() == 0;
        if is_short && !has_large && !scrape {
            return false;
        }
        let wanted = if large && !has_large { self.most } else { 1 };
        while self.small.len() < wanted {
            let Some(buffer) = self.pools.small.take() else { break };
            self.small.push(buffer);
        }
        self.small.truncate(wanted);
        self.small_first = !large && !self.small.is_empty();
        has_large || !self.small.is_empty()
    }

    /// The places that the next frame goes to, in order; returns how many. After [`Landing::prepare`]; to be followed by
    /// [`Landing::settle`], or by nothing when no frame came.
    pub(crate) fn places<'a>(&'a mut self, places: &mut [IoSliceMut<'a>]) -> usize {
        let mut count = 0;
        let mut add = |bytes: &'a mut [u8]| {
            if let Some(place) = places.get_mut(count) {
                *place = IoSliceMut::new(bytes);
                count += 1;
            }
        };
        let is_small_offered = self.small_first || self.large.is_none();
        // Where the next place begins in its buffer.
        let mut from = HEADROOM;
        for small in self.small.iter_mut().rev().filter(|_| is_small_offered) {
            add(&mut small.bytes_mut()[core::mem::take(&mut from)..]);
        }
        match &mut self.large {
            Some(large) => {
                let from = if is_small_offered { self.pools.small.buffer_size() } else { HEADROOM };
                add(&mut large.bytes_mut()[from..]);
            }
            None => add(&mut self.overflow),
        }
        count
    }

    /// Keeps a frame of `len` bytes, in the buffers that it needs.
    pub(crate) fn settle(&mut self, len: usize) -> Landed {
        let size = self.pools.small.buffer_size();
        let end = HEADROOM + len;
        let Some(mut large) = self.large.take() else { return self.gather(end) };
        if end > large.len() {
            self.large = Some(large);
            return Landed::Cut;
        }
        // What lies in the large buffer already begins here.
        let from = if self.small_first { size } else { 0 };
        if end <= size || end <= large.len() / WORTH_LARGE && self.lists.free() > 0 {
            if !self.small_first {
                self.small.clear();
            }
            if end <= from || self.fetch(&large.bytes()[from..end]) {
                self.large = Some(large);
                return self.gather(end);
            }
            // Too few small buffers are free. The first may hold the beginning.
            let first = self.small.pop();
            self.small.clear();
            self.small.extend(first);
        }
        if let (true, Some(small)) = (self.small_first, self.small.last()) {
            large.bytes_mut()[HEADROOM..size].copy_from_slice(&small.bytes()[HEADROOM..]);
        }
        Landed::Frame(large, Pieces::new())
    }

    /// A frame that ends at byte `end` of the small buffers, and of the overflow behind them.
    fn gather(&mut self, end: usize) -> Landed {
        let size = self.pools.small.buffer_size();
        let (needed, offered) = (end.div_ceil(size), self.small.len());
        if needed > offered {
            let overflow = core::mem::take(&mut self.overflow);
            let has_room = overflow.get(..end - offered * size).is_some_and(|rest| self.fetch(rest));
            self.overflow = overflow;
            if !has_room {
                return Landed::Cut;
            }
        }
        let mut more = Pieces::new();
        if needed > 1 {
            let Some(list) = self.lists.take() else { return Landed::Cut };
            more = list;
        }
        let Some(first) = self.small.pop() else { return Landed::Cut };
        for at in 1..needed {
            let Some(buffer) = self.small.pop() else { return Landed::Cut };
            more.push(buffer.freeze(0..(end - at * size).min(size)));
        }
        Landed::Frame(first, more)
    }

    /// Copies what follows in the frame into further small buffers.
    fn fetch(&mut self, rest: &[u8]) -> bool {
        for bytes in rest.chunks(self.pools.small.buffer_size()) {
            let Some(mut buffer) = self.pools.small.take() else { return false };
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            // Seldom, and the list is short.
            self.small.insert(0, buffer);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::array;

    /// Receives a frame of `len` numbered bytes; returns the buffers that it holds and checks the bytes.
    fn land(landing: &mut Landing, large: bool, len: usize) -> Option<(Buffer, Pieces)> {
        if !landing.prepare(large, true) {
            return None;
        }
        let mut places: [IoSliceMut<'_>; MAX_PLACES] = array::from_fn(|_| IoSliceMut::new(&mut []));
        let count = landing.places(&mut places);
        let bytes = places[..count].iter_mut().flat_map(|place| place.iter_mut());
        for (i, byte) in bytes.take(len).enumerate() {
            *byte = (i % 251) as u8;
        }
        let Landed::Frame(first, more) = landing.settle(len) else { return None };
        let in_first = len.min(first.len() - HEADROOM);
        let pieces = more.iter().flat_map(|piece| piece.bytes());
        let bytes: Vec<u8> = first.bytes()[HEADROOM..][..in_first].iter().chain(pieces).copied().collect();
        assert_eq!(bytes.len(), len);
        assert!(bytes.iter().enumerate().all(|(i, &b)| b == (i % 251) as u8), "frame of {len} bytes");
        Some((first, more))
    }

    fn landing(large: usize, small: usize, size: usize) -> (RxPools, Landing) {
        let pools = RxPools { large: Pool::new(large, MIN_LARGE_BUFFER), small: Pool::new(small, size) };
        (pools.clone(), Landing::new(pools.clone(), pools.piece_lists()))
    }

    const SIZES: [usize; 14] =
        [60, 1514, 2042, 2043, 65_553, 60, 65_553, 9014, 4090, 4091, 16_379, 16_385, 2043, 60];

    #[test]
    fn without_large_buffers_every_size_lands_in_as_many_as_it_needs() {
        for size in [2_048, 9_216, 65_792] {
            let (pools, mut landing) = landing(0, 100, size);
            for large in [false, true] {
                for len in SIZES {
                    let frame = land(&mut landing, large, len).unwrap();
                    assert_eq!(1 + frame.1.len(), (HEADROOM + len).div_ceil(size), "{len} bytes");
                    drop(frame);
                    let kept = if large { pools.most_small() } else { 1 };
                    assert!(pools.small.len() - pools.small.free() <= kept, "{len} bytes");
                }
            }
        }
    }

    #[test]
    fn a_large_frame_lies_in_one_piece_while_a_large_buffer_is_free() {
        for size in [2_048, 9_216] {
            let (pools, mut landing) = landing(2, 100, size);
            for large in [false, true] {
                for len in SIZES {
                    let (first, more) = land(&mut landing, large, len).unwrap();
                    let end = HEADROOM + len;
                    let is_worth = end > size && end > MIN_LARGE_BUFFER / WORTH_LARGE;
                    assert_eq!(first.len() == MIN_LARGE_BUFFER, is_worth, "{len} bytes");
                    assert_eq!(1 + more.len(), if is_worth { 1 } else { end.div_ceil(size) }, "{len} bytes");
                }
            }
            let frames =
                [land(&mut landing, true, 65_553).unwrap(), land(&mut landing, true, 65_553).unwrap()];
            assert_eq!(pools.large.free(), 0);
            let scattered = land(&mut landing, true, 65_553).unwrap();
            assert_eq!(1 + scattered.1.len(), pools.most_small());
            drop(frames);
            assert!(land(&mut landing, true, 65_553).unwrap().1.is_empty());
        }
    }

    #[test]
    fn where_no_small_buffer_is_free_a_large_one_takes_any_frame() {
        let (pools, mut landing) = landing(3, 4, 2_048);
        let mut frames: Vec<_> = (0..4).map(|_| land(&mut landing, false, 60).unwrap()).collect();
        assert!(frames.iter().all(|(first, _)| first.len() == 2_048));
        frames.extend([60, 5_000, 65_553].map(|len| land(&mut landing, false, len).unwrap()));
        assert_eq!((pools.small.free(), pools.large.free()), (0, 0));
        assert!(land(&mut landing, false, 60).is_none());
        frames.drain(..2);
        assert!(land(&mut landing, false, 1514).is_some());
        assert!(land(&mut landing, true, 65_553).is_none(), "no room for it");
    }

    #[test]
    fn a_frame_stays_in_a_large_buffer_where_small_ones_are_too_few() {
        for large in [false, true] {
            let (_, mut landing) = landing(1, 3, 2_048);
            let (first, more) = land(&mut landing, large, 9_014).unwrap();
            assert_eq!((first.len(), more.len()), (MIN_LARGE_BUFFER, 0));
        }
    }

    #[test]
    fn where_few_are_free_nothing_is_read_unless_asked_for() {
        let (pools, mut landing) = landing(0, 40, 2_048);
        let held: Vec<Buffer> = (0..8).map(|_| pools.small.take().unwrap()).collect();
        for large in [false, true] {
            assert!(!landing.prepare(large, false), "32 free, 33 needed");
            assert!(landing.prepare(large, true));
        }
        let small = land(&mut landing, true, 1514).unwrap();
        assert!(land(&mut landing, true, 65_553).is_none(), "no room for it");
        assert!(land(&mut landing, false, 65_553).is_none(), "no room for it");
        let next = land(&mut landing, false, 100).unwrap();
        drop((held, small, next));
        assert!(landing.prepare(true, false));
        land(&mut landing, true, 65_553).unwrap();
    }

    #[test]
    fn large_frames_are_expected_for_a_while() {
        let mut forecast = Forecast::default();
        assert!(!forecast.expects_large());
        forecast.note(true);
        for _ in 0..EXPECTED_FOR {
            assert!(forecast.expects_large());
            forecast.note(false);
        }
        assert!(!forecast.expects_large());
    }

    #[test]
    fn a_small_buffer_holds_a_frame_of_the_mtu() {
        for (mtu, size, most) in
            [(1_280, 2_048, 33), (1_500, 2_048, 33), (2_030, 2_304, 29), (9_000, 9_216, 8)]
        {
            let pools = RxPools::for_memory(5 << 20, mtu);
            assert_eq!((pools.small.buffer_size(), pools.most_small()), (size, most), "MTU {mtu}");
            assert_eq!(pools.small.len(), (4 << 20) / size);
            assert_eq!(pools.large.len(), 15);
            assert!(pools.flaw().is_none());
        }
        assert_eq!(RxPools::for_memory(0, 1_500).small.len(), 64);
        assert_eq!(MAX_PLACES, 34);
    }

    #[test]
    fn buffers_that_are_too_small_are_named() {
        let flaw = |large, small| {
            RxPools { large: Pool::new(1, large), small: Pool::new(1, small) }.flaw().map(|f| f.0)
        };
        assert_eq!(flaw(65_536, 2048), Some("large"));
        assert_eq!(flaw(MIN_LARGE_BUFFER, 2047), Some("small"));
        assert_eq!(flaw(MIN_LARGE_BUFFER, 2048), None);
    }
}
