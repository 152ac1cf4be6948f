//! The outcome in the form of seed 004's tables 1 to 7, and what it has beyond them.
//!
//! The document's text has the tables' titles and what was run for each, but not their cells: those are pictures. So published
//! cells stay empty, but for what the text says elsewhere of the cost of checksums.

use super::outcome::{Outcome, Row};
use super::plan::{Device, Direction, Protocol, Setting, Workload, case};
use super::switching::Switched;
use crate::measure::statistics::Spread;
use crate::report::grid::{Cell, Grid};
use crate::schema::Record;

/// One of the document's tables.
pub struct SeedTable {
    /// Its number.
    pub number: u8,
    /// Its title.
    pub title: &'static str,
    /// The use case; `None` for all of them.
    pub case: Option<(Protocol, Direction)>,
    /// The settings that are compared.
    pub settings: &'static [Setting],
}

const CSO: &[Setting] = &[Setting::Off, Setting::Checksum];
const RSS: &[Setting] = &[Setting::Checksum, Setting::Queues];

/// The document's tables.
pub const SEED: [SeedTable; 7] = [
    SeedTable {
        number: 1,
        title: "Performance Comparison of CSO enabled and disabled use cases for UDP RX",
        case: Some((Protocol::Udp, Direction::Rx)),
        settings: CSO,
    },
    SeedTable {
        number: 2,
        title: "Performance Comparison of CSO enabled and disabled use cases for UDP TX",
        case: Some((Protocol::Udp, Direction::Tx)),
        settings: CSO,
    },
    SeedTable {
        number: 3,
        title: "Performance Comparison of CSO enabled and disabled use cases for TCP RX",
        case: Some((Protocol::Tcp, Direction::Rx)),
        settings: CSO,
    },
    SeedTable {
        number: 4,
        title: "Performance Comparison of CSO enabled and disabled use cases for TCP Tx use case",
        case: Some((Protocol::Tcp, Direction::Tx)),
        settings: CSO,
    },
    SeedTable {
        number: 5,
        title: "Performance improvement achieved with RSS implemented for TCP RX",
        case: Some((Protocol::Tcp, Direction::Rx)),
        settings: RSS,
    },
    SeedTable {
        number: 6,
        title: "Performance improvement achieved with RSS implemented for UDP RX",
        case: Some((Protocol::Udp, Direction::Rx)),
        settings: RSS,
    },
    SeedTable {
        number: 7,
        title: "Performance Comparison of CSO disable, CSO and CSO with RSS for TCP/UDP Tx and Rx use cases",
        case: None,
        settings: &[Setting::Off, Setting::Checksum, Setting::Queues],
    },
];

/// What goes beyond the document ("Future scope").
const BEYOND: &[Setting] = &[Setting::Checksum, Setting::Segmentation, Setting::Coalescing];

/// All tables of a device.
pub fn of_device(outcome: &Outcome, device: Device, published: &[Record]) -> Vec<Grid> {
    let mut grids: Vec<Grid> =
        SEED.iter().map(|table| seed_table(outcome, device, table, published)).collect();
    grids.push(beyond(outcome, device));
    grids
}

/// All of a device in one table that fits a terminal: a line for each use case and setting.
pub fn in_short(outcome: &Outcome, device: Device, published: &[Record]) -> Grid {
    let headers = [
        "use case",
        "setting",
        "Mbit/s",
        "CPU, %",
        "each core, %",
        "CPU, ns a byte",
        "Mbit/s",
        "CPU for a byte",
    ];
    let title = format!("Tables 1 to 7 in short, changes against \"CSO disabled\". {}", device.title());
    let mut grid = Grid::new(format!("{}-short", device.name()), title, &headers);
    for workload in workloads(outcome, device, None) {
        for setting in Setting::ALL {
            let Some(row) = outcome.row(device, workload, setting) else { continue };
            let mut cells = vec![Cell::text(workload.to_string()), Cell::text(setting.title())];
            cells.extend(figures(Some(row)));
            cells.push(ranged(row.figure(super::outcome::Sample::device_ns_per_byte), 3));
            if setting != Setting::Off {
                cells.extend(changes(outcome, device, workload, &[Setting::Off, setting]));
            }
            grid.rows.push(cells);
        }
    }
    // The table of all use cases with all settings.
    let all = SeedTable { number: 0, title: "", case: None, settings: &Setting::ALL };
    grid.notes = notes(outcome, device, &all, published);
    grid
}

