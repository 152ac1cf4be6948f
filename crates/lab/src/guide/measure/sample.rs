//! A figure from many short samples: loops as long as the clock needs, samples that were disturbed taken again, and of the rest
//! the fastest that agree.

use super::timer::Timer;
use crate::measure::statistics::{Spread, spread};
use serde::Serialize;

/// How much is measured for one figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// How long a sample runs at least, in nanoseconds: long beside the clock's step and the calls around it.
    pub sample_ns: u64,
    /// How many samples are taken.
    pub samples: usize,
    /// How many at most, when some were disturbed or too few agree.
    pub most: usize,
}

impl Effort {
    /// For a report.
    pub const FULL: Effort = Effort { sample_ns: 1_500_000, samples: 7, most: 24 };
    /// For a look, and for tests.
    pub const QUICK: Effort = Effort { sample_ns: 100_000, samples: 3, most: 6 };
}

/// Time for one unit of work, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sampled {
    /// The median of the fastest samples that agree.
    pub ns: f64,
    /// Of all samples that were not disturbed.
    pub spread: Spread,
    /// Samples taken.
    pub samples: usize,
    /// How many of them were disturbed: the core was taken away meanwhile.
    pub disturbed: usize,
    /// Whether enough samples agree.
    pub stable: bool,
}

/// Samples agree when they lie within this share.
pub const AGREE: f64 = 0.03;
/// Of this many samples one has to be in the cluster.
const CLUSTER: usize = 4;
/// A sample is disturbed when more than this share of it was lost.
pub const LOST: f64 = 0.005;

/// Measures what `work` takes a unit. `work` gets how often to repeat, and returns how many units that was.
pub fn measure(timer: &mut impl Timer, effort: Effort, mut work: impl FnMut(u64) -> u64) -> Sampled {
    let repeat = calibrate(timer, effort.sample_ns, &mut work);
    let (mut clean, mut all) = (Vec::new(), Vec::new());
    while all.len() < effort.most.max(1) {
        let lost = timer.lost_ns();
        let start = timer.now_ns();
        let units = work(repeat);
        let time = timer.now_ns().saturating_sub(start) as f64;
        let lost = timer.lost_ns().saturating_sub(lost) as f64;
        let each = time / units.max(1) as f64;
        all.push((each, lost <= time * LOST));
        if lost <= time * LOST {
            clean.push(each);
        }
        if clean.len() >= effort.samples && cluster(&clean).is_some() {
            break;
        }
    }
    Sampled::of(&all, cluster(&clean))
}

impl Sampled {
    /// The figure of samples, each with whether it was undisturbed, of which `found` is what the fastest agree on.
    pub fn of(samples: &[(f64, bool)], found: Option<f64>) -> Sampled {
        let clean = samples.iter().filter(|(_, clean)| *clean).count();
        // Where every sample was disturbed, they are all there is.
        let used =
            samples.iter().filter(|(_, undisturbed)| *undisturbed || clean == 0).map(|(each, _)| *each);
        let least = used.clone().fold(f64::INFINITY, f64::min);
        let whole = spread(used).unwrap_or(Spread { median: least, least, most: least });
        Sampled {
            ns: found.unwrap_or(least),
            spread: whole,
            samples: samples.len(),
            disturbed: samples.len() - clean,
            stable: found.is_some(),
        }
    }

    /// The same in a unit that is so many times smaller.
    #[must_use]
    pub fn times(self, factor: f64) -> Sampled {
        let Spread { median, least, most } = self.spread;
        let spread = Spread { median: median * factor, least: least * factor, most: most * factor };
        Sampled { ns: self.ns * factor, spread, ..self }
    }
}

/// How often work is repeated so that a sample takes `sample_ns`.
pub fn calibrate(timer: &mut impl Timer, sample_ns: u64, work: &mut impl FnMut(u64) -> u64) -> u64 {
    let mut repeat = 1u64;
    // Each round at least doubles; no work is so short that it needs more.
    for _ in 0..40 {
        let start = timer.now_ns();
        work(repeat);
        let time = timer.now_ns().saturating_sub(start);
        if time >= sample_ns {
            break;
        }
        // A tenth more than the estimate, but no leap on the word of a clock that has hardly moved.
        let wanted = if time == 0 { f64::INFINITY } else { 1.1 * sample_ns as f64 / time as f64 };
        repeat = (repeat as f64 * wanted.clamp(2.0, 32.0)).ceil() as u64;
    }
    repeat
}

