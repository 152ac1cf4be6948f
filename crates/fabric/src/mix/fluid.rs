//! Flows as fluids, the urgent ones first.

use super::Stream;
use crate::edma::share::by_priority;

/// What fluids do.
pub(super) struct Fluid {
    /// Bytes per nanosecond of each flow while it was there.
    pub(super) rates: Vec<f64>,
    /// How full each resource was while a flow that ends was there.
    pub(super) used: Vec<f64>,
    /// Until the last flow that ends has ended, in nanoseconds.
    pub(super) time: f64,
}

pub(super) fn run(streams: &[Stream], resources: usize) -> Fluid {
    let count = streams.len();
    let mut left: Vec<f64> = streams.iter().map(|stream| stream.flow.bytes.value()).collect();
    let mut moved = vec![0.0; count];
    let mut there = vec![0.0; count];
    let mut used = vec![0.0; resources];
    let mut now = 0.0f64;
    let ends = |at: usize| !streams[at].endless;
    let begins: Vec<f64> = streams
        .iter()
        .map(|stream| (stream.start + stream.flow.setup + stream.flow.latency).value())
        .collect();
    let bounded = (0..count).any(ends);
    // Each stretch begins or ends a flow.
    for _ in 0..(2 * count + 1) {
        let done = |at: usize, left: &[f64]| ends(at) && left[at] <= streams[at].flow.bytes.value() * 1e-9;
        if bounded && (0..count).filter(|&at| ends(at)).all(|at| done(at, &left)) {
            break;
        }
        // Of the flows of one controller, the first that has not ended moves.
        let moving: Vec<usize> = (0..count)
            .filter(|&at| !done(at, &left) && begins[at] <= now + 1e-9)
            .filter(|&at| {
                !(0..at).any(|other| streams[other].queue == streams[at].queue && !done(other, &left))
            })
            .collect();
        let costs: Vec<&[(usize, f64)]> =
            moving.iter().map(|&at| streams[at].flow.costs.as_slice()).collect();
        let caps: Vec<f64> = moving.iter().map(|&at| streams[at].flow.cap).collect();
        let priorities: Vec<u8> = moving.iter().map(|&at| streams[at].priority).collect();
        let rates = by_priority(&costs, &caps, &priorities, resources);
        let mut step = f64::INFINITY;
        for (&at, rate) in moving.iter().zip(&rates) {
            if ends(at) && *rate > 0.0 {
                step = step.min(left[at] / rate);
            }
        }
        for &begin in begins.iter().filter(|begin| **begin > now + 1e-9) {
            step = step.min(begin - now);
        }
        if !step.is_finite() {
            // Nothing but endless flows: one stretch stands for all.
            step = if now > 0.0 { break } else { 1.0 };
        }
        for (&at, rate) in moving.iter().zip(&rates) {
            if ends(at) {
                left[at] -= rate * step;
            }
            moved[at] += rate * step;
            there[at] += step;
            for (resource, cost) in &streams[at].flow.costs {
                used[*resource] += cost * rate * step;
            }
        }
        now += step;
    }
    let rates = moved.iter().zip(&there).map(|(moved, there)| if *there > 0.0 { moved / there } else { 0.0 });
    Fluid { rates: rates.collect(), used: used.iter().map(|used| used / now.max(1e-9)).collect(), time: now }
}
