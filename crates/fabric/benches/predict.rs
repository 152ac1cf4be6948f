//! Prints what a prediction, a guide, its accuracy and a sweep of a million points cost.
//!
//! `cargo bench -p linerate-fabric --bench predict`. Wall clock; the goals are 100 us for a prediction from a chip that is
//! ready, 2 s for a guide with its accuracy, and 10 s for the sweep, on one core.

use linerate_fabric::ask::ready::{Asked, Ready};
use linerate_fabric::edma::{self, Transfer};
use linerate_fabric::model::accuracy::{self, Kept};
use linerate_fabric::predict::TableModel;
use linerate_fabric::units::Bytes;
use linerate_fabric::{ask, engine, guide, soc};
use std::hint::black_box;
use std::time::Instant;

/// Points of the sweep.
const POINTS: u32 = 1_000_000;

/// Transfers of every kind, with much and with nothing open on their way.
const READY: [&str; 6] = [
    "edma:TC0:l2.0->msmc:32KiB",
    "edma:TC0:msmc->ddr3a:32KiB",
    "edma:TC0:ddr3b->ddr3b:32KiB",
    "core:c66x:ddr3a:burst",
    "srio:nread:4096:4x:5G:L2",
    "ethernet:1518,port=10gbe",
];

fn main() {
    let soc = soc::load(include_str!("../../../boards/socs/k2h.toml")).expect("the chip loads");
    let guide = guide::load(include_str!("../../../boards/guides/keystone2.toml")).expect("the guide loads");
    let both: Vec<Transfer> = ["TC0", "TC1"]
        .iter()
        .flat_map(|tc| [("msmc", "ddr3a"), ("ddr3a", "msmc")].map(|(from, to)| (tc, from, to)))
        .map(|(tc, from, to)| Transfer::linear(tc, from, to, Bytes::new(32_768.0)))
        .collect();
    time("one prediction: 2 controllers, both directions", 1000, || {
        black_box(edma::predict(&soc, black_box(&both), false).expect("a prediction"));
    });
    time("the same, burst by burst", 100, || {
        black_box(engine::simulate(&soc, black_box(&both)).expect("a run"));
    });
    let ready = Ready::new(&soc);
    for text in READY {
        let transfer: ask::Transfer = text.parse().expect("a transfer");
        time(&format!("ready: {text}"), 1000, || match &transfer {
            ask::Transfer::Edma(edma) => {
                black_box(ready.predict(Asked::Together(&[edma], true)).expect("a prediction"));
            }
            other => {
                black_box(ready.predict(Asked::One(other)).expect("a prediction"));
            }
        });
    }
    let kept = Kept::read(include_str!("../../../boards/accuracy/k2h.toml")).expect("kept");
    time("the accuracy as kept, read and checked", 1, || {
        black_box(accuracy::restored(&kept, &soc, &guide).expect("structures").expect("of this chip"));
    });
    time("every cell of the guide", 10, || {
        for table in &guide.tables {
            for (row, column, _) in table.cells() {
                black_box(soc.cell(&table.id, &table.rows[row].name, column + 1));
            }
        }
    });
    let begin = Instant::now();
    let mut transfer = Transfer::linear("TC0", "msmc", "l2", Bytes::new(1.0));
    for point in 1..=POINTS {
        transfer.shape = edma::Shape::linear(Bytes::new(f64::from(point)));
        black_box(edma::rate(&soc, black_box(std::slice::from_ref(&transfer)), true).expect("a rate"));
    }
    println!("{:<50} {:>10.2} s", "a sweep of 10^6 sizes", begin.elapsed().as_secs_f64());
}

/// Prints the time of one round, the best of five.
fn time(name: &str, rounds: u32, mut work: impl FnMut()) {
    let best = (0..5)
        .map(|_| {
            let begin = Instant::now();
            (0..rounds).for_each(|_| work());
            begin.elapsed().as_secs_f64() / f64::from(rounds)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<50} {:>10.1} us", best * 1e6);
}
