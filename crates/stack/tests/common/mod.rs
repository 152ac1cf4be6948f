//! Two hosts on one link, under virtual time; and a host whose other end is a test that writes frames by hand.
#![allow(dead_code)]

pub mod frames;
pub mod peer;

use core::net::SocketAddr;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use linerate_nic::{
    Capabilities, Chunk, Frame, Link, Pool, Port, PortConfig, QueuePair as _, RxBatch, RxMeta, TxQueue,
};
use linerate_stack::{Counters, Node, NodeConfig, Stack, StackConfig, StackPools};
use linerate_transport::{
    ConnId, Engine as _, FileRequest, ListenAddr, ListenOptions, Owner, SocketOptions, Transport as _,
};
use linerate_wire::units::Instant;
use std::collections::VecDeque;

pub const OWNER: Owner = Owner(7);

/// The bytes of the test file at `offset`.
pub fn file_bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64).map(|i| (i % 251) as u8).collect()
}

/// A stack on one end of a link, with the loop around it.
pub struct Host {
    pub node: Node<Link>,
    /// File requests not answered yet.
    pub requests: VecDeque<FileRequest>,
    /// Length of the only file there is; reads beyond it come up short.
    pub file_len: u64,
    /// Whether requests are answered at once.
    pub reads_files: bool,
}

impl Deref for Host {
    type Target = Node<Link>;

    fn deref(&self) -> &Node<Link> {
        &self.node
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Node<Link> {
        &mut self.node
    }
}

impl Host {
    pub fn new(link: Link, offloads: Capabilities, config: StackConfig, seed: u8, pools: StackPools) -> Host {
        let mut port = Port::new(link, PortConfig::default()).expect("a link switches to anything it has");
        port.set_offloads(offloads).expect("a link can switch");
        Host {
            node: Node::new(port, config, [seed; 32], pools, NodeConfig::default()),
            requests: VecDeque::new(),
            file_len: u64::MAX / 2,
            reads_files: true,
        }
    }

    /// One turn of the loop. True when anything moved.
    pub fn turn(&mut self, now: Instant) -> bool {
        let mut moved = self.node.input(now).expect("the link is there").moved;
        while let Some(request) = self.stack.poll_file_request() {
            self.requests.push_back(request);
        }
        if self.reads_files {
            moved |= !self.requests.is_empty();
            self.answer_files(now);
        }
        moved |= self.node.output(now).expect("the link is there").moved;
        moved
    }

    pub fn answer_files(&mut self, now: Instant) {
        while let Some(request) = self.requests.pop_front() {
            let left = self.file_len.saturating_sub(request.offset);
            let len = request.len.min(usize::try_from(left).unwrap_or(usize::MAX));
            let data = file_bytes(request.offset, len);
            self.stack.handle_file_data(now, request.token, Ok(data.into()));
        }
    }

    pub fn listen(&mut self, port: u16) -> linerate_transport::ListenerId {
        let addr = ListenAddr { ip: None, port };
        self.stack.listen(OWNER, addr, &ListenOptions::default()).expect("the port is free")
    }

    pub fn connect(&mut self, to: &str) -> ConnId {
        let to: SocketAddr = to.parse().expect("an address");
        self.stack.connect(OWNER, None, to, &SocketOptions::default()).expect("there is a route")
    }
}

/// How to build a world.
pub struct Setup {
    pub mtu: usize,
    pub offloads: Capabilities,
    pub config: [StackConfig; 2],
    pub receive_buffers: usize,
    /// Bytes of one; a super-frame is laid over as many as it takes.
    pub buffer_size: usize,
}

impl Default for Setup {
    fn default() -> Self {
        let config = |last: u8| StackConfig {
            addresses: vec![
                format!("10.0.0.{last}/24").parse().expect("an address"),
                format!("fd00::{last}/64").parse().expect("an address"),
            ],
            dad_transmits: 0,
            ..StackConfig::default()
        };
        Setup {
            mtu: 1_500,
            offloads: Capabilities::ALL,
            config: [config(1), config(2)],
            receive_buffers: 4_096,
            buffer_size: 2_048,
        }
    }
}

/// Two hosts: 10.0.0.1 / fd00::1 and 10.0.0.2 / fd00::2.
pub struct World {
    pub a: Host,
    pub b: Host,
    pub now: Instant,
    pub pool: Pool,
}

impl World {
    pub fn new(setup: Setup) -> World {
        let pool = Pool::new(setup.receive_buffers, setup.buffer_size.max(setup.mtu + 64));
        let (left, right) = Link::pair(&pool, setup.mtu, setup.offloads, 512);
        let [a, b] = setup.config;
        let pools = |config: &StackConfig| StackPools::for_memory(config.memory).with_receive(pool.clone());
        let (pools_a, pools_b) = (pools(&a), pools(&b));
        let a = Host::new(left, setup.offloads, a, 1, pools_a);
        let b = Host::new(right, setup.offloads, b, 2, pools_b);
        World { a, b, now: Instant::from_millis(1), pool }
    }

    /// Turns both hosts until nothing moves at this point in time.
    pub fn exchange(&mut self) {
        for _ in 0..100_000 {
            let moved = self.a.turn(self.now) | self.b.turn(self.now);
            if !moved {
                return;
            }
        }
        panic!("the hosts do not come to rest at {:?}", self.now);
    }

