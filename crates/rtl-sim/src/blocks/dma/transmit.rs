//! Software's side of transmit rings: random frames in random pieces, and what must come of them.

use super::memory::{READ, WRITE};
use super::world::{Way, World};
use crate::{Received, SegmentMode, TxUser};
use std::collections::VecDeque;

/// Bytes between the buffers of two pieces that nobody may write (and a beat beyond which nobody may read).
const GUARD: u64 = 64;

const SOF: u32 = 1 << 31;
const EOF: u32 = 1 << 30;
const COMPLETE: u32 = 1 << 31;
const ERRORS: u32 = 7 << 28;

/// A piece that was handed over.
#[derive(Debug)]
struct Given {
    slot: usize,
    buffer: u64,
    len: usize,
    is_last: bool,
}

/// A queue's ring.
#[derive(Debug)]
pub struct TxRing {
    pub queue: usize,
    /// Addresses of the descriptors in the order of the ring.
    pub slots: Vec<u64>,
    /// What hardware may do with a descriptor that is software's: read it where the ring jumps, as it guesses then.
    rights: u8,
    free: usize,
    next: usize,
    given: VecDeque<Given>,
    /// Frames that must still leave.
    pub expected: VecDeque<(Vec<u8>, TxUser)>,
    buffers: u64,
    buffers_len: u64,
    buffer_at: u64,
    /// Frames that were handed over and whose status has come.
    pub sent: u64,
    pub complete: u64,
}

impl TxRing {
    /// A ring of `len` descriptors; jumps about in memory if `scattered`.
    pub fn new(world: &mut World<'_>, queue: usize, len: usize, scattered: bool) -> Self {
        let base = 0x10_0000_0000 + ((queue as u64) << 28);
        let gap = if scattered { 2 } else { 1 };
        world.memory.add(base, 64 * gap * len + 64, 0xD5);
        world.memory.allow(base, 64 * gap * len, if scattered { READ } else { 0 });
        let mut slots: Vec<u64> = (0..len as u64).map(|at| base + 64 * at * gap as u64).collect();
        if scattered {
            for at in (1..len).rev() {
                slots.swap(at, world.rng.below(at as u64 + 1) as usize);
            }
        }
        let (buffers, buffers_len) = (0x20_0000_0000 + ((queue as u64) << 28), 1 << 19);
        world.memory.add(buffers, buffers_len as usize, 0xB0);
        let mut ring = TxRing {
            queue,
            rights: if scattered { READ } else { 0 },
            free: len,
            next: 0,
            given: VecDeque::new(),
            expected: VecDeque::new(),
            buffers,
            buffers_len,
            buffer_at: GUARD,
            sent: 0,
            complete: 0,
            slots,
        };
        ring.rewind(world, 0);
        ring
    }

    /// All descriptors are software's again, and the next frame begins at `slot`.
    pub fn rewind(&mut self, world: &mut World<'_>, slot: usize) {
        for (at, address) in self.slots.iter().enumerate() {
            let next = self.slots[(at + 1) % self.slots.len()];
            world.memory.allow(*address, 64, self.rights);
            world.memory.store(*address, &[0; 64]);
            world.memory.store(*address, &next.to_le_bytes());
        }
        (self.free, self.next) = (self.slots.len(), slot);
        self.given.clear();
        self.expected.clear();
    }

    pub fn room(&self) -> usize {
        self.free
    }

    pub fn outstanding(&self) -> usize {
        self.given.len()
    }

    pub fn next_slot(&self) -> u64 {
        self.slots[self.next]
    }

    /// The oldest descriptor that is not complete, or the next one.
    pub fn oldest(&self) -> u64 {
        self.given.front().map_or(self.next_slot(), |given| self.slots[given.slot])
    }

    /// Forgets the piece that was handed over last; what becomes of it the caller sees.
    pub fn disown(&mut self) {
        self.given.pop_back();
    }

    /// Frames that were handed over and did not leave will never leave.
    pub fn forgive(&mut self) {
        (self.sent, self.complete) = (0, 0);
    }

    fn buffer(&mut self, world: &mut World<'_>, len: usize) -> u64 {
        let skew = world.rng.below(70);
        if self.buffer_at + skew + len as u64 + 2 * GUARD > self.buffers_len {
            self.buffer_at = GUARD;
        }
        let at = self.buffers + self.buffer_at + skew;
        self.buffer_at += skew + len as u64 + GUARD;
        at
    }

