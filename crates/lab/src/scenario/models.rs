//! Values of a scenario that have a short form in text and a long form as a table.

use linerate_fabric::units::{BitsPerSecond, Bytes, Nanoseconds, Ratio};
use linerate_sim::{CodelConfig, Jitter, Loss, Queue};
use linerate_transport::Pacing;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// The time as the simulator has it.
pub fn time(span: Nanoseconds) -> Duration {
    Duration::from_nanos(span.value() as u64)
}

/// A share of all segments, from "0 %" to "100 %".
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Share(pub f64);

impl Share {
    fn read(text: &str) -> Result<Share, String> {
        let ratio: Ratio = text
            .parse()
            .map_err(|_| format!("{text:?} is no share; expected 0 % to 100 %, such as \"0.5 %\""))?;
        match ratio.value() {
            share if (0.0..=1.0).contains(&share) => Ok(Share(share)),
            _ => Err(format!("{text:?} is no share; expected 0 % to 100 %")),
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        let text = String::deserialize(deserializer)?;
        Share::read(&text).map_err(D::Error::custom)
    }
}

/// `pacing`: "off", "auto", or a rate of payload such as "20 Mbit/s".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingModel(pub Pacing);

impl<'de> Deserialize<'de> for PacingModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PacingModel, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pacing = match text.as_str() {
            "off" => Pacing::Off,
            "auto" => Pacing::Auto,
            rate => match rate.parse::<BitsPerSecond>() {
                Ok(rate) => Pacing::Rate(rate.bytes().value() as u64),
                Err(_) => {
                    let what = "expected \"off\", \"auto\" or a rate such as \"20 Mbit/s\"";
                    return Err(D::Error::custom(format!("{rate:?} is no pacing; {what}")));
                }
            },
        };
        Ok(PacingModel(pacing))
    }
}

/// The seed: a number, or text where it is more than TOML's numbers hold.
pub fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(Seed).map(Some)
}

struct Seed;

impl Visitor<'_> for Seed {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u64::MAX)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A value that is read from text or from a table.
trait TextOrTable: Sized {
    /// The long form.
    type Table: for<'de> Deserialize<'de>;
    /// What is expected, to follow "expected".
    const EXPECTED: &'static str;

    fn from_text(text: &str) -> Result<Self, String>;
    fn from_table(table: Self::Table) -> Result<Self, String>;
}

struct Either<T>(PhantomData<T>);

impl<'de, T: TextOrTable> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let table = T::Table::deserialize(MapAccessDeserializer::new(map))?;
        T::from_table(table).map_err(A::Error::custom)
    }
}

macro_rules! either {
    ($($name:ty),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Either(PhantomData::<$name>))
            }
        }
    )*};
}

either!(LossModel, JitterModel, QueueModel, ReaderModel, WriterModel);

/// `loss`: "0.5 %", or a table.
#[derive(Clone, PartialEq, Debug)]
pub struct LossModel(pub Loss);

/// The table of `loss`.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LossTable {
    every: Option<u64>,
    frames: Option<Vec<u64>>,
    enter: Option<Share>,
    leave: Option<Share>,
    good: Option<Share>,
    bad: Option<Share>,
}

impl TextOrTable for LossModel {
    type Table = LossTable;
    const EXPECTED: &'static str = "a share such as \"0.5 %\", { every = 100 }, { frames = [3, 7] } or { enter = \"1 %\", leave = \"25 %\" }";

    fn from_text(text: &str) -> Result<Self, String> {
        Share::read(text).map(|share| LossModel(Loss::Random(share.0)))
    }

    fn from_table(table: LossTable) -> Result<Self, String> {
        let wanted = || Err(format!("this is no model of loss; expected {}", Self::EXPECTED));
        let is_burst = table.good.is_some() || table.bad.is_some();
        match (table.every, table.frames, table.enter, table.leave) {
            (Some(every), None, None, None) if every > 0 && !is_burst => Ok(LossModel(Loss::EveryNth(every))),
            (None, Some(mut frames), None, None) if !is_burst => {
                frames.sort_unstable();
                Ok(LossModel(Loss::List(frames)))
            }
            (None, None, Some(enter), Some(leave)) => Ok(LossModel(Loss::GilbertElliott {
                enter: enter.0,
                leave: leave.0,
                good: table.good.map_or(0.0, |share| share.0),
                bad: table.bad.map_or(1.0, |share| share.0),
            })),
            _ => wanted(),
        }
    }
}

