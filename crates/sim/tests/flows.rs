//! Whole transfers through the simulated network: rates, limits, queues, files, samples.

use linerate_sim::*;
use linerate_transport::{
    CloseReason, FileId, FileRange, ListenAddr, ListenOptions, Payload, SocketOptions, Transport,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Payload's share of a wire full of full-sized segments over IPv4 with timestamps.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_538.0;

#[test]
fn clean_links_are_full() {
    for (rate, delay_us, bytes) in
        [(10_000_000, 1_000, 3_000_000), (100_000_000, 100, 20_000_000), (1_000_000_000, 100, 100_000_000)]
    {
        let config = PairConfig::with_rate_and_delay(rate, Duration::from_micros(delay_us));
        let (mut world, a, b) = World::pair(1, config);
        let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(bytes)));
        assert!(world.run_flow(flow, 60 * SECOND), "{:?}", world.flow(flow));
        let report = world.flow(flow);
        assert_eq!(report.verdict(), Ok(()));
        let share = report.server.goodput_bps().unwrap() / (rate as f64 * PAYLOAD_SHARE);
        assert!((0.97..=1.01).contains(&share), "{rate} b/s: {share}");
    }
}

#[test]
fn the_time_of_a_flow_that_ends_by_time() {
    let (mut world, a, b) = World::pair(1, PairConfig::with_rate_and_delay(10_000_000, Duration::ZERO));
    let end = world.now() + SECOND;
    let flow = world.add_flow(FlowConfig::download(a, b, Amount::Until(end)));
    assert!(world.run_flow(flow, 20 * SECOND));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    assert!(report.client.bytes_received >= 1_000_000, "{report:?}");
    assert!(report.client.closed_at.unwrap() > end);
}

#[test]
fn a_bottleneck_limits_and_its_queue_fills() {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_millis(5));
    config.a_to_b.rate_bps = Some(20_000_000);
    config.a_to_b.queue = Queue::packets(40);
    let (mut world, a, b) = World::pair(2, config);
    world.record(Some(Duration::from_millis(10)));
    let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(10_000_000)));
    assert!(world.run_flow(flow, 60 * SECOND));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    let stats = world.path_stats(a, Direction::Up);
    assert!(stats.queue_full > 0 && stats.queue_max == 40, "{stats:?}");
    assert_eq!(stats.delivered + stats.queue_full, stats.offered);
    let retransmits = report.client.info.unwrap().retransmits;
    // A lost FIN or probe may be among what the queue dropped.
    assert!(retransmits + 2 >= stats.queue_full, "{retransmits} {stats:?}");

    let samples = world.samples(flow);
    assert!(samples.client.len() > 300);
    assert!(samples.client.windows(2).all(|pair| pair[1].at - pair[0].at == Duration::from_millis(10)));
    assert!(samples.client.iter().any(|sample| sample.slow_start_threshold.is_some()));
    assert!(samples.server.is_sorted_by_key(|sample| sample.bytes_received));
    let queue = world.queue_samples(a, Direction::Up);
    assert!(queue.iter().any(|sample| sample.packets > 30));
    assert!(world.queue_samples(b, Direction::Up).iter().all(|sample| sample.packets == 0));
}

#[test]
fn codel_keeps_the_queue_short() {
    let most = |queue| {
        let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_millis(10));
        config.a_to_b.rate_bps = Some(20_000_000);
        config.a_to_b.queue = queue;
        let (mut world, a, b) = World::pair(2, config);
        world.record(Some(Duration::from_millis(10)));
        let end = world.now() + 20 * SECOND;
        let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Until(end)));
        world.run_for(20 * SECOND);
        assert!(world.flow(flow).server.bytes_received > 30_000_000);
        let queue = world.queue_samples(a, Direction::Up);
        let late = &queue[queue.len() / 2..];
        late.iter().map(|sample| sample.packets).sum::<usize>() / late.len()
    };
    let codel = most(Queue::Codel(CodelConfig::default()));
    let tail = most(Queue::packets(1_000));
    // 5 ms are 8 segments.
    assert!(codel < 40 && tail > 100, "{codel} {tail}");
}

#[test]
fn files_are_read_and_sent() {
    let (mut world, a, b) = World::pair(3, PairConfig::default());
    let addr = ListenAddr { ip: None, port: 80 };
    let listener = world.host_mut(b).stack.listen(TEST, addr, &ListenOptions::default()).unwrap();
    let remote = "10.0.0.2:80".parse().unwrap();
    let conn = world.host_mut(a).stack.connect(TEST, None, remote, &SocketOptions::default()).unwrap();
    let mut server = None;
    let accepted = world.run_until(SECOND, |world| {
        server = server.or_else(|| world.host_mut(b).stack.accept(listener));
        server.is_some()
    });
    assert!(accepted);
    let range = FileRange { file: FileId::new(0, 0), offset: 12_345, len: 1_000_000 };
    world.host_mut(b).stack.send(server.unwrap(), Payload::File(range)).unwrap();
    let mut received = Vec::new();
    world.run_until(5 * SECOND, |world| {
        let stack = &mut world.host_mut(a).stack;
        let piece = stack.peek(conn).to_vec();
        stack.consume(conn, piece.len());
        received.extend_from_slice(&piece);
        received.len() == 1_000_000
    });
    assert_eq!(received.len(), 1_000_000);
    assert_eq!(Pattern::new(0).check(12_345, &received), Ok(()));
    assert!(!world.host(a).events.is_empty());
}

#[test]
fn a_slow_processor_is_the_limit() {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(50));
    // 20 us a packet and 10 ns a byte: 1,514 bytes take 35 us, so 40,000 ACKs and segments a second at most.
    for host in &mut config.hosts {
        host.nic.capabilities = Capabilities::NONE;
        host.offloads.rx_coalescing = false;
    }
    config.hosts[1].cpu = CpuCost {
        packet: Duration::from_micros(20),
        kilobyte: Duration::from_micros(10),
        ..CpuCost::default()
    };
    let (mut world, a, b) = World::pair(4, config);
    let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(20_000_000)));
    assert!(world.run_flow(flow, 60 * SECOND));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    let mbps = report.server.goodput_bps().unwrap() / 1e6;
    // Between one ACK per segment and none.
    let most = 1_448.0 * 8.0 / 35.14;
    let least = 1_448.0 * 8.0 / (35.14 + 20.66);
    assert!((least * 0.9..=most * 1.02).contains(&mbps), "{mbps} of {least} to {most} Mb/s");
}

#[test]
fn nobody_there() {
    let (mut world, a, b) = World::pair(5, PairConfig::default());
    world.set_path(a, Direction::Up, Path { loss: Loss::EveryNth(1), ..Path::default() });
    let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(1)));
    assert!(!world.run_flow(flow, 200 * SECOND), "the server still listens");
    let report = world.flow(flow);
    assert_eq!(report.client.closed, Some(CloseReason::Unreachable));
    assert!(report.verdict().unwrap_err().contains("Unreachable"));
    assert!(!report.is_complete());
}
