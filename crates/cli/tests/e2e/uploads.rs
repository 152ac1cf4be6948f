//! Uploads of the real iperf3 client, and what they cost.

use crate::lab::Lab;
use serde_json::Value;

/// The sender's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Linux's default.
    Cubic,
    /// Sends ahead of acknowledgements, in bursts of its own making.
    Bbr,
}

/// One test of the client.
#[derive(Clone, Copy, Debug)]
pub struct Upload {
    /// Connections at once.
    pub parallel: u32,
    /// The sender's congestion control.
    pub congestion: Congestion,
    /// Bytes in all, or else seconds.
    amount: Result<u64, u32>,
}

impl Upload {
    /// An upload of so many bytes over all connections together.
    pub fn bytes(parallel: u32, congestion: Congestion, bytes: u64) -> Upload {
        Upload { parallel, congestion, amount: Ok(bytes) }
    }

    /// An upload of this length.
    #[allow(dead_code, reason = "the bench uses it")]
    pub fn seconds(parallel: u32, congestion: Congestion, seconds: u32) -> Upload {
        Upload { parallel, congestion, amount: Err(seconds) }
    }
}

/// What the client reports of all connections together.
#[derive(Clone, Copy, Debug)]
pub struct Uploaded {
    /// Bytes handed to the client's kernel.
    pub sent: u64,
    /// Bytes that the server counted.
    pub received: u64,
    /// Received, in bits per second.
    #[allow(dead_code, reason = "the bench uses it")]
    pub rate_bps: f64,
    /// Segments that the client's kernel sent again.
    pub retransmits: u64,
}

impl Uploaded {
    /// Segments that it takes, at an MTU of 1,500.
    #[allow(dead_code, reason = "the end-to-end tests use it")]
    pub fn segments(&self) -> f64 {
        self.sent as f64 / 1448.0
    }
}

/// Runs the client.
pub fn measure(lab: &Lab, upload: Upload) -> Uploaded {
    // The sender's algorithm is set for the whole namespace: by its own flag the client asks the server for it too.
    let name = match upload.congestion {
        Congestion::Cubic => "cubic",
        Congestion::Bbr => "bbr",
    };
    let flag = format!("-C {name}");
    let set = lab.client.sh(&format!("sysctl -qw net.ipv4.tcp_congestion_control={name}")).status.success();
    let flag = if set { "" } else { &flag };
    let amount = match upload.amount {
        Ok(bytes) => format!("-n {bytes}"),
        Err(seconds) => format!("-t {seconds}"),
    };
    let parallel = upload.parallel;
    let text =
        lab.client.must(&format!("timeout 120 iperf3 -c {} -J -P {parallel} {amount} {flag}", lab.host4()));
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let number =
        |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {text}"));
    Uploaded {
        sent: number("/end/sum_sent/bytes") as u64,
        received: number("/end/sum_received/bytes") as u64,
        rate_bps: number("/end/sum_received/bits_per_second"),
        retransmits: number("/end/sum_sent/retransmits") as u64,
    }
}
