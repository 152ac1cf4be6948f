//! The host with its device and its application, and the peer on the other end of the cable.

use crate::ops::{App, Buffers, Opening, Say, Setup, Step};
use crate::peer::Peer;
use crate::streams::{MOST, host_bytes, peer_byte};
use crate::{HOST_PORT, PEER_PORT};
use core::net::Ipv4Addr;
use core::time::Duration;
use linerate_nic::{ChecksumStatus, Frame, MacAddr, Pool, RxBatch, RxMeta, TxQueue, TxToken};
use linerate_stack::{Stack, StackConfig, StackPools};
use linerate_transport::{
    BufferSize, Congestion, ConnId, ConnState, Ecn, FileError, FileId, FileRange, FileRequest, ListenAddr, ListenOptions,
    ListenerId, Owner, Payload, SocketOptions, Transport,
};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags};
use linerate_wire::units::Instant;
use linerate_wire::{arp, icmpv4, ip, ipv4};
use std::collections::VecDeque;

const HOST_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const OWNER: Owner = Owner(1);
/// Packets that are kept to be quoted by ICMP errors.
const QUOTABLE: usize = 8;
/// Segments that one step may send at most: a full send buffer in the smallest segments.
const MOST_SENT: usize = 4_000;

pub struct World {
    stack: Stack,
    pool: Pool,
    batch: RxBatch,
    queue: TxQueue,
    now: Instant,
    peer: Peer,
    listener: Option<ListenerId>,
    conn: Option<ConnId>,
    /// Further connections, after the first ended.
    others: Vec<ConnId>,
    /// Bytes that the application queued, and whether it has said that these are all.
    queued: u64,
    has_shut: bool,
    /// Bytes that it read.
    read: u32,
    is_stalled: bool,
    tokens: VecDeque<TxToken>,
    requests: VecDeque<FileRequest>,
    quotable: VecDeque<Vec<u8>>,
    /// Of this step: TCP segments, and those without payload or SYN, FIN, RST.
    sent: usize,
    acks: usize,
}

fn socket(setup: &Setup) -> SocketOptions {
    let (send_buffer, receive_buffer) = buffers(setup.buffers);
    let default = SocketOptions::default();
    SocketOptions {
        send_buffer,
        receive_buffer,
        no_delay: setup.no_delay,
        keep_alive: default.keep_alive.filter(|_| setup.keep_alive),
        congestion: if setup.reno { Congestion::NewReno } else { Congestion::Cubic },
        ecn: if setup.asks_ecn { Ecn::Request } else { Ecn::Accept },
        ..default
    }
}

fn buffers(buffers: Buffers) -> (BufferSize, BufferSize) {
    match buffers {
        Buffers::Small => (BufferSize::Fixed(2_000), BufferSize::Fixed(1_000)),
        Buffers::Medium => (BufferSize::Fixed(20_000), BufferSize::Fixed(30_000)),
        Buffers::Auto => (BufferSize::Auto { max: 200_000 }, BufferSize::Auto { max: 200_000 }),
    }
}

impl World {
    pub fn new(setup: &Setup) -> World {
        let config = StackConfig {
            mac: HOST_MAC,
            addresses: vec!["10.0.0.1/24".parse().unwrap()],
            memory: if setup.is_tight { 24_000 } else { 512 << 10 },
            max_connections: 4,
            max_time_wait: 2,
            max_listeners: 2,
            max_udp_sockets: 1,
            max_neighbors: 8,
            max_super_segment: if setup.super_segments { 65_535 } else { 1_500 },
            completions: setup.completions,
            ipv6: false,
            ..StackConfig::default()
        };
        let pool = Pool::new(160, 1_600);
        let mut world = World {
            stack: Stack::new(config, [7; 32], StackPools::new(24, 2).with_receive(pool.clone())),
            pool,
            batch: RxBatch::with_limit(1),
            queue: TxQueue::with_capacity(8),
            now: Instant::from_millis(1_000),
            peer: Peer::new(setup),
            listener: None,
            conn: None,
            others: Vec::new(),
            queued: 0,
            has_shut: false,
            read: 0,
            is_stalled: false,
            tokens: VecDeque::new(),
            requests: VecDeque::new(),
            quotable: VecDeque::new(),
            sent: 0,
            acks: 0,
        };
        world.arp(arp::Operation::REQUEST);
        world.open(setup);
        world
    }

