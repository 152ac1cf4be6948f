//! The board `softcore`: processor, memory and network interface in one model, with a serial line and a cable of 1 Gb/s.

mod profile;

pub use profile::{Counted, Profile};

use crate::dut::{Dut, Port};
use std::collections::VecDeque;

/// Nanoseconds of a clock: 100 MHz.
pub const CLOCK_NS: u64 = 10;
/// Bytes of a beat of the cable's stream.
const BEAT: usize = 8;
/// Bytes on the wire beside a frame's: preamble, check sequence, gap.
const AROUND: usize = 24;
/// The shortest frame, without its check sequence.
const SHORTEST: usize = 60;
/// Clocks of a reset: as many as empty what is under way in the memory.
const RESET: u32 = 64;

/// Clocks that a frame of so many bytes takes on a wire of 1 Gb/s: 0.8 a byte.
pub fn wire_clocks(bytes: usize) -> u64 {
    ((bytes.max(SHORTEST) + AROUND) * 4).div_ceil(5) as u64
}

/// What an image is to do otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Straps {
    /// The interface's offloads are not used.
    pub without_offloads: bool,
    /// Rates of memory and interface are measured, in place of serving.
    pub measures: bool,
    /// The driver's cache operations are checked, in place of serving: which is left out, 0 for none, by the numbers of
    /// `boards/softcore/src/straps.rs`.
    pub check: Option<u8>,
}

impl Straps {
    fn wired(self) -> u64 {
        let check = self.check.map_or(0, |left_out| 4 | u64::from(left_out & 3) << 3);
        u64::from(self.without_offloads) | u64::from(self.measures) << 1 | check
    }
}

/// How fast frames pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cable {
    /// 1 Gb/s.
    #[default]
    Gigabit,
    /// As fast as the interface takes and gives them, a beat in each clock at most.
    Unlimited,
}

impl Cable {
    /// Clocks that a frame of so many bytes takes.
    fn clocks(self, bytes: usize) -> u64 {
        match self {
            Cable::Gigabit => wire_clocks(bytes),
            Cable::Unlimited => 0,
        }
    }
}

/// What the board has for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// 18 clocks to the first word, and then 8 bytes in each.
    #[default]
    Simulated,
    /// SDRAM of 16 bits with the controller that an FPGA has, and the waits of 50 MHz: 8 bytes in four clocks.
    Sdram,
}

impl Memory {
    /// The block that has it.
    fn block(self) -> &'static str {
        match self {
            Memory::Simulated => "softcore",
            Memory::Sdram => "softcore_sdram",
        }
    }
}

struct Pins {
    load: [Port; 3],
    sent: [Port; 2],
    typed: [Port; 3],
    out: [Port; 5],
    into: [Port; 5],
    counters: [Port; 4],
    /// The interface's clock, and whether it is wanted.
    nic: [Port; 2],
    /// Whether the processor sleeps, whether nothing moves, until when, and how many clocks are left out.
    still: [Port; 4],
    pc: Port,
}

impl Pins {
    fn of(dut: &Dut) -> Result<Pins, String> {
        let port = |name: &str| dut.port(name);
        let stream = |prefix: &str, name: &str| dut.port(&format!("{prefix}_axis_t{name}"));
        Ok(Pins {
            load: [port("load_valid")?, port("load_address")?, port("load_data")?],
            sent: [port("sent_valid")?, port("sent")?],
            typed: [port("typed_valid")?, port("typed")?, port("typed_ready")?],
            out: [
                stream("m", "valid")?,
                stream("m", "data")?,
                stream("m", "keep")?,
                stream("m", "last")?,
                stream("m", "ready")?,
            ],
            into: [
                stream("s", "valid")?,
                stream("s", "data")?,
                stream("s", "keep")?,
                stream("s", "last")?,
                stream("s", "ready")?,
            ],
            counters: [
                port("instructions")?,
                port("instruction_fills")?,
                port("data_fills")?,
                port("stores")?,
            ],
            nic: [port("nic_clk")?, port("nic_wanted")?],
            still: [port("is_asleep")?, port("is_still")?, port("until_timer")?, port("skipped")?],
            pc: port("pc")?,
        })
    }
}

