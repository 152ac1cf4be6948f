//! `rtl/regs/*.toml`: registers, descriptors and app words, and what is generated from them: a SystemVerilog package, constants
//! for the driver, a manual page.

mod manual;
mod rust;
mod verilog;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// One description. The head of `rtl/regs/mcdma.toml` says what the keys mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    block: Space,
    #[serde(default)]
    bank: Vec<Bank>,
    register: Vec<Register>,
    #[serde(default)]
    descriptor: Vec<Descriptor>,
    #[serde(default)]
    app: Vec<App>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Space {
    name: String,
    size: u64,
    text: String,
    /// The module of `crates/nic` that the constants become, from `crates/nic/src`.
    rust: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bank {
    name: String,
    base: u64,
    stride: u64,
    count: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Register {
    name: String,
    #[serde(default)]
    bank: Option<String>,
    offset: u64,
    access: String,
    reset: u64,
    /// How many there are, a word behind each other; 1 if not given.
    #[serde(default = "one")]
    count: u64,
    text: String,
    fields: Vec<Field>,
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    bits: String,
    #[serde(default)]
    access: Option<String>,
    #[serde(default)]
    reset: u64,
    text: String,
    #[serde(default)]
    values: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Descriptor {
    name: String,
    bytes: u64,
    alignment: u64,
    text: String,
    words: Vec<Word>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    name: String,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    written_by: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct App {
    name: String,
    layout: u64,
    direction: String,
    text: String,
    words: Vec<Word>,
}

impl Field {
    /// Highest and lowest bit.
    fn range(&self) -> Result<(u32, u32)> {
        let (high, low) = self.bits.split_once(':').unwrap_or((&self.bits, &self.bits));
        let range = (high.parse()?, low.parse()?);
        ensure!(range.0 >= range.1 && range.0 < 32, "bits {:?}: not high:low of 32", self.bits);
        Ok(range)
    }

    fn mask(&self) -> Result<u64> {
        let (high, low) = self.range()?;
        Ok(((1u64 << (high - low + 1)) - 1) << low)
    }

    /// The values by number.
    fn by_number(&self) -> Vec<(&str, u64)> {
        let mut values: Vec<_> = self.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        values.sort_by_key(|(_, value)| *value);
        values
    }
}

/// Generates everything; with `check` only compares.
pub fn run(check: bool) -> Result<()> {
    let mut paths: Vec<_> =
        fs::read_dir("rtl/regs")?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let mut pages = String::from(manual::HEAD);
    let mut stale = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path)?;
        let description: Description = toml::from_str(&text).with_context(|| path.display().to_string())?;
        validate(&description).with_context(|| path.display().to_string())?;
        let name = &description.block.name;
        keep(&format!("rtl/common/rtl/{name}_pkg.sv"), &verilog::package(&description)?, check, &mut stale)?;
        let rust = format!("crates/nic/src/{}", description.block.rust);
        keep(&rust, &rust::module(&description)?, check, &mut stale)?;
        pages.push_str(&manual::page(&description)?);
    }
    keep("docs/rtl/registers.md", &pages, check, &mut stale)?;
    if !stale.is_empty() {
        bail!("not what rtl/regs says: {}; `cargo xtask rtl regs` writes them", stale.join(", "));
    }
    println!(
        "regs: {} descriptions{}",
        paths.len(),
        if check { ", all generated files are up to date" } else { "" }
    );
    Ok(())
}

fn keep(path: &str, text: &str, check: bool, stale: &mut Vec<String>) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    if check {
        stale.push(path.to_owned());
        return Ok(());
    }
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).context(path.to_owned())
}

