//! A stack with listeners, fed arbitrary frames, times and calls of its owner.
//!
//! The input is a list of steps: a byte that picks one, a byte that says how long its data is, and the data. Segments can
//! be made to fit the connection that the stack believes in, so that the inside of the window is reached too. At the end
//! all timers run out, and everything must be free again.
#![no_main]

use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use libfuzzer_sys::fuzz_target;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, Pool, RxBatch, RxMeta, TxQueue, TxToken};
use linerate_stack::{Stack, StackConfig, StackPools};
use linerate_transport::{
    ConnId, FileId, FileRange, ListenAddr, ListenOptions, ListenerId, Owner, Payload, Transport, UdpId,
};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags, SeqNumber};
use linerate_wire::units::Instant;
use linerate_wire::{arp, checksum, ipv4, ipv6};

const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
const OWNER: Owner = Owner(1);

struct World {
    stack: Stack,
    pool: Pool,
    batch: RxBatch,
    queue: TxQueue,
    now: Instant,
    listeners: Vec<ListenerId>,
    udp: UdpId,
    conns: Vec<ConnId>,
    tokens: Vec<u64>,
    /// What the stack's last segment of data said: its port at the peer, and the numbers that fit it.
    peer_port: u16,
    sequence: SeqNumber,
    acknowledgement: SeqNumber,
}

impl World {
    fn new() -> World {
        let config = StackConfig {
            mac: HOST_MAC,
            addresses: vec!["10.0.0.1/24".parse().unwrap(), "fd00::1/64".parse().unwrap()],
            memory: 256 << 10,
            max_connections: 16,
            max_time_wait: 4,
            max_listeners: 4,
            max_udp_sockets: 4,
            max_neighbors: 8,
            dad_transmits: 0,
            dhcp: true,
            slaac: true,
            ..StackConfig::default()
        };
        let pool = Pool::new(256, 2_048);
        let pools = StackPools::new(64, 3).with_receive(pool.clone());
        let mut stack = Stack::new(config, [7; 32], pools);
        let mut listen =
            |port| stack.listen(OWNER, ListenAddr { ip: None, port }, &ListenOptions::default()).unwrap();
        let listeners = vec![listen(80), listen(81)];
        let udp = stack.udp_bind(OWNER, ListenAddr { ip: None, port: 7 }, 20_000).unwrap();
        let mut world = World {
            stack,
            pool,
            batch: RxBatch::with_limit(4),
            queue: TxQueue::with_capacity(16),
            now: Instant::from_millis(1),
            listeners,
            udp,
            conns: Vec::new(),
            tokens: Vec::new(),
            peer_port: 5_000,
            sequence: SeqNumber(1_000),
            acknowledgement: SeqNumber(0),
        };
        world.acquaint();
        world
    }

    /// Makes the peer known to the neighbour cache.
    fn acquaint(&mut self) {
        let request = arp::Builder {
            operation: arp::Operation::REQUEST,
            sender_mac: PEER_MAC,
            sender_ip: PEER4,
            target_mac: MacAddr::default(),
            target_ip: HOST4,
        };
        let mut bytes = [0; arp::PACKET_LEN];
        request.emit(&mut bytes).unwrap();
        self.frame(EtherType::ARP, &bytes, ChecksumStatus::Unchecked);
    }

    fn feed(&mut self, bytes: &[u8], checksum: ChecksumStatus) {
        let Some(mut buffer) = self.pool.take() else { return };
        let len = bytes.len().min(2_048);
        buffer.bytes_mut()[..len].copy_from_slice(&bytes[..len]);
        let meta = RxMeta { checksum, ..RxMeta::default() };
        self.batch.push(Frame::new(buffer.freeze(0..len), meta)).unwrap();
        self.stack.handle_frames(self.now, &mut self.batch);
        assert!(self.batch.is_empty());
    }

