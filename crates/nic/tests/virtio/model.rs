//! A network device of virtio 1.2 as a model, written from the specification: registers, two split rings, interrupts and notifications.
//!
//! Nothing of it happens by itself: the device works in [`Hardware::step`], and only on rings that it was notified of or
//! still looks at. A driver that leaves out a notification, an interrupt or a cache operation is found out.

use linerate_nic::virtio::Transport;
use linerate_nic::{Bus, Dma, Pool};
use memory::Memory;
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Mutex;

#[path = "../mcdma/model/memory.rs"]
#[allow(dead_code)]
pub mod memory;

pub const DESCRIPTORS: u64 = 0x10_0000;
pub const DESCRIPTORS_LEN: usize = 0x10_000;

/// Where the memory of pools lies.
static REGIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

pub const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// All that the driver knows of, and some that it does not.
pub const ALL: u64 = 1
    | 1 << 1
    | 1 << 5
    | 1 << 7
    | 1 << 8
    | 1 << 11
    | 1 << 12
    | 1 << 15
    | 1 << 16
    | 1 << 17
    | 1 << 29
    | 1 << 32;
pub const EVENT_IDX: u64 = 1 << 29;
pub const MRG_RXBUF: u64 = 1 << 15;

/// What the device says that is not so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    /// A descriptor beyond the table.
    Beyond,
    /// A descriptor that it was not given.
    NotGiven,
    /// More bytes than the buffer has.
    TooLong,
    /// A frame in no buffer.
    NoBuffers,
    /// A frame in more buffers than have come back.
    TooMany,
}

/// A chain: its descriptors, and of each the address, the length, and whether the device writes.
type Chain = (Vec<u16>, Vec<(u64, u32, bool)>);

/// A ring as the device sees it.
#[derive(Default)]
struct Queue {
    len: u32,
    parts: [u64; 3],
    is_ready: bool,
    /// It looks at the ring; else it waits for a notification.
    is_awake: bool,
    seen: u16,
    used: u16,
    /// First descriptors of chains that it has read and not returned, with their other descriptors.
    held: Vec<Vec<u16>>,
}

/// A packet that has left.
pub struct Sent {
    pub header: [u8; 12],
    pub frame: Vec<u8>,
}

pub struct Hardware {
    pub memory: Memory,
    pub magic: u32,
    pub version: u32,
    pub kind: u32,
    pub offered: u64,
    pub agreed: u64,
    pub refuses: bool,
    pub is_stuck: bool,
    pub link_up: bool,
    pub wire: VecDeque<Sent>,
    pub lie: Option<Lie>,
    /// Packets come back in the order of their first descriptors, backwards.
    pub any_order: bool,
    /// Packets that are read, and not yet returned.
    pub holds_back: bool,
    pub notified: [u32; 2],
    pub interrupts: u32,
    pub status: u32,
    incoming: VecDeque<([u8; 12], Vec<u8>)>,
    selected: usize,
    halves: [u32; 2],
    queues: [Queue; 2],
    interrupt: u32,
}

#[derive(Clone)]
pub struct Board(Rc<RefCell<Hardware>>);

impl Board {
    pub fn new(offered: u64) -> Board {
        Board(Rc::new(RefCell::new(Hardware {
            memory: Memory::default(),
            magic: 0x7472_6976,
            version: 2,
            kind: 1,
            offered,
            agreed: 0,
            refuses: false,
            is_stuck: false,
            link_up: true,
            wire: VecDeque::new(),
            lie: None,
            any_order: false,
            holds_back: false,
            notified: [0; 2],
            interrupts: 0,
            status: 0,
            incoming: VecDeque::new(),
            selected: 0,
            halves: [0; 2],
            queues: [Queue::default(), Queue::default()],
            interrupt: 0,
        })))
    }

    pub fn with<R>(&self, work: impl FnOnce(&mut Hardware) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }

    /// A pool that the device reaches.
    pub fn pool(&self, count: usize, size: usize, is_receive: bool) -> Pool {
        let len = (count + 1) * size.next_multiple_of(64);
        let memory: &'static mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
        // A DMA region is there for ever. The address is kept, so that a search for leaks finds whose it is.
        REGIONS.lock().expect("nobody panicked while holding it").push(memory.as_ptr() as usize);
        self.with(|hardware| hardware.memory.add_region(memory, is_receive.then_some(size)));
        let aligned = memory.as_ptr().align_offset(64);
        let memory = &mut memory[aligned..aligned + count * size.next_multiple_of(64)];
        Pool::over(memory, size, 64).expect("room for as many")
    }
}

impl Hardware {
    /// A frame comes from the wire.
    pub fn arrive(&mut self, header: [u8; 12], frame: Vec<u8>) {
        self.incoming.push_back((header, frame));
    }

