//! The queue contract: frames out of one FIFO and into the other, completions, interrupts.

use super::open::MS;
use super::{COMPLETIONS, Lan9118, Registers, control, regs};
use core::time::Duration;
use linerate_nic::{
    Buffer, Capabilities, Chunk, DeviceError, Frame, QueuePair, RxBatch, RxMeta, TxPacket, TxQueue, TxToken,
};
use linerate_wire::checksum::Sum;
use linerate_wire::units::Instant;

/// Bytes in front of a frame, so that the IP header lies at a multiple of four: with them the chip's sixteen bytes are
/// the Ethernet header, and the sum that checksums need begins with a word.
const OFFSET: usize = 2;
const FCS: usize = 4;
/// Offset and Ethernet header.
const FRONT: usize = 16;
/// Lengths with FCS that a frame may have: a header at least, a tag at most.
const LENGTHS: core::ops::RangeInclusive<usize> = FRONT - OFFSET + FCS..=1_522;
/// The fewest bytes of a piece that is neither the first of its frame nor the last (datasheet, TX buffer fragmentation rules).
const SHORTEST: usize = 4;
/// The longest frame sent, without FCS.
const LONGEST: usize = 1_518;
/// Units of the transmit level in `FIFO_INT`.
const LEVEL: usize = 64;
/// Most frames that the interrupt waits for: the FIFO holds six of full length, and one more may come until they are taken.
const MOST_FRAMES: u32 = 4;
/// How soon receiving is tried again when every buffer was in use.
const STARVED: Duration = Duration::from_millis(1);
/// How long a FIFO that is to be emptied waits for its side to stop: a full frame at 10 Mb/s takes 1.2 ms, and collisions make it longer.
const STOP: u32 = 10 * MS;
/// Readings after which a fast-forward or a dump has failed.
const MOST_READINGS: usize = 10_000;

impl<R: Registers> QueuePair for Lan9118<R> {
    fn enabled(&self) -> Capabilities {
        control::CAPABILITIES
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let before = batch.len();
        self.starved_until = None;
        loop {
            let waiting = self.waiting();
            if waiting == 0 || batch.is_full() {
                return Ok(batch.len() - before);
            }
            for _ in 0..waiting.min(u32::try_from(batch.room()).unwrap_or(u32::MAX)) {
                let Some(buffer) = self.pool.take() else {
                    self.starved_until = Some(now + STARVED);
                    self.stats.rx_starved += 1;
                    return Ok(batch.len() - before);
                };
                if let Some(frame) = self.take(buffer) {
                    // There is room: the loop goes no further than that.
                    self.stats.rx_frames += u64::from(batch.push(frame).is_ok());
                }
            }
        }
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        if queue.is_empty() {
            return Ok(0);
        }
        self.wants_room = None;
        let info = self.registers.read(regs::TX_FIFO_INF);
        self.read_statuses(info);
        let mut room = (info & 0xffff) as usize;
        let mut taken = 0;
        while let Some(packet) = queue.front() {
            let needed = space(packet);
            if needed > room || self.completions.len() == COMPLETIONS {
                self.stats.tx_full += 1;
                self.wants_room = Some(needed);
                break;
            }
            if packet.len() <= LONGEST {
                room -= needed;
                self.put(packet);
                self.stats.tx_frames += 1;
            } else {
                // No packet that a port hands over is so long.
                self.stats.drop_tx_errors += 1;
            }
            if packet.meta.token != TxToken(0) {
                self.completions.push_back(packet.meta.token);
            }
            queue.pop();
            taken += 1;
        }
        Ok(taken)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop_front()
    }

    fn arm(&mut self, _now: Instant) -> bool {
        self.arm_at(1)
    }

    fn waiting(&mut self) -> u32 {
        self.registers.read(regs::RX_FIFO_INF) >> 16 & 0xff
    }

    fn arm_for(&mut self, _now: Instant, frames: u32) -> Option<bool> {
        Some(self.arm_at(frames.clamp(1, MOST_FRAMES)))
    }

    fn most_counted(&self) -> Option<u32> {
        Some(MOST_FRAMES)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.starved_until
    }
}

