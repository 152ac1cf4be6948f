//! Transfers over interfaces of every kind; what is left afterwards.

use linerate_sim::*;
use linerate_transport::CloseReason;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn pair(nic: NicConfig, path: Path) -> PairConfig {
    let mut config = PairConfig { a_to_b: path.clone(), b_to_a: path, ..PairConfig::default() };
    for host in &mut config.hosts {
        host.nic = nic.clone();
    }
    config
}

/// Transfers in both directions, over IPv4 and IPv6, must be complete; afterwards all memory must be back.
fn check(seed: u64, config: PairConfig, bytes: u64) -> (World, HostId, HostId) {
    let (mut world, a, b) = World::pair(seed, config);
    for ipv6 in [false, true] {
        let config = FlowConfig { ipv6, ..FlowConfig::both(a, b, Amount::Bytes(bytes)) };
        let flow = world.add_flow(config);
        world.run_flow(flow, 120 * SECOND);
        let report = world.flow(flow);
        assert_eq!(report.verdict(), Ok(()), "seed {seed}");
        assert_eq!(report.client.closed, Some(CloseReason::Done));
        assert_eq!(report.client.bytes_received, bytes);
    }
    // TIME-WAIT ends.
    world.run_for(300 * SECOND);
    for host in [a, b] {
        let memory = world.host(host).stack.memory();
        assert_eq!((memory.used, memory.connections), (0, 0));
        for pool in [memory.pages, memory.datagrams, memory.receive.unwrap()] {
            assert_eq!(pool.free, pool.total, "{pool:?}");
        }
        assert_eq!(world.host(host).nic().tx_in_ring() + world.host(host).nic().rx_in_ring(), 0);
        assert_eq!(world.host(host).nic().stats().tx_refused, 0);
    }
    (world, a, b)
}

#[test]
fn each_offload_on_and_off() {
    let all = Capabilities::ALL;
    let kinds = [
        ("all", all),
        ("none", Capabilities::NONE),
        ("no checksum on transmit", Capabilities { tx_checksum4: false, tx_checksum6: false, ..all }),
        ("no checksum on receive", Capabilities { rx_checksum: false, ..all }),
        ("no segmentation", Capabilities { tso4: false, tso6: false, ..all }),
        ("no coalescing", Capabilities { rx_coalescing: false, ..all }),
        ("no gather", Capabilities { gather: false, ..all }),
        ("checksums alone", Capabilities { tso4: false, tso6: false, rx_coalescing: false, ..all }),
    ];
    for (name, capabilities) in kinds {
        println!("{name}");
        let nic = NicConfig { capabilities, ..NicConfig::default() };
        let path = Path::with_delay(Duration::from_micros(50));
        let (world, a, b) = check(1, pair(nic, path), 2_000_000);
        for host in [a, b] {
            let counters = world.host(host).stack.counters();
            assert_eq!(counters.drop_checksum_device, 0, "{name}");
            let stats = world.host(host).nic().stats();
            let enabled = world.host(host).port.enabled();
            if enabled.tso4 {
                assert!(stats.tx_segments > 2 * stats.tx_packets, "{name}: {stats:?}");
            } else {
                assert_eq!(stats.tx_segments, stats.tx_packets, "{name}");
            }
            if enabled.rx_coalescing && enabled.tso4 {
                assert!(stats.rx_frames < stats.rx_segments, "{name}");
            } else {
                assert_eq!(stats.rx_frames, stats.rx_segments, "{name}");
            }
        }
    }
}

#[test]
fn rings_of_one() {
    for (tx_ring, rx_ring) in [(1, 512), (256, 1), (1, 1), (2, 3)] {
        println!("rings of {tx_ring} and {rx_ring}");
        let nic = NicConfig { tx_ring, rx_ring, ..NicConfig::with_rate(100_000_000) };
        check(2, pair(nic, Path::with_delay(Duration::from_micros(50))), 300_000);
    }
}

#[test]
fn few_receive_buffers() {
    let nic = NicConfig { rx_buffers: 48, ..NicConfig::with_rate(100_000_000) };
    check(3, pair(nic, Path::with_delay(Duration::from_micros(50))), 300_000);
}

#[test]
fn a_rate_without_bounds_and_interrupts_of_all_kinds() {
    for mode in [PacingMode::FirstNewPacket, PacingMode::LastNewPacket, PacingMode::LastInterrupt] {
        for (timer_ticks, threshold) in [(0, 1), (2, 4), (4, 1_000)] {
            let pacing = PacingConfig { mode, timer_ticks, threshold, ..PacingConfig::default() };
            let nic = NicConfig { pacing, rate_bps: None, ..NicConfig::default() };
            check(4, pair(nic, Path::with_delay(Duration::from_micros(500))), 300_000);
        }
    }
}