    /// Hands over a frame in `pieces` (fewer if it has fewer bytes); the doorbell is the caller's. Returns the last descriptor.
    pub fn give(&mut self, world: &mut World<'_>, frame: Vec<u8>, user: TxUser, pieces: usize) -> u64 {
        let pieces = pieces.min(frame.len()).min(self.free).max(1);
        let mut cuts: Vec<usize> = (1..pieces).map(|_| world.rng.between(1, frame.len() - 1)).collect();
        cuts.extend([0, frame.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let count = cuts.len() - 1;
        let mut last = 0;
        for (index, cut) in cuts.windows(2).enumerate() {
            let bytes = &frame[cut[0]..cut[1]];
            let buffer = self.buffer(world, bytes.len());
            world.memory.store(buffer, bytes);
            world.memory.allow(buffer, bytes.len(), READ);
            let (is_first, is_last) = (index == 0, index + 1 == count);
            let control = bytes.len() as u32 | if is_first { SOF } else { 0 } | if is_last { EOF } else { 0 };
            let app =
                if is_first { app_words(user) } else { core::array::from_fn(|_| world.rng.bits() as u32) };
            last = self.put(world, buffer, control, app);
            self.given.push_back(Given { slot: self.slot_before(), buffer, len: bytes.len(), is_last });
        }
        self.expected.push_back((frame, TxUser { channel: self.queue as u8, ..user }));
        self.sent += 1;
        last
    }

    fn slot_before(&self) -> usize {
        (self.next + self.slots.len() - 1) % self.slots.len()
    }

    /// Fills in the next descriptor, whatever it says.
    pub fn put(&mut self, world: &mut World<'_>, buffer: u64, control: u32, app: [u32; 5]) -> u64 {
        let address = self.slots[self.next];
        let words = [buffer as u32, (buffer >> 32) as u32, 0, control, 0, 0];
        for (at, word) in (address + 8..).step_by(4).zip(words.into_iter().chain(app)) {
            world.memory.store_word(at, word);
        }
        world.memory.allow(address, 64, READ);
        world.memory.allow(address + 0x1C, 4, READ | WRITE);
        self.next = (self.next + 1) % self.slots.len();
        self.free -= 1;
        address
    }

    /// Takes back what is complete, in order. What was read is overwritten, so that who reads later sends rubbish.
    pub fn reclaim(&mut self, world: &mut World<'_>) -> Result<(), String> {
        while let Some(given) = self.given.front() {
            let address = self.slots[given.slot];
            let status = world.memory.load_word(address + 0x1C);
            if status & COMPLETE == 0 {
                return Ok(());
            }
            if status & ERRORS != 0 || status & 0x3FF_FFFF != given.len as u32 {
                return Err(format!("transmit status {status:#x} of a piece of {} bytes", given.len));
            }
            world.memory.store(given.buffer, &vec![0x5A; given.len]);
            world.memory.allow(given.buffer, given.len, 0);
            world.memory.allow(address, 64, self.rights);
            self.complete += u64::from(given.is_last);
            self.free += 1;
            self.given.pop_front();
        }
        Ok(())
    }

    /// A frame that left.
    pub fn check(&mut self, received: &Received) -> Result<(), String> {
        let (frame, user) = self.expected.pop_front().ok_or("a frame that was never handed over")?;
        let seen = TxUser::from_words(received.user);
        if received.data != frame {
            let at = frame.iter().zip(&received.data).position(|(a, b)| a != b);
            return Err(format!(
                "queue {}: a frame of {} bytes left with {} bytes, the first difference at {at:?}",
                self.queue,
                frame.len(),
                received.data.len()
            ));
        }
        if seen != user || !received.user_constant {
            return Err(format!("queue {}: {seen:?} beside a frame instead of {user:?}", self.queue));
        }
        Ok(())
    }

    /// Rings for what was handed over.
    pub fn ring(&self, world: &mut World<'_>) -> Result<(), String> {
        let tail = self.slots[self.slot_before()];
        world.ring(Way::Transmit, self.queue, tail)
    }
}

/// App words in layout 0.
pub fn app_words(user: TxUser) -> [u32; 5] {
    let word = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
    [
        user.seg as u32
            | u32::from(user.ipv6) << 2
            | u32::from(user.ip_csum) << 3
            | u32::from(user.hdr_len) << 8
            | u32::from(user.l3_start) << 16,
        u32::from(user.seg_size) << 16 | u32::from(user.csum) << 10,
        word(0, user.csum_init),
        word(user.csum_insert, user.csum_begin),
        0,
    ]
}

/// Anything at all beside a frame.
pub fn random_user(world: &mut World<'_>) -> TxUser {
    let rng = &mut world.rng;
    TxUser {
        channel: 0,
        seg: rng.pick(&[SegmentMode::None, SegmentMode::Tcp, SegmentMode::Udp]),
        seg_size: rng.bits() as u16,
        hdr_len: rng.bits() as u8,
        l3_start: rng.bits() as u8,
        ipv6: rng.chance(50),
        ip_csum: rng.chance(50),
        csum: rng.below(3) as u8,
        csum_init: rng.bits() as u16,
        csum_begin: rng.bits() as u16,
        csum_insert: rng.bits() as u16,
    }
}