/// The board.
pub struct Softcore {
    dut: Dut,
    pins: Pins,
    clocks: u64,
    nic_clocks: u64,
    asleep_clocks: u64,
    skipped_clocks: u64,
    /// What came over the serial line.
    console: Vec<u8>,
    typed: VecDeque<u8>,
    is_typing: bool,
    /// Frames for the board, each with the clock from which on it is there; the first is on its way in.
    incoming: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of the first that have been taken.
    taken: usize,
    is_offering: bool,
    /// Whether what is offered is taken at the next edge.
    was_ready: bool,
    /// When the wire to the board is free.
    in_free: u64,
    /// The frame that is leaving.
    leaving: Vec<u8>,
    /// When it began; the next one begins when the wire is free.
    began: u64,
    out_free: u64,
    is_ready: bool,
    outgoing: VecDeque<(u64, Vec<u8>)>,
    profile: Option<Profile>,
    cable: Cable,
}

impl Softcore {
    /// A board with this image (an ELF file for 32 bits) in its memory, after its reset, with the cable plugged in.
    ///
    /// # Errors
    /// What is missing, or wrong with the image.
    pub fn new(image: &[u8], straps: Straps) -> Result<Softcore, String> {
        Softcore::with_memory(image, straps, Memory::Simulated)
    }

    /// The same with another memory, if that was compiled in.
    ///
    /// # Errors
    /// What is missing, or wrong with the image.
    pub fn with_memory(image: &[u8], straps: Straps, memory: Memory) -> Result<Softcore, String> {
        let mut dut = Dut::open(memory.block()).map_err(|error| error.to_string())?;
        let pins = Pins::of(&dut)?;
        let (reset, link, wired) = (dut.port("rst")?, dut.port("link_up")?, dut.port("straps")?);
        dut.set(reset, 1);
        dut.set(link, 1);
        dut.set(wired, straps.wired());
        for (address, words) in words_of(image)? {
            for (at, word) in words.into_iter().enumerate() {
                dut.set(pins.load[0], 1);
                dut.set(pins.load[1], address + 8 * at as u64);
                dut.set(pins.load[2], word);
                dut.settle();
                dut.edge();
            }
        }
        dut.set(pins.load[0], 0);
        for _ in 0..RESET {
            dut.set(pins.nic[0], 0);
            dut.settle();
            dut.set(pins.nic[0], 1);
            dut.edge();
        }
        dut.set(reset, 0);
        Ok(Softcore {
            dut,
            pins,
            clocks: 0,
            nic_clocks: 0,
            asleep_clocks: 0,
            skipped_clocks: 0,
            console: Vec::new(),
            typed: VecDeque::new(),
            is_typing: false,
            incoming: VecDeque::new(),
            taken: 0,
            is_offering: false,
            was_ready: false,
            in_free: 0,
            leaving: Vec::new(),
            began: 0,
            out_free: 0,
            is_ready: false,
            outgoing: VecDeque::new(),
            profile: None,
            cable: Cable::default(),
        })
    }

    /// Plugs in another cable.
    pub fn plug(&mut self, cable: Cable) {
        self.cable = cable;
    }

    /// Clocks since the reset.
    pub fn clocks(&self) -> u64 {
        self.clocks
    }

    /// Clocks of the interface, whose clock stops while it has nothing to do.
    pub fn nic_clocks(&self) -> u64 {
        self.nic_clocks
    }

    /// Clocks in which the processor slept.
    pub fn asleep_clocks(&self) -> u64 {
        self.asleep_clocks
    }

    /// Clocks that were left out by [`Softcore::clock_until`].
    pub fn skipped_clocks(&self) -> u64 {
        self.skipped_clocks
    }

    /// One clock, or as many as pass in which nothing moves but the count of clocks, up to `limit`: while the processor sleeps, the
    /// interface's clock stands still, nothing is on the cable, and the timer is not due. What is seen afterwards is the same, to the
    /// clock.
    pub fn clock_until(&mut self, limit: u64) {
        let left_out = self.clocks_to_leave_out(limit);
        if left_out == 0 {
            return self.clock();
        }
        let skipped = self.pins.still[3];
        self.dut.set(skipped, left_out);
        self.clock();
        self.dut.set(skipped, 0);
        self.clocks += left_out;
        self.asleep_clocks += left_out;
        self.skipped_clocks += left_out;
    }

