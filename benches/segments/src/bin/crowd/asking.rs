//! Our HTTP server on a wire, as its thread drives it but for sleeping, and a crowd of clients at the other end.

use crate::weight::weighed;
use linerate_linux::files::{DemoFile, DemoFiles};
use linerate_nic::Pool;
use linerate_serve::http::{Config, Limits, Server, Timeouts};
use linerate_serve::{Host, Loop, Service as _};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{ConnId, DelayedAck, Engine as _, Owner, SocketOptions, Transport as _};
use linerate_wire::units::Instant;
use segments::{Frames, WIRE, Wire, port};
use std::time::Duration;

/// Memory of each side, in bytes.
const MEMORY: usize = 256 << 20;
/// Connections from one address of the clients: what its ports allow, and some to spare.
const PER_ADDRESS: usize = 15_000;
/// Most turns of an exchange: more would be a loop without end.
const MOST_TURNS: usize = 100_000;
/// Requests after which a connection no longer acknowledges each at once, before its answer.
const QUICK: usize = 17;
/// Bytes that the answers of one run have together, at least.
const ANSWERED: usize = 4 << 20;

/// Clock and chance of a run, the same in each.
pub struct Machine {
    /// The time.
    pub now: Instant,
    state: u64,
}

impl Machine {
    /// At its beginning.
    pub fn new() -> Machine {
        Machine { now: Instant::from_millis(1), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.random() % end as u64) as usize
    }
}

impl Host for Machine {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wall_ns(&mut self) -> i64 {
        // 2026-01-02T03:04:05Z.
        1_767_323_045_000_000_000
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

/// The server's settings: its own but for room for all of the connections, and so much more that none gives way.
pub fn config(connections: usize) -> Config {
    Config {
        limits: Limits {
            connections: 2 * connections + 64,
            connections_per_address: 2 * connections + 64,
            ..Limits::default()
        },
        timeouts: Timeouts { idle: Duration::from_secs(3_600), ..Timeouts::default() },
        access_log: None,
        ..Config::default()
    }
}

/// What it serves.
pub fn files() -> std::io::Result<DemoFiles> {
    static BODY: [u8; 354] = [b'x'; 354];
    DemoFiles::new(&[DemoFile { path: "/f354.bin", bytes: &BODY, modified_ns: 0 }])
}

type Turns = Loop<Node<Wire>, DemoFiles, Server>;

/// Server and clients.
pub struct Crowd {
    server: Turns,
    clients: Node<Wire>,
    machine: Machine,
    conns: Vec<ConnId>,
}

/// One turn of the server that counts.
#[inline(never)]
fn measured(server: &mut Turns, machine: &mut Machine) -> bool {
    turn(server, machine)
}

#[inline(always)]
fn turn(server: &mut Turns, machine: &mut Machine) -> bool {
    let came = server.take_in(machine).expect("the wire is there");
    let served = server.serve(machine).expect("the wire is there");
    came | served
}

impl Crowd {
    /// With room for so many connections, none of which is there.
    pub fn new(connections: usize) -> Crowd {
        let pool = Pool::new(1_024, 2_048);
        let (there, back) = (Frames::default(), Frames::default());
        let stack = |addresses| StackConfig {
            max_connections: connections + 16,
            max_half_open: (connections / 4).max(64),
            memory: MEMORY / 4 * 3,
            addresses,
            dad_transmits: 0,
            ipv6: false,
            ..StackConfig::default()
        };
        let sizes = NodeConfig { rx_batch: WIRE, ..NodeConfig::default() };
        let count = connections.div_ceil(PER_ADDRESS).max(1);
        let addresses = (1..=count).map(|n| format!("10.0.1.{n}/8").parse().expect("an address")).collect();
        // What windows are promised from; frames lie in the wire's.
        let pools =
            || StackPools::for_memory(MEMORY).with_receive(Pool::on_demand(MEMORY / 2 / 2_048, 2_048));
        let clients = port(1, false, WIRE, &pool, &back, &there);
        let clients = Node::new(clients, stack(addresses), [1; 32], pools(), sizes);
        let mut machine = Machine::new();
        let wire = port(2, false, WIRE, &pool, &there, &back);
        let server = weighed(|| {
            let addresses = vec!["10.0.0.2/8".parse().expect("an address")];
            let engine = Node::new(wire, stack(addresses), [2; 32], pools(), sizes);
            let files = files().expect("a descriptor is left");
            let mut server = Loop::new(engine, files, Server::new(Owner(1), config(connections)));
            server.with(&mut machine, |http, ctx| http.start(ctx)).expect("a free port");
            server
        });
        Crowd { server, clients, machine, conns: Vec::with_capacity(connections) }
    }

    /// Turns both until nothing moves.
    fn exchange(&mut self, turn: fn(&mut Turns, &mut Machine) -> bool) {
        for _ in 0..MOST_TURNS {
            let now = self.machine.now;
            let mut moved = self.clients.input(now).expect("the wire is there").moved;
            while self.clients.stack.poll_event().is_some() {}
            moved |= self.clients.output(now).expect("the wire is there").moved;
            moved |= weighed(|| turn(&mut self.server, &mut self.machine));
            if !moved {
                return;
            }
        }
        panic!("clients and server are not done after {MOST_TURNS} turns");
    }

