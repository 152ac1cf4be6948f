//! A datasheet as data: its tables cell by cell, its formulas, captions, claims and references, exactly as printed.
//!
//! [`load`] reads the TOML form and says line, column and what was expected where it cannot. Oddities of the print stay as
//! they are: to find them is the audit's work. Cells that are kept back are [`Cell::Withheld`], and are never evidence.

mod cell;
mod load;
mod table;
mod text;

#[cfg(test)]
mod tests;

pub use cell::{Cell, Number};
pub use load::{Fault, LoadError, MAX_BYTES, load};
pub use table::{Column, Derived, Footnote, Legend, Role, Row, Table};
pub use text::{
    CellAt, Cells, Claim, Entry, FigureText, Formula, Kind, List, Mention, Name, Operand, Order, Packets,
    Paragraph, Reference, Relation, Section, Sentence, Statement,
};

use serde::Serialize;

/// A guide: everything in it that can be held against something else.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guide {
    /// Its title.
    pub title: String,
    /// The devices that it covers.
    pub devices: Vec<String>,
    /// The scatter of its measurements in percent, if it states one; else the audit takes it from their times.
    pub noise_percent: Option<f64>,
    /// The table of contents.
    pub contents: Vec<Entry>,
    /// The list of tables.
    pub table_list: Vec<Entry>,
    /// The list of figures.
    pub figure_list: Vec<Entry>,
    /// The sections.
    pub sections: Vec<Section>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The figures.
    pub figures: Vec<FigureText>,
    /// The formulas, in tables and in the text.
    pub formulas: Vec<Formula>,
    /// Sentences that can be held against numbers.
    pub claims: Vec<Claim>,
    /// Sentences on transfers that a chip has to meet.
    pub sentences: Vec<Sentence>,
    /// Paragraphs by digest.
    pub paragraphs: Vec<Paragraph>,
    /// What the text calls things.
    pub names: Vec<Name>,
    /// Lists of items.
    pub lists: Vec<List>,
    /// References to tables, figures and sections.
    pub mentions: Vec<Mention>,
    /// Other documents as cited in the text.
    pub citations: Vec<Reference>,
    /// Other documents as listed at the end.
    pub references: Vec<Reference>,
}

impl Guide {
    /// The table with this number or name.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// The cell at this place.
    pub fn cell(&self, at: &CellAt) -> Option<&Cell> {
        self.table(&at.table)?.cell(&at.row, at.column)
    }
}
