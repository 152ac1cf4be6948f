//! The links against the visible cells of the guide, the formulas of the protocols, and what must always hold.

use super::ethernet::{Counted, Ethernet, EthernetTransfer};
use super::hyperlink::HyperlinkTransfer;
use super::pcie::PcieTransfer;
use super::srio::{Operation, SrioTransfer};
use super::*;
use crate::guide::Guide;
use crate::predict::{Calibrate, TableModel};
use crate::units::Bytes;
use proptest::prelude::*;

/// The links of the guide's chip.
pub(super) fn keystone2() -> Links {
    let text = include_str!("../../../../boards/socs/k2h.toml");
    let file: toml::Table = toml::from_str(text).expect("the chip file is TOML");
    file.get("links").expect("it has links").clone().try_into().expect("its links are known")
}

/// Mean and worst relative error over the visible cells of `tables` in the columns that have a prediction.
fn errors(links: &Links, guide: &Guide, tables: &[&str]) -> (f64, f64, usize) {
    let mut all = Vec::new();
    for table in guide.tables.iter().filter(|table| tables.contains(&table.id.as_str())) {
        for (row, column, cell) in table.cells() {
            let name = &table.rows[row].name;
            let (Some(value), Some(prediction)) = (cell.value(), links.cell(&table.id, name, column + 1))
            else {
                continue;
            };
            all.push((prediction.predicted / value - 1.0).abs());
        }
    }
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    (mean, all.iter().copied().fold(0.0, f64::max), all.len())
}

#[test]
fn visible_cells() {
    let guide =
        crate::guide::load(include_str!("../../../../boards/guides/keystone2.toml")).expect("the guide");
    let links = keystone2();
    for (tables, cells, mean_at_most, worst_at_most) in [
        (&["16"][..], 66, 0.002, 0.01),
        (&["17"], 66, 0.008, 0.02),
        (&["20"], 54, 0.002, 0.02),
        (&["25"], 6, 0.001, 0.001),
        (&["23"], 6, 0.02, 0.04),
        (&["24"], 6, 0.02, 0.02),
        (&["26"], 2, 0.02, 0.03),
        (&["10gbe"], 38, 0.004, 0.013),
    ] {
        let (mean, worst, count) = errors(&links, &guide, tables);
        println!("{tables:?}: mean {:.2} %, worst {:.2} %, {count} cells", mean * 100.0, worst * 100.0);
        assert_eq!(count, cells, "{tables:?}");
        assert!(mean <= mean_at_most && worst <= worst_at_most, "{tables:?}: mean {mean}, worst {worst}");
    }
    // Throughput alone: the other columns of the packet-size table are exact and would flatter the mean.
    let table = guide.tables.iter().find(|table| table.id == "10gbe").expect("the packet-size table");
    let measured: Vec<f64> = table
        .rows
        .iter()
        .filter_map(|row| {
            Some(links.cell("10gbe", &row.name, 3)?.predicted / row.cells.get(2)?.value()? - 1.0)
        })
        .collect();
    let mean = measured.iter().map(|error| error.abs()).sum::<f64>() / measured.len() as f64;
    assert!(measured.len() == 8 && mean <= 0.01, "{measured:?}");
}

#[test]
fn every_withheld_cell_has_an_interval() {
    let guide =
        crate::guide::load(include_str!("../../../../boards/guides/keystone2.toml")).expect("the guide");
    let links = keystone2();
    let mut count = 0;
    for table in
        guide.tables.iter().filter(|table| ["18", "19", "21", "26", "10gbe"].contains(&table.id.as_str()))
    {
        for (row, column, cell) in table.cells() {
            if *cell != crate::guide::Cell::Withheld {
                continue;
            }
            let name = &table.rows[row].name;
            let prediction = links.cell(&table.id, name, column + 1).expect("a prediction");
            assert!(
                prediction.low <= prediction.predicted && prediction.predicted <= prediction.high,
                "{} {name} {column}: {prediction:?}",
                table.id
            );
            assert!(prediction.high <= prediction.theoretical * (1.0 + 1e-12), "{prediction:?}");
            count += 1;
        }
    }
    assert_eq!(count, 66 + 66 + 54 + 4 + 7);
}

