//! The command line. Every flag of `serve` is a key of the configuration file too: both are read into [`ServeOptions`].

use crate::explain::Explain;
use crate::fabric::args::Fabric;
use crate::iperf3::args::Iperf3;
use crate::lab::args::Lab;
use crate::settings::forms;
use crate::settings::{FtpOptions, HttpOptions, Iperf3Options};
use crate::sim::args::Sim;
use crate::status::address::StatusAddress;
use crate::top::args::Top;
use crate::values::{
    AddressChoice, ByteSize, CongestionName, DeviceChoice, EcnPolicy, FtpUser, Offload, PacingPolicy,
    PortRange, Span, Station, ValueError,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use linerate_lab::from_text;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;

/// Small machines that serve at line rate, and know why when they don't.
#[derive(Parser, Debug)]
#[command(name = "linerate", version, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Serve a directory over HTTP, FTP and iperf3
    #[command(long_about = SERVE_ABOUT)]
    Serve(Box<Serve>),
    /// Measure the throughput to an iperf3 server, over our own stack or the host's sockets
    Iperf3(Box<Iperf3>),
    /// Hash a password for --ftp-user: typed twice, or a line on standard input
    #[command(name = "hash-password")]
    HashPassword,
    /// Predict a chip's throughput, name the bottleneck, audit its datasheet
    Fabric(Box<Fabric>),
    /// Watch a running server: rates, connections and what limits them, drops, memory
    Top(Top),
    /// Run a network in virtual time: goodput, retransmissions, what limits, and what to do about it
    Sim(Box<Sim>),
    /// Say what limits TCP connections, from a capture or from a running server, with the arithmetic, advice and pictures
    Explain(Explain),
    /// Experiments: what a chip, a server, a network reaches, and what limits it
    Lab(Box<Lab>),
}

const SERVE_ABOUT: &str = "Serve a directory over HTTP, FTP and iperf3.

As root, linerate makes a TAP device, brings it up and serves on an address of its own TCP/IP stack; then it becomes user \
nobody, or the one that --user names. Without root, it serves on a TAP device that was made ready for you (ip tuntap add \
linerate0 mode tap user YOU), or where there is none, on the host's kernel sockets on 127.0.0.1.

SIGINT and SIGTERM finish what is under way and exit; SIGHUP reads the configuration file again.";

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Flags that are keys of the configuration file too.
    #[command(flatten)]
    pub options: ServeOptions,

    /// Read settings from this TOML file; flags win over it
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,

    /// Write what the server does when there, every second, for ui.perfetto.dev; the file holds the last 64 MiB of each thread
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,

    /// Keep the frames that the device passes, and write them there at the end, with the times of --trace; the last 64 MiB of
    /// each thread
    #[arg(long, value_name = "FILE.pcapng")]
    pub pcap: Option<PathBuf>,

    /// Log more: once for debug, twice for trace
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Form of the log on standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        <LogFormat as ValueEnum>::from_str(text, false).map_err(|_| ValueError::new("text or json"))
    }
}

from_text!(LogFormat);

