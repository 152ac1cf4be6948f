//! Mixed traffic: DMA, cores, links and servers at once on one chip, flow by flow.
//!
//! A flow is a transfer with a priority, a start, and the place of its data. Transfers by DMA take what [`crate::edma`] says.
//! A link or a server moves what it predicts alone, and takes of the chip the memory that its data lies in and the controller
//! that moves it, where the flow names them. A core copies as fast as its reads and writes let it, and writes victims back.
//!
//! Flows cost each other rows and changes of direction in dynamic memory (`shared`), and lines that a cache holds changed
//! are written back when others touch them (`cores.X.dirty`).
//!
//! Two models answer. The fluid one shares resources max-min fairly among flows of one priority, after those before them; the
//! rates hold until a flow begins or ends. The engine follows each burst: a resource works on one burst at a time, takes the
//! most urgent that waits, and among equals the one that has waited longest. Rates are shown of both; latency under load is
//! the engine's, from a burst being ready to its last byte.

mod core;
mod engine;
mod fluid;
mod scenario;
mod shared;
#[cfg(test)]
mod tests;

pub use engine::MAX_BURSTS;
pub use scenario::{FlowText, Scenario, load};

use crate::ask::{AskError, Transfer, single};
use crate::edma::{self, Flow, Mode, Resources};
use crate::predict::Unit;
use crate::soc::Soc;
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};

/// The most flows at once.
pub const MAX_FLOWS: usize = 64;

/// A flow with what it takes of each resource.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub flow: Flow,
    /// 0 is the most urgent.
    pub priority: u8,
    /// When it begins.
    pub start: Nanoseconds,
    /// Whether it goes on until the others have ended.
    pub endless: bool,
    /// Flows of the same controller follow each other.
    pub queue: usize,
    /// Whether something outside the chip paces it, rather than its own window.
    pub paced: bool,
    /// The memories that it touches, and whether it writes there.
    pub touches: Vec<(String, bool)>,
}

/// What one flow does.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// Alone on the chip, in bytes per second.
    pub alone: BytesPerSecond,
    /// In the mix, by the fluid model: its bytes over the time that it was there.
    pub fluid: BytesPerSecond,
    /// By the engine.
    pub engine: BytesPerSecond,
    /// The mean latency of a burst alone, by the engine.
    pub latency_alone: Nanoseconds,
    /// In the mix.
    pub latency: Nanoseconds,
    /// That 99 of 100 stay within.
    pub latency_99: Nanoseconds,
    /// What it moves at once.
    pub piece: Bytes,
    /// How much it may have under way, where that is what holds it back alone; none where something outside does.
    pub window: Option<Bytes>,
    /// What is fullest of what it passes, and how full.
    pub limit: Option<(String, f64)>,
}

/// The models are taken to agree within this share.
pub const AGREE: f64 = 0.1;

impl Outcome {
    /// Why the two models differ, where they do.
    pub fn apart(&self) -> Option<String> {
        let (fluid, engine) = (self.fluid.megabytes(), self.engine.megabytes());
        if (engine / fluid - 1.0).abs() <= AGREE {
            return None;
        }
        let held = match (engine > fluid, self.window) {
            (true, _) => {
                let fullest = self.limit.as_ref().map_or("what it passes", |(name, _)| name);
                format!(
                    "urgent flows fill {fullest} in the fluid model; burst by burst their windows leave gaps, and this flow takes \
                     them"
                )
            }
            (false, Some(window)) => format!(
                "its window of {window} comes back later, as its bursts of {} wait for those of others: {:.0} ns instead of {:.0} ns",
                self.piece,
                self.latency.value(),
                self.latency_alone.value()
            ),
            (false, None) => {
                "bursts of others keep it waiting longer than the chip has room for what arrives".to_owned()
            }
        };
        Some(format!("{held}; the engine is right"))
    }
}

/// What a mix does.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixed {
    /// Flow by flow.
    pub flows: Vec<Outcome>,
    /// How full each resource is while the flows are there, the fullest first.
    pub resources: Vec<(String, f64)>,
    /// Until the last flow that ends has ended.
    pub time: Nanoseconds,
}

