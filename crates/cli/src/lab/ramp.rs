//! `linerate lab ramp`: load at rising rates until a server is saturated, and beyond.

use super::args::Output;
use super::error::{self, LabError};
use clap::{Args, ValueEnum};
use linerate_lab::load::{Pace, Target, allow_descriptors, descriptors};
use linerate_lab::measure::machine;
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::progress::Progress;
use linerate_lab::ramp::limit::LATE_MS;
use linerate_lab::ramp::probe::probe;
use linerate_lab::ramp::record::{Beside, beside, records};
use linerate_lab::ramp::run::{self, Contender, Length, Plan, Told, Use};
use linerate_lab::ramp::search::Rates;
use linerate_lab::ramp::{curve, page, seed, table};
use linerate_lab::report::grid::GridFormat;
use linerate_lab::{published, schema};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections a second of the first level.
const FROM: f64 = 50.0;
/// How much each level is above the one before.
const FACTOR: f64 = 2.0;
/// How near the knee is enclosed, as a share of it.
const PRECISION: f64 = 0.025;
/// Seconds of a level.
const SECONDS: f64 = 3.0;
/// Requests of a connection.
const REQUESTS: u32 = 3;

/// Arguments of `lab ramp`.
#[derive(Args, Debug)]
#[command(after_help = "\
Load is open: connections and requests become due at a constant rate, whether or not answers come, and a response time
counts from when its request was due. Without --to the rate doubles until the server is saturated. Then the knee is
enclosed: the highest level at which 95 % of what is offered is answered, at most 1 % fails, and the p99 of response
times has not left its plateau. A level at which this client or the path was the limit is refused, and says which.

  linerate lab ramp http://192.168.1.4/memory/354
  linerate lab ramp --html ramp.html ours=http://192.168.1.4/memory/354 nginx=http://192.168.2.4/354.html
  linerate lab ramp --preset seed-003 --small /memory/354 --large /memory/10K http://192.168.1.4/
  linerate lab ramp --connections 64 --from 1000 http://192.168.1.4/      kept connections, rates are requests/s")]
pub struct Ramp {
    /// Servers, as `http://host:port/path`, with a name for tables if wanted. Several alternate at each level
    #[arg(required = true, value_name = "[NAME=]URL")]
    pub urls: Vec<String>,

    /// Connections a second of the first level (requests a second with --connections) [default: 50]
    #[arg(long, value_name = "RATE", value_parser = positive)]
    pub from: Option<f64>,

    /// The last level; without it, saturation ends the ramp
    #[arg(long, value_name = "RATE", value_parser = positive)]
    pub to: Option<f64>,

    /// Levels between --from and --to, or from --from on by --factor
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub levels: Option<u32>,

    /// Each level is so many times the one before [default: 2]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub factor: Option<f64>,

    /// Enclose the knee to so many per cent; 0: measure the levels up to --to themselves, whatever comes of them [default: 2.5]
    #[arg(long, value_name = "PERCENT", value_parser = per_cent)]
    pub precision: Option<f64>,

    /// Requests on each connection, one after the other; the last asks the server to close [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub requests: Option<u32>,

    /// When requests behind the first of a connection are due [default: requests]
    #[arg(long, value_enum)]
    pub pace: Option<PaceArg>,

