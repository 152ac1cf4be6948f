//! Runs a world and watches it.

use super::build::{Flow, Pair, Setup};
use super::file::Side;
use super::meter::{Meter, Shares};
use super::outcome::{FlowOutcome, FlowSample, HostOutcome, Outcome, PathOutcome, QueueOutcome, Sample};
use super::progress::{Counted, Progress};
use linerate_nic::QueuePair;
use linerate_sim::{Core, CpuTimes, Direction, EndReport, Host, PacingMode, World};
use linerate_wire::units::Instant;
use std::time::Duration;

/// Most samples that are kept; beyond it every other one goes, and the distance doubles.
const MAX_SAMPLES: usize = 2_000;
/// Samples in the whole time if nothing ended before.
const FINEST: u32 = 40_000;

/// Runs until all flows are over or the time is up.
pub fn run(setup: &mut Setup, title: Option<String>, changes: Pair<bool>) -> Outcome {
    let begin = setup.world.now();
    let mut step = (setup.duration / FINEST).max(Duration::from_micros(1));
    let mut samples = Vec::new();
    let mut progress = vec![Progress::default(); setup.flows.len()];
    let mut memory = Pair::<f64>::default();
    let mut before = Duration::ZERO;
    let mut meter = Meter::new(setup);
    loop {
        let at = setup.world.now() - begin;
        let ids: Vec<_> = setup.flows.iter().map(|flow| flow.id).collect();
        let is_done = |world: &World| ids.iter().all(|id| world.is_flow_done(*id));
        let sample = sample(setup, at);
        for ((flow, seen), progress) in setup.flows.iter().zip(&sample.flows).zip(&mut progress) {
            let report = setup.world.flow(flow.id);
            let (sender, receiver) = ends(flow, &report);
            progress.see(at, *seen, sender, receiver, &counted(setup, flow));
        }
        for (side, held) in [(Side::Client, &mut memory.client), (Side::Server, &mut memory.server)] {
            let [used, limit] = memory_of(setup.world.host(*setup.hosts.of(side)));
            *held += (at - before).as_secs_f64() * used as f64 / limit.max(1) as f64;
        }
        before = at;
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
        let next = setup.world.now() + step.min(setup.duration - at);
        // Where a transfer begins or ends, what was busy so far is read off, and the step goes on.
        while setup.world.now() < next && !is_done(&setup.world) {
            let left = next - setup.world.now();
            setup.world.run_until(left, |world| is_done(world) || meter.is_due(world));
            meter.read(setup);
        }
    }
    let shares = meter.shares(setup);
    let flows =
        setup.flows.iter().zip(&progress).map(|(flow, seen)| outcome(setup, flow, seen, begin)).collect();
    let time = setup.world.now() - begin;
    let share = |held: f64| held / time.as_secs_f64().max(1e-9);
    Outcome {
        title,
        seed: setup.world.seed(),
        time,
        flows,
        paths: Pair {
            client: path(setup, Side::Client, changes, &shares),
            server: path(setup, Side::Server, changes, &shares),
        },
        hosts: Pair {
            client: host(setup, Side::Client, share(memory.client), &shares),
            server: host(setup, Side::Server, share(memory.server), &shares),
        },
        samples,
    }
}

/// What the paths and the receiver of a flow have counted so far.
fn counted(setup: &Setup, flow: &Flow) -> Counted {
    let (from, to) = (*setup.hosts.of(flow.from), *setup.hosts.of(flow.from.other()));
    let receiver = setup.world.host(to);
    Counted {
        there: setup.world.path_stats(from, Direction::Up),
        back: setup.world.path_stats(to, Direction::Up),
        receiver: receiver.nic_stats(),
        sender: setup.world.host(from).nic_stats(),
        no_memory: receiver.cores().iter().map(|core| core.stack.counters().drop_tcp_no_memory).sum(),
    }
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
    let last_byte_at = since(receiver.last_byte_at);
    let is_complete = receiver.finished_at.is_some() && receiver.bytes_received == sender.bytes_sent;
    let end = since(sender.closed_at).unwrap_or(setup.world.now() - begin);
    FlowOutcome {
        flow: flow.clone(),
        queued: sender.bytes_sent,
        received: receiver.bytes_received,
        is_complete,
        closed: sender.closed.or(receiver.closed),
        error: sender.error.clone().or_else(|| receiver.error.clone()),
        opened_at: since(sender.opened_at),
        last_byte_at,
        until: last_byte_at.filter(|_| is_complete).unwrap_or(end),
        longest_stall: progress.longest,
        stalled_at: progress.longest_at,
        mean: progress.mean(),
        mishaps: progress.mishaps,
        info: sender.info,
        rtt: progress.rtt(),
    }
}

fn path(setup: &Setup, side: Side, changes: Pair<bool>, shares: &Pair<Shares>) -> PathOutcome {
    PathOutcome {
        stats: setup.world.path_stats(*setup.hosts.of(side), Direction::Up),
        path: setup.paths.of(side).clone(),
        changes: *changes.of(side),
        used: shares.of(side).wire,
        used_by_all: shares.of(side).wire_by_all,
    }
}

fn host(setup: &Setup, side: Side, memory_used: f64, shares: &Pair<Shares>) -> HostOutcome {
    let host = setup.world.host(*setup.hosts.of(side));
    let nic = host.nic();
    let no_memory = |core: &Core| {
        let counters = core.stack.counters();
        counters.drop_tcp_no_memory + counters.drop_syn_no_memory
    };
    let queue = |core: &Core| QueueOutcome { nic: core.nic().stats(), letters: core.letters() };
    HostOutcome {
        nic: host.nic_stats(),
        queues: host.cores().iter().map(queue).collect(),
        line_rate_bps: *setup.line_rates_bps.of(side),
        rx_ring: nic.config().rx_ring,
        interrupt_packets: (nic.config().pacing.mode == PacingMode::None)
            .then_some(nic.config().pacing.threshold),
        tx_ring: nic.config().tx_ring,
        mtu: nic.config().mtu,
        offloads: nic.enabled(),
        completion_delay: nic.config().completion_delay,
        cpu: host.cores().iter().map(|core| core.cpu_times()).max_by_key(CpuTimes::total).unwrap_or_default(),
        cpu_used: shares.of(side).processor,
        line_used: shares.of(side).line,
        memory: memory_of(host)[1],
        memory_used,
        no_memory: host.cores().iter().map(no_memory).sum(),
    }
}

/// Bytes of memory that all stacks of a host hold, and may hold.
fn memory_of(host: &Host) -> [usize; 2] {
    host.cores()
        .iter()
        .map(|core| core.stack.memory())
        .fold([0, 0], |[used, limit], stats| [used + stats.used, limit + stats.limit])
}
