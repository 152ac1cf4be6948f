//! The explanation as one HTML page that needs nothing but itself.

use super::Analysis;
use super::connection::Connection;
use super::picture::{self, COURSE_KEY, KEY, Part};
use super::text;
use crate::measure::provenance::Provenance;
use crate::quantity::{bytes, count, share, span};
use crate::report::grid::{Cell, Grid};
use crate::report::page::{self, Block, Finding, Section};
use crate::report::plot::PlotError;
use std::time::Duration;

/// The page: a table of all connections, and pictures of the `top` largest or of one alone. `name` is that of the capture.
///
/// # Errors
///
/// A picture cannot be drawn.
pub fn html(
    analysis: &Analysis,
    name: &str,
    top: usize,
    only: Option<usize>,
    origin: &Provenance,
) -> Result<String, PlotError> {
    let lead = format!(
        "Frames: {}, TCP segments: {}, connections: {}. {}",
        count(analysis.frames),
        count(analysis.segments),
        count(analysis.connections.len() as u64),
        origin.sentence()
    );
    let mut overview = vec![Block::Grid(text::table(analysis))];
    overview.extend(analysis.notes().into_iter().map(Block::Text));
    overview.push(Block::Grid(wireshark(analysis)));
    let mut sections =
        vec![Section { id: "overview".to_owned(), title: "All connections".to_owned(), blocks: overview }];
    sections.extend(text::chosen(analysis, top, only).into_iter().map(section));
    page::page(&format!("What limited {name}"), &lead, &sections)
}

fn wireshark(analysis: &Analysis) -> Grid {
    let mut grid =
        Grid::new("wireshark", "Events by Wireshark's rules (tcp.analysis.*)", &["flag", "segments"]);
    for (name, number) in analysis.wireshark.named().into_iter().filter(|(_, number)| *number > 0) {
        grid.rows.push(vec![Cell::text(name), Cell::number(number as f64, 0)]);
    }
    grid
}

fn section(connection: &Connection) -> Section {
    let ends = [connection.client, connection.server];
    let main = &connection.directions[connection.main];
    let number = connection.number;
    let verdict = &connection.verdict;
    let mut evidence = vec![Finding {
        grade: "note",
        label: verdict.cause.name().to_owned(),
        place: format!("sure: {}", text::sure(verdict)),
        text: verdict.because.join("; "),
        evidence: String::new(),
    }];
    let advice = verdict.would_tell.as_ref().map(|tell| format!("would tell: {tell}"));
    if let Some(finding) = evidence.first_mut() {
        finding.evidence = advice.unwrap_or_else(|| format!("advice: {}", verdict.advice));
    }
    let tiles = vec![
        (text::carried(main), "data".to_owned()),
        (bytes(main.bytes), format!("in {}", text::lasted(main))),
        (
            main.rtt_least_ns.map_or("-".to_owned(), |ns| span(Duration::from_nanos(ns))),
            "least round trip".to_owned(),
        ),
        (count(main.again), "segments sent again".to_owned()),
    ];
    let mut blocks = vec![Block::Tiles(tiles), Block::Findings(evidence)];
    blocks.push(Block::Grid(shares(connection)));
    for (part, title) in [(Part::Beginning, "The beginning"), (Part::Whole, "The whole transfer")] {
        let id = format!("sequence-{number}-{part:?}").to_lowercase();
        blocks.push(match picture::sequences(connection, part) {
            Ok(svg) => Block::Picture {
                id,
                title: format!("{title}: sequence numbers over time"),
                svg,
                key: key(&KEY),
                notes: Vec::new(),
            },
            Err(why) => Block::Described { id, title: title.to_owned(), text: why },
        });
    }
    let id = format!("course-{number}");
    blocks.push(match picture::course(connection) {
        Ok(svg) => Block::Picture {
            id,
            title: "Rate, round-trip time, bytes under way and window over time".to_owned(),
            svg,
            key: key(&COURSE_KEY),
            notes: Vec::new(),
        },
        Err(why) => Block::Described { id, title: "Over time".to_owned(), text: why },
    });
    let mut grid = Grid::new(format!("figures-{number}"), "Figures", &["", ""]);
    grid.rows = text::figures(main)
        .into_iter()
        .map(|(name, value)| vec![Cell::text(name), Cell::text(value)])
        .collect();
    grid.notes.clone_from(&connection.notes);
    blocks.push(Block::Grid(grid));
    Section {
        id: format!("connection-{number}"),
        title: format!("{number}. {} to {}", ends[connection.main], ends[1 - connection.main]),
        blocks,
    }
}

fn shares(connection: &Connection) -> Grid {
    let id = format!("waits-{}", connection.number);
    let mut grid = Grid::new(id, "What the sender waited for", &["wait", "of the time"]);
    for wait in &connection.verdict.shares {
        grid.rows.push(vec![Cell::text(wait.what.clone()), Cell::text(share(wait.of_time))]);
    }
    grid
}

fn key(parts: &[(&str, usize)]) -> Vec<(String, usize)> {
    parts.iter().map(|(what, colour)| ((*what).to_owned(), *colour)).collect()
}
