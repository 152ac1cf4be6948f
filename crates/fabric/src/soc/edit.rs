//! The same chip with values of its description replaced: "what if the memory ran at 400 MHz".
//!
//! A change names a key as the file has it, with dots between the levels (`endpoints.dram.width`), and a value as the file
//! would write it. `*` stands for every name of a level. A bare number counts cycles where the key does. The first
//! level may be written in the singular, and a clock stands for its frequency: `clock.ddr`.

use super::Soc;
use super::load::{load, load_part};
use std::fmt;
use toml::{Table, Value};

/// A change that the chip does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// The key as it was given.
    pub key: String,
    /// What is wrong and what was expected.
    pub what: String,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

impl std::error::Error for EditError {}

/// The levels that may be written in the singular.
const LEVELS: [(&str, &str); 6] = [
    ("clock", "clocks"),
    ("fabric", "fabrics"),
    ("bridge", "bridges"),
    ("endpoint", "endpoints"),
    ("core", "cores"),
    ("link", "links"),
];

/// The levels whose names are those of parts, each a table.
const PARTS: [&str; 6] = ["clocks", "fabrics", "bridges", "endpoints", "cores", "edma"];

impl Soc {
    /// The chip with each key set to its value, checked as a file would be.
    ///
    /// # Errors
    /// The first key that the chip does not have, or a value that it refuses.
    pub fn with(&self, changes: &[(String, String)]) -> Result<Soc, EditError> {
        Editor::new(self)?.with(changes)
    }

    /// Every key of the description that has a value, with dots between the levels, and the value as a file writes it.
    pub fn keys(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        if let Ok(Value::Table(whole)) = Value::try_from(self) {
            gather("", &whole, &mut found);
        }
        found
    }
}

/// A chip as a tree of values, to be changed many times.
pub(super) struct Editor {
    whole: Table,
    /// What changes leave as it is: it is not read again.
    kept: Option<Kept>,
}

/// What an [`Editor`] does not read again.
enum Kept {
    /// All links; changes are of memories, controllers and cores.
    Links(Soc),
    /// All but the links.
    Rest(Soc),
}

fn refuse(key: &str, what: impl fmt::Display) -> EditError {
    EditError { key: key.into(), what: what.to_string() }
}

impl Editor {
    /// For any change.
    pub(super) fn new(soc: &Soc) -> Result<Self, EditError> {
        Ok(Self { whole: tree(soc)?, kept: None })
    }

    /// For changes of these keys and no others: links are left out where no key is theirs, and the rest where all are.
    pub(super) fn of<'a>(soc: &Soc, keys: impl Iterator<Item = &'a str>) -> Result<Self, EditError> {
        let (mut links, mut rest) = (false, false);
        for key in keys {
            let link = key.split('.').next().is_some_and(|first| matches!(first.trim(), "link" | "links"));
            (links, rest) = (links || link, rest || !link);
        }
        let mut whole = tree(soc)?;
        let kept = match (links, rest) {
            (true, true) => None,
            (false, _) => {
                whole.remove("links");
                Some(Kept::Links(soc.clone()))
            }
            (true, false) => {
                whole.retain(|name, _| matches!(name, "chip" | "clocks" | "links"));
                Some(Kept::Rest(soc.clone()))
            }
        };
        Ok(Self { whole, kept })
    }

    /// The chip with each key set to its value.
    pub(super) fn with(&self, changes: &[(String, String)]) -> Result<Soc, EditError> {
        let mut whole = Value::Table(self.whole.clone());
        for (key, text) in changes {
            let mut levels: Vec<&str> = key.split('.').map(str::trim).collect();
            if let Some(first) = levels.first_mut()
                && let Some((_, full)) = LEVELS.iter().find(|(short, _)| short == first)
            {
                *first = full;
            }
            known(&whole, &levels, text.trim()).map_err(|what| refuse(key, what))?;
            set(&mut whole, &levels, text.trim()).map_err(|what| refuse(key, what))?;
        }
        let text = toml::to_string(&whole).map_err(|error| refuse("chip", error))?;
        let names = || changes.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
        let read = if self.kept.is_none() { load(&text) } else { load_part(&text) };
        let read = read.map_err(|error| refuse(&names(), error.what))?;
        Ok(match &self.kept {
            None => read,
            Some(Kept::Links(soc)) => Soc { links: soc.links.clone(), ..read },
            Some(Kept::Rest(soc)) => Soc { links: read.links, ..soc.clone() },
        })
    }
}

