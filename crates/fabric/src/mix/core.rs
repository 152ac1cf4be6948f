//! What a core takes of the chip when it copies, fills or reads memory.

use super::scenario::Copy;
use crate::ask::AskError;
use crate::edma::{Flow, Resources, core_costs};
use crate::memory::{self, Pattern};
use crate::soc::{Core, Soc};
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};

/// What is moved where the flow does not say.
const MOVED: Bytes = Bytes::new(1_048_576.0);
/// Half of what a core's writes may wait for when the chip says nothing: none, as stores are posted.
const POSTED: Nanoseconds = Nanoseconds::ZERO;

/// The flow of one core.
pub(super) fn flow<'a>(
    soc: &'a Soc,
    copy: &'a Copy,
    bytes: Option<Bytes>,
    resources: &mut Resources<'a>,
) -> Result<Flow, AskError> {
    let (name, instance) =
        copy.core.split_once('.').map_or((copy.core.as_str(), "0"), |(name, at)| (name, at));
    let core = soc.cores.get(name).ok_or_else(|| {
        let known: Vec<&str> = soc.cores.keys().map(String::as_str).collect();
        AskError::new(format!("no core '{name}'; expected one of {}", known.join(", ")))
    })?;
    if instance.parse::<u32>().ok().filter(|at| *at < core.count).is_none() {
        let last = core.count.saturating_sub(1);
        return Err(AskError::new(format!("no core '{}'; expected {name}.0 to {name}.{last}", copy.core)));
    }
    let lacks = || AskError::new(format!("the chip does not say what clocks core '{name}'"));
    let bus = soc.bus_rate(core.width, core.bus_clock.as_ref().unwrap_or(&core.clock)).ok_or_else(lacks)?;
    let mut cap = bus.value() / 1e9;
    let mut latency = POSTED;
    let mut costs = Vec::new();
    if let Some(from) = &copy.from {
        let (rate, wait) = reads(soc, core, name, from)?;
        cap = cap.min(rate);
        latency = latency + wait;
        if let Some(memory) = &copy.behind {
            costs.extend(core_costs(soc, memory, false, core.line(), resources).map_err(AskError::new)?);
        }
    }
    if let Some(memory) = &copy.to {
        let mut written = core_costs(soc, memory, true, core.line(), resources).map_err(AskError::new)?;
        if let Some(share) = core.victims {
            // A line that is pushed out goes back whole, besides what is written.
            written.iter_mut().for_each(|(_, cost)| *cost *= 1.0 + share.value());
        }
        costs.extend(written);
    }
    let outstanding = Bytes::new((cap * latency.value()).max(core.line().value()));
    Ok(Flow {
        bytes: bytes.unwrap_or(MOVED),
        costs,
        cap,
        writes_bind: false,
        setup: Nanoseconds::ZERO,
        latency,
        burst: core.line(),
        outstanding,
    })
}

/// The memories that it touches, and whether it writes there.
pub(super) fn touches(copy: &Copy) -> Vec<(&str, bool)> {
    let read = copy.behind.as_deref().map(|memory| (memory, false));
    read.into_iter().chain(copy.to.as_deref().map(|memory| (memory, true))).collect()
}

/// The rate of a stream of reads in bytes per nanosecond, and the time of one.
fn reads(soc: &Soc, core: &Core, name: &str, from: &str) -> Result<(f64, Nanoseconds), AskError> {
    let ask = |pattern| memory::read(soc, name, from, pattern).map_err(AskError::new);
    let clock = soc.frequency(&core.clock).ok_or_else(|| AskError::new("a core without clock"))?;
    let burst = clock.period() * ask(Pattern::Burst)?.predicted;
    let single = clock.period() * ask(Pattern::Single)?.predicted;
    let rate: BytesPerSecond = Bytes::new(core.width.value()) / burst.max(Nanoseconds::new(1e-3));
    Ok((rate.value() / 1e9, single))
}
