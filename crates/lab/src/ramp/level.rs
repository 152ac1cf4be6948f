//! One level of a ramp: what was offered, what came of it, and who was the limit.

use crate::load::{Fault, Faults, Load, Tally, milliseconds};
use crate::measure::statistics::spread;
use crate::quantity::count;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Times {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What one in ten exceeds.
    pub p90: f64,
    /// What one in a hundred exceeds.
    pub p99: f64,
    /// What one in a thousand exceeds.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// A quantile's name, and the time.
pub type Quantile = (&'static str, fn(&Times) -> f64);

/// The quantiles that are shown.
pub const QUANTILES: [Quantile; 5] = [
    ("p50", |times| times.p50),
    ("p90", |times| times.p90),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p999),
    ("max", |times| times.max),
];

impl Times {
    /// Of a histogram of nanoseconds; `None` of an empty one.
    pub fn of(histogram: &Histogram<u64>) -> Option<Times> {
        let at = |quantile| milliseconds(histogram, quantile);
        Some(Times {
            mean: histogram.mean() / 1e6,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            p999: at(0.999)?,
            max: at(1.0)?,
        })
    }

    fn fields(&self) -> [f64; 6] {
        [self.mean, self.p50, self.p90, self.p99, self.p999, self.max]
    }

    fn medians(all: &[Option<Times>]) -> Option<Times> {
        let found: Vec<[f64; 6]> = all.iter().flatten().map(Times::fields).collect();
        let at = |place: usize| spread(found.iter().map(|fields| fields[place])).map(|spread| spread.median);
        Some(Times { mean: at(0)?, p50: at(1)?, p90: at(2)?, p99: at(3)?, p999: at(4)?, max: at(5)? })
    }
}

/// Processor time in cores: 1.0 is one core all the time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// Our own threads that ask.
    pub client: f64,
    /// The busiest of them.
    pub client_thread: f64,
    /// The server with its children, where it can be seen.
    pub server: Option<f64>,
    /// Its busiest thread.
    pub server_thread: Option<f64>,
    /// Interrupts of hardware and software, on all cores; much of it is counted for whom they interrupt as well.
    pub interrupts: f64,
    /// All that was busy, on all cores.
    pub busy: f64,
    /// What the machine's host took away.
    pub stolen: f64,
    /// Cores of the machine.
    pub cores: f64,
}

impl Cpu {
    /// What other programs of the machine used, as far as the server is seen; `None` where it is not.
    pub fn others(&self) -> Option<f64> {
        self.server.map(|server| (self.busy - server - self.client - self.interrupts).max(0.0))
    }
}

/// What the kernel's network stack counted meanwhile, in our namespace and in the server's.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Network {
    /// Segments that we sent.
    pub sent: u64,
    /// Such as were sent again.
    pub retransmitted: u64,
    /// Of these, such as open a connection.
    pub syn_retransmitted: u64,
    /// Connections that found no room at the server's listener, where it can be seen.
    pub listen_drops: Option<u64>,
    /// Rate of the link that leads to the server in bits per second, where it is known.
    pub link_bps: Option<f64>,
}

/// What was seen around a level.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Processor time.
    pub cpu: Cpu,
    /// The network.
    pub network: Network,
}

/// Who could not do more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "who", content = "why", rename_all = "lowercase")]
pub enum Limit {
    /// All that was offered was answered.
    None,
    /// The server.
    Server(String),
    /// The client: the level tells nothing of the server.
    Client(String),
    /// Other programs of its machine, or the machine's host, which took the cores: the level tells nothing of the server.
    Machine(String),
    /// What lies between: the level tells nothing of the server.
    Path(String),
    /// Nobody: the server was gone, and what failed is no matter of the rate.
    Gone(String),
}

