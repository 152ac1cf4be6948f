//! Hosts with several queues, a stack on each: connections are spread, nothing is lost wherever a packet comes in, and the
//! same seed gives the same run.

mod crowd;

use crowd::Crowd;
use linerate_sim::*;
use linerate_transport::{ListenAddr, ListenOptions, Owner, Transport as _};
use std::net::SocketAddr;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const PORT: u16 = 7;

/// A client, and a server with so many queues that echoes on each, with faults in both directions.
fn echoes(seed: u64, queues: u16, spread: Spread, loss: f64, reorder: f64) -> (World, HostId, HostId) {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100));
    for path in [&mut config.a_to_b, &mut config.b_to_a] {
        path.loss = Loss::Random(loss);
        path.reorder = reorder;
        path.reorder_delay = Duration::from_micros(300);
    }
    let [client, server] = &mut config.hosts;
    (server.queues, server.spread) = (queues, spread);
    for host in [client, server] {
        host.stack.max_connections = 4_096;
    }
    let (mut world, client, server) = World::pair(seed, config);
    for queue in 0..queues {
        world.add_app_at(server, usize::from(queue), Echo::new(PORT, ListenOptions::default()));
    }
    (world, client, server)
}

fn to_server(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("an address"), PORT)
}

/// Runs until a crowd of the client is done, and has got back everything.
fn finish(world: &mut World, client: HostId, crowd: Owner, count: u64) {
    let limit = 300 * SECOND;
    let is_done = |world: &mut World| world.app::<Crowd>(client, crowd).is_some_and(Crowd::is_done);
    let done = world.run_until(limit, is_done);
    let seed = world.seed();
    let crowd = world.app::<Crowd>(client, crowd).expect("the crowd");
    assert!(crowd.failures.is_empty(), "seed {seed}: {:?}", crowd.failures);
    assert!(done && crowd.complete == count, "seed {seed}: {} of {count}", crowd.complete);
}

fn established(world: &World, host: HostId) -> Vec<u64> {
    world.host(host).cores().iter().map(|core| core.stack.counters().tcp_established).collect()
}

fn passed(world: &World, host: HostId) -> u64 {
    world.host(host).cores().iter().map(|core| core.letters().packets).sum()
}

/// No letter and no packet of one was thrown away.
fn assert_all_carried(world: &World, host: HostId) {
    for core in world.host(host).cores() {
        let counters = core.stack.counters();
        let dropped = counters.drop_letters_full + counters.drop_letters_no_buffer + core.letters().dropped;
        assert_eq!(dropped, 0);
    }
}

#[test]
fn a_thousand_connections_are_spread_and_every_byte_arrives() {
    for queues in [2, 4] {
        let run = |seed| {
            let (mut world, client, server) = echoes(seed, queues, Spread::default(), 0.01, 0.01);
            let every = Duration::from_micros(200);
            let crowd = Crowd::new(to_server("10.0.0.2"), 1_000, every, 20_000, world.now());
            let crowd = world.add_app(client, crowd);
            finish(&mut world, client, crowd, 1_000);
            let spread = established(&world, server);
            assert_eq!(spread.iter().sum::<u64>(), 1_000);
            let fair = 1_000 / u64::from(queues);
            assert!(spread.iter().all(|count| *count > fair * 2 / 3), "{spread:?}");
            let moved = passed(&world, server);
            assert!(
                moved < 500,
                "{moved}: flows come in where they live, but for what comes after their end"
            );
            (world.trace_hash(), world.now())
        };
        let (first, again, other) = (run(1), run(1), run(2));
        assert_eq!(first, again, "the same seed gives the same run");
        assert_ne!(first.0, other.0);
    }
}

#[test]
fn flows_that_change_their_queue_lose_nothing() {
    for (seed, queues, spread) in
        [(1, 2, Spread::Random), (2, 4, Spread::Random), (3, 3, Spread::Follow), (4, 4, Spread::default())]
    {
        let rehashes = spread == Spread::default();
        let (mut world, client, server) = echoes(seed, queues, spread.clone(), 0.01, 0.01);
        // A table that changes every 20 ms, while everything is under way.
        for step in (1..50).filter(|_| rehashes) {
            let at = world.now() + Duration::from_millis(20) * step;
            world.set_spread_at(at, server, Spread::shifted(step as u16));
        }
        for ip in ["10.0.0.2", "fd00::2"] {
            let every = Duration::from_millis(2);
            let crowd = world.add_app(client, Crowd::new(to_server(ip), 60, every, 100_000, world.now()));
            finish(&mut world, client, crowd, 60);
        }
        assert!(established(&world, server).iter().all(|count| *count > 10));
        assert_all_carried(&world, server);
        let moved = passed(&world, server);
        match spread {
            Spread::Follow => assert!(moved < 1_000, "{moved}: the interface has learnt where flows are"),
            Spread::Random => assert!(moved > 200, "{moved}"),
            // 121 to 602 among twenty seeds.
            _ => assert!(moved > 60, "{moved}"),
        }
    }
}

