//! The turns of a run: rows one after the other, in each all contenders alternately.

use crate::client::{self, Counted, Task};
use crate::memory::Memory;
use crate::profile::Sampler;
use crate::report::{Contestant, RowReport, Sample};
use crate::rows::{Client, Row};
use crate::server::{Server, Tools};
use crate::verdict::judge;
use anyhow::{Error, Result, bail};
use linerate_lab::measure::cpu;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a contender takes beside measuring: starting and ending, in seconds.
const START: f64 = 0.5;
/// What a measurement takes beside its seconds.
const TURN: f64 = 0.25;

/// The number of the measurement whose stacks are sampled: none of a round.
const PROFILED: u32 = 1_000;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Rounds of each row.
    pub rounds: u32,
    /// Seconds of a measurement that counts bytes or packets.
    pub bytes_s: u32,
    /// Seconds of a measurement that counts requests.
    pub requests_s: u32,
    /// Whether each contender is measured once more while its stacks are sampled.
    pub profiled: bool,
}

impl Amount {
    fn seconds(&self, client: Client) -> u32 {
        if matches!(client, Client::Requests { .. } | Client::Memory { .. }) {
            self.requests_s
        } else {
            self.bytes_s
        }
    }

    /// About how long these rows take, in seconds.
    pub fn estimate(&self, rows: &[Row]) -> f64 {
        let row = |row: &Row| {
            let turn = match row.client {
                // At 1 GB/s, which slower ones exceed and faster ones make up for.
                Client::Ftp { file: "f4g.bin", up: false, .. } => 4.0,
                // Memory is made ready before.
                Client::Ftp { file: "f4g.bin", .. } => 12.0,
                Client::Ftp { up: true, .. } => 2.5,
                Client::Download { .. } | Client::Ftp { .. } => 1.0,
                // The rate is found first, which is a second more.
                Client::Latency { load, .. } if load > 0.0 => f64::from(self.seconds(row.client)) + 0.5,
                client => f64::from(self.seconds(client)),
            };
            // In memory there is no server to start.
            let start = if matches!(row.client, Client::Memory { .. }) { 0.0 } else { START };
            row.contenders.len() as f64
                * (start + f64::from(self.rounds + u32::from(self.profiled)) * (turn + TURN))
        };
        rows.iter().map(row).sum()
    }
}

/// Measures a row.
pub fn row(row: &Row, amount: Amount, tools: &Tools, stop: &AtomicBool) -> Result<RowReport> {
    let mut contestants: Vec<Contestant> = Vec::new();
    let mut servers = Vec::new();
    let root = tools.files.prepare(row)?;
    for contender in &row.contenders {
        let started = tools
            .peers
            .fetch(*contender, &tools.built)
            .and_then(|()| Server::start(*contender, row.client, &root, tools));
        let failure = started.as_ref().err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            eprintln!("  {}: {failure}", contender.name());
        }
        servers.push(started.ok());
        contestants.push(Contestant { name: contender.name().into(), failure, ..Contestant::default() });
    }
    let (unit, scale) = row.client.unit();
    let rate = load(row.client, &mut servers, &mut contestants, tools);
    let mut memory = Memory::default();
    for round in 0..amount.rounds {
        // Each round begins with another, so that who comes first or behind whom is the same for all.
        for turn in 0..servers.len() {
            let at = (turn + round as usize) % servers.len();
            let (server, contestant) = (&mut servers[at], &mut contestants[at]);
            go_on(stop)?;
            let Some(running) = server else { continue };
            let number = round * 16 + 1;
            let cost = ready(&mut memory, row.client, tools)?;
            match measure(running, row, amount, tools, number, rate) {
                Ok(sample) => {
                    let sample = Sample { memory: cost, ..sample };
                    let rate = sample.units / sample.seconds / scale;
                    eprintln!("  {}: {} {unit}", contestant.name, crate::table::short(rate));
                    contestant.samples.push(sample);
                }
                // Rounds are compared one by one: who missed one is out.
                Err(error) => give_up(server, contestant, &error),
            }
            tools.files.forget_uploads();
        }
    }
    if amount.profiled {
        profiles(row, &servers, &mut contestants, amount, tools, rate);
    }
    drop(servers);
    tools.files.forget_served();
    // A signal ends the client, too: what it said last is no figure.
    go_on(stop)?;
    let mut judgements = Vec::new();
    for goal in &row.goals {
        match judge(goal, &contestants) {
            Ok(judgement) => judgements.push(judgement),
            Err(reason) => eprintln!("  {} is not compared: {reason}", goal.ours.name()),
        }
    }
    Ok(RowReport { name: row.name.clone(), unit: unit.into(), scale, contestants, judgements })
}

