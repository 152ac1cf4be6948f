//! Load at rising rates, as `linerate lab ramp` puts it on other servers, in the board's time: the ramp of seed 003.
//!
//! When something is due, what is counted, and where the knee is, is the lab's. What differs is the clock, and the client: our own
//! stack, whose work takes no time. Each document has a board of its own, which has just started.

use super::client::Client;
use super::visitors::Visitors;
use linerate_lab::load::{Arrivals, Load, Pace, Tally};
use linerate_lab::measure::provenance::Provenance;
use linerate_lab::published;
use linerate_lab::ramp::level::{Cpu, Level, Network, Seen};
use linerate_lab::ramp::run::Ramp;
use linerate_lab::ramp::{curve, knee, limit, page, record, seed, table};
use linerate_lab::report::grid::GridFormat;
use linerate_lab::schema::{self, Origin, Record};
use linerate_rtl_sim::softcore::{CLOCK_NS, Softcore, Straps};
use linerate_transport::Transport as _;
use std::path::Path;
use std::time::Duration;

/// What is asked for, and the status that is right, in the order of the seed's workloads. The first is a file in flash.
const DOCUMENTS: [(&str, u16); 3] = [("/page.html", 200), ("/memory/10K", 200), ("/missing.html", 404)];
/// Requests of a connection, as in the seed.
const REQUESTS: u32 = 3;
/// How long an answer may take, as in the seed.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections a second of the seed's first level, and how much more each further one has.
const STEP: f64 = 20.0;
/// Levels at most, and how many of them the board shall fail to keep up with.
const LEVELS: u32 = 30;
const BEYOND: usize = 2;
/// Connections of a level.
const CONNECTIONS: u32 = 60;
/// By how much departures may be late on a machine of its own, in ms; in virtual time none is.
const LATE_MS: f64 = 1.0;
const PANICKED: &str = "a thread panicked";
/// Between two levels, as in the lab's ramps.
const PAUSE: Duration = Duration::from_millis(300);
/// The cable's bits per second.
const CABLE_BPS: f64 = 1e9;

/// Which levels.
pub struct Plan {
    /// Connections a second.
    pub rates: Vec<f64>,
    /// Connections of a level.
    pub connections: u32,
    /// Connections that come before them, at the seed's first rate, and are not counted: neighbours are known then, and code and data
    /// have been used once.
    pub before: u32,
    /// Whether clocks may be left out in which nothing moves.
    pub may_skip: bool,
}

impl Plan {
    /// All levels, or every other one of half as many connections.
    pub fn new(is_quick: bool) -> Plan {
        let (by, connections) = if is_quick { (2, CONNECTIONS / 2) } else { (1, CONNECTIONS) };
        let rates = (1..=LEVELS).step_by(by).map(|number| f64::from(number) * STEP).collect();
        Plan { rates, connections, before: 3, may_skip: true }
    }
}

/// What came of a level.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// As the lab tells it.
    pub level: Level,
    /// Clocks in which the processor did not sleep, and instructions, of each request that was answered.
    pub clocks: f64,
    /// Instructions, likewise.
    pub instructions: f64,
    /// Clocks of all, and such as were left out.
    pub simulated: [u64; 2],
}

/// What is asked of a document at a rate.
fn load(document: usize, rate: f64, connections: u32) -> Result<Load, String> {
    let (path, status) = DOCUMENTS[document];
    Ok(Load {
        server: Client::server(80)?,
        host: "board".to_owned(),
        path: path.to_owned(),
        arrivals: Arrivals::Opened { rate, requests: REQUESTS, pace: Pace::Connections },
        time: Duration::from_secs_f64(f64::from(connections) / rate),
        timeout: TIMEOUT,
        status,
        sources: Vec::new(),
        threads: 1,
        spin: true,
    })
}

/// A board with a host beside it that has asked a few times.
fn started(image: &[u8], plan: &Plan, document: usize) -> Result<Client, String> {
    let mut core = Softcore::new(image, Straps::default())?;
    super::start(&mut core)?;
    let mut client = Client::new(core)?;
    client.may_skip = plan.may_skip;
    Visitors::run(&mut client, &load(document, STEP, plan.before)?)?;
    Ok(client)
}

