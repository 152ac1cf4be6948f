//! The text form of a transfer, such as `edma:TC0:L2.0->MSMC:32KiB,sync=ab` or `srio:nwrite:4KiB:4x:5G:L2`.
//!
//! A transfer is a kind, then parts between `:` or `,`. A part with `=` is an option, and may stand anywhere; the
//! others have their places. What a kind leaves out takes the value that the guide measured with.

use std::fmt;
use std::str::FromStr;

/// A text that is not a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransferError(String);

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TransferError {}

/// How much a trigger moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// One array of ACNT bytes.
    A,
    /// One frame of BCNT arrays.
    Ab,
}

/// Read or write, seen from the master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Data comes to the master.
    Read,
    /// Data leaves the master.
    Write,
}

/// Whether reads wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// One read at a time: its latency.
    Single,
    /// Reads that follow a stride.
    Burst,
}

/// A RapidIO transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rapidio {
    /// Read request and response.
    Nread,
    /// Write without response.
    Nwrite,
    /// Message passing.
    Type11,
}

/// What an Ethernet rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Frame, preamble and gap.
    Line,
    /// The frame.
    Frame,
    /// What is in it.
    Packet,
}

/// An EDMA transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edma {
    /// Transfer controller.
    pub controller: String,
    /// Endpoint read from.
    pub from: String,
    /// Endpoint written to.
    pub to: String,
    /// Both ways at once, on two logical channels.
    pub both_ways: bool,
    /// Synchronisation.
    pub sync: Sync,
    /// Bytes of an array.
    pub a_bytes: u64,
    /// Arrays of a frame.
    pub b_count: u64,
    /// Frames of a block.
    pub c_count: u64,
    /// Distance of arrays in bytes at both ends; `None` for contiguous ones.
    pub index_bytes: Option<u64>,
    /// Distance of the start from a burst boundary in bytes.
    pub misaligned_bytes: u64,
}

/// A transfer as asked for; names are looked up in the chip's description later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// Through an EDMA transfer controller.
    Edma(Edma),
    /// A core's loads.
    Core {
        /// Kind of core.
        core: String,
        /// Memory read.
        memory: String,
        /// How.
        access: Access,
    },
    /// Between two chips over PCIe.
    Pcie {
        /// Direction.
        direction: Direction,
        /// Payload of a packet in bytes.
        payload_bytes: u64,
        /// Both chips do it at once.
        both_ways: bool,
        /// A bridge between switch fabrics lies between controller and port.
        bridged: bool,
        /// Transfer controller that feeds the port; one of 128 B bursts if not given.
        controller: Option<String>,
    },
    /// Between two chips over Serial RapidIO.
    Srio {
        /// Transaction.
        transaction: Rapidio,
        /// Bytes of the transfer.
        payload_bytes: u64,
        /// Lanes.
        lanes: u64,
        /// Signalling rate of a lane in Mbaud.
        lane_mbaud: u64,
        /// Memory at both ends.
        memory: String,
    },
    /// Between two chips over HyperLink.
    Hyperlink {
        /// Direction.
        direction: Direction,
        /// Memory of the far chip.
        memory: String,
        /// Way from the EDMA controller to the link, by its name in the chip's description.
        path: String,
    },
    /// Frames into memory.
    Ethernet {
        /// Bytes of a frame, header and check sequence included.
        frame_bytes: u64,
        /// Port by its name in the chip's description; the fastest if not given.
        port: Option<String>,
        /// What the rate counts.
        counted: Counted,
    },
    /// A TCP server on the chip.
    Tcp {
        /// Name of a workload in the chip's description.
        workload: String,
    },
}

/// What each kind looks like, for help and for errors.
pub const FORMS: [(&str, &str); 7] = [
    ("edma", "edma:TC:FROM->TO[:SIZE][,sync=a|ab][,acnt=N][,bcnt=N][,ccnt=N][,index=BYTES][,align=BYTES]"),
    ("core", "core:CORE:MEMORY[:single|burst]"),
    ("pcie", "pcie:read|write[:PAYLOAD][:bidir][:bridged][,edma=TC]"),
    ("srio", "srio:nread|nwrite|type11[:SIZE][:LANESx][:RATEG][:MEMORY]"),
    ("hyperlink", "hyperlink:read|write:MEMORY[,path=NAME]"),
    ("ethernet", "ethernet:SIZE[,port=NAME][,count=line|frame|packet]"),
    ("tcp", "tcp:WORKLOAD"),
];

