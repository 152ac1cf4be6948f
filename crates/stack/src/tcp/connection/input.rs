//! Segments that arrive on a connection (RFC 9293 section 3.10.7.4, RFC 5961, RFC 7323 section 5).

use super::super::delayed_ack::AckDue;
use super::super::segment::{DropReason, Outcome, SegmentIn};
use super::super::sequence::{unwrap, wrap};
use super::super::state::{Event, State};
use super::super::timers::Timer;
use super::Connection;
use super::handshake::Opened;
use core::time::Duration;
use linerate_transport::{CloseReason, Ready};
use linerate_wire::tcp::{Flags, SeqNumber, Timestamps};
use linerate_wire::units::Instant;

/// After so long without a segment the last timestamp says nothing any more (RFC 7323 section 5.5).
const TIMESTAMP_VALIDITY: Duration = Duration::from_secs(24 * 24 * 3_600);

impl Connection {
    /// Takes a received segment. Replies come out of [`Connection::poll_transmit`].
    pub fn handle_segment(&mut self, now: Instant, mut segment: SegmentIn) -> Outcome {
        self.take_segment(now, &mut segment)
    }

    /// As [`Connection::handle_segment`]: the payload that is kept is taken out of `segment`, which stays where it is.
    pub(crate) fn take_segment(&mut self, now: Instant, segment: &mut SegmentIn) -> Outcome {
        match segment.head() {
            Some(head) if self.take_expected(now, &head, &mut segment.payload) => Outcome::Accepted,
            _ => self.take_any(now, segment),
        }
    }

    /// Takes what is not as expected.
    #[inline(never)]
    pub(crate) fn take_any(&mut self, now: Instant, segment: &mut SegmentIn) -> Outcome {
        self.close_open(now);
        self.accounts.counters.segments_received += segment.segments() as u64;
        self.accounts.counters.congestion_experienced +=
            if segment.congestion_experienced { segment.segments() as u64 } else { 0 };
        let outcome = match self.life.state {
            State::Closed | State::Listen => Outcome::Dropped(DropReason::Closed),
            State::SynSent => self.handle_in_syn_sent(now, segment),
            _ => self.handle_synchronized(now, segment),
        };
        if let Outcome::Dropped(reason) = outcome
            && let Some(count) = self.accounts.counters.dropped.get_mut(reason as usize)
        {
            *count += 1;
        }
        self.watch_ack(now);
        self.note_work(now);
        outcome
    }

    /// An acknowledgement that may wait does not wait for ever.
    pub(super) fn watch_ack(&mut self, now: Instant) {
        if self.receiving.ack.due() == AckDue::Later
            && self.life.state != State::Closed
            && !self.timers.is_running(Timer::DelayedAck)
        {
            self.timers.set(Timer::DelayedAck, now + self.config.socket.delayed_ack.timeout);
        }
    }

    /// The sequence number that we would use next.
    pub(crate) fn next_sequence(&self) -> SeqNumber {
        wrap(self.sender.nxt)
    }

    /// Whether this SYN may open a new connection in place of this one, which is in TIME-WAIT (RFC 9293 section
    /// 3.10.7.4, RFC 6191). The caller then drops this one and treats the SYN as new.
    pub fn may_reopen(&self, segment: &SegmentIn) -> bool {
        if self.life.state != State::TimeWait
            || !segment.flags.contains(Flags::SYN)
            || segment.flags.intersects(Flags::ACK | Flags::RST | Flags::FIN)
        {
            return false;
        }
        let is_beyond = unwrap(self.receiving.receiver.next(), segment.seq) >= self.receiving.receiver.next();
        match (&self.handshake.timestamps, segment.options.timestamps) {
            // RFC 6191 section 2: the timestamp decides, the number only between equal ones.
            (Some(ours), Some(theirs)) => match theirs.value.wrapping_sub(ours.recent) as i32 {
                0 => is_beyond,
                newer => newer > 0,
            },
            // Where only the new connection has timestamps, nothing of the old one can be taken for a part of it.
            (None, Some(_)) if self.config.timestamps => true,
            _ => is_beyond,
        }
    }

