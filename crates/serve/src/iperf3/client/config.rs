//! Settings of the iperf3 client.

use super::super::config::CpuTimes;
use super::super::params::{PACING_TIMER, Params, Protocol};
use alloc::string::String;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::{Congestion, Owner, SocketOptions};

/// Settings of a client, each with its default.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose sockets these are.
    pub owner: Owner,
    /// The server.
    pub server: SocketAddr,
    /// What to ask for. A length of 0 takes the usual one: 128 KiB, or what fits a datagram that is not cut.
    pub params: Params,
    /// Time between two reports; zero for none. Default: 1 s.
    pub interval: Duration,
    /// Longest that the server may take to answer the first connection. Default: 30 s.
    pub connect_timeout: Duration,
    /// Longest that the server may take for each step of the protocol. Default: 30 s.
    pub answer_timeout: Duration,
    /// What each line of text begins with, and `title` in JSON.
    pub title: Option<String>,
    /// Settings that TCP sockets start with; the parameters change them for the streams.
    pub socket: SocketOptions,
    /// Receive buffer of UDP sockets in bytes, where the parameters ask for no window. Default: 1 MiB.
    pub udp_buffer: usize,
    /// Tells the processor time used, for the results; the default knows nothing and answers zero.
    pub cpu_times: fn() -> CpuTimes,
}

impl Config {
    /// The defaults, for a test of 10 s by TCP with the server at this address.
    pub fn new(server: SocketAddr) -> Config {
        Config {
            owner: Owner(4),
            server,
            params: Params::default(),
            interval: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(30),
            title: None,
            socket: SocketOptions::default(),
            udp_buffer: 1 << 20,
            cpu_times: CpuTimes::default,
        }
    }
}

impl Default for Params {
    /// What the original asks for by default: one TCP stream for 10 s.
    fn default() -> Params {
        Params {
            protocol: Protocol::Tcp,
            omit: Duration::ZERO,
            time: Duration::from_secs(10),
            bytes: 0,
            blocks: 0,
            parallel: 1,
            len: 0,
            reverse: false,
            bidirectional: false,
            window: None,
            mss: None,
            no_delay: false,
            rate_bps: 0,
            burst: 0,
            pacing_timer: PACING_TIMER,
            congestion: None::<Congestion>,
            pacing_bps: 0,
            tos: 0,
            counters_64bit: false,
            server_output: false,
        }
    }
}
