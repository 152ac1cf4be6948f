//! Tests of EDMA transfers: shapes, shares, and what must never happen.

use super::share::max_min;
use super::*;
use crate::soc::{Soc, load};
use crate::units::{BytesPerCycle, Hertz};
use proptest::prelude::*;

fn k2h() -> Soc {
    load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip file loads")
}

fn asked(soc: &Soc, transfers: &[Transfer]) -> Prediction {
    predict(soc, transfers, false).expect("a prediction")
}

fn shaped(shape: Shape) -> Transfer {
    Transfer { controller: "TC0".into(), source: "msmc".into(), destination: "l2".into(), shape }
}

#[test]
fn the_read_window_is_named_as_the_limit_of_ddr3_reads() {
    let transfer = Transfer::linear("TC0", "ddr3a", "msmc", Bytes::new(131_072.0));
    let prediction = asked(&k2h(), &[transfer]);
    let first = &prediction.bottlenecks[0];
    assert_eq!((first.name.as_str(), first.share), ("read window of one TC", 1.0));
    assert!(first.explanation.starts_with("512 B / "), "{}", first.explanation);
    let second = Transfer::linear("TC1", "ddr3a", "msmc", Bytes::new(131_072.0));
    let both = asked(&k2h(), &[Transfer::linear("TC0", "ddr3a", "msmc", Bytes::new(131_072.0)), second]);
    assert!(both.predicted > 1.9 * prediction.predicted, "a second controller brings a second window");
}

#[test]
fn controllers_on_the_same_bridge_share_it() {
    let to_l2 = |tc: &str, core: &str| Transfer::linear(tc, "msmc", core, Bytes::new(65_536.0));
    let apart = asked(&k2h(), &[to_l2("TC0", "l2.0"), to_l2("TC1", "l2.1")]);
    let together = asked(&k2h(), &[to_l2("TC0", "l2.0"), to_l2("TC12", "l2.1")]);
    assert_eq!((apart.theoretical, together.theoretical), (12_800.0, 6_400.0));
    assert!(together.bottlenecks.iter().any(|b| b.name == "bridge br2 write" && b.share > 0.9));
}

#[test]
fn a_second_rank_costs_about_a_fifth() {
    let mut soc = k2h();
    let transfers: Vec<Transfer> = ["TC7", "TC8", "TC9"]
        .iter()
        .map(|tc| Transfer::linear(tc, "msmc", "ddr3a", Bytes::new(65_536.0)))
        .collect();
    let one = asked(&soc, &transfers).predicted;
    let memory = soc.endpoints.get_mut("ddr3a").expect("DDR3A").value_mut();
    *memory.dram.as_mut().expect("DRAM").value_mut().ranks.value_mut() = 2;
    let two = asked(&soc, &transfers).predicted;
    assert!((0.78..0.84).contains(&(two / one)), "{two} of {one}");
}

#[test]
fn setup_weighs_on_small_transfers_and_on_many_requests() {
    let soc = k2h();
    let with = |shape| predict(&soc, &[shaped(shape)], true).expect("a prediction").predicted;
    let sizes = [64.0, 256.0, 1024.0, 4096.0, 65_536.0, 1_048_576.0]
        .map(|size| with(Shape::linear(Bytes::new(size))));
    assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{sizes:?}");
    assert!(with(Shape::arrays(Sync::A, 1024, 128)) < with(Shape::arrays(Sync::Ab, 1024, 128)));
    // What is first among the limits is what the time goes to.
    let first = |size| {
        let transfer = shaped(Shape::linear(Bytes::new(size)));
        let found = predict(&soc, &[transfer], true).expect("a prediction").bottlenecks.swap_remove(0);
        (found.name, found.share)
    };
    let (name, share) = first(64.0);
    assert!(name == "setup and first latency" && share > 0.5, "{name} {share}");
    let (name, share) = first(1_048_576.0);
    assert!(name != "setup and first latency" && share > 0.9, "{name} {share}");
}

