//! A table of text and numbers, and its four forms: terminal, Markdown, CSV and JSON.

use crate::measure::statistics::Spread;
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, Width, presets};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Blanks around a cell.
const PADDING: usize = 2;

/// Form in which a table is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum GridFormat {
    /// Aligned columns for people.
    #[default]
    Terminal,
    /// A GitHub-flavoured Markdown table.
    Markdown,
    /// Comma-separated values with a header line (RFC 4180).
    Csv,
    /// One JSON object with an array of row objects.
    Json,
}

/// One cell.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Nothing applies here.
    Empty,
    /// Words.
    Text(String),
    /// A number and how many decimals a person wants to see.
    Number {
        /// The value, in the unit that the header names.
        value: f64,
        /// Decimals shown in all forms but JSON.
        decimals: usize,
    },
    /// A median, and for a person's eyes the range of what it is the median of, where that shows with these decimals.
    Spread {
        /// The values, in the unit that the header names.
        spread: Spread,
        /// Decimals shown in all forms but JSON.
        decimals: usize,
    },
    /// A relative difference, 0.01 for one per cent.
    Percent(f64),
}

impl Cell {
    /// A number with four significant digits, or all whole ones.
    pub fn figure(value: f64) -> Cell {
        Cell::number(value, decimals(value))
    }

    /// The same of several rounds.
    pub fn figures(spread: Spread) -> Cell {
        Cell::Spread { spread, decimals: decimals(spread.median) }
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A number shown with `decimals` decimals; a value that is not finite is empty.
    pub fn number(value: f64, decimals: usize) -> Cell {
        if value.is_finite() { Cell::Number { value, decimals } } else { Cell::Empty }
    }

    /// What a person reads.
    pub fn shown(&self) -> String {
        match self {
            Cell::Empty => "-".to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Number { value, decimals } => format!("{value:.decimals$}"),
            Cell::Spread { spread: Spread { median, least, most }, decimals } => {
                let [median, least, most] = [median, least, most].map(|value| format!("{value:.decimals$}"));
                if least == most { median } else { format!("{median} ({least} to {most})") }
            }
            Cell::Percent(ratio) => percent(*ratio),
        }
    }

    /// What a program reads: no sign for "nothing", a per cent figure as a bare number.
    fn plain(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Percent(ratio) => format!("{:.2}", ratio * 100.0),
            Cell::Spread { spread, decimals } => format!("{:.decimals$}", spread.median),
            other => other.shown(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Empty => Value::Null,
            Cell::Text(text) => json!(text),
            Cell::Number { value, .. } => json!(value),
            Cell::Spread { spread, .. } => json!(spread.median),
            Cell::Percent(ratio) => json!(ratio * 100.0),
        }
    }

    /// Whether it lines up at the right.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Cell::Number { .. } | Cell::Spread { .. } | Cell::Percent(_))
    }
}

/// Decimals with which four digits are seen, or all whole ones.
fn decimals(value: f64) -> usize {
    match value.abs() {
        1000.0.. => 0,
        100.0..1000.0 => 1,
        10.0..100.0 => 2,
        _ => 3,
    }
}

/// A table with a title.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Grid {
    /// Name to refer to it by, such as `table-21`.
    pub id: String,
    /// Caption.
    pub title: String,
    /// One header a column, with the unit.
    pub headers: Vec<String>,
    /// Rows; a short row is filled up with empty cells.
    pub rows: Vec<Vec<Cell>>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

impl Grid {
    /// An empty table with headers.
    pub fn new(id: impl Into<String>, title: impl Into<String>, headers: &[&str]) -> Grid {
        Grid {
            id: id.into(),
            title: title.into(),
            headers: headers.iter().map(|&header| header.to_owned()).collect(),
            ..Grid::default()
        }
    }

    /// The table in a form, ending with a line feed. Where it is wider than `width` columns of the terminal, its cells are broken into
    /// lines between words, and where that is not enough, rows stand below each other, a line for each cell.
    pub fn render(&self, format: GridFormat, width: Option<u16>) -> String {
        match format {
            GridFormat::Terminal => self.terminal(width),
            GridFormat::Markdown => self.markdown(),
            GridFormat::Csv => self.csv(),
            GridFormat::Json => {
                let mut text = serde_json::to_string_pretty(&self.json()).unwrap_or_default();
                text.push('\n');
                text
            }
        }
    }