    /// Keep so many connections, and let requests take whichever is free
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["requests", "pace", "preset"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: Option<u32>,

    /// Seconds of a level [default: 3]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub seconds: Option<f64>,

    /// A level is over after so many connections (requests with --connections), whatever time they take
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// How long an answer may take from when its request was due, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive)]
    pub timeout: f64,

    /// The status that answers are to have
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(100..=599))]
    pub expect: u16,

    /// Addresses of this machine to come from, in turn
    #[arg(long, value_name = "ADDRESS")]
    pub source: Vec<IpAddr>,

    /// Threads that ask [default: half of the cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,

    /// Do not sleep between events: for a client with a core of its own
    #[arg(long)]
    pub spin: bool,

    /// Refuse a level when one departure in a hundred was later than this, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = LATE_MS, value_parser = positive)]
    pub late: f64,

    /// Process of the server, in the order of the URLs; without it, looked for by its socket or TAP device
    #[arg(long, value_name = "PID")]
    pub server_pid: Vec<u32>,

    /// Measure each level so often; figures are medians
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// The measurement of a document, on the same server three times: 354 bytes, 10 KiB and a file that is not there
    #[arg(long, value_enum, conflicts_with_all = ["from", "to", "levels", "factor", "requests", "pace", "expect", "precision", "seconds", "count"])]
    pub preset: Option<Preset>,

    /// With --preset: path of the file of 354 bytes
    #[arg(long, value_name = "PATH", default_value = "/index.html", requires = "preset")]
    pub small: String,

    /// With --preset: path of the file of 10 KiB
    #[arg(long, value_name = "PATH", default_value = "/10K.html", requires = "preset")]
    pub large: String,

    /// With --preset: path where no file is
    #[arg(long, value_name = "PATH", default_value = "/missing.html", requires = "preset")]
    pub missing: String,

    /// Short: four levels of half a second, the knee not enclosed
    #[arg(long)]
    pub quick: bool,

    /// Lay the ramps of this file into the pictures: figures as CSV, or a result of --json
    #[arg(long, value_name = "FILE")]
    pub records: Vec<PathBuf>,

    /// Write the response times over the rate as a picture there
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,

    /// Forms of the result.
    #[command(flatten)]
    pub output: Output,
}

/// When requests behind the first are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PaceArg {
    /// At a constant rate, evenly until the next connection is due
    Requests,
    /// Once the one before has been answered, as `httperf --num-calls` does it
    Connections,
}

/// Measurements of documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Preset {
    /// 20 to 120 connections a second in steps of 10, 3,000 connections a level, 3 requests each
    #[value(name = "seed-003")]
    Seed003,
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value <= 1e9);
    value.ok_or_else(|| "expected a number above 0, 1e9 at most".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 1.0 && *value <= 1e6);
    value.ok_or_else(|| "expected a number above 1".to_owned())
}

