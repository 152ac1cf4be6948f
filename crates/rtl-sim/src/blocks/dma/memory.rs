//! Memory as a bus master sees it: regions, and for each byte whether hardware may read or write it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Hardware may read the byte.
pub const READ: u8 = 1;
/// Hardware may write the byte.
pub const WRITE: u8 = 2;

/// Bytes of a region that answers with an error of its own.
const PAGE: u64 = 64;

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
    bytes: Vec<u8>,
    rights: Vec<u8>,
}

/// Regions of memory by their first address.
#[derive(Debug, Default)]
pub struct Memory {
    regions: BTreeMap<u64, Region>,
    /// Blocks of [`PAGE`] bytes that answer with an error.
    broken: BTreeMap<u64, Response>,
    /// Words that cannot be written.
    unwritable: BTreeMap<u64, Response>,
    /// What hardware did that it must not; the first few.
    pub faults: Vec<String>,
}

impl Memory {
    /// Adds a region that hardware may not touch; its bytes are `fill`.
    pub fn add(&mut self, base: u64, len: usize, fill: u8) {
        self.regions.insert(base, Region { bytes: vec![fill; len], rights: vec![0; len] });
    }

    /// Lets accesses to the 64 bytes around `address` answer with an error, or heals them.
    pub fn set_broken(&mut self, address: u64, response: Option<Response>) {
        match response {
            Some(response) => self.broken.insert(address / PAGE, response),
            None => self.broken.remove(&(address / PAGE)),
        };
    }

    /// Lets writes to the word at `address` answer with an error, or heals it.
    pub fn set_unwritable(&mut self, address: u64, response: Option<Response>) {
        match response {
            Some(response) => self.unwritable.insert(address / 4, response),
            None => self.unwritable.remove(&(address / 4)),
        };
    }

    fn find(&self, address: u64) -> Option<(u64, &Region)> {
        let (base, region) = self.regions.range(..=address).next_back()?;
        (address - base < region.bytes.len() as u64).then_some((*base, region))
    }

    fn slot(&mut self, address: u64) -> Option<(&mut u8, &mut u8)> {
        let (base, region) = self.regions.range_mut(..=address).next_back()?;
        let at = (address - base) as usize;
        Some((region.bytes.get_mut(at)?, region.rights.get_mut(at)?))
    }

    /// Says what hardware may do with some bytes. What lies outside all regions is left out.
    pub fn allow(&mut self, address: u64, len: usize, rights: u8) {
        for at in address..address + len as u64 {
            if let Some((_, slot)) = self.slot(at) {
                *slot = rights;
            }
        }
    }

    /// Stores as software.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            if let Some((slot, _)) = self.slot(at) {
                *slot = *byte;
            }
        }
    }

    /// Loads as software; bytes outside all regions are 0.
    pub fn load(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for (at, byte) in (address..).zip(&mut bytes) {
            *byte = self.find(at).map_or(0, |(base, region)| region.bytes[(at - base) as usize]);
        }
        bytes
    }

    /// Stores a word.
    pub fn store_word(&mut self, address: u64, word: u32) {
        self.store(address, &word.to_le_bytes());
    }

    /// Loads a word.
    pub fn load_word(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.load(address, 4));
        u32::from_le_bytes(word)
    }

    fn answer(&self, address: u64) -> Response {
        match (self.broken.get(&(address / PAGE)), self.find(address)) {
            (Some(response), _) => *response,
            (None, Some(_)) => Response::Okay,
            (None, None) => Response::Decode,
        }
    }

    /// Hardware reads a beat: `bytes.len()` bytes from an aligned address, of which those from `first` on are meant.
    pub fn read_beat(&mut self, address: u64, first: usize, bytes: &mut [u8]) -> Response {
        let response = self.answer(address + first as u64);
        if response != Response::Okay {
            bytes.fill(0xEE);
            return response;
        }
        let mut is_meant = false;
        for (at, byte) in (address..).zip(bytes.iter_mut()).skip(first) {
            let Some((base, region)) = self.find(at) else { continue };
            *byte = region.bytes[(at - base) as usize];
            is_meant |= region.rights[(at - base) as usize] & READ != 0;
        }
        if !is_meant {
            self.fault(format!("read of {address:#x}, which was not handed over"));
        }
        response
    }

    /// Hardware writes a beat: the bytes whose bit of `strobe` is set.
    pub fn write_beat(&mut self, address: u64, strobe: u64, bytes: &[u8]) -> Response {
        let response = self.answer(address);
        if response != Response::Okay {
            return response;
        }
        let word = |lane: usize| (address + lane as u64) / 4;
        let mut lanes = (0..bytes.len()).filter(|lane| strobe >> lane & 1 != 0);
        if let Some(response) = lanes.find_map(|lane| self.unwritable.get(&word(lane))) {
            return *response;
        }
        for (lane, byte) in bytes.iter().enumerate().filter(|(lane, _)| strobe >> lane & 1 != 0) {
            match self.slot(address + lane as u64) {
                Some((slot, rights)) if *rights & WRITE != 0 => *slot = *byte,
                _ => self.fault(format!("write of {:#x}, which was not handed over", address + lane as u64)),
            }
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