    fn handle_synchronized(&mut self, now: Instant, segment: &mut SegmentIn) -> Outcome {
        // RFC 7323 section 2.2: the window of a SYN, which a SYN-ACK is too, is not scaled.
        let scale = if segment.flags.contains(Flags::SYN) { 0 } else { self.sender.window.scale };
        if self.life.state == State::SynReceived
            && segment.flags.contains(Flags::SYN)
            && let Some(outcome) = self.handle_syn_in_syn_received(segment)
        {
            return outcome;
        }
        let seq = unwrap(self.receiving.receiver.next(), segment.seq);
        let window = u64::from(segment.window) << scale;
        if self.is_overtaken(seq, segment) {
            return self.take_overtaken(now, seq, segment);
        }
        match self.check(now, seq, segment) {
            Ok(()) => {}
            Err(reason) => return Outcome::Dropped(reason),
        }
        if segment.flags.contains(Flags::RST) {
            // RFC 1337: a RST does not end TIME-WAIT.
            match self.life.state {
                State::TimeWait => {}
                // RFC 9293 section 3.10.7.4, second: an active open that crossed the peer's was refused.
                State::SynReceived if self.handshake.opened == Opened::Actively => {
                    self.end(now, CloseReason::Refused)
                }
                _ => self.end(now, CloseReason::Reset),
            }
            return Outcome::Accepted;
        }
        self.accounts.last.received = now;
        self.life.keep_alives = 0;
        let ack = unwrap(self.sender.una, segment.ack);
        if self.life.state == State::SynReceived
            && let Err(reason) = self.establish(now, ack, segment)
        {
            return Outcome::Dropped(reason);
        }
        if let Err(reason) = self.check_ack(now, ack) {
            return Outcome::Dropped(reason);
        }
        self.handshake.note_timestamp(now, seq, segment.options.timestamps, self.receiving.last_ack_sent);
        self.take_ecn(now, ack, segment);
        self.handle_ack(now, seq, ack, window, segment);
        if segment.payload_len() > 0 || segment.flags.contains(Flags::FIN) {
            return self.take_payload(now, segment);
        }
        Outcome::Accepted
    }

    /// The checks before the ACK field: timestamp, window, RST, SYN, ACK bit.
    fn check(&mut self, now: Instant, seq: u64, segment: &SegmentIn) -> Result<(), DropReason> {
        let is_reset = segment.flags.contains(Flags::RST);
        if segment.flags.contains(Flags::SYN) && !is_reset {
            // Whatever else it has, its sequence number included (RFC 5961 section 4.2).
            self.challenge(now);
            return Err(DropReason::UnexpectedSyn);
        }
        if !is_reset {
            self.check_timestamp(now, seq, segment)?;
        }
        self.check_window(now, seq, segment)?;
        if is_reset {
            // In TIME-WAIT none has an effect (RFC 1337), so none is asked for either.
            if seq == self.receiving.receiver.next() || self.life.state == State::TimeWait {
                return Ok(());
            }
            self.challenge(now);
            return Err(DropReason::InexactReset);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Err(DropReason::NoAck);
        }
        Ok(())
    }

    /// Whether this is an acknowledgement alone that later ones overtook in the network: of an older timestamp, but not older
    /// than a retransmission timeout, and of nothing new.
    fn is_overtaken(&self, seq: u64, segment: &SegmentIn) -> bool {
        let (Some(state), Some(theirs)) = (self.handshake.timestamps, segment.options.timestamps) else {
            return false;
        };
        let age = state.recent.wrapping_sub(theirs.value);
        // Asked first, as it answers for the usual segment.
        age as i32 > 0
            && self.handshake.sack
            && segment.sequence_len() == 0
            && segment.flags & (Flags::ACK | Flags::RST) == Flags::ACK
            && seq == self.receiving.receiver.next()
            && unwrap(self.sender.una, segment.ack) <= self.sender.una
            && u64::from(age) * 1_000_000 <= self.sender.rtt.base_timeout_ns()
            && self.life.state.is_synchronized()
    }

