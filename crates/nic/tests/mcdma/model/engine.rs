//! The DMA engine: each channel works through its ring.

use super::join::Joined;
use super::words::{Asked, Found};
use super::{Event, Hardware};
use core::time::Duration;
use linerate_nic::Pacing;
use linerate_nic::mcdma::Direction;
use linerate_nic::mcdma::regs::mm2s_ch as ch;
use linerate_wire::units::Instant;
use std::collections::VecDeque;

/// Frames that a receive channel keeps while it has no descriptor.
const FIFO: usize = 64;
/// Reads of its control register that a reset takes.
pub const RESET_READS: u32 = 3;
/// Descriptors that a receive channel has read ahead.
const PREFETCH: usize = 8;
/// What patience counts in: 64 clocks.
const PATIENCE_UNIT: Duration = Duration::from_nanos(410);
/// How long the first of joined segments waits for the others.
const JOIN_TIME: Duration = Duration::from_micros(20);
/// Which of the enables, and of the interrupts that have come.
const INTERRUPTS: u32 = ch::SR_IOC | ch::SR_DLY | ch::SR_ERR;

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
    pub fifo: VecDeque<Vec<u8>>,
    pub overflows: u64,
    /// The frame that is being written, how far, and since when it waits for a descriptor.
    writing: Option<Writing>,
    /// What a pacer beside the engine does.
    pub pacer: Option<Pacing>,
}

/// A frame on its way to memory.
struct Writing {
    frame: Vec<u8>,
    at: usize,
    app: [u32; 5],
    has_error: bool,
    waits_since: Option<Instant>,
}

impl Engine {
    /// As after power on.
    pub fn power_on(&mut self) {
        *self = Engine { life: self.life + 1, overflows: self.overflows, ..Engine::default() };
    }

    pub fn interrupts(&self) -> u32 {
        self.interrupts & self.control & INTERRUPTS
    }

    pub fn read(&mut self, offset: u32) -> u32 {
        match offset {
            ch::CR if self.resetting > 0 => {
                self.resetting -= u32::from(self.resetting != u32::MAX);
                ch::CR_RESET
            }
            ch::CR => self.control,
            ch::SR => {
                let halted = if self.control & ch::CR_RS == 0 { ch::SR_HALTED } else { 0 };
                let idle = if self.is_busy || halted != 0 { 0 } else { ch::SR_IDLE };
                halted | idle | self.errors | self.interrupts
            }
            ch::CURDESC => self.current as u32,
            ch::CURDESC_MSB => (self.current >> 32) as u32,
            ch::TAILDESC => self.tail as u32,
            ch::TAILDESC_MSB => (self.tail >> 32) as u32,
            _ => panic!("no such register of a channel: {offset:#x}"),
        }
    }

    pub fn write(&mut self, offset: u32, value: u32, is_stuck: bool) {
        let low = |old: u64| old & !0xFFFF_FFFF | u64::from(value);
        let high = |old: u64| old & 0xFFFF_FFFF | u64::from(value) << 32;
        if self.resetting > 0 {
            assert!(offset == ch::CR, "a write while the channel is being reset");
            return;
        }
        match offset {
            ch::CR if value & ch::CR_RESET != 0 => self.reset(is_stuck),
            ch::CR => self.control = value & !if self.errors != 0 { ch::CR_RS } else { 0 },
            ch::SR => self.interrupts &= !value,
            ch::CURDESC | ch::CURDESC_MSB => {
                assert!(
                    self.control & ch::CR_RS == 0,
                    "the current descriptor of a running channel is written"
                );
                self.current = if offset == ch::CURDESC { low(self.current) } else { high(self.current) };
            }
            ch::TAILDESC_MSB => self.tail = high(self.tail),
            ch::TAILDESC => {
                self.tail = low(self.tail);
                self.is_busy = self.control & ch::CR_RS != 0;
            }
            _ => panic!("no such register of a channel: {offset:#x}"),
        }
    }

    /// Begins a reset, which does not come to an end if it `is_stuck`.
    pub fn reset(&mut self, is_stuck: bool) {
        if is_stuck {
            self.resetting = u32::MAX;
            return;
        }
        self.power_on();
        self.resetting = RESET_READS;
    }

    /// Whether all is as after power on, for the direction's reset; it takes a read.
    pub fn is_reset(&mut self) -> bool {
        self.read(ch::CR) & ch::CR_RESET == 0
    }