/// Works out a mix.
///
/// # Errors
/// What the chip does not have, and more flows or bursts than are followed.
pub fn run(soc: &Soc, scenario: &Scenario) -> Result<Mixed, AskError> {
    let transfers = scenario::transfers(soc, scenario)?;
    let mut resources = Resources::default();
    let streams = streams(soc, scenario, &transfers, &mut resources)?;
    let mixed = shared::settled(soc, &streams, &resources);
    let fluid = fluid::run(&mixed, resources.len());
    let engine = engine::run(&mixed, resources.len()).map_err(AskError::new)?;
    let mut flows = Vec::new();
    for (at, stream) in streams.iter().enumerate() {
        let one = [Stream { start: Nanoseconds::ZERO, endless: false, ..stream.clone() }];
        let alone = engine::run(&one, resources.len()).map_err(AskError::new)?;
        let fluid_alone = fluid::run(&one, resources.len());
        let get = |all: &[f64]| Nanoseconds::new(all.get(at).copied().unwrap_or(0.0));
        let fullest = stream.flow.costs.iter().max_by(|a, b| {
            let used = |index: usize| fluid.used.get(index).copied().unwrap_or(0.0);
            used(a.0).total_cmp(&used(b.0))
        });
        flows.push(Outcome {
            name: stream.name.clone(),
            alone: BytesPerSecond::new(fluid_alone.rates.first().copied().unwrap_or(0.0) * 1e9),
            fluid: BytesPerSecond::new(fluid.rates.get(at).copied().unwrap_or(0.0) * 1e9),
            engine: BytesPerSecond::new(engine.rates.get(at).copied().unwrap_or(0.0) * 1e9),
            latency_alone: Nanoseconds::new(alone.mean.first().copied().unwrap_or(0.0)),
            latency: get(&engine.mean),
            latency_99: get(&engine.most),
            piece: stream.flow.burst,
            window: (!stream.paced && stream.flow.cap.is_finite()).then_some(stream.flow.outstanding),
            limit: fullest
                .map(|(index, _)| (resources.name(*index), fluid.used.get(*index).copied().unwrap_or(0.0))),
        });
    }
    let mut used: Vec<(String, f64)> =
        fluid.used.iter().enumerate().map(|(index, used)| (resources.name(index), *used)).collect();
    used.retain(|(_, used)| *used > 0.0);
    used.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(Mixed { flows, resources: used, time: Nanoseconds::new(fluid.time) })
}

/// The flows with what each takes; what several flows of a scenario share has one index.
fn streams<'a>(
    soc: &'a Soc,
    scenario: &Scenario,
    transfers: &'a [scenario::Asked],
    resources: &mut Resources<'a>,
) -> Result<Vec<Stream>, AskError> {
    let mut streams = Vec::new();
    let mut queues: Vec<Option<&str>> = Vec::new();
    // Links and cores wait for no flow before them.
    let mut queue = |controller: Option<&'a str>| {
        queues.iter().position(|known| controller.is_some() && *known == controller).unwrap_or_else(|| {
            queues.push(controller);
            queues.len() - 1
        })
    };
    for (text, asked) in scenario.flows.iter().zip(transfers) {
        let stream =
            |name: String, flow: Flow, queue: usize, paced: bool, touches: Vec<(&str, bool)>| Stream {
                name,
                flow,
                priority: text.priority,
                start: text.start.unwrap_or(Nanoseconds::ZERO),
                endless: text.background,
                queue,
                paced,
                touches: touches.into_iter().map(|(memory, write)| (memory.to_owned(), write)).collect(),
            };
        for (way, moved) in asked.moves.iter().enumerate() {
            let (mut flow, paced) = moving(soc, text, asked, moved, resources)?;
            let queue =
                queue(matches!(&asked.transfer, Transfer::Edma(_)).then_some(moved.controller.as_str()));
            let several = asked.moves.len() > 1;
            let name = if several { format!("{} ({})", text.name, way + 1) } else { text.name.clone() };
            let touches = match asked.side {
                Some(write) => vec![(moved.source.as_str(), write)],
                None => vec![(moved.source.as_str(), false), (moved.destination.as_str(), true)],
            };
            write_back(soc, "", &touches, &mut flow, resources)?;
            streams.push(stream(name, flow, queue, paced, touches));
        }
        if let Some(copy) = &asked.copy {
            let mut flow = core::flow(soc, copy, text.bytes, resources)?;
            let paced = held_back(&mut flow, text, false);
            let touches = core::touches(copy);
            let kind = copy.core.split('.').next().unwrap_or("");
            write_back(soc, kind, &touches, &mut flow, resources)?;
            streams.push(stream(text.name.clone(), flow, queue(None), paced, touches));
        }
    }
    if streams.is_empty() || streams.len() > MAX_FLOWS {
        return Err(AskError::new(format!("{} flows; expected 1 to {MAX_FLOWS}", streams.len())));
    }
    for (at, stream) in streams.iter().enumerate() {
        let before = streams.iter().take(at).find(|before| before.endless && before.queue == stream.queue);
        if let Some(before) = before {
            let controller = queues.get(stream.queue).copied().flatten().unwrap_or_default();
            let what = format!(
                "{controller} never comes to it, as '{}' before it has no end; expected it before that, or another controller",
                before.name
            );
            return Err(AskError::new(what).of(&stream.name));
        }
    }
    Ok(streams)
}

