//! The description of a chip: clocks, masters, fabrics, bridges, memories and links, read from TOML.
//!
//! ```text
//! master (core, EDMA transfer controller) -- fabric == bridge == fabric -- endpoint (memory)
//! ```
//!
//! Each has a width and a clock, so each has a rate; latencies are cycles of a named clock. [`load`] refuses what cannot
//! be: unknown keys and names, missing units, zero widths, clocks that derive from each other, memories behind each other.

mod alternatives;
mod at;
mod check;
mod edit;
mod error;
#[cfg(test)]
mod keys;
mod level;
mod load;
mod memory;
mod missing;
mod route;
#[cfg(test)]
mod tests;

pub(crate) use alternatives::combined;
pub use alternatives::{Alternative, Choice, MAX_STRUCTURES, Span, Structure};
pub use at::{At, Name};
pub use edit::EditError;
pub use error::SocError;
pub use level::{Level, Loops, Tlb};
pub use load::{json_schema, load};
pub use memory::{Direction, DmaPort, Dram, Endpoint, EndpointKind};
pub use route::{Route, RouteError};

use crate::links::Links;
use crate::units::{Bytes, BytesPerCycle, BytesPerSecond, Cycles, Hertz, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A chip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Soc {
    /// What it is called.
    pub chip: Chip,
    /// Its clocks, by name.
    pub clocks: BTreeMap<String, At<Clock>>,
    /// Its switch fabrics, by name.
    #[serde(default)]
    pub fabrics: BTreeMap<String, At<Fabric>>,
    /// The bridges between fabrics, by name.
    #[serde(default)]
    pub bridges: BTreeMap<String, At<Bridge>>,
    /// Its memories, by name.
    #[serde(default)]
    pub endpoints: BTreeMap<String, At<Endpoint>>,
    /// Its processor cores, by name.
    #[serde(default)]
    pub cores: BTreeMap<String, At<Core>>,
    /// Its EDMA channel controllers, by name.
    #[serde(default)]
    pub edma: BTreeMap<String, At<EdmaController>>,
    /// Its links to the outside.
    #[serde(default)]
    pub links: Links,
    /// What is not known of it, by name.
    #[serde(default)]
    pub alternatives: BTreeMap<String, At<Alternative>>,
}

/// What a chip is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Chip {
    /// The part number.
    pub name: String,
    /// One line on what it is.
    pub title: String,
}

/// A clock: either a frequency of its own, or a multiple or fraction of another clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { frequency = \"800 MHz\" }")]
pub struct Clock {
    /// The frequency of a clock that derives from no other.
    pub frequency: Option<At<Hertz>>,
    /// The clock that this one derives from.
    pub from: Option<Name>,
    /// By how much its frequency is divided; 1 when left out.
    pub divide: Option<At<u32>>,
    /// By how much its frequency is multiplied; 1 when left out.
    pub multiply: Option<At<u32>>,
}

/// A switch fabric: masters and slaves on the same kind of bus, which move data side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Fabric {
    /// The width of each of its buses.
    pub width: BytesPerCycle,
    /// The clock of its buses.
    pub clock: Name,
}

/// A one-way bridge between two fabrics, with a bus for reads and one for writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Bridge {
    /// The fabric of the masters.
    pub from: Name,
    /// The fabric of the slaves.
    pub to: Name,
    /// The width of its buses.
    pub width: BytesPerCycle,
    /// The clock of its buses.
    pub clock: Name,
    /// What a read waits longer because of the bridge, there and back.
    pub crossing: At<Cycles>,
    /// What a burst costs above its data when a controller reads and writes through the bridge at once; nothing when left
    /// out.
    #[serde(default)]
    pub gap: Option<At<Cycles>>,
}

/// A processor core that reads memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Core {
    /// How many of this kind the chip has.
    pub count: u32,
    /// Its clock.
    pub clock: Name,
    /// How much it loads and stores per cycle of `bus_clock`.
    pub width: BytesPerCycle,
    /// The clock of its load and store path, where that is not `clock`.
    pub bus_clock: Option<Name>,
    /// How many reads of a burst are under way at once, by the name of what overlaps them.
    #[serde(default)]
    pub outstanding: BTreeMap<String, f64>,
    /// A line of its cache, which it moves at once in mixed traffic; its width when left out.
    #[serde(default)]
    pub line: Option<At<Bytes>>,
    /// How many lines that are pushed out of its cache go back to memory, for each line that it writes.
    #[serde(default)]
    pub victims: Option<Ratio>,
    /// Of the lines of a memory that others read or write, by its name: how many this cache holds changed. Each is written
    /// back first, in mixed traffic.
    #[serde(default)]
    pub dirty: BTreeMap<String, Ratio>,
    /// Where it reads from and what that takes, by the name of the source.
    #[serde(default)]
    pub reads: BTreeMap<String, At<CoreRead>>,
    /// What its loads and stores go through, by the name of the source in `reads`; the order is that of their sizes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, At<Level>>,
    /// Its translation lookaside buffers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tlbs: BTreeMap<String, At<Tlb>>,
    /// What its loops cost; needed with levels.
    #[serde(default)]
    pub loops: Option<At<Loops>>,
}

