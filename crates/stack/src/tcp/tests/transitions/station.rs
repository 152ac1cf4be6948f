//! A whole stack on a bench, a connection in a given state, and a peer that knows the true sequence numbers.

use crate::memory::StackPools;
use crate::stack::Stack;
use crate::tcp::State;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, Pool, RxBatch, RxMeta, TxQueue, TxToken};
use linerate_transport::{
    ConnId, ListenAddr, ListenOptions, ListenerId, Owner, Ready, SocketOptions, Source, Transport,
};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags, Options, SeqNumber, Timestamps};
use linerate_wire::units::Instant;
use linerate_wire::{arp, ipv4};

pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
pub const HOST_PORT: u16 = 80;
pub const PEER_PORT: u16 = 5_000;
const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
pub const OWNER: Owner = Owner(1);
/// The peer's initial sequence number, close to the wrap.
const IRS: u32 = u32::MAX - 50;
/// Time from a segment of ours to the peer's answer.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// A segment of ours. Numbers are counted from the first byte after the SYN of their direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    pub at: Instant,
    pub flags: Flags,
    pub seq: i64,
    pub ack: i64,
    pub len: usize,
    pub window: u16,
}

/// A segment of the peer, numbers counted likewise.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub flags: Flags,
    pub seq: i64,
    pub ack: i64,
    pub len: usize,
    pub window: u16,
    /// By how much the timestamp is newer than the last; `None`: the option is missing.
    pub tick: Option<i32>,
}

pub struct Station {
    pub stack: Stack,
    pub now: Instant,
    pub listener: Option<ListenerId>,
    pub conn: Option<ConnId>,
    /// SND.UNA and SND.NXT, RCV.NXT.
    pub una: i64,
    pub nxt: i64,
    pub rcv: i64,
    pub sent: Vec<Sent>,
    /// What the application was told, in order.
    pub told: Vec<(Source, Ready)>,
    iss: SeqNumber,
    value: u32,
    echo: u32,
    pool: Pool,
    batch: RxBatch,
    queue: TxQueue,
}

impl Station {
    /// A host that listens on a port, if it is a server, and knows the peer.
    pub fn new(is_server: bool) -> Station {
        let config = crate::StackConfig {
            mac: HOST_MAC,
            addresses: alloc::vec!["10.0.0.1/24".parse().unwrap()],
            memory: 1 << 20,
            max_connections: 8,
            ipv6: false,
            ..crate::StackConfig::default()
        };
        let pool = Pool::new(64, 2_048);
        let pools = StackPools::new(64, 2).with_receive(pool.clone());
        let mut station = Station {
            stack: Stack::new(config, [3; 32], pools),
            now: Instant::from_millis(10_000),
            listener: None,
            conn: None,
            una: 0,
            nxt: 0,
            rcv: 0,
            sent: Vec::new(),
            told: Vec::new(),
            iss: SeqNumber(0),
            value: 1_000,
            echo: 0,
            pool,
            batch: RxBatch::with_limit(1),
            queue: TxQueue::with_capacity(32),
        };
        station.acquaint();
        if is_server {
            let options = ListenOptions::default();
            let addr = ListenAddr { ip: None, port: HOST_PORT };
            station.listener = Some(station.stack.listen(OWNER, addr, &options).unwrap());
        }
        station
    }

    /// Tells the host who the peer is, as a request does; replies to its requests say the same.
    fn acquaint(&mut self) {
        self.arp(arp::Operation::REQUEST);
        self.flush();
    }

