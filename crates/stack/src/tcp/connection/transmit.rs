//! Writing packets, and noting what was sent only after it is in the packet.

use super::super::delayed_ack::AckDue;
use super::super::segment::{Head, TxInfo, TxLimits};
use super::super::sequence::wrap;
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::Connection;
use super::device::Packet;
use super::output::Plan;
use super::recovery::Recovery;
use linerate_nic::TxPacket;
use linerate_wire::division::div_ceil;
use linerate_wire::tcp::{Builder, Flags, MAX_SACK_BLOCKS, Options, PlainBuilder, SeqNumber, Timestamps};
use linerate_wire::units::Instant;

/// Bytes of the timestamps option, padded (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// Where a packet goes.
pub(super) struct Out<'a> {
    pub now: Instant,
    pub limits: &'a TxLimits,
    pub packet: &'a mut TxPacket,
    pub l4_offset: usize,
}

impl Connection {
    /// Payload bytes of a full segment with the options that are due now.
    pub(super) fn payload_room(&self) -> u64 {
        let timestamps = if self.handshake.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        let options = if self.handshake.sack && self.receiving.receiver.has_blocks() {
            let options = Options {
                timestamps: self.handshake.timestamps.map(|_| Timestamps::default()),
                sack_blocks: self.sack_blocks(),
                ..Options::default()
            };
            options.emitted_len()
        } else {
            timestamps
        };
        u64::from(self.segment_limit()) - options as u64
    }

    fn sack_blocks(&self) -> linerate_wire::tcp::SackBlocks {
        let any = self.handshake.sack && self.receiving.receiver.has_blocks();
        if any { self.receiving.receiver.blocks(self.sack_room()) } else { Default::default() }
    }

    /// SACK blocks that fit beside the other options (RFC 2018 section 3).
    fn sack_room(&self) -> usize {
        MAX_SACK_BLOCKS - usize::from(self.handshake.timestamps.is_some())
    }

    pub(super) fn timestamps_option(&self, now: Instant) -> Timestamps {
        let echo = self.handshake.timestamps.map_or(0, |state| state.recent);
        Timestamps { value: self.handshake.timestamp(now), echo }
    }

    /// Writes the header of a segment without payload, or before its payload is known to the header: nothing in it
    /// depends on payload.
    pub(super) fn emit(&mut self, out: &mut Out<'_>, position: u64, flags: Flags) -> Option<TxInfo> {
        let (in_syn, is_reset) = (flags.contains(Flags::SYN), flags.contains(Flags::RST));
        let has_ack = flags.contains(Flags::ACK);
        let echo = has_ack && !in_syn && !is_reset;
        let has_blocks = self.handshake.sack && self.receiving.receiver.has_blocks() && !is_reset;
        let window = self.receiving.receiver.window_field(in_syn);
        let plain = PlainBuilder {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            sequence: wrap(position),
            acknowledgement: if has_ack { wrap(self.receiving.receiver.next()) } else { SeqNumber(0) },
            flags: if echo { flags | self.sender.ecn.ack_flags() } else { flags },
            window: if is_reset { 0 } else { window },
            // RFC 7323 section 3.2: in resets too.
            timestamps: self.handshake.timestamps.map(|_| self.timestamps_option(out.now)),
        };
        let header_len = if in_syn || has_blocks {
            self.emit_options(out, &plain)?
        } else {
            let end = out.l4_offset + plain.header_len();
            plain.emit(out.packet.header_mut(end).get_mut(out.l4_offset..)?).ok()?
        };
        if has_ack && !is_reset {
            self.receiving.receiver.blocks_sent(self.sack_room());
            self.receiving.ack.on_sent();
            if self.handshake.sack && self.receiving.receiver.has_unreported() {
                // One acknowledgement does not tell all that the batch brought: what is not known seems lost.
                self.receiving.ack.now();
            }
            self.timers.stop(Timer::DelayedAck);
            self.receiving.last_ack_sent = self.receiving.receiver.next();
        }
        Some(TxInfo { header_len, segments: 1, ..TxInfo::default() })
    }

