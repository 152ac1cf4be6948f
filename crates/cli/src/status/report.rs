//! The report itself, as `/status.json` has it: times in seconds, rates in bits per second, sizes in bytes.
//!
//! Names and meanings are stable: what is added later stands beside what is there, and a reader skips what it does not
//! know. A change that breaks this raises [`SCHEMA`].

use super::catalogue::GROUPS;
use linerate_wire::figures::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form of the report.
pub const SCHEMA: u32 = 1;

/// All that a server tells.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// When it was made, since 1970-01-01 UTC.
    pub time: f64,
    /// How long the server has been running.
    pub uptime: f64,
    /// `own` for the stack of our own, `kernel` for the host's sockets.
    pub transport: String,
    /// The device, in words.
    pub device: String,
    /// What the process costs.
    pub process: Process,
    /// What has passed since the start.
    pub traffic: Traffic,
    /// What passes now.
    pub rates: Rates,
    /// Memory of sockets.
    pub memory: Memory,
    /// Buffer pools.
    pub pools: Vec<PoolReport>,
    /// Every counter and gauge by part and name; `docs/status.md` has the list.
    pub counters: BTreeMap<String, BTreeMap<String, u64>>,
    /// Every drop counter that is not 0: those that grow fastest first, then the largest.
    pub dropped: Vec<Dropped>,
    /// The connections.
    pub connections: Connections,
    /// What passed through each queue of the device, each with a thread of its own.
    pub queues: Vec<Queue>,
}

/// One queue.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Queue {
    /// Its number, from 0 on.
    pub number: u64,
    /// Connections that it has, half-open ones and those in TIME-WAIT included.
    pub connections: u64,
    /// Bytes received: frames of a device, payload of kernel sockets.
    pub received_bytes: u64,
    /// Bytes sent, counted alike.
    pub sent_bytes: u64,
    /// Frames received (own stack), datagrams (kernel sockets).
    pub received_packets: u64,
    /// The same sent.
    pub sent_packets: u64,
    /// Processor time of its thread.
    pub cpu: f64,
    /// What passes through it now; the processor's share is of its thread.
    pub rates: Rates,
}

/// What passes now: the mean of a time that has just gone by.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Rates {
    /// That time: since a report before, or since the start.
    pub span: f64,
    /// Bits received per second, of what [`Traffic::received_bytes`] counts.
    pub receive_rate: f64,
    /// Bits sent per second.
    pub send_rate: f64,
    /// Received per second, of what [`Traffic::received_packets`] counts.
    pub received_packets: f64,
    /// The same sent.
    pub sent_packets: f64,
    /// Segments sent again per second.
    pub retransmits: f64,
    /// Drops of all reasons per second.
    pub drops: f64,
    /// Processor time per second: 1 is one whole processor.
    pub cpu: f64,
}

/// A reason for which something was thrown away, refused or given up.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Dropped {
    /// The part that counts it.
    pub group: String,
    /// The counter's name there.
    pub name: String,
    /// The same in words.
    pub reason: String,
    /// What the counter counts.
    pub meaning: String,
    /// Since the start.
    pub count: u64,
    /// Per second now.
    pub rate: f64,
}

/// What the process costs.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Process {
    /// Processor time of all threads, in user mode and in the kernel.
    pub cpu: f64,
    /// Resident memory; null where the system does not tell.
    pub resident: Option<u64>,
    /// What the making of this report took of the loop's time.
    pub report: f64,
}

/// Totals since the start.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(default)]
pub struct Traffic {
    /// Bytes received: frames of a device, payload of kernel sockets.
    pub received_bytes: u64,
    /// Bytes sent, counted alike.
    pub sent_bytes: u64,
    /// Frames received (own stack), datagrams (kernel sockets).
    pub received_packets: u64,
    /// The same sent.
    pub sent_packets: u64,
    /// TCP segments sent again; 0 with kernel sockets, which do not tell the sum.
    pub retransmits: u64,
    /// The sum of all counters of the kind "drop".
    pub drops: u64,
}

/// Memory of sockets.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(default)]
pub struct Memory {
    /// The most that sockets may hold.
    pub limit: u64,
    /// What they hold now.
    pub used: u64,
    /// The most that they have held, as seen twice in every turn of the loop.
    pub peak: u64,
    /// How often memory was asked for and refused.
    pub refused: u64,
    /// What the tables of connections take beside that.
    pub tables: u64,
    /// What is held, by server; `closing` for connections that their server has closed.
    pub owners: BTreeMap<String, u64>,
}

