//! The hardware as a model: registers, DMA engine, MAC, memory and caches, with faults, in safe code and virtual time.
//!
//! The driver cannot tell it from hardware: it sees [`Bus`] and [`Dma`]. What hardware does meanwhile happens in [`Hardware::step`],
//! and one seed repeats it. Nothing here uses code of the driver but the numbers of registers, and nothing of `linerate_nic`'s
//! offloads but pacing, so that a mistake in one is not repeated in the other.
//!
//! Two test programs use it: `mcdma` of this crate and of `linerate-stack`.
#![allow(dead_code)]

mod checksum;
mod engine;
mod faults;
mod join;
pub mod mac;
mod memory;
mod split;
mod words;

pub use faults::{Faults, Random};
pub use memory::{CacheOperation, Memory};

use core::time::Duration;
use engine::{Engine, Packet};
use linerate_nic::mcdma::regs::{mm2s_ch as ch, register};
use linerate_nic::mcdma::{AppWords, Bus, Direction};
use linerate_nic::{Dma, Pacing, PacingConfig, PacingMode, Pool};
use linerate_wire::units::Instant;
use mac::Mac;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Channels of each direction.
const CHANNELS: usize = 4;

/// Where descriptor memory begins on the bus, and how long it is.
pub const DESCRIPTORS: u64 = 0x10_0000;
pub const DESCRIPTORS_LEN: usize = 0x10_0000;

/// Where the memory of pools lies.
static REGIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

const UNPOISONED: &str = "nobody panicked while holding it";

/// What will happen at some time.
enum Event {
    /// A descriptor is written back: its channel, in which of its lives, the words, and whether a packet ends with it.
    WriteBack { direction: Direction, index: usize, life: u64, words: Vec<(u64, u32)>, is_last: bool },
    /// The delay after the newest packet is over, if that is still the newest.
    Delay { direction: Direction, index: usize, life: u64, newest: u64 },
    /// A pacer's timer may be over.
    Pacer(usize),
    /// Frames have waited for others to join.
    Wake,
    /// A packet has been read to its end.
    Leaves(Packet),
    /// A frame has come.
    Arrives(Vec<u8>),
    /// An interrupt without a cause.
    Spurious(usize),
}

/// The device, its memory, and the caches between it and the processor.
pub struct Hardware {
    pub now: Instant,
    /// What an access of the processor to a register or a descriptor takes: meanwhile the hardware goes on.
    pub access: Duration,
    pub memory: Memory,
    pub faults: Faults,
    pub mac: Mac,
    /// Whose app words it has.
    pub words: AppWords,
    /// Frames that have left, in order.
    pub wire: VecDeque<Vec<u8>>,
    random: Random,
    transmit: Vec<Engine>,
    receive: Vec<Engine>,
    /// Common control and enable registers of both directions.
    commons: [[u32; 2]; 2],
    /// How long a frame waits for a descriptor before it is cut off.
    patience: u32,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    /// Interrupt lines of the queues, and of the MAC behind them.
    lines: [bool; CHANNELS + 1],
    raised: VecDeque<usize>,
}

impl Hardware {
    fn new(seed: u64) -> Self {
        let engines = || (0..CHANNELS).map(|_| Engine::default()).collect();
        Hardware {
            now: Instant::ZERO,
            access: Duration::ZERO,
            memory: Memory::default(),
            faults: Faults::default(),
            mac: Mac::default(),
            words: AppWords::default(),
            wire: VecDeque::new(),
            random: Random::new(seed),
            transmit: engines(),
            receive: engines(),
            commons: [[0; 2]; 2],
            patience: 0,
            events: BTreeMap::new(),
            sequence: 0,
            lines: [false; CHANNELS + 1],
            raised: VecDeque::new(),
        }
    }

    /// Lets the hardware work until `now`.
    pub fn step(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= now
        {
            self.now = entry.key().0;
            let event = entry.remove();
            self.happen(event);
            self.pump();
        }
        self.now = self.now.max(now);
    }

