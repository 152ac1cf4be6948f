//! From the TOML form of a guide to its types; every mistake has a line, a column, and what was expected.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use super::Guide;
use super::cell::Cell;
use super::table::{Column, Derived, Footnote, Legend, Role, Row, Table};
use super::text::{
    CellAt, Claim, Entry, FigureText, Formula, List, Mention, Name, Operand, Paragraph, Reference, Relation,
    Section, Sentence, Statement,
};
use crate::document;

/// The longest transcription that is read.
pub const MAX_BYTES: usize = 4 << 20;

/// What is wrong with a transcription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No TOML, or a key or value that has no place here; the text says what was expected.
    Form(String),
    /// Longer than [`MAX_BYTES`].
    TooLong,
    /// A table with this number or name is there already.
    TableTwice(String),
    /// A row without its first cell.
    RowEmpty,
    /// A row with this first cell is there already.
    RowTwice(String),
    /// A row has `found` cells after the first, and the table has `expected` columns.
    RowWidth {
        /// Cells after the first.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// A column without a heading.
    HeadingEmpty,
    /// A row is named that the table does not have.
    NoRow {
        /// The table.
        table: String,
        /// The name.
        row: String,
    },
    /// Neither a row nor a column of the table has this name.
    NoRowOrColumn {
        /// The table.
        table: String,
        /// The name.
        name: String,
    },
    /// A column is named that the table does not have.
    NoColumn {
        /// The table.
        table: String,
        /// The column, from 1.
        column: usize,
        /// Columns of the table.
        columns: usize,
    },
    /// No table has this number or name.
    NoTable(String),
    /// A sentence names no transfer, or one that cannot be read.
    Sentence(String),
    /// A cell asks for a transfer that cannot be read.
    Transfer(String),
    /// A noise level outside 0 to 100 percent.
    Noise,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Form(message) => f.write_str(message),
            Fault::TooLong => write!(f, "expected at most {MAX_BYTES} bytes"),
            Fault::TableTwice(id) => write!(f, "a second table `{id}`; expected each number or name once"),
            Fault::RowEmpty => {
                f.write_str("an empty row; expected its first cell and one cell for each column")
            }
            Fault::RowTwice(row) => {
                write!(f, "a second row `{row}`; expected each first cell once in a table")
            }
            Fault::RowWidth { found, expected } => {
                write!(f, "{found} cells after the first; expected {expected}, one for each column")
            }
            Fault::HeadingEmpty => f.write_str("a column without heading; expected one or more strings"),
            Fault::NoRow { table, row } => {
                write!(f, "table `{table}` has no row `{row}`; expected its first cell")
            }
            Fault::NoRowOrColumn { table, name } => {
                write!(
                    f,
                    "`{name}` is no row or column of table `{table}`; expected a first cell or a heading"
                )
            }
            Fault::NoColumn { table, column, columns } => {
                write!(f, "table `{table}` has no column {column}; expected 1 to {columns}")
            }
            Fault::NoTable(id) => write!(f, "no table `{id}`; expected the `id` of one"),
            Fault::Sentence(what) | Fault::Transfer(what) => write!(f, "{what}"),
            Fault::Noise => f.write_str("expected `noise-percent` between 0 and 100"),
        }
    }
}

/// Why a transcription was not read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: Fault,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.fault)
    }
}

impl Error for LoadError {}