fn per_cent(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

impl Ramp {
    /// Requests of a connection, which are what rates of connections are multiplied by.
    fn each(&self) -> u32 {
        if self.connections.is_some() { 1 } else { self.requests.unwrap_or(REQUESTS) }
    }

    fn plan(&self) -> Result<Plan, LabError> {
        let pace = match (self.pace, self.preset) {
            (Some(PaceArg::Connections), _) | (None, Some(_)) => Pace::Connections,
            (Some(PaceArg::Requests) | None, _) => Pace::Requests,
        };
        let seconds = self.seconds.unwrap_or(if self.quick { 0.5 } else { SECONDS });
        let length = match (self.count, self.preset) {
            (Some(count), _) => Length::Count(count),
            (None, Some(Preset::Seed003)) => Length::Count(if self.quick { 30 } else { 3_000 }),
            (None, None) => Length::Time(Duration::from_secs_f64(seconds)),
        };
        Ok(Plan {
            rates: self.rates()?,
            length,
            connections: match self.connections {
                Some(kept) => Use::Kept(kept as usize),
                None => Use::Opened { requests: self.each(), pace },
            },
            timeout: Duration::from_secs_f64(self.timeout),
            sources: self.source.clone(),
            threads: self.threads.map_or((machine::cores() / 2).clamp(1, 8), |threads| threads as usize),
            spin: self.spin,
            rounds: self.rounds as usize,
            late_ms: self.late,
        })
    }

    /// The levels, in requests a second.
    fn rates(&self) -> Result<Rates, LabError> {
        let each = f64::from(self.each());
        if self.preset.is_some() {
            let step = if self.quick { 50 } else { 10 };
            return Ok(Rates::Listed((20..=120).step_by(step).map(|rate| f64::from(rate) * each).collect()));
        }
        let from = self.from.unwrap_or(FROM);
        let levels = self.levels.or((self.quick && self.to.is_none()).then_some(4));
        let mut factor = self.factor.unwrap_or(FACTOR);
        let to = match (self.to, levels) {
            (Some(to), _) if to < from => {
                return Err(LabError::Asked(format!("--to {to} is below --from {from}")));
            }
            (Some(_), Some(_)) if self.factor.is_some() => {
                let what =
                    "--to and --factor say how many levels there are; expected no --levels beside them";
                return Err(LabError::Asked(what.to_owned()));
            }
            (Some(to), Some(levels)) => {
                if levels > 1 && to > from {
                    factor = (to / from).powf(1.0 / f64::from(levels - 1));
                }
                Some(to)
            }
            (Some(to), None) => Some(to),
            (None, Some(levels)) => Some(from * factor.powi(levels as i32 - 1)),
            (None, None) => None,
        };
        let precision =
            self.precision.map_or(if self.quick { 0.0 } else { PRECISION }, |percent| percent / 100.0);
        let to = to.map(|to| to * each);
        Ok(match to {
            Some(to) if precision == 0.0 => Rates::Listed(geometric(from * each, to, factor)),
            to => Rates::Rising { from: from * each, to, factor, precision },
        })
    }

    /// The servers, each asked once.
    fn contenders(&self) -> Result<Vec<Contender>, LabError> {
        self.check_names()?;
        let mut contenders = Vec::new();
        for (number, text) in self.urls.iter().enumerate() {
            let (name, url) = named(text);
            let target = Target::parse(url).map_err(|error| LabError::Asked(error.to_string()))?;
            self.check_sources(&target)?;
            let pid = self.server_pid.get(number).copied();
            if let Some(pid) = pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let what = format!("invalid value '{pid}' for '--server-pid': expected a process that runs");
                return Err(LabError::Asked(what));
            }
            let paths = match self.preset {
                None => vec![(target.path.clone(), self.expect, None)],
                Some(Preset::Seed003) => {
                    let paths = [(&self.small, 200), (&self.large, 200), (&self.missing, 404)];
                    paths
                        .into_iter()
                        .zip(seed::WORKLOADS)
                        .map(|((path, status), known)| (path.clone(), status, Some(known)))
                        .collect()
                }
            };
            for (path, status, known) in paths {
                let target = Target { path, ..target.clone() };
                contenders.push(self.contender(name, &target, status, known, pid)?);
            }
        }
        Ok(contenders)
    }

    /// Whether each has a name of its own: what tables and figures tell servers apart by.
    fn check_names(&self) -> Result<(), LabError> {
        let names: Vec<&str> = self.urls.iter().map(|text| named(text).0.unwrap_or(text)).collect();
        match names.iter().enumerate().find(|(number, name)| names[..*number].contains(name)) {
            Some((_, name)) => {
                Err(LabError::Asked(format!("two servers are named '{name}': give each a name of its own")))
            }
            None => Ok(()),
        }
    }

    /// Whether requests can leave from the addresses that are asked for: a fault there would be laid to the client's ports or the server.
    fn check_sources(&self, target: &Target) -> Result<(), LabError> {
        if self.source.is_empty() {
            return Ok(());
        }
        let servers = target.resolve().map_err(|error| LabError::Failed(error.to_string()))?;
        for source in &self.source {
            let wrong = |what: String| {
                Err(LabError::Asked(format!("invalid value '{source}' for '--source': {what}")))
            };
            if self.source.iter().any(|first| first.is_ipv4() != source.is_ipv4()) {
                return wrong("expected addresses of one family, IPv4 or IPv6".to_owned());
            }
            if !servers.iter().any(|server| server.is_ipv4() == source.is_ipv4()) {
                return wrong(format!("expected an address of the family of {}", target.authority()));
            }
            if let Err(why) = UdpSocket::bind((*source, 0)) {
                return wrong(format!("{why}; expected an address of this machine"));
            }
        }
        Ok(())
    }

    fn contender(
        &self,
        name: Option<&str>,
        target: &Target,
        status: u16,
        known: Option<(&str, &str)>,
        pid: Option<u32>,
    ) -> Result<Contender, LabError> {
        let timeout = Duration::from_secs_f64(self.timeout);
        // A document's measurement is what it is, whatever a server does with its connections.
        let again = self.preset.is_none() && self.connections.is_none() && self.each() > 1;
        let found = probe(target, status, again, timeout, &self.source)
            .map_err(|error| LabError::Failed(error.to_string()))?;
        let workload = match known {
            Some((workload, _)) => workload.to_owned(),
            None if status == 200 => format!("http-{}", found.body_len),
            None => format!("http-{status}"),
        };
        let server = name.map_or_else(|| target.authority(), str::to_owned);
        let name = match known {
            Some((_, what)) => format!("{server}, {what}"),
            None if name.is_some() => server,
            None => format!("{server}{}", target.path),
        };
        Ok(Contender {
            name,
            url: target.to_string(),
            address: found.address,
            host: target.authority(),
            path: target.path.clone(),
            status,
            workload,
            pid,
        })
    }
}

