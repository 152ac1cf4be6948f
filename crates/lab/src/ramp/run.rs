//! Runs a ramp against one server or several that alternate.

use super::knee::{Knee, settle};
use super::level::Level;
use super::limit::judge;
use super::search::{Rates, next};
use super::watch::Watch;
use crate::load::{self, Arrivals, Load, Pace};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Between two levels: what is still under way of one shall not meet the next.
const PAUSE: Duration = Duration::from_millis(300);
/// How often a level is tried again that told nothing of the server.
const RETRIES: usize = 2;

/// How long a level is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// So long.
    Time(Duration),
    /// Until so many connections were due, or requests where connections are kept.
    Count(u64),
}

/// How connections are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// They come, ask so many times, and go.
    Opened {
        /// Requests on each.
        requests: u32,
        /// When those behind the first are due.
        pace: Pace,
    },
    /// So many are kept.
    Kept(usize),
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Levels, in requests a second.
    pub rates: Rates,
    /// How long each is.
    pub length: Length,
    /// How connections are used.
    pub connections: Use,
    /// How long an answer may take from when its request was due.
    pub timeout: Duration,
    /// Addresses to come from.
    pub sources: Vec<IpAddr>,
    /// Threads that ask.
    pub threads: usize,
    /// Ask without sleeping.
    pub spin: bool,
    /// How often each level is measured.
    pub rounds: usize,
    /// By how many milliseconds one departure in a hundred may be late before the level is refused.
    pub late_ms: f64,
}

/// A server with a path.
#[derive(Clone, PartialEq, Debug)]
pub struct Contender {
    /// Its name in tables.
    pub name: String,
    /// The URL as it was given.
    pub url: String,
    /// Where it answers.
    pub address: SocketAddr,
    /// Value of the header `Host`.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// The status that is expected.
    pub status: u16,
    /// Name of the workload, such as `http-354`.
    pub workload: String,
    /// Process of the server, if it was given.
    pub pid: Option<u32>,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ramp {
    /// The contender's name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// Its workload.
    pub workload: String,
    /// The status that was expected.
    pub status: u16,
    /// Requests on each connection; `None` where connections are kept.
    pub requests_per_connection: Option<u32>,
    /// The server's process, where it was seen.
    pub server_pid: Option<u32>,
    /// Levels by rising rate.
    pub levels: Vec<Level>,
    /// Where the curve bends.
    pub knee: Knee,
}

impl Plan {
    fn requests(&self) -> f64 {
        match self.connections {
            Use::Opened { requests, .. } => f64::from(requests.max(1)),
            Use::Kept(_) => 1.0,
        }
    }

    /// The load of a level of so many requests a second.
    pub fn load(&self, contender: &Contender, rate: f64) -> Load {
        let arrivals = match self.connections {
            Use::Opened { requests, pace } => {
                Arrivals::Opened { rate: rate / self.requests(), requests: requests.max(1), pace }
            }
            Use::Kept(connections) => Arrivals::Kept { connections, rate },
        };
        let time = match self.length {
            Length::Time(time) => time,
            Length::Count(count) => Duration::from_secs_f64(count as f64 / (rate / self.requests())),
        };
        Load {
            server: contender.address,
            host: contender.host.clone(),
            path: contender.path.clone(),
            arrivals,
            time,
            timeout: self.timeout,
            status: contender.status,
            sources: self.sources.clone(),
            threads: self.threads,
            spin: self.spin,
        }
    }
}

/// One contender's way up.
struct Climb<'a> {
    contender: &'a Contender,
    watch: Watch,
    levels: Vec<Level>,
}

/// Runs it. At each step every contender has a level, in an order that turns. `tell` is told what is under way, and what came of
/// it. An error is one of the system in setting up a level.
pub fn run(
    plan: &Plan,
    contenders: &[Contender],
    tell: &mut dyn FnMut(Told<'_>),
) -> std::io::Result<Vec<Ramp>> {
    let mut climbs: Vec<Climb<'_>> = contenders
        .iter()
        .map(|contender| Climb {
            contender,
            watch: Watch::new(contender.address, contender.pid),
            levels: Vec::new(),
        })
        .collect();
    for step in 0.. {
        let wanted: Vec<Option<f64>> = climbs.iter().map(|climb| next(&plan.rates, &climb.levels)).collect();
        if wanted.iter().all(Option::is_none) {
            break;
        }
        let mut rounds: Vec<Vec<Level>> = climbs.iter().map(|_| Vec::new()).collect();
        for round in 0..plan.rounds.max(1) {
            for place in 0..climbs.len() {
                let number = (place + step + round) % climbs.len();
                let (climb, Some(rate)) = (&climbs[number], wanted[number]) else { continue };
                tell(Told::Begins { name: &climb.contender.name, rate, round });
                let level = measure(plan, climb, rate)?;
                tell(Told::Done { name: &climb.contender.name, level: &level });
                rounds[number].push(level);
            }
        }
        for (climb, rounds) in climbs.iter_mut().zip(rounds) {
            climb.levels.extend(Level::median(&rounds));
        }
    }
    Ok(climbs.into_iter().map(|climb| climb.ramp(plan)).collect())
}

/// What a run tells.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// A level begins.
    Begins {
        /// Of whom.
        name: &'a str,
        /// Requests a second.
        rate: f64,
        /// In which round.
        round: usize,
    },
    /// A level is over.
    Done {
        /// Of whom.
        name: &'a str,
        /// What came of it.
        level: &'a Level,
    },
}

/// One level, tried again if it told nothing of the server.
fn measure(plan: &Plan, climb: &Climb<'_>, rate: f64) -> std::io::Result<Level> {
    let load = plan.load(climb.contender, rate);
    let mut attempt = 0;
    loop {
        std::thread::sleep(PAUSE);
        let before = climb.watch.before();
        let tally = load::run(&load)?;
        let mut level = Level::new(&load, &tally, climb.watch.since(&before, &tally));
        level.limit = judge(&level, plan.spin, plan.late_ms);
        if level.is_valid() || attempt == RETRIES {
            return Ok(level);
        }
        attempt += 1;
    }
}

impl Climb<'_> {
    fn ramp(self, plan: &Plan) -> Ramp {
        let mut levels = self.levels;
        let knee = settle(&mut levels);
        Ramp {
            name: self.contender.name.clone(),
            url: self.contender.url.clone(),
            workload: self.contender.workload.clone(),
            status: self.contender.status,
            requests_per_connection: match plan.connections {
                Use::Opened { requests, .. } => Some(requests),
                Use::Kept(_) => None,
            },
            server_pid: self.watch.server(),
            levels,
            knee,
        }
    }
}
