//! An interface in programmable logic made of files: what `sys` and `dev` would show of it, and its DMA engine on the other side.
//!
//! Registers and DMA buffer are files that the driver maps and that this reads and writes; the interrupt is a terminal, as that can
//! be opened by its name, read, written and polled like a UIO device. It has rings and checks nothing but what would harm it; the
//! model of `linerate-nic`'s tests has faults, caches and offloads. Two test programs use it: `uio` of this crate and of `linerate-cli`.
#![allow(dead_code)]

use linerate_nic::mcdma::regs::{mm2s_ch as ch, register};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

pub const QUEUES: usize = 2;
/// Bytes of registers.
const REGISTERS: usize = 0x2000;
/// Where the DMA buffer lies on the bus.
pub const BUS: u64 = 0x7000_0000;
/// Frames that wait for a descriptor.
const FIFO: usize = 256;
/// In each status word that is shown, and in none that the driver writes: a write of the same interrupts is seen.
const SHOWN: u32 = 1 << ch::SR_THRESHOLD_STS_SHIFT;
const COMPLETE: u32 = 1 << 31;

/// A folder with the files of one interface, removed with the value.
pub struct Folder(PathBuf);

impl Folder {
    /// An interface `name` whose registers are 8 KiB, with a DMA buffer of so many bytes.
    pub fn new(test: &str, name: &str, buffer_len: u64) -> Folder {
        let root = std::env::temp_dir().join(format!("linerate-uio-{test}-{}", std::process::id()));
        fs::remove_dir_all(&root).ok();
        let folder = Folder(root);
        folder.write("sys/class/uio/uio0/name", "something-else\n");
        folder.write("sys/class/uio/uio1/name", &format!("{name}\n"));
        folder.write("sys/class/u-dma-buf/udmabuf0/phys_addr", &format!("{BUS:#x}\n"));
        folder.write("sys/class/u-dma-buf/udmabuf0/size", &format!("{buffer_len}\n"));
        folder.write("sys/class/u-dma-buf/udmabuf0/sync_mode", "1\n");
        folder.write("sys/class/u-dma-buf/udmabuf0/dma_coherent", "0\n");
        for (path, len) in
            [("sys/class/uio/uio1/device/resource0", REGISTERS as u64), ("dev/udmabuf0", buffer_len)]
        {
            folder.write(path, "");
            let file = File::options().write(true).open(folder.path().join(path)).expect("it is there");
            file.set_len(len).expect("room for it");
        }
        folder
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
        fs::write(path, text).expect("a file is written");
    }

