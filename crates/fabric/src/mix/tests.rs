//! Tests of mixed traffic: that both models agree, and that priorities, starts and places count.

use super::*;
use crate::soc::load as chip;

fn k2h() -> Soc {
    chip(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip")
}

fn mixed(soc: &Soc, flows: &str) -> Mixed {
    let scenario = load(&format!("title = \"T\"\n{flows}")).expect("a scenario");
    run(soc, &scenario).expect("a mix")
}

fn flow(name: &str, transfer: &str, more: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\ntransfer = \"{transfer}\"\n{more}\n")
}

fn apart(a: BytesPerSecond, b: BytesPerSecond) -> f64 {
    (a.value() / b.value() - 1.0).abs()
}

#[test]
fn one_flow_is_as_fast_as_alone_and_both_models_agree() {
    for (transfer, more) in [
        ("edma:TC0:ddr3a->msmc:256KiB", ""),
        ("edma:TC2:l2.0->msmc:256KiB", ""),
        ("srio:nwrite:4096:4x:5G:L2", "to = \"ddr3a\""),
        ("ethernet:1518,port=10gbe", "to = \"ddr3a\""),
        ("hyperlink:read:MSMC", "to = \"msmc\"\nvia = \"TC0\""),
        ("pcie:read", "to = \"ddr3a\""),
        ("tcp:ftp_send_3_buffers", "from = \"ddr3a\""),
        ("copy:c66x.1:ddr3a->msmc", ""),
        ("fill:a15.0:ddr3a", ""),
    ] {
        let found = mixed(&k2h(), &flow("one", transfer, more));
        let one = found.flows.first().expect("a flow");
        assert!(apart(one.fluid, one.alone) < 1e-6, "{transfer}: {one:?}");
        assert!(apart(one.engine, one.fluid) < 0.08, "{transfer}: {one:?}");
        assert!(
            one.latency_99 >= one.latency_alone * 0.5 && one.latency.value() > 0.0,
            "{transfer}: {one:?}"
        );
    }
}

#[test]
fn urgent_flows_take_first_and_wait_less() {
    let both = |first: u8, second: u8| {
        let a = flow("a", "edma:TC0:msmc->ddr3a:512KiB", &format!("priority = {first}"));
        let b = flow("b", "edma:TC1:msmc->ddr3a:512KiB", &format!("priority = {second}"));
        mixed(&k2h(), &format!("{a}{b}"))
    };
    let equal = both(4, 4);
    let [a, b] = equal.flows.as_slice() else { panic!("{equal:?}") };
    assert!(apart(a.fluid, b.fluid) < 0.01 && apart(a.engine, b.engine) < 0.03, "{equal:?}");
    let urgent = both(1, 4);
    let [a, b] = urgent.flows.as_slice() else { panic!("{urgent:?}") };
    // Not as fast as alone: a burst of the other that has begun is not interrupted.
    assert!(apart(a.fluid, a.alone) < 0.03 && b.fluid < a.fluid, "{urgent:?}");
    assert!(a.latency < b.latency && b.latency > b.latency_alone, "{urgent:?}");
    assert!(apart(a.engine, a.fluid) < 0.1 && apart(b.engine, b.fluid) < 0.1, "{urgent:?}");
}

#[test]
fn a_flow_that_starts_later_is_slowed_only_while_others_are_there() {
    let a = flow("a", "edma:TC0:msmc->ddr3a:256KiB", "");
    let late = |start: &str| flow("b", "edma:TC1:msmc->ddr3a:256KiB", &format!("start = \"{start}\""));
    let at_once = mixed(&k2h(), &format!("{a}{}", late("0 ns")));
    let after = mixed(&k2h(), &format!("{a}{}", late("1 ms")));
    assert!(apart(after.flows[1].fluid, after.flows[1].alone) < 1e-6, "{after:?}");
    assert!(at_once.flows[1].fluid < after.flows[1].fluid, "{at_once:?}");
    assert!(apart(after.flows[1].engine, after.flows[1].fluid) < 0.05, "{after:?}");
}

