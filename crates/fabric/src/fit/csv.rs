//! Measurements from CSV text (RFC 4180), each with its line for messages.

use crate::ask::Transfer;
use crate::model::tables::TRANSFER;
use std::fmt;

/// More rows than this are refused.
pub const MAX_ROWS: usize = 1_000_000;
/// The columns, in this order; the last one may be left out.
pub const HEADER: &str = "table,row,column,value,error_percent";

/// The columns of measured transfers.
pub const TRANSFERS: &str = "transfer,value,error_percent";

/// One measured cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The table that it belongs to: "17".
    pub table: String,
    /// The row's first cell: "512".
    pub row: String,
    /// The column after the first cell, from 1.
    pub column: usize,
    /// The value, in the unit of the table; above 0.
    pub value: f64,
    /// How far it may be off, as a share of it; all alike where none is given.
    pub error: Option<f64>,
    /// The line of the file, from 1.
    pub line: usize,
}

/// What is wrong with a file of measurements. All are faults of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsvFault {
    /// The first line is not the header.
    Header(String),
    /// There is nothing behind the header.
    Empty,
    /// More than [`MAX_ROWS`].
    TooLong,
    /// A quoted field that does not end, or text behind its end.
    Quote,
    /// Too few or too many fields.
    Fields(usize),
    /// A table or row without name.
    Name,
    /// Not a column number of 1 or more.
    Column(String),
    /// Not a number above 0.
    Value(String),
    /// Not a percentage above 0 and up to 1000.
    Error(String),
    /// The same cell as on an earlier line.
    Twice(usize),
    /// No transfer; what was expected.
    Transfer(String),
}

/// Why measurements were not read, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub fault: CsvFault,
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.fault {
            CsvFault::Header(found) => {
                write!(
                    f,
                    "{found:?}; expected the header {HEADER:?} or {TRANSFERS:?}, the last field optional"
                )
            }
            CsvFault::Empty => f.write_str("expected measurements below the header"),
            CsvFault::TooLong => write!(f, "expected at most {MAX_ROWS} measurements"),
            CsvFault::Quote => {
                f.write_str("expected a closing quote, and a comma or the end of the line behind it")
            }
            CsvFault::Fields(count) => {
                write!(f, "{count} fields; expected {HEADER:?}, the last one optional")
            }
            CsvFault::Transfer(what) => write!(f, "{what}; a transfer with a comma stands in quotes"),
            CsvFault::Name => f.write_str("expected the name of a table and of a row"),
            CsvFault::Column(text) => write!(f, "{text:?}; expected the number of a column, from 1"),
            CsvFault::Value(text) => write!(f, "{text:?}; expected a number above 0"),
            CsvFault::Error(text) => write!(f, "{text:?}; expected a percentage above 0 and up to 1000"),
            CsvFault::Twice(line) => write!(f, "the same cell as on line {line}; expected each cell once"),
        }
    }
}

impl std::error::Error for CsvError {}

/// Reads measurements: a header as [`HEADER`], then a line for each. Empty lines and lines that start with `#` are left out.
///
/// # Errors
/// The first mistake, with its line.
pub fn read(text: &str) -> Result<Vec<Measurement>, CsvError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (at, header) = lines.next().unwrap_or((0, ""));
    let fields: Vec<&str> = header.trim().trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
    let is = |header: &str| {
        let expected: Vec<&str> = header.split(',').collect();
        fields == expected || fields == expected[..expected.len() - 1]
    };
    let transfers = is(TRANSFERS);
    if !is(HEADER) && !transfers {
        return Err(CsvError { line: at + 1, fault: CsvFault::Header(header.trim().into()) });
    }
    let mut seen = std::collections::BTreeMap::new();
    let mut all = Vec::new();
    for (at, line) in lines {
        let error = |fault| CsvError { line: at + 1, fault };
        if all.len() == MAX_ROWS {
            return Err(error(CsvFault::TooLong));
        }
        let read = if transfers { transfer(line, at + 1) } else { measurement(line, at + 1) };
        let measurement = read.map_err(error)?;
        let cell = (measurement.table.clone(), measurement.row.clone(), measurement.column);
        if let Some(earlier) = seen.insert(cell, at + 1) {
            return Err(error(CsvFault::Twice(earlier)));
        }
        all.push(measurement);
    }
    if all.is_empty() {
        return Err(CsvError { line: at + 1, fault: CsvFault::Empty });
    }
    Ok(all)
}

