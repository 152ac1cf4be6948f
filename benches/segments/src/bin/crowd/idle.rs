//! What an idle connection of our HTTP server takes in memory.

use crate::asking::{Crowd, Machine, config, files};
use crate::weight::{bytes, weighed};
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_serve::http::{Config, Server};
use linerate_serve::{Loop, Service as _};
use linerate_transport::{ListenAddr, Owner, Transport as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Longest answer that is expected.
const ANSWER: usize = 2_048;
/// Most turns until one is answered.
const MOST_TURNS: usize = 1_000_000;

/// On our own stack: bytes of all tables, queues and connections, of stack and server, for each connection, 5 s after the
/// last of them had its answer.
pub fn own(count: usize) -> usize {
    let mut crowd = Crowd::new(count);
    crowd.connect(count);
    crowd.ask_all();
    crowd.pass(Duration::from_secs(5));
    assert_eq!(crowd.served(), count, "connections of the server");
    bytes() / count
}

/// On the kernel's sockets: the bytes of this process; what the kernel has for a socket is not among them.
pub fn kernel(count: usize) -> io::Result<usize> {
    // A descriptor at each end of each.
    linerate_linux::descriptors::raise_limit();
    let mut machine = Machine::new();
    let mut server = weighed(|| {
        let files = files()?;
        let kernel = KernelConfig { connections_max: count + 16, ..KernelConfig::default() };
        let engine = KernelTransport::new(kernel, files.access())?;
        let listen = vec![ListenAddr { ip: Some(Ipv4Addr::LOCALHOST.into()), port: 0 }];
        let http = Server::new(Owner(1), Config { listen, ..config(count) });
        let mut server = Loop::new(engine, files, http);
        server
            .with(&mut machine, |http, ctx| http.start(ctx))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        io::Result::Ok(server)
    })?;
    let listener = server.services().listeners().next().ok_or_else(|| io::Error::other("no listener"))?;
    let to: SocketAddr = server
        .engine
        .listener_addr(listener)
        .ok_or_else(|| io::Error::other("a listener without address"))?;
    let mut clients = Vec::with_capacity(count);
    let mut answer = [0; ANSWER];
    for _ in 0..count {
        let mut client = TcpStream::connect(to)?;
        client.write_all(b"GET /f354.bin HTTP/1.1\r\nHost: bench\r\n\r\n")?;
        client.set_nonblocking(true)?;
        let mut turns = 0;
        loop {
            weighed(|| {
                let came = server.take_in(&mut machine)?;
                server.serve(&mut machine).map(|served| came | served)
            })
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
            machine.now += Duration::from_micros(1);
            match client.read(&mut answer) {
                Ok(len) if answer[..len].starts_with(b"HTTP/1.1 200 ") => break,
                Ok(len) => {
                    return Err(io::Error::other(String::from_utf8_lossy(&answer[..len]).into_owned()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && turns < MOST_TURNS => turns += 1,
                Err(error) => return Err(error),
            }
        }
        clients.push(client);
    }
    machine.now += Duration::from_secs(5);
    for _ in 0..100 {
        weighed(|| {
            server.take_in(&mut machine)?;
            server.serve(&mut machine)
        })
        .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    let held = server.engine.counters().connections;
    if held != count as u64 {
        return Err(io::Error::other(format!("the server has {held} connections")));
    }
    Ok(bytes() / count)
}
