//! Calibrates the free parameters of a model from measurements, and says what the measurements cannot tell.
//!
//! [`read`] takes CSV text; [`fit`] moves every [`FreeParameter`] of a [`Calibrate`] model within its bounds until the sum
//! of squared relative errors is least (Levenberg-Marquardt), and reports for each: value, unit with clock domain,
//! confidence interval, and whether the data decides on it at all. Two figures of merit are from data that the fit has not
//! seen: alternate rows left out, and each table left out in turn. Parameters that the data does not see keep their value,
//! and [`Fitted::predict`] spans the whole of their range: a table of one line rate, say, fits any split of a latency into
//! a part that scales with the line and a part that does not, and the interval at another rate has to hold all of them.
//!
//! Confidence intervals are those of linear theory: `value +- t * sqrt(variance of the residuals * (J^T J)^-1)`, at 90 %,
//! cut at the bounds of the parameter.

mod csv;
mod identify;
mod solve;
#[cfg(test)]
mod tests;

pub use csv::{CsvError, CsvFault, HEADER, MAX_ROWS, Measurement, TRANSFERS, canonical, read};
pub use identify::{Identifiability, Identified, Tie};

use crate::model::tables::TRANSFER;
use crate::predict::{Calibrate, FreeParameter, Prediction, Unit};
use identify::Analysis;
use nalgebra::DMatrix;
use serde::Serialize;
use solve::{Problem, residual, residuals, slopes};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Every how many rows the alternate-rows check leaves one group out.
const FOLDS: usize = 2;
/// The most groups into which transfers of one's own are divided to be left out in turn. A fit for each of a hundred would
/// take a hundred times as long as the one that was asked for.
const GROUPS: usize = 10;

/// A measured rate above this multiple of the theoretical one is a mistake; below it, its own error may be the reason.
const ABOVE_THEORY: f64 = 1.05;

/// Told before each of so many parts of the work, from 1, with what it is.
pub type Told<'a> = &'a mut dyn FnMut(usize, usize, &str);

/// Why there is no fit. Both are faults of the measurements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FitError {
    /// No measurements.
    NoData,
    /// The model says nothing on a measured cell.
    NoPrediction {
        /// The line of the measurement.
        line: usize,
        /// Its table.
        table: String,
        /// Its row.
        row: String,
        /// Its column.
        column: usize,
    },
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoData => f.write_str("expected at least one measurement"),
            Self::NoPrediction { line, table, row, .. } if table == TRANSFER => {
                write!(f, "line {line}: the chip has no prediction for {row:?}")
            }
            Self::NoPrediction { line, table, row, column } => write!(
                f,
                "line {line}: the chip has no prediction for table {table}, row {row:?}, column {column}"
            ),
        }
    }
}

impl std::error::Error for FitError {}

/// One parameter after the fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Where it stands in the chip file.
    pub name: String,
    /// Its unit, with the clock domain.
    pub unit: String,
    /// Its value before.
    pub before: f64,
    /// Its value now; as before where the data does not see it.
    pub value: f64,
    /// The lower end of its 90 % confidence interval; the least that is possible where the data does not decide.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether the data decides on it.
    pub identified: Identified,
}

/// What a fit found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Every free parameter.
    pub estimates: Vec<Estimate>,
    /// How many measurements.
    pub measurements: usize,
    /// The mean of the relative errors before, 0.01 for 1 %.
    pub mean_error_before: f64,
    /// The same after.
    pub mean_error: f64,
    /// The largest relative error after.
    pub worst_error: f64,
    /// The mean error on rows that the fit had not seen: alternate rows left out. None where nothing can be tested.
    pub alternate_rows_error: Option<f64>,
    /// How many measurements the alternate rows leave untested, because only the rows left out see some parameter.
    pub alternate_rows_untested: usize,
    /// The mean error on tables that the fit had not seen, each left out in turn. None where nothing can be tested.
    pub left_out_table_error: Option<f64>,
    /// How many measurements this leaves untested, because only their own table sees some parameter that they depend on.
    pub left_out_table_untested: usize,
    /// What the data can tell.
    pub identifiability: Identifiability,
}

