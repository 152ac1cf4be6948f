//! The engine with everything around it: memory, streams, register accesses, pulses.

use super::interrupts::{Bits, Interrupts};
use super::lite::Lite;
use super::memory::Memory;
use super::slave::{Slave, Timing};
use crate::{Dut, Pause, Port, Rng, RxUser, Sink, Source, UserAt};

/// Most clocks that a register access may take.
const ACCESS: u64 = 200;

/// Offsets of a queue's registers.
pub mod queue {
    pub const CONTROL: u32 = 0x00;
    pub const STATUS: u32 = 0x04;
    pub const CURRENT: u32 = 0x08;
    pub const TAIL: u32 = 0x10;
    pub const TX_FRAMES: u32 = 0x18;
    pub const RX_DROPS: u32 = 0x18;
    pub const RX_FRAMES: u32 = 0x1C;

    pub const RUN: u32 = 1;
    pub const RESET: u32 = 1 << 2;
    pub const IDLE: u32 = 1;
    pub const HALTED: u32 = 1 << 2;
    pub const DROPPED: u32 = 1 << 4;
    pub const IOC: u32 = 1 << 5;
    pub const DELAYED: u32 = 1 << 6;
    pub const ERROR: u32 = 1 << 7;
    pub const KINDS: u32 = 0xF << 8;
    pub const INTERNAL: u32 = 1 << 8;
    pub const SLAVE: u32 = 1 << 9;
    pub const DECODE: u32 = 1 << 10;
    pub const DESCRIPTOR: u32 = 1 << 11;
}

/// A direction: the offset of its registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Transmit,
    Receive,
}

impl Way {
    pub fn base(self) -> u32 {
        match self {
            Way::Transmit => 0,
            Way::Receive => 0x500,
        }
    }

    pub fn queue(self, queue: usize) -> u32 {
        self.base() + 0x40 * (queue as u32 + 1)
    }
}

/// Pulses and levels, one bit for each queue.
#[derive(Debug)]
struct Pins {
    tx_frame: Port,
    rx_frame: Port,
    rx_drop: Port,
    rx_no_queue: Port,
    tx_dropped: Port,
    tx_cut: Port,
    irq_tx: Port,
    irq_rx: Port,
    pace_tx: Port,
    pace_rx: Port,
}

/// Pulses counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pulses {
    pub tx_frames: [u64; 8],
    pub rx_frames: [u64; 8],
    pub rx_drops: [u64; 8],
    pub rx_no_queue: u64,
    pub tx_dropped: u64,
    pub tx_cut: u64,
}

/// How a round goes.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub data: Timing,
    pub descriptors: Timing,
    /// Of the stream of received frames, and of the stream that leaves.
    pub streams: [Pause; 2],
    /// In how many of 1,000 clocks an outer pacer asks for an interrupt.
    pub paces: u64,
}

pub struct World<'a> {
    pub dut: &'a mut Dut,
    pub memory: Memory,
    pub data: Slave,
    pub descriptors: Slave,
    lite: Lite,
    pub source: Source,
    pub sink: Sink,
    pins: Pins,
    pub pulses: Pulses,
    /// The clocks in which frames were reported as done, each way.
    pub done_at: [Vec<u64>; 2],
    pub interrupts: Interrupts,
    /// In how many of 1,000 clocks an outer pacer asks for an interrupt.
    paces: u64,
    pub queues: usize,
    /// Bytes of a beat.
    pub width: usize,
    pub rng: Rng,
}

impl<'a> World<'a> {
    pub fn new(dut: &'a mut Dut, manner: Manner, seed: u64) -> Result<Self, String> {
        let mut rng = Rng::new(seed);
        let port = |name: &str| dut.port(name);
        let pins = Pins {
            tx_frame: port("event_tx_frame")?,
            rx_frame: port("event_rx_frame")?,
            rx_drop: port("event_rx_drop")?,
            rx_no_queue: port("event_rx_no_queue")?,
            tx_dropped: port("event_tx_dropped")?,
            tx_cut: port("event_tx_cut")?,
            irq_tx: port("irq_tx")?,
            irq_rx: port("irq_rx")?,
            pace_tx: port("pace_tx")?,
            pace_rx: port("pace_rx")?,
        };
        let (queues, width) = (dut.bits(pins.irq_tx) as usize, dut.bits(port("s_axis_tdata")?) as usize / 8);
        let data = Slave::new(dut, "m_axi", manner.data, rng.bits())?;
        let mut descriptors = Slave::new(dut, "m_axi_sg", manner.descriptors, rng.bits())?;
        descriptors.log = Some(Vec::new());
        let lite = Lite::new(dut, "s_axil", rng.bits())?;
        let source = Source::new(dut, "s_axis", manner.streams[0], UserAt::Every, rng.bits())?;
        let sink = Sink::new(dut, "m_axis", manner.streams[1], rng.bits())?;
        let (memory, pulses) = (Memory::new(dut.bits(port("m_axi_araddr")?)), Pulses::default());
        dut.reset()?;
        let interrupts = Interrupts::new(queues, dut.cycles());
        let paces = manner.paces;
        Ok(World {
            dut,
            memory,
            data,
            descriptors,
            lite,
            source,
            sink,
            pins,
            pulses,
            done_at: [Vec::new(), Vec::new()],
            interrupts,
            paces,
            queues,
            width,
            rng,
        })
    }

