//! Which level is next.

use super::knee::{PLATEAU_LEVELS, find};
use super::level::Level;

/// Levels of a ramp, in requests a second.
#[derive(Clone, PartialEq, Debug)]
pub enum Rates {
    /// These, whatever comes of them.
    Listed(Vec<f64>),
    /// Each so many times the one before, until two are beyond the knee or the last is reached; then between the best level and
    /// the next above, until these are near each other.
    Rising {
        /// The first.
        from: f64,
        /// The last; without it, saturation ends the ramp.
        to: Option<f64>,
        /// Greater than 1.
        factor: f64,
        /// How near the knee is enclosed, as a share of it; 0 for not at all.
        precision: f64,
    },
}

/// Rates above and below these are not tried.
const MOST: f64 = 2e6;
const LEAST: f64 = 1.0;
/// Levels that are tried to enclose the knee.
const MOST_BETWEEN: usize = 12;
/// So many levels at the top that tell nothing of the server end a ramp, …
const REFUSED: usize = 3;
/// … and one at which the client's busiest thread took more than this share of a core.
const CLIENT_BUSY: f64 = 0.5;
/// Levels beyond the knee that a ramp shows.
const BEYOND: usize = 2;

/// The next rate after these levels; `None` once the ramp is over.
pub fn next(rates: &Rates, done: &[Level]) -> Option<f64> {
    match *rates {
        Rates::Listed(ref rates) => rates.get(done.len()).copied(),
        Rates::Rising { from, to, factor, precision } => {
            let is_alone = precision == 0.0;
            rise(from, to, factor, done, is_alone).or_else(|| enclose(precision, done))
        }
    }
}

/// Levels upwards; downwards if none is in order, unless the knee is not to be enclosed.
fn rise(from: f64, to: Option<f64>, factor: f64, done: &[Level], is_alone: bool) -> Option<f64> {
    let rate = |level: &Level| level.offered_rate;
    let Some(highest) = done.iter().max_by(|one, other| rate(one).total_cmp(&rate(other))) else {
        return Some(from);
    };
    let knee = find(done);
    let Some(best) = knee.offered_rate else {
        let failing = done.iter().filter(|level| level.is_valid()).count();
        if failing < BEYOND
            && !is_stuck(done)
            && let Some(next) = above(highest, to, factor)
        {
            return Some(next);
        }
        let lowest = done.iter().map(rate).fold(f64::INFINITY, f64::min);
        let next = lowest / factor / factor;
        return (!is_alone && failing > 0 && next >= LEAST).then_some(next);
    };
    let beyond = done.iter().filter(|level| rate(level) > best && level.is_valid()).count();
    if beyond < BEYOND
        && !is_stuck(done)
        && let Some(next) = above(highest, to, factor)
    {
        return Some(next);
    }
    // A plateau needs levels that are in order.
    let lowest = done.iter().map(rate).fold(f64::INFINITY, f64::min);
    let in_order = done.iter().filter(|level| rate(level) <= best && level.is_valid()).count();
    (!is_alone && beyond > 0 && in_order < PLATEAU_LEVELS && lowest / factor >= LEAST)
        .then_some(lowest / factor)
}

/// Whether there is no way up: the client had enough to do at the highest level, or the highest three told nothing of the server.
/// One alone may have been disturbed.
fn is_stuck(done: &[Level]) -> bool {
    let mut levels: Vec<&Level> = done.iter().collect();
    levels.sort_by(|one, other| other.offered_rate.total_cmp(&one.offered_rate));
    let refused = levels.iter().take_while(|level| !level.is_valid()).count();
    refused >= REFUSED || refused > 0 && levels[0].seen.cpu.client_thread > CLIENT_BUSY
}

fn above(highest: &Level, to: Option<f64>, factor: f64) -> Option<f64> {
    let to = to.unwrap_or(MOST);
    let next = highest.offered_rate * factor;
    // Rates that were multiplied differ in their last bits.
    let is_there = highest.offered_rate * (1.0 + 1e-9) >= to;
    (!is_there).then_some(if next > to * (1.0 - 1e-9) { to } else { next })
}

