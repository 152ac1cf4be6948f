//! `linerate lab sweep`: the same question to many worlds or chips.

use super::args::Output;
use super::error::{self, LabError};
use crate::fabric::builtin;
use clap::Args;
use linerate_lab::progress::Progress;
use linerate_lab::report::grid::GridFormat;
use linerate_lab::sweep::coordinator::{self, Course};
use linerate_lab::sweep::done;
use linerate_lab::sweep::journal::{Journal, Rows};
use linerate_lab::sweep::plan::{self, Plan};
use linerate_lab::sweep::report::Report;
use linerate_lab::sweep::table::{self, Table};
use linerate_lab::sweep::{parquet, worker};
use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// Items of `--quick`.
const QUICK: u64 = 200;
/// Lines of progress where there is no terminal.
const STEPS: u64 = 20;

/// Arguments of `lab sweep`.
#[derive(Args, Debug)]
pub struct Sweep {
    /// The sweep (docs/lab/sweep.md describes its keys)
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,

    /// Write the table there, as CSV; - for standard output. Beside it stands FILE.journal while the sweep runs, from which it goes
    /// on after whatever end. Default: the sweep's name with .csv, in this directory
    #[arg(long, value_name = "FILE.csv|-")]
    pub out: Option<PathBuf>,

    /// Write the table there too, as Parquet
    #[arg(long, value_name = "FILE.parquet")]
    pub parquet: Option<PathBuf>,

    /// Write the heat map there
    #[arg(long, value_name = "FILE.svg")]
    pub heat: Option<PathBuf>,

    /// Processes that work. Default: as many as there are cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Only so many items, spread over the whole sweep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,

    /// Only 200 items
    #[arg(long, conflicts_with = "limit")]
    pub quick: bool,

    /// Only these items, in this process and without a journal: one part of a sweep on many machines
    #[arg(long, value_name = "FIRST-LAST", conflicts_with_all = ["limit", "quick", "jobs"])]
    pub items: Option<String>,

    /// Say how many items and which columns there are, as JSON, and end
    #[arg(long, conflicts_with_all = ["items", "limit", "quick", "out", "parquet", "heat"])]
    pub plan: bool,

    /// Take items from standard input and give rows on standard output: what the sweep starts
    #[arg(long, hide = true, conflicts_with_all = ["items", "out", "parquet", "heat", "plan"])]
    pub worker: bool,

    /// Forms of the result.
    #[command(flatten)]
    pub output: Output,
}

/// Runs the command.
pub fn run(args: &Sweep) -> Result<(), LabError> {
    let chips = |name: &str| builtin::soc(name).map_err(|error| error.to_string());
    let plan = Plan::load(&args.file, &chips).map_err(|error| LabError::Asked(error.to_string()))?;
    if args.worker {
        return work(&plan);
    }
    if args.plan {
        let described = serde_json::json!({
            "title": plan.title, "digest": format!("{:016x}", plan.digest), "items": plan.items(), "columns": plan.columns,
        });
        return error::print(&error::json(&described)?);
    }
    if args.heat.is_some() && plan.picture.is_none() {
        return Err(one_key());
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| Path::new(args.file.file_stem().unwrap_or_default()).with_extension("csv"));
    let written = [
        ("--out", Some(out.as_path()).filter(|out| *out != Path::new("-"))),
        ("--parquet", args.parquet.as_deref()),
        ("--heat", args.heat.as_deref()),
        ("--html", args.output.html.as_deref()),
    ];
    error::check_outputs(&[&args.file], &written)?;
    let (rows, course) = match &args.items {
        Some(items) => (part(&plan, items, &out)?, Course::default()),
        None => all(&plan, args, &out)?,
    };
    finish(&plan, args, &out, &rows, &course)
}

fn one_key() -> LabError {
    LabError::Asked("a heat map has two keys; expected two [[axis]] at least".to_owned())
}

/// Serves a coordinator.
fn work(plan: &Plan) -> Result<(), LabError> {
    match worker::serve(plan, io::stdin().lock(), io::stdout().lock()) {
        // The coordinator is gone, and does not need the answer any more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|why| LabError::Failed(format!("orders: {why}"))),
    }
}

/// The rows of some items, worked on here.
fn part(plan: &Plan, items: &str, out: &Path) -> Result<Rows, LabError> {
    let items = plan::items(items, plan.items())
        .map_err(|why| LabError::Asked(format!("invalid value '{items}' for '--items': {why}")))?;
    if out != Path::new("-") {
        keep_longer(out, (items.end - items.start) as usize)?;
    }
    Ok(items.map(|item| (item, plan.run(item))).collect())
}

