//! The table of a sweep: its rows in the order of items, as CSV and as columns.

use super::cell::{Cell, Column};
use super::journal::Rows;
use super::plan::Plan;

/// Cells by column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What the columns are.
    pub columns: Vec<Column>,
    /// Their cells, from the first row to the last.
    pub cells: Vec<Vec<Cell>>,
}

/// The table as CSV: whatever order the rows came in, the same.
pub fn csv(plan: &Plan, rows: &Rows) -> String {
    let mut text = plan.header();
    rows.values().for_each(|row| text.push_str(row));
    text
}

impl Table {
    /// The table of rows.
    pub fn new(plan: &Plan, rows: &Rows) -> Table {
        let columns = plan.columns.clone();
        let mut cells: Vec<Vec<Cell>> = columns.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows.values() {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(row.as_bytes());
            let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
            for (index, (column, cells)) in columns.iter().zip(&mut cells).enumerate() {
                cells.push(Cell::read(column.kind, record.get(index).unwrap_or("")));
            }
        }
        Table { columns, cells }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cells of the column of this name; none if there is no such column.
    pub fn column(&self, name: &str) -> &[Cell] {
        let place = self.columns.iter().position(|column| column.name == name);
        place.and_then(|place| self.cells.get(place)).map_or(&[], Vec::as_slice)
    }
}
