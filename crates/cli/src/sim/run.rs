//! Runs a world and watches it.

use super::build::{Flow, Pair, Setup};
use super::outcome::{FlowOutcome, FlowSample, HostOutcome, Outcome, PathOutcome, Sample};
use super::scenario::Side;
use linerate_sim::{Direction, EndReport, World};
use linerate_wire::units::Instant;
use std::time::Duration;

/// Most samples that are kept; beyond it every other one goes, and the distance doubles.
const MAX_SAMPLES: usize = 2_000;
/// Samples in the whole time if nothing ended before.
const FINEST: u32 = 40_000;

/// Follows how a flow gets on.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    received: u64,
    since: Duration,
    longest: Duration,
    longest_at: Duration,
    rtt_sum: Duration,
    rtt_least: Option<Duration>,
    rtt_most: Duration,
    rtt_count: u32,
}

impl Progress {
    fn see(&mut self, at: Duration, sample: FlowSample, is_active: bool) {
        if sample.received > self.received || !is_active {
            self.received = sample.received;
            self.since = at;
        } else if at - self.since > self.longest {
            self.longest = at - self.since;
            self.longest_at = self.since;
        }
        if let Some(rtt) = sample.rtt {
            self.rtt_sum += rtt;
            self.rtt_count += 1;
            self.rtt_least = Some(self.rtt_least.map_or(rtt, |least| least.min(rtt)));
            self.rtt_most = self.rtt_most.max(rtt);
        }
    }

    fn rtt(&self) -> Option<[Duration; 3]> {
        Some([self.rtt_least?, self.rtt_sum.checked_div(self.rtt_count)?, self.rtt_most])
    }
}

/// Runs until all flows are over or the time is up.
pub fn run(setup: &mut Setup, title: Option<String>, changes: Pair<bool>) -> Outcome {
    let begin = setup.world.now();
    let mut step = (setup.duration / FINEST).max(Duration::from_micros(1));
    let mut samples = Vec::new();
    let mut progress = vec![Progress::default(); setup.flows.len()];
    let mut waited = Pair::<(f64, u32)>::default();
    loop {
        let at = setup.world.now() - begin;
        let ids: Vec<_> = setup.flows.iter().map(|flow| flow.id).collect();
        let is_done = |world: &World| ids.iter().all(|id| world.is_flow_done(*id));
        let sample = sample(setup, at);
        for ((flow, seen), progress) in setup.flows.iter().zip(&sample.flows).zip(&mut progress) {
            let report = setup.world.flow(flow.id);
            let (sender, receiver) = ends(flow, &report);
            let is_active = sender.opened_at.is_some()
                && receiver.finished_at.is_none()
                && receiver.bytes_received < sender.bytes_sent;
            progress.see(at, *seen, is_active);
        }
        for (queued, waited) in
            [(sample.queued.client, &mut waited.client), (sample.queued.server, &mut waited.server)]
        {
            *waited = (waited.0 + queued as f64, waited.1 + 1);
        }
        samples.push(sample);
        if samples.len() > MAX_SAMPLES {
            let mut index = 0;
            samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            step *= 2;
        }
        if is_done(&setup.world) || at >= setup.duration {
            break;
        }
        let left = setup.duration - at;
        setup.world.run_until(step.min(left), |world| is_done(world));
    }
    let flows =
        setup.flows.iter().zip(&progress).map(|(flow, seen)| outcome(setup, flow, seen, begin)).collect();
    let waits = Pair { client: mean(waited.client), server: mean(waited.server) };
    Outcome {
        title,
        seed: setup.world.seed(),
        time: setup.world.now() - begin,
        flows,
        paths: Pair {
            client: path(setup, Side::Client, changes, waits),
            server: path(setup, Side::Server, changes, waits),
        },
        hosts: Pair { client: host(setup, Side::Client), server: host(setup, Side::Server) },
        samples,
    }
}

fn mean((sum, count): (f64, u32)) -> f64 {
    sum / f64::from(count.max(1))
}

/// The sending and the receiving end of a flow.
fn ends<'a>(flow: &Flow, report: &'a linerate_sim::FlowReport) -> (&'a EndReport, &'a EndReport) {
    match flow.from == flow.opens {
        true => (&report.client, &report.server),
        false => (&report.server, &report.client),
    }
}

fn sample(setup: &mut Setup, at: Duration) -> Sample {
    let world = &mut setup.world;
    let queued = Pair {
        client: world.queue_len(setup.hosts.client, Direction::Up).1,
        server: world.queue_len(setup.hosts.server, Direction::Up).1,
    };
    let flow = |flow: &Flow| {
        let report = world.flow(flow.id);
        let (sender, receiver) = ends(flow, &report);
        let live = sender.info.filter(|_| sender.closed.is_none());
        FlowSample {
            received: receiver.bytes_received,
            congestion_window: live.map(|info| info.congestion_window),
            rtt: live.and_then(|info| info.rtt),
        }
    };
    Sample { at, flows: setup.flows.iter().map(flow).collect(), queued }
}

fn outcome(setup: &Setup, flow: &Flow, progress: &Progress, begin: Instant) -> FlowOutcome {
    let report = setup.world.flow(flow.id);
    let (sender, receiver) = ends(flow, &report);
    let since = |at: Option<Instant>| at.map(|at| at - begin);
    FlowOutcome {
        flow: flow.clone(),
        queued: sender.bytes_sent,
        received: receiver.bytes_received,
        is_complete: receiver.finished_at.is_some() && receiver.bytes_received == sender.bytes_sent,
        closed: sender.closed.or(receiver.closed),
        error: sender.error.clone().or_else(|| receiver.error.clone()),
        opened_at: since(sender.opened_at),
        last_byte_at: since(receiver.last_byte_at),
        longest_stall: progress.longest,
        stalled_at: progress.longest_at,
        info: sender.info,
        rtt: progress.rtt(),
    }
}

fn path(setup: &Setup, side: Side, changes: Pair<bool>, mean_queued: Pair<f64>) -> PathOutcome {
    let path = setup.paths.of(side).clone();
    let wait = path.rate_bps.map_or(0.0, |rate| mean_queued.of(side) * 8.0 / rate as f64);
    PathOutcome {
        stats: setup.world.path_stats(*setup.hosts.of(side), Direction::Up),
        path,
        changes: *changes.of(side),
        mean_wait: Duration::from_secs_f64(wait),
    }
}

fn host(setup: &Setup, side: Side) -> HostOutcome {
    let nic = setup.world.host(*setup.hosts.of(side)).nic();
    HostOutcome {
        nic: nic.stats(),
        line_rate_bps: *setup.line_rates_bps.of(side),
        rx_ring: nic.config().rx_ring,
    }
}
