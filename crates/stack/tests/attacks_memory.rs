//! Peers that make us hold memory: closed windows, slow readers, small pieces out of order, connections left behind.

mod common;

use common::frames::*;
use common::peer::{Answer, Peer, answers, modern, old};
use common::{Bench, OWNER, Setup, file_bytes, shown};
use core::time::Duration;
use linerate_stack::StackConfig;
use linerate_transport::{
    AcceptBacklog, BufferSize, Bytes, CloseReason, ConnId, ConnState, Engine, FileId, FileRange, ListenAddr,
    ListenOptions, ListenerId, Payload, SendError, SocketOptions, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::tcp::{Flags, Options};

fn bench(change: impl FnOnce(&mut StackConfig)) -> (Bench, ListenerId) {
    bench_with(change, SocketOptions::default())
}

/// The same, with settings of the connections.
fn bench_with(change: impl FnOnce(&mut StackConfig), socket: SocketOptions) -> (Bench, ListenerId) {
    let mut config = Setup::default().config[0].clone();
    change(&mut config);
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let options = ListenOptions { backlog: AcceptBacklog(1_000), socket, ..ListenOptions::default() };
    let listener = bench.host.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).unwrap();
    (bench, listener)
}

/// Queues memory until the stack takes no more.
fn fill(bench: &mut Bench, conn: ConnId) -> usize {
    let data = Bytes::from(file_bytes(0, 16_384));
    let mut queued = 0;
    while bench.host.stack.send(conn, Payload::Shared(data.clone())) == Ok(()) {
        queued += 16_384;
    }
    queued
}

/// A client that reads as fast as it can; counts what it got.
struct Reader {
    peer: Peer,
    conn: ConnId,
    received: usize,
}

impl Reader {
    fn new(bench: &mut Bench, listener: ListenerId, port: u16) -> Reader {
        let mut peer = Peer::new(port, old());
        let conn = peer.connect(bench, listener);
        Reader { peer, conn, received: 0 }
    }

