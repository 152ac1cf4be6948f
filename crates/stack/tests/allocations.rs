//! Nothing is allocated per packet: two stacks move megabytes, and a stack stands a flood of SYNs, with what they got when
//! they were made.

mod common;

use common::frames::{HOST4, PEER4, arp, tcp4_from};
use common::peer::{Peer, modern};
use common::{Bench, Host, OWNER, Setup, World};
use core::net::Ipv4Addr;
use core::time::Duration;
use linerate_nic::loopback::Verdict;
use linerate_nic::{Capabilities, GroConfig, Link, Pool, Port, PortConfig, RxBatch, TxQueue};
use linerate_stack::{Stack, StackConfig, StackPools};
use linerate_transport::{
    AcceptBacklog, ListenAddr, ListenOptions, Payload, SendError, SocketOptions, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::units::Instant;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Of this thread: the test harness has its own. A constant without a destructor needs no memory of the allocator.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that are allocated, and the most that ever were, while `WEIGHS`.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static MOST_BYTES: Cell<isize> = const { Cell::new(0) };
    static WEIGHS: Cell<bool> = const { Cell::new(false) };
}

fn weigh(bytes: isize) {
    if WEIGHS.get() {
        BYTES.set(BYTES.get() + bytes);
        MOST_BYTES.set(MOST_BYTES.get().max(BYTES.get()));
    }
}

