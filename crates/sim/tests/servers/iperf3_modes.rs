//! Our iperf3 client against our server, on two stacks, with and without faults on the way.

use crate::iperf3_client::Iperf3Client;
use crate::served::Served;
use crate::{SECOND, addr, world};
use linerate_serve::iperf3::client::{ClientError, ClientEvent, Config, Report};
use linerate_serve::iperf3::{self, Params, Protocol};
use linerate_serve::testing::MemoryFiles;
use linerate_sim::*;
use linerate_transport::{CloseReason, ListenAddr, Owner};
use std::time::Duration;

const PORT: u16 = 5_201;

fn config(params: Params) -> Config {
    Config { params, ..Config::new(addr("10.0.0.2", PORT)) }
}

fn serve(world: &mut World, host: HostId, config: iperf3::Config) -> Owner {
    let random = world.random(1);
    let owner = world.add_app(
        host,
        Served::new(MemoryFiles::new(), random, move |owner| {
            let listen = vec![ListenAddr { ip: None, port: PORT }];
            Box::new(iperf3::Server::new(iperf3::Config { owner, listen, ..config.clone() }))
        }),
    );
    world.run_for(Duration::from_millis(1));
    owner
}

fn add_client(world: &mut World, host: HostId, config: Config) -> Owner {
    let random = world.random(2);
    world.add_app(host, Iperf3Client::new(config, random))
}

/// Runs a test to its end, whatever that is; the report, the intervals, and how it went.
fn run(
    world: &mut World,
    host: HostId,
    app: Owner,
) -> (Report, Vec<iperf3::client::Interval>, Result<(), ClientError>) {
    let done = |world: &mut World| world.app::<Iperf3Client>(host, app).is_some_and(Iperf3Client::is_done);
    assert!(world.run_until(120 * SECOND, done), "it goes on for ever");
    let app = world.app::<Iperf3Client>(host, app).expect("the client");
    let intervals = app.events.iter().filter_map(|event| match event {
        ClientEvent::Interval(interval) => Some(interval.clone()),
        ClientEvent::Started(_) => None,
    });
    (app.client().report(), intervals.collect(), app.client().outcome().expect("it is done"))
}

fn tcp(time: u64) -> Params {
    Params { time: Duration::from_secs(time), ..Params::default() }
}

fn udp(rate_bps: u64) -> Params {
    Params { protocol: Protocol::Udp, rate_bps, time: 2 * SECOND, ..Params::default() }
}

/// What is wrong with a report of a test that came to its end.
fn check_report(name: &str, params: &Params, report: &Report, loss: f64) {
    let count = if params.bidirectional { 2 * params.parallel } else { params.parallel };
    assert_eq!((report.connected.len(), report.streams.len()), (count, count), "{name}");
    assert!(report.has_server && report.params.len > 0, "{name}");
    for one in &report.streams {
        assert!(one.received.bytes > 0, "{name}: {one:?}");
        match params.protocol {
            // What is on its way when the clock stops was sent and not received; with an omit time, both count from another
            // moment.
            Protocol::Tcp if params.omit.is_zero() => {
                assert!(one.received.bytes <= one.sent.bytes, "{name}: {one:?}");
            }
            Protocol::Tcp => {}
            Protocol::Udp => {
                let share = one.received.lost as f64 / one.received.packets.max(1) as f64;
                assert!(share <= loss * 2.0 + 0.01, "{name}: {share} lost: {one:?}");
            }
        }
    }
    let sums = [true, false].map(|sends| report.sum(sends, false).bytes);
    if let Some(total) = params.total_bytes_of(report.params.len) {
        let received: u64 = sums.iter().copied().max().unwrap_or(0);
        assert!(
            received.abs_diff(total) <= (loss * 2.0 * total as f64) as u64 + 2_000,
            "{name}: {received} of {total}"
        );
        if params.protocol == Protocol::Tcp {
            assert_eq!(received, total, "{name}: no byte of TCP is lost at the end");
        }
    }
}

