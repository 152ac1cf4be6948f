//! The servers on a host with several queues, as `linerate serve` arranges them: HTTP and FTP listen on every core, iperf3 on
//! the first.

mod ftp_client;
mod iperf3_client;
mod iperf3_modes;
mod served;

use ftp_client::{FtpClient, Job};
use iperf3_client::Iperf3Client;
use linerate_serve::testing::MemoryFiles;
use linerate_serve::{Service, ftp, iperf3};
use linerate_sim::*;
use linerate_transport::{ListenAddr, Owner};
use served::Served;
use std::net::SocketAddr;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const FILE: u64 = 400_000;
/// The password "secret", hashed with less work than usual.
const SECRET: &str =
    "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$WHwbVkQ5XzAMaltcqwxy+X9v0VxYTVTjS9BRTrowawM";

fn world(seed: u64, queues: u16, spread: Spread, loss: f64) -> (World, HostId, HostId) {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(200));
    for path in [&mut config.a_to_b, &mut config.b_to_a] {
        path.loss = Loss::Random(loss);
        path.reorder = loss;
    }
    (config.hosts[1].queues, config.hosts[1].spread) = (queues, spread);
    World::pair(seed, config)
}

fn addr(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("an address"), port)
}

/// An FTP server whose passive ports are those of this queue.
fn ftp_server(owner: Owner, index: u16, servers: u16) -> Box<dyn Service> {
    let config = ftp::Config {
        users: vec![ftp::User { name: "anna".into(), password_hash: SECRET.into() }],
        writable: true,
        // Few, so that queues that did not share them out would take each other's.
        passive_ports: 50_000..=50_031,
        passive_share: ftp::PortShare { index, servers },
        ..ftp::Config::default()
    };
    Box::new(ftp::Server::new(owner, config).expect("settings"))
}

fn ftp_servers(world: &mut World, host: HostId, queues: u16) -> Vec<Owner> {
    let mut big = vec![0; FILE as usize];
    Pattern::new(0).fill(0, &mut big);
    let server = |queue: u16| {
        let mut files = MemoryFiles::new();
        files.add_file("/big", &big);
        let random = world.random(u64::from(queue));
        let served = Served::new(files, random, move |owner| ftp_server(owner, queue, queues));
        world.add_app_at(host, usize::from(queue), served)
    };
    (0..queues).map(server).collect()
}

#[test]
fn ftp_finds_its_data_connections_on_any_queue() {
    for (queues, spread) in
        [(1, Spread::default()), (4, Spread::default()), (4, Spread::Follow), (4, Spread::Random)]
    {
        let (mut world, client, server) = world(u64::from(queues), queues, spread.clone(), 0.005);
        let servers = ftp_servers(&mut world, server, queues);
        world.run_for(Duration::from_millis(1));
        let jobs = (0..40).map(|number| match number % 2 {
            0 => Job::Fetch(FILE),
            _ => Job::Store(format!("/up-{number}"), 150_000 + number),
        });
        let clients: Vec<Owner> = jobs
            .enumerate()
            .map(|(number, job)| {
                let ip = if number % 4 < 2 { "10.0.0.2" } else { "fd00::2" };
                let start = world.now() + Duration::from_millis(2) * number as u32;
                world.add_app(client, FtpClient::new(addr(ip, 21), job, start))
            })
            .collect();
        let client_of = |world: &World, owner| {
            world.app::<FtpClient>(client, owner).map(|app| (app.is_done(), app.error.clone()))
        };
        world.run_until(120 * SECOND, |world| {
            clients.iter().all(|owner| client_of(world, *owner).is_some_and(|(done, _)| done))
        });
        for owner in &clients {
            assert_eq!(client_of(&world, *owner), Some((true, None)), "{queues} queues, {spread:?}");
        }
        let mut stored = 0;
        for owner in servers {
            let files = &world.app::<Served>(server, owner).expect("a server").files;
            for number in (1..40).step_by(2) {
                let Some(content) = files.content(&format!("/up-{number}")) else { continue };
                assert_eq!(content.len() as u64, 150_000 + number);
                assert_eq!(Pattern::new(0).check(0, content), Ok(()));
                stored += 1;
            }
            assert_eq!(files.open_count(), 0);
        }
        assert_eq!(stored, 20);
        let sessions: Vec<_> =
            world.host(server).cores().iter().map(|core| core.stack.counters().tcp_established).collect();
        assert_eq!(sessions.iter().sum::<u64>(), 80, "control and data connections: {sessions:?}");
        assert!(sessions.iter().all(|count| *count > 5), "{sessions:?}");
    }
}

/// Runs iperf3 with eight streams; the goodput in bits per second, and the bytes that were passed from core to core for
/// each byte that was received.
fn iperf3(queues: u16, spread: Spread, reverse: bool) -> (f64, f64) {
    let (mut world, client, server) = world(5, queues, spread, 0.0);
    let random = world.random(1);
    let served = Served::new(MemoryFiles::new(), random, |owner| {
        let listen = vec![ListenAddr { ip: None, port: 5_201 }];
        Box::new(iperf3::Server::new(iperf3::Config { owner, listen, ..iperf3::Config::default() }))
    });
    world.add_app(server, served);
    world.run_for(Duration::from_millis(1));
    let time = 2 * SECOND;
    let params = iperf3::Params { parallel: 8, reverse, time, ..iperf3::Params::default() };
    let config = iperf3::client::Config { params, ..iperf3::client::Config::new(addr("10.0.0.2", 5_201)) };
    let random = world.random(2);
    let app = world.add_app(client, Iperf3Client::new(config, random));
    let is_done = |world: &mut World| world.app::<Iperf3Client>(client, app).is_some_and(|app| app.is_done());
    assert!(world.run_until(60 * SECOND, is_done));
    let client = world.app::<Iperf3Client>(client, app).expect("the client").client();
    assert_eq!(client.outcome(), Some(Ok(())));
    let report = client.report();
    assert!(report.has_server && report.streams.len() == 8, "{report:?}");
    let moved = report.sum(!reverse, false).bytes as f64;
    let established: Vec<_> =
        world.host(server).cores().iter().map(|core| core.stack.counters().tcp_established).collect();
    assert_eq!((established[0], established.iter().sum::<u64>()), (9, 9), "all are on the first core");
    let passed: u64 = world.host(server).cores().iter().map(|core| core.letters().packet_bytes).sum();
    (moved * 8.0 / time.as_secs_f64(), passed as f64 / moved)
}

#[test]
fn iperf3_with_parallel_streams_works_on_one_core_of_four() {
    let Spread::Hash { key, indirection, .. } = Spread::default() else { unreachable!() };
    let steered = Spread::Hash { key, indirection, ports: vec![(5_201, 0)] };
    for (name, spread, least, most) in [
        ("hash", Spread::default(), 0.5, 2.5),
        ("follow", Spread::Follow, 0.0, 0.02),
        ("port steered", steered, 0.0, 0.0001),
    ] {
        for reverse in [false, true] {
            let (goodput_bps, passed) = iperf3(4, spread.clone(), reverse);
            println!(
                "{name}, reverse {reverse}: {:.0} Mbit/s, {passed:.4} bytes passed per byte",
                goodput_bps / 1e6
            );
            // What is passed on in reverse are acknowledgements.
            let (least, most) = if reverse { (least / 100.0, most / 10.0) } else { (least, most) };
            assert!(goodput_bps > 900e6, "{name}: {goodput_bps}");
            assert!((least..=most).contains(&passed), "{name}, reverse {reverse}: {passed}");
        }
    }
}