/// Levels between the best and the one above.
fn enclose(precision: f64, done: &[Level]) -> Option<f64> {
    let knee = find(done);
    let (best, above) = (knee.offered_rate?, knee.below_rate?);
    let is_near = above / best <= 1.0 + precision;
    let middle = (best * above).sqrt();
    let between =
        |level: &&Level| !level.is_valid() && level.offered_rate > best && level.offered_rate < above;
    let is_tried = done.iter().filter(between).count() > 1;
    let steps = (above / best).log2().abs();
    (precision > 0.0 && !is_near && !is_tried && steps.is_finite() && tried_between(done) < MOST_BETWEEN)
        .then_some(middle)
}

/// Levels that did not rise over all before them.
fn tried_between(done: &[Level]) -> usize {
    let mut most = 0.0;
    done.iter()
        .filter(|level| {
            let is_higher = level.offered_rate > most;
            most = level.offered_rate.max(most);
            !is_higher
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::level;
    use super::super::level::{Limit, Times};
    use super::*;

    fn ramp(rates: &Rates, measure: impl Fn(f64) -> Level) -> Vec<Level> {
        let mut done = Vec::new();
        while let Some(rate) = next(rates, &done) {
            done.push(measure(rate));
            assert!(
                done.len() < 60,
                "it ends: {:?}",
                done.iter().map(|l| l.offered_rate).collect::<Vec<_>>()
            );
        }
        done
    }

    fn offered(done: &[Level]) -> Vec<f64> {
        done.iter().map(|level| (level.offered_rate * 10.0).round() / 10.0).collect()
    }

    const RISING: Rates = Rates::Rising { from: 10.0, to: None, factor: 2.0, precision: 0.025 };

    /// A server that answers so many a second, and lets the rest wait.
    fn capacity(rate: f64, capacity: f64) -> Level {
        let wait = if rate > capacity { 3_000.0 * (1.0 - capacity / rate) } else { 0.0 };
        level(rate, rate.min(capacity), 2.0 + wait)
    }

    #[test]
    fn listed_levels_are_all_tried() {
        let rates = Rates::Listed(vec![5.0, 50.0, 500.0]);
        assert_eq!(offered(&ramp(&rates, |rate| capacity(rate, 10.0))), [5.0, 50.0, 500.0]);
    }

    #[test]
    fn a_ramp_goes_beyond_the_knee_and_encloses_it() {
        let done = ramp(&RISING, |rate| capacity(rate, 700.0));
        assert_eq!(offered(&done)[..9], [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0, 2560.0]);
        let knee = find(&done);
        assert!(
            knee.offered_rate.unwrap() / 700.0 > 0.975 && knee.offered_rate.unwrap() <= 700.0 * 1.01,
            "{knee:?}"
        );
        assert!(knee.below_rate.unwrap() / knee.offered_rate.unwrap() <= 1.025);
        assert!(done.len() <= 15, "{}", done.len());
    }

    #[test]
    fn bounds_are_kept() {
        let to = |to| Rates::Rising { from: 10.0, to: Some(to), factor: 2.0, precision: 0.0 };
        assert_eq!(offered(&ramp(&to(50.0), |rate| capacity(rate, 700.0))), [10.0, 20.0, 40.0, 50.0]);
        assert_eq!(offered(&ramp(&to(40.0), |rate| capacity(rate, 700.0))), [10.0, 20.0, 40.0]);
        assert_eq!(offered(&ramp(&to(10.0), |rate| capacity(rate, 700.0))), [10.0]);
        assert!(offered(&ramp(&RISING, |rate| capacity(rate, 1e12))).last().unwrap() <= &MOST);
    }

    #[test]
    fn a_server_slower_than_the_first_level_is_found_below() {
        let rates = Rates::Rising { from: 1000.0, to: None, factor: 2.0, precision: 0.025 };
        let knee = find(&ramp(&rates, |rate| capacity(rate, 30.0)));
        assert!((28.0..=31.0).contains(&knee.offered_rate.unwrap()), "{knee:?}");
        assert_eq!(find(&ramp(&rates, |rate| level(rate, 0.0, 5_000.0))).offered_rate, None);
    }

    #[test]
    fn a_client_that_is_the_limit_ends_the_ramp() {
        let done = ramp(&RISING, |rate| {
            let limit = if rate > 100.0 { Limit::Client("late".into()) } else { Limit::None };
            Level { limit, ..level(rate, rate, 1.0) }
        });
        assert_eq!(offered(&done), [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0]);
        assert_eq!(find(&done).below_rate, None, "nothing is known of the server above");
        let done = ramp(&RISING, |rate| {
            let mut level = level(rate, rate, 1.0);
            level.seen.cpu.client_thread = 0.99;
            level.limit = if rate > 100.0 { Limit::Client("busy".into()) } else { Limit::None };
            level
        });
        assert_eq!(offered(&done), [10.0, 20.0, 40.0, 80.0, 160.0]);
        // A level that was disturbed is no limit.
        let done = ramp(&RISING, |rate| {
            let limit = if rate == 40.0 { Limit::Client("late".into()) } else { Limit::None };
            Level { limit, ..capacity(rate, 700.0) }
        });
        assert!(find(&done).offered_rate.unwrap() > 680.0);
    }

    /// A queue with one server that takes `service_ms` for each, in virtual time; arrivals at even distances or at random.
    fn queue(rate: f64, service_ms: f64, at_random: bool) -> Level {
        let (seconds, mut state) = (400.0, 0x1234_5678_9abc_def1_u64);
        let (mut at, mut free) = (0.0f64, 0.0f64);
        let (mut times, mut answered) = (Vec::new(), 0u32);
        while at < seconds {
            free = free.max(at) + service_ms / 1e3;
            times.push((free - at) * 1e3);
            answered += u32::from(free < seconds);
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            at += if at_random { -(1.0 - uniform).ln() / rate } else { 1.0 / rate };
        }
        times.sort_by(f64::total_cmp);
        let quantile = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let found = Times { p50: quantile(0.5), p99: quantile(0.99), max: quantile(1.0), ..Times::default() };
        Level { response_ms: Some(found), ..level(rate, f64::from(answered) / seconds, 0.0) }
    }

    /// Share of customers that wait for at most `t` services in M/D/1 at a load (Erlang 1909).
    fn erlang(load: f64, t: f64) -> f64 {
        let mut sum = 0.0;
        for k in 0..=t as u32 {
            let x = load * (f64::from(k) - t);
            let term: f64 = (1..=k).map(|i| x / f64::from(i)).product();
            sum += term * (-x).exp();
        }
        (1.0 - load) * sum
    }

    #[test]
    fn knees_of_queues_are_where_they_must_be() {
        let rates = Rates::Rising { from: 20.0, to: None, factor: 1.5, precision: 0.02 };
        // Arrivals at even distances: nobody waits up to the capacity.
        for service_ms in [0.5, 2.0, 9.0] {
            let found = find(&ramp(&rates, |rate| queue(rate, service_ms, false))).offered_rate.unwrap();
            let capacity = 1e3 / service_ms;
            assert!((found / capacity - 1.0).abs() < 0.05, "{found} of {capacity}");
        }
        // At random: the p99 of the response time leaves its plateau where Erlang's formula says.
        let service_ms = 2.0;
        let done = ramp(&rates, |rate| queue(rate, service_ms, true));
        let knee = find(&done);
        let waits = knee.left_from_ms.unwrap() / service_ms - 1.0;
        let expected =
            (1..1_000).map(|load| f64::from(load) / 1e3).rfind(|load| erlang(*load, waits) >= 0.99).unwrap();
        let found = knee.offered_rate.unwrap() * service_ms / 1e3;
        assert!((found / expected - 1.0).abs() < 0.05, "load {found}, by the formula {expected}; {knee:?}");
    }
}