#[test]
fn printed_formulas() {
    let links = keystone2();
    let check = |table: &str, row: &str, column: usize, printed: f64, decimals: i32| {
        let prediction = links.cell(table, row, column).expect("a cell");
        let half = 0.5 * 10f64.powi(-decimals);
        assert!((prediction.predicted - printed).abs() <= half, "{table} {row}: {}", prediction.predicted);
    };
    check("pcie", "64", 1, 6.10, 2);
    check("pcie", "128", 1, 6.92, 2);
    check("22", "DDR3", 1, 64.0, 0);
    check("22", "MSMC SRAM", 1, 32.0, 0);
    check("22", "C66x L1/L2", 1, 16.0, 0);
    check("25", "Write to MSMC", 1, 16.16, 2);
    check("25", "Write to DDR3", 2, 18.71, 2);
    check("23", "Write to L2", 2, 18.71, 2);
    check("10gbe", "64", 2, 344_064.0, 0);
    // Printed 12.69: 12.698 cut off, where all other figures are rounded.
    check("25", "Write to L2", 1, 12.70, 2);
}

fn transfer(operation: Operation, payload: f64, lanes: u8, gigabaud: f64) -> SrioTransfer {
    SrioTransfer {
        operation,
        payload: Bytes::new(payload),
        lanes,
        line_rate: BitsPerSecond::new(gigabaud * 1e9),
        memory: "DDR3".into(),
        core_clock: None,
        series: 16,
    }
}

#[test]
fn packets_on_the_rapidio_line() {
    let srio = keystone2().srio.expect("SRIO");
    let check = |operation, payload: f64, bytes: f64| {
        assert_eq!(srio.line_bytes(operation, Bytes::new(payload)).value(), bytes, "{operation:?} {payload}");
    };
    check(Operation::Nwrite, 256.0, 276.0);
    check(Operation::Nread, 256.0, 276.0);
    check(Operation::Message, 256.0, 276.0);
    check(Operation::Nwrite, 8.0, 28.0);
    check(Operation::Nread, 8.0, 20.0);
    assert_eq!(srio.request_bytes().value(), 20.0);
    assert_eq!(srio.data_rate(4, BitsPerSecond::new(5e9)).gigabits(), 16.0);
}

#[test]
fn other_line_rates_span_both_structures() {
    let srio = keystone2().srio.expect("SRIO");
    let width = |gigabaud: f64| {
        let prediction = srio.predict(&transfer(Operation::Nread, 64.0, 4, gigabaud)).expect("an answer");
        (prediction.high - prediction.low) / prediction.predicted
    };
    assert!(width(3.125) < 0.05, "at the measured rate only the spread is left: {}", width(3.125));
    assert!(width(5.0) > 0.15, "{}", width(5.0));
    // Four lanes at 5 Gbaud: between the engine's time as it was and the line.
    let write = srio.predict(&transfer(Operation::Nwrite, 8192.0, 4, 5.0)).expect("an answer");
    assert!(write.low < 8500.0 && write.high > 13_600.0, "{write:?}");
    // A write of one packet waits for the core that programs it, at any line rate.
    let small = srio.predict(&transfer(Operation::Nwrite, 8.0, 1, 5.0)).expect("an answer");
    assert!((small.predicted - 209.72).abs() < 0.5 && small.high / small.low < 1.05, "{small:?}");
    assert_eq!(small.bottlenecks[0].name, "programming of the load/store unit");
}

fn pcie(read: bool, payload: f64, burst: f64, bridged: bool, bidirectional: bool) -> f64 {
    let ask = PcieTransfer {
        read,
        bidirectional,
        payload: Bytes::new(payload),
        burst: Bytes::new(burst),
        bridged,
        lanes: None,
    };
    keystone2().pcie.expect("PCIe").predict(&ask).expect("an answer").predicted
}

