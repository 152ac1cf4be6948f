//! Where the curve of a server bends.
//!
//! The knee is the highest level that is in order: at least 95 % of what is offered is answered, at most 1 % fails, and the
//! p99 of response times has not left its plateau. The plateau is the median p99 of the three lowest levels. It is left by
//! five times as much, if that is at least 10 ms more: below saturation a queue is short, above it grows without end, and a
//! level that offers 1 % too much for 3 s ends with a queue of 30 ms. Levels that tell nothing of the server are left out.

use super::level::{Level, Limit};
use super::limit::{ANSWERED_SHARE, ERROR_SHARE};
use serde::{Deserialize, Serialize};

/// Levels of which the plateau is made.
pub const PLATEAU_LEVELS: usize = 3;
/// The plateau is left by so many times as much …
const LEFT_TIMES: f64 = 5.0;
/// … that is so many milliseconds more.
const LEFT_MS: f64 = 10.0;

/// What is found in the levels of a ramp.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Knee {
    /// Requests a second of the highest level in order; `None` if none is.
    pub offered_rate: Option<f64>,
    /// Connections a second of that level, where they come and go.
    pub connection_rate: Option<f64>,
    /// The lowest level above that is not in order: the knee lies between. `None` if the ramp ended before.
    pub below_rate: Option<f64>,
    /// The p99 of response times on the plateau, in milliseconds.
    pub plateau_ms: Option<f64>,
    /// From which p99 on the plateau is left, in milliseconds.
    pub left_from_ms: Option<f64>,
    /// The most answers a second at any level.
    pub most_answered_rate: f64,
    /// Why the level above is not in order.
    pub why: Option<String>,
}

/// Why a level is not in order, given the p99 from which on the plateau is left; `None` if it is.
pub fn fault(level: &Level, left_from_ms: f64) -> Option<String> {
    let answered = level.answered_rate / level.offered_rate;
    if answered < ANSWERED_SHARE {
        return Some(format!("{:.0} % of what is offered is answered", answered * 100.0));
    }
    if level.error_share() > ERROR_SHARE {
        return Some(format!("{:.1} % fail", level.error_share() * 100.0));
    }
    (level.p99_ms() > left_from_ms)
        .then(|| format!("the p99 of response times is {:.1} ms, beyond {left_from_ms:.1}", level.p99_ms()))
}

/// The p99 of the plateau of levels by rising rate, and that from which on it is left.
pub fn plateau(levels: &[&Level]) -> Option<(f64, f64)> {
    let mut lowest: Vec<f64> = levels
        .iter()
        .take(PLATEAU_LEVELS)
        .map(|level| level.p99_ms())
        .filter(|p99| p99.is_finite())
        .collect();
    lowest.sort_by(f64::total_cmp);
    // Of two the lower: the other may be beyond the knee already.
    let middle = *lowest.get(lowest.len().saturating_sub(1) / 2)?;
    Some((middle, (LEFT_TIMES * middle).max(middle + LEFT_MS)))
}

/// Puts levels in order by their rate and finds the knee; a level may be in order by itself and yet beyond the knee by its response
/// times, which is then its limit. One below the knee that is not in order tells nothing of the server, which does more.
pub fn settle(levels: &mut [Level]) -> Knee {
    levels.sort_by(|one, other| one.offered_rate.total_cmp(&other.offered_rate));
    let knee = find(levels);
    for level in levels {
        if level.limit == Limit::None
            && let Some(why) = knee.left_from_ms.and_then(|from| fault(level, from))
        {
            level.limit = Limit::Server(why);
        }
        if let (Limit::Server(why), Some(more)) = (&level.limit, knee.offered_rate)
            && level.offered_rate < more
        {
            level.limit = Limit::Client(format!("disturbed, as {more:.0} requests/s are in order: {why}"));
        }
    }
    knee
}