/// Rates up to the last, which is one of them.
fn geometric(from: f64, to: f64, factor: f64) -> Vec<f64> {
    let mut rates = vec![from];
    // Rates that were multiplied differ in their last bits.
    while let Some(last) = rates.last().copied().filter(|last| last * (1.0 + 1e-9) < to) {
        let next = last * factor;
        rates.push(if next > to * (1.0 - 1e-9) { to } else { next });
    }
    rates
}

/// A name before the URL, and the URL.
fn named(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !name.contains([':', '/', '?']) => (Some(name), url),
        _ => (None, text),
    }
}

/// Runs the command and prints its result on standard output.
pub fn run(args: &Ramp) -> Result<(), LabError> {
    let read: Vec<&Path> = args.records.iter().map(PathBuf::as_path).collect();
    error::check_outputs(
        &read,
        &[("--plot", args.plot.as_deref()), ("--html", args.output.html.as_deref())],
    )?;
    let plan = args.plan()?;
    let others = others(&args.records)?;
    allow_descriptors();
    let contenders = args.contenders()?;
    let mut progress = Progress::new("ramp", 0);
    let mut tell = |told: Told<'_>| match told {
        Told::Begins { name, rate, .. } => {
            progress.begin(&format!("{name}, {} requests/s", table::rates(rate)))
        }
        Told::Done { .. } => progress.done(1),
    };
    let ramps = run::run(&plan, &contenders, &mut tell)
        .map_err(|why| LabError::Failed(format!("cannot ask ({} descriptors): {why}", descriptors())))?;
    drop(progress);
    let origin = Provenance::now(plan.rounds);
    if let Some(file) = &args.output.html {
        let text = page::html(&ramps, &others, &origin, plan.late_ms).map_err(LabError::Failed)?;
        error::write(file, text)?;
    }
    // What was measured is shown in any case.
    tell_all(args, &ramps, &origin)?;
    let plotted = match &args.plot {
        Some(file) => plot(file, &ramps, &others),
        None => Ok(()),
    };
    match run::gone(&ramps) {
        Some(why) => Err(LabError::Failed(why)),
        None => plotted,
    }
}

fn plot(file: &Path, ramps: &[run::Ramp], others: &[Beside]) -> Result<(), LabError> {
    let picture = page::response_times(ramps, others).standalone();
    let picture =
        picture.ok_or_else(|| LabError::Failed("no level has a response time to draw".to_owned()))?;
    error::write(file, picture.map_err(LabError::Failed)?)
}

/// Prints the result.
fn tell_all(args: &Ramp, ramps: &[run::Ramp], origin: &Provenance) -> Result<(), LabError> {
    if args.output.json {
        let result = serde_json::json!({ "provenance": origin, "ramps": ramps, "records": records(ramps) });
        return error::print(&error::json(&result)?);
    }
    let mut text = String::new();
    for (number, ramp) in ramps.iter().enumerate() {
        text.push_str(&table::grid(number, ramp).render(GridFormat::Terminal, crate::output::width()));
        text.push('\n');
        text.push_str(&curve::text(ramp));
        text.push('\n');
    }
    text.push_str(&origin.sentence());
    text.push('\n');
    if args.output.html.is_none() {
        text.push_str("Pictures of all this: the same with --html ramp.html\n");
    }
    error::print(&text)
}