/// A calibrated model.
#[derive(Debug, Clone)]
pub struct Fitted<M> {
    /// The model with the parameters found.
    pub model: M,
    /// What was found.
    pub report: Report,
    free: Vec<FreeParameter>,
    values: Vec<f64>,
    covariance: DMatrix<f64>,
    /// The standard deviation of a relative residual.
    deviation: f64,
    /// Student's t for 90 % and the degrees of freedom.
    quantile: f64,
}

/// Calibrates `model` from `data`.
///
/// # Errors
/// No data, or a measured cell on which the model says nothing.
pub fn fit<M: Calibrate>(model: &M, data: &[Measurement]) -> Result<Fitted<M>, FitError> {
    fit_told(model, data, &mut |_, _, _| ())
}

/// As [`fit`], and tells how far it is.
///
/// # Errors
/// As [`fit`].
pub fn fit_told<M: Calibrate>(
    model: &M,
    data: &[Measurement],
    told: Told<'_>,
) -> Result<Fitted<M>, FitError> {
    asked(model, data)?;
    let free = model.free();
    let before: Vec<f64> = free.iter().map(|one| one.value).collect();
    let (row_keys, table_keys) = (row_keys(data), table_keys(data));
    let parts = 1 + folds(&row_keys) + folds(&table_keys);
    let mut part = 0;
    let mut tell = |what: &str| {
        part += 1;
        told(part, parts, what);
    };
    tell("all measurements");
    let values = calibrated(model, data, &free);
    let analysis = analysis(model, data, &free, &values);
    let weighted = residuals(model, data, &values).unwrap_or_default();
    let freedom = data.len().saturating_sub(analysis.report.rank).max(1) as f64;
    let deviation = (weighted.iter().map(|one| one * one).sum::<f64>() / freedom).sqrt();
    let quantile = student(freedom);
    let estimates = free
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let half = quantile * deviation * analysis.covariance[(at, at)].max(0.0).sqrt();
            let open = analysis.state[at] != Identified::Yes;
            Estimate {
                name: one.name.clone(),
                unit: one.unit.clone(),
                before: one.value,
                value: values[at],
                low: if open { one.min } else { (values[at] - half).max(one.min) },
                high: if open { one.max } else { (values[at] + half).min(one.max) },
                identified: analysis.state[at],
            }
        })
        .collect();
    let errors = relative_errors(model, data, &values);
    let rows = cross_validated(model, data, &free, &row_keys, &mut || tell("without every other row"));
    let tables = cross_validated(model, data, &free, &table_keys, &mut || tell("without a table"));
    let report = Report {
        estimates,
        measurements: data.len(),
        mean_error_before: mean(&relative_errors(model, data, &before)),
        mean_error: mean(&errors),
        worst_error: errors.iter().copied().fold(0.0, f64::max),
        alternate_rows_error: rows.mean_error,
        alternate_rows_untested: rows.untested,
        left_out_table_error: tables.mean_error,
        left_out_table_untested: tables.untested,
        identifiability: analysis.report,
    };
    let model = model.with_free(&values);
    Ok(Fitted { model, report, free, values, covariance: analysis.covariance, deviation, quantile })
}

/// The model with the parameters that come closest to `data`, without what [`fit`] says of them. Parameters that the data does
/// not see stay.
///
/// # Errors
/// As [`fit`].
pub fn calibrate<M: Calibrate>(model: &M, data: &[Measurement]) -> Result<M, FitError> {
    asked(model, data)?;
    Ok(model.with_free(&calibrated(model, data, &model.free())))
}

/// Refuses measurements that the model says nothing on.
fn asked<M: Calibrate>(model: &M, data: &[Measurement]) -> Result<(), FitError> {
    if data.is_empty() {
        return Err(FitError::NoData);
    }
    for one in data {
        if model.cell(&one.table, &one.row, one.column).is_none() {
            let (table, row) = (one.table.clone(), one.row.clone());
            return Err(FitError::NoPrediction { line: one.line, table, row, column: one.column });
        }
    }
    Ok(())
}

/// How close to the end of its range a parameter is at it, as a share of the range: the search comes near, never there.
const AT_END: f64 = 0.02;

