//! Settings of the iperf3 server.

use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{AcceptBacklog, ListenAddr, Owner, SocketOptions};

/// Processor time that the serving process used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    /// In user mode, in ns.
    pub user_ns: u64,
    /// In the kernel, in ns.
    pub system_ns: u64,
}

/// Settings of the server, each with its default.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose sockets these are.
    pub owner: Owner,
    /// Where to listen, TCP and UDP alike. Default: all addresses, port 5201.
    pub listen: Vec<ListenAddr>,
    /// Settings that TCP sockets start with; a client's `-w`, `-M`, `-N`, `-C` and `--fq-rate` change
    /// them for its streams.
    pub socket: SocketOptions,
    /// TCP connections that may wait to be accepted. Default: 1,024.
    pub backlog: AcceptBacklog,
    /// Connections at once, of all tests and of clients that have not said yet what they want; beyond nine tenths of them,
    /// those that have said nothing for longest give way, and then tests that have not begun. Default: 4,096.
    pub max_connections: usize,
    /// Connections at once from one address, or one /64 network of IPv6; a test has up to 129. Default: 2,048.
    pub connections_per_address: usize,
    /// Tests at once from one address; more are answered with "access denied". Default: 32.
    pub tests_per_address: usize,
    /// Tests at once; one that is being prepared for a second gives way to a newcomer, and more are answered with "access denied". Default: 64.
    pub max_tests: usize,
    /// Receive buffer of the UDP socket in bytes, which all tests share: no client's `-w` changes it. Default: 1 MiB.
    pub udp_buffer: usize,
    /// Longest a client may take for its cookie, and for its parameters. Default: 10 s.
    pub greeting_timeout: Duration,
    /// Longest a client may take to open its streams. Default: 30 s.
    pub streams_timeout: Duration,
    /// How long a test may go on after its announced end, as in the original. Default: 40 s.
    pub overrun: Duration,
    /// A test without announced end (`-n`, `-k`, `-t 0`) ends when nothing moves this long. Default: 60 s.
    pub stall_timeout: Duration,
    /// Longest a client may take to exchange results, and to say goodbye. Default: 30 s.
    pub results_timeout: Duration,
    /// Tells the processor time used, for the results; the default knows nothing and answers zero.
    pub cpu_times: fn() -> CpuTimes,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            owner: Owner(3),
            listen: alloc::vec![ListenAddr { ip: None, port: 5201 }],
            socket: SocketOptions::default(),
            backlog: AcceptBacklog::default(),
            max_connections: 4_096,
            connections_per_address: 2_048,
            tests_per_address: 32,
            max_tests: 64,
            udp_buffer: 1 << 20,
            greeting_timeout: Duration::from_secs(10),
            streams_timeout: Duration::from_secs(30),
            overrun: Duration::from_secs(40),
            stall_timeout: Duration::from_secs(60),
            results_timeout: Duration::from_secs(30),
            cpu_times: CpuTimes::default,
        }
    }
}
