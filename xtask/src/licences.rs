//! Licences and duplicate versions of everything that we depend on, by the rules in `deny.toml`.
//!
//! The file has the form that cargo-deny reads; this check needs no downloaded program.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// Checks every package of the lock file.
pub fn run() -> Result<()> {
    let rules: toml::Table =
        std::fs::read_to_string("deny.toml").context("cannot read deny.toml")?.parse()?;
    let allowed = names(&rules, "licenses", "allow");
    let skipped = names(&rules, "bans", "skip");
    // `cargo tree` tells what is built, for whatever platform; the lock file also has what no feature asks for.
    let tree =
        shell::output(shell::cargo().args(["tree", "--workspace", "--locked", "--target=all"]).args([
            "--edges=normal,build,dev",
            "--prefix=none",
            "--no-dedupe",
            "--format={p}|{l}",
        ]))?;
    let packages: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    if packages.is_empty() {
        bail!("cargo tree lists no packages");
    }

    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &packages {
        let (package, licence) = package.split_once('|').unwrap_or((package, ""));
        let mut words = package.split_whitespace();
        let (name, version) = (words.next().unwrap_or("?"), words.next().unwrap_or("?"));
        versions.entry(name).or_default().insert(version);
        // Old packages write "MIT/Apache-2.0" for "MIT OR Apache-2.0".
        match spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX) {
            Ok(expression) => {
                let fits = expression.evaluate(|requirement| {
                    allowed.contains(&requirement.license.to_string()) && requirement.addition.is_none()
                        || allowed.contains(&requirement.to_string())
                });
                if !fits {
                    faults.push(format!(
                        "{name} {version}: licence {licence:?} is not in deny.toml's allow list"
                    ));
                }
            }
            Err(_) => faults.push(format!("{name} {version}: {licence:?} is not an SPDX licence expression")),
        }
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
    println!("licences: {} packages, all allowed; no unlisted duplicate version", packages.len());
    Ok(())
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
