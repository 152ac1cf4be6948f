//! What came of a run: plain figures, from which verdict, text, JSON and plot are made.

use super::build::{Flow, Pair};
use super::scenario::Side;
use crate::verdict::main_limit;
use linerate_sim::{NicStats, Path, PathStats};
use linerate_transport::{CloseReason, ConnInfo, LimitCause};
use std::time::Duration;

/// Bytes on the wire beside an IP packet: Ethernet header 14, preamble 8, check sequence 4, gap 12 (IEEE 802.3).
const ETHERNET: f64 = 38.0;
/// Bytes of the TCP option with timestamps, padding included (RFC 7323 appendix A).
const TIMESTAMPS: f64 = 12.0;

/// A run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the scenario says that it shows.
    pub title: Option<String>,
    /// What replays it.
    pub seed: u64,
    /// Virtual time that passed.
    pub time: Duration,
    /// The transfers.
    pub flows: Vec<FlowOutcome>,
    /// What each host sent into.
    pub paths: Pair<PathOutcome>,
    /// The interfaces.
    pub hosts: Pair<HostOutcome>,
    /// What was seen on the way, at even distances in time.
    pub samples: Vec<Sample>,
}

/// A transfer.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// How it was set up.
    pub flow: Flow,
    /// Bytes queued by the sender.
    pub queued: u64,
    /// Bytes that the receiver read, in order and right.
    pub received: u64,
    /// Whether the sender finished and everything arrived.
    pub is_complete: bool,
    /// Why the sender's end ended, if it did.
    pub closed: Option<CloseReason>,
    /// What went wrong: a socket that could not be opened, or a wrong byte.
    pub error: Option<String>,
    /// When the connection was established, since the start.
    pub opened_at: Option<Duration>,
    /// When the last byte was read.
    pub last_byte_at: Option<Duration>,
    /// Longest time in which nothing new was read while something was to be sent.
    pub longest_stall: Duration,
    /// When that began.
    pub stalled_at: Duration,
    /// The sender's last measurements.
    pub info: Option<ConnInfo>,
    /// Least, mean and largest of the smoothed round-trip times that were seen.
    pub rtt: Option<[Duration; 3]>,
}

/// A direction of the cable.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathOutcome {
    /// How it was at the start.
    pub path: Path,
    /// Its counters.
    pub stats: PathStats,
    /// Whether changes were scheduled, so that `path` does not hold for the whole run.
    pub changes: bool,
    /// Mean time that a segment waited in the queue, by the samples; none without a rate.
    pub mean_wait: Duration,
}

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostOutcome {
    /// Its counters.
    pub nic: NicStats,
    /// Its rate in bits per second.
    pub line_rate_bps: u64,
    /// Frames that its receive ring holds.
    pub rx_ring: usize,
}

/// What was seen at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Since the start.
    pub at: Duration,
    /// One for each flow.
    pub flows: Vec<FlowSample>,
    /// Bytes in the queue that each host sends into.
    pub queued: Pair<usize>,
}

/// What was seen of a flow at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowSample {
    /// Bytes read so far.
    pub received: u64,
    /// The sender's congestion window in bytes.
    pub congestion_window: Option<u32>,
    /// Its smoothed round-trip time.
    pub rtt: Option<Duration>,
}

impl FlowOutcome {
    /// Time from the connection to the last byte.
    pub fn active(&self) -> Option<Duration> {
        let time = self.last_byte_at?.checked_sub(self.opened_at?)?;
        (!time.is_zero()).then_some(time)
    }

    /// Payload bits per second read, from the connection to the last byte.
    pub fn goodput_bps(&self) -> f64 {
        self.active().map_or(0.0, |time| self.received as f64 * 8.0 / time.as_secs_f64())
    }

    /// What kept the sender from sending faster for the longest time, and its share of all time.
    pub fn main_limit(&self) -> Option<(LimitCause, f64)> {
        main_limit(&self.info?.limits)
    }

    /// The share of the rate that payload has when all segments are full: headers, preamble and gap take the rest.
    pub fn payload_share(&self) -> f64 {
        let Some(info) = self.info else { return 1.0 };
        let payload = f64::from(info.send_mss);
        let headers = if info.remote.is_ipv4() { 40.0 } else { 60.0 };
        payload / (payload + headers + TIMESTAMPS + ETHERNET)
    }
}

impl Outcome {
    /// The rate in bits per second that bounds what `side` sends: the path's or its interface's.
    pub fn rate_bps(&self, side: Side) -> u64 {
        let line = self.hosts.of(side).line_rate_bps;
        self.paths.of(side).path.rate_bps.map_or(line, |rate| rate.min(line))
    }

    /// What the flows that `side` sends could get in all: the rate without headers and without what the model of loss
    /// takes. `None` when the path changes on the way, or nothing is sent.
    pub fn ideal_bps(&self, side: Side) -> Option<f64> {
        let path = self.paths.of(side);
        let flow = self.flows.iter().find(|flow| flow.flow.from == side)?;
        let lost = path.path.loss.mean().unwrap_or(0.0);
        (!path.changes).then(|| self.rate_bps(side) as f64 * flow.payload_share() * (1.0 - lost))
    }

    /// How much of the time the path that `side` sends into was busy, from the first flow's start to the last byte.
    pub fn utilisation(&self, side: Side) -> f64 {
        let flows = || self.flows.iter().filter(|flow| flow.flow.from == side);
        let start = flows().filter_map(|flow| flow.opened_at).min();
        let end = flows().filter_map(|flow| flow.last_byte_at).max();
        let stats = self.paths.of(side).stats;
        let sent = stats.delivered - stats.duplicated + stats.lost;
        let bytes = stats.delivered_bytes + stats.lost_bytes + 24 * sent;
        match (start, end) {
            (Some(start), Some(end)) if end > start && self.rate_bps(side) > 0 => {
                bytes as f64 * 8.0 / (self.rate_bps(side) as f64 * (end - start).as_secs_f64())
            }
            _ => 0.0,
        }
    }

    /// The round-trip time without any waiting.
    pub fn base_rtt(&self) -> Duration {
        self.paths.client.path.delay + self.paths.server.path.delay
    }
}