fn seed_table(outcome: &Outcome, device: Device, table: &SeedTable, published: &[Record]) -> Grid {
    let mut headers = vec!["use case".to_owned()];
    for setting in table.settings {
        let name = setting_name(*setting, table.settings);
        headers.push(format!("{name}: Mbit/s"));
        headers.push(format!("{name}: CPU, %"));
        headers.push(format!("{name}: each core, %"));
    }
    headers.push("throughput".to_owned());
    headers.push("CPU for a byte".to_owned());
    headers.push("published".to_owned());
    let mut grid = Grid {
        id: format!("{}-table-{}", device.name(), table.number),
        title: format!("Table {}: {}. {}", table.number, table.title, device.title()),
        headers,
        ..Grid::default()
    };
    for workload in workloads(outcome, device, table.case) {
        let mut cells = vec![Cell::text(workload.to_string())];
        for setting in table.settings {
            cells.extend(figures(outcome.row(device, workload, *setting)));
        }
        cells.extend(changes(outcome, device, workload, table.settings));
        // The document's cells are pictures.
        cells.push(Cell::Empty);
        grid.rows.push(cells);
    }
    grid.notes = notes(outcome, device, table, published);
    grid
}

fn setting_name(setting: Setting, among: &[Setting]) -> &'static str {
    match setting {
        Setting::Checksum if among.len() == 2 && among.contains(&Setting::Off) => "CSO enabled",
        other => other.title(),
    }
}

/// What was measured of a use case, in the order of its streams.
fn workloads(outcome: &Outcome, device: Device, of: Option<(Protocol, Direction)>) -> Vec<Workload> {
    let mut all: Vec<Workload> = Vec::new();
    for row in outcome.rows.iter().filter(|row| row.device == device) {
        let fits = of.is_none_or(|case| case == (row.workload.protocol, row.workload.direction));
        if fits && !all.contains(&row.workload) {
            all.push(row.workload);
        }
    }
    all
}

/// Throughput, load, load of each core.
fn figures(row: Option<&Row>) -> [Cell; 3] {
    let Some(row) = row else { return [Cell::Empty, Cell::Empty, Cell::Empty] };
    if row.refused.is_some() {
        return [Cell::text("refused"), Cell::Empty, Cell::Empty];
    }
    let load = row.load_percent().map_or(Cell::Empty, |load| Cell::number(load.median, 1));
    let cores: Vec<String> = row.core_load_percent().iter().map(|load| format!("{load:.0}")).collect();
    let cores = if cores.is_empty() { Cell::Empty } else { Cell::text(cores.join(" / ")) };
    [ranged(row.throughput_mbps(), 0), load, cores]
}

/// A median with the range of its rounds.
fn ranged(spread: Option<Spread>, decimals: usize) -> Cell {
    spread.map_or(Cell::Empty, |spread| Cell::Spread { spread, decimals })
}

/// The relative change from the first setting to the last: of throughput, and of processor time for a byte.
fn changes(outcome: &Outcome, device: Device, workload: Workload, settings: &[Setting]) -> [Cell; 2] {
    let row = |setting: Option<&Setting>| outcome.row(device, workload, *setting?);
    let change = |figure: &dyn Fn(&Row) -> Option<f64>| {
        let (first, last) = (row(settings.first()).and_then(figure), row(settings.last()).and_then(figure));
        match (first, last) {
            (Some(first), Some(last)) if first > 0.0 => Cell::Percent(last / first - 1.0),
            _ => Cell::Empty,
        }
    };
    [
        change(&|row| row.throughput_mbps().map(|spread| spread.median)),
        change(&|row| row.figure(super::outcome::Sample::device_ns_per_byte).map(|spread| spread.median)),
    ]
}