/// Ramps to lay beside ours: those of the document, and those of files.
fn others(files: &[PathBuf]) -> Result<Vec<Beside>, LabError> {
    let document = published::of("003").map_err(|why| LabError::Failed(why.to_string()))?;
    let mut others = beside(&document);
    for file in files {
        let found = beside(&read(file)?);
        if found.is_empty() {
            return Err(LabError::Asked(format!(
                "{} has no ramp: expected figures `responses` in 1/s whose tuning is `N requests/s demanded`",
                file.display()
            )));
        }
        others.extend(found);
    }
    Ok(others)
}

fn read(file: &Path) -> Result<Vec<schema::Record>, LabError> {
    let refused = |why: &dyn std::fmt::Display| LabError::Asked(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|why| refused(&why))?;
    if text.trim_start().starts_with('{') {
        let mut value: serde_json::Value = serde_json::from_str(&text).map_err(|why| refused(&why))?;
        return serde_json::from_value(value["records"].take()).map_err(|why| refused(&why));
    }
    schema::read(&file.display().to_string(), &text).map_err(|why| LabError::Asked(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        ramp: Ramp,
    }

    fn parse(words: &str) -> Result<Ramp, clap::Error> {
        Line::try_parse_from(format!("ramp {words} http://x/").split_whitespace()).map(|line| line.ramp)
    }

    #[test]
    fn levels_from_arguments() {
        let check = |words: &str, expected: Rates| {
            assert_eq!(parse(words).unwrap().rates().unwrap(), expected, "{words}");
        };
        let rising = |from, to, factor, precision| Rates::Rising { from, to, factor, precision };
        check("", rising(150.0, None, 2.0, 0.025));
        check("--requests 1 --from 10 --factor 3", rising(10.0, None, 3.0, 0.025));
        check("--requests 2 --from 10 --to 40 --precision 0", Rates::Listed(vec![20.0, 40.0, 80.0]));
        check("--requests 1 --from 10 --to 50 --precision 0", Rates::Listed(vec![10.0, 20.0, 40.0, 50.0]));
        check("--requests 1 --from 10 --to 50", rising(10.0, Some(50.0), 2.0, 0.025));
        check("--requests 1 --from 10 --to 1000 --levels 3", rising(10.0, Some(1000.0), 10.0, 0.025));
        check("--requests 1 --from 10 --levels 3", rising(10.0, Some(40.0), 2.0, 0.025));
        check("--connections 5 --from 10 --quick", Rates::Listed(vec![10.0, 20.0, 40.0, 80.0]));
        let seed: Vec<f64> = (2..=12).map(|tens| f64::from(tens) * 30.0).collect();
        check("--preset seed-003", Rates::Listed(seed));
        check("--preset seed-003 --quick", Rates::Listed(vec![60.0, 210.0, 360.0]));
        for words in ["--from 10 --to 5", "--from 10 --to 80 --factor 2 --levels 3"] {
            assert!(parse(words).unwrap().rates().is_err(), "{words}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for words in [
            "--from 0",
            "--factor 1",
            "--preset seed-003 --from 5",
            "--connections 5 --requests 2",
            "--small /x",
            "--expect 99",
            "--precision 101",
        ] {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn addresses_to_come_from_are_of_one_family() {
        let check = |words: &str, url: &str, expected: Option<&str>| {
            let found = parse(words).unwrap().check_sources(&Target::parse(url).unwrap());
            let found = found.err().map(|error| error.to_string());
            let fits = match (&found, expected) {
                (Some(found), Some(expected)) => found.contains(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(fits, "{words} {url}: {found:?}");
        };
        let both = "--source 127.0.0.1 --source ::1";
        check(both, "http://localhost/", Some("addresses of one family"));
        check(both, "http://127.0.0.1/", Some("addresses of one family"));
        check("--source 127.0.0.1 --source 127.0.0.2", "http://127.0.0.1/", None);
        check("--source ::1", "http://127.0.0.1/", Some("of the family of 127.0.0.1"));
    }

    #[test]
    fn names_before_urls() {
        assert_eq!(named("ours=http://x/?a=b"), (Some("ours"), "http://x/?a=b"));
        assert_eq!(named("http://x/?a=b"), (None, "http://x/?a=b"));
        assert_eq!(named("=http://x/"), (None, "=http://x/"));
    }
}