/// `jitter`: "2 ms" (from zero to this much more), or { normal = "1 ms" }.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JitterModel(pub Jitter);

/// The table of `jitter`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JitterTable {
    normal: Nanoseconds,
}

impl TextOrTable for JitterModel {
    type Table = JitterTable;
    const EXPECTED: &'static str = "a time such as \"2 ms\", or { normal = \"1 ms\" }";

    fn from_text(text: &str) -> Result<Self, String> {
        let most: Nanoseconds = text.parse().map_err(|error| format!("{error}"))?;
        Ok(JitterModel(Jitter::Uniform(time(most))))
    }

    fn from_table(table: JitterTable) -> Result<Self, String> {
        Ok(JitterModel(Jitter::Normal(time(table.normal))))
    }
}

/// Least bytes of a queue: Ethernet, IPv4 and TCP headers.
pub const LEAST_QUEUE: usize = 54;

/// `queue`: "64 KiB", "50 ms" at the path's rate, "codel", or a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QueueModel {
    /// As the simulator has it.
    Of(Queue),
    /// As many bytes as the path sends in this time.
    Time(Duration),
}

/// The table of `queue`.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QueueTable {
    packets: Option<usize>,
    bytes: Option<Bytes>,
    mark: Option<Bytes>,
    codel: bool,
    target: Option<Nanoseconds>,
    interval: Option<Nanoseconds>,
    ecn: bool,
}

impl TextOrTable for QueueModel {
    type Table = QueueTable;
    const EXPECTED: &'static str = "a size such as \"64 KiB\", a time such as \"50 ms\", \"codel\", or one of \
        { packets = 100, bytes = \"64 KiB\" }, { mark = \"30 KiB\", bytes = \"200 KiB\" }, \
        { codel = true, target = \"5 ms\", interval = \"100 ms\", ecn = true, packets = 1000 }";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "codel" {
            return Ok(QueueModel::Of(Queue::Codel(CodelConfig::default())));
        }
        if let Ok(bytes) = text.parse::<Bytes>() {
            return with_room(Queue::bytes(bytes.value() as usize));
        }
        let wanted = |_| format!("{text:?} is no queue; expected {}", Self::EXPECTED);
        text.parse().map(|span| QueueModel::Time(time(span))).map_err(wanted)
    }

    fn from_table(table: QueueTable) -> Result<Self, String> {
        let bytes = table.bytes.map(|bytes| bytes.value() as usize);
        let has_codel_keys = table.target.is_some() || table.interval.is_some() || table.ecn;
        let queue = match (table.codel, table.mark) {
            (true, None) if bytes.is_none() => {
                let default = CodelConfig::default();
                Queue::Codel(CodelConfig {
                    target: table.target.map_or(default.target, time),
                    interval: table.interval.map_or(default.interval, time),
                    ecn: table.ecn,
                    packets: table.packets.unwrap_or(default.packets),
                    ..default
                })
            }
            (false, Some(mark)) if table.packets.is_none() && !has_codel_keys => {
                Queue::Threshold { mark_bytes: mark.value() as usize, bytes: bytes.unwrap_or(usize::MAX) }
            }
            (false, None) if !has_codel_keys && (bytes.is_some() || table.packets.is_some()) => {
                Queue::DropTail {
                    packets: table.packets.unwrap_or(usize::MAX),
                    bytes: bytes.unwrap_or(usize::MAX),
                }
            }
            _ => return Err(format!("these keys make no queue; expected {}", Self::EXPECTED)),
        };
        with_room(queue)
    }
}

/// A queue that takes the shortest segment at least: what leaves has waited in it, be it for no time.
fn with_room(queue: Queue) -> Result<QueueModel, String> {
    let (packets, bytes) = match queue {
        Queue::DropTail { packets, bytes } => (packets, bytes),
        Queue::Threshold { bytes, .. } => (usize::MAX, bytes),
        Queue::Codel(CodelConfig { packets, .. }) => (packets, usize::MAX),
    };
    match packets >= 1 && bytes >= LEAST_QUEUE {
        true => Ok(QueueModel::Of(queue)),
        false => Err(no_room()),
    }
}

