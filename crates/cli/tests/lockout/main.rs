//! One client, or many, that take all connections there are: newcomers are served on their first try nevertheless.
//!
//! A simulated host runs the three servers with the shares of connections that `serve` gives them. An attacker connects to
//! one of them, from one address or from as many as it has connections, and then says nothing, or half a request. During the
//! attack and after it, newcomers fetch something by HTTP, log in and fetch by FTP, and begin an iperf3 test. Each must be
//! done within 100 ms of virtual time, with a round trip of 1 ms.
//!
//! `cargo test --release -p linerate-cli --test lockout -- --nocapture` prints a row for each attack.

mod crowd;
#[path = "../../../sim/tests/attacks/frames.rs"]
#[expect(dead_code, reason = "the attacks on a whole host use all of it")]
mod frames;
mod newcomer;
#[path = "../../../sim/tests/attacks/script.rs"]
#[expect(dead_code, reason = "as above")]
mod script;
mod service;

use crowd::{Crowd, From, Manner};
use frames::{ROUTER_MAC, ROUTER4, VICTIM_MAC, VICTIM4};
use linerate_cli::serve::shares::{Shares, own_table};
use linerate_cli::settings::LimitSettings;
use linerate_serve::{ftp, http, iperf3};
use linerate_sim::{CpuCost, Direction, HostConfig, HostId, Path, World};
use linerate_transport::{ListenOptions, Owner};
use linerate_wire::arp::Operation;
use linerate_wire::units::Instant;
use newcomer::{Errand, Newcomer};
use script::{Attacker, Traffic};
use service::ServiceApp;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The time that a newcomer may take for all it wants.
const PATIENCE: Duration = Duration::from_millis(100);
/// Between newcomers.
const INTERVAL: Duration = Duration::from_millis(37);

/// An attack.
#[derive(Clone, Copy)]
struct Attack {
    manner: Manner,
    from: From,
    port: u16,
    count: usize,
    per_second: u64,
    memory: u64,
}

const ATTACK: Attack = Attack {
    manner: Manner::Idle,
    from: From::One,
    port: 80,
    count: 10_000,
    per_second: 10_000,
    memory: 64 << 20,
};

/// The host with its servers, and how many connections it can hold.
fn victim(world: &mut World, memory: u64) -> (HostId, usize) {
    // Few connections, so that the crowds are far more than there is room for.
    let connections = (memory / 16_384).max(512) as usize;
    let limits = LimitSettings { connections: Some(connections), ..LimitSettings::default() };
    let table = own_table(memory, &limits);
    let shares = Shares::new(table, [true; 3], &limits);
    let mut config = HostConfig::new("victim", &["10.0.0.1/24"]);
    let (packet, kilobyte) = (Duration::from_micros(1), Duration::from_nanos(100));
    config.cpu = CpuCost { packet, kilobyte, ..CpuCost::default() };
    config.nic.rate_bps = Some(1_000_000_000);
    config.stack.gateways = vec![ROUTER4.into()];
    config.stack.memory = (memory / 4 * 3) as usize;
    config.stack.max_connections = table;
    (config.stack.max_half_open, config.stack.max_orphans) = (table / 4, table / 4);
    (config.stack.max_time_wait, config.stack.max_listeners) = (table / 4, table / 4);
    let host = world.add_host(config);
    let limits = http::Limits {
        connections: shares.http,
        connections_per_address: shares.http_per_address,
        ..http::Limits::default()
    };
    let options = ListenOptions { backlog: shares.http_backlog, ..ListenOptions::default() };
    let http = http::Config { limits, options, ..http::Config::default() };
    world.add_app(host, ServiceApp::new(move |owner| Box::new(http::Server::new(owner, http))));
    let limits = ftp::Limits {
        sessions: shares.ftp_sessions,
        sessions_per_address: shares.ftp_per_address,
        ..ftp::Limits::default()
    };
    let ftp = ftp::Config { limits, backlog: shares.backlog, ..ftp::Config::default() };
    let make = move |owner: Owner| ftp::Server::new(owner, ftp).expect("the settings are right");
    world.add_app(host, ServiceApp::new(|owner| Box::new(make(owner))));
    let iperf3 = iperf3::Config {
        backlog: shares.backlog,
        max_connections: shares.iperf3,
        connections_per_address: shares.iperf3_per_address,
        ..iperf3::Config::default()
    };
    world.add_app(
        host,
        ServiceApp::new(move |owner| Box::new(iperf3::Server::new(iperf3::Config { owner, ..iperf3 }))),
    );
    (host, table)
}