/// What a description must not be: overlapping, beyond its space, or with a reset value that contradicts its fields.
fn validate(description: &Description) -> Result<()> {
    let mut taken = BTreeSet::new();
    for register in &description.register {
        let bank = register.bank.as_ref().map(|name| {
            description.bank.iter().find(|bank| bank.name == *name).with_context(|| format!("no bank {name}"))
        });
        let bank = bank.transpose()?;
        let base = bank.map_or(0, |bank| bank.base);
        for index in 0..register.count {
            let at = base + register.offset + 4 * index;
            ensure!(at % 4 == 0 && at < description.block.size, "{}: offset {at:#x}", register.name);
            ensure!(taken.insert(at), "{}: {at:#x} is another register's", register.name);
        }
        ensure!(
            bank.is_none_or(|bank| register.offset + 4 * register.count <= bank.stride),
            "{}: beyond the bank's stride",
            register.name
        );
        let fields = reset_of(&register.fields).with_context(|| register.name.clone())?;
        ensure!(
            fields == register.reset,
            "{}: reset {:#x}, its fields say {fields:#x}",
            register.name,
            register.reset
        );
        let accesses = [Some(register.access.as_str())]
            .into_iter()
            .chain(register.fields.iter().map(|field| field.access.as_deref()));
        for access in accesses.flatten() {
            ensure!(["rw", "ro", "w1c", "w1s"].contains(&access), "{}: access {access:?}", register.name);
        }
    }
    let words = description.descriptor.iter().flat_map(|descriptor| &descriptor.words);
    for word in words.chain(description.app.iter().flat_map(|app| &app.words)) {
        reset_of(&word.fields).with_context(|| word.name.clone())?;
    }
    for descriptor in &description.descriptor {
        for word in &descriptor.words {
            let fits = word.offset % 4 == 0 && word.offset + 4 <= descriptor.bytes;
            ensure!(fits, "{}.{}: offset {:#x}", descriptor.name, word.name, word.offset);
        }
    }
    Ok(())
}

/// The reset values of fields together; an error if two fields overlap or a value does not fit.
fn reset_of(fields: &[Field]) -> Result<u64> {
    let (mut taken, mut reset) = (0, 0);
    for field in fields {
        let mask = field.mask()?;
        ensure!(taken & mask == 0, "{} overlaps another field", field.name);
        taken |= mask;
        let value = field.reset << field.range()?.1;
        ensure!(value & !mask == 0, "{}: reset does not fit", field.name);
        for (name, value) in &field.values {
            ensure!(value << field.range()?.1 & !mask == 0, "{}.{name} does not fit", field.name);
        }
        reset |= value;
    }
    Ok(reset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(register: &str, fault: Option<&str>) {
        let text = format!(
            "[block]\nname = \"x\"\nsize = 16\ntext = \"\"\nrust = \"x.rs\"\n[[register]]\nname = \"A\"\noffset = 0\naccess = \"rw\"\n\
             reset = 0\ntext = \"\"\nfields = []\n[[register]]\nname = \"B\"\naccess = \"rw\"\ntext = \"\"\n{register}"
        );
        let description: Description = toml::from_str(&text).unwrap();
        let found = validate(&description).err().map(|error| format!("{error:#}"));
        match fault {
            None => assert_eq!(found, None),
            Some(fault) => assert!(found.as_ref().is_some_and(|found| found.contains(fault)), "{found:?}"),
        }
    }

    #[test]
    fn a_description_that_contradicts_itself_is_refused() {
        let field = |bits: &str, reset: u64| {
            format!("{{ name = \"F\", bits = \"{bits}\", reset = {reset}, text = \"\" }}")
        };
        check(&format!("offset = 4\nreset = 6\nfields = [{}]", field("2:1", 3)), None);
        check(&format!("offset = 4\nreset = 5\nfields = [{}]", field("2:1", 3)), Some("its fields say 0x6"));
        check(&format!("offset = 4\nreset = 0\nfields = [{}]", field("2:1", 4)), Some("does not fit"));
        check(&format!("offset = 4\nreset = 0\nfields = [{}]", field("1:2", 0)), Some("not high:low"));
        check(&format!("offset = 4\nreset = 0\nfields = [{0}, {0}]", field("1", 0)), Some("overlaps"));
        check("offset = 0\nreset = 0\nfields = []", Some("another register's"));
        check("offset = 16\nreset = 0\nfields = []", Some("offset 0x10"));
        check("offset = 8\ncount = 3\nreset = 0\nfields = []", Some("offset 0x10"));
        check("offset = 4\nbank = \"Q\"\nreset = 0\nfields = []", Some("no bank Q"));
    }
}