    /// When something will happen next; now, if an interrupt or a frame waits to be taken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.raised.is_empty() || !self.wire.is_empty() {
            return Some(self.now);
        }
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next interrupt that reaches the processor: that of a queue, by index, or of the MAC.
    pub fn poll_interrupt(&mut self) -> Option<Line> {
        let line = self.raised.pop_front()?;
        Some(if line == CHANNELS { Line::Mac } else { Line::Queue(line) })
    }

    /// A frame comes from the wire at `at`.
    pub fn arrive(&mut self, at: Instant, frame: Vec<u8>) {
        self.at(at, Event::Arrives(frame));
    }

    /// Pulls the cable, or plugs it in again.
    pub fn set_link(&mut self, is_up: bool) {
        self.mac.set_link(is_up);
        self.update_lines();
        self.pump();
    }

    /// Lets the channel of a queue stop without a word, as after a loss of power.
    pub fn forget(&mut self, direction: Direction, index: usize) {
        self.engine(direction, index).power_on();
        self.update_lines();
    }

    /// Frames for which a receive channel had no room.
    pub fn overflows(&self) -> u64 {
        self.receive.iter().map(|engine| engine.overflows).sum()
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.insert((at.max(self.now), self.sequence), event);
    }

    fn engine(&mut self, direction: Direction, index: usize) -> &mut Engine {
        match direction {
            Direction::Transmit => &mut self.transmit[index],
            Direction::Receive => &mut self.receive[index],
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::WriteBack { direction, index, life, words, is_last } => {
                if self.engine(direction, index).life != life {
                    return;
                }
                words.iter().for_each(|(address, word)| self.memory.store(*address, *word));
                if is_last {
                    self.count_packet(direction, index);
                }
            }
            Event::Delay { direction, index, life, newest } => {
                let engine = self.engine(direction, index);
                if engine.life == life && engine.packets == newest && engine.uncounted > 0 {
                    engine.uncounted = 0;
                    engine.interrupts |= ch::SR_DLY;
                }
            }
            Event::Pacer(index) => self.pace(index),
            Event::Wake => {}
            Event::Leaves(packet) => self.leave(packet),
            Event::Arrives(frame) => {
                if !self.mac.is_looped() && self.mac.is_up {
                    self.deliver(frame);
                }
            }
            Event::Spurious(line) => self.raised.push_back(line),
        }
        self.update_lines();
    }

    /// A packet is complete as far as the interrupt is concerned.
    fn count_packet(&mut self, direction: Direction, index: usize) {
        let tick = Duration::from_nanos(800);
        let now = self.now;
        let engine = self.engine(direction, index);
        engine.packets += 1;
        engine.uncounted += 1;
        let threshold = engine.control >> ch::CR_THRESHOLD_SHIFT & 0xFF;
        let delay = engine.control >> ch::CR_DELAY_SHIFT;
        let (life, newest) = (engine.life, engine.packets);
        if threshold == 0 {
            if let Some(pacer) = &mut engine.pacer {
                pacer.handle_packet(now, 1);
            }
            self.pace(index);
        } else if engine.uncounted >= threshold {
            engine.uncounted = 0;
            engine.interrupts |= ch::SR_IOC;
        } else if delay > 0 {
            self.at(self.now + tick * delay, Event::Delay { direction, index, life, newest });
        }
        if self.random.per_mille(self.faults.spurious) {
            let after = Duration::from_nanos(self.random.below(100_000));
            self.at(self.now + after, Event::Spurious(index));
        }
    }

    /// The pacer's interrupt, if it is due, and when to look again.
    fn pace(&mut self, index: usize) {
        let now = self.now;
        let engine = &mut self.receive[index];
        let Some(pacer) = &mut engine.pacer else { return };
        if pacer.poll_interrupt(now) {
            pacer.handle_interrupt_taken(now);
            engine.interrupts |= ch::SR_IOC;
        } else if let Some(at) = pacer.poll_timeout() {
            self.at(at, Event::Pacer(index));
        }
    }

    /// Gives a queue's pacer its settings.
    fn set_pacer(&mut self, index: usize) {
        let (mode, threshold, timer_ticks) = self.mac.pacing(index);
        let mode = match mode {
            0 => PacingMode::None,
            1 => PacingMode::LastInterrupt,
            2 => PacingMode::FirstNewPacket,
            _ => PacingMode::LastNewPacket,
        };
        let config = PacingConfig { mode, threshold, timer_ticks, tick_ns: 800 };
        self.receive[index].pacer = Some(Pacing::new(config, self.now));
    }

    /// Interrupts are levels; the processor sees them rise, unless they are lost.
    fn update_lines(&mut self) {
        for line in 0..=CHANNELS {
            let level = match (self.receive.get(line), self.transmit.get(line)) {
                (Some(receive), Some(transmit)) => receive.interrupts() | transmit.interrupts() != 0,
                _ => self.mac.interrupts(),
            };
            let rises = level && !self.lines[line];
            self.lines[line] = level;
            if rises && !self.random.per_mille(self.faults.lost_interrupt) {
                self.raised.push_back(line);
            }
        }
    }

    fn read(&mut self, register: u32) -> u32 {
        match decode(register) {
            Target::Info => {
                let layout = if self.words == AppWords::TenGig { 0 } else { 1 };
                layout << 4 | CHANNELS as u32
            }
            Target::Patience => self.patience,
            Target::Common(direction, 0) => {
                let mut is_resetting = false;
                for index in 0..CHANNELS {
                    is_resetting |= !self.engine(direction, index).is_reset();
                }
                let reset = if is_resetting { register::MM2S_CCR_RESET } else { 0 };
                self.commons[direction as usize][0] | reset
            }
            Target::Common(direction, offset) => self.commons[direction as usize][offset as usize / 8],
            Target::Channel(Direction::Receive, index, ch::CURDESC) => self.read_ahead(index) as u32,
            Target::Channel(Direction::Receive, index, ch::CURDESC_MSB) => {
                (self.read_ahead(index) >> 32) as u32
            }
            Target::Channel(direction, index, offset) => self.engine(direction, index).read(offset),
            Target::Mac => self.mac.read(register),
            Target::Nothing => panic!("read of register {register:#x}, which does not exist"),
        }
    }

    fn write(&mut self, register: u32, value: u32) {
        let is_stuck = self.faults.stuck_reset;
        match decode(register) {
            Target::Common(direction, 0) if value & register::MM2S_CCR_RESET != 0 => {
                self.commons[direction as usize] = [0; 2];
                if direction == Direction::Receive {
                    self.patience = 0;
                }
                (0..CHANNELS).for_each(|index| self.engine(direction, index).reset(is_stuck));
            }
            Target::Patience => self.patience = value,
            Target::Common(direction, offset) => {
                self.commons[direction as usize][offset as usize / 8] = value
            }
            Target::Channel(direction, index, offset) => {
                self.engine(direction, index).write(offset, value, is_stuck);
            }
            Target::Mac => {
                self.mac.write(register, value);
                let pacing = linerate_nic::mcdma::nic_regs::register::PACING_BASE;
                if (pacing..pacing + 8 * CHANNELS as u32).contains(&register) {
                    self.set_pacer((register - pacing) as usize / 8);
                }
            }
            Target::Nothing | Target::Info => panic!("write of register {register:#x}, which does not exist"),
        }
        self.update_lines();
        self.pump();
    }

    fn may_run(&self, direction: Direction, index: usize) -> bool {
        let [control, enable] = self.commons[direction as usize];
        control & register::MM2S_CCR_RS != 0 && enable >> index & 1 != 0
    }
}

