//! Several stacks on one link, one for each queue, whatever queue a frame comes in on.

mod world;

use linerate_stack::{Seat, StackConfig};
use linerate_transport::{ListenAddr, ListenOptions, Owner, SocketOptions, Transport as _};
use std::net::SocketAddr;
use std::time::Duration;
use world::{Client, OURS, OURS6, REMOTE, Spread, World, pattern};

const SECOND: Duration = Duration::from_secs(1);

/// Opens `count` connections of the remote host to `port`, each of which sends `len` bytes and wants them back.
fn open(world: &mut World, port: u16, count: usize, len: usize) {
    for _ in 0..count {
        world.open(SocketAddr::new(OURS, port), len);
        world.run_for(Duration::from_micros(200));
    }
}

fn finish(world: &mut World, patience: Duration) {
    let done = world.run_until(patience, |world| world.clients.iter().all(Client::is_done));
    let open = world.clients.iter().filter(|client| !client.is_done());
    let failed = world.clients.iter().filter(|client| client.failed).count();
    assert!(done, "{} of {} are not done, {failed} failed", open.count(), world.clients.len());
}

/// A counter of all members.
fn sum(world: &World, counter: fn(&linerate_stack::Counters) -> u64) -> u64 {
    world.members.iter().map(|member| counter(member.node.stack.counters())).sum()
}

#[test]
fn a_thousand_connections_are_spread_over_two_queues() {
    let mut world = World::new(2, Spread::ByFlow, 1);
    world.listen_everywhere(80);
    world.loss = 100;
    open(&mut world, 80, 1_000, 2_000);
    finish(&mut world, SECOND * 60);
    let accepted: Vec<u64> = world.members.iter().map(|m| m.node.stack.counters().tcp_established).collect();
    assert_eq!(accepted.iter().sum::<u64>(), 1_000);
    assert!(accepted.iter().all(|&count| count > 350), "{accepted:?}");
    let letters = sum(&world, |counters| counters.letters_out);
    assert!(letters < 500, "{letters} letters: flows stay where they are");
}

#[test]
fn flows_that_change_their_queue_with_every_frame_lose_nothing() {
    for (seats, seed) in [(2, 1), (2, 2), (3, 3), (4, 4)] {
        let mut world = World::new(seats, Spread::AtRandom, seed);
        world.listen_everywhere(80);
        // Until the addresses of IPv6 may be used.
        world.run_for(SECOND * 3);
        world.loss = 100;
        open(&mut world, 80, 40, 50_000);
        for _ in 0..40 {
            world.open(SocketAddr::new(OURS6, 80), 50_000);
        }
        finish(&mut world, SECOND * 120);
        for member in &world.members {
            assert_eq!(member.node.stack.counters().drop_letters_full, 0);
            assert_eq!(member.node.stack.counters().drop_letters_no_buffer, 0);
        }
    }
}

#[test]
fn a_server_on_one_core_serves_whoever_lands_elsewhere() {
    let mut world = World::new(3, Spread::ByFlow, 3);
    for home in [0, 1, 2] {
        let listen = ListenAddr { ip: None, port: 21 + home };
        let stack = &mut world.members[usize::from(home)].node.stack;
        stack.listen(Owner(1), listen, &ListenOptions::default()).expect("free");
    }
    for port in [21, 22, 23] {
        open(&mut world, port, 20, 10_000);
    }
    finish(&mut world, SECOND * 30);
    for member in &world.members {
        assert_eq!(member.node.stack.counters().tcp_established, 20, "each where its listener is");
    }
}

#[test]
fn connections_that_are_opened_here_get_their_answers() {
    for spread in [Spread::ByFlow, Spread::AtRandom] {
        let mut world = World::new(2, spread, 11);
        world.remote_listens(7);
        for seat in 0..2 {
            for _ in 0..10 {
                world.open_from(seat, SocketAddr::new(REMOTE, 7), 30_000);
            }
        }
        // Each knows the neighbour as soon as the owner does.
        finish(&mut world, Duration::from_millis(500));
        let ports = |seat: u16| -> Vec<u16> {
            let of_seat = world.clients.iter().filter(|client| client.seat == Some(usize::from(seat)));
            of_seat.map(|client| client.port).collect()
        };
        assert!(ports(0).iter().all(|port| port % 2 == 0) && ports(1).iter().all(|port| port % 2 == 1));
    }
}

#[test]
fn fragments_meet_at_the_owner_whatever_queues_they_take() {
    let mut world = World::new(2, Spread::AtRandom, 5);
    let addr = ListenAddr { ip: None, port: 5_000 };
    let socket = world.members[1].node.stack.udp_bind(Owner(1), addr, 1 << 20).expect("free");
    let any = ListenAddr { ip: None, port: 4_000 };
    let from = world.remote.node.stack.udp_bind(Owner(1), any, 1 << 20).expect("free");
    let datagrams: Vec<Vec<u8>> = (0..50).map(|n| pattern(n, 100 + n * 173)).collect();
    let mut received = Vec::new();
    for datagram in &datagrams {
        let to = SocketAddr::new(OURS, 5_000);
        world.remote.node.stack.udp_send(from, None, to, datagram).expect("room");
        world.run_for(Duration::from_millis(5));
        while let Some(got) = world.members[1].node.stack.udp_peek(socket) {
            received.push(got.data.to_vec());
            world.members[1].node.stack.udp_consume(socket);
        }
    }
    assert_eq!(received.len(), 50);
    assert_eq!(received, datagrams);
    assert_eq!(sum(&world, |counters| counters.udp_in), 50, "each is counted once, wherever it came in");
    let fragments = world.members[0].node.stack.counters().fragments_in;
    assert!(fragments > 100 && world.members[1].node.stack.counters().fragments_in == 0);
}