    /// One clock.
    pub fn step(&mut self) -> Result<(), String> {
        let mut pace = [0; 2];
        if self.paces > 0 && self.rng.below(1_000) < self.paces {
            let every = (1 << self.queues) - 1;
            pace = [self.rng.bits() & every, self.rng.bits() & every];
        }
        self.dut.set(self.pins.pace_tx, pace[0]);
        self.dut.set(self.pins.pace_rx, pace[1]);
        self.data.drive(self.dut, &mut self.memory);
        self.descriptors.drive(self.dut, &mut self.memory);
        self.lite.drive(self.dut);
        self.source.drive(self.dut);
        self.sink.drive(self.dut);
        self.dut.settle();
        self.data.observe(self.dut)?;
        self.descriptors.observe(self.dut)?;
        let taken = self.lite.observe(self.dut)?;
        self.source.observe(self.dut);
        self.sink.observe(self.dut);
        let bits = Bits {
            done: [self.dut.get(self.pins.tx_frame), self.dut.get(self.pins.rx_frame)],
            dropped: self.dut.get(self.pins.rx_drop),
            pace,
            lines: [self.dut.get(self.pins.irq_tx), self.dut.get(self.pins.irq_rx)],
        };
        self.interrupts.step(self.dut.cycles(), taken, bits)?;
        self.count(bits);
        self.dut.edge();
        self.memory.check()
    }

    fn count(&mut self, bits: Bits) {
        let Pins { rx_no_queue, tx_dropped, tx_cut, .. } = self.pins;
        for (bits, times) in bits.done.into_iter().zip(&mut self.done_at) {
            if bits != 0 {
                times.push(self.dut.cycles());
            }
        }
        let pulses = &mut self.pulses;
        for (bits, counts) in [
            (bits.done[0], &mut pulses.tx_frames),
            (bits.done[1], &mut pulses.rx_frames),
            (bits.dropped, &mut pulses.rx_drops),
        ] {
            if bits != 0 {
                for (queue, count) in counts.iter_mut().enumerate() {
                    *count += bits >> queue & 1;
                }
            }
        }
        pulses.rx_no_queue += self.dut.get(rx_no_queue);
        pulses.tx_dropped += self.dut.get(tx_dropped);
        pulses.tx_cut += self.dut.get(tx_cut);
    }

    pub fn steps(&mut self, clocks: u64) -> Result<(), String> {
        (0..clocks).try_for_each(|_| self.step())
    }

    /// The level of a queue's interrupt.
    pub fn interrupt(&self, way: Way, queue: usize) -> bool {
        let port = if way == Way::Transmit { self.pins.irq_tx } else { self.pins.irq_rx };
        self.dut.get(port) >> queue & 1 != 0
    }

    fn finish(&mut self) -> Result<u32, String> {
        for _ in 0..ACCESS {
            self.step()?;
            if let Some(value) = self.lite.result() {
                return Ok(value);
            }
        }
        Err("a register access that never ends".to_owned())
    }

    pub fn write(&mut self, address: u32, value: u32) -> Result<(), String> {
        self.write_bytes(address, value, 0xF)
    }

    /// Writes the bytes whose strobe is set.
    pub fn write_bytes(&mut self, address: u32, value: u32, strobe: u64) -> Result<(), String> {
        self.lite.write(address, value, strobe);
        self.finish().map(drop)
    }

    pub fn read(&mut self, address: u32) -> Result<u32, String> {
        self.lite.read(address);
        let value = self.finish()?;
        self.interrupts.check(address, value)?;
        Ok(value)
    }

    /// Asks for a write and a read at the same time: the write goes first.
    pub fn write_and_read(&mut self, to: u32, value: u32, from: u32) -> Result<u32, String> {
        self.lite.write_and_read(to, value, from);
        self.finish()
    }

    /// Reads until `done` likes the value.
    pub fn wait(&mut self, address: u32, what: &str, done: impl Fn(u32) -> bool) -> Result<u32, String> {
        let mut value = 0;
        for _ in 0..3_000 {
            value = self.read(address)?;
            if done(value) {
                return Ok(value);
            }
        }
        Err(format!("{what}: the register at {address:#x} stays {value:#x}"))
    }

