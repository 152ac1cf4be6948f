//! Two nodes on two devices, each with a loop that sleeps until an interrupt, a frame of time, or its deadline.

use super::*;
use crate::model::Line;
use linerate_nic::mcdma::{AppWords, QueueStats, Seeding};
use linerate_nic::{Joined, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{
    ConnId, ConnState, Engine as _, Left, ListenAddr, ListenOptions, ListenerId, Owner, Payload,
    SocketOptions, Transport as _,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const OWNER: Owner = Owner(1);

/// What a host's device is, and how large everything of it.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub words: AppWords,
    pub seeding: Seeding,
    /// What of the hardware is built in.
    pub features: u32,
    /// Descriptors of each ring.
    pub ring: usize,
    /// Buffers of each receive pool, and of each transmit pool.
    pub receive: usize,
    pub transmit: usize,
}

pub const SIZES: Sizes = Sizes {
    words: AppWords::TenGig,
    seeding: Seeding::Field,
    features: crate::model::mac::ALL,
    ring: 64,
    receive: 256,
    transmit: 96,
};

pub type Device = Joined<Control<Board>, Queue<Board>>;

/// A node and the loop around it.
pub struct Host {
    pub node: Node<Device>,
    pub board: Board,
    receive: Pool,
    transmit: Pool,
    /// Set by the handlers of the queue's and of the MAC's interrupt.
    signals: [Arc<AtomicBool>; 2],
    is_awake: bool,
    wake_at: Option<Instant>,
    /// Times that the loop slept, and that an interrupt woke it.
    pub slept: u64,
    pub woken: u64,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    /// What is still to be sent, from `sent` on.
    data: Vec<u8>,
    sent: usize,
    is_shut: bool,
    /// Nothing is finished before this is false.
    pub holds: bool,
    pub received: Vec<u8>,
    is_finished: bool,
}

/// The device of a host at 10.0.0.`last`, joined, with what the test needs of it.
pub fn device(
    last: u8,
    board: &Board,
    (ring, seeding): (usize, Seeding),
    receive: &Pool,
    transmit: &Pool,
) -> (Device, Interrupt<Board>) {
    let settings = Settings {
        transmit_ring: ring,
        receive_ring: ring,
        seeding,
        ..Settings::new(MacAddr([2, 0, 0, 0, 0, last]))
    };
    let (control, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
    let queue = queues.into_iter().next().expect("a queue");
    let interrupt = queue.interrupt();
    let queue = queue.start(receive.clone(), transmit.clone()).expect("starts");
    (Joined { control, queue }, interrupt)
}

pub fn config(last: u8) -> StackConfig {
    let addresses = [format!("10.0.0.{last}/24"), format!("fd00::{last}/64")];
    StackConfig {
        addresses: addresses.map(|text| text.parse().expect("an address")).to_vec(),
        dad_transmits: 0,
        ..StackConfig::default()
    }
}

impl Host {
    fn new(last: u8, seed: u64, data: Vec<u8>, sizes: Sizes) -> Host {
        let board = Board::new(seed);
        board.with(|hardware| {
            hardware.access = Duration::from_nanos(100);
            (hardware.words, hardware.mac.features) = (sizes.words, sizes.features);
        });
        let (receive, transmit) =
            (board.pool(sizes.receive, 2_048, true), board.pool(sizes.transmit, 1_536, false));
        let (device, interrupt) = device(last, &board, (sizes.ring, sizes.seeding), &receive, &transmit);
        let signals = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
        let [queue, mac] = signals.clone();
        board.set_handler(move |line| match line {
            Line::Queue(_) if !interrupt.handle() => {}
            Line::Queue(_) => queue.store(true, Ordering::Relaxed),
            Line::Mac => mac.store(true, Ordering::Relaxed),
        });
        let port = Port::new(device, PortConfig::default()).expect("a port");
        let config = config(last);
        let pools = StackPools::for_memory(config.memory).with_receive(receive.clone());
        let node = Node::new(port, config, [last; 32], pools, NodeConfig::default());
        Host {
            node,
            board,
            receive,
            transmit,
            signals,
            is_awake: true,
            wake_at: None,
            slept: 0,
            woken: 0,
            listener: None,
            conn: None,
            data,
            sent: 0,
            is_shut: false,
            holds: false,
            received: Vec::new(),
            is_finished: false,
        }
    }

    pub fn stats(&mut self) -> QueueStats {
        self.node.port.device_mut().queue.stats()
    }

    /// Sends `bytes`, too.
    pub fn add(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.wake();
    }

    /// Whoever acts on a host from outside wakes its loop.
    pub fn wake(&mut self) {
        self.is_awake = true;
    }

    /// The hardware's side of this moment: it works, and its interrupts come.
    fn hardware(&mut self, now: Instant) {
        self.board.with(|hardware| hardware.step(now));
        self.board.interrupt();
        let is_woken = self.signals.iter().any(|signal| signal.load(Ordering::Relaxed));
        self.woken += u64::from(is_woken && !self.is_awake);
        self.is_awake |= is_woken;
        self.is_awake |= self.wake_at.is_some_and(|at| at <= now);
    }

    /// One turn of the loop, if it does not sleep.
    fn turn(&mut self, now: Instant) {
        if !self.is_awake {
            return;
        }
        self.wake_at = None;
        // Before anything is looked at: what interrupts from here on counts for the next turn.
        self.signals[0].store(false, Ordering::Relaxed);
        if self.signals[1].swap(false, Ordering::Relaxed) {
            self.node.port.device_mut().control.handle_interrupt();
        }
        let input = self.node.input(now).expect("the device works");
        while self.node.stack.poll_event().is_some() {}
        self.application();
        let output = self.node.output(now).expect("the device works");
        if input.moved || input.more || output.moved || output.left == Left::More || self.node.arm(now) {
            return;
        }
        self.is_awake = false;
        self.slept += 1;
        self.wake_at = self.node.poll_timeout();
    }

    /// Sends everything and reads everything.
    fn application(&mut self) {
        if let Some(listener) = self.listener
            && self.conn.is_none()
        {
            self.conn = self.node.stack.accept(listener);
        }
        let Some(conn) = self.conn else { return };
        let stack = &mut self.node.stack;
        while !stack.peek(conn).is_empty() {
            let len = stack.peek(conn).len();
            self.received.extend_from_slice(stack.peek(conn));
            stack.consume(conn, len);
        }
        while self.sent < self.data.len() && stack.sendable(conn) > 0 {
            let piece = &self.data[self.sent..self.data.len().min(self.sent + 10_007)];
            // In turns as it lies, and copied into the stack's pages.
            let result = match self.sent % 2 {
                0 => stack.send(conn, Payload::Shared(piece.to_vec().into())),
                _ => stack.write(conn, piece),
            };
            if result.is_err() {
                break;
            }
            self.sent += piece.len();
        }
        if self.sent == self.data.len() && !self.is_shut && !self.holds {
            stack.shutdown(conn);
            self.is_shut = true;
        }
        match stack.state(conn) {
            ConnState::Open { finished } => self.is_finished |= finished,
            ConnState::Connecting => {}
            ConnState::Closed(reason) => {
                self.is_finished = true;
                let far = (self.sent, self.received.len());
                assert_eq!(reason, linerate_transport::CloseReason::Done, "after {far:?} bytes");
            }
        }
    }
}

/// Two hosts, and the wire between them.
pub struct World {
    pub hosts: [Host; 2],
    pub now: Instant,
    /// Turns of the loops, which are bounded.
    turns: u64,
    /// What happens to the link of both ends, and when.
    pub link: VecDeque<(Instant, bool)>,
}

/// `len` bytes that no two hosts have alike.
fn data(seed: u64, len: usize) -> Vec<u8> {
    let mut random = crate::model::Random::new(seed);
    (0..len).map(|_| random.next() as u8).collect()
}

impl World {
    /// Two hosts that have `len` bytes for each other.
    pub fn new(seed: u64, len: usize) -> World {
        World::with_sizes("10.0.0.2:80", seed, len, SIZES)
    }

    /// The same, of other sizes; the first connects to the second by this address.
    pub fn with_sizes(address: &str, seed: u64, len: usize, sizes: Sizes) -> World {
        let host = |last: u8| Host::new(last, seed + u64::from(last), data(u64::from(last), len), sizes);
        let mut hosts = [host(1), host(2)];
        let [a, b] = &mut hosts;
        let listen = ListenAddr { ip: None, port: 80 };
        b.listener = Some(b.node.stack.listen(OWNER, listen, &ListenOptions::default()).expect("free"));
        let to = address.parse().expect("an address");
        a.conn = Some(a.node.stack.connect(OWNER, None, to, &SocketOptions::default()).expect("a route"));
        World { hosts, now: Instant::from_millis(1), turns: 0, link: VecDeque::new() }
    }

    /// Acts on the hardware of both.
    pub fn with(&mut self, act: impl Fn(&mut crate::model::Hardware)) {
        self.hosts.iter().for_each(|host| host.board.with(&act));
    }

    /// Whether both have everything.
    pub fn is_done(&self) -> bool {
        let [a, b] = &self.hosts;
        a.is_finished && b.is_finished
    }

    /// Runs until `done`, for so long at most; whether it was.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end {
                return false;
            }
            self.moment();
            self.turns += 1;
            assert!(self.turns < 3_000_000, "the loops do not come to rest");
            let is_awake = self.hosts.iter().any(|host| host.is_awake);
            let later = self.now + Duration::from_micros(2);
            // A turn takes its time; with everybody asleep, time jumps.
            self.now = if is_awake { later } else { self.next().unwrap_or(end).max(later).min(end) };
        }
        true
    }

    /// When something happens next though everybody sleeps.
    fn next(&self) -> Option<Instant> {
        let of_hosts = self
            .hosts
            .iter()
            .flat_map(|host| [host.wake_at, host.board.with(|hardware| hardware.poll_timeout())]);
        of_hosts.chain([self.link.front().map(|(at, _)| *at)]).flatten().min()
    }

    fn moment(&mut self) {
        while let Some((at, is_up)) = self.link.front().copied()
            && at <= self.now
        {
            self.link.pop_front();
            self.with(|hardware| hardware.set_link(is_up));
        }
        let arrives = self.now + Duration::from_micros(5);
        for host in 0..2 {
            self.hosts[host].hardware(self.now);
            let frames = self.hosts[host].board.with(|hardware| std::mem::take(&mut hardware.wire));
            self.hosts[1 - host]
                .board
                .with(|other| frames.into_iter().for_each(|frame| other.arrive(arrives, frame)));
        }
        self.hosts.iter_mut().for_each(|host| host.turn(self.now));
    }

    /// Both have received what the other sent, all of it and nothing else; afterwards every buffer is in its pool again.
    pub fn check(self) {
        let [a, b] = self.hosts;
        assert!(a.received == b.data && b.received == a.data, "the bytes are not those that were sent");
        for host in [a, b] {
            let Host { node, receive, transmit, .. } = host;
            drop(node);
            let missing = (receive.len() - receive.free(), transmit.len() - transmit.free());
            assert_eq!(missing, (0, 0), "buffers are missing");
        }
    }
}
