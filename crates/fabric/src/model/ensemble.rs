//! A chip in all the ways that measurements and a guide's sentences leave possible, each fitted, and predictions of them all.
//!
//! Every structure of a part ([`crate::soc::Alternative`]) is fitted to the same visible cells. Its weight is that of its
//! squared errors, `(least / own) ^ (cells / 2)`: the likelihood ratio of scatter of unknown size. A structure that a sentence
//! contradicts counts nothing where another one meets them all. What ties stays: the prediction is the mixture.

use super::mixture::mix;
use super::part::{CHIP, Part, part_of};
use super::sentences;
use crate::fit::{Measurement, calibrated};
use crate::guide::Sentence;
use crate::predict::{Calibrate, Prediction, TableModel};
use crate::soc::{EditError, Soc, Structure};
use std::collections::BTreeMap;

/// A structure below this share of the best one's weight is left out.
const NEGLIGIBLE: f64 = 0.01;
/// Squared relative errors are not told apart below this: half a unit of four printed digits.
const RESOLUTION: f64 = 1e-8;

/// A structure with its parameters fitted.
#[derive(Debug, Clone)]
pub struct Member {
    /// The answer to each open question: its name, and that of the option.
    pub choices: Vec<(String, String)>,
    /// The chip, fitted.
    pub soc: Soc,
    /// Its share of the mixture; all of a part add up to 1.
    pub weight: f64,
    /// The mean of the squared relative errors on the cells that it was fitted to.
    pub squared_error: f64,
    /// Sentences that it contradicts, by number, with what it does instead.
    pub broken: Vec<(usize, String)>,
}

/// All structures of one part.
#[derive(Debug, Clone)]
pub struct Open {
    /// The part.
    pub part: String,
    /// Its structures, those that are ruled out too.
    pub members: Vec<Member>,
    /// How many cells they were fitted to.
    pub cells: usize,
}

/// A chip with all that is left open of it.
#[derive(Debug, Clone)]
pub struct Ensemble {
    /// The chip as its file describes it.
    pub soc: Soc,
    /// Its parts.
    pub parts: Vec<Open>,
    /// The relative half width of intervals by kind of transfer, from cells that fits had not seen.
    pub spreads: BTreeMap<&'static str, f64>,
}

/// Fits structures of a part to cells of it, and weighs them.
///
/// Those that contradict more sentences than others do are not fitted: they count nothing.
pub fn open(structures: &[Structure], part: &str, cells: &[Measurement], said: &[Sentence]) -> Open {
    let broken: Vec<Vec<(usize, String)>> =
        structures.iter().map(|structure| broken(&structure.soc, part, said)).collect();
    let fewest = broken.iter().map(Vec::len).min().unwrap_or(0);
    let mut fitted: Vec<(Vec<f64>, Vec<String>, Vec<f64>)> = Vec::new();
    let mut members = Vec::new();
    for (structure, broken) in structures.iter().zip(broken) {
        let mut model = Part::new(&structure.soc, part);
        if broken.len() == fewest {
            let at_start = errors(&model, cells);
            // Structures that say the same of all these cells have the same fit; it need not be made again.
            let names: Vec<String> = model.free().into_iter().map(|one| one.name).collect();
            let known = fitted.iter().find(|(start, same, _)| *start == at_start && *same == names);
            let values = match known {
                Some((.., values)) => values.clone(),
                None => calibrated(&model, cells, &model.free()),
            };
            model = model.with_free(&values);
            fitted.push((at_start, names, values));
        }
        let squared_error = squared_error(&model, cells);
        members.push(Member {
            choices: structure.choices.clone(),
            soc: model.into_chip(&structure.soc),
            weight: 1.0,
            squared_error,
            broken,
        });
    }
    weigh(&mut members, cells.len());
    Open { part: part.to_owned(), members, cells: cells.len() }
}

/// The sentences on a part that a chip contradicts.
fn broken(soc: &Soc, part: &str, said: &[Sentence]) -> Vec<(usize, String)> {
    let own = said.iter().enumerate().filter(|(_, sentence)| sentences::part(sentence) == part);
    own.filter_map(|(number, sentence)| Some((number, sentences::check(soc, sentence)?.err()?))).collect()
}

/// The mean of the squared relative errors on some cells.
pub(super) fn squared_error(model: &impl TableModel, cells: &[Measurement]) -> f64 {
    let squares: f64 = errors(model, cells).iter().map(|error| error * error).sum();
    squares / cells.len().max(1) as f64
}

