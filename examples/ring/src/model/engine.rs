//! The DMA engine: each channel works through its ring.

use super::{Event, Hardware, checksum};
use crate::registers::{Direction, channel};
use core::time::Duration;
use linerate_wire::units::Instant;
use std::collections::VecDeque;

/// Frames that a receive channel keeps while it has no descriptor.
const FIFO: usize = 64;
/// Reads of its control register that a reset takes.
const RESET_READS: u32 = 3;

const FIRST: u32 = 1 << 31;
const LAST: u32 = 1 << 30;
const LENGTH: u32 = (1 << 26) - 1;
const COMPLETE: u32 = 1 << 31;
const PACKET_ERROR: u32 = 1 << 29;

/// A channel.
#[derive(Default)]
pub struct Engine {
    pub control: u32,
    pub errors: u32,
    /// Interrupts that have come and were not cleared.
    pub interrupts: u32,
    current: u64,
    tail: u64,
    /// There is something to do, up to the tail.
    is_busy: bool,
    /// Counts resets: what was under way before one does not happen.
    pub life: u64,
    resetting: u32,
    /// Packets complete, ever and since the last interrupt.
    pub packets: u64,
    pub uncounted: u32,
    /// When it can take the next packet, and when its last write-back is due.
    free_at: Instant,
    written_back_at: Instant,
    /// Received frames, and those that found no room.
    fifo: VecDeque<Vec<u8>>,
    pub overflows: u64,
}

impl Engine {
    /// As after power on.
    pub fn power_on(&mut self) {
        *self = Engine { life: self.life + 1, overflows: self.overflows, ..Engine::default() };
    }

    pub fn interrupts(&self) -> u32 {
        self.interrupts & self.control & channel::INTERRUPTS
    }

    pub fn read(&mut self, offset: u32) -> u32 {
        const CURRENT_HIGH: u32 = channel::CURRENT + 4;
        const TAIL_HIGH: u32 = channel::TAIL + 4;
        match offset {
            channel::CONTROL if self.resetting > 0 => {
                self.resetting -= u32::from(self.resetting != u32::MAX);
                channel::RESET
            }
            channel::CONTROL => self.control,
            channel::STATUS => {
                let halted = if self.control & channel::RUN == 0 { channel::HALTED } else { 0 };
                let idle = if self.is_busy { 0 } else { channel::IDLE };
                halted | idle | self.errors | self.interrupts
            }
            channel::CURRENT => self.current as u32,
            CURRENT_HIGH => (self.current >> 32) as u32,
            channel::TAIL => self.tail as u32,
            TAIL_HIGH => (self.tail >> 32) as u32,
            _ => panic!("no such register of a channel: {offset:#x}"),
        }
    }

    pub fn write(&mut self, offset: u32, value: u32, is_stuck: bool) {
        const CURRENT_HIGH: u32 = channel::CURRENT + 4;
        const TAIL_HIGH: u32 = channel::TAIL + 4;
        let low = |old: u64| old & !0xFFFF_FFFF | u64::from(value);
        let high = |old: u64| old & 0xFFFF_FFFF | u64::from(value) << 32;
        if self.resetting > 0 {
            assert!(offset == channel::CONTROL, "a write while the channel is being reset");
            return;
        }
        match offset {
            channel::CONTROL if value & channel::RESET != 0 && is_stuck => self.resetting = u32::MAX,
            channel::CONTROL if value & channel::RESET != 0 => {
                self.power_on();
                self.resetting = RESET_READS;
            }
            channel::CONTROL => self.control = value,
            channel::STATUS => self.interrupts &= !value,
            channel::CURRENT | CURRENT_HIGH => {
                assert!(
                    self.control & channel::RUN == 0,
                    "the current descriptor of a running channel is written"
                );
                self.current =
                    if offset == channel::CURRENT { low(self.current) } else { high(self.current) };
            }
            TAIL_HIGH => self.tail = high(self.tail),
            channel::TAIL => {
                self.tail = low(self.tail);
                self.is_busy = self.control & channel::RUN != 0;
            }
            _ => panic!("no such register of a channel: {offset:#x}"),
        }
    }