/// The median of the fastest samples that lie within [`AGREE`] of each other, if at least three and a quarter of all do.
///
/// On a machine that others use too, what is slower is slower because of them.
pub fn cluster(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let need = (sorted.len() / CLUSTER).max(3);
    let from = sorted.windows(need).position(|some| {
        let (first, last) = (some.first().copied().unwrap_or(0.0), some.last().copied().unwrap_or(f64::MAX));
        last <= first * (1.0 + AGREE)
    })?;
    let first = sorted.get(from).copied()?;
    let members = sorted.iter().skip(from).copied().take_while(|sample| *sample <= first * (1.0 + AGREE));
    spread(members).map(|of| of.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A machine of numbers: work takes what it takes, and some samples lose the core.
    struct Scripted {
        now: u64,
        lost: u64,
    }

    impl Timer for std::rc::Rc<std::cell::RefCell<Scripted>> {
        fn now_ns(&mut self) -> u64 {
            self.borrow().now
        }

        fn lost_ns(&mut self) -> u64 {
            self.borrow().lost
        }
    }

    fn scripted() -> std::rc::Rc<std::cell::RefCell<Scripted>> {
        std::rc::Rc::new(std::cell::RefCell::new(Scripted { now: 0, lost: 0 }))
    }

    proptest! {
        #[test]
        fn loops_are_as_long_as_asked_and_not_much_longer(unit_ns in 1u64..100_000, sample_ns in 1_000u64..10_000_000) {
            let machine = scripted();
            let mut timer = machine.clone();
            let repeat = calibrate(&mut timer, sample_ns, &mut |repeat| {
                machine.borrow_mut().now += repeat * unit_ns;
                repeat
            });
            prop_assert!(repeat * unit_ns >= sample_ns);
            prop_assert!(repeat == 1 || repeat * unit_ns <= sample_ns * 2 + 2 * unit_ns, "{}", repeat);
        }

        #[test]
        fn the_figure_is_that_of_the_undisturbed_samples(
            unit_ns in 100u64..10_000,
            noise in proptest::collection::vec((0u64..3, 0u64..2), 40),
        ) {
            let machine = scripted();
            let mut timer = machine.clone();
            let mut noise = noise.into_iter().cycle();
            let effort = Effort { sample_ns: 1_000_000, samples: 7, most: 24 };
            let found = measure(&mut timer, effort, |repeat| {
                let (percent, taken) = noise.next().unwrap();
                let time = repeat * unit_ns;
                let mut machine = machine.borrow_mut();
                machine.now += time + time * percent / 200 + taken * time / 2;
                machine.lost += taken * time / 2;
                repeat
            });
            prop_assert!(found.samples >= 7 && found.samples <= 24, "{:?}", found);
            if found.stable {
                prop_assert!((found.ns / unit_ns as f64 - 1.0).abs() < 0.02, "{:?}", found);
            }
        }
    }

    #[test]
    fn the_fastest_that_agree_count() {
        let check =
            |samples: &[f64], expected: Option<f64>| assert_eq!(cluster(samples), expected, "{samples:?}");
        check(&[], None);
        check(&[10.0, 10.1], None);
        check(&[10.0, 10.1, 10.2], Some(10.1));
        // One that is too fast to be true does not count, nor do those that something slowed.
        check(&[5.0, 10.0, 10.1, 10.2, 15.0, 15.1, 15.2, 15.3], Some(10.1));
        check(&[1.0, 2.0, 3.0, 4.0], None);
    }

    #[test]
    fn where_all_is_disturbed_it_says_so() {
        let machine = scripted();
        let mut timer = machine.clone();
        let found = measure(&mut timer, Effort::QUICK, |repeat| {
            let mut machine = machine.borrow_mut();
            machine.now += repeat * 1000;
            machine.lost += repeat * 500;
            repeat
        });
        assert!(
            !found.stable && found.disturbed == found.samples && found.samples == Effort::QUICK.most,
            "{found:?}"
        );
        assert!((found.ns - 1000.0).abs() < 1e-9, "{found:?}");
    }
}
