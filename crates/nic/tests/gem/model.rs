//! A GEM as a model, written from its manual (AMD UG1085, UG1087): registers, rings, screeners, interrupts, a PHY.
//!
//! As [`Kind::Hardware`] nothing happens by itself: the device works in [`Hardware::step`]. As [`Kind::Emulator`] it has the
//! ways of an emulator's: packets leave within the write of the doorbell, interrupts that are shut are never heard of,
//! reading them clears them, and a descriptor once found taken is not looked at again before the control register is
//! written.

use linerate_nic::{Bus, Dma, Pool};
use linerate_wire::units::Rate;
use memory::Memory;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

#[path = "engine.rs"]
mod engine;
#[path = "../mcdma/model/memory.rs"]
#[allow(dead_code)]
pub mod memory;
#[path = "wire.rs"]
mod wire;

pub const DESCRIPTORS: u64 = 0x10_0000;
pub const DESCRIPTORS_LEN: usize = 0x1_0000;
pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Where memory lies for parts with addresses of 32 bits.
const LOW: u64 = 0x4000_0000;
const LOW_STRIDE: u64 = 0x100_0000;

/// Where the memory of pools lies: who looks for leaks finds it here.
static REGIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Hardware,
    Emulator,
}

/// What the device writes that is not so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    Empty,
    TooLong,
    NoStart,
    NoEnd,
    /// The frame goes to the descriptor behind the one that it belongs to.
    Ahead,
    /// A descriptor is said to be done before its status is written, and stays so.
    NoStatus,
}

/// What fails while a packet is sent: the bit of `int_status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Underrun = 4,
    Retry = 5,
    Corrupted = 6,
    Bus = 11,
}

#[derive(Clone, Copy, Default)]
struct Queue {
    receive_base: u64,
    receive_at: u64,
    transmit_base: u64,
    transmit_at: u64,
    status: u32,
    /// Set bits are shut.
    mask: u32,
    /// A descriptor was found taken, and is not looked at again.
    is_blocked: bool,
}

pub struct Hardware {
    pub memory: Memory,
    pub kind: Kind,
    pub is_wide: bool,
    pub revision: u32,
    pub design_8: u32,
    pub design_6: u32,
    pub phy: [u16; 32],
    pub phy_address: u32,
    pub phy_hangs: bool,
    pub wire: VecDeque<(usize, Vec<u8>)>,
    pub lie: Option<Lie>,
    pub fault: Option<(usize, Fault)>,
    /// The transmitter takes no packet, and does not halt.
    pub is_stuck: bool,
    /// It takes no packet, and halts.
    pub holds_back: bool,
    /// It takes no ring.
    pub is_deaf: bool,
    /// Frames that found no buffer, no link, or a receiver that was off.
    pub lost: u64,
    pub interrupts: u32,
    /// The speeds that the board was told, in Mb/s, and frames that had left before.
    pub speeds: Vec<(u64, usize)>,
    /// What was written last, by register.
    pub written: HashMap<u32, u32>,
    incoming: VecDeque<Vec<u8>>,
    control: u32,
    transmit_status: u32,
    receive_status: u32,
    is_going: bool,
    queues: [Queue; 2],
    regions: Vec<(u64, u64)>,
}

#[derive(Clone)]
pub struct Board(Arc<Mutex<Hardware>>);

impl Board {
    pub fn new(kind: Kind) -> Board {
        let mut phy = [0; 32];
        (phy[0], phy[1], phy[2], phy[3]) = (0x1140, 0x796D, 0x0141, 0x0CC2);
        (phy[4], phy[5], phy[9], phy[10]) = (0x01E1, 0xCDE1, 0x0300, 0x7C00);
        Board(Arc::new(Mutex::new(Hardware {
            memory: Memory::default(),
            kind,
            is_wide: true,
            revision: 0x4007_0106,
            design_8: 0x0404_0404,
            design_6: 0x0080_0002,
            phy,
            phy_address: 12,
            phy_hangs: false,
            wire: VecDeque::new(),
            lie: None,
            fault: None,
            is_stuck: false,
            holds_back: false,
            is_deaf: false,
            lost: 0,
            interrupts: 0,
            speeds: Vec::new(),
            written: HashMap::new(),
            incoming: VecDeque::new(),
            control: 0,
            transmit_status: 0,
            receive_status: 0,
            is_going: false,
            queues: [Queue { mask: !0, ..Queue::default() }; 2],
            regions: Vec::new(),
        })))
    }

