//! The other end of a block's AXI4-Lite slave: register accesses, at once or with pauses.
//!
//! In each clock: `drive`, [`Dut::settle`], `observe`, [`Dut::edge`].

use crate::dut::{Dut, Port};
use crate::rng::Rng;

/// Clocks that a part of an access is held back, at most.
const PAUSE: u64 = 6;

/// A write under way.
#[derive(Clone, Copy, Debug)]
struct Write {
    address: u32,
    value: u32,
    strobe: u64,
    /// Clocks until address and data are offered.
    pauses: [u64; 2],
    /// Address and data were taken.
    taken: [bool; 2],
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
struct Read {
    address: u32,
    pause: u64,
    taken: bool,
}

/// What the slave has taken in a clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Address, value, strobes.
    Write(u32, u32, u64),
    /// Address.
    Read(u32),
}

#[derive(Debug)]
struct Ports {
    address: [Port; 3],
    data: [Port; 4],
    answer: [Port; 3],
    read: [Port; 3],
    given: [Port; 4],
}

/// An AXI4-Lite master: an access at a time, or a write and a read together.
#[derive(Debug)]
pub struct Lite {
    ports: Ports,
    rng: Rng,
    write: Option<Write>,
    read: Option<Read>,
    value: u32,
    /// The answer is waited for with pauses.
    is_slow: bool,
    /// `bready` and `rready` in this clock.
    ready: [bool; 2],
    /// Answers that were not taken and must stay.
    held: (bool, Option<u64>),
}

impl Lite {
    /// The slave whose ports begin with `prefix` (`s_axil`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str, seed: u64) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        let ports = Ports {
            address: [port("awvalid")?, port("awready")?, port("awaddr")?],
            data: [port("wvalid")?, port("wready")?, port("wdata")?, port("wstrb")?],
            answer: [port("bvalid")?, port("bready")?, port("bresp")?],
            read: [port("arvalid")?, port("arready")?, port("araddr")?],
            given: [port("rvalid")?, port("rready")?, port("rdata")?, port("rresp")?],
        };
        Ok(Lite {
            ports,
            rng: Rng::new(seed),
            write: None,
            read: None,
            value: 0,
            is_slow: false,
            ready: [true; 2],
            held: (false, None),
        })
    }

    /// Begins to write the bytes whose strobe is set.
    pub fn write(&mut self, address: u32, value: u32, strobe: u64) {
        self.is_slow = self.rng.chance(20);
        let pauses = [self.pause(), self.pause()];
        self.write = Some(Write { address, value, strobe, pauses, taken: [false; 2] });
    }

    /// Begins to read.
    pub fn read(&mut self, address: u32) {
        self.is_slow = self.rng.chance(20);
        self.read = Some(Read { address, pause: self.pause(), taken: false });
    }

    /// Begins to write and to read in the same clock.
    pub fn write_and_read(&mut self, to: u32, value: u32, from: u32) {
        self.is_slow = false;
        self.write = Some(Write { address: to, value, strobe: 0xF, pauses: [0; 2], taken: [false; 2] });
        self.read = Some(Read { address: from, pause: 0, taken: false });
    }

    fn pause(&mut self) -> u64 {
        if self.is_slow { self.rng.below(PAUSE) } else { 0 }
    }

    /// The value that was read last, when all accesses are over.
    pub fn result(&self) -> Option<u32> {
        (self.write.is_none() && self.read.is_none()).then_some(self.value)
    }

    /// Sets what the block sees.
    pub fn drive(&mut self, dut: &mut Dut) {
        let Ports { address, data, answer, read, given } = &self.ports;
        // What is not valid must not matter.
        let noise = self.rng.bits();
        let (mut aw, mut w) = ((false, noise), (false, noise >> 16, noise >> 48));
        if let Some(write) = &mut self.write {
            if write.pauses[0] == 0 && !write.taken[0] {
                aw = (true, u64::from(write.address));
            }
            if write.pauses[1] == 0 && !write.taken[1] {
                w = (true, u64::from(write.value), write.strobe);
            }
            write.pauses = write.pauses.map(|pause| pause.saturating_sub(1));
        }
        let mut ar = (false, noise >> 8);
        if let Some(of) = &mut self.read {
            if of.pause == 0 && !of.taken {
                ar = (true, u64::from(of.address));
            }
            of.pause = of.pause.saturating_sub(1);
        }
        let is_slow = self.is_slow;
        self.ready = core::array::from_fn(|at| !is_slow || noise >> (60 + at) & 1 != 0);
        dut.set(address[0], u64::from(aw.0));
        dut.set(address[2], aw.1);
        dut.set(data[0], u64::from(w.0));
        dut.set(data[2], w.1);
        dut.set(data[3], w.2);
        dut.set(answer[1], u64::from(self.ready[0]));
        dut.set(read[0], u64::from(ar.0));
        dut.set(read[2], ar.1);
        dut.set(given[1], u64::from(self.ready[1]));
    }

    /// Looks at what the block did: what it has taken in this clock.
    ///
    /// # Errors
    /// The rule of AXI4-Lite that was broken, or an answer that is not OKAY.
    pub fn observe(&mut self, dut: &Dut) -> Result<Option<Taken>, String> {
        let Ports { address, data, answer, read, given } = &self.ports;
        let is_answered = dut.get(answer[0]) != 0;
        let is_given = (dut.get(given[0]) != 0).then(|| dut.get(given[2]));
        if (self.held.0 && !is_answered) || self.held.1.is_some_and(|held| is_given != Some(held)) {
            return Err("an answer over AXI4-Lite was withdrawn".to_owned());
        }
        if (is_answered && dut.get(answer[2]) != 0) || (is_given.is_some() && dut.get(given[3]) != 0) {
            return Err("an answer over AXI4-Lite that is not OKAY".to_owned());
        }
        let mut taken = None;
        if let Some(write) = &mut self.write {
            let before = write.taken;
            write.taken[0] |= dut.get(address[0]) != 0 && dut.get(address[1]) != 0;
            write.taken[1] |= dut.get(data[0]) != 0 && dut.get(data[1]) != 0;
            if write.taken == [true; 2] && before != write.taken {
                taken = Some(Taken::Write(write.address, write.value, write.strobe));
            }
        }
        if let Some(of) = &mut self.read
            && !of.taken
            && dut.get(read[0]) != 0
            && dut.get(read[1]) != 0
        {
            of.taken = true;
            taken = Some(Taken::Read(of.address));
        }
        if is_answered && self.ready[0] {
            if self.write.is_none_or(|write| write.taken != [true; 2]) {
                return Err("an answer to no write".to_owned());
            }
            self.write = None;
        }
        if let Some(value) = is_given.filter(|_| self.ready[1]) {
            if self.read.is_none_or(|read| !read.taken) {
                return Err("an answer to no read".to_owned());
            }
            (self.read, self.value) = (None, value as u32);
        }
        self.held = (is_answered && !self.ready[0], is_given.filter(|_| !self.ready[1]));
        Ok(taken)
    }
}
