//! What a client has: its connections, its phase, its deadlines.
//!
//! ```text
//!  Connecting ──> Greeted ──> Asked ──> Opening ──> Ready ──> Running ──> Ending ──> Results ──> Shown ──> over
//!       │            │          │          │          │          │           │          │          │
//!       └────────────┴──────────┴── refused, lost, silent, interrupted ──────┴──────────┴──────────┴──> over
//! ```

use super::super::config::CpuTimes;
use super::super::params::{Params, Protocol};
use super::super::protocol::{COOKIE_LEN, Cookie};
use super::super::stream::Stream;
use super::config::Config;
use super::error::ClientError;
use super::marks::Marks;
use super::report::{Connected, Interval};
use crate::{Context, Deadlines};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use linerate_transport::{ConnId, ConnState, UdpId};
use linerate_wire::units::Instant;
use serde_json::Value;

/// Where a test stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Phase {
    /// The control connection is being opened.
    Connecting,
    /// The cookie is sent; the server is to ask for the parameters.
    Greeted,
    /// The parameters are sent; the server is to ask for the streams.
    Asked,
    /// The streams are being opened, one after the other, as their order tells what they are for.
    Opening,
    /// All are open; the server is to start the test.
    Ready,
    /// Data moves.
    Running,
    /// The server was told of the end; it is to ask for the results.
    Ending,
    /// Our results are sent; the server is to send its own.
    Results,
    /// They are here; the server is to end the exchange.
    Shown,
    /// It is over.
    Over,
}

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// The server is to go on.
    Phase,
    /// The first datagram of the stream that is being opened is sent again.
    Hello,
    /// The omit time ends.
    Omit,
    /// An interval ends.
    Interval,
    /// The test ends.
    End,
    /// Whether all that was sent of a test of known length has arrived is looked at again.
    Flush,
    /// A stream has something to send again.
    Pump(usize),
    /// A stream was lost and the server has not said why.
    Lost,
}

/// What happens, as it happens.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientEvent {
    /// The streams are open and the test begins.
    Started(Vec<Connected>),
    /// An interval has ended.
    Interval(Interval),
}

/// An iperf3 client for one test.
pub struct Client {
    pub(super) config: Config,
    pub(super) params: Params,
    pub(super) phase: Phase,
    pub(super) cookie: Cookie,
    pub(super) control: Option<ConnId>,
    pub(super) mss: u32,
    /// Control bytes not understood yet.
    pub(super) input: Vec<u8>,
    pub(super) streams: Vec<Stream>,
    pub(super) marks: Vec<Marks>,
    pub(super) connected: Vec<Connected>,
    pub(super) conns: BTreeMap<ConnId, usize>,
    pub(super) sockets: BTreeMap<UdpId, usize>,
    pub(super) deadlines: Deadlines<Key>,
    /// When data began to move, when it began to count, when it ended.
    pub(super) started: Instant,
    pub(super) counted_from: Instant,
    pub(super) ended: Instant,
    pub(super) interval_from: Instant,
    pub(super) omits: bool,
    /// Until when a test of known length waits at most for its last bytes to arrive.
    pub(super) flush_until: Option<Instant>,
    pub(super) cpu: CpuTimes,
    pub(super) cpu_share: [f64; 3],
    pub(super) events: VecDeque<ClientEvent>,
    pub(super) results: Option<Value>,
    pub(super) lost: Option<ClientError>,
    pub(super) outcome: Option<Result<(), ClientError>>,
}

impl Client {
    /// A client with these settings, which has not begun.
    pub fn new(config: Config) -> Client {
        let params = config.params.clone();
        Client {
            config,
            params,
            phase: Phase::Connecting,
            cookie: [0; COOKIE_LEN],
            control: None,
            mss: 0,
            input: Vec::new(),
            streams: Vec::new(),
            marks: Vec::new(),
            connected: Vec::new(),
            conns: BTreeMap::new(),
            sockets: BTreeMap::new(),
            deadlines: Deadlines::new(),
            started: Instant::ZERO,
            counted_from: Instant::ZERO,
            ended: Instant::ZERO,
            interval_from: Instant::ZERO,
            omits: false,
            flush_until: None,
            cpu: CpuTimes::default(),
            cpu_share: [0.0; 3],
            events: VecDeque::new(),
            results: None,
            lost: None,
            outcome: None,
        }
    }

    /// How the test went; `None` while it is under way.
    pub fn outcome(&self) -> Option<Result<(), ClientError>> {
        self.outcome
    }

    /// What has happened since, each once.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// The parameters as they were sent: with the length that was chosen.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Payload bytes that were queued for sending and those received, in the time that counts.
    pub fn moved_bytes(&self) -> (u64, u64) {
        let sum = |sends: bool| {
            self.streams.iter().filter(|stream| stream.sends == sends).map(Stream::counted_bytes).sum()
        };
        (sum(true), sum(false))
    }

    pub(super) fn is_udp(&self) -> bool {
        self.params.protocol == Protocol::Udp
    }

    /// Ends it. What was measured stays.
    pub(super) fn end(&mut self, ctx: &mut Context<'_>, outcome: Result<(), ClientError>) {
        if self.phase == Phase::Running {
            self.stop_clock(ctx);
        }
        self.phase = Phase::Over;
        self.outcome = Some(outcome);
        while self.deadlines.pop_expired(Instant::FAR_FUTURE).is_some() {}
        for (conn, _) in core::mem::take(&mut self.conns) {
            // What a receiver has queued for us is of no use any more.
            if outcome.is_ok() { ctx.net.close(conn) } else { ctx.net.abort(conn) }
        }
        for (socket, _) in core::mem::take(&mut self.sockets) {
            ctx.net.udp_close(socket);
        }
        if let Some(control) = self.control.take() {
            ctx.net.close(control);
        }
    }
}

/// Why a connection is over; [`linerate_transport::CloseReason::Done`] while it is open.
pub(super) fn reason(ctx: &Context<'_>, conn: ConnId) -> linerate_transport::CloseReason {
    match ctx.net.state(conn) {
        ConnState::Closed(why) => why,
        _ => linerate_transport::CloseReason::Done,
    }
}
