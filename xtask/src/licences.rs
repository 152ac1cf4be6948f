//! Licences and duplicate versions of everything that we depend on, by the rules in `deny.toml`.
//!
//! The file has the form that cargo-deny reads; this check needs no downloaded program.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Checks every package of every lock file: licences of all, duplicate versions in the workspace.
pub fn run() -> Result<()> {
    let rules: toml::Table =
        std::fs::read_to_string("deny.toml").context("cannot read deny.toml")?.parse()?;
    let allowed = names(&rules, "licenses", "allow");
    let skipped = names(&rules, "bans", "skip");
    let workspace = packages("Cargo.toml")?;
    let mut all = workspace.clone();
    for lock in shell::output(Command::new("git").args(["ls-files", "*/Cargo.lock"]))?.lines() {
        all.extend(packages(&lock.replace("Cargo.lock", "Cargo.toml"))?);
    }
    let mut faults: Vec<String> = all.iter().filter_map(|package| fault(package, &allowed)).collect();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &workspace {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    for (name, found) in versions.iter().filter(|(name, found)| found.len() > 1 && !skipped.contains(**name))
    {
        let found: Vec<&str> = found.iter().copied().collect();
        faults.push(format!(
            "{name}: several versions ({}) and no entry in deny.toml's skip list",
            found.join(", ")
        ));
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    println!(
        "licences: {} packages, {} of them in the workspace, all allowed; no unlisted duplicate version",
        all.len(),
        workspace.len()
    );
    Ok(())
}

/// What is built, and the licence that its authors wrote down.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    licence: String,
}

/// The packages of the workspace, or of the crate beside it, that this manifest describes.
fn packages(manifest: &str) -> Result<BTreeSet<Package>> {
    // `cargo tree` tells what is built, for whatever platform; the lock file also has what no feature asks for.
    let tree = shell::output(shell::cargo().args([
        "tree",
        "--workspace",
        "--manifest-path",
        manifest,
        "--locked",
        "--target=all",
        "--edges=normal,build,dev",
        "--prefix=none",
        "--no-dedupe",
        "--format={p}|{l}",
    ]))?;
    let package = |line: &str| {
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let mut words = package.split_whitespace().map(str::to_owned);
        let mut word = || words.next().unwrap_or_else(|| "?".to_owned());
        Package { name: word(), version: word(), licence: licence.to_owned() }
    };
    let packages: BTreeSet<Package> = tree.lines().filter(|line| !line.is_empty()).map(package).collect();
    if packages.is_empty() {
        bail!("cargo tree lists no packages of {manifest}");
    }
    Ok(packages)
}

/// What is wrong with the licence of a package.
fn fault(package: &Package, allowed: &BTreeSet<String>) -> Option<String> {
    let Package { name, version, licence } = package;
    // Old packages write "MIT/Apache-2.0" for "MIT OR Apache-2.0".
    let Ok(expression) = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) else {
        return Some(format!("{name} {version}: {licence:?} is not an SPDX licence expression"));
    };
    let fits = expression.evaluate(|requirement| {
        allowed.contains(&requirement.license.to_string()) && requirement.addition.is_none()
            || allowed.contains(&requirement.to_string())
    });
    (!fits).then(|| format!("{name} {version}: licence {licence:?} is not in deny.toml's allow list"))
}

/// The strings, or the `name`/`crate` fields of the tables, in the array `section.key`.
fn names(rules: &toml::Table, section: &str, key: &str) -> BTreeSet<String> {
    let list = rules.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
    let name = |value: &toml::Value| {
        let value = value.get("crate").or_else(|| value.get("name")).unwrap_or(value);
        value.as_str().map(str::to_owned)
    };
    list.into_iter().flatten().filter_map(name).collect()
}
