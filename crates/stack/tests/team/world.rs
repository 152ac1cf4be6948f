//! A host with several stacks, a queue each, and one remote host; between them a switch that puts each frame for the former
//! into some queue, loses frames, has a narrow path behind it, and carries the letters.

use linerate_nic::{
    Bytes, Capabilities, Chunk, Link, Pool, Port, PortConfig, QueuePair as _, RxBatch, TxQueue,
};
use linerate_stack::{Message, Node, NodeConfig, Seat, StackConfig, StackPools};
use linerate_transport::{
    ConnId, ConnState, Engine as _, Event, ListenAddr, ListenOptions, Owner, Ready, SocketOptions, Source,
    Transport as _,
};
use linerate_wire::toeplitz::{Input, MICROSOFT_KEY};
use linerate_wire::units::Instant;
use linerate_wire::{icmpv4, ipv4};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

pub const OURS: IpAddr = IpAddr::V4(OURS4);
pub const OURS6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub const REMOTE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const OURS4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OLD_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const NEW_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

/// How frames are spread over the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// By the Toeplitz hash of addresses and ports, as a network interface does; what has no ports, by chance.
    ByFlow,
    /// Each by chance.
    AtRandom,
}

/// A stack, the switch's end of its link, and the letters that wait for it.
pub struct Host {
    pub node: Node<Link>,
    end: Link,
    letters: VecDeque<Message>,
}

/// A connection that sends and wants back what it sent.
pub struct Client {
    /// Of which of our stacks; `None`: of the remote host.
    pub seat: Option<usize>,
    /// Its own port.
    pub port: u16,
    conn: ConnId,
    data: Vec<u8>,
    sent: usize,
    back: usize,
    /// It was refused or reset.
    pub failed: bool,
    closed: bool,
}

impl Client {
    pub fn is_done(&self) -> bool {
        self.back == self.data.len() && !self.failed
    }
}

pub struct World {
    pub now: Instant,
    pub members: Vec<Host>,
    pub remote: Host,
    pub clients: Vec<Client>,
    spread: Spread,
    /// One frame in so many is lost, in each direction; 0: none.
    pub loss: u64,
    /// The largest packet that the path lets pass.
    pub narrow: Option<usize>,
    /// How often the router said that a packet was too big.
    pub too_big: u64,
    /// The remote host has another station address by now.
    moved: bool,
    /// Frames to the old one since then.
    pub to_old_mac: u64,
    random: u64,
    batch: RxBatch,
    queue: TxQueue,
}

/// Bytes that belong to `n` alone.
pub fn pattern(n: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (n * 31 + at * 7 + at / 251) as u8).collect()
}

fn host(seat: Seat, seed: u8, is_remote: bool) -> Host {
    let pool = Pool::new(8_192, 2_048);
    let (ours, theirs) = Link::pair(&pool, 1_500, Capabilities::NONE, 4_096);
    // The second end of a pair has another address than the first.
    let (device, end) = if is_remote { (theirs, ours) } else { (ours, theirs) };
    let last = 1 + u8::from(is_remote);
    let parsed = |text: String| text.parse().expect("an address");
    let addresses = vec![parsed(format!("10.0.0.{last}/24")), parsed(format!("fd00::{last}/64"))];
    let config =
        StackConfig { seat, addresses, max_connections: 4_096, memory: 64 << 20, ..StackConfig::default() };
    let pools = StackPools::for_memory(64 << 20).with_receive(pool);
    let port = Port::new(device, PortConfig::default()).expect("a port");
    let node = Node::new(port, config, [seed; 32], pools, NodeConfig::default());
    Host { node, end, letters: VecDeque::new() }
}

