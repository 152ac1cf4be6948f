//! What is measured: devices, workloads, settings, and for how long.

pub use crate::measure::device::Device;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Length of a datagram in bytes of payload, as in seed 004.
pub const DATAGRAM: usize = 1_472;
/// The first port of the servers.
pub const PORT: u16 = 5_301;

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
#[serde(rename_all = "lowercase")]
pub enum Rates {
    /// Each stream as in seed 004's commands, however many there are.
    Seed,
    /// No limit for TCP; datagrams of all streams together, in bits per second.
    Udp(u64),
}

impl Rates {
    /// The rate of each stream of a workload, in bits per second; 0 for no limit.
    pub fn of_stream(self, workload: Workload) -> u64 {
        match (self, workload.protocol, workload.direction) {
            // "-P 2 ... -b 2500M" and so on: iperf3's rate is that of a stream.
            (Rates::Seed, Protocol::Udp, Direction::Rx) => 2_500_000_000,
            (Rates::Seed, Protocol::Udp, Direction::Tx) => 450_000_000,
            (Rates::Seed, Protocol::Tcp, Direction::Rx) => 500_000_000,
            (Rates::Seed, Protocol::Tcp, Direction::Tx) => 1_850_000_000,
            (Rates::Udp(all), Protocol::Udp, _) => all / u64::from(workload.streams.max(1)),
            (Rates::Udp(_), Protocol::Tcp, _) => 0,
        }
    }
}

/// The use cases of seed 004 with the streams of all its clients: two of two each, four of two, two of two, two of one; and the four of
/// two that send to the board with RSS, by TCP.
const SEED_WORKLOADS: [(Protocol, Direction, u16); 5] = [
    (Protocol::Udp, Direction::Rx, 4),
    (Protocol::Udp, Direction::Tx, 8),
    (Protocol::Tcp, Direction::Rx, 4),
    (Protocol::Tcp, Direction::Rx, 8),
    (Protocol::Tcp, Direction::Tx, 2),
];

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
    /// The use cases of seed 004, with as many streams as there.
    pub fn seed_workloads() -> Vec<Workload> {
        let workload = |(protocol, direction, streams)| Workload { protocol, direction, streams };
        SEED_WORKLOADS.into_iter().map(workload).collect()
    }

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
        assert_eq!(Rates::Udp(1_000_000).of_stream(all[1]), 250_000);
        assert_eq!(Rates::Udp(1_000_000).of_stream(all[5]), 0);
        let unfit: Vec<_> = all.iter().filter(|w| Setting::Queues.unfit(**w).is_some()).collect();
        assert_eq!(unfit.len(), 6);
    }

    #[test]
    fn streams_and_rates_of_the_document_are_those_of_its_commands() {
        let records = crate::published::of("004").unwrap();
        let figure = |case: &str, tuning: &str, start: &str| {
            let is_it = |record: &&crate::schema::Record| {
                record.workload == case && record.tuning == tuning && record.figure.starts_with(start)
            };
            records.iter().find(is_it).map(|record| record.value)
        };
        let all = Plan::seed_workloads();
        for workload in &all {
            let case = workload.case().to_lowercase().replace(' ', "-");
            // By TCP to the board there are more of them with RSS.
            let tuning = if workload.case() == "TCP RX" && workload.streams == 8 { "cso-rss" } else { "" };
            let clients = if workload.direction == Direction::Rx {
                "iperf clients on the host"
            } else {
                "iperf clients on the board"
            };
            let clients = figure(&case, tuning, clients).unwrap();
            let streams = figure(&case, tuning, "streams of each client").unwrap_or(1.0);
            assert_eq!(f64::from(workload.streams), clients * streams, "{workload}");
            let rate = figure(&case, tuning, "rate of each stream").unwrap();
            assert_eq!(Rates::Seed.of_stream(*workload) as f64, rate * 1e6, "{workload}");
        }
        assert_eq!(all.len(), 5);
    }
}
