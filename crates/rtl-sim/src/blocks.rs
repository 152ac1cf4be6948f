//! The comparison of each block with its reference: the same random frames through both, bit for bit.
//!
//! A comparison is `compare(&mut Dut, seed, frames) -> Result<Coverage, String>`: the error names the seed and the first
//! difference, or what the block never did.

mod axis_register;
mod csum_rx;
mod csum_tx;
mod dma;
mod frame_sum;
mod int_pacer;
mod lro;
mod rss;
mod rss_hash;
mod rx_fifo;
mod transmit;
mod tso;

use crate::dut::Dut;
use std::collections::BTreeMap;
use std::fmt;

/// What a comparison has seen, by kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Frames in all.
    pub frames: u64,
    /// How many of each kind.
    pub kinds: BTreeMap<String, u64>,
}

impl Coverage {
    /// Counts one of a kind.
    pub fn count(&mut self, kind: impl Into<String>) {
        *self.kinds.entry(kind.into()).or_default() += 1;
    }

    /// The share of a kind among all frames, in percent.
    pub fn percent(&self, kind: &str) -> f64 {
        let count = self.kinds.get(kind).copied().unwrap_or(0);
        100.0 * count as f64 / self.frames.max(1) as f64
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} frames", self.frames)?;
        for kind in self.kinds.keys() {
            write!(f, ", {kind} {:.1} %", self.percent(kind))?;
        }
        Ok(())
    }
}

/// A comparison.
pub type Compare = fn(&mut Dut, u64, u64) -> Result<Coverage, String>;

/// Every comparison by the name of its block.
pub const ALL: &[(&str, Compare)] = &[
    // In the order of their names.
    ("axis_register", axis_register::compare),
    ("csum_rx", csum_rx::compare),
    ("csum_tx", csum_tx::compare),
    ("dma", dma::compare),
    ("frame_sum", frame_sum::compare),
    ("int_pacer", int_pacer::compare),
    ("lro", lro::compare),
    ("rss", rss::compare),
    ("rss_hash", rss_hash::compare),
    ("rx_fifo", rx_fifo::compare),
    ("tso", tso::compare),
    ("tx_path", tso::compare_path),
];

/// Runs the comparison of one block on a new instance.
///
/// # Errors
/// As [`Compare`]; also if there is no such block.
pub fn compare(name: &str, seed: u64, frames: u64) -> Result<Coverage, String> {
    let block = name.split('@').next().unwrap_or(name);
    let (_, run) = ALL
        .iter()
        .find(|(known, _)| *known == block)
        .ok_or_else(|| format!("there is no comparison of {block:?}"))?;
    let mut dut = Dut::open(name).map_err(|error| error.to_string())?;
    run(&mut dut, seed, frames)
}