impl World {
    pub fn new(seats: u16, spread: Spread, seed: u64) -> World {
        let member = |index: u16| host(Seat { index, seats }, 100 + index as u8, false);
        World {
            now: Instant::from_millis(1),
            members: (0..seats).map(member).collect(),
            remote: host(Seat::ALONE, 50, true),
            clients: Vec::new(),
            spread,
            loss: 0,
            narrow: None,
            too_big: 0,
            moved: false,
            to_old_mac: 0,
            random: seed,
            batch: RxBatch::with_limit(256),
            queue: TxQueue::with_capacity(1),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// Every member listens.
    pub fn listen_everywhere(&mut self, port: u16) {
        for member in &mut self.members {
            listen(&mut member.node, port);
        }
        self.run_for(Duration::from_millis(1));
    }

    pub fn remote_listens(&mut self, port: u16) {
        listen(&mut self.remote.node, port);
        self.run_for(Duration::from_secs(3));
    }

    /// The remote host opens a connection.
    pub fn open(&mut self, to: SocketAddr, len: usize) {
        self.connect(None, to, len);
    }

    /// One of our stacks does.
    pub fn open_from(&mut self, seat: usize, to: SocketAddr, len: usize) {
        self.connect(Some(seat), to, len);
    }

    fn connect(&mut self, seat: Option<usize>, to: SocketAddr, len: usize) {
        let now = self.now;
        let data = pattern(self.clients.len(), len);
        let node = match seat {
            Some(seat) => &mut self.members[seat].node,
            None => &mut self.remote.node,
        };
        node.set_now(now);
        let conn = node.stack.connect(Owner(2), None, to, &SocketOptions::default()).expect("a connection");
        let port = node.stack.info(conn).expect("a connection").local.port();
        self.clients.push(Client { seat, port, conn, data, sent: 0, back: 0, failed: false, closed: false });
    }

    /// The remote host is plugged in elsewhere, with another address, and says so once.
    pub fn move_remote(&mut self) {
        self.moved = true;
        let mut frame = vec![0xff; 6];
        frame.extend(NEW_MAC);
        frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(NEW_MAC);
        frame.extend([10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        self.deliver(&frame);
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs until `is_done`; false when that does not happen within `patience`.
    pub fn run_until(&mut self, patience: Duration, is_done: impl Fn(&World) -> bool) -> bool {
        let end = self.now + patience;
        loop {
            while self.step() {}
            if is_done(self) {
                return true;
            }
            let next = self.hosts().filter_map(|host| host.node.poll_timeout()).min();
            let next = next.unwrap_or(end).max(self.now + Duration::from_micros(10));
            if next >= end {
                self.now = end;
                return is_done(self);
            }
            self.now = next;
        }
    }

    fn hosts(&mut self) -> impl Iterator<Item = &mut Host> {
        self.members.iter_mut().chain(Some(&mut self.remote))
    }

    /// A turn of everybody; false when nothing moved.
    fn step(&mut self) -> bool {
        let now = self.now;
        let mut moved = false;
        for host in self.hosts() {
            while let Some(message) = host.letters.pop_front() {
                host.node.stack.handle_message(now, message);
                moved = true;
            }
            moved |= host.node.input(now).expect("the link is there").moved;
            while let Some(event) = host.node.stack.poll_event() {
                serve(&mut host.node, event);
                moved = true;
            }
        }
        self.drive_clients();
        for host in self.hosts() {
            moved |= host.node.output(now).expect("the link is there").moved;
        }
        self.carry_letters() | self.switch() | moved
    }

    fn carry_letters(&mut self) -> bool {
        let mut moved = false;
        for from in 0..self.members.len() {
            while let Some(letter) = self.members[from].node.stack.poll_letter() {
                let sender = self.members[from].node.stack.seat();
                for seat in letter.to.seats(sender) {
                    self.members[usize::from(seat)].letters.push_back(letter.message.clone());
                }
                moved = true;
            }
        }
        moved
    }

    /// Carries frames between the hosts.
    fn switch(&mut self) -> bool {
        let mut frames = Vec::new();
        let seats = self.members.len();
        for at in 0..=seats {
            let host = self.members.get_mut(at).unwrap_or(&mut self.remote);
            while host.end.receive(self.now, &mut self.batch).expect("the link is there") > 0 {
                while let Some(frame) = self.batch.pop() {
                    frames.push((at < seats, frame.data.bytes().to_vec()));
                }
            }
        }
        let moved = !frames.is_empty();
        for (is_ours, mut frame) in frames {
            if self.loss > 0 && self.draw(self.loss) == 0 {
                continue;
            }
            if is_ours {
                self.forward(frame);
            } else {
                if self.moved {
                    rewrite(&mut frame, OLD_MAC, NEW_MAC);
                }
                self.deliver(&frame);
            }
        }
        moved
    }

    /// A frame of ours on its way to the remote host.
    fn forward(&mut self, mut frame: Vec<u8>) {
        let is_ipv4 = frame[12..14] == [8, 0];
        if let Some(mtu) = self.narrow.filter(|&mtu| is_ipv4 && frame.len() > mtu + 14) {
            self.too_big += 1;
            let answer = too_big(&frame, mtu);
            // In the queue after the one that the flow's packets come in on.
            let seats = self.members.len() as u64;
            let queue = backwards_hash(&frame).map_or(0, |hash| (u64::from(hash) + 1) % seats);
            put(&mut self.members[queue as usize].end, &mut self.queue, self.now, &answer);
            return;
        }
        if self.moved {
            if frame[..6] == OLD_MAC {
                self.to_old_mac += 1;
                return;
            }
            rewrite(&mut frame, NEW_MAC, OLD_MAC);
        }
        put(&mut self.remote.end, &mut self.queue, self.now, &frame);
    }

    /// Puts a frame into one of our queues.
    fn deliver(&mut self, frame: &[u8]) {
        let seats = self.members.len() as u64;
        let by_flow = (self.spread == Spread::ByFlow).then(|| flow_hash(frame)).flatten();
        let queue = match by_flow {
            Some(hash) => u64::from(hash) % seats,
            None => self.draw(seats),
        };
        put(&mut self.members[queue as usize].end, &mut self.queue, self.now, frame);
    }

    fn drive_clients(&mut self) {
        for client in &mut self.clients {
            if client.closed {
                continue;
            }
            let stack = match client.seat {
                Some(seat) => &mut self.members[seat].node.stack,
                None => &mut self.remote.node.stack,
            };
            while client.sent < client.data.len() {
                let piece = &client.data[client.sent..client.data.len().min(client.sent + 8_192)];
                if stack.write(client.conn, piece).is_err() {
                    break;
                }
                client.sent += piece.len();
            }
            loop {
                let got = stack.peek(client.conn);
                if got.is_empty() {
                    break;
                }
                let len = got.len();
                assert_eq!(got, &client.data[client.back..client.back + len], "what was sent comes back");
                stack.consume(client.conn, len);
                client.back += len;
            }
            if client.back == client.data.len() {
                stack.close(client.conn);
                client.closed = true;
            } else if matches!(stack.state(client.conn), ConnState::Closed(_)) {
                client.failed = true;
                client.closed = true;
            }
        }
    }
}

fn listen(node: &mut Node<Link>, port: u16) {
    let addr = ListenAddr { ip: None, port };
    node.stack.listen(Owner(1), addr, &ListenOptions::default()).expect("free");
}

/// Echoes.
fn serve(node: &mut Node<Link>, event: Event) {
    match event.source {
        Source::Listener(listener) => while node.stack.accept(listener).is_some() {},
        Source::Conn(conn) if event.owner == Owner(1) => {
            loop {
                let piece = node.stack.peek(conn).to_vec();
                if piece.is_empty() || node.stack.write(conn, &piece).is_err() {
                    break;
                }
                node.stack.consume(conn, piece.len());
            }
            if event.ready.intersects(Ready::FINISHED | Ready::CLOSED) && node.stack.readable(conn) == 0 {
                node.stack.close(conn);
            }
        }
        Source::Conn(_) | Source::Udp(_) => {}
    }
}

fn put(end: &mut Link, queue: &mut TxQueue, now: Instant, frame: &[u8]) {
    let slot = queue.vacant().expect("room");
    slot.header_mut(14).copy_from_slice(&frame[..14]);
    slot.push_chunk(Chunk::Shared(Bytes::copy_from_slice(&frame[14..]))).expect("room");
    queue.commit();
    assert_eq!(end.transmit(now, queue), Ok(1), "the ring has room");
    while end.poll_completion().is_some() {}
}

/// The hash of a TCP or UDP packet over IPv4 that is no fragment.
fn flow_hash(frame: &[u8]) -> Option<u32> {
    let header = ipv4::Header::parse(frame.get(14..)?).ok().filter(|_| frame[12..14] == [8, 0])?;
    if header.is_fragment() || !matches!(header.protocol().0, 6 | 17) {
        return None;
    }
    let ports = header.payload().get(..4)?;
    let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    let input = Input::ipv4_ports(header.source(), header.destination(), port(0), port(2));
    Some(input.hash(&MICROSOFT_KEY))
}

/// The hash of the packets of the same flow that come the other way.
fn backwards_hash(frame: &[u8]) -> Option<u32> {
    let mut back = frame.to_vec();
    back[26..30].copy_from_slice(&frame[30..34]);
    back[30..34].copy_from_slice(&frame[26..30]);
    back[34..36].copy_from_slice(&frame[36..38]);
    back[36..38].copy_from_slice(&frame[34..36]);
    flow_hash(&back)
}

/// Another address in the Ethernet header, and in an ARP packet.
fn rewrite(frame: &mut [u8], from: [u8; 6], to: [u8; 6]) {
    let is_arp = frame[12..14] == [8, 6];
    for at in [0, 6, 22, 32] {
        if (at < 12 || is_arp) && frame[at..at + 6] == from {
            frame[at..at + 6].copy_from_slice(&to);
        }
    }
}

/// What a router says of a packet that is too big for its next link.
fn too_big(frame: &[u8], mtu: usize) -> Vec<u8> {
    let packet = &frame[14..];
    let quoted = &packet[..packet.len().min(28 + 20)];
    let message = icmpv4::Message::DestinationUnreachable {
        code: icmpv4::UnreachableCode::FRAGMENTATION_NEEDED,
        next_hop_mtu: mtu as u16,
        quoted: icmpv4::Quoted(quoted),
    };
    let mut body = vec![0; icmpv4::HEADER_LEN + quoted.len()];
    message.emit(&mut body).expect("room");
    let router = Ipv4Addr::new(10, 0, 0, 2);
    let header = ipv4::Builder::new(router, OURS4, linerate_wire::ip::Protocol::ICMPV4, body.len());
    let mut answer = Vec::from([2, 0, 0, 0, 0, 1]);
    answer.extend_from_slice(&OLD_MAC);
    answer.extend([8, 0]);
    let at = answer.len();
    answer.resize(at + ipv4::MIN_HEADER_LEN, 0);
    header.emit(&mut answer[at..]).expect("room");
    answer.extend(body);
    answer
}
