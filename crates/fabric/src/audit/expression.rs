//! The arithmetic of a datasheet: numbers with units, names, `+ - * /` and brackets, in bits and seconds.

use std::fmt;

/// The longest expression that is read, in bytes.
const MAX_BYTES: usize = 1024;
/// How deep brackets may nest.
const MAX_DEPTH: usize = 32;

/// A value in bits and seconds with the powers of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The value in base units.
    pub value: f64,
    /// The power of bits.
    pub bits: i8,
    /// The power of seconds.
    pub seconds: i8,
}

impl Quantity {
    /// A number without unit.
    pub fn plain(value: f64) -> Quantity {
        Quantity { value, bits: 0, seconds: 0 }
    }

    /// Whether it has no unit.
    pub fn is_plain(&self) -> bool {
        self.bits == 0 && self.seconds == 0
    }

    /// Whether both measure the same kind of thing.
    pub fn same_kind(&self, other: &Quantity) -> bool {
        (self.bits, self.seconds) == (other.bits, other.seconds)
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpressionError {
    /// Longer or deeper than the bound.
    TooLong,
    /// It ends where a number, a name or a bracket has to follow.
    Ends,
    /// A character that has no place there; its position in bytes.
    Unexpected(usize),
    /// A unit or name that is not known.
    Unknown(String),
    /// A sum of different kinds, such as bits and seconds.
    Kinds,
    /// A division by zero, or a result beyond what a number holds.
    NotFinite,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionError::TooLong => f.write_str("too long or too deep"),
            ExpressionError::Ends => f.write_str("ends where a number, a name or a bracket is expected"),
            ExpressionError::Unexpected(at) => write!(f, "unexpected character at byte {at}"),
            ExpressionError::Unknown(name) => write!(f, "unknown unit or name `{name}`"),
            ExpressionError::Kinds => f.write_str("adds different kinds of quantity"),
            ExpressionError::NotFinite => f.write_str("divides by zero or overflows"),
        }
    }
}

impl std::error::Error for ExpressionError {}

/// A unit as datasheets print it: its size in bits and seconds. A bare `M` behind a clock is 10^6 per second; a symbol on
/// the line (`baud`) counts as one bit; a transfer, a cycle and a packet count as one. `K` is 1,024 before a size in bits or
/// bytes, and 1,000 before a rate or a frequency.
pub fn unit(name: &str) -> Option<Quantity> {
    let of = |value, bits, seconds| Some(Quantity { value, bits, seconds });
    match name {
        "MBPS" => return of(8e6, 1, -1),
        "M" => return of(1e6, 0, -1),
        "cycle" | "cycles" | "lanes" | "packets" => return of(1.0, 0, 0),
        "%" => return of(0.01, 0, 0),
        "bit/byte" | "bits/byte" => return of(0.125, 0, 0),
        _ => {}
    }
    if let Some(base) = base_unit(name) {
        return Some(base);
    }
    let (scale, rest) = prefix(name)?;
    let base = base_unit(rest)?;
    let is_size = (base.bits, base.seconds) == (1, 0);
    let scale = if name.strip_prefix('K') == Some(rest) && !is_size { 1e3 } else { scale };
    Some(Quantity { value: base.value * scale, ..base })
}

/// A unit without prefix. A byte is eight bits, so `8 bit/byte` is the number one.
fn base_unit(name: &str) -> Option<Quantity> {
    let (value, bits, seconds) = match name {
        "bit" | "bits" | "b" => (1.0, 1, 0),
        "byte" | "bytes" | "B" => (8.0, 1, 0),
        "bps" | "b/s" | "bit/s" | "baud" => (1.0, 1, -1),
        "B/s" => (8.0, 1, -1),
        "Hz" | "T/s" | "tps" => (1.0, 0, -1),
        "s" => (1.0, 0, 1),
        _ => return None,
    };
    Some(Quantity { value, bits, seconds })
}

/// A prefix and what follows it.
fn prefix(name: &str) -> Option<(f64, &str)> {
    const PREFIXES: [(&str, f64); 9] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("K", 1024.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("m", 1e-3),
        ("u", 1e-6),
        ("n", 1e-9),
    ];
    PREFIXES.iter().find_map(|(prefix, scale)| Some((*scale, name.strip_prefix(prefix)?)))
}