/// Does something, and counts the memory that it takes and gives back.
fn weighed<T>(does: impl FnOnce() -> T) -> T {
    WEIGHS.set(true);
    let result = does();
    WEIGHS.set(false);
    result
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory but the counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        weigh(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        weigh(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static DATA: [u8; 65_536] = [0x5a; 65_536];

/// Moves `len` bytes from `a` to `b`, read in place, and returns how many allocations that took.
fn transfer(
    world: &mut World,
    client: linerate_transport::ConnId,
    server: linerate_transport::ConnId,
    len: usize,
) -> u64 {
    let before = ALLOCATIONS.get();
    let (mut sent, mut received) = (0, 0);
    let done = world.run_for(Duration::from_secs(60), |world| {
        while sent < len {
            match world.a.stack.send(client, Payload::Static(&DATA)) {
                Ok(()) => sent += DATA.len(),
                Err(SendError::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        loop {
            let piece = world.b.stack.peek(server).len();
            if piece == 0 {
                break;
            }
            received += piece;
            world.b.stack.consume(server, piece);
        }
        while world.a.stack.poll_event().is_some() || world.b.stack.poll_event().is_some() {}
        received >= len
    });
    assert!(done);
    ALLOCATIONS.get() - before
}

#[test]
fn a_transfer_allocates_nothing_per_packet() {
    // Single frames; and super-frames, each in one large buffer (the link allocates lists of several).
    for (offloads, buffer_size) in [(Capabilities::NONE, 2_048), (Capabilities::ALL, 66_000)] {
        let setup = Setup { offloads, buffer_size, receive_buffers: 512, ..Setup::default() };
        let mut world = World::new(setup);
        let (client, server) = world.connected("10.0.0.2:80");
        // Queues grow to what the windows need.
        transfer(&mut world, client, server, 20 << 20);
        let before = world.b.stack.counters().tcp_in;
        let allocations = transfer(&mut world, client, server, 20 << 20);
        let segments = world.b.stack.counters().tcp_in - before;
        assert!(segments > 14_000, "{segments}");
        assert!(allocations < 20, "{allocations} allocations for {segments} segments");
    }
}

#[test]
fn loss_and_reordering_allocate_nothing_per_packet() {
    // Each hundredth frame is lost, or comes 2 ms late and so behind others; acknowledgements too.
    let lost = |count: u64| if count % 100 == 7 { Verdict::Drop } else { Verdict::Deliver };
    let late = |count: u64| match count % 100 {
        7 => Verdict::Delay(Duration::from_millis(2)),
        _ => Verdict::Deliver,
    };
    for (name, verdict) in [("lost", &lost as &dyn Fn(u64) -> Verdict), ("late", &late)] {
        let verdicts: Vec<Verdict> = (0..100).map(verdict).collect();
        let setup = Setup { offloads: Capabilities::NONE, receive_buffers: 2_048, ..Setup::default() };
        let mut world = World::new(setup);
        let (client, server) = world.connected("10.0.0.2:80");
        for host in [&world.a, &world.b] {
            let (mut count, verdicts) = (0, verdicts.clone());
            host.port.device().set_delay(Duration::from_millis(1));
            host.port.device().set_hook(move |_| {
                count += 1;
                verdicts[count % 100]
            });
        }
        transfer(&mut world, client, server, 40 << 20);
        let before = (world.b.stack.counters().tcp_in, world.a.stack.counters().tcp_retransmits);
        let allocations = transfer(&mut world, client, server, 20 << 20);
        let segments = world.b.stack.counters().tcp_in - before.0;
        let again = world.a.stack.counters().tcp_retransmits - before.1;
        assert!(segments > 14_000 && (name == "late" || again > 100), "{name}: {segments}, {again} again");
        assert!(
            allocations < 20,
            "{name}: {allocations} allocations for {segments} segments, {again} sent again"
        );
    }
}

#[test]
fn a_flood_of_syns_allocates_nothing() {
    let mut config = Setup::default().config[0].clone();
    config.gateways = vec![PEER4.into()];
    config.max_half_open = 16;
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    bench.host.listen(80);
    let frames: Vec<Vec<u8>> = (0..2_000u32)
        .map(|n| {
            let source = Ipv4Addr::from(0x0b00_0000 + n);
            tcp4_from(source, Peer::new(1_024 + n as u16, modern()).syn(), &[])
        })
        .collect();
    let mut queue = TxQueue::with_capacity(256);
    let mut flood = |bench: &mut Bench| {
        for batch in frames.chunks(100) {
            batch.iter().for_each(|frame| bench.feed(frame));
            bench.host.stack.poll_transmit(bench.now, &mut queue);
            (0..queue.len()).for_each(|_| queue.pop());
        }
    };
    flood(&mut bench);
    let before = ALLOCATIONS.get();
    flood(&mut bench);
    assert_eq!(ALLOCATIONS.get() - before, 0);
    let counters = bench.host.stack.counters();
    assert_eq!(
        (counters.syn_cookies_sent, counters.drop_control_full),
        (2 * (2_000 - 16), 0),
        "16 are half-open"
    );
}

/// What a small machine would set: tables of eight, a few pages of 512 bytes, no datagrams longer than that.
fn small_config() -> StackConfig {
    StackConfig {
        memory: 20 << 10,
        max_connections: 8,
        max_half_open: 4,
        max_orphans: 4,
        max_time_wait: 4,
        max_listeners: 1,
        max_udp_sockets: 1,
        max_neighbors: 8,
        max_parked: 2,
        max_paths: 4,
        max_file_reads: 2,
        control_queue: 16,
        datagram_queue: 2,
        ..Setup::default().config[1].clone()
    }
}

/// The loop of a small machine that answers each line with itself.
struct Small {
    stack: Stack,
    port: Port<Link>,
    batch: RxBatch,
    queue: TxQueue,
    listener: linerate_transport::ListenerId,
    conns: Vec<linerate_transport::ConnId>,
}

impl Small {
    fn new(link: Link, receive: Pool) -> Small {
        let gro = GroConfig { flows: 0, frames: 0, segments: 0 };
        let limits = PortConfig { rx_batch: 4, rx_budget: 8, tx_segments: 2, gro };
        let port = Port::new(link, limits).unwrap();
        let pools = StackPools {
            pages: Pool::new(6, 512),
            datagrams: Pool::new(0, 0),
            receive: Some(receive),
            device_queue: None,
        };
        let config = StackConfig { mac: port.mac(), ..small_config() };
        let mut stack = Stack::new(config, [3; 32], pools);
        let socket = SocketOptions { mss: Some(256), ..SocketOptions::default() };
        let options = ListenOptions { backlog: AcceptBacklog(8), socket, ..ListenOptions::default() };
        let listener = stack.listen(OWNER, ListenAddr { ip: None, port: 7 }, &options).unwrap();
        Small {
            stack,
            port,
            batch: RxBatch::with_limit(8),
            queue: TxQueue::with_capacity(2),
            listener,
            conns: Vec::with_capacity(8),
        }
    }

    fn turn(&mut self, now: Instant) -> bool {
        let mut moved = self.port.receive(now, &mut self.batch).unwrap() > 0;
        self.stack.handle_frames(now, &mut self.batch);
        while let Some(token) = self.port.poll_completion() {
            self.stack.handle_completion(now, token);
        }
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
            moved = true;
        }
        self.conns.extend(self.stack.accept(self.listener));
        while self.stack.poll_event().is_some() {}
        for conn in &self.conns {
            let mut line = [0; 256];
            let piece = self.stack.peek(*conn);
            let len = piece.len().min(line.len());
            line[..len].copy_from_slice(&piece[..len]);
            if len > 0 && self.stack.write(*conn, &line[..len]).is_ok() {
                self.stack.consume(*conn, len);
                moved = true;
            }
        }
        self.stack.poll_transmit(now, &mut self.queue);
        moved | (self.port.transmit(now, &mut self.queue).unwrap() > 0)
    }
}

#[test]
fn eight_connections_are_served_with_64_kib_of_heap() {
    let receive = weighed(|| Pool::new(32, 384));
    let (left, right) = Link::pair(&receive, 576, Capabilities::NONE, 4);
    let setup = Setup::default();
    let mut client = Host::new(left, Capabilities::NONE, setup.config[0].clone(), 1, StackPools::new(256, 2));
    let mut small = weighed(|| Small::new(right, receive));
    let mut now = Instant::from_millis(1);
    let to = "10.0.0.2:7".parse().unwrap();
    let conns: Vec<_> =
        (0..8).map(|_| client.stack.connect(OWNER, None, to, &SocketOptions::default()).unwrap()).collect();
    let len = 20_000;
    let (mut sent, mut came) = ([0; 8], [0; 8]);
    for _ in 0..200_000 {
        let mut moved = client.turn(now) | weighed(|| small.turn(now));
        for (at, conn) in conns.iter().enumerate() {
            while sent[at] < len && client.stack.write(*conn, &DATA[..500]).is_ok() {
                sent[at] += 500;
                moved = true;
            }
            let piece = client.stack.peek(*conn).len();
            client.stack.consume(*conn, piece);
            came[at] += piece;
            moved |= piece > 0;
        }
        if came == [len; 8] {
            break;
        }
        if !moved {
            let deadlines = [client.stack.poll_timeout(), small.stack.poll_timeout()];
            now = now.max(deadlines.into_iter().flatten().min().expect("somebody waits for something"));
        }
    }
    println!("{} bytes of heap at most; {now:?}", MOST_BYTES.get());
    assert_eq!(came, [len; 8], "{:?} {:?}", small.stack, common::shown(small.stack.counters()));
    assert!(MOST_BYTES.get() <= 64 << 10, "{} bytes of heap", MOST_BYTES.get());
}

/// A server that is weighed, and clients that are not, on one link.
struct Crowd {
    clients: Host,
    server: Host,
    listener: linerate_transport::ListenerId,
    now: Instant,
    conns: Vec<linerate_transport::ConnId>,
    accepted: Vec<linerate_transport::ConnId>,
}

impl Crowd {
    fn new(connections: usize, memory: usize) -> Crowd {
        let [clients, server] = Setup::default().config;
        let config = |config: StackConfig| StackConfig {
            max_connections: connections,
            max_half_open: connections / 4,
            memory: memory / 4 * 3,
            // As many addresses as there are ports for.
            addresses: vec!["10.0.0.1/8".parse().unwrap()],
            ..config
        };
        let client_addresses = (0..8).map(|n| format!("10.0.1.{n}/8").parse().unwrap()).collect();
        let server = StackConfig { addresses: vec!["10.0.0.2/8".parse().unwrap()], ..config(server) };
        let clients = StackConfig { addresses: client_addresses, ..config(clients) };
        let receive = Pool::on_demand(memory / 2 / 2_048, 2_048);
        let (left, right) = Link::pair(&Pool::new(4_096, 2_048), 1_500, Capabilities::NONE, 512);
        let pools = StackPools::for_memory(memory);
        let clients = Host::new(left, Capabilities::NONE, clients, 1, pools);
        let mut server = weighed(|| {
            let pools = StackPools::for_memory(memory).with_receive(receive);
            Host::new(right, Capabilities::NONE, server, 2, pools)
        });
        let listener = weighed(|| server.listen(80));
        let (conns, accepted) = (Vec::with_capacity(connections), Vec::with_capacity(connections));
        Crowd { clients, server, listener, now: Instant::from_millis(1), conns, accepted }
    }

    /// Turns both until nothing moves; returns how many allocations that was on the server.
    fn exchange(&mut self) -> u64 {
        let mut allocations = 0;
        loop {
            let mut moved = self.clients.turn(self.now);
            let before = ALLOCATIONS.get();
            moved |= weighed(|| self.server.turn(self.now));
            while let Some(conn) = weighed(|| self.server.stack.accept(self.listener)) {
                self.accepted.push(conn);
            }
            while weighed(|| self.server.stack.poll_event()).is_some() {}
            allocations += ALLOCATIONS.get() - before;
            while self.clients.stack.poll_event().is_some() {}
            if !moved {
                return allocations;
            }
        }
    }

    /// Connects so many more; returns how many allocations that was on the server.
    fn connect(&mut self, count: usize) -> u64 {
        let mut allocations = 0;
        for _ in 0..count {
            let source = format!("10.0.1.{}:0", self.conns.len() / 15_000).parse().unwrap();
            let to = "10.0.0.2:80".parse().unwrap();
            let options = SocketOptions::default();
            let client = self.clients.stack.connect(OWNER, Some(source), to, &options).unwrap();
            self.conns.push(client);
            allocations += self.exchange();
        }
        allocations
    }

    /// Each client asks a question of `ask` bytes and gets an answer of `answer`.
    fn talk(&mut self, ask: usize, answer: usize) {
        for at in 0..self.conns.len() {
            self.clients.stack.write(self.conns[at], &DATA[..ask]).unwrap();
            self.exchange();
            let server = &mut self.server.stack;
            weighed(|| {
                server.consume(self.accepted[at], ask);
                server.write(self.accepted[at], &DATA[..answer]).unwrap();
            });
            self.exchange();
            assert_eq!(self.clients.stack.readable(self.conns[at]), answer);
            self.clients.stack.consume(self.conns[at], answer);
            self.exchange();
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.exchange();
            let deadlines = [self.clients.stack.poll_timeout(), self.server.stack.poll_timeout()];
            match deadlines.into_iter().flatten().min() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
        }
        self.now = end;
    }
}

#[test]
fn ten_thousand_idle_connections_take_a_kibibyte_each() {
    let count = 10_000;
    let mut crowd = Crowd::new(count, 256 << 20);
    crowd.connect(count);
    crowd.talk(100, 1_000);
    crowd.pass(Duration::from_secs(5));
    assert_eq!((crowd.accepted.len(), crowd.server.stack.memory().connections), (count, count));
    // Everything that the server's stack has: tables, timers, queues and the connections in them.
    let bytes = BYTES.get() as usize;
    println!("{} bytes for each of {count} idle connections", bytes / count);
    assert!(bytes <= count * 1_024, "{} bytes for each of {count}", bytes / count);
    // Nobody notices: they answer as before.
    crowd.talk(50, 1_200);
}

#[test]
fn a_hundred_thousand_connections_fit_in_256_mib() {
    let count = 100_000;
    let mut crowd = Crowd::new(count, 256 << 20);
    crowd.connect(count);
    crowd.pass(Duration::from_secs(10));
    assert_eq!((crowd.accepted.len(), crowd.server.stack.memory().connections), (count, count));
    let bytes = BYTES.get() as usize;
    println!("{} MiB for {count} idle connections, at most {} MiB", bytes >> 20, MOST_BYTES.get() >> 20);
    assert!(MOST_BYTES.get() < 128 << 20, "half is for buffers: {} bytes", MOST_BYTES.get());
    assert_eq!(crowd.server.stack.counters().drop_syn_no_memory, 0);
}

#[test]
fn the_ten_thousandth_connection_is_accepted_with_as_little_work_as_the_first() {
    let mut crowd = Crowd::new(10_000, 64 << 20);
    // The first meet a neighbour that is not known yet, and queues that have no memory yet.
    crowd.connect(100);
    let first = crowd.connect(100);
    crowd.connect(9_700);
    let last = crowd.connect(100);
    println!("allocations for a hundred connections: {first} among few, {last} among ten thousand");
    assert!(last <= first, "{first}, {last}");
}
