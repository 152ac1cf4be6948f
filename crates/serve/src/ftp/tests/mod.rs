//! Tests of the server as a whole, over an in-memory transport.

mod ascii;
mod cut_short;
mod data;
mod files;
mod left_over;
mod limits;
mod login;
mod parcels;
mod random;
mod states;
mod stored;
mod transfers;

use super::{Config, Server, User};
use crate::Service;
use crate::testing::{OWNER, World};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::ConnId;

/// A server with some files, and one client's control connection.
pub(super) struct Ftp {
    pub world: World,
    pub server: Server,
    pub control: ConnId,
}

/// The password "secret", hashed with less work than [`super::hash_password`] takes, because many tests log in.
const SECRET: &str =
    "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHRzYWx0$WHwbVkQ5XzAMaltcqwxy+X9v0VxYTVTjS9BRTrowawM";

/// Anna may write, with the password "secret".
pub(super) fn config() -> Config {
    let password_hash = SECRET.into();
    Config { users: vec![User { name: "anna".into(), password_hash }], writable: true, ..Config::default() }
}

pub(super) const PEER: &str = "10.0.0.9:5000";

impl Ftp {
    /// Not logged in; the greeting was read.
    pub fn new() -> Ftp {
        Ftp::with(config())
    }

    pub fn with(config: Config) -> Ftp {
        let mut world = World::new();
        world.files.add_file("/a.txt", b"one\ntwo\n");
        world.files.add_file("/b.bin", &(0..=255).cycle().take(200_000).collect::<Vec<u8>>());
        world.files.add_file("/empty", b"");
        world.files.add_dir("/sub");
        world.files.add_file("/sub/x y", b"xy");
        let mut server = Server::new(OWNER, config).unwrap();
        world.start(&mut server);
        let control = world.connect(PEER.parse().unwrap(), 21);
        let mut ftp = Ftp { world, server, control };
        assert!(ftp.replies().starts_with("220 "));
        ftp
    }

    /// Logged in as anna, TYPE I.
    pub fn anna() -> Ftp {
        let mut ftp = Ftp::new();
        ftp.log_in_anna();
        ftp
    }

    pub fn log_in_anna(&mut self) {
        self.expect("USER anna", "331");
        self.expect("PASS secret", "230");
        self.expect("TYPE I", "200");
    }

    /// Logged in as anonymous, TYPE I.
    pub fn anonymous() -> Ftp {
        let mut ftp = Ftp::new();
        ftp.expect("USER anonymous", "331");
        ftp.expect("PASS me@example.com", "230");
        ftp.expect("TYPE I", "200");
        ftp
    }

    pub fn run(&mut self) {
        self.world.run(&mut self.server);
    }

    pub fn advance(&mut self, time: Duration) {
        self.world.advance(&mut self.server, time);
    }

    /// What came on the control connection.
    pub fn replies(&mut self) -> String {
        self.run();
        String::from_utf8(self.world.received(self.control)).unwrap()
    }

    pub fn send(&mut self, line: &str) {
        self.world.client_send(self.control, format!("{line}\r\n").as_bytes());
    }

    /// Sends a line and answers the replies.
    pub fn cmd(&mut self, line: &str) -> String {
        self.send(line);
        self.replies()
    }

    /// Sends a line and looks at the codes of the replies: `codes` are separated by spaces.
    #[track_caller]
    pub fn expect(&mut self, line: &str, expected: &str) -> String {
        let replies = self.cmd(line);
        assert_eq!(codes(&replies), expected, "{line}: {replies}");
        replies
    }

    #[track_caller]
    pub fn expect_replies(&mut self, expected: &str) -> String {
        let replies = self.replies();
        assert_eq!(codes(&replies), expected, "{replies}");
        replies
    }

    /// The port of a new passive listener.
    pub fn epsv(&mut self) -> u16 {
        let reply = self.expect("EPSV", "229");
        reply.split('|').nth(3).unwrap().parse().unwrap()
    }

    /// Agrees on a passive data connection and makes it.
    pub fn passive(&mut self) -> ConnId {
        let port = self.epsv();
        let data = self.world.connect(at_port(PEER, 5001), port);
        self.run();
        data
    }

    /// RETR or a listing over a passive connection.
    #[track_caller]
    pub fn fetch(&mut self, line: &str) -> Vec<u8> {
        let data = self.passive();
        self.expect(line, "150 226");
        assert!(self.world.net.client_sees_end(data));
        self.world.received(data)
    }

    /// STOR over a passive connection.
    #[track_caller]
    pub fn store(&mut self, line: &str, content: &[u8]) -> String {
        let data = self.passive();
        self.world.client_send(data, content);
        self.world.net.client_finish(data);
        self.expect(line, "150 226")
    }

    /// The client ends the data of an upload, and the server believes it.
    pub fn end_upload(&mut self, data: ConnId) {
        self.world.net.client_finish(data);
        self.run();
        self.advance(Duration::from_millis(10));
    }

    pub fn content(&self, path: &str) -> &[u8] {
        self.world.files.content(path).unwrap_or_else(|| panic!("{path} is missing"))
    }

    /// Nothing is held any more.
    #[track_caller]
    pub fn assert_released(&mut self) {
        self.run();
        assert_eq!(self.server.sessions(), 0);
        assert_eq!(self.world.net.held(), 0, "connections");
        assert_eq!(self.world.files.open_count(), 0, "files");
        assert_eq!(self.server.poll_timeout(), None);
        assert!(self.server.is_idle());
    }
}

pub(super) fn at_port(addr: &str, port: u16) -> SocketAddr {
    let mut addr: SocketAddr = addr.parse().unwrap();
    addr.set_port(port);
    addr
}

/// The codes of replies (not of the lines within them), separated by spaces.
pub(super) fn codes(replies: &str) -> String {
    let mut codes: Vec<&str> = Vec::new();
    let mut within: Option<&str> = None;
    for line in replies.lines() {
        let code = line.get(..3).unwrap_or("");
        match within {
            Some(first) if line.starts_with(first) && line.get(3..4) == Some(" ") => {
                codes.push(code);
                within = None;
            }
            Some(_) => {}
            None if line.get(3..4) == Some("-") => within = Some(code),
            None => codes.push(code),
        }
    }
    assert_eq!(within, None, "a reply without an end: {replies}");
    codes.join(" ")
}