#[test]
fn letters_without_delay_and_late_ones_change_nothing_for_the_peer() {
    for delay in [Duration::ZERO, Duration::from_micros(1), Duration::from_millis(5)] {
        let mut config = PairConfig::with_rate_and_delay(100_000_000, Duration::from_millis(1));
        let [client, server] = &mut config.hosts;
        for host in [client, server] {
            (host.queues, host.spread, host.letter_delay) = (3, Spread::Random, delay);
        }
        let (mut world, a, b) = World::pair(7, config);
        let flows: Vec<_> = (0..6)
            .map(|number| FlowConfig {
                ipv6: number % 2 == 1,
                ..FlowConfig::both(a, b, Amount::Bytes(300_000))
            })
            .map(|flow| world.add_flow(flow))
            .collect();
        for flow in &flows {
            assert!(world.run_flow(*flow, 60 * SECOND), "{:?}", world.flow(*flow));
            assert_eq!(world.flow(*flow).verdict(), Ok(()), "letters after {delay:?}");
        }
    }
}

#[test]
fn what_has_no_ports_is_answered_once_wherever_it_comes_in() {
    let mut config = PairConfig::default();
    (config.hosts[1].queues, config.hosts[1].spread) = (4, Spread::Random);
    let (mut world, a, b) = World::pair(3, config);
    let any = |port| ListenAddr { ip: None, port };
    let home = world.host_mut(b).core_mut(2).stack.udp_bind(TEST, any(5_000), 1 << 20).expect("free");
    let from = world.host_mut(a).stack.udp_bind(TEST, any(4_000), 1 << 20).expect("free");
    let mut received = Vec::new();
    let to = SocketAddr::new("10.0.0.2".parse().expect("an address"), 5_000);
    let datagram = |number: u64| {
        let mut bytes = vec![0; 100 + 300 * number as usize];
        Pattern::new(number).fill(0, &mut bytes);
        bytes
    };
    for number in 0..40 {
        world.host_mut(a).stack.udp_send(from, None, to, &datagram(number)).expect("room");
        world.run_for(Duration::from_millis(5));
        let stack = &mut world.host_mut(b).core_mut(2).stack;
        while let Some(got) = stack.udp_peek(home) {
            received.push(got.data.to_vec());
            stack.udp_consume(home);
        }
    }
    assert_eq!(received, (0..40).map(datagram).collect::<Vec<_>>(), "fragments meet again");
    let nobody = SocketAddr::new("10.0.0.2".parse().expect("an address"), 5_001);
    for _ in 0..5 {
        world.host_mut(a).stack.udp_send(from, None, nobody, b"?").expect("room");
        world.run_for(2 * SECOND);
    }
    let sum = |of: fn(&linerate_stack::Counters) -> u64| -> u64 {
        world.host(b).cores().iter().map(|core| of(core.stack.counters())).sum()
    };
    assert_eq!(sum(|counters| counters.icmp_errors_out), 5, "each told of once");
    let arp: Vec<_> = world.host(b).cores().iter().map(|core| core.stack.counters().arp_in).collect();
    assert!(arp[0] > 0 && arp[1..].iter().all(|count| *count == 0), "ARP is the owner's: {arp:?}");
}