    fn open(&mut self, setup: &Setup) {
        let socket = socket(setup);
        match setup.opening {
            Opening::Passive | Opening::OnlyListen => {
                let addr = ListenAddr { ip: None, port: HOST_PORT };
                let options = ListenOptions { socket, ..ListenOptions::default() };
                self.listener = self.stack.listen(OWNER, addr, &options).ok();
            }
            Opening::Active | Opening::OnlyConnect => {
                let local = Some((HOST, HOST_PORT).into());
                self.conn = self.stack.connect(OWNER, local, (PEER, PEER_PORT).into(), &socket).ok();
            }
        }
        self.turn();
        let ecn = if setup.ecn { Flags::ECE | Flags::CWR } else { Flags::EMPTY };
        match setup.opening {
            Opening::Passive => {
                self.good(setup, Flags::SYN | ecn, 0, 0, setup.window);
                self.good(setup, Flags::ACK, 0, 0, setup.window);
            }
            Opening::Active => {
                let ecn = if setup.ecn { Flags::ECE } else { Flags::EMPTY };
                self.good(setup, Flags::SYN | Flags::ACK | ecn, 0, 0, setup.window);
            }
            Opening::OnlyListen | Opening::OnlyConnect => {}
        }
    }

    fn frame(&mut self, ether_type: EtherType, payload: &[u8]) {
        let Some(mut buffer) = self.pool.take() else { return };
        let header =
            ethernet::Builder { destination: HOST_MAC, source: PEER_MAC, ether_type, ..Default::default() };
        let at = header.emit(buffer.bytes_mut()).unwrap();
        buffer.bytes_mut()[at..at + payload.len()].copy_from_slice(payload);
        let meta = RxMeta { checksum: ChecksumStatus::Good, ..RxMeta::default() };
        self.batch.push(Frame::new(buffer.freeze(0..at + payload.len()), meta)).unwrap();
        self.stack.handle_frames(self.now, &mut self.batch);
        assert!(self.batch.is_empty());
    }

    fn packet(&mut self, protocol: Protocol, ecn: ip::Ecn, payload: &[u8]) {
        let header = ipv4::Builder { ecn, ..ipv4::Builder::new(PEER, HOST, protocol, payload.len()) };
        let mut bytes = vec![0; header.header_len()];
        header.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        self.frame(EtherType::IPV4, &bytes);
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

    fn segment(&mut self, (segment, payload): (tcp::Builder, Vec<u8>), ecn: ip::Ecn) {
        let mut bytes = vec![0; segment.header_len()];
        segment.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(&payload);
        assert!(bytes.len() <= 1_480, "longer than a frame");
        self.packet(Protocol::TCP, ecn, &bytes);
        self.turn();
    }

    fn good(&mut self, setup: &Setup, flags: Flags, len: u16, ack: i64, window: u16) {
        let segment = self.peer.good(setup, flags, len, ack, window);
        self.segment(segment, ip::Ecn::default());
    }

    pub fn step(&mut self, setup: &Setup, step: &Step) {
        (self.sent, self.acks) = (0, 0);
        let was_full = self.is_stalled || !self.queue.is_empty();
        let mut answers = false;
        match step {
            Step::Next { len } => {
                // A full segment, whatever options it has.
                self.good(setup, Flags::ACK, len % 1_449, self.peer.host_end, 65_535);
                answers = true;
            }
            Step::Acknowledge { part, window } => {
                let ack = self.peer.host_end - self.peer.host_end * i64::from(*part) / 4_096;
                self.good(setup, Flags::ACK, 0, ack, *window);
            }
            Step::Say(say) => {
                self.say(setup, say);
                answers = true;
            }
            Step::App(app) => self.act(app),
            Step::Pass { power, more } => {
                let ms = (1 << (power % 18)) + u64::from(*more);
                self.pass(Duration::from_millis(ms));
            }
            Step::Stall(stall) => self.is_stalled = *stall,
            Step::Complete(count) => self.complete(usize::from(*count)),
            Step::Icmp { kind, which, shift, mtu } => self.icmp(*kind, *which, *shift, *mtu),
            Step::File { is_short } => self.answer_file(*is_short),
        }
        self.turn();
        // What was held back by a full queue may come now too.
        if answers && !was_full {
            assert!(self.acks <= 4, "{} acknowledgements for one segment", self.acks);
        }
    }

    fn say(&mut self, setup: &Setup, say: &Say) {
        let segment = self.peer.say(setup, say);
        let ecn = ip::Ecn::from_bits(say.ecn);
        self.segment(segment, ecn);
    }

    /// One turn of the loop: events, file requests, packets.
    fn turn(&mut self) {
        if let Some(listener) = self.listener {
            while let Some(conn) = self.stack.accept(listener) {
                if self.conn.is_none() {
                    self.conn = Some(conn);
                } else {
                    self.others.push(conn);
                }
            }
        }
        // Another may take its place within the same tick of the clock, and so from the same number.
        let ended = |conn| matches!(self.stack.state(conn), ConnState::Closed(_));
        self.peer.is_over |= self.conn.is_some_and(ended);
        while self.stack.poll_event().is_some() {}
        self.requests.extend(core::iter::from_fn(|| self.stack.poll_file_request()));
        while self.transmit() {}
    }

    /// Fills the queue to the device and, unless that is stalled, empties it. True when there may be more.
    fn transmit(&mut self) -> bool {
        self.stack.poll_transmit(self.now, &mut self.queue);
        if self.is_stalled || self.queue.is_empty() {
            self.expect();
            return false;
        }
        while let Some(packet) = self.queue.front() {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).unwrap();
            let (token, segmentation) = (packet.meta.token, packet.meta.segmentation.segment_size());
            assert!(segmentation > 0 || bytes.len() <= 1_514, "{} bytes in one frame", bytes.len());
            self.queue.pop();
            self.look_at(&bytes);
            if token != TxToken(0) {
                self.tokens.push_back(token);
            }
        }
        assert!(self.sent < MOST_SENT, "a step that never ends sending");
        true
    }

