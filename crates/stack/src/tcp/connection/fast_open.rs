//! TCP Fast Open (RFC 7413): data before the handshake ends, both ways.
//!
//! ```text
//! client                                server
//!   SYN, cookie, request     ──▶   the application reads it in SYN-RECEIVED
//!                            ◀──   SYN-ACK of the SYN and the request
//!                            ◀──   reply, up to the initial window
//!   ACK                      ──▶   ESTABLISHED
//! ```
//!
//! When the SYN-ACK has to be sent again, what was sent after the first one is taken back (section 4.2.2): the client may not
//! have understood it without a SYN-ACK. It counts as not sent until the handshake has ended; if it is acknowledged
//! nevertheless, that counts.

use super::super::segment::{Outcome, SegmentIn, TxInfo};
use super::super::state::State;
use super::super::timers::Timer;
use super::Connection;
use super::transmit::Out;
use linerate_transport::Ready;
use linerate_wire::tcp::{FastOpenCookie, Flags, Options};
use linerate_wire::units::Instant;

/// What a connection knows of its Fast Open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastOpen {
    /// The cookie in our first SYN-ACK; a later one does without, as somebody on the way may have dropped it for that.
    pub cookie: Option<FastOpenCookie>,
    /// The application has the connection before the handshake ends.
    is_open: bool,
    /// Our SYN-ACK was sent again.
    pub is_repeated: bool,
}

impl Connection {
    /// The SYN-ACK shall give the client this cookie.
    pub fn offer_cookie(&mut self, cookie: Option<FastOpenCookie>) {
        self.handshake.fast_open.cookie = cookie;
    }

    /// Lets the application use a connection in SYN-RECEIVED, beginning with the data of `syn`, whose cookie the caller has
    /// found valid. The SYN-ACK acknowledges the data (RFC 7413 section 4.2.2). Data for which there is no room comes again.
    pub fn open_early(&mut self, now: Instant, syn: SegmentIn) -> Outcome {
        self.handshake.fast_open.is_open = true;
        self.life.tell(Ready::WRITABLE);
        if syn.payload_len() == 0 {
            return Outcome::Accepted;
        }
        // The options were looked at with the SYN; their timestamps answer nothing of ours.
        let flags = syn.flags.without(Flags::SYN);
        let mut data = SegmentIn { seq: syn.seq + 1, flags, options: Options::default(), ..syn };
        self.take_payload(now, &mut data)
    }

    /// Whether the application has the connection though its handshake has not ended.
    pub(super) fn is_early(&self) -> bool {
        self.handshake.fast_open.is_open && self.life.state == State::SynReceived
    }

    /// Sends data behind the first SYN-ACK. A FIN waits for the end of the handshake.
    pub(super) fn transmit_early(&mut self, out: &mut Out<'_>) -> Option<TxInfo> {
        if !self.is_early() || self.handshake.syn_due || self.handshake.fast_open.is_repeated {
            return None;
        }
        let payload = self.payload_room();
        let most = (out.limits.max_payload as u64 / payload * payload).max(payload);
        let most = self.paced_size(most, payload);
        let plan = self.plan_new(out.now, payload, most).ok()?;
        let plan = self.pace(out.now, plan).ok()?;
        self.transmit(out, plan)
    }

    /// The SYN-ACK is sent again: what followed it counts as not sent. Nothing of it is in the device any more.
    pub(super) fn take_back_early_data(&mut self) {
        self.handshake.fast_open.is_repeated = true;
        let start = self.sender.una + 1;
        self.sender.probe_end = self.sender.probe_end.max(self.sender.nxt);
        self.sender.left_end = self.sender.left_end.min(start);
        self.sender.peak = (0, 0);
    }

    /// The handshake has ended: what was sent before is watched from now on like any data.
    pub(super) fn watch_early_data(&mut self, now: Instant) {
        if self.sender.una == self.sender.nxt {
            return;
        }
        self.stall(now);
        if self.sender.left_end > self.sender.una {
            self.timers.set(Timer::Retransmit, self.sender.rtt.timeout_from(now));
            self.await_loss_probe(now);
        }
    }
}