/// A level.
fn level(client: &mut Client, plan: &Plan, document: usize, rate: f64) -> Result<Measured, String> {
    let load = load(document, rate, plan.connections)?;
    let (began, asleep) = (client.core.clocks(), client.core.asleep_clocks());
    let (before, sent) = (client.core.counters()[0], client.frames.0);
    let (skipped, again) = (client.core.skipped_clocks(), client.node.stack.counters().tcp_retransmits);
    let (tally, busy) = Visitors::run(client, &load)?;
    let clocks = client.core.clocks() - began;
    let awake = clocks - (client.core.asleep_clocks() - asleep);
    // They count to 2^32.
    let executed = (client.core.counters()[0] as u32).wrapping_sub(before as u32);
    let seen = Seen {
        cpu: Cpu { server: Some(busy), server_thread: Some(busy), busy, cores: 1.0, ..Cpu::default() },
        network: Network {
            sent: client.frames.0 - sent,
            retransmitted: client.node.stack.counters().tcp_retransmits - again,
            link_bps: Some(CABLE_BPS),
            ..Network::default()
        },
    };
    let simulated = [clocks, client.core.skipped_clocks() - skipped];
    Ok(measured(&load, &tally, seen, [awake, executed.into()], simulated))
}

/// What is still under way of one level shall not meet the next.
fn pause(client: &mut Client) -> Result<(), String> {
    let until = client.core.clocks() + PAUSE.as_nanos() as u64 / CLOCK_NS;
    while client.core.clocks() < until {
        while client.node.stack.poll_event().is_some() {}
        client.turn(Some(until))?;
    }
    Ok(())
}

fn measured(load: &Load, tally: &Tally, seen: Seen, took: [u64; 2], simulated: [u64; 2]) -> Measured {
    let mut level = Level::new(load, tally, seen);
    level.limit = limit::judge(&level, load.spin, limit::LATE_MS);
    let [clocks, instructions] = took.map(|all| all as f64 / tally.answered.max(1) as f64);
    Measured { level, clocks, instructions, simulated }
}

/// The levels of a document, until [`BEYOND`] of them were not answered as fast as they came.
fn levels(image: &[u8], plan: &Plan, document: usize) -> Result<Vec<Measured>, String> {
    let mut client = started(image, plan, document)?;
    let (mut all, mut beyond) = (Vec::new(), 0);
    for rate in &plan.rates {
        pause(&mut client)?;
        let started = std::time::Instant::now();
        let measured = level(&mut client, plan, document, *rate)?;
        let (level, [clocks, skipped]) = (&measured.level, measured.simulated);
        eprintln!(
            "{}, {rate} connections/s: {} of {} answered; {:.2} s, {:.2} s of that without a clock, took {:.1} s",
            seed::WORKLOADS[document].1,
            level.answered,
            level.offered,
            (clocks * CLOCK_NS) as f64 / 1e9,
            (skipped * CLOCK_NS) as f64 / 1e9,
            started.elapsed().as_secs_f64()
        );
        beyond += usize::from(level.answered_rate < limit::ANSWERED_SHARE * level.offered_rate);
        all.push(measured);
        if beyond == BEYOND {
            break;
        }
    }
    Ok(all)
}

/// All documents at once, each on a board of its own.
fn all(image: &[u8], plan: &Plan) -> Result<Vec<Vec<Measured>>, String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..DOCUMENTS.len()).map(|document| scope.spawn(move || levels(image, plan, document))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(PANICKED.to_owned()))).collect()
    })
}

