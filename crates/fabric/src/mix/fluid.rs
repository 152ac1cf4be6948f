//! Flows as fluids, the urgent ones first.

use super::Stream;
use crate::edma::share::by_priority;

/// What fluids do.
pub(super) struct Fluid {
    /// Bytes per nanosecond of each flow while it was there.
    pub(super) rates: Vec<f64>,
    /// The share of the time that each flow was there.
    pub(super) there: Vec<f64>,
    /// How full each resource was while a flow that ends was there.
    pub(super) used: Vec<f64>,
    /// Until the last flow that ends has ended, in nanoseconds.
    pub(super) time: f64,
}

pub(super) fn run(streams: &[Stream], resources: usize) -> Fluid {
    let count = streams.len();
    let mut left: Vec<f64> = streams.iter().map(|stream| stream.flow.bytes.value()).collect();
    let mut sums = Sums::new(count, resources);
    // The rates of flows that have ended, where sums begin anew.
    let mut ended = vec![0.0; count];
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
        let rates = with_waits(streams, &moving, &costs, &caps, &priorities, resources);
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
            // What moves now goes on for ever, and nothing before counts: one stretch of it stands for all.
            ended = sums.rates(&ended);
            sums = Sums::new(count, resources);
            sums.add(streams, &moving, &rates, 1.0);
            break;
        }
        for (&at, rate) in moving.iter().zip(&rates).filter(|(at, _)| ends(**at)) {
            left[at] -= rate * step;
        }
        sums.add(streams, &moving, &rates, step);
        now += step;
    }
    let of_time = |sum: &f64| sum / sums.time.max(1e-9);
    Fluid {
        rates: sums.rates(&ended),
        there: sums.there.iter().map(of_time).collect(),
        used: sums.used.iter().map(of_time).collect(),
        time: now,
    }
}

/// What adds up over the stretches.
struct Sums {
    /// The bytes of each flow.
    moved: Vec<f64>,
    /// How long each was there, in nanoseconds.
    there: Vec<f64>,
    /// How long each resource was busy.
    used: Vec<f64>,
    /// All of the time.
    time: f64,
}

impl Sums {
    fn new(flows: usize, resources: usize) -> Self {
        Self { moved: vec![0.0; flows], there: vec![0.0; flows], used: vec![0.0; resources], time: 0.0 }
    }

    fn add(&mut self, streams: &[Stream], moving: &[usize], rates: &[f64], step: f64) {
        for (&at, rate) in moving.iter().zip(rates) {
            self.moved[at] += rate * step;
            self.there[at] += step;
            for (resource, cost) in &streams[at].flow.costs {
                self.used[*resource] += cost * rate * step;
            }
        }
        self.time += step;
    }

    /// The rate of each flow while it was there; that of `before` where it was not.
    fn rates(&self, before: &[f64]) -> Vec<f64> {
        let own = self.moved.iter().zip(&self.there).zip(before);
        own.map(|((moved, there), before)| if *there > 0.0 { moved / there } else { *before }).collect()
    }
}

/// Rounds until windows and waits agree.
const ROUNDS: usize = 8;

/// The rates of flows whose windows wait for bursts of others.
///
/// A burst that comes to a resource finds it working on one of another flow with the chance that it is busy with that flow,
/// and waits for the rest of it, longer where more urgent flows take turns before it. Bursts come back in order, so a window of
/// `n` bursts comes back later by the longest of their waits: on average `n / (n + 1)` of a burst of the other flow. A flow that
/// something outside paces waits too, but is not slowed by it.
fn with_waits(
    streams: &[Stream],
    moving: &[usize],
    costs: &[&[(usize, f64)]],
    caps: &[f64],
    priorities: &[u8],
    resources: usize,
) -> Vec<f64> {
    let mut rates = by_priority(costs, caps, priorities, resources);
    if moving.len() < 2 {
        return rates;
    }
    for _ in 0..ROUNDS {
        let slowed: Vec<f64> = moving
            .iter()
            .enumerate()
            .map(|(own, &at)| {
                let stream = &streams[at];
                let cap = caps[own];
                if stream.paced || !cap.is_finite() {
                    return cap;
                }
                let window = stream.flow.outstanding.value();
                window / (window / cap + wait(streams, moving, &rates, own))
            })
            .collect();
        let next = by_priority(costs, &slowed, priorities, resources);
        for (rate, next) in rates.iter_mut().zip(next) {
            *rate = f64::midpoint(*rate, next);
        }
    }
    rates
}

/// How long a burst of one flow waits for those of others, at the resource where that is longest: it waits for all at once.
fn wait(streams: &[Stream], moving: &[usize], rates: &[f64], own: usize) -> f64 {
    let Some(stream) = moving.get(own).and_then(|at| streams.get(*at)) else { return 0.0 };
    let bursts = (stream.flow.outstanding.value() / stream.flow.burst.value()).max(1.0);
    let rest_of = bursts / (bursts + 1.0);
    let mut longest = 0.0f64;
    for (resource, _) in &stream.flow.costs {
        let (mut rest, mut urgent) = (0.0, 0.0);
        for (other, &at) in moving.iter().enumerate().filter(|(other, _)| *other != own) {
            let Some(theirs) = streams.get(at) else { continue };
            let cost: f64 =
                theirs.flow.costs.iter().filter(|(index, _)| index == resource).map(|(_, cost)| cost).sum();
            let busy = rates[other] * cost;
            rest += busy * theirs.flow.burst.value() * cost * rest_of;
            urgent += if theirs.priority < stream.priority { busy } else { 0.0 };
        }
        longest = longest.max(rest / (1.0 - urgent).max(LEAST_LEFT));
    }
    longest
}

/// What urgent flows leave of a resource at least, for the time that others wait: paced traffic does not come in heaps.
const LEAST_LEFT: f64 = 0.25;
