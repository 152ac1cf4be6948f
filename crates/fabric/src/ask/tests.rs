//! The text form of transfers: what each means, what is refused and why, and that nothing panics.

use super::ready::{Asked, Ready};
use super::*;
use proptest::prelude::*;

fn check(text: &str, expected: Transfer) {
    let shown = expected.to_string();
    assert_eq!(text.parse().as_ref(), Ok(&expected), "{text}");
    assert_eq!(shown.parse(), Ok(expected), "{shown}");
}

fn plain(controller: &str, from: &str, to: &str) -> Edma {
    Edma {
        controller: controller.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        both_ways: false,
        sync: Sync::A,
        a_bytes: 32 << 10,
        b_count: 1,
        c_count: 1,
        index_bytes: None,
        misaligned_bytes: 0,
    }
}

#[test]
fn edma_transfers() {
    check("edma:TC0:L2.0->MSMC", Transfer::Edma(plain("TC0", "L2.0", "MSMC")));
    check("edma:TC0:L2.0->MSMC:32KiB", Transfer::Edma(plain("TC0", "L2.0", "MSMC")));
    let both = Edma { both_ways: true, a_bytes: 64, ..plain("TC2", "L2.0", "DDR3A") };
    check("EDMA:TC2:L2.0<->DDR3A:64", Transfer::Edma(both));
    let frame = Edma {
        sync: Sync::Ab,
        a_bytes: 1024,
        b_count: 128,
        index_bytes: Some(1088),
        misaligned_bytes: 1,
        ..plain("TC0", "MSMC", "L2.0")
    };
    check(
        "edma:TC0:MSMC->L2.0,sync=ab,acnt=1024,bcnt=128,ccnt=1,index=1088,align=1",
        Transfer::Edma(frame.clone()),
    );
    check("edma:TC0:MSMC->L2.0:128KiB:sync=ab:bcnt=128:index=1088,align=1", Transfer::Edma(frame));
}

#[test]
fn other_transfers() {
    let core = |memory: &str, access| Transfer::Core { core: "c66x".into(), memory: memory.into(), access };
    check("core:c66x:DDR3A:burst", core("DDR3A", Access::Burst));
    check("core:c66x:L2", core("L2", Access::Single));
    let pcie = |direction, payload_bytes, both_ways, bridged, controller: Option<&str>| Transfer::Pcie {
        direction,
        payload_bytes,
        both_ways,
        bridged,
        controller: controller.map(str::to_owned),
    };
    check("pcie:read:128B:bidir:edma=TC0", pcie(Direction::Read, 128, true, false, Some("TC0")));
    check("pcie:write", pcie(Direction::Write, 128, false, false, None));
    check("pcie:write:64:bridged", pcie(Direction::Write, 64, false, true, None));
    let srio = |transaction, payload_bytes, lanes, lane_mbaud, memory: &str| Transfer::Srio {
        transaction,
        payload_bytes,
        lanes,
        lane_mbaud,
        memory: memory.to_owned(),
    };
    check("srio:nwrite:4096B:4x:5G:L2", srio(Rapidio::Nwrite, 4096, 4, 5000, "L2"));
    check("srio:nread:64:1x:3.125G:DDR3", srio(Rapidio::Nread, 64, 1, 3125, "DDR3"));
    check("srio:type11:2x", srio(Rapidio::Type11, 4096, 2, 5000, "L2"));
    let hyperlink = |direction, path: &str| Transfer::Hyperlink {
        direction,
        memory: "MSMC".to_owned(),
        path: path.to_owned(),
    };
    check("hyperlink:write:MSMC", hyperlink(Direction::Write, "near"));
    check("hyperlink:read:MSMC:path=far", hyperlink(Direction::Read, "far"));
    let ethernet = |frame_bytes, port: Option<&str>, counted| Transfer::Ethernet {
        frame_bytes,
        port: port.map(str::to_owned),
        counted,
    };
    check("ethernet:1518B", ethernet(1518, None, Counted::Frame));
    check("ethernet:64,port=10gbe,count=line", ethernet(64, Some("10gbe"), Counted::Line));
    check("tcp:seed000-tuned", Transfer::Tcp { workload: "seed000-tuned".to_owned() });
}

