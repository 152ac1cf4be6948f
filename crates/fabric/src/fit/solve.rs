//! Bounded least squares: the parameters between their bounds that come closest to the measurements.
//!
//! The solver knows no bounds, so it works on `x` with `p = min + (max - min) / (1 + exp(-x))`: any `x` gives a `p` that is
//! allowed. Residuals are relative, `predicted / measured - 1`, over the error of the measurement. A weak pull to the
//! starting point keeps directions that the data leaves open where they were.

use super::csv::Measurement;
use crate::predict::{Calibrate, FreeParameter};
use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};

/// The weight of the pull to the start.
const PULL: f64 = 1e-5;
/// How close to a bound a start may be, as a share of the range; at the bound itself nothing moves.
const MARGIN: f64 = 1e-3;
/// How often the solver asks for the residuals of all measurements at most, for each parameter, and altogether. Where limits
/// take turns the residuals have kinks, at which the last steps gain nothing that anyone would see.
const PATIENCE: usize = 100;
const EVALUATIONS: usize = 300;
/// A relative gain below this ends the search.
const TOLERANCE: f64 = 1e-9;
/// Steps of the numeric derivatives, as a share of the value.
const STEP: f64 = 1e-5;

/// The residuals at these values: of the measurements with these numbers, or of all.
pub(super) type Residuals<'a> = &'a dyn Fn(&[f64], Option<&[usize]>) -> Option<Vec<f64>>;

/// What is asked of a model, and which of its parameters may move. It knows no model: the solver is compiled once for all.
pub(super) struct Problem<'a> {
    residuals: Residuals<'a>,
    free: &'a [FreeParameter],
    /// Positions in `free` of the parameters that move.
    active: &'a [usize],
    /// The rows that each of them moves; the others need not be asked.
    rows: Vec<Vec<usize>>,
    values: Vec<f64>,
    x: DVector<f64>,
    start: DVector<f64>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(
        residuals: Residuals<'a>,
        free: &'a [FreeParameter],
        active: &'a [usize],
        rows: Vec<Vec<usize>>,
        values: Vec<f64>,
    ) -> Self {
        let x =
            DVector::from_iterator(active.len(), active.iter().map(|&at| unbounded(&free[at], values[at])));
        Self { residuals, free, active, rows, values, start: x.clone(), x }
    }

    /// The parameters that come closest, in the order of `free`.
    pub(super) fn solve(self) -> Vec<f64> {
        if self.active.is_empty() {
            return self.values;
        }
        let patience = (EVALUATIONS / (self.active.len() + 1)).clamp(1, PATIENCE);
        let (solved, _) =
            LevenbergMarquardt::new().with_tol(TOLERANCE).with_patience(patience).minimize(self);
        solved.at(&solved.x)
    }

    fn at(&self, x: &DVector<f64>) -> Vec<f64> {
        let mut values = self.values.clone();
        for (&at, &x) in self.active.iter().zip(x.iter()) {
            values[at] = bounded(&self.free[at], x);
        }
        values
    }

    /// How the residuals of the rows that parameter `at` moves change with it, to one side; `here` are those of all rows.
    fn slopes(&self, here: &[f64], rows: &[usize], values: &[f64], at: usize) -> Option<Vec<f64>> {
        let parameter = &self.free[at];
        let step = STEP * values[at].abs().max((parameter.max - parameter.min) * 0.1);
        let mut moved = values.to_vec();
        // Away from the bound that is closer.
        let up = values[at] + step <= parameter.max;
        moved[at] = if up { values[at] + step } else { values[at] - step };
        let width = moved[at] - values[at];
        let there = (self.residuals)(&moved, Some(rows))?;
        rows.iter().zip(there).map(|(&row, there)| Some((there - here.get(row)?) / width)).collect()
    }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Problem<'_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, x: &DVector<f64>) {
        self.x.copy_from(x);
    }

    fn params(&self) -> DVector<f64> {
        self.x.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let fit = (self.residuals)(&self.at(&self.x), None)?;
        let pull = (&self.x - &self.start) * PULL;
        Some(DVector::from_iterator(fit.len() + pull.len(), fit.into_iter().chain(pull.iter().copied())))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let values = self.at(&self.x);
        let here = (self.residuals)(&values, None)?;
        let rows = here.len();
        let mut jacobian = DMatrix::zeros(rows + self.active.len(), self.active.len());
        for (column, (&at, own)) in self.active.iter().zip(&self.rows).enumerate() {
            let slope = self.slopes(&here, own, &values, at)?;
            let range = self.free[at].max - self.free[at].min;
            let share = (values[at] - self.free[at].min) / range;
            let chain = range * share * (1.0 - share);
            for (&row, slope) in own.iter().zip(slope) {
                jacobian[(row, column)] = slope * chain;
            }
            jacobian[(rows + column, column)] = PULL;
        }
        Some(jacobian)
    }
}

/// `predicted / measured - 1` over the error, of every measurement; `None` where the model has no prediction.
pub(super) fn residuals<M: Calibrate>(model: &M, data: &[Measurement], values: &[f64]) -> Option<Vec<f64>> {
    let model = model.with_free(values);
    data.iter().map(|one| residual(&model, one)).collect()
}

pub(super) fn residual<M: Calibrate>(model: &M, one: &Measurement) -> Option<f64> {
    let predicted = model.figure(&one.table, &one.row, one.column)?;
    let residual = (predicted / one.value - 1.0) / one.error.unwrap_or(1.0);
    residual.is_finite().then_some(residual)
}

/// How the residuals change with parameter `at`, per unit of the parameter.
pub(super) fn slopes<M: Calibrate>(
    model: &M,
    data: &[Measurement],
    free: &[FreeParameter],
    values: &[f64],
    at: usize,
) -> Option<Vec<f64>> {
    let parameter = &free[at];
    let step = STEP * values[at].abs().max((parameter.max - parameter.min) * 0.1);
    let (mut above, mut below) = (values.to_vec(), values.to_vec());
    above[at] = (values[at] + step).min(parameter.max);
    below[at] = (values[at] - step).max(parameter.min);
    let width = above[at] - below[at];
    if width <= 0.0 {
        return Some(vec![0.0; data.len()]);
    }
    let (above, below) = (residuals(model, data, &above)?, residuals(model, data, &below)?);
    Some(above.iter().zip(&below).map(|(above, below)| (above - below) / width).collect())
}

/// From a parameter between its bounds to a number without any.
fn unbounded(parameter: &FreeParameter, value: f64) -> f64 {
    let share = (value - parameter.min) / (parameter.max - parameter.min);
    let share = if share.is_finite() { share.clamp(MARGIN, 1.0 - MARGIN) } else { 0.5 };
    (share / (1.0 - share)).ln()
}

/// And back.
fn bounded(parameter: &FreeParameter, x: f64) -> f64 {
    parameter.min + (parameter.max - parameter.min) / (1.0 + (-x).exp())
}
