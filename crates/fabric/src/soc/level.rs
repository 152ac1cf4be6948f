//! What a core's loads and stores go through: levels of caches with the memory behind them, translation, and its loops.

use super::{At, Name};
use crate::units::{Bytes, BytesPerSecond, Cycles, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cache, or the memory behind all of them. Its latency, and what overlaps several of its reads, are those of the source of
/// the core's `reads` that has its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Level {
    /// How much it holds; none for the memory, which holds all.
    #[serde(default)]
    pub size: Option<At<Bytes>>,
    /// Its ways: lines that it holds of those that share a set, where the working set lies in one piece of addresses; then sets fill
    /// evenly, to a line. Without it a level fills as `unevenness` says.
    #[serde(default)]
    pub ways: Option<At<u32>>,
    /// Whether what is stored takes room in it: no, where stores pass it by (no write-allocate).
    #[serde(default = "yes")]
    pub write_allocate: bool,
    /// How unevenly it fills: the relative deviation of its sets when they are full on average. Physical addresses give it.
    #[serde(default)]
    pub unevenness: Option<At<Ratio>>,
    /// How much a miss brings here from the next level; a line when left out.
    #[serde(default)]
    pub fetch: Option<At<Bytes>>,
    /// Lines this far apart, or a whole number of times, share sets; those further apart are spread as if they were this far.
    /// Without it the distance counts whatever it is.
    #[serde(default)]
    pub conflict: Option<At<Bytes>>,
    /// How many cores share it; one when left out.
    #[serde(default)]
    pub shared_by: Option<u32>,
    /// What one core reads from it in order.
    pub read: At<BytesPerSecond>,
    /// What one core fills in it.
    pub fill: At<BytesPerSecond>,
    /// What one core copies within it.
    pub copy: At<BytesPerSecond>,
    /// What all cores together read; as many times that of one as there are when left out.
    #[serde(default)]
    pub read_all: Option<At<BytesPerSecond>>,
    /// What all cores together fill.
    #[serde(default)]
    pub fill_all: Option<At<BytesPerSecond>>,
    /// What all cores together copy.
    #[serde(default)]
    pub copy_all: Option<At<BytesPerSecond>>,
    /// What a line costs that a stride reaches alone.
    pub per_line: At<Cycles>,
    /// What it costs more where all of them fall into one set of the first level.
    pub per_conflict: At<Cycles>,
}

/// A translation lookaside buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Tlb {
    /// How many pages it holds.
    pub entries: At<f64>,
    /// How unevenly it fills.
    #[serde(default)]
    pub unevenness: Option<At<Ratio>>,
    /// How large a page is.
    pub page: At<Bytes>,
    /// What a miss costs beyond a hit.
    pub miss: At<Cycles>,
    /// What overlaps several misses: a name in `outstanding` of the core.
    pub pipeline: Name,
}

/// What the loops of a core cost, whatever level their data is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Loops {
    /// The beginning and end of a sum.
    pub read: At<Cycles>,
    /// The beginning and end of a fill.
    pub fill: At<Cycles>,
    /// The beginning and end of a copy.
    pub copy: At<Cycles>,
    /// One element that the next waits for, up to the width of a register.
    pub element: At<Cycles>,
    /// One element of twice a register, or more of them.
    pub wide_element: At<Cycles>,
    /// One read of a place at random.
    pub gather: At<Cycles>,
    /// One write of a place at random.
    pub scatter: At<Cycles>,
    /// What each line of a copy costs more when its source does not begin at a line.
    pub source_split: At<Cycles>,
    /// The same for its destination.
    pub destination_split: At<Cycles>,
}

fn yes() -> bool {
    true
}

impl Level {
    /// How much a miss brings, where lines are this long.
    pub fn fetched(&self, line: Bytes) -> Bytes {
        self.fetch.as_deref().copied().unwrap_or(line).max(line)
    }
}

impl super::Core {
    /// Its levels from the fastest, which is the smallest; the memory comes last.
    pub fn hierarchy(&self) -> Vec<(&str, &Level)> {
        let mut all: Vec<(&str, &Level)> =
            self.levels.iter().map(|(name, level)| (name.as_str(), &**level)).collect();
        let size = |level: &Level| level.size.as_ref().map_or(f64::INFINITY, |size| size.value());
        all.sort_by(|a, b| size(a.1).total_cmp(&size(b.1)));
        all
    }
}
