//! An axis of a sweep: a key, and the values that it takes.

use super::cell::{Cell, Column, Kind};
use super::file::{AxisTable, Scale};
use crate::quantity::{bytes, rate, short, span};
use crate::scenario::error::Mistake;
use linerate_fabric::units::{BitsPerSecond, Bytes, Hertz, Nanoseconds, Ratio, split_number};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;
use toml::Value;

/// Most values of an axis.
const MOST: u32 = 100_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The key.
    pub key: String,
    /// Where the file says so.
    pub span: Range<usize>,
    /// Its column.
    pub column: Column,
    unit: Quantity,
    room: Room,
}

/// The values that there are.
#[derive(Clone, Debug)]
enum Room {
    List(Vec<Value>),
    Range { from: f64, to: f64, unit: String, is_whole: bool, scale: Scale, steps: Option<u32> },
}

/// What the values of an axis are, for the column: numbers of a base unit, or text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Quantity {
    Text,
    Bool,
    Plain,
    Seconds,
    Bytes,
    Bps,
    Hertz,
    Share,
}

impl Quantity {
    /// What is behind the key in the column's name.
    fn suffix(self) -> &'static str {
        match self {
            Quantity::Text | Quantity::Bool | Quantity::Plain => "",
            Quantity::Seconds => "_s",
            Quantity::Bytes => "_bytes",
            Quantity::Bps => "_bps",
            Quantity::Hertz => "_hz",
            Quantity::Share => "_share",
        }
    }

    /// The quantity that a value is.
    fn of(value: &Value) -> Quantity {
        match value {
            Value::Integer(_) | Value::Float(_) => Quantity::Plain,
            Value::Boolean(_) => Quantity::Bool,
            Value::String(text) => {
                let all = [
                    Quantity::Seconds,
                    Quantity::Bytes,
                    Quantity::Bps,
                    Quantity::Hertz,
                    Quantity::Share,
                    Quantity::Plain,
                ];
                all.into_iter().find(|one| one.number(text).is_some()).unwrap_or(Quantity::Text)
            }
            _ => Quantity::Text,
        }
    }

    /// The number that a text says, in the base unit.
    fn number(self, text: &str) -> Option<f64> {
        // A number without a unit is no quantity, though some units read it.
        let has_unit = !split_number(text).1.trim().is_empty();
        fn read<T: FromStr>(text: &str, value: impl Fn(T) -> f64) -> Option<f64> {
            text.parse().ok().map(value)
        }
        match self {
            Quantity::Text | Quantity::Bool => None,
            Quantity::Plain => text.parse().ok(),
            _ if !has_unit => None,
            Quantity::Seconds => read(text, |span: Nanoseconds| span.value() / 1e9),
            Quantity::Bytes => read(text, |bytes: Bytes| bytes.value()),
            Quantity::Bps => read(text, |rate: BitsPerSecond| rate.value()),
            Quantity::Hertz => read(text, |rate: Hertz| rate.value()),
            Quantity::Share => read(text, |share: Ratio| share.value()),
        }
    }

    /// A value as a cell.
    fn cell(self, value: &Value) -> Cell {
        match (self, value) {
            (Quantity::Bool, Value::Boolean(is)) => Cell::Bool(*is),
            (Quantity::Plain, Value::Integer(number)) => Cell::Number(*number as f64),
            (Quantity::Plain, Value::Float(number)) => Cell::Number(*number),
            (Quantity::Text, Value::String(text)) => Cell::Text(text.clone()),
            (_, Value::String(text)) => self.number(text).map_or(Cell::Empty, Cell::Number),
            (_, other) => Cell::Text(other.to_string()),
        }
    }
}

