//! The file of predictions for the cells that a guide's transcription keeps back.

use crate::guide::{Cell, Guide};
use crate::predict::{TableModel, Unit};
use std::fmt::Write;

/// The first line of the file.
pub const HEADER: &str = "table,row,column,predicted,low,high";

/// A withheld cell that has no prediction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The table.
    pub table: String,
    /// The first cell of the row.
    pub row: String,
    /// The column, from 1 after the first cell.
    pub column: usize,
}

/// The lines for all withheld cells, and the cells that the model says nothing on.
///
/// Percentages are left out: they are quotients of other cells.
pub fn csv(model: &impl TableModel, guide: &Guide) -> (String, Vec<Missing>) {
    let mut text = format!("{HEADER}\n");
    let mut missing = Vec::new();
    for table in &guide.tables {
        for (row, column, cell) in table.cells() {
            let Some(of) = table.rows.get(row).filter(|_| *cell == Cell::Withheld) else { continue };
            let column = column + 1;
            match model.cell(&table.id, &of.name, column) {
                Some(prediction) if prediction.unit == Unit::Percent => {}
                Some(p) => {
                    let name = quoted(&of.name);
                    let figures = format!("{:.2},{:.2},{:.2}", p.predicted, p.low, p.high);
                    let _ = writeln!(text, "{},{name},{column},{figures}", table.id);
                }
                None => missing.push(Missing { table: table.id.clone(), row: of.name.clone(), column }),
            }
        }
    }
    (text, missing)
}

/// A field of the file, in quotes where it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}
