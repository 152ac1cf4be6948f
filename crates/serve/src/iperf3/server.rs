//! The server: connections to tests, tests through their phases, deadlines.

use super::config::Config;
use super::control::is_udp;
use super::params::Protocol;
use super::protocol::{self, COOKIE_LEN, Cookie, State};
use super::session::{Phase, Test};
use super::stream::{Carrier, Pause, Stream};
use super::udp;
use crate::admission::{Admission, Standing};
use crate::{Context, Deadlines, Service, StartError};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::*;
use linerate_wire::units::Instant;

/// Data may come this long after the end of a test of known length without any of it arriving.
const DRAIN_GAP: Duration = Duration::from_millis(500);
/// The same when all that was announced is here: a client may have sent a block more, and the end of that may be lost and
/// come again after the shortest retransmission timeout of Linux, 200 ms.
const SETTLE_GAP: Duration = Duration::from_millis(250);
/// The same for datagrams altogether: nothing else stops a client that goes on sending them.
const DATAGRAM_DRAIN_MAX: Duration = Duration::from_secs(5);
/// Most datagrams taken in one call.
const DATAGRAM_BUDGET: usize = 256;

/// What a connection is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Not known before its cookie is here.
    Greeting {
        cookie: Cookie,
        len: usize,
    },
    Control(u32),
    Stream(u32, usize),
}

/// What a deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    Greeting(ConnId),
    /// The current phase of a test must end.
    Phase(u32),
    /// The omit time of a test ends.
    Omit(u32),
    /// An interval of a test ends.
    Interval(u32),
    /// A stream has something to send again.
    Pump(u32, usize),
}

linerate_wire::figures! {
    /// Counters since the start.
    pub struct Counters {
        /// Tests begun.
        tests,
        /// Tests that came to their goodbye.
        completed,
        /// Connections and tests ended because newcomers needed their place: those that said nothing for longest.
        gave_way,
        /// Clients refused because of a limit or a bad cookie.
        refused [drop],
        /// Tests ended by a deadline.
        timed_out [drop],
        /// Datagrams that belong to no stream.
        stray_datagrams [drop],
    }
}

/// The iperf3 server.
pub struct Server {
    pub(super) config: Config,
    listeners: Vec<ListenerId>,
    sockets: Vec<UdpId>,
    /// The receive buffer that connections get at the moment, where a test has asked for one.
    offered: Option<usize>,
    pub(super) roles: BTreeMap<ConnId, Role>,
    /// Who holds these connections, and which give way.
    pub(super) admission: Admission,
    pub(super) tests: BTreeMap<u32, Test>,
    udp_streams: BTreeMap<(UdpId, SocketAddr), (u32, usize)>,
    pub(super) deadlines: Deadlines<Key>,
    next: u32,
    pub(super) counters: Counters,
}