    /// Whether all that is said in a column is numbers.
    pub fn is_numeric(&self, column: usize) -> bool {
        let said = |row: &Vec<Cell>| row.get(column).filter(|cell| **cell != Cell::Empty).cloned();
        let cells: Vec<Cell> = self.rows.iter().filter_map(said).collect();
        cells.iter().any(Cell::is_numeric)
            && cells.iter().all(|cell| cell.is_numeric() || *cell == Cell::text("withheld"))
    }

    fn cells<'a>(&'a self, row: &'a [Cell]) -> impl Iterator<Item = &'a Cell> {
        (0..self.headers.len()).map(|column| row.get(column).unwrap_or(&Cell::Empty))
    }

    fn terminal(&self, width: Option<u16>) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
        table.set_header(&self.headers);
        for row in &self.rows {
            table.add_row(self.cells(row).map(Cell::shown));
        }
        for column in 0..self.headers.len() {
            if self.is_numeric(column)
                && let Some(column) = table.column_mut(column)
            {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let is_wider =
            |width: &u16| table.lines().any(|line| line.trim_end().chars().count() > usize::from(*width));
        let body = match width.filter(is_wider) {
            Some(width) => self.narrow(table, width),
            None => table.to_string(),
        };
        let mut text = format!("{}\n{body}\n", self.title);
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Cells broken between words to fit into so many columns, or else records.
    fn narrow(&self, mut table: Table, width: u16) -> String {
        let longest =
            |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        let mut least = 0;
        for (number, header) in self.headers.iter().enumerate() {
            let cells = self.rows.iter().filter_map(|row| row.get(number)).map(|cell| longest(&cell.shown()));
            let least_here = cells.fold(longest(header), usize::max) + PADDING;
            least += least_here;
            if let Some(column) = table.column_mut(number) {
                let at_least = Width::Fixed(u16::try_from(least_here).unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(at_least));
            }
        }
        if least + self.headers.len().saturating_sub(1) > usize::from(width) {
            return self.records();
        }
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width).to_string()
    }

    /// Each row as lines of names and cells, for a terminal that has no room for a table.
    fn records(&self) -> String {
        let widest = self.headers.iter().map(|header| header.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            for (header, cell) in
                self.headers.iter().zip(self.cells(row)).filter(|(_, cell)| **cell != Cell::Empty)
            {
                let _ = writeln!(text, "{header:widest$}  {}", cell.shown());
            }
            text.push('\n');
        }
        text.trim_end().to_owned()
    }

    fn markdown(&self) -> String {
        let escape = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
        let mut text = format!("**{}**\n\n|", escape(&self.title));
        for header in &self.headers {
            let _ = write!(text, " {} |", escape(header));
        }
        text.push_str("\n|");
        for column in 0..self.headers.len() {
            text.push_str(if self.is_numeric(column) { "--:|" } else { "---|" });
        }
        text.push('\n');
        for row in &self.rows {
            text.push('|');
            for cell in self.cells(row) {
                let _ = write!(text, " {} |", escape(&cell.shown()));
            }
            text.push('\n');
        }
        for note in &self.notes {
            let _ = write!(text, "\n{}\n", escape(note));
        }
        text
    }

    fn csv(&self) -> String {
        let mut text = csv_line(self.headers.iter().map(String::as_str));
        for row in &self.rows {
            let cells: Vec<String> = self.cells(row).map(Cell::plain).collect();
            text.push_str(&csv_line(cells.iter().map(String::as_str)));
        }
        text
    }

    /// The table as a JSON object: id, title, rows as objects by header, notes.
    pub fn json(&self) -> Value {
        let row = |row: &Vec<Cell>| {
            let pairs = self.headers.iter().cloned().zip(self.cells(row).map(Cell::json));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        json!({
            "id": self.id,
            "title": self.title,
            "columns": self.headers,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// A relative difference with its sign; one that rounds to nothing has none below.
pub fn percent(ratio: f64) -> String {
    let tenths = (ratio * 1000.0).round() / 10.0;
    format!("{:+.1} %", if tenths == 0.0 { 0.0 } else { tenths })
}

/// One line of RFC 4180: quotes where a field needs them, and doubled inside.
fn csv_line<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let quoted = fields.map(|field| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field.to_owned()
        }
    });
    let mut line = quoted.collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Grid {
        let mut grid = Grid::new("table-0", "A | B", &["row", "predicted, Mb/s", "published", "error"]);
        grid.rows.push(vec![
            Cell::text("8, \"eight\""),
            Cell::number(209.72, 2),
            Cell::number(209.7, 1),
            Cell::Percent(0.001),
        ]);
        grid.rows.push(vec![Cell::text("16|x"), Cell::number(419.0, 1), Cell::text("withheld")]);
        grid.notes.push("mean error 0.1 %".to_owned());
        grid
    }

    #[test]
    fn forms() {
        let check =
            |format, expected: &str| assert_eq!(sample().render(format, None), expected, "{format:?}");
        check(
            GridFormat::Csv,
            "row,\"predicted, Mb/s\",published,error\r\n\"8, \"\"eight\"\"\",209.72,209.7,0.10\r\n\
             16|x,419.0,withheld,\r\n",
        );
        check(
            GridFormat::Markdown,
            "**A \\| B**\n\n| row | predicted, Mb/s | published | error |\n|---|--:|--:|--:|\n\
             | 8, \"eight\" | 209.72 | 209.7 | +0.1 % |\n| 16\\|x | 419.0 | withheld | - |\n\
             \nmean error 0.1 %\n",
        );
        let terminal = sample().render(GridFormat::Terminal, None);
        for part in ["A | B\n", "+0.1 %", "withheld", "mean error 0.1 %\n"] {
            assert!(terminal.contains(part), "{part:?} in\n{terminal}");
        }
    }

    #[test]
    fn fits_the_terminal() {
        let grid = sample();
        let all = grid.render(GridFormat::Terminal, None);
        assert_eq!(grid.render(GridFormat::Terminal, Some(200)), all);
        for width in [12, 20, 39, 40, 44, 45, 46, 50, 60] {
            let text = grid.render(GridFormat::Terminal, Some(width));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width.max(30).into()), "{width}:\n{text}");
            for part in ["209.72", "withheld", "+0.1 %", "16|x"] {
                assert!(text.contains(part), "{width}, {part}:\n{text}");
            }
        }
        let records = "A | B\nrow              8, \"eight\"\npredicted, Mb/s  209.72\npublished        209.7\nerror            +0.1 %\n\n\
                       row              16|x\npredicted, Mb/s  419.0\npublished        withheld\nmean error 0.1 %\n";
        assert_eq!(grid.render(GridFormat::Terminal, Some(39)), records);
    }

    #[test]
    fn json_reads_back() {
        let value: Value = serde_json::from_str(&sample().render(GridFormat::Json, None)).unwrap();
        assert_eq!(value["rows"][0]["predicted, Mb/s"], 209.72);
        assert_eq!(value["rows"][1]["error"], Value::Null);
        assert_eq!(value["rows"][1]["published"], "withheld");
    }

    #[test]
    fn no_number_is_no_cell() {
        assert_eq!(Cell::number(f64::NAN, 1), Cell::Empty);
        assert_eq!(Cell::number(f64::INFINITY, 1), Cell::Empty);
        assert_eq!(Cell::Percent(-0.0001).shown(), "+0.0 %");
        assert_eq!(Cell::Percent(-0.0125).shown(), "-1.3 %");
        let spread = |least, most| Cell::figures(Spread { median: 123.45, least, most });
        assert_eq!(spread(123.44, 123.46).shown(), "123.5 (123.4 to 123.5)");
        assert_eq!(spread(123.46, 123.54).shown(), "123.5");
        assert_eq!(spread(1.0, 200.0).plain(), "123.5");
        assert_eq!(spread(1.0, 200.0).json(), json!(123.45));
    }
}
