//! The client: its connections, its phase, its deadlines.
//!
//! ```text
//!  Connecting ──> Greeted ──> Asked ──> Opening ──> Ready ──> Running ──> Ending ──> Results ──> Shown ──> over
//!       │            │          │          │          │          │           │          │          │
//!       └────────────┴──────────┴── refused, lost, silent, interrupted ──────┴──────────┴──────────┴──> over
//! ```

use super::super::config::CpuTimes;
use super::super::params::{Params, Protocol};
use super::super::protocol::{COOKIE_LEN, Cookie, State};
use super::super::stream::Stream;
use super::config::Config;
use super::error::ClientError;
use super::measure::Marks;
use super::report::{Connected, Interval, Report};
use crate::{Context, Deadlines, Service, StartError};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use linerate_transport::{ConnId, ConnState, Event, FileDone, Ready, Source, UdpId};
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

    /// All that is known of the test, also when it did not come to its end.
    pub fn report(&self) -> Report {
        super::measure::report(self)
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

    fn handle_conn(&mut self, ctx: &mut Context<'_>, conn: ConnId, ready: Ready) {
        if self.control == Some(conn) {
            self.handle_control(ctx, conn, ready);
        } else if let Some(index) = self.conns.get(&conn).copied() {
            self.handle_stream_event(ctx, index, conn, ready);
        }
    }

    fn expire(&mut self, ctx: &mut Context<'_>, key: Key) {
        match key {
            Key::Phase => {
                let error = match self.phase {
                    Phase::Connecting => ClientError::ConnectTimeout,
                    Phase::Opening if self.is_udp() => ClientError::NoDatagram,
                    _ => ClientError::Silent,
                };
                self.end(ctx, Err(error));
            }
            Key::Hello => self.say_hello(ctx),
            Key::Omit => self.end_omit(ctx),
            Key::Interval => {
                self.close_interval(ctx);
                self.deadlines.set(Key::Interval, ctx.now + self.config.interval);
            }
            Key::End => self.stop(ctx),
            Key::Flush => self.stop_when_acknowledged(ctx),
            Key::Pump(index) => self.move_data(ctx, index),
            Key::Lost => {
                let error = self.lost.unwrap_or(ClientError::Silent);
                self.end(ctx, Err(error));
            }
        }
    }
}

impl Service for Client {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        for (at, byte) in self.cookie[..COOKIE_LEN - 1].iter_mut().enumerate() {
            let alphabet = b"abcdefghijklmnopqrstuvwxyz234567";
            *byte = alphabet[((ctx.random)() >> (at % 8)) as usize % alphabet.len()];
        }
        match ctx.net.connect(self.config.owner, None, self.config.server, &self.config.socket) {
            Ok(conn) => {
                self.control = Some(conn);
                self.deadlines.set(Key::Phase, ctx.now + self.config.connect_timeout);
            }
            Err(why) => self.end(ctx, Err(ClientError::Open(why))),
        }
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Conn(conn) => self.handle_conn(ctx, conn, event.ready),
            Source::Udp(socket) => self.handle_udp(ctx, socket),
            Source::Listener(_) => {}
        }
    }

    fn handle_file(&mut self, _ctx: &mut Context<'_>, _done: FileDone) {}

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        // A stream that yields sets its deadline to now again: one round, so that others have their turn.
        let mut due = Vec::new();
        while let Some(key) = self.deadlines.pop_expired(ctx.now) {
            due.push(key);
        }
        for key in due {
            if self.phase != Phase::Over {
                self.expire(ctx, key);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Tells the server that the user ends the test, and ends it.
    fn drain(&mut self, ctx: &mut Context<'_>) {
        if self.phase == Phase::Over {
            return;
        }
        if let Some(control) = self.control.filter(|_| self.phase > Phase::Connecting) {
            // It may be lost: then there is nobody to tell.
            let _ = ctx.net.write(control, &[State::ClientTerminate.byte()]);
        }
        self.end(ctx, Err(ClientError::Interrupted));
    }

    fn is_idle(&self) -> bool {
        self.phase == Phase::Over
    }
}

/// Why a connection is over; [`linerate_transport::CloseReason::Done`] while it is open.
pub(super) fn reason(ctx: &Context<'_>, conn: ConnId) -> linerate_transport::CloseReason {
    match ctx.net.state(conn) {
        ConnState::Closed(why) => why,
        _ => linerate_transport::CloseReason::Done,
    }
}
