//! A scenario file: what its tables and keys are. Quantities are text with a unit, as in "100 Mbit/s".

use super::models::{JitterModel, LossModel, PacingModel, QueueModel, ReaderModel, Share, WriterModel};
use crate::values::{CongestionName, Offload};
use linerate_fabric::units::{BitsPerSecond, Bytes, Nanoseconds};
use linerate_sim::{PacingMode, Spread};
use serde::Deserialize;
use toml::Spanned;

/// Most queues of an interface.
pub const MAX_QUEUES: u16 = 64;

/// A whole file. Everything has a default: the empty file moves data from the server to the client for 10 s.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Scenario {
    /// A line that says what the scenario shows.
    pub title: Option<String>,
    /// What holds for everything.
    pub world: WorldTable,
    /// One host.
    pub client: HostTable,
    /// The other.
    pub server: HostTable,
    /// Both directions between them.
    pub link: PathTable,
    /// What differs on the way from the server to the client.
    pub from_server: PathTable,
    /// What differs on the way from the client to the server.
    pub from_client: PathTable,
    /// What changes while the world runs.
    pub change: Vec<ChangeTable>,
    /// The transfers. Default: one, from the server to the client.
    pub flow: Vec<FlowTable>,
}

impl Scenario {
    /// What changes, in the order of time.
    pub fn changes(&self) -> Vec<&ChangeTable> {
        let mut changes: Vec<&ChangeTable> = self.change.iter().collect();
        changes.sort_by(|a, b| a.at.value().total_cmp(&b.at.value()));
        changes
    }
}

/// One of the two hosts.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// `client`.
    Client,
    /// `server`.
    #[default]
    Server,
}

impl Side {
    /// The other host.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// Its name in files and output.
    pub fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// `[world]`.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorldTable {
    /// Decides everything random. Default: 1.
    #[serde(deserialize_with = "super::models::seed")]
    pub seed: Option<u64>,
    /// Virtual time after which the world stops. Default: 10 s.
    pub duration: Option<Spanned<Nanoseconds>>,
    /// Largest IP packet of the interfaces in bytes. Default: 1500.
    pub mtu: Option<Spanned<usize>>,
    /// 4 or 6. Default: 4.
    pub ip: Option<Spanned<u8>>,
}

/// `[client]` and `[server]`.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HostTable {
    /// Offloads of its interface, as for `serve --offload`. Default: all.
    pub offload: Option<Offload>,
    /// Rate of its interface. Default: 1 Gbit/s, or twice the link's rate where that is more.
    pub line_rate: Option<BitsPerSecond>,
    /// Packets in the transmit ring. Default: 256.
    pub tx_ring: Option<Spanned<usize>>,
    /// Frames in the receive ring. Default: 512.
    pub rx_ring: Option<Spanned<usize>>,
    /// Buffers for received frames. Default: 4096, more where the memory is more than 64 MiB.
    pub rx_buffers: Option<Spanned<usize>>,
    /// A received frame waits this long at most for an interrupt. Default: 50 us.
    pub interrupt_timer: Option<Spanned<Nanoseconds>>,
    /// So many frames interrupt at once. Default: 32.
    pub interrupt_packets: Option<Spanned<u32>>,
    /// What the timer counts from. Default: the first new frame.
    pub interrupt_mode: Option<InterruptName>,
    /// Time from a packet's last bit to the report that it was sent. Default: none.
    pub completion_delay: Option<Nanoseconds>,
    /// What its processor needs for a packet. Default: no time at all.
    pub processor: ProcessorTable,
    /// Memory for sockets. Default: 64 MiB.
    pub memory: Option<Spanned<Bytes>>,
    /// Queues of its interface, each with a processor and a stack of its own. Default: 1.
    pub queues: Option<Spanned<u16>>,
    /// How frames are spread over them. Default: by hash.
    pub spread: Option<SpreadName>,
    /// How long a message is on its way from one processor to another. Default: 1 us.
    pub letter_delay: Option<Spanned<Nanoseconds>>,
    /// Offer and accept timestamps (RFC 7323). Default: true.
    pub timestamps: Option<bool>,
    /// Offer and accept selective acknowledgements (RFC 2018). Default: true.
    pub sack: Option<bool>,
    /// Offer and accept window scaling (RFC 7323 section 2). Default: true.
    pub window_scaling: Option<bool>,
    /// Settings of all its sockets.
    pub tcp: TcpTable,
}