/// A pool of equal buffers.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(default)]
pub struct PoolReport {
    /// What it is for.
    pub name: String,
    /// Size of a buffer.
    pub buffer: u64,
    /// Buffers in all.
    pub total: u64,
    /// Buffers free now.
    pub free: u64,
    /// Buffers in use now.
    pub used: u64,
    /// Fewest that were ever free.
    pub low_water: u64,
    /// How often a buffer was asked for and none was free.
    pub exhausted: u64,
}

/// The connections.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Connections {
    /// All there are, half-open ones and those in TIME-WAIT included.
    pub total: u64,
    /// How many are in each state.
    pub states: BTreeMap<String, u64>,
    /// How many each server has.
    pub servers: BTreeMap<String, u64>,
    /// How many are kept from sending faster now, by cause; empty with kernel sockets, which would have to be asked one
    /// by one.
    pub limited: BTreeMap<String, u64>,
    /// What the list is sorted by.
    pub sort: String,
    /// The first of them, as many as were asked for.
    pub list: Vec<Conn>,
}

/// One connection.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(default)]
pub struct Conn {
    /// Its id, never used twice.
    pub id: String,
    /// The queue that it is in.
    pub queue: u64,
    /// The server that has it, or `closing`.
    pub server: String,
    /// Our address and port.
    pub local: String,
    /// The client's.
    pub remote: String,
    /// Its state, by the names of RFC 9293.
    pub state: String,
    /// How long it has been established.
    pub age: f64,
    /// The time that its rates and shares are of: since a report before, or since it was established.
    pub span: f64,
    /// Bits of payload sent and acknowledged per second (own stack), or taken by the kernel.
    pub send_rate: f64,
    /// Bits of payload received per second.
    pub receive_rate: f64,
    /// Payload acknowledged by the client since the start.
    pub bytes_acked: u64,
    /// Payload received since the start.
    pub bytes_received: u64,
    /// Segments sent with payload.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Payload sent again.
    pub bytes_retransmitted: u64,
    /// What the client reported to have received twice: it had not been lost.
    pub duplicates_reported: u64,
    /// Whether segments were seen to overtake each other on the way to the client.
    pub reordering_seen: bool,
    /// Smoothed round-trip time; null before it was measured.
    pub rtt: Option<f64>,
    /// Its variation.
    pub rtt_var: Option<f64>,
    /// Retransmission timeout.
    pub rto: Option<f64>,
    /// Largest segment sent, payload.
    pub mss: u32,
    /// Largest packet that the path carries; 0 where it is not known.
    pub path_mtu: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; null before the first loss.
    pub ssthresh: Option<u32>,
    /// The window that the client offers.
    pub send_window: u32,
    /// The window that we offer.
    pub receive_window: u32,
    /// Sent and not acknowledged.
    pub in_flight: u32,
    /// Queued by the server and not acknowledged (own stack), or not yet taken by the kernel.
    pub queued: u64,
    /// Received and not yet taken by the server.
    pub unread: u64,
    /// Memory that its data holds, whole buffers counted.
    pub memory: u64,
    /// Time since it was established, by what kept it from sending faster.
    pub limits: BTreeMap<String, f64>,
    /// The shares of these causes in `span`; they add up to 1.
    pub shares: BTreeMap<String, f64>,
    /// The cause with the largest share; empty before anything was measured.
    pub limited_by: String,
    /// The part that limits it, in a few words.
    pub bottleneck: String,
    /// Why, with figures.
    pub because: String,
    /// What would help.
    pub advice: String,
}

impl Report {
    /// As JSON.
    pub fn to_json(&self) -> String {
        // Keys are text and there is nothing else that can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What all drop counters count, by part and name, in the order of the catalogue.
    pub fn drops(&self) -> Vec<((&'static str, &'static str), u64)> {
        let mut drops = Vec::new();
        for group in &GROUPS {
            let Some(counted) = self.counters.get(group.name) else { continue };
            for figure in group.figures().filter(|figure| figure.kind == Kind::Drop) {
                if let Some(count) = counted.get(figure.name) {
                    drops.push(((group.name, figure.name), *count));
                }
            }
        }
        drops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_and_what_is_unknown_is_skipped() {
        let conn = Conn { id: "1.0".to_owned(), rtt: Some(0.001), ..Conn::default() };
        let report = Report {
            schema: SCHEMA,
            connections: Connections { total: 1, list: vec![conn], ..Connections::default() },
            ..Report::default()
        };
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
        let older: Report = serde_json::from_str(r#"{"schema":1,"news":{"a":[1]}}"#).unwrap();
        assert_eq!(older.schema, 1);
    }
}
