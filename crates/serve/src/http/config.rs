//! Settings of the HTTP server and their defaults.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{ListenAddr, ListenOptions};

/// The format of access log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// The Common Log Format of NCSA httpd.
    Common,
    /// Common, with referrer and user agent.
    Combined,
    /// One JSON object a line, with the duration too.
    Json,
}

/// All settings. `Config::default()` is ready to serve on port 80.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where to listen. Default: port 80 on all addresses.
    pub listen: Vec<ListenAddr>,
    /// Settings of listeners and of the connections that they accept.
    pub options: ListenOptions,
    /// Names that are looked for, in this order, when a directory is asked for. Default: `index.html`.
    pub index_files: Vec<String>,
    /// Whether a directory without an index file is listed; otherwise it is 403. Default: true.
    pub autoindex: bool,
    /// Whether names that begin with a dot are served and listed. Default: false, but for `/.well-known` (RFC 8615).
    pub hidden_files: bool,
    /// Whether `FILE.br`, `FILE.zst` or `FILE.gz` is sent instead of `FILE` to clients that take it, where it is
    /// shorter and not older. Default: true.
    pub precompressed: bool,
    /// Whether `/memory/SIZE` and `/memory/null` are there (see [`crate::memory`]). Default: true.
    pub memory_files: bool,
    /// Whether responses carry `Server: linerate`. Default: true.
    pub server_header: bool,
    /// How requests are logged (`log` target `http::access`, level info); `None` for not at all. Default: combined.
    pub access_log: Option<LogFormat>,
    /// A path that answers with the server's counters as JSON, as `/.linerate/status`: as [`VirtualPath`](linerate_transport::VirtualPath) has it,
    /// else no request meets it. Memory files come first. Default: none.
    pub status_path: Option<String>,
    /// Bounds.
    pub limits: Limits,
    /// Deadlines.
    pub timeouts: Timeouts,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: alloc::vec![ListenAddr { ip: None, port: 80 }],
            options: ListenOptions::default(),
            index_files: alloc::vec![String::from("index.html")],
            autoindex: true,
            hidden_files: false,
            precompressed: true,
            memory_files: true,
            server_header: true,
            access_log: Some(LogFormat::Combined),
            status_path: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// Bounds on what peers can make the server hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a request line; 414 beyond. Default: 8 KiB.
    pub request_line: usize,
    /// Bytes of all header fields of a request (of which there may be 100); 431 beyond. Default: 16 KiB.
    pub header_fields: usize,
    /// Bytes of a request body that are read and thrown away; 413 beyond, but for `/memory/null`. Default: 1 MiB.
    pub body: u64,
    /// Connections at once. Beyond nine tenths of them, one that waits for its client (or hardly moves) gives way for each
    /// newcomer, as [`crate::admission`] says; where none can, the newcomer gets 503. Default: 16,384.
    pub connections: usize,
    /// Connections at once from one address, or one /64 network of IPv6; for more of them, others of the same address
    /// give way, or they get 503. Default: 4,096.
    pub connections_per_address: usize,
    /// Bytes of unfinished or waiting heads of all connections together; 503 beyond. Default: 8 MiB.
    pub head_memory: usize,
    /// Files open at once; requests that need another one wait for their turn. Default: 256.
    pub open_files: usize,
    /// Paths whose file (or absence) is remembered. Default: 1,024.
    pub cache_entries: usize,
    /// Longest file whose content is remembered, in bytes; at most 64 KiB. Default: 16 KiB.
    pub cached_file: usize,
    /// Bytes of remembered content in all. Default: 8 MiB.
    pub cache_memory: usize,
    /// Answers that are kept ready for requests that come again, byte by byte the same, within a second; of content in memory
    /// only. The files are asked all the same whether they have changed. Default: 32.
    pub ready_answers: usize,
    /// Most entries that a directory listing shows. Default: 10,000.
    pub listing_entries: usize,
    /// Directory listings under way at once; 503 beyond. Default: 16.
    pub listings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line: 8 << 10,
            header_fields: 16 << 10,
            body: 1 << 20,
            connections: 16_384,
            connections_per_address: 4_096,
            head_memory: 8 << 20,
            open_files: 256,
            cache_entries: 1_024,
            cached_file: 16 << 10,
            cache_memory: 8 << 20,
            ready_answers: 32,
            listing_entries: 10_000,
            listings: 16,
        }
    }
}

/// Deadlines after which a connection's resources come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// From the first byte of a request to the end of its head; 408 then. Default: 10 s.
    pub head: Duration,
    /// Without a request; the connection is closed then. Default: 60 s.
    pub idle: Duration,
    /// Period in which a peer must take (or send) at least [`Timeouts::progress_bytes`] of a body; the connection is
    /// reset otherwise. Default: 60 s.
    pub progress: Duration,
    /// Bytes per [`Timeouts::progress`]. Default: 4,096, which is 68 bytes a second.
    pub progress_bytes: u64,
    /// For the file system to open and read what a request asks for; 503 then. Default: 30 s.
    pub file: Duration,
    /// For the peer to finish after we did, while what it still sends is thrown away. Default: 2 s.
    pub linger: Duration,
    /// How long what was learned of a file is believed without asking the file system again. Default: not at all;
    /// requests that come together share an answer, and content that did not change is not read again.
    pub cache: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            progress: Duration::from_secs(60),
            progress_bytes: 4_096,
            file: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            cache: Duration::ZERO,
        }
    }
}