fn measurement(line: &str, number: usize) -> Result<Measurement, CsvFault> {
    let fields = split(line)?;
    let [table, row, column, value, rest @ ..] = fields.as_slice() else {
        return Err(CsvFault::Fields(fields.len()));
    };
    let error = match rest {
        [] => None,
        [percent] if percent.is_empty() => None,
        [percent] => {
            let bad = || CsvFault::Error(percent.clone());
            let share = percent.parse::<f64>().map_err(|_| bad())?;
            if !(share > 0.0 && share <= 1000.0) {
                return Err(bad());
            }
            Some(share / 100.0)
        }
        _ => return Err(CsvFault::Fields(fields.len())),
    };
    if table.is_empty() || row.is_empty() {
        return Err(CsvFault::Name);
    }
    let column_number = column.parse().ok().filter(|number| (1..=10_000).contains(number));
    let number_above_zero = value.parse().ok().filter(|value: &f64| *value > 0.0 && value.is_finite());
    Ok(Measurement {
        table: table.clone(),
        row: row.clone(),
        column: column_number.ok_or_else(|| CsvFault::Column(column.clone()))?,
        value: number_above_zero.ok_or_else(|| CsvFault::Value(value.clone()))?,
        error,
        line: number,
    })
}

/// A line with a transfer as text.
fn transfer(line: &str, number: usize) -> Result<Measurement, CsvFault> {
    let fields = split(line)?;
    let [text, rest @ ..] = fields.as_slice() else { return Err(CsvFault::Fields(fields.len())) };
    if !matches!(rest.len(), 1 | 2) {
        return Err(CsvFault::Fields(fields.len()));
    }
    let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
    let mut read = measurement(&format!("{TRANSFER},{},1,{}", quoted(text), rest.join(",")), number)?;
    read.row = canonical(text).map_err(CsvFault::Transfer)?;
    Ok(read)
}

/// A measured transfer as text: several at the same time with `" and "` between them.
///
/// # Errors
/// What is no transfer, and what was expected.
pub fn canonical(text: &str) -> Result<String, String> {
    let one = |part: &str| part.trim().parse::<Transfer>().map(|transfer| transfer.to_string());
    let all: Result<Vec<String>, _> = text.split(" and ").map(one).collect();
    all.map(|all| all.join(" and ")).map_err(|error| error.to_string())
}

/// The fields of one line; quotes as in RFC 4180, without line breaks inside.
fn split(line: &str) -> Result<Vec<String>, CsvFault> {
    let mut fields = Vec::new();
    let mut rest = line.trim();
    loop {
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => match rest.split_once(',') {
                Some((field, behind)) => (field.trim().to_owned(), Some(behind)),
                None => (rest.trim().to_owned(), None),
            },
        };
        fields.push(field);
        match behind {
            Some(behind) => rest = behind.trim_start(),
            None => return Ok(fields),
        }
    }
}

/// The field behind an opening quote, and what follows its comma.
fn quoted_field(text: &str) -> Result<(String, Option<&str>), CsvFault> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"').ok_or(CsvFault::Quote)?;
        field.push_str(part);
        if let Some(more) = behind.strip_prefix('"') {
            field.push('"');
            rest = more;
            continue;
        }
        let behind = behind.trim_start();
        return match behind.strip_prefix(',') {
            Some(more) => Ok((field, Some(more))),
            None if behind.is_empty() => Ok((field, None)),
            None => Err(CsvFault::Quote),
        };
    }
}