/// The value of an expression; `names` gives the values of the names in it.
///
/// # Errors
/// See [`ExpressionError`].
pub fn evaluate(text: &str, names: &dyn Fn(&str) -> Option<f64>) -> Result<Quantity, ExpressionError> {
    if text.len() > MAX_BYTES {
        return Err(ExpressionError::TooLong);
    }
    let mut parser = Parser { text, at: 0, depth: 0, names };
    let value = parser.sum()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(ExpressionError::Unexpected(parser.at));
    }
    Ok(value)
}

/// The numbers in an expression, each with its unit: what it was computed from.
pub fn literals(text: &str) -> Vec<Quantity> {
    let mut parser = Parser { text, at: 0, depth: 0, names: &|_| None };
    let mut found = Vec::new();
    while let Some(byte) = parser.peek() {
        if byte.is_ascii_digit() {
            found.extend(parser.number());
        } else if byte.is_ascii_alphabetic() {
            parser.word(false);
        } else {
            parser.at += 1;
        }
    }
    found
}

/// Recursive descent over the bytes of an expression.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    names: &'a dyn Fn(&str) -> Option<f64>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte == b' ') {
            self.at += 1;
        }
    }

    /// The next byte that is no blank, if it is one of these.
    fn accept(&mut self, these: &[u8]) -> Option<u8> {
        self.blanks();
        let byte = self.peek().filter(|byte| these.contains(byte))?;
        self.at += 1;
        Some(byte)
    }

    fn sum(&mut self) -> Result<Quantity, ExpressionError> {
        let mut left = self.product()?;
        while let Some(sign) = self.accept(b"+-") {
            let right = self.product()?;
            if !left.same_kind(&right) {
                return Err(ExpressionError::Kinds);
            }
            left.value += if sign == b'+' { right.value } else { -right.value };
        }
        finite(left)
    }

    fn product(&mut self) -> Result<Quantity, ExpressionError> {
        let mut left = self.factor()?;
        while let Some(sign) = self.accept(b"*/") {
            let right = self.factor()?;
            let power = if sign == b'*' { 1 } else { -1 };
            left.value = if sign == b'*' { left.value * right.value } else { left.value / right.value };
            left.bits = left.bits.saturating_add(right.bits.saturating_mul(power));
            left.seconds = left.seconds.saturating_add(right.seconds.saturating_mul(power));
        }
        finite(left)
    }

    fn factor(&mut self) -> Result<Quantity, ExpressionError> {
        self.blanks();
        match self.peek() {
            None => Err(ExpressionError::Ends),
            Some(open @ (b'(' | b'[')) => self.bracket(open),
            Some(b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let name = self.word(false);
                let value = (self.names)(name).ok_or_else(|| ExpressionError::Unknown(name.to_owned()))?;
                finite(Quantity::plain(value))
            }
            Some(_) => Err(ExpressionError::Unexpected(self.at)),
        }
    }

    fn bracket(&mut self, open: u8) -> Result<Quantity, ExpressionError> {
        if self.depth >= MAX_DEPTH {
            return Err(ExpressionError::TooLong);
        }
        self.depth += 1;
        self.at += 1;
        let inner = self.sum()?;
        let close: &[u8] = if open == b'(' { b")" } else { b"]" };
        if self.accept(close).is_none() {
            return Err(if self.at < self.text.len() {
                ExpressionError::Unexpected(self.at)
            } else {
                ExpressionError::Ends
            });
        }
        self.depth -= 1;
        Ok(inner)
    }

    /// A number and the unit behind it.
    fn number(&mut self) -> Result<Quantity, ExpressionError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.') {
            self.at += 1;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let value: f64 = digits.parse().map_err(|_| ExpressionError::Unexpected(start))?;
        self.blanks();
        if !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return finite(Quantity::plain(value));
        }
        let name = self.word(true);
        let unit = unit(name).ok_or_else(|| ExpressionError::Unknown(name.to_owned()))?;
        finite(Quantity { value: value * unit.value, ..unit })
    }

    /// Letters, digits and `_`; a unit may go on behind a `/` with letters, as in `MB/s`.
    fn word(&mut self, is_unit: bool) -> &'a str {
        let start = self.at;
        loop {
            match self.peek() {
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => self.at += 1,
                Some(b'/') if is_unit && self.letter_follows() => self.at += 1,
                _ => break,
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn letter_follows(&self) -> bool {
        self.text.as_bytes().get(self.at + 1).is_some_and(u8::is_ascii_alphabetic)
    }
}

/// The quantity, unless it is beyond numbers.
fn finite(quantity: Quantity) -> Result<Quantity, ExpressionError> {
    if quantity.value.is_finite() { Ok(quantity) } else { Err(ExpressionError::NotFinite) }
}
