//! A mix as text: flows with priorities, starts and the place of their data.

use crate::ask::{AskError, Edma, Transfer, edma_transfers, endpoint};
use crate::document;
use crate::edma;
use crate::soc::{Soc, SocError};
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};
use serde::Deserialize;

/// Traffic on a chip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is.
    pub title: String,
    /// Its flows.
    #[serde(rename = "flow")]
    pub flows: Vec<FlowText>,
}

/// One flow as a file has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowText {
    /// Its name.
    pub name: String,
    /// A transfer as for `predict`; or `copy:CORE:FROM->TO` and `fill:CORE:TO` for what a core moves.
    pub transfer: String,
    /// 0 is the most urgent; 4 when left out.
    #[serde(default = "middle")]
    pub priority: u8,
    /// When it begins; at once when left out.
    #[serde(default)]
    pub start: Option<Nanoseconds>,
    /// How much it moves, where the transfer does not say.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Whether it goes on until the others have ended.
    #[serde(default)]
    pub background: bool,
    /// The most that it does, where something outside the chip holds it back.
    #[serde(default)]
    pub rate: Option<BytesPerSecond>,
    /// The memory of the chip that the data of a link comes from.
    #[serde(default)]
    pub from: Option<String>,
    /// The memory that the data of a link goes to.
    #[serde(default)]
    pub to: Option<String>,
    /// The transfer controller that moves it.
    #[serde(default)]
    pub via: Option<String>,
}

fn middle() -> u8 {
    4
}

/// The lowest urgency.
const LAST: u8 = 7;
/// What a flow moves that says nothing of it.
const MOVED: Bytes = Bytes::new(1_048_576.0);

/// Reads a mix.
///
/// # Errors
/// The first mistake with its line and column.
pub fn load(text: &str) -> Result<Scenario, SocError> {
    let scenario: Scenario = document::read(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        SocError::at(text, &span, error.message())
    })?;
    for (at, flow) in scenario.flows.iter().enumerate() {
        if scenario.flows.iter().take(at).any(|before| before.name == flow.name) {
            let second = text.match_indices(&format!("{:?}", flow.name)).nth(1).map_or(0, |(at, _)| at);
            let what = format!("a second flow named {:?}; expected a name of its own", flow.name);
            return Err(SocError::at(text, &(second..second), what));
        }
        if flow.priority > LAST {
            let at = text.find(&flow.name).unwrap_or(0);
            let what =
                format!("flow {:?} has priority {}; expected 0 (first) to {LAST}", flow.name, flow.priority);
            return Err(SocError::at(text, &(at..at), what));
        }
    }
    Ok(scenario)
}

/// What a core moves.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Copy {
    pub(super) core: String,
    /// The source of its reads; none when it only writes.
    pub(super) from: Option<String>,
    /// The memory behind that source, where the chip has it.
    pub(super) behind: Option<String>,
    /// The memory that it writes; none when it only reads.
    pub(super) to: Option<String>,
}

/// A flow looked up in the chip.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) transfer: Transfer,
    /// What moves through controllers; empty for a core.
    pub(super) moves: Vec<edma::Transfer>,
    /// Whether the flow names a controller, whose buses count.
    pub(super) via: bool,
    /// For a link with one memory: whether its data is written there.
    pub(super) side: Option<bool>,
    pub(super) copy: Option<Copy>,
}

pub(super) fn transfers(soc: &Soc, scenario: &Scenario) -> Result<Vec<Asked>, AskError> {
    scenario.flows.iter().map(|flow| asked(soc, flow).map_err(|error| error.of(&flow.name))).collect()
}

fn asked(soc: &Soc, flow: &FlowText) -> Result<Asked, AskError> {
    if let Some(copy) = copy(soc, &flow.transfer)? {
        names_its_memory(flow)?;
        let transfer = Transfer::Tcp { workload: String::new() };
        return Ok(Asked { transfer, moves: Vec::new(), via: false, side: None, copy: Some(copy) });
    }
    let transfer: Transfer = flow.transfer.parse()?;
    let moves = match &transfer {
        Transfer::Edma(edma) => {
            names_its_memory(flow)?;
            edma_transfers(soc, &[edma])?
        }
        Transfer::Core { .. } | Transfer::Set { .. } => {
            return Err(AskError::new("a latency is no flow; expected copy:CORE:FROM->TO or fill:CORE:TO"));
        }
        _ => vec![of_link(soc, flow)?],
    };
    let link = !matches!(transfer, Transfer::Edma(_));
    let side = (link && !(flow.from.is_some() && flow.to.is_some())).then_some(flow.to.is_some());
    Ok(Asked { transfer, moves, via: flow.via.is_some(), side, copy: None })
}