    /// Opens connections until there are so many.
    pub fn connect(&mut self, connections: usize) {
        // Each packet is acknowledged at once, so that all answers bring the same packets, however far apart they are.
        let options = SocketOptions {
            delayed_ack: DelayedAck { segments: 1, ..DelayedAck::default() },
            ..SocketOptions::default()
        };
        let to = "10.0.0.2:80".parse().expect("an address");
        while self.conns.len() < connections {
            let source = format!("10.0.1.{}:0", self.conns.len() / PER_ADDRESS + 1);
            let source = source.parse().expect("an address");
            let conn = self.clients.stack.connect(Owner(9), Some(source), to, &options).expect("room");
            self.conns.push(conn);
            self.exchange(turn);
            self.machine.now += Duration::from_micros(1);
        }
    }

    /// Lets time pass, with all that falls due in it.
    pub fn pass(&mut self, time: Duration) {
        let end = self.machine.now + time;
        loop {
            self.exchange(turn);
            let due = [self.clients.stack.poll_timeout(), self.server.poll_timeout()];
            match due.into_iter().flatten().min() {
                Some(next) if next <= end => {
                    self.machine.now = next.max(self.machine.now + Duration::from_micros(1));
                }
                _ => break,
            }
        }
        self.machine.now = end;
    }

    /// Asks over one connection, and returns the length of the answer's body, which must be the one given.
    fn ask(&mut self, at: usize, path: &str, body: usize, turn: fn(&mut Turns, &mut Machine) -> bool) {
        let conn = self.conns[at];
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n");
        self.clients.stack.write(conn, request.as_bytes()).expect("room for a request");
        let (mut head, mut came): (Option<usize>, usize) = (None, 0);
        for _ in 0..MOST_TURNS {
            self.exchange(turn);
            loop {
                let piece = self.clients.stack.peek(conn);
                let len = piece.len();
                if len == 0 {
                    break;
                }
                if head.is_none() {
                    assert!(piece.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(piece));
                    let end = piece.windows(4).position(|four| four == b"\r\n\r\n");
                    head = Some(end.expect("a whole head in the first segment") + 4);
                }
                self.clients.stack.consume(conn, len);
                came += len;
            }
            if head.is_some_and(|head| came >= head + body) {
                // The acknowledgement of the last piece.
                self.exchange(turn);
                assert_eq!(Some(came), head.map(|head| head + body), "bytes of the answer to {path}");
                return;
            }
            self.machine.now += Duration::from_micros(100);
        }
        panic!(
            "{came} of {body} bytes of {path} came on connection {at}: {:?}, server {:?}",
            self.clients.stack.state(conn),
            self.server.services().counters()
        );
    }

    /// Each connection asks once.
    pub fn ask_all(&mut self) {
        for at in 0..self.conns.len() {
            self.ask(at, "/f354.bin", 354, turn);
            self.machine.now += Duration::from_micros(1);
        }
    }

    /// Connections that the server has.
    pub fn served(&self) -> usize {
        self.server.engine.stack.memory().connections
    }
}

/// See the crate; returns the packets that the server got and sent in the turns that count.
pub fn requests(count: usize, connections: usize, idle: bool) -> u64 {
    let mut crowd = Crowd::new(connections);
    crowd.connect(connections);
    // A stride without a common factor with the number of connections meets each before it meets one again.
    let start = crowd.machine.below(connections);
    let stride = (connections / 2..).find(|stride| common(*stride, connections) == 1).unwrap_or(1);
    // Far apart: neither neighbours in the tables, nor those that came one after the other.
    let place = |number: usize| scattered((start + number * stride) % connections, connections);
    // What is made once, and the acknowledgements that a connection sends at once at its beginning, do not count.
    for _ in 0..QUICK {
        for number in 0..count.min(connections) {
            crowd.ask(place(number), "/f354.bin", 354, turn);
        }
    }
    if idle {
        crowd.pass(Duration::from_secs(5));
    }
    let packets = |crowd: &Crowd| {
        let counters = crowd.server.engine.stack.counters();
        counters.tcp_in + counters.tcp_out
    };
    let before = packets(&crowd);
    for number in 0..count {
        crowd.ask(place(number), "/f354.bin", 354, measured);
        crowd.machine.now += Duration::from_micros(1);
    }
    packets(&crowd) - before
}

/// See the crate; returns the bytes of the bodies that count.
pub fn answers(len: usize) -> usize {
    let mut crowd = Crowd::new(16);
    crowd.connect(1);
    let path = format!("/memory/{len}");
    // The window opens and buffers grow before what counts.
    crowd.ask(0, "/memory/1048576", 1 << 20, turn);
    crowd.ask(0, &path, len, turn);
    let times = ANSWERED.div_ceil(len);
    for _ in 0..times {
        crowd.ask(0, &path, len, measured);
    }
    times * len
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

/// A place of a fixed permutation of `0..count`, which is its own inverse: the bits of a place, backwards, where that is below
/// `count`.
fn scattered(at: usize, count: usize) -> usize {
    let bits = (count - 1).checked_ilog2().map_or(0, |log| log + 1);
    if bits == 0 {
        return at;
    }
    let place = at.reverse_bits() >> (usize::BITS - bits);
    if place < count { place } else { at }
}
