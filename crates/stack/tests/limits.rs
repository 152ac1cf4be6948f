//! What happens at the bounds: backlogs, memory, neighbours that do not answer, paths that are narrower.

mod common;

use common::frames::*;
use common::peer::{Peer, answers, modern, old};
use common::{Bench, OWNER, Setup, World, file_bytes, read_all};
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_stack::{StackConfig, StackPools};
use linerate_transport::{
    AcceptBacklog, BufferSize, Bytes, CloseReason, ConnState, ListenAddr, ListenOptions, Payload, SendError,
    SocketOptions, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags, SeqNumber};
use linerate_wire::{icmpv4, ipv4};

fn listen(bench: &mut Bench, port: u16, backlog: u16) -> linerate_transport::ListenerId {
    let options = ListenOptions { backlog: AcceptBacklog(backlog), ..ListenOptions::default() };
    bench.host.stack.listen(OWNER, ListenAddr { ip: None, port }, &options).unwrap()
}

fn syn(source_port: u16, destination_port: u16) -> Vec<u8> {
    let segment = tcp::Builder {
        source_port,
        destination_port,
        sequence: SeqNumber(1_000),
        flags: Flags::SYN,
        window: 65_535,
        ..tcp::Builder::default()
    };
    tcp4(segment, &[])
}

/// The flags of the TCP segments that the host sent.
fn flags(frames: &[Vec<u8>]) -> Vec<Flags> {
    payloads(frames, Protocol::TCP).iter().map(|bytes| tcp::Header::parse(bytes).unwrap().flags()).collect()
}

#[test]
fn syns_beyond_the_backlog_keep_nothing_and_half_open_ones_go_in_time() {
    let mut bench = Bench::acquainted();
    listen(&mut bench, 80, 4);
    for port in 0..10 {
        bench.send(&syn(5_000 + port, 80));
    }
    let answers = bench.receive();
    assert_eq!(flags(&answers), [Flags::SYN | Flags::ACK; 10]);
    assert_eq!(bench.host.stack.counters().syn_cookies_sent, 6);
    assert_eq!(bench.host.stack.memory().connections, 4);
    bench.pass(Duration::from_secs(200));
    assert_eq!(bench.host.stack.memory().connections, 0);
    bench.send(&syn(6_000, 80));
    bench.receive();
    assert_eq!(bench.host.stack.memory().connections, 1);
}

#[test]
fn a_full_accept_queue_drops_syns_until_somebody_accepts() {
    let mut world = World::new(Setup::default());
    let options = ListenOptions { backlog: AcceptBacklog(2), ..ListenOptions::default() };
    let listener = world.b.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).unwrap();
    let mut clients: Vec<_> = (0..2).map(|_| world.a.connect("10.0.0.2:80")).collect();
    world.exchange();
    clients.extend((0..3).map(|_| world.a.connect("10.0.0.2:80")));
    world.exchange();
    let open = |world: &World| {
        let is_open = |client| world.a.stack.state(client) == ConnState::Open { finished: false };
        clients.iter().filter(|client| is_open(**client)).count()
    };
    assert_eq!(open(&world), 2);
    // The clients that were turned away try again: one finds room, the others get cookies.
    assert!(world.b.stack.accept(listener).is_some());
    let done = world.run_for(Duration::from_secs(10), |world| open(world) == 5);
    assert!(done);
    clients.iter().for_each(|client| world.a.stack.write(*client, b"hello").unwrap());
    let mut accepted = 1;
    let done = world.run_for(Duration::from_secs(60), |world| {
        while world.b.stack.accept(listener).is_some() {
            accepted += 1;
        }
        accepted == 5
    });
    assert!(done, "{accepted}");
    assert!(world.b.stack.counters().drop_syn_backlog > 0);
    // A closed listener takes those along that nobody accepted.
    let late = world.a.connect("10.0.0.2:80");
    world.exchange();
    world.b.stack.close_listener(listener);
    world.exchange();
    assert_eq!(world.a.stack.state(late), ConnState::Closed(CloseReason::Reset));
    assert_eq!(world.b.stack.memory().connections, 5);
}