/// Refuses what only flows over links have to say.
fn names_its_memory(flow: &FlowText) -> Result<(), AskError> {
    let keys = [("from", &flow.from), ("to", &flow.to), ("via", &flow.via)];
    match keys.into_iter().find(|(_, value)| value.is_some()) {
        None => Ok(()),
        Some((key, _)) => Err(AskError::new(format!(
            "'{key}' beside '{}', which says where its data lies and who moves it; expected it with links and servers alone",
            flow.transfer
        ))),
    }
}

/// The way of a link's data inside the chip: into a memory, out of one, or from one to another.
fn of_link(soc: &Soc, flow: &FlowText) -> Result<edma::Transfer, AskError> {
    let memory = flow.to.as_ref().or(flow.from.as_ref());
    let Some(memory) = memory else {
        return Err(AskError::new(
            "a flow over a link takes memory of the chip; expected from or to, the name of one",
        ));
    };
    let named = Edma::linear(
        flow.via.as_deref().or_else(|| first_controller(soc, memory)).unwrap_or(""),
        flow.from.as_ref().unwrap_or(memory),
        flow.to.as_ref().unwrap_or(memory),
        flow.bytes.unwrap_or(MOVED).value() as u64,
    );
    edma_transfers(soc, &[&named])?.into_iter().next().ok_or_else(|| AskError::new("expected a way"))
}

/// A controller that reaches a memory: its way stands for that of a link whose own is not described.
fn first_controller<'a>(soc: &'a Soc, memory: &str) -> Option<&'a str> {
    let all = soc.edma.values().flat_map(|engine| engine.transfer_controllers.iter());
    all.map(|tc| tc.name.as_str()).find(|tc| soc.route(tc, memory).is_ok())
}

/// `copy:CORE:FROM->TO`, `fill:CORE:TO` or `read:CORE:FROM`.
fn copy(soc: &Soc, text: &str) -> Result<Option<Copy>, AskError> {
    let mut parts = text.splitn(3, ':').map(str::trim);
    let (kind, core, ends) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    let (core, ends) = match (kind, core, ends) {
        ("copy" | "fill" | "read", Some(core), Some(ends)) if !core.is_empty() && !ends.is_empty() => {
            (core.to_owned(), ends)
        }
        ("copy" | "fill" | "read", ..) => {
            return Err(AskError::new(format!(
                "'{text}'; expected copy:CORE:FROM->TO, fill:CORE:TO or read:CORE:FROM"
            )));
        }
        _ => return Ok(None),
    };
    let (from, to) = match kind {
        "fill" => (None, Some(ends)),
        "read" => (Some(ends), None),
        _ => {
            let (from, to) = ends
                .split_once("->")
                .ok_or_else(|| AskError::new(format!("'{ends}' is no path; expected FROM->TO")))?;
            (Some(from.trim()), Some(to.trim()))
        }
    };
    let behind = from.map(|source| behind(soc, &core, source)).transpose()?.flatten();
    let to = to.map(|memory| endpoint(soc, memory)).transpose()?;
    Ok(Some(Copy { core, from: from.map(str::to_owned), behind, to }))
}

/// The memory behind the source of a core's reads, where the chip has it.
fn behind(soc: &Soc, core: &str, source: &str) -> Result<Option<String>, AskError> {
    let kind = core.split('.').next().unwrap_or(core);
    let read = soc.cores.get(kind).and_then(|core| core.reads.get(source));
    let named = read.and_then(|read| read.memory.as_deref());
    if named.is_none()
        && let Some(own) = own_instance(soc, core, source)
    {
        return Ok(Some(own));
    }
    let memory = named.or_else(|| soc.endpoints.get_key_value(source).map(|(name, _)| name));
    memory.map(|name| endpoint(soc, name)).transpose()
}

/// A core's own memory of this name, where each core of its kind has one.
fn own_instance(soc: &Soc, core: &str, source: &str) -> Option<String> {
    let (kind, number) = core.split_once('.')?;
    let (memories, cores) = (soc.endpoints.get(source)?.count, soc.cores.get(kind)?.count);
    (memories == cores && cores > 1).then(|| format!("{source}.{number}"))
}