fn errors(model: &impl TableModel, cells: &[Measurement]) -> Vec<f64> {
    cells
        .iter()
        .filter_map(|cell| {
            let found = model.figure(&cell.table, &cell.row, cell.column)?;
            Some((found / cell.value - 1.0) / cell.error.unwrap_or(1.0))
        })
        .collect()
}

fn weigh(members: &mut [Member], cells: usize) {
    let fewest = members.iter().map(|member| member.broken.len()).min().unwrap_or(0);
    let allowed = |member: &Member| member.broken.len() == fewest;
    let least = members.iter().filter(|member| allowed(member)).map(|member| member.squared_error);
    let least = least.fold(f64::INFINITY, f64::min) + RESOLUTION;
    for member in members.iter_mut() {
        let ratio = least / (member.squared_error + RESOLUTION);
        let weight = ratio.powf(cells as f64 / 2.0);
        member.weight = if allowed(member) && weight >= NEGLIGIBLE { weight } else { 0.0 };
    }
    let total: f64 = members.iter().map(|member| member.weight).sum();
    members.iter_mut().for_each(|member| member.weight /= total.max(f64::MIN_POSITIVE));
}

impl Open {
    /// The structures that no sentence rules out, to be fitted to other cells: fits start where this one ended.
    pub fn allowed(&self) -> Vec<Structure> {
        let fewest = self.members.iter().map(|member| member.broken.len()).min().unwrap_or(0);
        let allowed = self.members.iter().filter(|member| member.broken.len() == fewest);
        allowed
            .map(|member| Structure {
                choices: member.choices.clone(),
                weight: member.weight,
                soc: member.soc.clone(),
            })
            .collect()
    }

    /// What the structures that are left say of a cell, each with its weight.
    pub fn predictions(&self, table: &str, row: &str, column: usize) -> Vec<(f64, Prediction)> {
        let left = self.members.iter().filter(|member| member.weight > 0.0);
        left.filter_map(|member| Some((member.weight, member.soc.cell(table, row, column)?))).collect()
    }

    /// The structure that counts most.
    pub fn best(&self) -> Option<&Member> {
        self.members.iter().max_by(|a, b| a.weight.total_cmp(&b.weight))
    }

    /// How much each answer to a question counts.
    pub fn answers(&self, question: &str) -> Vec<(String, f64)> {
        let mut answers: Vec<(String, f64)> = Vec::new();
        for member in &self.members {
            let Some((_, choice)) = member.choices.iter().find(|(name, _)| name == question) else {
                continue;
            };
            match answers.iter_mut().find(|(known, _)| known == choice) {
                Some((_, weight)) => *weight += member.weight,
                None => answers.push((choice.clone(), member.weight)),
            }
        }
        answers
    }

    /// What the structures that are left say of a transfer, by the answer to a question: the least and the most.
    pub fn told_apart(&self, question: &str, transfer: &str) -> Vec<(String, f64, f64)> {
        let mut told: Vec<(String, f64, f64)> = Vec::new();
        for member in self.members.iter().filter(|member| member.weight > 0.0) {
            let Some((_, choice)) = member.choices.iter().find(|(name, _)| name == question) else {
                continue;
            };
            let Ok(found) = crate::ask::answer(&member.soc, transfer) else { continue };
            match told.iter_mut().find(|(known, ..)| known == choice) {
                Some((_, low, high)) => {
                    *low = low.min(found.predicted);
                    *high = high.max(found.predicted);
                }
                None => told.push((choice.clone(), found.predicted, found.predicted)),
            }
        }
        told
    }
}

impl Ensemble {
    /// A chip with what is known of its parts already; the others have every structure, each by the weight of the file.
    ///
    /// # Errors
    /// A change that the chip refuses; a loaded chip has none.
    pub fn new(
        soc: &Soc,
        mut parts: Vec<Open>,
        said: &[Sentence],
        spreads: BTreeMap<&'static str, f64>,
    ) -> Result<Self, EditError> {
        let mut names = soc.open_parts();
        names.push(CHIP.to_owned());
        names.sort();
        names.dedup();
        for name in names {
            if parts.iter().all(|open| open.part != name) {
                parts.push(open(&soc.structures(&name)?, &name, &[], said));
            }
        }
        Ok(Self { soc: soc.clone(), parts, spreads })
    }

    /// The part that a cell is about.
    pub fn part(&self, table: &str, row: &str) -> Option<&Open> {
        let name = part_of(table, row);
        self.parts.iter().find(|open| open.part == name)
    }
}

impl TableModel for Ensemble {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        let Some(open) = self.part(table, row) else { return self.soc.cell(table, row, column) };
        let half = super::accuracy::kind(table, row).and_then(|kind| self.spreads.get(kind)).copied();
        mix(&open.predictions(table, row, column), half)
    }
}
