//! The guide for programs: records, JSON, a guide file and measurements as `linerate fabric` reads them.

use crate::guide::plan::Unit;
use crate::guide::run::Guide;
use crate::guide::table::{Point, Table};
use crate::schema::{Origin, Record};
use linerate_fabric::fit;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Every figure: measured, and where it was predicted, predicted.
pub fn records(guide: &Guide) -> Vec<Record> {
    let mut records = Vec::new();
    for table in &guide.tables {
        for (name, points) in &table.rows {
            for (column, point) in table.columns.iter().zip(points) {
                let Some(point) = point else { continue };
                let record = |value: f64, origin: Origin, source: String| Record {
                    board: "host".to_owned(),
                    workload: table.part.name().to_owned(),
                    tuning: format!("{name}, {}", column.heading),
                    figure: figure(column.unit).to_owned(),
                    unit: column.unit.symbol().to_owned(),
                    value,
                    origin,
                    source,
                };
                records.push(record(point.value, Origin::Measured, how(point)));
                if let Some(predicted) = point.predicted.filter(|_| !point.calibrates) {
                    records.push(record(
                        predicted,
                        Origin::Predicted,
                        format!("fabric, {}", point.asked.transfer),
                    ));
                }
            }
        }
    }
    records
}

fn figure(unit: Unit) -> &'static str {
    if unit == Unit::Cycles { "latency" } else { "throughput" }
}

fn how(point: &Point) -> String {
    let sampled = &point.sampled;
    format!(
        "the fastest of {} samples that agree, {} disturbed, spread {:.1} %{}",
        sampled.samples,
        sampled.disturbed,
        point.spread * 100.0,
        if sampled.stable { "" } else { ", not settled" }
    )
}

/// All of it.
pub fn json(guide: &Guide) -> Value {
    json!({
        "provenance": guide.provenance,
        "cores": guide.cores,
        "cycle_ns": guide.cycle.ns,
        "pages": guide.pages,
        "caches": guide.caches,
        "levels": guide.levels,
        "tables": guide.tables,
        "accuracy": guide.accuracy,
        "accuracy_by_table": guide.by_table,
        "chip": guide.chip,
        "notes": guide.notes,
        "records": records(guide),
    })
}

/// The cells that calibrated the chip, as `linerate fabric fit` reads measurements.
pub fn data_file(guide: &Guide) -> String {
    let mut text = guide.head();
    text.push_str("transfer,value,error_percent\n");
    let points = guide.tables.iter().flat_map(Table::points);
    let mut seen = std::collections::BTreeSet::new();
    for point in points.filter(|point| point.calibrates && !point.asked.backwards) {
        // Two tables may ask the same, and write it otherwise; the first answer counts.
        if fit::canonical(&point.asked.transfer).is_ok_and(|transfer| seen.insert(transfer)) {
            let percent = (point.spread * 50.0).clamp(3.0, 50.0);
            let _ = writeln!(text, "\"{}\",{},{percent:.1}", point.asked.transfer, point.value);
        }
    }
    text
}

/// The tables as `linerate fabric table` reads a guide; each row says what its cells ask of a chip.
pub fn guide_file(guide: &Guide) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = guide.head();
    let machine = guide.provenance.machine.get("processor").map_or("?", String::as_str);
    let _ = write!(
        text,
        "\ntitle = {}\ndevices = [{}]\n",
        quoted(&format!("Throughput of {machine}, measured {}", guide.provenance.date)),
        quoted(machine)
    );
    for table in &guide.tables {
        let _ = write!(
            text,
            "\n[[table]]\nid = {}\ncaption = {}\nsection = \"{}\"\ncorner = {}\ncolumns = [\n",
            quoted(table.part.name()),
            quoted(table.part.title()),
            table.part.name(),
            quoted(table.corner)
        );
        for column in &table.columns {
            let _ = writeln!(
                text,
                "  {{ heading = [{}], unit = \"{}\" }},",
                quoted(&column.heading),
                column.unit.symbol()
            );
        }
        text.push_str("]\nrows = [\n");
        for (name, points) in &table.rows {
            let cell = |point: &Option<Point>| {
                point
                    .as_ref()
                    .map_or_else(|| "\"-\"".to_owned(), |point| format!("\"{}\"", printed(point.value)))
            };
            let cells: Vec<String> = points.iter().map(cell).collect();
            let _ = writeln!(text, "  [{}, {}],", quoted(name), cells.join(", "));
        }
        text.push_str("]\n[table.transfers]\n");
        for (name, points) in &table.rows {
            let cell = |point: &Option<Point>| {
                let asked = point.as_ref().map(|point| point.asked.transfer.as_str());
                quoted(asked.unwrap_or_default())
            };
            let cells: Vec<String> = points.iter().map(cell).collect();
            let _ = writeln!(text, "{} = [{}]", quoted(name), cells.join(", "));
        }
    }
    text
}

/// As a document prints a number: digits and at most one point.
fn printed(value: f64) -> String {
    match value {
        1000.0.. => format!("{value:.0}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