fn check(name: &str, attack: Attack) {
    let mut world = World::new(8);
    let (host, table) = victim(&mut world, attack.memory);
    assert_eq!(world.mac(host), VICTIM_MAC);
    let clients = HostConfig::new("newcomers", &["10.0.0.3/24"]);
    let clients = world.add_host(clients);
    let attacker = world.add_raw("attacker", ROUTER_MAC);
    world.keep_received(attacker, false);
    for direction in [Direction::Up, Direction::Down] {
        world.set_path(clients, direction, Path::with_delay(Duration::from_micros(500)));
    }
    let traffic = Rc::<Cell<Traffic>>::default();
    world.set_peer(attacker, Attacker::silent(traffic.clone()));
    // The victim knows its router, as a host on a network does.
    world.send(attacker, frames::arp(Operation::REQUEST, (ROUTER_MAC, ROUTER4), VICTIM4));
    world.run_for(Duration::from_millis(100));

    let begin = world.now();
    let length = Duration::from_secs_f64(attack.count as f64 / attack.per_second as f64);
    let end = begin + length + Duration::from_secs(3);
    let opened = Rc::<Cell<usize>>::default();
    let crowd = Crowd::new(attack.manner, attack.from, attack.port, attack.count, opened.clone());
    let per_tick = attack.per_second / 10_000;
    assert!(per_tick > 0);
    world.set_peer(attacker, Attacker::new(Box::new(crowd.at_rate(per_tick)), begin, end, traffic));
    let newcomers = add_newcomers(&mut world, clients, begin, end);
    let mut most = 0;
    while world.now() < end + Duration::from_secs(1) {
        world.run_for(Duration::from_millis(10));
        most = most.max(world.host(host).stack.memory().connections);
    }
    let worst = Errand::ALL.map(|errand| {
        let of_errand = newcomers.iter().filter(|newcomer| newcomer.0 == errand);
        let times = of_errand.map(|&(errand, at, owner)| {
            let newcomer = world.app::<Newcomer>(clients, owner).expect("it was added");
            match &newcomer.outcome {
                Some(Ok(done)) => *done - at,
                other => panic!("{name}: {errand:?} at {:?}: {other:?}", at - begin),
            }
        });
        times.max().expect("some came")
    });
    let ms = worst.map(|time| time.as_secs_f64() * 1e3);
    let counters = *world.host(host).stack.counters();
    println!(
        "| {name} | {} | {most} | HTTP {:.1} | FTP {:.1} | iperf3 {:.1} | table {} backlog {} syn {} |",
        opened.get(),
        ms[0],
        ms[1],
        ms[2],
        counters.drop_syn_cookie_table,
        counters.drop_syn_cookie_backlog,
        counters.drop_syn_backlog,
    );
    assert!(worst.iter().all(|time| *time < PATIENCE), "{name}: {worst:?}");
    assert!(opened.get() >= attack.count * 95 / 100, "{name}: only {} connected", opened.get());
    assert!((table / 4..=table).contains(&most) || attack.port != 80, "{name}: {most} of {table}");
    // All that the crowd held comes back: the longest deadline is FTP's, 300 s, and 60 s for those that do not close.
    world.run_for(Duration::from_secs(420));
    let memory = world.host(host).stack.memory();
    assert_eq!((memory.connections, memory.used), (0, 0), "{name}: {memory:?}");
}

fn add_newcomers(
    world: &mut World,
    host: HostId,
    begin: Instant,
    end: Instant,
) -> Vec<(Errand, Instant, Owner)> {
    let mut newcomers = Vec::new();
    let mut at = begin + INTERVAL;
    while at < end + Duration::from_millis(500) {
        for errand in Errand::ALL {
            let owner = world.add_app(host, Newcomer::new(errand, VICTIM4.into(), at));
            newcomers.push((errand, at, owner));
        }
        at += INTERVAL;
    }
    newcomers
}

#[test]
fn ten_thousand_idle_connections_from_one_address() {
    for port in [80, 21, 5201] {
        check(&format!("10,000 idle, one address, port {port}"), Attack { port, ..ATTACK });
    }
}

#[test]
fn fifty_thousand_idle_connections_from_as_many_addresses() {
    for port in [80, 21, 5201] {
        let name = format!("50,000 idle, many addresses, port {port}");
        check(&name, Attack { from: From::Many, port, count: 50_000, ..ATTACK });
    }
}

#[test]
fn heads_that_never_end() {
    for from in [From::One, From::Many] {
        let name = format!("10,000 slow heads, {from:?}");
        check(&name, Attack { manner: Manner::SlowHead, from, ..ATTACK });
    }
}

#[test]
fn bodies_that_never_end() {
    for from in [From::One, From::Many] {
        let name = format!("10,000 slow bodies, {from:?}");
        check(&name, Attack { manner: Manner::SlowBody, from, ..ATTACK });
    }
}

#[test]
fn little_memory_and_a_small_table() {
    for (from, port) in [(From::One, 80), (From::Many, 80), (From::Many, 21), (From::Many, 5201)] {
        let name = format!("10,000 idle, {from:?}, port {port}, 4 MiB");
        check(&name, Attack { from, port, memory: 4 << 20, ..ATTACK });
    }
}