#[test]
fn odd_indices_waste_banks_and_large_arrays_hide_it() {
    let soc = k2h();
    let with = |acnt, index| {
        let shape = Shape { source_index: index, ..Shape::arrays(Sync::Ab, acnt, 64) };
        asked(&soc, &[Transfer { destination: "msmc".into(), ..shaped(shape) }]).predicted
    };
    let linear = |acnt| with(acnt, acnt);
    assert!(linear(64) > with(64, 128) && with(64, 128) >= with(64, 96) && with(64, 96) > with(64, 65));
    assert!(with(4096, 4097) / linear(4096) > with(64, 65) / linear(64), "the difference fades");
}

#[test]
fn bursts_are_cut_at_multiples_of_their_size() {
    let shape = |offset| Shape { source_offset: offset, ..Shape::linear(Bytes::new(1024.0)) };
    let burst = Bytes::new(128.0);
    assert_eq!(shape(0).mean_burst(burst, false).value(), 128.0);
    assert_eq!(shape(4).mean_burst(burst, false).value(), 1024.0 / 9.0);
    assert_eq!(shape(128).mean_burst(burst, false).value(), 128.0);
}

#[test]
fn what_is_no_transfer_is_refused() {
    let soc = k2h();
    let check = |transfers: &[Transfer], expected: &str| {
        let error = predict(&soc, transfers, false).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[], "expected 1 to 256");
    check(&vec![shaped(Shape::linear(Bytes::new(64.0))); 257], "257 transfers");
    check(&[shaped(Shape::linear(Bytes::ZERO))], "ACNT is 0");
    check(&[shaped(Shape::arrays(Sync::A, 1 << 39, 1 << 39))], "ACNT x BCNT x CCNT");
    check(
        &[Transfer::linear("TC99", "msmc", "l2", Bytes::new(64.0))],
        "no transfer controller is named \"TC99\"",
    );
    check(&[Transfer::linear("TC0", "msmc", "flash", Bytes::new(64.0))], "no memory is named \"flash\"");
}

#[test]
fn the_dma_of_a_small_chip_keeps_up_with_its_link() {
    let check = |text: &str, controller: &str, memory: &str, link_megabytes: f64| {
        let soc = load(text).expect("the chip loads");
        let packet = Transfer::linear(controller, memory, memory, Bytes::new(1514.0));
        let prediction = predict(&soc, &[packet], false).expect("a prediction");
        assert!(prediction.predicted > link_megabytes, "{controller}: {}", prediction.predicted);
    };
    check(include_str!("../../../../boards/socs/stm32h743.toml"), "MAC", "axi_sram", 12.5);
    check(include_str!("../../../../boards/socs/zcu102.toml"), "MCDMA", "ddr4", 1000.0);
}

const MEMORIES: [&str; 4] = ["l2.0", "msmc", "ddr3a", "ddr3b"];