/// How an interface chooses the queue of a frame that comes in.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum SpreadName {
    /// By the Toeplitz hash of addresses and ports.
    Hash,
    /// The same, each flow one queue further.
    ShiftedHash,
    /// The queue that the last packet of the flow was sent from, as a TAP device.
    Follow,
    /// Each frame by chance.
    Random,
}

impl From<SpreadName> for Spread {
    fn from(name: SpreadName) -> Spread {
        match name {
            SpreadName::Hash => Spread::default(),
            SpreadName::ShiftedHash => Spread::shifted(1),
            SpreadName::Follow => Spread::Follow,
            SpreadName::Random => Spread::Random,
        }
    }
}

/// What an interface's interrupt timer counts from, as in the application note of seed 000, section 4.5.3.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptName {
    /// There is no timer: so many frames interrupt.
    None,
    /// The last interrupt.
    LastInterrupt,
    /// The first frame since the last interrupt.
    FirstNewPacket,
    /// The newest frame.
    LastNewPacket,
}

impl From<InterruptName> for PacingMode {
    fn from(name: InterruptName) -> PacingMode {
        match name {
            InterruptName::None => PacingMode::None,
            InterruptName::LastInterrupt => PacingMode::LastInterrupt,
            InterruptName::FirstNewPacket => PacingMode::FirstNewPacket,
            InterruptName::LastNewPacket => PacingMode::LastNewPacket,
        }
    }
}

/// `processor` of a host: the time that its loop takes.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ProcessorTable {
    /// For each packet given to the interface and each frame received; a super-segment is one.
    pub packet: Option<Spanned<Nanoseconds>>,
    /// For each 1,000 bytes of them.
    pub kilobyte: Option<Spanned<Nanoseconds>>,
    /// For each 1,000 bytes whose checksum the interface leaves to software.
    pub checksum: Option<Spanned<Nanoseconds>>,
    /// For each packet given to the interface, beside `packet`.
    pub transmit: Option<Spanned<Nanoseconds>>,
    /// For each frame received, beside `packet`.
    pub receive: Option<Spanned<Nanoseconds>>,
    /// For each interrupt that found frames.
    pub interrupt: Option<Spanned<Nanoseconds>>,
    /// For each call of an application that writes or reads.
    pub call: Option<Spanned<Nanoseconds>>,
    /// For each time that an application gives way.
    pub give_way: Option<Spanned<Nanoseconds>>,
    /// For each 1,000 bytes that applications write and read: a copy between them and the stack.
    pub copy: Option<Spanned<Nanoseconds>>,
}

impl ProcessorTable {
    /// All of them.
    pub fn costs(&self) -> [&Option<Spanned<Nanoseconds>>; 9] {
        let whole = [&self.packet, &self.kilobyte, &self.checksum, &self.transmit, &self.receive];
        let [packet, kilobyte, checksum, transmit, receive] = whole;
        [
            packet,
            kilobyte,
            checksum,
            transmit,
            receive,
            &self.interrupt,
            &self.call,
            &self.give_way,
            &self.copy,
        ]
    }
}

/// `[client.tcp]`, `[server.tcp]` and `[flow.tcp]`: the settings of sockets that a file may change.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TcpTable {
    /// Send buffer of a fixed size. Default: automatic up to 4 MiB.
    pub send_buffer: Option<Spanned<Bytes>>,
    /// Receive buffer of a fixed size. Default: automatic up to 4 MiB.
    pub receive_buffer: Option<Spanned<Bytes>>,
    /// Most that an automatic send buffer grows to.
    pub send_buffer_max: Option<Spanned<Bytes>>,
    /// Most that an automatic receive buffer grows to.
    pub receive_buffer_max: Option<Spanned<Bytes>>,
    /// Largest segment in bytes of payload. Default: what the MTU allows.
    pub mss: Option<Spanned<u16>>,
    /// Send small segments at once. Default: true.
    pub no_delay: Option<bool>,
    /// Acknowledge at the latest after so many full-sized segments. Default: 2.
    pub delayed_ack_segments: Option<Spanned<u8>>,
    /// Acknowledge at the latest after this time. Default: 40 ms.
    pub delayed_ack_timeout: Option<Nanoseconds>,
    /// End a connection whose data stays unacknowledged this long. Default: 60 s.
    pub user_timeout: Option<Spanned<Nanoseconds>>,
    /// Congestion control. Default: cubic.
    pub congestion: Option<CongestionName>,
    /// Explicit congestion notification. Default: accept.
    pub ecn: Option<EcnName>,
    /// Whether sends leave at a rate. Default: off.
    pub pacing: Option<PacingModel>,
}