/// Reads a guide from its TOML form.
///
/// # Errors
/// The first mistake, with its place: see [`Fault`].
pub fn load(text: &str) -> Result<Guide, LoadError> {
    let source = Source { text };
    if text.len() > MAX_BYTES {
        return Err(source.at(0, Fault::TooLong));
    }
    let file: File = document::read(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        source.at(start, Fault::Form(error.message().to_owned()))
    })?;
    if let Some(noise) = file.noise_percent.as_ref().filter(|noise| !(0.0..=100.0).contains(noise.get_ref()))
    {
        return Err(source.at(noise.span().start, Fault::Noise));
    }
    let mut tables = Vec::with_capacity(file.tables.len());
    let mut known = BTreeSet::new();
    for raw in file.tables {
        let start = raw.span().start;
        let table = source.table(raw)?;
        if !known.insert(table.id.clone()) {
            return Err(source.at(start, Fault::TableTwice(table.id)));
        }
        tables.push(table);
    }
    let mut sentences = Vec::with_capacity(file.sentences.len());
    for sentence in file.sentences {
        readable(sentence.get_ref()).map_err(|fault| source.at(sentence.span().start, fault))?;
        sentences.push(sentence.into_inner());
    }
    let guide = Guide {
        title: file.title,
        devices: file.devices,
        noise_percent: file.noise_percent.map(Spanned::into_inner),
        contents: file.contents,
        table_list: file.table_list,
        figure_list: file.figure_list,
        sections: file.sections,
        tables,
        figures: file.figures,
        formulas: Vec::new(),
        claims: Vec::new(),
        sentences,
        paragraphs: file.paragraphs,
        names: file.names,
        lists: file.lists,
        mentions: file.mentions,
        citations: file.citations,
        references: file.references,
    };
    source.text_parts(guide, file.formulas, file.claims)
}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    title: String,
    #[serde(default)]
    devices: Vec<String>,
    noise_percent: Option<Spanned<f64>>,
    #[serde(default)]
    contents: Vec<Entry>,
    #[serde(default)]
    table_list: Vec<Entry>,
    #[serde(default)]
    figure_list: Vec<Entry>,
    #[serde(default, rename = "section")]
    sections: Vec<Section>,
    #[serde(default, rename = "table")]
    tables: Vec<Spanned<RawTable>>,
    #[serde(default, rename = "figure")]
    figures: Vec<FigureText>,
    #[serde(default, rename = "formula")]
    formulas: Vec<Spanned<Formula>>,
    #[serde(default, rename = "claim")]
    claims: Vec<Spanned<Claim>>,
    #[serde(default, rename = "sentence")]
    sentences: Vec<Spanned<Sentence>>,
    #[serde(default, rename = "paragraph")]
    paragraphs: Vec<Paragraph>,
    #[serde(default, rename = "name")]
    names: Vec<Name>,
    #[serde(default, rename = "list")]
    lists: Vec<List>,
    #[serde(default, rename = "mention")]
    mentions: Vec<Mention>,
    #[serde(default, rename = "citation")]
    citations: Vec<Reference>,
    #[serde(default, rename = "reference")]
    references: Vec<Reference>,
}

/// A table in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawTable {
    id: String,
    #[serde(default)]
    caption: String,
    section: String,
    unit: Option<String>,
    role: Option<Role>,
    corner: String,
    columns: Vec<Spanned<RawColumn>>,
    rows: Vec<Spanned<Vec<String>>>,
    #[serde(default)]
    row_role: BTreeMap<String, Spanned<Role>>,
    #[serde(default)]
    row_unit: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    group_before: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    footnotes: Vec<Footnote>,
    #[serde(default)]
    legend: Vec<Legend>,
    #[serde(default)]
    conditions: BTreeMap<String, String>,
    #[serde(default)]
    derived: Vec<Spanned<Derived>>,
    share_of: Option<Spanned<String>>,
    #[serde(default)]
    transfers: BTreeMap<String, Spanned<Vec<String>>>,
}

/// A column in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawColumn {
    heading: Vec<String>,
    unit: Option<String>,
    role: Option<Role>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// The text that is read, for the places of mistakes.
struct Source<'a> {
    text: &'a str,
}

