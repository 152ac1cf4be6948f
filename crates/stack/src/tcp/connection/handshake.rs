//! Opening: SYN, SYN-ACK, what their options agree upon, and segments in SYN-SENT and SYN-RECEIVED.

use super::super::congestion::Control;
use super::super::segment::{DropReason, Outcome, SegmentIn};
use super::super::sequence::{origin, unwrap};
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::{Connection, Last, MIN_MSS, Opened, TimestampState};
use core::time::Duration;
use linerate_transport::{CloseReason, LimitCause, Ready};
use linerate_wire::tcp::{Flags, MAX_WINDOW_SCALE, Options, SeqNumber};
use linerate_wire::units::Instant;

/// Retransmission timeout after a lost SYN (RFC 6298 section 5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

impl Connection {
    pub(super) fn begin_passive(
        &mut self,
        now: Instant,
        syn: &SegmentIn,
        told: u16,
    ) -> Result<(), DropReason> {
        let unwanted = Flags::ACK | Flags::RST | Flags::FIN;
        if !syn.flags.contains(Flags::SYN) || syn.flags.intersects(unwanted) {
            return Err(DropReason::Handshake);
        }
        self.state = State::SynReceived;
        self.opened = Opened::Passively;
        self.take_syn(now, syn, told);
        Ok(())
    }

    /// Notes the peer's initial sequence number, its window and its options. Payload of a SYN is not
    /// acknowledged, so it comes again, unless [`Connection::open_early`] takes it.
    /// `told`: the window that the peer has heard of already.
    fn take_syn(&mut self, now: Instant, syn: &SegmentIn, told: u16) {
        let irs = origin(syn.seq);
        if syn.flags.contains(Flags::ACK) {
            self.ecn.on_syn_ack(syn.flags);
        } else {
            self.ecn.on_syn(self.config.socket.ecn, syn.flags);
        }
        self.agree(now, &syn.options);
        self.peer_start = irs + 1;
        self.receiver.start(self.peer_start, told.into());
        self.last_ack_sent = irs + 1;
        let size = u64::from(syn.window);
        self.window.size = size;
        self.window.max = size;
        self.window.edge = self.una + size;
        self.window.updated_by = (irs, self.una);
        self.last.received = now;
    }

    fn agree(&mut self, now: Instant, options: &Options) {
        if let Some(mss) = options.mss {
            self.peer_mss = mss.max(MIN_MSS);
        }
        self.sack = self.config.sack && options.sack_permitted;
        match options.window_scale {
            Some(scale) if self.config.window_scaling => {
                self.peer_scales = true;
                self.window.scale = scale.min(MAX_WINDOW_SCALE);
            }
            _ => self.receiver.scale = 0,
        }
        self.timestamps = match options.timestamps {
            Some(timestamps) if self.config.timestamps => {
                Some(TimestampState { recent: timestamps.value, recent_at: now })
            }
            _ => None,
        };
    }

    /// The options of our SYN or SYN-ACK: the latter only answers what was offered.
    pub(super) fn syn_options(&self, now: Instant) -> Options {
        let answer = self.state == State::SynReceived;
        let timestamps = if answer { self.timestamps.is_some() } else { self.config.timestamps };
        let scaling = if answer { self.peer_scales } else { self.config.window_scaling };
        Options {
            mss: Some(self.offered_mss()),
            window_scale: scaling.then_some(self.receiver.scale),
            sack_permitted: if answer { self.sack } else { self.config.sack },
            timestamps: timestamps.then(|| self.timestamps_option(now)),
            fast_open: self.fast_open.cookie.filter(|_| answer && !self.fast_open.is_repeated),
            ..Options::default()
        }
    }

    /// Whether an acknowledgement is of another handshake than ours, which has not ended.
    pub fn is_of_another_handshake(&self, ack: SeqNumber) -> bool {
        let ack = unwrap(self.una, ack);
        self.state == State::SynReceived && (ack <= self.una || ack > self.nxt)
    }