    /// How many clocks may pass together with the next one.
    fn clocks_to_leave_out(&self, limit: u64) -> u64 {
        let Softcore { dut, pins, clocks, .. } = self;
        let [_, is_still, until_timer, _] = pins.still;
        let is_quiet = dut.get(is_still) != 0
            && self.profile.is_none()
            && self.typed.is_empty()
            && !self.is_typing
            && !self.is_offering
            && self.leaving.is_empty();
        if !is_quiet {
            return 0;
        }
        let frames = [&self.incoming, &self.outgoing].map(|queue| queue.front().map(|(at, _)| *at));
        let at = frames.into_iter().flatten().chain([limit]).min().unwrap_or(limit);
        let until = at.saturating_sub(*clocks).min(dut.get(until_timer)).min(u64::from(u32::MAX));
        // The clock itself is one of them.
        until.saturating_sub(1)
    }

    /// One clock. Streams and line are registered on the board's side, so what it shows between two edges does not depend on what it
    /// is shown there.
    pub fn clock(&mut self) {
        let Softcore { dut, pins, .. } = self;
        if dut.get(pins.sent[0]) != 0 {
            self.console.push(dut.get(pins.sent[1]) as u8);
        }
        if !self.typed.is_empty() || self.is_typing {
            self.type_a_byte();
        }
        if self.is_offering || !self.incoming.is_empty() {
            self.give();
        }
        self.take();
        self.dut.set(self.pins.nic[0], 0);
        self.dut.settle();
        // A byte is taken in the clock in which it is asked for.
        if self.is_typing && self.dut.get(self.pins.typed[2]) != 0 {
            self.typed.pop_front();
        }
        self.asleep_clocks += self.dut.get(self.pins.still[0]);
        if self.dut.get(self.pins.nic[1]) != 0 {
            self.dut.set(self.pins.nic[0], 1);
            self.nic_clocks += 1;
        }
        if self.profile.is_some() {
            let pc = self.pc();
            self.dut.edge();
            let [executed, fetched, loaded, _] = self.counters();
            self.profile.iter_mut().for_each(|profile| profile.clock(pc, [executed, fetched, loaded]));
        } else {
            self.dut.edge();
        }
        self.clocks += 1;
    }

    /// Counts each instruction from now on, which makes the simulation slower by a little.
    pub fn start_profile(&mut self) {
        let [executed, fetched, loaded, _] = self.counters();
        self.profile = Some(Profile::new([executed, fetched, loaded]));
    }

    /// Ends that: what was counted.
    pub fn take_profile(&mut self) -> Option<Profile> {
        self.profile.take()
    }

    fn type_a_byte(&mut self) {
        let byte = self.typed.front();
        self.is_typing = byte.is_some();
        self.dut.set(self.pins.typed[0], u64::from(self.is_typing));
        self.dut.set(self.pins.typed[1], byte.copied().unwrap_or(0).into());
    }

    /// Offers the next beat of what has come over the wire, when the one that is offered has been taken. Whether it has is what the
    /// board showed in the clock in which it was offered.
    fn give(&mut self) {
        let (dut, pins) = (&mut self.dut, &self.pins);
        if self.is_offering && !self.was_ready {
            self.was_ready = dut.get(pins.into[4]) != 0;
            return;
        }
        let frame = self.incoming.front().filter(|(at, _)| *at <= self.clocks);
        let Some((_, frame)) = frame else {
            self.is_offering = false;
            return dut.set(pins.into[0], 0);
        };
        let rest = &frame[self.taken..];
        let mut bytes = [0; BEAT];
        let count = rest.len().min(BEAT);
        bytes[..count].copy_from_slice(&rest[..count]);
        let is_last = count == rest.len();
        dut.set(pins.into[0], 1);
        dut.set(pins.into[1], u64::from_le_bytes(bytes));
        dut.set(pins.into[2], (1 << count) - 1);
        dut.set(pins.into[3], is_last.into());
        self.is_offering = true;
        self.was_ready = dut.get(pins.into[4]) != 0;
        self.taken += count;
        if is_last {
            self.incoming.pop_front();
            self.taken = 0;
        }
    }