    fn fail(&mut self, error: u32) {
        self.errors |= error;
        self.interrupts |= channel::ERROR;
        self.control &= !channel::RUN;
        self.is_busy = false;
        // What was under way is not written back any more.
        self.life += 1;
    }
}

/// One packet, as its descriptors describe it.
pub struct Packet {
    index: usize,
    life: u64,
    /// Where its bytes are, and how many.
    pieces: Vec<(u64, usize)>,
    app: [u32; 5],
    descriptors: Vec<u64>,
    next: u64,
    is_last: bool,
}

impl Hardware {
    /// Lets all channels work as far as they can now.
    pub(super) fn pump(&mut self) {
        for index in 0..self.transmit.len() {
            while self.can_work(Direction::Transmit, index) {
                self.transmit_one(index);
            }
            while self.can_work(Direction::Receive, index) {
                self.receive_one(index);
            }
        }
        self.update_lines();
    }

    fn can_work(&mut self, direction: Direction, index: usize) -> bool {
        let now = self.now;
        let passes = self.mac.passes();
        let may_run = self.may_run(direction, index);
        let engine = self.engine(direction, index);
        let has_work = match direction {
            Direction::Transmit => passes,
            Direction::Receive => !engine.fifo.is_empty(),
        };
        may_run && has_work && engine.is_busy && engine.control & channel::RUN != 0 && engine.free_at <= now
    }

    /// A frame for a receive channel, from the MAC.
    pub(super) fn push(&mut self, index: usize, frame: Vec<u8>) {
        let engine = &mut self.receive[index];
        if engine.control & channel::RUN == 0 {
            return;
        }
        if engine.fifo.len() == FIFO {
            engine.overflows += 1;
            return;
        }
        engine.fifo.push_back(frame);
    }

    /// Something that goes wrong instead of the next packet; true if the channel has stopped.
    fn goes_wrong(&mut self, direction: Direction, index: usize) -> bool {
        if self.random.per_mille(self.faults.channel_error) {
            self.engine(direction, index).fail(channel::SLAVE_ERROR);
            return true;
        }
        if self.random.per_mille(self.faults.self_reset) {
            self.engine(direction, index).power_on();
            return true;
        }
        false
    }

    fn transmit_one(&mut self, index: usize) {
        if self.goes_wrong(Direction::Transmit, index) {
            return;
        }
        let packet = match self.fetch(index) {
            Ok(packet) => packet,
            Err(error) => return self.transmit[index].fail(error),
        };
        let len: usize = packet.pieces.iter().map(|(_, len)| len).sum();
        // A gigabit per second, with preamble, gap and frame check sequence.
        let time = Duration::from_nanos(8 * (len.max(60) as u64 + 24));
        let free_at = self.now.max(self.mac.free_at) + time;
        self.mac.free_at = free_at;
        let engine = &mut self.transmit[index];
        engine.is_busy = !packet.is_last;
        engine.current = packet.next;
        engine.free_at = free_at;
        self.at(free_at, Event::Leaves(packet));
    }

    /// The last byte of a packet is read, and it leaves. Bytes are read as late as that, so that a driver which lets go of
    /// them too early is found out.
    pub(super) fn leave(&mut self, packet: Packet) {
        let Packet { index, life, pieces, app, descriptors, .. } = packet;
        if self.transmit[index].life != life {
            return;
        }
        let mut frame = Vec::new();
        for (address, len) in pieces {
            match self.memory.device_read(address, len) {
                Some(bytes) => frame.extend(bytes),
                None => return self.transmit[index].fail(channel::DECODE_ERROR),
            }
        }
        if app[1] >> 10 & 0b11 == 0b01 {
            checksum::insert(&mut frame, app, self.faults.transmit_lies);
        }
        let has_error = self.random.per_mille(self.faults.packet_error);
        let status = COMPLETE | if has_error { PACKET_ERROR } else { 0 };
        let count = descriptors.len();
        for (at, address) in descriptors.into_iter().enumerate() {
            let words = vec![(address + 0x1C, status)];
            self.write_back(Direction::Transmit, index, self.now, words, at + 1 == count);
        }
        if has_error {
            return;
        }
        frame.resize(frame.len().max(60), 0);
        if self.mac.is_looped() { self.deliver(frame) } else { self.wire.push_back(frame) }
    }

