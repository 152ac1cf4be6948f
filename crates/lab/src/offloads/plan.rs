//! What is measured: devices, workloads, settings, and for how long.

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Length of a datagram in bytes of payload, as in seed 004.
pub const DATAGRAM: usize = 1_472;
/// The first port of the servers.
pub const PORT: u16 = 5_301;

/// What the device under test runs on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A TAP device.
    Tap,
    /// A packet socket on one end of a veth pair.
    Packet,
}

impl Device {
    /// All of them.
    pub const ALL: [Device; 2] = [Device::Tap, Device::Packet];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Tap => "linux-tap",
            Device::Packet => "linux-packet",
        }
    }

    /// What it is in words.
    pub const fn title(self) -> &'static str {
        match self {
            Device::Tap => "TAP device",
            Device::Packet => "packet socket on veth",
        }
    }
}

/// Transport protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Direction as the device under test sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It receives: our server runs on it.
    Rx,
    /// It sends: our client runs on it.
    Tx,
}

/// One use case with a number of streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Workload {
    /// The protocol.
    pub protocol: Protocol,
    /// The direction.
    pub direction: Direction,
    /// Streams at once.
    pub streams: u16,
}

impl Workload {
    /// The use case, as seed 004 calls it.
    pub const fn case(self) -> &'static str {
        case(self.protocol, self.direction)
    }

    /// The name in records.
    pub fn name(self) -> String {
        format!("iperf3-{}-{}", self.case().to_lowercase().replace(' ', "-"), self.streams)
    }
}

/// A use case, as seed 004 calls it.
pub const fn case(protocol: Protocol, direction: Direction) -> &'static str {
    match (protocol, direction) {
        (Protocol::Udp, Direction::Rx) => "UDP RX",
        (Protocol::Udp, Direction::Tx) => "UDP TX",
        (Protocol::Tcp, Direction::Rx) => "TCP RX",
        (Protocol::Tcp, Direction::Tx) => "TCP TX",
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.streams == 1 { "" } else { "s" };
        write!(f, "{}, {} stream{plural}", self.case(), self.streams)
    }
}

/// What the device is let do. Each has what the one before has, but for the queues.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// Nothing: our stack computes and checks all sums.
    Off,
    /// Checksums (the seed's CSO).
    Checksum,
    /// Checksums, and a queue with a thread for each processor (the seed's RSS).
    Queues,
    /// Checksums and segmentation (TSO).
    Segmentation,
    /// Checksums, segmentation and coalescing (GRO).
    Coalescing,
}

impl Setting {
    /// All of them.
    pub const ALL: [Setting; 5] =
        [Setting::Off, Setting::Checksum, Setting::Queues, Setting::Segmentation, Setting::Coalescing];

    /// What `--offload` is given.
    pub const fn offload(self) -> &'static str {
        match self {
            Setting::Off => "none",
            Setting::Checksum | Setting::Queues => "tx-checksum,rx-checksum",
            Setting::Segmentation => "tx-checksum,rx-checksum,tso,gather",
            Setting::Coalescing => "all",
        }
    }

    /// What it is called in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Setting::Off => "CSO disabled",
            Setting::Checksum => "CSO",
            Setting::Queues => "CSO with RSS",
            Setting::Segmentation => "CSO, TSO",
            Setting::Coalescing => "CSO, TSO, GRO",
        }
    }

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Setting::Off => "cso-off",
            Setting::Checksum => "cso",
            Setting::Queues => "cso-rss",
            Setting::Segmentation => "cso-tso",
            Setting::Coalescing => "cso-tso-gro",
        }
    }

    /// Why it is not measured with this workload, if so.
    pub const fn unfit(self, workload: Workload) -> Option<&'static str> {
        match (self, workload.direction) {
            (Setting::Queues, Direction::Tx) => Some("the client sends from one queue"),
            (Setting::Queues, Direction::Rx) if workload.streams < 2 => Some("one stream is in one queue"),
            _ => None,
        }
    }
}

