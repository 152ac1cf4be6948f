//! Settings of the iperf3 server.

use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{ListenAddr, Owner, SocketOptions};

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
    /// Tests at once; more are answered with "access denied". Default: 64.
    pub max_tests: usize,
    /// Receive buffer of the UDP socket in bytes. Default: 1 MiB.
    pub udp_buffer: usize,
    /// Longest a client may take for its cookie, and for its parameters. Default: 10 s.
    pub greeting_timeout: Duration,
    /// Longest a client may take to open its streams. Default: 30 s.
    pub streams_timeout: Duration,
    /// How long a test may go on after its announced end, as in the original. Default: 40 s.
    pub overrun: Duration,
    /// A test without announced end (`-n`, `-k`) ends when nothing moves this long. Default: 60 s.
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
