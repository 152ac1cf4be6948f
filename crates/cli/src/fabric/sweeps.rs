//! The figures of the throughput guide that show no table: sweeps over a chip's transfers.

use super::figures::caption;
use linerate_fabric::ask::{self, Direction, Edma, Sync, Transfer};
use linerate_fabric::guide::Guide;
use linerate_fabric::soc::Soc;
use linerate_lab::report::plot::{Axis, Figure, Mark, Series};

/// Where figure 1 moves data between.
const PATHS: [(&str, &str); 8] = [
    ("l2.0", "msmc"),
    ("msmc", "l2.0"),
    ("msmc", "ddr3a"),
    ("ddr3a", "msmc"),
    ("l2.0", "ddr3a"),
    ("ddr3a", "l2.0"),
    ("msmc", "ddr3b"),
    ("ddr3b", "msmc"),
];

/// The sweeps that this chip can do, by the number of the figure.
pub fn of_chip(guide: &Guide, soc: &Soc) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    let mut add = |number: &str, x: &str, y: &str, axis: Axis, series: Vec<Series>, note: String| {
        if series.iter().any(|series| !series.points.is_empty()) {
            let figure = Figure {
                id: format!("figure-{number}"),
                title: caption(guide, number),
                x: x.to_owned(),
                y: y.to_owned(),
                axis,
                series,
                notes: vec![note],
            };
            figures.push((number.to_owned(), figure));
        }
    };
    let (axis, series) = controllers(soc);
    let note = "Predictions for one transfer controller of each EDMA, AB-synchronised, ACNT = 1024, BCNT = 128, and \
                for two of the first EDMA side by side. The text gives no numbers for this figure.";
    add("1", "", "MB/s", axis, series, note.to_owned());
    let note = "Predictions for TC0 from MSMC SRAM to L2, one linear transfer, the time before its first byte included.";
    add("8", "Transfer, B", "MB/s", Axis::PowersOfTwo, sizes(soc), note.to_owned());
    let note = "Predictions for TC0 from MSMC SRAM to L2, AB-synchronised, BCNT = 128; the index is the distance of \
                arrays at both ends.";
    add("9", "ACNT, B", "MB/s", Axis::PowersOfTwo, indices(soc), note.to_owned());
    for plan in PCIE {
        let (axis, series) = pcie(soc, &plan);
        add(plan.number, "", "Gb/s", axis, series, pcie_note(soc, &plan));
    }
    figures
}

fn transfer(controller: &str, from: &str, to: &str, a_bytes: u64, b_count: u64) -> Edma {
    Edma {
        controller: controller.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        both_ways: false,
        sync: Sync::Ab,
        a_bytes,
        b_count,
        c_count: 1,
        index_bytes: None,
        misaligned_bytes: 0,
    }
}

fn rate(soc: &Soc, transfers: &[&Edma]) -> Option<f64> {
    ask::edma(soc, transfers, true).ok().map(|prediction| prediction.predicted)
}

/// Figure 1: one controller of each EDMA, and two of the first.
fn controllers(soc: &Soc) -> (Axis, Vec<Series>) {
    let first = |edma: &str| soc.edma.get(edma)?.transfer_controllers.first().map(|tc| tc.name.as_str());
    let mut sets: Vec<(String, Vec<&str>)> = soc
        .edma
        .keys()
        .filter_map(|name| Some((format!("{name} {}", first(name)?), vec![first(name)?])))
        .collect();
    if let Some((name, edma)) = soc.edma.iter().next() {
        let two: Vec<&str> = edma.transfer_controllers.iter().take(2).map(|tc| tc.name.as_str()).collect();
        if two.len() == 2 {
            sets.push((format!("{name} {}", two.join(" + ")), two));
        }
    }
    let known = |from: &str, to: &str| {
        sets.iter()
            .any(|(_, tcs)| tcs.iter().any(|tc| rate(soc, &[&transfer(tc, from, to, 1024, 128)]).is_some()))
    };
    let paths: Vec<(&str, &str)> = PATHS.into_iter().filter(|(from, to)| known(from, to)).collect();
    let of_set = |(colour, (name, tcs)): (usize, &(String, Vec<&str>))| {
        let point = |(x, (from, to)): (usize, &(&str, &str))| {
            let all: Vec<Edma> = tcs.iter().map(|tc| transfer(tc, from, to, 1024, 128)).collect();
            Some((x as f64, rate(soc, &all.iter().collect::<Vec<_>>())?))
        };
        let points = paths.iter().enumerate().filter_map(point).collect();
        Series { name: name.clone(), mark: Mark::Predicted, colour, points }
    };
    let series = sets.iter().enumerate().map(of_set).collect();
    let short = |name: &str| name.trim_end_matches(".0").to_uppercase();
    let names = paths.iter().map(|(from, to)| format!("{}→{}", short(from), short(to))).collect();
    (Axis::Categories(names), series)
}