fn any_transfer() -> impl Strategy<Value = Transfer> {
    (0..14u8, 0..4usize, 0..4usize, 1..65_536u64, 1..64u64, 0..256u64, 0..256u64, any::<bool>()).prop_map(
        |(tc, from, to, acnt, bcnt, index, offset, a)| Transfer {
            controller: format!("TC{tc}"),
            source: MEMORIES[from].into(),
            destination: MEMORIES[to].into(),
            shape: Shape {
                source_index: acnt + index,
                source_offset: offset,
                ..Shape::arrays(if a { Sync::A } else { Sync::Ab }, acnt, bcnt)
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_transfer_exceeds_its_theory(transfers in proptest::collection::vec(any_transfer(), 1..8), setup: bool) {
        let soc = k2h();
        let ideal = outcome(&soc, &transfers, Mode::Theoretical, false).unwrap().rate.value();
        let real = outcome(&soc, &transfers, Mode::Achievable, setup).unwrap().rate.value();
        prop_assert!(real.is_finite() && real > 0.0);
        // One transfer alone never beats its theory; several may finish in another order, the prediction still holds back.
        if transfers.len() == 1 {
            prop_assert!(real <= ideal * (1.0 + 1e-9), "{} of {}", real, ideal);
        }
        let p = predict(&soc, &transfers, setup).unwrap();
        prop_assert!(p.low <= p.predicted && p.predicted <= p.high && p.high <= p.theoretical);
        prop_assert!(p.efficiency() <= 1.0);
        prop_assert!(p.bottlenecks.iter().all(|b| (0.0..=1.0).contains(&b.share)));
    }

    #[test]
    fn faster_clocks_and_wider_buses_never_predict_less(transfer in any_transfer(), factor in 1.0..3.0f64, what in 0..5u8) {
        let soc = k2h();
        let mut better = soc.clone();
        match what {
            0 | 1 => {
                let clock = better.clocks.get_mut(["dsp", "ddr"][usize::from(what)]).unwrap().value_mut();
                let frequency = clock.frequency.as_mut().unwrap().value_mut();
                *frequency = Hertz::new(frequency.value() * factor);
            }
            2 => for memory in better.endpoints.values_mut() {
                memory.value_mut().width = BytesPerCycle::new(memory.width.value() * 2.0);
            },
            3 => for bridge in better.bridges.values_mut() {
                bridge.value_mut().width = BytesPerCycle::new(bridge.width.value() * 2.0);
            },
            _ => for controller in better.edma.values_mut() {
                controller.value_mut().width = BytesPerCycle::new(controller.width.value() * 2.0);
            },
        }
        let (before, after) = (asked(&soc, std::slice::from_ref(&transfer)), asked(&better, &[transfer]));
        prop_assert!(after.theoretical >= before.theoretical * (1.0 - 1e-9));
        prop_assert!(after.predicted >= before.predicted * (1.0 - 1e-9), "{} after {}", after.predicted, before.predicted);
    }

    #[test]
    fn shares_fill_no_resource_twice_and_leave_nobody_behind(
        costs in proptest::collection::vec(proptest::collection::vec((0..5usize, 0.01..2.0f64), 1..4), 1..8),
        caps in proptest::collection::vec(0.01..5.0f64, 8),
    ) {
        let caps = &caps[..costs.len()];
        let rates = max_min(&costs, caps, 5);
        let mut load = [0.0; 5];
        for (flow, rate) in costs.iter().zip(&rates) {
            for (resource, cost) in flow {
                load[*resource] += cost * rate;
            }
        }
        prop_assert!(load.iter().all(|load| *load <= 1.0 + 1e-9), "{:?}", load);
        for (f, flow) in costs.iter().enumerate() {
            prop_assert!(rates[f] <= caps[f] * (1.0 + 1e-9));
            // Either it does what it can, or it has the largest rate on a resource that is full.
            let largest = |resource: usize| costs.iter().zip(&rates).filter(|(other, _)| other.iter().any(|(r, _)| *r == resource)).map(|(_, rate)| *rate).fold(0.0, f64::max);
            let held = flow.iter().any(|(r, _)| load[*r] >= 1.0 - 1e-6 && rates[f] >= largest(*r) * (1.0 - 1e-6));
            prop_assert!(held || rates[f] >= caps[f] * (1.0 - 1e-6));
        }
    }
}

/// More room never makes a transfer slower, whatever of its controller is made larger.
#[test]
fn larger_sizes_of_a_controller_cost_nothing() {
    let heron = load(include_str!("../../../../boards/socs/examples/heron.toml")).expect("the chip loads");
    for (chip, soc, controller, memories) in
        [("heron", heron, "D0", ["dram", "sram"]), ("k2h", k2h(), "TC0", ["ddr3a", "msmc"])]
    {
        for (key, from) in [("outstanding_reads", 64u64), ("outstanding_writes", 64), ("fifo", 1024)] {
            for bytes in [64.0, 1000.0, 65_536.0, 16_777_216.0] {
                for ends in [[0, 1], [1, 0], [0, 0]] {
                    let [source, destination] = ends.map(|at| memories[at]);
                    let transfer = Transfer::linear(controller, source, destination, Bytes::new(bytes));
                    let mut before = 0.0;
                    for value in (0..32).map(|doubled| from << doubled) {
                        let change = (format!("edma.*.{key}"), format!("{value} B"));
                        let Ok(soc) = soc.with(&[change]) else { continue };
                        let rate = predict(&soc, std::slice::from_ref(&transfer), true)
                            .expect("a prediction")
                            .predicted;
                        assert!(
                            rate >= before * (1.0 - 1e-9),
                            "{chip}: {bytes} B {source} to {destination}, {key} = {value} B: {rate} after {before}"
                        );
                        before = rate;
                    }
                }
            }
        }
    }
}