fn notes(outcome: &Outcome, device: Device, table: &SeedTable, published: &[Record]) -> Vec<String> {
    let mut notes = Vec::new();
    let rows = outcome.rows.iter().filter(|row| {
        let fits = table.case.is_none_or(|case| case == (row.workload.protocol, row.workload.direction));
        row.device == device && fits && table.settings.contains(&row.setting)
    });
    for row in rows {
        if let Some(flaw) = row.refused {
            notes.push(format!("{}, {}: refused, as {}.", row.workload, row.setting.title(), flaw.text()));
        }
        let lost = row.figure(|sample| sample.lost_percent);
        if let Some(lost) = lost.filter(|lost| lost.median >= 0.05) {
            notes.push(format!(
                "{}, {}: {:.2} % of datagrams lost.",
                row.workload,
                row.setting.title(),
                lost.median
            ));
        }
    }
    if table.settings.contains(&Setting::Off) {
        let value = |figure: &str| {
            let found = published
                .iter()
                .find(|record| record.workload == "checksum in software" && record.figure == figure);
            found.map(|record| record.value)
        };
        if let (Some(least), Some(most)) = (value("cpu-load, at least"), value("cpu-load, at most")) {
            notes.push(format!(
                "Published: checksums in software take {least:.0} to {most:.0} % of the processor (seed 004, Other \
                 Information). The tables' cells are pictures in the document and stay empty."
            ));
        }
    }
    notes
}

/// Segmentation and coalescing on top of checksums.
fn beyond(outcome: &Outcome, device: Device) -> Grid {
    let mut headers = vec!["use case".to_owned()];
    for setting in BEYOND {
        headers.push(format!("{}: Mbit/s", setting.title()));
        headers.push(format!("{}: CPU, ns a byte", setting.title()));
    }
    headers.push("throughput".to_owned());
    headers.push("CPU for a byte".to_owned());
    let mut grid = Grid {
        id: format!("{}-table-8", device.name()),
        title: format!("Beyond the document: segmentation and coalescing. {}", device.title()),
        headers,
        ..Grid::default()
    };
    for workload in workloads(outcome, device, None) {
        let mut cells = vec![Cell::text(workload.to_string())];
        for setting in BEYOND {
            let row = outcome.row(device, workload, *setting);
            cells.push(figures(row)[0].clone());
            let cost = row.and_then(|row| row.figure(super::outcome::Sample::device_ns_per_byte));
            cells.push(ranged(cost, 3));
        }
        cells.extend(changes(outcome, device, workload, BEYOND));
        grid.rows.push(cells);
    }
    grid.notes.push(
        "The processor time is that of the device under test alone, by its control group. What the kernel does for it in \
         interrupts is not in it."
            .to_owned(),
    );
    grid
}

/// What became of data while offloads were switched; `None` where that was not tried.
pub fn switching(of: &[Switched]) -> Option<Grid> {
    if of.is_empty() {
        return None;
    }
    let headers = [
        "device",
        "switches",
        "downloads",
        "uploads",
        "MB moved",
        "most switches in one file",
        "files that differ",
    ];
    let mut grid = Grid::new("switching", "Offloads switched one by one under load", &headers);
    for one in of {
        let count = |value: usize| Cell::number(value as f64, 0);
        grid.rows.push(vec![
            Cell::text(one.device.title()),
            count(one.switches),
            count(one.downloads),
            count(one.uploads),
            Cell::number(one.bytes as f64 / 1e6, 0),
            count(one.most_within),
            count(one.differing),
        ]);
    }
    grid.notes.push(
        "Published: dynamic ON/OFF of rx-checksumming and tx-checksumming is not enabled in the driver (seed 004, Known \
         Issues)."
            .to_owned(),
    );
    Some(grid)
}