    /// Sends it `len` bytes, as far as there is memory, and lets it acknowledge what arrives.
    fn read(&mut self, bench: &mut Bench, len: usize) {
        for _ in 0..len / 16_384 {
            match bench.host.stack.send(self.conn, Payload::Shared(Bytes::from(file_bytes(0, 16_384)))) {
                Ok(()) | Err(SendError::Full) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        for _ in 0..20 {
            let frames = bench.receive();
            let mine: Vec<Answer> =
                answers(&frames).into_iter().filter(|answer| answer.port == self.peer.port).collect();
            for answer in &mine {
                if answer.seq == self.peer.ack {
                    self.received += answer.payload.len();
                    self.peer.ack += answer.payload.len() as u32;
                }
            }
            bench.send(&tcp4(self.peer.segment(Flags::ACK), &[]));
        }
    }
}

/// Connections whose peers take `bite` bytes a second hold all memory; a reader lives beside them.
#[track_caller]
fn check_squatters(bite: u32) {
    let (mut bench, listener) = bench(|config| config.memory = 4 << 20);
    let mut reader = Reader::new(&mut bench, listener, 10_000);
    let mut squatters: Vec<(Peer, ConnId)> = (0..60)
        .map(|n| {
            let mut peer = Peer::new(20_000 + n, old());
            peer.window = bite as u16;
            let conn = peer.connect(&mut bench, listener);
            (peer, conn)
        })
        .collect();
    // The windows of those who send nothing do not count for long.
    bench.pass(Duration::from_secs(2));
    let held: usize = squatters.iter().map(|(_, conn)| fill(&mut bench, *conn)).sum();
    assert!(held > 3 << 20, "{held}");
    let full = bench.host.stack.memory();
    for _ in 0..200 {
        bench.pass(Duration::from_millis(100));
        bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
        reader.read(&mut bench, 64 << 10);
        for (peer, _) in squatters.iter_mut().filter(|_| bite > 0) {
            peer.ack += bite / 10;
            bench.feed(&tcp4(peer.segment(Flags::ACK), &[]));
        }
    }
    let counters = bench.host.stack.counters();
    let memory = bench.host.stack.memory();
    assert!(counters.tcp_stalled_shed >= 4, "{:?}", shown(counters));
    assert!(memory.used < memory.limit / 8 * 7 && memory.used < full.used, "{memory:?}");
    assert_eq!(bench.host.stack.state(reader.conn), ConnState::Open { finished: false });
    assert!(reader.received > 1 << 20, "{} {memory:?}", reader.received);
    let shed = squatters
        .iter()
        .filter(|(_, conn)| bench.host.stack.state(*conn) == ConnState::Closed(CloseReason::NoMemory));
    assert_eq!(shed.count() as u64, counters.tcp_stalled_shed);
}

#[test]
fn closed_windows_do_not_keep_memory_from_those_who_read() {
    check_squatters(0);
}

#[test]
fn readers_of_a_few_bytes_do_not_either() {
    check_squatters(100);
}

#[test]
fn files_are_not_read_into_memory_that_is_not_there() {
    let (mut bench, listener) = bench(|config| config.memory = 4 << 20);
    let clients = (0..60).map(|n| {
        let mut peer = Peer::new(20_000 + n, old());
        peer.window = 4;
        let conn = peer.connect(&mut bench, listener);
        (peer, conn)
    });
    let mut clients: Vec<_> = clients.collect();
    for (_, conn) in &clients {
        let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 1_000_000 };
        bench.host.stack.send(*conn, Payload::File(range)).unwrap();
        bench.receive();
    }
    let memory = bench.host.stack.memory();
    let taken = memory.used + memory.promised + memory.granted;
    assert!(
        memory.used > memory.limit / 4 && (memory.limit / 4 * 3..=memory.limit).contains(&taken),
        "{memory:?}"
    );
    // Whoever takes what was read gets more, to its last byte.
    let peer = &mut clients[50].0;
    peer.window = 65_535;
    let mut received = 0;
    for _ in 0..2_000 {
        let frames = bench.ask(&tcp4(peer.segment(Flags::ACK), &[]));
        for answer in answers(&frames).iter().filter(|answer| answer.port == peer.port) {
            if answer.seq == peer.ack {
                received += answer.payload.len();
                peer.ack += answer.payload.len() as u32;
            }
        }
        bench.now += Duration::from_millis(1);
    }
    assert_eq!(received, 1_000_000);
}

#[test]
fn what_lies_before_a_file_that_finds_no_memory_any_more_is_sent() {
    // Where reads wait for each other, the memory that one of them was to have may be gone when its turn comes.
    let (mut bench, listener) = bench(|config| {
        config.memory = 1 << 20;
        config.max_file_reads = 1;
    });
    let clients = (0..60).map(|n| {
        let mut peer = Peer::new(20_000 + n, old());
        peer.window = 4;
        let conn = peer.connect(&mut bench, listener);
        (peer, conn)
    });
    let clients: Vec<_> = clients.collect();
    for (_, conn) in &clients {
        let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 1_000_000 };
        bench.host.stack.send(*conn, Payload::Static(b"head")).unwrap();
        bench.host.stack.send(*conn, Payload::File(range)).unwrap();
    }
    let mut heard = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let frames = bench.receive();
        heard.extend(answers(&frames).iter().filter(|answer| !answer.payload.is_empty()).map(|it| it.port));
        bench.now += Duration::from_millis(1);
    }
    let silent: Vec<u16> =
        clients.iter().map(|(peer, _)| peer.port).filter(|port| !heard.contains(port)).collect();
    assert!(silent.is_empty(), "of 60 clients {} got nothing: {silent:?}", silent.len());
}

