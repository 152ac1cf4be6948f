//! Fits a model to some of the measurements: bounded least squares over relative errors.
//!
//! Levenberg's damping, one-sided differences, steps clamped to the bounds: small problems of a dozen parameters, solved
//! many times over by cross-validation, in the same order and with the same result each time.

use crate::predict::{Calibrate, TableModel};

/// One measurement: which cell, and what is printed there.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The table.
    pub table: String,
    /// The first cell of the row.
    pub row: String,
    /// The row from 0.
    pub row_index: usize,
    /// The column, from 1 after the first cell.
    pub column: usize,
    /// The printed number.
    pub value: f64,
}

/// Rounds of the search; it ends earlier when nothing improves.
const ROUNDS: usize = 25;
/// Differences are taken over this part of a parameter's range.
const STEP: f64 = 1e-5;

/// Predicted over measured, less one.
pub(super) fn error(model: &impl TableModel, cell: &Measurement) -> Option<f64> {
    Some(model.cell(&cell.table, &cell.row, cell.column)?.predicted / cell.value - 1.0)
}

fn residuals(model: &impl TableModel, cells: &[&Measurement]) -> Vec<f64> {
    cells.iter().map(|cell| error(model, cell).unwrap_or(0.0)).collect()
}

fn cost(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual * residual).sum()
}

/// The model with the free parameters that meet these cells best.
pub fn fit<M: Calibrate>(model: &M, cells: &[&Measurement]) -> M {
    let free = model.free();
    let range: Vec<f64> = free.iter().map(|p| p.max - p.min).collect();
    let mut at: Vec<f64> = free.iter().map(|p| p.value).collect();
    let mut now = residuals(&model.with_free(&at), cells);
    let mut damping = 1e-3;
    for _ in 0..ROUNDS {
        let (jacobian, gradient) = slopes(model, cells, &at, &range, &now);
        let mut improved = false;
        for _ in 0..8 {
            let mut normal = jacobian.clone();
            for (k, row) in normal.iter_mut().enumerate() {
                row[k] += damping * (row[k] + 1e-6);
            }
            let Some(step) = solve(normal, gradient.clone()) else { break };
            let next: Vec<f64> =
                (0..at.len()).map(|k| (at[k] - step[k] * range[k]).clamp(free[k].min, free[k].max)).collect();
            let found = residuals(&model.with_free(&next), cells);
            if cost(&found) < cost(&now) * (1.0 - 1e-9) {
                (at, now, improved) = (next, found, true);
                damping = (damping / 5.0f64).max(1e-9);
                break;
            }
            damping *= 5.0;
        }
        if !improved {
            break;
        }
    }
    model.with_free(&at)
}

/// The normal matrix and the gradient, in units of each parameter's range.
fn slopes<M: Calibrate>(
    model: &M,
    cells: &[&Measurement],
    at: &[f64],
    range: &[f64],
    now: &[f64],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let free = model.free();
    let columns: Vec<Vec<f64>> = (0..at.len())
        .map(|k| {
            // Away from the upper bound, where there is no further up.
            let sign = if at[k] + STEP * range[k] > free[k].max { -1.0 } else { 1.0 };
            let mut moved = at.to_vec();
            moved[k] += sign * STEP * range[k];
            let there = residuals(&model.with_free(&moved), cells);
            there.iter().zip(now).map(|(there, here)| sign * (there - here) / STEP).collect()
        })
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let normal = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
    (normal, columns.iter().map(|column| dot(column, now)).collect())
}

/// Solves a small linear system by elimination with pivots; `None` when it has no single solution.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-300 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row][column] / matrix[column][column];
            for k in column..size {
                matrix[row][k] -= factor * matrix[column][k];
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[row][k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}