/// Largest size that is taken: beyond it a prediction says nothing new.
const MAX_BYTES: u64 = 1 << 40;

impl fmt::Display for Transfer {
    /// The canonical form, which parses to the same transfer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = |direction: &Direction| match direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        match self {
            Transfer::Edma(edma) => edma.fmt(f),
            Transfer::Core { core, memory, access } => {
                let access = match access {
                    Access::Single => "single",
                    Access::Burst => "burst",
                };
                write!(f, "core:{core}:{memory}:{access}")
            }
            Transfer::Pcie { direction, payload_bytes, both_ways, bridged, controller } => {
                write!(f, "pcie:{}:{payload_bytes}B", way(direction))?;
                f.write_str(if *both_ways { ":bidir" } else { "" })?;
                f.write_str(if *bridged { ":bridged" } else { "" })?;
                controller.iter().try_for_each(|controller| write!(f, ",edma={controller}"))
            }
            Transfer::Srio { transaction, payload_bytes, lanes, lane_mbaud, memory } => {
                let transaction = match transaction {
                    Rapidio::Nread => "nread",
                    Rapidio::Nwrite => "nwrite",
                    Rapidio::Type11 => "type11",
                };
                let rate = *lane_mbaud as f64 / 1000.0;
                write!(f, "srio:{transaction}:{payload_bytes}B:{lanes}x:{rate}G:{memory}")
            }
            Transfer::Hyperlink { direction, memory, path } => {
                write!(f, "hyperlink:{}:{memory},path={path}", way(direction))
            }
            Transfer::Ethernet { frame_bytes, port, counted } => {
                write!(f, "ethernet:{frame_bytes}B")?;
                port.iter().try_for_each(|port| write!(f, ",port={port}"))?;
                f.write_str(match counted {
                    Counted::Line => ",count=line",
                    Counted::Frame => ",count=frame",
                    Counted::Packet => ",count=packet",
                })
            }
            Transfer::Tcp { workload } => write!(f, "tcp:{workload}"),
        }
    }
}

impl fmt::Display for Edma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.both_ways { "<->" } else { "->" };
        write!(f, "edma:{}:{}{arrow}{}", self.controller, self.from, self.to)?;
        if (self.b_count, self.c_count) == (1, 1) {
            write!(f, ":{}B", self.a_bytes)?;
        } else {
            let sync = match self.sync {
                Sync::A => "a",
                Sync::Ab => "ab",
            };
            let (a_bytes, b_count, c_count) = (self.a_bytes, self.b_count, self.c_count);
            write!(f, ",sync={sync},acnt={a_bytes},bcnt={b_count},ccnt={c_count}")?;
        }
        self.index_bytes.iter().try_for_each(|index| write!(f, ",index={index}"))?;
        match self.misaligned_bytes {
            0 => Ok(()),
            bytes => write!(f, ",align={bytes}"),
        }
    }
}

/// The parts of a transfer that are left to read.
struct Parts<'a> {
    form: &'static str,
    places: std::vec::IntoIter<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str, form: &'static str) -> Result<Parts<'a>, TransferError> {
        let mut places = Vec::new();
        let mut options: Vec<(&str, &str)> = Vec::new();
        for part in text.split([':', ',']) {
            let part = part.trim();
            match part.split_once('=') {
                _ if part.is_empty() => return Err(TransferError(format!("an empty part; expected {form}"))),
                Some((key, value)) if options.iter().all(|(known, _)| *known != key) => {
                    options.push((key, value));
                }
                Some((key, _)) => return Err(TransferError(format!("'{key}' is given twice"))),
                None => places.push(part),
            }
        }
        Ok(Parts { form, places: places.into_iter(), options })
    }

    fn place(&mut self, what: &str) -> Result<&'a str, TransferError> {
        let form = self.form;
        self.places.next().ok_or_else(|| TransferError(format!("no {what}; expected {form}")))
    }

    /// The next place if `wanted` says it is one of its kind.
    fn place_if(&mut self, wanted: impl Fn(&str) -> bool) -> Option<&'a str> {
        self.places.as_slice().first().filter(|part| wanted(part))?;
        self.places.next()
    }

    fn option(&mut self, key: &str) -> Option<&'a str> {
        let at = self.options.iter().position(|(known, _)| *known == key)?;
        Some(self.options.remove(at).1)
    }

    fn size_option(&mut self, key: &str) -> Result<Option<u64>, TransferError> {
        self.option(key).map(|text| size(key, text)).transpose()
    }

    fn count_option(&mut self, key: &str) -> Result<Option<u64>, TransferError> {
        let count = |text: &str| match text.parse() {
            Ok(count) if (1..=65_535).contains(&count) => Ok(count),
            _ => Err(TransferError(format!("'{text}' for '{key}'; expected a count from 1 to 65535"))),
        };
        self.option(key).map(count).transpose()
    }

    /// Refuses what nobody asked for.
    fn end(mut self) -> Result<(), TransferError> {
        let form = self.form;
        if let Some((key, _)) = self.options.first() {
            return Err(TransferError(format!("unknown option '{key}'; expected {form}")));
        }
        match self.places.next() {
            Some(part) => Err(TransferError(format!("unexpected '{part}'; expected {form}"))),
            None => Ok(()),
        }
    }
}

