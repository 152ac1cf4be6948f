//! Ours beside others: ratios, goals, and when nothing can be told.

use crate::report::{Contestant, Judgement, Limit, Sample, Verdict};
use crate::rows::{Goal, Metric};
use linerate_lab::measure::statistics::spread;

/// A process that uses as much of its core has none left.
const BUSY: f64 = 0.85;
/// Processor time of others, as a share of a core, that makes a measurement doubtful.
const FOREIGN: f64 = 0.25;
/// Memory that costs this much, the cheapest being 1, makes a measurement doubtful that fills it.
const DEAR: f64 = 1.5;
/// Losses below this are none: both have a ratio of 1 then.
const NO_LOSS: f64 = 0.0005;
/// A contender of which more than this share of what was asked fails does something else than the others.
const FAILED: f64 = 0.01;

/// What was in a sample's way, but for the server.
pub fn limit(sample: &Sample) -> Option<Limit> {
    let share = |seconds: f64| seconds / sample.wall.max(1e-9);
    let foreign =
        sample.cores_cpu - sample.server_cpu - sample.client_cpu - sample.kernel_cpu + sample.stolen;
    if share(foreign) > FOREIGN {
        Some(Limit::Machine)
    } else if sample.memory > DEAR {
        Some(Limit::Memory)
    } else if share(sample.client_cpu) >= BUSY && share(sample.server_cpu) < BUSY {
        Some(Limit::Client)
    } else {
        None
    }
}

/// Whether most of the samples have this limit.
fn limited(contestant: &Contestant, by: &Limit) -> bool {
    let with = contestant.samples.iter().filter(|sample| limit(sample).as_ref() == Some(by)).count();
    2 * with > contestant.samples.len()
}

fn is_latency(metric: Metric) -> bool {
    matches!(metric, Metric::P50 | Metric::P99 | Metric::P999)
}

fn lower_is_better(metric: Metric) -> bool {
    !matches!(metric, Metric::Rate | Metric::PerCpu)
}

/// Failed requests of a contestant, and its units of work.
fn failed(contestant: &Contestant) -> (u64, f64) {
    let samples = &contestant.samples;
    (samples.iter().map(|sample| sample.errors).sum(), samples.iter().map(|sample| sample.units).sum())
}

fn median(contestant: &Contestant, metric: Metric) -> Option<f64> {
    spread(contestant.samples.iter().map(|sample| sample.value(metric))).map(|spread| spread.median)
}

/// Compares ours with the best of the others; the error says why that is not possible.
pub fn judge(goal: &Goal, contestants: &[Contestant]) -> Result<Judgement, String> {
    let find = |name: &str| {
        let found = contestants.iter().find(|contestant| contestant.name == name);
        found.filter(|found| !found.samples.is_empty())
    };
    let missing = |name: &str| format!("{name} was not measured");
    let metric = goal.metric;
    let ours = find(goal.ours.name()).ok_or_else(|| missing(goal.ours.name()))?;
    let others = goal.others.iter().filter_map(|other| find(other.name()));
    let key = |contestant: &&Contestant| {
        let value = median(contestant, metric).unwrap_or(0.0);
        if lower_is_better(metric) { -value } else { value }
    };
    let names: Vec<&str> = goal.others.iter().map(|other| other.name()).collect();
    let other = others.max_by(|a, b| key(a).total_cmp(&key(b))).ok_or_else(|| missing(&names.join(", ")))?;
    let ratios = ours.samples.iter().zip(&other.samples).map(|(ours, other)| {
        let (ours, other) = (ours.value(metric), other.value(metric));
        if metric == Metric::Loss && ours < NO_LOSS {
            1.0_f64.min(ours / other.max(NO_LOSS))
        } else {
            ours / other.max(1e-12)
        }
    });
    let ratio = spread(ratios).ok_or_else(|| "no ratio".to_owned())?;
    let holds = if lower_is_better(metric) { ratio.median <= goal.ratio } else { ratio.median >= goal.ratio };
    let mut remarks = Vec::new();
    for contestant in [ours, other] {
        if let Some(failure) = &contestant.failure {
            remarks.push(format!("{}: {failure}", contestant.name));
        }
        let (errors, _) = failed(contestant);
        if errors > 0 {
            remarks.push(format!("{}: {errors} failed requests", contestant.name));
        }
        // A client that measures latency never sleeps.
        if !is_latency(metric) && limited(contestant, &Limit::Client) {
            remarks.push(format!("{}: the client was the limit", contestant.name));
        }
    }
    Ok(Judgement {
        ours: ours.name.clone(),
        other: other.name.clone(),
        metric,
        our_value: median(ours, metric).unwrap_or(f64::NAN),
        other_value: median(other, metric).unwrap_or(f64::NAN),
        ratio,
        goal: goal.ratio,
        runs: ours.samples.len().min(other.samples.len()),
        verdict: verdict(metric, holds, ours, other),
        remarks,
    })
}