impl Source<'_> {
    /// A mistake at this byte.
    fn at(&self, start: usize, fault: Fault) -> LoadError {
        let before = self.text.get(..start).unwrap_or(self.text);
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()).saturating_add(1);
        LoadError { line: self.line(start), column, fault }
    }

    /// The line of this byte, from 1.
    fn line(&self, start: usize) -> usize {
        let before = self.text.get(..start).unwrap_or(self.text);
        before.bytes().filter(|byte| *byte == b'\n').count().saturating_add(1)
    }

    /// A table, checked: as many cells as columns, and every name in it exists.
    fn table(&self, raw: Spanned<RawTable>) -> Result<Table, LoadError> {
        let line = self.line(raw.span().start);
        let raw = raw.into_inner();
        let mut columns = Vec::with_capacity(raw.columns.len());
        for column in raw.columns {
            let start = column.span().start;
            let RawColumn { heading, unit, role, tags } = column.into_inner();
            if heading.is_empty() {
                return Err(self.at(start, Fault::HeadingEmpty));
            }
            let role = role.or(raw.role).unwrap_or(Role::Measured);
            columns.push(Column { heading, unit, role, tags });
        }
        let rows = self.rows(&raw.rows, columns.len())?;
        let mut table = Table {
            id: raw.id,
            caption: raw.caption,
            section: raw.section,
            unit: raw.unit,
            corner: raw.corner,
            columns,
            rows,
            footnotes: raw.footnotes,
            legend: raw.legend,
            conditions: raw.conditions,
            derived: Vec::new(),
            share_of: raw.share_of.map(Spanned::into_inner),
            transfers: BTreeMap::new(),
            line,
        };
        for (name, transfers) in raw.transfers {
            let start = transfers.span().start;
            self.named_row(&mut table, &name, start)?;
            let transfers = self.transfers(transfers.into_inner(), table.columns.len(), start)?;
            table.transfers.insert(name, transfers);
        }
        for (name, role) in raw.row_role {
            self.named_row(&mut table, &name, role.span().start)?.role = Some(*role.get_ref());
        }
        for (name, unit) in raw.row_unit {
            self.named_row(&mut table, &name, unit.span().start)?.unit = Some(unit.get_ref().clone());
        }
        self.groups(&mut table, raw.group_before)?;
        for derived in raw.derived {
            let start = derived.span().start;
            let derived = derived.into_inner();
            for name in derived.given.values().chain([&derived.target]) {
                let here =
                    table.row(name).is_some() || table.column_index(name).is_some() || *name == table.corner;
                if !here {
                    let fault = Fault::NoRowOrColumn { table: table.id, name: name.clone() };
                    return Err(self.at(start, fault));
                }
            }
            table.derived.push(derived);
        }
        Ok(table)
    }

    /// What the cells of a row ask of a chip: one transfer for each column, or nothing.
    fn transfers(&self, all: Vec<String>, columns: usize, start: usize) -> Result<Vec<String>, LoadError> {
        if all.len() != columns {
            return Err(self.at(start, Fault::RowWidth { found: all.len(), expected: columns }));
        }
        for text in all.iter().filter(|text| !text.is_empty()) {
            text.split(" and ")
                .try_for_each(|one| one.parse::<crate::ask::Transfer>().map(drop))
                .map_err(|error| self.at(start, Fault::Transfer(error.to_string())))?;
        }
        Ok(all)
    }

    /// The rows, each as wide as the table.
    fn rows(&self, raw: &[Spanned<Vec<String>>], columns: usize) -> Result<Vec<Row>, LoadError> {
        let mut rows = Vec::with_capacity(raw.len());
        let mut names = BTreeSet::new();
        for row in raw {
            let start = row.span().start;
            let (name, cells) = row.get_ref().split_first().ok_or_else(|| self.at(start, Fault::RowEmpty))?;
            if cells.len() != columns {
                return Err(self.at(start, Fault::RowWidth { found: cells.len(), expected: columns }));
            }
            if !names.insert(name.clone()) {
                return Err(self.at(start, Fault::RowTwice(name.clone())));
            }
            let cells = cells.iter().map(|cell| Cell::read(cell)).collect();
            let line = self.line(start);
            rows.push(Row { name: name.clone(), cells, role: None, unit: None, group: None, line });
        }
        Ok(rows)
    }

    /// The row that a key names.
    fn named_row<'t>(
        &self,
        table: &'t mut Table,
        name: &str,
        start: usize,
    ) -> Result<&'t mut Row, LoadError> {
        let fault = Fault::NoRow { table: table.id.clone(), row: name.to_owned() };
        table.rows.iter_mut().find(|row| row.name == name).ok_or_else(|| self.at(start, fault))
    }

    /// The lines across the table: each counts from its row on.
    fn groups(&self, table: &mut Table, groups: BTreeMap<String, Spanned<String>>) -> Result<(), LoadError> {
        for (name, group) in &groups {
            self.named_row(table, name, group.span().start)?;
        }
        let mut current = None;
        for row in &mut table.rows {
            current = groups.get(&row.name).map(|group| group.get_ref().clone()).or(current);
            row.group.clone_from(&current);
        }
        Ok(())
    }

    /// Formulas and claims, whose cells must exist.
    fn text_parts(
        &self,
        mut guide: Guide,
        formulas: Vec<Spanned<Formula>>,
        claims: Vec<Spanned<Claim>>,
    ) -> Result<Guide, LoadError> {
        for formula in formulas {
            let start = formula.span().start;
            let formula = formula.into_inner();
            if let Some(CellAt { table, row, column }) = &formula.cell {
                exists(&guide, table, Some(row), Some(*column)).map_err(|fault| self.at(start, fault))?;
            }
            guide.formulas.push(formula);
        }
        for claim in claims {
            let start = claim.span().start;
            let claim = claim.into_inner();
            claim_exists(&guide, &claim.relation).map_err(|fault| self.at(start, fault))?;
            guide.claims.push(claim);
        }
        for table in &guide.tables {
            if let Some(whole) = table.share_of.as_ref().filter(|whole| guide.table(whole).is_none()) {
                return Err(LoadError { line: table.line, column: 1, fault: Fault::NoTable(whole.clone()) });
            }
        }
        Ok(guide)
    }
}