#[test]
fn refusals_say_what_is_allowed() {
    let check = |text: &str, expected: &str| {
        let error = text.parse::<Transfer>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check(
        "",
        "expected a transfer that starts with one of edma, core, load, store, memory, pcie, srio, hyperlink, ethernet, tcp",
    );
    check("dma:TC0", "unknown kind 'dma'");
    check("edma", "expected edma:TC:FROM->TO");
    check("edma:TC0", "no path FROM->TO");
    check("edma:TC0:L2", "'L2' is no path; expected FROM->TO or FROM<->TO");
    check("edma:TC0:->L2", "is no path");
    check("edma:TC0:L2->MSMC:0", "expected a size such as");
    check("ethernet:63", "expected 64 B or more");
    check("edma:TC0:L2->MSMC:32Kib/s", "expected a size such as");
    check("edma:TC0:L2->MSMC:99999999999999999999", "expected a size such as");
    check("edma:TC0:L2->MSMC,sync=abc", "'abc' for 'sync'; expected one of a, ab");
    check("edma:TC0:L2->MSMC,bcnt=0", "expected a count from 1 to 65535");
    check("edma:TC0:L2->MSMC:100,bcnt=3", "no 3 x 1 arrays");
    check("edma:TC0:L2->MSMC:100,acnt=64", "expected one of the two, or the same");
    check("edma:TC0:L2->MSMC,acnt=64,acnt=32", "'acnt' is given twice");
    check("edma:TC0:L2->MSMC,speed=9", "unknown option 'speed'");
    check("edma:TC0:L2->MSMC:64:32", "unexpected '32'");
    check("core:c66x:L2:twice", "expected one of single, burst");
    check("pcie:up", "expected one of read, write");
    check("srio:nwrite:64:8x", "'8x' for 'lanes'; expected one of 1x, 2x, 4x");
    check("srio:nwrite:64:4x:7G", "'7G' for 'rate'; expected one of 1.25g, 2.5g, 3.125g, 5g, 6.25g");
    check("ethernet:", "an empty part");
    check("ethernet:64,count=bits", "'bits' for 'count'; expected one of line, frame, packet");
    check("pcie:read:64:sideways", "'sideways' for 'mode'; expected one of bidir, bridged");
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,60}") {
        let _ = text.parse::<Transfer>();
    }

    #[test]
    fn near_misses_never_panic(
        kind in "edma|core|pcie|srio|hyperlink|ethernet|tcp",
        parts in proptest::collection::vec("[:,]([a-z]{0,4}=)?[0-9A-Za-z.<>-]{0,12}", 0..8),
    ) {
        let _ = format!("{kind}{}", parts.concat()).parse::<Transfer>();
    }
}

/// Asking only of what differs on the path gives what asking every structure gives.
#[test]
fn a_ready_chip_answers_as_all_its_structures_do() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip");
    let ready = ready::Ready::new(&soc);
    for text in [
        "edma:TC0:msmc->ddr3a:128KiB",
        "edma:TC0:ddr3b->ddr3b:128KiB",
        "edma:TC2:l2.0->msmc,sync=ab,acnt=8,bcnt=128,index=16",
        "edma:TC10:l2.0->l2.1:4KiB",
        "core:c66x:ddr3b:burst",
        "pcie:write:128:bidir,edma=TC0",
        "srio:nread:256:4x:5G:L2",
        "srio:nwrite:256:4x:5G:L2",
        "srio:type11:256:4x:5G:DDR3",
        "hyperlink:read:DDR3,path=far",
        "hyperlink:read:DDR3,path=near",
        "ethernet:130,port=10gbe",
        "tcp:ftp_send_3_buffers",
    ] {
        let transfer: Transfer = text.parse().expect("a transfer");
        let part = crate::model::part::part_of(crate::model::tables::TRANSFER, text);
        let all: Vec<(f64, Prediction)> = soc
            .structures(&part)
            .expect("structures")
            .iter()
            .filter(|one| one.weight > 0.0)
            .map(|one| (one.weight, single(&one.soc, &transfer).expect(text)))
            .collect();
        let expected = crate::model::mixture::mix(&all, None).expect(text);
        let found = match &transfer {
            Transfer::Edma(edma) => ready.predict(ready::Asked::Together(&[edma], true)),
            other => ready.predict(ready::Asked::One(other)),
        }
        .expect(text);
        for (a, b) in [
            (found.predicted, expected.predicted),
            (found.low, expected.low),
            (found.high, expected.high),
            (found.theoretical, expected.theoretical),
        ] {
            assert!((a - b).abs() <= 1e-6 * b.abs(), "{text}: {found:?} {expected:?}");
        }
        assert!(!found.bottlenecks.is_empty(), "{text}");
    }
}

