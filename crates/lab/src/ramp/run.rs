//! Runs a ramp against one server or several that alternate.

use super::knee::{Knee, settle};
use super::level::{Level, Limit};
use super::limit::judge;
use super::probe::ask;
use super::search::{Rates, next};
use super::table::rates;
use super::watch::Watch;
use crate::load::{self, Arrivals, Load, Pace, Schedule};
use crate::quantity::count;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Between two levels: what is still under way of one shall not meet the next.
const PAUSE: Duration = Duration::from_millis(300);
/// A server that is asked alone after a level without an answer has so long at least: it may have a queue to work off.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest level in seconds: more than anybody waits for, and still a time to reckon with.
const LONGEST_S: f64 = 1e9;
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

    /// How long a level of so many requests a second is.
    fn time(&self, rate: f64) -> Duration {
        match self.length {
            Length::Time(time) => self.whole(rate, time),
            Length::Count(count) => self.time_of(rate, count),
        }
    }

    /// A time in which a whole number of connections becomes due, or of requests where connections are kept. Else the few of a low rate could
    /// be less than the rate says, and the server would be blamed for what was not offered.
    fn whole(&self, rate: f64, time: Duration) -> Duration {
        self.time_of(rate, Schedule::count(self.arrivals(rate), time))
    }

    fn time_of(&self, rate: f64, count: u64) -> Duration {
        Duration::from_secs_f64((count as f64 / (rate / self.requests())).min(LONGEST_S))
    }

    fn arrivals(&self, rate: f64) -> Arrivals {
        match self.connections {
            Use::Opened { requests, pace } => {
                Arrivals::Opened { rate: rate / self.requests(), requests: requests.max(1), pace }
            }
            Use::Kept(connections) => Arrivals::Kept { connections, rate },
        }
    }

    /// The load of a level of so many requests a second.
    pub fn load(&self, contender: &Contender, rate: f64) -> Load {
        Load {
            server: contender.address,
            host: contender.host.clone(),
            path: contender.path.clone(),
            arrivals: self.arrivals(rate),
            time: self.time(rate),
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
/// it. An error is one of the system in setting up a level. Where a server goes away all ends, and [`gone`] says so of what is
/// returned.
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
    let mut is_gone = false;
    for step in 0.. {
        let wanted: Vec<Option<f64>> = climbs.iter().map(|climb| next(&plan.rates, &climb.levels)).collect();
        if is_gone || wanted.iter().all(Option::is_none) {
            break;
        }
        let mut rounds: Vec<Vec<Level>> = climbs.iter().map(|_| Vec::new()).collect();
        'rounds: for round in 0..plan.rounds.max(1) {
            for place in 0..climbs.len() {
                let number = (place + step + round) % climbs.len();
                let (climb, Some(rate)) = (&climbs[number], wanted[number]) else { continue };
                tell(Told::Begins { name: &climb.contender.name, rate, round });
                let level = measure(plan, climb, rate)?;
                tell(Told::Done { name: &climb.contender.name, level: &level });
                is_gone = level.is_gone();
                rounds[number].push(level);
                if is_gone {
                    break 'rounds;
                }
            }
        }
        for (climb, rounds) in climbs.iter_mut().zip(rounds) {
            climb.add(rounds, plan);
        }
    }
    Ok(climbs.into_iter().map(|climb| climb.ramp(plan)).collect())
}

