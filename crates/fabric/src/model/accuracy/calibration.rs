//! Whether nine of ten cells that were left out lie inside the intervals, by kind of transfer.

use super::unseen::{Judged, Scheme, half_width, scheme};
use super::{BTreeMap, two_sided};
use crate::model::mixture::mix;
use serde::{Deserialize, Serialize};

/// Kinds with fewer cells are judged together.
const FEW: usize = 15;
/// The share of cells that intervals promise to hold.
const PROMISED: f64 = 0.9;
/// Below this chance a share of cells is not compatible with the promise.
pub const LEAST_PLAUSIBLE: f64 = 0.05;
/// What kinds with few cells are called together.
const TOGETHER: &str = "all with fewer cells";

/// How intervals do on cells that the fit has not seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The kind of transfer.
    pub kind: String,
    /// Cells.
    pub cells: usize,
    /// Those of them whose whole table was left out; of the others every other row.
    pub by_table: usize,
    /// Those inside their interval.
    pub inside: usize,
    /// The chance of a share as far from nine of ten, by the exact binomial test.
    pub plausible: f64,
    /// The mean width of the intervals, as a share of the prediction.
    pub width: f64,
}

impl Calibrated {
    /// Whether the share is compatible with what intervals promise.
    pub fn holds(&self) -> bool {
        self.plausible >= LEAST_PLAUSIBLE
    }
}

/// The kinds in groups: each for itself, or those with few cells together.
fn groups(judged: &[Judged]) -> Vec<(String, Vec<&'static str>)> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for one in judged {
        let tested = one.left_out(scheme(judged, &[one.kind()])).is_some();
        *counts.entry(one.kind()).or_default() += usize::from(tested);
    }
    let few: Vec<&'static str> =
        counts.iter().filter(|(_, count)| **count < FEW).map(|(kind, _)| *kind).collect();
    let mut groups: Vec<(String, Vec<&'static str>)> = counts
        .keys()
        .filter(|kind| !few.contains(kind))
        .map(|kind| ((*kind).to_owned(), vec![*kind]))
        .collect();
    if !few.is_empty() {
        groups.push((TOGETHER.to_owned(), few));
    }
    groups
}

/// The half width of intervals for each kind: what holds by either way of leaving cells out.
pub(super) fn spreads(judged: &[Judged]) -> BTreeMap<&'static str, f64> {
    let mut spreads = BTreeMap::new();
    for (_, kinds) in groups(judged) {
        for kind in &kinds {
            let halves = [Scheme::Table, Scheme::Rows].map(|scheme| half_width(judged, &kinds, scheme, None));
            if let Some(half) = halves.into_iter().flatten().reduce(f64::max) {
                spreads.insert(*kind, half);
            }
        }
    }
    spreads
}

/// How many left-out cells lie inside intervals whose width comes from other folds.
pub(super) fn calibration(judged: &[Judged]) -> Vec<Calibrated> {
    groups(judged)
        .into_iter()
        .map(|(kind, kinds)| {
            let (mut cells, mut by_table, mut inside, mut width) = (0, 0, 0, 0.0);
            for one in judged.iter().filter(|one| kinds.contains(&one.kind())) {
                let scheme = scheme(judged, &[one.kind()]);
                let Some(left) = one.left_out(scheme) else { continue };
                let half = half_width(judged, &kinds, scheme, Some(&left.fold));
                let Some(found) = mix(&left.members, half) else { continue };
                cells += 1;
                by_table += usize::from(scheme == Scheme::Table);
                inside += usize::from((found.low..=found.high).contains(&one.cell.value));
                width += (found.high - found.low) / found.predicted;
            }
            Calibrated {
                plausible: two_sided(inside, cells, PROMISED),
                width: width / cells.max(1) as f64,
                kind,
                cells,
                by_table,
                inside,
            }
        })
        .collect()
}
