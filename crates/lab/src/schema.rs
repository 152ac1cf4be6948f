//! One form for every figure, wherever it comes from: predicted, measured or published.
//!
//! A figure is told apart by board, workload, tuning and its name; with the same four, figures of different origin lie side by
//! side in a table. As CSV: `board,workload,tuning,figure,unit,value,origin,source`, with a header line.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a figure comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A model said so before it was measured.
    Predicted,
    /// It was measured here.
    Measured,
    /// A document prints it.
    Published,
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What ran: `k2h`, `stm32h7`, `zcu102`, `softcore`, `simulator`, `linux-tap`, ...
    pub board: String,
    /// What it did: `ftp-tx`, `iperf3-rx`, `http-354`, ...
    pub workload: String,
    /// What was set: the rung of a ladder, an offload, a level; empty for the default.
    pub tuning: String,
    /// What was counted: `throughput`, `cpu-load`, `rtt`, `requests`, ...
    pub figure: String,
    /// Its unit: `MB/s`, `Mbit/s`, `%`, `us`, `cycles`, ...
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Where it comes from.
    pub origin: Origin,
    /// Published: place in the document. Predicted: the arithmetic. Measured: how.
    pub source: String,
}

/// What tells figures apart, whatever their origin.
pub type Key = [String; 5];

impl Record {
    /// Board, workload, tuning, figure and unit.
    pub fn key(&self) -> Key {
        [&self.board, &self.workload, &self.tuning, &self.figure, &self.unit].map(Clone::clone)
    }
}

/// A table that cannot be read.
#[derive(Debug)]
pub struct SchemaError {
    /// Which table.
    table: String,
    /// Where and what.
    why: csv::Error,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; expected board,workload,tuning,figure,unit,value,origin,source with origin predicted, measured or \
             published",
            self.table, self.why
        )
    }
}

impl std::error::Error for SchemaError {}

/// Reads a table; `name` is for errors.
pub fn read(name: &str, text: &str) -> Result<Vec<Record>, SchemaError> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|why| SchemaError { table: name.to_owned(), why })
}

/// The table as CSV.
pub fn write(records: &[Record]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        // Memory takes all, and every record has the same flat fields.
        writer.serialize(record).expect("a flat record is a line of CSV");
    }
    String::from_utf8(writer.into_inner().expect("memory takes all")).expect("all fields are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_survives_the_way_there_and_back() {
        let record = Record {
            board: "k2h".into(),
            workload: "ftp-tx".into(),
            tuning: "8 KiB buffers, \"no\" yield".into(),
            figure: "throughput".into(),
            unit: "MB/s".into(),
            value: 17.5,
            origin: Origin::Published,
            source: "seed 000, section 4.2".into(),
        };
        let text = write(std::slice::from_ref(&record));
        assert_eq!(read("t", &text).unwrap(), [record]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let text = "board,workload,tuning,figure,unit,value,origin,source\na,b,c,d,e,x,measured,s\n";
        let error = read("t.csv", text).unwrap_err().to_string();
        assert!(error.starts_with("t.csv: ") && error.contains("line: 2"), "{error}");
    }
}
