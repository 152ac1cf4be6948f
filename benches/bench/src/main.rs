//! `cargo xtask bench`: measures, prints a table, writes JSON, a page with plots and `docs/BENCHMARKS.md`.

use anyhow::{Context, Result, bail};
use bench::files::Files;
use bench::peers::Peers;
use bench::report::Report;
use bench::rows::{Contender, Row};
use bench::server::Tools;
use bench::session::{self, Amount};
use bench::verdict::judge;
use bench::{chart, html, page, rows, spent, table};
use linerate_lab::measure::{machine, place};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

const USAGE: &str = "usage: cargo xtask bench [ROW ...] [OPTION ...]

  ROW              measure the rows whose name contains ROW; without any, all, and write docs/BENCHMARKS.md with its picture
  --list           print the names of the rows
  --rounds N       rounds of each row (default 3, or as many as fit --minutes)
  --seconds S      seconds of a measurement (default 2, and 1 where requests are counted)
  --minutes M      most minutes for all, building included (default 15)
  --json FILE      write the figures there (default target/bench/report.json)
  --html FILE      write a page with plots there (default target/bench/report.html)
  --from FILE      measure nothing: judge again and write again what a run left as JSON
  --long           measure 4 GiB over FTP, files in memory (-tmpfs), out of the page cache (-cold) and stored on disk (-disk), and
                   the sweep over settings (`sweep`), too
  --profile        measure each contender once more while perf samples its stacks, and say where its processor time goes
  --unpinned       leave cores to the scheduler, which may put client and server on one
  --linerate FILE  the program that is measured (default target/release/linerate)
  --smoke          two rows, a round of a second each, to see that all works
";

/// Rows of `--smoke`: with a floor, with servers that are fetched, and without peers that take minutes to build.
const SMOKE: [&str; 2] = ["tap-out", "http-354-keep-64"];