#[test]
fn what_is_open_on_a_path_is_said_with_what_would_decide() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip");
    let ready = ready::Ready::new(&soc);
    let asked = |text: &str| {
        let transfer: Transfer = text.parse().expect("a transfer");
        let said = ready.said(ready::Asked::One(&transfer)).expect(text);
        let open = ready.undecided(&said);
        (said, open)
    };
    let (said, open) = asked("edma:TC0:msmc->ddr3a:128KiB");
    let names: Vec<&str> = open.iter().map(|open| open.name.as_str()).collect();
    assert_eq!(names, ["ddr3_writes"]);
    assert_eq!(open[0].decides, "edma:TC0:msmc->ddr3a:128KiB");
    assert_eq!(open[0].answers.len(), 2, "{open:?}");
    assert!((said.iter().map(|one| one.weight).sum::<f64>() - 1.0).abs() < 1e-9);
    // Two groups: each window of writes is full in its own way, and neither says what the mean of both does.
    let ways = ready::joined(&said);
    assert_eq!(ways.len(), 2, "{ways:?}");
    assert!(ways.iter().all(|(_, one)| one.prediction.bottlenecks[0].name.contains("write window")));
    let (_, open) = asked("edma:TC0:l2.0->msmc:128KiB");
    assert_eq!(open, [], "nothing that is open makes a difference");
}

/// A memory is the same under all of its names.
#[test]
fn a_memory_has_one_name() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    let same = |one: &str, other: &str| {
        let (one, other) = (answer(&soc, one).expect(one), answer(&soc, other).expect(other));
        assert_eq!(one, other);
    };
    let within = "edma:TC0:ddr3a->ddr3a";
    for other in ["edma:TC0:ddr3a->ddr3a.0", "edma:TC0:DDR3A.00->ddr3a", "edma:TC0:ddr3a.+0->ddr3a.000"] {
        same(within, other);
    }
    same("edma:TC0:l2->l2", "edma:TC0:l2.0->l2.00");
    same(
        "edma:TC0:ddr3a->msmc and edma:TC1:ddr3a->l2.1",
        "edma:TC0:ddr3a.0->msmc.0 and edma:TC1:ddr3a->l2.01",
    );
    let names: Vec<String> = answer(&soc, "edma:TC2:l2->l2.1")
        .expect("an answer")
        .bottlenecks
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert!(names.iter().any(|name| name.starts_with("l2.0 ")), "{names:?}");
}

/// A mixture is bounded by what each way allows, not by what the likeliest does.
#[test]
fn each_way_has_its_own_theory() {
    let text = format!(
        "{}\n[alternatives.width]\nquestion = \"how wide it is\"\ndecides = \"edma:TC0:ddr3a->msmc\"\n\
         options = [{{ name = \"wide\" }}, {{ name = \"narrow\", set = {{ \"bridges.sms0.width\" = \"32 bit\" }}, weight = 2 }}]\n",
        include_str!("../../../../boards/socs/k2h.toml")
    );
    let ready = Ready::new(&crate::soc::load(&text).expect("the chip loads"));
    let transfer = Edma::linear("TC0", "ddr3a", "msmc", 1 << 20);
    let asked = Asked::Together(&[&transfer], false);
    let said = ready.said(asked).expect("ways");
    let mean: f64 = said.iter().map(|one| one.weight * one.prediction.predicted).sum();
    let found = ready.predict(asked).expect("a mixture");
    assert!((found.predicted / mean - 1.0).abs() < 1e-9, "{} {mean}: {said:?}", found.predicted);
    let most = said.iter().map(|one| one.prediction.theoretical).fold(0.0, f64::max);
    assert_eq!(found.theoretical, most);
}

#[test]
fn a_memory_that_a_link_does_not_know_is_refused() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    for kind in ["nwrite", "nread", "type11"] {
        let error = answer(&soc, &format!("srio:{kind}:4KiB:4x:5G:FOO")).expect_err(kind).to_string();
        assert!(error.contains("no memory \"FOO\"; expected one of DDR3, L2"), "{error}");
    }
}

/// Bursts as large as a file may say take no longer to work out than others.
#[test]
fn large_bursts_take_no_time() {
    let soc = crate::soc::load(include_str!("../../../../boards/socs/k2h.toml")).expect("the chip loads");
    let keys = ["default_burst", "fifo", "outstanding_reads", "outstanding_writes"];
    let large = keys.map(|key| (format!("edma.*.{key}"), "1024 GiB".to_owned()));
    // What is open of the chip asks for other windows.
    let plain = Soc { alternatives: std::collections::BTreeMap::new(), ..soc };
    let soc = plain.with(&large).expect("a chip");
    let found = answer(&soc, "edma:TC0:l2.0->msmc,sync=ab,acnt=1,bcnt=2,index=3").expect("an answer");
    assert!(found.predicted > 0.0, "{found:?}");
}