    fn frame(&mut self, ether_type: EtherType, payload: &[u8], checksum: ChecksumStatus) {
        let header = ethernet::Builder {
            destination: HOST_MAC,
            source: PEER_MAC,
            ether_type,
            ..ethernet::Builder::default()
        };
        let mut bytes = vec![0; header.header_len()];
        header.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        self.feed(&bytes, checksum);
    }

    /// A packet with good addresses around arbitrary bytes; the ICMP checksum is made right.
    fn packet(&mut self, kind: u8, data: &[u8]) {
        let protocol = [1, 6, 17, 58, 0, 43, 44, 60][usize::from(kind & 7)];
        let mut payload = data.to_vec();
        if kind & 8 == 0 {
            let mut sum = checksum::Sum::ZERO;
            if protocol == 1 && payload.len() >= 4 {
                payload[2..4].fill(0);
                sum.add(&payload);
                payload[2..4].copy_from_slice(&sum.finish().to_be_bytes());
            }
            let mut packet = vec![0; 20];
            let fragment = data.first().copied().unwrap_or(0);
            let header = ipv4::Builder {
                dont_fragment: false,
                more_fragments: kind & 16 != 0,
                fragment_offset: if kind & 32 != 0 { u16::from(fragment) * 8 } else { 0 },
                ..ipv4::Builder::new(PEER4, HOST4, Protocol(protocol), payload.len())
            };
            header.emit(&mut packet).unwrap();
            packet.extend_from_slice(&payload);
            self.frame(EtherType::IPV4, &packet, ChecksumStatus::Good);
        } else {
            let header = ipv6::Builder {
                hop_limit: if kind & 16 != 0 { 255 } else { 64 },
                ..ipv6::Builder::new(PEER6, HOST6, Protocol(protocol), payload.len())
            };
            if protocol == 58 && payload.len() >= 4 {
                payload[2..4].fill(0);
                let mut sum = header.pseudo_header();
                sum.add(&payload);
                payload[2..4].copy_from_slice(&sum.finish().to_be_bytes());
            }
            let mut packet = vec![0; 40];
            header.emit(&mut packet).unwrap();
            packet.extend_from_slice(&payload);
            self.frame(EtherType::IPV6, &packet, ChecksumStatus::Good);
        }
    }

    /// A segment near what the stack expects.
    fn segment(&mut self, data: &[u8]) {
        let [flags, ahead, behind, port, payload @ ..] = data else { return };
        if flags & 2 != 0 {
            self.peer_port = 5_000 + u16::from(*port % 8);
        }
        let segment = tcp::Builder {
            source_port: self.peer_port,
            destination_port: 80 + u16::from(port >> 7),
            sequence: self.sequence + u32::from(ahead / 16),
            acknowledgement: self.acknowledgement - u32::from(behind / 16),
            flags: Flags(*flags),
            window: u16::from(*port) * 64,
            ..tcp::Builder::default()
        };
        let mut bytes = vec![0; segment.header_len()];
        segment.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        let mut packet = vec![0; 20];
        ipv4::Builder::new(PEER4, HOST4, Protocol::TCP, bytes.len()).emit(&mut packet).unwrap();
        packet.extend_from_slice(&bytes);
        self.frame(EtherType::IPV4, &packet, ChecksumStatus::Good);
    }

