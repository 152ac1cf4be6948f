//! Opening: SYN, SYN-ACK, what their options agree upon, and segments in SYN-SENT and SYN-RECEIVED.

use super::super::congestion::Control;
use super::super::segment::{DropReason, Outcome, SegmentIn};
use super::super::sequence::{origin, unwrap};
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::accounts::Last;
use super::fast_open::FastOpen;
use super::{Connection, MIN_MSS};
use core::time::Duration;
use linerate_transport::{CloseReason, LimitCause, Ready};
use linerate_wire::tcp::{Flags, MAX_WINDOW_SCALE, Options, SeqNumber, Timestamps};
use linerate_wire::units::Instant;

/// Retransmission timeout after a lost SYN (RFC 6298 section 5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// How the connection began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opened {
    /// By us (RFC 9293: an active OPEN).
    Actively,
    /// By the peer's SYN.
    Passively,
    /// By the ACK of a SYN cookie: its timestamp carries options and measures nothing.
    ByCookie,
}

/// The timestamps that were agreed upon (RFC 7323 section 4).
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampState {
    /// TS.Recent, and when it was set.
    pub(super) recent: u32,
    pub(super) recent_at: Instant,
}

/// What was agreed upon, and what it takes to agree.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) timestamps: Option<TimestampState>,
    /// Where our timestamp clock starts.
    pub(super) timestamp_offset: u32,
    pub(super) sack: bool,
    pub(super) peer_scales: bool,
    pub(super) peer_mss: u16,
    pub(super) syn_due: bool,
    pub(super) syn_retries: u8,
    pub(super) opened: Opened,
    pub(super) fast_open: FastOpen,
    /// Position of the peer's first byte.
    pub(super) peer_start: u64,
}

impl Handshake {
    /// Nothing is agreed upon; `peer_mss`: the segment size of a peer that names none.
    pub(super) fn new(peer_mss: u16) -> Handshake {
        Handshake {
            timestamps: None,
            timestamp_offset: 0,
            sack: false,
            peer_scales: false,
            peer_mss,
            syn_due: false,
            syn_retries: 0,
            opened: Opened::Actively,
            fast_open: FastOpen::default(),
            peer_start: 0,
        }
    }

    /// Bytes of options that every segment has: timestamps, padded (RFC 7323 appendix A).
    pub(super) fn options_len(&self) -> u64 {
        if self.timestamps.is_some() { 12 } else { 0 }
    }

