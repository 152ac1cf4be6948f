//! Columns and cells of a sweep's table.
//!
//! Rows travel and are kept as lines of CSV: a number is written so that reading it gives the same number, so nothing changes on
//! the way.

use serde::{Deserialize, Serialize};

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Numbers from 0.
    Integer,
    /// Numbers.
    Number,
    /// `true` or `false`.
    Bool,
    /// Text.
    Text,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name, with the unit last.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, kind: Kind) -> Column {
        Column { name: name.into(), kind }
    }
}

/// A cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Nothing is known.
    Empty,
    /// See [`Kind::Integer`].
    Integer(u64),
    /// See [`Kind::Number`].
    Number(f64),
    /// See [`Kind::Bool`].
    Bool(bool),
    /// See [`Kind::Text`].
    Text(String),
}

impl Cell {
    /// As it stands in CSV, before quoting.
    pub fn written(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Integer(number) => number.to_string(),
            // Rust writes the shortest text that reads as the same number.
            Cell::Number(number) if number.is_finite() => number.to_string(),
            Cell::Number(_) => String::new(),
            Cell::Bool(is) => is.to_string(),
            Cell::Text(text) => text.clone(),
        }
    }

    /// The cell of a column that is written so; what does not fit is empty.
    pub fn read(kind: Kind, text: &str) -> Cell {
        if text.is_empty() {
            return Cell::Empty;
        }
        match kind {
            Kind::Integer => text.parse().map_or(Cell::Empty, Cell::Integer),
            Kind::Number => text.parse().map_or(Cell::Empty, Cell::Number),
            Kind::Bool => text.parse().map_or(Cell::Empty, Cell::Bool),
            Kind::Text => Cell::Text(text.to_owned()),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Integer(number) => Some(*number as f64),
            Cell::Number(number) => Some(*number),
            Cell::Bool(is) => Some(f64::from(u8::from(*is))),
            Cell::Empty | Cell::Text(_) => None,
        }
    }
}

/// A line of CSV, with its line end.
pub fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // Memory takes all, and text is UTF-8.
    let _ = writer.write_record(cells);
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// A row as a line of CSV.
pub fn row(cells: &[Cell]) -> String {
    let written: Vec<String> = cells.iter().map(Cell::written).collect();
    line(written.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_row_survives_the_way_there_and_back(number in any::<f64>(), integer in any::<u64>(), text in "\\PC*") {
            let cells = [Cell::Number(number), Cell::Integer(integer), Cell::Bool(true), Cell::Text(text), Cell::Empty];
            let kinds = [Kind::Number, Kind::Integer, Kind::Bool, Kind::Text, Kind::Number];
            let line = row(&cells);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().unwrap().unwrap();
            for ((text, kind), cell) in record.iter().zip(kinds).zip(&cells) {
                let expected = match cell {
                    Cell::Number(number) if !number.is_finite() => &Cell::Empty,
                    Cell::Text(text) if text.is_empty() => &Cell::Empty,
                    cell => cell,
                };
                prop_assert_eq!(&Cell::read(kind, text), expected);
            }
        }
    }
}
