//! What the boards' own measurements say of the same things: files that `cargo xtask board NAME bench` and `count` write.

use super::board_tables::{self, BoardTable};
use crate::report::grid::{Cell, Grid};
use crate::schema::{Origin, Record};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// What a function that computes or checks a sum has in its name.
const CHECKSUM: &str = "checksum";

/// One board's figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Board {
    /// Its name.
    pub name: String,
    /// The file, and the date in it.
    pub source: String,
    /// Its figures in the common form.
    pub records: Vec<Record>,
    /// What its offloads save, where that was measured.
    pub offloads: Option<BoardTable>,
}

/// Reads a file of measurements.
pub fn read(path: &Path) -> Result<Vec<Board>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let json: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    parse(&name, &json).with_context(|| format!("{} is no board's measurement", path.display()))
}

fn parse(file: &str, json: &Value) -> Result<Vec<Board>> {
    if let Some(boards) = json["boards"].as_object() {
        let date = json["host"]["date"].as_str().unwrap_or("no date");
        let source = format!("{file}, {date}");
        // A board that was measured on another day says so itself.
        let source =
            |board: &Value| board["date"].as_str().map_or(source.clone(), |date| format!("{file}, {date}"));
        return boards.iter().map(|(name, board)| bench(name, &source(board), board)).collect();
    }
    let Some(counted) = json.as_object().filter(|all| all.values().any(|one| one["total"].is_object()))
    else {
        bail!("expected an object `boards`, or counts with `total`");
    };
    let mut records = Vec::new();
    for (workload, one) in counted {
        let each = one["each"].as_str().unwrap_or("piece");
        for (figure, value) in one["total"].as_object().into_iter().flatten() {
            if let Some(value) = value.as_f64() {
                records.push(record(
                    "softcore",
                    workload,
                    &format!("{figure} for a {each}"),
                    figure,
                    value,
                    file,
                ));
            }
        }
    }
    Ok(vec![Board { name: "softcore".to_owned(), source: file.to_owned(), records, offloads: None }])
}

