//! What a client tells of its test.

use super::super::params::Params;
use super::super::protocol::Cookie;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use linerate_transport::AlgorithmName;

/// A stream that is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connected {
    /// Its number, which both sides use: 1, 3, 4, 5 ...
    pub id: u32,
    /// Whether this client sends on it.
    pub sends: bool,
    /// Our address.
    pub local: SocketAddr,
    /// The server's address.
    pub remote: SocketAddr,
}

/// What moved on a stream in a time, or what one side says of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Amount {
    /// Payload bytes.
    pub bytes: u64,
    /// Segments retransmitted, where the sender of TCP knows.
    pub retransmits: Option<u64>,
    /// Datagrams sent; received ones with what is missing.
    pub packets: u64,
    /// Datagrams missing.
    pub lost: u64,
    /// Datagrams that came late.
    pub out_of_order: u64,
    /// Smoothed variation of the transit time in seconds.
    pub jitter_s: f64,
}

/// One stream in an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamInterval {
    /// Its number.
    pub id: u32,
    /// Whether this client sends on it.
    pub sends: bool,
    /// What moved.
    pub amount: Amount,
    /// Congestion window in bytes; of a TCP stream on which this client sends.
    pub congestion_window: Option<u32>,
    /// The window that the peer offers, in bytes.
    pub send_window: Option<u32>,
    /// Smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Its variation.
    pub rtt_var: Option<Duration>,
    /// Path MTU in bytes.
    pub path_mtu: Option<u32>,
}

/// All streams in an interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Interval {
    /// Start in seconds, since the streams began or since the omit time ended.
    pub start_s: f64,
    /// End in seconds.
    pub end_s: f64,
    /// Whether it belongs to the omit time.
    pub omitted: bool,
    /// The streams in the order in which they were opened.
    pub streams: Vec<StreamInterval>,
}

/// What both sides say of a stream at the end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamEnd {
    /// Its number.
    pub id: u32,
    /// Whether this client sends on it.
    pub sends: bool,
    /// What its sender says.
    pub sent: Amount,
    /// What its receiver says.
    pub received: Amount,
    /// Seconds of its sender.
    pub sent_s: f64,
    /// Seconds of its receiver.
    pub received_s: f64,
    /// Largest congestion window seen, in bytes; of a TCP stream on which this client sends.
    pub max_congestion_window: Option<u32>,
    /// Largest window that the peer offered, in bytes.
    pub max_send_window: Option<u32>,
    /// Smallest, mean and largest of the smoothed round-trip times seen.
    pub rtt: Option<[Duration; 3]>,
}

/// A test as far as it got.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The server.
    pub server: SocketAddr,
    /// What was asked for.
    pub params: Params,
    /// What identified the test.
    pub cookie: Cookie,
    /// Segment size of the control connection in bytes.
    pub mss: u32,
    /// The streams.
    pub connected: Vec<Connected>,
    /// Both sides' figures of the streams.
    pub streams: Vec<StreamEnd>,
    /// Whether the server's figures are among them.
    pub has_server: bool,
    /// Seconds that count.
    pub duration_s: f64,
    /// Share of the processor that this side used, in percent: total, user, system.
    pub cpu: [f64; 3],
    /// The same of the server.
    pub server_cpu: [f64; 3],
    /// Congestion control of this side.
    pub congestion: Option<AlgorithmName>,
    /// That of the server.
    pub server_congestion: Option<String>,
    /// What the server printed, if that was asked for.
    pub server_output: Option<String>,
    /// What lines of text begin with.
    pub title: Option<String>,
}

impl Report {
    /// The sum over the streams on which this client sends, or those on which it receives; as the sender says, or as the
    /// receiver does.
    pub fn sum(&self, sends: bool, by_sender: bool) -> Amount {
        let of = |end: &StreamEnd| if by_sender { end.sent } else { end.received };
        sum(self.streams.iter().filter(|end| end.sends == sends).map(of))
    }
}

/// The sum of amounts; jitter is the mean.
pub fn sum(amounts: impl Iterator<Item = Amount>) -> Amount {
    let mut all = Amount::default();
    let mut count = 0.0_f64;
    for amount in amounts {
        all.bytes += amount.bytes;
        all.packets += amount.packets;
        all.lost += amount.lost;
        all.out_of_order += amount.out_of_order;
        all.jitter_s += amount.jitter_s;
        if let Some(retransmits) = amount.retransmits {
            all.retransmits = Some(all.retransmits.unwrap_or(0) + retransmits);
        }
        count += 1.0;
    }
    all.jitter_s /= count.max(1.0);
    all
}