    /// Reads the descriptors of the next packet.
    fn fetch(&self, index: usize) -> Result<Packet, u32> {
        let engine = &self.transmit[index];
        let mut packet = Packet {
            index,
            life: engine.life,
            pieces: Vec::new(),
            app: [0; 5],
            descriptors: Vec::new(),
            next: engine.current,
            is_last: false,
        };
        loop {
            let at = packet.next;
            let word = |offset: u64| self.memory.load(at + offset).ok_or(channel::DECODE_ERROR);
            let address =
                |offset| Ok::<_, u32>(u64::from(word(offset + 4)?) << 32 | u64::from(word(offset)?));
            let control = word(0x14)?;
            let is_first = control & FIRST != 0;
            let len = (control & LENGTH) as usize;
            // Given twice; no beginning, or two; nothing in it; no end.
            let is_done = word(0x1C)? & COMPLETE != 0;
            if is_done || is_first != packet.descriptors.is_empty() || len == 0 || packet.is_last {
                return Err(channel::INTERNAL_ERROR);
            }
            if is_first {
                for (app, offset) in packet.app.iter_mut().zip((0x20..).step_by(4)) {
                    *app = word(offset)?;
                }
            }
            packet.pieces.push((address(0x08)?, len));
            packet.descriptors.push(at);
            packet.next = address(0)?;
            packet.is_last = at == engine.tail;
            if control & LAST != 0 {
                return Ok(packet);
            }
        }
    }

    fn receive_one(&mut self, index: usize) {
        if self.goes_wrong(Direction::Receive, index) {
            return;
        }
        let Some(frame) = self.receive[index].fifo.pop_front() else { return };
        let app3 = u32::from(checksum::raw_sum(&frame));
        let app4 = if self.faults.receive_lies { 0b010 } else { checksum::status(&frame) };
        let app4 = if self.mac.verifies() { app4 } else { 0 };
        let has_error = self.random.per_mille(self.faults.packet_error);
        let mut rest = frame.as_slice();
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            let engine = &self.receive[index];
            if !engine.is_busy {
                // The end of the frame is lost.
                return;
            }
            let at = engine.current;
            let word = |offset: u64| self.memory.load(at + offset).unwrap_or(0);
            let address = |offset: u64| u64::from(word(offset + 4)) << 32 | u64::from(word(offset));
            let (buffer, room, next) = (address(0x08), (word(0x14) & LENGTH) as usize, address(0));
            if word(0x18) & COMPLETE != 0 || room == 0 {
                return self.receive[index].fail(channel::INTERNAL_ERROR);
            }
            let (now, later) = rest.split_at(rest.len().min(room));
            if !self.memory.device_write(buffer, now) {
                return self.receive[index].fail(channel::DECODE_ERROR);
            }
            let first = if is_first { 1 << 27 } else { 0 };
            let last = if later.is_empty() { 1 << 26 } else { 0 };
            let error = if has_error { PACKET_ERROR } else { 0 };
            let status = COMPLETE | first | last | error | now.len() as u32;
            let words = vec![(at + 0x2C, app3), (at + 0x30, app4), (at + 0x18, status)];
            (rest, is_first) = (later, false);
            let engine = &mut self.receive[index];
            engine.is_busy = at != engine.tail;
            engine.current = next;
            let due = self.now + Duration::from_nanos(200);
            self.write_back(Direction::Receive, index, due, words, last != 0);
        }
    }

    /// The engine's word that a descriptor is done, subject to faults.
    fn write_back(
        &mut self,
        direction: Direction,
        index: usize,
        mut due: Instant,
        words: Vec<(u64, u32)>,
        is_last: bool,
    ) {
        if self.random.per_mille(self.faults.never) {
            return;
        }
        if self.random.per_mille(self.faults.late) {
            let most = self.faults.late_by.as_nanos() as u64;
            let by = if self.faults.late_exactly { most } else { self.random.below(most) };
            due += Duration::from_nanos(by);
        }
        let any_order = self.faults.any_order;
        let engine = self.engine(direction, index);
        if !any_order {
            due = due.max(engine.written_back_at);
            engine.written_back_at = due;
        }
        let life = engine.life;
        self.at(due, Event::WriteBack { direction, index, life, words, is_last });
    }
}