impl<R: Registers> Lan9118<R> {
    /// Arms the interrupt for so many frames, and looks; true if there is something to do.
    fn arm_at(&mut self, frames: u32) -> bool {
        self.stats.arms += 1;
        let changed = self.handle_events();
        let mut wanted = regs::INT_PHY | regs::INT_RX_ERROR | regs::INT_TX_ERROR;
        if self.starved_until.is_none() {
            wanted |= regs::INT_RX_STATUS;
        }
        let room = self.wants_room.unwrap_or_default();
        if self.wants_room.is_some() {
            wanted |= regs::INT_TX_SPACE;
        }
        let level = room.div_ceil(LEVEL).min(0xff) as u32;
        // It interrupts when more statuses wait than the level says.
        self.registers.write(regs::FIFO_INT, level << 24 | (frames - 1));
        self.registers.write(regs::INT_EN, wanted);
        // Looked at after the events were cleared and the interrupt was armed, so that nothing comes in between unseen.
        let has_frames = self.starved_until.is_none() && self.waiting() >= frames;
        let has_room = self.wants_room.is_some()
            && (self.registers.read(regs::TX_FIFO_INF) & 0xffff) as usize >= room
            && self.completions.len() < COMPLETIONS;
        changed || has_frames || has_room || !self.completions.is_empty()
    }

    /// Takes the next frame out of the FIFO, exactly its words: one more would be the next frame's first.
    fn take(&mut self, mut buffer: Buffer) -> Option<Frame> {
        let status = self.registers.read(regs::RX_STATUS_FIFO);
        let len = (status >> 16 & 0x3fff) as usize;
        let words = (OFFSET + len).div_ceil(4);
        if status & (regs::RX_BAD | regs::RX_FILTERED) != 0 || !LENGTHS.contains(&len) {
            self.stats.drop_rx_errors += 1;
            self.skip(words);
            return None;
        }
        let end = OFFSET + len - FCS;
        // What of the frame fills words of its own; FCS and filling share the others.
        let whole = end & !3;
        let bytes = buffer.bytes_mut();
        self.registers.read_data(&mut bytes[..FRONT]);
        let raw = self.registers.read_summed(&mut bytes[FRONT..whole]);
        self.registers.read_data(&mut bytes[whole..words * 4]);
        let mut sum = Sum::from_raw(raw, whole - FRONT);
        sum.add(&bytes[whole..end]);
        let meta = RxMeta { raw_sum: Some(sum.folded()), ..RxMeta::default() };
        Some(Frame::new(buffer.freeze(OFFSET..end), meta))
    }

    /// Leaves out a frame of so many words. The chip skips only frames of which at least four words are left.
    fn skip(&mut self, words: usize) {
        if words < 4 {
            for _ in 0..words {
                self.registers.read(regs::RX_DATA_FIFO);
            }
            return;
        }
        self.registers.write(regs::RX_DP_CTRL, regs::RX_FAST_FORWARD);
        if !self.settles(regs::RX_DP_CTRL, regs::RX_FAST_FORWARD) {
            self.reset_receiver();
        }
    }

    /// Whether these bits of a register become zero.
    fn settles(&mut self, offset: usize, bits: u32) -> bool {
        (0..MOST_READINGS).any(|_| self.registers.read(offset) & bits == 0)
    }

    /// Writes a packet with its commands.
    fn put(&mut self, packet: &TxPacket) {
        let len = packet.len() as u32;
        let last = packet.chunks().iter().rposition(|chunk| !chunk.is_empty());
        let ends = if last.is_none() { regs::TX_LAST } else { 0 };
        self.put_piece(packet.header(), regs::TX_FIRST | ends, len);
        for (at, chunk) in packet.chunks().iter().enumerate().filter(|(_, chunk)| !chunk.is_empty()) {
            let ends = if Some(at) == last { regs::TX_LAST } else { 0 };
            if chunk.len() < SHORTEST && ends == 0 {
                return self.put_joined(&packet.chunks()[at..], len);
            }
            self.put_piece(chunk.bytes(), ends, len);
        }
    }

    /// Writes the rest of a packet in which a piece is too short for its place: that gets the first bytes of what follows. Takes no
    /// more of the FIFO than [`space`] says: from no chunk do two pieces begin, and none has more words than the chunk.
    #[cold]
    fn put_joined(&mut self, chunks: &[Chunk], packet_len: u32) {
        let ends = |left| if left == 0 { regs::TX_LAST } else { 0 };
        let mut left: usize = chunks.iter().map(Chunk::len).sum();
        let (mut joined, mut held) = ([0; SHORTEST], 0);
        for chunk in chunks {
            let mut bytes = chunk.bytes();
            if held > 0 {
                let (taken, rest) = bytes.split_at(bytes.len().min(SHORTEST - held));
                joined[held..held + taken.len()].copy_from_slice(taken);
                (held, bytes) = (held + taken.len(), rest);
                if held == SHORTEST || held == left {
                    left -= held;
                    self.put_piece(&joined[..held], ends(left), packet_len);
                    held = 0;
                }
            }
            if bytes.is_empty() {
                continue;
            }
            if bytes.len() < SHORTEST && bytes.len() < left {
                joined[..bytes.len()].copy_from_slice(bytes);
                held = bytes.len();
            } else {
                left -= bytes.len();
                self.put_piece(bytes, ends(left), packet_len);
            }
        }
    }

