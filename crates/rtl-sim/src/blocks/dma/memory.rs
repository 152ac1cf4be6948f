//! Memory as a bus master sees it: regions, and for each byte whether hardware may read or write it.

use crate::Rng;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Hardware may read the byte.
pub const READ: u8 = 1;
/// Hardware may write the byte.
pub const WRITE: u8 = 2;

/// Bytes of a region that answers with an error of its own.
const PAGE: u64 = 64;
/// Regions lie at multiples of it, so that no beat lies in two of them.
const UNIT: u64 = 64;
/// Bytes between two regions, and before the first address and behind the last one, where there is no memory.
const APART: u64 = 1 << 16;

/// An answer on a bus (AXI RRESP, BRESP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// OKAY.
    Okay,
    /// SLVERR.
    Slave,
    /// DECERR.
    Decode,
}

impl Response {
    /// As on the bus.
    pub fn bits(self) -> u64 {
        match self {
            Response::Okay => 0,
            Response::Slave => 2,
            Response::Decode => 3,
        }
    }
}

#[derive(Debug)]
struct Region {
    base: u64,
    bytes: Vec<u8>,
    rights: Vec<u8>,
}

impl Region {
    fn holds(&self, address: u64) -> bool {
        address >= self.base && address - self.base < self.bytes.len() as u64
    }

    /// Where `len` bytes from `address`, which lies in it, are; cut off at its end.
    fn span(&self, address: u64, len: usize) -> Range<usize> {
        let from = (address - self.base) as usize;
        from..(from + len).min(self.bytes.len())
    }
}

/// Regions of memory.
#[derive(Debug)]
pub struct Memory {
    regions: Vec<Region>,
    /// The one that was used last.
    last: Cell<usize>,
    /// Bits of an address.
    address_bits: u32,
    /// Blocks of [`PAGE`] bytes that answer with an error.
    broken: BTreeMap<u64, Response>,
    /// Words that cannot be read.
    unreadable: BTreeMap<u64, Response>,
    /// Words that cannot be written.
    unwritable: BTreeMap<u64, Response>,
    /// What hardware did that it must not; the first few.
    pub faults: Vec<String>,
}

impl Memory {
    /// Without any region.
    pub fn new(address_bits: u32) -> Self {
        Memory {
            regions: Vec::new(),
            last: Cell::new(0),
            address_bits,
            broken: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            unwritable: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// Adds a region that hardware may not touch, somewhere where there is none; its bytes are `fill`. Often an address within it
    /// has many bits that change to the next one.
    pub fn add(&mut self, rng: &mut Rng, len: usize, fill: u8) -> u64 {
        let len = (len as u64).next_multiple_of(UNIT);
        let end = u64::MAX >> (64 - self.address_bits);
        let base = loop {
            let mut base = rng.bits() & end;
            if rng.chance(60) {
                // Across a multiple of a power of two; most often of that where the halves of an address meet.
                let any = rng.between(12, self.address_bits as usize - 1) as u32;
                let bit = if rng.chance(30) { 32 } else { any };
                base = (base >> bit << bit).saturating_sub(rng.below(len / UNIT) * UNIT);
            }
            let base = base / UNIT * UNIT;
            let is_inside = base >= APART && end - base > len + APART;
            let is_apart = |region: &Region| {
                base > region.base + region.bytes.len() as u64 + APART || base + len + APART < region.base
            };
            if is_inside && self.regions.iter().all(is_apart) {
                break base;
            }
        };
        let len = len as usize;
        self.regions.push(Region { base, bytes: vec![fill; len], rights: vec![0; len] });
        base
    }

    /// Lets accesses to the 64 bytes around `address` answer with an error, or heals them.
    pub fn set_broken(&mut self, address: u64, response: Option<Response>) {
        match response {
            Some(response) => self.broken.insert(address / PAGE, response),
            None => self.broken.remove(&(address / PAGE)),
        };
    }

    /// Lets reads of the word at `address` answer with an error, or heals it.
    pub fn set_unreadable(&mut self, address: u64, response: Option<Response>) {
        match response {
            Some(response) => self.unreadable.insert(address / 4, response),
            None => self.unreadable.remove(&(address / 4)),
        };
    }

    /// Lets writes to the word at `address` answer with an error, or heals it.
    pub fn set_unwritable(&mut self, address: u64, response: Option<Response>) {
        match response {
            Some(response) => self.unwritable.insert(address / 4, response),
            None => self.unwritable.remove(&(address / 4)),
        };
    }

    fn find(&self, address: u64) -> Option<usize> {
        let last = self.last.get();
        if self.regions.get(last).is_some_and(|region| region.holds(address)) {
            return Some(last);
        }
        let found = self.regions.iter().position(|region| region.holds(address))?;
        self.last.set(found);
        Some(found)
    }

    /// Says what hardware may do with some bytes of a region.
    pub fn allow(&mut self, address: u64, len: usize, rights: u8) {
        if let Some(at) = self.find(address) {
            let region = &mut self.regions[at];
            let span = region.span(address, len);
            region.rights[span].fill(rights);
        }
    }

    /// Stores as software.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        if let Some(at) = self.find(address) {
            let region = &mut self.regions[at];
            let span = region.span(address, bytes.len());
            let len = span.len();
            region.bytes[span].copy_from_slice(&bytes[..len]);
        }
    }

