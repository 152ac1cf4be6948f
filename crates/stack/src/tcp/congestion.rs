//! What a congestion control algorithm is to a connection.

use super::cubic::Cubic;
use super::newreno::NewReno;
use super::slow_start::SlowStart;
use core::time::Duration;
use linerate_transport::Congestion;
use linerate_wire::units::Instant;

/// Larger than any window; keeps sums far from overflow.
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// What an acknowledgement told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AckEvent {
    /// The oldest position that is not acknowledged, after it (SND.UNA).
    pub una: u64,
    /// The next position to be sent for the first time (SND.NXT). A round of the path ends when what is next now is
    /// acknowledged.
    pub nxt: u64,
    /// Bytes that are known to have arrived, newly with this acknowledgement (cumulatively or selectively).
    pub delivered: u64,
    /// The most bytes that were in the network of late: whether the window is used.
    pub pipe: u64,
    /// The round-trip time measured with it, in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// The smoothed round-trip time (RFC 6298).
    pub smoothed_rtt: Option<Duration>,
    /// Sends are paced: a window that opens makes no burst.
    pub paced: bool,
}

/// Decides how many bytes may be in the network. It sees no packets and has no timers.
///
/// Order of calls: `on_ack` for every acknowledgement of new data outside of fast recovery; `save`, then `on_loss`, once
/// when a recovery begins, `on_recovered` when it ends; `save`, then `on_timeout`, at a retransmission timeout, after
/// which `on_ack` continues; `on_undo` when that recovery or timeout turns out to have been unnecessary, instead of or
/// after `on_recovered`; `on_congestion_experienced` when a mark is echoed outside of recovery, at most once per round
/// trip; `on_idle` before sending after a pause.
///
/// During fast recovery the connection decides what it sends (RFC 9937): `slow_start_threshold` is the window that it
/// steers to, from the flight size at `on_loss`.
pub(super) trait CongestionControl {
    /// The congestion window in bytes.
    fn window(&self) -> u64;

    /// The slow-start threshold in bytes; `None` before the first loss.
    fn slow_start_threshold(&self) -> Option<u64>;

    /// Whether the window grows by what arrives, to find the path's capacity.
    fn is_in_slow_start(&self) -> bool {
        self.slow_start_threshold().is_none_or(|threshold| self.window() < threshold)
    }

    /// New data arrived, and all is well (or slow start after a timeout).
    fn on_ack(&mut self, now: Instant, ack: &AckEvent);

    /// What follows may turn out to be unnecessary: remembers what `on_undo` restores. A timeout within a fast recovery
    /// does not save again: what counts is how it was before both.
    fn save(&mut self);

    /// Segments were lost; `flight` bytes are sent and not acknowledged.
    fn on_loss(&mut self, now: Instant, flight: u64);

    /// Everything that was in flight at `on_loss` is acknowledged; `pipe` bytes are in the network.
    fn on_recovered(&mut self, now: Instant, pipe: u64);

    /// The retransmission timer expired; `first`: not for a segment that has expired before (RFC 5681 section 3.1).
    fn on_timeout(&mut self, now: Instant, flight: u64, first: bool);

    /// Nothing had been lost since `save` (F-RTO, Eifel, DSACK): takes the reduction back as far as `pipe` bytes in the
    /// network allow without a burst; slow start leads to the rest (RFC 4015 section 3.2, RFC 9438 section 4.9). Without
    /// a `save` it does nothing.
    fn on_undo(&mut self, now: Instant, pipe: u64);

    /// The network marked a packet (ECN) where it would have dropped it (RFC 3168 section 6.1.2).
    fn on_congestion_experienced(&mut self, now: Instant, flight: u64);

    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 section 4.1).
    fn on_idle(&mut self, now: Instant);

    /// The segment size changed.
    fn on_segment_size(&mut self, mss: u64);
}

/// The algorithm that a socket asked for.
#[derive(Clone, Debug)]
pub(super) enum Control {
    /// RFC 9438.
    Cubic(Cubic),
    /// RFC 5681.
    NewReno(NewReno),
}

impl Control {
    /// The algorithm that the socket asks for, in slow start.
    pub fn new(choice: Congestion, mss: u64, initial_segments: u8) -> Control {
        match choice {
            Congestion::Cubic => Control::Cubic(Cubic::new(mss, initial_segments)),
            Congestion::NewReno => Control::NewReno(NewReno::new(mss, initial_segments)),
        }
    }
}