/// What failed where a server went away within a ramp; `None` where none did.
pub fn gone(ramps: &[Ramp]) -> Option<String> {
    ramps.iter().find_map(|ramp| {
        ramp.levels.iter().filter(|level| level.is_silent()).find_map(|level| {
            let Limit::Gone(why) = &level.limit else { return None };
            let (offered, rate) = (count(level.offered), rates(level.offered_rate));
            Some(format!(
                "nothing answers any more: {}: at {rate} requests/s all of {offered} failed ({}), and asked alone: {why}",
                ramp.url,
                level.failures()
            ))
        })
    })
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

/// One level, tried again if it told nothing of the server, and once longer if its answers took too long for it to tell.
fn measure(plan: &Plan, climb: &Climb<'_>, rate: f64) -> std::io::Result<Level> {
    let mut load = plan.load(climb.contender, rate);
    let mut attempt = 0;
    loop {
        std::thread::sleep(PAUSE);
        let before = climb.watch.before();
        let tally = load::run(&load)?;
        let is_first = load.time == plan.time(rate);
        if let Some(longer) = tally.longer(load.time).filter(|_| is_first) {
            load.time = plan.whole(rate, longer);
            continue;
        }
        let mut level = Level::new(&load, &tally, climb.watch.since(&before, &tally));
        level.limit = judge(&level, plan.spin, plan.late_ms);
        if level.is_silent()
            && let Err(why) = ask_alone(plan, climb.contender)
        {
            level.limit = Limit::Gone(why);
            return Ok(level);
        }
        if level.is_valid() || attempt == RETRIES {
            return Ok(level);
        }
        attempt += 1;
    }
}

/// Asks once whether there is still somebody who answers, whatever it is.
fn ask_alone(plan: &Plan, contender: &Contender) -> Result<(), String> {
    std::thread::sleep(PAUSE);
    let timeout = plan.timeout.max(PATIENCE);
    ask(&contender.path, &contender.host, contender.address, timeout).map(drop)
}

/// A level of several rounds by its medians: its first round alone may have been in order, or not. Whether rounds tell something of the server
/// was judged of each.
fn judged_again(mut level: Level, plan: &Plan) -> Level {
    if level.is_valid() {
        let limit = judge(&level, plan.spin, plan.late_ms);
        if matches!(limit, Limit::None | Limit::Server(_)) {
            level.limit = limit;
        }
    }
    level
}

impl Climb<'_> {
    /// Adds the rounds of a level. The server may have gone in the level before already: one that was not in order is not held
    /// against it, unless it was asked alone afterwards.
    fn add(&mut self, rounds: Vec<Level>, plan: &Plan) {
        let (gone, measured): (Vec<Level>, Vec<Level>) = rounds.into_iter().partition(Level::is_gone);
        self.levels.extend(Level::median(&measured).map(|level| judged_again(level, plan)));
        if !gone.is_empty()
            && let Some(last) = self.levels.last_mut()
            && matches!(last.limit, Limit::Server(_))
            && !last.is_silent()
        {
            last.limit = Limit::Gone("it may have gone within this level".to_owned());
        }
        self.levels.extend(gone);
    }

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

#[cfg(test)]
mod tests {
    use super::super::knee::tests::level;
    use super::super::table::sentence;
    use super::*;
    use crate::load::Fault;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::JoinHandle;

    /// Answers requests until it is stopped; with `is_shy` only those on connections that ask for nothing else. Each takes a time.
    struct Server {
        address: SocketAddr,
        is_over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Server {
        fn start(is_shy: bool, takes: Duration) -> Server {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let is_over = Arc::new(AtomicBool::new(false));
            let over = is_over.clone();
            let thread = std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    let stream = stream.unwrap();
                    std::thread::spawn(move || serve(stream, is_shy, takes));
                }
            });
            Server { address, is_over, thread: Some(thread) }
        }

        fn stop(&mut self) {
            let Some(thread) = self.thread.take() else { return };
            self.is_over.store(true, Ordering::SeqCst);
            // It waits for a connection.
            let _ = TcpStream::connect(self.address);
            thread.join().unwrap();
        }
    }

    fn serve(mut stream: TcpStream, is_shy: bool, takes: Duration) {
        let mut bytes = [0; 1_024];
        while let Ok(len @ 1..) = stream.read(&mut bytes) {
            let is_last = String::from_utf8_lossy(&bytes[..len]).contains("Connection: close");
            if is_shy && !is_last {
                return;
            }
            std::thread::sleep(takes);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab");
            if is_last {
                return;
            }
        }
    }

    fn contender(address: SocketAddr) -> Contender {
        Contender {
            name: "x".into(),
            url: "http://x/".into(),
            address,
            host: "x".into(),
            path: "/".into(),
            status: 200,
            workload: "http-2".into(),
            pid: None,
        }
    }

    /// Two levels of 20 and 40 requests/s, two on each connection.
    fn plan() -> Plan {
        Plan {
            rates: Rates::Listed(vec![20.0, 40.0]),
            length: Length::Time(Duration::from_millis(300)),
            connections: Use::Opened { requests: 2, pace: Pace::Requests },
            timeout: Duration::from_secs(1),
            sources: Vec::new(),
            threads: 1,
            spin: false,
            rounds: 1,
            late_ms: 1e6,
        }
    }

    /// The server is stopped after so many levels.
    fn ramp(is_shy: bool, stop_after: usize) -> Vec<Ramp> {
        let mut server = Server::start(is_shy, Duration::ZERO);
        let mut done = 0;
        let ramps = run(&plan(), &[contender(server.address)], &mut |told| {
            done += usize::from(matches!(told, Told::Done { .. }));
            if done == stop_after {
                server.stop();
            }
        });
        server.stop();
        ramps.unwrap()
    }

    #[test]
    fn a_level_is_longer_where_answers_take_most_of_it() {
        for pace in [Pace::Requests, Pace::Connections] {
            let mut server = Server::start(false, Duration::from_millis(120));
            let plan = Plan {
                connections: Use::Opened { requests: 3, pace },
                rates: Rates::Listed(vec![30.0]),
                ..plan()
            };
            // A machine that is busy otherwise may disturb a level.
            let is_in_order = (0..10).any(|_| {
                let ramps = run(&plan, &[contender(server.address)], &mut |_| ()).unwrap();
                let level = &ramps[0].levels[0];
                assert!(level.seconds > 1.0, "{level:?}");
                level.limit == Limit::None
            });
            server.stop();
            assert!(is_in_order);
        }
    }

    #[test]
    fn a_server_that_goes_away_ends_the_ramp() {
        let ramps = ramp(false, 1);
        let why = gone(&ramps).unwrap();
        for part in [
            "nothing answers any more: http://x/: at 40.0 requests/s all of 12 failed (refused 12)",
            "cannot connect",
        ] {
            assert!(why.contains(part), "{part:?} in {why}");
        }
        let found = &ramps[0];
        assert_eq!(found.levels.len(), 2);
        assert!(found.levels[0].answered > 0 && found.levels[1].is_gone(), "{found:?}");
        assert_eq!(found.knee.below_rate, None);
        assert!(sentence(found).ends_with("The server went away: the ramp is not whole."));
    }

    #[test]
    fn a_server_that_answers_when_asked_alone_is_not_gone() {
        let ramps = ramp(true, 2);
        assert_eq!(gone(&ramps), None);
        let levels = &ramps[0].levels;
        assert_eq!(levels.len(), 2, "the ramp goes on");
        for level in levels {
            assert!(level.is_silent() && matches!(level.limit, Limit::Server(_)), "{level:?}");
        }
    }

    #[test]
    fn a_level_lasts_as_long_as_what_it_offers() {
        let check = |rate: f64, length: Length, seconds: f64, offered: u64| {
            let plan = Plan { length, ..plan() };
            let load = plan.load(&contender("127.0.0.1:9".parse().unwrap()), rate);
            assert!((load.time.as_secs_f64() - seconds).abs() < 1e-6, "{rate}: {:?}", load.time);
            assert_eq!(Schedule::count(load.arrivals, load.time) * 2, offered, "{rate}");
            assert_eq!(load.request_rate(), Some(rate));
        };
        let time = Length::Time(Duration::from_secs(3));
        check(0.8, time, 2.5, 2);
        check(1.0, time, 4.0, 4);
        check(0.2, time, 10.0, 2);
        check(100.0, time, 3.0, 300);
        check(1.0, Length::Count(5), 10.0, 10);
    }

    #[test]
    fn rounds_are_judged_by_their_medians() {
        let check = |answered: [f64; 3], in_order: bool| {
            let contender = contender("127.0.0.1:9".parse().unwrap());
            let watch = Watch::new(contender.address, None);
            let mut climb = Climb { contender: &contender, watch, levels: Vec::new() };
            let round = |answered: f64| {
                let level = level(100.0, answered, 1.0);
                Level { limit: judge(&level, false, 1.0), ..level }
            };
            climb.add(answered.map(round).to_vec(), &plan());
            let found = &climb.levels[0];
            assert_eq!((found.limit == Limit::None, found.is_valid()), (in_order, true), "{found:?}");
        };
        check([60.0, 100.0, 100.0], true);
        check([100.0, 60.0, 100.0], true);
        check([100.0, 60.0, 60.0], false);
        check([60.0, 60.0, 100.0], false);
    }

    #[test]
    fn the_level_before_is_not_held_against_a_server_that_went_away() {
        let check = |change: fn(&mut Level), expected: bool| {
            let mut before = level(100.0, 100.0, 1.0);
            change(&mut before);
            let contender = contender("127.0.0.1:9".parse().unwrap());
            let watch = Watch::new(contender.address, None);
            let mut climb = Climb { contender: &contender, watch, levels: vec![before] };
            climb.add(vec![Level { limit: Limit::Gone("x".into()), ..level(200.0, 0.0, 1.0) }], &plan());
            assert_eq!(climb.levels.len(), 2);
            assert_eq!(climb.levels[0].is_gone(), expected, "{:?}", climb.levels[0]);
        };
        check(|_| {}, false);
        check(|level| level.limit = Limit::Server("50 %".into()), true);
        check(|level| level.limit = Limit::Client("late".into()), false);
        // After this one it was asked, and answered.
        let silent = |level: &mut Level| {
            level.limit = Limit::Server("0 %".into());
            level.answered = 0;
            level.errors.insert(Fault::Closed, 100);
        };
        check(silent, false);
    }
}