    /// Takes what the stack sends; `complete` says whether its packets leave the device.
    fn transmit(&mut self, complete: bool) {
        self.stack.poll_transmit(self.now, &mut self.queue);
        while let Some(packet) = self.queue.front() {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).unwrap();
            let token = packet.meta.token;
            let segmentation = packet.meta.segmentation.segment_size();
            assert!(segmentation > 0 || bytes.len() <= 1_514, "{} bytes in one frame", bytes.len());
            self.queue.pop();
            self.look_at(&bytes);
            if complete && token != TxToken(0) {
                self.stack.handle_completion(self.now, token);
            }
        }
    }

    fn look_at(&mut self, frame: &[u8]) {
        let header = ethernet::Header::parse(frame).expect("our own frame");
        if header.ether_type() != EtherType::IPV4 {
            return;
        }
        let ip = ipv4::Header::parse(header.payload()).expect("our own packet");
        assert!(ip.verify_checksum());
        if ip.protocol() != Protocol::TCP || ip.is_fragment() {
            return;
        }
        let segment = tcp::Header::parse(ip.payload()).expect("our own segment");
        if !segment.flags().contains(Flags::RST) {
            self.acknowledgement = segment.sequence() + segment.sequence_len();
            if segment.flags().contains(Flags::ACK) {
                self.sequence = segment.acknowledgement();
            }
        }
    }

    fn act(&mut self, what: u8, data: &[u8]) {
        let listener = self.listeners[usize::from(what >> 7)];
        self.conns.extend(self.stack.accept(listener));
        let Some(conn) = self.conns.get(usize::from(what >> 3 & 3)).copied() else { return };
        match what & 7 {
            0 => {
                let _ = self.stack.write(conn, data);
            }
            1 => self.stack.consume(conn, data.len() * 16),
            2 => self.stack.shutdown(conn),
            3 => self.stack.close(conn),
            4 => self.stack.abort(conn),
            5 => {
                let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 100_000 };
                let _ = self.stack.send(conn, Payload::File(range));
            }
            6 => {
                let _ = self.stack.send(conn, Payload::Static(&[9; 5_000]));
            }
            _ => {
                let to = (PEER4, u16::from(what)).into();
                let _ = self.stack.udp_send(self.udp, None, to, data);
            }
        }
        if what & 7 == 3 || what & 7 == 4 {
            self.conns.retain(|other| *other != conn);
        }
    }

    fn read_files(&mut self, short: bool) {
        while let Some(request) = self.stack.poll_file_request() {
            self.tokens.push(request.token);
            let len = if short { request.len / 2 } else { request.len };
            let data = vec![3; len].into();
            self.stack.handle_file_data(self.now, request.token, Ok(data));
        }
        if let Some(token) = self.tokens.pop() {
            // An answer that comes twice changes nothing.
            self.stack.handle_file_data(self.now, token, Err(linerate_transport::FileError::Io));
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.stack.poll_timeout().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.transmit(true);
        }
        self.now = end;
        self.stack.set_now(end);
    }

    fn step(&mut self, what: u8, data: &[u8]) {
        match what & 7 {
            0 => self.feed(data, ChecksumStatus::Unchecked),
            1 => self.packet(what >> 3 | 16, data),
            2 | 3 => self.segment(data),
            4 => self.pass(Duration::from_millis(1 << (what >> 4))),
            5 => self.act(what ^ data.first().copied().unwrap_or(0), data),
            6 => self.read_files(what & 8 != 0),
            _ => self.packet(what >> 3, data),
        }
        self.transmit(what & 128 == 0);
        while self.stack.poll_event().is_some() {}
    }

    fn finish(mut self) {
        while self.stack.udp_peek(self.udp).is_some() {
            self.stack.udp_consume(self.udp);
        }
        for listener in self.listeners.clone() {
            self.conns.extend(core::iter::from_fn(|| self.stack.accept(listener)));
            self.stack.close_listener(listener);
        }
        for conn in core::mem::take(&mut self.conns) {
            self.stack.abort(conn);
        }
        self.read_files(false);
        self.transmit(true);
        self.pass(Duration::from_secs(400));
        let memory = self.stack.memory();
        assert_eq!((memory.used, memory.connections), (0, 0), "{memory:?}");
        assert_eq!(memory.pages.free, memory.pages.total);
        assert_eq!(memory.datagrams.free, memory.datagrams.total);
        assert_eq!(self.pool.free(), self.pool.stats().total);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut world = World::new();
    let mut rest = input;
    for _ in 0..64 {
        let [what, len, tail @ ..] = rest else { break };
        let (data, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        world.step(*what, data);
        rest = tail;
    }
    world.finish();
});