/// Whether a table, row and column (from 1) are there.
fn exists(guide: &Guide, table: &str, row: Option<&str>, column: Option<usize>) -> Result<(), Fault> {
    let of = guide.table(table).ok_or_else(|| Fault::NoTable(table.to_owned()))?;
    if let Some(row) = row.filter(|row| of.row(row).is_none()) {
        return Err(Fault::NoRow { table: table.to_owned(), row: row.to_owned() });
    }
    match column {
        Some(column) if column == 0 || column > of.columns.len() => {
            Err(Fault::NoColumn { table: table.to_owned(), column, columns: of.columns.len() })
        }
        _ => Ok(()),
    }
}

/// Whether the transfers of a sentence can be read.
fn readable(sentence: &Sentence) -> Result<(), Fault> {
    let sides = match &sentence.says {
        Statement::Less { less, than, .. } => [less, than],
        Statement::Alike { transfers, .. } => [transfers, transfers],
        Statement::Closer { closer, apart } => [closer, apart],
    };
    if sides.iter().any(|side| side.is_empty()) {
        return Err(Fault::Sentence("a side without transfers; expected one or more".into()));
    }
    let all = sides.into_iter().flatten().flat_map(|text| text.split(" and "));
    for text in all {
        text.parse::<crate::ask::Transfer>().map_err(|error| Fault::Sentence(error.to_string()))?;
    }
    Ok(())
}

/// Whether what a claim speaks of is there.
fn claim_exists(guide: &Guide, relation: &Relation) -> Result<(), Fault> {
    match relation {
        Relation::Compare { left, right, .. } => [left, right].into_iter().try_for_each(|side| match side {
            Operand::Cells(cells) => exists(guide, &cells.table, cells.row.as_deref(), cells.column),
            Operand::Expression(_) => Ok(()),
        }),
        Relation::Steps { table, .. } => exists(guide, table, None, None),
        Relation::Describes { table, also, .. } => {
            also.iter().chain([table]).try_for_each(|table| exists(guide, table, None, None))
        }
        Relation::Factor { cell, .. } => exists(guide, &cell.table, Some(&cell.row), Some(cell.column)),
        Relation::Overhead { packets, .. } => packets
            .iter()
            .try_for_each(|of| exists(guide, &of.cells.table, of.cells.row.as_deref(), of.cells.column)),
    }
}