    /// A part with addresses of 32 bits.
    pub fn narrow(kind: Kind) -> Board {
        let board = Board::new(kind);
        board.with(|hardware| (hardware.is_wide, hardware.design_6) = (false, 0x0000_0002));
        board
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut Hardware) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// A pool that the device reaches.
    pub fn pool(&self, count: usize, size: usize, is_receive: bool) -> Pool {
        let len = (count + 1) * size.next_multiple_of(64);
        let memory: &'static mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
        // A DMA region is there for ever. The address is kept, so that a search for leaks finds whose it is.
        REGIONS.lock().expect("nobody panicked while holding it").push(memory.as_ptr() as usize);
        self.with(|hardware| {
            hardware.memory.add_region(memory, is_receive.then_some(size));
            let start = hardware.memory.bus_address(memory).expect("all is reached");
            hardware.regions.push((start, memory.len() as u64));
        });
        let aligned = memory.as_ptr().align_offset(64);
        let memory = &mut memory[aligned..aligned + count * size.next_multiple_of(64)];
        Pool::over(memory, size, 64).expect("room for as many")
    }
}

impl Hardware {
    /// A frame comes from the wire.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        self.incoming.push_back(frame);
    }

    /// The cable is pulled or plugged in. A link that is down is said to be until it was read.
    pub fn plug(&mut self, is_up: bool) {
        if is_up {
            self.phy[1] |= 1 << 5;
        } else {
            self.phy[1] &= !(1 << 2 | 1 << 5);
        }
    }

    fn is_up(&self) -> bool {
        self.phy[1] & 1 << 5 != 0
    }

    /// An error of a queue that belongs to no packet.
    pub fn fail(&mut self, queue: usize, bit: u32) {
        self.raise(queue, 1 << bit);
    }

    pub fn is_interrupting(&self, queue: usize) -> bool {
        self.queues[queue].status & !self.queues[queue].mask != 0
    }

    /// The receiver goes so many descriptors too far.
    pub fn skip(&mut self, queue: usize, descriptors: u64) {
        self.queues[queue].receive_at += 16 * descriptors;
    }

    /// Whether frames are received.
    pub fn receives(&self) -> bool {
        self.control & 1 << 2 != 0
    }

    /// Where the rings of a queue are.
    pub fn rings(&self, queue: usize) -> (u64, u64) {
        (self.queues[queue].receive_base, self.queues[queue].transmit_base)
    }

    pub fn config(&self) -> u32 {
        self.written.get(&0x004).copied().unwrap_or(0)
    }

    /// The device works until it has nothing to do, or waits.
    pub fn step(&mut self) {
        self.send();
        self.receive();
    }

    fn raise(&mut self, queue: usize, bits: u32) {
        let queue = &mut self.queues[queue];
        queue.status |= if self.kind == Kind::Emulator { bits & !queue.mask } else { bits };
        self.interrupts += 1;
    }

    /// What an address of the driver's is to memory.
    fn address(&self, given: u64) -> u64 {
        if self.is_wide {
            return given;
        }
        let at = (given - LOW) / LOW_STRIDE;
        self.regions[at as usize].0 + (given - LOW) % LOW_STRIDE
    }

    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        let address = self.memory.bus_address(bytes)?;
        if self.is_wide {
            return Some(address);
        }
        let at = self.regions.iter().position(|(start, len)| (*start..start + len).contains(&address));
        Some(at.map_or(address, |at| LOW + LOW_STRIDE * at as u64 + address - self.regions[at].0))
    }

    fn load(&self, address: u64) -> u32 {
        self.memory.load(address).unwrap_or_else(|| panic!("no descriptor at {address:#x}"))
    }

    fn manage(&mut self, frame: u32) {
        assert_eq!((frame >> 30, frame >> 16 & 3), (0b01, 0b10), "a frame of clause 22");
        assert!(self.control & 1 << 4 != 0, "the PHY's lines are not driven");
        let (phy, register) = (frame >> 23 & 0x1F, (frame >> 18 & 0x1F) as usize);
        let answers = phy == self.phy_address;
        let mut value = frame & 0xFFFF;
        if frame >> 28 & 3 == 0b10 {
            value = if answers { self.phy[register].into() } else { 0xFFFF };
            if answers && register == 1 && self.is_up() {
                // Once it was read, the link is what it is.
                self.phy[1] |= 1 << 2;
            }
        } else if answers {
            self.phy[register] = value as u16;
        }
        self.written.insert(0x034, frame & 0xFFFF_0000 | value);
    }

    fn control(&mut self, value: u32) {
        let before = self.control;
        self.control = value & !(1 << 9 | 1 << 10);
        if value & 1 << 3 == 0 {
            self.is_going = false;
            self.queues.iter_mut().for_each(|queue| queue.transmit_at = queue.transmit_base);
        }
        if value & 1 << 10 != 0 && !self.is_stuck {
            self.is_going = false;
        }
        if value & 1 << 9 != 0 && value & 1 << 3 != 0 {
            self.is_going = true;
        }
        if value & 1 << 2 != 0 && (before & 1 << 2 == 0 || self.kind == Kind::Emulator) {
            self.queues.iter_mut().for_each(|queue| queue.is_blocked = false);
        }
        if self.kind == Kind::Emulator {
            self.step();
        }
    }

    fn write(&mut self, register: u32, value: u32) {
        let queue = usize::from(matches!(register, 0x440 | 0x480 | 0x400 | 0x600 | 0x620));
        let base =
            |high: u32| u64::from(value) | u64::from(self.written.get(&high).copied().unwrap_or(0)) << 32;
        match register {
            0x000 => self.control(value),
            0x014 => self.transmit_status &= !value,
            0x020 => self.receive_status &= !value,
            0x018 | 0x480 if !self.receives() && !self.is_deaf => {
                let base = base(0x4D4);
                (self.queues[queue].receive_base, self.queues[queue].receive_at) = (base, base);
            }
            0x01C | 0x440 if !self.is_going && !self.is_deaf => {
                let base = base(0x4C8);
                (self.queues[queue].transmit_base, self.queues[queue].transmit_at) = (base, base);
            }
            // Illegal, and without effect.
            0x018 | 0x480 | 0x01C | 0x440 => {}
            0x024 | 0x400 if self.kind == Kind::Hardware => self.queues[queue].status &= !value,
            0x024 | 0x400 => {}
            0x028 | 0x600 => self.queues[queue].mask &= !value,
            0x02C | 0x620 => self.queues[queue].mask |= value,
            0x034 => self.manage(value),
            0x004 | 0x010 | 0x080..=0x08C | 0x0A8..=0x0B4 | 0x4A0 | 0x4C8 | 0x4D4 => {}
            0x500..=0x53C | 0x540..=0x57C | 0x6E0..=0x6FC | 0x700..=0x7FC => {}
            other => panic!("a write to {other:#x}"),
        }
        if register != 0x034 {
            self.written.insert(register, value);
        }
    }

    fn read(&mut self, register: u32) -> u32 {
        let queue = usize::from(matches!(register, 0x400 | 0x440 | 0x480));
        match register {
            0x008 => u32::from(!self.phy_hangs) << 2,
            0x014 => self.transmit_status | u32::from(self.is_going) << 3,
            0x018 | 0x480 => self.queues[queue].receive_at as u32,
            0x01C | 0x440 => self.queues[queue].transmit_at as u32,
            0x020 => self.receive_status,
            0x024 | 0x400 => {
                let status = self.queues[queue].status;
                if self.kind == Kind::Emulator {
                    self.queues[queue].status = 0;
                }
                status & !self.queues[queue].mask
            }
            0x0FC => self.revision,
            0x280 => 0x02D0_0111,
            0x284 => 0x2AB1_2800,
            0x294 => self.design_6,
            0x29C => self.design_8,
            0x004 | 0x034 | 0x088 | 0x08C => self.written.get(&register).copied().unwrap_or(0),
            other => panic!("a read of {other:#x}"),
        }
    }
}

impl Bus for Board {
    fn read(&self, register: u32) -> u32 {
        self.with(|hardware| hardware.read(register))
    }

    fn write(&self, register: u32, value: u32) {
        self.with(|hardware| hardware.write(register, value));
    }

    fn load(&self, address: u64) -> u32 {
        self.with(|hardware| hardware.load(address))
    }

    fn store(&self, address: u64, value: u32) {
        self.with(|hardware| hardware.memory.store(address, value));
    }

    fn set_speed(&self, speed: Rate) {
        self.with(|hardware| {
            let left = hardware.wire.len();
            hardware.speeds.push((speed.as_bps() / 1_000_000, left));
        });
    }
}

impl Dma for Board {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        self.with(|hardware| hardware.bus_address(bytes))
    }

    fn clean(&self, bytes: &[u8]) {
        self.with(|hardware| hardware.memory.clean(bytes));
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        self.with(|hardware| hardware.memory.invalidate(bytes));
    }
}