    /// The cable is pulled or plugged in.
    pub fn plug(&mut self, is_up: bool) {
        self.link_up = is_up;
        self.raise(2);
    }

    /// The device wants to be reset.
    pub fn give_up(&mut self) {
        self.status |= 64;
        self.raise(2);
    }

    pub fn is_interrupting(&self) -> bool {
        self.interrupt != 0
    }

    /// The device works until it has nothing to do, or waits.
    pub fn step(&mut self) {
        if self.status & 4 == 0 || self.status & 64 != 0 {
            return;
        }
        self.send();
        self.receive();
    }

    fn raise(&mut self, cause: u32) {
        self.interrupt |= cause;
        self.interrupts += 1;
    }

    fn load(&self, address: u64) -> u32 {
        self.memory.load(address).expect("the device reads ring memory")
    }

    /// The next available chain; without one the device says from where on it wants to hear, and then waits.
    fn next(&mut self, at: usize) -> Option<Chain> {
        if !self.queues[at].is_awake {
            return None;
        }
        let queue = &self.queues[at];
        let [table, driver, device] = queue.parts;
        let len = queue.len;
        let index = |this: &Self| (this.load(driver) >> 16) as u16;
        if index(self) == self.queues[at].seen {
            if self.agreed & EVENT_IDX != 0 {
                let seen = self.queues[at].seen;
                self.memory.store(device + 4 + 8 * u64::from(len), seen.into());
            }
            self.queues[at].is_awake = false;
            return None;
        }
        let place = u32::from(self.queues[at].seen) % len;
        let word = self.load(driver + 4 + u64::from(place / 2 * 4));
        let mut id = (word >> (16 * (place % 2))) as u16;
        self.queues[at].seen = self.queues[at].seen.wrapping_add(1);
        let (mut ids, mut pieces) = (Vec::new(), Vec::new());
        loop {
            assert!(u32::from(id) < len && !ids.contains(&id), "descriptor {id} in a chain of {ids:?}");
            let is_free = self.queues[at].held.iter().flatten().all(|other| *other != id);
            assert!(is_free, "descriptor {id} is the device's already");
            ids.push(id);
            let entry = table + 16 * u64::from(id);
            let words = [0, 4, 8, 12].map(|offset| self.load(entry + offset));
            let flags = words[3] & 0xffff;
            assert_eq!(flags & !3, 0, "flags {flags:#x}");
            pieces.push((u64::from(words[0]) | u64::from(words[1]) << 32, words[2], flags & 2 != 0));
            if flags & 1 == 0 {
                break;
            }
            id = (words[3] >> 16) as u16;
        }
        self.queues[at].held.push(ids.clone());
        Some((ids, pieces))
    }

    /// Returns chains, and interrupts if the driver wants to hear of them.
    fn give_back(&mut self, at: usize, chains: &[(u16, u32)]) {
        let queue = &mut self.queues[at];
        let [_, driver, device] = queue.parts;
        let (len, from) = (queue.len, queue.used);
        for (id, written) in chains {
            let place = u64::from(u32::from(self.queues[at].used) % len);
            let (mut id, mut written) = (u32::from(*id), *written);
            match self.lie {
                Some(Lie::Beyond) => id = len + 7,
                Some(Lie::NotGiven) => id ^= 16,
                Some(Lie::TooLong) if at == 0 => written = 1 << 20,
                _ => {}
            }
            self.memory.store(device + 4 + 8 * place, id);
            self.memory.store(device + 8 + 8 * place, written);
            let queue = &mut self.queues[at];
            queue.held.retain(|chain| u32::from(chain[0]) != id);
            queue.used = queue.used.wrapping_add(1);
        }
        let to = self.queues[at].used;
        self.memory.store(device, u32::from(to) << 16);
        let wants = if self.agreed & EVENT_IDX != 0 {
            let event = self.load(driver + 4 + 2 * u64::from(len)) as u16;
            to.wrapping_sub(event).wrapping_sub(1) < to.wrapping_sub(from)
        } else {
            self.load(driver) & 1 == 0
        };
        if wants && !chains.is_empty() {
            self.raise(1);
        }
    }

    fn send(&mut self) {
        while let Some((_, pieces)) = self.next(1) {
            let mut bytes = Vec::new();
            for (address, len, writes) in pieces {
                assert!(!writes && len > 0, "a piece of a packet is read");
                bytes.extend(self.memory.device_read(address, len as usize).expect("memory"));
            }
            let header = bytes[..12].try_into().expect("twelve bytes");
            self.wire.push_back(Sent { header, frame: bytes.split_off(12) });
        }
        if self.holds_back {
            return;
        }
        let mut heads: Vec<_> = self.queues[1].held.iter().map(|chain| (chain[0], 0)).collect();
        if self.any_order {
            heads.sort_unstable();
            heads.reverse();
        }
        for head in heads {
            self.give_back(1, &[head]);
        }
    }

