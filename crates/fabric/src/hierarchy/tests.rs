//! Tests of loads and stores through caches.

use crate::ask::{Transfer, answer};
use crate::fit::{Measurement, calibrate};
use crate::model::tables::TRANSFER;
use crate::predict::{Calibrate as _, TableModel as _, Unit};
use crate::soc::{Soc, load};
use proptest::prelude::*;

fn host() -> Soc {
    load(include_str!("host.toml")).expect("the chip loads")
}

fn ask(soc: &Soc, transfer: &str) -> f64 {
    answer(soc, transfer).unwrap_or_else(|error| panic!("{transfer}: {error}")).predicted
}

fn check(transfer: &str, expected: f64, within: f64) {
    let found = answer(&host(), transfer).unwrap_or_else(|error| panic!("{transfer}: {error}"));
    let error = found.predicted / expected - 1.0;
    assert!(error.abs() <= within, "{transfer}: {} for {expected}", found.predicted);
    assert!(found.low <= found.predicted && found.predicted <= found.high, "{found:?}");
    let shares: f64 = found.bottlenecks.iter().map(|limit| limit.share).sum();
    assert!((shares - 1.0).abs() < 1e-6, "the parts make the whole: {found:?}");
    let again: Transfer = transfer.parse().expect("a transfer");
    assert_eq!(again.to_string().parse(), Ok(again), "the canonical form of {transfer} reads back");
}

#[test]
fn a_load_takes_the_latency_of_its_level() {
    check("load:cpu:16KiB", 5.0, 0.01);
    check("load:cpu:16KiB:single,stride=256", 5.0, 0.01);
    check("load:cpu:128KiB:single,stride=128", 14.0, 0.01);
    // Beyond all: memory, and a miss of translation.
    check("load:cpu:64MiB:single,stride=128", 407.0, 0.02);
    // Two loads to what a miss brings: of twice what the level holds, some second lines are there still.
    check("load:cpu:2MiB:single,stride=64", 14.0 + 0.5f64.sqrt() * 386.0 + 7.0, 0.05);
    // Eight loads of a line that is brought: one in eight waits.
    check("load:cpu:128KiB:single,stride=8", 5.0 + 0.9 * (1.0f64 - 48.0 / 128.0).powf(0.875) * 9.0, 0.08);
}

#[test]
fn strides_of_powers_of_two_fall_into_few_sets() {
    let soc = host();
    // 24 lines: of one set of twelve ways where they lie a page apart, of many where a line more lies between.
    assert!(ask(&soc, "load:cpu:96KiB:single,stride=4096") > 13.0);
    assert!(ask(&soc, "load:cpu:99840:single,stride=4160") < 5.1);
    // The second level mixes its index: what is 4 KiB apart takes as much as if it were 1 KiB apart.
    assert!(ask(&soc, "load:cpu:2MiB:single,stride=1024") > 300.0);
    assert!(ask(&soc, "load:cpu:2MiB:single,stride=4096") < 30.0);
}

/// As measured on the board, which `cargo xtask board softcore rates` does anew.
#[test]
fn a_direct_mapped_cache_misses_what_shares_a_set() {
    let soc = load(include_str!("../../../../boards/socs/softcore.toml")).expect("the chip loads");
    let close = |transfer: &str, measured: f64| {
        let error = ask(&soc, transfer) / measured - 1.0;
        assert!(error.abs() < 0.02, "{transfer}: off by {error}");
    };
    close("load:vexriscv:16KiB,stride=32", 3.04);
    // Two lines in each of half the sets.
    close("load:vexriscv:24KiB,stride=32", 23.04);
    close("load:vexriscv:32KiB,stride=32", 33.04);
    // What is stored takes no room.
    close("memory:vexriscv:copy:16KiB", 139.6);
    close("memory:vexriscv:copy:24KiB", 103.4);
}

#[test]
fn translation_costs_what_no_level_shows() {
    check("load:cpu:187200:single,stride=4160", 5.0, 0.05);
    check("load:cpu:416000:single,stride=4160", 12.0, 0.05);
}

#[test]
fn rates_are_those_of_the_level_and_of_who_shares_it() {
    check("memory:cpu:read:16KiB", 130_000.0, 0.03);
    check("memory:cpu:read:256KiB", 120_000.0, 0.03);
    check("memory:cpu:fill:64MiB", 30_000.0, 0.01);
    // A copy takes twice the room.
    check("memory:cpu:copy:16KiB", 165_000.0, 0.05);
    assert!(ask(&host(), "memory:cpu:copy:32KiB") < 115_000.0);
    check("memory:cpu:read:16KiB,cores=2", 260_000.0, 0.03);
    check("memory:cpu:read:128KiB,cores=2", 200_000.0, 0.03);
    check("memory:cpu:copy:64MiB,cores=2", 24_000.0, 0.01);
    // Two sets of 700 KiB do not fit where one does.
    let one = ask(&host(), "memory:cpu:read:700KiB");
    assert!(ask(&host(), "memory:cpu:read:700KiB,cores=2") < one, "{one}");
}

