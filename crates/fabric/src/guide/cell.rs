//! One cell of a published table: what was printed, and what it means.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number as printed: its value, its decimals, and the text itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// The value, in the unit of its column, row or table.
    pub value: f64,
    /// The text as printed, without the percentage in parentheses.
    pub printed: String,
    /// How many decimals were printed: they say how far the value was rounded.
    pub decimals: u8,
    /// Whether a percent sign follows the number itself.
    pub percent: bool,
    /// The percentage printed in parentheses behind the number, as in `20.14 (96%)`.
    pub share_percent: Option<f64>,
}

impl Number {
    /// Reads a number as a datasheet prints it: digits, one decimal point, perhaps `%`, perhaps `(96%)` behind it.
    /// `None` for anything else: digits with letters, a sign, an exponent, `inf`.
    pub fn read(text: &str) -> Option<Number> {
        let text = text.trim();
        let (head, share_percent) = match text.split_once('(') {
            Some((head, rest)) => {
                let share = rest.trim().strip_suffix(')')?.trim().strip_suffix('%')?;
                (head.trim(), Some(plain(share.trim())?.0))
            }
            None => (text, None),
        };
        let (digits, percent) = match head.strip_suffix('%') {
            Some(digits) => (digits.trim(), true),
            None => (head, false),
        };
        let (value, decimals) = plain(digits)?;
        Some(Number { value, printed: head.to_owned(), decimals, percent, share_percent })
    }

    /// Half of the last printed digit: the true value lies within this of the printed one.
    pub fn half_unit(&self) -> f64 {
        0.5 * 10f64.powi(-i32::from(self.decimals))
    }

    /// Digits printed, without leading zeros and the point: how much evidence equality with another number is.
    pub fn significant_digits(&self) -> u32 {
        let digits = self.printed.chars().filter(char::is_ascii_digit);
        digits.skip_while(|digit| *digit == '0').count().try_into().unwrap_or(u32::MAX)
    }
}

/// Digits with at most one point, to a value and its decimals.
fn plain(text: &str) -> Option<(f64, u8)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() + fraction.len() > 18 || !digits(whole) || !digits(fraction) {
        return None;
    }
    Some((text.parse().ok()?, u8::try_from(fraction.len()).ok()?))
}

/// What a cell says.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number, perhaps with a percentage behind it.
    Number(Number),
    /// Words, or a formula.
    Text(String),
    /// The table has a number here that this transcription keeps back. It is never evidence.
    Withheld,
    /// A dash: no connection, or nothing to say.
    Dash,
    /// `N/A`: the thing does not exist.
    NotAvailable,
}

impl Cell {
    /// What a printed cell means. `withheld`, `-` and `N/A` are words of their own; whatever is no number is text.
    pub fn read(printed: &str) -> Cell {
        match printed.trim() {
            "withheld" => Cell::Withheld,
            "-" => Cell::Dash,
            "N/A" => Cell::NotAvailable,
            text => Number::read(text).map_or_else(|| Cell::Text(text.to_owned()), Cell::Number),
        }
    }

    /// The number in this cell, if one is printed.
    pub fn number(&self) -> Option<&Number> {
        match self {
            Cell::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The value in this cell, if one is printed.
    pub fn value(&self) -> Option<f64> {
        self.number().map(|number| number.value)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Number(Number { printed, share_percent: Some(share), .. }) => {
                write!(f, "{printed} ({share}%)")
            }
            Cell::Number(number) => f.write_str(&number.printed),
            Cell::Text(text) => f.write_str(text),
            Cell::Withheld => f.write_str("withheld"),
            Cell::Dash => f.write_str("-"),
            Cell::NotAvailable => f.write_str("N/A"),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