impl FromStr for Transfer {
    type Err = TransferError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((name, form)) = FORMS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(kind.trim()))
        else {
            let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
            return Err(TransferError(format!(
                "unknown kind '{kind}'; expected a transfer that starts with one of {}",
                names.join(", ")
            )));
        };
        let mut parts = Parts::split(rest, form)?;
        let transfer = match name {
            "edma" => edma(&mut parts)?,
            "core" => core(&mut parts)?,
            "pcie" => pcie(&mut parts)?,
            "srio" => srio(&mut parts)?,
            "hyperlink" => hyperlink(&mut parts)?,
            "ethernet" => ethernet(&mut parts)?,
            _ => Transfer::Tcp { workload: parts.place("workload")?.to_owned() },
        };
        parts.end()?;
        Ok(transfer)
    }
}

fn edma(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let controller = parts.place("transfer controller")?.to_owned();
    let path = parts.place("path FROM->TO")?;
    let (both_ways, ends) = match path.split_once("<->") {
        Some(ends) => (true, Some(ends)),
        None => (false, path.split_once("->")),
    };
    let (from, to) = match ends {
        Some((from, to)) if !from.trim().is_empty() && !to.trim().is_empty() => (from.trim(), to.trim()),
        _ => return Err(TransferError(format!("'{path}' is no path; expected FROM->TO or FROM<->TO"))),
    };
    let total = match parts.places.next() {
        Some(text) => Some(size("the size", text)?),
        None => None,
    };
    let sync = match parts.option("sync") {
        None => Sync::A,
        Some(text) => one_of("sync", text, &[("a", Sync::A), ("ab", Sync::Ab)])?,
    };
    let b_count = parts.count_option("bcnt")?.unwrap_or(1);
    let c_count = parts.count_option("ccnt")?.unwrap_or(1);
    let a_bytes = match (parts.size_option("acnt")?, total) {
        (Some(a_bytes), None) => a_bytes,
        (None, Some(total)) if total.is_multiple_of(b_count * c_count) => total / (b_count * c_count),
        (None, None) => 32 << 10,
        (None, Some(total)) => {
            return Err(TransferError(format!(
                "{total} B are no {b_count} x {c_count} arrays of one length"
            )));
        }
        (Some(a_bytes), Some(total)) if a_bytes.saturating_mul(b_count * c_count) == total => a_bytes,
        (Some(a_bytes), Some(total)) => {
            return Err(TransferError(format!(
                "acnt x bcnt x ccnt is {} B and the size {total} B; expected one of the two, or the same",
                a_bytes.saturating_mul(b_count * c_count)
            )));
        }
    };
    let index_bytes = parts.size_option("index")?;
    let misaligned_bytes = parts.option("align").map_or(Ok(0), |text| whole("align", text))?;
    let (from, to) = (from.to_owned(), to.to_owned());
    Ok(Transfer::Edma(Edma {
        controller,
        from,
        to,
        both_ways,
        sync,
        a_bytes,
        b_count,
        c_count,
        index_bytes,
        misaligned_bytes,
    }))
}

fn core(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let core = parts.place("core")?.to_owned();
    let memory = parts.place("memory")?.to_owned();
    let access = match parts.places.next() {
        None => Access::Single,
        Some(text) => one_of("access", text, &[("single", Access::Single), ("burst", Access::Burst)])?,
    };
    Ok(Transfer::Core { core, memory, access })
}

