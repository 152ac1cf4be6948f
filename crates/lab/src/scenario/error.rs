//! What goes wrong in `linerate sim`, and whose fault it is.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command ended without its result.
#[derive(Debug)]
pub enum SimError {
    /// The scenario cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// The scenario has a mistake.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        mistake: Mistake,
    },
    /// An argument that does not fit.
    Value {
        /// The flag.
        name: &'static str,
        /// What it was given.
        value: String,
        /// What is wrong, or what is expected.
        why: String,
    },
    /// A file or standard output cannot be written.
    Write {
        /// Where to.
        to: String,
        /// What the system said.
        why: std::io::Error,
    },
    /// The plot cannot be drawn.
    Plot(String),
}

impl SimError {
    /// 2 for what the user said wrong, 1 for what went wrong.
    pub fn code(&self) -> u8 {
        match self {
            SimError::Unreadable { .. } | SimError::Malformed { .. } | SimError::Value { .. } => 2,
            SimError::Write { .. } | SimError::Plot(_) => 1,
        }
    }

    /// [`Self::code`] for the system.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::Unreadable { path, why } => write!(f, "cannot read {}: {why}", path.display()),
            SimError::Malformed { path, mistake } => write!(f, "{}: {mistake}", path.display()),
            SimError::Value { name, value, why } => write!(f, "invalid value '{value}' for '{name}': {why}"),
            SimError::Write { to, why } => write!(f, "cannot write {to}: {why}"),
            SimError::Plot(why) => write!(f, "cannot draw the plot: {why}"),
        }
    }
}

impl std::error::Error for SimError {}

/// A mistake in a scenario and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key of that line, if it has one.
    pub key: Option<String>,
    /// What is wrong and what was expected.
    pub what: String,
}

impl Mistake {
    /// A mistake at these bytes of `text`; places outside it count as its end.
    pub fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Mistake {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = text.get(..start).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let whole = text.lines().nth(line - 1).unwrap_or("");
        let key = whole.split_once('=').map(|(key, _)| key.trim().to_owned());
        Mistake { line, column, key, what: what.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// A message of the reader with what it expected in words: it knows the types of the program.
pub fn plain(message: &str) -> String {
    let Some((before, wanted)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let words = match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "a boolean" => "true or false",
        "a string" => "text in quotation marks",
        "a sequence" => "a list",
        wanted if wanted.starts_with("struct ") => "a table",
        wanted => wanted,
    };
    format!("{before}, expected {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_expected_is_said_in_words() {
        let check = |message: &str, expected: &str| assert_eq!(plain(message), expected);
        check(
            "invalid type: string \"x\", expected u64",
            "invalid type: string \"x\", expected a whole number, 0 or more",
        );
        check(
            "invalid value: integer `300`, expected u8",
            "invalid value: integer `300`, expected a whole number from 0 to 255",
        );
        check(
            "invalid type: integer `3`, expected struct TcpTable",
            "invalid type: integer `3`, expected a table",
        );
        check("unknown field `x`, expected one of `y`", "unknown field `x`, expected one of `y`");
        check("no more", "no more");
    }

    #[test]
    fn places_are_lines_columns_and_keys() {
        let check = |at: usize, expected: &str| {
            let text = "[link]\nrate = \"fast\"\n";
            assert_eq!(Mistake::at(text, &(at..at + 1), "no").to_string(), expected);
        };
        check(0, "line 1, column 1: no");
        check(14, "line 2, column 8: rate: no");
        check(999, "line 3, column 1: no");
    }
}