    /// Takes a beat of what leaves, while the wire is free for its frame.
    fn take(&mut self) {
        let (dut, pins) = (&mut self.dut, &self.pins);
        let is_valid = dut.get(pins.out[0]) != 0;
        let is_ready = !self.leaving.is_empty() || self.clocks >= self.out_free;
        if is_ready != self.is_ready {
            dut.set(pins.out[4], is_ready.into());
            self.is_ready = is_ready;
        }
        if !is_valid || !is_ready {
            return;
        }
        if self.leaving.is_empty() {
            self.began = self.clocks;
        }
        let count = dut.get(pins.out[2]).count_ones() as usize;
        self.leaving.extend_from_slice(&dut.get(pins.out[1]).to_le_bytes()[..count]);
        if dut.get(pins.out[3]) != 0 {
            let frame = std::mem::take(&mut self.leaving);
            self.out_free = self.began + self.cable.clocks(frame.len());
            let came = self.out_free.max(self.clocks);
            self.outgoing.push_back((came, frame));
        }
    }

    /// A frame begins its way to the board, or waits until the wire is free. A short one is padded.
    pub fn send(&mut self, mut frame: Vec<u8>) {
        if frame.len() < SHORTEST {
            frame.resize(SHORTEST, 0);
        }
        self.in_free = self.in_free.max(self.clocks) + self.cable.clocks(frame.len());
        self.incoming.push_back((self.in_free, frame));
    }

    /// Frames that are on their way to the board.
    pub fn on_the_way(&self) -> usize {
        self.incoming.len()
    }

    /// The next frame whose last bit has come over the wire.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let has_come = self.outgoing.front().is_some_and(|(at, _)| *at <= self.clocks);
        if has_come { self.outgoing.pop_front().map(|(_, frame)| frame) } else { None }
    }

    /// When the next frame will have come, if one is on its way.
    pub fn next_frame(&self) -> Option<u64> {
        self.outgoing.front().map(|(at, _)| *at)
    }

    /// Types at the console.
    pub fn type_text(&mut self, text: &[u8]) {
        self.typed.extend(text);
    }

    /// What the console has said since the last call.
    pub fn console(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.console)
    }

    /// The instruction that the processor is at.
    pub fn pc(&self) -> u32 {
        self.dut.get(self.pins.pc) as u32
    }

    /// Instructions, lines that the instruction cache and the data cache have filled, and stores. They count to 2^32.
    pub fn counters(&self) -> [u64; 4] {
        self.pins.counters.map(|port| self.dut.get(port))
    }
}

impl std::fmt::Debug for Softcore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Softcore").field("clocks", &self.clocks).finish_non_exhaustive()
    }
}

/// The parts of an image that are loaded: address and words of 64 bits.
fn words_of(image: &[u8]) -> Result<Vec<(u64, Vec<u64>)>, String> {
    const WRONG: &str = "this is no executable for 32 bits";
    let half =
        |at: usize| image.get(at..at + 2).map(|bytes| usize::from(bytes[0]) | usize::from(bytes[1]) << 8);
    let word = |at: usize| Some(half(at)? | half(at + 2)? << 16);
    if !image.starts_with(b"\x7fELF\x01\x01") {
        return Err(WRONG.to_owned());
    }
    let (Some(table), Some(size), Some(count)) = (word(28), half(42), half(44)) else {
        return Err(WRONG.to_owned());
    };
    let mut parts = Vec::new();
    for at in (0..count).map(|index| table + index * size) {
        let fields = [word(at), word(at + 4), word(at + 12), word(at + 16)];
        let [Some(kind), Some(offset), Some(address), Some(len)] = fields else {
            return Err(WRONG.to_owned());
        };
        if kind != 1 || len == 0 {
            continue;
        }
        let bytes = image.get(offset..offset + len).ok_or(WRONG)?;
        // Words of memory are written whole: what is in front of the first byte is zero.
        let padded: Vec<u8> = std::iter::repeat_n(0, address % 8).chain(bytes.iter().copied()).collect();
        let words = padded.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        parts.push(((address - address % 8) as u64, words.collect()));
    }
    Ok(parts)
}