#[test]
fn pcie_behaves_as_the_guide_observes() {
    let best = pcie(true, 128.0, 128.0, false, false);
    // Figure 10: EDMA3 with 64 B bursts, and bridged controllers on the second port, are slower, and alike.
    assert!(pcie(true, 128.0, 64.0, false, false) < best);
    assert_eq!(pcie(true, 128.0, 64.0, false, false), pcie(true, 128.0, 128.0, true, false));
    // Figure 11: a 64 B payload costs all but EDMA3.
    assert!(pcie(true, 64.0, 128.0, false, false) < best);
    assert_eq!(pcie(true, 64.0, 64.0, false, false), pcie(true, 128.0, 64.0, false, false));
    // Figures 12 and 13: both directions at once are slower.
    assert!(pcie(true, 128.0, 128.0, false, true) < best);
    // Figures 14 and 15: writes do not change with controller or payload, and are slower than reads of 128 B.
    let write = pcie(false, 128.0, 128.0, false, false);
    assert_eq!(write, pcie(false, 64.0, 64.0, true, false));
    assert!(write < best);
}

#[test]
fn hyperlink_names_its_bottleneck() {
    let links = keystone2();
    let first =
        |row: &str, column| links.cell("26", row, column).expect("a cell").bottlenecks[0].name.clone();
    assert_eq!(first("Write to MSMC", 1), "HyperLink lanes");
    assert_eq!(first("Write to MSMC", 2), "read window of the far path");
}

/// What a path adds to the round trip is paced by its clock, as all times of the link are.
#[test]
fn the_way_to_hyperlink_has_a_clock() {
    let mut links = keystone2();
    let far = links.hyperlink.as_mut().and_then(|link| link.path.get_mut("far")).expect("the far path");
    far.latency = Some(ClockedTime {
        time: crate::units::Nanoseconds::new(137.2),
        clock: ClockId("dsp".into()),
        measured_at: Hertz::new(1.2e9),
        line_share: crate::units::Ratio::ZERO,
        line_share_min: None,
        line_share_max: None,
        runs_at: None,
    });
    let read = |links: &Links| links.cell("26", "Write to MSMC", 2).expect("a cell").predicted;
    let way_alone = |clock: f64| {
        let mut at = links.at_clocks(|_| Some(Hertz::new(clock)));
        // All but the way as measured.
        let link = at.hyperlink.as_mut().expect("the link");
        link.round_trip.runs_at = None;
        link.memory.values_mut().for_each(|memory| memory.latency.runs_at = None);
        read(&at)
    };
    assert_eq!(way_alone(1.2e9), read(&links));
    assert!(way_alone(0.6e9) < 0.95 * read(&links), "{} {}", way_alone(0.6e9), read(&links));
    let unknown = links.unknown_clocks(|clock| clock != "dsp");
    assert!(unknown.iter().any(|fault| fault.key == "hyperlink.path.far.latency.clock"), "{unknown:?}");
}

#[test]
fn questions_that_have_no_answer() {
    let links = keystone2();
    let srio = links.srio.clone().expect("SRIO");
    let lanes = srio.predict(&transfer(Operation::Nread, 64.0, 3, 5.0)).expect_err("three lanes");
    assert_eq!(lanes.to_string(), "3 lanes; expected one of [1, 2, 4]");
    let none = srio.predict(&transfer(Operation::Nread, 0.0, 1, 5.0)).expect_err("no payload");
    assert_eq!(none, LinkError::Payload);
    let still = srio.predict(&transfer(Operation::Nread, 64.0, 1, 0.0)).expect_err("no rate");
    assert_eq!(still, LinkError::Rate);
    let ask = SrioTransfer { memory: "L9".into(), ..transfer(Operation::Nread, 64.0, 1, 5.0) };
    let unknown = srio.predict(&ask).expect_err("no such memory");
    assert_eq!(unknown.to_string(), "no memory \"L9\"; expected one of DDR3, L2");
    for (table, row, column) in [
        ("16", "0", 1),
        ("16", "x", 1),
        ("16", "8", 7),
        ("23", "Write to L3", 1),
        ("24", "Write to L2", 0),
        ("27", "8", 1),
    ] {
        assert_eq!(links.cell(table, row, column), None, "{table} {row} {column}");
    }
}