    fn receive(&mut self) {
        while let Some((mut header, frame)) = self.incoming.pop_front() {
            let mut buffers = Vec::new();
            let mut rest = 12 + frame.len();
            while rest > 0
                && let Some((ids, pieces)) = self.next(0)
            {
                let [(address, len, true)] = pieces[..] else { panic!("one buffer to write to: {pieces:?}") };
                let now = rest.min(len as usize);
                buffers.push((ids[0], address, now));
                rest -= now;
            }
            if rest > 0 {
                // It waits for more buffers, and forgets that it has read these.
                let queue = &mut self.queues[0];
                queue.seen = queue.seen.wrapping_sub(buffers.len() as u16);
                queue.held.retain(|chain| buffers.iter().all(|(id, ..)| *id != chain[0]));
                self.incoming.push_front((header, frame));
                return;
            }
            let count = match self.lie {
                Some(Lie::NoBuffers) => 0,
                Some(Lie::TooMany) => 200,
                _ => buffers.len() as u16,
            };
            header[10..].copy_from_slice(&count.to_le_bytes());
            let bytes = [&header[..], &frame].concat();
            let mut from = 0;
            for (_, address, len) in &buffers {
                let part = &bytes[from..from + len];
                let is_written = if self.agreed & MRG_RXBUF == 0 {
                    // One buffer, and the field is left as it was.
                    self.memory.device_write(*address, &part[..10])
                        && self.memory.device_write(*address + 12, &part[12..])
                } else {
                    self.memory.device_write(*address, part)
                };
                assert!(is_written, "memory for frames");
                from += len;
            }
            let chains: Vec<_> = buffers.iter().map(|(id, _, len)| (*id, *len as u32)).collect();
            self.give_back(0, &chains);
        }
    }

    fn write(&mut self, register: u32, value: u32) {
        let queue = &mut self.queues[self.selected.min(1)];
        let mut part = |at: usize, is_high: bool| {
            let shift = if is_high { 32 } else { 0 };
            queue.parts[at] = queue.parts[at] & !(0xffff_ffff << shift) | u64::from(value) << shift;
        };
        match register {
            0x014 => self.halves[0] = value,
            0x024 => self.halves[1] = value,
            0x020 => {
                let shift = 32 * self.halves[1];
                self.agreed = self.agreed & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            0x030 => self.selected = value as usize,
            0x038 => queue.len = value,
            0x044 => (queue.is_ready, queue.is_awake) = (value == 1, true),
            0x050 => {
                assert!(self.status & 4 != 0, "notified before it was started");
                self.notified[value as usize] += 1;
                self.queues[value as usize].is_awake = true;
            }
            0x064 => self.interrupt &= !value,
            0x070 if value == 0 => {
                if self.is_stuck {
                    self.status = 1;
                    return;
                }
                self.queues = [Queue::default(), Queue::default()];
                (self.status, self.agreed, self.interrupt) = (0, 0, 0);
            }
            0x070 => {
                self.status = value;
                if self.refuses {
                    self.status &= !8;
                }
                let news = self.agreed & !self.offered;
                assert_eq!(news, 0, "features that it did not offer");
            }
            0x080 => part(0, false),
            0x084 => part(0, true),
            0x090 => part(1, false),
            0x094 => part(1, true),
            0x0a0 => part(2, false),
            0x0a4 => part(2, true),
            other => panic!("a write to {other:#x}"),
        }
    }

    fn read(&self, register: u32) -> u32 {
        match register {
            0x000 => self.magic,
            0x004 => self.version,
            0x008 => self.kind,
            0x010 => (self.offered >> (32 * self.halves[0])) as u32,
            0x034 => 1_024,
            0x044 => self.queues[self.selected].is_ready.into(),
            0x060 => self.interrupt,
            0x070 => self.status,
            other => panic!("a read of {other:#x}"),
        }
    }

    /// Descriptors that the device has of both rings.
    pub fn held(&self) -> [usize; 2] {
        let distinct = |at: usize| self.queues[at].held.iter().flatten().collect::<HashSet<_>>().len();
        [distinct(0), distinct(1)]
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
}

impl Transport for Board {
    fn read8(&self, register: u32) -> u8 {
        MAC[register as usize - 0x100]
    }

    fn read16(&self, register: u32) -> u16 {
        assert_eq!(register, 0x106, "the status of the link");
        self.with(|hardware| hardware.link_up.into())
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