    /// Points a halted queue at its first descriptor and starts it.
    pub fn start(&mut self, way: Way, queue: usize, current: u64) -> Result<(), String> {
        let base = way.queue(queue);
        self.wait(base + queue::STATUS, "halted before the start", |status| status & queue::HALTED != 0)?;
        self.write(base + queue::CURRENT, current as u32)?;
        self.write(base + queue::CURRENT + 4, (current >> 32) as u32)?;
        if self.address(base + queue::CURRENT)? != current {
            return Err("CURDESC does not read back".to_owned());
        }
        let control = self.read(base + queue::CONTROL)?;
        self.write(base + queue::CONTROL, control | queue::RUN | 0xE0)
    }

    /// An address in two registers.
    pub fn address(&mut self, register: u32) -> Result<u64, String> {
        Ok(u64::from(self.read(register)?) | u64::from(self.read(register + 4)?) << 32)
    }

    /// Other interrupts for a queue that runs, and other reasons for them.
    pub fn tune(&mut self, way: Way, queue: usize) -> Result<(), String> {
        let rng = &mut self.rng;
        let few = |rng: &mut Rng| match rng.below(10) {
            0 => 0,
            1..=4 => rng.between(1, 5) as u32,
            5..=8 => 1 << rng.below(6),
            _ => rng.below(256) as u32,
        };
        let (threshold, delay) = (few(rng), few(rng));
        // Bits that mean nothing, and none that mean RESET.
        let noise = rng.bits() as u32 & 0xFFFA;
        self.write(way.queue(queue) + queue::CONTROL, delay << 24 | threshold << 16 | noise | queue::RUN)
    }

    /// The doorbell.
    pub fn ring(&mut self, way: Way, queue: usize, tail: u64) -> Result<(), String> {
        let base = way.queue(queue);
        self.write(base + queue::TAIL + 4, (tail >> 32) as u32)?;
        self.write(base + queue::TAIL, tail as u32)
    }

    /// Switches both directions on.
    pub fn enable(&mut self) -> Result<(), String> {
        for base in [0, 0x500] {
            self.write(base, 1)?;
            self.write(base + 8, (1 << self.queues) - 1)?;
        }
        Ok(())
    }

    /// Resets a queue and waits for it.
    pub fn reset(&mut self, way: Way, queue: usize) -> Result<(), String> {
        let base = way.queue(queue);
        let paces = core::mem::take(&mut self.paces);
        let noise = self.rng.bits() as u32 & queue::RUN;
        self.write(base + queue::CONTROL, queue::RESET | noise)?;
        self.wait(base + queue::CONTROL, "reset", |control| control & (queue::RESET | queue::RUN) == 0)?;
        self.after_reset(way, queue)?;
        self.paces = paces;
        Ok(())
    }

    /// A queue whose reset is over is as it was after power on, but for frames that came for it since and were dropped.
    pub fn after_reset(&mut self, way: Way, queue: usize) -> Result<(), String> {
        let base = way.queue(queue);
        let paces = core::mem::take(&mut self.paces);
        let drops = if way == Way::Receive { self.read(base + queue::RX_DROPS)? } else { 0 };
        self.interrupts.reset(way, queue, drops);
        let status = self.read(base + queue::STATUS)?;
        let frames =
            self.read(base + if way == Way::Receive { queue::RX_FRAMES } else { queue::TX_FRAMES })?;
        let control = self.read(base + queue::CONTROL)?;
        self.paces = paces;
        if status & !queue::DROPPED != queue::HALTED || (frames, control) != (0, 1 << 16) {
            return Err(format!("status {status:#x}, {frames} frames, control {control:#x} after a reset"));
        }
        Ok(())
    }

    /// Resets a whole direction and waits for it.
    pub fn reset_all(&mut self, way: Way) -> Result<(), String> {
        let base = way.base();
        let paces = core::mem::take(&mut self.paces);
        self.write(base, queue::RESET | 1)?;
        for queue in 0..self.queues {
            if self.read(way.queue(queue) + queue::CONTROL)? & queue::RUN != 0 {
                return Err(format!("queue {queue} has RS while its direction is reset"));
            }
        }
        self.wait(base, "reset", |control| control & queue::RESET == 0)?;
        if self.read(base)? != 0 || self.read(base + 8)? != 0 || self.read(base + 4)? != 1 {
            return Err("registers of a direction after its reset".to_owned());
        }
        for queue in 0..self.queues {
            self.after_reset(way, queue)?;
        }
        self.paces = paces;
        Ok(())
    }

    pub fn offer(&mut self, frame: Vec<u8>, user: RxUser) {
        self.source.push(frame, user.to_words());
    }
}
