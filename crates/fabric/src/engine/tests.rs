//! Tests that the engine and the closed forms agree, and that the engine is bounded.

use super::*;
use crate::model::tables::complex;
use crate::soc::load;

fn k2h() -> Soc {
    load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads")
}

/// Both on the same transfers; the engine over the closed form, less one.
fn difference(soc: &Soc, transfers: &[Transfer]) -> f64 {
    let closed = edma::predict(soc, transfers, false).expect("a prediction");
    simulate(soc, transfers).expect("a run").rate.megabytes() / closed.predicted - 1.0
}

#[test]
fn both_agree_on_every_set_up_of_the_guide() {
    let soc = k2h();
    for (table, columns) in [
        ("6", 2),
        ("7", 3),
        ("8", 4),
        ("9", 3),
        ("10", 3),
        ("11", 3),
        ("12", 3),
        ("13", 3),
        ("14", 3),
        ("15", 3),
    ] {
        for column in 0..columns {
            let transfers = complex(table, column).expect("the guide has this column");
            let found = difference(&soc, &transfers);
            assert!(found.abs() < 0.06, "table {table} column {}: {:.1} %", column + 1, found * 100.0);
        }
    }
}

#[test]
fn both_agree_on_one_controller_between_any_two_memories() {
    let soc = k2h();
    for controller in ["TC0", "TC2", "TC10"] {
        for source in ["l2.0", "msmc", "ddr3a", "ddr3b"] {
            for destination in ["l2.1", "msmc", "ddr3a", "ddr3b"] {
                let transfer = Transfer::linear(controller, source, destination, Bytes::new(262_144.0));
                let found = difference(&soc, &[transfer]);
                assert!(found.abs() < 0.05, "{controller} {source} {destination}: {:.1} %", found * 100.0);
            }
        }
    }
}

#[test]
fn it_is_deterministic_and_bounded() {
    let soc = k2h();
    let transfers = complex("8", 3).expect("the guide has this column");
    assert_eq!(simulate(&soc, &transfers), simulate(&soc, &transfers));
    let endless = Transfer::linear("TC0", "msmc", "l2", Bytes::new(1e12));
    assert!(matches!(simulate(&soc, &[endless]), Err(EngineError::TooLong(_))));
    assert_eq!(simulate(&soc, &[]), Err(EngineError::Transfer(TransferError::Count(0))));
}