    fn fail(&mut self, error: u32) {
        self.errors |= error;
        self.interrupts |= ch::SR_ERR;
        self.control &= !ch::CR_RS;
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
    /// Where the chain of a receive channel goes on behind what it has read ahead, which it shows while it runs.
    pub(super) fn read_ahead(&self, index: usize) -> u64 {
        let engine = &self.receive[index];
        let mut at = engine.current;
        if !engine.is_busy {
            return at;
        }
        for _ in 0..PREFETCH {
            let is_tail = at == engine.tail;
            let word = |offset: u64| u64::from(self.memory.load(at + offset).unwrap_or(0));
            at = word(4) << 32 | word(0);
            if is_tail {
                break;
            }
        }
        at
    }

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
            Direction::Receive => !engine.fifo.is_empty() || engine.writing.is_some(),
        };
        may_run && has_work && engine.is_busy && engine.control & ch::CR_RS != 0 && engine.free_at <= now
    }

    /// A frame for a receive channel, from the MAC.
    pub(super) fn push(&mut self, index: usize, frame: Vec<u8>) {
        let engine = &mut self.receive[index];
        if engine.control & ch::CR_RS == 0 {
            return;
        }
        if engine.fifo.len() == FIFO {
            engine.overflows += 1;
            return;
        }
        engine.fifo.push_back(frame);
        if self.mac.joins() && engine.fifo.len() == 1 {
            engine.free_at = self.now + JOIN_TIME;
            self.at(self.now + JOIN_TIME, Event::Wake);
        }
    }

    /// Something that goes wrong instead of the next packet; true if the channel has stopped.
    fn goes_wrong(&mut self, direction: Direction, index: usize) -> bool {
        if self.random.per_mille(self.faults.channel_error) {
            self.engine(direction, index).fail(ch::SR_SLV_ERR);
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
                None => return self.transmit[index].fail(ch::SR_DEC_ERR),
            }
        }
        let asked = Asked::read(self.words, app);
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
        for (mut frame, seed) in asked.split(frame) {
            asked.fill_in(&mut frame, seed, self.faults.transmit_lies);
            frame.resize(frame.len().max(60), 0);
            if self.mac.is_looped() { self.deliver(frame) } else { self.wire.push_back(frame) }
        }
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
            let word = |offset: u64| self.memory.load(at + offset).ok_or(ch::SR_DEC_ERR);
            let address =
                |offset| Ok::<_, u32>(u64::from(word(offset + 4)?) << 32 | u64::from(word(offset)?));
            let control = word(0x14)?;
            let is_first = control & FIRST != 0;
            let len = (control & LENGTH) as usize;
            // Given twice; no beginning, or two; nothing in it; no end.
            let is_done = word(0x1C)? & COMPLETE != 0;
            if is_done || is_first != packet.descriptors.is_empty() || len == 0 || packet.is_last {
                return Err(ch::SR_INT_ERR);
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

    /// Writes the next frame, or goes on with one that waits for a descriptor.
    fn receive_one(&mut self, index: usize) {
        if self.goes_wrong(Direction::Receive, index) {
            return;
        }
        let now = self.now;
        let unfinished = self.receive[index].writing.take();
        // What has waited for too long is dropped, or cut off where it is.
        let [units, forever] = [self.patience & 0xFFFF, self.patience >> 16];
        let waits_on = |at: Instant| forever != 0 || now < at + PATIENCE_UNIT * units;
        let unfinished = unfinished.filter(|writing| writing.waits_since.is_none_or(waits_on));
        let Some(mut writing) = unfinished.or_else(|| self.next_frame(index)) else { return };
        while writing.at < writing.frame.len() {
            let engine = &self.receive[index];
            if !engine.is_busy {
                writing.waits_since = writing.waits_since.or(Some(now));
                self.receive[index].writing = Some(writing);
                return;
            }
            writing.waits_since = None;
            let at = engine.current;
            let word = |offset: u64| self.memory.load(at + offset).unwrap_or(0);
            let address = |offset: u64| u64::from(word(offset + 4)) << 32 | u64::from(word(offset));
            // Used up to a multiple of 64.
            let (buffer, room, next) = (address(0x08), (word(0x14) & LENGTH) as usize / 64 * 64, address(0));
            if word(0x18) & COMPLETE != 0 || room == 0 || !buffer.is_multiple_of(64) {
                return self.receive[index].fail(ch::SR_INT_ERR | ch::SR_SG_ERR);
            }
            let end = writing.frame.len().min(writing.at + room);
            if !self.memory.device_write(buffer, &writing.frame[writing.at..end]) {
                return self.receive[index].fail(ch::SR_DEC_ERR);
            }
            let is_last = end == writing.frame.len();
            let first = if writing.at == 0 { 1 << 27 } else { 0 };
            let last = if is_last { 1 << 26 } else { 0 };
            let error = if writing.has_error { PACKET_ERROR } else { 0 };
            let status = COMPLETE | first | last | error | (end - writing.at) as u32;
            let app = (0x20..).step_by(4).zip(writing.app).filter(|_| is_last);
            let mut words: Vec<(u64, u32)> = app.map(|(offset, word)| (at + offset, word)).collect();
            words.push((at + 0x18, status));
            writing.at = end;
            let engine = &mut self.receive[index];
            engine.is_busy = at != engine.tail;
            engine.current = next;
            let due = now + Duration::from_nanos(200);
            self.write_back(Direction::Receive, index, due, words, is_last);
        }
    }

    /// The next frame from the FIFO, with what is found out about it; several that are joined are one.
    fn next_frame(&mut self, index: usize) -> Option<Writing> {
        let engine = &mut self.receive[index];
        let frame = engine.fifo.pop_front()?;
        let mut found = Found::of(&frame, &self.mac.key(), self.mac.verifies(), self.faults.receive_lies);
        found.queue = index as u32;
        let mut joined = Joined::new(frame);
        while self.mac.joins() && engine.fifo.front().is_some_and(|other| joined.take(other)) {
            engine.fifo.pop_front();
        }
        (found.segments, found.segment_size) = (joined.segments, joined.segment_size);
        let has_error = self.random.per_mille(self.faults.packet_error);
        let frame = joined.finish();
        Some(Writing { frame, at: 0, app: found.write(self.words), has_error, waits_since: None })
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
