//! A published table with its headings, roles, conditions and footnotes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::Cell;

/// What the numbers of a row or column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Measured on silicon: has noise, can be a mistake.
    Measured,
    /// Computed from widths, clocks and protocol overheads.
    Theoretical,
    /// Follows from other cells of the guide, by a quotient or a product.
    Derived,
    /// Chosen by whoever ran the test: a packet size, an overhead per packet.
    Parameter,
    /// Words or marks.
    Label,
}

/// One column after the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// The headings above it from the top: a group first, the column's own last.
    pub heading: Vec<String>,
    /// The unit printed in its heading.
    pub unit: Option<String>,
    /// What its cells are, unless the row says otherwise.
    pub role: Role,
    /// What sets it apart from its neighbours, in words that a machine can compare: `lanes = "4"`, `memory = "L2"`.
    pub tags: BTreeMap<String, String>,
}

impl Column {
    /// The headings joined: `4x Lanes / L2 Memory ...`.
    pub fn name(&self) -> String {
        self.heading.join(" / ")
    }
}

/// One row: its first cell, and the cells after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The first cell as printed: the name of the row.
    pub name: String,
    /// The cells after it; as many as the table has columns.
    pub cells: Vec<Cell>,
    /// What its cells are, where that is the row's to say.
    pub role: Option<Role>,
    /// The unit printed in its name.
    pub unit: Option<String>,
    /// The line across the table under which it stands.
    pub group: Option<String>,
    /// The line of the transcription, from 1.
    pub line: usize,
}

/// A footnote: its mark, and what it says in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Footnote {
    /// The mark, as in `1`.
    pub mark: String,
    /// What it says.
    pub text: String,
}

/// What a symbol in the cells stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Legend {
    /// The symbol.
    pub symbol: String,
    /// Its meaning as printed.
    pub meaning: String,
}

/// A row or column that follows from others of the same table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// The row or column that follows, by its name.
    pub target: String,
    /// How: an expression over the names in `given`.
    pub expression: String,
    /// The names in the expression, each with the row or column that it stands for.
    pub given: BTreeMap<String, String>,
}

/// One table as printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The number printed before the caption, or a name for a table without one: `10gbe`.
    pub id: String,
    /// The caption at the table, marks included; empty for a table without one.
    pub caption: String,
    /// The section in which it stands.
    pub section: String,
    /// The unit of its numbers, where neither row nor column has one.
    pub unit: Option<String>,
    /// The heading of the first column.
    pub corner: String,
    /// The columns after the first.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Footnotes under the table.
    pub footnotes: Vec<Footnote>,
    /// What the symbols in its cells stand for.
    pub legend: Vec<Legend>,
    /// Test conditions: clocks, transfer geometry, memory, lanes, line rate.
    pub conditions: BTreeMap<String, String>,
    /// Rows and columns that follow from others.
    pub derived: Vec<Derived>,
    /// The table whose cells are the whole of the percentages in parentheses here.
    pub share_of: Option<String>,
    /// What the cells of a row ask of a chip, by the first cell of the row: a transfer for each column, or nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub transfers: BTreeMap<String, Vec<String>>,
    /// The line of the transcription, from 1.
    pub line: usize,
}

impl Table {
    /// The row with this first cell.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The position from 0 of the column with this heading: its own, or all of them joined by ` / `.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name() == name || column.heading.last().is_some_and(|h| h == name))
    }

    /// What the cell in the named row asks of a chip, `column` counted from 1 after the first cell.
    pub fn transfer(&self, row: &str, column: usize) -> Option<&str> {
        let transfer = self.transfers.get(row)?.get(column.checked_sub(1)?)?;
        (!transfer.is_empty()).then_some(transfer.as_str())
    }

    /// The cell in the named row, `column` counted from 1 after the first cell.
    pub fn cell(&self, row: &str, column: usize) -> Option<&Cell> {
        self.row(row)?.cells.get(column.checked_sub(1)?)
    }

    /// What the cell in this row and column (from 0) is: the row's word counts before the column's.
    pub fn role(&self, row: usize, column: usize) -> Option<Role> {
        let row = self.rows.get(row)?;
        row.role.or_else(|| self.columns.get(column).map(|column| column.role))
    }

    /// The unit of the cell in this row and column (from 0): the row's, the column's, or the table's.
    pub fn unit(&self, row: usize, column: usize) -> Option<&str> {
        let of_row = self.rows.get(row).and_then(|row| row.unit.as_deref());
        of_row.or_else(|| self.columns.get(column)?.unit.as_deref()).or(self.unit.as_deref())
    }

    /// Every cell with its row and column from 0.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize, &Cell)> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(row, of)| of.cells.iter().enumerate().map(move |(column, cell)| (row, column, cell)))
    }

    /// How a reader names this table.
    pub fn label(&self) -> String {
        if self.id.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("Table {}", self.id)
        } else {
            format!("table `{}`", self.id)
        }
    }
}