#[test]
fn connections_that_are_opened_come_home() {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100));
    config.hosts[0].queues = 4;
    let (mut world, client, server) = World::pair(9, config);
    world.add_app(server, Echo::new(PORT, ListenOptions::default()));
    let crowds = |world: &mut World| {
        for (queue, ip) in ["10.0.0.2", "fd00::2", "10.0.0.2", "fd00::2"].into_iter().enumerate() {
            let crowd = Crowd::new(to_server(ip), 50, Duration::from_millis(1), 20_000, world.now());
            let crowd = world.add_app_at(client, queue, crowd);
            finish(world, client, crowd, 50);
        }
    };
    crowds(&mut world);
    assert!(passed(&world, client) < 20, "{} packets came in elsewhere", passed(&world, client));
    world.set_spread(client, Spread::shifted(3));
    crowds(&mut world);
    assert!(passed(&world, client) < 40, "{}: the stacks know the new table", passed(&world, client));
    // Where nobody knows how frames are spread, three of four come in elsewhere.
    world.set_spread(client, Spread::Random);
    crowds(&mut world);
    assert!(passed(&world, client) > 1_000);
    assert_all_carried(&world, client);
}

/// Downloads of the client, one on each queue of the server at least.
fn downloads(world: &mut World, client: HostId, server: HostId, count: usize) {
    let start = world.now();
    let flows: Vec<_> = (0..count)
        .map(|_| FlowConfig { start, ..FlowConfig::download(client, server, Amount::Bytes(60_000)) })
        .map(|flow| world.add_flow(flow))
        .collect();
    let queues = world.host(server).cores().len();
    let mut used = vec![0; queues];
    for flow in flows {
        assert!(world.run_flow(flow, 60 * SECOND), "{:?}", world.flow(flow));
        assert_eq!(world.flow(flow).verdict(), Ok(()));
        used[world.flow_queue(flow)] += 1;
    }
    assert!(count < 20 || used.iter().all(|flows| *flows > 0), "{used:?}");
}

#[test]
fn a_smaller_path_is_known_to_every_core() {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100));
    config.hosts[1].queues = 4;
    config.b_to_a.mtu = Some(1_200);
    config.b_to_a.too_long =
        TooLong::Tell { v4: [10, 0, 0, 254].into(), v6: "fd00::fe".parse().expect("an address") };
    let (mut world, a, b) = World::pair(5, config);
    downloads(&mut world, a, b, 1);
    let told = world.path_stats(b, Direction::Up).too_long;
    assert!(told > 0, "somebody had to find out");
    downloads(&mut world, a, b, 24);
    assert_eq!(world.path_stats(b, Direction::Up).too_long, told, "no core had to be told again");
}

#[test]
fn a_neighbour_that_moves_is_found_by_every_core() {
    let mut world = World::new(6);
    let server = HostConfig { queues: 4, ..HostConfig::new("server", &["10.0.0.1/24"]) };
    let server = world.add_host(server);
    let [old, new] = ["old", "new"].map(|name| world.add_host(HostConfig::new(name, &["10.0.0.2/24"])));
    // The one that is not plugged in.
    let plug = |world: &mut World, host: HostId, change: Change| {
        for direction in [Direction::Up, Direction::Down] {
            world.change(host, direction, change.clone());
        }
    };
    plug(&mut world, new, Change::Loss(Loss::Random(1.0)));
    downloads(&mut world, old, server, 24);
    plug(&mut world, old, Change::Loss(Loss::Random(1.0)));
    plug(&mut world, new, Change::Loss(Loss::None));
    // The old place is asked first, for three seconds; then all have heard of the new one.
    let first = FlowConfig { start: world.now(), ..FlowConfig::download(new, server, Amount::Bytes(10)) };
    let first = world.add_flow(first);
    assert!(world.run_flow(first, 30 * SECOND));
    let of_old = world.path_stats(old, Direction::Down).offered;
    downloads(&mut world, new, server, 24);
    assert_eq!(world.path_stats(old, Direction::Down).offered, of_old, "nobody sends there any more");
}

#[test]
fn a_host_with_one_queue_needs_no_letters_and_a_port_may_have_its_queue() {
    let (world, _, server) = echoes(1, 1, Spread::Random, 0.0, 0.0);
    assert_eq!(world.host(server).cores().len(), 1);
    let Spread::Hash { key, indirection, .. } = Spread::default() else { unreachable!() };
    let steered = Spread::Hash { key, indirection, ports: vec![(PORT, 3)] };
    let (mut world, client, server) = echoes(1, 4, steered, 0.0, 0.0);
    let every = Duration::from_micros(100);
    let crowd = world.add_app(client, Crowd::new(to_server("10.0.0.2"), 20, every, 5_000, world.now()));
    finish(&mut world, client, crowd, 20);
    assert_eq!(established(&world, server), [0, 0, 0, 20]);
}
