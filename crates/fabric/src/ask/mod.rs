//! Questions to a chip as text, such as `edma:TC0:L2.0->MSMC:32KiB,sync=ab` or `srio:nwrite:4KiB:4x:5G:L2`.
//!
//! A transfer is a kind, then parts between `:` or `,`. A part with `=` is an option, and may stand anywhere; the
//! others have their places. What a kind leaves out takes the value that the guide measured with. [`answer`] predicts
//! what a text asks for.

pub mod advice;
mod inside;
mod outside;
mod parse;
pub mod ready;
#[cfg(test)]
mod tests;

pub(crate) use inside::endpoint;
pub use inside::{edma, edma_transfers, read, set, simulate};
pub use outside::{controllers, link};

use crate::hierarchy::{Question, Work};
use crate::memory::Pattern;
use crate::predict::Prediction;
use crate::soc::Soc;
use std::fmt;

/// A text that is no transfer, or a transfer that the chip cannot do: what is wrong and what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskError(String);

impl AskError {
    /// What is wrong and what was expected.
    pub fn new(what: impl fmt::Display) -> Self {
        Self(what.to_string())
    }

    /// The same with the name of what it is about.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        Self(format!("{name}: {}", self.0))
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AskError {}

/// The prediction for transfers that a text names, `" and "` between several that run at the same time.
///
/// # Errors
/// What is no transfer, what the chip does not have, and transfers of different kinds: they have no rate in common.
pub fn answer(soc: &Soc, text: &str) -> Result<Prediction, AskError> {
    let transfers: Vec<Transfer> = text.split(" and ").map(str::parse).collect::<Result<_, _>>()?;
    match transfers.as_slice() {
        [one] => single(soc, one),
        several => {
            let edma: Option<Vec<&Edma>> = several
                .iter()
                .map(|transfer| match transfer {
                    Transfer::Edma(edma) => Some(edma),
                    _ => None,
                })
                .collect();
            let edma =
                edma.ok_or_else(|| AskError("transfers with one rate in common; expected edma only".into()))?;
            inside::edma(soc, &edma, true)
        }
    }
}

/// The figure of [`answer`] alone, for fits that ask many times.
///
/// # Errors
/// As [`answer`].
pub fn figure(soc: &Soc, text: &str) -> Result<f64, AskError> {
    match text.parse() {
        Ok(Transfer::Set { core, question }) => inside::set_figure(soc, &core, question),
        _ => Ok(answer(soc, text)?.predicted),
    }
}

/// The prediction for one transfer alone.
///
/// # Errors
/// What the chip does not have.
pub fn single(soc: &Soc, transfer: &Transfer) -> Result<Prediction, AskError> {
    match transfer {
        Transfer::Edma(edma) => inside::edma(soc, &[edma], true),
        Transfer::Core { core, memory, access } => read(soc, core, memory, access.pattern()),
        Transfer::Set { core, question } => set(soc, core, *question),
        other => link(soc, other).unwrap_or_else(|| Err(AskError("expected a transfer over a link".into()))),
    }
}

impl Access {
    /// The same as the model of memories names it.
    pub const fn pattern(self) -> Pattern {
        match self {
            Self::Single => Pattern::Single,
            Self::Burst => Pattern::Burst,
        }
    }
}

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

impl Edma {
    /// A contiguous transfer of so many bytes.
    pub fn linear(controller: &str, from: &str, to: &str, bytes: u64) -> Self {
        Self {
            controller: controller.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            both_ways: false,
            sync: Sync::A,
            a_bytes: bytes,
            b_count: 1,
            c_count: 1,
            index_bytes: None,
            misaligned_bytes: 0,
        }
    }
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
    /// A core's loads and stores in a working set.
    Set {
        /// Kind of core.
        core: String,
        /// What it does with how much.
        question: Question,
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
pub const FORMS: [(&str, &str); 10] = [
    ("edma", "edma:TC:FROM->TO[:SIZE][,sync=a|ab][,acnt=N][,bcnt=N][,ccnt=N][,index=BYTES][,align=BYTES]"),
    ("core", "core:CORE:MEMORY[:single|burst]"),
    ("load", "load:CORE:SIZE[:single|burst][,stride=BYTES]"),
    ("store", "store:CORE:SIZE"),
    ("memory", "memory:CORE:read|fill|copy:SIZE[,cores=N][,element=BYTES][,from=BYTES][,to=BYTES]"),
    ("pcie", "pcie:read|write[:PAYLOAD][:bidir][:bridged][,edma=TC]"),
    ("srio", "srio:nread|nwrite|type11[:SIZE][:LANESx][:RATEG][:MEMORY]"),
    ("hyperlink", "hyperlink:read|write:MEMORY[,path=NAME]"),
    ("ethernet", "ethernet:SIZE[,port=NAME][,count=line|frame|packet]"),
    ("tcp", "tcp:WORKLOAD"),
];

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
            Transfer::Set { core, question } => of_set(f, core, question),
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

fn of_set(f: &mut fmt::Formatter<'_>, core: &str, question: &Question) -> fmt::Result {
    let bytes = question.bytes;
    match question.work {
        Work::Chase(stride) => write!(f, "load:{core}:{bytes}B:single,stride={stride}"),
        Work::Stride(stride) => write!(f, "load:{core}:{bytes}B:burst,stride={stride}"),
        Work::Gather => write!(f, "load:{core}:{bytes}B:burst"),
        Work::Scatter => write!(f, "store:{core}:{bytes}B"),
        Work::Read(_) => write!(f, "memory:{core}:read:{bytes}B"),
        Work::Fill => write!(f, "memory:{core}:fill:{bytes}B"),
        Work::Copy(..) => write!(f, "memory:{core}:copy:{bytes}B"),
    }?;
    match question.cores {
        1 => {}
        cores => write!(f, ",cores={cores}")?,
    }
    match question.work {
        Work::Read(Some(width)) => write!(f, ",element={width}"),
        Work::Copy(from, to) if (from, to) != (0, 0) => write!(f, ",from={from},to={to}"),
        _ => Ok(()),
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