    /// The same with the options of a SYN, or with SACK blocks.
    #[inline(never)]
    fn emit_options(&self, out: &mut Out<'_>, plain: &PlainBuilder) -> Option<usize> {
        let options = if plain.flags.contains(Flags::SYN) {
            self.syn_options(out.now)
        } else {
            let sack_blocks = self.sack_blocks();
            Options { timestamps: plain.timestamps, sack_blocks, ..Options::default() }
        };
        let builder = Builder {
            source_port: plain.source_port,
            destination_port: plain.destination_port,
            sequence: plain.sequence,
            acknowledgement: plain.acknowledgement,
            flags: plain.flags,
            window: plain.window,
            options,
            ..Builder::default()
        };
        let end = out.l4_offset + builder.header_len();
        builder.emit(out.packet.header_mut(end).get_mut(out.l4_offset..)?).ok()
    }

    pub(super) fn emit_ack(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        let info = self.emit(out, self.sender.nxt, Flags::ACK)?;
        self.accounts.counters.acks_sent += 1;
        Some(info)
    }

    /// Whether an acknowledgement is due that says how far the peer's data has come, and nothing else can be: then
    /// [`Connection::answer`] says what [`Connection::poll_transmit`] would write, and that it is the last.
    #[inline]
    pub(crate) fn owes_bare_ack(&self) -> bool {
        self.receiving.ack.due() == AckDue::Now
            && self.life.state == State::Established
            && self.is_known_to_be_idle()
            && !self.receiving.ack.owes_duplicates()
            && !self.receiving.receiver.has_blocks()
            && self.life.reset_reply.is_none()
            && !self.life.keep_alive_due
            && self.sender.ecn.ack_flags() == Flags::EMPTY
    }

    /// That acknowledgement, which the caller must queue.
    #[inline]
    pub(crate) fn bare_ack(&mut self, now: Instant) -> Head {
        self.device.is_full = false;
        let window = self.receiving.receiver.window_field(false);
        let next = self.receiving.receiver.next();
        self.receiving.receiver.blocks_sent(self.sack_room());
        self.receiving.ack.on_sent();
        self.timers.stop(Timer::DelayedAck);
        self.receiving.last_ack_sent = next;
        self.accounts.counters.acks_sent += 1;
        Head {
            seq: wrap(self.sender.nxt),
            ack: wrap(next),
            flags: Flags::ACK,
            window,
            timestamps: self.handshake.timestamps.map(|_| self.timestamps_option(now)),
        }
    }

    /// One byte beyond the closed window, to learn whether it is still closed (RFC 9293 section 3.8.6.1). It does not
    /// count as sent: if the peer takes it, its acknowledgement says so.
    pub(super) fn emit_window_probe(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        if self.sender.queue.gather(self.sender.nxt, 1, out.packet) == 0 {
            return None;
        }
        let mut info = self.emit(out, self.sender.nxt, Flags::ACK)?;
        info.payload_len = 1;
        self.sender.probe_end = self.sender.nxt + 1;
        self.accounts.counters.window_probes += 1;
        self.sender.probes = self.sender.probes.saturating_add(1);
        let interval = self.probe_interval();
        self.timers.set(Timer::Persist, out.now + interval);
        Some(info)
    }

