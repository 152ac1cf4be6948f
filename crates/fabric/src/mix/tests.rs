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

/// Changed lines are written back as part of their flow: few of them cost nearly nothing, beside others too.
#[test]
fn few_changed_lines_cost_little() {
    let soc = k2h();
    let reads = |name: &str, tc: &str| flow(name, &format!("edma:{tc}:ddr3a->msmc:256KiB"), "");
    let writes = flow("c", "edma:TC2:msmc->ddr3a:256KiB", "");
    let flows = format!("{}{}{writes}", reads("a", "TC0"), reads("b", "TC1"));
    let with = |share: &str| soc.with(&[("cores.a15.dirty.ddr3a".into(), share.into())]).expect("a chip");
    let (none, few) = (mixed(&soc, &flows), mixed(&with("0.01 %"), &flows));
    for (none, few) in none.flows.iter().zip(&few.flows) {
        assert!(apart(few.fluid, none.fluid) < 0.001, "{none:?} {few:?}");
    }
    for resource in ["ddr3a", "ddr3a rows"] {
        assert!((used(&few, resource) / used(&none, resource) - 1.0).abs() < 0.001, "{none:?} {few:?}");
    }
    // Of memories that there are several of, those that are touched are written.
    let l2 = soc.with(&[("cores.a15.dirty.l2".into(), "100 %".into())]).expect("a chip");
    let copy = flow("a", "edma:TC2:l2.0->l2.1:64KiB", "");
    let (clean, dirty) = (mixed(&soc, &copy), mixed(&l2, &copy));
    for resource in ["l2.0", "l2.1"] {
        assert!(used(&dirty, resource) > 1.2 * used(&clean, resource), "{clean:?} {dirty:?}");
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
fn a_rate_holds_a_core_back_too() {
    let soc = k2h();
    for transfer in ["copy:c66x.0:ddr3a->msmc", "fill:a15.0:ddr3a", "read:c66x.0:ddr3a"] {
        let free = mixed(&soc, &flow("one", transfer, ""));
        let held = mixed(&soc, &flow("one", transfer, "rate = \"100 MB/s\""));
        let one = held.flows.first().expect("a flow");
        assert!(apart(one.fluid, BytesPerSecond::new(1e8)) < 1e-6, "{transfer}: {one:?}");
        assert!(apart(one.engine, one.fluid) < 0.08 && one.window.is_none(), "{transfer}: {one:?}");
        // What it cannot reach changes nothing but who paces it.
        let fast = mixed(&soc, &flow("one", transfer, "rate = \"100 GB/s\""));
        assert!(apart(fast.flows[0].fluid, free.flows[0].fluid) < 1e-6, "{transfer}: {fast:?} {free:?}");
    }
}

#[test]
fn cores_and_controllers_share_a_memory_by_its_number() {
    let dma = flow("dma", "edma:TC2:l2.0->msmc:256KiB", "");
    let fills = |to: &str| mixed(&k2h(), &format!("{dma}{}", flow("fill", &format!("fill:c66x.0:{to}"), "")));
    let names = |mixed: &Mixed| mixed.resources.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let (other, own, bare) = (fills("l2.5"), fills("l2.0"), fills("l2"));
    assert!(names(&other).iter().any(|name| name.starts_with("l2.5")), "{other:?}");
    assert!(names(&own).iter().all(|name| !name.starts_with("l2.5") && name != "l2"), "{own:?}");
    assert_eq!(own, bare);
    // What a core reads of its own memory is in its own instance.
    let reads = |core: &str, own: &str| {
        let dma = flow("dma", &format!("edma:TC2:{own}->msmc:256KiB"), "");
        names(&mixed(&k2h(), &format!("{dma}{}", flow("read", &format!("read:{core}:l2"), ""))))
    };
    let of_l2 =
        |names: Vec<String>| names.into_iter().filter(|name| name.starts_with("l2")).collect::<Vec<_>>();
    assert!(of_l2(reads("c66x.3", "l2.0")).iter().any(|name| name.starts_with("l2.3")));
    assert!(of_l2(reads("c66x.3", "l2.3")).iter().all(|name| name.starts_with("l2.3")));
}

/// Mixes without an end have the rates that they settle at.
#[test]
fn flows_that_never_end_share_what_there_is() {
    let soc = k2h();
    let reads = |name: &str, tc: &str, more: &str| flow(name, &format!("edma:{tc}:ddr3a->msmc:256KiB"), more);
    let both = |more: &str| mixed(&soc, &format!("{}{}", reads("a", "TC0", more), reads("b", "TC1", more)));
    let (endless, bounded) = (both("background = true"), both(""));
    for (one, other) in endless.flows.iter().zip(&bounded.flows) {
        assert!(
            apart(one.fluid, other.fluid) < 0.01 && apart(one.engine, other.engine) < 0.03,
            "{endless:?}"
        );
    }
    for row in ["ddr3a rows", "ddr3a"] {
        assert!((used(&endless, row) / used(&bounded, row) - 1.0).abs() < 0.01, "{endless:?} {bounded:?}");
    }
    // One that others starve for ever leaves them their rates, and one that has ended before keeps its own.
    let ends = reads("a", "TC0", "");
    let link = flow("in", "ethernet:1518,port=10gbe", "to = \"ddr3a\"\nbackground = true\nstart = \"1 ms\"");
    let later = mixed(&soc, &format!("{ends}{link}"));
    assert!(later.flows[0].fluid.value() > 0.0, "{later:?}");
}

#[test]
fn a_starved_flow_does_not_hide_the_others() {
    let streams: Vec<Stream> = [(0, 0, true), (4, 1, false), (0, 2, false)]
        .map(|(priority, queue, endless)| Stream {
            name: String::new(),
            flow: Flow {
                bytes: Bytes::new(1000.0),
                // The first fills what the second needs; the third goes its own way.
                costs: vec![(usize::from(queue == 2), 1.0)],
                cap: f64::INFINITY,
                writes_bind: false,
                setup: Nanoseconds::new(10.0),
                latency: Nanoseconds::ZERO,
                burst: Bytes::new(64.0),
                outstanding: Bytes::new(64.0),
            },
            priority,
            start: Nanoseconds::ZERO,
            endless,
            queue,
            paced: false,
            touches: Vec::new(),
        })
        .into();
    let found = fluid::run(&streams, 2);
    assert_eq!(found.rates, [1.0, 0.0, 1.0], "{:?}", found.used);
    assert_eq!(found.used, [1.0, 0.0]);
}

#[test]
fn links_and_cores_of_one_name_are_not_one_queue() {
    let asked =
        |text: &str| scenario::transfers(&k2h(), &load(text).expect("a scenario")).expect("transfers");
    let (soc, one, other) = (
        k2h(),
        flow("in", "ethernet:1518,port=10gbe", "to = \"ddr3a\""),
        flow("core", "copy:c66x.0:ddr3a->msmc", ""),
    );
    let text = format!("title = \"T\"\n{one}{}{other}", one.replace("\"in\"", "\"in 2\""));
    let transfers = asked(&text);
    let mut named = load(&text).expect("a scenario");
    named.flows.iter_mut().for_each(|flow| flow.name = "in".to_owned());
    let mut resources = Resources::default();
    let streams = streams(&soc, &named, &transfers, &mut resources).expect("streams");
    let mut queues: Vec<usize> = streams.iter().map(|stream| stream.queue).collect();
    queues.dedup();
    assert_eq!(queues.len(), 3, "{streams:?}");
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
    let endless = flow("a", "edma:TC0:msmc->ddr3a", "background = true");
    let behind =
        "TC0 never comes to it, as 'a' before it has no end; expected it before that, or another controller";
    check(&format!("{endless}{}", flow("b", "edma:TC0:ddr3a->msmc", "")), &format!("b: {behind}"));
    check(
        &flow("a", "edma:TC0:msmc<->ddr3a", "background = true"),
        "a (2): TC0 never comes to it, as 'a (1)'",
    );
    check(&format!("{endless}{}", endless.replace("TC0", "TC1")), "a second flow named \"a\"");
    check(&flow("a", "fill:c66x.0:l2.99", ""), "no memory 'l2.99'; expected l2.0 to l2.7");
    check(&flow("a", "fill:c66x.0:ddr9", ""), "no memory 'ddr9'; expected one of");
    check(&flow("a", "edma:TC0:msmc->l2", "priority = 9"), "expected 0 (first) to 7");
    check(&flow("a", "edma:TC0:msmc->l2", "speed = 9"), "unknown field `speed`");
    for transfer in ["copy:c66x.0:ddr3a->msmc", "edma:TC0:msmc->l2"] {
        for (key, value) in [("from", "ddr3a"), ("to", "msmc"), ("via", "TC0")] {
            let said =
                format!("a: '{key}' beside '{transfer}', which says where its data lies and who moves it");
            check(&flow("a", transfer, &format!("{key} = \"{value}\"")), &said);
        }
    }
}
