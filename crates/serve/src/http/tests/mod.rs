//! The server as its clients see it, over transport and files in memory.

mod cut_short;
mod life;
mod limits;
mod ready;
mod requests;
mod responses;

use super::*;
use crate::Service as _;
use crate::testing::{OWNER, World};
use linerate_transport::{ConnId, ListenAddr};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

pub(super) const PORT: u16 = 80;
/// The date of the world's first second.
pub(super) const DATE: &str = "Fri, 02 Jan 2026 03:04:05 GMT";
/// The modification time of its files.
pub(super) const MODIFIED: &str = "Thu, 29 Feb 2024 12:00:00 GMT";

/// A server, its world, and some files.
pub(super) struct Rig {
    pub world: World,
    pub server: Server,
    clients: u16,
}

pub(super) fn config() -> Config {
    Config { listen: std::vec![ListenAddr { ip: None, port: PORT }], ..Config::default() }
}

/// Longer than what is cached.
pub(super) fn big() -> Vec<u8> {
    (0..100_000u32).map(|i| (i % 249) as u8).collect()
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with(config())
    }

    pub fn with(config: Config) -> Rig {
        let mut world = World::new();
        for dir in ["/sub", "/list", "/sub/in dir"] {
            world.files.add_dir(dir);
        }
        world.files.add_file("/hello.txt", b"hello, world");
        world.files.add_file("/empty", b"");
        world.files.add_file("/sub/index.html", b"<p>index</p>");
        world.files.add_file("/list/b.txt", b"bb");
        world.files.add_file("/list/.secret", b"s");
        world.files.add_file("/big", &big());
        let mut rig = Rig { world, server: Server::new(OWNER, config), clients: 1000 };
        rig.world.start(&mut rig.server);
        rig
    }

    /// A client at 10.0.0.9.
    pub fn connect(&mut self) -> ConnId {
        self.clients += 1;
        self.connect_from(&format!("10.0.0.9:{}", self.clients))
    }

    pub fn connect_from(&mut self, remote: &str) -> ConnId {
        let conn = self.world.connect(remote.parse().unwrap(), PORT);
        self.run();
        conn
    }

    pub fn run(&mut self) {
        self.world.run(&mut self.server);
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.world.advance(&mut self.server, core::time::Duration::from_millis(ms));
    }

    pub fn send(&mut self, conn: ConnId, bytes: impl AsRef<[u8]>) {
        self.world.client_send(conn, bytes.as_ref());
        self.run();
    }

    pub fn received(&mut self, conn: ConnId) -> Vec<u8> {
        self.run();
        self.world.received(conn)
    }

    pub fn text(&mut self, conn: ConnId) -> String {
        String::from_utf8_lossy(&self.received(conn)).into_owned()
    }

    pub fn exchange(&mut self, conn: ConnId, bytes: impl AsRef<[u8]>) -> String {
        self.send(conn, bytes);
        self.text(conn)
    }

    /// One request on a connection of its own; what came back.
    pub fn ask(&mut self, request: &str) -> String {
        let conn = self.connect();
        let answer = self.exchange(conn, request);
        self.world.net.client_reset(conn);
        self.run();
        answer
    }

    /// GET of a target with more fields (each ended by CRLF).
    pub fn get(&mut self, target: &str, fields: &str) -> String {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
    }

    /// The entity tag of a file.
    pub fn etag(&self, path: &str) -> String {
        let node = &self.world.files.nodes[path];
        format!("\"{:x}-{:x}-{:x}\"", node.inode, node.data.len(), node.modified_ns)
    }

    /// The fields that describe a file.
    pub fn describe(&self, path: &str) -> String {
        let etag = self.etag(path);
        format!("Accept-Ranges: bytes\r\nLast-Modified: {MODIFIED}\r\nETag: {etag}\r\n")
    }

    /// Nothing is held for anybody.
    pub fn check_at_rest(&mut self) {
        self.run();
        let gauges = self.server.gauges();
        assert_eq!((gauges.connections, gauges.head_memory, gauges.listings), (0, 0, 0));
        assert_eq!(self.world.net.held(), 0, "connections held");
        assert_eq!(self.world.files.open_count() as u64, gauges.open_files, "files open");
        // They are closed when nobody asks for them.
        assert_eq!(self.server.poll_timeout().is_some(), gauges.open_files > 0);
    }
}

/// The status line and common fields of a response.
pub(super) fn head(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nServer: linerate\r\nDate: {DATE}\r\n")
}

/// The page of an error or redirect.
pub(super) fn page(status: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><title>{status}</title></head>\n\
         <body><h1>{status}</h1></body></html>\n"
    )
}

/// A whole response with such a page; `fields` come before Content-Type.
pub(super) fn page_response(status: &str, fields: &str) -> String {
    let page = page(status);
    let kind = "Content-Type: text/html; charset=utf-8";
    format!("{}{fields}{kind}\r\nContent-Length: {}\r\n\r\n{page}", head(status), page.len())
}

pub(super) fn status_of(response: &str) -> &str {
    response.get(9..12).unwrap_or("none")
}

/// Head and body.
pub(super) fn split(response: &str) -> (&str, &str) {
    response.split_once("\r\n\r\n").unwrap_or((response, ""))
}

pub(super) fn field<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    split(response).0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

pub(super) const HELLO: &str = "GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// The response to [`HELLO`].
pub(super) fn hello(rig: &Rig) -> String {
    let kind = "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 12\r\n";
    let what = rig.describe("/hello.txt");
    format!("{}{kind}{what}Vary: Accept-Encoding\r\n\r\nhello, world", head("200 OK"))
}

pub(super) fn owned(text: &str) -> String {
    text.to_string()
}