#[test]
fn all_kinds_at_once_share_the_memory_and_both_models_agree() {
    let flows = [
        flow("dma", "edma:TC0:ddr3a->msmc:1MiB", "priority = 3"),
        flow("frames", "ethernet:1518,port=10gbe", "to = \"ddr3a\"\nbackground = true\npriority = 1"),
        flow("srio", "srio:nwrite:4096:4x:5G:L2", "to = \"ddr3a\"\nbackground = true"),
        flow("disk", "pcie:write", "from = \"ddr3a\"\nbackground = true"),
        flow("copy", "copy:c66x.0:ddr3a->msmc", "background = true"),
        flow("server", "tcp:ftp_send_3_buffers", "from = \"ddr3a\"\nbackground = true\npriority = 2"),
    ]
    .concat();
    let found = mixed(&k2h(), &flows);
    assert_eq!(found.flows.len(), 6);
    assert!(found.resources.iter().all(|(_, used)| *used <= 1.0 + 1e-6), "{found:?}");
    assert!(found.resources.iter().any(|(name, used)| name == "ddr3a" && *used > 0.5), "{found:?}");
    for one in &found.flows {
        assert!(one.fluid.value() > 0.0 && one.fluid <= one.alone * (1.0 + 1e-9), "{one:?}");
        assert!(apart(one.engine, one.fluid) < AGREE || one.apart().is_some(), "{one:?}");
    }
}

/// The examples: both models within a tenth, or the flow says why not.
#[test]
fn the_models_agree_on_the_examples_or_say_why_not() {
    let stm32 = include_str!("../../../../boards/socs/stm32h743.toml");
    let zcu102 = include_str!("../../../../boards/socs/zcu102.toml");
    let examples = [
        (k2h(), include_str!("../../../../examples/fabric/gateway.toml"), &["memcpy"][..]),
        (chip(stm32).expect("a chip"), include_str!("../../../../examples/fabric/camera.toml"), &[]),
        (chip(zcu102).expect("a chip"), include_str!("../../../../examples/fabric/streams.toml"), &[]),
    ];
    for (soc, text, differ) in examples {
        let scenario = load(text).expect("a scenario");
        let found = run(&soc, &scenario).expect("a mix");
        for one in &found.flows {
            let expected = differ.contains(&one.name.as_str());
            assert_eq!(one.apart().is_some(), expected, "{one:?}");
            assert!(expected || apart(one.engine, one.fluid) < AGREE, "{one:?}");
        }
    }
}

fn used(mixed: &Mixed, resource: &str) -> f64 {
    mixed.resources.iter().find(|(name, _)| name == resource).map_or(0.0, |(_, used)| *used)
}

#[test]
fn others_close_rows_and_turn_the_bus_around() {
    let reads = |name: &str, tc: &str| flow(name, &format!("edma:{tc}:ddr3a->msmc:256KiB"), "");
    let writes = |name: &str, tc: &str| flow(name, &format!("edma:{tc}:msmc->ddr3a:256KiB"), "");
    let soc = k2h();
    let one = mixed(&soc, &reads("a", "TC0"));
    let both = mixed(&soc, &format!("{}{}", reads("a", "TC0"), reads("b", "TC1")));
    // Twice the data, but far more than twice the rows: each finds its row closed by the other.
    assert!(used(&both, "ddr3a rows") > 3.0 * used(&one, "ddr3a rows"), "{one:?} {both:?}");
    let mixed_ways = mixed(&soc, &format!("{}{}", reads("a", "TC0"), writes("b", "TC1")));
    let slow =
        soc.with(&[("endpoints.ddr3a.dram.turnaround".into(), "40 cycles @ ddr".into())]).expect("a chip");
    let slow_ways = mixed(&slow, &format!("{}{}", reads("a", "TC0"), writes("b", "TC1")));
    let sum = |mixed: &Mixed| mixed.flows.iter().map(|flow| flow.engine.value()).sum::<f64>();
    assert!(sum(&slow_ways) < sum(&mixed_ways) * 0.99, "{mixed_ways:?} {slow_ways:?}");
    // Reads alone never turn around.
    let slow_reads = mixed(&slow, &format!("{}{}", reads("a", "TC0"), reads("b", "TC1")));
    assert!((sum(&slow_reads) / sum(&both) - 1.0).abs() < 1e-9, "{both:?} {slow_reads:?}");
    let few = soc.with(&[("endpoints.ddr3a.banks".into(), "2".into())]).expect("a chip");
    let few = mixed(&few, &format!("{}{}", reads("a", "TC0"), reads("b", "TC1")));
    assert!(used(&few, "ddr3a rows") > used(&both, "ddr3a rows"), "{few:?}");
}