#[test]
fn what_goes_from_seat_to_seat_is_counted_once() {
    for seats in [1, 2, 4] {
        let mut world = World::new(seats, Spread::AtRandom, 29);
        world.run_for(SECOND * 3);
        let any = ListenAddr { ip: None, port: 4_000 };
        let from = world.remote.node.stack.udp_bind(Owner(1), any, 1 << 20).expect("free");
        // Known already, so that no question for the neighbour is counted.
        let send = |world: &mut World, to, len| {
            world
                .remote
                .node
                .stack
                .udp_send(from, None, SocketAddr::new(to, 9), &vec![7; len])
                .expect("room");
            world.run_for(Duration::from_millis(5));
        };
        send(&mut world, OURS, 10);
        send(&mut world, OURS6, 10);
        let names: [fn(&linerate_stack::Counters) -> u64; 4] =
            [|c| c.ipv4_in, |c| c.ipv6_in, |c| c.udp_in, |c| c.fragments_in];
        let count = |world: &World| names.map(|name| sum(world, name));
        let before = count(&world);
        for _ in 0..20 {
            send(&mut world, OURS, 10);
            send(&mut world, OURS6, 10);
            send(&mut world, OURS, 2_000);
        }
        let after = count(&world);
        let of = |at: usize| after[at] - before[at];
        assert_eq!([of(0), of(1), of(2), of(3)], [60, 20, 60, 40], "{seats} seats");
    }
}

#[test]
fn what_nobody_listens_to_is_answered_once() {
    for seats in [1, 2, 4] {
        let mut world = World::new(seats, Spread::AtRandom, 13);
        world.run_for(SECOND);
        open(&mut world, 9, 20, 1);
        world.run_for(SECOND);
        assert_eq!(sum(&world, |counters| counters.tcp_resets_out), 20, "{seats} seats");
        assert_eq!(sum(&world, |counters| counters.drop_tcp_no_connection), 20);
        assert!(world.clients.iter().all(|client| client.failed), "refused at once");
    }
}

#[test]
fn a_smaller_path_is_known_to_all_wherever_the_router_is_heard() {
    let mut world = World::new(2, Spread::ByFlow, 17);
    world.listen_everywhere(80);
    open(&mut world, 80, 20, 20_000);
    finish(&mut world, SECOND * 10);
    // From now on a router lets 1,200 bytes pass, and says so on any queue.
    world.narrow = Some(1_200);
    open(&mut world, 80, 1, 60_000);
    finish(&mut world, SECOND * 60);
    let told = world.too_big;
    assert!(told > 0, "the router had to say it");
    // Whoever comes later, on whatever core, is sent small packets from the start.
    open(&mut world, 80, 30, 20_000);
    finish(&mut world, SECOND * 60);
    assert_eq!(world.too_big, told, "no core had to be told again");
    let counters = |seat: usize| world.members[seat].node.stack.counters().tcp_established;
    assert!(counters(0) > 5 && counters(1) > 5, "both had connections");
}

#[test]
fn a_neighbour_that_moves_is_found_again_by_all() {
    let mut world = World::new(2, Spread::ByFlow, 19);
    world.listen_everywhere(80);
    open(&mut world, 80, 20, 20_000);
    finish(&mut world, SECOND * 10);
    world.move_remote();
    open(&mut world, 80, 20, 20_000);
    // The old address is asked for three seconds; what each core knows by itself would last for thirty.
    finish(&mut world, SECOND * 15);
    let of_old = world.to_old_mac;
    open(&mut world, 80, 20, 20_000);
    finish(&mut world, SECOND * 10);
    assert_eq!(world.to_old_mac, of_old, "nobody sends there any more");
}

#[test]
fn other_seats_send_again_at_once_when_the_link_is_back() {
    let mut world = World::new(2, Spread::ByFlow, 13);
    world.remote_listens(7);
    // They would be done at once.
    world.loss = 3;
    for seat in [0, 1] {
        world.open_from(seat, SocketAddr::new(REMOTE, 7), 2_000_000);
    }
    world.run_for(Duration::from_millis(2));
    assert!(!world.clients.iter().any(Client::is_done));
    world.loss = 1;
    world.run_for(SECOND * 7);
    world.loss = 0;
    let now = world.now;
    world.members[0].node.stack.handle_link(now, false);
    world.members[0].node.stack.handle_link(now, true);
    // The next retransmission would be some seconds later.
    assert!(world.run_until(SECOND, |world| world.clients[1].is_done()));
}

#[test]
fn seats_have_no_addresses_until_the_owner_tells_them() {
    let mut world = World::new(2, Spread::ByFlow, 23);
    assert_eq!(world.members[1].node.stack.addresses().count(), 0);
    world.run_for(SECOND * 3);
    let of = |world: &World, seat: usize| -> Vec<_> {
        let mut all: Vec<_> = world.members[seat].node.stack.addresses().map(|c| c.to_string()).collect();
        all.sort();
        all
    };
    assert_eq!(of(&world, 0), of(&world, 1));
    assert!(of(&world, 1).iter().any(|cidr| cidr.starts_with("fe80")), "also what was probed first");
    let odd = StackConfig { seat: Seat { index: 7, seats: 0 }, ..StackConfig::default() };
    let alone = linerate_stack::Stack::new(odd, [1; 32], linerate_stack::StackPools::new(16, 1));
    assert_eq!((StackConfig::default().seat, alone.seat()), (Seat::ALONE, Seat::ALONE));
    let remote = SocketAddr::new(REMOTE, 1);
    assert!(world.members[1].node.stack.connect(Owner(1), None, remote, &SocketOptions::default()).is_ok());
}
