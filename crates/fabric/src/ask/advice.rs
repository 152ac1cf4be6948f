//! What to change first: each number of a description is made better alone, and the answer asked for again.

use super::answer;
use crate::predict::{Prediction, Unit};
use crate::soc::Soc;

/// A change that helps.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The keys that help as much, each alone.
    pub keys: Vec<String>,
    /// The value of the first.
    pub from: String,
    /// What it was changed to.
    pub to: String,
    /// How much more the transfer does: 0.5 for half as much again.
    pub gain: f64,
}

/// Gains below this are no advice.
const LEAST: f64 = 0.01;
/// Gains this close to each other are the same.
const SAME: f64 = 1e-3;

/// How a quantity gets better, by its unit: a factor.
fn better(value: &str) -> Option<(f64, String)> {
    let (number, unit) = crate::units::split_number(value);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.split(' ').next()? {
        // Twice as wide, twice as much under way; a clock by a quarter; half of a time.
        "B" | "B/cycle" => 2.0,
        "Hz" | "bit/s" | "B/s" => 1.25,
        "cycles" | "cycle" | "ns" | "cycles/B" => 0.5,
        _ => return None,
    };
    (number > 0.0).then(|| (factor, format!("{} {unit}", number * factor)))
}

/// The changes of one number that help a transfer most, the best first.
///
/// Only what a description says of the chip counts: not the size of a frame, nor what a standard fixes.
pub fn of(soc: &Soc, transfer: &str, most: usize) -> Vec<Advice> {
    let Ok(now) = answer(soc, transfer) else { return Vec::new() };
    let mut found: Vec<Advice> = Vec::new();
    let plain = Soc { alternatives: std::collections::BTreeMap::new(), ..soc.clone() };
    for (key, value) in plain.keys() {
        if FIXED.iter().any(|fixed| key.ends_with(fixed)) {
            continue;
        }
        let Some((_, to)) = better(&value) else { continue };
        let changed = plain.with(&[(key.clone(), to.clone())]).ok();
        let Some(then) = changed.and_then(|soc| answer(&soc, transfer).ok()) else { continue };
        let gain = gain(&now, &then);
        if gain < LEAST {
            continue;
        }
        let same = |known: &&mut Advice| (known.gain - gain).abs() < SAME;
        match found.iter_mut().find(same) {
            Some(known) => known.keys.push(key),
            None => found.push(Advice { keys: vec![key], from: value, to, gain }),
        }
    }
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    found.truncate(most);
    found
}

/// What a standard or a measurement fixes.
const FIXED: [&str; 12] = [
    ".measured_at",
    ".measured_line_rate",
    ".preamble",
    ".gap",
    ".header",
    ".check_sequence",
    ".packet_overhead",
    ".device_id",
    ".delimiter",
    ".page",
    ".turnaround_every",
    ".rank_switch_every",
];

/// How much better one answer is than another; a latency is better when it is less.
fn gain(now: &Prediction, then: &Prediction) -> f64 {
    match now.unit {
        Unit::Cycles | Unit::Nanoseconds => now.predicted / then.predicted.max(1e-9) - 1.0,
        _ => then.predicted / now.predicted.max(1e-9) - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_widened_or_its_latency_cut_before_any_bus() {
        let soc =
            crate::soc::load(include_str!("../../../../boards/socs/examples/heron.toml")).expect("a chip");
        let advice = of(&soc, "edma:D0:dram->sram:64KiB", 5);
        let first = advice.first().expect("something helps");
        assert_eq!(first.keys, ["edma.dma.outstanding_reads"], "{advice:?}");
        assert!((0.8..1.0).contains(&first.gain), "{first:?}");
        assert!(advice.iter().all(|one| !one.keys.iter().any(|key| key.ends_with(".width"))), "{advice:?}");
        assert!(of(&soc, "edma:D9:dram->sram", 5).is_empty());
    }
}
