//! Random worlds: both ends ours, faults of every kind. Each byte arrives once and in order, or the connection ends
//! with a reason; time does not stand still; and all memory comes back.
//!
//! `LINERATE_WORLDS` says how many worlds there are (10,000 unless told otherwise), `LINERATE_SEED` runs one of them alone,
//! and `LINERATE_PCAP` writes what that one carried to a file.

mod plan;

use linerate_sim::{Core, EndReport, FlowReport, HostId, World, check, replay};
use linerate_transport::CloseReason;
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Longer than any sequence of timeouts: user timeout 60 s on either side, keep-alive 120 s, and slow readers.
const LIMIT: Duration = Duration::from_secs(3_600);

/// Beyond TIME-WAIT, whatever is still under way.
const AFTERMATH: Duration = Duration::from_secs(300);

#[test]
fn random_worlds() {
    let count = std::env::var("LINERATE_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let tally = Mutex::new(BTreeMap::<String, u64>::new());
    check("linerate-sim", "random_worlds", count, |seed| {
        let outcome = run(&Plan::new(seed))?;
        let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (name, count) in outcome {
            *tally.entry(name).or_default() += count;
        }
        Ok(())
    });
    for (name, count) in tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        println!("{count:>12} {name}");
    }
}

/// Runs a world to its end and says what came of it, to be summed up.
fn run(plan: &Plan) -> Result<Vec<(String, u64)>, String> {
    let (mut world, a, b, flow) = plan.world();
    let before = [a, b].map(|host| held(&world, host));
    if replay::wants_capture() {
        world.capture(a);
    }
    let is_over = world.run_flow(flow, LIMIT);
    let report = world.flow(flow);
    let ended = world.now();
    // A server that nobody reached waits for ever; that is no fault of it.
    let was_not_reached = report.server.opened_at.is_none() && report.client.closed.is_some();
    let result = if is_over || was_not_reached {
        judge(plan, &report)
    } else {
        Err("it neither ends nor gives up".to_string())
    };
    world.run_for(AFTERMATH);
    replay::write_capture(&world);
    let result = result.and_then(|outcome| {
        [a, b].iter().zip(before).try_for_each(|(host, before)| returned(&world, *host, before))?;
        Ok(outcome)
    });
    let outcome = result.map_err(|message| {
        format!("{message}\nat {ended:?}: {report:?}\nin {plan:?}\n{}", counted(&world, [a, b]))
    })?;
    let bytes = report.client.bytes_received + report.server.bytes_received;
    Ok(vec![("worlds".into(), 1), (outcome, 1), ("bytes".into(), bytes), ("events".into(), world.events())])
}

/// What the two ends have seen must fit together.
fn judge(plan: &Plan, report: &FlowReport) -> Result<String, String> {
    for (end, other, name) in
        [(&report.client, &report.server, "client"), (&report.server, &report.client, "server")]
    {
        if let Some(error) = &end.error {
            return Err(format!("{name}: {error}"));
        }
        if end.bytes_received > other.bytes_sent {
            return Err(format!("{name}: received more than was sent"));
        }
        // Done promises that everything has arrived at the other end.
        if end.closed == Some(CloseReason::Done) && other.bytes_received < end.bytes_sent && !was_cut(other) {
            return Err(format!("{name}: done, but the other end has not received all"));
        }
    }
    if report.is_complete() {
        return Ok("complete".to_string());
    }
    let was_open = report.client.opened_at.is_some() && report.server.opened_at.is_some();
    if !plan.may_fail() && (was_open || !plan.may_stay_closed()) {
        return Err("it must not fail in such a world".to_string());
    }
    let reason =
        |end: &EndReport| end.closed.map_or("not opened".to_string(), |reason| format!("{reason:?}"));
    Ok(format!("ended: client {}, server {}", reason(&report.client), reason(&report.server)))
}

/// Whether a reset or a timeout may have thrown away what had arrived and not been read.
fn was_cut(end: &EndReport) -> bool {
    end.closed.is_some_and(|reason| reason != CloseReason::Done)
}

/// Charged bytes, and free buffers of the pools.
type Held = (usize, usize, usize, usize);

/// Of each of the host's cores.
fn held(world: &World, host: HostId) -> Vec<Held> {
    let of = |core: &Core| {
        let memory = core.stack.memory();
        (memory.used, memory.pages.free, memory.datagrams.free, core.nic().pool().free())
    };
    world.host(host).cores().iter().map(of).collect()
}

fn returned(world: &World, host: HostId, before: Vec<Held>) -> Result<(), String> {
    let after = held(world, host);
    let cores = world.host(host).cores().iter();
    let connections: usize = cores.map(|core| core.stack.memory().connections).sum();
    if after != before || connections > 0 {
        let name = world.host(host).name();
        return Err(format!("{name}: memory {before:?} before, {after:?} after, {connections} connections"));
    }
    Ok(())
}

fn counted(world: &World, hosts: [HostId; 2]) -> String {
    let of = |host: HostId| {
        let host = world.host(host);
        let counters: Vec<_> = host.stack.counters().iter().filter(|(_, count)| *count > 0).collect();
        let nic = host.nic();
        format!(
            "{}: {counters:?} {:?} {:?}, {} to send, {} received\n",
            host.name(),
            host.port.stats(),
            nic.stats(),
            nic.tx_in_ring(),
            nic.rx_in_ring()
        )
    };
    hosts.map(of).concat()
}
