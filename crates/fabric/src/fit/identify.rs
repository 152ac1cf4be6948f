//! What measurements can tell apart: rank and condition of the Jacobian, and which parameters share a direction.
//!
//! Each column of the Jacobian says how all measurements respond to one parameter. A column of zeros is a parameter that no
//! measurement depends on. The others are brought to length 1, and decomposed (SVD): a singular value far below the largest
//! is a combination of parameters that the measurements cannot see, though they see each of its members.

use nalgebra::DMatrix;
use serde::Serialize;

/// A singular value below this part of the largest counts as none.
const RANK: f64 = 1e-6;
/// One below this part is a combination that the data hardly tells.
const WEAK: f64 = 1e-2;
/// A parameter belongs to a combination when it has at least this share of it.
const MEMBER: f64 = 0.25;
/// Parameters whose estimates are correlated by more than this are named as a pair.
const PAIR: f64 = 0.98;

/// Whether the data decides on a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identified {
    /// It does.
    Yes,
    /// Only together with others: see [`Identifiability::ties`].
    Tied,
    /// No measurement depends on it: it stays as it was, and predictions span its whole range.
    No,
}

/// Parameters that the data cannot tell apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tie {
    /// Their names.
    pub names: Vec<String>,
    /// How well the combination is seen: its singular value over the largest; 0 when not at all.
    pub strength: f64,
    /// What this means, for a reader.
    pub explanation: String,
}

/// What the data can tell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Identifiability {
    /// Parameters.
    pub parameters: usize,
    /// Independent combinations of them that the data sees.
    pub rank: usize,
    /// Largest over smallest singular value of the parameters that it sees; large is bad.
    pub condition: f64,
    /// Combinations and pairs that it cannot tell apart, and parameters that it does not see.
    pub ties: Vec<Tie>,
}

/// The Jacobian in parts.
pub(super) struct Analysis {
    pub(super) seen: Vec<bool>,
    /// The measurements that respond to each parameter.
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) state: Vec<Identified>,
    pub(super) report: Identifiability,
    /// The covariance of the parameters for residuals of variance 1; zero for those that are not seen.
    pub(super) covariance: DMatrix<f64>,
}

/// Analyses a Jacobian: a row per measurement, a column per parameter, in the units of the parameters.
pub(super) fn analyse(jacobian: &DMatrix<f64>, names: &[String], ranges: &[f64]) -> Analysis {
    let count = names.len();
    let norms: Vec<f64> = (0..count).map(|at| jacobian.column(at).norm()).collect();
    let strongest = norms.iter().zip(ranges).map(|(norm, range)| norm * range).fold(0.0, f64::max);
    let seen: Vec<bool> = norms
        .iter()
        .zip(ranges)
        .map(|(norm, range)| norm * range > strongest * 1e-9 && *norm > 0.0)
        .collect();
    let active: Vec<usize> = (0..count).filter(|&at| seen[at]).collect();
    let mut state: Vec<Identified> =
        seen.iter().map(|&seen| if seen { Identified::Yes } else { Identified::No }).collect();
    let mut ties: Vec<Tie> = (0..count).filter(|&at| !seen[at]).map(|at| unseen(at, names, &seen)).collect();
    let mut covariance = DMatrix::zeros(count, count);
    let (mut rank, mut condition) = (0, 1.0);
    if !active.is_empty() {
        let scaled = DMatrix::from_fn(jacobian.nrows().max(active.len()), active.len(), |row, column| {
            let at = active[column];
            if row < jacobian.nrows() { jacobian[(row, at)] / norms[at] } else { 0.0 }
        });
        let svd = scaled.svd(false, true);
        let largest = svd.singular_values.max();
        let vectors = svd.v_t.unwrap_or_else(|| DMatrix::identity(active.len(), active.len()));
        condition = largest / svd.singular_values.min().max(f64::MIN_POSITIVE);
        for (direction, &value) in svd.singular_values.iter().enumerate() {
            let strength = value / largest;
            let weights: Vec<f64> = vectors.row(direction).iter().copied().collect();
            if strength > RANK {
                rank += 1;
                add_variance(&mut covariance, &active, &weights, &norms, value);
            }
            if strength <= WEAK {
                let members: Vec<usize> = (0..active.len())
                    .filter(|&at| weights[at].abs() >= MEMBER)
                    .map(|at| active[at])
                    .collect();
                for &at in members.iter().filter(|_| strength <= RANK) {
                    state[at] = Identified::Tied;
                }
                ties.push(tie(&members, names, strength));
            }
        }
    }
    ties.extend(pairs(&covariance, names, &active, &ties));
    let report = Identifiability { parameters: count, rank, condition, ties };
    let moved = |at: usize| (0..jacobian.nrows()).filter(|&row| jacobian[(row, at)] != 0.0).collect();
    let rows = (0..count).map(moved).collect();
    Analysis { seen, rows, state, report, covariance }
}

fn add_variance(covariance: &mut DMatrix<f64>, active: &[usize], weights: &[f64], norms: &[f64], value: f64) {
    for (i, &at) in active.iter().enumerate() {
        for (j, &other) in active.iter().enumerate() {
            covariance[(at, other)] += weights[i] / norms[at] * weights[j] / norms[other] / (value * value);
        }
    }
}

fn unseen(at: usize, names: &[String], seen: &[bool]) -> Tie {
    let name = &names[at];
    // A share of a time that is itself seen: the sum is known, its parts are not.
    let of_seen = name.strip_suffix(".line_share").filter(|time| {
        let time = format!("{time}.time");
        names.iter().zip(seen).any(|(other, seen)| *seen && *other == time)
    });
    let explanation = match of_seen {
        Some(time) => format!(
            "whether {time} is paced by the line or by a clock of the chip: all measurements have the line rate at which \
             the time was measured, so any share of it fits them alike; measure at a second line rate"
        ),
        None => format!("{name}: no measurement depends on it"),
    };
    Tie { names: vec![name.clone()], strength: 0.0, explanation }
}

fn tie(members: &[usize], names: &[String], strength: f64) -> Tie {
    let names: Vec<String> = members.iter().map(|&at| names[at].clone()).collect();
    let together = names.join(" and ");
    let explanation = if strength <= RANK {
        format!("{together}: the measurements see their combination only, not each of them")
    } else {
        format!("{together}: the measurements hardly tell them apart")
    };
    Tie { names, strength, explanation }
}

/// Pairs whose estimates go up and down together, beyond those already named.
fn pairs(covariance: &DMatrix<f64>, names: &[String], active: &[usize], known: &[Tie]) -> Vec<Tie> {
    let mut found = Vec::new();
    for (i, &at) in active.iter().enumerate() {
        for &other in &active[i + 1..] {
            let both = (covariance[(at, at)] * covariance[(other, other)]).sqrt();
            let correlation = if both > 0.0 { covariance[(at, other)] / both } else { 0.0 };
            let named =
                known.iter().any(|tie| tie.names.contains(&names[at]) && tie.names.contains(&names[other]));
            if correlation.abs() < PAIR || named {
                continue;
            }
            found.push(Tie {
                names: vec![names[at].clone(), names[other].clone()],
                strength: 1.0 - correlation.abs(),
                explanation: format!(
                    "{} and {}: their estimates are correlated by {correlation:.3}",
                    names[at], names[other]
                ),
            });
        }
    }
    found
}