#[test]
fn memory_that_is_full_of_what_lies_behind_a_file_still_lets_the_file_be_read() {
    let (mut bench, listener) = bench(|config| config.memory = 64 << 10);
    let mut peer = Peer::new(20_000, old());
    let conn = peer.connect(&mut bench, listener);
    let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 3_000 };
    bench.host.stack.send(conn, Payload::File(range)).unwrap();
    // More than seven eighths of what there is.
    bench.host.stack.send(conn, Payload::Shared(Bytes::from(vec![0; 60_000]))).unwrap();
    let frames = bench.receive();
    assert!(answers(&frames).iter().any(|answer| !answer.payload.is_empty()), "all else waits for it");
}

#[test]
fn a_window_that_stays_closed_ends_with_the_user_timeout() {
    let (mut bench, listener) = bench(|_| {});
    let mut peer = Peer::new(20_000, old());
    peer.window = 0;
    let conn = peer.connect(&mut bench, listener);
    fill(&mut bench, conn);
    let begin = bench.now;
    while bench.host.stack.state(conn) == (ConnState::Open { finished: false }) {
        bench.pass(Duration::from_millis(500));
        bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
        // It answers every probe: it is alive, and takes nothing.
        bench.ask(&tcp4(peer.segment(Flags::ACK), &[]));
        assert!(bench.now - begin < Duration::from_secs(70));
    }
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::TimedOut));
    assert!(bench.now - begin >= Duration::from_secs(59));
    assert_eq!(bench.host.stack.memory().used, 0);
}

#[test]
fn who_holds_all_memory_alone_gives_way_to_a_newcomer() {
    // A send buffer that has grown.
    let socket = SocketOptions { send_buffer: BufferSize::Fixed(4 << 20), ..SocketOptions::default() };
    let (mut bench, listener) = bench_with(|config| config.memory = 4 << 20, socket);
    let mut peer = Peer::new(20_000, old());
    peer.window = 0;
    let conn = peer.connect(&mut bench, listener);
    while bench.host.stack.write(conn, &[0; 4_000]) == Ok(()) {}
    let begin = bench.now;
    // Alone, it is left in peace.
    while bench.now - begin < Duration::from_secs(30) {
        bench.pass(Duration::from_millis(500));
        bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
        bench.ask(&tcp4(peer.segment(Flags::ACK), &[]));
    }
    assert_eq!(bench.host.stack.state(conn), ConnState::Open { finished: false });
    let mut newcomer = Peer::new(30_000, old());
    assert_eq!(newcomer.open(&mut bench), None, "no memory");
    bench.pass(Duration::from_millis(2_500));
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::NoMemory));
    let new = newcomer.connect(&mut bench, listener);
    assert_eq!(bench.host.stack.state(new), ConnState::Open { finished: false });
}

#[test]
fn closed_connections_that_deliver_nothing_are_bounded() {
    let (mut bench, listener) = bench(|config| config.max_orphans = 4);
    for n in 0..10 {
        let mut peer = Peer::new(20_000 + n, old());
        peer.window = 0;
        let conn = peer.connect(&mut bench, listener);
        bench.host.stack.write(conn, b"never read").unwrap();
        bench.host.stack.close(conn);
        bench.pass(Duration::from_millis(10));
    }
    assert_eq!(bench.host.stack.counters().tcp_orphans_shed, 6);
    assert_eq!(bench.host.stack.memory().connections, 4);
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.host.stack.memory().connections, 0);
}

#[test]
fn a_full_table_takes_the_place_of_a_closed_connection_for_a_client_that_proved_itself() {
    let (mut bench, listener) = bench(|config| config.max_connections = 8);
    for n in 0..8 {
        let mut peer = Peer::new(20_000 + n, old());
        peer.window = 0;
        let conn = peer.connect(&mut bench, listener);
        bench.host.stack.write(conn, b"never read").unwrap();
        bench.host.stack.close(conn);
        bench.receive();
    }
    let conn = Peer::new(30_000, modern()).connect(&mut bench, listener);
    assert_eq!(bench.host.stack.state(conn), ConnState::Open { finished: false });
    let counters = bench.host.stack.counters();
    assert_eq!((counters.tcp_orphans_shed, counters.syn_cookies_accepted), (1, 1));
}