#[test]
fn loops_bind_where_memory_does_not() {
    // Two cycles an element at 4 GHz.
    check("memory:cpu:read:16KiB,element=1", 2_000.0, 0.01);
    check("memory:cpu:read:16KiB,element=8", 16_000.0, 0.01);
    check("memory:cpu:read:16KiB,element=32", 32.0 * 4_000.0 / 3.0, 0.01);
    check("memory:cpu:read:64MiB,element=32", 40_000.0, 0.1);
    check("load:cpu:16KiB:burst", 1.5, 0.01);
    check("store:cpu:16KiB", 1.7, 0.01);
    check("load:cpu:64MiB:burst", 400.0 / 30.0 + 7.0 / 4.0, 0.05);
    check("load:cpu:64MiB:burst,stride=64", 9.0, 0.01);
    check("load:cpu:64MiB:burst,stride=2048", 9.0 + 10.0, 0.05);
    check("load:cpu:64MiB:burst,stride=2112", 9.0 + 20.0 / 64.0, 0.05);
    check("load:cpu:16KiB:burst,stride=8", 0.1, 0.01);
    assert!(
        ask(&host(), "memory:cpu:copy:8KiB,from=0,to=1") < ask(&host(), "memory:cpu:copy:8KiB,from=1,to=0")
    );
    check("memory:cpu:copy:64MiB,from=1,to=33", 20_000.0, 0.01);
    check("memory:cpu:copy:8KiB,from=64,to=128", ask(&host(), "memory:cpu:copy:8KiB"), 1e-9);
}

