//! Tests of reads by cores.

use super::*;
use crate::soc::load;

fn check(core: &str, source: &str, pattern: Pattern, published: f64, within: f64) {
    let soc = load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    let prediction = read(&soc, core, source, pattern).expect("core and source are there");
    let error = prediction.predicted / published - 1.0;
    assert!(error.abs() <= within, "{core} {source} {pattern:?}: {} for {published}", prediction.predicted);
    assert!(prediction.low <= prediction.predicted && prediction.predicted <= prediction.high);
    let parts: f64 = prediction.bottlenecks.iter().map(|part| part.share).sum();
    assert!((parts - 1.0).abs() < 1e-9, "the parts of a latency make the whole");
}

#[test]
fn single_reads_wait_for_the_sum_of_their_parts() {
    check("c66x", "msmc_sl3", Pattern::Single, 25.0, 1e-9);
    check("c66x", "ddr3a", Pattern::Single, 103.0, 0.06);
    check("c66x", "ddr3b", Pattern::Single, 152.0, 0.06);
    check("a15", "ddr3a", Pattern::Single, 140.0, 0.07);
}

#[test]
fn bursts_overlap_reads() {
    check("c66x", "ddr3a", Pattern::Burst, 30.0, 0.07);
    check("c66x", "ddr3b", Pattern::Burst, 43.0, 0.12);
    check("a15", "msmc_sl3", Pattern::Burst, 12.0, 0.07);
}

#[test]
fn what_is_not_there_is_named() {
    let soc = load(include_str!("../../../../boards/socs/k2e.toml")).expect("the chip loads");
    let error = read(&soc, "c66x", "ddr3b", Pattern::Single).expect_err("there is no DDR3B");
    assert!(error.to_string().contains("expected one of: ddr3a"), "{error}");
    assert_eq!(read(&soc, "m7", "l1", Pattern::Single), Err(ReadError::NoCore("m7".into())));
}
