//! All rungs on the simulator, in virtual time: predicted and measured, and whether the verdict names the cause.

use super::constants::{Constants, Whose};
use super::model::Predicted;
use super::rungs::{self, Cause, Limit, Rung};
use super::simulator::Measured;
use super::{model, simulator};

fn climb(whose: Whose) -> Vec<(Rung, Predicted, Measured)> {
    let constants = Constants::load().unwrap();
    let run = |rung: Rung| {
        let predicted = model::predict(&rung.state, &constants, whose).unwrap();
        let measured = simulator::run(&rung.state, &constants, whose).unwrap();
        (rung, predicted, measured)
    };
    rungs::all().into_iter().map(run).collect()
}

/// Limits that lie this close together are both in force.
const CLOSE: f64 = 1.06;

#[test]
fn rungs_are_as_predicted() {
    for whose in [Whose::Document, Whose::Counted] {
        let climbed = climb(whose);
        let within = |found: f64, wanted: f64| (found / wanted - 1.0).abs() <= 0.1;
        let far = climbed
            .iter()
            .filter(|(_, predicted, measured)| !within(predicted.megabytes, measured.megabytes));
        let far: Vec<String> = far
            .map(|(rung, predicted, measured)| {
                format!("{}: {:.1} of {:.1} MB/s", rung.name, predicted.megabytes, measured.megabytes)
            })
            .collect();
        assert!(far.len() * 10 <= climbed.len(), "{whose:?}: {far:?}");
        for (rung, predicted, measured) in &climbed {
            let off = (predicted.load - measured.load).abs();
            assert!(off < 0.1, "{}: load {} of {}", rung.name, predicted.load, measured.load);
            let close = |limit: &&(Limit, f64, String)| limit.1 <= CLOSE * predicted.megabytes;
            let in_force: Vec<_> = predicted.limits.iter().filter(close).map(|limit| limit.0).collect();
            let is_named = measured.limit.is_some_and(|limit| in_force.contains(&limit));
            let is_busy = predicted.load > 0.98 && measured.limit == Some(Limit::Processor);
            let is_named = is_named || is_busy || is_known_to_differ(whose, rung);
            assert!(is_named, "{whose:?} {}: {in_force:?}, but {}", rung.name, measured.because);
        }
    }
}

/// Small writes that wait in turn for room, and never fill a window: the verdict names the writer, the model the buffer.
fn is_known_to_differ(whose: Whose, rung: &Rung) -> bool {
    whose == Whose::Counted && rung.name == "as-ported"
}

#[test]
fn verdicts_name_what_a_rung_takes_away() {
    let climbed = climb(Whose::Document);
    let of = |name: &str| climbed.iter().find(|(rung, ..)| rung.name == name).unwrap();
    for (rung, _, after) in &climbed {
        if let Cause::Injects(limit) = rung.cause {
            assert_eq!(after.limit, Some(limit), "{}: {}", rung.name, after.because);
        }
        let Some(from) = rung.from else { continue };
        let (_, _, before) = of(from);
        let work = |measured: &Measured| measured.parts.iter().map(|(_, ns)| ns).sum::<f64>();
        match rung.cause {
            Cause::Limit(limit) => {
                let is_close =
                    before.limit == Some(Limit::Processor) && before.megabytes > after.megabytes / CLOSE;
                assert!(before.limit == Some(limit) || is_close, "{}: {}", rung.name, before.because);
                assert!(after.megabytes > before.megabytes, "{}", rung.name);
            }
            Cause::Work(part) => {
                let saved = before.parts.iter().zip(&after.parts).map(|(b, a)| (b.0, b.1 - a.1));
                let most = saved.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
                assert_eq!(most.0, part, "{}: {:?}", rung.name, most);
            }
            Cause::AllWork => assert!(work(after) < 0.9 * work(before), "{}", rung.name),
            Cause::Injects(_) => assert!(after.megabytes < before.megabytes, "{}", rung.name),
            Cause::Ground => {}
        }
        // Where the processor was the limit, less work is a higher rate.
        if matches!(rung.cause, Cause::Work(_)) && before.limit == Some(Limit::Processor) {
            assert!(after.megabytes > 1.005 * before.megabytes, "{}: {}", rung.name, after.megabytes);
        }
    }
}

/// The document's ENOMEM: our stack takes the connection and lends it what there is; the verdict says memory.
#[test]
fn a_small_heap_is_named() {
    let constants = Constants::load().unwrap();
    let rungs = rungs::all();
    let rung = rungs.iter().find(|rung| rung.name == "rx-small-heap").unwrap();
    let measured = simulator::run(&rung.state, &constants, Whose::Document).unwrap();
    assert_eq!(measured.bottleneck, "memory");
    assert!(measured.because.contains("16 KiB"), "{}", measured.because);
}
