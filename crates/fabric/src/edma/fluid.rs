//! Transfers as fluids: constant rates until one ends, then new rates.

use super::share::max_min;
use super::{Flow, Resources};
use crate::predict::{Bottleneck, Unit};
use crate::units::{Bytes, BytesPerSecond, Nanoseconds};

/// A time in which no transfer begins or ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// How long it lasts.
    pub time: Nanoseconds,
    /// The rate of the transfer at the head of each queue, in bytes per nanosecond; 0 for a queue that is done.
    pub rates: Vec<f64>,
    /// Which transfer is at the head of each queue.
    pub heads: Vec<Option<usize>>,
}

/// Works through queues of transfers that start together, each queue in order.
///
/// With `setup`, a transfer first waits for its setup and its latency, in which it moves nothing.
pub fn run(queues: &[Vec<Flow>], resources: usize, setup: bool) -> Vec<Stretch> {
    let wait_of = |flow: &Flow| if setup { (flow.setup + flow.latency).value() } else { 0.0 };
    let mut head = vec![0usize; queues.len()];
    let mut left: Vec<f64> = queues.iter().map(|q| q.first().map_or(0.0, |f| f.bytes.value())).collect();
    let mut wait: Vec<f64> = queues.iter().map(|q| q.first().map_or(0.0, wait_of)).collect();
    let mut stretches = Vec::new();
    // Each stretch ends a wait or a transfer.
    let most = 2 * queues.iter().map(Vec::len).sum::<usize>();
    for _ in 0..most {
        let moving: Vec<usize> =
            (0..queues.len()).filter(|q| head[*q] < queues[*q].len() && wait[*q] <= 0.0).collect();
        let flows: Vec<&Flow> = moving.iter().map(|q| &queues[*q][head[*q]]).collect();
        let costs: Vec<Vec<(usize, f64)>> = flows.iter().map(|flow| flow.costs.clone()).collect();
        let caps: Vec<f64> = flows.iter().map(|flow| flow.cap).collect();
        let found = max_min(&costs, &caps, resources);
        let mut rates = vec![0.0; queues.len()];
        for (q, rate) in moving.iter().zip(&found) {
            rates[*q] = *rate;
        }
        let mut step = f64::INFINITY;
        for q in 0..queues.len() {
            if head[q] < queues[q].len() {
                step = step.min(if wait[q] > 0.0 { wait[q] } else { left[q] / rates[q] });
            }
        }
        if !step.is_finite() {
            break;
        }
        let heads = (0..queues.len()).map(|q| (head[q] < queues[q].len()).then_some(head[q])).collect();
        for q in 0..queues.len() {
            if head[q] >= queues[q].len() {
                continue;
            }
            if wait[q] > 0.0 {
                wait[q] -= step;
                continue;
            }
            left[q] -= rates[q] * step;
            if left[q] <= queues[q][head[q]].bytes.value() * 1e-9 {
                head[q] += 1;
                if let Some(next) = queues[q].get(head[q]) {
                    (left[q], wait[q]) = (next.bytes.value(), wait_of(next));
                }
            }
        }
        stretches.push(Stretch { time: Nanoseconds::new(step), rates, heads });
    }
    stretches
}

/// A rate in megabytes a second; one of which that leaves no digits, in what has some.
fn megabytes(rate: BytesPerSecond) -> String {
    if rate.megabytes() < 1.0 { format!("{rate:#}") } else { format!("{:.0} MB/s", rate.megabytes()) }
}

/// What was in the way, over all stretches: how full each resource and each window was on average, and for how long nothing
/// moved.
pub(super) fn bottlenecks(
    queues: &[Vec<Flow>],
    resources: &Resources<'_>,
    stretches: &[Stretch],
    time: Nanoseconds,
) -> Vec<Bottleneck> {
    let unit = Unit::MegabytesPerSecond;
    let mut used = vec![0.0; resources.len()];
    // Each with its rate, how full it was on average, and how full it is at most in this stretch.
    let mut windows: Vec<(&Flow, f64, f64, f64)> = Vec::new();
    let mut waiting = Nanoseconds::new(0.0);
    for stretch in stretches {
        let part = stretch.time.over(time).value();
        if stretch.rates.iter().all(|rate| *rate <= 0.0) {
            waiting = waiting + stretch.time;
        }
        for (q, rate) in stretch.rates.iter().enumerate() {
            let Some(flow) = stretch.heads[q].and_then(|head| queues[q].get(head)) else { continue };
            for (resource, cost) in &flow.costs {
                used[*resource] += cost * rate * part;
            }
            if flow.cap.is_finite() && *rate > 0.0 {
                let share = rate / flow.cap;
                let same = |known: &Flow| {
                    (known.writes_bind, known.outstanding, known.cap)
                        == (flow.writes_bind, flow.outstanding, flow.cap)
                };
                match windows.iter_mut().find(|(known, ..)| same(known)) {
                    Some((.., most)) => *most = most.max(share),
                    None => windows.push((flow, flow.cap, 0.0, share)),
                }
            }
        }
        for (.., mean, most) in &mut windows {
            *mean += core::mem::take(most) * part;
        }
    }
    let mut all: Vec<Bottleneck> =
        (0..resources.len())
            .filter(|index| used[*index] > 0.0)
            .map(|index| {
                let raw = resources.raw(index);
                Bottleneck::limit(resources.name(index), raw, raw, unit).with_share(used[index]).because(
                    format!("{} by width and clock, busy {:.1} %", megabytes(raw), used[index] * 100.0),
                )
            })
            .collect();
    for (flow, cap, share, _) in windows {
        let rate = BytesPerSecond::new(cap * 1e9);
        all.push(Bottleneck::limit(flow.window_name(), rate, rate, unit).with_share(share).because(format!(
            "{} = {}",
            flow.window(),
            megabytes(rate)
        )));
    }
    if waiting.value() > 0.0 {
        let bytes: Bytes = queues.iter().flatten().map(|flow| flow.bytes).sum();
        let rate = bytes / waiting;
        let share = waiting.over(time).value();
        let because = format!("{waiting:.0} of {time:.0}, in which nothing moves");
        all.push(
            Bottleneck::limit("setup and first latency", rate, rate, unit).with_share(share).because(because),
        );
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}
