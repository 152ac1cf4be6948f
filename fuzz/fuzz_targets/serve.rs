//! Each server in the in-memory world, with clients that send arbitrary bytes, stall, finish and reset.
//!
//! The first byte picks the server. Then come steps: a byte that picks one, a byte that says how long its data is, and
//! the data. At the end all clients are gone, and so must be everything that the server held for them.
#![no_main]

use core::time::Duration;
use libfuzzer_sys::fuzz_target;
use linerate_serve::testing::{OWNER, World};
use linerate_serve::{Service, ftp, http, iperf3};
use linerate_transport::ConnId;

/// Most clients at once.
const CLIENTS: usize = 8;
/// A password that costs next to nothing to check: the fuzzer tries thousands a second.
const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$HQ5ka1gdGbW0VDmmW7cPdLVbBzJFiaXSYzYdPYdYHkk";

fn server(pick: u8) -> (Box<dyn Service>, u16) {
    match pick % 3 {
        0 => (Box::new(http::Server::new(OWNER, http::Config::default())), 80),
        1 => {
            let user = ftp::User { name: "eric".into(), password_hash: HASH.into() };
            let config = ftp::Config { users: vec![user], writable: true, ..ftp::Config::default() };
            let server = ftp::Server::new(OWNER, config.clone())
                .or_else(|_| ftp::Server::new(OWNER, ftp::Config { users: Vec::new(), ..config }));
            (Box::new(server.expect("the defaults are right")), 21)
        }
        _ => (Box::new(iperf3::Server::new(iperf3::Config { owner: OWNER, ..Default::default() })), 5201),
    }
}

fn step(world: &mut World, clients: &mut Vec<ConnId>, port: u16, pick: u8, data: &[u8]) {
    let at = usize::from(pick >> 4) % clients.len().max(1);
    let client = clients.get(at).copied();
    match (pick & 15, client) {
        (0, _) if clients.len() < CLIENTS => {
            clients.push(world.connect("192.168.1.1:40000".parse().expect("an address"), port));
        }
        // The data connections of FTP: whatever else listens, and whatever the server connects to.
        (1, _) if clients.len() < CLIENTS => {
            let listening = world.net.listening();
            let other = listening[usize::from(pick >> 4) % listening.len()];
            clients.push(world.connect("192.168.1.1:40001".parse().expect("an address"), other));
        }
        (2, _) => {
            if let Some((conn, _)) = world.net.connecting.first().copied() {
                world.net.client_accept(conn);
                clients.push(conn);
            }
        }
        (3, _) => {
            if let Some((conn, _)) = world.net.connecting.first().copied() {
                world.net.client_refuse(conn);
            }
        }
        (4, Some(client)) => world.net.client_finish(client),
        (5, Some(client)) => world.net.client_reset(client),
        (6, Some(client)) => world.net.client_stall(client, true),
        (7, Some(client)) => world.net.client_stall(client, false),
        (8, _) => {
            if let Some(socket) = world.net.udp_on(port) {
                world.net.client_datagram(socket, "192.168.1.1:40002".parse().expect("an address"), data);
            }
        }
        (9, _) => world.files.hold = !world.files.hold,
        (_, Some(client)) => world.client_send(client, data),
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((pick, mut rest)) = input.split_first() else { return };
    let (mut service, port) = server(*pick);
    let mut world = World::new();
    world.net.appetite = 1 << 20;
    world.files.add_dir("/dir");
    world.files.add_file("/dir/file", b"content of a file");
    world.files.add_file("/a", b"a");
    world.start(&mut *service);
    let mut clients = Vec::new();
    for _ in 0..64 {
        let [pick, len, tail @ ..] = rest else { break };
        let (data, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        step(&mut world, &mut clients, port, *pick, data);
        world.run(&mut *service);
        if *pick & 15 == 10 {
            world.advance(&mut *service, Duration::from_millis(u64::from(*len) * 10));
        }
    }
    world.files.hold = false;
    for client in clients {
        world.net.client_reset(client);
    }
    while let Some((conn, _)) = world.net.connecting.first().copied() {
        world.net.client_refuse(conn);
    }
    world.run(&mut *service);
    // FTP sessions wait for nothing when their client is gone; UDP tests and half-open ones end by deadline.
    world.advance(&mut *service, Duration::from_secs(200));
    assert_eq!(world.net.held(), 0, "connections are left");
    assert_eq!(world.files.open_count(), 0, "files are left open");
});
