//! Loads and stores of cores through caches: what a working set of some size costs, by its levels.
//!
//! A loop goes round through its working set, so what it finds where is a matter of footprints ([`miss()`]). Then
//!
//! ```text
//! a load that the next waits for    sum over levels of (misses before it - misses in it) x latency, and misses of the TLBs
//! several under way                 the same, each latency over what is under way of its pipeline; no less than the loop takes
//! with a stride, in order           per level per_line + per_conflict x (power of two in the stride / page)
//! read, fill, copy                  begin + bytes x sum of shares / rates; no less than elements and split lines take
//! ```
//!
//! A copy has twice the footprint, but in a level that stores pass by (`write_allocate = false`).
//! A stride above a line leaves gaps: its lines fall into as many sets as the largest power of
//! two in the stride lets them, so the footprint counts as if each took that much (`conflict` bounds it where an index mixes
//! address bits). `n` cores have a working set each; in a level that they share these add up, and a rate is at most its part of
//! what all of them together get (`read_all` and so on).

mod miss;
#[cfg(test)]
mod tests;

pub use miss::{miss, miss_of_sets};

use crate::predict::{Bottleneck, Prediction, Unit};
use crate::soc::{Core, Level, Soc};
use crate::units::{BytesPerSecond, Cycles, Hertz};
use std::fmt;

/// The relative half width of the interval of what caches do: nine of ten errors on the machines that were measured.
const SPREAD: f64 = 0.25;
/// What the index of a first level covers: it is looked up before the page is translated, so no more than a page.
const INDEX: f64 = 4096.0;

/// What a core does with a working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Loads at random, each of which waits for the one before; places so many bytes apart.
    Chase(u64),
    /// Loads in order, so many bytes apart, several under way.
    Stride(u64),
    /// Loads of words at random, several under way.
    Gather,
    /// Stores of words at random.
    Scatter,
    /// Reads all, in elements of so many bytes where given: each waits for the one before.
    Read(Option<u64>),
    /// Writes all.
    Fill,
    /// Copies all to a place of the same size; the distances of source and destination from the beginning of a line.
    Copy(u64, u64),
}

/// A question: who does what with how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// What is done.
    pub work: Work,
    /// The working set of a core in bytes.
    pub bytes: u64,
    /// How many cores do it at once, each with a set of its own.
    pub cores: u32,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HierarchyError {
    /// The chip does not describe levels of this core.
    NoLevels(String),
    /// More cores than there are.
    Cores {
        /// How many were asked for.
        asked: u32,
        /// How many there are.
        count: u32,
    },
    /// A working set or a stride of nothing, or a stride beyond the working set.
    Shape,
    /// The chip does not say what the model needs; a loaded chip always does.
    Incomplete(String),
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLevels(core) => {
                write!(f, "the chip describes no levels of core '{core}'; expected cores.{core}.levels")
            }
            Self::Cores { asked, count } => write!(f, "{asked} cores; expected 1 to {count}"),
            Self::Shape => f.write_str("expected a working set, and a stride of 1 B up to its size"),
            Self::Incomplete(what) => write!(f, "the chip file lacks {what}"),
        }
    }
}

impl std::error::Error for HierarchyError {}

/// Predicts cycles a load or store, or the rate of one core's data times the cores.
///
/// # Errors
/// A core without levels, and what has no shape.
pub fn predict(soc: &Soc, core: &str, question: Question) -> Result<Prediction, HierarchyError> {
    Ok(found(soc, core, question)?.prediction())
}

/// The figure of [`predict`] alone, without reasons: for fits, which ask many times.
///
/// # Errors
/// As [`predict`].
pub fn figure(soc: &Soc, core: &str, question: Question) -> Result<f64, HierarchyError> {
    Ok(found(soc, core, question)?.predicted)
}

