//! Memory as the device sees it, and the processor's caches in front of it.
//!
//! The bytes of a Rust buffer are what the processor sees: its cache. What the device sees is a copy, kept here by bus address.
//! [`Memory::clean`] copies from the buffer to here, [`Memory::invalidate`] from here to the buffer, and nothing else does. So an operation that
//! is left out has the worst effect that it can have on hardware: the device reads, or the processor sees, what was there before.
//! And where the processor has written to a buffer that the device then filled, its line is taken to have been written back
//! over the device's bytes.

use super::{DESCRIPTORS, DESCRIPTORS_LEN};
use core::ops::Range;
use std::collections::HashMap;

const LINE: u64 = 64;

/// What is added to an address of the program: a driver that takes one for a bus address is found out.
const BUS: u64 = 1 << 56;

/// A line of memory.
struct Line {
    /// As the device sees it.
    memory: [u8; LINE as usize],
    /// As the processor saw it when the two were last made equal.
    equal: [u8; LINE as usize],
    /// Which bytes were ever made equal.
    known: u64,
    /// Which bytes the device has written since.
    written: u64,
}

impl Line {
    /// Memory that nobody has written yet.
    const UNKNOWN: Line =
        Line { memory: [0xA5; LINE as usize], equal: [0; LINE as usize], known: 0, written: 0 };
}

/// An operation of the driver's on the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheOperation {
    /// Of headers, or of packets that were copied.
    CleanHeader,
    /// Of payload where it lies.
    CleanPayload,
    /// Before the device gets a buffer.
    InvalidateBefore,
    /// Before the processor reads what came.
    InvalidateAfter,
}

/// The memory.
#[derive(Default)]
pub struct Memory {
    lines: HashMap<u64, Line>,
    descriptors: HashMap<u64, u32>,
    /// Memory of pools: where it lies, and for received frames the size of a buffer.
    regions: Vec<(Range<u64>, Option<usize>)>,
    /// The device reaches nothing but these regions.
    pub reaches_only_pools: bool,
    /// The platform leaves this out.
    pub leaves_out: Option<CacheOperation>,
    /// How often each was called, left out or not, in the order of the enum.
    pub operations: [u64; 4],
}

impl Memory {
    pub fn add_region(&mut self, memory: &[u8], received_into: Option<usize>) {
        let start = BUS + memory.as_ptr() as u64;
        self.regions.push((start..start + memory.len() as u64, received_into));
    }

    pub fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        let address = BUS + bytes.as_ptr() as u64;
        (!self.reaches_only_pools || self.region(address).is_some()).then_some(address)
    }

    pub fn clean(&mut self, bytes: &[u8]) {
        let address = BUS + bytes.as_ptr() as u64;
        let operation = match self.region(address) {
            Some(None) => CacheOperation::CleanHeader,
            _ => CacheOperation::CleanPayload,
        };
        if self.is_left_out(operation) {
            return;
        }
        let mut rest = bytes;
        for (key, part) in lines(address, bytes.len()) {
            let line = self.lines.entry(key).or_insert(Line::UNKNOWN);
            let (now, later) = rest.split_at(part.len());
            line.memory[part.clone()].copy_from_slice(now);
            line.equal[part.clone()].copy_from_slice(now);
            line.known |= mask(&part);
            line.written &= !mask(&part);
            rest = later;
        }
    }

    pub fn invalidate(&mut self, bytes: &mut [u8]) {
        let address = BUS + bytes.as_ptr() as u64;
        assert_eq!(address % LINE, 0, "somebody else's bytes share the first line");
        let Some(Some(whole)) = self.region(address) else {
            panic!("received into memory that is not for it");
        };
        // Frames are shorter than buffers here.
        let is_whole = bytes.len() == whole;
        let operation =
            [CacheOperation::InvalidateAfter, CacheOperation::InvalidateBefore][usize::from(is_whole)];
        if self.is_left_out(operation) {
            return;
        }
        let mut rest = bytes;
        for (key, part) in lines(address, rest.len()) {
            let line = self.lines.entry(key).or_insert(Line::UNKNOWN);
            let (now, later) = rest.split_at_mut(part.len());
            let bits = mask(&part);
            let is_dirty = line.known & bits != bits || *now != line.equal[part.clone()];
            if is_dirty && line.written & bits != 0 {
                line.memory[part.clone()].copy_from_slice(now);
            } else {
                now.copy_from_slice(&line.memory[part.clone()]);
            }
            line.equal[part.clone()].copy_from_slice(now);
            line.known |= bits;
            line.written &= !bits;
            rest = later;
        }
    }

    /// The device reads; `None` where there is no memory.
    pub fn device_read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        if address < BUS {
            return None;
        }
        let mut bytes = Vec::with_capacity(len);
        for (key, part) in lines(address, len) {
            bytes.extend_from_slice(&self.lines.get(&key).unwrap_or(&Line::UNKNOWN).memory[part]);
        }
        Some(bytes)
    }

    /// The device writes; false where there is no memory for received frames.
    pub fn device_write(&mut self, address: u64, bytes: &[u8]) -> bool {
        if !matches!(self.region(address), Some(Some(_))) {
            return false;
        }
        let mut rest = bytes;
        for (key, part) in lines(address, bytes.len()) {
            let line = self.lines.entry(key).or_insert(Line::UNKNOWN);
            let (now, later) = rest.split_at(part.len());
            line.memory[part.clone()].copy_from_slice(now);
            line.written |= mask(&part);
            rest = later;
        }
        true
    }

    /// A word of descriptor memory; `None` beyond it.
    pub fn load(&self, address: u64) -> Option<u32> {
        let inside = (DESCRIPTORS..DESCRIPTORS + DESCRIPTORS_LEN as u64).contains(&address)
            && address.is_multiple_of(4);
        inside.then(|| self.descriptors.get(&address).copied().unwrap_or(0xA5A5_A5A5))
    }

    pub fn store(&mut self, address: u64, value: u32) {
        assert!(self.load(address).is_some(), "{address:#x} is not descriptor memory");
        self.descriptors.insert(address, value);
    }

    /// Whether an address is a pool's, and the size of a buffer if that is for received frames.
    fn region(&self, address: u64) -> Option<Option<usize>> {
        self.regions.iter().find(|(range, _)| range.contains(&address)).map(|(_, whole)| *whole)
    }

    fn is_left_out(&mut self, operation: CacheOperation) -> bool {
        self.operations[operation as usize] += 1;
        self.leaves_out == Some(operation)
    }
}

/// The lines that `len` bytes from `address` on lie in, each with which of its bytes.
fn lines(address: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = address + len as u64;
    let keys = if len == 0 { 0..0 } else { address / LINE..end.div_ceil(LINE) };
    keys.map(move |key| {
        let start = address.max(key * LINE) - key * LINE;
        let stop = end.min((key + 1) * LINE) - key * LINE;
        (key, start as usize..stop as usize)
    })
}

fn mask(part: &Range<usize>) -> u64 {
    (u64::MAX >> (64 - part.len())) << part.start
}