/// Measures, prints tables, and writes `softcore-ramp` with the endings `csv`, `json`, `svg` and `html` into a folder.
pub fn run(image: &[u8], folder: &str, is_quick: bool) -> Result<(), String> {
    let all = all(image, &Plan::new(is_quick))?;
    let ramps: Vec<Ramp> = all.iter().enumerate().map(|(document, levels)| ramp(document, levels)).collect();
    let origin = Provenance {
        command: format!("cargo xtask board softcore ramp{}", if is_quick { " quick" } else { "" }),
        ..Provenance::now(1)
    };
    for (number, (ramp, levels)) in ramps.iter().zip(&all).enumerate() {
        println!("{}", table::grid(number, ramp).render(GridFormat::Terminal, None));
        println!("{}", curve::text(ramp));
        for Measured { level, clocks, instructions, .. } in levels {
            println!(
                "{:>10} requests/s offered: {clocks:.0} clocks and {instructions:.0} instructions each",
                table::rates(level.offered_rate)
            );
        }
        println!();
    }
    println!("{}", origin.sentence());
    let records = records(&ramps, &all);
    let seed = record::beside(&published::of("003").map_err(|why| why.to_string())?);
    let json = serde_json::json!({ "provenance": origin, "ramps": ramps, "records": records });
    let mut picture = page::response_times(&ramps, &seed);
    picture.title = "Response times of the soft core, and of seed 003's server".to_owned();
    let picture = picture.standalone().ok_or("nothing to draw")??;
    let written = [
        ("csv", schema::write(&records)),
        ("json", format!("{json:#}\n")),
        ("svg", picture),
        ("html", page::html(&ramps, &seed, &origin, LATE_MS)?),
    ];
    for (ending, text) in written {
        let path = Path::new(folder).join(format!("softcore-ramp.{ending}"));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn ramp(document: usize, measured: &[Measured]) -> Ramp {
    let (path, status) = DOCUMENTS[document];
    let (workload, what) = seed::WORKLOADS[document];
    let mut levels: Vec<Level> = measured.iter().map(|measured| measured.level.clone()).collect();
    let knee = knee::settle(&mut levels);
    Ramp {
        name: format!("soft core, {what}"),
        url: format!("http://{}{path}", super::client::BOARD),
        workload: workload.to_owned(),
        status,
        requests_per_connection: Some(REQUESTS),
        server_pid: None,
        levels,
        knee,
    }
}

/// All figures, of one board.
fn records(ramps: &[Ramp], all: &[Vec<Measured>]) -> Vec<Record> {
    const BOARD: &str = "softcore";
    const SOURCE: &str = "cargo xtask board softcore ramp, in the board's time";
    let mut records = record::records(ramps);
    for (ramp, levels) in ramps.iter().zip(all) {
        for Measured { level, clocks, instructions, .. } in levels {
            for (figure, value) in
                [("clocks-per-request", *clocks), ("instructions-per-request", *instructions)]
            {
                records.push(Record {
                    board: BOARD.to_owned(),
                    workload: ramp.workload.clone(),
                    tuning: record::tuning(ramp, level),
                    figure: figure.to_owned(),
                    unit: "1".to_owned(),
                    value: value.round(),
                    origin: Origin::Measured,
                    source: SOURCE.to_owned(),
                });
            }
        }
    }
    for record in &mut records {
        (record.board, record.source) = (BOARD.to_owned(), SOURCE.to_owned());
    }
    records
}

/// A short level with all its clocks and without those in which nothing moves: what is seen must be the same, to the clock.
pub fn check(image: &[u8]) -> Result<String, String> {
    let plan = |may_skip| Plan { rates: Vec::new(), connections: 4, before: 1, may_skip };
    let one = |may_skip| {
        let plan = plan(may_skip);
        level(&mut started(image, &plan, 0)?, &plan, 0, 4.0 * STEP)
    };
    let both = std::thread::scope(|scope| {
        let threads = [false, true].map(|may_skip| scope.spawn(move || one(may_skip)));
        threads.map(|thread| thread.join().unwrap_or_else(|_| Err(PANICKED.to_owned())))
    });
    let [every, skipping] = both;
    let (every, skipping) = (every?, skipping?);
    let skipped = skipping.simulated[1];
    if every.level.answered != 12 || skipped == 0 || every.simulated[1] != 0 {
        return Err(format!("{every:?}, {skipped} clocks left out"));
    }
    if every.level != skipping.level
        || every.clocks != skipping.clocks
        || every.instructions != skipping.instructions
    {
        return Err(format!("with every clock {every:?}, without some {skipping:?}"));
    }
    Ok(format!(
        "12 of 12 answered, {:.0} clocks each; the same with {skipped} clocks left out in which nothing moves",
        every.clocks
    ))
}