/// How fast senders are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rates {
    /// Datagrams of all streams together, in bits per second, to the device and from it.
    pub udp_rx_bps: u64,
    /// The same from it.
    pub udp_tx_bps: u64,
    /// TCP of all streams together; 0 for no limit.
    pub tcp_rx_bps: u64,
    /// The same from it.
    pub tcp_tx_bps: u64,
}

impl Rates {
    /// Those of seed 004's commands: all streams of all clients.
    pub const SEED: Rates = Rates {
        udp_rx_bps: 4 * 2_500_000_000,
        udp_tx_bps: 8 * 450_000_000,
        tcp_rx_bps: 4 * 500_000_000,
        tcp_tx_bps: 2 * 1_850_000_000,
    };

    /// No limit for TCP, and this for datagrams.
    pub const fn with_udp(udp_bps: u64) -> Rates {
        Rates { udp_rx_bps: udp_bps, udp_tx_bps: udp_bps, tcp_rx_bps: 0, tcp_tx_bps: 0 }
    }

    /// The rate of each stream of a workload; 0 for no limit.
    pub fn of_stream(self, workload: Workload) -> u64 {
        let all = match (workload.protocol, workload.direction) {
            (Protocol::Udp, Direction::Rx) => self.udp_rx_bps,
            (Protocol::Udp, Direction::Tx) => self.udp_tx_bps,
            (Protocol::Tcp, Direction::Rx) => self.tcp_rx_bps,
            (Protocol::Tcp, Direction::Tx) => self.tcp_tx_bps,
        };
        all / u64::from(workload.streams.max(1))
    }
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program under test: `linerate` itself.
    pub program: PathBuf,
    /// What it runs on.
    pub devices: Vec<Device>,
    /// What it does.
    pub workloads: Vec<Workload>,
    /// What alternates.
    pub settings: Vec<Setting>,
    /// How often.
    pub rounds: usize,
    /// Length of each transfer.
    pub time: Duration,
    /// How fast senders are.
    pub rates: Rates,
    /// Queues with [`Setting::Queues`].
    pub queues: u16,
    /// Whether the original iperf3 is at the other end, or ours over the host's sockets.
    pub original: bool,
    /// How long offloads are switched under load; zero for not at all.
    pub switching: Duration,
    /// Whether a run that others disturbed, or whose other end was the limit, is refused.
    pub refuses: bool,
}

impl Plan {
    /// Every workload of these numbers of streams.
    pub fn workloads(streams: &[u16]) -> Vec<Workload> {
        let mut all = Vec::new();
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            for direction in [Direction::Rx, Direction::Tx] {
                all.extend(streams.iter().map(|&streams| Workload { protocol, direction, streams }));
            }
        }
        all
    }

    /// How many transfers there will be.
    pub fn transfers(&self) -> usize {
        let fits = |workload: &Workload| {
            self.settings.iter().filter(|setting| setting.unfit(*workload).is_none()).count()
        };
        self.devices.len() * self.workloads.iter().map(fits).sum::<usize>() * self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_cases_and_rates_are_the_seeds() {
        let all = Plan::workloads(&[1, 4]);
        assert_eq!(all.len(), 8);
        let names: Vec<String> = all.iter().map(|workload| workload.name()).collect();
        assert_eq!(names[0], "iperf3-udp-rx-1");
        assert_eq!(all[7].to_string(), "TCP TX, 4 streams");
        // "-P 2 ... -b 2500M", twice.
        assert_eq!(Rates::SEED.of_stream(all[1]), 2_500_000_000);
        assert_eq!(Rates::with_udp(1_000_000).of_stream(all[5]), 0);
        let unfit: Vec<_> = all.iter().filter(|w| Setting::Queues.unfit(**w).is_some()).collect();
        assert_eq!(unfit.len(), 6);
    }
}
