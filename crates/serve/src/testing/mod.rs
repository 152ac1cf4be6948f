//! An in-memory world for the tests of the servers: transport, files and time, all deterministic. Only in tests and with
//! the feature `testing`, for the fuzz targets.
//!
//! A test connects clients with [`World::connect`], sends with [`World::client_send`], lets the service run with
//! [`World::run`], and looks at what the client got with [`World::received`].
#![allow(missing_docs, reason = "tests and fuzz targets of this repository are its only users")]
#![allow(clippy::missing_panics_doc, clippy::new_without_default, reason = "as above")]

pub mod files;
#[cfg(test)]
pub mod logged;
pub mod net;

pub use files::MemoryFiles;
pub use net::MemoryNet;

use crate::{Context, Service};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{ConnId, Event, FileDone, Files as _, Owner, Transport as _};
use linerate_wire::units::Instant;

/// The owner that services under test should use.
pub const OWNER: Owner = Owner(7);

/// Network, files, time and random numbers of one test.
pub struct World {
    pub net: MemoryNet,
    pub files: MemoryFiles,
    pub now: Instant,
    /// 2026-01-02T03:04:05Z.
    /// Which turn the loop is in, where it is told.
    pub turn: Option<u64>,
    pub wall_ns: i64,
    random: u64,
}

impl World {
    pub fn new() -> Self {
        World {
            net: MemoryNet::new(),
            files: MemoryFiles::new(),
            now: Instant::from_millis(1),
            turn: None,
            wall_ns: 1_767_323_045_000_000_000,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Calls `f` with a context of this moment.
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let state = &mut self.random;
        let mut random = || {
            // xorshift64*, seeded once: the same numbers in every run.
            *state ^= *state >> 12;
            *state ^= *state << 25;
            *state ^= *state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let result = f(&mut Context {
            net: &mut self.net,
            files: &mut self.files,
            now: self.now,
            turn: self.turn,
            wall_ns: self.wall_ns,
            random: &mut random,
        });
        for (file, offset, bytes, error) in self.net.stored.drain(..) {
            self.files.write(file, offset as usize, bytes).expect("an open file");
            if let Some(error) = error {
                self.files.fail_writes(file, error);
            }
        }
        result
    }

    pub fn start(&mut self, service: &mut dyn Service) {
        self.with(|ctx| service.start(ctx)).expect("the service starts");
    }

    /// Lets the service handle events, file completions and due deadlines until nothing happens any more. Everything
    /// that it queues is delivered to the clients (but for stalled ones) as the service goes on.
    pub fn run(&mut self, service: &mut dyn Service) {
        for _ in 0..100_000 {
            self.net.deliver(&self.files);
            let event: Option<Event> = self.net.poll_event();
            if let Some(event) = event {
                assert_eq!(event.owner, OWNER);
                self.with(|ctx| service.handle_event(ctx, event));
                continue;
            }
            let done: Option<FileDone> = self.files.poll_done();
            if let Some(done) = done {
                assert_eq!(done.owner, OWNER);
                self.with(|ctx| service.handle_file(ctx, done));
                continue;
            }
            match service.poll_timeout() {
                Some(at) if at <= self.now => self.with(|ctx| service.handle_timeout(ctx)),
                _ => return,
            }
        }
        panic!("the service never comes to rest");
    }

    /// Lets time pass, stopping at each deadline of the service.
    pub fn advance(&mut self, service: &mut dyn Service, time: Duration) {
        let end = self.now + time;
        self.run(service);
        while let Some(at) = service.poll_timeout().filter(|at| *at <= end) {
            self.set_now(at.max(self.now));
            self.run(service);
        }
        self.set_now(end);
        self.run(service);
    }

    fn set_now(&mut self, now: Instant) {
        self.wall_ns += i64::try_from((now - self.now).as_nanos()).unwrap();
        self.now = now;
    }

    /// A client at `remote` connects to the listener on `port`.
    pub fn connect(&mut self, remote: SocketAddr, port: u16) -> ConnId {
        self.net.client_connect(remote, port)
    }

    pub fn client_send(&mut self, conn: ConnId, bytes: &[u8]) {
        self.net.client_send(conn, bytes);
    }

    /// All that the client received since the last call.
    pub fn received(&mut self, conn: ConnId) -> Vec<u8> {
        self.net.deliver(&self.files);
        self.net.take_received(conn)
    }

    /// Sends, runs, and returns what came back, as text.
    pub fn exchange(
        &mut self,
        service: &mut dyn Service,
        conn: ConnId,
        bytes: &[u8],
    ) -> alloc::string::String {
        self.client_send(conn, bytes);
        self.run(service);
        alloc::string::String::from_utf8_lossy(&self.received(conn)).into_owned()
    }
}

#[cfg(test)]
#[test]
fn the_world_answers_like_a_transport() {
    use linerate_transport::{ListenAddr, ListenOptions, Payload, Ready, Source};
    let mut world = World::new();
    let listener =
        world.net.listen(OWNER, ListenAddr { ip: None, port: 80 }, &ListenOptions::default()).unwrap();
    let conn = world.connect("10.0.0.9:1000".parse().unwrap(), 80);
    assert_eq!(world.net.poll_event().unwrap().source, Source::Listener(listener));
    assert_eq!(world.net.accept(listener), Some(conn));
    world.client_send(conn, b"hello");
    let event = world.net.poll_event().unwrap();
    assert!(event.ready.contains(Ready::READABLE));
    assert_eq!(world.net.peek(conn), b"hello");
    world.net.consume(conn, 5);
    world.net.send(conn, Payload::Static(b"bye")).unwrap();
    assert_eq!(world.net.unsent(conn), 3);
    assert_eq!(world.received(conn), b"bye");
    assert!(world.net.poll_event().unwrap().ready.contains(Ready::SENT));
}