/// What one way of a transfer takes, and whether something outside paces it.
fn moving<'a>(
    soc: &'a Soc,
    text: &FlowText,
    asked: &'a scenario::Asked,
    moved: &'a edma::Transfer,
    resources: &mut Resources<'a>,
) -> Result<(Flow, bool), AskError> {
    let mut own = Resources::default();
    let shared = if asked.side.is_some() { &mut own } else { &mut *resources };
    let mut flow = edma::flow_of(soc, moved, Mode::Achievable, shared).map_err(AskError::new)?;
    if let Some(write) = asked.side {
        // Data of a link goes into a memory or comes out of it; what the controller copied is no part of it.
        flow.costs = edma::one_way(soc, moved, write, asked.via, resources).map_err(AskError::new)?;
    }
    let link = !matches!(&asked.transfer, Transfer::Edma(_));
    if link {
        // The link is as fast as it is alone; in the chip its data takes what it takes.
        flow.cap = link_rate(soc, &asked.transfer)?;
    }
    if let Some(bytes) = text.bytes {
        flow.bytes = bytes;
    }
    let paced = held_back(&mut flow, text, link);
    Ok((flow, paced))
}

/// Holds a flow to the rate that its text says, and gives what is paced, by that or by a `link`, the room that the chip has for
/// it. Whether it is paced.
fn held_back(flow: &mut Flow, text: &FlowText, link: bool) -> bool {
    if let Some(rate) = text.rate {
        flow.cap = flow.cap.min(rate.value() / 1e9);
    }
    let paced = link || text.rate.is_some();
    if paced {
        flow.outstanding = Bytes::new((flow.cap * LINK_WINDOW).max(flow.burst.value()));
    }
    paced
}

/// Adds what others than `core` cost memory because a cache holds changed lines of it: each is written back first.
///
/// It adds to what the flow takes of the memory anyway: what flows cost each other counts once for each side of a flow.
fn write_back<'a>(
    soc: &'a Soc,
    core: &str,
    touches: &[(&'a str, bool)],
    flow: &mut Flow,
    resources: &mut Resources<'a>,
) -> Result<(), AskError> {
    for (kind, of) in soc.cores.iter().filter(|(kind, _)| kind.as_str() != core) {
        for (memory, share) in of.dirty.iter().filter(|(_, share)| share.value() > 0.0) {
            for (name, _) in touches.iter().filter(|(name, _)| name.split('.').next() == Some(memory)) {
                let written = edma::core_costs(soc, name, true, of.line(), resources);
                for (resource, cost) in written.map_err(|error| AskError::new(error).of(kind))? {
                    match flow.costs.iter_mut().find(|(known, _)| *known == resource) {
                        Some((_, known)) => *known += cost * share.value(),
                        None => flow.costs.push((resource, cost * share.value())),
                    }
                }
            }
        }
    }
    Ok(())
}

/// How long data of a link may wait in the chip before the link stands still, in nanoseconds: a frame or two of a fast port.
const LINK_WINDOW: f64 = 2000.0;

/// What a link or a server does alone, in bytes per nanosecond.
fn link_rate(soc: &Soc, transfer: &Transfer) -> Result<f64, AskError> {
    let found = single(soc, transfer)?;
    let per_second = match found.unit {
        Unit::MegabytesPerSecond => found.predicted * 1e6,
        Unit::MegabitsPerSecond => found.predicted * 1e6 / 8.0,
        Unit::GigabitsPerSecond => found.predicted * 1e9 / 8.0,
        other => {
            return Err(AskError::new(format!("{transfer} has no rate of bytes but {}", other.symbol())));
        }
    };
    Ok(per_second / 1e9)
}