/// Whose interrupt it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    Queue(usize),
    Mac,
}

enum Target {
    Info,
    Patience,
    Common(Direction, u32),
    Channel(Direction, usize, u32),
    Mac,
    Nothing,
}

fn decode(register: u32) -> Target {
    if (0x1000..0x11C0).contains(&register) {
        return Target::Mac;
    }
    match register {
        0x4F0 => return Target::Info,
        0x524 => return Target::Patience,
        _ => {}
    }
    let (direction, offset) = match register.checked_sub(0x500) {
        None => (Direction::Transmit, register),
        Some(offset) => (Direction::Receive, offset),
    };
    match offset as usize / 0x40 {
        0 if [0, 8].contains(&offset) => Target::Common(direction, offset),
        number @ 1..=CHANNELS if offset % 0x40 < 0x18 => {
            Target::Channel(direction, number - 1, offset % 0x40)
        }
        _ => Target::Nothing,
    }
}

/// What runs when an interrupt comes.
type Handler = Box<dyn FnMut(Line) + Send>;

/// A board with the hardware on it, and the processor's interrupts. Clones are the same board.
#[derive(Clone)]
pub struct Board {
    hardware: Arc<Mutex<Hardware>>,
    handler: Arc<Mutex<Option<Handler>>>,
}