#[test]
fn segments_of_nobody_are_reset_at_a_limited_rate() {
    let mut bench = Bench::acquainted();
    let answers = bench.ask(&syn(5_000, 81));
    let [reset] = &payloads(&answers, Protocol::TCP)[..] else { panic!() };
    let reset = tcp::Header::parse(reset).unwrap();
    assert_eq!((reset.flags(), reset.acknowledgement()), (Flags::RST | Flags::ACK, SeqNumber(1_001)));
    let stray = tcp::Builder {
        source_port: 5_000,
        destination_port: 81,
        sequence: SeqNumber(1),
        acknowledgement: SeqNumber(77),
        flags: Flags::ACK,
        ..tcp::Builder::default()
    };
    let answers = bench.ask(&tcp4(stray, b"data"));
    let [reset] = &payloads(&answers, Protocol::TCP)[..] else { panic!() };
    let reset = tcp::Header::parse(reset).unwrap();
    assert_eq!((reset.flags(), reset.sequence()), (Flags::RST, SeqNumber(77)));
    // A reset is never answered, a broadcast neither.
    let answers = bench.ask(&tcp4(tcp::Builder { flags: Flags::RST, ..stray }, &[]));
    assert!(answers.is_empty());
    for _ in 0..300 {
        bench.ask(&syn(5_000, 81));
    }
    let counters = bench.host.stack.counters();
    assert_eq!((counters.tcp_resets_out, counters.drop_reset_limited), (50, 252));
}

/// A world in which `b` has little memory.
fn small(memory: usize) -> World {
    let mut setup = Setup::default();
    setup.config[1].memory = memory;
    World::new(setup)
}

#[test]
fn when_memory_is_full_new_connections_are_refused_and_old_ones_live() {
    let mut world = small(1 << 20);
    let start = world.b.stack.memory();
    let listener = world.b.listen(80);
    let options = SocketOptions { receive_buffer: BufferSize::Fixed(256 << 10), ..SocketOptions::default() };
    let mut accepted = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(world.a.stack.connect(OWNER, None, "10.0.0.2:80".parse().unwrap(), &options).unwrap());
        world.exchange();
        accepted.extend(world.b.stack.accept(listener));
    }
    assert_eq!(accepted.len(), 8);
    // Everybody sends, nobody reads.
    let data = Bytes::from(file_bytes(0, 65_536));
    for round in 0..40 {
        for client in &clients {
            match world.a.stack.send(*client, Payload::Shared(data.clone())) {
                Ok(()) | Err(SendError::Full) => {}
                Err(error) => panic!("{round} {error:?}"),
            }
        }
        world.pass(Duration::from_millis(100));
    }
    let full = world.b.stack.memory();
    assert!(full.used <= full.limit, "{full:?}");
    assert!(full.used > full.limit / 2, "{full:?}");
    // Whoever comes now waits or is refused; who was there gets on as soon as somebody reads.
    let mut total = 0;
    let done = world.run_for(Duration::from_secs(300), |world| {
        for server in &accepted {
            let mut bytes = Vec::new();
            read_all(&mut world.b.stack, *server, &mut bytes);
            total += bytes.len();
        }
        clients.iter().all(|client| world.a.stack.unsent(*client) == 0)
    });
    assert!(done, "{total} bytes, {:?}", world.b.stack.memory());
    for client in &clients {
        world.a.stack.close(*client);
    }
    for server in &accepted {
        world.b.stack.close(*server);
    }
    world.pass(Duration::from_secs(120));
    let end = world.b.stack.memory();
    assert_eq!((end.used, end.connections), (0, 0));
    assert_eq!(end.pages.free, start.pages.free);
    assert_eq!(world.pool.free(), world.pool.stats().total);
}

#[test]
fn without_pages_or_receive_buffers_syns_are_dropped() {
    let config = Setup::default().config[0].clone();
    let pools = StackPools::new(64, 2);
    let pages = pools.pages.clone();
    let mut bench = Bench::with_pools(config, pools);
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    listen(&mut bench, 80, 100);
    let held: Vec<_> = (0..60).map(|_| pages.take().unwrap()).collect();
    assert!(flags(&bench.ask(&syn(5_000, 80))).is_empty());
    assert_eq!(bench.host.stack.counters().drop_syn_no_memory, 1);
    drop(held);
    assert_eq!(flags(&bench.ask(&syn(5_000, 80))), [Flags::SYN | Flags::ACK]);
    let held: Vec<_> = (0..965).map(|_| bench.pool.take().unwrap()).collect();
    assert!(flags(&bench.ask(&syn(5_001, 80))).is_empty());
    drop(held);
    assert_eq!(bench.host.stack.counters().drop_syn_no_memory, 2);
}

