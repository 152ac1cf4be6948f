//! One transfer, measured: throughput, load of each core, processor time of either end.

use super::ends::{self, Reported};
use super::outcome::Sample;
use super::plan::{Device, Direction, Plan, Setting, Workload};
use crate::measure::cpu;
use crate::measure::running::Running;
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time at the start of a transfer that is not looked at: programs start, and windows open.
const WARM_UP: Duration = Duration::from_millis(300);
/// Time at its end.
const RUN_OUT: Duration = Duration::from_millis(100);

/// A look at the processors.
struct Look {
    at: Instant,
    cores: Vec<cpu::CoreTime>,
    device_s: Option<f64>,
    other_s: Option<f64>,
}

fn sum(of: &[&Running]) -> Option<f64> {
    of.iter().map(|one| one.seconds()).sum()
}

impl Look {
    fn now(device: &[&Running], other: &[&Running]) -> Look {
        Look { at: Instant::now(), cores: cpu::core_times(), device_s: sum(device), other_s: sum(other) }
    }
}

/// One transfer.
pub fn transfer(
    plan: &Plan,
    on: Device,
    workload: Workload,
    setting: Setting,
    scratch: &Path,
) -> Result<Sample> {
    let place = ends::place(on, workload.direction, setting)?;
    let config = scratch.join("serve.toml");
    let (standing, clients) = match workload.direction {
        Direction::Rx => (
            ends::our_server(plan, &place, on, setting, &config)?,
            ends::their_clients(plan, &place, workload, setting)?,
        ),
        Direction::Tx => {
            (ends::their_server(plan, &place)?, vec![ends::our_client(plan, &place, on, workload, setting)?])
        }
    };
    let (before, after) = {
        let moving: Vec<&Running> = clients.iter().collect();
        let (device, other): (Vec<&Running>, Vec<&Running>) = match workload.direction {
            Direction::Rx => (vec![&standing], moving),
            Direction::Tx => (moving, vec![&standing]),
        };
        std::thread::sleep(WARM_UP);
        let before = Look::now(&device, &other);
        std::thread::sleep(plan.time.saturating_sub(WARM_UP + RUN_OUT));
        (before, Look::now(&device, &other))
    };
    let mut all = Reported::default();
    for client in clients {
        let (_, out, err) = client.output()?;
        ensure!(!out.trim().is_empty(), "a client said nothing but: {}", err.trim());
        let one = ends::reported(&out, workload.protocol)?;
        all.throughput_bps += one.throughput_bps;
        all.packets += one.packets;
        all.lost += one.lost;
        all.retransmits = match (all.retransmits, one.retransmits) {
            (None, other) | (other, None) => other,
            (Some(a), Some(b)) => Some(a + b),
        };
    }
    Ok(sample(&before, &after, all, setting))
}

fn sample(before: &Look, after: &Look, reported: Reported, setting: Setting) -> Sample {
    let wall_s = (after.at - before.at).as_secs_f64().max(f64::MIN_POSITIVE);
    let load = |(before, after): (&cpu::CoreTime, &cpu::CoreTime)| {
        // The seed's definition: what is not idle.
        (100.0 - (after.idle_s - before.idle_s) / wall_s * 100.0).clamp(0.0, 100.0)
    };
    let pairs = || before.cores.iter().zip(&after.cores);
    let busy: f64 = pairs().map(|(before, after)| after.busy_s - before.busy_s).sum();
    let stolen: f64 = pairs().map(|(before, after)| after.stolen_s - before.stolen_s).sum();
    let share = |before: Option<f64>, after: Option<f64>| Some((after? - before?) / wall_s);
    let (device, other) = (share(before.device_s, after.device_s), share(before.other_s, after.other_s));
    // Interrupts are nobody's, so that some of this is always there.
    let others = match (device, other) {
        (Some(device), Some(other)) => Some((busy / wall_s - device - other).max(0.0)),
        _ => None,
    };
    Sample {
        throughput_bps: reported.throughput_bps,
        lost_percent: (reported.packets > 0.0).then(|| reported.lost / reported.packets * 100.0),
        retransmits: reported.retransmits,
        core_load_percent: pairs().map(load).collect(),
        device_cores: device,
        other_end_cores: other,
        rest_cores: others,
        stolen_cores: stolen / wall_s,
        is_bound: ends::cores(setting).0.is_some(),
    }
}
