//! What is open of a chip, in a report: how intervals hold, which structures are left, and what would decide.

use super::show;
use linerate_fabric::model::accuracy::Report;
use linerate_lab::report::grid::{Cell, Grid};
use linerate_lab::report::page::{Block, Section};

/// The part of a page; none for a chip of which nothing was measured and nothing is open.
pub fn section(report: &Report) -> Option<Section> {
    let measured = !report.calibration.is_empty();
    let mut blocks = Vec::new();
    if measured {
        let lead = "Intervals promise to hold nine of ten values. On cells that a fit has not seen, with widths from other \
                    cells, they hold the shares below; p is the chance of a share as far from nine of ten (exact binomial \
                    test).";
        blocks.push(Block::Text(lead.to_owned()));
        blocks.push(Block::Grid(intervals(report)));
    }
    let structures = structures(report);
    if !structures.rows.is_empty() {
        let lead = if measured {
            "What measurements do not tell is open: each answer below meets the visible cells and the sentences of the guide \
             by its share, and predictions are the mixture. The last column is the measurement that would decide."
        } else {
            "What the description leaves open: each answer counts by the weight that it gives, and predictions are the \
             mixture. The last column is the measurement that would decide."
        };
        blocks.push(Block::Text(lead.to_owned()));
        blocks.push(Block::Grid(structures));
    }
    (!blocks.is_empty()).then(|| Section { id: "open".to_owned(), title: "Uncertainty".to_owned(), blocks })
}

fn intervals(report: &Report) -> Grid {
    let headers = ["kind of transfer", "cells", "inside", "share %", "p", "mean width %"];
    let mut grid = Grid::new("calibration-table", "Cells inside 90 % intervals", &headers);
    for line in &report.calibration {
        grid.rows.push(vec![
            Cell::text(&line.kind),
            Cell::number(line.cells as f64, 0),
            Cell::number(line.inside as f64, 0),
            Cell::number(line.inside as f64 / line.cells.max(1) as f64 * 100.0, 1),
            Cell::number(line.plausible, 3),
            Cell::number(line.width * 100.0, 2),
        ]);
    }
    grid
}

fn structures(report: &Report) -> Grid {
    let headers = ["what is open", "answer", "share %", "then", "measure"];
    let mut grid = Grid::new("structures-table", "Structures", &headers);
    for (name, open) in &report.ensemble.soc.alternatives {
        let Some(part) = report.ensemble.parts.iter().find(|part| part.part == open.part()) else { continue };
        let told = part.told_apart(name, &open.decides);
        for (answer, weight) in part.answers(name) {
            let says = told.iter().find(|(known, ..)| *known == answer).map(|(_, low, high)| {
                let (low, high) = (show::figure(*low), show::figure(*high));
                if low == high { low } else { format!("{low} to {high}") }
            });
            grid.rows.push(vec![
                Cell::text(&open.question),
                Cell::text(answer),
                Cell::number(weight * 100.0, 1),
                says.map_or(Cell::text("ruled out"), Cell::text),
                Cell::text(open.decides.as_str()),
            ]);
        }
    }
    grid
}