#[derive(Default)]
struct Options {
    rows: Vec<String>,
    help: bool,
    list: bool,
    rounds: Option<u32>,
    seconds: Option<u32>,
    minutes: Option<u32>,
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    from: Option<PathBuf>,
    linerate: Option<PathBuf>,
    long: bool,
    smoke: bool,
    profile: bool,
    unpinned: bool,
    /// When building began, in seconds since 1970: given by xtask.
    began: Option<u64>,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Options> {
        let (mut options, mut args) = (Options::default(), args);
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--help" | "-h" => options.help = true,
                "--list" => options.list = true,
                "--long" => options.long = true,
                "--smoke" => options.smoke = true,
                "--profile" => options.profile = true,
                "--unpinned" => options.unpinned = true,
                "--rounds" => options.rounds = Some(value()?.parse::<u32>()?.max(1)),
                "--seconds" => options.seconds = Some(value()?.parse::<u32>()?.max(1)),
                "--minutes" => options.minutes = Some(value()?.parse()?),
                "--json" => options.json = Some(value()?.into()),
                "--html" => options.html = Some(value()?.into()),
                "--from" => options.from = Some(value()?.into()),
                "--linerate" => options.linerate = Some(value()?.into()),
                "--began" => options.began = Some(value()?.parse()?),
                flag if flag.starts_with('-') => bail!("{flag} is not known\n\n{USAGE}"),
                _ => options.rows.push(arg),
            }
        }
        Ok(options)
    }

    /// Where the figures go.
    fn json(&self) -> PathBuf {
        self.json.clone().unwrap_or_else(|| "target/bench/report.json".into())
    }

    /// Where the page goes.
    fn html(&self) -> PathBuf {
        self.html.clone().unwrap_or_else(|| "target/bench/report.html".into())
    }

    fn chosen(&self) -> Result<Vec<Row>> {
        let all = rows::all();
        if self.smoke {
            return Ok(all.into_iter().filter(|row| SMOKE.contains(&row.name.as_str())).collect());
        }
        // A whole name is that row; a part of one is all rows that have it.
        let whole = |name: &str| all.iter().any(|row| row.name == name);
        let parts: Vec<&String> = self.rows.iter().filter(|name| !whole(name)).collect();
        let exact = |row: &Row| self.rows.contains(&row.name);
        // Long rows are meant where nothing else is.
        let short = |part: &str| all.iter().any(|row| !row.long && row.name.contains(part));
        let fits = |row: &Row, part: &str| !row.long || self.long || !short(part);
        let named = |row: &Row| {
            exact(row) || parts.iter().any(|part| row.name.contains(part.as_str()) && fits(row, part))
        };
        let chosen: Vec<Row> = if self.rows.is_empty() {
            all.iter().filter(|row| self.long || !row.long).cloned().collect()
        } else {
            all.iter().filter(|row| named(row)).cloned().collect()
        };
        if chosen.is_empty() {
            bail!("no row is called {}; --list names them", self.rows.join(" or "));
        }
        Ok(chosen)
    }

    /// How much is measured: as many rounds as fit, unless it is said.
    fn amount(&self, rows: &[Row], left_s: f64) -> Amount {
        let seconds = self.seconds.unwrap_or(if self.smoke { 1 } else { 2 });
        let requests_s = self.seconds.unwrap_or(1);
        let amount = |rounds| Amount { rounds, bytes_s: seconds, requests_s, profiled: self.profile };
        if let Some(rounds) = self.rounds {
            return amount(rounds);
        }
        let most = if self.smoke { 1 } else { 3 };
        let fits = (1..=most).rev().find(|rounds| amount(*rounds).estimate(rows) <= left_s);
        amount(fits.unwrap_or(1))
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    if options.help {
        print!("{USAGE}");
        return Ok(());
    }
    let chosen = options.chosen()?;
    if options.list {
        for row in &rows::all() {
            let names: Vec<&str> = row.contenders.iter().map(|contender| contender.name()).collect();
            println!("{:<20} {}", row.name, names.join("; "));
        }
        return Ok(());
    }
    if let Some(path) = &options.from {
        return again(&options, path);
    }
    let start = Instant::now();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let before = Duration::from_secs(now.saturating_sub(options.began.unwrap_or(now)));
    let linerate = options.linerate.as_deref().unwrap_or(Path::new("target/release/linerate"));
    let tools = tools(&chosen, linerate, options.unpinned)?;
    let used = (before + start.elapsed()).as_secs_f64();
    let left = f64::from(options.minutes.unwrap_or(15)) * 60.0 - used;
    let amount = options.amount(&chosen, left);
    eprintln!(
        "{} rows, {} rounds: about {:.0} s, after {used:.0} s for building and files",
        chosen.len(),
        amount.rounds,
        amount.estimate(&chosen)
    );
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut report = Report {
        date: machine::date(),
        command: command(),
        machine: machine::describe(),
        rounds: amount.rounds,
        seconds: (amount.bytes_s, amount.requests_s),
        ..Report::default()
    };
    let (measuring, mut ended) = (Instant::now(), Ok(()));
    for (at, row) in chosen.iter().enumerate() {
        let elapsed = measuring.elapsed().as_secs_f64();
        eprintln!("[{}/{}] {}, {elapsed:.0} s", at + 1, chosen.len(), row.name);
        // A machine that is slower than estimated gets fewer rounds, not a longer run.
        let pace = (elapsed / amount.estimate(&chosen[..at]).max(1.0)).max(1.0);
        let amount = options.amount(&chosen[at..], (left - elapsed) / pace);
        match session::row(row, amount, &tools, &stop) {
            Ok(row) => report.rows.push(row),
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    report.versions = versions(&chosen, &tools);
    report.took = (before + start.elapsed()).as_secs();
    match ended {
        Ok(()) => finish(&options, &report),
        Err(error) => keep(&options, &report).and(Err(error)),
    }
}

/// What a run has measured that did not come to its end: the figures, but no page of the documents.
fn keep(options: &Options, report: &Report) -> Result<()> {
    if report.rows.is_empty() { Ok(()) } else { write(&options.json(), json(report)?) }
}

/// Judges the figures of an earlier run by the goals, limits and reasons of today.
fn again(options: &Options, path: &Path) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut report: Report = serde_json::from_str(&text)?;
    let rows = rows::all();
    for found in &mut report.rows {
        let row = rows.iter().find(|row| row.name == found.name);
        let goals = row.map_or(&[][..], |row| &row.goals);
        found.judgements = goals.iter().filter_map(|goal| judge(goal, &found.contestants).ok()).collect();
    }
    finish(options, &report)
}

fn finish(options: &Options, report: &Report) -> Result<()> {
    print!("{}", table::text(&report.rows));
    for text in [page::sweep(&report.rows), spent::table(&report.rows)].into_iter().flatten() {
        print!("\n{text}");
    }
    write(&options.json(), json(report)?)?;
    write(&options.html(), html::page(report))?;
    let all = rows::all();
    let swept = |row: &&Row| row.name.starts_with("sweep-");
    if all.iter().filter(swept).all(|row| report.rows.iter().any(|found| found.name == row.name))
        && let Some(table) = page::sweep(&report.rows)
    {
        write(Path::new("docs/latency-sweep.md"), page::sweep_page(report, &table))?;
    }
    let whole = all.iter().filter(|row| !row.long).all(|row| report.rows.iter().any(|r| r.name == row.name));
    if whole {
        let reasons = std::fs::read_to_string("benches/bench/reasons.txt").unwrap_or_default();
        write(Path::new("docs/BENCHMARKS.md"), page::write(report, &page::reasons(&reasons)))?;
        if let Some(picture) = chart::svg(report) {
            write(Path::new("docs/benchmarks.svg"), picture)?;
        }
    }
    Ok(())
}

fn json(report: &Report) -> Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

fn write(path: &Path, text: String) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn command() -> String {
    let mut words = vec!["cargo xtask bench".to_owned()];
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--began" {
            args.next();
        } else {
            words.push(arg);
        }
    }
    words.join(" ")
}

