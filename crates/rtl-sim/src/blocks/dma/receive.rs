//! Software's side of receive rings: buffers of random sizes, and what must arrive in them.

use super::memory::{READ, WRITE};
use super::world::{Way, World};
use crate::RxUser;
use std::collections::VecDeque;

const COMPLETE: u32 = 1 << 31;
const ERRORS: u32 = 7 << 28;
const FIRST: u32 = 1 << 27;
const LAST: u32 = 1 << 26;
const LENGTH: u32 = (1 << 26) - 1;

/// A buffer that was handed over.
#[derive(Debug)]
struct Given {
    slot: usize,
    buffer: u64,
    room: usize,
}

/// A queue's ring.
#[derive(Debug)]
pub struct RxRing {
    pub queue: usize,
    pub slots: Vec<u64>,
    free: usize,
    next: usize,
    given: VecDeque<Given>,
    /// Frames in the order in which they came, with whether each may be dropped.
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
    pub fn new(world: &mut World<'_>, queue: usize, len: usize) -> Self {
        let base = 0x30_0000_0000 + ((queue as u64) << 28);
        world.memory.add(base, 64 * len, 0xD6);
        let (buffers, buffers_len) = (0x40_0000_0000 + ((queue as u64) << 28), 1 << 19);
        world.memory.add(buffers, buffers_len as usize, 0xB1);
        let mut ring = RxRing {
            queue,
            slots: (0..len as u64).map(|at| base + 64 * at).collect(),
            free: len,
            next: 0,
            given: VecDeque::new(),
            expected: VecDeque::new(),
            pieces: Vec::new(),
            buffers,
            buffers_len,
            buffer_at: 64,
            taken: 0,
            missing: 0,
            cut: 0,
        };
        ring.rewind(world, 0);
        ring
    }

    /// All descriptors are software's again, and the next is `slot`. A frame of which a part has come will not go on.
    pub fn rewind(&mut self, world: &mut World<'_>, slot: usize) {
        for given in self.given.drain(..) {
            world.memory.allow(given.buffer, given.room, 0);
        }
        for (at, address) in self.slots.iter().enumerate() {
            let next = self.slots[(at + 1) % self.slots.len()];
            world.memory.allow(*address, 64, 0);
            world.memory.store(*address, &[0; 64]);
            world.memory.store(*address, &next.to_le_bytes());
        }
        (self.free, self.next) = (self.slots.len(), slot);
        self.pieces.clear();
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

    /// The descriptor that was handed over last.
    pub fn slot_before(&self) -> u64 {
        self.slots[(self.next + self.slots.len() - 1) % self.slots.len()]
    }

    /// Forgets the buffer that was handed over last; what becomes of it the caller sees.
    pub fn disown(&mut self) {
        self.given.pop_back();
    }

    /// Frames that have not come will not.
    pub fn write_off(&mut self) {
        self.missing += self.expected.len() as u64;
        self.expected.clear();
    }

    /// Hands over a buffer of `len` bytes, of which whole 64 are used.
    pub fn give(&mut self, world: &mut World<'_>, len: usize) {
        let room = len / 64 * 64;
        if self.buffer_at + len as u64 + 192 > self.buffers_len {
            self.buffer_at = 64;
        }
        let buffer = self.buffers + self.buffer_at;
        self.buffer_at += (len as u64).next_multiple_of(64) + 64 * world.rng.below(3);
        self.put(world, buffer, len as u32, room);
    }

    /// Hands over any descriptor.
    pub fn put(&mut self, world: &mut World<'_>, buffer: u64, len: u32, room: usize) -> u64 {
        let address = self.slots[self.next];
        world.memory.store(address + 8, &[0; 44]);
        world.memory.store(address + 8, &buffer.to_le_bytes());
        world.memory.store_word(address + 0x14, len);
        world.memory.store(buffer, &vec![0xB1; room]);
        world.memory.allow(buffer, room, WRITE);
        world.memory.allow(address, 64, READ);
        world.memory.allow(address + 0x18, 0x34 - 0x18, READ | WRITE);
        self.given.push_back(Given { slot: self.next, buffer, room });
        self.next = (self.next + 1) % self.slots.len();
        self.free -= 1;
        address
    }

    pub fn ring(&self, world: &mut World<'_>) -> Result<(), String> {
        world.ring(Way::Receive, self.queue, self.slot_before())
    }

    /// Takes what has come, in order, and checks it.
    pub fn take(&mut self, world: &mut World<'_>) -> Result<(), String> {
        while let Some(given) = self.given.front() {
            let address = self.slots[given.slot];
            let status = world.memory.load_word(address + 0x18);
            if status & COMPLETE == 0 {
                return Ok(());
            }
            let len = (status & LENGTH) as usize;
            if status & ERRORS != 0
                || len == 0
                || len > given.room
                || (status & LAST == 0 && len != given.room)
            {
                return Err(format!("receive status {status:#x} of a buffer of {} bytes", given.room));
            }
            if world.memory.load_word(address + 0x1C) != (self.queue as u32) << 16 {
                return Err("a wrong sideband word".to_owned());
            }
            let bytes = world.memory.load(given.buffer, given.room);
            if bytes[len..].iter().any(|byte| *byte != 0xB1) {
                return Err("bytes behind the end of a frame were written".to_owned());
            }
            world.memory.allow(given.buffer, given.room, 0);
            world.memory.allow(address, 64, 0);
            self.free += 1;
            self.given.pop_front();
            self.collect(world, address, status, &bytes[..len])?;
        }
        Ok(())
    }

    fn collect(&mut self, world: &World<'_>, address: u64, status: u32, bytes: &[u8]) -> Result<(), String> {
        if status & FIRST != 0 {
            if !self.pieces.is_empty() {
                self.give_up()?;
            }
        } else if self.pieces.is_empty() {
            return Err("a piece without a beginning".to_owned());
        }
        self.pieces.extend_from_slice(bytes);
        let app: [u32; 5] = core::array::from_fn(|at| world.memory.load_word(address + 0x20 + 4 * at as u64));
        if status & LAST == 0 {
            return if app == [0; 5] {
                Ok(())
            } else {
                Err("app words before the end of a frame".to_owned())
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

/// App words in layout 0.
fn app_words(user: RxUser) -> [u32; 5] {
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
