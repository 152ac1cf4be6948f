//! Software's side of receive rings: buffers of random sizes, and what must arrive in them.

use super::memory::{READ, WRITE};
use super::slots::{Order, Slots};
use super::world::{Way, World};
use crate::RxUser;
use std::collections::VecDeque;

pub const COMPLETE: u32 = 1 << 31;
const ERRORS: u32 = 7 << 28;
pub const FIRST: u32 = 1 << 27;
pub const LAST: u32 = 1 << 26;
pub const LENGTH: u32 = (1 << 26) - 1;

/// What a buffer has that claims to be longer than any frame.
const ENOUGH: usize = 9_024;
/// What a buffer holds before a frame comes.
const UNTOUCHED: u8 = 0xB1;

/// A buffer that was handed over.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    slot: usize,
    pub descriptor: u64,
    pub address: u64,
    /// What its descriptor says, in whole 64 bytes, and how much of that there is.
    room: usize,
    len: usize,
    /// App words before the frame.
    app: [u32; 5],
}

/// A queue's ring.
#[derive(Debug)]
pub struct RxRing {
    pub queue: usize,
    pub slots: Slots,
    given: VecDeque<Buffer>,
    /// Frames in the order in which they came.
    pub expected: VecDeque<(Vec<u8>, RxUser)>,
    /// Pieces of the frame that is coming.
    pieces: Vec<u8>,
    buffers: u64,
    buffers_len: u64,
    buffer_at: u64,
    /// Frames taken, and frames of `expected` that never came.
    pub taken: u64,
    pub missing: u64,
    /// Frames that were begun and cut off.
    pub cut: u64,
}

impl RxRing {
    /// A ring of `len` descriptors.
    pub fn new(world: &mut World<'_>, queue: usize, len: usize, order: Order) -> Self {
        let slots = Slots::new(world, len, order);
        let buffers_len = (len + 2) * (ENOUGH + 256);
        let buffers = world.memory.add(&mut world.rng, buffers_len, UNTOUCHED);
        RxRing {
            queue,
            slots,
            given: VecDeque::new(),
            expected: VecDeque::new(),
            pieces: Vec::new(),
            buffers,
            buffers_len: buffers_len as u64,
            buffer_at: 64,
            taken: 0,
            missing: 0,
            cut: 0,
        }
    }

    /// All descriptors are software's again, and any is the next. A frame of which a part has come will not go on.
    pub fn rewind(&mut self, world: &mut World<'_>) {
        for given in self.given.drain(..) {
            world.memory.allow(given.address, given.len, 0);
        }
        self.slots.rewind(world);
        self.pieces.clear();
    }

    pub fn room(&self) -> usize {
        self.slots.room()
    }

    pub fn outstanding(&self) -> usize {
        self.given.len()
    }

    /// The oldest descriptor that is not complete, or the next one.
    pub fn oldest(&self) -> u64 {
        self.given.front().map_or(self.slots.next_address(), |given| given.descriptor)
    }

    pub fn next_address(&self) -> u64 {
        self.slots.next_address()
    }

    /// Forgets the buffer that was handed over last; what becomes of it the caller sees.
    pub fn disown(&mut self) -> Option<Buffer> {
        self.given.pop_back()
    }

    /// Frames that have not come will not.
    pub fn write_off(&mut self) {
        self.missing += self.expected.len() as u64;
        self.expected.clear();
    }

    /// Room for `len` bytes at a multiple of 64.
    pub fn buffer(&mut self, world: &mut World<'_>, len: usize) -> u64 {
        if self.buffer_at + len as u64 + 192 > self.buffers_len {
            self.buffer_at = 64;
        }
        let buffer = self.buffers + self.buffer_at;
        self.buffer_at += (len as u64).next_multiple_of(64) + 64 * world.rng.below(3);
        buffer
    }

    /// Hands over a buffer of `len` bytes, of which whole 64 are used.
    pub fn give(&mut self, world: &mut World<'_>, len: usize) {
        let room = len / 64 * 64;
        let buffer = self.buffer(world, len);
        self.put(world, buffer, len as u32, room);
    }

    /// Hands over a buffer that claims to be longer than any frame, up to what a descriptor can say.
    pub fn give_vast(&mut self, world: &mut World<'_>) {
        let buffer = self.buffer(world, ENOUGH);
        let claimed = (world.rng.bits() as u32 & LENGTH).max(ENOUGH as u32);
        self.put(world, buffer, claimed, ENOUGH);
    }

