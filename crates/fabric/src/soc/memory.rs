//! Memories as a chip file describes them.

use super::{At, Name};
use crate::units::{Bytes, BytesPerCycle, Cycles, Nanoseconds, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndpointKind {
    /// Static memory, or a cache used as such.
    Sram,
    /// Dynamic memory behind a controller.
    Dram,
}

/// Whether a port reads and writes at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads and writes take turns.
    Half,
    /// Reads and writes have a bus each.
    Full,
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Endpoint {
    /// What it is made of.
    pub kind: EndpointKind,
    /// How many of it the chip has, as one L2 per core; they do not share a port.
    #[serde(default = "one")]
    pub count: u32,
    /// The fabric that it is a slave of; none for what only its own core reaches.
    pub fabric: Option<Name>,
    /// The memory whose controller requests pass on their way here.
    pub behind: Option<Name>,
    /// The width of its data path.
    pub width: BytesPerCycle,
    /// The clock of its data path.
    pub clock: Name,
    /// Transfers per clock cycle: 2 at double data rate.
    #[serde(default = "one")]
    pub transfers_per_cycle: u32,
    /// Whether it reads and writes at the same time.
    pub direction: Direction,
    /// The number of banks: of dynamic memory, which open rows side by side (8 when left out); of static memory that is
    /// wider than a bank, which accesses must hit evenly for the full rate.
    pub banks: Option<At<u32>>,
    /// How wide a bank of static memory is.
    pub bank_width: Option<At<Bytes>>,
    /// The port for masters on the fabric, where that is narrower than the memory.
    pub port: Option<DmaPort>,
    /// From the arrival of a DMA read at the memory to its first data.
    pub read_latency: Option<At<Cycles>>,
    /// From the arrival of a DMA write to its acknowledgement.
    pub write_latency: Option<At<Cycles>>,
    /// What each access costs above its data.
    pub access_overhead: Option<At<Cycles>>,
    /// The largest piece in which it returns data that is read; a piece below the width of a bus fills a cycle of it.
    pub max_read_response: Option<At<Bytes>>,
    /// What dynamic memory adds.
    pub dram: Option<At<Dram>>,
}

/// The port of a memory for masters on the fabric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct DmaPort {
    /// Its width.
    pub width: BytesPerCycle,
    /// Its clock.
    pub clock: Name,
    /// What it loses for each beat of data, whatever the burst.
    pub beat_overhead: At<Cycles>,
}

/// What dynamic memory and its controller add to a memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Dram {
    /// Command, read and write queues of the controller, which run on the chip's side.
    pub queues: At<Cycles>,
    /// Column latency and half a burst: from the column command to the last data of a read of an open page.
    pub device: At<Cycles>,
    /// What a read by DMA waits for beyond `queues` and `device`: arbitration and the burst itself.
    pub dma_wait: At<Cycles>,
    /// What each command adds to the latency of those behind it: its slot on the command bus.
    pub command: At<Cycles>,
    /// What the bus carries of its peak in one direction: refresh and page changes cost the rest.
    pub efficiency: At<Ratio>,
    /// The time the bus stands still for a change from reads to writes and back.
    pub turnaround: At<Cycles>,
    /// The data moved between two such changes when a master reads and writes the same memory.
    pub turnaround_every: At<Bytes>,
    /// The page of one rank across the bus: a transfer opens a row for each page that it enters.
    pub page: At<Bytes>,
    /// From opening a row of a bank to opening the next one; 50 ns when left out, as in all standards from DDR2 to DDR4.
    #[serde(default)]
    pub row_cycle: Option<At<Cycles>>,
    /// The number of ranks in use.
    pub ranks: At<u32>,
    /// What the bus stands still for when accesses go to another rank.
    pub rank_switch: At<Cycles>,
    /// The data moved between changes of rank, where there is more than one.
    pub rank_switch_every: At<Bytes>,
}

impl Dram {
    /// The row cycle of a memory that says nothing of it (JESD79-2 to JESD79-4: 45 to 60 ns).
    pub(crate) const ROW_CYCLE: Nanoseconds = Nanoseconds::new(50.0);
    /// The banks of a memory that says nothing of them (JESD79-3).
    pub(crate) const BANKS: u32 = 8;
}

fn one() -> u32 {
    1
}
