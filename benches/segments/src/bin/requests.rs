//! Short HTTP requests: our servers' loop over one of our nodes, and clients over another, with the wire between them.
//!
//! The device is one that leaves nothing to do in software, as a TAP: checksums, segmentation, coalescing, gathering. The file is
//! in memory, every operation is done when its answer is asked for, and there is no access log.
//!
//! `requests keep|close CLIENTS COUNT`: on connections that are kept, or on one for each; the instructions of the server are those
//! within the function `server`. A program of its own, as what else is in a program decides what the compiler inlines.

use linerate_nic::{Capabilities, Pool, Port, PortConfig};
use linerate_serve::http::{self, Server};
use linerate_serve::{Host, Loop, Service as _};
use linerate_stack::{Node, NodeConfig};
use linerate_transport::{
    Bytes, ConnId, ConnState, Engine as _, FileDone, FileError, FileId, FileKind, FileOp, FileReply, Files,
    ListenAddr, Metadata, Owner, Payload, Rights, SocketOptions, Source, Transport as _, VirtualPath,
};
use linerate_wire::units::Instant;
use segments::{Frames, Wire, node};
use std::collections::{HashSet, VecDeque};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

/// Most clients that ask at once, each when its last answer is there.
const CLIENTS: usize = 64;
/// Bytes of the file.
const FILE: usize = 354;
/// Frames that wait on the wire in each direction, and those that an end takes at once.
const WIRE: usize = 4 * CLIENTS;

const KEPT: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n";
const CLOSING: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: 10.0.0.2\r\nConnection: close\r\n\r\n";

/// One file.
struct OneFile {
    bytes: Bytes,
    queue: VecDeque<(Owner, u64, FileOp)>,
}

impl OneFile {
    fn meta(&self) -> Metadata {
        let len = self.bytes.len() as u64;
        Metadata {
            kind: FileKind::File,
            len,
            modified_ns: 1_600_000_000_000_000_000,
            changed_ns: 1_600_000_000_000_000_000,
            inode: 1,
            mode: 0o644,
            rights: Rights::ALL,
        }
    }
}

impl Files for OneFile {
    fn submit(&mut self, owner: Owner, tag: u64, op: FileOp) -> Result<(), FileOp> {
        self.queue.push_back((owner, tag, op));
        Ok(())
    }

    fn poll_done(&mut self) -> Option<FileDone> {
        let (owner, tag, op) = self.queue.pop_front()?;
        let reply = match op {
            FileOp::Open { .. } => FileReply::Opened { file: FileId::new(1, 1), meta: self.meta() },
            FileOp::Stat { .. } => FileReply::Meta(self.meta()),
            FileOp::Read { offset, len, .. } => {
                let start = (offset as usize).min(self.bytes.len());
                FileReply::Data(self.bytes.slice(start..(start + len).min(self.bytes.len())))
            }
            _ => FileReply::Done,
        };
        Some(FileDone { owner, tag, result: Ok(reply) })
    }

    fn has_done(&self) -> bool {
        !self.queue.is_empty()
    }

    fn stat_now(&mut self, _path: &VirtualPath) -> Option<Result<Metadata, FileError>> {
        Some(Ok(self.meta()))
    }
}

/// A clock that the wire moves.
struct Machine {
    now: Instant,
    random: u64,
}

impl Host for Machine {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wall_ns(&mut self) -> i64 {
        1_700_000_000_000_000_000 + (self.now - Instant::ZERO).as_nanos() as i64
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random
    }
}

type Core = Loop<Node<Wire>, OneFile, Server>;

/// A turn as the host's loop takes it.
#[inline(never)]
fn server(core: &mut Core, machine: &mut Machine) {
    let taken_in = core.take_in(machine).expect("the wire is there");
    if core.serve(machine).expect("the wire is there") || taken_in {
        core.settle(machine).expect("the wire is there");
    }
}

/// Those who ask.
struct Clients {
    node: Node<Wire>,
    closing: bool,
    /// Connections that are not there yet.
    opening: HashSet<ConnId>,
    /// Bytes of an answer, found with the first.
    answer: usize,
    started: usize,
    all: usize,
    answered: usize,
}

