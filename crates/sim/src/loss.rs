//! Which segments are lost.

use crate::random::Random;

/// A model of loss.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Loss {
    /// None are.
    #[default]
    None,
    /// Each with this probability (0 to 1), independently.
    Random(f64),
    /// Bursts: a chain of two states (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability, per segment, to go from the good state to the bad one.
        enter: f64,
        /// Probability, per segment, to go from the bad state back to the good one.
        leave: f64,
        /// Probability of loss in the good state (0 in Gilbert's model).
        good: f64,
        /// Probability of loss in the bad state (1 for bursts in which all is lost).
        bad: f64,
    },
    /// Every nth; 1 loses all, 0 none.
    EveryNth(u64),
    /// Those with these numbers, in rising order, counted from 0 over all segments that reach this place.
    List(Vec<u64>),
}

impl Loss {
    /// The share of segments that this model loses in the long run; `None` for a list.
    pub fn mean(&self) -> Option<f64> {
        match *self {
            Loss::None => Some(0.0),
            Loss::Random(p) => Some(p.clamp(0.0, 1.0)),
            Loss::GilbertElliott { enter, leave, good, bad } => {
                let in_bad = if enter + leave > 0.0 { enter / (enter + leave) } else { 0.0 };
                Some(good * (1.0 - in_bad) + bad * in_bad)
            }
            Loss::EveryNth(0) => Some(0.0),
            Loss::EveryNth(n) => Some(1.0 / n as f64),
            Loss::List(_) => None,
        }
    }
}

/// Where a model stands. It sees the segments in their order.
#[derive(Clone, Debug, Default)]
pub struct LossState {
    seen: u64,
    is_bad: bool,
    next_listed: usize,
}

impl LossState {
    /// Decides about the next segment.
    pub fn loses(&mut self, loss: &Loss, random: &mut Random) -> bool {
        let number = self.seen;
        self.seen += 1;
        match loss {
            Loss::None => false,
            Loss::Random(probability) => random.chance(*probability),
            Loss::GilbertElliott { enter, leave, good, bad } => {
                let turns = random.chance(if self.is_bad { *leave } else { *enter });
                self.is_bad ^= turns;
                random.chance(if self.is_bad { *bad } else { *good })
            }
            Loss::EveryNth(n) => *n > 0 && (number + 1).is_multiple_of(*n),
            Loss::List(list) => {
                while list.get(self.next_listed).is_some_and(|listed| *listed < number) {
                    self.next_listed += 1;
                }
                list.get(self.next_listed) == Some(&number)
            }
        }
    }

    /// Begins anew, with a new model.
    pub(crate) fn reset(&mut self) {
        *self = LossState::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: &Loss, count: usize) -> Vec<usize> {
        let (mut state, mut random) = (LossState::default(), Random::stream(3, 3));
        (0..count).filter(|_| state.loses(loss, &mut random)).collect()
    }

    #[test]
    fn counted_losses_are_exact() {
        assert_eq!(lost(&Loss::EveryNth(3), 9), [2, 5, 8]);
        assert_eq!(lost(&Loss::EveryNth(1), 3), [0, 1, 2]);
        assert_eq!(lost(&Loss::List(vec![0, 1, 4]), 9), [0, 1, 4]);
        assert!(lost(&Loss::None, 9).is_empty() && lost(&Loss::EveryNth(0), 9).is_empty());
    }

    #[test]
    fn random_losses_have_their_mean() {
        let models = [
            Loss::Random(0.03),
            Loss::GilbertElliott { enter: 0.01, leave: 0.25, good: 0.001, bad: 0.7 },
            Loss::EveryNth(50),
        ];
        for model in models {
            let mean = model.mean().unwrap();
            let share = lost(&model, 400_000).len() as f64 / 400_000.0;
            assert!((share / mean - 1.0).abs() < 0.06, "{model:?}: {share} instead of {mean}");
        }
    }

    #[test]
    fn bursts_of_gilbert_have_their_length() {
        // In Gilbert's model with all lost in the bad state a burst lasts 1 / leave segments on average.
        let losses = lost(&Loss::GilbertElliott { enter: 0.01, leave: 0.2, good: 0.0, bad: 1.0 }, 400_000);
        let bursts = 1 + losses.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        let mean = losses.len() as f64 / bursts as f64;
        assert!((4.7..5.3).contains(&mean), "{mean}");
    }
}
