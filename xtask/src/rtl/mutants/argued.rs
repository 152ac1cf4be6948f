//! Faults of which somebody has found out that nothing can be seen of them, by argument, where yosys cannot prove it.
//!
//! `rtl/BLOCK/mutants.toml` has them, each with its reason. The comparison holds against the argument: where it finds one, or where the
//! fault is none of those drawn (the RTL has changed), the list is wrong and must be looked at.

use super::super::blocks::Block;
use super::value;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;

/// The list of a block.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// With which the faults were drawn; others draw other faults.
    seed: u64,
    same: Vec<Fault>,
}

/// One of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    /// What the fault is and where, as [`place`] puts it.
    fault: String,
    /// Why nothing can be seen of it.
    why: String,
}

/// The numbers of those of `faults` that the block's list has; `alive` are those that the comparison does not find.
pub fn of(block: &Block, seed: u64, faults: &[&str], alive: &[usize]) -> Result<Vec<usize>> {
    let path = block.folder().join("mutants.toml");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(Vec::new()) };
    find(&text, seed, faults, alive).with_context(|| path.display().to_string())
}

fn find(text: &str, seed: u64, faults: &[&str], alive: &[usize]) -> Result<Vec<usize>> {
    let list: List = toml::from_str(text)?;
    if list.seed != seed {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for Fault { fault, why } in &list.same {
        if why.trim().is_empty() {
            bail!("{fault}: why is nothing to be seen of it?");
        }
        let Some(number) =
            faults.iter().zip(1..).find(|(drawn, _)| place(drawn) == *fault).map(|(_, number)| number)
        else {
            bail!("{fault}: no such fault was drawn; has the RTL changed?");
        };
        if !alive.contains(&number) {
            bail!(
                "{fault}: the comparison finds it (number {number}), so that something is to be seen of it"
            );
        }
        found.push(number);
    }
    Ok(found)
}

/// What a fault is and where: its mode, the cell, the port, the bits.
fn place(fault: &str) -> String {
    let parts = ["-mode", "-cell", "-port", "-portbit", "-ctrlbit"].map(|of| value(fault, of));
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::find;

    const FAULTS: [&str; 2] = [
        "mutate -ctrl mutant 8 1 -mode inv -module x -cell $3 -port Q -portbit 7 -src x.sv:1.2-3.4",
        "mutate -ctrl mutant 8 2 -mode cnot0 -module x -cell $4 -port EN -portbit 5 -ctrlbit 4",
    ];

    fn list(fault: &str, why: &str) -> String {
        format!("seed = 1\n[[same]]\nfault = {fault:?}\nwhy = {why:?}\n")
    }

    #[test]
    fn an_argument_is_found_by_the_place_of_its_fault() {
        assert_eq!(find(&list("cnot0 $4 EN 5 4", "never full"), 1, &FAULTS, &[2]).unwrap(), [2]);
        assert_eq!(find(&list("inv $3 Q 7", "only compared"), 1, &FAULTS, &[1, 2]).unwrap(), [1]);
    }

    #[test]
    fn another_seed_draws_other_faults() {
        assert!(find(&list("inv $3 Q 8", "only compared"), 2, &FAULTS, &[1]).unwrap().is_empty());
    }

    #[test]
    fn an_argument_that_does_not_hold_is_refused() {
        let refused = |text: &str, said: &str| {
            let error = find(text, 1, &FAULTS, &[1]).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        };
        refused(&list("cnot0 $4 EN 5 4", "never full"), "the comparison finds it (number 2)");
        refused(&list("inv $3 Q 8", "only compared"), "no such fault");
        refused(&list("inv $3 Q 7", " "), "why is nothing to be seen");
    }
}
