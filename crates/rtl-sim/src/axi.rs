//! The memory's side of an AXI4 master: bursts answered in order, after a while, with back-pressure, and the rules checked.
//!
//! In each clock: [`AxiSlave::drive`], [`Dut::settle`], [`AxiSlave::observe`], [`Dut::edge`].

use crate::dut::{Dut, Port};
use crate::rng::Rng;
use crate::stream::{Pacer, Pause};
use std::collections::VecDeque;

/// Bytes of the widest data bus.
const MAX_BYTES: usize = 64;
const MAX_WORDS: usize = MAX_BYTES / 4;
/// Bursts that wait for their answer before no more are taken.
const OUTSTANDING: usize = 64;
const INCR: u64 = 1;
/// No burst crosses a boundary of this many bytes (AMBA AXI4, section A3.4.1).
const BOUNDARY: u64 = 4096;

/// How memory answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// Done.
    Okay,
    /// SLVERR.
    SlaveError,
    /// DECERR: nothing is there.
    DecodeError,
}

impl Response {
    fn bits(self) -> u64 {
        match self {
            Response::Okay => 0,
            Response::SlaveError => 2,
            Response::DecodeError => 3,
        }
    }

    fn worse(self, other: Response) -> Response {
        if other.bits() > self.bits() { other } else { self }
    }
}

/// What lies behind a master. Addresses are those of beats, multiples of the bus' width.
pub trait Memory {
    /// Reads the bytes at `address`.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Response;

    /// Writes those bytes at `address` whose bit in `strobes` is set, the first in bit 0.
    fn write(&mut self, address: u64, bytes: &[u8], strobes: u64) -> Response;
}

/// How fast memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Clocks from an address to the first beat of its answer, least and most.
    pub latency: (u64, u64),
    /// When addresses and written data are not taken.
    pub ready: Pause,
    /// When there is no beat of read data.
    pub beats: Pause,
}

impl Timing {
    /// Memory that takes and gives a beat in each clock, `clocks` after the address.
    pub fn steady(clocks: u64) -> Timing {
        Timing { latency: (clocks, clocks), ready: Pause::Never, beats: Pause::Never }
    }
}

/// A burst whose answer is not complete.
#[derive(Clone, Copy, Debug)]
struct Burst {
    address: u64,
    beats: u64,
    done: u64,
    due: u64,
    response: Response,
}

/// The ports of an address channel.
#[derive(Debug)]
struct AddressPorts {
    addr: Port,
    len: Port,
    size: Port,
    burst: Port,
    valid: Port,
    ready: Port,
    is_ready: bool,
    held: Option<[u64; 4]>,
}

impl AddressPorts {
    fn of(dut: &Dut, prefix: &str) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}{name}"));
        Ok(AddressPorts {
            addr: port("addr")?,
            len: port("len")?,
            size: port("size")?,
            burst: port("burst")?,
            valid: port("valid")?,
            ready: port("ready")?,
            is_ready: false,
            held: None,
        })
    }

    /// The burst that is taken in this clock, with the rules checked.
    fn observe(&mut self, dut: &Dut, bytes: u64) -> Result<Option<Burst>, String> {
        if dut.get(self.valid) == 0 {
            return if self.held.take().is_some() {
                Err("an address was withdrawn".to_owned())
            } else {
                Ok(None)
            };
        }
        let now = [self.addr, self.len, self.size, self.burst].map(|port| dut.get(port));
        if self.held.is_some_and(|before| before != now) {
            return Err("an address changed before it was taken".to_owned());
        }
        self.held = (!self.is_ready).then_some(now);
        if !self.is_ready {
            return Ok(None);
        }
        let [address, len, size, burst] = now;
        let beats = len + 1;
        if burst != INCR || 1 << size != bytes {
            return Err(format!("a burst of type {burst} with beats of {} bytes", 1 << size));
        }
        let last = (address & !(bytes - 1)) + beats * bytes - 1;
        if address / BOUNDARY != last / BOUNDARY {
            return Err(format!("a burst of {beats} beats at {address:#x} crosses a boundary of 4 KiB"));
        }
        Ok(Some(Burst { address: address & !(bytes - 1), beats, done: 0, due: 0, response: Response::Okay }))
    }
}

/// Memory for one AXI4 master.
#[derive(Debug)]
pub struct AxiSlave {
    bytes: usize,
    read_address: AddressPorts,
    write_address: AddressPorts,
    r: [Port; 5],
    w: [Port; 5],
    b: [Port; 3],
    ready: Pacer,
    beats: Pacer,
    latency: (u64, u64),
    rng: Rng,
    reads: VecDeque<Burst>,
    writes: VecDeque<Burst>,
    /// Beats that came before their address: data, strobes, last.
    early: VecDeque<([u8; MAX_BYTES], u64, bool)>,
    answers: VecDeque<(u64, Response)>,
    is_reading: bool,
    is_answering: bool,
    takes_data: bool,
    held_data: Option<([u32; MAX_WORDS], u64, u64)>,
    /// Beats of data in each direction, read and written.
    pub moved: (u64, u64),
    fault: Option<String>,
}