/// What a run needs; says what is missing.
fn tools(rows: &[Row], linerate: &Path, unpinned: bool) -> Result<Tools> {
    if place::run(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("network namespaces need root: run it as root");
    }
    place::sweep()?;
    let linerate = linerate.canonicalize().context("build it first: cargo build --release")?;
    let built = std::env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.client.file()).collect();
    // The first core often has the interrupts of the machine: it is the client's.
    let cores = (machine::cores() >= 2 && !unpinned).then_some((1, 0));
    Ok(Tools {
        linerate,
        built,
        peers: Peers::new(Path::new("target/bench/peers"))?,
        files: Files::new(Path::new("target/bench/files"), &names)?,
        cores,
    })
}

fn versions(rows: &[Row], tools: &Tools) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    let mut add = |name: &str, line: &str| {
        let text = place::run(Command::new("sh").args(["-c", line])).unwrap_or_default();
        if let Some(first) = text.lines().find(|line| !line.trim().is_empty()) {
            versions.insert(name.to_owned(), first.trim().to_owned());
        }
    };
    add("linerate", &format!("{} --version", tools.linerate.display()));
    add("commit", "git describe --always --dirty --abbrev=10");
    add("file system of files", &format!("df --output=fstype {} | tail -1", tools.files.root.display()));
    add("iperf3", "iperf3 --version");
    add("wrk", "wrk -v | head -1 | cut -d' ' -f1,2");
    add("curl", "curl --version | cut -d' ' -f1,2");
    let smoltcp = include_str!("../Cargo.lock").split("name = \"smoltcp\"\nversion = \"").nth(1);
    if let Some(version) = smoltcp.and_then(|rest| rest.split('"').next()) {
        versions.insert("smoltcp".into(), version.to_owned());
    }
    if let Some((_, version)) = include_str!("../gvisor/go.mod").split_once("gvisor.dev/gvisor ") {
        versions.insert("gVisor".into(), version.lines().next().unwrap_or_default().to_owned());
    }
    let lwip = include_str!("../../lwip/build.sh").split("version=").nth(1);
    if let Some(version) = lwip.and_then(|rest| rest.lines().next()) {
        versions.insert("lwIP".into(), version.to_owned());
    }
    for contender in [Contender::Nginx, Contender::Lighttpd, Contender::Vsftpd, Contender::PureFtpd] {
        if rows.iter().any(|row| row.contenders.contains(&contender))
            && let Some(version) = tools.peers.version(contender)
        {
            versions.insert(contender.name().to_owned(), version);
        }
    }
    versions
}