impl Server {
    /// A server with these settings, not listening yet.
    pub fn new(config: Config) -> Self {
        let admission = Admission::new(config.max_connections, config.connections_per_address);
        Server {
            config,
            listeners: Vec::new(),
            sockets: Vec::new(),
            offered: None,
            roles: BTreeMap::new(),
            admission,
            tests: BTreeMap::new(),
            udp_streams: BTreeMap::new(),
            deadlines: Deadlines::new(),
            next: 0,
            counters: Counters::default(),
        }
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Tests under way.
    pub fn tests(&self) -> usize {
        self.tests.len()
    }

    /// Takes new settings: limits and time-outs for tests from now on; addresses stay.
    pub fn reload(&mut self, config: Config) {
        self.admission.set_limits(config.max_connections, config.connections_per_address);
        self.config =
            Config { owner: self.config.owner, listen: core::mem::take(&mut self.config.listen), ..config };
    }

    pub(super) fn handle_conn(&mut self, ctx: &mut Context<'_>, conn: ConnId, ready: Ready) {
        match self.roles.get(&conn).copied() {
            Some(Role::Greeting { cookie, len }) => self.greet(ctx, conn, cookie, len, ready),
            Some(Role::Control(id)) => self.handle_control(ctx, id, ready),
            Some(Role::Stream(id, index)) => self.handle_stream(ctx, id, index, ready),
            None => {}
        }
    }

    fn greet(
        &mut self,
        ctx: &mut Context<'_>,
        conn: ConnId,
        mut cookie: Cookie,
        mut len: usize,
        ready: Ready,
    ) {
        loop {
            let data = ctx.net.peek(conn);
            let take = data.len().min(COOKIE_LEN - len);
            if take == 0 {
                break;
            }
            cookie[len..len + take].copy_from_slice(&data[..take]);
            len += take;
            ctx.net.consume(conn, take);
        }
        if len < COOKIE_LEN {
            if ready.intersects(Ready::CLOSED | Ready::FINISHED) {
                self.forget_greeting(ctx, conn);
            } else {
                self.roles.insert(conn, Role::Greeting { cookie, len });
            }
            return;
        }
        self.deadlines.clear(Key::Greeting(conn));
        let known = self.tests.iter().find(|(_, test)| test.cookie == cookie).map(|(id, _)| *id);
        match known {
            Some(id) => self.add_tcp_stream(ctx, id, conn),
            None if protocol::cookie_is_valid(&cookie) && self.make_room_for_test(ctx, conn) => {
                self.begin(ctx, conn, cookie);
            }
            None => {
                log::info!(target: "iperf3", "refused a client: {} tests are running, or its cookie is none", self.tests.len());
                self.refuse(ctx, conn);
            }
        }
    }

    pub(super) fn forget_greeting(&mut self, ctx: &mut Context<'_>, conn: ConnId) {
        self.deadlines.clear(Key::Greeting(conn));
        self.forget(conn);
        ctx.net.abort(conn);
    }

    fn refuse(&mut self, ctx: &mut Context<'_>, conn: ConnId) {
        self.counters.refused += 1;
        self.forget(conn);
        // A connection that cannot even take one byte needs no answer.
        let _ = ctx.net.write(conn, &[State::AccessDenied.byte()]);
        ctx.net.close(conn);
    }

    fn begin(&mut self, ctx: &mut Context<'_>, conn: ConnId, cookie: Cookie) {
        let Some(info) = ctx.net.info(conn) else {
            self.forget(conn);
            ctx.net.abort(conn);
            return;
        };
        self.next = self.next.wrapping_add(1);
        let id = self.next;
        let test = Test::new(conn, info.remote, cookie, ctx.now, (self.config.cpu_times)());
        self.tests.insert(id, test);
        self.counters.tests += 1;
        self.assign(ctx, conn, Role::Control(id));
        self.deadlines.set(Key::Phase(id), ctx.now + self.config.greeting_timeout);
        log::debug!(target: "iperf3", "test {id}: client {}", info.remote);
        self.say(ctx, id, State::ParamExchange);
        self.handle_control(ctx, id, Ready::READABLE);
    }

    fn add_tcp_stream(&mut self, ctx: &mut Context<'_>, id: u32, conn: ConnId) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let fits = test.phase == Phase::Streams { asked: true } && !is_udp(test);
        let Some(params) = test.params.as_ref().filter(|_| fits) else {
            self.refuse(ctx, conn);
            return;
        };
        let mut options = self.config.socket.clone();
        if let Some(window) = params.window {
            options.send_buffer = BufferSize::Fixed(window);
            options.receive_buffer = BufferSize::Fixed(window);
        }
        options.mss = params.mss.or(options.mss);
        options.no_delay |= params.no_delay;
        options.tos = params.tos;
        options.congestion = params.congestion.unwrap_or(options.congestion);
        if params.pacing_bps > 0 {
            options.pacing = Pacing::Rate(params.pacing_bps.div_ceil(8));
        }
        ctx.net.set_options(conn, &options);
        let index = test.streams.len();
        self.assign(ctx, conn, Role::Stream(id, index));
        self.add_stream(ctx, id, Carrier::Tcp(conn));
    }

    /// Has listeners offer the window that the newest test which opens its streams has asked for: a buffer that is set
    /// once a connection is there may be too late for its window. Streams of another test that come meanwhile get it, too.
    pub(super) fn offer_window(&mut self, ctx: &mut Context<'_>) {
        let opens = |test: &&Test| test.phase == Phase::Streams { asked: true } && !is_udp(test);
        let newest = self.tests.values().rev().find(opens);
        let wanted = newest.and_then(|test| test.params.as_ref()).and_then(|params| params.window);
        if wanted != self.offered {
            self.offered = wanted;
            for listener in &self.listeners {
                ctx.net.offer_buffer(*listener, wanted);
            }
        }
    }

    fn add_stream(&mut self, ctx: &mut Context<'_>, id: u32, carrier: Carrier) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let Some(params) = &test.params else { return };
        let index = test.streams.len();
        test.streams.push(Stream::new(index, carrier, params.server_sends(index)));
        if test.streams.len() == params.stream_count() {
            self.run(ctx, id);
        }
    }

    fn run(&mut self, ctx: &mut Context<'_>, id: u32) {
        let now = ctx.now;
        let Some(test) = self.tests.get_mut(&id) else { return };
        let Some(params) = test.params.clone() else { return };
        test.phase = Phase::Running;
        test.started = now;
        test.counted_from = now;
        test.cpu = (self.config.cpu_times)();
        for stream in test.streams.iter_mut().filter(|stream| stream.sends) {
            stream.start(now, &params);
        }
        let streams = test.streams.len();
        let client = test.client;
        self.admission.place(test.control, Standing::Busy, now);
        self.deadlines.set(Key::Interval(id), now + Duration::from_secs(1));
        if !params.omit.is_zero() {
            self.deadlines.set(Key::Omit(id), now + params.omit);
        }
        let limit = if params.ends_by_time() {
            params.time + params.omit + self.config.overrun
        } else {
            // The progress is looked at instead.
            self.config.stall_timeout
        };
        self.deadlines.set(Key::Phase(id), now + limit);
        let protocol = if params.protocol == Protocol::Udp { "UDP" } else { "TCP" };
        let plural = if streams == 1 { "" } else { "s" };
        log::info!(target: "iperf3", "test {id}: client {client}, {streams} {protocol} stream{plural}");
        self.offer_window(ctx);
        self.say(ctx, id, State::TestStart);
        self.say(ctx, id, State::TestRunning);
        for index in 0..streams {
            self.handle_stream(ctx, id, index, Ready::READABLE | Ready::WRITABLE);
        }
        // The next UDP client from the same address may open its streams now.
        let waiting =
            |test: &Test| test.client.ip() == client.ip() && test.phase == Phase::Streams { asked: false };
        let next = self.tests.iter().find(|(_, test)| waiting(test)).map(|(id, _)| *id);
        if let Some(next) = next {
            self.ask_for_streams(ctx, next);
        }
    }

    fn handle_stream(&mut self, ctx: &mut Context<'_>, id: u32, index: usize, ready: Ready) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let left = test.left_to_send();
        let Some(stream) = test.streams.get_mut(index) else { return };
        if !stream.sends {
            // Data may come before the other streams are open: it waits in the window until the test runs.
            if matches!(test.phase, Phase::Running | Phase::Draining) {
                stream.swallow(ctx);
            }
        } else if test.phase == Phase::Running
            && let Some(params) = &test.params
        {
            match stream.pump(ctx, params, left) {
                Pause::Full | Pause::Over => {
                    self.deadlines.clear(Key::Pump(id, index));
                }
                Pause::Until(at) => self.deadlines.set(Key::Pump(id, index), at),
            }
        }
        if Stream::is_over(ready) {
            stream.measure(ctx);
            if matches!(test.phase, Phase::Streams { .. } | Phase::Running) {
                self.end(ctx, id, "a stream is gone");
                return;
            }
        }
        if test.phase == Phase::Draining {
            let gap = drain_gap(test);
            self.deadlines.set(Key::Phase(id), ctx.now + gap);
        }
    }

    /// The client has ended the test.
    pub(super) fn stop_data(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        test.ended = ctx.now;
        test.close_interval(ctx.now);
        let streams = test.streams.len();
        self.deadlines.clear(Key::Interval(id));
        self.deadlines.clear(Key::Omit(id));
        for index in 0..streams {
            self.deadlines.clear(Key::Pump(id, index));
            self.handle_stream(ctx, id, index, Ready::READABLE);
        }
        let Some(test) = self.tests.get_mut(&id) else { return };
        for stream in &mut test.streams {
            stream.measure(ctx);
        }
        if test.expects_bytes() {
            let gap = drain_gap(test);
            test.phase = Phase::Draining;
            self.deadlines.set(Key::Phase(id), ctx.now + gap);
        } else {
            self.ask_for_results(ctx, id);
        }
    }

    fn ask_for_results(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        test.phase = Phase::Results;
        self.deadlines.set(Key::Phase(id), ctx.now + self.config.results_timeout);
        self.close_streams(ctx, id);
        self.say(ctx, id, State::ExchangeResults);
    }

    fn close_streams(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get(&id) else { return };
        for (index, stream) in test.streams.iter().enumerate() {
            self.deadlines.clear(Key::Pump(id, index));
            match stream.carrier {
                Carrier::Tcp(conn) => {
                    self.roles.remove(&conn);
                    self.admission.remove(conn);
                    ctx.net.close(conn);
                }
                Carrier::Udp { socket, remote, .. } => {
                    self.udp_streams.remove(&(socket, remote));
                }
            }
        }
    }

    /// Ends a test and lets go of all it has.
    pub(super) fn end(&mut self, ctx: &mut Context<'_>, id: u32, why: &str) {
        self.close_streams(ctx, id);
        let Some(test) = self.tests.remove(&id) else { return };
        self.forget(test.control);
        ctx.net.close(test.control);
        for key in [Key::Phase(id), Key::Omit(id), Key::Interval(id)] {
            self.deadlines.clear(key);
        }
        log::info!(target: "iperf3", "test {id} ended: {why}; {} bytes moved", test.moved_bytes());
        self.offer_window(ctx);
        let waiting = |test: &Test| test.phase == Phase::Streams { asked: false };
        let next: Vec<u32> = self.tests.iter().filter(|(_, test)| waiting(test)).map(|(id, _)| *id).collect();
        for id in next {
            self.ask_for_streams(ctx, id);
        }
    }

    fn handle_udp(&mut self, ctx: &mut Context<'_>, socket: UdpId) {
        for _ in 0..DATAGRAM_BUDGET {
            let Some(datagram) = ctx.net.udp_peek(socket) else { return };
            let (local, remote, len) = (datagram.local, datagram.remote, datagram.data.len());
            if let Some((id, index)) = self.udp_streams.get(&(socket, remote)).copied() {
                // Its first datagram again: our answer was lost.
                let is_hello = len < udp::MAX_HELLO;
                let waits = |test: &Test| matches!(test.phase, Phase::Streams { .. });
                if is_hello && self.tests.get(&id).is_some_and(waits) {
                    ctx.net.udp_consume(socket);
                    let _ = ctx.net.udp_send(socket, Some(local), remote, &udp::HELLO_REPLY);
                    continue;
                }
                if let Some(test) = self.tests.get_mut(&id)
                    && let Some(stream) = test.streams.get_mut(index)
                    && let Some(params) = &test.params
                    && !stream.sends
                    && matches!(test.phase, Phase::Running | Phase::Draining)
                {
                    stream.datagram(ctx.now, datagram.data, params.counters_64bit);
                    if test.phase == Phase::Draining {
                        let at = (ctx.now + drain_gap(test)).min(test.ended + DATAGRAM_DRAIN_MAX);
                        self.deadlines.set(Key::Phase(id), at);
                    }
                }
                ctx.net.udp_consume(socket);
                continue;
            }
            ctx.net.udp_consume(socket);
            match self.opening_udp(remote.ip()).filter(|_| len <= udp::MAX_HELLO) {
                Some(id) => {
                    let index = self.tests.get(&id).map_or(0, |test| test.streams.len());
                    self.udp_streams.insert((socket, remote), (id, index));
                    // If the answer is lost, so is the test: the protocol has no second try, and the deadline ends it.
                    let _ = ctx.net.udp_send(socket, Some(local), remote, &udp::HELLO_REPLY);
                    self.add_stream(ctx, id, Carrier::Udp { socket, local, remote });
                }
                None => self.counters.stray_datagrams += 1,
            }
        }
        // The event will not come again for what is left.
        self.deadlines.set(Key::Pump(0, socket.index() as usize), ctx.now);
    }

    fn expire(&mut self, ctx: &mut Context<'_>, key: Key) {
        match key {
            Key::Greeting(conn) => {
                self.counters.timed_out += 1;
                self.forget_greeting(ctx, conn);
            }
            Key::Phase(id) => self.expire_phase(ctx, id),
            Key::Omit(id) => {
                if let Some(test) = self.tests.get_mut(&id) {
                    test.counted_from = ctx.now;
                    test.intervals.clear();
                    test.streams.iter_mut().for_each(|stream| stream.end_omit(ctx));
                    self.deadlines.set(Key::Interval(id), ctx.now + Duration::from_secs(1));
                }
            }
            Key::Interval(id) => {
                if let Some(test) = self.tests.get_mut(&id) {
                    test.close_interval(ctx.now);
                    self.deadlines.set(Key::Interval(id), ctx.now + Duration::from_secs(1));
                }
            }
            // Tests are numbered from 1; 0 stands for the UDP sockets.
            Key::Pump(0, index) => {
                if let Some(socket) = self.sockets.iter().copied().find(|s| s.index() as usize == index) {
                    self.handle_udp(ctx, socket);
                }
            }
            Key::Pump(id, index) => self.handle_stream(ctx, id, index, Ready::WRITABLE),
        }
    }

    fn expire_phase(&mut self, ctx: &mut Context<'_>, id: u32) {
        let Some(test) = self.tests.get_mut(&id) else { return };
        let moved = test.moved_bytes();
        let by_progress = test.params.as_ref().is_some_and(|params| !params.ends_by_time());
        if test.phase == Phase::Draining {
            self.ask_for_results(ctx, id);
        } else if test.phase == Phase::Running && by_progress && moved > test.seen_bytes {
            test.seen_bytes = moved;
            self.deadlines.set(Key::Phase(id), ctx.now + self.config.stall_timeout);
        } else {
            self.counters.timed_out += 1;
            self.end(ctx, id, "it took too long");
        }
    }
}

/// How long the end of a test of known length waits for more.
fn drain_gap(test: &Test) -> Duration {
    if test.is_complete() { SETTLE_GAP } else { DRAIN_GAP }
}

impl Service for Server {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        let options = ListenOptions {
            backlog: self.config.backlog,
            socket: self.config.socket.clone(),
            ..ListenOptions::default()
        };
        for addr in self.config.listen.clone() {
            let name = |kind: &str| match addr.ip {
                Some(ip) => format!("iperf3 {kind} {}", SocketAddr::new(ip, addr.port)),
                None => format!("iperf3 {kind} port {}", addr.port),
            };
            let listener = ctx.net.listen(self.config.owner, addr, &options);
            self.listeners.push(listener.map_err(|why| StartError { what: name("TCP"), why })?);
            let socket = ctx.net.udp_bind(self.config.owner, addr, self.config.udp_buffer);
            self.sockets.push(socket.map_err(|why| StartError { what: name("UDP"), why })?);
        }
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Listener(listener) => self.accept(ctx, listener),
            Source::Conn(conn) => self.handle_conn(ctx, conn, event.ready),
            Source::Udp(socket) => self.handle_udp(ctx, socket),
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
            self.expire(ctx, key);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        for listener in self.listeners.drain(..) {
            ctx.net.close_listener(listener);
        }
        let greeting: Vec<ConnId> = self
            .roles
            .iter()
            .filter(|(_, role)| matches!(role, Role::Greeting { .. }))
            .map(|(c, _)| *c)
            .collect();
        for conn in greeting {
            self.forget_greeting(ctx, conn);
        }
        // A test may run for a day: its client is told that the server goes, as the original does.
        let tests: Vec<u32> = self.tests.keys().copied().collect();
        for id in tests {
            self.say(ctx, id, State::ServerTerminate);
            self.end(ctx, id, "the server stops");
        }
    }

    fn is_idle(&self) -> bool {
        self.tests.is_empty()
    }
}