fn verdict(metric: Metric, holds: bool, ours: &Contestant, other: &Contestant) -> Verdict {
    for contestant in [ours, other] {
        let (errors, units) = failed(contestant);
        if errors as f64 > units * FAILED {
            return Verdict::Refused(format!("{errors} requests of {} failed", contestant.name));
        }
        if limited(contestant, &Limit::Machine) {
            return Verdict::Refused(format!(
                "the machine was the limit: others used its processors while {} was measured",
                contestant.name
            ));
        }
        if limited(contestant, &Limit::Memory) {
            return Verdict::Refused(format!(
                "the machine's memory was the limit: its host had taken it before {} was measured",
                contestant.name
            ));
        }
    }
    // Where the client is the limit, the server could do more: its rate is a lower bound. What a server takes for a unit
    // of work is told all the same.
    let client = |contestant| metric == Metric::Rate && limited(contestant, &Limit::Client);
    match (holds, client(ours), client(other)) {
        (true, _, true) => Verdict::Refused(format!("the client was the limit with {}", other.name)),
        (false, true, _) => Verdict::Refused(format!("the client was the limit with {}", ours.name)),
        (true, ..) => Verdict::Met,
        (false, ..) => Verdict::Missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;
    use crate::rows::Contender::{Lighttpd, Nginx, OursKernel};

    fn contestant(name: &str, samples: &[Sample]) -> Contestant {
        Contestant { name: name.into(), samples: samples.to_vec(), ..Contestant::default() }
    }

    fn judged(metric: Metric, ratio: f64, ours: Sample, nginx: Sample) -> Judgement {
        let goal = Goal { ours: OursKernel, others: vec![Nginx, Lighttpd], metric, ratio };
        let slow = Sample { lost: 1.0, ..sample(1.0, 1.0, 1.0) };
        judge(
            &goal,
            &[
                contestant("lighttpd", &[slow; 3]),
                contestant("linerate, kernel sockets", &[ours; 3]),
                contestant("nginx", &[nginx; 3]),
            ],
        )
        .unwrap()
    }

    #[test]
    fn rates_costs_and_losses() {
        let check = |metric, ratio, ours, nginx, expected: Verdict| {
            let found = judged(metric, ratio, ours, nginx);
            assert_eq!(found.verdict, expected, "{found:?}");
            assert_eq!((found.other.as_str(), found.runs), ("nginx", 3));
        };
        let (fast, slow) = (sample(200.0, 1.0, 0.5), sample(100.0, 1.0, 0.5));
        check(Metric::Rate, 2.0, fast, slow, Verdict::Met);
        check(Metric::Rate, 2.1, fast, slow, Verdict::Missed);
        check(Metric::PerCpu, 2.0, sample(100.0, 0.5, 0.1), slow, Verdict::Met);
        check(Metric::CpuPerGb, 0.6, fast, slow, Verdict::Met);
        check(Metric::CpuPerGb, 0.4, fast, slow, Verdict::Missed);
        let lost = |lost| Sample { lost, ..slow };
        check(Metric::Loss, 1.0, lost(0.2), lost(0.3), Verdict::Met);
        check(Metric::Loss, 1.0, lost(0.4), lost(0.3), Verdict::Missed);
    }

    #[test]
    fn no_loss_on_both_sides_is_equal() {
        let goal = Goal { ours: OursKernel, others: vec![Nginx], metric: Metric::Loss, ratio: 1.0 };
        let clean = sample(1.0, 1.0, 0.1);
        let found =
            judge(&goal, &[contestant("linerate, kernel sockets", &[clean]), contestant("nginx", &[clean])])
                .unwrap();
        assert_eq!(found.verdict, Verdict::Met);
    }

    #[test]
    fn a_client_without_time_makes_a_rate_a_bound() {
        let (idle, busy) = (sample(100.0, 0.5, 1.0), sample(100.0, 1.0, 0.5));
        let check = |ours, nginx, goal, refused: bool| {
            let found = judged(Metric::Rate, goal, ours, nginx);
            assert_eq!(matches!(found.verdict, Verdict::Refused(_)), refused, "{found:?}");
        };
        check(idle, busy, 1.0, false);
        check(idle, busy, 1.1, true);
        check(busy, idle, 1.1, false);
        check(busy, idle, 1.0, true);
        // Processor time for a unit is told all the same.
        assert_eq!(judged(Metric::PerCpu, 2.0, idle, busy).verdict, Verdict::Met);
    }

    #[test]
    fn who_fails_what_is_asked_is_not_compared() {
        let (good, slow) = (sample(1_000.0, 1.0, 0.5), sample(500.0, 1.0, 0.5));
        let failing = |sample, errors| Sample { errors, ..sample };
        let check = |ours, nginx, expected: &str| {
            let found = judged(Metric::Rate, 1.0, ours, nginx);
            match &found.verdict {
                Verdict::Refused(why) => assert_eq!(why, expected),
                verdict => assert_eq!((verdict, expected), (&Verdict::Met, ""), "{found:?}"),
            }
        };
        check(failing(good, 10), failing(slow, 5), "");
        check(failing(good, 11), slow, "33 requests of linerate, kernel sockets failed");
        check(good, failing(slow, 6), "18 requests of nginx failed");
    }

    #[test]
    fn others_on_the_machine_refuse_all() {
        let disturbed = Sample { cores_cpu: 1.9, ..sample(100.0, 1.0, 0.5) };
        assert_eq!(limit(&disturbed), Some(Limit::Machine));
        let stolen = Sample { stolen: 0.3, ..sample(100.0, 1.0, 0.5) };
        assert_eq!(limit(&stolen), Some(Limit::Machine));
        let found = judged(Metric::PerCpu, 1.0, disturbed, sample(100.0, 1.0, 0.5));
        assert!(matches!(found.verdict, Verdict::Refused(_)), "{found:?}");
    }

    #[test]
    fn memory_that_the_host_has_taken_refuses_all() {
        let [dear, cheap] = [3.0, 1.2].map(|memory| Sample { memory, ..sample(100.0, 1.0, 0.5) });
        assert_eq!((limit(&dear), limit(&cheap)), (Some(Limit::Memory), None));
        let other = sample(100.0, 1.0, 0.5);
        assert_eq!(judged(Metric::CpuPerGb, 1.0, cheap, other).verdict, Verdict::Met);
        for found in [judged(Metric::Rate, 1.0, dear, other), judged(Metric::Rate, 1.0, other, dear)] {
            assert!(matches!(&found.verdict, Verdict::Refused(why) if why.contains("memory")), "{found:?}");
        }
    }

    #[test]
    fn who_is_missing_is_named() {
        let goal = Goal { ours: OursKernel, others: vec![Nginx], metric: Metric::Rate, ratio: 1.0 };
        let ours = contestant("linerate, kernel sockets", &[sample(1.0, 1.0, 1.0)]);
        assert_eq!(judge(&goal, &[ours]).unwrap_err(), "nginx was not measured");
    }
}
