//! Reads by cores in closed form: a single read waits for the whole latency, a burst of reads overlaps several.

use crate::predict::{Bottleneck, Prediction, Unit};
use crate::soc::{Core, CoreRead, Soc};
use crate::units::{Hertz, Nanoseconds};
use std::fmt;

#[cfg(test)]
mod tests;

/// The relative half width of an interval where parameters of several cells meet: three times their mean error.
const SPREAD: f64 = 0.06;

/// How a core reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One read that waits for its data.
    Single,
    /// A stream of misses, several of them under way at once.
    Burst,
}

/// Why a read cannot be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The chip has no core of this name.
    NoCore(String),
    /// The core reads no source of this name; the names of those that it reads.
    NoSource {
        /// The name that was asked.
        source: String,
        /// The names that there are.
        known: String,
    },
    /// The chip does not say what the model needs; a loaded chip always does.
    Incomplete(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCore(name) => write!(f, "no core is named {name:?}"),
            Self::NoSource { source, known } => {
                write!(f, "the core reads nothing named {source:?}; expected one of: {known}")
            }
            Self::Incomplete(what) => write!(f, "the chip file lacks {what}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Predicts the cycles of the core's clock that a read takes, on average per read.
///
/// `theoretical` is the least that is possible: no cycle at all, hidden behind other work.
///
/// # Errors
/// When core or source is not there.
pub fn read(soc: &Soc, core: &str, source: &str, pattern: Pattern) -> Result<Prediction, ReadError> {
    let core = soc.cores.get(core).ok_or_else(|| ReadError::NoCore(core.into()))?;
    let read = core.reads.get(source).ok_or_else(|| ReadError::NoSource {
        source: source.into(),
        known: core.reads.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
    })?;
    let clock = frequency(soc, &core.clock)?;
    let parts = latency(soc, core, read)?;
    let whole: Nanoseconds = parts.iter().map(|(_, time)| *time).sum();
    let cycles = whole.over(clock.period()).value();
    let bottlenecks: Vec<Bottleneck> =
        parts.into_iter().map(|(name, time)| Bottleneck::part(name, time, whole)).collect();
    // The latency of a source that the file gives as such is data; only what is composed is predicted.
    let spread = if read.through.is_some() { SPREAD } else { 0.0 };
    let (predicted, spread) = match pattern {
        Pattern::Single => (cycles, spread),
        Pattern::Burst => {
            let outstanding = core.outstanding.get(read.pipeline.as_str()).copied();
            let outstanding = outstanding.ok_or_else(|| ReadError::Incomplete("outstanding reads".into()))?;
            (cycles / outstanding.max(1.0), 2.0 * SPREAD)
        }
    };
    Ok(Prediction {
        theoretical: 0.0,
        predicted,
        low: predicted * (1.0 - spread),
        high: predicted * (1.0 + spread),
        unit: Unit::Cycles,
        bottlenecks,
    }
    .ranked())
}

fn frequency(soc: &Soc, clock: &str) -> Result<Hertz, ReadError> {
    soc.frequency(clock).ok_or_else(|| ReadError::Incomplete(format!("clock {clock}")))
}

/// The parts of the latency of one read, by name.
fn latency(soc: &Soc, core: &Core, read: &CoreRead) -> Result<Vec<(String, Nanoseconds)>, ReadError> {
    let time = |cycles: &crate::units::Cycles| {
        soc.time(cycles).ok_or_else(|| ReadError::Incomplete(format!("clock {}", cycles.clock)))
    };
    let mut parts = Vec::new();
    if let Some(through) = &read.through {
        let first = core.reads.get(through.as_str()).and_then(|read| read.latency.as_ref());
        let first = first.ok_or_else(|| ReadError::Incomplete(through.as_str().to_owned()))?;
        parts.push((format!("way to {}", through.as_str()), time(first)?));
    }
    if let Some(own) = &read.latency {
        parts.push(("access".into(), time(own)?));
    }
    for name in &read.bridges {
        let bridge = soc.bridges.get(name.as_str());
        let bridge = bridge.ok_or_else(|| ReadError::Incomplete(name.as_str().to_owned()))?;
        parts.push((format!("bridge {}", name.as_str()), time(&bridge.crossing)?));
    }
    if let Some(name) = &read.memory {
        let dram = soc.endpoints.get(name.as_str()).and_then(|memory| memory.dram.as_ref());
        let dram = dram.ok_or_else(|| ReadError::Incomplete(name.as_str().to_owned()))?;
        parts.push((format!("queues of {}", name.as_str()), time(&dram.queues)?));
        parts.push((format!("device of {}", name.as_str()), time(&dram.device)?));
    }
    Ok(parts)
}