#[test]
fn time_wait_is_bounded_and_gives_way() {
    let mut setup = Setup::default();
    setup.config[1].max_time_wait = 8;
    setup.config[1].max_connections = 16;
    let mut world = World::new(setup);
    let listener = world.b.listen(80);
    for round in 0..50 {
        let client = world.a.connect("10.0.0.2:80");
        world.exchange();
        let server = world.b.stack.accept(listener).unwrap_or_else(|| panic!("round {round}"));
        // The server closes first: TIME-WAIT is its.
        world.b.stack.close(server);
        world.exchange();
        world.a.stack.close(client);
        world.exchange();
        assert!(world.b.stack.memory().time_wait <= 8);
    }
    assert_eq!(world.b.stack.counters().tcp_time_wait_recycled, 42);
    assert_eq!(world.b.stack.memory().connections, 8);
    world.pass(Duration::from_secs(120));
    assert_eq!(world.b.stack.memory().connections, 0);
}

#[test]
fn an_unreachable_neighbour_does_not_disturb_others() {
    let mut world = World::new(Setup::default());
    let (client, server) = world.connected("10.0.0.2:80");
    let lost: Vec<_> = (0..200).map(|i| world.a.connect(&format!("10.0.0.{}:80", 50 + i % 100))).collect();
    let socket = world.a.stack.udp_bind(OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    for i in 0..100 {
        let to = format!("10.0.0.{}:9", 50 + i);
        let _ = world.a.stack.udp_send(socket, None, to.parse().unwrap(), &[0; 1_000]);
    }
    // The transfer takes no longer than without the others: no virtual time at all on this link.
    let begin = world.now;
    let (mut sent, mut received) = (0, Vec::new());
    let done = world.run_for(Duration::from_secs(1), |world| {
        while sent < 2_000_000 {
            let data = Bytes::from(file_bytes(sent as u64, 50_000));
            match world.a.stack.send(client, Payload::Shared(data)) {
                Ok(()) => sent += 50_000,
                Err(_) => break,
            }
        }
        read_all(&mut world.b.stack, server, &mut received);
        received.len() == 2_000_000
    });
    assert!(done);
    assert!(received == file_bytes(0, 2_000_000));
    assert!(world.now - begin < Duration::from_millis(100), "{:?}", world.now);
    // Within seconds the others learn that nobody is there.
    let done = world.run_for(Duration::from_secs(20), |world| {
        lost.iter().all(|lost| world.a.stack.state(*lost) == ConnState::Closed(CloseReason::Unreachable))
    });
    assert!(done, "{:?}", common::shown(world.a.stack.counters()));
    lost.iter().for_each(|lost| world.a.stack.close(*lost));
    let counters = world.a.stack.counters();
    assert!(counters.neighbors_unreachable >= 100);
    assert!(counters.drop_neighbor_unreachable > 0);
    assert_eq!(world.a.stack.memory().connections, 1);
}

#[test]
fn a_neighbour_that_vanishes_ends_connections_within_the_user_timeout() {
    let mut world = World::new(Setup::default());
    let (client, _server) = world.connected("10.0.0.2:80");
    let lossy = world.a.port.device().clone();
    lossy.set_hook(|_| linerate_nic::loopback::Verdict::Drop);
    world.a.stack.write(client, b"into the void").unwrap();
    let begin = world.now;
    let done = world.run_for(Duration::from_secs(200), |world| {
        matches!(world.a.stack.state(client), ConnState::Closed(_))
    });
    assert!(done);
    let after = (world.now - begin).as_secs();
    assert!((50..=75).contains(&after), "{after} s, {:?}", world.a.stack.state(client));
    world.a.stack.close(client);
    // Its reset waits for the neighbour too, and is given up with it.
    world.pass(Duration::from_secs(5));
    assert_eq!(world.a.stack.memory().connections, 0);
}

#[test]
fn a_client_that_closes_and_vanishes_leaves_nothing() {
    let mut world = World::new(Setup::default());
    let (client, server) = world.connected("10.0.0.2:80");
    world.b.stack.write(server, &file_bytes(0, 60_000)).unwrap();
    world.b.stack.close(server);
    world.a.stack.abort(client);
    // The reset is lost with everything else.
    world.a.port.device().clone().set_hook(|_| linerate_nic::loopback::Verdict::Drop);
    world.pass(Duration::from_secs(200));
    let memory = world.b.stack.memory();
    assert_eq!((memory.connections, memory.used, memory.pages.free), (0, 0, memory.pages.total));
}

/// An ICMP error "fragmentation needed" about a frame of the host, with its sequence number changed by `shift`.
fn too_big(about: &[u8], mtu: u16, shift: u32) -> Vec<u8> {
    let mut quoted = about[14..14 + 28].to_vec();
    let seq = u32::from_be_bytes([quoted[24], quoted[25], quoted[26], quoted[27]]).wrapping_add(shift);
    quoted[24..28].copy_from_slice(&seq.to_be_bytes());
    let message = icmpv4::Message::DestinationUnreachable {
        code: icmpv4::UnreachableCode::FRAGMENTATION_NEEDED,
        next_hop_mtu: mtu,
        quoted: icmpv4::Quoted(&quoted),
    };
    let mut bytes = vec![0; message.emitted_len()];
    message.emit(&mut bytes).unwrap();
    frame4(to_host4(Protocol::ICMPV4), &bytes)
}

#[test]
fn path_mtus_are_believed_only_about_what_is_in_flight() {
    let mut bench = Bench::acquainted();
    let listener = listen(&mut bench, 80, 4);
    let answers = bench.ask(&syn(5_000, 80));
    let syn_ack = payloads(&answers, Protocol::TCP).remove(0);
    let isn = tcp::Header::parse(&syn_ack).unwrap().sequence();
    let ack = |ack: SeqNumber| {
        let segment = tcp::Builder {
            source_port: 5_000,
            destination_port: 80,
            sequence: SeqNumber(1_001),
            acknowledgement: ack,
            flags: Flags::ACK,
            window: 65_535,
            ..tcp::Builder::default()
        };
        tcp4(segment, &[])
    };
    bench.ask(&ack(isn + 1));
    let conn = bench.host.stack.accept(listener).unwrap();
    // No MSS option in the SYN: 536 (RFC 9293 section 3.7.1). Large enough to show the path's limit of 552 - 40.
    bench.host.stack.write(conn, &file_bytes(0, 4_000)).unwrap();
    let frames = bench.receive();
    assert_eq!(bench.host.stack.info(conn).unwrap().send_mss, 536);
    // A lie about a segment that was never sent.
    bench.ask(&too_big(&frames[0], 552, 1 << 20));
    assert_eq!(bench.host.stack.info(conn).unwrap().send_mss, 536);
    assert_eq!(bench.host.stack.counters().drop_icmp_error_not_in_flight, 1);
    // The truth: what was in flight comes again, shorter.
    let again = bench.ask(&too_big(&frames[0], 552, 0));
    assert_eq!(bench.host.stack.info(conn).unwrap().send_mss, 512);
    assert_eq!(bench.host.stack.info(conn).unwrap().path_mtu, 552);
    assert_eq!(bench.host.stack.counters().path_mtu_lowered, 1);
    let lens: Vec<usize> = payloads(&again, Protocol::TCP).iter().map(Vec::len).collect();
    assert!(!lens.is_empty() && lens.iter().all(|len| *len <= 20 + 512), "{lens:?}");
    // Below the floor nobody gets.
    bench.ask(&too_big(&again[0], 68, 0));
    assert_eq!(bench.host.stack.info(conn).unwrap().send_mss, 512);
    // Nor does anybody believe that a packet was too big for a link that it fits.
    bench.ask(&too_big(&again[0], 1_400, 0));
    assert_eq!(bench.host.stack.info(conn).unwrap().send_mss, 512);
    assert_eq!(bench.host.stack.counters().drop_icmp_too_big_absurd, 2);
}

#[test]
fn udp_paths_are_learned_and_datagrams_cut_to_them() {
    let mut bench = Bench::acquainted();
    let addr = ListenAddr { ip: None, port: 7 };
    let socket = bench.host.stack.udp_bind(OWNER, addr, 65_536).unwrap();
    let to = "10.0.0.9:9".parse().unwrap();
    bench.host.stack.udp_send(socket, None, to, &[1; 1_400]).unwrap();
    let frames = bench.receive();
    assert_eq!(frames.len(), 1);
    bench.ask(&too_big(&frames[0], 1_000, 0));
    bench.host.stack.udp_send(socket, None, to, &[1; 1_400]).unwrap();
    let frames = bench.receive();
    assert_eq!(frames.len(), 2);
    assert!(frames.iter().all(|frame| frame.len() <= 14 + 1_000));
    assert!(ipv4::Header::parse(&frames[0][14..]).unwrap().more_fragments());
}

#[test]
fn without_a_route_nothing_is_opened() {
    let mut bench = Bench::new(StackConfig::default());
    let connect =
        bench.host.stack.connect(OWNER, None, "10.0.0.2:80".parse().unwrap(), &SocketOptions::default());
    assert_eq!(connect, Err(linerate_transport::ConnectError::Unreachable));
    for to in
        ["0.0.0.0:80", "127.0.0.1:80", "224.0.0.1:80", "255.255.255.255:80", "10.0.0.1:80", "10.0.0.2:0"]
    {
        let mut bench = Bench::acquainted();
        let connect = bench.host.stack.connect(OWNER, None, to.parse().unwrap(), &SocketOptions::default());
        assert_eq!(connect, Err(linerate_transport::ConnectError::Unreachable), "{to}");
    }
}

#[test]
fn a_neighbour_that_has_another_ethernet_address_is_asked_for_within_three_seconds() {
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);
    /// The same frame of the station that took over.
    fn of_other(mut frame: Vec<u8>) -> Vec<u8> {
        frame[6..12].copy_from_slice(&OTHER.0);
        if frame[12..14] == [8, 6] {
            frame[22..28].copy_from_slice(&OTHER.0);
        }
        frame
    }
    let mut bench = Bench::acquainted();
    let listener = listen(&mut bench, 80, 4);
    let mut peer = Peer::new(5_000, modern());
    let conn = peer.connect(&mut bench, listener);
    bench.host.stack.write(conn, &[1; 4_000]).unwrap();
    assert_eq!(answers(&bench.receive()).len(), 3);
    bench.ask(&of_other(arp(Operation::REQUEST, PEER4, HOST4)));
    // What was under way is acknowledged, by way of the other.
    peer.ack += 1_448;
    bench.ask(&of_other(tcp4(peer.segment(Flags::ACK), &[])));
    let began = bench.now;
    let sent = bench.pass(Duration::from_millis(3_100));
    let is_arp_to = |frame: &[u8], mac: MacAddr| frame[..6] == mac.0 && frame[12..14] == [8, 6];
    let asked = |mac| sent.iter().filter(|(_, frame)| is_arp_to(frame, mac)).count();
    assert_eq!(asked(PEER_MAC), 2, "after the first one, at once");
    let (everybody, _) = sent.iter().find(|(_, frame)| is_arp_to(frame, MacAddr::BROADCAST)).unwrap();
    assert!(*everybody - began < Duration::from_millis(3_050));
    let sent = bench.ask(&of_other(arp(Operation::REPLY, PEER4, HOST4)));
    assert!(sent.iter().all(|frame| frame[..6] == OTHER.0));
    assert_eq!(answers(&sent)[0].seq, peer.ack, "what was sent in vain comes again at once");
}

