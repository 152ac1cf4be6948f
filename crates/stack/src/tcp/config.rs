//! What a connection is made with.

use super::budget::MemoryBudget;
use crate::config::TcpOptions;
use alloc::rc::Rc;
use core::time::Duration;
use linerate_nic::Pool;
use linerate_transport::SocketOptions;

/// Settings remembered for those that come.
const RECENT: usize = 16;

/// Settings of a connection: those of the socket, and those of the engine. Connections with the same settings share them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The socket's settings.
    pub socket: SocketOptions,
    /// Largest TCP payload without options in bytes that our interface's MTU carries: MTU - 40 over IPv4, MTU - 60 over
    /// IPv6 (RFC 9293 section 3.7.1). We offer this in the MSS option, unless the socket wants less.
    pub mss: u16,
    /// Offer (or accept) timestamps (RFC 7323). Default: true.
    pub timestamps: bool,
    /// Offer (or accept) selective acknowledgements (RFC 2018). Default: true.
    pub sack: bool,
    /// Offer (or accept) window scaling (RFC 7323 section 2). Default: true.
    pub window_scaling: bool,
    /// Retransmission timeout before the first measurement. Default: 1 s (RFC 6298 section 2.1).
    pub initial_rto: Duration,
    /// Least retransmission timeout. Default: 200 ms, less than the 1 s of RFC 6298 section 2.4, because delayed
    /// acknowledgements of today's peers take at most 40 to 200 ms; the variance term keeps it above the path's jitter.
    pub min_rto: Duration,
    /// Greatest retransmission timeout and probe interval. Default: 60 s (RFC 6298 section 2.5).
    pub max_rto: Duration,
    /// How often a SYN is sent again before the connection is given up. Default: 5 (63 s).
    pub syn_retries: u8,
    /// How often a SYN-ACK is sent again before the half-open connection is given up; fewer than SYNs, as the SYN may be
    /// forged, and a client that is there repeats it. Default: 3 (15 s).
    pub syn_ack_retries: u8,
    /// Twice the maximum segment lifetime, the stay in TIME-WAIT. Default: 60 s.
    pub time_wait: Duration,
    /// Longest stay in FIN-WAIT-2 after `close`. Default: 60 s.
    pub fin_wait_timeout: Duration,
    /// How many segments are acknowledged at once at the beginning, however acknowledgements are delayed later, so that the
    /// peer's slow start is not held up. Default: 16.
    pub quick_acks: u8,
    /// Initial congestion window in segments. Default: 10 (RFC 6928).
    pub initial_window_segments: u8,
    /// Most pieces that wait out of order in each 2 MiB of the receive buffer, and in a smaller one. Default: 4,096, so that
    /// a window of segments of 512 bytes finds room.
    pub max_out_of_order_pieces: usize,
    /// Most challenge ACKs per second (RFC 5961 section 7), per connection, so that no other connection can see it.
    /// Default: 10.
    pub challenge_acks_per_second: u8,
}

impl Config {
    /// The defaults with this socket's settings and this [`Config::mss`].
    pub fn new(socket: SocketOptions, mss: u16) -> Self {
        Config {
            socket,
            mss,
            timestamps: true,
            sack: true,
            window_scaling: true,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            syn_retries: 5,
            syn_ack_retries: 3,
            time_wait: Duration::from_secs(60),
            fin_wait_timeout: Duration::from_secs(60),
            quick_acks: 16,
            initial_window_segments: 10,
            max_out_of_order_pieces: 4_096,
            challenge_acks_per_second: 10,
        }
    }
}

/// Settings in use lately, so that connections with the same ones share them. There are few: those of each listener, for
/// either family, and what applications set on connections.
#[derive(Debug, Default)]
pub(crate) struct RecentConfigs {
    recent: [Option<Rc<Config>>; RECENT],
    /// The place that is used next.
    next: usize,
}

impl RecentConfigs {
    /// The defaults with this socket's settings, this [`Config::mss`] and these options, shared with whoever has the same.
    pub(crate) fn of(&mut self, socket: &SocketOptions, mss: u16, offered: TcpOptions) -> Rc<Config> {
        let is_it = |recent: &&Rc<Config>| {
            let TcpOptions { timestamps, sack, window_scaling } = offered;
            recent.mss == mss
                && (recent.timestamps, recent.sack, recent.window_scaling)
                    == (timestamps, sack, window_scaling)
                && recent.socket == *socket
        };
        // Nothing of the engine's settings but these is ever another.
        if let Some(same) = self.recent.iter().flatten().find(is_it) {
            return Rc::clone(same);
        }
        let TcpOptions { timestamps, sack, window_scaling } = offered;
        self.keep(Config { timestamps, sack, window_scaling, ..Config::new(socket.clone(), mss) })
    }

    /// These settings, shared with whoever has the same.
    pub(crate) fn share(&mut self, config: Config) -> Rc<Config> {
        if let Some(same) = self.recent.iter().flatten().find(|recent| ***recent == config) {
            return Rc::clone(same);
        }
        self.keep(config)
    }

    fn keep(&mut self, config: Config) -> Rc<Config> {
        let config = Rc::new(config);
        self.recent[self.next] = Some(Rc::clone(&config));
        self.next = (self.next + 1) % RECENT;
        config
    }
}

/// What the engine lends its connections.
#[derive(Clone, Debug)]
pub struct Resources {
    /// The memory that all connections may hold together.
    pub budget: MemoryBudget,
    /// Pages for short writes, and for the bytes of small segments that came in large buffers.
    pub pages: Pool,
}
