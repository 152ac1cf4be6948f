//! What arrives most: the next piece of data for who only receives, or for who has sent something that it acknowledges whole, as the next
//! request does with the last answer, which is taken by a shorter way to the same
//! ([`shortcuts_are_off`]); and acknowledgements in a row for who only sends, of which the last may stand for all.

use super::super::congestion::{CongestionControl as _, is_used};
use super::super::departures::Departure;
use super::super::rack::Newest;
use super::super::segment::Head;
use super::super::sequence::{unwrap, wrap};
use super::super::state::State;
use super::super::{joining_is_off, shortcuts_are_off};
use super::Connection;
use linerate_nic::Slice;
use linerate_wire::tcp::{SeqNumber, Timestamps};
use linerate_wire::units::Instant;

impl Connection {
    /// Takes a segment that brings the next bytes and nothing else: in the window, not older than the last, while nothing is
    /// under way to the peer, or all of it has arrived as it should, and nothing waits for what is missing. False where it is not that; its
    /// payload is still there then.
    #[inline(never)]
    pub(crate) fn take_expected(&mut self, now: Instant, head: &Head, payload: &mut Option<Slice>) -> bool {
        let receiver = &self.receiving.receiver;
        let ack = unwrap(self.sender.una, head.ack);
        let is_next = payload.is_some()
            && head.seq == wrap(receiver.next())
            && self.life.state == State::Established
            && !self.life.is_strict;
        if !is_next || !self.is_newest(head.timestamps) {
            return false;
        }
        let seq = self.receiving.receiver.next();
        let window = u64::from(head.window) << self.sender.window.scale;
        if self.has_nothing_to_hear(ack) {
            self.close_open(now);
        } else if let Some(last) = self.all_arrived(ack) {
            self.close_open(now);
            self.take_all_arrived(now, seq, ack, window, last);
        } else {
            return false;
        }
        let Some(len) = self.receiving.receiver.take_next(payload) else {
            return false;
        };
        self.accounts.counters.segments_received += 1;
        let last = &mut self.accounts.last;
        (last.received, last.ack, last.data) = (now, now, now);
        self.life.keep_alives = 0;
        self.handshake.note_timestamp(now, seq, head.timestamps, self.receiving.last_ack_sent);
        self.update_window(now, seq, ack, window);
        self.accounts.counters.reordering_seen = self.loss.rack.reordering_seen();
        self.note_in_order(now, len, head.timestamps, len);
        self.watch_ack(now);
        self.note_work(now);
        true
    }

    /// The last packet of what is in flight, if an acknowledgement tells that all of it has arrived, and nothing else is known of it but
    /// when it left: each byte was sent once, none is taken to be lost, no recovery is under way nor could one be taken back, and the device
    /// holds none.
    #[inline]
    fn all_arrived(&self, ack: u64) -> Option<Departure> {
        let is_all = ack == self.sender.nxt
            && !self.sender.fin_sent
            && !self.device.has_packets()
            && self.loss.is_plain(self.sender.una)
            && !self.sender.rtt.is_backed_off()
            && !shortcuts_are_off();
        is_all.then(|| self.loss.board.departure_of(ack - 1))?
    }

    /// Takes such an acknowledgement: [`Connection::handle_ack`] without what cannot be.
    fn take_all_arrived(&mut self, now: Instant, seq: u64, ack: u64, window: u64, last: Departure) {
        self.update_window(now, seq, ack, window);
        let delivered = ack - self.sender.una;
        let pipe = self.sender.most_in_network(delivered);
        self.loss.board.all_arrived(ack);
        let rtt_ns = now.nanos_since(last.left);
        self.sender.rtt.measure_ns(rtt_ns, 1);
        self.advance(now, ack);
        self.loss.rack.measure(now, rtt_ns);
        self.loss.rack.update(now, Newest { serial: last.serial, end: ack, left: last.left });
        self.loss.rack.arrived(ack);
        let event = self.ack_event(delivered, pipe, Some(rtt_ns));
        self.sender.congestion.on_ack(now, &event);
        self.await_loss_probe(now);
        self.after_advance(now);
        #[cfg(test)]
        crate::tcp::count_exchange();
    }

    /// The same for one that follows at the same time on one that was taken so, and is [like it](Head::is_like): of what was
    /// looked at or noted for that, nothing has changed since.
    #[inline]
    pub(crate) fn take_alike(&mut self, now: Instant, head: &Head, payload: &mut Option<Slice>) -> bool {
        let seq = self.receiving.receiver.next();
        if head.seq != wrap(seq) || shortcuts_are_off() {
            return false;
        }
        let Some(len) = self.receiving.receiver.take_next(payload) else { return false };
        self.accounts.counters.segments_received += 1;
        let (ack, size) = (self.sender.una, u64::from(head.window) << self.sender.window.scale);
        self.update_window(now, seq, ack, size);
        self.note_in_order(now, len, head.timestamps, len);
        self.watch_ack(now);
        true
    }

    /// Whether a segment is not older than the last, as far as timestamps tell.
    fn is_newest(&self, timestamps: Option<Timestamps>) -> bool {
        match (self.handshake.timestamps, timestamps) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(state), Some(theirs)) => theirs.value.wrapping_sub(state.recent) as i32 >= 0,
        }
    }

    /// Whether nothing is lost if an acknowledgement without payload is not taken before a later one that comes in the same
    /// moment: it acknowledges something new, and nothing depends on how many there are. In slow start each measures a round
    /// trip for HyStart++, unless the window is not used and so does not grow; in recovery each tells which segment arrived.
    pub(crate) fn may_join_acks(&self, head: &Head) -> bool {
        let ack = unwrap(self.sender.una, head.ack);
        self.life.state == State::Established
            && !joining_is_off()
            && head.seq == wrap(self.receiving.receiver.next())
            && ack > self.sender.una
            && ack <= self.sender.nxt
            && self.loss.has_ended()
            && self.is_newest(head.timestamps)
            && (!self.sender.congestion.is_in_slow_start() || !self.uses_window())
    }

    /// Whether so much is under way that the congestion window may grow.
    fn uses_window(&self) -> bool {
        is_used(self.sender.congestion.window(), self.sender.most_in_network(self.pipe()))
    }

    /// SND.NXT: nothing beyond it can be acknowledged.
    pub(crate) fn sent_until(&self) -> SeqNumber {
        wrap(self.sender.nxt)
    }

    /// Acknowledgements that were joined to the next.
    pub(crate) fn count_joined(&mut self, segments: u64) {
        self.accounts.counters.segments_received += segments;
    }
}
