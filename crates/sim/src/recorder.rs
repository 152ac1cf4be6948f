//! Samples at fixed intervals: windows, round-trip times and queues over time, for plots.

use linerate_transport::ConnInfo;
use linerate_wire::units::Instant;
use std::time::Duration;

/// One end of a flow at one point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowSample {
    /// When.
    pub at: Instant,
    /// Congestion window in bytes.
    pub congestion_window: u32,
    /// Slow-start threshold in bytes; `None` before the first loss.
    pub slow_start_threshold: Option<u32>,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Bytes that the application has read so far. The difference of two samples is the goodput between them.
    pub bytes_received: u64,
    /// Segments retransmitted so far.
    pub retransmits: u64,
}

impl FlowSample {
    pub(crate) fn new(at: Instant, info: &ConnInfo, bytes_received: u64) -> FlowSample {
        FlowSample {
            at,
            congestion_window: info.congestion_window,
            slow_start_threshold: info.slow_start_threshold,
            in_flight: info.in_flight,
            rtt: info.rtt,
            bytes_received,
            retransmits: info.retransmits,
        }
    }
}

/// A queue at one point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueSample {
    /// When.
    pub at: Instant,
    /// Segments that wait.
    pub packets: usize,
    /// Bytes that wait.
    pub bytes: usize,
}

/// What was sampled of a flow while its connection was open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowSamples {
    /// The client's end.
    pub client: Vec<FlowSample>,
    /// The server's end.
    pub server: Vec<FlowSample>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Time between samples, and when the next is due.
    pub(crate) next: Option<(Duration, Instant)>,
    /// By flow.
    pub(crate) flows: Vec<FlowSamples>,
    /// By node: up and down.
    pub(crate) queues: Vec<[Vec<QueueSample>; 2]>,
}
