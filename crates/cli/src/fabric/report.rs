//! `linerate fabric report`: one page with all tables, all figures, accuracy, parameters and findings.

use super::args::Report;
use super::error::FabricError;
use super::{audit, builtin, compare, figures, known, sweeps};
use crate::apart::apart;
use linerate_fabric::ask::{self, Counted, Transfer};
use linerate_fabric::guide::{FigureText, Guide};
use linerate_fabric::model::accuracy::{self, Errors, Line};
use linerate_fabric::predict::{Calibrate as _, FreeParameter, TableModel};
use linerate_fabric::soc::Soc;
use linerate_lab::report::grid::{Cell, Grid};
use linerate_lab::report::page::{self, Block, Section};
use linerate_lab::report::plot::Figure;
use std::fs;

/// Writes the page and says so.
pub fn run(args: &Report) -> Result<String, FabricError> {
    let read = builtin::files(&[&args.soc, &args.guide]);
    apart(&read, &[("--output", Some(&args.output))])?;
    let soc = builtin::soc(&args.soc)?;
    let guide = builtin::guide(&args.guide)?;
    let html = html(&soc, &guide)?;
    let shown = args.output.display().to_string();
    fs::write(&args.output, &html).map_err(|why| FabricError::Write { to: shown.clone(), why })?;
    Ok(format!("wrote {shown} ({} KiB)\n", html.len().div_ceil(1024)))
}

/// The page.
pub fn html(soc: &Soc, guide: &Guide) -> Result<String, FabricError> {
    let report = known::report(soc, guide)?;
    let findings = audit::findings(guide, soc);
    let tables = tables(&report.ensemble, guide);
    let figures = all_figures(soc, &report.ensemble, guide);
    let mut sections = Vec::new();
    // A chip that the guide does not speak of has neither its tables nor its errors.
    let known = report.groups.iter().any(|group| group.fitted.cells > 0);
    if known {
        sections.push(summary(&report));
    }
    sections.extend(super::open::section(&report));
    sections.extend(super::inside::sections(soc, !known));
    sections.extend(servers(soc));
    sections.extend(ports(soc));
    if known {
        sections.push(Section { id: "tables".to_owned(), title: "Tables".to_owned(), blocks: tables });
        sections.push(Section { id: "figures".to_owned(), title: "Figures".to_owned(), blocks: figures });
    }
    let mut free = report.parameters.clone();
    if !known {
        // Nothing is measured yet: all that a fit may move.
        free = soc.free();
        free.extend(soc.links.free());
    }
    if !free.is_empty() {
        sections.push(parameters(&free, known));
    }
    sections.push(clocks(soc));
    if known {
        let lead = format!(
            "The guide checked against itself and against the description of {}: {}. Each finding shows its \
             arithmetic.",
            soc.chip.name,
            audit::count(&findings)
        );
        sections.push(Section {
            id: "findings".to_owned(),
            title: "Findings of the audit".to_owned(),
            blocks: vec![Block::Text(lead), Block::Findings(audit::items(&findings))],
        });
    }
    let title = format!("{}: throughput, predicted", soc.chip.name);
    let mut lead = format!("{}. Predictions from the chip's description", soc.chip.title);
    lead.push_str(&if known { format!(", beside the numbers of: {}.", guide.title) } else { ".".to_owned() });
    page::page(&title, &lead, &sections).map_err(|error| FabricError::Failed(error.to_string()))
}

fn percent(ratio: f64) -> String {
    format!("{:.2} %", ratio * 100.0)
}

