//! Reads a quantity from text, and says what was expected where it cannot.

use super::{ClockId, Cycles};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Why a text is no quantity of the kind that is wanted. All of them are faults of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitError {
    /// There is no number at the start.
    NoNumber {
        /// The text.
        text: String,
        /// The units that fit here.
        units: String,
    },
    /// There is a number and nothing behind it.
    NoUnit {
        /// The text.
        text: String,
        /// The units that fit here.
        units: String,
    },
    /// The unit is not one of those that fit here.
    WrongUnit {
        /// The unit as written.
        unit: String,
        /// The units that fit here.
        units: String,
    },
    /// The number is negative, not finite, zero where nothing works with zero, or beyond anything that is built.
    Absurd {
        /// The text.
        text: String,
        /// The least that is taken.
        min: String,
        /// The largest that is taken, with its unit.
        max: String,
    },
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber { text, units } => {
                write!(f, "{text:?} starts with no number; expected a number and a unit ({units})")
            }
            Self::NoUnit { text, units } => write!(f, "{text:?} has no unit; expected one of {units}"),
            Self::WrongUnit { unit, units } => {
                write!(f, "{unit:?} does not fit here; expected one of {units}")
            }
            Self::Absurd { text, min, max } => write!(f, "{text:?} is absurd; expected {min} to {max}"),
        }
    }
}

impl std::error::Error for UnitError {}

/// Splits "1.2 GHz" into the text of its number and the rest; the space may be missing.
pub fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let mut end = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let exponent = matches!(byte, b'e' | b'E')
            && at > 0
            && bytes.get(at + 1).is_some_and(|next| next.is_ascii_digit() || *next == b'-' || *next == b'+');
        let sign = matches!(byte, b'-' | b'+') && (at == 0 || matches!(bytes.get(at - 1), Some(b'e' | b'E')));
        if !(byte.is_ascii_digit() || *byte == b'.' || exponent || sign) {
            break;
        }
        end = at + 1;
    }
    let (number, rest) = text.split_at(end);
    (number, rest.trim())
}

/// Writes `value`, in the unit whose factor is 1, in the largest of `units` that it has a whole of: "22.22 Gbit/s". The
/// first of several names for one unit is taken.
pub(super) fn scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let fits = |factor: f64| factor <= value.abs() || factor == 1.0;
    let largest = units.iter().map(|unit| unit.1).filter(|factor| fits(*factor)).fold(0.0, f64::max);
    let Some((unit, factor)) = units.iter().find(|unit| unit.1 == largest) else {
        return write!(f, "{value}");
    };
    let number = value / factor;
    let decimals =
        if number.abs() >= 1000.0 { 0 } else { 3 - number.abs().max(1.0).log10().floor() as usize };
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    write!(f, "{text} {unit}")
}

/// The number of `text` in the base unit.
pub(super) fn quantity(
    text: &str,
    unit: &str,
    range: RangeInclusive<f64>,
    units: &[(&str, f64)],
) -> Result<f64, UnitError> {
    let known = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (number, suffix) = split_number(text);
    let Ok(number) = number.parse::<f64>() else {
        return Err(UnitError::NoNumber { text: text.into(), units: known() });
    };
    if suffix.is_empty() {
        return Err(UnitError::NoUnit { text: text.into(), units: known() });
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == suffix) else {
        return Err(UnitError::WrongUnit { unit: suffix.into(), units: known() });
    };
    let value = number * factor;
    if !range.contains(&value) {
        let (min, max) = (range.start().to_string(), format!("{} {unit}", range.end()));
        return Err(UnitError::Absurd { text: text.into(), min, max });
    }
    Ok(value)
}

pub(super) fn cycles(text: &str) -> Result<Cycles, UnitError> {
    const UNITS: &str = "cycles @ the name of a clock";
    let (number, rest) = split_number(text);
    let Ok(count) = number.parse::<f64>() else {
        return Err(UnitError::NoNumber { text: text.into(), units: UNITS.into() });
    };
    if rest.is_empty() {
        return Err(UnitError::NoUnit { text: text.into(), units: UNITS.into() });
    }
    let wrong = || UnitError::WrongUnit { unit: rest.into(), units: UNITS.into() };
    let (unit, clock) = rest.split_once('@').ok_or_else(wrong)?;
    let clock = clock.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !matches!(unit.trim(), "cycle" | "cycles") || clock.is_empty() || !clock.chars().all(plain) {
        return Err(wrong());
    }
    if !(0.0..=1e9).contains(&count) {
        return Err(UnitError::Absurd {
            text: text.into(),
            min: "0".into(),
            max: "1000000000 cycles".into(),
        });
    }
    Ok(Cycles { count, clock: ClockId(clock.into()) })
}

/// The pattern of a JSON schema for a number with one of these units.
pub(super) fn pattern(units: &[&str]) -> String {
    format!("^[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? ?({})$", units.join("|"))
}

/// Takes text and nothing else, so that a bare number is refused with a word on units.
pub(super) struct Text<T> {
    expected: &'static str,
    kind: PhantomData<T>,
}

impl<T> Text<T> {
    pub(super) fn new(expected: &'static str) -> Self {
        Self { expected, kind: PhantomData }
    }
}

impl<T: FromStr<Err = UnitError>> serde::de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