impl Axis {
    /// The axis of a table in a file with this text.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(text: &str, table: &AxisTable, is_grid: bool) -> Result<Axis, Mistake> {
        let span = table.key.span();
        let wrong = |span: Range<usize>, what: String| Err(Mistake::at(text, &span, what));
        let room = match (&table.values, &table.from, &table.to) {
            (Some(values), None, None) if table.steps.is_none() => {
                let list = values.get_ref().clone();
                if list.is_empty() || list.len() > MOST as usize {
                    return wrong(values.span(), format!("expected 1 to {MOST} values"));
                }
                Room::List(list)
            }
            (None, Some(from), Some(to)) => {
                let steps = table.steps.as_ref().map(|steps| *steps.get_ref());
                if let Some(given) = &table.steps
                    && !(2..=MOST).contains(given.get_ref())
                {
                    return wrong(given.span(), format!("expected 2 to {MOST} steps"));
                }
                if is_grid && steps.is_none() {
                    return wrong(span, "a grid needs to know how many values; expected steps".to_owned());
                }
                match range(from.get_ref(), to.get_ref(), table.scale, steps) {
                    Ok(room) => room,
                    Err(what) => return wrong(to.span(), what),
                }
            }
            _ => {
                let what = "expected values = [...], or from, to and steps = N";
                return wrong(span, what.to_owned());
            }
        };
        let kinds: Vec<Quantity> = match &room {
            Room::List(list) => list.iter().map(Quantity::of).collect(),
            Room::Range { from, unit, .. } => vec![Quantity::of(&value(*from, unit, false))],
        };
        let first = kinds.first().copied().unwrap_or(Quantity::Text);
        let unit = if kinds.iter().all(|kind| *kind == first) { first } else { Quantity::Text };
        let kind = match unit {
            Quantity::Text => Kind::Text,
            Quantity::Bool => Kind::Bool,
            _ => Kind::Number,
        };
        let key = table.key.get_ref().trim().to_owned();
        let column = Column::new(format!("{key}{}", unit.suffix()), kind);
        Ok(Axis { key, span, column, unit, room })
    }

    /// Values that a grid has.
    pub fn len(&self) -> usize {
        match &self.room {
            Room::List(list) => list.len(),
            Room::Range { steps, .. } => steps.unwrap_or(2) as usize,
        }
    }

    /// Whether there is none; there always is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether values come from a list rather than a range.
    pub fn is_list(&self) -> bool {
        matches!(self.room, Room::List(_))
    }

    /// The value with this number in a grid.
    pub fn at(&self, index: usize) -> Value {
        match &self.room {
            Room::List(list) => list.get(index).cloned().unwrap_or(Value::Boolean(false)),
            Room::Range { steps, .. } => {
                let last = f64::from(steps.unwrap_or(2) - 1);
                self.between(index as f64 / last)
            }
        }
    }

    /// The value at this part of the axis, from 0 to 1.
    pub fn between(&self, part: f64) -> Value {
        match &self.room {
            Room::List(list) => {
                let index = (part * list.len() as f64) as usize;
                self.at(index.min(list.len() - 1))
            }
            Room::Range { from, to, unit, is_whole, scale, .. } => {
                let number = match scale {
                    Scale::Linear => from + (to - from) * part,
                    Scale::Log => from * (to / from).powf(part),
                };
                value(number, unit, *is_whole)
            }
        }
    }

    /// A value as a cell of the axis' column.
    pub fn cell(&self, value: &Value) -> Cell {
        if self.unit == Quantity::Text {
            return match value {
                Value::String(text) => Cell::Text(text.clone()),
                other => Cell::Text(other.to_string()),
            };
        }
        self.unit.cell(value)
    }

    /// A cell of the axis' column for people.
    pub fn shown(&self, cell: &Cell) -> String {
        let Cell::Number(number) = cell else {
            return if *cell == Cell::Empty { "-".to_owned() } else { cell.written() };
        };
        match self.unit {
            Quantity::Seconds => span(Duration::from_secs_f64(number.clamp(0.0, 1e9))),
            Quantity::Bytes => bytes(number.max(0.0) as u64),
            Quantity::Bps => rate(*number),
            Quantity::Hertz => format!("{} Hz", short(*number)),
            Quantity::Share => format!("{} %", short(number * 100.0)),
            Quantity::Text | Quantity::Bool | Quantity::Plain => short(*number),
        }
    }
}

/// Digits of a number in a range that count: a value between two others need not be more exact.
const DIGITS: i32 = 5;

fn value(number: f64, unit: &str, is_whole: bool) -> Value {
    if is_whole {
        return Value::Integer(number.round() as i64);
    }
    let digits = (DIGITS - 1 - number.abs().max(1e-300).log10().floor() as i32).clamp(0, 15);
    let size = 10f64.powi(digits);
    let rounded = (number * size).round() / size;
    match unit {
        "" => Value::Float(rounded),
        unit => Value::String(format!("{rounded} {unit}")),
    }
}

/// The range between two values of one unit.
fn range(from: &Value, to: &Value, scale: Scale, steps: Option<u32>) -> Result<Room, String> {
    let split = |value: &Value| match value {
        Value::Integer(number) => Some((*number as f64, String::new(), true)),
        Value::Float(number) => Some((*number, String::new(), false)),
        Value::String(text) => {
            let (number, unit) = split_number(text);
            Some((number.trim().parse().ok()?, unit.trim().to_owned(), false))
        }
        _ => None,
    };
    let expected = "expected two numbers of one unit, as in from = \"1 ms\", to = \"100 ms\"";
    let (Some((low, first, a)), Some((high, unit, b))) = (split(from), split(to)) else {
        return Err(expected.to_owned());
    };
    if first != unit {
        return Err(format!("the range goes from '{first}' to '{unit}'; {expected}"));
    }
    let is_sound = low.is_finite() && high.is_finite() && (low < high);
    if !is_sound {
        return Err(format!("{low} is not below {high}; {expected}"));
    }
    if scale == Scale::Log && low <= 0.0 {
        return Err("equal ratios begin above zero; expected from above 0, or scale = \"linear\"".to_owned());
    }
    Ok(Room::Range { from: low, to: high, unit, is_whole: a && b, scale, steps })
}
