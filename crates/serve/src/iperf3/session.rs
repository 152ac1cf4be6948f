//! One test: its control connection, its phase, its streams.
//!
//! ```text
//!  Params ──> Streams ──> Running ──> Draining ──> Results ──> Goodbye ──> gone
//!    │           │           │            │            │           │
//!    └───────────┴───────────┴── control connection lost, deadline ┴──> gone
//! ```

use super::config::CpuTimes;
use super::params::{Params, Protocol};
use super::protocol::Cookie;
use super::stream::Stream;
use alloc::vec::Vec;
use core::net::SocketAddr;
use linerate_transport::ConnId;
use linerate_wire::units::Instant;

/// Most intervals kept for the server's own report: beyond an hour they are no longer added.
const MAX_INTERVALS: usize = 3600;

/// Shortest interval that is shown by itself, in ns.
const MIN_INTERVAL_NS: u64 = 100_000_000;

/// Where a test stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Waiting for the client's parameters.
    Params,
    /// Waiting for the client's streams. `asked` once the client was told to open them: of two UDP tests from one
    /// address only one is at a time, because nothing in a datagram tells which test it belongs to.
    Streams { asked: bool },
    /// Data moves.
    Running,
    /// The client said that it has sent everything of a test of known length; the last of it is on its way.
    Draining,
    /// Waiting for the client's results.
    Results,
    /// Waiting for the client's goodbye.
    Goodbye,
}

/// Bytes of all streams in one interval of a second.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Start, in ns since the test began to count.
    pub start_ns: u64,
    /// End, in ns since the test began to count.
    pub end_ns: u64,
    /// Bytes received by this server.
    pub received: u64,
    /// Bytes sent by this server.
    pub sent: u64,
}

/// A test.
#[derive(Debug)]
pub struct Test {
    pub control: ConnId,
    pub cookie: Cookie,
    pub client: SocketAddr,
    pub phase: Phase,
    pub params: Option<Params>,
    /// Control bytes not understood yet.
    pub input: Vec<u8>,
    pub streams: Vec<Stream>,
    /// When its client came.
    pub asked: Instant,
    /// When data began to move.
    pub started: Instant,
    /// When it began to count.
    pub counted_from: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Bytes seen at the last look for a stall.
    pub seen_bytes: u64,
    pub cpu: CpuTimes,
    pub intervals: Vec<Interval>,
}

impl Test {
    /// A test whose control connection has sent its cookie.
    pub fn new(control: ConnId, client: SocketAddr, cookie: Cookie, now: Instant, cpu: CpuTimes) -> Self {
        Test {
            control,
            cookie,
            client,
            phase: Phase::Params,
            params: None,
            input: Vec::new(),
            streams: Vec::new(),
            asked: now,
            started: now,
            counted_from: now,
            ended: now,
            seen_bytes: 0,
            cpu,
            intervals: Vec::new(),
        }
    }

    /// Bytes in both directions, omitted ones included.
    pub fn moved_bytes(&self) -> u64 {
        self.streams.iter().map(Stream::moved_bytes).sum()
    }

    /// Bytes received that count.
    pub fn received_bytes(&self) -> u64 {
        self.streams.iter().filter(|stream| !stream.sends).map(Stream::counted_bytes).sum()
    }

    /// Whether the client announced how many bytes it will send.
    pub fn expects_bytes(&self) -> bool {
        let receives = self.streams.iter().any(|stream| !stream.sends);
        receives && self.params.as_ref().is_some_and(|params| params.total_bytes().is_some())
    }

    /// Whether all that the client announced is here.
    pub fn is_complete(&self) -> bool {
        match self.params.as_ref().and_then(Params::total_bytes) {
            Some(total) if self.expects_bytes() => self.received_bytes() >= total,
            _ => true,
        }
    }

    /// Bytes that this server still has to send, on all its streams together, where the client gave the length of the
    /// test; `None` where it sends until the client ends the test.
    ///
    /// That is also so with datagrams, because a client waits until the whole length has arrived and some may be lost,
    /// and with an omit time, as each side ends it by its own clock and the client does not count what came before.
    pub fn left_to_send(&self) -> Option<u64> {
        let params = self.params.as_ref()?;
        let total = params.total_bytes()?;
        if params.protocol == Protocol::Udp || !params.omit.is_zero() {
            return None;
        }
        let sent = self.streams.iter().filter(|stream| stream.sends).map(Stream::counted_bytes).sum();
        Some(total.saturating_sub(sent))
    }

    /// Ends an interval at `now`.
    pub fn close_interval(&mut self, now: Instant) {
        let start_ns = self.intervals.last().map_or(0, |last| last.end_ns);
        let end_ns = u64::try_from((now - self.counted_from).as_nanos()).unwrap_or(u64::MAX);
        let (mut sent, mut received) = (0, 0);
        for stream in &mut self.streams {
            let bytes = stream.counted_bytes();
            let moved = bytes.saturating_sub(stream.reported_bytes);
            stream.reported_bytes = bytes;
            *if stream.sends { &mut sent } else { &mut received } += moved;
        }
        let is_room = self.intervals.len() < MAX_INTERVALS && end_ns > start_ns;
        let is_short = end_ns.saturating_sub(start_ns) < MIN_INTERVAL_NS;
        match self.intervals.last_mut().filter(|_| is_short) {
            // A test ends a moment after its last full second: that is no interval of its own.
            Some(last) => {
                last.end_ns = end_ns;
                last.received += received;
                last.sent += sent;
            }
            None if is_room => {
                self.intervals.push(Interval { start_ns, end_ns, received, sent });
            }
            None => {}
        }
    }

    /// Seconds that count.
    pub fn duration_s(&self) -> f64 {
        (self.ended - self.counted_from).as_nanos() as f64 / 1e9
    }
}
