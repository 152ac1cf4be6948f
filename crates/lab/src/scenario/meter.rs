//! How much of the time wires and processors are busy while transfers run. What each was busy for so far is read off when the
//! first transfer begins and when the last is over, so that a share is of that time alone and never more than all of it.

use super::build::{Flow, Pair, Setup};
use super::file::Side;
use linerate_sim::{Direction, EndReport, World};
use linerate_wire::units::Instant;
use std::time::Duration;

/// Shares of the time in which what a host has was busy, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shares {
    /// What bounds the way that it sends into, the path or the line, while its own transfers ran.
    pub wire: f64,
    /// The same while any transfer ran.
    pub wire_by_all: f64,
    /// The line of its interface, while any transfer ran.
    pub line: f64,
    /// Its busiest processor, while any transfer ran.
    pub processor: f64,
}

/// For how long what a host has was busy so far.
#[derive(Clone, Debug, Default)]
struct Busy {
    path: Duration,
    line: Duration,
    processors: Vec<Duration>,
}

/// All that was read off at a time.
#[derive(Clone, Debug)]
struct Reading {
    at: Instant,
    busy: Pair<Busy>,
}

/// The time of some transfers: from the first connection to the end of the last.
#[derive(Clone, Debug, Default)]
struct Window {
    flows: Vec<Flow>,
    begin: Option<Reading>,
    end: Option<Reading>,
}

impl Window {
    fn new(flows: impl Iterator<Item = Flow>) -> Window {
        Window { flows: flows.collect(), begin: None, end: None }
    }

    fn begins(&self, world: &World) -> bool {
        let is_open = |flow: &Flow| ends(world, flow)[0].is_some_and(|sender| sender.opened_at.is_some());
        self.begin.is_none() && self.flows.iter().any(is_open)
    }

    fn ends(&self, world: &World) -> bool {
        let is_over = |flow: &Flow| {
            let [sender, receiver] = ends(world, flow);
            sender.is_none_or(|end| end.closed.is_some() || end.error.is_some())
                || receiver.is_none_or(|end| end.finished_at.is_some())
        };
        self.begin.is_some() && self.end.is_none() && self.flows.iter().all(is_over)
    }
}

/// The sender's and the receiver's end of a flow.
fn ends<'a>(world: &'a World, flow: &Flow) -> [Option<&'a EndReport>; 2] {
    let [client, server] = world.flow_seen(flow.id);
    if flow.from == flow.opens { [client, server] } else { [server, client] }
}

/// See the module.
pub struct Meter {
    /// When nothing had happened.
    start: Reading,
    /// Of what each host sends.
    own: Pair<Window>,
    all: Window,
}

impl Meter {
    /// Before the world runs.
    pub fn new(setup: &Setup) -> Meter {
        let from = |side: Side| Window::new(setup.flows.iter().filter(|flow| flow.from == side).cloned());
        Meter {
            start: reading(setup),
            own: Pair { client: from(Side::Client), server: from(Side::Server) },
            all: Window::new(setup.flows.iter().cloned()),
        }
    }

    /// Whether something is to be read off now.
    pub fn is_due(&self, world: &World) -> bool {
        [&self.own.client, &self.own.server, &self.all]
            .iter()
            .any(|window| window.begins(world) || window.ends(world))
    }

    /// Reads off what is due.
    pub fn read(&mut self, setup: &Setup) {
        for window in [&mut self.own.client, &mut self.own.server, &mut self.all] {
            if window.begins(&setup.world) {
                window.begin = Some(reading(setup));
            }
            if window.ends(&setup.world) {
                window.end = Some(reading(setup));
            }
        }
    }

    /// The shares, at the end of the run.
    pub fn shares(&self, setup: &Setup) -> Pair<Shares> {
        let last = reading(setup);
        let of = |side: Side| {
            let window = |window: &Window| {
                let end = window.end.as_ref().unwrap_or(&last);
                // Without a transfer there is the time in which it was tried.
                let begin = window.begin.as_ref().filter(|begin| begin.at < end.at);
                used(begin.unwrap_or(&self.start), end, side)
            };
            let [path, line, processor] = window(&self.all);
            let own = self.own.of(side);
            // Who only acknowledges does so as long as the others send.
            let [own_path, own_line, _] = window(if own.flows.is_empty() { &self.all } else { own });
            let is_path =
                setup.paths.of(side).rate_bps.is_some_and(|rate| rate <= *setup.line_rates_bps.of(side));
            Shares {
                wire: if is_path { own_path } else { own_line },
                wire_by_all: if is_path { path } else { line },
                line,
                processor,
            }
        };
        Pair { client: of(Side::Client), server: of(Side::Server) }
    }
}