/// What flags and configuration file can say. `None` and empty lists leave the default.
#[derive(Args, Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServeOptions {
    /// Directory to serve; a built-in demo directory if not given
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// What to serve on: a TAP device made for the run, an own address on an existing interface, or the host's
    /// sockets [default: tap as root, kernel otherwise]
    #[arg(long, value_name = "tap[:NAME]|packet:INTERFACE|xdp:INTERFACE|uio:NAME|rtl[:NAME]|kernel")]
    pub device: Option<DeviceChoice>,

    /// Address of the stack with its prefix length (24 and, for IPv6, 64 if not given), or dhcp, or slaac; repeatable. With
    /// kernel, the address to bind [default: 192.168.1.4/24 and fd00:6c72::4/64; with kernel 127.0.0.1]
    #[arg(long, value_name = "ADDRESS[/PREFIX]|dhcp|slaac")]
    #[serde(deserialize_with = "forms::addresses")]
    pub address: Vec<AddressChoice>,

    /// Default gateway; repeatable, one per family [default: the host side of a TAP device]
    #[arg(long, value_name = "IP")]
    #[serde(deserialize_with = "forms::gateways")]
    pub gateway: Vec<IpAddr>,

    /// Largest IP packet in bytes, 1280 to 9216 (9000 with uio:) [default: 1500, or what the interface has]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..=9216))]
    #[serde(deserialize_with = "forms::mtu")]
    pub mtu: Option<u16>,

    /// Ethernet address of ours, with tap, packet:INTERFACE or xdp:INTERFACE [default: a random one at each start]
    #[arg(long, value_name = "MAC")]
    pub mac: Option<Station>,

    /// VLAN (802.1Q) that all frames carry; with --device packet:, xdp:, tap, rtl or uio: [default: untagged]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    #[serde(deserialize_with = "forms::vlan")]
    pub vlan: Option<u16>,

    /// Queues of the device, each with a thread of its own and 4MiB of --memory, 1 to 64 [default: one for each processor,
    /// at most 4, and 16MiB of --memory for each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    #[serde(deserialize_with = "forms::queues")]
    pub queues: Option<u16>,

    /// How long each queue's thread goes on asking its device after the last packet before it sleeps, 0s to 10ms: answers
    /// come sooner, and a processor is busy meanwhile [default: 0s]
    #[arg(long, value_name = "TIME")]
    pub busy_poll: Option<Span>,

    /// TCP port of the HTTP server, 0 for none [default: 80; with kernel 8080]
    #[arg(long, value_name = "PORT")]
    #[serde(deserialize_with = "forms::port")]
    pub http_port: Option<u16>,

    /// TCP port of the FTP server, 0 for none [default: 21; with kernel 2121]
    #[arg(long, value_name = "PORT")]
    #[serde(deserialize_with = "forms::port")]
    pub ftp_port: Option<u16>,

    /// TCP and UDP port of the iperf3 server, 0 for none [default: 5201]
    #[arg(long, value_name = "PORT")]
    #[serde(deserialize_with = "forms::port")]
    pub iperf3_port: Option<u16>,

    /// FTP user with a password, or with its argon2 hash ($argon2id$..., see hash-password); repeatable
    #[arg(long, value_name = "NAME:PASSWORD")]
    #[serde(deserialize_with = "forms::ftp_users")]
    pub ftp_user: Vec<FtpUser>,

    /// Whether anonymous FTP users may read everything, what others upload, too [default: true without --ftp-user,
    /// false with]
    #[arg(long, value_name = "true|false")]
    pub ftp_anonymous: Option<bool>,

    /// Ports for passive FTP data connections, for a firewall that lets only these in [default: 49152-65535]
    #[arg(long, value_name = "FROM-TO")]
    pub ftp_passive_ports: Option<PortRange>,

    /// IPv4 address to tell FTP clients in the answer to PASV, where a router translates addresses [default: the one that
    /// the client connected to]
    #[arg(long, value_name = "IP")]
    #[serde(deserialize_with = "forms::address4")]
    pub ftp_passive_address: Option<Ipv4Addr>,

    /// Let FTP users (not anonymous) change files
    #[arg(long)]
    pub writable: bool,

    /// User to become once all is open, if started by root: a name, UID or UID:GID; root to stay root [default: nobody,
    /// or the owner of DIR where nobody may not use it]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// Offloads to use where the device has them: all, none, or a list of tx-checksum, rx-checksum, tso, gro, gather
    /// [default: all]
    #[arg(long, value_name = "all|none|LIST")]
    #[serde(deserialize_with = "forms::offload")]
    pub offload: Option<Offload>,

    /// Memory for packet buffers and sockets, 4MiB to 1TiB [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,

    /// Print a line of figures at this interval: rates, packets, connections, retransmissions, memory, CPU
    #[arg(long, value_name = "TIME")]
    pub stats: Option<Span>,

    /// Form of the log on standard error, and of what is printed on standard output [default: text]
    #[arg(long, value_enum, value_name = "text|json")]
    pub log_format: Option<LogFormat>,

    /// Serve the status over HTTP on this port, 0 for none: figures, who is connected and what limits it; for linerate
    /// top, monitoring systems and browsers. Whoever reaches the port reads it [default: off; ADDR 127.0.0.1]
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub status: Option<StatusAddress>,

    /// Let --status listen on an address that is neither of this host alone nor of a private network
    #[arg(long)]
    pub status_public: bool,

    /// Settings of every TCP socket; only in the configuration file.
    #[arg(skip)]
    pub tcp: TcpOptions,

    /// Most connections; only in the configuration file.
    #[arg(skip)]
    pub limits: LimitOptions,

    /// What else there is to set of the HTTP server; only in the configuration file.
    #[arg(skip)]
    pub http: HttpOptions,

    /// The same of the FTP server.
    #[arg(skip)]
    pub ftp: FtpOptions,

    /// The same of the iperf3 server.
    #[arg(skip)]
    pub iperf3: Iperf3Options,
}

/// The `[limits]` table of the configuration file.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table")]
pub struct LimitOptions {
    /// Most connections of all servers together [default: by memory, 45,590 with 64MiB; 16,384 with kernel].
    #[serde(deserialize_with = "forms::connections")]
    pub connections: Option<usize>,
    /// Most HTTP connections from one address [default: half of what HTTP may have].
    #[serde(deserialize_with = "forms::per_address")]
    pub http_per_address: Option<usize>,
    /// Most FTP sessions from one address [default: 50].
    #[serde(deserialize_with = "forms::per_address")]
    pub ftp_per_address: Option<usize>,
    /// Most iperf3 connections from one address [default: seven eighths of what iperf3 may have].
    #[serde(deserialize_with = "forms::per_address")]
    pub iperf3_per_address: Option<usize>,
}