/// An error once the run is to end.
fn go_on(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// A contender is out, and its contestant says why.
fn give_up<S>(server: &mut Option<S>, contestant: &mut Contestant, error: &Error) {
    eprintln!("  {}: {error:#}", contestant.name);
    contestant.failure = Some(format!("{error:#}"));
    *server = None;
}

/// Measures each server once more while its stacks are sampled; what it reaches then is not counted.
fn profiles(
    row: &Row,
    servers: &[Option<Server>],
    contestants: &mut [Contestant],
    amount: Amount,
    tools: &Tools,
    rate: f64,
) {
    for (server, contestant) in servers.iter().zip(contestants) {
        let Some(server) = server else { continue };
        if server.processes().is_empty() {
            continue;
        }
        let file = tools.files.work.join("stacks.data");
        let profile = Sampler::start(server, &file).and_then(|sampler| {
            measure(server, row, amount, tools, PROFILED, rate)?;
            sampler.stop()
        });
        match profile {
            Ok(profile) => contestant.profile = Some(profile),
            Err(error) => eprintln!("  {} has no profile: {error:#}", contestant.name),
        }
        tools.files.forget_uploads();
    }
}

/// Makes memory ready where the client is about to fill it: as much as that, with some room. Returns what it cost; see
/// [`Memory::settle`].
fn ready(memory: &mut Memory, client: Client, tools: &Tools) -> Result<f64> {
    let Client::Ftp { up: true, file, times } = client else { return Ok(0.0) };
    let len = std::fs::metadata(tools.files.root.join(file))?.len() * u64::from(times);
    memory.settle(&tools.files.work, len + len / 16)
}

/// Requests a second that a row with a rate asks for: the share that it wants of what the slowest contender answers.
fn load(
    client: Client,
    servers: &mut [Option<Server>],
    contestants: &mut [Contestant],
    tools: &Tools,
) -> f64 {
    let Client::Latency { load, .. } = client else { return 0.0 };
    if load == 0.0 {
        return 0.0;
    }
    let rate = load
        * slowest(servers, contestants, |server| {
            client::measure(&server.place, &task(server, client, 1, tools, 0, 0.0))
        });
    eprintln!("  asked {rate:.0} times a second");
    rate
}

/// What the slowest of the servers answers a second. Who answers nothing is out: the others are not asked less for it. 0 where nobody
/// is left.
fn slowest<S>(
    servers: &mut [Option<S>],
    contestants: &mut [Contestant],
    ask: impl Fn(&S) -> Result<Counted>,
) -> f64 {
    let mut least: Option<f64> = None;
    for (server, contestant) in servers.iter_mut().zip(contestants) {
        let Some(running) = server else { continue };
        match ask(running) {
            Ok(counted) => {
                let rate = counted.units / counted.seconds;
                least = Some(least.map_or(rate, |least| least.min(rate)));
            }
            Err(error) => give_up(server, contestant, &error),
        }
    }
    least.unwrap_or(0.0)
}

fn task<'a>(
    server: &Server,
    client: Client,
    seconds: u32,
    tools: &'a Tools,
    number: u32,
    rate: f64,
) -> Task<'a> {
    Task {
        client,
        seconds,
        rate,
        login: server.login,
        files: &tools.files.root,
        built: &tools.built,
        core: tools.cores.map(|(_, client)| client),
        serves: Some(server.contender),
        number,
    }
}