    pub fn remove(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("it goes");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A channel of one direction.
#[derive(Clone, Default)]
struct Channel {
    /// Where its registers are.
    base: u32,
    runs: bool,
    current: u64,
    tail: u64,
    is_busy: bool,
    interrupts: u32,
    shown: u32,
}

/// The hardware behind the files.
pub struct Nic {
    registers: File,
    memory: File,
    line: OwnedFd,
    is_open: bool,
    /// Transmit and receive.
    channels: [[Channel; QUEUES]; 2],
    arrived: [VecDeque<Vec<u8>>; QUEUES],
    /// Frames that have left, and the queues that they left by.
    pub left: VecDeque<(usize, Vec<u8>)>,
    /// Interrupts that the line gave.
    pub raised: u64,
}

impl Nic {
    pub fn new(folder: &Folder) -> Nic {
        let open = |path: &str| {
            File::options().read(true).write(true).open(folder.path().join(path)).expect("it is there")
        };
        let line = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&line).expect("ours");
        unlockpt(&line).expect("ours");
        let name = ptsname(&line, Vec::new()).expect("it has a name");
        let mut raw = rustix::termios::tcgetattr(&line).expect("a terminal");
        raw.make_raw();
        rustix::termios::tcsetattr(&line, rustix::termios::OptionalActions::Now, &raw).expect("a terminal");
        rustix::fs::fcntl_setfl(&line, OFlags::NONBLOCK).expect("a descriptor");
        symlink(name.to_str().expect("plain"), folder.path().join("dev/uio1")).expect("no such link yet");
        let mut nic = Nic {
            registers: open("sys/class/uio/uio1/device/resource0"),
            memory: open("dev/udmabuf0"),
            line,
            is_open: false,
            channels: Default::default(),
            arrived: Default::default(),
            left: VecDeque::new(),
            raised: 0,
        };
        for queue in 0..QUEUES {
            nic.channels[0][queue].base = register::MM2S_CH_BASE + register::MM2S_CH_STRIDE * queue as u32;
            nic.channels[1][queue].base = register::S2MM_CH_BASE + register::S2MM_CH_STRIDE * queue as u32;
        }
        for direction in 0..2 {
            nic.reset(direction);
        }
        nic.set(register::DMA_INFO, QUEUES as u32);
        use linerate_nic::mcdma::nic_regs::register as beside;
        nic.set(beside::FEATURES, beside::FEATURES_RSS);
        nic.set(beside::LINK, 1_000 << beside::LINK_SPEED_SHIFT | beside::LINK_UP | beside::LINK_FULL_DUPLEX);
        nic
    }

    /// A frame comes for a queue; false if there is no room.
    pub fn arrive(&mut self, queue: usize, frame: Vec<u8>) -> bool {
        let has_room = self.arrived[queue].len() < FIFO;
        if has_room {
            self.arrived[queue].push_back(frame);
        }
        has_room
    }

    /// Shows another state of the link.
    pub fn set_link(&mut self, is_up: bool) {
        use linerate_nic::mcdma::nic_regs::register as beside;
        self.set(beside::LINK, u32::from(is_up) * (1_000 << beside::LINK_SPEED_SHIFT | 0b11));
    }

    /// Looks at what the driver has written, and works as far as it goes. True if there was anything.
    pub fn step(&mut self) -> bool {
        let mut bytes = vec![0; REGISTERS];
        self.registers.read_exact_at(&mut bytes, 0).expect("registers");
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four"))).collect();
        let word = |offset: u32| words[offset as usize / 4];
        let mut any = false;
        for (direction, common) in [register::MM2S_CCR, register::S2MM_CCR].into_iter().enumerate() {
            let control = word(common);
            if control & register::MM2S_CCR_RESET != 0 {
                self.reset(direction);
                self.set(common + 8, 0);
                self.set(common, 0);
                continue;
            }
            let enabled = if control & register::MM2S_CCR_RS != 0 { word(common + 8) } else { 0 };
            for queue in 0..QUEUES {
                let base = self.channels[direction][queue].base;
                let seen = [ch::CR, ch::SR, ch::CURDESC, ch::TAILDESC].map(|at| word(base + at));
                any |= self.look(direction, queue, seen, enabled >> queue & 1 != 0);
            }
        }
        self.interrupt();
        any
    }

    /// What the driver has written to one channel, and what follows.
    fn look(&mut self, direction: usize, queue: usize, seen: [u32; 4], enabled: bool) -> bool {
        let [control, status, current, tail] = seen;
        if control & ch::CR_RESET != 0 {
            self.reset_channel(direction, queue);
            return true;
        }
        let channel = &mut self.channels[direction][queue];
        if status != channel.shown {
            channel.interrupts &= !status;
        }
        let runs = enabled && control & ch::CR_RS != 0;
        if runs && !channel.runs {
            channel.current = u64::from(current);
        }
        channel.runs = runs;
        if runs && u64::from(tail) != channel.tail {
            (channel.tail, channel.is_busy) = (u64::from(tail), true);
        }
        let any = match direction {
            0 => self.transmit(queue),
            _ => self.receive(queue),
        };
        self.show(direction, queue);
        any
    }

    fn transmit(&mut self, queue: usize) -> bool {
        let mut any = false;
        let mut frame = Vec::new();
        while self.channels[0][queue].runs && self.channels[0][queue].is_busy {
            let channel = &self.channels[0][queue];
            let (at, tail) = (channel.current, channel.tail);
            let control = self.load(at + 0x14);
            assert_eq!(self.load(at + 0x1C) & COMPLETE, 0, "a descriptor is given twice");
            assert_eq!(control >> 31 != 0, frame.is_empty(), "a frame begins where it should");
            let mut piece = vec![0; (control & 0x3FF_FFFF) as usize];
            self.memory.read_exact_at(&mut piece, self.load_address(at + 8) - BUS).expect("inside");
            frame.extend_from_slice(&piece);
            self.store(at + 0x1C, COMPLETE | piece.len() as u32);
            let next = self.load_address(at);
            let channel = &mut self.channels[0][queue];
            (channel.current, channel.is_busy) = (next, at != tail);
            if control >> 30 & 1 != 0 {
                let mut frame = std::mem::take(&mut frame);
                frame.resize(frame.len().max(60), 0);
                self.left.push_back((queue, frame));
                self.channels[0][queue].interrupts |= ch::SR_IOC;
            }
            any = true;
        }
        assert!(frame.is_empty(), "the doorbell is in the middle of a frame");
        any
    }

    fn receive(&mut self, queue: usize) -> bool {
        let mut any = false;
        while self.channels[1][queue].runs
            && self.channels[1][queue].is_busy
            && let Some(frame) = self.arrived[queue].pop_front()
        {
            let channel = &self.channels[1][queue];
            let (at, tail) = (channel.current, channel.tail);
            let room = (self.load(at + 0x14) & 0x3FF_FFFF) as usize;
            let address = self.load_address(at + 8);
            assert!(address.is_multiple_of(64) && frame.len() <= room, "{address:#x} has {room} bytes");
            assert_eq!(self.load(at + 0x18) & COMPLETE, 0, "a descriptor is given twice");
            self.memory.write_all_at(&frame, address - BUS).expect("inside");
            (0..5).for_each(|word| self.store(at + 0x20 + 4 * word, 0));
            self.store(at + 0x18, COMPLETE | 0b11 << 26 | frame.len() as u32);
            let next = self.load_address(at);
            let channel = &mut self.channels[1][queue];
            (channel.current, channel.is_busy) = (next, at != tail);
            channel.interrupts |= ch::SR_IOC;
            any = true;
        }
        any
    }

    /// The line of all channels, and what the driver has written to open it.
    fn interrupt(&mut self) {
        let mut bytes = [0; 64];
        while let Ok(len @ 1..) = rustix::io::read(&self.line, &mut bytes) {
            self.is_open |= bytes[..len].iter().any(|byte| *byte != 0);
        }
        let is_up = self.channels.iter().flatten().any(|channel| {
            let mut control = [0; 4];
            let at = u64::from(channel.base + ch::CR);
            self.registers.read_exact_at(&mut control, at).expect("registers");
            channel.interrupts & u32::from_le_bytes(control) & 0xE0 != 0
        });
        if is_up && self.is_open {
            self.is_open = false;
            self.raised += 1;
            rustix::io::write(&self.line, &1u32.to_ne_bytes()).expect("room");
        }
    }

    fn show(&mut self, direction: usize, queue: usize) {
        let channel = &mut self.channels[direction][queue];
        let halted = if channel.runs { 0 } else { ch::SR_HALTED };
        let idle = if channel.runs && !channel.is_busy { ch::SR_IDLE } else { 0 };
        channel.shown = SHOWN | halted | idle | channel.interrupts;
        let (at, shown, current) = (channel.base, channel.shown, channel.current);
        self.set(at + ch::SR, shown);
        if halted == 0 {
            self.set(at + ch::CURDESC, current as u32);
        }
    }

    fn reset(&mut self, direction: usize) {
        (0..QUEUES).for_each(|queue| self.reset_channel(direction, queue));
    }

    fn reset_channel(&mut self, direction: usize, queue: usize) {
        let base = self.channels[direction][queue].base;
        self.channels[direction][queue] = Channel { base, ..Channel::default() };
        self.set(base + ch::TAILDESC, 0);
        self.show(direction, queue);
        self.set(base + ch::CR, 1 << ch::CR_THRESHOLD_SHIFT);
    }

    fn set(&self, register: u32, value: u32) {
        self.registers.write_all_at(&value.to_le_bytes(), u64::from(register)).expect("registers");
    }

    fn load(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        self.memory.read_exact_at(&mut bytes, address - BUS).expect("inside the buffer");
        u32::from_le_bytes(bytes)
    }

    fn load_address(&self, address: u64) -> u64 {
        u64::from(self.load(address)) | u64::from(self.load(address + 4)) << 32
    }

    fn store(&self, address: u64, value: u32) {
        self.memory.write_all_at(&value.to_le_bytes(), address - BUS).expect("inside the buffer");
    }
}
