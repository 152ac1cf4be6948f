//! The board: a clock that a sleep moves on, and at the other end of the cable a client that comes once in ten minutes.

use crate::BYTES;
use crate::wire::Wire;
use core::time::Duration;
use linerate_firmware::{Board, Heap, INTERVALS, Task};
use linerate_nic::{Link, Pool, Port, PortConfig};
use linerate_serve::Host;
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{ConnId, ConnState, Engine as _, Owner, SocketOptions, Transport as _};
use linerate_wire::units::Instant;

const BETWEEN_CLIENTS: Duration = Duration::from_secs(600);
const REQUEST: &[u8] = b"GET /stats HTTP/1.1\r\nHost: day\r\n\r\n";

/// What the machine runs on.
pub struct Bench {
    now: Instant,
    peer: Node<Wire>,
    /// When the next client comes, and the one that is here with what it has read.
    next_client: Instant,
    client: Option<(ConnId, Vec<u8>)>,
    has_asked: bool,
    /// Responses that came whole, and clients that got none.
    pub answers: usize,
    pub failures: usize,
    /// When to weigh the heap, the latest first, and what it weighed.
    looks: Vec<Instant>,
    pub weights: Vec<isize>,
    /// Commands to give before the end, and all that was answered.
    commands: Vec<&'static str>,
    pub answered: Vec<String>,
    draws: u64,
    /// The last turn of the machine's loop, and the longest time between two.
    turned: Instant,
    pub longest_turn: Duration,
}

impl Bench {
    /// Ends after the last of `looks`.
    pub fn new(link: Link, pool: &Pool, looks: impl DoubleEndedIterator<Item = Instant>) -> Bench {
        let port = Port::new(Wire::new(link, true), PortConfig::default()).expect("nothing is switched on");
        let config = StackConfig {
            addresses: vec!["10.0.0.2/24".parse().expect("an address")],
            ..StackConfig::default()
        };
        let pools = StackPools::for_memory(1 << 20).with_receive(pool.clone());
        let looks: Vec<Instant> = looks.rev().collect();
        Bench {
            now: Instant::from_millis(1),
            peer: Node::new(port, config, [7; 32], pools, NodeConfig::default()),
            next_client: Instant::from_millis(60_000),
            client: None,
            has_asked: false,
            answers: 0,
            failures: 0,
            weights: Vec::with_capacity(looks.len()),
            looks,
            commands: vec!["stats", "ifconfig"],
            answered: Vec::with_capacity(8),
            draws: 0,
            turned: Instant::from_millis(1),
            longest_turn: Duration::ZERO,
        }
    }

    /// Leases given.
    pub fn leases(&self) -> usize {
        self.peer.port.device().leases
    }

    /// One turn of the other end. True when anything moved.
    fn turn(&mut self) -> bool {
        let mut moved = self.peer.input(self.now).expect("the cable is there").moved;
        moved |= self.serve_client();
        while self.peer.stack.poll_event().is_some() {}
        moved | self.peer.output(self.now).expect("the cable is there").moved
    }

    /// Comes, asks, reads, and stays until the machine has had enough of it.
    fn serve_client(&mut self) -> bool {
        let stack = &mut self.peer.stack;
        if self.client.is_none() && self.now >= self.next_client {
            self.next_client = self.now + BETWEEN_CLIENTS;
            let to = "10.0.0.77:80".parse().expect("an address");
            let id = stack.connect(Owner(1), None, to, &SocketOptions::default()).expect("there is a route");
            self.client = Some((id, Vec::new()));
            self.has_asked = false;
            return true;
        }
        let Some((id, read)) = &mut self.client else { return false };
        if !self.has_asked && matches!(stack.state(*id), ConnState::Open { .. }) {
            stack.write(*id, REQUEST).expect("there is room");
            self.has_asked = true;
            return true;
        }
        let piece = stack.peek(*id);
        let len = piece.len();
        read.extend_from_slice(piece);
        stack.consume(*id, len);
        let is_over = matches!(stack.state(*id), ConnState::Open { finished: true } | ConnState::Closed(_));
        if len > 0 || !is_over {
            return len > 0;
        }
        let text = String::from_utf8_lossy(read);
        // The report's last line closes its first.
        let is_whole = text.starts_with("HTTP/1.1 200") && text.trim_end().ends_with('}');
        self.answers += usize::from(is_whole);
        self.failures += usize::from(!is_whole);
        stack.close(*id);
        self.client = None;
        true
    }
}

impl Host for Bench {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wall_ns(&mut self) -> i64 {
        self.now.as_nanos() as i64
    }

    fn random(&mut self) -> u64 {
        self.draws =
            self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.draws
    }
}

impl Board for Bench {
    async fn sleep(&mut self, until: Option<Instant>) {
        if self.turn() {
            return;
        }
        if self.looks.last().is_some_and(|look| *look <= self.now) {
            self.looks.pop();
            self.weights.push(BYTES.get());
        }
        if self.looks.is_empty() && self.commands.is_empty() {
            self.peer.port.device().link.cut();
            return;
        }
        let due = [until, self.peer.poll_timeout(), self.looks.last().copied(), Some(self.next_client)];
        let next = due.into_iter().flatten().filter(|due| *due > self.now).min();
        self.now = next.expect("a client comes");
    }

    fn turns(&mut self) {
        self.longest_turn = self.longest_turn.max(self.now - self.turned);
        self.turned = self.now;
    }

    fn command(&mut self) -> Option<String> {
        if !self.looks.is_empty() {
            return None;
        }
        self.commands.pop().map(Into::into)
    }

    fn answer(&mut self, text: String) {
        self.answered.push(text);
    }

    fn tasks(&mut self) -> Vec<Task> {
        Vec::new()
    }

    fn heap(&mut self) -> Heap {
        Heap::default()
    }

    fn intervals(&mut self) -> [u32; INTERVALS] {
        [0; INTERVALS]
    }

    fn log(&mut self) -> String {
        String::new()
    }
}