impl AxiSlave {
    /// Memory for the master whose ports begin with `prefix` (`m_axi`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str, timing: Timing, seed: u64) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        let data = port("rdata")?;
        let bytes = dut.bits(data) as usize / 8;
        if bytes > MAX_BYTES {
            return Err(format!("{prefix} is wider than 512 bits"));
        }
        Ok(AxiSlave {
            bytes,
            read_address: AddressPorts::of(dut, &format!("{prefix}_ar"))?,
            write_address: AddressPorts::of(dut, &format!("{prefix}_aw"))?,
            r: [data, port("rresp")?, port("rlast")?, port("rvalid")?, port("rready")?],
            w: [port("wdata")?, port("wstrb")?, port("wlast")?, port("wvalid")?, port("wready")?],
            b: [port("bresp")?, port("bvalid")?, port("bready")?],
            ready: Pacer::new(timing.ready),
            beats: Pacer::new(timing.beats),
            latency: timing.latency,
            rng: Rng::new(seed),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            early: VecDeque::new(),
            answers: VecDeque::new(),
            is_reading: false,
            is_answering: false,
            takes_data: false,
            held_data: None,
            moved: (0, 0),
            fault: None,
        })
    }

    /// Whether nothing waits for an answer.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.early.is_empty() && self.answers.is_empty()
    }

    /// The first rule that the master broke.
    ///
    /// # Errors
    /// Says which.
    pub fn check(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Sets what the master sees in this clock.
    pub fn drive(&mut self, dut: &mut Dut, memory: &mut impl Memory) {
        let now = dut.cycles();
        self.read_address.is_ready = self.reads.len() < OUTSTANDING && !self.ready.pauses(&mut self.rng);
        self.write_address.is_ready = self.writes.len() < OUTSTANDING && !self.ready.pauses(&mut self.rng);
        self.takes_data = self.early.len() < OUTSTANDING && !self.ready.pauses(&mut self.rng);
        dut.set(self.read_address.ready, u64::from(self.read_address.is_ready));
        dut.set(self.write_address.ready, u64::from(self.write_address.is_ready));
        dut.set(self.w[4], u64::from(self.takes_data));
        if !self.is_reading {
            let due = self.reads.front().is_some_and(|burst| burst.due <= now);
            self.is_reading = due && !self.beats.pauses(&mut self.rng);
            dut.set(self.r[3], u64::from(self.is_reading));
            if let Some(burst) = self.reads.front().filter(|_| self.is_reading) {
                let mut bytes = [0; MAX_BYTES];
                let beat = &mut bytes[..self.bytes];
                let response = memory.read(burst.address + burst.done * self.bytes as u64, beat);
                if response != Response::Okay {
                    // Nobody may rely on what comes with an error.
                    self.rng.fill(beat);
                }
                let words: [u32; MAX_WORDS] = core::array::from_fn(|at| word(&bytes, at));
                dut.set_wide(self.r[0], &words);
                dut.set(self.r[1], response.bits());
                dut.set(self.r[2], u64::from(burst.done + 1 == burst.beats));
            }
        }
        if !self.is_answering {
            self.is_answering = self.answers.front().is_some_and(|(due, _)| *due <= now);
            dut.set(self.b[1], u64::from(self.is_answering));
            if let Some((_, response)) = self.answers.front().filter(|_| self.is_answering) {
                dut.set(self.b[0], response.bits());
            }
        }
    }

    /// Sees what the master does in this clock.
    pub fn observe(&mut self, dut: &Dut, memory: &mut impl Memory) {
        if let Err(fault) = self.try_observe(dut, memory) {
            self.fault.get_or_insert_with(|| format!("clock {}: {fault}", dut.cycles()));
        }
    }

    fn try_observe(&mut self, dut: &Dut, memory: &mut impl Memory) -> Result<(), String> {
        let bytes = self.bytes as u64;
        let wait = self.latency.1 - self.latency.0;
        let due = dut.cycles() + self.latency.0 + if wait > 0 { self.rng.below(wait + 1) } else { 0 };
        if let Some(burst) = self.read_address.observe(dut, bytes)? {
            self.reads.push_back(Burst { due, ..burst });
        }
        if let Some(burst) = self.write_address.observe(dut, bytes)? {
            self.writes.push_back(burst);
        }
        if self.is_reading && dut.get(self.r[4]) != 0 {
            self.is_reading = false;
            self.moved.0 += 1;
            if let Some(burst) = self.reads.front_mut() {
                burst.done += 1;
                if burst.done == burst.beats {
                    self.reads.pop_front();
                }
            }
        }
        if self.is_answering && dut.get(self.b[2]) != 0 {
            self.is_answering = false;
            self.answers.pop_front();
        }
        self.observe_data(dut)?;
        while let Some(burst) = self.writes.front_mut() {
            let Some((beat, strobes, last)) = self.early.pop_front() else { break };
            let response = memory.write(burst.address + burst.done * bytes, &beat[..self.bytes], strobes);
            burst.response = burst.response.worse(response);
            burst.done += 1;
            self.moved.1 += 1;
            if last != (burst.done == burst.beats) {
                return Err(format!("wlast {last} with beat {} of {}", burst.done, burst.beats));
            }
            if last {
                self.answers.push_back((due, burst.response));
                self.writes.pop_front();
            }
        }
        Ok(())
    }

    fn observe_data(&mut self, dut: &Dut) -> Result<(), String> {
        if dut.get(self.w[3]) == 0 {
            return if self.held_data.take().is_some() {
                Err("written data was withdrawn".to_owned())
            } else {
                Ok(())
            };
        }
        let words: [u32; MAX_WORDS] = dut.get_wide(self.w[0]);
        let now = (words, dut.get(self.w[1]), dut.get(self.w[2]));
        if self.held_data.is_some_and(|before| before != now) {
            return Err("written data changed before it was taken".to_owned());
        }
        self.held_data = (!self.takes_data).then_some(now);
        if self.takes_data {
            let mut bytes = [0; MAX_BYTES];
            for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            self.early.push_back((bytes, now.1, now.2 != 0));
        }
        Ok(())
    }
}

fn word(bytes: &[u8; MAX_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
}