const DIRECTIONS: [(&str, Direction); 2] = [("read", Direction::Read), ("write", Direction::Write)];

fn pcie(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let direction = one_of("direction", parts.place("direction")?, &DIRECTIONS)?;
    let payload = parts.place_if(|part| part.starts_with(|first: char| first.is_ascii_digit()));
    let payload_bytes = payload.map_or(Ok(128), |text| size("payload", text))?;
    let (mut both_ways, mut bridged) = (false, false);
    for part in parts.places.by_ref() {
        let flags = [("bidir", true), ("bridged", false)];
        match one_of("mode", part, &flags)? {
            true => both_ways = true,
            false => bridged = true,
        }
    }
    let controller = parts.option("edma").map(str::to_owned);
    Ok(Transfer::Pcie { direction, payload_bytes, both_ways, bridged, controller })
}

fn srio(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let known = [("nread", Rapidio::Nread), ("nwrite", Rapidio::Nwrite), ("type11", Rapidio::Type11)];
    let transaction = one_of("transaction", parts.place("transaction")?, &known)?;
    let number = |part: &str, unit: char| part.to_ascii_lowercase().strip_suffix(unit).map(str::to_owned);
    let is = |part: &str, unit| number(part, unit).is_some_and(|text| text.parse::<f64>().is_ok());
    let payload = parts
        .place_if(|part| part.starts_with(|c: char| c.is_ascii_digit()) && !is(part, 'x') && !is(part, 'g'));
    let payload_bytes = payload.map_or(Ok(4096), |text| size("the size", text))?;
    let lanes = match parts.place_if(|part| is(part, 'x')) {
        None => 4,
        Some(text) => one_of("lanes", text, &[("1x", 1), ("2x", 2), ("4x", 4)])?,
    };
    let lane_mbaud = match parts.place_if(|part| is(part, 'g')) {
        None => 5000,
        Some(text) => {
            let rates = [("1.25g", 1250), ("2.5g", 2500), ("3.125g", 3125), ("5g", 5000), ("6.25g", 6250)];
            one_of("rate", text, &rates)?
        }
    };
    let memory = parts.places.next().unwrap_or("L2").to_owned();
    Ok(Transfer::Srio { transaction, payload_bytes, lanes, lane_mbaud, memory })
}

fn hyperlink(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let direction = one_of("direction", parts.place("direction")?, &DIRECTIONS)?;
    let memory = parts.place("memory")?.to_owned();
    let path = parts.option("path").unwrap_or("near").to_owned();
    Ok(Transfer::Hyperlink { direction, memory, path })
}

fn ethernet(parts: &mut Parts<'_>) -> Result<Transfer, TransferError> {
    let frame_bytes = size("the frame", parts.place("frame size")?)?;
    let port = parts.option("port").map(str::to_owned);
    let known = [("line", Counted::Line), ("frame", Counted::Frame), ("packet", Counted::Packet)];
    let counted = parts.option("count").map_or(Ok(Counted::Frame), |text| one_of("count", text, &known))?;
    Ok(Transfer::Ethernet { frame_bytes, port, counted })
}

fn one_of<T: Copy>(name: &str, text: &str, known: &[(&str, T)]) -> Result<T, TransferError> {
    match known.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(TransferError(format!("'{text}' for '{name}'; expected one of {}", words.join(", "))))
        }
    }
}

fn whole(name: &str, text: &str) -> Result<u64, TransferError> {
    match text.parse() {
        Ok(number) if number <= 65_535 => Ok(number),
        _ => Err(TransferError(format!("'{text}' for '{name}'; expected a whole number up to 65535"))),
    }
}

/// A size: a whole number of bytes with B, KiB, MiB, kB or MB, or without a unit.
fn size(name: &str, text: &str) -> Result<u64, TransferError> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kib" | "k" => Some(1 << 10),
        "mib" | "m" => Some(1 << 20),
        "kb" => Some(1000),
        "mb" => Some(1_000_000),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    match bytes {
        Some(bytes) if (1..=MAX_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(TransferError(format!(
            "'{text}' for '{name}'; expected a size such as 64, 128B, 32KiB or 1MiB"
        ))),
    }
}

#[cfg(test)]
mod tests;
