//! Kernel sockets against each other over loopback, and against the standard library's.

mod ending;
mod files;
mod limits;
mod parcels;
mod queue;
mod sleep;
mod store;
mod stream;
mod udp;

use super::{KernelConfig, KernelTransport};
use crate::files::FileAccess;
use linerate_transport::{
    ConnId, Event, ListenAddr, ListenOptions, ListenerId, Owner, Payload, Ready, SendError, SocketOptions,
    Source, Transport,
};
use linerate_wire::units::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

pub(super) const SERVER: Owner = Owner(1);
pub(super) const CLIENT: Owner = Owner(2);
/// After this many waits of 50 ms without what a test waits for, it is stuck.
const PATIENCE: u32 = 1200;

/// One transport with both ends of every connection, and the events it reported.
pub(super) struct Rig {
    pub(super) net: KernelTransport,
    start: std::time::Instant,
    /// Virtual time that passed on top of the real one.
    pub(super) skipped_ns: u64,
    pub(super) seen: HashMap<Source, Ready>,
}

impl Rig {
    pub(super) fn new() -> Rig {
        Rig::with(KernelConfig::default(), FileAccess::none())
    }

    pub(super) fn with(config: KernelConfig, files: FileAccess) -> Rig {
        let net = KernelTransport::new(config, files).unwrap();
        Rig { net, start: std::time::Instant::now(), skipped_ns: 0, seen: HashMap::new() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64 + self.skipped_ns)
    }

    /// One turn and its events; waits for the descriptor if there is nothing to do.
    pub(super) fn step(&mut self) -> bool {
        let idle = !self.net.pending();
        if idle {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut fds = [PollFd::new(&self.net, PollFlags::IN)];
            poll(&mut fds, Some(&timeout)).unwrap();
        }
        self.net.turn(self.now());
        let mut busy = false;
        while let Some(Event { owner, source, ready }) = self.net.poll_event() {
            assert!(!ready.is_empty());
            if let Source::Listener(_) = source {
                assert_eq!((owner, ready), (SERVER, Ready::READABLE));
            }
            *self.seen.entry(source).or_default() |= ready;
            busy = true;
        }
        busy || !idle
    }

    /// Steps until `condition` holds.
    pub(super) fn wait(&mut self, what: &str, mut condition: impl FnMut(&mut Rig) -> bool) {
        let mut idle = 0;
        while !condition(self) {
            idle = if self.step() { 0 } else { idle + 1 };
            assert!(idle < PATIENCE, "stuck while waiting until {what}");
        }
    }

    /// Steps a little, to see that nothing happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..4 {
            self.step();
        }
    }

    /// Whether `conn` reported all of `ready` since [`Rig::forget`].
    pub(super) fn saw(&self, conn: ConnId, ready: Ready) -> bool {
        self.seen.get(&Source::Conn(conn)).is_some_and(|seen| seen.contains(ready))
    }

    pub(super) fn forget(&mut self, conn: ConnId) {
        self.seen.remove(&Source::Conn(conn));
    }

    pub(super) fn listen(&mut self, ip: Option<&str>) -> (ListenerId, SocketAddr) {
        self.listen_with(ip, &ListenOptions::default())
    }

    pub(super) fn listen_with(
        &mut self,
        ip: Option<&str>,
        options: &ListenOptions,
    ) -> (ListenerId, SocketAddr) {
        let ip: Option<IpAddr> = ip.map(|ip| ip.parse().unwrap());
        let listener = self.net.listen(SERVER, ListenAddr { ip, port: 0 }, options).unwrap();
        let addr = self.net.listener_addr(listener).unwrap();
        assert_ne!(addr.port(), 0);
        (listener, addr)
    }

    pub(super) fn connect(&mut self, to: SocketAddr) -> ConnId {
        self.net.connect(CLIENT, None, to, &SocketOptions::default()).unwrap()
    }

    pub(super) fn accept(&mut self, listener: ListenerId) -> ConnId {
        let mut conn = None;
        self.wait("a connection is accepted", |rig| {
            conn = rig.net.accept(listener);
            conn.is_some()
        });
        conn.unwrap()
    }

    /// A connection: the client's end, the server's end, and the listener.
    pub(super) fn pair(&mut self, ip: &str) -> (ConnId, ConnId) {
        let (listener, addr) = self.listen(Some(ip));
        let client = self.connect(addr);
        let server = self.accept(listener);
        self.wait("the client is connected", |rig| rig.saw(client, Ready::WRITABLE));
        self.forget(client);
        (client, server)
    }

    /// Reads and consumes what is there.
    pub(super) fn read_some(&mut self, conn: ConnId, mut sink: impl FnMut(&[u8])) -> usize {
        let mut total = 0;
        loop {
            let piece = self.net.peek(conn);
            if piece.is_empty() {
                return total;
            }
            sink(piece);
            let len = piece.len();
            total += len;
            self.net.consume(conn, len);
        }
    }

    /// Reads `len` bytes and leaves what is behind them.
    pub(super) fn read(&mut self, conn: ConnId, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.wait("all bytes are read", |rig| {
            loop {
                let piece = rig.net.peek(conn);
                let now = piece.len().min(len - bytes.len());
                if now == 0 {
                    return bytes.len() == len;
                }
                bytes.extend_from_slice(&piece[..now]);
                rig.net.consume(conn, now);
            }
        });
        bytes
    }

    /// Sends pieces of the test pattern until the queue is full or `total` is reached; returns the new position.
    pub(super) fn send_pattern(&mut self, conn: ConnId, mut at: u64, total: u64) -> u64 {
        while at < total {
            let piece = pattern(at, (total - at).min(60_000));
            match self.net.send(conn, Payload::Static(piece)) {
                Ok(()) => at += piece.len() as u64,
                Err(SendError::Full) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
        at
    }
}

/// Bytes that show loss, repetition and reordering: the row of 251 repeats at no power of two.
static PATTERN: [u8; 251 * 512] = {
    let mut bytes = [0; 251 * 512];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i % 251) as u8;
        i += 1;
    }
    bytes
};

/// At most `len` bytes of the endless pattern from `at` on.
pub(super) fn pattern(at: u64, len: u64) -> &'static [u8] {
    let start = (at % 251) as usize;
    let len = (len as usize).min(PATTERN.len() - start);
    &PATTERN[start..start + len]
}

/// Checks that `piece` is the pattern from `at` on; returns the next position.
pub(super) fn check_pattern(at: u64, piece: &[u8]) -> u64 {
    let mut at = at;
    let mut rest = piece;
    while !rest.is_empty() {
        let expected = pattern(at, rest.len() as u64);
        let (now, later) = rest.split_at(expected.len());
        assert!(now == expected, "wrong bytes near {at}");
        at += now.len() as u64;
        rest = later;
    }
    at
}

#[test]
fn the_descriptor_can_be_polled_with_others() {
    let rig = Rig::new();
    let mut fds = [PollFd::from_borrowed_fd(rig.net.as_fd(), PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap(), 0);
    assert!(!rig.net.pending());
    assert_eq!(rig.net.poll_timeout(), None);
}