impl<M: Calibrate> Fitted<M> {
    /// Parameters that the data pushed to the end of what makes sense: not the model, or not the data, is right. That something
    /// takes no time at all is no such end.
    pub fn at_the_end(&self) -> Vec<&FreeParameter> {
        let is_there = |one: &FreeParameter, value: f64| {
            let near = (one.max - one.min) * AT_END;
            let moved = (value - one.value).abs() > near;
            moved && (value >= one.max - near || one.min > 0.0 && value <= one.min + near)
        };
        self.free
            .iter()
            .zip(&self.values)
            .filter(|(one, value)| is_there(one, **value))
            .map(|(one, _)| one)
            .collect()
    }

    /// Whether a measurement is above what widths and clocks alone allow of a rate, with the most that they allow.
    pub fn above_theory(&self, one: &Measurement) -> Option<f64> {
        let cell = self.model.cell(&one.table, &one.row, one.column)?;
        let is_rate =
            matches!(cell.unit, Unit::MegabytesPerSecond | Unit::MegabitsPerSecond | Unit::GigabitsPerSecond);
        (is_rate && one.value > cell.theoretical * ABOVE_THEORY).then_some(cell.theoretical)
    }

    /// The prediction for a cell, with an interval from what the data told: the scatter of the residuals, the uncertainty of
    /// the parameters, and the whole range of those that it does not decide on.
    pub fn predict(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        let mut prediction = self.model.cell(table, row, column)?;
        let center = prediction.predicted;
        let at = |values: &[f64]| Some(self.model.with_free(values).cell(table, row, column)?.predicted);
        let mut slope = vec![0.0; self.free.len()];
        let (mut low, mut high) = (center, center);
        for (index, parameter) in self.free.iter().enumerate() {
            let estimate = self.report.estimates.get(index)?;
            let mut moved = self.values.clone();
            if estimate.identified == Identified::Yes {
                let step = 1e-5 * self.values[index].abs().max((parameter.max - parameter.min) * 0.1);
                moved[index] = (self.values[index] + step).min(parameter.max);
                let above = at(&moved)?;
                let top = moved[index];
                moved[index] = (self.values[index] - step).max(parameter.min);
                let width = top - moved[index];
                slope[index] = if width > 0.0 { (above - at(&moved)?) / width } else { 0.0 };
            } else {
                // What stays open adds up: each may be at the end of its range that hurts most.
                let ends = [parameter.min, parameter.max].map(|end| {
                    moved[index] = end;
                    at(&moved)
                });
                let (least, most) = (ends[0]?.min(ends[1]?), ends[0]?.max(ends[1]?));
                low += (least - center).min(0.0);
                high += (most - center).max(0.0);
            }
        }
        let mut variance = 0.0;
        for (i, a) in slope.iter().enumerate() {
            for (j, b) in slope.iter().enumerate() {
                variance += a * b * self.covariance[(i, j)];
            }
        }
        let half = self.quantile * self.deviation * (variance.max(0.0) + center * center).sqrt();
        prediction.low = (low - half).max(0.0);
        prediction.high = high + half;
        // No rate is above what width and clock allow; of a latency there is no such bound.
        if prediction.theoretical > 0.0 {
            prediction.high = prediction.high.min(prediction.theoretical.max(center));
        }
        Some(prediction)
    }
}

/// The best values; parameters that the data does not see stay.
pub(crate) fn calibrated<M: Calibrate>(model: &M, data: &[Measurement], free: &[FreeParameter]) -> Vec<f64> {
    let mut values: Vec<f64> = free.iter().map(|one| one.value).collect();
    // A parameter may come into sight once others have moved; three rounds are enough for nested limits.
    for _ in 0..3 {
        let analysis = analysis(model, data, free, &values);
        let active: Vec<usize> = (0..free.len()).filter(|&at| analysis.seen[at]).collect();
        let rows = active.iter().map(|&at| analysis.rows[at].clone()).collect();
        let set = model.setter();
        let ask = |values: &[f64], rows: Option<&[usize]>| -> Option<Vec<f64>> {
            let model = set(values);
            match rows {
                Some(rows) => rows.iter().map(|&row| residual(&model, data.get(row)?)).collect(),
                None => data.iter().map(|one| residual(&model, one)).collect(),
            }
        };
        let next = Problem::new(&ask, free, &active, rows, values.clone()).solve();
        let cost = |values: &[f64]| {
            residuals(model, data, values).map_or(f64::INFINITY, |all| all.iter().map(|one| one * one).sum())
        };
        let (old, new): (f64, f64) = (cost(&values), cost(&next));
        if new < old {
            values = next;
        }
        if new >= old * 0.999 {
            break;
        }
    }
    values
}

