//! What is wrong with a chip file, and where.

use std::fmt;
use std::ops::Range;

/// A mistake in a chip file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong and what was expected.
    pub what: String,
}

impl SocError {
    /// A mistake at these bytes of `text`; places outside it count as its end.
    pub fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Self {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = text.get(..start).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, column, what: what.into() }
    }
}

impl fmt::Display for SocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for SocError {}