#[test]
fn a_path_with_every_fault() {
    let path = Path {
        rate_bps: Some(50_000_000),
        delay: Duration::from_millis(2),
        jitter: Jitter::Uniform(Duration::from_millis(1)),
        queue: Queue::packets(50),
        loss: Loss::GilbertElliott { enter: 0.002, leave: 0.3, good: 0.0, bad: 0.5 },
        reorder: 0.01,
        reorder_delay: Duration::from_millis(1),
        duplicate: 0.01,
        corrupt: 0.005,
        ..Path::default()
    };
    for capabilities in [Capabilities::ALL, Capabilities::NONE] {
        let nic = NicConfig { capabilities, ..NicConfig::default() };
        let (world, a, b) = check(5, pair(nic, path.clone()), 1_000_000);
        let stats = world.path_stats(a, Direction::Up);
        let faults = [stats.lost, stats.corrupted, stats.duplicated, stats.reordered];
        assert!(faults.iter().all(|count| *count > 0), "{stats:?}");
        let found: u64 = [a, b]
            .map(|host| {
                let port = world.host(host).port.stats();
                port.rx.device_bad + port.rx.software_bad
            })
            .iter()
            .sum();
        assert!(found > 0, "damaged frames are found by their checksums");
    }
}

#[test]
fn routers_tell_of_packets_that_are_too_long() {
    let too_long = TooLong::Tell { v4: "10.0.0.254".parse().unwrap(), v6: "fd00::fe".parse().unwrap() };
    let path = Path { delay: Duration::from_millis(1), mtu: Some(1_300), too_long, ..Path::default() };
    let (world, a, _) = check(6, pair(NicConfig::default(), path), 500_000);
    let stats = world.path_stats(a, Direction::Up);
    assert!(stats.too_long > 0 && stats.too_long < 200, "{stats:?}");
}

#[test]
fn slow_readers_hold_the_sender_back() {
    let (mut world, a, b) =
        World::pair(7, PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100)));
    let reader = Reader::Paced { bytes: 10_000, every: Duration::from_millis(10) };
    let flow = FlowConfig::upload(a, b, Amount::Bytes(1_000_000));
    let flow = world.add_flow(FlowConfig { server_reader: reader, ..flow });
    let waiting = world.now() + 2 * SECOND;
    let late = FlowConfig::upload(b, a, Amount::Bytes(100_000));
    let late = world.add_flow(FlowConfig { server_reader: Reader::From(waiting), ..late });
    let start = world.now();
    assert!(world.run_flow(flow, 60 * SECOND) && world.run_flow(late, 60 * SECOND));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    let last = report.server.last_byte_at.unwrap();
    assert!(last - start >= Duration::from_millis(990), "{last:?}");
    assert_eq!(world.flow(late).verdict(), Ok(()));
    assert_eq!(world.flow(late).server.first_byte_at, Some(waiting));
}

#[test]
fn an_echo_on_a_switch_with_three_hosts() {
    let mut world = World::new(9);
    let hosts = [1, 2, 3]
        .map(|last| world.add_host(HostConfig::new(&format!("h{last}"), &[&format!("10.0.0.{last}/24")])));
    let echo = world.add_app(hosts[2], Echo::new(7, Default::default()));
    let remote = "10.0.0.3:7".parse().unwrap();
    let ends = [hosts[0], hosts[1]].map(|host| {
        let role = Role::Client { remote, at: world.now() };
        // What comes back is what was sent.
        let number = host_number(host, &hosts);
        let end = Endpoint::new(EndpointConfig {
            role,
            send: Amount::Bytes(200_000),
            sends: number,
            expects: number,
            reader: Reader::Eager,
            writer: Writer::Eager,
            peer_writer: Writer::Eager,
            options: Default::default(),
        });
        (host, world.add_app(host, end))
    });
    let done = |world: &mut World| {
        ends.iter().all(|(host, owner)| world.app::<Endpoint>(*host, *owner).unwrap().is_done())
    };
    assert!(world.run_until(20 * SECOND, done));
    for (host, owner) in ends {
        let report = world.app::<Endpoint>(host, owner).unwrap().seen().clone();
        assert_eq!((report.bytes_received, report.error), (200_000, None));
    }
    assert_eq!(world.app::<Echo>(hosts[2], echo).unwrap().bytes, 400_000);
}

fn host_number(host: HostId, hosts: &[HostId]) -> u64 {
    hosts.iter().position(|other| *other == host).unwrap() as u64
}