impl Clients {
    #[inline(never)]
    fn turn(&mut self, now: Instant) {
        self.node.input(now).expect("the wire is there");
        while let Some(event) = self.node.stack.poll_event() {
            if let Source::Conn(conn) = event.source {
                self.look(conn);
            }
        }
        self.node.output(now).expect("the wire is there");
    }

    fn look(&mut self, conn: ConnId) {
        let bytes = self.node.stack.peek(conn);
        let len = bytes.len();
        if len == 0 {
            if matches!(self.node.stack.state(conn), ConnState::Open { .. }) && self.opening.remove(&conn) {
                let request = if self.closing { CLOSING } else { KEPT };
                self.node.stack.send(conn, Payload::Static(request)).expect("room");
            }
            return;
        }
        if self.answer == 0 {
            assert!(bytes.starts_with(b"HTTP/1.1 200 ") && bytes.ends_with(&[b'x'; FILE]), "an answer");
            self.answer = len;
        }
        assert_eq!(len, self.answer, "an answer comes whole");
        self.node.stack.consume(conn, len);
        self.answered += 1;
        if self.closing {
            self.node.stack.close(conn);
            self.start();
        } else if self.started < self.all {
            self.started += 1;
            self.node.stack.send(conn, Payload::Static(KEPT)).expect("room");
        }
    }

    /// A new connection, for a request.
    fn start(&mut self) {
        if self.started == self.all {
            return;
        }
        self.started += 1;
        let to = "10.0.0.2:80".parse().expect("an address");
        let conn = self.node.stack.connect(Owner(1), None, to, &SocketOptions::default()).expect("a port");
        self.opening.insert(conn);
    }
}

fn end(last: u8, pool: &Pool, arriving: &Frames, leaving: &Frames) -> Node<Wire> {
    let device =
        Wire::new(last, Capabilities::ALL, WIRE, WIRE, pool.clone(), Rc::clone(arriving), Rc::clone(leaving));
    node(Port::new(device, PortConfig::default()).expect("a port"), last, pool, NodeConfig::default())
}

/// So many clients ask `count` times, on connections that are kept or closed after each answer; returns what was answered.
fn run(closing: bool, asking: usize, count: usize) -> usize {
    let pool = Pool::new(4 * WIRE, 2_048);
    let (there, back) = (Frames::default(), Frames::default());
    let files = OneFile { bytes: vec![b'x'; FILE].into(), queue: VecDeque::new() };
    let listen = vec![ListenAddr { ip: None, port: 80 }];
    let config = http::Config { listen, access_log: None, ..http::Config::default() };
    let mut core = Core::new(end(2, &pool, &there, &back), files, Server::new(Owner(1), config));
    let mut machine = Machine { now: Instant::from_millis(1), random: 1 };
    core.with(&mut machine, |server, ctx| server.start(ctx)).expect("a free port");
    let mut clients = Clients {
        node: end(1, &pool, &back, &there),
        closing,
        opening: HashSet::new(),
        answer: 0,
        started: 0,
        all: count,
        answered: 0,
    };
    for _ in 0..asking {
        clients.start();
    }
    let mut idle = 0;
    while clients.answered < count {
        let before = clients.answered;
        clients.turn(machine.now);
        server(&mut core, &mut machine);
        machine.now += Duration::from_micros(500);
        idle = if clients.answered > before { 0 } else { idle + 1 };
        assert!(idle < 100_000, "nobody answers: {} of {count}", clients.answered);
    }
    clients.answered
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let closing = match args.first().map(String::as_str) {
        Some("keep") => Some(false),
        Some("close") => Some(true),
        _ => None,
    };
    let asking =
        args.get(1).and_then(|asking| asking.parse().ok()).filter(|asking| (1..=CLIENTS).contains(asking));
    let count = args.get(2).and_then(|count| count.parse().ok());
    let (Some(closing), Some(asking), Some(count), 3) = (closing, asking, count, args.len()) else {
        eprintln!("expected keep|close, 1 to {CLIENTS} clients, and a number of requests");
        return ExitCode::from(2);
    };
    println!("{} requests answered", run(closing, asking, count));
    ExitCode::SUCCESS
}