fn summary(report: &accuracy::Report) -> Section {
    let unseen = |line: &Line| match line.without_table.cells {
        0 => "not tested".to_owned(),
        _ => percent(line.without_table.mean),
    };
    let tile = |line: &Line| (unseen(line), format!("error on unseen tables, {}", line.name));
    let mut tiles = vec![tile(&report.all)];
    tiles.extend(report.groups.iter().filter(|line| line.fitted.cells > 0).map(tile));
    tiles.push((report.parameters.len().to_string(), "fitted parameters".to_owned()));
    let cells: usize = report.tables.iter().map(|line| line.fitted.cells).sum();
    tiles.push((cells.to_string(), "measured cells".to_owned()));
    let text = format!(
        "Relative errors against the cells that the guide prints. The honest figure is \"table out\": parameters and \
         structures are fitted to all other tables and asked for what they have not seen; \"alternate\" leaves every other \
         row or column out, \"fitted\" none. Where nothing can be tested it says so. {} latencies that the description takes \
         over as printed count nowhere.",
        report.given
    );
    Section {
        id: "accuracy".to_owned(),
        title: "Accuracy".to_owned(),
        blocks: vec![
            Block::Tiles(tiles),
            Block::Text(text),
            Block::Grid(errors("accuracy-groups", "By group", &report.groups)),
            Block::Grid(errors("accuracy-tables", "By table", &report.tables)),
        ],
    }
}

fn errors(id: &str, title: &str, lines: &[Line]) -> Grid {
    let headers = [
        "",
        "table out, mean %",
        "largest %",
        "alternate, mean %",
        "largest %",
        "cells",
        "fitted, mean %",
        "largest %",
        "goal of the fit %",
    ];
    let mut grid = Grid::new(id, title, &headers);
    let pair = |errors: &Errors| match errors.cells {
        0 => [Cell::text("not tested"), Cell::Empty],
        _ => [Cell::number(errors.mean * 100.0, 2), Cell::number(errors.max * 100.0, 2)],
    };
    for line in lines {
        let mut row = vec![Cell::text(&line.name)];
        row.extend([&line.without_table, &line.alternate].into_iter().flat_map(pair));
        row.push(Cell::number(line.fitted.cells as f64, 0));
        row.extend(pair(&line.fitted));
        row.push(line.goal.map_or(Cell::Empty, |goal| Cell::number(goal * 100.0, 0)));
        grid.rows.push(row);
    }
    grid
}

/// The TCP servers of a chip.
fn servers(soc: &Soc) -> Option<Section> {
    let headers = ["workload", "what", "predicted", "low", "high", "unit", "limited by"];
    let mut grid = Grid::new("servers-table", "TCP servers on the chip", &headers);
    for (name, server) in &soc.links.tcp {
        let answer = match &server.requests {
            Some(_) => server.predict_requests(&soc.links),
            None => server.predict(&soc.links),
        };
        let Ok(prediction) = answer else { continue };
        let limit = prediction.bottlenecks.first();
        grid.rows.push(vec![
            Cell::text(name),
            Cell::text(&server.title),
            Cell::figure(prediction.predicted),
            Cell::figure(prediction.low),
            Cell::figure(prediction.high),
            Cell::text(prediction.unit.symbol()),
            limit.map_or(Cell::Empty, |limit| Cell::text(format!("{}: {}", limit.name, limit.explanation))),
        ]);
    }
    let blocks = vec![Block::Grid(grid.clone())];
    (!grid.rows.is_empty()).then(|| Section { id: "servers".to_owned(), title: "Servers".to_owned(), blocks })
}

/// The Ethernet ports of a chip with frames of some sizes.
fn ports(soc: &Soc) -> Option<Section> {
    let headers = ["port", "frame, B", "theoretical, Mb/s", "predicted, Mb/s", "limited by"];
    let mut grid =
        Grid::new("ports-table", "Frames of one size, header and check sequence counted", &headers);
    for (name, port) in &soc.links.ethernet {
        for frame in [64, 128, 256, 512, 1024, 1518] {
            let transfer =
                Transfer::Ethernet { frame_bytes: frame, port: Some(name.clone()), counted: Counted::Frame };
            let Some(Ok(prediction)) = ask::link(soc, &transfer) else { continue };
            if frame as f64 > (port.mtu + port.header + port.check_sequence).value() {
                continue;
            }
            grid.rows.push(vec![
                Cell::text(name),
                Cell::number(frame as f64, 0),
                Cell::number(prediction.theoretical, 1),
                Cell::number(prediction.predicted, 1),
                prediction.bottlenecks.first().map_or(Cell::Empty, |limit| Cell::text(&limit.name)),
            ]);
        }
    }
    let title = "Ethernet ports".to_owned();
    (!grid.rows.is_empty()).then(|| Section {
        id: "ports".to_owned(),
        title,
        blocks: vec![Block::Grid(grid)],
    })
}