fn measure(
    server: &Server,
    row: &Row,
    amount: Amount,
    tools: &Tools,
    number: u32,
    rate: f64,
) -> Result<Sample> {
    let client = row.client;
    tools.files.lay(row)?;
    let task = task(server, client, amount.seconds(client), tools, number, rate);
    let cores = || -> (f64, f64) {
        let cores = cpu::cores();
        let used = tools.cores.map_or_else(|| (0..cores.len()).collect(), |(a, b)| vec![a, b]);
        let each = used.iter().filter_map(|core| cores.get(*core));
        each.fold((0.0, 0.0), |sum, core| (sum.0 + core.0, sum.1 + core.1))
    };
    let look = || (server.cpu_seconds(), cpu::of_clients(), cpu::of_kernel(), cores());
    let (before, start) = (look(), Instant::now());
    let counted = client::measure(&server.place, &task)?;
    let wall = start.elapsed().as_secs_f64();
    let after = look();
    // Where both are one process it is the server's.
    let together = matches!(client, Client::Memory { .. });
    let (served, asked) = (after.0 - before.0, after.1 - before.1);
    let (server_cpu, client_cpu) = if together { (asked, 0.0) } else { (served, asked) };
    Ok(Sample {
        units: counted.units,
        seconds: counted.seconds,
        wall,
        server_cpu,
        client_cpu,
        // Threads of the kernel come and go.
        kernel_cpu: (after.2 - before.2).max(0.0),
        cores_cpu: after.3.0 - before.3.0,
        stolen: after.3.1 - before.3.1,
        lost: counted.lost,
        errors: counted.errors,
        latency: counted.latency,
        memory: 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::peers::Peers;

    #[test]
    fn who_answers_nothing_is_out_before_the_load_is_chosen() {
        let names = ["slow", "dead", "fast"];
        let mut contestants = names.map(|name| Contestant { name: name.into(), ..Contestant::default() });
        let mut servers = [Some(100.0), Some(0.0), Some(300.0)];
        let rate = slowest(&mut servers, &mut contestants, |units| {
            if *units == 0.0 {
                bail!("no request was answered, 7 failed");
            }
            Ok(Counted { units: *units, seconds: 2.0, ..Counted::default() })
        });
        assert_eq!((rate, servers), (50.0, [Some(100.0), None, Some(300.0)]));
        let failures = contestants.map(|found| found.failure);
        assert_eq!(failures, [None, Some("no request was answered, 7 failed".to_owned()), None]);
    }

    #[test]
    fn a_row_is_interrupted_after_its_last_measurement_too() {
        let folder = std::env::temp_dir().join(format!("linerate-bench-session-{}", std::process::id()));
        let tools = Tools {
            linerate: folder.clone(),
            built: folder.clone(),
            peers: Peers::new(&folder.join("peers")).unwrap(),
            files: Files::new(&folder.join("files"), &[]).unwrap(),
            cores: None,
        };
        let mut nobody = crate::rows::all().remove(0);
        nobody.contenders.clear();
        let amount = Amount { rounds: 1, bytes_s: 1, requests_s: 1, profiled: false };
        assert!(row(&nobody, amount, &tools, &AtomicBool::new(false)).is_ok());
        let error = row(&nobody, amount, &tools, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_full_run_fits_its_time() {
        let rows: Vec<Row> = crate::rows::all().into_iter().filter(|row| !row.long).collect();
        let amount = Amount { rounds: 3, bytes_s: 2, requests_s: 1, profiled: false };
        let estimate = amount.estimate(&rows);
        assert!((300.0..900.0).contains(&estimate), "{estimate}");
    }
}