    /// PAWS would drop it (RFC 7323 section 5.3 R1). But what it reports is true still, and told nowhere else if it is a duplicate
    /// (RFC 2883); without that, a path that reorders seems to lose. Its window and its timestamp are of the past.
    fn take_overtaken(&mut self, now: Instant, seq: u64, segment: &SegmentIn) -> Outcome {
        let ack = unwrap(self.sender.una, segment.ack);
        if let Err(reason) = self.check_ack(now, ack) {
            return Outcome::Dropped(reason);
        }
        self.accounts.last.received = now;
        self.life.keep_alives = 0;
        // The window that is known, told once more.
        let window = self.sender.window.edge.saturating_sub(ack);
        self.handle_ack(now, seq, ack, window, segment);
        Outcome::Accepted
    }

    /// PAWS (RFC 7323 section 5.3).
    fn check_timestamp(&mut self, now: Instant, seq: u64, segment: &SegmentIn) -> Result<(), DropReason> {
        let Some(state) = self.handshake.timestamps else { return Ok(()) };
        let Some(theirs) = segment.options.timestamps else { return Err(DropReason::NoTimestamp) };
        let older = (theirs.value.wrapping_sub(state.recent) as i32) < 0;
        if !older || now - state.recent_at > TIMESTAMP_VALIDITY {
            return Ok(());
        }
        if segment.sequence_len() == 0 {
            self.challenge(now);
        } else {
            if seq + segment.sequence_len() <= self.receiving.receiver.next() {
                // What was overtaken by its own retransmission: the sender should learn of it (RFC 2883).
                self.receiving.receiver.note_duplicate(seq, seq + segment.payload_len() as u64);
            }
            self.receiving.ack.now();
        }
        Err(DropReason::OldTimestamp)
    }