    fn put_piece(&mut self, bytes: &[u8], place: u32, packet_len: u32) {
        self.registers.write(regs::TX_DATA_FIFO, place | bytes.len() as u32);
        self.registers.write(regs::TX_DATA_FIFO, packet_len);
        self.registers.write_data(bytes);
    }

    /// Takes the statuses of frames that have left.
    fn read_statuses(&mut self, info: u32) {
        for _ in 0..info >> 16 & 0xff {
            if self.registers.read(regs::TX_STATUS_FIFO) & regs::TX_FAILED != 0 {
                self.stats.drop_tx_errors += 1;
            }
        }
    }

    /// Clears the events that have come and acts on them; returns whether there is something for the stack to see.
    fn handle_events(&mut self) -> bool {
        let events = self.registers.read(regs::INT_STS);
        // Only what was read: what comes meanwhile stays.
        self.registers.write(regs::INT_STS, events);
        self.stats.drop_rx_overrun += u64::from(self.registers.read(regs::RX_DROP));
        if events & regs::INT_RX_ERROR != 0 {
            self.reset_receiver();
        }
        if events & regs::INT_TX_ERROR != 0 {
            self.reset_transmitter();
        }
        if events & regs::INT_PHY == 0 {
            return false;
        }
        // A PHY that does not answer has no news.
        let changed = self.look_at_link().unwrap_or(false);
        self.stats.link_changes += u64::from(changed);
        changed && self.follow_link().is_ok()
    }

    /// Empties the receive FIFOs: what is in them can no longer be told apart. The receiver has to stand still (datasheet, stopping and
    /// starting the receiver); where it does not stop in time, or the MAC does not answer, there is no more to be done here.
    fn reset_receiver(&mut self) {
        self.stats.rx_resets += 1;
        let running = self.mac_cr | self.filter;
        self.registers.write(regs::INT_STS, regs::INT_RX_STOPPED);
        let _stopped = self.write_mac(regs::mac::CR, running & !regs::mac::RX_ENABLE).is_ok()
            && self.wait(STOP, |r| r.read(regs::INT_STS) & regs::INT_RX_STOPPED != 0);
        self.registers.write(regs::INT_STS, regs::INT_RX_STOPPED);
        let setting = (OFFSET as u32) << regs::RX_OFFSET_SHIFT;
        self.registers.write(regs::RX_CFG, setting | regs::RX_DUMP);
        let _emptied = self.settles(regs::RX_CFG, regs::RX_DUMP);
        let _started = self.write_mac(regs::mac::CR, running).is_ok();
    }

    /// Empties the transmit FIFOs, when the frame on its way has left (datasheet, stopping and starting the transmitter) or does not in time.
    fn reset_transmitter(&mut self) {
        self.stats.tx_resets += 1;
        let running = regs::TX_ON | regs::TX_STATUS_OVERRUN;
        let stopping = regs::TX_STOP | regs::TX_ON;
        self.registers.write(regs::TX_CFG, regs::TX_STATUS_OVERRUN | regs::TX_STOP);
        let _stopped = self.wait(STOP, |r| r.read(regs::TX_CFG) & stopping == 0);
        let dump = regs::TX_STATUS_DUMP | regs::TX_DATA_DUMP;
        self.registers.write(regs::TX_CFG, regs::TX_STATUS_OVERRUN | dump);
        let _emptied = self.settles(regs::TX_CFG, dump);
        self.registers.write(regs::TX_CFG, running);
    }
}

/// What a packet takes of the transmit FIFO: two commands and whole words for each piece.
fn space(packet: &TxPacket) -> usize {
    let piece = |len: usize| 8 + len.next_multiple_of(4);
    let chunks = packet.chunks().iter().map(|chunk| chunk.len()).filter(|len| *len > 0);
    piece(packet.header().len()) + chunks.map(piece).sum::<usize>()
}
