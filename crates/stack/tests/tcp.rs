//! TCP between two stacks.

mod common;

use common::{OWNER, Setup, World, file_bytes, read_all};
use core::time::Duration;
use linerate_nic::Capabilities;
use linerate_transport::{
    Bytes, CloseReason, ConnState, Event, FileRange, Payload, Ready, SendError, Source, Transport,
};

/// Sends `len` bytes from `a` to `b` by `send`, and checks what arrives.
fn transfer(mut world: World, to: &str, len: usize) -> World {
    let (client, server) = world.connected(to);
    let expected = file_bytes(0, len);
    let mut sent = 0;
    let mut received = Vec::new();
    let done = world.run_for(Duration::from_secs(60), |world| {
        while sent < len {
            let piece = (len - sent).min(65_536);
            let shared = Bytes::from(expected[sent..sent + piece].to_vec());
            match world.a.stack.send(client, Payload::Shared(shared)) {
                Ok(()) => sent += piece,
                Err(SendError::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        read_all(&mut world.b.stack, server, &mut received);
        received.len() >= len
    });
    assert!(done, "{} of {len} bytes at {:?}", received.len(), world.now);
    assert!(received == expected);
    world.a.stack.close(client);
    world.b.stack.close(server);
    world
}

#[test]
fn data_arrives_over_both_families_with_and_without_offloads() {
    for offloads in [Capabilities::ALL, Capabilities::NONE] {
        for to in ["10.0.0.2:80", "[fd00::2]:80"] {
            for mtu in [1_500, 9_000] {
                let world = World::new(Setup { offloads, mtu, ..Setup::default() });
                let world = transfer(world, to, 3_000_000);
                let counters = world.a.stack.counters();
                assert_eq!(counters.tcp_retransmits, 0, "{to} {mtu}");
                // Reports of group membership are for routers and switches.
                let drops = world.b.stack.counters().drops() - world.b.stack.counters().drop_not_our_address;
                assert_eq!(drops, 0, "{:?}", common::shown(world.b.stack.counters()));
                if offloads == Capabilities::ALL {
                    assert!(counters.frames_out < counters.tcp_out / 3, "super-segments");
                }
            }
        }
    }
}

#[test]
fn what_a_stack_leaves_unfinished_is_reset() {
    let mut world = World::new(Setup::default());
    let (busy, busy_peer) = world.connected("10.0.0.2:80");
    let (closed, closed_peer) = world.connected("10.0.0.2:81");
    let (half, half_peer) = world.connected("10.0.0.2:82");
    world.b.stack.write(busy_peer, b"not read yet").unwrap();
    // Both have all: this one waits for nothing but old segments.
    world.b.stack.close(closed_peer);
    world.pass(Duration::from_millis(100));
    world.a.stack.close(closed);
    // The peer has all and does not close: nothing of it would be lost.
    world.b.stack.close(half_peer);
    world.pass(Duration::from_millis(100));
    assert_eq!(world.b.stack.unfinished(), 1);
    assert_eq!(world.b.stack.abort_all(world.now), 1);
    world.exchange();
    assert_eq!(world.a.stack.state(busy), ConnState::Closed(CloseReason::Reset));
    assert_eq!(world.a.stack.state(half), ConnState::Open { finished: true });
    assert_eq!(world.b.stack.state(busy_peer), ConnState::Closed(CloseReason::Stale));
    assert_eq!((world.b.stack.unfinished(), world.b.stack.abort_all(world.now)), (0, 0));
}

#[test]
fn memory_is_back_at_the_start_after_time_wait() {
    let world = World::new(Setup::default());
    let before = (world.a.stack.memory(), world.b.stack.memory(), world.pool.free());
    let mut world = transfer(world, "10.0.0.2:80", 1_000_000);
    world.pass(Duration::from_secs(120));
    let after = (world.a.stack.memory(), world.b.stack.memory(), world.pool.free());
    assert_eq!(after.0.used, before.0.used);
    assert_eq!((after.0.connections, after.1.connections), (0, 0));
    assert_eq!(after.0.pages.free, before.0.pages.free);
    assert_eq!(after.1.pages.free, before.1.pages.free);
    assert_eq!(after.2, before.2);
}

/// A server that closes each connection after one answer has one such deadline for each, and would wake up for all of them.
#[test]
fn a_connection_in_time_wait_wakes_nobody_for_deadlines_that_it_had_before() {
    let mut world = World::new(Setup::default());
    let (client, server) = world.connected("10.0.0.2:80");
    // The acknowledgement waits, which is a deadline of 40 ms; the answer takes it along.
    world.a.stack.write(client, b"request").unwrap();
    world.exchange();
    read_all(&mut world.b.stack, server, &mut Vec::new());
    world.b.stack.write(server, b"answer").unwrap();
    world.b.stack.close(server);
    world.exchange();
    world.a.stack.close(client);
    world.exchange();
    assert_eq!(world.b.stack.memory().time_wait, 1);
    let due = world.b.stack.poll_timeout().unwrap();
    assert!(due - world.now > Duration::from_secs(1), "{:?}", due - world.now);
}

#[test]
fn events_are_coalesced_and_name_their_owner() {
    let mut world = World::new(Setup::default());
    let listener = world.b.listen(80);
    let client = world.a.connect("10.0.0.2:80");
    world.exchange();
    let event = |ready, source| Some(Event { owner: OWNER, source, ready });
    assert_eq!(world.b.stack.poll_event(), event(Ready::READABLE, Source::Listener(listener)));
    assert_eq!(world.a.stack.poll_event(), event(Ready::WRITABLE, Source::Conn(client)));
    assert_eq!(world.a.stack.poll_event(), None);
    // Data before `accept` is told of after it.
    world.a.stack.write(client, b"hello").unwrap();
    world.a.stack.write(client, b" world").unwrap();
    world.exchange();
    assert_eq!(world.b.stack.poll_event(), None);
    let server = world.b.stack.accept(listener).unwrap();
    let told = world.b.stack.poll_event().unwrap();
    assert_eq!(told.source, Source::Conn(server));
    assert!(told.ready.contains(Ready::READABLE));
    let mut received = Vec::new();
    read_all(&mut world.b.stack, server, &mut received);
    assert_eq!(received, b"hello world");
    world.exchange();
    let sent = world.a.stack.poll_event().unwrap();
    assert!(sent.ready.contains(Ready::SENT), "{sent:?}");
    // Half-close.
    world.a.stack.shutdown(client);
    world.exchange();
    let finished = world.b.stack.poll_event().unwrap();
    assert!(finished.ready.contains(Ready::FINISHED), "{finished:?}");
    assert_eq!(world.b.stack.state(server), ConnState::Open { finished: true });
    world.b.stack.write(server, b"bye").unwrap();
    world.b.stack.close(server);
    world.exchange();
    let mut received = Vec::new();
    read_all(&mut world.a.stack, client, &mut received);
    assert_eq!(received, b"bye");
    assert_eq!(world.b.stack.state(server), ConnState::Closed(CloseReason::Stale));
    assert_eq!(world.b.stack.poll_event(), None, "nothing is told of after close");
}

#[test]
fn a_port_without_a_listener_refuses() {
    let mut world = World::new(Setup::default());
    for to in ["10.0.0.2:81", "[fd00::2]:81"] {
        let client = world.a.connect(to);
        world.exchange();
        assert_eq!(world.a.stack.state(client), ConnState::Closed(CloseReason::Refused));
        let told = world.a.stack.poll_event().unwrap();
        assert!(told.ready.contains(Ready::CLOSED));
        world.a.stack.close(client);
    }
    assert_eq!(world.b.stack.counters().tcp_resets_out, 2);
    assert_eq!(world.a.stack.memory().connections, 0);
}

#[test]
fn file_ranges_are_read_and_sent() {
    let mut world = World::new(Setup::default());
    let (client, server) = world.connected("10.0.0.2:80");
    let file = linerate_transport::FileId::new(3, 0);
    let range = FileRange { file, offset: 1_000, len: 2_000_000 };
    world.b.stack.write(server, b"HEADER").unwrap();
    world.b.stack.send(server, Payload::File(range)).unwrap();
    let mut received = Vec::new();
    let done = world.run_for(Duration::from_secs(20), |world| {
        read_all(&mut world.a.stack, client, &mut received);
        received.len() >= 2_000_006
    });
    assert!(done, "{} bytes", received.len());
    assert_eq!(&received[..6], b"HEADER");
    assert!(received[6..] == file_bytes(1_000, 2_000_000));
    // A file that is shorter than promised ends the connection.
    world.b.file_len = 5_000_000;
    let range = FileRange { file, offset: 4_000_000, len: 2_000_000 };
    world.b.stack.send(server, Payload::File(range)).unwrap();
    let done = world.run_for(Duration::from_secs(20), |world| {
        read_all(&mut world.a.stack, client, &mut received);
        world.b.stack.state(server) == ConnState::Closed(CloseReason::File)
    });
    assert!(done);
    // An answer for a connection that is gone is dropped.
    world.b.reads_files = false;
    let (client, server) = world.connected("10.0.0.2:81");
    world.b.stack.send(server, Payload::File(FileRange { file, offset: 0, len: 1_000 })).unwrap();
    world.exchange();
    assert_eq!(world.b.requests.len(), 1);
    world.b.stack.abort(server);
    world.exchange();
    world.b.answer_files(world.now);
    assert_eq!(world.a.stack.state(client), ConnState::Closed(CloseReason::Reset));
}

#[test]
fn a_thousand_connections_each_move_their_own_data() {
    let mut world = World::new(Setup { receive_buffers: 16_384, ..Setup::default() });
    let listener = world.b.listen(80);
    let clients: Vec<_> = (0..1_000).map(|_| world.a.connect("10.0.0.2:80")).collect();
    let mut servers = Vec::new();
    let done = world.run_for(Duration::from_secs(60), |world| {
        while let Some(server) = world.b.stack.accept(listener) {
            servers.push(server);
        }
        servers.len() == 1_000
    });
    assert!(done, "{} accepted", servers.len());
    for (i, client) in clients.iter().enumerate() {
        world.a.stack.write(*client, format!("{i:04}").repeat(2_000).as_bytes()).unwrap();
        world.a.stack.shutdown(*client);
    }
    let mut data = vec![Vec::new(); 1_000];
    let done = world.run_for(Duration::from_secs(120), |world| {
        let mut finished = 0;
        for (server, data) in servers.iter().zip(&mut data) {
            read_all(&mut world.b.stack, *server, data);
            finished += usize::from(world.b.stack.state(*server) == ConnState::Open { finished: true });
        }
        finished == 1_000
    });
    assert!(done);
    let mut names: Vec<String> = Vec::new();
    for data in &data {
        assert_eq!(data.len(), 8_000);
        assert!(data.chunks(4).all(|chunk| chunk == &data[..4]));
        names.push(String::from_utf8_lossy(&data[..4]).into_owned());
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1_000);
    servers.iter().for_each(|server| world.b.stack.close(*server));
    clients.iter().for_each(|client| world.a.stack.close(*client));
    world.pass(Duration::from_secs(120));
    assert_eq!((world.a.stack.memory().connections, world.a.stack.memory().used), (0, 0));
    assert_eq!((world.b.stack.memory().connections, world.b.stack.memory().used), (0, 0));
}

/// Moves data on all connections for as long as `total` bytes take, and returns what each moved.
fn share(
    world: &mut World,
    pairs: &[(linerate_transport::ConnId, linerate_transport::ConnId)],
    total: usize,
) -> Vec<usize> {
    let data = Bytes::from(file_bytes(0, 65_536));
    let mut moved = vec![0; pairs.len()];
    let done = world.run_for(Duration::from_secs(600), |world| {
        for ((client, server), moved) in pairs.iter().zip(&mut moved) {
            while world.a.stack.send(*client, Payload::Shared(data.clone())).is_ok() {}
            loop {
                let len = world.b.stack.peek(*server).len();
                if len == 0 {
                    break;
                }
                world.b.stack.consume(*server, len);
                *moved += len;
            }
        }
        moved.iter().sum::<usize>() >= total
    });
    assert!(done, "{moved:?}");
    moved
}

#[test]
fn connections_share_the_link() {
    for offloads in [Capabilities::NONE, Capabilities::ALL] {
        let mut world = World::new(Setup { offloads, receive_buffers: 16_384, ..Setup::default() });
        for end in [&world.a, &world.b] {
            end.port.device().set_delay(Duration::from_micros(100));
        }
        let pairs: Vec<_> = (0..10).map(|i| world.connected(&format!("10.0.0.2:{}", 80 + i))).collect();
        share(&mut world, &pairs, 20_000_000);
        let moved = share(&mut world, &pairs, 40_000_000);
        let (least, most) = (moved.iter().min().unwrap(), moved.iter().max().unwrap());
        assert!(most < &(least * 2), "{moved:?}");
    }
}

#[test]
fn both_directions_move_at_once() {
    for offloads in [Capabilities::NONE, Capabilities::ALL] {
        let mut setup = Setup { offloads, receive_buffers: 16_384, ..Setup::default() };
        // Without completions too: packets then count as sent when they are queued.
        setup.config[0].completions = false;
        let mut world = World::new(setup);
        let (client, server) = world.connected("10.0.0.2:80");
        let data = file_bytes(0, 60_000);
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let len = 6_000_000;
        let (mut sent, mut returned) = (0, 0);
        let done = world.run_for(Duration::from_secs(60), |world| {
            while sent < len && world.a.stack.write(client, &data).is_ok() {
                sent += data.len();
            }
            while returned < len && world.b.stack.write(server, &data).is_ok() {
                returned += data.len();
            }
            read_all(&mut world.b.stack, server, &mut there);
            read_all(&mut world.a.stack, client, &mut back);
            there.len() == len && back.len() == len
        });
        assert!(done, "{} and {}", there.len(), back.len());
        assert!(there == back && there.chunks(60_000).all(|chunk| chunk == data));
        assert_eq!(world.a.stack.counters().tcp_retransmits + world.b.stack.counters().tcp_retransmits, 0);
    }
}

#[test]
fn who_cannot_sleep_keeps_nobody_awake() {
    let mut setup = Setup::default();
    setup.config[1].max_connections = 16;
    let mut world = World::new(setup);
    let (client, server) = world.connected("10.0.0.2:80");
    world.a.stack.write(client, b"nobody reads this").unwrap();
    world.pass(Duration::from_secs(8));
    assert_eq!(world.b.stack.readable(server), 17);
    let due = world.b.stack.poll_timeout().expect("keep-alive");
    assert!(due - world.now > Duration::from_secs(5), "{due:?} at {:?}", world.now);
}