#[test]
fn units_are_those_of_the_question() {
    for (transfer, unit) in [
        ("load:cpu:1MiB", Unit::Cycles),
        ("store:cpu:1MiB", Unit::Cycles),
        ("memory:cpu:fill:1MiB", Unit::MegabytesPerSecond),
    ] {
        assert_eq!(answer(&host(), transfer).expect(transfer).unit, unit, "{transfer}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |soc: &Soc, transfer: &str, said: &str| {
        let error = answer(soc, transfer).expect_err(transfer).to_string();
        assert!(error.contains(said), "{transfer}: {error}");
    };
    let soc = host();
    refused(&soc, "load:dsp:1MiB", "no core 'dsp'");
    refused(&soc, "load:cpu:1KiB:single,stride=4KiB", "a stride of 1 B up to its size");
    refused(&soc, "memory:cpu:copy:1MiB,cores=3", "3 cores; expected 1 to 2");
    refused(&soc, "memory:cpu:move:1MiB", "expected one of read, fill, copy");
    refused(&soc, "memory:cpu:fill:1MiB,element=8", "unknown option 'element'");
    refused(&soc, "store:cpu:1MiB:single", "unexpected 'single'");
    let k2h = load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    refused(&k2h, "load:a15:1MiB", "describes no levels of core 'a15'");
    let broken = |key: &str, value: &str, said: &str| {
        let error = soc.with(&[(key.into(), value.into())]).expect_err(key).to_string();
        assert!(error.contains(said), "{key}: {error}");
    };
    broken("cores.cpu.levels.memory.size", "\"1 GiB\"", "0 levels without a size");
    broken("cores.cpu.levels.l1.unevenness", "300 %", "expected at most 200 %");
    broken("cores.cpu.levels.l1.per_line", "1 cycle @ bus", "no clock is named");
    broken("cores.cpu.tlbs.l1.pipeline", "none", "no pipeline is named");
    broken("cores.cpu.tlbs.l1.entries", "0.0", "expected 1 to");
    let text = include_str!("host.toml");
    let without = |part: &str, other: &str, said: &str| {
        let error = load(&text.replace(part, other)).expect_err(part).to_string();
        assert!(error.contains(said), "{part}: {error}");
    };
    without("[cores.cpu.levels.l2]", "[cores.cpu.levels.l9]", "no source \"l9\" among the reads");
    let loops = text.find("[cores.cpu.loops]").expect("loops");
    let error = load(&text[..loops]).expect_err("no loops").to_string();
    assert!(error.contains("levels without loops"), "{error}");
}

/// Transfers that see every parameter.
const ASKED: [&str; 34] = [
    "load:cpu:8KiB:single,stride=128",
    "load:cpu:40KiB:single,stride=64",
    "load:cpu:52KiB:single,stride=64",
    "load:cpu:64KiB:single,stride=128",
    "load:cpu:256KiB:single,stride=128",
    "load:cpu:800KiB:single,stride=128",
    "load:cpu:1MiB:single,stride=128",
    "load:cpu:1200KiB:single,stride=128",
    "load:cpu:2MiB:single,stride=2048",
    "load:cpu:3MiB:single,stride=4096",
    "load:cpu:64MiB:single,stride=256",
    "load:cpu:228800:single,stride=4160",
    "load:cpu:270400:single,stride=4160",
    "load:cpu:416000:single,stride=4160",
    "memory:cpu:read:1KiB",
    "memory:cpu:read:32KiB",
    "memory:cpu:read:300KiB",
    "memory:cpu:read:64MiB",
    "memory:cpu:fill:1KiB",
    "memory:cpu:fill:32KiB",
    "memory:cpu:fill:300KiB",
    "memory:cpu:fill:64MiB",
    "memory:cpu:copy:1KiB",
    "memory:cpu:copy:16KiB",
    "memory:cpu:copy:200KiB",
    "memory:cpu:copy:64MiB",
    "memory:cpu:read:64MiB,cores=2",
    "memory:cpu:fill:64MiB,cores=2",
    "memory:cpu:copy:64MiB,cores=2",
    "memory:cpu:read:100KiB,cores=2",
    "load:cpu:64MiB:burst,stride=64",
    "load:cpu:64MiB:burst,stride=1024",
    "load:cpu:64MiB:burst",
    "memory:cpu:read:8KiB,element=4",
];

#[test]
fn a_fit_finds_back_what_was_measured() {
    let truth = host();
    let data: Vec<Measurement> = ASKED
        .iter()
        .enumerate()
        .map(|(line, transfer)| Measurement {
            table: TRANSFER.into(),
            row: (*transfer).into(),
            column: 1,
            value: ask(&truth, transfer),
            error: None,
            line,
        })
        .collect();
    let start = truth
        .with(&[
            ("cores.cpu.levels.l1.size".into(), "40 KiB".into()),
            ("cores.cpu.levels.l2.size".into(), "1200 KiB".into()),
            ("cores.cpu.reads.memory.latency".into(), "300 cycles @ core".into()),
            ("cores.cpu.levels.memory.read".into(), "55 GB/s".into()),
            ("cores.cpu.levels.memory.copy_all".into(), "50 GB/s".into()),
            ("cores.cpu.loops.read".into(), "2 cycles @ core".into()),
            ("cores.cpu.loops.element".into(), "4 cycles @ core".into()),
        ])
        .expect("a chip");
    let fitted = calibrate(&start, &data).expect("a fit");
    let errors = |soc: &Soc| {
        let error = |one: &Measurement| {
            (soc.figure(&one.table, &one.row, one.column).expect("a figure") / one.value - 1.0).abs()
        };
        let mut all: Vec<f64> = data.iter().map(error).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (before, after) = (errors(&start), errors(&fitted));
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(after[after.len() / 2] < 0.01 && mean(&after) < mean(&before) / 4.0, "{before:?} {after:?}");
    let names: Vec<String> = start.free().into_iter().map(|one| one.name).collect();
    for name in [
        "cores.cpu.levels.l1.size",
        "cores.cpu.tlbs.l1.miss",
        "cores.cpu.loops.scatter",
        "cores.cpu.reads.l2.latency",
    ] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
}

#[test]
fn every_key_of_the_levels_changes_an_answer() {
    let soc = host();
    let mut asked: Vec<&str> = ASKED.to_vec();
    asked.extend(["store:cpu:8KiB", "store:cpu:64MiB", "load:cpu:8KiB:burst", "load:cpu:500KiB:burst"]);
    asked.extend([
        "memory:cpu:read:8KiB,element=32",
        "memory:cpu:copy:8KiB,from=1",
        "memory:cpu:copy:8KiB,to=1",
    ]);
    asked.extend([
        "load:cpu:8KiB:burst,stride=512",
        "load:cpu:500KiB:burst,stride=512",
        "load:cpu:256KiB:single,stride=4096",
    ]);
    asked.extend([
        "memory:cpu:fill:100KiB,cores=2",
        "memory:cpu:copy:60KiB,cores=2",
        "load:cpu:1100KiB:single,stride=64",
    ]);
    asked.push("memory:cpu:read:700KiB,cores=2");
    let answers =
        |soc: &Soc| asked.iter().map(|transfer| format!("{:?}", answer(soc, transfer))).collect::<Vec<_>>();
    let before = answers(&soc);
    for (key, value) in soc.keys().into_iter().filter(|(key, _)| key.starts_with("cores.")) {
        let (number, unit) = crate::units::split_number(&value);
        let Ok(number) = number.parse::<f64>() else { continue };
        let whole = number.fract() == 0.0 && unit.is_empty() && !value.contains('.');
        let counts = [2.0, 0.5].iter().any(|factor| {
            let other = number * factor;
            let text = if whole { format!("{}", other.ceil()) } else { format!("{other:?} {unit}") };
            soc.with(&[(key.clone(), text.trim().to_owned())])
                .map_or(true, |changed| answers(&changed) != before)
        });
        assert!(counts, "{key} = {value} changes nothing");
    }
}

proptest! {
    #[test]
    fn larger_sets_are_never_faster(kib in 4u64..60_000, stride in 3u32..13) {
        let soc = host();
        let stride = 1u64 << stride;
        let at = |kib: u64| ask(&soc, &format!("load:cpu:{kib}KiB:single,stride={stride}"));
        prop_assert!(at(kib + kib / 8 + 1) >= at(kib) * 0.999);
        let rate = |bytes: u64, cores: u64| ask(&soc, &format!("memory:cpu:fill:{bytes}KiB,cores={cores}"));
        prop_assert!(rate(kib, 2) <= 2.0 * rate(kib, 1) * 1.001);
    }
}