#[test]
fn faults_in_a_chip_file() {
    let check = |change: fn(&mut Links), key: &str| {
        let mut links = keystone2();
        assert_eq!(links.faults(), []);
        change(&mut links);
        let faults = links.faults();
        assert!(faults.iter().any(|fault| fault.key == key), "{key}: {faults:?}");
    };
    check(|links| links.srio.as_mut().expect("SRIO").lanes = vec![0], "srio.lanes");
    check(|links| links.srio.as_mut().expect("SRIO").max_payload = Bytes::ZERO, "srio.max_payload");
    check(|links| links.srio.as_mut().expect("SRIO").issue.measured_at = Hertz::ZERO, "srio.issue");
    check(|links| links.pcie.as_mut().expect("PCIe").lanes = 0, "pcie.lanes");
    check(|links| links.hyperlink.as_mut().expect("HyperLink").lanes = 0, "hyperlink.lanes");
    check(
        |links| links.ethernet.get_mut("10gbe").expect("a port").rate = BitsPerSecond::ZERO,
        "ethernet.10gbe.rate",
    );
    check(|links| drop(links.ethernet.remove("1gbe")), "tcp.ftp_send_1_default.port");
}

#[test]
fn clocks_of_links_are_clocks_of_the_chip() {
    let links = keystone2();
    assert_eq!(links.unknown_clocks(|clock| ["dsp", "arm"].contains(&clock)), []);
    let unknown = links.unknown_clocks(|clock| clock == "dsp");
    assert!(unknown.iter().any(|fault| fault.key == "tcp.ftp_send_1_default.clock"), "{unknown:?}");
    assert_eq!(
        unknown[0].to_string(),
        "links.tcp.ftp_receive_1_default.clock: expected the name of a clock, found \"arm\""
    );
    let text = include_str!("../../../../boards/socs/k2h.toml").replace("clock = \"arm\"", "clock = \"leg\"");
    let error = crate::soc::load(&text).expect_err("no such clock").to_string();
    assert!(error.contains("leg"), "{error}");
}

#[test]
fn block_codes() {
    for (text, efficiency) in [("8b10b", 0.8), ("64b66b", 64.0 / 66.0), ("8b9b", 8.0 / 9.0)] {
        let code: Encoding = text.parse().expect("a code");
        assert_eq!((code.efficiency().value(), code.to_string().as_str()), (efficiency, text));
    }
    for text in ["", "b", "8b", "10b8b", "0b1b", "8b10", "8b10bb", "-8b10b", "9999b9999b"] {
        assert!(text.parse::<Encoding>().is_err(), "{text}");
    }
}

#[test]
fn free_parameters_are_few_and_settable() {
    let links = keystone2();
    let free = links.free();
    let of_hardware = free.iter().filter(|one| !one.name.starts_with("links.tcp")).count();
    assert!(of_hardware <= 20, "{of_hardware}");
    assert!(free.iter().all(|one| one.min <= one.value && one.value <= one.max), "{free:?}");
    let values: Vec<f64> = free.iter().map(|one| one.value).collect();
    assert_eq!(links.with_free(&values), links);
    let halves: Vec<f64> = free.iter().map(|one| (one.min + one.value) / 2.0).collect();
    assert_ne!(links.with_free(&halves), links);
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![Just(Operation::Nwrite), Just(Operation::Nread), Just(Operation::Message)]
}