#[test]
fn what_is_not_read_in_time_wait_can_be_read_when_it_gives_way() {
    let mut setup = Setup::default();
    setup.config[0].max_time_wait = 1;
    let mut world = World::new(setup);
    let listener = world.b.listen(80);
    let clients = [0, 1, 2].map(|_| {
        let client = world.a.connect("10.0.0.2:80");
        world.exchange();
        let server = world.b.stack.accept(listener).unwrap();
        world.a.stack.shutdown(client);
        world.exchange();
        world.b.stack.write(server, &[7; 1_000]).unwrap();
        world.b.stack.close(server);
        world.exchange();
        client
    });
    assert_eq!(world.a.stack.counters().tcp_time_wait_recycled, 2);
    for client in clients {
        assert_eq!(world.a.stack.peek(client), [7; 1_000]);
        world.a.stack.consume(client, 1_000);
        assert_eq!(world.a.stack.peek(client), []);
    }
}

/// RFC 9293 section 3.6.1: so that nothing of the old one can be taken for a part of the new one.
#[test]
fn a_connection_in_place_of_one_in_time_wait_begins_beyond_its_numbers() {
    let mut bench = Bench::acquainted();
    let listener = bench.host.listen(80);
    let mut peer = Peer::new(4_000, old());
    let conn = peer.connect(&mut bench, listener);
    // In no time, so that the clock of initial sequence numbers does not get so far.
    let mut last = SeqNumber(0);
    for _ in 0..200 {
        bench.host.stack.write(conn, &[7; 10_000]).unwrap();
        for answer in answers(&bench.receive()) {
            peer.ack = answer.seq + answer.payload.len() as u32;
        }
        last = peer.ack;
        peer.send(&mut bench, &[]);
    }
    bench.host.stack.close(conn);
    bench.receive();
    peer.ack += 1;
    bench.ask(&tcp4(peer.segment(Flags::FIN | Flags::ACK), &[]));
    assert_eq!(bench.host.stack.memory().time_wait, 1);
    peer.next += 10;
    let again = peer.open(&mut bench).expect("it gives way");
    assert!(again.seq - last > 65_535, "{:?} after {last:?}", again.seq);
}