    /// The next point in time at which something is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let hosts = [&self.a, &self.b];
        let deadlines =
            hosts.iter().flat_map(|host| [host.stack.poll_timeout(), host.port.device().poll_timeout()]);
        deadlines.flatten().min()
    }

    /// Lets time pass up to `limit` from now, until `done`; `done` may act on the hosts. True when it was.
    pub fn run_for(&mut self, limit: Duration, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            self.exchange();
            if done(self) {
                self.exchange();
                return true;
            }
            // What `done` did may want to move before time does.
            let moved = self.a.turn(self.now) | self.b.turn(self.now);
            if moved {
                continue;
            }
            match self.next_deadline() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => {
                    self.now = end;
                    return false;
                }
            }
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.run_for(time, |_| false);
    }

    /// A connection from `a` to a port of `b`, accepted: the ids on both sides.
    pub fn connected(&mut self, to: &str) -> (ConnId, ConnId) {
        let port = to.parse::<SocketAddr>().expect("an address").port();
        let listener = self.b.listen(port);
        let client = self.a.connect(to);
        let mut server = None;
        let done = self.run_for(Duration::from_secs(5), |world| {
            server = world.b.stack.accept(listener);
            server.is_some()
        });
        assert!(done, "no connection to {to}");
        self.b.stack.close_listener(listener);
        (client, server.expect("accepted"))
    }
}

/// The counters that are not zero, to be shown when a test fails.
pub fn shown(counters: &Counters) -> Vec<(&'static str, u64)> {
    counters.iter().filter(|(_, count)| *count > 0).collect()
}

/// Reads everything that is there.
pub fn read_all(stack: &mut Stack, conn: ConnId, into: &mut Vec<u8>) {
    loop {
        let piece = stack.peek(conn);
        if piece.is_empty() {
            return;
        }
        let len = piece.len();
        into.extend_from_slice(piece);
        stack.consume(conn, len);
    }
}

/// A host whose other end of the link is the test.
pub struct Bench {
    pub host: Host,
    pub link: Link,
    pub now: Instant,
    pub pool: Pool,
    batch: RxBatch,
    queue: TxQueue,
}

impl Bench {
    pub fn new(config: StackConfig) -> Bench {
        Bench::with_pools(config.clone(), StackPools::for_memory(config.memory))
    }

    pub fn with_pools(config: StackConfig, pools: StackPools) -> Bench {
        let pool = Pool::new(1_024, 2_048);
        let (mine, link) = Link::pair(&pool, 1_500, Capabilities::NONE, 512);
        let pools = pools.with_receive(pool.clone());
        let host = Host::new(mine, Capabilities::NONE, config, 3, pools);
        let now = Instant::from_millis(1);
        Bench { host, link, now, pool, batch: RxBatch::with_limit(256), queue: TxQueue::with_capacity(256) }
    }

    /// A host at 10.0.0.1/24 and fd00::1/64 whose neighbour cache knows the peer.
    pub fn acquainted() -> Bench {
        let config = Setup::default().config[0].clone();
        let mut bench = Bench::new(config);
        bench.receive();
        bench.ask(&frames::arp(linerate_wire::arp::Operation::REQUEST, frames::PEER4, frames::HOST4));
        let message = linerate_wire::ndp::Message::NeighbourSolicitation { target: frames::HOST6 };
        let option = [linerate_wire::ndp::NdpOption::SourceLinkLayer(frames::PEER_MAC)];
        bench.ask(&frames::ndp(message, &option, frames::PEER6, frames::HOST6));
        bench
    }

    /// Puts a frame onto the link.
    pub fn send(&mut self, frame: &[u8]) {
        let slot = self.queue.vacant().expect("room");
        let head = frame.len().min(14);
        slot.header_mut(head).copy_from_slice(&frame[..head]);
        let rest: Vec<u8> = frame[head..].to_vec();
        slot.push_chunk(Chunk::Shared(rest.into())).expect("room");
        self.queue.commit();
        self.link.transmit(self.now, &mut self.queue).expect("the link is there");
    }

    /// Hands a frame to the stack as a device without checksum offload does, past the offload layer.
    pub fn feed(&mut self, frame: &[u8]) {
        let mut buffer = self.pool.take().expect("a buffer");
        buffer.bytes_mut()[..frame.len()].copy_from_slice(frame);
        let frame = Frame::new(buffer.freeze(0..frame.len()), RxMeta::default());
        self.batch.push(frame).expect("room");
        self.host.stack.handle_frames(self.now, &mut self.batch);
    }

    /// Turns the host until nothing moves, and returns the frames that it sent.
    pub fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let moved = self.host.turn(self.now);
            self.link.receive(self.now, &mut self.batch).expect("the link is there");
            let arrived = !self.batch.is_empty();
            while let Some(frame) = self.batch.pop() {
                let mut bytes = frame.data.bytes().to_vec();
                frame.more.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
                frames.push(bytes);
            }
            if !moved && !arrived {
                return frames;
            }
        }
    }

    /// Lets time pass, and returns the frames that the host sent meanwhile, each with its time.
    pub fn pass(&mut self, time: Duration) -> Vec<(Instant, Vec<u8>)> {
        let end = self.now + time;
        let mut all = Vec::new();
        loop {
            let now = self.now;
            all.extend(self.receive().into_iter().map(|frame| (now, frame)));
            match self.host.stack.poll_timeout() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
        }
        self.now = end;
        all
    }

    /// Sends a frame and returns the answers.
    pub fn ask(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.send(frame);
        self.receive()
    }
}
