//! What the audit reports: one finding with its place, its arithmetic and what would resolve it.

use std::fmt;

use serde::Serialize;

/// How much a finding matters to a reader of the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A number cannot be right as printed.
    Error,
    /// Two places contradict each other, or numbers look otherwise than measurements do.
    Warning,
    /// Form: a reader can be misled, the numbers stand.
    Note,
}

/// How sure the audit is that something is wrong, given that the transcription is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Arithmetic or text alone proves it.
    Certain,
    /// Another explanation needs a coincidence.
    Likely,
    /// There is an honest explanation that the guide does not give.
    Possible,
}

/// Where a finding is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The section.
    pub section: String,
    /// The table, by its number or name.
    pub table: Option<String>,
    /// The row, by its first cell.
    pub row: Option<String>,
    /// The column, from 1 after the first cell.
    pub column: Option<usize>,
    /// Anything else: a figure, a formula, a reference.
    pub what: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.section.is_empty() {
            parts.push(format!("section {}", self.section));
        }
        parts.extend(self.table.as_ref().map(|table| format!("table {table}")));
        parts.extend(self.row.as_ref().map(|row| format!("row {row}")));
        parts.extend(self.column.map(|column| format!("column {column}")));
        parts.extend(self.what.clone());
        f.write_str(&parts.join(", "))
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule and its place in one word: the same finding has the same identifier in every run.
    pub id: String,
    /// The rule.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure the audit is.
    pub confidence: Confidence,
    /// Where it is.
    pub place: Place,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The arithmetic, or the words compared.
    pub arithmetic: String,
    /// What would resolve it.
    pub resolve: String,
}

impl Finding {
    /// A finding at a place; the identifier follows from the rule and the place.
    pub fn new(rule: &'static str, severity: Severity, confidence: Confidence, place: Place) -> Finding {
        let column = place.column.map(|column| column.to_string());
        let parts = [place.table.as_ref(), place.row.as_ref(), column.as_ref(), place.what.as_ref()];
        let named: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        // A table is unique; a figure, a formula or a reference is only so within its section.
        let section = (place.table.is_none() && !place.section.is_empty()).then_some(place.section.as_str());
        let id = section.into_iter().chain(named).collect::<Vec<_>>().join("/");
        let (message, arithmetic, resolve) = Default::default();
        Finding {
            id: format!("{rule}:{id}"),
            rule,
            severity,
            confidence,
            place,
            message,
            arithmetic,
            resolve,
        }
    }

    /// The same with its sentence, its arithmetic and its remedy.
    #[must_use]
    pub fn says(mut self, message: String, arithmetic: String, resolve: &str) -> Finding {
        self.message = message;
        self.arithmetic = arithmetic;
        self.resolve = resolve.to_owned();
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let confidence = match self.confidence {
            Confidence::Certain => "certain",
            Confidence::Likely => "likely",
            Confidence::Possible => "possible",
        };
        writeln!(f, "{severity} ({confidence}) {}: {}", self.rule, self.message)?;
        writeln!(f, "  where:    {}", self.place)?;
        writeln!(f, "  because:  {}", self.arithmetic)?;
        write!(f, "  resolves: {}", self.resolve)
    }
}