/// One level.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Level {
    /// Connections a second that were due; `None` where they are kept.
    pub connection_rate: Option<f64>,
    /// Requests a second that were due.
    pub offered_rate: f64,
    /// Answers a second while requests were due.
    pub answered_rate: f64,
    /// For how many seconds something became due.
    pub seconds: f64,
    /// Connections that became due.
    pub connections: u64,
    /// Connections that came to stand.
    pub established: u64,
    /// Requests that became due: each was answered or failed.
    pub offered: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed, by kind.
    pub errors: Faults,
    /// From the moment when a request was due until its answer was whole.
    pub response_ms: Option<Times>,
    /// From the moment when a request was sent until its answer began.
    pub first_byte_ms: Option<Times>,
    /// From the moment when a connection was due until it stood.
    pub connect_ms: Option<Times>,
    /// How late the client was to send or connect.
    pub late_ms: Option<Times>,
    /// Bytes a second that came in, heads included, until all were answered.
    pub received_rate: f64,
    /// Bytes of bodies that came in with the last answer.
    pub body_len: Option<u64>,
    /// Open connections at even distances of the time.
    pub open: Vec<u32>,
    /// The most at once.
    pub most_open: u64,
    /// What was seen around it.
    pub seen: Seen,
    /// Who could not do more.
    pub limit: Limit,
    /// Rounds of which the figures are medians.
    pub rounds: usize,
    /// Least and most of the rate of answers over the rounds.
    pub answered_spread: [f64; 2],
    /// Least and most of the p99 of response times over the rounds, in milliseconds.
    pub p99_spread_ms: [f64; 2],
}

impl Level {
    /// A level that was measured once; its limit is not judged yet.
    pub fn new(load: &Load, tally: &Tally, seen: Seen) -> Level {
        let answered_rate = tally.rate(load.time);
        let response_ms = Times::of(&tally.response);
        let p99 = response_ms.map_or(0.0, |times| times.p99);
        Level {
            connection_rate: match load.arrivals {
                crate::load::Arrivals::Opened { rate, .. } => Some(rate),
                crate::load::Arrivals::Kept { .. } => None,
            },
            offered_rate: load.request_rate().unwrap_or(answered_rate),
            answered_rate,
            seconds: load.time.as_secs_f64(),
            connections: tally.connections,
            established: tally.established,
            offered: tally.offered,
            answered: tally.answered,
            errors: tally.faults.clone(),
            response_ms,
            first_byte_ms: Times::of(&tally.first_byte),
            connect_ms: Times::of(&tally.connect),
            late_ms: Times::of(&tally.late),
            received_rate: tally.received as f64 / tally.elapsed.as_secs_f64().max(1e-9),
            body_len: tally.body_len,
            open: tally.open.clone(),
            most_open: tally.most_open,
            seen,
            limit: Limit::None,
            rounds: 1,
            answered_spread: [answered_rate; 2],
            p99_spread_ms: [p99; 2],
        }
    }

    /// Share of requests that failed.
    pub fn error_share(&self) -> f64 {
        let failed: u64 = self.errors.values().sum();
        failed as f64 / (self.offered.max(1)) as f64
    }

    /// Failures of a kind.
    pub fn failed(&self, fault: Fault) -> u64 {
        self.errors.get(&fault).copied().unwrap_or(0)
    }

    /// The level's p99 of response times in milliseconds; without any answer it is boundless.
    pub fn p99_ms(&self) -> f64 {
        self.response_ms.map_or(f64::INFINITY, |times| times.p99)
    }

    /// Whether the level tells something of what the server carries.
    pub fn is_valid(&self) -> bool {
        matches!(self.limit, Limit::None | Limit::Server(_))
    }

    /// Whether the client or the path was the limit.
    pub fn is_refused(&self) -> bool {
        matches!(self.limit, Limit::Client(_) | Limit::Machine(_) | Limit::Path(_))
    }

    /// Whether the server was gone.
    pub fn is_gone(&self) -> bool {
        matches!(self.limit, Limit::Gone(_))
    }

    /// Whether nothing came from the server, not even an answer that is wrong, and the client is not to blame by itself.
    pub fn is_silent(&self) -> bool {
        let is_silence = |fault: &Fault| {
            matches!(
                fault,
                Fault::Refused | Fault::Reset | Fault::Timeout | Fault::Closed | Fault::Unreachable
            )
        };
        self.offered > 0
            && self.answered == 0
            && self.errors.iter().all(|(fault, count)| *count == 0 || is_silence(fault))
    }