/// How much of the time between two readings path, line and busiest processor of a host were busy.
fn used(begin: &Reading, end: &Reading, side: Side) -> [f64; 3] {
    let time = (end.at.max(begin.at) - begin.at).as_secs_f64();
    let share = |end: Duration, begin: Duration| {
        if time > 0.0 { end.saturating_sub(begin).as_secs_f64() / time } else { 0.0 }
    };
    let (begin, end) = (begin.busy.of(side), end.busy.of(side));
    let processors = end.processors.iter().zip(&begin.processors);
    let busiest = processors.map(|(end, begin)| share(*end, *begin)).fold(0.0, f64::max);
    [share(end.path, begin.path), share(end.line, begin.line), busiest]
}

fn reading(setup: &Setup) -> Reading {
    let now = setup.world.now();
    let of = |side: Side| {
        let id = *setup.hosts.of(side);
        let host = setup.world.host(id);
        Busy {
            path: setup.world.busy_time(id, Direction::Up),
            line: host.line_busy_by(now),
            processors: host.cores().iter().map(|core| core.busy_by(now)).collect(),
        }
    };
    Reading { at: now, busy: Pair { client: of(Side::Client), server: of(Side::Server) } }
}

#[cfg(test)]
mod tests {
    use crate::scenario::outcome::Outcome;
    use crate::scenario::{load, simulate};

    fn run(text: &str) -> Outcome {
        simulate(&load::parse(text).unwrap(), None)
    }

    /// The shares of a run.
    fn shares(outcome: &Outcome) -> Vec<f64> {
        let paths = [&outcome.paths.client, &outcome.paths.server];
        let hosts = [&outcome.hosts.client, &outcome.hosts.server];
        let wires = paths.iter().flat_map(|path| [path.used, path.used_by_all]);
        wires.chain(hosts.iter().flat_map(|host| [host.cpu_used, host.line_used])).collect()
    }

    #[test]
    fn frames_in_part_copies_and_work_to_come_make_no_share_more_than_whole() {
        let check = |text: &str, wire: std::ops::Range<f64>, processor: std::ops::Range<f64>| {
            let outcome = run(text);
            let (found, busy) = (outcome.paths.server.used, outcome.hosts.server.cpu_used);
            assert!(wire.contains(&found), "{text}: {found}");
            assert!(processor.contains(&busy), "{text}: processor {busy}");
            assert!(shares(&outcome).iter().all(|share| (0.0..=1.0).contains(share)), "{text}: {outcome:?}");
        };
        let none = 0.0..1e-9;
        check("link.rate = \"32 kbit/s\"\nworld.duration = \"1 s\"\n", 0.9..1.000_001, none.clone());
        check(
            "link = { rate = \"10 Mbit/s\", duplicate = \"30 %\" }\nworld.duration = \"1 s\"\n",
            0.9..1.000_001,
            none,
        );
        // Nobody gets as far as a connection.
        check(
            "server.processor = { packet = \"100 ms\" }\nworld.duration = \"1 s\"\n",
            0.0..0.01,
            0.2..1.000_001,
        );
    }

    #[test]
    fn who_only_acknowledges_uses_the_path_too() {
        let outcome = run("link.rate = \"10 Mbit/s\"\nworld.duration = \"1 s\"\n");
        assert!((0.02..0.1).contains(&outcome.paths.client.used), "{}", outcome.paths.client.used);
    }

    #[test]
    fn no_share_of_any_world_is_more_than_whole() {
        let mut state = 1u64;
        let mut any = |choices: &[&'static str]| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            choices[(state >> 33) as usize % choices.len()]
        };
        for _ in 0..60 {
            let text = format!(
                "world = {{ duration = \"{}\" }}\n\
                 link = {{ rate = \"{}\", delay = \"{}\", loss = \"{}\", duplicate = \"{}\" }}\n\
                 from-client.rate = \"{}\"\nserver = {{ line-rate = \"{}\", processor = {{ packet = \"{}\" }}, queues = {} }}\n\
                 [[flow]]\nfrom = \"{}\"\nstart = \"{}\"\n[[flow]]\nbytes = \"{}\"\n",
                any(&["3 ms", "50 ms", "300 ms", "1 s"]),
                any(&["1 kbit/s", "32 kbit/s", "1 Mbit/s", "20 Mbit/s"]),
                any(&["0 s", "1 ms", "40 ms"]),
                any(&["0 %", "1 %", "30 %"]),
                any(&["0 %", "20 %", "100 %"]),
                any(&["20 kbit/s", "5 Mbit/s", "100 Mbit/s"]),
                any(&["10 kbit/s", "10 Mbit/s", "1 Gbit/s"]),
                any(&["0 s", "2 us", "1 ms", "100 ms"]),
                any(&["1", "2"]),
                any(&["client", "server"]),
                any(&["0 s", "2 ms", "200 ms"]),
                any(&["1 B", "20 KiB", "1 MiB"]),
            );
            let outcome = run(&text);
            let found = shares(&outcome);
            assert!(found.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share)), "{text}: {found:?}");
        }
    }
}
