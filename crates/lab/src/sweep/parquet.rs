//! A table as a Parquet file (format 2.10 of Apache Parquet), in its plainest form: values as they are, not compressed.
//!
//! Every column is optional, a row group has one page of each column. Written only, not read: DuckDB, pandas and others read it.
//! The crate `parquet` would bring 20 crates more for this one use.

use super::cell::{Cell, Kind};
use super::table::Table;

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group: some megabytes of memory for whoever reads it.
const GROUP: usize = 1 << 16;

/// Numbers that the format gives to what is used of it (parquet.thrift).
mod number {
    pub const INT64: i64 = 2;
    pub const DOUBLE: i64 = 5;
    pub const BOOLEAN: i64 = 0;
    pub const BYTE_ARRAY: i64 = 6;
    pub const OPTIONAL: i64 = 1;
    pub const UTF8: i64 = 0;
    pub const PLAIN: i64 = 0;
    pub const RLE: i64 = 3;
    pub const UNCOMPRESSED: i64 = 0;
    pub const DATA_PAGE: i64 = 0;
}

/// The file.
pub fn write(table: &Table) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let mut groups = Vec::new();
    let mut first = 0;
    while first < table.len() {
        let last = (first + GROUP).min(table.len());
        groups.push(group(&mut file, table, first, last));
        first = last;
    }
    let mut meta = Thrift::default();
    meta.integer(1, 1);
    let mut schema = vec![root(table)];
    schema.extend(table.columns.iter().map(|column| leaf(&column.name, column.kind)));
    meta.structs(2, schema);
    meta.long(3, table.len() as i64);
    meta.structs(4, groups);
    meta.text(6, concat!("linerate ", env!("CARGO_PKG_VERSION")));
    let meta = meta.end();
    file.extend_from_slice(&meta);
    file.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    file.extend_from_slice(MAGIC);
    file
}

fn root(table: &Table) -> Vec<u8> {
    let mut root = Thrift::default();
    root.text(4, "sweep");
    root.integer(5, table.columns.len() as i64);
    root.end()
}

/// A column in the schema.
fn leaf(name: &str, kind: Kind) -> Vec<u8> {
    let mut leaf = Thrift::default();
    leaf.integer(1, physical(kind));
    leaf.integer(3, number::OPTIONAL);
    leaf.text(4, name);
    if kind == Kind::Text {
        leaf.integer(6, number::UTF8);
    }
    leaf.end()
}

fn physical(kind: Kind) -> i64 {
    match kind {
        Kind::Integer => number::INT64,
        Kind::Number => number::DOUBLE,
        Kind::Bool => number::BOOLEAN,
        Kind::Text => number::BYTE_ARRAY,
    }
}

/// Appends the pages of some rows, and describes them.
fn group(file: &mut Vec<u8>, table: &Table, first: usize, last: usize) -> Vec<u8> {
    let begin = file.len();
    let mut chunks = Vec::new();
    for (column, cells) in table.columns.iter().zip(&table.cells) {
        let at = file.len();
        let body = page(column.kind, &cells[first..last]);
        let mut header = Thrift::default();
        header.integer(1, number::DATA_PAGE);
        header.integer(2, body.len() as i64);
        header.integer(3, body.len() as i64);
        let mut data = Thrift::default();
        data.integer(1, (last - first) as i64);
        data.integer(2, number::PLAIN);
        data.integer(3, number::RLE);
        data.integer(4, number::RLE);
        header.nested(5, data.end());
        file.extend_from_slice(&header.end());
        file.extend_from_slice(&body);
        let size = (file.len() - at) as i64;
        let mut meta = Thrift::default();
        meta.integer(1, physical(column.kind));
        meta.integers(2, &[number::PLAIN, number::RLE]);
        meta.texts(3, &[&column.name]);
        meta.integer(4, number::UNCOMPRESSED);
        meta.long(5, (last - first) as i64);
        meta.long(6, size);
        meta.long(7, size);
        meta.long(9, at as i64);
        let mut chunk = Thrift::default();
        chunk.long(2, at as i64);
        chunk.nested(3, meta.end());
        chunks.push(chunk.end());
    }
    let mut group = Thrift::default();
    group.structs(1, chunks);
    group.long(2, (file.len() - begin) as i64);
    group.long(3, (last - first) as i64);
    group.end()
}

/// Which cells are there, then those that are.
fn page(kind: Kind, cells: &[Cell]) -> Vec<u8> {
    let mut levels = Vec::new();
    for run in cells.chunk_by(|a, b| (*a == Cell::Empty) == (*b == Cell::Empty)) {
        unsigned(&mut levels, (run.len() as u64) << 1);
        levels.push(u8::from(run[0] != Cell::Empty));
    }
    let mut page = (levels.len() as u32).to_le_bytes().to_vec();
    page.extend_from_slice(&levels);
    let there = cells.iter().filter(|cell| **cell != Cell::Empty);
    if kind == Kind::Bool {
        let bits: Vec<bool> = there.map(|cell| *cell == Cell::Bool(true)).collect();
        let byte = |bits: &[bool]| (0..).zip(bits).map(|(place, bit)| u8::from(*bit) << place).sum::<u8>();
        page.extend(bits.chunks(8).map(byte));
        return page;
    }
    for cell in there {
        match cell {
            Cell::Integer(number) => page.extend_from_slice(&number.to_le_bytes()),
            Cell::Number(number) => page.extend_from_slice(&number.to_le_bytes()),
            Cell::Text(text) => {
                page.extend_from_slice(&(text.len() as u32).to_le_bytes());
                page.extend_from_slice(text.as_bytes());
            }
            Cell::Bool(_) | Cell::Empty => {}
        }
    }
    page
}

/// A number in groups of seven bits, the lowest first.
fn unsigned(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The same with small negative numbers short.
fn signed(bytes: &mut Vec<u8>, number: i64) {
    unsigned(bytes, (number << 1 ^ number >> 63) as u64);
}

/// A struct in Thrift's compact protocol; fields come with rising numbers.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

/// Types of fields.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Thrift {
    fn field(&mut self, field: u8, kind: u8) {
        // No two used fields are further apart than the short form tells.
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn integer(&mut self, field: u8, number: i64) {
        self.field(field, I32);
        signed(&mut self.bytes, number);
    }

    fn long(&mut self, field: u8, number: i64) {
        self.field(field, I64);
        signed(&mut self.bytes, number);
    }

    fn text(&mut self, field: u8, text: &str) {
        self.field(field, BINARY);
        binary(&mut self.bytes, text);
    }

    fn nested(&mut self, field: u8, value: Vec<u8>) {
        self.field(field, STRUCT);
        self.bytes.extend(value);
    }

    fn list(&mut self, field: u8, kind: u8, len: usize) {
        self.field(field, LIST);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push(len << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                unsigned(&mut self.bytes, len as u64);
            }
        }
    }

    fn structs(&mut self, field: u8, values: Vec<Vec<u8>>) {
        self.list(field, STRUCT, values.len());
        self.bytes.extend(values.into_iter().flatten());
    }

    fn integers(&mut self, field: u8, numbers: &[i64]) {
        self.list(field, I32, numbers.len());
        numbers.iter().for_each(|number| signed(&mut self.bytes, *number));
    }

    fn texts(&mut self, field: u8, texts: &[&str]) {
        self.list(field, BINARY, texts.len());
        texts.iter().for_each(|text| binary(&mut self.bytes, text));
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, text: &str) {
    unsigned(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}