    /// Failures by kind, as in `refused 3, closed 1`; empty without any.
    pub fn failures(&self) -> String {
        let kinds = self.errors.iter().map(|(fault, failed)| format!("{fault} {}", count(*failed)));
        kinds.collect::<Vec<_>>().join(", ")
    }

    /// Rounds of the same level as one: medians; counts are sums, and open connections those of the first. Rounds that tell nothing
    /// of the server are left out if others do. `None` without any.
    pub fn median(rounds: &[Level]) -> Option<Level> {
        let valid: Vec<&Level> = rounds.iter().filter(|level| level.is_valid()).collect();
        let all: Vec<&Level> = if valid.is_empty() { rounds.iter().collect() } else { valid };
        let mut level = (*all.first()?).clone();
        let median = |of: &dyn Fn(&Level) -> f64| {
            spread(all.iter().map(|level| of(level))).map_or(f64::NAN, |spread| spread.median)
        };
        let optional = |of: &dyn Fn(&Level) -> Option<f64>| {
            spread(all.iter().filter_map(|level| of(level))).map(|spread| spread.median)
        };
        let times = |of: &dyn Fn(&Level) -> Option<Times>| {
            Times::medians(&all.iter().map(|level| of(level)).collect::<Vec<_>>())
        };
        let range = |of: &dyn Fn(&Level) -> f64| {
            spread(all.iter().map(|level| of(level))).map_or([0.0; 2], |spread| [spread.least, spread.most])
        };
        level.answered_rate = median(&|level| level.answered_rate);
        level.received_rate = median(&|level| level.received_rate);
        level.response_ms = times(&|level| level.response_ms);
        level.first_byte_ms = times(&|level| level.first_byte_ms);
        level.connect_ms = times(&|level| level.connect_ms);
        level.late_ms = times(&|level| level.late_ms);
        level.seen.cpu = Cpu {
            client: median(&|level| level.seen.cpu.client),
            client_thread: median(&|level| level.seen.cpu.client_thread),
            server: optional(&|level| level.seen.cpu.server),
            server_thread: optional(&|level| level.seen.cpu.server_thread),
            interrupts: median(&|level| level.seen.cpu.interrupts),
            busy: median(&|level| level.seen.cpu.busy),
            stolen: median(&|level| level.seen.cpu.stolen),
            cores: level.seen.cpu.cores,
        };
        level.errors = BTreeMap::new();
        (level.connections, level.established, level.offered, level.answered) = (0, 0, 0, 0);
        for round in &all {
            level.connections += round.connections;
            level.established += round.established;
            level.offered += round.offered;
            level.answered += round.answered;
            for (fault, failed) in &round.errors {
                *level.errors.entry(*fault).or_default() += failed;
            }
            level.most_open = level.most_open.max(round.most_open);
        }
        level.rounds = all.len();
        level.answered_spread = range(&|level| level.answered_rate);
        level.p99_spread_ms = range(&|level| level.response_ms.map_or(0.0, |times| times.p99));
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::level;
    use super::*;

    #[test]
    fn silence_is_where_nothing_came() {
        let check = |faults: &[(Fault, u64)], answered: u64, expected: bool| {
            let errors = faults.iter().copied().collect();
            let level = Level { answered, errors, ..level(100.0, 0.0, 1.0) };
            assert_eq!(level.is_silent(), expected, "{faults:?}, {answered} answered");
        };
        check(&[(Fault::Refused, 100)], 0, true);
        check(&[(Fault::Closed, 40), (Fault::Timeout, 30), (Fault::Reset, 30)], 0, true);
        check(&[(Fault::Refused, 99)], 1, false);
        // An answer that is wrong is one.
        check(&[(Fault::Refused, 99), (Fault::Status, 1)], 0, false);
        check(&[(Fault::Malformed, 100)], 0, false);
        // This is the client's.
        check(&[(Fault::Timeout, 50), (Fault::NoPort, 50)], 0, false);
    }
}