/// What a read of one source takes, without and with other reads under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct CoreRead {
    /// The latency up to the source, or up to where `memory` begins.
    pub latency: Option<At<Cycles>>,
    /// The source of this core whose latency comes first, as that of the shared memory controller before DDR3.
    pub through: Option<Name>,
    /// The DRAM whose latency is added.
    pub memory: Option<Name>,
    /// Bridges that the read crosses beyond `through`.
    #[serde(default)]
    pub bridges: Vec<Name>,
    /// What overlaps the reads of a burst: a name in `outstanding` of the core.
    pub pipeline: Name,
}

/// An EDMA channel controller and its transfer controllers, which are all alike but for their bridges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct EdmaController {
    /// The fabric that its transfer controllers are masters of.
    pub fabric: Name,
    /// The width of the read and of the write bus of a transfer controller.
    pub width: BytesPerCycle,
    /// The clock of these buses.
    pub clock: Name,
    /// The default burst size (DBS): the largest command.
    pub default_burst: At<Bytes>,
    /// The data FIFO of a transfer controller.
    pub fifo: At<Bytes>,
    /// How much data of reads may be under way.
    pub outstanding_reads: At<Bytes>,
    /// How much data of writes may be under way.
    pub outstanding_writes: At<Bytes>,
    /// What the first byte of a transfer request waits for: parameter set, queue, first command.
    pub setup: At<Cycles>,
    /// The least time from one command to the next of a transfer controller; none where its buses are slower anyway.
    #[serde(default)]
    pub command: Option<At<Cycles>>,
    /// The transfer controllers: each with the bridges that it may use.
    pub transfer_controllers: Vec<At<TransferController>>,
}

/// One transfer controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct TransferController {
    /// Its name: "TC0".
    pub name: Name,
    /// The bridges that it may use.
    #[serde(default)]
    pub bridges: Vec<Name>,
}

impl Core {
    /// What it moves at once.
    pub fn line(&self) -> Bytes {
        self.line.as_deref().copied().unwrap_or(Bytes::new(self.width.value().max(1.0)))
    }
}

impl Soc {
    /// The description as a chip file has it. In one place, as who writes it by `toml` compiles all its types once more.
    ///
    /// # Errors
    /// What TOML cannot hold; a chip that was loaded has nothing of the kind.
    pub fn text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// The frequency of a clock; `None` for a name that no clock has, or one that derives from itself.
    pub fn frequency(&self, clock: &str) -> Option<Hertz> {
        let (mut name, mut factor) = (clock, 1.0);
        // No chain is longer than there are clocks, unless it is a circle.
        for _ in 0..=self.clocks.len() {
            let clock = self.clocks.get(name)?;
            if let Some(frequency) = &clock.frequency {
                return Some(**frequency * factor);
            }
            factor *= f64::from(clock.multiply.as_deref().copied().unwrap_or(1));
            factor /= f64::from(clock.divide.as_deref().copied().unwrap_or(1));
            name = clock.from.as_deref()?;
        }
        None
    }

    /// The rate of a bus of this width on this clock.
    pub fn bus_rate(&self, width: BytesPerCycle, clock: &str) -> Option<BytesPerSecond> {
        Some(width * self.frequency(clock)?)
    }

    /// The time of cycles of a named clock.
    pub fn time(&self, cycles: &Cycles) -> Option<Nanoseconds> {
        Some(cycles.at(self.frequency(&cycles.clock.0)?))
    }

    /// The controller and the transfer controller of this name.
    pub fn transfer_controller(&self, name: &str) -> Option<(&EdmaController, &TransferController)> {
        self.edma.values().find_map(|controller| {
            let found = controller.transfer_controllers.iter().find(|tc| tc.name.as_str() == name)?;
            Some((&**controller, &**found))
        })
    }
}
