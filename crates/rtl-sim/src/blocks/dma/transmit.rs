//! Software's side of transmit rings: random frames in random pieces, and what must come of them.

use super::memory::{READ, WRITE};
use super::slots::{Order, Slots};
use super::world::{Way, World};
use crate::{Received, SegmentMode, TxUser};
use std::collections::VecDeque;

/// Bytes between the buffers of two pieces that nobody may write (and a beat beyond which nobody may read).
const GUARD: u64 = 64;
/// Bytes of the longest frame but for those that say how long they are.
pub const MOST: usize = 9_000;

pub const SOF: u32 = 1 << 31;
pub const EOF: u32 = 1 << 30;
pub const COMPLETE: u32 = 1 << 31;
const ERRORS: u32 = 7 << 28;

/// A piece that was handed over.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    slot: usize,
    pub descriptor: u64,
    pub buffer: u64,
    pub len: usize,
    is_last: bool,
}

/// A queue's ring.
#[derive(Debug)]
pub struct TxRing {
    pub queue: usize,
    pub slots: Slots,
    given: VecDeque<Piece>,
    /// Frames that must still leave.
    pub expected: VecDeque<(Vec<u8>, TxUser)>,
    buffers: u64,
    buffers_len: u64,
    buffer_at: u64,
    /// Buffers begin and end at the corners of bursts and pages.
    has_corners: bool,
    /// Frames that were handed over and whose status has come.
    pub sent: u64,
    pub complete: u64,
}

impl TxRing {
    /// A ring of `len` descriptors.
    pub fn new(world: &mut World<'_>, queue: usize, len: usize, order: Order) -> Self {
        let slots = Slots::new(world, len, order);
        let buffers_len = (len + 2) * (MOST + 4_096 + 3 * GUARD as usize);
        let buffers = world.memory.add(&mut world.rng, buffers_len, 0xB0);
        TxRing {
            queue,
            slots,
            given: VecDeque::new(),
            expected: VecDeque::new(),
            buffers,
            buffers_len: buffers_len as u64,
            buffer_at: GUARD,
            has_corners: len < 64,
            sent: 0,
            complete: 0,
        }
    }

    /// All descriptors are software's again, and the next frame begins anywhere.
    pub fn rewind(&mut self, world: &mut World<'_>) {
        for piece in self.given.drain(..) {
            world.memory.allow(piece.buffer, piece.len, 0);
        }
        self.slots.rewind(world);
        self.expected.clear();
    }

    /// Pieces that can be handed over.
    pub fn room(&self) -> usize {
        self.slots.room()
    }

    /// Pieces that were handed over and are not complete.
    pub fn outstanding(&self) -> usize {
        self.given.len()
    }

    /// The oldest descriptor that is not complete, or the next one.
    pub fn oldest(&self) -> u64 {
        self.given.front().map_or(self.slots.next_address(), |piece| piece.descriptor)
    }

    pub fn next_address(&self) -> u64 {
        self.slots.next_address()
    }

    /// Forgets the `count` pieces that were handed over last; what becomes of them the caller sees.
    pub fn disown(&mut self, count: usize) -> Vec<Piece> {
        self.given.split_off(self.given.len() - count).into()
    }

    /// Frames that were handed over and did not leave will never leave.
    pub fn forgive(&mut self) {
        (self.sent, self.complete) = (0, 0);
    }

    /// Other buffers, with room for a frame of `len` bytes, also behind a corner.
    pub fn enlarge(&mut self, world: &mut World<'_>, len: usize) {
        let len = len + 4_096 + 4 * GUARD as usize;
        self.buffers = world.memory.add(&mut world.rng, len, 0xB0);
        (self.buffers_len, self.buffer_at) = (len as u64, GUARD);
    }

    /// Room for some bytes, at any address.
    pub fn buffer(&mut self, world: &mut World<'_>, len: usize) -> u64 {
        let len = len as u64;
        let skew = if self.has_corners && world.rng.chance(20) {
            // So that it begins or ends close to a corner.
            let corner = world.rng.pick(&[128, 512, 4_096]);
            let close = self.buffers + self.buffer_at + if world.rng.chance(50) { len } else { 0 };
            (close.next_multiple_of(corner) - close + world.rng.below(19)).saturating_sub(9)
        } else {
            world.rng.below(70)
        };
        if self.buffer_at + skew + len + 2 * GUARD > self.buffers_len {
            self.buffer_at = GUARD;
        }
        let at = self.buffers + self.buffer_at + skew;
        self.buffer_at += skew + len + GUARD;
        at
    }

