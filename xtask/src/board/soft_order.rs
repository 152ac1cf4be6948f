//! Where the soft core's code lies: at places of its cache of code, which is direct-mapped, where functions that alternate do not take each
//! other's lines ([`super::placement`]).
//!
//! Memory is plenty, so that a function lies behind whatever gap its place takes.

use super::placement::{LINE, Program, SETS};
use super::{count, soft_work};
use crate::shell;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// What `memory.x` includes.
const ORDER: &str = "boards/softcore/order.x";
/// Lies in front of all others, in a section of its own.
const FIXED: &str = "trap";
/// How a name ends that tells a hash, which changes with the code: `17h`, 16 digits, `E`.
const HASH: (&str, usize) = ("17h", 20);

/// Leaves the order to the linker; returns the one that there was.
pub fn forget() -> Result<String> {
    let before = std::fs::read_to_string(shell::root().join(ORDER)).with_context(|| ORDER.to_owned())?;
    put("")?;
    Ok(before)
}

/// Writes an order down.
pub fn put(text: &str) -> Result<()> {
    std::fs::write(shell::root().join(ORDER), text).with_context(|| ORDER.to_owned())
}

/// Has the image do its work, and writes where its functions are to lie; the next build uses it.
pub fn write(hardware: &Path, image: &Path) -> Result<()> {
    let functions = count::symbols(image, str::to_owned)?;
    let (mut code, mut program) = (Code::new(&functions), Program::default());
    for way in soft_work::each(hardware, image, "way")? {
        program.add(&code.lines(&way));
    }
    ensure!(code.executed.len() > 50, "only {} functions were executed", code.executed.len());
    let fixed: Vec<bool> = code.executed.iter().map(|function| function.name == FIXED).collect();
    let mut places: Vec<usize> =
        code.executed.iter().map(|function| (function.start / LINE) as usize % SETS).collect();
    let (before, after) = program.place(&mut places, &fixed);
    let mut placed: Vec<Placed<'_>> = (code.executed.iter().zip(&places))
        .filter(|(function, _)| function.name != FIXED)
        .map(|(function, place)| Placed {
            name: function.name,
            place: *place,
            lines: function.len.div_ceil(LINE) as usize,
        })
        .collect();
    let (text, lines) = script(&mut placed);
    put(&text)?;
    println!(
        "{ORDER}: {} functions in {} KB; filling their lines costs {:.0} % of what it did",
        placed.len(),
        lines * LINE as usize / 1024,
        100.0 * after / before
    );
    Ok(())
}

/// A function that is executed.
struct Executed<'a> {
    name: &'a str,
    start: u32,
    len: u32,
}

/// The functions of an image, and those that are executed, by their numbers.
struct Code<'a> {
    functions: &'a count::Functions,
    executed: Vec<Executed<'a>>,
    /// By where a function starts.
    numbers: HashMap<u64, usize>,
}

impl<'a> Code<'a> {
    fn new(functions: &'a count::Functions) -> Code<'a> {
        Code { functions, executed: Vec::new(), numbers: HashMap::new() }
    }

    /// The functions that a way came into, and the lines within them. Each is to begin with a line, wherever it is now.
    fn lines(&mut self, way: &[u8]) -> Vec<(usize, u32)> {
        let mut lines = Vec::with_capacity(way.len() / 4);
        for piece in way.as_chunks().0 {
            let piece = u32::from_le_bytes(*piece);
            // A piece may begin before the function that is executed.
            let within = u64::from(piece) + 7;
            let Some((start, (end, name))) = self.functions.range(..=within).next_back() else { continue };
            if u64::from(piece) >= *end {
                continue;
            }
            let executed = &mut self.executed;
            let number = *self.numbers.entry(*start).or_insert_with(|| {
                executed.push(Executed { name, start: *start as u32, len: (end - start) as u32 });
                executed.len() - 1
            });
            lines.push((number, piece.saturating_sub(*start as u32) / LINE));
        }
        lines
    }
}

/// Where a function is to lie.
struct Placed<'a> {
    name: &'a str,
    place: usize,
    lines: usize,
}

/// What tells the linker, and the lines that all takes. Behind each function comes the one whose place is next.
fn script(functions: &mut [Placed<'_>]) -> (String, usize) {
    let mut text = String::from(
        "/* Functions that are executed, each at its place of the cache, made by `cargo xtask board softcore order`. What is not here comes\n   behind; a name that is no longer there does no harm. */\n",
    );
    let (mut line, mut known) = (0, BTreeSet::new());
    for first in 0..functions.len() {
        let gap = |function: &Placed<'_>| (function.place + SETS - line % SETS) % SETS;
        let (nearest, _) = (functions[first..].iter().enumerate())
            .min_by_key(|(_, function)| gap(function))
            .unwrap_or((0, &functions[first]));
        functions.swap(first, first + nearest);
        let function = &functions[first];
        line += gap(function) + function.lines;
        let pattern = pattern(function.name);
        if known.insert(pattern.clone()) {
            let (place, size) = (function.place * LINE as usize, SETS * LINE as usize);
            text.push_str(&format!(". += ({place:#x} - .) & {:#x};\n*({pattern})\n", size - 1));
        }
    }
    (text, line)
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
    fn a_way_is_lines_of_functions_wherever_these_begin() {
        let functions = count::Functions::from(
            [(0x104, 0x150, "one"), (0x200, 0x210, "two"), (0x300, 0x310, "never")]
                .map(|(start, end, name)| (start, (end, name.to_owned()))),
        );
        let mut code = Code::new(&functions);
        // The second function, the first from its begin, its line 1, and what is in none.
        let way: Vec<u8> =
            [0x200_u32, 0x100, 0x128, 0x160, 0x208].iter().flat_map(|at| at.to_le_bytes()).collect();
        assert_eq!(code.lines(&way), [(0, 0), (1, 0), (1, 1), (0, 0)]);
        let names: Vec<&str> = code.executed.iter().map(|function| function.name).collect();
        assert_eq!(names, ["two", "one"]);
    }

    #[test]
    fn functions_lie_at_their_places_with_small_gaps() {
        let mut functions = [("late", 500, 20), ("early", 3, 2), ("wraps", 8, 1)]
            .map(|(name, place, lines)| Placed { name, place, lines });
        let (text, lines) = script(&mut functions);
        let places: Vec<&str> = text.lines().filter(|line| line.starts_with('.')).collect();
        assert_eq!(
            places,
            [". += (0x60 - .) & 0x3fff;", ". += (0x100 - .) & 0x3fff;", ". += (0x3e80 - .) & 0x3fff;"]
        );
        assert_eq!(lines, 520);
        assert!(text.ends_with("*(.text*.late)\n"), "{text}");
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