fn tree(soc: &Soc) -> Result<Table, EditError> {
    Table::try_from(soc).map_err(|error| refuse("chip", error))
}

fn gather(above: &str, table: &Table, found: &mut Vec<(String, String)>) {
    for (name, value) in table {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Table(inner) => gather(&key, inner, found),
            Value::String(text) => found.push((key, text.clone())),
            other => found.push((key, other.to_string())),
        }
    }
}

/// Whether the chip has a part of this name: no single value makes a new one.
fn known(whole: &Value, levels: &[&str], text: &str) -> Result<(), String> {
    let &[level, name] = levels else { return Ok(()) };
    let parts = PARTS.contains(&level).then(|| whole.get(level).and_then(Value::as_table)).flatten();
    match parts {
        Some(parts) if name != "*" && !parts.contains_key(name) && !written(text).is_table() => {
            let names: Vec<&str> = parts.keys().map(String::as_str).collect();
            Err(format!("nothing is named '{name}'; expected one of {}", names.join(", ")))
        }
        _ => Ok(()),
    }
}

/// Sets what the levels lead to below `place`.
fn set(place: &mut Value, levels: &[&str], text: &str) -> Result<(), String> {
    let Some((level, rest)) = levels.split_first() else {
        *place = replaced(place, text)?;
        return Ok(());
    };
    match place {
        Value::Table(table) if *level == "*" => {
            // A wildcard sets what is there; it adds a key nowhere.
            let mut count = 0;
            for inner in table.iter_mut().map(|(_, inner)| inner).filter(|inner| has(inner, rest)) {
                set(inner, rest, text)?;
                count += 1;
            }
            if count > 0 {
                Ok(())
            } else {
                Err(format!("nothing has {}; expected a key of the chip", rest.join(".")))
            }
        }
        Value::Table(table) => match table.get_mut(*level) {
            Some(inner) => set(inner, rest, text),
            // Keys that a file may leave out are added; whether they exist is for the loader to say.
            None if rest.is_empty() => {
                table.insert((*level).to_owned(), written(text));
                Ok(())
            }
            None => {
                let names: Vec<&str> = table.keys().map(String::as_str).collect();
                Err(format!("nothing is named '{level}'; expected one of {}", names.join(", ")))
            }
        },
        Value::Array(items) => match level.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
            Some(inner) => set(inner, rest, text),
            None => Err(format!("no item '{level}'; expected a number below {}", items.len())),
        },
        _ => Err(format!("'{level}' is below a value; expected the key to end before it")),
    }
}

fn has(place: &Value, levels: &[&str]) -> bool {
    match (levels.split_first(), place) {
        (None, _) => true,
        (Some((&"*", rest)), Value::Table(table)) => table.values().any(|inner| has(inner, rest)),
        (Some((level, rest)), Value::Table(table)) => table.get(*level).is_some_and(|inner| has(inner, rest)),
        _ => false,
    }
}

/// What takes the place of `old`.
fn replaced(old: &Value, text: &str) -> Result<Value, String> {
    match old {
        Value::String(old) => {
            let bare = text.parse::<f64>().is_ok();
            let (number, unit) = crate::units::split_number(old);
            // Other units are written back in the base unit, which is rarely the one that is meant.
            let cycles = bare && !number.is_empty() && unit.starts_with("cycle");
            Ok(Value::String(if cycles { format!("{text} {unit}") } else { text.to_owned() }))
        }
        Value::Table(clock) if clock.contains_key("frequency") || clock.contains_key("from") => {
            // A clock of its own from now on, whatever it derived from.
            Ok(Value::Table(Table::from_iter([("frequency".to_owned(), Value::String(text.to_owned()))])))
        }
        Value::Table(inner) => {
            let names: Vec<&str> = inner.keys().map(String::as_str).collect();
            Err(format!("is a table; expected one of its keys: {}", names.join(", ")))
        }
        Value::Float(_) => Ok(text.parse().map_or_else(|_| written(text), Value::Float)),
        _ => Ok(written(text)),
    }
}

/// A value as TOML would read it; text where it would read none.
fn written(text: &str) -> Value {
    let line = format!("value = {text}");
    let read = toml::from_str::<Table>(&line).ok().and_then(|mut table| table.remove("value"));
    read.unwrap_or_else(|| Value::String(text.to_owned()))
}