/// Figure 8: one linear transfer of growing size.
fn sizes(soc: &Soc) -> Vec<Series> {
    let point = |power: i32| {
        let bytes = 1u64 << power;
        Some((bytes as f64, rate(soc, &[&transfer("TC0", "msmc", "l2.0", bytes, 1)])?))
    };
    let points = (3..=20).filter_map(point).collect();
    vec![Series { name: "TC0, MSMC to L2".to_owned(), mark: Mark::Predicted, colour: 0, points }]
}

/// Figure 9: arrays at several distances.
fn indices(soc: &Soc) -> Vec<Series> {
    let of_distance = |(colour, more): (usize, &u64)| {
        let point = |power: i32| {
            let bytes = 1u64 << power;
            let arrays =
                Edma { index_bytes: Some(bytes + more), ..transfer("TC0", "msmc", "l2.0", bytes, 128) };
            Some((bytes as f64, rate(soc, &[&arrays])?))
        };
        let name = if *more == 0 { "index = ACNT".to_owned() } else { format!("ACNT + {more}") };
        Series { name, mark: Mark::Predicted, colour, points: (3..=14).filter_map(point).collect() }
    };
    [0, 1, 2, 4, 8, 16, 32, 64].iter().enumerate().map(of_distance).collect()
}

/// One figure of section 6.3.
struct Pcie {
    number: &'static str,
    direction: Direction,
    payloads: &'static [u64],
    both_ways: &'static [bool],
}

const PCIE: [Pcie; 6] = [
    Pcie { number: "10", direction: Direction::Read, payloads: &[128], both_ways: &[false] },
    Pcie { number: "11", direction: Direction::Read, payloads: &[128, 64], both_ways: &[false] },
    Pcie { number: "12", direction: Direction::Read, payloads: &[128], both_ways: &[true] },
    Pcie { number: "13", direction: Direction::Read, payloads: &[128, 64], both_ways: &[true] },
    Pcie { number: "14", direction: Direction::Write, payloads: &[128], both_ways: &[false, true] },
    Pcie { number: "15", direction: Direction::Write, payloads: &[128, 64], both_ways: &[false] },
];

fn pcie(soc: &Soc, plan: &Pcie) -> (Axis, Vec<Series>) {
    let widest = soc.edma.values().map(|edma| edma.width.value()).fold(0.0, f64::max);
    let mut series = Vec::new();
    for port in [0, 1] {
        for &payload_bytes in plan.payloads {
            for &both_ways in plan.both_ways {
                let point = |(x, edma): (usize, &str)| {
                    let edma = soc.edma.get(edma)?;
                    let ask = Transfer::Pcie {
                        direction: plan.direction,
                        payload_bytes,
                        both_ways,
                        // The second port lies on the wide fabric: narrow controllers reach it over a bridge.
                        bridged: port == 1 && edma.width.value() < widest,
                        controller: edma.transfer_controllers.first().map(|tc| tc.name.to_string()),
                    };
                    let prediction = ask::link(soc, &ask)?.ok()?;
                    Some((x as f64, prediction.predicted))
                };
                let points = soc.edma.keys().map(String::as_str).enumerate().filter_map(point).collect();
                let mut name = format!("PCIe{port}, {payload_bytes} B");
                if plan.both_ways.len() > 1 {
                    name.push_str(if both_ways { ", both ways" } else { ", one way" });
                }
                let colour = series.len();
                series.push(Series { name, mark: Mark::Predicted, colour, points });
            }
        }
    }
    (Axis::Categories(soc.edma.keys().map(|name| name.to_uppercase()).collect()), series)
}

fn pcie_note(soc: &Soc, plan: &Pcie) -> String {
    let theoretical = |payload: &u64| {
        let pcie = soc.links.pcie.as_ref()?;
        let rate = pcie.theoretical(linerate_fabric::units::Bytes::new(*payload as f64), pcie.lanes);
        Some(format!("{:.2} Gb/s for {payload} B", rate.gigabits()))
    };
    let rates: Vec<String> = plan.payloads.iter().filter_map(theoretical).collect();
    format!(
        "Predictions; theoretically {}. The text gives no measured numbers for this figure.",
        rates.join(" and ")
    )
}