fn found<'a>(soc: &'a Soc, core: &str, question: Question) -> Result<Found<'a>, HierarchyError> {
    let (name, core) = (core, soc.cores.get(core));
    let core = core.filter(|core| !core.levels.is_empty());
    let core = core.ok_or_else(|| HierarchyError::NoLevels(name.to_owned()))?;
    let stride = match question.work {
        Work::Chase(stride) | Work::Stride(stride) => stride,
        _ => 1,
    };
    if question.bytes == 0 || stride == 0 || stride > question.bytes {
        return Err(HierarchyError::Shape);
    }
    if !(1..=core.count).contains(&question.cores) {
        return Err(HierarchyError::Cores { asked: question.cores, count: core.count });
    }
    let clock = soc.frequency(&core.clock).ok_or_else(|| incomplete("the clock of the core"))?;
    let walk = Walk { soc, core, question, clock };
    match question.work {
        Work::Chase(stride) => walk.chase(stride as f64),
        Work::Stride(stride) => walk.stride(stride as f64),
        Work::Gather | Work::Scatter => walk.random(),
        Work::Read(_) | Work::Fill | Work::Copy(..) => walk.stream(),
    }
}

fn incomplete(what: &str) -> HierarchyError {
    HierarchyError::Incomplete(what.to_owned())
}

/// A question on its way.
struct Walk<'a> {
    soc: &'a Soc,
    core: &'a Core,
    question: Question,
    clock: Hertz,
}

/// A part of a time.
struct Part<'a> {
    what: &'static str,
    /// The level or buffer that it is about; empty where there is none.
    of: &'a str,
    ns: f64,
}

impl<'a> Part<'a> {
    const fn new(what: &'static str, of: &'a str, ns: f64) -> Self {
        Self { what, of, ns }
    }
}

/// What was found, not yet in words: a fit reads only the figure.
struct Found<'a> {
    predicted: f64,
    /// The time in all, in nanoseconds.
    whole: f64,
    parts: Vec<Part<'a>>,
    /// Of a rate: what the bus allows in megabytes a second, and the bytes that are moved.
    rate: Option<(f64, f64)>,
}

impl Found<'_> {
    fn prediction(self) -> Prediction {
        let Self { predicted, whole, parts, rate } = self;
        let parts = parts.into_iter().filter(|part| part.ns > 0.0);
        let limits = parts.map(|Part { what, of, ns }| Bottleneck {
            name: format!("{what}{of}"),
            rate: rate.map_or(ns, |(_, bytes)| bytes / ns * 1e3),
            share: (ns / whole).clamp(0.0, 1.0),
            explanation: match rate {
                None => format!("{ns:.2} ns of {whole:.2} ns"),
                Some(_) => format!("{ns:.1} ns of {whole:.1} ns"),
            },
        });
        let limits = limits.collect();
        if let Some((best, _)) = rate {
            return Prediction::rate(best, predicted, SPREAD, Unit::MegabytesPerSecond, limits);
        }
        Prediction {
            theoretical: 0.0,
            predicted,
            low: predicted * (1.0 - SPREAD),
            high: predicted * (1.0 + SPREAD),
            unit: Unit::Cycles,
            bottlenecks: limits,
        }
        .ranked()
    }
}

/// A level with the share of all touches that end in it.
struct Stop<'a> {
    name: &'a str,
    level: &'a Level,
    share: f64,
}

impl<'a> Walk<'a> {
    fn ns(&self, cycles: &Cycles) -> Result<f64, HierarchyError> {
        let time = self.soc.time(cycles).ok_or_else(|| incomplete(&format!("clock {}", cycles.clock)))?;
        Ok(time.value())
    }