/// Every table of the guide.
fn tables(model: &dyn TableModel, guide: &Guide) -> Vec<Block> {
    let lead = "In each cell the prediction stands above the printed number and the relative error. Point at a cell for \
                the interval and what limits it. Cells without a prediction show the print alone.";
    let mut blocks = vec![Block::Text(lead.to_owned())];
    for table in &guide.tables {
        let pairs = compare::pairs(table, model);
        let mut compared = compare::compared(table, &pairs);
        if pairs.iter().all(|pair| pair.predicted.is_none()) {
            compared.notes.push("Part of the chip's description: there is nothing to predict.".to_owned());
        }
        blocks.push(Block::Compared(compared));
    }
    blocks
}

/// Every figure of the guide in its order: with curves, or in words.
fn all_figures(soc: &Soc, model: &dyn TableModel, guide: &Guide) -> Vec<Block> {
    let mut drawn: Vec<(String, Figure)> = figures::of_tables(guide, model);
    drawn.extend(sweeps::of_chip(guide, soc));
    let block = |figure: &FigureText| {
        let at = drawn.iter().position(|(number, _)| *number == figure.number);
        match at {
            Some(at) => Block::Figure(drawn.swap_remove(at).1),
            None => Block::Described {
                id: format!("figure-{}", figure.number),
                title: figures::caption(guide, &figure.number),
                text: "This figure shows a set-up and no throughput, or one that the description does not cover."
                    .to_owned(),
            },
        }
    };
    guide.figures.iter().map(block).collect()
}

fn parameters(parameters: &[FreeParameter], known: bool) -> Section {
    let headers = ["parameter", "value", "unit and clock", "least", "most"];
    let mut grid = Grid::new("parameters-table", "Parameters that measurements decide", &headers);
    for parameter in parameters {
        grid.rows.push(vec![
            Cell::text(&parameter.name),
            Cell::number(parameter.value, 3),
            Cell::text(&parameter.unit),
            Cell::number(parameter.min, 3),
            Cell::number(parameter.max, 3),
        ]);
    }
    let lead = if known {
        "Each is physical, has a unit and a clock domain, and is shared by the cells of at least one table; none belongs to a \
         cell. Everything else in the description is printed in the guide, follows from a standard, or is marked as assumed."
    } else {
        "Each is physical and has a unit and a clock domain. They are what the description says until measurements of the chip \
         are fitted (linerate fabric fit); everything else stays as it is."
    };
    Section {
        id: "parameters".to_owned(),
        title: "Parameters".to_owned(),
        blocks: vec![Block::Text(lead.to_owned()), Block::Grid(grid)],
    }
}

fn clocks(soc: &Soc) -> Section {
    let mut grid = Grid::new("clocks-table", "Clocks", &["clock", "MHz", "derives from"]);
    for (name, clock) in &soc.clocks {
        let frequency = soc.frequency(name).map_or(f64::NAN, |frequency| frequency.value() / 1e6);
        let from = clock.from.as_ref().map_or(Cell::Empty, |from| Cell::text(from.as_str()));
        grid.rows.push(vec![Cell::text(name), Cell::number(frequency, 2), from]);
    }
    Section { id: "clocks".to_owned(), title: "Clocks".to_owned(), blocks: vec![Block::Grid(grid)] }
}