/// What there is to know of an algorithm in its first slow start while everything is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Calm {
    pub mss: u32,
    /// At most [`MAX_WINDOW`].
    pub window: u32,
    pub initial: u32,
    /// The least round-trip time of the last round, for HyStart++.
    pub last_round: Option<Duration>,
}

impl Calm {
    /// Of an algorithm with these variables, if they fit.
    pub fn new(mss: u64, window: u64, initial: u64, slow_start: &SlowStart) -> Option<Calm> {
        let fit = |bytes| u32::try_from(bytes).ok();
        let last_round = slow_start.last_round()?;
        Some(Calm { mss: fit(mss)?, window: fit(window)?, initial: fit(initial)?, last_round })
    }
}

impl Control {
    /// All there is to know while everything is acknowledged; `None` where that is more than [`Calm`] says.
    pub fn calm(&self) -> Option<Calm> {
        match self {
            Control::Cubic(cubic) => cubic.calm(),
            Control::NewReno(newreno) => newreno.calm(),
        }
    }

    /// The algorithm that the socket asked for, as it was.
    pub fn after(choice: Congestion, calm: &Calm) -> Control {
        match choice {
            Congestion::Cubic => Control::Cubic(Cubic::after(calm)),
            Congestion::NewReno => Control::NewReno(NewReno::after(calm)),
        }
    }
}

/// Calls the algorithm in use.
macro_rules! in_use {
    ($control:expr, $algorithm:ident => $call:expr) => {
        match $control {
            Control::Cubic($algorithm) => $call,
            Control::NewReno($algorithm) => $call,
        }
    };
}

impl CongestionControl for Control {
    fn window(&self) -> u64 {
        in_use!(self, algorithm => algorithm.window())
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        in_use!(self, algorithm => algorithm.slow_start_threshold())
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent) {
        in_use!(self, algorithm => algorithm.on_ack(now, ack));
    }

    fn save(&mut self) {
        in_use!(self, algorithm => algorithm.save());
    }

    fn on_loss(&mut self, now: Instant, flight: u64) {
        in_use!(self, algorithm => algorithm.on_loss(now, flight));
    }

    fn on_recovered(&mut self, now: Instant, pipe: u64) {
        in_use!(self, algorithm => algorithm.on_recovered(now, pipe));
    }

    fn on_timeout(&mut self, now: Instant, flight: u64, first: bool) {
        in_use!(self, algorithm => algorithm.on_timeout(now, flight, first));
    }

    fn on_undo(&mut self, now: Instant, pipe: u64) {
        in_use!(self, algorithm => algorithm.on_undo(now, pipe));
    }

    fn on_congestion_experienced(&mut self, now: Instant, flight: u64) {
        in_use!(self, algorithm => algorithm.on_congestion_experienced(now, flight));
    }

    fn on_idle(&mut self, now: Instant) {
        in_use!(self, algorithm => algorithm.on_idle(now));
    }

    fn on_segment_size(&mut self, mss: u64) {
        in_use!(self, algorithm => algorithm.on_segment_size(mss));
    }
}

/// The initial window (RFC 6928 section 2): min(10 MSS, max(2 MSS, 14,600)), with another number of segments in
/// proportion.
pub(super) fn initial_window(mss: u64, segments: u8) -> u64 {
    let segments = u64::from(segments.max(1));
    (segments * mss).min((2 * mss).max(segments * 1_460))
}

/// Whether a window is used: one of which no more than half is says nothing about the path and does not grow (RFC 7661
/// section 4.2 draws the line at a half): twice what was carried is enough.
pub(super) fn is_used(window: u64, pipe: u64) -> bool {
    pipe > window / 2
}

/// The threshold when the window falls back to the initial one after a pause: slow start leads back to three quarters of
/// what the path carried (RFC 2861 section 3.2).
pub(super) fn threshold_after_idle(threshold: Option<u64>, window: u64) -> Option<u64> {
    threshold.map(|threshold| threshold.max(window - window / 4))
}

/// How it was before a reduction that may be taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Saved {
    pub window: u64,
    pub threshold: Option<u64>,
}

impl Saved {
    /// Window and threshold after an undo with `pipe` bytes in the network; `burst` more may be sent at once.
    pub fn restored(self, window: u64, pipe: u64, burst: u64) -> (u64, Option<u64>) {
        let before = self.window.max(window);
        let restored = window.max(before.min(pipe + burst));
        // Slow start leads to the old window, and goes on beyond it if it did before.
        let threshold = self.threshold.map(|threshold| threshold.max(before));
        let threshold = if restored < before { threshold } else { self.threshold };
        (restored, threshold)
    }
}