    /// Hands over any descriptor, with a buffer of which hardware may write the first `len` bytes.
    pub fn put(&mut self, world: &mut World<'_>, buffer: u64, control: u32, len: usize) {
        let slot = self.slots.take(world);
        let descriptor = self.slots.address(slot);
        world.memory.store(descriptor + 8, &buffer.to_le_bytes());
        // Bits 31 to 26 are not used.
        let noise = (world.rng.bits() as u32) & !LENGTH;
        world.memory.store_word(descriptor + 0x14, control | noise);
        world.memory.store(descriptor + 0x18, &[0; 8]);
        world.memory.fill(buffer, len, UNTOUCHED);
        world.memory.allow(buffer, len, WRITE);
        world.memory.allow(descriptor + 0x18, 8, READ | WRITE);
        // App words are only written, so that is all of the descriptor's second half that may be touched.
        world.memory.allow(descriptor + 0x20, 0x20, 0);
        world.memory.allow(descriptor + 0x20, 0x14, WRITE);
        let app = app_of(world, descriptor);
        let room = control as usize / 64 * 64;
        self.given.push_back(Buffer { slot, descriptor, address: buffer, room, len, app });
    }

    pub fn ring(&self, world: &mut World<'_>) -> Result<(), String> {
        world.ring(Way::Receive, self.queue, self.slots.last_address())
    }

    /// Takes what has come, in order, and checks it.
    pub fn take(&mut self, world: &mut World<'_>) -> Result<(), String> {
        while let Some(&given) = self.given.front() {
            let status = world.memory.load_word(given.descriptor + 0x18);
            if status & COMPLETE == 0 {
                return Ok(());
            }
            let len = (status & LENGTH) as usize;
            if status & ERRORS != 0
                || len == 0
                || len > given.len
                || (status & LAST == 0 && len != given.room)
            {
                return Err(format!("receive status {status:#x} of a buffer of {} bytes", given.room));
            }
            if world.memory.load_word(given.descriptor + 0x1C) != (self.queue as u32) << 16 {
                return Err("a wrong sideband word".to_owned());
            }
            let bytes = world.memory.look(given.address, given.len);
            if bytes[len..].iter().any(|byte| *byte != UNTOUCHED) {
                return Err("bytes behind the end of a frame were written".to_owned());
            }
            let (bytes, app) = (bytes[..len].to_vec(), app_of(world, given.descriptor));
            world.memory.allow(given.address, given.len, 0);
            self.slots.give_back(world, given.slot);
            self.given.pop_front();
            self.collect(given, status, &bytes, app)?;
        }
        Ok(())
    }

    fn collect(&mut self, given: Buffer, status: u32, bytes: &[u8], app: [u32; 5]) -> Result<(), String> {
        if status & FIRST != 0 {
            if !self.pieces.is_empty() {
                self.give_up()?;
            }
        } else if self.pieces.is_empty() {
            return Err("a piece without a beginning".to_owned());
        }
        self.pieces.extend_from_slice(bytes);
        if status & LAST == 0 {
            return if app == given.app {
                Ok(())
            } else {
                Err(format!("app words {app:x?} before the end of a frame instead of {:x?}", given.app))
            };
        }
        let whole = core::mem::take(&mut self.pieces);
        let user = self.skip_to(|frame| *frame == whole)?;
        if app != app_words(user) {
            return Err(format!("app words {app:x?} instead of {:x?}", app_words(user)));
        }
        self.taken += 1;
        Ok(())
    }

    /// The frame of which a part has come was cut off.
    pub fn give_up(&mut self) -> Result<(), String> {
        let begun = core::mem::take(&mut self.pieces);
        if !begun.is_empty() {
            self.skip_to(|frame| frame.len() > begun.len() && frame[..begun.len()] == begun[..])?;
            self.cut += 1;
        }
        Ok(())
    }

    /// The first expected frame that fits; those before it were dropped.
    fn skip_to(&mut self, fits: impl Fn(&Vec<u8>) -> bool) -> Result<RxUser, String> {
        while let Some((frame, user)) = self.expected.pop_front() {
            if fits(&frame) {
                return Ok(user);
            }
            self.missing += 1;
        }
        Err(format!("queue {}: bytes that were never sent, or sent before", self.queue))
    }
}

/// App words as they are in memory.
pub fn app_of(world: &World<'_>, descriptor: u64) -> [u32; 5] {
    core::array::from_fn(|at| world.memory.load_word(descriptor + 0x20 + 4 * at as u64))
}

/// App words in layout 0.
pub fn app_words(user: RxUser) -> [u32; 5] {
    [
        user.hash,
        u32::from(user.seg_size) << 16
            | u32::from(user.seg_count) << 8
            | u32::from(user.channel) << 4
            | u32::from(user.error) << 3
            | u32::from(user.hash_type),
        user.arrival,
        u32::from(user.csum_raw),
        u32::from(user.csum_status),
    ]
}

/// Anything at all beside a frame for `queue`.
pub fn random_user(world: &mut World<'_>, queue: usize) -> RxUser {
    let rng = &mut world.rng;
    RxUser {
        error: rng.chance(5),
        csum_status: rng.below(8) as u8,
        csum_raw: rng.bits() as u16,
        hash: rng.bits() as u32,
        hash_type: rng.below(8) as u8,
        channel: queue as u8,
        drop: rng.chance(5),
        seg_count: rng.bits() as u8,
        seg_size: rng.bits() as u16,
        arrival: rng.bits() as u32,
    }
}
