//! Transfers over the links of a chip, from their text form to a prediction.

use super::{AskError, Counted, Direction, Rapidio, Transfer};
use crate::links::Links;
use crate::links::ethernet::{self, EthernetTransfer};
use crate::links::hyperlink::HyperlinkTransfer;
use crate::links::pcie::PcieTransfer;
use crate::links::srio::{Operation, SrioTransfer};
use crate::predict::Prediction;
use crate::soc::Soc;
use crate::units::{BitsPerSecond, Bytes};
use std::fmt::Display;

/// The burst size of a controller that nothing is said of.
const BURST: u64 = 128;
/// How many transactions share a doorbell in the guide's tests (section 7.1).
const SERIES: u32 = 16;

/// The prediction for a transfer over a link, at what the clocks of the chip run at; `None` for one that is no link's.
pub fn link(soc: &Soc, transfer: &Transfer) -> Option<Result<Prediction, AskError>> {
    if matches!(transfer, Transfer::Edma(_) | Transfer::Core { .. } | Transfer::Set { .. }) {
        return None;
    }
    link_at(&soc.links.at_clocks(|clock| soc.frequency(clock)), soc, transfer)
}

/// The same with links that know what their clocks run at.
pub(super) fn link_at(links: &Links, soc: &Soc, transfer: &Transfer) -> Option<Result<Prediction, AskError>> {
    Some(match transfer {
        Transfer::Pcie { direction, payload_bytes, both_ways, bridged, controller } => {
            burst(soc, controller.as_deref()).and_then(|burst| {
                let ask = PcieTransfer {
                    read: *direction == Direction::Read,
                    bidirectional: *both_ways,
                    payload: bytes(*payload_bytes),
                    burst,
                    bridged: *bridged,
                    lanes: None,
                };
                let pcie = links.pcie.as_ref().ok_or_else(|| missing("PCIe"))?;
                pcie.predict(&ask).map_err(refused)
            })
        }
        Transfer::Srio { transaction, payload_bytes, lanes, lane_mbaud, memory } => {
            let ask = SrioTransfer {
                operation: match transaction {
                    Rapidio::Nread => Operation::Nread,
                    Rapidio::Nwrite => Operation::Nwrite,
                    Rapidio::Type11 => Operation::Message,
                },
                payload: bytes(*payload_bytes),
                lanes: u8::try_from(*lanes).unwrap_or(u8::MAX),
                line_rate: BitsPerSecond::new(*lane_mbaud as f64 * 1e6),
                memory: memory.clone(),
                core_clock: None,
                series: SERIES,
            };
            let srio = links.srio.as_ref().ok_or_else(|| missing("Serial RapidIO"));
            srio.and_then(|srio| srio.predict(&ask).map_err(refused))
        }
        Transfer::Hyperlink { direction, memory, path } => {
            let ask = HyperlinkTransfer {
                read: *direction == Direction::Read,
                memory: memory.clone(),
                path: path.clone(),
                lanes: None,
                line_rate: None,
                core_clock: None,
            };
            let hyperlink = links.hyperlink.as_ref().ok_or_else(|| missing("HyperLink"));
            hyperlink.and_then(|hyperlink| hyperlink.predict(&ask).map_err(refused))
        }
        Transfer::Ethernet { frame_bytes, port, counted } => {
            ethernet(links, *frame_bytes, port.as_deref(), *counted)
        }
        Transfer::Tcp { workload } => tcp(links, workload),
        Transfer::Edma(_) | Transfer::Core { .. } | Transfer::Set { .. } => return None,
    })
}

fn ethernet(
    links: &Links,
    frame_bytes: u64,
    port: Option<&str>,
    counted: Counted,
) -> Result<Prediction, AskError> {
    let ports = &links.ethernet;
    let fastest = || ports.values().max_by(|a, b| a.rate.value().total_cmp(&b.rate.value()));
    let found = match port {
        None => fastest().ok_or_else(|| missing("Ethernet port"))?,
        Some(name) => {
            ports.get(name).ok_or_else(|| unknown("port", name, ports.keys().map(String::as_str)))?
        }
    };
    let ask = EthernetTransfer {
        frame: bytes(frame_bytes),
        counted: match counted {
            Counted::Line => ethernet::Counted::Line,
            Counted::Frame => ethernet::Counted::Frame,
            Counted::Packet => ethernet::Counted::Packet,
        },
        core_clock: None,
    };
    found.predict(&ask).map_err(refused)
}

fn tcp(links: &Links, workload: &str) -> Result<Prediction, AskError> {
    let servers = &links.tcp;
    if servers.is_empty() {
        return Err(missing("TCP server"));
    }
    let server = servers
        .get(workload)
        .ok_or_else(|| unknown("workload", workload, servers.keys().map(String::as_str)))?;
    // A server with requests is asked for requests: bytes are not what limits it.
    let answer = match &server.requests {
        Some(_) => server.predict_requests(links),
        None => server.predict(links),
    };
    answer.map_err(refused)
}

/// The burst size of a transfer controller.
fn burst(soc: &Soc, controller: Option<&str>) -> Result<Bytes, AskError> {
    let Some(name) = controller else { return Ok(bytes(BURST)) };
    match soc.transfer_controller(name) {
        Some((controller, _)) => Ok(*controller.default_burst),
        None => Err(unknown("transfer controller", name, controllers(soc))),
    }
}

/// The names of all transfer controllers.
pub fn controllers(soc: &Soc) -> impl Iterator<Item = &str> {
    soc.edma.values().flat_map(|edma| edma.transfer_controllers.iter().map(|tc| tc.name.as_str()))
}

fn bytes(count: u64) -> Bytes {
    Bytes::new(count as f64)
}

/// A link that the chip does not have.
fn missing(link: &str) -> AskError {
    AskError(format!("the chip's description has no {link}"))
}

/// A question that a model refuses; the error says what it expected.
pub fn refused(error: impl Display) -> AskError {
    AskError(error.to_string())
}

/// A name that the chip does not have.
pub fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> AskError {
    let known: Vec<&str> = known.collect();
    AskError(format!("no {kind} '{name}'; expected one of {}", known.join(", ")))
}