    /// Puts the planned segment (or super-segment) into the packet.
    pub(super) fn transmit(&mut self, out: &mut Out<'_>, plan: Plan) -> Option<TxInfo> {
        let payload = self.payload_room();
        // CWR goes out in a single segment: not every device knows that it belongs on the first of many alone.
        let one = self.sender.ecn.is_cwr_due() && !plan.retransmission;
        let most = if one { plan.len.min(payload) } else { plan.len };
        let got = self.sender.queue.gather(plan.start, most, out.packet);
        let is_whole = got == plan.len;
        let fin = plan.fin && is_whole;
        if got == 0 && !fin {
            return None;
        }
        let mut flags = Flags::ACK;
        let end = plan.start + got;
        if fin {
            flags |= Flags::FIN;
        }
        if got > 0 && end == self.sender.queue.end() {
            flags |= Flags::PSH;
        }
        if got > 0 && !plan.retransmission {
            self.receiving.ack.on_answer();
        }
        flags |= self.cwr_flag(got, plan.retransmission);
        let mut info = self.emit(out, plan.start, flags)?;
        let segments = if self.is_size_probe(plan.start) { 1 } else { div_ceil(got, payload).max(1) };
        info.payload_len = got as usize;
        info.segments = segments as u32;
        // A segment is at most 64 KiB, so the size fits.
        let is_split = got > payload && !self.is_size_probe(plan.start);
        info.segment_size = if is_split { payload as u16 } else { 0 };
        info.retransmission = plan.retransmission;
        info.ecn = self.ecn_mark(got, plan.retransmission);
        let end = end + u64::from(fin);
        let serial = if plan.retransmission {
            self.watch_path_on_resent(out.now, plan.start, end);
            self.note_retransmission(out.now, plan.start, end, segments)
        } else {
            self.watch_path_on_sent(plan.start, got, payload);
            self.note_new(out.now, end, fin)
        };
        if plan.is_loss_probe {
            self.loss_probe_sent(self.sender.nxt, plan.retransmission);
        }
        if matches!(self.loss.recovery, Recovery::Fast { .. }) {
            self.loss.prr.on_sent(got);
        }
        if got > 0 {
            self.accounts.counters.segments_sent += segments;
        }
        self.note_paced(out.now, got);
        self.accounts.last.sent = out.now;
        self.sender.probe_due = false;
        let (start, retransmission) = (plan.start, plan.retransmission);
        info.completion =
            self.sent(out, Packet { tag: 0, start, end, serial, retransmission, reported: false });
        Some(info)
    }

    /// Returns the number of the transmission.
    fn note_retransmission(&mut self, now: Instant, start: u64, end: u64, segments: u64) -> u64 {
        let stamp = self.handshake.timestamp(now);
        let (serial, twice) = self.loss.board.mark_resent(now, start, end, stamp);
        self.loss.note_repeat(start, end, stamp, twice);
        self.loss.force = false;
        self.accounts.counters.retransmits += segments;
        self.accounts.counters.bytes_retransmitted += end.min(self.sender.queue.end()).saturating_sub(start);
        serial
    }

    /// Returns the number of the transmission.
    fn note_new(&mut self, now: Instant, end: u64, fin: bool) -> u64 {
        if self.sender.una == self.sender.nxt {
            self.stall(now);
            self.timers.stop(Timer::Persist);
        }
        self.sender.nxt = end;
        let pipe = self.pipe();
        self.sender.note_peak(pipe);
        if fin {
            self.sender.fin_sent = true;
            self.follow(now, Event::FinSent);
        }
        self.loss.board.new_serial()
    }

    /// Notes that a packet went to the device; returns the tag to complete it with. Without completions it has left.
    pub(super) fn sent(&mut self, out: &Out<'_>, packet: Packet) -> Option<u32> {
        if !out.limits.completions {
            self.left(out.now, packet);
            return None;
        }
        let tag = self.device.enter(packet);
        if !self.timers.is_running(Timer::Retransmit) {
            self.watch_device(out.now);
        }
        Some(tag)
    }

    /// As [`Connection::note_departure`], and the wait for a loss probe begins anew.
    pub(super) fn left(&mut self, now: Instant, packet: Packet) {
        if self.note_departure(now, packet) {
            self.await_loss_probe(now);
        }
    }

    /// The retransmission timer runs from here, and round trips are measured from here: time in the queue to the device
    /// is not the network's. False where the packet does not matter any more.
    pub(super) fn note_departure(&mut self, now: Instant, packet: Packet) -> bool {
        if packet.end <= self.sender.una
            || self.life.state == State::Closed
            || self.life.state == State::TimeWait
        {
            return false;
        }
        let timeout = self.sender.rtt.timeout_from(now);
        if packet.retransmission {
            self.loss.board.left_again(packet.start, packet.end, packet.serial, now);
            if packet.start <= self.sender.una {
                // RFC 6675 section 6: what is watched has just been sent.
                self.timers.set(Timer::Retransmit, timeout);
            }
        } else {
            self.loss.board.left_first(packet.end, packet.serial, now);
            self.sender.left_end = self.sender.left_end.max(packet.end);
        }
        if core::mem::take(&mut self.device.is_watched) {
            self.timers.set(Timer::Retransmit, timeout);
        } else {
            self.timers.set_if_idle(Timer::Retransmit, timeout);
        }
        true
    }
}
