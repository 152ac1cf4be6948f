//! All of a plan: contenders that alternate, then the switching.

use super::measure::transfer;
use super::outcome::{Outcome, Row, Sample};
use super::plan::{Device, Plan, Setting, Workload};
use super::switching;
use crate::measure::place;
use crate::measure::provenance::Provenance;
use crate::measure::rounds::alternate;
use crate::measure::scratch::Scratch;
use crate::progress::Progress;
use anyhow::{Context as _, Result};
use std::path::Path;

/// Whether a plan can be measured here: to be asked before what takes long begins.
pub fn ready(plan: &Plan) -> Result<()> {
    if plan.devices.is_empty() {
        return Ok(());
    }
    let curl = (!plan.switching.is_zero()).then_some("curl");
    let ethtool = plan.devices.contains(&Device::Packet).then_some("ethtool");
    place::ready(&curl.into_iter().chain(ethtool).collect::<Vec<_>>())
}

/// Measures a plan.
pub fn run(plan: &Plan) -> Result<Outcome> {
    ready(plan)?;
    let scratch = Scratch::new()?;
    let switches = if plan.switching.is_zero() { 0 } else { plan.devices.len() };
    let mut progress = Progress::new("offloads", (plan.transfers() + switches) as u64);
    let mut rows = Vec::new();
    for &device in &plan.devices {
        for &workload in &plan.workloads {
            rows.extend(contend(plan, device, workload, scratch.path(), &mut progress)?);
        }
    }
    let mut switching = Vec::new();
    for &device in plan.devices.iter().take(switches) {
        progress.begin(&format!("{}: offloads switched under load", device.title()));
        switching.push(switching::under_load(plan, device, scratch.path())?);
        progress.done(1);
    }
    Ok(Outcome {
        provenance: Provenance::now(plan.rounds),
        other_end: if plan.original { "iperf3 on kernel sockets" } else { "linerate on kernel sockets" },
        queues: plan.queues,
        seconds: plan.time.as_secs_f64(),
        rows,
        switching,
        hardware: Vec::new(),
        boards: Vec::new(),
        missing: Vec::new(),
    })
}

/// All settings of one workload on one device, alternating.
fn contend(
    plan: &Plan,
    device: Device,
    workload: Workload,
    scratch: &Path,
    progress: &mut Progress,
) -> Result<Vec<Row>> {
    let settings: Vec<Setting> =
        plan.settings.iter().copied().filter(|setting| setting.unfit(workload).is_none()).collect();
    let samples = alternate(&settings, plan.rounds, |round, &setting| {
        let what = format!("{}, {workload}, {}", device.title(), setting.title());
        progress.begin(&format!("{what}, round {}", round + 1));
        let sample = once_more(plan, || transfer(plan, device, workload, setting, scratch));
        progress.done(1);
        sample.with_context(|| what)
    })?;
    let row = |(setting, samples)| Row::new(device, workload, setting, samples, plan.refuses);
    Ok(settings.into_iter().zip(samples).map(row).collect())
}

/// A transfer that was disturbed has a second chance, where that matters.
fn once_more(plan: &Plan, mut run: impl FnMut() -> Result<Sample>) -> Result<Sample> {
    let first = run()?;
    let is_flawed = plan.refuses && first.flaw().is_some();
    if is_flawed { run() } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offloads::plan::Rates;
    use std::time::Duration;

    #[test]
    fn without_a_device_nothing_of_the_machine_is_needed() {
        let plan = |devices: &[Device]| Plan {
            program: "linerate".into(),
            devices: devices.to_vec(),
            workloads: Plan::workloads(&[1]),
            settings: Setting::ALL.to_vec(),
            rounds: 1,
            time: Duration::from_secs(1),
            rates: Rates::Udp(1),
            queues: 2,
            original: false,
            switching: Duration::ZERO,
            refuses: false,
        };
        assert!(ready(&plan(&[])).is_ok());
        if !rustix::process::geteuid().is_root() {
            let why = ready(&plan(&[Device::Tap])).unwrap_err().to_string();
            assert_eq!(why, "network namespaces need root");
        }
    }
}