/// The total of a test whose length may have been chosen by the client.
trait Total {
    fn total_bytes_of(&self, len: usize) -> Option<u64>;
}

impl Total for Params {
    fn total_bytes_of(&self, len: usize) -> Option<u64> {
        Params { len, ..self.clone() }.total_bytes()
    }
}

#[test]
fn every_mode_with_and_without_faults() {
    let known = Params { time: Duration::ZERO, ..Params::default() };
    let modes = [
        ("forward", tcp(2)),
        ("reverse", Params { reverse: true, ..tcp(2) }),
        ("both", Params { bidirectional: true, ..tcp(2) }),
        ("parallel", Params { parallel: 4, ..tcp(2) }),
        ("parallel reverse", Params { parallel: 4, reverse: true, ..tcp(2) }),
        ("both, parallel", Params { parallel: 3, bidirectional: true, ..tcp(2) }),
        ("omit", Params { omit: SECOND, ..tcp(2) }),
        ("omit reverse", Params { omit: SECOND, reverse: true, ..tcp(2) }),
        ("bytes", Params { bytes: 5_000_001, ..known.clone() }),
        ("bytes reverse", Params { bytes: 5_000_001, reverse: true, ..known.clone() }),
        ("bytes parallel", Params { bytes: 5_000_001, parallel: 3, ..known.clone() }),
        ("blocks", Params { blocks: 50, len: 10_000, ..known.clone() }),
        ("small segments", Params { mss: Some(536), ..tcp(2) }),
        ("window", Params { window: Some(65_536), ..tcp(2) }),
        ("rate", Params { rate_bps: 10_000_000, ..tcp(2) }),
        ("reno", Params { congestion: Some(linerate_transport::Congestion::NewReno), ..tcp(2) }),
        ("udp", udp(50_000_000)),
        ("udp reverse", Params { reverse: true, ..udp(50_000_000) }),
        ("udp both", Params { bidirectional: true, ..udp(10_000_000) }),
        ("udp parallel", Params { parallel: 3, counters_64bit: true, ..udp(10_000_000) }),
        ("udp bytes", Params { bytes: 1_000_000, time: Duration::ZERO, ..udp(50_000_000) }),
        (
            "udp bytes reverse",
            Params { bytes: 1_000_000, reverse: true, time: Duration::ZERO, ..udp(50_000_000) },
        ),
        (
            "udp blocks reverse",
            Params { blocks: 500, reverse: true, time: Duration::ZERO, ..udp(50_000_000) },
        ),
    ];
    for (seed, (name, params)) in (1..).zip(modes) {
        for loss in [0.0, 0.01] {
            let (mut world, a, b) = world(seed, 1, Spread::default(), loss);
            serve(&mut world, b, iperf3::Config::default());
            let client = add_client(&mut world, a, config(params.clone()));
            let (report, intervals, outcome) = run(&mut world, a, client);
            let name = format!("{name}, {loss} lost");
            assert_eq!(outcome, Ok(()), "{name}");
            check_report(&name, &params, &report, loss);
            if params.total_bytes().is_none() {
                let seconds = params.time + params.omit;
                assert_eq!(intervals.len() as u64, seconds.as_secs(), "{name}: {intervals:?}");
                let omitted = intervals.iter().filter(|one| one.omitted).count() as u64;
                assert_eq!(omitted, params.omit.as_secs(), "{name}");
                // Intervals add up to what is told at the end.
                for (at, end) in report.streams.iter().enumerate() {
                    let sum: u64 = intervals
                        .iter()
                        .filter(|one| !one.omitted)
                        .map(|one| one.streams[at].amount.bytes)
                        .sum();
                    let ours = if end.sends { end.sent.bytes } else { end.received.bytes };
                    assert_eq!(sum, ours, "{name}");
                }
            }
            // Beyond the longest TIME-WAIT.
            world.run_for(130 * SECOND);
            let left = world.host(a).cores()[0].stack.memory().connections;
            assert_eq!(left, 0, "{name}: connections are left");
        }
    }
}