/// The use cases in the order of the document's table 7.
pub const CASES: [&str; 4] = [
    case(Protocol::Udp, Direction::Rx),
    case(Protocol::Udp, Direction::Tx),
    case(Protocol::Tcp, Direction::Rx),
    case(Protocol::Tcp, Direction::Tx),
];

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::measure::provenance::Provenance;
    use crate::offloads::outcome::Sample;
    use crate::offloads::plan::Plan;

    /// An outcome as of a machine with two cores, where each offload halves the cost.
    pub fn outcome() -> Outcome {
        let mut rows = Vec::new();
        for workload in Plan::workloads(&[1, 4]) {
            for (place, setting) in Setting::ALL.into_iter().enumerate() {
                if setting.unfit(workload).is_some() {
                    continue;
                }
                let sample = Sample {
                    throughput_bps: 1e9 * f64::from(1 << place),
                    lost_percent: (workload.protocol == Protocol::Udp).then_some(0.2),
                    retransmits: None,
                    core_load_percent: vec![99.0, 41.0],
                    device_cores: Some(0.99),
                    other_end_cores: Some(0.3),
                    rest_cores: Some(0.01),
                    stolen_cores: 0.0,
                    is_bound: true,
                };
                rows.push(Row::new(Device::Tap, workload, setting, vec![sample], true));
            }
        }
        Outcome {
            provenance: Provenance {
                version: "1".into(),
                command: "linerate lab offloads".into(),
                date: "2026-11-24 07:00".into(),
                machine: [].into(),
                rounds: 1,
            },
            other_end: "iperf3 on kernel sockets",
            queues: 2,
            seconds: 1.0,
            rows,
            switching: vec![Switched {
                device: Device::Tap,
                switches: 20,
                downloads: 9,
                uploads: 8,
                bytes: 17 << 25,
                differing: 0,
                most_within: 6,
            }],
            hardware: Vec::new(),
            boards: Vec::new(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn tables_have_the_documents_titles_rows_and_columns() {
        let published = crate::published::of("004").unwrap();
        let grids = of_device(&outcome(), Device::Tap, &published);
        assert_eq!(grids.len(), 8);
        for (grid, table) in grids.iter().zip(&SEED) {
            let wanted = format!("Table {}: {}.", table.number, table.title);
            assert!(grid.title.starts_with(&wanted), "{}", grid.title);
            let rows = if table.case.is_some() { 2 } else { 8 };
            assert_eq!(grid.rows.len(), rows, "{}", grid.title);
            assert_eq!(grid.headers.len(), 4 + 3 * table.settings.len(), "{:?}", grid.headers);
            // Nothing is in a published cell that the document does not print.
            assert!(grid.rows.iter().all(|row| row.last() == Some(&Cell::Empty)), "{}", grid.title);
        }
        let one = &grids[2].rows[1];
        assert_eq!(one[0], Cell::text("TCP RX, 4 streams"));
        assert_eq!(one[1..4].iter().map(Cell::shown).collect::<Vec<_>>(), ["1000", "70.0", "99 / 41"]);
        assert_eq!((&one[7], &one[8]), (&Cell::Percent(1.0), &Cell::Percent(-0.5)));
        // One stream is in one queue, and the client sends from one.
        let seventh = &grids[6];
        assert_eq!((&seventh.rows[0][7], &seventh.rows[3][7]), (&Cell::Empty, &Cell::Empty));
        assert!(matches!(seventh.rows[1][7], Cell::Spread { .. }));
        let mut rounds = outcome();
        let mut slower = rounds.rows[0].samples[0].clone();
        slower.throughput_bps *= 0.9;
        rounds.rows[0].samples.push(slower);
        assert_eq!(in_short(&rounds, Device::Tap, &published).rows[0][2].shown(), "950 (900 to 1000)");
        let notes = grids[0].notes.join("\n");
        assert!(
            notes.contains("take 3 to 5 % of the processor") && notes.contains("0.20 % of datagrams"),
            "{notes}"
        );
    }

    #[test]
    fn the_short_form_has_a_line_for_everything_measured() {
        let outcome = outcome();
        let grid = in_short(&outcome, Device::Tap, &[]);
        assert_eq!(grid.rows.len(), outcome.rows.len());
        let text = grid.render(crate::report::grid::GridFormat::Terminal, None);
        let width = text.lines().skip(1).take(4).map(|line| line.chars().count()).max();
        assert!(width.is_some_and(|width| width <= 120), "{width:?}\n{text}");
    }

    #[test]
    fn what_is_refused_is_not_shown() {
        let mut outcome = outcome();
        let row = &mut outcome.rows[0];
        row.samples[0].device_cores = Some(0.2);
        row.samples[0].other_end_cores = Some(0.99);
        outcome.rows[0] = Row::new(row.device, row.workload, row.setting, row.samples.clone(), true);
        let grid = seed_table(&outcome, Device::Tap, &SEED[0], &[]);
        assert_eq!(grid.rows[0][1..4], [Cell::text("refused"), Cell::Empty, Cell::Empty]);
        assert_eq!(grid.rows[0][7], Cell::Empty);
        assert!(grid.notes[0].contains("the other end was the limit"), "{:?}", grid.notes);
    }
}