/// Finds the knee; the levels need no order.
pub fn find(levels: &[Level]) -> Knee {
    let mut valid: Vec<&Level> = levels.iter().filter(|level| level.is_valid()).collect();
    valid.sort_by(|one, other| one.offered_rate.total_cmp(&other.offered_rate));
    let most_answered_rate = valid.iter().map(|level| level.answered_rate).fold(0.0, f64::max);
    let Some((plateau_ms, left_from_ms)) = plateau(&valid) else {
        return Knee { most_answered_rate, ..Knee::default() };
    };
    let is_good = |level: &&&Level| fault(level, left_from_ms).is_none();
    let best = valid.iter().rfind(is_good);
    let from = best.map_or(0.0, |level| level.offered_rate);
    let above = valid.iter().find(|level| level.offered_rate > from && !is_good(level));
    Knee {
        offered_rate: best.map(|level| level.offered_rate),
        connection_rate: best.and_then(|level| level.connection_rate),
        below_rate: above.map(|level| level.offered_rate),
        plateau_ms: Some(plateau_ms),
        left_from_ms: Some(left_from_ms),
        most_answered_rate,
        why: above.and_then(|level| fault(level, left_from_ms)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::level::{Seen, Times};
    use super::*;
    use crate::load::Faults;

    /// A level of 100 requests.
    pub fn level(offered_rate: f64, answered_rate: f64, p99: f64) -> Level {
        let times = Times { mean: p99, p50: p99, p90: p99, p99, p999: p99, max: p99 };
        Level {
            connection_rate: Some(offered_rate),
            offered_rate,
            answered_rate,
            seconds: 1.0,
            connections: 100,
            established: 100,
            offered: 100,
            answered: 100,
            errors: Faults::new(),
            response_ms: Some(times),
            first_byte_ms: Some(times),
            connect_ms: Some(times),
            late_ms: Some(Times::default()),
            received_rate: 1e3,
            body_len: Some(3),
            open: vec![1; 40],
            most_open: 1,
            seen: Seen::default(),
            limit: Limit::None,
            rounds: 1,
            answered_spread: [answered_rate; 2],
            p99_spread_ms: [p99; 2],
        }
    }

    #[test]
    fn what_is_disturbed_below_the_knee_is_not_the_servers_doing() {
        let mut levels = [
            level(100.0, 100.0, 1.0),
            level(200.0, 200.0, 90.0),
            level(400.0, 400.0, 1.5),
            level(800.0, 800.0, 200.0),
        ];
        let knee = settle(&mut levels);
        assert_eq!((knee.offered_rate, knee.below_rate), (Some(400.0), Some(800.0)));
        let Limit::Client(why) = &levels[1].limit else { panic!("{:?}", levels[1].limit) };
        assert!(why.contains("as 400 requests/s are in order") && why.contains("90.0 ms"), "{why}");
        assert!(matches!(levels[3].limit, Limit::Server(_)));
        assert!(!levels[1].is_valid());
        // Read again from what was written, the knee is the same.
        assert_eq!(find(&levels).offered_rate, knee.offered_rate);
    }

    #[test]
    fn knees() {
        let check = |levels: &[(f64, f64, f64)], knee: Option<f64>, below: Option<f64>| {
            let levels: Vec<Level> = levels.iter().map(|(o, a, p)| level(*o, *a, *p)).collect();
            let found = find(&levels);
            assert_eq!((found.offered_rate, found.below_rate), (knee, below), "{found:?}");
        };
        let good = [(100.0, 100.0, 1.0), (200.0, 200.0, 1.2), (400.0, 399.0, 2.0)];
        check(&good, Some(400.0), None);
        check(&[], None, None);
        check(&[good.as_slice(), &[(800.0, 700.0, 5.0)]].concat(), Some(400.0), Some(800.0));
        check(&[good.as_slice(), &[(800.0, 800.0, 30.0)]].concat(), Some(400.0), Some(800.0));
        // A longer time that is short all the same, is none that grows without end.
        check(&[good.as_slice(), &[(800.0, 800.0, 9.0)]].concat(), Some(800.0), None);
        // In any order; a level that was disturbed below one in order is not the knee.
        check(
            &[(800.0, 800.0, 1.0), (400.0, 100.0, 900.0), (1600.0, 800.0, 900.0), (100.0, 100.0, 1.0)],
            Some(800.0),
            Some(1600.0),
        );
        check(&[(100.0, 50.0, 900.0), (200.0, 50.0, 2000.0)], None, Some(100.0));
        // The very first level is beyond, the second worse: five times its p99 are no excuse for the answers that lack.
        check(&[(100.0, 100.0, 3.0), (200.0, 120.0, 700.0)], Some(100.0), Some(200.0));
    }

    #[test]
    fn what_tells_nothing_of_the_server_is_left_out() {
        let mut levels = vec![level(100.0, 100.0, 1.0), level(200.0, 200.0, 1.0), level(400.0, 10.0, 900.0)];
        levels[2].limit = Limit::Client("late".into());
        let found = find(&levels);
        assert_eq!((found.offered_rate, found.below_rate), (Some(200.0), None));
    }

    #[test]
    fn of_the_tables_of_the_document() {
        // Seed 003 prints mean response times; they stand in for the p99 here. It says "about 270", "about 190" between its levels
        // of 180 and 210, and "about 300" by the rate of answers alone.
        for (workload, knee, most) in
            [("http-354", 270.0, 270.0), ("http-10k", 180.0, 191.4), ("http-404", 270.0, 298.9)]
        {
            let levels = super::super::seed::levels(workload).unwrap();
            assert_eq!(levels.len(), 11);
            let levels: Vec<Level> = levels
                .iter()
                .map(|point| level(point.demanded, point.responses, point.response_ms))
                .collect();
            let found = find(&levels);
            assert_eq!((found.offered_rate, found.most_answered_rate), (Some(knee), most), "{workload}");
        }
    }
}