/// The `[tcp]` table of the configuration file: the per-socket policies of the stack.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table")]
pub struct TcpOptions {
    /// Send buffer: a fixed size [default: automatic up to 4MiB].
    pub send_buffer: Option<ByteSize>,
    /// Receive buffer: a fixed size [default: automatic up to 4MiB].
    pub receive_buffer: Option<ByteSize>,
    /// Largest segment in bytes of payload [default: what the MTU allows].
    #[serde(deserialize_with = "forms::mss")]
    pub mss: Option<u16>,
    /// Send small segments at once [default: true].
    pub no_delay: Option<bool>,
    /// Acknowledge at the latest after this many full-sized segments [default: 2].
    #[serde(deserialize_with = "forms::segments")]
    pub delayed_ack_segments: Option<u8>,
    /// Acknowledge at the latest after this time [default: 40ms].
    pub delayed_ack_timeout: Option<Span>,
    /// Congestion control: cubic or reno (or newreno, new-reno) [default: cubic].
    pub congestion: Option<CongestionName>,
    /// Explicit congestion notification: off, accept or request [default: accept].
    pub ecn: Option<EcnPolicy>,
    /// Pacing of sends: off, auto, or bytes per second as in 10MiB [default: off].
    pub pacing: Option<PacingPolicy>,
    /// TCP Fast Open for HTTP: most connections served before their handshake ends, 0 for none [default: 0].
    #[serde(deserialize_with = "forms::pending")]
    pub fast_open: Option<u16>,
    /// Silence before a keep-alive probe, 0s for none [default: 60s].
    pub keep_alive: Option<Span>,
    /// End a connection whose data stays unacknowledged this long [default: 60s].
    pub user_timeout: Option<Span>,
}

impl ServeOptions {
    /// Whether they say something about the setting of this name.
    pub fn has(&self, name: &str) -> bool {
        match name {
            "dir" => self.dir.is_some(),
            "device" => self.device.is_some(),
            "address" => !self.address.is_empty(),
            "gateway" => !self.gateway.is_empty(),
            "mtu" => self.mtu.is_some(),
            "mac" => self.mac.is_some(),
            "vlan" => self.vlan.is_some(),
            "queues" => self.queues.is_some(),
            "busy-poll" => self.busy_poll.is_some(),
            "http-port" => self.http_port.is_some(),
            "ftp-port" => self.ftp_port.is_some(),
            "iperf3-port" => self.iperf3_port.is_some(),
            "ftp-user" => !self.ftp_user.is_empty(),
            "ftp-anonymous" => self.ftp_anonymous.is_some(),
            "ftp-passive-ports" => self.ftp_passive_ports.is_some(),
            "ftp-passive-address" => self.ftp_passive_address.is_some(),
            "writable" => self.writable,
            "user" => self.user.is_some(),
            "offload" => self.offload.is_some(),
            "memory" => self.memory.is_some(),
            "stats" => self.stats.is_some(),
            "status" => self.status.is_some(),
            "log-format" => self.log_format.is_some(),
            _ => false,
        }
    }

    /// These options, and where they say nothing, those of `file`.
    pub fn over(self, file: ServeOptions) -> ServeOptions {
        fn list<T>(flags: Vec<T>, file: Vec<T>) -> Vec<T> {
            if flags.is_empty() { file } else { flags }
        }
        ServeOptions {
            dir: self.dir.or(file.dir),
            device: self.device.or(file.device),
            address: list(self.address, file.address),
            gateway: list(self.gateway, file.gateway),
            mtu: self.mtu.or(file.mtu),
            mac: self.mac.or(file.mac),
            vlan: self.vlan.or(file.vlan),
            queues: self.queues.or(file.queues),
            busy_poll: self.busy_poll.or(file.busy_poll),
            http_port: self.http_port.or(file.http_port),
            ftp_port: self.ftp_port.or(file.ftp_port),
            iperf3_port: self.iperf3_port.or(file.iperf3_port),
            ftp_user: list(self.ftp_user, file.ftp_user),
            ftp_anonymous: self.ftp_anonymous.or(file.ftp_anonymous),
            ftp_passive_ports: self.ftp_passive_ports.or(file.ftp_passive_ports),
            ftp_passive_address: self.ftp_passive_address.or(file.ftp_passive_address),
            writable: self.writable || file.writable,
            user: self.user.or(file.user),
            offload: self.offload.or(file.offload),
            memory: self.memory.or(file.memory),
            stats: self.stats.or(file.stats),
            log_format: self.log_format.or(file.log_format),
            status: self.status.or(file.status),
            status_public: self.status_public || file.status_public,
            tcp: file.tcp,
            limits: file.limits,
            http: file.http,
            ftp: file.ftp,
            iperf3: file.iperf3,
        }
    }
}