impl Board {
    pub fn new(seed: u64) -> Self {
        Board { hardware: Arc::new(Mutex::new(Hardware::new(seed))), handler: Arc::default() }
    }

    /// Lets `handler` run for each interrupt from now on: when one has come, before the next access of the driver's, and in
    /// [`Board::interrupt`].
    pub fn set_handler(&self, handler: impl FnMut(Line) + Send + 'static) {
        *self.handler.lock().expect(UNPOISONED) = Some(Box::new(handler));
    }

    /// No handler any more. It may hold on to the board that holds it.
    pub fn clear_handler(&self) {
        *self.handler.lock().expect(UNPOISONED) = None;
    }

    /// Runs the handler for the interrupts that have come. While it runs there are no others.
    pub fn interrupt(&self) {
        let Some(mut handler) = self.handler.lock().expect(UNPOISONED).take() else { return };
        while let Some(line) = self.with(Hardware::poll_interrupt) {
            handler(line);
        }
        *self.handler.lock().expect(UNPOISONED) = Some(handler);
    }

    /// Acts on the hardware.
    pub fn with<R>(&self, act: impl FnOnce(&mut Hardware) -> R) -> R {
        // After a panic the driver still stops the hardware.
        act(&mut self.hardware.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Acts on the hardware as the driver does, which takes time.
    fn access<R>(&self, act: impl FnOnce(&mut Hardware) -> R) -> R {
        self.with(|hardware| hardware.step(hardware.now + hardware.access));
        self.interrupt();
        self.with(act)
    }

    /// A pool in memory that the device reaches, aligned to cache lines. `is_receive`: for received frames.
    pub fn pool(&self, count: usize, buffer_size: usize, is_receive: bool) -> Pool {
        self.pool_at(64, count, buffer_size, is_receive)
    }

    /// The same, aligned to so many bytes.
    pub fn pool_at(&self, alignment: usize, count: usize, buffer_size: usize, is_receive: bool) -> Pool {
        let len = (count + 1) * buffer_size.next_multiple_of(64);
        let memory: &'static mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
        // A DMA region is there for ever. The address is kept, so that a search for leaks finds whose it is.
        REGIONS.lock().expect(UNPOISONED).push(memory.as_ptr() as usize);
        self.with(|hardware| hardware.memory.add_region(memory, is_receive.then_some(buffer_size)));
        let aligned = memory.as_ptr().align_offset(64);
        let memory = &mut memory[aligned..aligned + count * buffer_size.next_multiple_of(64)];
        Pool::over(memory, buffer_size, alignment).expect("room for as many")
    }
}

impl Bus for Board {
    fn read(&self, register: u32) -> u32 {
        self.access(|hardware| hardware.read(register))
    }

    fn write(&self, register: u32, value: u32) {
        self.access(|hardware| hardware.write(register, value));
    }

    fn load(&self, address: u64) -> u32 {
        self.access(|hardware| hardware.memory.load(address).expect("descriptor memory"))
    }

    fn store(&self, address: u64, value: u32) {
        self.access(|hardware| hardware.memory.store(address, value));
    }
}

impl Dma for Board {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        self.with(|hardware| hardware.memory.bus_address(bytes))
    }

    fn clean(&self, bytes: &[u8]) {
        self.with(|hardware| hardware.memory.clean(bytes));
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        self.with(|hardware| hardware.memory.invalidate(bytes));
    }
}
