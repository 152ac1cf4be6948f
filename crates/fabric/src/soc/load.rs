//! Reads a chip file.

use super::{Soc, SocError, check, missing};
use crate::document;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The largest file that is read, in bytes; a chip takes a hundredth of it.
const MAX_FILE: usize = 1 << 20;

/// Reads the description of a chip and checks that it hangs together.
///
/// # Errors
/// The first mistake with its line and column: what the syntax of TOML, the keys, the units or the chip itself forbid.
pub fn load(text: &str) -> Result<Soc, SocError> {
    if text.len() > MAX_FILE {
        return Err(SocError::at(
            text,
            &(0..0),
            format!("{} bytes; expected at most {MAX_FILE}", text.len()),
        ));
    }
    let soc = read(text)?;
    if let Some(name) = idle_clock(&soc) {
        let what =
            format!("clock {name:?} paces nothing; expected something that names it, or no such clock");
        return Err(SocError::at(text, &place(text, &format!("clocks.{name}")), what));
    }
    if let Some((key, what)) = slow_clock(&soc) {
        return Err(SocError::at(text, &place(text, &key), what));
    }
    check::alternatives(&soc).map_err(|fault| SocError::at(text, &fault.span, fault.what))?;
    Ok(soc)
}

/// Reads a part of a chip, whose clocks may pace only what is not there.
pub(super) fn load_part(text: &str) -> Result<Soc, SocError> {
    read(text)
}

/// Reads what each part says for itself, and what one says of another.
fn read(text: &str) -> Result<Soc, SocError> {
    let mut soc: Soc = document::read(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        let missing = if error.message().starts_with("missing field") { missing::all(text) } else { None };
        missing.unwrap_or_else(|| SocError::at(text, &span, error.message()))
    })?;
    check::check(&soc).map_err(|fault| SocError::at(text, &fault.span, fault.what))?;
    let unknown = soc.links.unknown_clocks(|clock| soc.clocks.contains_key(clock));
    if let Some(fault) = soc.links.faults().first().or(unknown.first()) {
        let span = place(text, &format!("links.{}", fault.key));
        return Err(SocError::at(text, &span, fault.to_string()));
    }
    let frequencies: BTreeMap<String, _> =
        soc.clocks.keys().filter_map(|name| Some((name.clone(), soc.frequency(name)?))).collect();
    soc.links.resolve(&|clock: &str| frequencies.get(clock).copied());
    Ok(soc)
}

/// A clock that nothing names.
fn idle_clock(soc: &Soc) -> Option<String> {
    let keys = soc.keys();
    let named = |clock: &str| {
        let paced = |value: &str| value.rsplit_once("@ ").is_some_and(|(_, name)| name == clock);
        keys.iter().any(|(key, value)| {
            paced(value) || (value == clock && (key.ends_with("clock") || key.ends_with(".from")))
        })
    };
    soc.clocks.keys().find(|clock| !named(clock)).cloned()
}

/// A server that was measured on cores faster than their clock is.
fn slow_clock(soc: &Soc) -> Option<(String, String)> {
    soc.links.tcp.iter().find_map(|(name, server)| {
        let (rate, clock) = (server.core_rate?, soc.frequency(&server.clock.0)?);
        let what = format!("{rate:#}; expected at most the {clock:#} of the clock {:?}", server.clock.0);
        (rate.value() > clock.value() * (1.0 + 1e-9)).then(|| (format!("links.tcp.{name}.core_rate"), what))
    })
}

/// Where the value of a dotted key stands, or the nearest table above it.
fn place(text: &str, key: &str) -> Range<usize> {
    let Ok(root) = DeTable::parse(text) else { return 0..0 };
    let (mut table, mut span) = (root.get_ref(), root.span());
    let mut rest = key;
    while !rest.is_empty() {
        // A name may hold dots of its own, so the longest key that is there counts.
        let found = table
            .iter()
            .filter(|(name, _)| {
                let name: &str = name.get_ref();
                rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
            .max_by_key(|(name, _)| name.get_ref().len());
        let Some((name, value)) = found else { break };
        span = value.span();
        rest = rest.get(name.get_ref().len()..).unwrap_or("").trim_start_matches('.');
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    span
}

/// The JSON schema of a chip file, for editors that complete and check TOML.
pub fn json_schema() -> schemars::Schema {
    schemars::schema_for!(Soc)
}