    /// Stores the same byte `len` times.
    pub fn fill(&mut self, address: u64, len: usize, byte: u8) {
        if let Some(at) = self.find(address) {
            let region = &mut self.regions[at];
            let span = region.span(address, len);
            region.bytes[span].fill(byte);
        }
    }

    /// What software sees from `address` on, up to `len` bytes of a region.
    pub fn look(&self, address: u64, len: usize) -> &[u8] {
        self.find(address).map_or(&[], |at| {
            let region = &self.regions[at];
            &region.bytes[region.span(address, len)]
        })
    }

    /// Stores a word.
    pub fn store_word(&mut self, address: u64, word: u32) {
        self.store(address, &word.to_le_bytes());
    }

    /// Loads a word; 0 outside all regions.
    pub fn load_word(&self, address: u64) -> u32 {
        self.look(address, 4).try_into().map_or(0, u32::from_le_bytes)
    }

    /// Loads an address.
    pub fn load_address(&self, address: u64) -> u64 {
        self.look(address, 8).try_into().map_or(0, u64::from_le_bytes)
    }

    fn answer(&self, address: u64) -> (Response, usize) {
        match self.find(address) {
            _ if self.broken.contains_key(&(address / PAGE)) => (self.broken[&(address / PAGE)], 0),
            Some(at) => (Response::Okay, at),
            None => (Response::Decode, 0),
        }
    }

    /// No region, so none that may have been handed over.
    fn is_nowhere(&self, address: u64) -> bool {
        self.find(address).is_none()
    }

    /// Hardware reads a beat: `bytes.len()` bytes from an aligned address, of which those from `first` on are meant.
    pub fn read_beat(&mut self, address: u64, first: usize, bytes: &mut [u8]) -> Response {
        let (mut response, at) = self.answer(address + first as u64);
        if !self.unreadable.is_empty() {
            let words = address / 4..(address + bytes.len() as u64) / 4;
            response = self.unreadable.range(words).next().map_or(response, |(_, response)| *response);
        }
        if response != Response::Okay {
            if self.is_nowhere(address + first as u64) {
                self.fault(format!("read of {address:#x}, where there is no memory"));
            }
            bytes.fill(0xEE);
            return response;
        }
        let region = &self.regions[at];
        let span = region.span(address, bytes.len());
        bytes.copy_from_slice(&region.bytes[span.clone()]);
        if !region.rights[span].iter().skip(first).any(|rights| rights & READ != 0) {
            self.fault(format!("read of {address:#x}, which was not handed over"));
        }
        response
    }

    /// Hardware writes a beat: the bytes whose bit of `strobe` is set.
    pub fn write_beat(&mut self, address: u64, strobe: u64, bytes: &[u8]) -> Response {
        let (response, at) = self.answer(address);
        if response != Response::Okay {
            if self.is_nowhere(address) {
                self.fault(format!("write of {address:#x}, where there is no memory"));
            }
            return response;
        }
        if !self.unwritable.is_empty() {
            let word = |lane: usize| (address + lane as u64) / 4;
            let mut lanes = (0..bytes.len()).filter(|lane| strobe >> lane & 1 != 0);
            if let Some(response) = lanes.find_map(|lane| self.unwritable.get(&word(lane))) {
                return *response;
            }
        }
        let region = &mut self.regions[at];
        let span = region.span(address, bytes.len());
        let (slots, rights) = (&mut region.bytes[span.clone()], &region.rights[span]);
        let mut refused = None;
        for (lane, byte) in bytes.iter().enumerate().filter(|(lane, _)| strobe >> lane & 1 != 0) {
            if rights[lane] & WRITE != 0 {
                slots[lane] = *byte;
            } else {
                refused = Some(address + lane as u64);
            }
        }
        if let Some(address) = refused {
            self.fault(format!("write of {address:#x}, which was not handed over"));
        }
        response
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < 4 {
            self.faults.push(what);
        }
    }

    /// The faults as one line, if there are any.
    pub fn check(&self) -> Result<(), String> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let mut all = String::new();
        for fault in &self.faults {
            // Writing to a string cannot fail.
            let _ = write!(all, "{fault}; ");
        }
        Err(all)
    }
}
