//! The other end of a block's AXI4 master: memory with random latency, whose channels pause each in its own way.
//!
//! In each clock: `drive`, [`Dut::settle`], `observe`, [`Dut::edge`].

use super::memory::{Memory, Response};
use crate::dut::{Dut, Port};
use crate::rng::Rng;
use crate::stream::{Pacer, Pause};
use std::collections::VecDeque;

/// Bytes of the widest data bus.
const MAX_BYTES: usize = 64;
const WORDS: usize = MAX_BYTES / 4;

/// How a memory behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Clocks from an address to its first data or answer: at least.
    pub latency: u64,
    /// And at most so many more.
    pub spread: u64,
    /// When AR, AW, W, R and B do nothing.
    pub pauses: [Pause; 5],
}

/// A channel's payload as it was offered and not taken, which must stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Held {
    is_offered: bool,
    address: u64,
    len: u64,
    words: [u32; WORDS],
    strobe: u64,
    is_last: bool,
}

#[derive(Debug)]
struct AddressPorts {
    address: Port,
    len: Port,
    size: Port,
    burst: Port,
    valid: Port,
    ready: Port,
}

impl AddressPorts {
    fn of(dut: &Dut, prefix: &str) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}{name}"));
        Ok(AddressPorts {
            address: port("addr")?,
            len: port("len")?,
            size: port("size")?,
            burst: port("burst")?,
            valid: port("valid")?,
            ready: port("ready")?,
        })
    }

    /// What is offered, if the rules are kept.
    fn offered(&self, dut: &Dut, bytes: usize) -> Result<Option<Held>, String> {
        if dut.get(self.valid) == 0 {
            return Ok(None);
        }
        let (address, len) = (dut.get(self.address), dut.get(self.len));
        let first = address / bytes as u64 * bytes as u64;
        let last = first + (len + 1) * bytes as u64 - 1;
        if first / 4096 != last / 4096 {
            return Err(format!("a burst of {} beats at {address:#x} crosses 4 KiB", len + 1));
        }
        if 1 << dut.get(self.size) != bytes || dut.get(self.burst) != 1 {
            return Err("a burst that is not INCR over the whole width".to_owned());
        }
        Ok(Some(Held { is_offered: true, address, len, ..Held::default() }))
    }
}

#[derive(Debug)]
struct Ports {
    read: AddressPorts,
    read_data: Port,
    read_resp: Port,
    read_last: Port,
    read_valid: Port,
    read_ready: Port,
    write: AddressPorts,
    write_data: Port,
    write_strobe: Port,
    write_last: Port,
    write_valid: Port,
    write_ready: Port,
    answer_resp: Port,
    answer_valid: Port,
    answer_ready: Port,
}

impl Ports {
    fn of(dut: &Dut, prefix: &str) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        Ok(Ports {
            read: AddressPorts::of(dut, &format!("{prefix}_ar"))?,
            read_data: port("rdata")?,
            read_resp: port("rresp")?,
            read_last: port("rlast")?,
            read_valid: port("rvalid")?,
            read_ready: port("rready")?,
            write: AddressPorts::of(dut, &format!("{prefix}_aw"))?,
            write_data: port("wdata")?,
            write_strobe: port("wstrb")?,
            write_last: port("wlast")?,
            write_valid: port("wvalid")?,
            write_ready: port("wready")?,
            answer_resp: port("bresp")?,
            answer_valid: port("bvalid")?,
            answer_ready: port("bready")?,
        })
    }
}

/// A read burst under way.
#[derive(Debug)]
struct Reading {
    due: u64,
    address: u64,
    beats: u64,
}

/// A write burst under way: it becomes visible when it is answered.
#[derive(Debug)]
struct Writing {
    due: u64,
    beats: Vec<(u64, u64, [u8; MAX_BYTES])>,
}

/// A memory behind an AXI4 master; reads and writes are answered in order.
#[derive(Debug)]
pub struct Slave {
    ports: Ports,
    bytes: usize,
    timing: Timing,
    rng: Rng,
    reads: VecDeque<Reading>,
    /// The beat that is offered.
    beat: Option<([u32; WORDS], Response, bool)>,
    addresses: VecDeque<(u64, u64)>,
    data: VecDeque<(u64, [u8; MAX_BYTES], bool)>,
    /// Beats of the oldest address that have come.
    writes: VecDeque<Writing>,
    answer: Option<Response>,
    held: [Held; 3],
    ready: [bool; 3],
    pacers: [Pacer; 5],
    /// Read and write bursts so far.
    pub bursts: (u64, u64),
    /// Beats so far.
    pub beats: (u64, u64),
    /// No read burst is taken.
    pub is_held: bool,
    /// The clock and the address of each read burst, where somebody wants to know.
    pub log: Option<Vec<(u64, u64)>>,
}