#[test]
fn single_bytes_out_of_order_hold_little_and_arrive_in_the_end() {
    let (mut bench, listener) = bench(|_| {});
    let mut peer = Peer::new(20_000, Options { window_scale: None, ..old() });
    let conn = peer.connect(&mut bench, listener);
    let data = file_bytes(0, 20_000);
    for at in (1..20_000).step_by(2) {
        let mut segment = peer.segment(Flags::ACK);
        segment.sequence += at as u32;
        bench.feed(&tcp4(segment, &data[at..=at]));
    }
    bench.receive();
    // 10,000 bytes in buffers of 2 KiB would be 20 MB; the device has 1,024 buffers.
    let memory = bench.host.stack.memory();
    assert!(memory.used <= 2 * (128 << 10), "{memory:?}");
    assert!(bench.pool.free() > 1_024 * 3 / 4, "{}", bench.pool.free());
    assert!(bench.host.stack.counters().drop_tcp_out_of_order_full > 9_000);
    let mut got = Vec::new();
    for chunk in data.chunks(1_000) {
        peer.send(&mut bench, chunk);
        common::read_all(&mut bench.host.stack, conn, &mut got);
    }
    assert_eq!(got.len(), data.len());
    assert!(got == data);
    assert_eq!(bench.host.stack.memory().used, 0);
    assert_eq!(bench.pool.free(), 1_024);
}

#[test]
fn data_out_of_order_leaves_receive_buffers_for_others() {
    let (mut bench, listener) = bench(|_| {});
    let mut peers: Vec<Peer> = (0..24)
        .map(|n| {
            let mut peer = Peer::new(20_000 + n, old());
            peer.connect(&mut bench, listener);
            peer
        })
        .collect();
    for at in 0..76 {
        for peer in &mut peers {
            let mut segment = peer.segment(Flags::ACK);
            segment.sequence += 10 + 2 * at;
            bench.feed(&tcp4(segment, b"x"));
        }
    }
    assert!(bench.pool.free() >= 1_024 / 8, "{}", bench.pool.free());
    assert!(bench.pool.free() < 1_024 / 4, "the peers did take what they could: {}", bench.pool.free());
    assert!(Peer::new(30_000, modern()).open(&mut bench).is_some(), "a newcomer is served meanwhile");
    assert_eq!(bench.host.stack.counters().tcp_stalled_shed, 0, "nobody is reset for it");
}

#[test]
fn a_file_whose_memory_was_gone_for_a_moment_is_read_on() {
    let (mut bench, listener) = bench(|config| config.memory = 1 << 20);
    let mut peer = Peer::new(20_000, old());
    let conn = peer.connect(&mut bench, listener);
    let others: Vec<_> =
        (1..60).map(|n| Peer::new(20_000 + n, old()).connect(&mut bench, listener)).collect();
    let now = bench.now;
    let range = FileRange { file: FileId::new(0, 0), offset: 0, len: 1_000_000 };
    bench.host.stack.send(conn, Payload::Static(b"head")).unwrap();
    bench.host.stack.send(conn, Payload::File(range)).unwrap();
    bench.receive();
    // All that was read arrives, but for less than a segment, which waits for the next part.
    for _ in 0..10 {
        peer.ack += bench.host.stack.info(conn).unwrap().in_flight;
        bench.send(&tcp4(peer.segment(Flags::ACK), &[]));
        bench.host.node.input(now).unwrap();
        bench.host.node.output(now).unwrap();
    }
    assert_eq!(bench.host.stack.info(conn).unwrap().in_flight, 0);
    // When its turn to be read comes, all memory is the others'; then that is free again.
    for other in &others {
        while bench.host.stack.send(*other, Payload::Shared(Bytes::from(vec![0; 16_384]))).is_ok() {}
    }
    assert_eq!(bench.host.stack.poll_file_request(), None);
    others.into_iter().for_each(|other| bench.host.stack.abort(other));
    bench.host.node.output(now).unwrap();
    assert!(bench.host.stack.poll_file_request().is_some(), "memory is back, and nobody asks for it");
}