/// The rows of all items that are asked for, by processes.
fn all(plan: &Plan, args: &Sweep, out: &Path) -> Result<(Rows, Course), LabError> {
    let failed = |error: &dyn std::fmt::Display| LabError::Failed(error.to_string());
    if out == Path::new("-") {
        let what = "a journal needs a file beside the table; expected --out FILE.csv, or --items FIRST-LAST";
        return Err(LabError::Asked(what.to_owned()));
    }
    let limit = if args.quick { Some(QUICK) } else { args.limit };
    let items = wanted(plan.items(), limit);
    if limit.is_some() {
        keep_longer(out, items.len())?;
    }
    let (mut journal, mut rows) = Journal::open(&journal_of(out), plan).map_err(|error| failed(&error))?;
    let found = done::rows(out, plan);
    rows.extend(items.iter().filter_map(|item| Some((*item, found.get(item)?.clone()))));
    if items.iter().all(|item| rows.contains_key(item) && found.contains_key(item)) {
        // Where nobody reads it, the answer is the same.
        drop(writeln!(
            io::stderr(),
            "{} has all {} items already: nothing is left to do",
            out.display(),
            items.len()
        ));
    }
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let file = args.file.clone();
    let command = move || {
        let mut command = Command::new(&program);
        command.args(["lab", "sweep", "--worker"]).arg(&file);
        command
    };
    let jobs = args.jobs.map_or_else(cores, usize::from);
    let total = items.len() as u64;
    let mut progress = Progress::new("sweep", total);
    let (mut done, mut step) = (0, 0);
    let told = |more: u64| {
        done += more;
        if done < total && done * STEPS / total > step {
            step = done * STEPS / total;
            progress.begin(&format!("{done} of {total} items are done"));
        }
        progress.done(more);
    };
    let course = coordinator::run(plan, &items, jobs, &command, &mut journal, &mut rows, told)
        .map_err(|error| failed(&error))?;
    // An earlier run may have done more than this one is asked for.
    let wanted: std::collections::BTreeSet<u64> = items.into_iter().collect();
    let kept = rows.len();
    rows.retain(|item, _| wanted.contains(item));
    write_table(plan, out, &rows)?;
    match kept - rows.len() {
        0 => journal.remove().map_err(|error| failed(&error))?,
        // Where nobody reads it, the journal stays all the same.
        more => drop(writeln!(
            io::stderr(),
            "{} keeps {more} items that this run was not asked for; a run that asks for them goes on from there",
            journal_of(out).display()
        )),
    }
    Ok((rows, course))
}

/// The numbers of the items that are asked for: one by chance in each of as many equal parts, so that points and seeds vary.
fn wanted(all: u64, limit: Option<u64>) -> Vec<u64> {
    let count = limit.unwrap_or(all).min(all).max(1);
    let begin = |part: u64| (u128::from(part) * u128::from(all) / u128::from(count)) as u64;
    let chance = |part: u64| part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (0..count.min(all)).map(|part| begin(part) + chance(part) % (begin(part + 1) - begin(part))).collect()
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The journal beside a table.
fn journal_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// A short run does not replace the table of a longer one.
fn keep_longer(out: &Path, rows: usize) -> Result<(), LabError> {
    let Ok(file) = File::open(out) else { return Ok(()) };
    let is_row = |line: &io::Result<String>| line.as_ref().is_ok_and(|line| !line.starts_with('#'));
    // One of them has the names of the columns.
    let found = io::BufReader::new(file).lines().take_while(io::Result::is_ok).filter(is_row).count();
    let found = found.saturating_sub(1);
    if found <= rows {
        return Ok(());
    }
    let what = "expected another --out, or a file that may be replaced";
    let out = out.display();
    Err(LabError::Asked(format!("{out} has {found} rows, and this run would leave {rows} of them; {what}")))
}

/// Writes the table whole or not at all.
fn write_table(plan: &Plan, out: &Path, rows: &Rows) -> Result<(), LabError> {
    let failed = |why| LabError::Write { to: out.display().to_string(), why };
    let mut part = out.as_os_str().to_owned();
    part.push(".part");
    let mut file = File::create(&part).map_err(failed)?;
    let text = table::csv(plan, rows);
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&part, out).map_err(failed)?;
    done::note(out, plan, &text).map_err(failed)
}

/// Writes what else is asked for, and says what was found.
fn finish(plan: &Plan, args: &Sweep, out: &Path, rows: &Rows, course: &Course) -> Result<(), LabError> {
    let is_part = args.items.is_some();
    if is_part && out == Path::new("-") {
        return error::print(&table::csv(plan, rows));
    }
    if is_part {
        write_table(plan, out, rows)?;
    }
    let table = Table::new(plan, rows);
    if let Some(file) = &args.parquet {
        error::write(file, parquet::write(&table))?;
    }
    let report = Report::new(plan, &table, course);
    if let Some(file) = &args.heat {
        let svg = report.picture().ok_or_else(one_key)?;
        error::write(file, svg)?;
    }
    if let Some(file) = &args.output.html {
        error::write(file, report.page().map_err(|why| LabError::Failed(why.to_string()))?)?;
    }
    if args.output.json {
        return error::print(&error::json(&report)?);
    }
    error::print(&report.grid().render(GridFormat::Terminal, crate::output::width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_spread_over_all() {
        let check = |all: u64, limit: Option<u64>, len: usize| {
            let items = wanted(all, limit);
            assert_eq!(items.len(), len, "{all} {limit:?}");
            for (part, item) in (0..).zip(&items) {
                let width = all as f64 / len as f64;
                let begin = part as f64 * width;
                assert!((begin.floor()..begin + width).contains(&(*item as f64)), "{all} {limit:?}: {item}");
            }
        };
        check(10, None, 10);
        check(10, Some(20), 10);
        check(10, Some(3), 3);
        check(100_000, Some(200), 200);
        assert_eq!(wanted(3, None), [0, 1, 2]);
    }
}
