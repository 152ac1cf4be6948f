//! What is not known of a chip: questions with several possible answers, each a change of the description.
//!
//! Measurements of one condition leave structures open that differ in others: a latency that the line paces, or the chip; a
//! window that nothing has filled yet. A file lists such alternatives. `fit` scores them, and predictions span all that are
//! left ([`crate::model::ensemble`]).

use super::edit::Editor;
use super::{At, EditError, Soc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More combinations of what is asked of one part of a chip are refused.
pub const MAX_STRUCTURES: usize = 256;
/// The most steps of a range.
const MAX_STEPS: u32 = 16;

/// Something that is not known, with what it may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Alternative {
    /// What is not known.
    pub question: String,
    /// The transfer whose measurement would tell.
    pub decides: At<String>,
    /// The answers that are possible; the description itself has the first one.
    #[serde(default)]
    pub options: Vec<Choice>,
    /// A number of which only the bounds are known, instead of options.
    #[serde(default)]
    pub range: Option<Span>,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// Keys of the description with their values; none for the description as it is.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// How much it counts beside the others, as `fit` scored it; 0 for what measurements or a datasheet's text rule out.
    #[serde(default = "one")]
    pub weight: f64,
}

/// A number between two bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Span {
    /// The key.
    pub key: String,
    /// The least, in `unit`.
    pub from: f64,
    /// The most.
    pub to: f64,
    /// The unit behind the number, as in "%"; none for a plain number.
    #[serde(default)]
    pub unit: String,
    /// How many values stand for all between them, 2 to 16.
    pub steps: u32,
}

/// A chip in one of the ways that it may be.
#[derive(Debug, Clone)]
pub struct Structure {
    /// The alternative and the answer, for each question of the part.
    pub choices: Vec<(String, String)>,
    /// How much it counts by the weights of the file; all of a part add up to 1.
    pub weight: f64,
    /// The chip.
    pub soc: Soc,
}

/// The answers so far, their weight, and the changes that they make.
type Combination = (Vec<(String, String)>, f64, Vec<(String, String)>);

fn one() -> f64 {
    1.0
}

impl Alternative {
    /// The answers, a range in its steps.
    pub fn choices(&self) -> Vec<Choice> {
        let Some(span) = &self.range else { return self.options.clone() };
        let steps = span.steps.clamp(2, MAX_STEPS);
        (0..steps)
            .map(|step| {
                // The middle of each of as many equal parts: together they stand for a flat spread.
                let share = (f64::from(step) + 0.5) / f64::from(steps);
                let number = span.from + (span.to - span.from) * share;
                // Without the last digits that only the division makes.
                let number = (number * 1e9).round() / 1e9;
                let value = format!("{number} {}", span.unit).trim().to_owned();
                let mut set = BTreeMap::from([(span.key.clone(), value.clone())]);
                if span.key.ends_with(".line_share") {
                    // Nothing is left open in a chip that has the answer.
                    for bound in ["min", "max"] {
                        set.insert(format!("{}_{bound}", span.key), value.clone());
                    }
                }
                Choice { name: value, set, weight: 1.0 }
            })
            .collect()
    }

    /// The part of the chip that it is about: "links.srio", or "chip" for memories, controllers and cores.
    pub fn part(&self) -> String {
        let mut keys = self.options.iter().flat_map(|choice| choice.set.keys());
        let key = self.range.as_ref().map(|span| &span.key).or_else(|| keys.next());
        key.map_or_else(|| "chip".to_owned(), |key| part_of(key))
    }

    /// What is wrong with it, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        let named = |what: &str| Some(format!("expected {what}"));
        match (&self.range, self.options.as_slice()) {
            (Some(_), [_, ..]) | (None, []) => named("either options or a range"),
            (None, [_]) => named("two options or more; one is no question"),
            (Some(span), []) if !(span.from < span.to && (2..=MAX_STEPS).contains(&span.steps)) => {
                named("a range from less to more in 2 to 16 steps")
            }
            (None, options) if !options.iter().all(|choice| (0.0..=1e6).contains(&choice.weight)) => {
                named("weights of 0 or more")
            }
            (None, options) if !options.iter().any(|choice| choice.weight > 0.0) => {
                named("one option at least with a weight above 0")
            }
            _ => None,
        }
    }
}

/// The part of a chip that a key belongs to.
fn part_of(key: &str) -> String {
    let mut levels = key.split('.');
    match (levels.next(), levels.next()) {
        (Some("links"), Some(link)) => format!("links.{link}"),
        _ => "chip".to_owned(),
    }
}

impl Soc {
    /// The parts that something is open of.
    pub fn open_parts(&self) -> Vec<String> {
        let mut parts: Vec<String> = self.alternatives.values().map(|open| open.part()).collect();
        parts.sort();
        parts.dedup();
        parts
    }

    /// Every way that a part of the chip may be, those of weight 0 too; the chip itself where nothing is open.
    ///
    /// # Errors
    /// A change that the chip refuses; a loaded chip has none.
    pub fn structures(&self, part: &str) -> Result<Vec<Structure>, EditError> {
        let plain = Soc { alternatives: BTreeMap::new(), ..self.clone() };
        let of_part: Vec<(&str, Vec<Choice>)> = self
            .alternatives
            .iter()
            .filter(|(_, open)| open.part() == part)
            .map(|(name, open)| (name.as_str(), open.choices()))
            .collect();
        combined(&plain, &of_part)
    }
}

/// Every combination of answers to these questions, each made in `plain`.
pub(crate) fn combined(plain: &Soc, open: &[(&str, Vec<Choice>)]) -> Result<Vec<Structure>, EditError> {
    let mut all: Vec<Combination> = vec![(Vec::new(), 1.0, Vec::new())];
    for (name, choices) in open {
        let total: f64 = choices.iter().map(|choice| choice.weight).sum();
        let mut next = Vec::new();
        for (chosen, weight, changes) in &all {
            for choice in choices {
                let (mut chosen, mut changes) = (chosen.clone(), changes.clone());
                chosen.push(((*name).to_owned(), choice.name.clone()));
                changes.extend(choice.set.iter().map(|(key, value)| (key.clone(), value.clone())));
                next.push((chosen, weight * choice.weight / total, changes));
            }
        }
        all = next;
    }
    let keys = open.iter().flat_map(|(_, choices)| choices).flat_map(|choice| choice.set.keys());
    let editor = Editor::of(plain, keys.map(String::as_str))?;
    all.into_iter()
        .map(|(choices, weight, changes)| {
            let soc = if changes.is_empty() { plain.clone() } else { editor.with(&changes)? };
            Ok(Structure { choices, weight, soc })
        })
        .collect()
}