impl Slave {
    /// The master whose ports begin with `prefix` (`m_axi`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str, timing: Timing, seed: u64) -> Result<Self, String> {
        let ports = Ports::of(dut, prefix)?;
        let bytes = dut.bits(ports.read_data) as usize / 8;
        Ok(Slave {
            ports,
            bytes,
            timing,
            rng: Rng::new(seed),
            reads: VecDeque::new(),
            beat: None,
            addresses: VecDeque::new(),
            data: VecDeque::new(),
            writes: VecDeque::new(),
            answer: None,
            held: [Held::default(); 3],
            ready: [false; 3],
            pacers: timing.pauses.map(Pacer::new),
            bursts: (0, 0),
            beats: (0, 0),
            is_held: false,
            log: None,
        })
    }

    fn due(&mut self, now: u64) -> u64 {
        now + self.timing.latency + self.rng.below(self.timing.spread + 1)
    }

    /// Sets what the block sees.
    pub fn drive(&mut self, dut: &mut Dut, memory: &mut Memory) {
        let now = dut.cycles();
        let [read, write, data, beat, answer] =
            core::array::from_fn(|at| !self.pacers[at].pauses(&mut self.rng));
        self.ready = [read && !self.is_held, write, data];
        dut.set(self.ports.read.ready, u64::from(self.ready[0]));
        dut.set(self.ports.write.ready, u64::from(self.ready[1]));
        dut.set(self.ports.write_ready, u64::from(self.ready[2]));
        if self.beat.is_none() && beat && self.reads.front().is_some_and(|read| read.due <= now) {
            self.beat = self.next_beat(memory);
        }
        // What is not valid must not matter.
        let noise = self.rng.bits();
        let (words, response, is_last) = self.beat.unwrap_or_else(|| {
            let response = if noise & 1 == 0 { Response::Okay } else { Response::Decode };
            ([(noise >> 32) as u32; WORDS], response, noise & 2 != 0)
        });
        dut.set_wide(self.ports.read_data, &words);
        dut.set(self.ports.read_resp, response.bits());
        dut.set(self.ports.read_last, u64::from(is_last));
        dut.set(self.ports.read_valid, u64::from(self.beat.is_some()));
        if self.answer.is_none() && answer && self.writes.front().is_some_and(|write| write.due <= now) {
            self.answer = self.writes.pop_front().map(|write| self.apply(&write, memory));
        }
        dut.set(self.ports.answer_resp, self.answer.map_or(noise >> 8 & 3, Response::bits));
        dut.set(self.ports.answer_valid, u64::from(self.answer.is_some()));
    }

    fn next_beat(&mut self, memory: &mut Memory) -> Option<([u32; WORDS], Response, bool)> {
        let read = self.reads.front_mut()?;
        let first = read.address as usize % self.bytes;
        let aligned = read.address - first as u64;
        let mut bytes = [0; MAX_BYTES];
        let response = memory.read_beat(aligned, first, &mut bytes[..self.bytes]);
        read.address = aligned + self.bytes as u64;
        read.beats -= 1;
        let is_last = read.beats == 0;
        if is_last {
            self.reads.pop_front();
        }
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Some((words, response, is_last))
    }

    fn apply(&mut self, write: &Writing, memory: &mut Memory) -> Response {
        let mut worst = Response::Okay;
        for (address, strobe, bytes) in &write.beats {
            let response = memory.write_beat(*address, *strobe, &bytes[..self.bytes]);
            if worst == Response::Okay {
                worst = response;
            }
        }
        worst
    }

    /// Looks at what the block did.
    ///
    /// # Errors
    /// The rule of AXI4 that was broken.
    pub fn observe(&mut self, dut: &Dut) -> Result<(), String> {
        let now = dut.cycles();
        let read = self.ports.read.offered(dut, self.bytes)?.unwrap_or_default();
        let write = self.ports.write.offered(dut, self.bytes)?.unwrap_or_default();
        let mut data = Held::default();
        if dut.get(self.ports.write_valid) != 0 {
            data.is_offered = true;
            data.strobe = dut.get(self.ports.write_strobe);
            data.is_last = dut.get(self.ports.write_last) != 0;
            dut.read_words(self.ports.write_data, &mut data.words[..self.bytes / 4]);
        }
        for (index, offered) in [read, write, data].into_iter().enumerate() {
            if self.held[index].is_offered && self.held[index] != offered {
                return Err(format!("channel {index} of a master changed what it offered"));
            }
            self.held[index] = if self.ready[index] { Held::default() } else { offered };
        }
        if read.is_offered && self.ready[0] {
            let due = self.due(now);
            self.reads.push_back(Reading { due, address: read.address, beats: read.len + 1 });
            self.bursts.0 += 1;
            if let Some(log) = &mut self.log {
                log.push((now, read.address));
            }
        }
        if write.is_offered && self.ready[1] {
            self.addresses.push_back((write.address, write.len + 1));
            self.bursts.1 += 1;
        }
        if data.is_offered && self.ready[2] {
            let mut bytes = [0; MAX_BYTES];
            for (bytes, word) in bytes.chunks_exact_mut(4).zip(data.words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            self.data.push_back((data.strobe, bytes, data.is_last));
            self.beats.1 += 1;
        }
        if self.beat.is_some() && dut.get(self.ports.read_ready) != 0 {
            self.beat = None;
            self.beats.0 += 1;
        }
        if self.answer.is_some() && dut.get(self.ports.answer_ready) != 0 {
            self.answer = None;
        }
        self.join(now)
    }

    /// Brings addresses and data together.
    fn join(&mut self, now: u64) -> Result<(), String> {
        while let Some(&(address, beats)) = self.addresses.front() {
            if (self.data.len() as u64) < beats {
                return Ok(());
            }
            self.addresses.pop_front();
            let aligned = address / self.bytes as u64 * self.bytes as u64;
            let mut write = Writing { due: self.due(now), beats: Vec::new() };
            for index in 0..beats {
                let Some((strobe, bytes, is_last)) = self.data.pop_front() else { break };
                if is_last != (index + 1 == beats) {
                    return Err("WLAST is not in a burst's last beat".to_owned());
                }
                write.beats.push((aligned + index * self.bytes as u64, strobe, bytes));
            }
            self.writes.push_back(write);
        }
        Ok(())
    }
}
