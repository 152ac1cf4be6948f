//! What the world counts of waiting, losing and working is what happened.

use linerate_sim::*;
use linerate_transport::SocketOptions;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// An upload of so many bytes through this path and between these hosts.
fn upload(
    config: PairConfig,
    bytes: u64,
    set: impl FnOnce(&mut FlowConfig),
) -> (World, [HostId; 2], FlowReport) {
    let (mut world, a, b) = World::pair(3, config);
    let mut flow = FlowConfig::upload(a, b, Amount::Bytes(bytes));
    set(&mut flow);
    let flow = world.add_flow(flow);
    assert!(world.run_flow(flow, 60 * SECOND), "{:?}", world.flow(flow));
    let report = world.flow(flow);
    (world, [a, b], report)
}

#[test]
fn a_paced_writer_keeps_its_rate() {
    let config = PairConfig::with_rate_and_delay(1_000_000_000, MS);
    let (_, _, report) = upload(config, 1_000_000, |flow| {
        flow.client_writer = Writer::Paced { bytes: 10_000, every: 10 * MS };
    });
    assert_eq!(report.verdict(), Ok(()));
    let rate = report.server.goodput_bps().unwrap();
    assert!((7.9e6..8.2e6).contains(&rate), "{rate}");
}

#[test]
fn requests_are_answered_one_by_one() {
    let config = PairConfig::with_rate_and_delay(1_000_000_000, 5 * MS);
    let (_, _, report) = upload(config, 50 * 2_000, |flow| {
        flow.client_writer = Writer::Exchange { bytes: 2_000 };
    });
    assert_eq!(report.verdict(), Ok(()));
    assert_eq!(report.client.bytes_received, 50, "a byte for each request");
    let took = report.server.last_byte_at.unwrap() - report.server.first_byte_at.unwrap();
    assert!(took >= 49 * 10 * MS && took < 55 * 10 * MS, "a round trip each: {took:?}");
}

#[test]
fn nagle_and_delayed_acknowledgements_cost_the_timeout_a_request() {
    let config = PairConfig::with_rate_and_delay(1_000_000_000, MS);
    let (_, _, report) = upload(config, 20 * 2_000, |flow| {
        flow.client_writer = Writer::Exchange { bytes: 2_000 };
        flow.client_options = SocketOptions { no_delay: false, ..SocketOptions::default() };
    });
    let took = report.server.last_byte_at.unwrap() - report.server.first_byte_at.unwrap();
    assert!(took >= 19 * 40 * MS, "{took:?}");
}

#[test]
fn losses_in_a_row_are_one_run() {
    let mut config = PairConfig::with_rate_and_delay(100_000_000, MS);
    config.a_to_b.loss = Loss::List(vec![20, 21, 22, 30, 40, 41]);
    let (world, [a, _], report) = upload(config, 300_000, |_| {});
    assert_eq!(report.verdict(), Ok(()));
    let stats = world.path_stats(a, Direction::Up);
    assert_eq!((stats.lost, stats.lost_runs), (6, 3));
}

#[test]
fn waiting_before_a_link_and_in_a_ring_is_counted() {
    // Ten times slower than the interface: a full window waits, the last segment for all before it.
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, MS);
    config.a_to_b.rate_bps = Some(10_000_000);
    config.hosts[1].nic.pacing =
        PacingConfig { timer_ticks: 1, tick_ns: 2_000_000, threshold: 1_000, ..PacingConfig::default() };
    let (world, [a, b], _) = upload(config, 200_000, |_| {});
    let stats = world.path_stats(a, Direction::Up);
    let wait_ms = stats.queue_wait_ns as f64 / 1e6 / stats.delivered as f64;
    assert!((5.0..80.0).contains(&wait_ms), "{wait_ms} ms");
    let nic = world.host(b).nic().stats();
    let wait_us = nic.rx_wait_ns as f64 / 1e3 / nic.rx_taken as f64;
    assert!((500.0..2_001.0).contains(&wait_us), "{wait_us} us of at most 2 ms");
}

#[test]
fn a_processor_spends_time_on_checksums_that_the_interface_leaves_to_it() {
    let check = |offloads: Capabilities, sums: bool| {
        let mut config = PairConfig::with_rate_and_delay(1_000_000_000, MS);
        config.hosts[0].offloads = offloads;
        config.hosts[0].cpu = CpuCost { checksum: Duration::from_micros(10), ..CpuCost::default() };
        let (world, [a, _], _) = upload(config, 1_000_000, |_| {});
        let spent = world.host(a).cpu_times();
        // 10 us for each of 1,000 kilobytes, headers and acknowledgements beside.
        let wanted = if sums { 10 * MS..14 * MS } else { Duration::ZERO..Duration::from_nanos(1) };
        assert!(wanted.contains(&spent.checksums), "{spent:?}");
        assert_eq!(spent.total(), spent.checksums);
    };
    check(Capabilities::ALL, false);
    check(Capabilities::NONE, true);
}

#[test]
fn a_processor_spends_time_on_calls_giving_way_copies_and_interrupts() {
    let check = |writer: Writer, calls: u64, ways: u64, segments: u64| {
        let us = Duration::from_micros(1);
        let mut config = PairConfig::with_rate_and_delay(1_000_000_000, 10 * us);
        config.hosts[0].offloads = Capabilities::NONE;
        config.hosts[0].cpu = CpuCost {
            transmit: us,
            receive: 2 * us,
            interrupt: us,
            call: us,
            give_way: us,
            copy: us,
            ..CpuCost::default()
        };
        let (world, [a, _], report) = upload(config, 1_024_000, |flow| flow.client_writer = writer);
        assert_eq!(report.verdict(), Ok(()));
        let spent = world.host(a).cpu_times();
        let nic = world.host(a).nic().stats();
        let port = world.host(a).port.stats();
        let times = |count: u64| us * u32::try_from(count).unwrap();
        assert_eq!(spent.calls, times(calls), "{writer:?}");
        assert_eq!(spent.ways, times(ways), "{writer:?}");
        assert_eq!(spent.interrupts, times(nic.interrupts), "{writer:?}");
        assert_eq!(spent.packets, times(port.tx.packets) + 2 * times(port.rx.frames), "{writer:?}");
        // A microsecond for each kilobyte, rounded down in each turn.
        assert!(
            (Duration::from_micros(900)..=Duration::from_micros(1_024)).contains(&spent.copies),
            "{spent:?}"
        );
        assert_eq!(spent.total(), spent.parts().iter().map(|(_, time)| *time).sum());
        let data = port.tx.packets;
        assert!((segments * 9 / 10..segments * 11 / 10 + 10).contains(&data), "{writer:?}: {data} packets");
    };
    // Who gives way after each call sends it alone, but for what waits for a window; who does not fills segments.
    check(Writer::Calls { bytes: 512, gives_way: true }, 2_000, 2_000, 2_000);
    check(Writer::Calls { bytes: 512, gives_way: false }, 2_000, 0, 708);
    check(Writer::Calls { bytes: 64 << 10, gives_way: false }, 16, 0, 708);
}
