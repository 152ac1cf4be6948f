//! A sweep file: what its tables and keys are.

use crate::scenario::file::Scenario;
use serde::Deserialize;
use toml::{Spanned, Value};

/// A whole file.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SweepFile {
    /// A line that says what the sweep asks.
    pub title: Option<String>,
    /// The scenario that every world begins with, as for `linerate sim`.
    pub scenario: Option<Scenario>,
    /// The same in a file of its own, beside this one.
    pub scenario_file: Option<Spanned<String>>,
    /// Instead: a chip, as for `linerate fabric`.
    pub chip: Option<Spanned<String>>,
    /// What the chip is asked, as for `fabric predict --transfer`.
    pub transfer: Option<Spanned<String>>,
    /// Worlds of each point: they differ by their seed. Default: 1.
    pub seeds: Option<Spanned<u32>>,
    /// The first seed. Default: the scenario's, or 1.
    pub first_seed: Option<u64>,
    /// How points are chosen. Default: every combination of values.
    pub sample: Option<Spanned<SampleTable>>,
    /// What is varied.
    pub axis: Vec<AxisTable>,
    /// What the heat map shows. Default: the first two axes.
    pub picture: Option<PictureTable>,
}

/// `[sample]`.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SampleTable {
    /// How.
    pub method: Method,
    /// How many points; not for a grid, which has as many as there are combinations.
    pub points: Option<u32>,
    /// Decides which points. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
}

fn one() -> u64 {
    1
}

/// How points are chosen.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Every combination of values.
    Grid,
    /// Each by chance.
    Random,
    /// By chance, but each axis is covered evenly: one point in each of as many equal parts of it as there are points (McKay,
    /// Beckman and Conover 1979).
    LatinHypercube,
}

/// `[[axis]]`: a key and its values, or the range that they lie in.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AxisTable {
    /// The key, as for `--set`.
    pub key: Spanned<String>,
    /// Its values.
    pub values: Option<Spanned<Vec<Value>>>,
    /// The least value.
    pub from: Option<Spanned<Value>>,
    /// The largest.
    pub to: Option<Spanned<Value>>,
    /// How many values of the range a grid has.
    pub steps: Option<Spanned<u32>>,
    /// How they are spread.
    #[serde(default)]
    pub scale: Scale,
}

/// How values are spread over a range.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// At equal distances.
    #[default]
    Linear,
    /// At equal ratios.
    Log,
}

/// `[picture]`.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PictureTable {
    /// The key from left to right.
    pub x: Spanned<String>,
    /// The key from bottom to top.
    pub y: Spanned<String>,
    /// The column that the colours show. Default: goodput, or what is predicted.
    pub figure: Option<Spanned<String>>,
}