    /// Hands over a frame in `pieces` (fewer if it has fewer bytes); the doorbell is the caller's.
    pub fn give(&mut self, world: &mut World<'_>, frame: Vec<u8>, user: TxUser, pieces: usize) -> usize {
        let pieces = pieces.min(frame.len()).min(self.room()).max(1);
        let mut cuts: Vec<usize> = (1..pieces).map(|_| world.rng.between(1, frame.len() - 1)).collect();
        cuts.extend([0, frame.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        let count = cuts.len() - 1;
        for (index, cut) in cuts.windows(2).enumerate() {
            let bytes = &frame[cut[0]..cut[1]];
            let len = bytes.len();
            let buffer = self.buffer(world, len);
            world.memory.store(buffer, bytes);
            world.memory.allow(buffer, len, READ);
            let (is_first, is_last) = (index == 0, index + 1 == count);
            let control = len as u32 | if is_first { SOF } else { 0 } | if is_last { EOF } else { 0 };
            let app = is_first.then(|| app_words(world, user));
            let (slot, descriptor) = self.put(world, buffer, control, app);
            self.given.push_back(Piece { slot, descriptor, buffer, len, is_last });
        }
        self.expected.push_back((frame, TxUser { channel: self.queue as u8, ..user }));
        self.sent += 1;
        count
    }

    /// Fills in the next descriptor, whatever it says; without app words there are any.
    pub fn put(
        &mut self,
        world: &mut World<'_>,
        buffer: u64,
        control: u32,
        app: Option<[u32; 5]>,
    ) -> (usize, u64) {
        let slot = self.slots.take(world);
        let address = self.slots.address(slot);
        world.memory.store(address + 8, &buffer.to_le_bytes());
        // Bits 29 to 26 are not used.
        let noise = (world.rng.bits() as u32) & 0x3C00_0000;
        world.memory.store_word(address + 0x14, control | noise);
        world.memory.store_word(address + 0x1C, 0);
        for (at, word) in (address + 0x20..).step_by(4).zip(app.iter().flatten()) {
            world.memory.store_word(at, *word);
        }
        world.memory.allow(address + 0x1C, 4, READ | WRITE);
        (slot, address)
    }

    /// Takes back what is complete, in order. What was read is overwritten, so that who reads later sends rubbish.
    pub fn reclaim(&mut self, world: &mut World<'_>) -> Result<(), String> {
        while let Some(&Piece { slot, descriptor, buffer, len, is_last }) = self.given.front() {
            let status = world.memory.load_word(descriptor + 0x1C);
            if status & COMPLETE == 0 {
                return Ok(());
            }
            if status & ERRORS != 0 || status & 0x3FF_FFFF != len as u32 {
                return Err(format!("transmit status {status:#x} of a piece of {len} bytes"));
            }
            world.memory.fill(buffer, len, 0x5A);
            world.memory.allow(buffer, len, 0);
            self.slots.give_back(world, slot);
            self.complete += u64::from(is_last);
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
        world.ring(Way::Transmit, self.queue, self.slots.last_address())
    }
}

/// App words in layout 0. Bits that mean nothing are random, and two of the four values of a field of two bits mean none.
fn app_words(world: &mut World<'_>, user: TxUser) -> [u32; 5] {
    let noise: [u32; 5] = core::array::from_fn(|_| world.rng.bits() as u32);
    let or_three = |value: u32, bit: u32| if value == 0 && noise[4] >> bit & 1 != 0 { 3 } else { value };
    [
        or_three(user.seg as u32, 0)
            | u32::from(user.ipv6) << 2
            | u32::from(user.ip_csum) << 3
            | u32::from(user.hdr_len) << 8
            | u32::from(user.l3_start) << 16
            | noise[0] & 0xFF00_00F0,
        u32::from(user.seg_size) << 16 | or_three(user.csum.into(), 1) << 10 | noise[1] & 0xF3FF,
        u32::from(user.csum_init) | noise[2] & 0xFFFF_0000,
        u32::from(user.csum_insert) << 16 | u32::from(user.csum_begin),
        noise[4],
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