    /// Our timestamp clock: a tick per millisecond.
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        self.timestamp_offset.wrapping_add(now.as_millis() as u32)
    }

    /// TS.Recent follows the segment at `seq` that reaches the last acknowledgement sent (RFC 7323 section 4.3).
    pub(super) fn note_timestamp(
        &mut self,
        now: Instant,
        seq: u64,
        timestamps: Option<Timestamps>,
        last_ack_sent: u64,
    ) {
        if let (Some(state), Some(theirs)) = (&mut self.timestamps, timestamps)
            && seq <= last_ack_sent
        {
            state.recent = theirs.value;
            state.recent_at = now;
        }
    }
}

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
        self.life.state = State::SynReceived;
        self.handshake.opened = Opened::Passively;
        self.take_syn(now, syn, told);
        Ok(())
    }

    /// Notes the peer's initial sequence number, its window and its options. Payload of a SYN is not
    /// acknowledged, so it comes again, unless [`Connection::open_early`] takes it.
    /// `told`: the window that the peer has heard of already.
    fn take_syn(&mut self, now: Instant, syn: &SegmentIn, told: u16) {
        let irs = origin(syn.seq);
        if syn.flags.contains(Flags::ACK) {
            self.sender.ecn.on_syn_ack(syn.flags);
        } else {
            self.sender.ecn.on_syn(self.config.socket.ecn, syn.flags);
        }
        self.agree(now, &syn.options);
        self.handshake.peer_start = irs + 1;
        self.receiving.receiver.start(self.handshake.peer_start, told.into());
        self.receiving.last_ack_sent = irs + 1;
        let size = u64::from(syn.window);
        self.sender.window.size = size;
        self.sender.window.max = size;
        self.sender.window.edge = self.sender.una + size;
        self.sender.window.updated_by = (irs, self.sender.una);
        self.accounts.last.received = now;
    }

    fn agree(&mut self, now: Instant, options: &Options) {
        if let Some(mss) = options.mss {
            self.handshake.peer_mss = mss.max(MIN_MSS);
        }
        self.handshake.sack = self.config.sack && options.sack_permitted;
        match options.window_scale {
            Some(scale) if self.config.window_scaling => {
                self.handshake.peer_scales = true;
                self.sender.window.scale = scale.min(MAX_WINDOW_SCALE);
            }
            _ => self.receiving.receiver.scale = 0,
        }
        self.handshake.timestamps = match options.timestamps {
            Some(timestamps) if self.config.timestamps => {
                Some(TimestampState { recent: timestamps.value, recent_at: now })
            }
            _ => None,
        };
        self.receiving.receiver.set_segment(u64::from(self.offered_mss()) - self.handshake.options_len());
    }

    /// The options of our SYN or SYN-ACK: the latter only answers what was offered.
    pub(super) fn syn_options(&self, now: Instant) -> Options {
        let answer = self.life.state == State::SynReceived;
        let timestamps = if answer { self.handshake.timestamps.is_some() } else { self.config.timestamps };
        let scaling = if answer { self.handshake.peer_scales } else { self.config.window_scaling };
        Options {
            mss: Some(self.offered_mss()),
            window_scale: scaling.then_some(self.receiving.receiver.scale),
            sack_permitted: if answer { self.handshake.sack } else { self.config.sack },
            timestamps: timestamps.then(|| self.timestamps_option(now)),
            fast_open: self
                .handshake
                .fast_open
                .cookie
                .filter(|_| answer && !self.handshake.fast_open.is_repeated),
            ..Options::default()
        }
    }

    /// Whether an acknowledgement is of another handshake than ours, which has not ended.
    pub fn is_of_another_handshake(&self, ack: SeqNumber) -> bool {
        let ack = unwrap(self.sender.una, ack);
        self.life.state == State::SynReceived && (ack <= self.sender.una || ack > self.sender.nxt)
    }

    /// RFC 9293 section 3.10.7.3.
    pub(super) fn handle_in_syn_sent(&mut self, now: Instant, segment: &mut SegmentIn) -> Outcome {
        let has_ack = segment.flags.contains(Flags::ACK);
        let ack = unwrap(self.sender.una, segment.ack);
        let acceptable = has_ack && ack > self.sender.una && ack <= self.sender.nxt;
        if has_ack && !acceptable {
            if !segment.flags.contains(Flags::RST) {
                self.life.reset_reply = Some(segment.ack);
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
        self.take_syn(now, segment, 0);
        if !has_ack {
            // Both sides opened at once: our SYN again, now with an ACK. It does not wait until the device reports the one without,
            // as nothing polls for it then.
            self.give_device_up(now);
            self.follow(now, Event::Syn);
            self.handshake.syn_due = true;
            return Outcome::Accepted;
        }
        self.acknowledge_syn(now, ack, &segment.options);
        self.follow(now, Event::SynAck);
        self.on_established(now);
        self.receiving.ack.now();
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
        if unwrap(self.handshake.peer_start, segment.seq) + 1 != self.handshake.peer_start
            || segment.flags.contains(Flags::RST)
        {
            return None;
        }
        if segment.flags.contains(Flags::ACK) {
            // RFC 9293 figure 9, line 7: the numbers are old, the acknowledgement is not.
            segment.flags = segment.flags.without(Flags::SYN);
            segment.seq += 1;
            return None;
        }
        self.sender.ecn.on_syn(self.config.socket.ecn, segment.flags);
        self.handshake.syn_due = true;
        Some(Outcome::Dropped(DropReason::Duplicate))
    }

    /// The acknowledgement of our SYN in SYN-RECEIVED.
    pub(super) fn establish(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &SegmentIn,
    ) -> Result<(), DropReason> {
        if ack <= self.sender.una || ack > self.sender.nxt.max(self.sender.probe_end) {
            self.life.reset_reply = Some(segment.ack);
            return Err(DropReason::BadAck);
        }
        self.acknowledge_syn(now, self.sender.una + 1, &segment.options);
        self.follow(now, Event::SynAcked);
        self.on_established(now);
        // SND.WND, SND.WL1 and SND.WL2 are set from this segment.
        self.sender.window.updated_by = (0, 0);
        self.watch_early_data(now);
        Ok(())
    }

    fn acknowledge_syn(&mut self, now: Instant, ack: u64, options: &Options) {
        if self.handshake.opened != Opened::ByCookie {
            self.measure_syn(now, ack, options);
        }
        self.loss.expired = 0;
        self.sender.una = ack;
        self.sender.window.edge = self.sender.una + self.sender.window.size;
        self.timers.stop(Timer::Retransmit);
        self.handshake.syn_due = false;
        self.sender.stalled_since = None;
        self.leave_device_until(ack);
        self.sender.left_end = self.sender.left_end.max(ack);
    }

    /// How often the SYN or SYN-ACK may be sent again.
    pub(super) fn most_syn_retries(&self) -> u8 {
        if self.life.state == State::SynReceived {
            self.config.syn_ack_retries
        } else {
            self.config.syn_retries
        }
    }

    fn on_established(&mut self, now: Instant) {
        let segments = if self.handshake.syn_retries > 0 { 1 } else { self.config.initial_window_segments };
        self.sender.congestion = Control::new(self.config.socket.congestion, self.mss(), segments);
        if self.sender.rtt.smoothed().is_none() && self.handshake.syn_retries > 0 {
            self.sender.rtt.restart(RTO_AFTER_LOST_SYN);
        } else if let Some(rtt) = self.sender.rtt.smoothed() {
            self.receiving.receiver.tuner.measure(rtt);
        }
        self.accounts.last = Last::at(now);
        self.accounts.limits.set(now, LimitCause::Application);
        self.arm_keep_alive(now);
        self.life.tell(Ready::WRITABLE);
    }
}
