//! All rungs on the simulator, in virtual time: predicted and measured, and whether the verdict names the cause.

use super::constants::{Constants, Whose};
use super::rungs::{self, Rung};
use super::simulator::Measured;
use super::model::Predicted;
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

#[test]
fn rungs_are_as_predicted() {
    for whose in [Whose::Document, Whose::Counted] {
        let climbed = climb(whose);
        for (rung, predicted, measured) in &climbed {
            println!(
                "{:20} {:7.2} {:7.2} {:+6.1} %  load {:4.2} {:4.2}  {:?} {:?} {}",
                rung.name,
                predicted.megabytes,
                measured.megabytes,
                (predicted.megabytes / measured.megabytes - 1.0) * 100.0,
                predicted.load,
                measured.load,
                predicted.limit(),
                measured.limit,
                measured.because
            );
        }
    }
}