proptest! {
    #[test]
    fn srio_never_gains_from_less(operation in operation(), payload in 1u32..=65_536, step in 0.1f64..=10.0, more in 1.0f64..=4.0) {
        prop_assume!(operation != Operation::Message || payload <= 4096);
        let mut srio = keystone2().srio.expect("SRIO");
        srio.line_rates = [step, step * more].map(|rate| BitsPerSecond::new(rate * 1e9)).to_vec();
        let rate = |lanes, gigabaud: f64, core: f64| {
            let mut ask = transfer(operation, f64::from(payload), lanes, gigabaud);
            ask.core_clock = Some(Hertz::new(core));
            let prediction = srio.predict(&ask).expect("an answer");
            assert!(prediction.predicted <= prediction.theoretical && prediction.efficiency() <= 1.0);
            assert!(prediction.low <= prediction.predicted && prediction.predicted <= prediction.high);
            assert!(prediction.theoretical <= srio.data_rate(lanes, ask.line_rate).megabits());
            prediction.predicted
        };
        let least = rate(1, step, 1e9) * (1.0 - 1e-12);
        prop_assert!(rate(2, step, 1e9) >= least);
        prop_assert!(rate(4, step, 1e9) >= rate(2, step, 1e9) * (1.0 - 1e-12));
        prop_assert!(rate(1, step * more, 1e9) >= least);
        prop_assert!(rate(1, step, 1e9 * more) >= least);
    }

    #[test]
    fn ethernet_never_gains_from_less(frame in 19u32..=9018, core in 1e8f64..=4e9, more in 1.0f64..=4.0) {
        let port = keystone2().ethernet.remove("10gbe").expect("the port");
        for counted in [Counted::Line, Counted::Frame, Counted::Packet] {
            let rate = |port: &Ethernet, core: f64| {
                let frame = Bytes::new(f64::from(frame));
                let ask = EthernetTransfer { frame, counted, core_clock: Some(Hertz::new(core)) };
                let prediction = port.predict(&ask).expect("an answer");
                assert!(prediction.efficiency() <= 1.0 && prediction.theoretical <= port.rate.megabits() * (1.0 + 1e-12));
                assert!(prediction.low <= prediction.predicted && prediction.predicted <= prediction.high);
                prediction.predicted
            };
            let base = rate(&port, core) * (1.0 - 1e-12);
            prop_assert!(rate(&port, core * more) >= base);
            let faster = Ethernet { rate: port.rate * more, ..port.clone() };
            prop_assert!(rate(&faster, core) >= base);
            let no_dma = Ethernet { packet_dma: None, ..port.clone() };
            prop_assert!(rate(&no_dma, core) >= base);
        }
    }

    #[test]
    fn pcie_and_hyperlink_never_gain_from_less(payload in 1u32..=512, burst in 1u32..=512, read: bool, both: bool, far: bool, more in 1.0f64..=4.0) {
        let links = keystone2();
        let pcie = links.pcie.as_ref().expect("PCIe");
        let rate = |lanes, bidirectional| {
            let ask = PcieTransfer { read, bidirectional, payload: Bytes::new(f64::from(payload)), burst: Bytes::new(f64::from(burst)), bridged: far, lanes: Some(lanes) };
            let prediction = pcie.predict(&ask).expect("an answer");
            assert!(prediction.efficiency() <= 1.0 && prediction.low <= prediction.predicted);
            prediction.predicted
        };
        prop_assert!(rate(2, both) >= rate(1, both));
        prop_assert!(rate(2, false) >= rate(2, true));
        let hyperlink = links.hyperlink.as_ref().expect("HyperLink");
        let serial = |lanes, gigabaud: f64| {
            let ask = HyperlinkTransfer {
                read,
                memory: if both { "L2" } else { "DDR3" }.into(),
                path: if far { "far" } else { "near" }.into(),
                lanes: Some(lanes),
                line_rate: Some(BitsPerSecond::new(gigabaud * 1e9)),
                core_clock: None,
            };
            let prediction = hyperlink.predict(&ask).expect("an answer");
            assert!(prediction.efficiency() <= 1.0 && prediction.low <= prediction.predicted && prediction.predicted <= prediction.high);
            prediction.predicted
        };
        prop_assert!(serial(4, 6.25) >= serial(2, 6.25));
        prop_assert!(serial(4, 6.25 * more) >= serial(4, 6.25));
    }
}