/// What to do about explicit congestion notification (RFC 3168).
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum EcnName {
    /// Neither ask for it nor accept it.
    Off,
    /// Accept it when the peer asks.
    Accept,
    /// Ask for it.
    Request,
}

/// `[link]`, `[from-server]`, `[from-client]`. What is not said changes nothing on the way.
#[derive(Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PathTable {
    /// Bits per second on the wire. Default: no limit but the interfaces'.
    pub rate: Option<BitsPerSecond>,
    /// Time on the way, in one direction.
    pub delay: Option<Nanoseconds>,
    /// How that varies.
    pub jitter: Option<JitterModel>,
    /// Whether segments overtake each other by jitter. Default: no.
    pub jitter_reorders: Option<bool>,
    /// The queue in front of the rate. Default: 1000 segments.
    pub queue: Option<Spanned<QueueModel>>,
    /// What is lost.
    pub loss: Option<LossModel>,
    /// Share of segments that are held back.
    pub reorder: Option<Share>,
    /// How long they are. Default: 1 ms.
    pub reorder_delay: Option<Nanoseconds>,
    /// Share of segments that arrive twice.
    pub duplicate: Option<Share>,
    /// Share of segments with a flipped bit.
    pub corrupt: Option<Share>,
    /// Largest IP packet in bytes that passes.
    pub mtu: Option<Spanned<usize>>,
    /// Whether a router tells the sender of longer ones. Default: no; they vanish.
    pub too_long_is_told: Option<bool>,
    /// Nothing passes, until a change says otherwise.
    pub pause: Option<bool>,
}

impl PathTable {
    /// Whether no key is given.
    pub fn is_empty(&self) -> bool {
        *self == PathTable::default()
    }

    /// These keys, and where they say nothing, those of `both`.
    pub fn over(self, both: &PathTable) -> PathTable {
        PathTable {
            rate: self.rate.or(both.rate),
            delay: self.delay.or(both.delay),
            jitter: self.jitter.or(both.jitter),
            jitter_reorders: self.jitter_reorders.or(both.jitter_reorders),
            queue: self.queue.or_else(|| both.queue.clone()),
            loss: self.loss.or_else(|| both.loss.clone()),
            reorder: self.reorder.or(both.reorder),
            reorder_delay: self.reorder_delay.or(both.reorder_delay),
            duplicate: self.duplicate.or(both.duplicate),
            corrupt: self.corrupt.or(both.corrupt),
            mtu: self.mtu.or_else(|| both.mtu.clone()),
            too_long_is_told: self.too_long_is_told.or(both.too_long_is_told),
            pause: self.pause.or(both.pause),
        }
    }
}

/// `[[change]]`: from `at` on, the keys that are given hold.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChangeTable {
    /// When.
    pub at: Nanoseconds,
    /// In both directions.
    #[serde(default)]
    pub link: PathTable,
    /// From the server to the client.
    #[serde(default)]
    pub from_server: PathTable,
    /// From the client to the server.
    #[serde(default)]
    pub from_client: PathTable,
    /// At the client.
    #[serde(default)]
    pub client: HostChange,
    /// At the server.
    #[serde(default)]
    pub server: HostChange,
}

/// `client` and `server` of a change.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HostChange {
    /// How frames are spread over the queues from then on: flows change their queue.
    pub spread: Option<SpreadName>,
}

/// `[[flow]]`: one connection that moves data one way.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FlowTable {
    /// The host that sends. Default: the server.
    pub from: Side,
    /// The host that opens the connection. Default: the client.
    pub opens: Option<Side>,
    /// When it opens. Default: at the start.
    pub start: Option<Nanoseconds>,
    /// How much is sent.
    pub bytes: Option<Spanned<Bytes>>,
    /// For how long is sent. Default, without `bytes`: to the end of the world.
    pub duration: Option<Nanoseconds>,
    /// How the receiver reads. Default: at once.
    pub reader: Option<ReaderModel>,
    /// How the sender writes. Default: as much as the send buffer takes.
    pub writer: Option<WriterModel>,
    /// Settings of both ends' sockets; they win over those of the hosts.
    pub tcp: TcpTable,
}
