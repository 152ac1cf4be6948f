//! What a congestion control algorithm is to a connection.

use super::newreno::NewReno;
use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;
use linerate_transport::Congestion;
use linerate_wire::units::Instant;

/// What an acknowledgement told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AckEvent {
    /// Bytes that are known to have arrived, newly with this acknowledgement (cumulatively or selectively).
    pub delivered: u64,
    /// Bytes in the network before it.
    pub pipe: u64,
    /// The round-trip time measured with it.
    pub rtt: Option<Duration>,
}

/// Decides how many bytes may be in the network. It sees no packets and has no timers.
///
/// Order of calls: `on_ack` for every acknowledgement of new data outside of fast recovery; `on_loss` once when a
/// recovery begins, `on_recovered` when it ends; `on_timeout` at a retransmission timeout, after which `on_ack`
/// continues; `on_idle` before sending after a pause.
pub(super) trait CongestionControl: fmt::Debug {
    /// The congestion window in bytes.
    fn window(&self) -> u64;

    /// The slow-start threshold in bytes; `None` before the first loss.
    fn slow_start_threshold(&self) -> Option<u64>;

    /// New data arrived, and all is well (or slow start after a timeout).
    fn on_ack(&mut self, now: Instant, ack: &AckEvent);

    /// Segments were lost; `flight` bytes are sent and not acknowledged.
    fn on_loss(&mut self, now: Instant, flight: u64);

    /// Everything that was in flight at `on_loss` is acknowledged; `pipe` bytes are in the network.
    fn on_recovered(&mut self, now: Instant, pipe: u64);

    /// The retransmission timer expired; `first`: not for a segment that has expired before (RFC 5681 section 3.1).
    fn on_timeout(&mut self, now: Instant, flight: u64, first: bool);

    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 section 4.1).
    fn on_idle(&mut self, now: Instant);

    /// The segment size changed.
    fn on_segment_size(&mut self, mss: u64);
}

/// The algorithm that the socket asks for.
pub(super) fn new(choice: Congestion, mss: u64, initial_segments: u8) -> Box<dyn CongestionControl> {
    match choice {
        Congestion::NewReno => Box::new(NewReno::new(mss, initial_segments)),
    }
}