#[test]
fn a_rate_is_kept_and_a_link_is_filled() {
    for (params, least, most) in [
        (Params { rate_bps: 10_000_000, ..tcp(2) }, 9.5e6, 11e6),
        (tcp(2), 900e6, 1000e6),
        (Params { reverse: true, ..tcp(2) }, 900e6, 1000e6),
        (udp(50_000_000), 49e6, 51e6),
    ] {
        let (mut world, a, b) = world(3, 1, Spread::default(), 0.0);
        serve(&mut world, b, iperf3::Config::default());
        let client = add_client(&mut world, a, config(params.clone()));
        let (report, _, outcome) = run(&mut world, a, client);
        assert_eq!(outcome, Ok(()));
        let received = report.sum(!params.reverse, false).bytes as f64 * 8.0 / report.duration_s;
        assert!((least..=most).contains(&received), "{params:?}: {received}");
    }
}

#[test]
fn what_goes_wrong_is_named() {
    // Nobody listens.
    let (mut world, a, _) = world(4, 1, Spread::default(), 0.0);
    let client = add_client(&mut world, a, config(tcp(2)));
    assert_eq!(run(&mut world, a, client).2, Err(ClientError::Connect(CloseReason::Refused)));

    // Nobody is there at all.
    let client = add_client(
        &mut world,
        a,
        Config {
            connect_timeout: SECOND,
            ..Config { params: tcp(2), ..Config::new(addr("10.0.0.77", PORT)) }
        },
    );
    let outcome = run(&mut world, a, client).2;
    let expected = [ClientError::ConnectTimeout, ClientError::Connect(CloseReason::Unreachable)];
    assert!(expected.contains(&outcome.expect_err("nobody is there")), "{outcome:?}");

    // The server takes no test more.
    let (mut world, a, b) = crate::world(5, 1, Spread::default(), 0.0);
    serve(&mut world, b, iperf3::Config { max_tests: 0, ..iperf3::Config::default() });
    let client = add_client(&mut world, a, config(tcp(2)));
    assert_eq!(run(&mut world, a, client).2, Err(ClientError::Busy));

    // It stops in the middle.
    let (mut world, a, b) = crate::world(6, 1, Spread::default(), 0.0);
    let server = serve(&mut world, b, iperf3::Config::default());
    let client = add_client(&mut world, a, config(tcp(10)));
    world.run_for(SECOND);
    world.with_app(b, server, |app: &mut Served, context| app.drain(context));
    let (report, _, outcome) = run(&mut world, a, client);
    assert_eq!(outcome, Err(ClientError::ServerTerminated));
    assert!(report.streams[0].sent.bytes > 1_000_000, "what was measured stays: {report:?}");

    // The cable is cut.
    let (mut world, a, b) = crate::world(7, 1, Spread::default(), 0.0);
    serve(&mut world, b, iperf3::Config::default());
    let params = Params { bytes: 1 << 40, time: Duration::ZERO, ..Params::default() };
    let client = add_client(&mut world, a, config(params));
    world.run_for(SECOND);
    for direction in [Direction::Up, Direction::Down] {
        world.set_path(a, direction, Path { loss: Loss::Random(1.0), ..Path::default() });
    }
    let (.., outcome) = run(&mut world, a, client);
    assert!(matches!(outcome, Err(ClientError::StreamLost(_) | ClientError::Control(_))), "{outcome:?}");

    // The user ends it.
    let (mut world, a, b) = crate::world(8, 1, Spread::default(), 0.0);
    serve(&mut world, b, iperf3::Config::default());
    let client = add_client(&mut world, a, config(tcp(10)));
    world.run_for(SECOND);
    world.with_app(a, client, |app: &mut Iperf3Client, context| app.interrupt(context));
    assert_eq!(run(&mut world, a, client).2, Err(ClientError::Interrupted));
}
