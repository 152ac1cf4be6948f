//! Where the soft core's code lies: functions in the order in which they are executed, for a cache of code that is direct-mapped.
//!
//! What a loop executes, one function behind the other, then lies in other lines of the cache as far as it fits. Where the linker
//! puts functions by itself, some that alternate share their lines: sending filled 118 lines of code a segment that way, and 54 to 68 so.

use super::{OUT, count};
use crate::shell;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// What `memory.x` includes.
const ORDER: &str = "boards/softcore/order.x";
/// What is executed: requests first, as they execute most code.
const MEASURED: [&[&str]; 4] =
    [&["requests"], &["closing"], &["send", "without-offloads"], &["receive", "without-offloads"]];
/// How a name ends that tells a hash, which changes with the code: `17h`, 16 digits, `E`.
const HASH: (&str, usize) = ("17h", 20);

/// Leaves the order to the linker.
pub fn forget() -> Result<()> {
    std::fs::write(shell::root().join(ORDER), "").with_context(|| ORDER.to_owned())
}

/// Has the image do its work, and writes the order of its functions; the next build uses it.
pub fn write(hardware: &Path, image: &Path) -> Result<()> {
    let functions = count::symbols(image, str::to_owned)?;
    let (mut patterns, mut known) = (Vec::new(), BTreeSet::new());
    for measured in MEASURED {
        let file = Path::new(OUT).join("softcore-order-counts");
        let mut command = Command::new(hardware);
        command.arg(image).arg("measure").args(measured).arg(format!("counts={}", file.display()));
        println!("{}: {}", measured.join(" "), shell::output(command.stderr(Stdio::null()))?.trim());
        let counts = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for name in in_order(&counts, &functions)? {
            let pattern = pattern(name);
            if known.insert(pattern.clone()) {
                patterns.push(pattern);
            }
        }
    }
    ensure!(patterns.len() > 50, "only {} functions were executed", patterns.len());
    let mut text = String::from(
        "/* Functions in the order in which they are executed, made by `cargo xtask board softcore order`. What is not here comes behind; a\n   name that is no longer there does no harm. */\n",
    );
    for pattern in &patterns {
        text.push_str(&format!("*({pattern})\n"));
    }
    std::fs::write(shell::root().join(ORDER), text).with_context(|| ORDER.to_owned())?;
    println!("{ORDER}: {} functions", patterns.len());
    Ok(())
}

/// The functions of a file of counts, by when they were first executed.
fn in_order<'a>(counts: &str, functions: &'a count::Functions) -> Result<Vec<&'a str>> {
    let mut firsts = BTreeMap::new();
    for line in counts.lines().skip(1) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [address, _, _, _, _, first] = *fields else { anyhow::bail!("{line:?} has not six fields") };
        let address = u64::from_str_radix(address, 16)?;
        if let Some(name) = count::function_at(functions, address) {
            let first: u64 = first.parse()?;
            let at = firsts.entry(name).or_insert(first);
            *at = first.min(*at);
        }
    }
    let mut names: Vec<(&str, u64)> = firsts.into_iter().collect();
    names.sort_by_key(|(_, first)| *first);
    Ok(names.into_iter().map(|(name, _)| name).collect())
}

/// The section of a function, with stars for what changes with the code or the compiler.
fn pattern(name: &str) -> String {
    let (mark, len) = HASH;
    // The compiler's own copies have a number behind the hash.
    let hash = name.rfind(mark).filter(|at| name.len() >= at + len);
    let stem = match hash {
        Some(at) => format!("{}*", &name[..at + mark.len()]),
        None => name.to_owned(),
    };
    // Names of the newer kind tell their crates with a hash each: `CscB4ypgrvJIh_4core`.
    let mut pieces = stem.split("Cs");
    // The compiler says in between what it thinks of a function: `.text.hot.`.
    let mut pattern = format!(".text*.{}", pieces.next().unwrap_or_default());
    for piece in pieces {
        match piece.split_once('_') {
            Some((hash, rest))
                if name.starts_with("_R") && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                pattern.push_str("Cs*_");
                pattern.push_str(rest);
            }
            _ => {
                pattern.push_str("Cs");
                pattern.push_str(piece);
            }
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_by_when_they_were_first_executed() {
        let functions = count::Functions::from(
            [(0x100, 0x110, "later"), (0x200, 0x210, "first"), (0x300, 0x310, "never")]
                .map(|(start, end, name)| (start, (end, name.to_owned()))),
        );
        let counts = "2\n100 4 6 2 0 30\n10e 2 2 0 0 7\n200 1 1 0 0 0\n210 1 1 0 0 1\n";
        assert_eq!(in_order(counts, &functions).unwrap(), ["first", "later"]);
        assert!(in_order("2\n100 4 6 2 0\n", &functions).is_err());
    }

    #[test]
    fn names_lose_what_changes_with_the_code() {
        for (name, expected) in [
            ("memcpy", ".text*.memcpy"),
            ("_ZN4Csx_5first17h0123456789abcdefE", ".text*._ZN4Csx_5first17h*"),
            ("_ZN5first17h0123456789abcdefE.1692", ".text*._ZN5first17h*"),
            ("_RNvNtCscB4ypgrvJIh_4core3str", ".text*._RNvNtCs*_4core3str"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }
}