fn analysis<M: Calibrate>(
    model: &M,
    data: &[Measurement],
    free: &[FreeParameter],
    values: &[f64],
) -> Analysis {
    let mut jacobian = DMatrix::zeros(data.len(), free.len());
    for at in 0..free.len() {
        for (row, slope) in slopes(model, data, free, values, at).unwrap_or_default().into_iter().enumerate()
        {
            jacobian[(row, at)] = slope;
        }
    }
    let names: Vec<String> = free.iter().map(|one| one.name.clone()).collect();
    let ranges: Vec<f64> = free.iter().map(|one| one.max - one.min).collect();
    identify::analyse(&jacobian, &names, &ranges)
}

fn relative_errors<M: Calibrate>(model: &M, data: &[Measurement], values: &[f64]) -> Vec<f64> {
    let model = model.with_free(values);
    data.iter()
        .filter_map(|one| Some((model.figure(&one.table, &one.row, one.column)? / one.value - 1.0).abs()))
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// What data says that the fit had not seen.
struct Unseen {
    mean_error: Option<f64>,
    untested: usize,
}

/// Which rows are left out together: every other one.
fn row_keys(data: &[Measurement]) -> Vec<usize> {
    let mut position: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    data.iter()
        .map(|one| {
            let next = position.len();
            *position.entry((one.table.as_str(), one.row.as_str())).or_insert(next) % FOLDS
        })
        .collect()
}

/// Which measurements are left out together: those of a table. A transfer is a table of its own, as long as there are not too
/// many; then every tenth is one.
fn table_keys(data: &[Measurement]) -> Vec<usize> {
    let (mut tables, mut transfers) = (BTreeMap::new(), BTreeMap::new());
    data.iter()
        .map(|one| {
            if one.table == TRANSFER {
                let next = transfers.len();
                return *transfers.entry(one.row.as_str()).or_insert(next) % GROUPS;
            }
            let next = GROUPS + tables.len();
            *tables.entry(one.table.as_str()).or_insert(next)
        })
        .collect()
}

/// How many fits [`cross_validated`] makes.
fn folds(keys: &[usize]) -> usize {
    let different = keys.iter().collect::<BTreeSet<_>>().len();
    if different < 2 { 0 } else { different }
}

/// The mean error on the measurements of each key in turn, when the fit is made from all others.
///
/// A measurement that depends on a parameter which the others do not see is no test: the parameter would keep the value of
/// the chip file, which may come from this very measurement. Such ones are counted and left out.
fn cross_validated<M: Calibrate>(
    model: &M,
    data: &[Measurement],
    free: &[FreeParameter],
    keys: &[usize],
    tell: &mut dyn FnMut(),
) -> Unseen {
    if folds(keys) < 2 {
        return Unseen { mean_error: None, untested: data.len() };
    }
    let mut errors = Vec::new();
    for left_out in keys.iter().collect::<BTreeSet<_>>() {
        tell();
        let of = |out: bool| {
            let chosen = data.iter().zip(keys).filter(move |(_, key)| (*key == left_out) == out);
            chosen.map(|(one, _)| one.clone()).collect::<Vec<Measurement>>()
        };
        let (others, kept) = (of(true), of(false));
        let values = calibrated(model, &kept, free);
        let seen = analysis(model, &kept, free, &values).seen;
        let mut tested = vec![true; others.len()];
        for at in (0..free.len()).filter(|&at| !seen[at]) {
            let slopes = slopes(model, &others, free, &values, at).unwrap_or_default();
            for (tested, slope) in tested.iter_mut().zip(slopes) {
                *tested &= slope == 0.0;
            }
        }
        let others: Vec<Measurement> =
            others.into_iter().zip(tested).filter_map(|(one, tested)| tested.then_some(one)).collect();
        errors.extend(relative_errors(model, &others, &values));
    }
    let mean_error = (!errors.is_empty()).then(|| mean(&errors));
    Unseen { mean_error, untested: data.len() - errors.len() }
}

/// Student's t for a two-sided interval of 90 %, by the expansion of Cornish and Fisher.
fn student(freedom: f64) -> f64 {
    let z = 1.644_854;
    let first = (z * z * z + z) / (4.0 * freedom);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom);
    z + first + second
}