    /// The levels, each with what is found in it. `touched` gives footprint in bytes and touches of a unit, of a level.
    fn stops(&self, touched: impl Fn(&Level) -> (f64, f64)) -> Vec<Stop<'a>> {
        let mut before = 1.0f64;
        let mut stops = Vec::new();
        for (name, level) in self.core.hierarchy() {
            let missed = level.size.as_ref().map_or(0.0, |size| {
                let (footprint, touches) = touched(level);
                let sharers = f64::from(self.question.cores.min(level.shared_by.unwrap_or(1)));
                let pressure = footprint * sharers / size.value();
                let uneven = level.unevenness.as_ref().map_or(0.0, |uneven| uneven.value());
                let ways = level.ways.as_deref();
                ways.map_or_else(
                    || miss(pressure, touches, uneven),
                    |ways| miss_of_sets(pressure, touches, *ways),
                )
            });
            // What is missed here was missed before.
            let missed = missed.min(before);
            stops.push(Stop { name, level, share: before - missed });
            before = missed;
        }
        stops
    }

    /// Misses of each TLB in pages, with what one costs and what overlaps it. `stride` is 0 for places at random.
    fn translation(&self, stride: f64) -> Result<Vec<(&'a str, f64, f64, f64)>, HierarchyError> {
        let mut all = Vec::new();
        for (name, tlb) in &self.core.tlbs {
            let page = tlb.page.value();
            let bytes = self.question.bytes as f64;
            let pages = if stride > page { bytes / stride } else { (bytes / page).max(1.0) };
            let touches = if stride > 0.0 { (page / stride).max(1.0) } else { f64::INFINITY };
            let uneven = tlb.unevenness.as_ref().map_or(0.0, |uneven| uneven.value());
            let missed = miss(pages / *tlb.entries, touches, uneven);
            all.push((name.as_str(), missed, self.ns(&tlb.miss)?, self.under_way(&tlb.pipeline)?));
        }
        Ok(all)
    }

    fn under_way(&self, pipeline: &str) -> Result<f64, HierarchyError> {
        let reads = self.core.outstanding.get(pipeline);
        Ok(reads.ok_or_else(|| incomplete("outstanding reads"))?.max(1.0))
    }

    /// The latency of a level and what overlaps its reads.
    fn latency(&self, name: &str) -> Result<(f64, f64), HierarchyError> {
        let read = self.core.reads.get(name).ok_or_else(|| incomplete(&format!("the latency of {name}")))?;
        let latency = read.latency.as_ref().ok_or_else(|| incomplete(&format!("the latency of {name}")))?;
        Ok((self.ns(latency)?, self.under_way(&read.pipeline)?))
    }

    /// What the places of a stride take of a level: as much each as the power of two in the stride, but no more than a
    /// `conflict` lets them.
    fn spread(&self, stride: f64, level: &Level) -> f64 {
        let bytes = self.question.bytes as f64;
        let line = self.core.line().value();
        if stride <= level.fetched(self.core.line()).value() {
            return bytes;
        }
        let most = level.conflict.as_ref().map_or(f64::INFINITY, |conflict| conflict.value());
        bytes / stride * pitch(stride).min(most).max(line)
    }

    fn chase(&self, stride: f64) -> Result<Found<'a>, HierarchyError> {
        let stops = self.stops(|level| {
            let fetched = level.fetched(self.core.line()).value();
            (self.spread(stride, level), (fetched / stride).max(1.0))
        });
        let mut parts = Vec::new();
        for stop in &stops {
            parts.push(Part::new("found in ", stop.name, stop.share * self.latency(stop.name)?.0));
        }
        for (name, missed, cost, _) in self.translation(stride)? {
            parts.push(Part::new("misses of TLB ", name, missed * cost));
        }
        Ok(self.cycles(parts, 0.0))
    }

    /// Cycles of an access whose parts add up, but no fewer than the loop takes.
    fn cycles(&self, mut parts: Vec<Part<'a>>, least_ns: f64) -> Found<'a> {
        let sum: f64 = parts.iter().map(|part| part.ns).sum();
        if least_ns > sum {
            parts = vec![Part::new("the loop", "", least_ns)];
        }
        let whole = sum.max(least_ns);
        Found { predicted: whole / self.clock.period().value(), whole, parts, rate: None }
    }

    fn stride(&self, stride: f64) -> Result<Found<'a>, HierarchyError> {
        let line = self.core.line().value();
        let stops = self.stops(|level| (self.spread(stride, level), 1.0));
        let mut parts = Vec::new();
        for stop in &stops {
            // Below a line each load takes its part of it; from the next line on the set counts.
            let conflict = if stride > line { pitch(stride).min(INDEX) / INDEX } else { 0.0 };
            let each = self.ns(&stop.level.per_line)? + self.ns(&stop.level.per_conflict)? * conflict;
            parts.push(Part::new("found in ", stop.name, stop.share * each * (stride / line).min(1.0)));
        }
        Ok(self.cycles(parts, 0.0))
    }

    fn random(&self) -> Result<Found<'a>, HierarchyError> {
        let stops = self.stops(|_| (self.question.bytes as f64, f64::INFINITY));
        let mut parts = Vec::new();
        for stop in &stops {
            let (latency, under_way) = self.latency(stop.name)?;
            parts.push(Part::new("found in ", stop.name, stop.share * latency / under_way));
        }
        for (name, missed, cost, under_way) in self.translation(0.0)? {
            parts.push(Part::new("misses of TLB ", name, missed * cost / under_way));
        }
        let loops = self.loops()?;
        let each = if self.question.work == Work::Gather { &loops.gather } else { &loops.scatter };
        Ok(self.cycles(parts, self.ns(each)?))
    }

    fn loops(&self) -> Result<&crate::soc::Loops, HierarchyError> {
        self.core.loops.as_deref().ok_or_else(|| incomplete("what the loops of the core cost"))
    }

    /// The rate of one core in bytes per nanosecond, where all that run share what there is.
    fn rate(&self, one: BytesPerSecond, all: Option<&BytesPerSecond>) -> f64 {
        let cores = f64::from(self.question.cores);
        let part = all.map_or(f64::INFINITY, |all| all.value() / cores);
        one.value().min(part) / 1e9
    }

    fn stream(&self) -> Result<Found<'a>, HierarchyError> {
        let loops = self.loops()?;
        let bytes = self.question.bytes as f64;
        let line = self.core.line().value();
        let copies = matches!(self.question.work, Work::Copy(..));
        let stops =
            self.stops(|level| (if copies && level.write_allocate { 2.0 * bytes } else { bytes }, 1.0));
        let mut parts = Vec::new();
        let mut fastest = 0.0f64;
        for stop in &stops {
            let level = stop.level;
            let (one, all) = match self.question.work {
                Work::Fill => (&level.fill, &level.fill_all),
                Work::Copy(..) => (&level.copy, &level.copy_all),
                _ => (&level.read, &level.read_all),
            };
            let rate = self.rate(**one, all.as_deref());
            fastest = fastest.max(rate);
            parts.push(Part::new("found in ", stop.name, stop.share * bytes / rate));
        }
        let (begin, own) = match self.question.work {
            Work::Copy(from, to) => {
                let split = |offset: u64, cost: &Cycles| match offset as f64 % line == 0.0 {
                    true => Ok(0.0),
                    false => self.ns(cost),
                };
                let splits = split(from, &loops.source_split)? + split(to, &loops.destination_split)?;
                (&loops.copy, bytes / fastest + bytes / line * splits)
            }
            Work::Read(Some(width)) => {
                let each = if width > 8 { &loops.wide_element } else { &loops.element };
                (&loops.read, bytes / (width.max(1) as f64) * self.ns(each)?)
            }
            Work::Fill => (&loops.fill, 0.0),
            _ => (&loops.read, 0.0),
        };
        let begin = self.ns(begin)?;
        let moved: f64 = parts.iter().map(|part| part.ns).sum();
        if own > moved * (1.0 + 1e-9) {
            parts = vec![Part::new("the loop", "", own)];
        }
        parts.push(Part::new("beginning and end", "", begin));
        let whole = begin + moved.max(own);
        let all = f64::from(self.question.cores) * bytes;
        let predicted = all / whole * 1e3;
        let best = (f64::from(self.question.cores) * self.bus()?).max(predicted);
        Ok(Found { predicted, whole, parts, rate: Some((best, all)) })
    }

    /// What the core's width and clock allow, in megabytes a second.
    fn bus(&self) -> Result<f64, HierarchyError> {
        let rate =
            self.soc.bus_rate(self.core.width, self.core.bus_clock.as_ref().unwrap_or(&self.core.clock));
        Ok(rate.ok_or_else(|| incomplete("the clock of the core"))?.megabytes())
    }
}

/// The largest power of two that divides a stride.
fn pitch(stride: f64) -> f64 {
    let whole = stride as u64;
    if whole == 0 { 1.0 } else { (1u64 << whole.trailing_zeros()) as f64 }
}