    fn arp(&mut self, operation: arp::Operation) {
        let packet = arp::Builder {
            operation,
            sender_mac: PEER_MAC,
            sender_ip: PEER,
            target_mac: HOST_MAC,
            target_ip: HOST,
        };
        let mut bytes = [0; arp::PACKET_LEN];
        packet.emit(&mut bytes).unwrap();
        self.frame(EtherType::ARP, &bytes);
    }

    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(PEER), PEER_PORT)
    }

    /// An active open from the port of the listener.
    pub fn connect(&mut self) -> Result<ConnId, linerate_transport::ConnectError> {
        let local = SocketAddr::new(IpAddr::V4(HOST), HOST_PORT);
        let result = self.stack.connect(OWNER, Some(local), self.remote(), &SocketOptions::default());
        self.flush();
        result
    }

    /// Puts a payload of Ethernet onto the link.
    fn frame(&mut self, ether_type: EtherType, payload: &[u8]) {
        let header = ethernet::Builder {
            destination: HOST_MAC,
            source: PEER_MAC,
            ether_type,
            ..ethernet::Builder::default()
        };
        let mut buffer = self.pool.take().expect("a receive buffer");
        let at = header.emit(buffer.bytes_mut()).unwrap();
        buffer.bytes_mut()[at..at + payload.len()].copy_from_slice(payload);
        let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
        self.batch.push(Frame::new(buffer.freeze(0..at + payload.len()), meta)).expect("room");
        self.stack.handle_frames(self.now, &mut self.batch);
    }

    /// An IPv4 packet from the peer.
    pub fn packet(&mut self, protocol: Protocol, payload: &[u8]) {
        let header = ipv4::Builder::new(PEER, HOST, protocol, payload.len());
        let mut bytes = alloc::vec![0; header.header_len()];
        header.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        self.frame(EtherType::IPV4, &bytes);
    }

    /// A segment from the peer; what it is answered with is in `sent`.
    pub fn segment(&mut self, segment: Segment) {
        let value = segment.tick.map(|tick| self.value.wrapping_add_signed(tick));
        let is_syn = segment.flags.contains(Flags::SYN);
        let builder = tcp::Builder {
            source_port: PEER_PORT,
            destination_port: HOST_PORT,
            sequence: SeqNumber(IRS) + 1 + segment.seq as u32,
            acknowledgement: if segment.flags.contains(Flags::ACK) {
                self.iss + 1 + segment.ack as u32
            } else {
                SeqNumber(0)
            },
            flags: segment.flags,
            window: segment.window,
            options: Options {
                mss: is_syn.then_some(1_460),
                window_scale: is_syn.then_some(0),
                sack_permitted: is_syn,
                timestamps: value.map(|value| Timestamps { value, echo: self.echo }),
                ..Options::default()
            },
            ..tcp::Builder::default()
        };
        if let Some(value) = value {
            self.value = value;
        }
        let mut bytes = alloc::vec![0; builder.header_len()];
        builder.emit(&mut bytes).unwrap();
        bytes.resize(bytes.len() + segment.len, b'x');
        self.packet(Protocol::TCP, &bytes);
        self.flush();
    }

    /// A segment of this kind at the peer's next number, `ack` counted from our first byte.
    pub fn plain(&mut self, flags: Flags, ack: i64, len: usize) {
        let segment = Segment { flags, seq: self.rcv, ack, len, window: 65_535, tick: Some(1) };
        self.segment(segment);
        self.una = self.una.max(ack);
        self.rcv += len as i64 + i64::from(flags.contains(Flags::FIN));
    }

    /// Takes what the stack sends and tells.
    pub fn flush(&mut self) {
        // Twice: what the first round sends may be answered at once (ARP) and so let more go.
        for _ in 0..2 {
            self.stack.poll_transmit(self.now, &mut self.queue);
            while let Some(packet) = self.queue.front() {
                let mut bytes = alloc::vec![0; packet.len()];
                packet.linearise(&mut bytes).unwrap();
                let token = packet.meta.token;
                self.queue.pop();
                self.look_at(&bytes);
                if token != TxToken(0) {
                    self.stack.handle_completion(self.now, token);
                }
            }
        }
        while let Some(event) = self.stack.poll_event() {
            self.told.push((event.source, event.ready));
        }
    }

    fn look_at(&mut self, frame: &[u8]) {
        let header = ethernet::Header::parse(frame).unwrap();
        if header.ether_type() == EtherType::ARP {
            let packet = arp::Packet::parse(header.payload()).unwrap();
            if packet.operation() == arp::Operation::REQUEST && packet.target_ip() == PEER {
                self.arp(arp::Operation::REPLY);
            }
            return;
        }
        let ip = ipv4::Header::parse(header.payload()).unwrap();
        let segment = tcp::Header::parse(ip.payload()).unwrap();
        let flags = segment.flags();
        if flags.contains(Flags::SYN) {
            self.iss = segment.sequence();
        }
        if let Some(timestamps) = segment.options().timestamps {
            self.echo = timestamps.value;
        }
        let seq = relative(segment.sequence(), self.iss);
        let len = segment.payload().len();
        if !flags.contains(Flags::RST) {
            let end = seq + len as i64 + i64::from(flags.contains(Flags::FIN));
            self.nxt = self.nxt.max(end);
        }
        let ack = relative(segment.acknowledgement(), SeqNumber(IRS));
        self.sent.push(Sent { at: self.now, flags, seq, ack, len, window: segment.window() });
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.stack.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.flush();
        }
        self.now = end;
        self.stack.set_now(end);
    }

    /// The state of the connection between the two ends; LISTEN or CLOSED where there is none.
    pub fn state(&self) -> State {
        let ends = ((IpAddr::V4(HOST), HOST_PORT), (IpAddr::V4(PEER), PEER_PORT));
        let slot = self.stack.find_flow(ends.0, ends.1);
        let conn = slot.and_then(|slot| self.stack.conns.table.at(slot));
        match conn {
            Some(conn) => conn.tcp.tcp_state(),
            None if self.listener.is_some_and(|id| self.stack.listener_addr(id).is_some()) => State::Listen,
            None => State::Closed,
        }
    }

    /// From LISTEN to ESTABLISHED, with 100 bytes of the peer read and 100 of ours acknowledged.
    pub fn establish(&mut self) {
        self.open_passively();
        self.pass(ROUND_TRIP);
        self.plain(Flags::ACK, 0, 0);
        self.conn = self.stack.accept(self.listener.unwrap());
        let conn = self.conn.expect("established");
        self.plain(Flags::ACK, 0, 100);
        self.stack.consume(conn, 100);
        self.stack.write(conn, &[b'y'; 100]).unwrap();
        self.flush();
        self.pass(ROUND_TRIP);
        self.plain(Flags::ACK, 100, 0);
    }

    /// From LISTEN to SYN-RECEIVED.
    pub fn open_passively(&mut self) {
        self.segment(Segment { flags: Flags::SYN, seq: -1, ack: 0, len: 0, window: 65_535, tick: Some(1) });
    }

    /// What a number counted from our first byte is on the wire.
    pub fn number(&self, at: i64) -> SeqNumber {
        self.iss + 1 + at as u32
    }

    /// Half-closes our direction.
    pub fn shutdown(&mut self) {
        self.stack.shutdown(self.conn.unwrap());
        self.flush();
        self.pass(ROUND_TRIP);
    }
}

fn relative(number: SeqNumber, initial: SeqNumber) -> i64 {
    i64::from(number.0.wrapping_sub(initial.0).wrapping_sub(1) as i32)
}
