//! Tests of EDMA transfers: the guide's theoretical figures, shapes, shares, and what must never happen.

use super::share::max_min;
use super::*;
use crate::soc::{Soc, load};
use proptest::prelude::*;

fn k2h() -> Soc {
    load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip file loads")
}

#[test]
fn probe() {
    let soc = k2h();
    for (n, l) in [
        ("6", vec![("TC0", "l2.0", "l2.1"), ("TC1", "l2.0", "l2.1")]),
        ("6", vec![("TC2", "l2.0", "l2.1"), ("TC6", "l2.0", "l2.1")]),
        ("9", vec![("TC0", "msmc", "ddr3a"), ("TC1", "msmc", "ddr3a")]),
    ] {
        let mut t = Vec::new();
        for (c, a, b) in l {
            t.push(Transfer::linear(c, a, b, Bytes::new(32768.0)));
            t.push(Transfer::linear(c, b, a, Bytes::new(32768.0)));
        }
        println!("{n} {:?}", predict(&soc, &t, false));
    }
}
