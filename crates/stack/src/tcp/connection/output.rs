//! Deciding what to send next, in this order: a reset, a SYN, owed duplicate acknowledgements, a tail loss probe, what was
//! lost, new data, a window or keep-alive probe, an acknowledgement.

use super::super::congestion::CongestionControl as _;
use super::super::delayed_ack::AckDue;
use super::super::segment::{TxInfo, TxLimits};
use super::super::shortcuts_are_off;
use super::super::state::State;
use super::super::timers::Timer;
use super::Connection;
use super::blocked::Blocked;
use super::device::Packet;
use super::recovery::Frto;
use super::recovery::Recovery;
use super::transmit::Out;
use core::time::Duration;
use linerate_nic::TxPacket;
use linerate_transport::LimitCause;
use linerate_wire::division::rest;
use linerate_wire::tcp::Flags;
use linerate_wire::units::Instant;

/// What a segment takes from the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub start: u64,
    /// Payload bytes.
    pub len: u64,
    pub fin: bool,
    pub retransmission: bool,
    pub is_loss_probe: bool,
}

impl Connection {
    /// Writes the next packet that is due: the TCP header at `l4_offset` of the header block (whose length is set to
    /// the end of the TCP header), payload into the gather list, checksum field zero. The caller fills in the lower
    /// layers and the checksum and **must** then queue the packet; before it calls, it must have a free slot and know
    /// the way to the next hop. `None`: nothing is due now.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        limits: &TxLimits,
        packet: &mut TxPacket,
        l4_offset: usize,
    ) -> Option<TxInfo> {
        self.close_open(now);
        self.device.is_full = false;
        let mut out = Out { now, limits, packet, l4_offset };
        if let Some(reply) = self.life.reset_reply.take() {
            return self.emit(&mut out, u64::from(reply.0), Flags::RST);
        }
        match self.life.state {
            State::Closed | State::Listen => self.transmit_reset(&mut out),
            State::SynSent | State::SynReceived => self.transmit_syn(&mut out),
            _ => self.transmit_synchronized(&mut out),
        }
    }

    fn transmit_reset(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        if !self.life.reset_due {
            return None;
        }
        self.life.reset_due = false;
        self.emit(out, self.sender.nxt, Flags::RST | Flags::ACK)
    }

    fn transmit_syn(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        if !self.handshake.syn_due
            || self.device.contains(self.sender.una, self.sender.nxt.max(self.sender.una + 1))
        {
            if let Some(info) = self.transmit_early(out) {
                return Some(info);
            }
            // What is not acceptable is answered here too, once the peer has our SYN (RFC 9293 section 3.10.7.4).
            let answers = self.life.state == State::SynReceived && self.sender.nxt > self.sender.una;
            return if answers && self.receiving.ack.due() == AckDue::Now {
                self.emit_ack(out)
            } else {
                None
            };
        }
        let start = self.sender.una;
        let retransmission = self.sender.nxt > start;
        let flags = if self.life.state == State::SynReceived {
            Flags::SYN | Flags::ACK | self.sender.ecn.syn_ack_flags()
        } else {
            Flags::SYN | self.sender.ecn.syn_flags(self.config.socket.ecn, self.handshake.syn_retries > 0)
        };
        let mut info = self.emit(out, start, flags)?;
        self.handshake.syn_due = false;
        if retransmission {
            self.take_back_early_data();
            self.loss.board.forget_departures();
            self.accounts.counters.retransmits += 1;
        }
        self.sender.nxt = start + 1;
        info.retransmission = retransmission;
        let serial = self.loss.board.new_serial();
        info.completion =
            self.sent(out, Packet { tag: 0, start, end: start + 1, serial, retransmission, reported: false });
        Some(info)
    }

    fn transmit_synchronized(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        if self.receiving.ack.owes_duplicates() {
            return self.emit_ack(out);
        }
        if self.life.state.can_transmit() && !self.is_known_to_be_idle() {
            match self.plan(out) {
                Ok(plan) => {
                    if let Some(info) = self.transmit(out, plan) {
                        self.unblocked(out.now, LimitCause::Processor);
                        return Some(TxInfo { is_last: self.is_done(out.now), ..info });
                    }
                }
                Err(cause) => {
                    self.blocked(out.now, cause);
                    self.watch_window(out.now, cause);
                    if self.sender.probe_due && cause == Blocked::PeerWindow {
                        self.sender.probe_due = false;
                        return self.emit_window_probe(out);
                    }
                    self.sender.probe_due = false;
                }
            }
        } else if !self.life.state.can_transmit() && self.life.state != State::TimeWait {
            self.unblocked(out.now, LimitCause::Application);
        }
        if self.life.keep_alive_due {
            self.life.keep_alive_due = false;
            self.accounts.counters.keep_alive_probes += 1;
            return self.emit(out, self.sender.nxt - 1, Flags::ACK);
        }
        if self.receiving.ack.due() == AckDue::Now {
            let info = self.emit_ack(out)?;
            return Some(TxInfo { is_last: self.receiving.ack.due() != AckDue::Now, ..info });
        }
        None
    }

    /// After a segment with data: whether it is plain that nothing else is due now. What a plan would note, which found
    /// that the application gives no more, is noted then.
    fn is_done(&mut self, now: Instant) -> bool {
        let is_done = self.sender.nxt == self.sender.queue.end()
            && !self.sender.fin_queued
            && self.receiving.ack.due() != AckDue::Now
            && !self.receiving.ack.owes_duplicates()
            && self.loss.loss_probe.is_quiet()
            && self.loss.board.next_lost().is_none()
            && !self.life.keep_alive_due
            && !shortcuts_are_off();
        if is_done {
            let cause = self.idle_cause();
            self.blocked(now, cause);
            self.watch_window(now, cause);
        }
        is_done
    }

    /// Chooses the next segment, or says what prevents one.
    fn plan(&mut self, out: &Out<'_>) -> Result<Plan, Blocked> {
        let payload = self.payload_room();
        // Divided in the processor's own size, as below: a segment's length fits, and a division of 64 bits is long where it has 32.
        let whole = out.limits.max_payload / payload as usize * payload as usize;
        let most = (whole as u64).max(payload);
        if let Some(plan) = self.plan_loss_probe(payload) {
            return Ok(plan);
        }
        let most = self.paced_size(most, payload);
        let retransmission = self.plan_retransmission(payload, most);
        if let Some(plan) = retransmission.transpose()? {
            return self.pace(out.now, plan);
        }
        let plan = self.plan_new(out.now, payload, most)?;
        self.pace(out.now, plan)
    }

    /// How many bytes more may be in the network: what recovery allows (RFC 9937), else the congestion window, which has
    /// room for a segment of `payload` bytes at least.
    pub(super) fn congestion_room(&self, payload: u64) -> u64 {
        match self.loss.recovery {
            Recovery::Fast { .. } => self.loss.prr.room(),
            _ => self.sender.congestion.window().max(payload).saturating_sub(self.pipe()),
        }
    }

    /// The first lost range (RFC 6675 NextSeg rule 1), if congestion control permits or the rules demand it.
    pub(super) fn plan_retransmission(&self, payload: u64, most: u64) -> Option<Result<Plan, Blocked>> {
        if self.loss.frto == Frto::Second {
            return None;
        }
        let (start, end) = self.loss.board.next_lost()?;
        let wanted = (end - start).min(most);
        let room = self.congestion_room(payload);
        let mut len = wanted.min(room);
        if len < wanted {
            len -= (len as usize % payload as usize) as u64;
        }
        if self.loss.force {
            len = len.max(payload.min(wanted));
        }
        if len == 0 {
            return Some(Err(Blocked::Congestion));
        }
        // A window that shrank since is respected; one that closed is probed after a timeout by what is outstanding (RFC
        // 9293 section 3.8.6.1, RFC 7323 section 2.4).
        let window = self.sender.window.edge.saturating_sub(start);
        if len > window {
            let insists = self.loss.force && matches!(self.loss.recovery, Recovery::Timeout { .. });
            len = match window {
                0 if insists => len.min(payload),
                0 => return Some(Err(Blocked::PeerWindow)),
                _ => window,
            };
        }
        if self.device.contains(start, start + len) {
            return Some(Err(Blocked::Device));
        }
        let data_end = self.sender.queue.end();
        let fin = self.sender.fin_sent && start + len > data_end;
        let len = len.min(data_end.saturating_sub(start));
        Some(Ok(Plan { start, len, fin, retransmission: true, is_loss_probe: false }))
    }

    /// New data: a longer segment that asks the path how long they may be, or what [`Connection::size_new`] says.
    pub(super) fn plan_new(&mut self, now: Instant, payload: u64, most: u64) -> Result<Plan, Blocked> {
        let available = self.sender.queue.ready_end().saturating_sub(self.sender.nxt);
        if available > 0 && !self.sender.fin_sent && !self.fills_device() {
            self.restart_after_idle(now);
            if let Some(plan) = self.plan_size_probe(now, payload, available) {
                return Ok(plan);
            }
        }
        self.size_new(payload, most)
    }

    /// What the queue has ready, within the peer's and the congestion window, in full segments if possible.
    pub(super) fn size_new(&self, payload: u64, most: u64) -> Result<Plan, Blocked> {
        if self.sender.fin_sent || self.sender.nxt > self.sender.queue.end() {
            return Err(Blocked::Application);
        }
        let (start, ready) = (self.sender.nxt, self.sender.queue.ready_end());
        let available = ready.saturating_sub(start);
        let is_all = ready == self.sender.queue.end();
        let fin = self.sender.fin_queued && is_all && self.life.state.can_transmit();
        let window = self.sender.window.edge.saturating_sub(start);
        if available == 0 {
            return match fin {
                true if window > 0 || self.sender.probe_due => {
                    Ok(Plan { start, len: 0, fin, retransmission: false, is_loss_probe: false })
                }
                true => Err(Blocked::PeerWindow),
                false => Err(self.idle_cause()),
            };
        }
        if self.fills_device() {
            return Err(Blocked::Device);
        }
        let offered = available.min(window).min(most);
        let mut len = offered.min(self.congestion_room(payload));
        if len == available && is_all {
            let tail = rest(len, payload);
            if tail > 0 && self.nagle_holds(len, payload, fin) {
                len -= tail;
                if len == 0 {
                    return Err(self.held_cause());
                }
            }
        } else if len >= payload {
            len -= rest(len, payload);
        } else if len < offered {
            return Err(Blocked::Congestion);
        } else if len == available && (self.sender.queue.is_reading() || self.next_file_read().is_some()) {
            // The rest of a full segment is on its way from the file.
            return Err(Blocked::Application);
        } else if len == 0 || (len < available && len < self.sender.window.max / 2 && !self.sender.probe_due)
        {
            // RFC 9293 section 3.8.6.2.1: no silly windows.
            return Err(Blocked::PeerWindow);
        }
        let fin = fin && start + len == ready && window > len;
        Ok(Plan { start, len, fin, retransmission: false, is_loss_probe: false })
    }

    /// RFC 9293 section 3.7.4: a segment that is not full waits while anything is unacknowledged.
    fn nagle_holds(&self, len: u64, payload: u64, fin: bool) -> bool {
        !self.config.socket.no_delay && !fin && (self.sender.una < self.sender.nxt || len > payload)
    }

    /// RFC 5681 section 4.1.
    fn restart_after_idle(&mut self, now: Instant) {
        if self.sender.una == self.sender.nxt
            && now.nanos_since(self.accounts.last.sent) > self.sender.rtt.base_timeout_ns()
        {
            self.sender.congestion.on_idle(now);
            self.note_full();
        }
    }

    /// Starts the persist timer when only the peer's window stands in the way and nothing is in flight that would be
    /// answered; stops it otherwise.
    fn watch_window(&mut self, now: Instant, cause: Blocked) {
        if cause == Blocked::PeerWindow && self.sender.una == self.sender.nxt {
            if !self.timers.is_running(Timer::Persist) && !self.sender.probe_due {
                let interval = self.probe_interval();
                self.timers.set(Timer::Persist, now + interval);
            }
            if self.sender.stalled_since.is_none() {
                self.stall(now);
            }
        } else {
            self.timers.stop(Timer::Persist);
            if self.sender.una == self.sender.nxt {
                self.sender.stalled_since = None;
            }
        }
    }

    /// Time to the next window probe: the retransmission timeout, doubled with each (RFC 9293 section 3.8.6.1).
    pub(super) fn probe_interval(&self) -> Duration {
        let base = self.sender.rtt.base_timeout().max(self.config.min_rto);
        base.saturating_mul(1 << self.sender.probes.min(16)).min(self.config.max_rto)
    }
}
