//! The machine's memory before a measurement that fills it. A virtual machine gives memory that was not used for a few seconds
//! back to its host, and who needs it then waits until the host gives it again: four times as long as a copy takes.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Most times that a place is written before it is measured as it is.
const PASSES: u32 = 5;
/// Memory is ready when it costs no more than this, the cheapest that was seen being 1.
const READY: f64 = 1.25;

/// What writing to memory has cost so far.
#[derive(Debug, Default)]
pub struct Memory {
    /// The least, in seconds of processor time for a byte.
    least: Option<f64>,
}

impl Memory {
    /// Uses `len` bytes of memory in `folder` and lets go of them, until that is as cheap as it was ever. Returns what it
    /// cost at last, the cheapest that was seen being 1.
    pub fn settle(&mut self, folder: &Path, len: u64) -> Result<f64> {
        let path = folder.join("settle");
        let mut cost = f64::INFINITY;
        for pass in 0..PASSES {
            let written = write(&path, len);
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
            cost = self.note(written? / len.max(1) as f64);
            // The first one may find what the host has taken, and be the first of all.
            if pass > 0 && cost <= READY {
                break;
            }
        }
        Ok(cost)
    }

    fn note(&mut self, cost: f64) -> f64 {
        let least = self.least.map_or(cost, |least| least.min(cost));
        self.least = Some(least);
        if cost > least { cost / least.max(f64::MIN_POSITIVE) } else { 1.0 }
    }
}

/// Writes a file of so many bytes; returns the processor time that it took, which other programs do not lengthen.
fn write(path: &Path, len: u64) -> Result<f64> {
    let block = vec![1; 1 << 20];
    let start = processor_time()?;
    let mut file = File::create(path).with_context(|| path.display().to_string())?;
    let mut left = len;
    while left > 0 {
        let piece = left.min(block.len() as u64);
        file.write_all(&block[..piece as usize])?;
        left -= piece;
    }
    Ok(processor_time()? - start)
}

/// Seconds that this thread has run.
fn processor_time() -> Result<f64> {
    // The scheduler brings its count up to date when it is asked for another thread.
    std::thread::yield_now();
    let place = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(place).context(place)?;
    let ns = text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    Ok(ns.with_context(|| format!("{place} says '{text}'"))? / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_told_beside_the_least() {
        let mut memory = Memory::default();
        let costs = [4e-10, 1e-10, 2e-10, 1e-10, 0.5e-10, 1e-10].map(|cost| memory.note(cost));
        assert_eq!(costs, [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("linerate-settle-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let cost = Memory::default().settle(&folder, 3 << 20).unwrap();
        let left = fs::read_dir(&folder).unwrap().count();
        fs::remove_dir(&folder).unwrap();
        assert!(cost >= 1.0 && left == 0, "{cost} {left}");
    }
}