#[test]
fn lines_that_a_cache_holds_changed_cost_their_memory() {
    let frames = flow("frames", "ethernet:1518,port=10gbe", "to = \"ddr3a\"");
    let soc = k2h();
    let clean = mixed(&soc, &frames);
    let dirty = soc.with(&[("cores.a15.dirty.ddr3a".into(), "20 %".into())]).expect("a chip");
    let written = mixed(&dirty, &frames);
    assert!(used(&written, "ddr3a") > 1.1 * used(&clean, "ddr3a"), "{clean:?} {written:?}");
    let msmc = soc.with(&[("cores.a15.dirty.msmc".into(), "20 %".into())]).expect("a chip");
    assert!((used(&mixed(&msmc, &frames), "ddr3a") - used(&clean, "ddr3a")).abs() < 1e-9);
    // A core's own lines are no others'.
    let copy = flow("copy", "copy:a15.0:ddr3a->msmc", "");
    let own = mixed(&dirty, &copy);
    assert!((used(&own, "ddr3a") - used(&mixed(&soc, &copy), "ddr3a")).abs() < 1e-9, "{own:?}");
    for (memory, share, said) in [("ddr9", "20 %", "of one of"), ("ddr3a", "120 %", "expected 0 % to 100 %")]
    {
        let error = soc.with(&[(format!("cores.a15.dirty.{memory}"), share.into())]).expect_err(memory);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn victims_cost_bandwidth() {
    let mut soc = k2h();
    let before = mixed(&soc, &flow("fill", "fill:c66x.0:ddr3a", ""));
    soc = soc.with(&[("cores.c66x.victims".into(), "100 %".into())]).expect("a chip");
    let after = mixed(&soc, &flow("fill", "fill:c66x.0:ddr3a", ""));
    assert!(
        used(&after, "ddr3a") > used(&before, "ddr3a") || after.flows[0].fluid < before.flows[0].fluid,
        "{before:?} {after:?}"
    );
}

#[test]
fn what_is_no_flow_is_refused() {
    let check = |flows: &str, expected: &str| {
        let text = format!("title = \"T\"\n{flows}");
        let error = match load(&text) {
            Err(error) => error.to_string(),
            Ok(scenario) => run(&k2h(), &scenario).expect_err(expected).to_string(),
        };
        assert!(error.contains(expected), "{error}");
    };
    check(&flow("a", "edma:TC99:msmc->l2", ""), "a: no transfer controller 'TC99'");
    check(&flow("a", "ethernet:1518", ""), "expected from or to");
    check(&flow("a", "core:c66x:ddr3a", ""), "a latency is no flow");
    check(&flow("a", "copy:c66x", ""), "expected copy:CORE:FROM->TO");
    check(&flow("a", "copy:c66x.8:ddr3a->msmc", ""), "expected c66x.0 to c66x.7");
    check(&flow("a", "fill:z80:ddr3a", ""), "no core 'z80'");
    check(&flow("a", "edma:TC0:msmc->l2", "priority = 9"), "expected 0 (first) to 7");
    check(&flow("a", "edma:TC0:msmc->l2", "speed = 9"), "unknown field `speed`");
}