    /// RFC 9293 section 3.10.7.3.
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, mut segment: SegmentIn) -> Outcome {
        let has_ack = segment.flags.contains(Flags::ACK);
        let ack = unwrap(self.una, segment.ack);
        let acceptable = has_ack && ack > self.una && ack <= self.nxt;
        if has_ack && !acceptable {
            if !segment.flags.contains(Flags::RST) {
                self.reset_reply = Some(segment.ack);
            }
            return Outcome::Dropped(DropReason::BadAck);
        }
        if segment.flags.contains(Flags::RST) {
            if !acceptable {
                return Outcome::Dropped(DropReason::Handshake);
            }
            self.end(now, CloseReason::Refused);
            return Outcome::Accepted;
        }
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::FIN) {
            return Outcome::Dropped(DropReason::Handshake);
        }
        self.take_syn(now, &segment, 0);
        if !has_ack {
            // Both sides opened at once: our SYN again, now with an ACK.
            self.follow(now, Event::Syn);
            self.syn_due = true;
            return Outcome::Accepted;
        }
        self.acknowledge_syn(now, ack, &segment.options);
        self.follow(now, Event::SynAck);
        self.on_established(now);
        self.ack.now();
        segment.flags = segment.flags.without(Flags::SYN);
        segment.seq += 1;
        if segment.sequence_len() > 0 {
            return self.take_payload(now, segment);
        }
        Outcome::Accepted
    }

    /// A segment with SYN in SYN-RECEIVED: the peer's SYN again, or the SYN-ACK of a simultaneous open. `None`: the
    /// segment is to be treated like any other.
    pub(super) fn handle_syn_in_syn_received(&mut self, segment: &mut SegmentIn) -> Option<Outcome> {
        if unwrap(self.peer_start, segment.seq) + 1 != self.peer_start || segment.flags.contains(Flags::RST) {
            return None;
        }
        if segment.flags.contains(Flags::ACK) {
            // RFC 9293 figure 9, line 7: the numbers are old, the acknowledgement is not.
            segment.flags = segment.flags.without(Flags::SYN);
            segment.seq += 1;
            return None;
        }
        self.ecn.on_syn(self.config.socket.ecn, segment.flags);
        self.syn_due = true;
        Some(Outcome::Dropped(DropReason::Duplicate))
    }

    /// The acknowledgement of our SYN in SYN-RECEIVED.
    pub(super) fn establish(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &SegmentIn,
    ) -> Result<(), DropReason> {
        if ack <= self.una || ack > self.nxt.max(self.probe_end) {
            self.reset_reply = Some(segment.ack);
            return Err(DropReason::BadAck);
        }
        self.acknowledge_syn(now, self.una + 1, &segment.options);
        self.follow(now, Event::SynAcked);
        self.on_established(now);
        // SND.WND, SND.WL1 and SND.WL2 are set from this segment.
        self.window.updated_by = (0, 0);
        self.watch_early_data(now);
        Ok(())
    }

    fn acknowledge_syn(&mut self, now: Instant, ack: u64, options: &Options) {
        if self.opened != Opened::ByCookie {
            self.measure_syn(now, ack, options);
        }
        self.expired = 0;
        self.una = ack;
        self.window.edge = self.una + self.window.size;
        self.timers.stop(Timer::Retransmit);
        self.syn_due = false;
        self.stalled_since = None;
        self.leave_device_until(ack);
        self.left_end = self.left_end.max(ack);
    }

    /// How often the SYN or SYN-ACK may be sent again.
    pub(super) fn most_syn_retries(&self) -> u8 {
        if self.state == State::SynReceived { self.config.syn_ack_retries } else { self.config.syn_retries }
    }

    fn on_established(&mut self, now: Instant) {
        let segments = if self.syn_retries > 0 { 1 } else { self.config.initial_window_segments };
        self.congestion = Control::new(self.config.socket.congestion, self.mss(), segments);
        if self.rtt.smoothed().is_none() && self.syn_retries > 0 {
            self.rtt.restart(RTO_AFTER_LOST_SYN);
        } else if let Some(rtt) = self.rtt.smoothed() {
            self.receiver.tuner.measure(rtt);
        }
        self.last = Last::at(now);
        self.limits.set(now, LimitCause::Application);
        self.arm_keep_alive(now);
        self.tell(Ready::WRITABLE);
    }
}