/// What is expected of a queue that nothing can pass.
pub fn no_room() -> String {
    format!(
        "nothing passes such a queue; expected 1 packet and {LEAST_QUEUE} B (the shortest segment) at least"
    )
}

/// `reader`: "20 Mbit/s", "never", or { from = "3 s" }.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ReaderModel {
    /// At this many bits per second.
    Rate(BitsPerSecond),
    /// All, but not before this time of the world.
    From(Duration),
    /// Never.
    Never,
}

/// The table of `reader`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReaderTable {
    from: Nanoseconds,
}

impl TextOrTable for ReaderModel {
    type Table = ReaderTable;
    const EXPECTED: &'static str = "a rate such as \"20 Mbit/s\", \"never\", or { from = \"3 s\" }";

    fn from_text(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(ReaderModel::Never);
        }
        let wanted = || format!("{text:?} is no way to read; expected {}", Self::EXPECTED);
        let rate: BitsPerSecond = text.parse().map_err(|_| wanted())?;
        if rate.value() >= 1.0 { Ok(ReaderModel::Rate(rate)) } else { Err(wanted()) }
    }

    fn from_table(table: ReaderTable) -> Result<Self, String> {
        Ok(ReaderModel::From(time(table.from)))
    }
}

/// Most bytes of a call: the transport takes no more at once.
const MOST_IN_A_CALL: u64 = 64 << 10;

/// `writer`: "20 Mbit/s", { bytes = "100 B", every = "1 ms" }, { request = "2000 B" }, or { calls = "512 B", gives-way = true }.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WriterModel {
    /// At this many bits per second.
    Rate(BitsPerSecond),
    /// So many bytes, every so often.
    Pieces {
        /// Bytes at once.
        bytes: u64,
        /// Time between two pieces.
        every: Duration,
    },
    /// Calls of so many bytes each, whenever there is room.
    Calls {
        /// Bytes of each call.
        bytes: u64,
        /// Whether the writer gives way after each.
        gives_way: bool,
    },
    /// So many bytes, and the next as many when the receiver has answered with one.
    Request {
        /// Bytes at once.
        bytes: u64,
    },
}

/// The table of `writer`.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WriterTable {
    bytes: Option<Bytes>,
    every: Option<Nanoseconds>,
    request: Option<Bytes>,
    calls: Option<Bytes>,
    gives_way: bool,
}

impl TextOrTable for WriterModel {
    type Table = WriterTable;
    const EXPECTED: &'static str = "a rate such as \"20 Mbit/s\", { bytes = \"100 B\", every = \"1 ms\" }, { request = \"2000 B\" } or \
        { calls = \"512 B\", gives-way = true }";

    fn from_text(text: &str) -> Result<Self, String> {
        let wanted = || format!("{text:?} is no way to write; expected {}", Self::EXPECTED);
        let rate: BitsPerSecond = text.parse().map_err(|_| wanted())?;
        if rate.value() >= 1.0 { Ok(WriterModel::Rate(rate)) } else { Err(wanted()) }
    }

    fn from_table(table: WriterTable) -> Result<Self, String> {
        let whole = |bytes: Bytes| Some(bytes.value() as u64).filter(|bytes| *bytes > 0);
        let found = match (table.bytes, table.every, table.request, table.calls) {
            (None, None, None, Some(bytes)) => whole(bytes)
                .filter(|bytes| *bytes <= MOST_IN_A_CALL)
                .map(|bytes| WriterModel::Calls { bytes, gives_way: table.gives_way }),
            _ if table.gives_way => None,
            (Some(bytes), Some(every), None, None) if every.value() >= 1.0 => {
                whole(bytes).map(|bytes| WriterModel::Pieces { bytes, every: time(every) })
            }
            (None, None, Some(bytes), None) => whole(bytes).map(|bytes| WriterModel::Request { bytes }),
            _ => None,
        };
        found.ok_or_else(|| format!("these keys say nothing about writing; expected {}", Self::EXPECTED))
    }
}