    /// Tells the peer what the queue to a stalled device holds.
    fn expect(&mut self) {
        for packet in self.queue.iter() {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes).unwrap();
            let header = ethernet::Header::parse(&bytes).expect("our own frame");
            if header.ether_type() != EtherType::IPV4 {
                continue;
            }
            let packet = ipv4::Header::parse(header.payload()).expect("our own packet");
            if packet.protocol() == Protocol::TCP {
                self.peer.expect(&tcp::Header::parse(packet.payload()).expect("our own segment"));
            }
        }
    }

    fn look_at(&mut self, frame: &[u8]) {
        let header = ethernet::Header::parse(frame).expect("our own frame");
        if header.ether_type() == EtherType::ARP {
            let packet = arp::Packet::parse(header.payload()).expect("our own packet");
            if packet.operation() == arp::Operation::REQUEST && packet.target_ip() == PEER {
                self.arp(arp::Operation::REPLY);
            }
            return;
        }
        let packet = ipv4::Header::parse(header.payload()).expect("our own packet");
        if packet.protocol() != Protocol::TCP {
            return;
        }
        let segment = tcp::Header::parse(packet.payload()).expect("our own segment");
        let control = Flags::SYN | Flags::FIN | Flags::RST;
        self.sent += 1;
        self.acks += usize::from(segment.payload().is_empty() && !segment.flags().intersects(control));
        if self.quotable.len() == QUOTABLE {
            self.quotable.pop_front();
        }
        self.quotable.push_back(header.payload()[..header.payload().len().min(60)].to_vec());
        self.peer.hear(&segment, self.queued, self.has_shut);
    }

    fn complete(&mut self, count: usize) {
        for token in self.tokens.drain(..count.min(self.tokens.len())) {
            self.stack.handle_completion(self.now, token);
        }
    }

    fn act(&mut self, app: &App) {
        if let App::CloseListener = app {
            if let Some(listener) = self.listener.take() {
                self.stack.close_listener(listener);
            }
            return;
        }
        let Some(conn) = self.conn else { return };
        match app {
            App::Write { len } => {
                let bytes = host_bytes(self.queued, usize::from(*len) % MOST);
                self.queue_bytes(bytes.len() as u64, |stack| stack.write(conn, bytes).is_ok());
            }
            App::Send { len } => {
                let bytes = host_bytes(self.queued, usize::from(*len) % MOST);
                self.queue_bytes(bytes.len() as u64, |stack| {
                    stack.send(conn, Payload::Static(bytes)).is_ok()
                });
            }
            App::SendFile { len } => {
                let range = FileRange { file: FileId::new(0, 0), offset: self.queued, len: u64::from(*len) };
                self.queue_bytes(range.len, |stack| stack.send(conn, Payload::File(range)).is_ok());
            }
            App::Read { len } => self.read(conn, usize::from(*len)),
            App::ReadAll => self.read(conn, usize::MAX),
            App::Shutdown => {
                self.has_shut = true;
                self.stack.shutdown(conn);
            }
            App::Close => self.close(|stack, conn| stack.close(conn)),
            App::Abort => self.close(|stack, conn| stack.abort(conn)),
            App::SetBuffers(size) => {
                let (send_buffer, receive_buffer) = buffers(*size);
                let options = SocketOptions { send_buffer, receive_buffer, ..SocketOptions::default() };
                self.stack.set_options(conn, &options);
            }
            App::CloseListener => {}
        }
    }

    /// The bytes count from the moment of the call on: they may leave within it.
    fn queue_bytes(&mut self, len: u64, queue: impl FnOnce(&mut Stack) -> bool) {
        if queue(&mut self.stack) {
            self.queued += len;
        }
    }

    fn close(&mut self, close: impl Fn(&mut Stack, ConnId)) {
        self.has_shut = true;
        if let Some(conn) = self.conn.take() {
            close(&mut self.stack, conn);
            // A connection that takes its place is not the one that is checked.
            self.peer.is_over = true;
        }
    }

    fn read(&mut self, conn: ConnId, most: usize) {
        let mut left = most;
        let trusts = !self.peer.has_lied && !self.peer.is_over;
        while left > 0 {
            let piece = self.stack.peek(conn);
            let len = piece.len().min(left);
            if len == 0 {
                break;
            }
            let read = self.read;
            if trusts {
                let right =
                    piece[..len].iter().zip(0u32..).all(|(byte, i)| *byte == peer_byte(read.wrapping_add(i)));
                assert!(right, "wrong bytes at {read}");
            }
            self.read = read.wrapping_add(len as u32);
            left -= len;
            self.stack.consume(conn, len);
        }
        let is_end = self.stack.state(conn) == ConnState::Open { finished: true };
        if is_end && !self.peer.is_over && self.stack.readable(conn) == 0 {
            assert!(self.peer.fins.contains(&self.read), "the end of the stream at {}", self.read);
        }
    }

    fn icmp(&mut self, kind: u8, which: u8, shift: i16, mtu: u16) {
        let Some(packet) = self.quotable.get(usize::from(which) % QUOTABLE) else { return };
        let mut quoted = packet.clone();
        if let Some(number) = quoted.get_mut(24..28) {
            let seq = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
            number.copy_from_slice(&seq.wrapping_add_signed(i32::from(shift)).to_be_bytes());
        }
        let quoted = icmpv4::Quoted(&quoted);
        let message = match kind % 4 {
            0 => icmpv4::Message::TimeExceeded { code: 0, quoted },
            1 => icmpv4::Message::DestinationUnreachable {
                code: icmpv4::UnreachableCode::FRAGMENTATION_NEEDED,
                next_hop_mtu: mtu,
                quoted,
            },
            _ => icmpv4::Message::DestinationUnreachable {
                code: icmpv4::UnreachableCode(kind / 4 % 16),
                next_hop_mtu: mtu,
                quoted,
            },
        };
        let mut bytes = vec![0; message.emitted_len()];
        message.emit(&mut bytes).unwrap();
        self.packet(Protocol::ICMPV4, ip::Ecn::default(), &bytes);
    }

    fn answer_file(&mut self, is_short: bool) {
        let Some(request) = self.requests.pop_front() else { return };
        let len = if is_short { request.len / 2 } else { request.len };
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = request.offset + bytes.len() as u64;
            bytes.extend_from_slice(host_bytes(at, len - bytes.len()));
        }
        self.stack.handle_file_data(self.now, request.token, Ok(bytes.into()));
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let (mut fired, mut again) = (0, 0);
        while let Some(next) = self.stack.poll_timeout().filter(|next| *next <= end) {
            again = if next <= self.now { again + 1 } else { 0 };
            assert!(again <= 4, "a timer that is never in the future");
            fired += 1;
            assert!(fired < 2_000, "timers without end");
            self.now = self.now.max(next);
            self.stack.handle_timeout(self.now);
            self.turn();
        }
        self.now = end;
        self.stack.set_now(end);
    }

    /// Everybody lets go, and time passes: nothing may be left.
    pub fn finish(mut self, setup: &Setup) {
        self.is_stalled = false;
        self.sent = 0;
        self.turn();
        if let Some(conn) = self.conn {
            self.read(conn, usize::MAX);
        }
        if let Some(listener) = self.listener.take() {
            self.stack.close_listener(listener);
        }
        let gives_up = setup.irs & 1 == 0;
        for conn in self.conn.take().into_iter().chain(core::mem::take(&mut self.others)) {
            self.has_shut = true;
            if gives_up { self.stack.abort(conn) } else { self.stack.close(conn) }
        }
        for request in core::mem::take(&mut self.requests) {
            self.stack.handle_file_data(self.now, request.token, Err(FileError::Io));
        }
        for _ in 0..20 {
            self.turn();
            self.complete(usize::MAX);
            (self.sent, self.acks) = (0, 0);
            self.pass(Duration::from_secs(20));
            while let Some(request) = self.requests.pop_front() {
                self.stack.handle_file_data(self.now, request.token, Err(FileError::Io));
            }
        }
        self.complete(usize::MAX);
        let memory = self.stack.memory();
        assert_eq!((memory.used, memory.connections), (0, 0), "{memory:?}");
        assert_eq!(memory.pages.free, memory.pages.total);
        assert_eq!(memory.datagrams.free, memory.datagrams.total);
        assert_eq!(self.pool.free(), self.pool.stats().total);
    }
}
