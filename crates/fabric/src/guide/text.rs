//! What a guide says outside its tables: sections, lists, formulas, claims, figures and references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A section with its number and title as printed at its head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Its number: `5.2.1`.
    pub number: String,
    /// Its title.
    pub title: String,
    /// The titles that it announces for its subsections, in order; empty when it announces none.
    #[serde(default)]
    pub announces: Vec<String>,
}

/// A line of the contents or of the lists of tables and figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The number of the section, table or figure.
    pub number: String,
    /// The title or caption as listed.
    pub text: String,
    /// The page as listed.
    pub page: u32,
}

/// A figure: the caption under it, and where it stands. Its curves are no text and are not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureText {
    /// Its number.
    pub number: String,
    /// The caption under it.
    pub caption: String,
    /// The section in which it stands.
    pub section: String,
}

/// A paragraph, known by its first words, its length and a digest of the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paragraph {
    /// The section in which it stands.
    pub section: String,
    /// Its first words.
    pub opening: String,
    /// How many words it has.
    pub words: u32,
    /// 64-bit FNV-1a of its words in lower case, joined by one space, in hexadecimal.
    pub digest: String,
}

/// A list of items as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The section in which it stands.
    pub section: String,
    /// Its items.
    pub items: Vec<String>,
}

/// A formula with the value printed beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// The section in which it stands.
    pub section: String,
    /// The cell that it explains, if it stands in a table.
    #[serde(default)]
    pub cell: Option<CellAt>,
    /// The formula in the words of the guide.
    pub text: String,
    /// The same in plain operators: `(256 bits) / (8 bit/byte) * (1200 M) / 2`.
    pub expression: String,
    /// The value printed beside it, as printed.
    pub printed: String,
    /// The unit printed behind the value.
    pub unit: String,
}

/// A cell by table, row and column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellAt {
    /// The table's number or name.
    pub table: String,
    /// The row's first cell.
    pub row: String,
    /// The column, from 1 after the first cell.
    pub column: usize,
}

/// Cells of one table: all of them, or those of a row, a column, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cells {
    /// The table's number or name.
    pub table: String,
    /// Only this row.
    #[serde(default)]
    pub row: Option<String>,
    /// Only this column, from 1 after the first cell.
    #[serde(default)]
    pub column: Option<usize>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operand {
    /// Cells as printed; withheld ones are left out.
    Cells(Cells),
    /// An expression with units, `256 bits * 1200 MHz / 3`; a bare number counts in the unit of the cells.
    Expression(String),
}

/// How two sides relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The left is smaller.
    #[serde(rename = "<")]
    Less,
    /// The left is smaller or equal.
    #[serde(rename = "<=")]
    AtMost,
    /// Both are the same within what was printed.
    #[serde(rename = "=")]
    Same,
    /// The left is larger or equal.
    #[serde(rename = ">=")]
    AtLeast,
    /// The left is larger.
    #[serde(rename = ">")]
    Greater,
}

/// What a claim says, for a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Every cell of one side against the cell of the other in the same place, or against its one value.
    Compare {
        /// The left side.
        left: Operand,
        /// How it relates to the right.
        order: Order,
        /// The right side.
        right: Operand,
        /// By how much at least, or (for `=`) at most, as a share of the right side in percent.
        #[serde(default)]
        margin_percent: f64,
    },
    /// The first cells of a table's rows grow by one step between two values.
    Steps {
        /// The table.
        table: String,
        /// The first value of the stretch.
        from: f64,
        /// The last value of the stretch.
        to: f64,
        /// The step.
        step: f64,
    },
    /// What the text says a table holds: words and rates that its caption has to agree with.
    Describes {
        /// The table.
        table: String,
        /// The attributes, such as `direction = "write"`, `rate = "3.125 Gbps"`; or tags of its columns, as in
        /// `memory = "L2 and DDR3"`: all that were measured, so that columns have these and no others.
        attributes: BTreeMap<String, String>,
        /// Other tables of which the same sentence says the same.
        #[serde(default)]
        also: Vec<String>,
    },
    /// What the text says of a part, against the formula of the cell that is about it: `128 bits` wide, where the formula
    /// counts with 256.
    Factor {
        /// The cell.
        cell: CellAt,
        /// The value with its unit.
        value: String,
    },
    /// What a packet costs besides its payload: the cells say it too, as `payload * (line / rate - 1)`.
    Overhead {
        /// The cost as stated: `8 bytes`.
        stated: String,
        /// What the line carries, with `lanes` for the tag of a column: `25 Gbps * (8/9)`, `2.5 Gbps * lanes`.
        line: String,
        /// The cells, each with its payload.
        packets: Vec<Packets>,
    },
}

/// Cells that are the rate of packets with one payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// The payload of a packet: `32 bytes`.
    pub payload: String,
    /// The cells.
    pub cells: Cells,
}

/// What a place in the text calls something: `DDR3A SDRAM`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// The section in which it stands.
    pub section: String,
    /// The name as printed.
    pub text: String,
}

/// A sentence that can be held against numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The section in which it stands.
    pub section: String,
    /// The sentence, shortened.
    pub text: String,
    /// What it says.
    pub relation: Relation,
}

/// A sentence on transfers, as text of [`crate::ask`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    /// The section in which it stands.
    pub section: String,
    /// The figure that it is about, if any.
    #[serde(default)]
    pub figure: Option<String>,
    /// The sentence, shortened.
    pub text: String,
    /// What it says.
    pub says: Statement,
}

/// What a sentence says of rates, for a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Statement {
    /// Each of `less` is below each of `than`, by at least this many percent.
    Less {
        /// The slower ones.
        less: Vec<String>,
        /// The faster ones.
        than: Vec<String>,
        /// By how much.
        #[serde(default)]
        by_percent: f64,
    },
    /// All are the same within so many percent.
    Alike {
        /// The transfers.
        transfers: Vec<String>,
        /// How far they may be apart.
        within_percent: f64,
    },
    /// The first lie closer to each other than the second do: curves that converge.
    Closer {
        /// Those that are close.
        closer: Vec<String>,
        /// Those that are apart.
        apart: Vec<String>,
    },
}

/// What a cross reference points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A table.
    Table,
    /// A figure.
    Figure,
    /// A section.
    Section,
    /// Words that stand where a reference has to stand, and point to nothing.
    Missing,
}

/// A reference from the text to a table, figure or section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mention {
    /// The section in which it stands.
    pub section: String,
    /// What it points to.
    pub kind: Kind,
    /// The number that it names; for [`Kind::Missing`] the words around the gap.
    pub target: String,
}

/// Another document, cited in the text or listed under the references.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The section in which it stands.
    pub section: String,
    /// Its title as printed.
    pub title: String,
    /// Its number: `SPRUGY8`.
    pub number: String,
}
