//! What came of a run: plain figures, from which verdict, text, JSON and plot are made.

use super::build::{Flow, Pair};
use super::file::Side;
use crate::verdict::main_limit;
use linerate_sim::{Capabilities, CpuTimes, Jitter, LetterStats, NicStats, Path, PathStats};
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
    /// Until when it lasted: the last byte of a transfer that is complete, else the end of the connection or of the run.
    pub until: Duration,
    /// Longest time in which nothing new was read while something was to be sent.
    pub longest_stall: Duration,
    /// When that began.
    pub stalled_at: Duration,
    /// The sender's last measurements.
    pub info: Option<ConnInfo>,
    /// What of it was there on the mean, by time.
    pub mean: FlowMean,
    /// How often each kind of mishap happened to the paths of the flow, at most once a round trip.
    pub mishaps: Mishaps,
    /// Least, mean and largest of the smoothed round-trip times that were seen.
    pub rtt: Option<[Duration; 3]>,
}

/// Means over the time in which a transfer was under way, in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FlowMean {
    /// Sent and not acknowledged.
    pub in_flight: f64,
    /// The window that the receiver offered.
    pub window: f64,
    /// Received and not read.
    pub unread: f64,
}

/// What can make a sender slow down, counted by round trips in which it happened: TCP slows down once a round trip,
/// whether one segment was lost in it or a hundred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mishaps {
    /// Lost by the model of loss, or by a script.
    pub lost: u32,
    /// Damaged.
    pub damaged: u32,
    /// Dropped by a full queue.
    pub queue: u32,
    /// Dropped by CoDel.
    pub codel: u32,
    /// Marked with congestion experienced.
    pub marked: u32,
    /// Dropped by the receiver's full ring.
    pub ring: u32,
    /// Dropped by the receiver's interface, which had no buffer.
    pub no_buffer: u32,
    /// Dropped by the receiver's stack, which had no memory.
    pub no_memory: u32,
    /// Longer than the path carries.
    pub too_long: u32,
    /// Held back, so that others overtook.
    pub reordered: u32,
    /// Acknowledgements lost on the way back, for whatever reason.
    pub acks: u32,
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
    /// How much of the time what bounds it, the path's rate or the interface's, was busy: 0 to 1, from the first connection
    /// to the end of the flows that the host sends; of all flows, where it sends none.
    pub used: f64,
    /// The same from the first connection to the end of all flows.
    pub used_by_all: f64,
}

impl PathOutcome {
    /// Mean time that a segment waited in the queue.
    pub fn mean_wait(&self) -> Duration {
        let stats = &self.stats;
        let passed = (stats.delivered + stats.lost).saturating_sub(stats.duplicated);
        Duration::from_nanos(stats.queue_wait_ns.checked_div(passed).unwrap_or(0))
    }

    /// Mean time that a segment was late by jitter, or by being held back.
    pub fn mean_lateness(&self) -> Duration {
        Duration::from_nanos(self.stats.late_ns.checked_div(self.stats.delivered).unwrap_or(0))
    }

    /// Whether segments can overtake each other here.
    pub fn reorders(&self) -> bool {
        let jitters = self.path.jitter_reorders && self.path.jitter != Jitter::None;
        jitters || self.stats.reordered > 0
    }
}

/// An interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostOutcome {
    /// Its counters.
    pub nic: NicStats,
    /// What each of its queues has to do with that.
    pub queues: Vec<QueueOutcome>,
    /// Its rate in bits per second.
    pub line_rate_bps: u64,
    /// Frames that its receive ring holds.
    pub rx_ring: usize,
    /// How many frames interrupt it, where no timer does.
    pub interrupt_packets: Option<u32>,
    /// Packets that its transmit ring holds.
    pub tx_ring: usize,
    /// Largest IP packet in bytes.
    pub mtu: usize,
    /// What it does for the processor, as far as it may.
    pub offloads: Capabilities,
    /// Time from a packet's last bit to the report that it left.
    pub completion_delay: Duration,
    /// What its processor did; of several, the busiest.
    pub cpu: CpuTimes,
    /// How much of the time that was: 0 to 1, from the first connection to the end of all flows.
    pub cpu_used: f64,
    /// The same of its line.
    pub line_used: f64,
    /// The memory that its sockets may hold, in bytes.
    pub memory: usize,
    /// How much of that they held on the mean, by time; 0 to 1.
    pub memory_used: f64,
    /// Segments and SYNs that its stack dropped for want of memory.
    pub no_memory: u64,
}

