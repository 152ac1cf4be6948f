//! What a connection says that limited it is what does: one whole transfer for each cause.

use linerate_sim::*;
use linerate_transport::{
    BufferSize, Congestion, ConnId, LimitCause, LimitTimes, ListenAddr, ListenOptions, Pacing, Payload,
    SocketOptions, Transport,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const GIGABIT: u64 = 1_000_000_000;

/// The share of the time that `cause` has.
fn share(limits: &LimitTimes, cause: LimitCause) -> f64 {
    limits.ns[cause as usize] as f64 / limits.ns.iter().sum::<u64>() as f64
}

#[track_caller]
fn check(limits: &LimitTimes, cause: LimitCause, least: f64) {
    assert!(share(limits, cause) > least, "{cause:?}: {:?}", by_cause(limits));
    // Processors take no time here, so nobody ever waits for one.
    assert!(share(limits, LimitCause::Processor) < 0.001, "{:?}", by_cause(limits));
}

fn by_cause(limits: &LimitTimes) -> Vec<(LimitCause, f64)> {
    LimitCause::ALL.into_iter().map(|cause| (cause, share(limits, cause))).collect()
}

/// What limited the upload of `bytes` with these settings, and the rate in bits per second.
fn upload(config: PairConfig, bytes: u64, set: impl FnOnce(&mut FlowConfig)) -> (LimitTimes, f64) {
    let (mut world, a, b) = World::pair(2, config);
    let mut flow = FlowConfig::upload(a, b, Amount::Bytes(bytes));
    set(&mut flow);
    let flow = world.add_flow(flow);
    assert!(world.run_flow(flow, 120 * SECOND), "{:?}", world.flow(flow));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    (report.client.info.unwrap().limits, report.server.goodput_bps().unwrap())
}

fn bottleneck(queue: Queue) -> PairConfig {
    let mut config = PairConfig::with_rate_and_delay(GIGABIT, 5 * MS);
    config.a_to_b.rate_bps = Some(20_000_000);
    config.a_to_b.queue = queue;
    config
}

#[test]
fn a_bottleneck_on_the_way_is_congestion() {
    for congestion in [Congestion::Cubic, Congestion::NewReno] {
        let (limits, _) = upload(bottleneck(Queue::packets(40)), 10_000_000, |flow| {
            flow.client_options.congestion = congestion;
        });
        check(&limits, LimitCause::Congestion, 0.9);
    }
}

#[test]
fn an_automatic_rate_is_congestion() {
    let (limits, _) = upload(bottleneck(Queue::packets(40)), 10_000_000, |flow| {
        flow.client_options.pacing = Pacing::Auto;
    });
    check(&limits, LimitCause::Congestion, 0.9);
}

#[test]
fn loss_is_congestion() {
    let mut config = PairConfig::with_rate_and_delay(GIGABIT, 10 * MS);
    config.a_to_b.loss = Loss::Random(0.005);
    let (limits, _) = upload(config, 10_000_000, |_| {});
    check(&limits, LimitCause::Congestion, 0.9);
}

#[test]
fn a_small_send_buffer_on_a_long_path_is_the_send_buffer() {
    let (limits, rate) = upload(PairConfig::with_rate_and_delay(GIGABIT, 20 * MS), 10_000_000, |flow| {
        flow.client_options.send_buffer = BufferSize::Fixed(128 << 10);
    });
    check(&limits, LimitCause::SendBuffer, 0.9);
    assert!(rate < 60e6, "{rate}");
}

#[test]
fn a_small_receive_buffer_on_a_long_path_is_the_peers_window() {
    let (limits, rate) = upload(PairConfig::with_rate_and_delay(GIGABIT, 20 * MS), 10_000_000, |flow| {
        flow.server_options.receive_buffer = BufferSize::Fixed(128 << 10);
    });
    check(&limits, LimitCause::PeerWindow, 0.9);
    assert!(rate < 60e6, "{rate}");
}

#[test]
fn a_slow_reader_is_the_peers_window() {
    let (limits, _) = upload(PairConfig::with_rate_and_delay(GIGABIT, MS), 20_000_000, |flow| {
        flow.server_reader = Reader::Paced { bytes: 50_000, every: 10 * MS };
        flow.server_options.receive_buffer = BufferSize::Fixed(256 << 10);
    });
    check(&limits, LimitCause::PeerWindow, 0.9);
}

#[test]
fn a_slow_interface_is_the_device() {
    for (rate, ring, bytes) in
        [(1_000_000, 4, 500_000), (1_000_000, 256, 500_000), (100_000_000, 256, 30_000_000)]
    {
        let mut config = PairConfig::with_rate_and_delay(GIGABIT, 5 * MS);
        config.hosts[0].nic = NicConfig { tx_ring: ring, ..NicConfig::with_rate(rate) };
        let (limits, goodput) = upload(config, bytes, |_| {});
        check(&limits, LimitCause::Device, 0.8);
        assert!(goodput > rate as f64 * 0.9, "{goodput} of {rate}");
    }
}

#[test]
fn a_rate_that_was_asked_for_is_pacing() {
    let (limits, rate) = upload(PairConfig::with_rate_and_delay(GIGABIT, 5 * MS), 5_000_000, |flow| {
        flow.client_options.pacing = Pacing::Rate(1_250_000);
    });
    check(&limits, LimitCause::Pacing, 0.9);
    assert!((9.0e6..10.5e6).contains(&rate), "{rate}");
}

/// A client and a server, connected over a fast path.
fn connected() -> (World, [(HostId, ConnId); 2]) {
    let (mut world, a, b) = World::pair(2, PairConfig::with_rate_and_delay(GIGABIT, 5 * MS));
    let addr = ListenAddr { ip: None, port: 80 };
    let listener = world.host_mut(b).stack.listen(TEST, addr, &ListenOptions::default()).unwrap();
    let remote = "10.0.0.2:80".parse().unwrap();
    let conn = world.host_mut(a).stack.connect(TEST, None, remote, &SocketOptions::default()).unwrap();
    let mut server = None;
    assert!(world.run_until(SECOND, |world| {
        server = world.host_mut(b).stack.accept(listener);
        server.is_some()
    }));
    (world, [(a, conn), (b, server.unwrap())])
}

#[test]
fn a_slow_writer_is_the_application() {
    let (mut world, [(a, conn), (b, server)]) = connected();
    for _ in 0..200 {
        world.host_mut(a).stack.send(conn, Payload::Static(&[7; 10_000])).unwrap();
        world.run_for(10 * MS);
        let stack = &mut world.host_mut(b).stack;
        while !stack.peek(server).is_empty() {
            let piece = stack.peek(server).len();
            stack.consume(server, piece);
        }
    }
    check(&world.host_mut(a).stack.info(conn).unwrap().limits, LimitCause::Application, 0.95);
}
