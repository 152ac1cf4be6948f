//! The report as a page: pictures of throughput and cost, the tables, where it comes from.

use super::outcome::{Outcome, Sample};
use super::plan::{Device, Setting, Workload};
use super::tables;
use super::{boards, hardware};
use crate::report::grid::Grid;
use crate::report::page::{Block, Finding, Section, page};
use crate::report::plot::{Axis, Figure, Mark, PlotError, Series};
use crate::schema::Record;

/// The page as HTML.
pub fn html(outcome: &Outcome, published: &[Record]) -> Result<String, PlotError> {
    let mut sections = Vec::new();
    for device in devices(outcome) {
        let mut blocks: Vec<Block> = pictures(outcome, device).into_iter().map(Block::Figure).collect();
        blocks.extend(tables::of_device(outcome, device, published).into_iter().map(Block::Grid));
        let (id, title) = (device.name().to_owned(), format!("On a {}", device.title()));
        sections.push(Section { id, title, blocks });
    }
    if let Some(grid) = tables::switching(&outcome.switching) {
        sections.push(section("switching", "Switched under load", grid));
    }
    if let Some(grid) = hardware::grid(&outcome.hardware) {
        sections.push(section("rtl", "The interface in simulation", grid));
    }
    for table in outcome.boards.iter().filter_map(|board| board.offloads.as_ref()) {
        let blocks = table.tables().into_iter().map(Block::Grid).collect();
        let title = format!("On {}, in the emulator", table.name);
        sections.push(Section { id: table.name.clone(), title, blocks });
    }
    if let Some(grid) = boards::grid(&outcome.boards) {
        sections.push(section("boards", "Boards", grid));
    }
    sections.push(Section {
        id: "how".to_owned(),
        title: "How it was measured".to_owned(),
        blocks: how(outcome),
    });
    page("What offloads save", &outcome.provenance.sentence(), &sections)
}

/// Devices in the order in which they were measured.
pub fn devices(outcome: &Outcome) -> Vec<Device> {
    let mut all = Vec::new();
    for row in &outcome.rows {
        if !all.contains(&row.device) {
            all.push(row.device);
        }
    }
    all
}

fn section(id: &str, title: &str, grid: Grid) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), blocks: vec![Block::Grid(grid)] }
}

/// Throughput, and processor time for a byte: bars by use case, a colour for each setting.
pub fn pictures(outcome: &Outcome, device: Device) -> Vec<Figure> {
    let throughput = |row: &super::Row| row.throughput_mbps().map(|spread| spread.median / 1e3);
    let cost = |row: &super::Row| row.figure(Sample::device_ns_per_byte).map(|spread| spread.median);
    let all = [
        picture(outcome, device, ("throughput", "Throughput", "Gbit/s"), &throughput),
        picture(outcome, device, ("cost", "Processor time of the device under test for a byte", "ns"), &cost),
    ];
    all.into_iter().flatten().collect()
}

/// A figure of a row.
type Of<'a> = &'a dyn Fn(&super::Row) -> Option<f64>;

fn picture(
    outcome: &Outcome,
    device: Device,
    (id, title, y): (&str, &str, &str),
    of: Of<'_>,
) -> Option<Figure> {
    let mut workloads: Vec<Workload> = Vec::new();
    for row in outcome.rows.iter().filter(|row| row.device == device) {
        if !workloads.contains(&row.workload) {
            workloads.push(row.workload);
        }
    }
    let series = |(colour, setting): (usize, Setting)| {
        let point = |(x, workload): (usize, &Workload)| {
            Some((x as f64, outcome.row(device, *workload, setting).and_then(of)?))
        };
        let points: Vec<(f64, f64)> = workloads.iter().enumerate().filter_map(point).collect();
        let name = setting.title().to_owned();
        (!points.is_empty()).then_some(Series { name, mark: Mark::Predicted, colour, points })
    };
    let series: Vec<Series> = Setting::ALL.into_iter().enumerate().filter_map(series).collect();
    let names = workloads.iter().map(|workload| format!("{} x{}", workload.case(), workload.streams));
    (!series.is_empty()).then(|| Figure {
        id: format!("{}-{id}", device.name()),
        title: format!("{title}: {}", device.title()),
        x: "use case and streams".to_owned(),
        y: y.to_owned(),
        axis: Axis::Categories(names.collect()),
        series,
        notes: vec!["Medians. What is missing was refused, or cannot be.".to_owned()],
    })
}

fn how(outcome: &Outcome) -> Vec<Block> {
    let mut blocks = vec![
        Block::Text(format!(
            "Receiving: linerate serve on the device, the clients at the other end. Sending: linerate iperf3 on the device, \
             servers at the other end. The other end is {}. Transfers of {} s, settings alternate from round to round. RSS \
             is {} queues, each with a thread and an iperf3 port of its own, as in the document.",
            outcome.other_end, outcome.seconds, outcome.queues
        )),
        Block::Text(
            "CPU utilization is the document's: 100 less the idle share of the period, for each core and as the mean of all \
             (/proc/stat). Both ends share this machine's cores, so it has the other end in it, too. The processor time for a \
             byte is that of the device under test alone (control group)."
                .to_owned(),
        ),
    ];
    let findings: Vec<Finding> = outcome
        .missing
        .iter()
        .map(|text| Finding {
            grade: "note",
            label: "missing".to_owned(),
            place: String::new(),
            text: text.clone(),
            evidence: String::new(),
        })
        .collect();
    if !findings.is_empty() {
        blocks.push(Block::Findings(findings));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_tables_and_stands_alone() {
        let outcome = crate::offloads::tables::tests::outcome();
        let html = html(&outcome, &crate::published::of("004").unwrap()).unwrap();
        for table in &tables::SEED {
            assert!(html.contains(table.title), "{}", table.title);
        }
        for part in ["<svg", "Switched under load", "Known Issues", "2026-11-24 07:00"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("http://") || !html.contains("src="), "foreign assets");
        assert!(html.len() < 250 << 10, "{} bytes", html.len());
    }
}