/// A queue of an interface, and the stack on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOutcome {
    /// Its counters.
    pub nic: NicStats,
    /// What the stacks on other queues have sent.
    pub letters: LetterStats,
}

impl HostOutcome {
    /// Mean time that a segment waited in the receive ring for the host to take it.
    pub fn mean_rx_wait(&self) -> Duration {
        Duration::from_nanos(self.nic.rx_wait_ns.checked_div(self.nic.rx_taken).unwrap_or(0))
    }
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
    /// Time from the connection to the last byte, or to the end where not everything has arrived.
    pub fn active(&self) -> Option<Duration> {
        let time = self.until.checked_sub(self.opened_at?)?;
        (!time.is_zero()).then_some(time)
    }

    /// Payload bits per second read in that time.
    pub fn goodput_bps(&self) -> f64 {
        self.active().map_or(0.0, |time| self.received as f64 * 8.0 / time.as_secs_f64())
    }

    /// How long data was under way until it was acknowledged, on average: what was in flight over the rate (Little 1961).
    /// Longer than the smoothed round-trip time where acknowledgements wait that nobody measured. What is still under way at
    /// the end counts in both, so that this is no longer than the transfer.
    pub fn time_in_flight(&self) -> Option<Duration> {
        let [_, rtt, _] = self.rtt?;
        let info = self.info?;
        let sent = (info.bytes_acked + u64::from(info.in_flight)).max(self.received).max(1) as f64;
        let share = (self.mean.in_flight / sent).min(1.0);
        Some(rtt.max(self.active()?.mul_f64(share)))
    }

    /// What kept the sender from sending faster for the longest time, and its share of all time.
    pub fn main_limit(&self) -> Option<(LimitCause, f64)> {
        main_limit(&self.info?.limits)
    }

    /// Bytes of the IP and TCP headers of a segment with data.
    pub fn ip_header_bytes(&self) -> f64 {
        let is_ipv4 = self.info.is_none_or(|info| info.remote.is_ipv4());
        let timestamps = if self.flow.timestamps { TIMESTAMPS } else { 0.0 };
        timestamps + if is_ipv4 { 40.0 } else { 60.0 }
    }

    /// Bytes on the wire beside the payload of a segment.
    pub fn header_bytes(&self) -> f64 {
        self.ip_header_bytes() + ETHERNET
    }

    /// The share of the rate that payload has when all segments are full: headers, preamble and gap take the rest.
    pub fn payload_share(&self) -> f64 {
        let Some(info) = self.info else { return 1.0 };
        let payload = f64::from(info.send_mss);
        payload / (payload + self.header_bytes())
    }
}

impl Outcome {
    /// The rate in bits per second that bounds what `side` sends: the path's or its interface's.
    pub fn rate_bps(&self, side: Side) -> u64 {
        let line = self.hosts.of(side).line_rate_bps;
        self.paths.of(side).path.rate_bps.map_or(line, |rate| rate.min(line))
    }

    /// What the flows that `side` sends could get in all: the rate without headers and without what the model of loss
    /// took, which in a short run may be far from its mean. `None` when the path changes on the way, or nothing is sent or can arrive.
    pub fn ideal_bps(&self, side: Side) -> Option<f64> {
        let path = self.paths.of(side);
        let flow = self.flows.iter().find(|flow| flow.flow.from == side)?;
        let (lost, all) = (path.stats.lost_bytes, path.stats.lost_bytes + path.stats.delivered_bytes);
        let lost = lost as f64 / all.max(1) as f64;
        let ideal = self.rate_bps(side) as f64 * flow.payload_share() * (1.0 - lost);
        (!path.changes && ideal >= 1.0).then_some(ideal)
    }

    /// The time from the first connection to the end of the last transfer.
    pub fn active(&self) -> Duration {
        let start = self.flows.iter().filter_map(|flow| flow.opened_at).min();
        let end = self.flows.iter().map(|flow| flow.until).max();
        start.zip(end).map_or(Duration::ZERO, |(start, end)| end.saturating_sub(start))
    }

    /// Payload bits per second of all transfers that `side` sends, from the first connection to the end.
    pub fn goodput_bps(&self, side: Side) -> f64 {
        let received: u64 =
            self.flows.iter().filter(|flow| flow.flow.from == side).map(|flow| flow.received).sum();
        received as f64 * 8.0 / self.active().as_secs_f64().max(1e-9)
    }

    /// The round-trip time without any waiting.
    pub fn base_rtt(&self) -> Duration {
        self.paths.client.path.delay + self.paths.server.path.delay
    }
}