fn record(board: &str, workload: &str, figure: &str, unit: &str, value: f64, source: &str) -> Record {
    Record {
        board: board.to_owned(),
        workload: workload.to_owned(),
        tuning: String::new(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        value,
        origin: Origin::Measured,
        source: source.to_owned(),
    }
}

fn bench(name: &str, source: &str, board: &Value) -> Result<Board> {
    let mut records = Vec::new();
    for (key, workload, figure, unit) in [
        ("iperf3_in_mbps", "iperf3-tcp-rx-1", "throughput", "Mbit/s"),
        ("iperf3_out_mbps", "iperf3-tcp-tx-1", "throughput", "Mbit/s"),
        ("iperf3_in_retransmits", "iperf3-tcp-rx-1", "retransmits", "segments"),
        ("iperf3_out_retransmits", "iperf3-tcp-tx-1", "retransmits", "segments"),
        ("ftp_down_mb_s", "ftp-tx", "throughput", "MB/s"),
        ("ftp_up_mb_s", "ftp-rx", "throughput", "MB/s"),
        ("http_closing_per_s", "http-closing", "requests", "1/s"),
    ] {
        if let Some(value) = board["rates"][key].as_f64() {
            records.push(record(name, workload, figure, unit, value, source));
        }
    }
    for (direction, count) in board["instructions"].as_object().into_iter().flatten() {
        let Some(all) = count["per_segment"].as_f64() else { continue };
        records.push(record(name, direction, "instructions of a segment", "instructions", all, source));
        let named = count["functions"].as_object().into_iter().flatten();
        let named = named.filter(|(name, _)| name.contains(CHECKSUM)).filter_map(|(_, count)| count.as_f64());
        // Of all functions; older files have only those that take most.
        let sums = count["checksums"].as_f64().unwrap_or_else(|| named.sum());
        if sums > 0.0 && all > 0.0 {
            let share = sums / all * 100.0;
            records.push(record(name, direction, "checksums, of all instructions", "%", share, source));
        }
    }
    let offloads = board_tables::parse(name, board).with_context(|| format!("{name}: `offloads`"))?;
    for row in offloads.iter().flat_map(|table| &table.rows) {
        let workload = row.workload.name();
        for (figure, unit, value) in
            [("throughput", "Mbit/s", row.mbps), ("instructions of a byte", "instructions", row.instructions)]
        {
            let tuning = row.setting.title().to_owned();
            records.push(Record { tuning, ..record(name, &workload, figure, unit, value, source) });
        }
    }
    if records.is_empty() {
        bail!("{name} has neither rates nor instructions");
    }
    Ok(Board { name: name.to_owned(), source: source.to_owned(), records, offloads })
}

/// What offloads of boards save, a table for each board, for a terminal.
pub fn in_short(boards: &[Board]) -> Vec<Grid> {
    boards.iter().filter_map(|board| board.offloads.as_ref()).map(BoardTable::in_short).collect()
}

/// The boards' figures as a table; `None` without any.
pub fn grid(boards: &[Board]) -> Option<Grid> {
    if boards.is_empty() {
        return None;
    }
    let headers = ["board", "what", "figure", "value", "unit"];
    let mut grid = Grid::new("boards", "The boards' own measurements", &headers);
    for board in boards {
        // Those of a setting are in tables of their own.
        for record in board.records.iter().filter(|record| record.tuning.is_empty()) {
            grid.rows.push(vec![
                Cell::text(&board.name),
                Cell::text(&record.workload),
                Cell::text(&record.figure),
                if record.value.fract() == 0.0 {
                    Cell::number(record.value, 0)
                } else {
                    Cell::figure(record.value)
                },
                Cell::text(&record.unit),
            ]);
        }
        grid.notes.push(format!("{}: {}", board.name, board.source));
    }
    Some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_boards_are_read_with_care() {
        let text = r#"{"host":{"date":"2026-11-20"},"boards":{"xlnx-zcu102":{"rates":{"iperf3_in_mbps":812.5,
            "iperf3_in_retransmits":0},"instructions":{"download":{"per_segment":1000.0,"segments":5,
            "functions":{"linerate_wire::checksum::sum":40.0,"memcpy":300.0}}}}}}"#;
        let boards = parse("bench.json", &serde_json::from_str(text).unwrap()).unwrap();
        let figures: Vec<(&str, f64)> =
            boards[0].records.iter().map(|record| (record.figure.as_str(), record.value)).collect();
        assert_eq!(
            figures,
            [
                ("throughput", 812.5),
                ("retransmits", 0.0),
                ("instructions of a segment", 1000.0),
                ("checksums, of all instructions", 4.0)
            ]
        );
        assert_eq!(boards[0].source, "bench.json, 2026-11-20");
        let rows = grid(&boards).unwrap().rows;
        assert_eq!((rows.len(), &rows[1][3]), (4, &Cell::number(0.0, 0)));
        let text = r#"{"host":{"date":"2026-11-20"},"boards":{"virt-a15":{"date":"2026-11-24","instructions":{"sending":
            {"per_segment":1000.0,"checksums":250.0,"functions":{"memcpy":300.0}}}}}}"#;
        let boards = parse("bench.json", &serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!((boards[0].records[1].value, boards[0].source.as_str()), (25.0, "bench.json, 2026-11-24"));
        let counted = r#"{"GET":{"each":"request","figure":"x","total":{"instructions":5,"clocks":7}}}"#;
        assert_eq!(parse("c.json", &serde_json::from_str(counted).unwrap()).unwrap()[0].records.len(), 2);
        for bad in ["{}", "[]", "7", r#"{"boards":{"a":{}}}"#] {
            assert!(parse("b.json", &serde_json::from_str(bad).unwrap()).is_err(), "{bad}");
        }
        assert_eq!(grid(&[]), None);
    }
}