    /// Whether the segment has something within the window. At a closed window the acknowledgement of a segment at its
    /// edge is still taken.
    fn check_window(&mut self, now: Instant, seq: u64, segment: &SegmentIn) -> Result<(), DropReason> {
        let (next, edge) = (self.receiving.receiver.next(), self.receiving.receiver.edge());
        let len = segment.sequence_len();
        let is_reset = segment.flags.contains(Flags::RST);
        if len == 0 && seq + 1 == next && !is_reset {
            // A keep-alive probe is answered. And a peer does not count the byte of its window probe as sent before it
            // hears that we took it: where both ends probe, only such segments can tell either of them.
            self.challenge(now);
            return Ok(());
        }
        if len == 0 && seq == edge && seq > next && !is_reset {
            // Beyond the window by the letter, so it is answered. But a peer that has filled our window, of which something
            // was lost, acknowledges from there: its acknowledgement counts.
            self.challenge(now);
            return Ok(());
        }
        let acceptable = match len {
            0 => seq == next || (seq >= next && seq < edge),
            _ => seq == next || (seq + len > next && seq < edge),
        };
        if acceptable {
            return Ok(());
        }
        let old = seq + len <= next;
        if is_reset {
            return Err(DropReason::OutOfWindow);
        }
        if len == 0 {
            // Two ends that disagree could answer each other for ever: these answers are limited.
            self.challenge(now);
        } else {
            if old {
                self.receiving.receiver.note_duplicate(seq, seq + segment.payload_len() as u64);
            }
            if self.life.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
                self.timers.set(Timer::TimeWait, now + self.config.time_wait);
            }
            self.receiving.ack.now();
        }
        Err(if old { DropReason::Duplicate } else { DropReason::OutOfWindow })
    }

    /// RFC 5961 section 5: an acknowledgement must be of something sent, and not of the distant past.
    fn check_ack(&mut self, now: Instant, ack: u64) -> Result<(), DropReason> {
        let oldest = self.sender.una.saturating_sub(self.sender.window.max.max(u64::from(u16::MAX)));
        if ack > self.sender.nxt.max(self.sender.probe_end) || ack < oldest {
            self.challenge(now);
            return Err(DropReason::BadAck);
        }
        Ok(())
    }

    /// An ACK that lets an honest peer show where it stands (RFC 5961), at a limited rate.
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.receiving.challenge(now, self.config.challenge_acks_per_second) {
            self.accounts.counters.challenge_acks += 1;
            self.accounts.tally().challenge_acks += 1;
        } else {
            self.accounts.counters.challenge_acks_limited += 1;
            self.accounts.tally().challenge_acks_limited += 1;
        }
    }

    /// Beyond which position new data is refused with a RST, as nobody is there for it (RFC 1122 section 4.2.2.13). Until all of ours
    /// is delivered a RST could destroy it, and what is under way by then deserves none.
    fn discards_to(&mut self) -> u64 {
        let receiver = &self.receiving.receiver;
        match self.life.state {
            _ if self.life.is_strict => receiver.next(),
            State::FinWait2 if self.life.released => *self.life.discards_to.get_or_insert(receiver.edge()),
            _ => u64::MAX,
        }
    }

    /// Payload and FIN (RFC 9293 section 3.10.7.4, seventh and eighth step).
    pub(super) fn take_payload(&mut self, now: Instant, segment: &mut SegmentIn) -> Outcome {
        if !self.life.state.can_receive() {
            // The peer's FIN was received: what it repeats is acknowledged, what it adds is not taken.
            self.receiving.ack.now();
            let new = segment.payload_len() > 0;
            return if new { Outcome::Dropped(DropReason::AfterFin) } else { Outcome::Accepted };
        }
        let seq = unwrap(self.receiving.receiver.next(), segment.seq);
        let len = segment.payload_len();
        if len > 0 && seq + len as u64 > self.discards_to() {
            self.end(now, CloseReason::Reset);
            self.life.reset_reply = Some(segment.ack);
            return Outcome::Dropped(DropReason::Closed);
        }
        if segment.payload_len() > 0 {
            self.accounts.last.data = now;
        }
        let segments = segment.segments();
        let size = match segment.segment_size {
            0 => segment.payload_len(),
            size => usize::from(size),
        };
        let fin = segment.flags.contains(Flags::FIN);
        let receiver = &mut self.receiving.receiver;
        let arrival = receiver.accept(seq, &mut segment.payload, &mut segment.more, fin);
        if arrival.in_order > 0 {
            self.note_in_order(now, arrival.in_order, segment.options.timestamps, size);
        }
        if arrival.out_of_order {
            self.receiving.ack.on_gap(segments, self.handshake.sack);
        } else if arrival.gap || arrival.duplicate || arrival.dropped.is_some() {
            self.receiving.ack.now();
        }
        if arrival.finished {
            self.receiving.ack.now();
            self.life.tell(Ready::FINISHED);
            self.follow(now, Event::FinReceived);
        }
        arrival.dropped.map_or(Outcome::Accepted, Outcome::Dropped)
    }

    /// `bytes` arrived in order, in segments of `size` bytes.
    #[inline]
    pub(super) fn note_in_order(
        &mut self,
        now: Instant,
        bytes: usize,
        timestamps: Option<Timestamps>,
        size: usize,
    ) {
        let receiver = &mut self.receiving.receiver;
        self.receiving.ack.on_data(bytes, size, &self.config.socket.delayed_ack);
        self.receiving.ack.on_room(receiver.edge() - receiver.next(), &self.config.socket.delayed_ack);
        receiver.tuner.on_arrival(now, receiver.next(), receiver.edge());
        self.measure_for_receiver(now, timestamps, size);
        self.life.tell(Ready::READABLE);
    }

    /// A full segment with a new echo answers an acknowledgement of ours: that is a round trip (RFC 7323), for the size of
    /// the receive buffer.
    fn measure_for_receiver(&mut self, now: Instant, timestamps: Option<Timestamps>, size: usize) {
        let (Some(_), Some(theirs)) = (self.handshake.timestamps, timestamps) else { return };
        if theirs.echo == self.receiving.last_echo || !self.receiving.ack.is_full(size) {
            return;
        }
        self.receiving.last_echo = theirs.echo;
        let ticks = self.handshake.timestamp(now).wrapping_sub(theirs.echo);
        if ticks <= i32::MAX as u32 {
            self.receiving.receiver.tuner.measure(Duration::from_millis(u64::from(ticks)));
        }
    }
}
