//! The inside of any chip in a report: its memories, what its DMA moves between them, and what its cores wait for.

use linerate_fabric::ask;
use linerate_fabric::edma::{self, Transfer};
use linerate_fabric::memory::Pattern;
use linerate_fabric::soc::{EndpointKind, Soc};
use linerate_fabric::units::Bytes;
use linerate_lab::report::grid::{Cell, Grid};
use linerate_lab::report::page::{Block, Section};
use linerate_lab::report::plot::{Axis, Figure, Mark, SERIES, Series};

/// What is moved for the table of controllers.
const MOVED: Bytes = Bytes::new(65_536.0);

/// The sections that a chip has something for.
///
/// With `figures`, a curve too: the pages of a guide have their own.
pub fn sections(soc: &Soc, figures: bool) -> Vec<Section> {
    let parts = [
        ("memories", "Memories", memories(soc), None),
        ("dma", "DMA between memories", controllers(soc), figures.then(|| sizes(soc)).flatten()),
        ("cores", "Reads by cores", cores(soc), None),
        ("links", "Links to other chips", links(soc), None),
    ];
    let section = |(id, title, grid, figure): (&str, &str, Grid, Option<Figure>)| {
        let mut blocks = vec![Block::Grid(grid.clone())];
        blocks.extend(figure.map(Block::Figure));
        (!grid.rows.is_empty()).then(|| Section { id: id.to_owned(), title: title.to_owned(), blocks })
    };
    parts.into_iter().filter_map(section).collect()
}

fn memories(soc: &Soc) -> Grid {
    let headers = ["memory", "kind", "how many", "width, bit", "clock", "theoretical, MB/s"];
    let mut grid = Grid::new("memories-table", "What widths and clocks allow", &headers);
    for (name, memory) in &soc.endpoints {
        let rate = soc
            .bus_rate(memory.width, &memory.clock)
            .map(|rate| rate * f64::from(memory.transfers_per_cycle));
        grid.rows.push(vec![
            Cell::text(name),
            Cell::text(if memory.kind == EndpointKind::Dram { "dynamic" } else { "static" }),
            Cell::number(f64::from(memory.count), 0),
            Cell::number(memory.width.value() * 8.0, 0),
            Cell::text(memory.clock.as_str()),
            rate.map_or(Cell::Empty, |rate| Cell::number(rate.megabytes(), 0)),
        ]);
    }
    grid
}

/// The first controller of each kind between any two memories that it reaches.
fn controllers(soc: &Soc) -> Grid {
    let headers =
        ["controller", "from", "to", "theoretical, MB/s", "predicted, MB/s", "low", "high", "limited by"];
    let mut grid = Grid::new(
        "dma-table",
        "One linear transfer of 64 KiB, the time before its first byte included",
        &headers,
    );
    for engine in soc.edma.values() {
        let Some(first) = engine.transfer_controllers.first() else { continue };
        for from in soc.endpoints.keys() {
            for to in soc.endpoints.keys() {
                let transfer = Transfer::linear(&first.name, from, to, MOVED);
                // Memories that no fabric reaches have no way.
                let Ok(found) = edma::predict(soc, &[transfer], true) else { continue };
                let limit = found.bottlenecks.first();
                grid.rows.push(vec![
                    Cell::text(first.name.as_str()),
                    Cell::text(from),
                    Cell::text(to),
                    Cell::number(found.theoretical, 0),
                    Cell::number(found.predicted, 0),
                    Cell::number(found.low, 0),
                    Cell::number(found.high, 0),
                    limit.map_or(Cell::Empty, |limit| {
                        Cell::text(format!("{}: {}", limit.name, limit.explanation))
                    }),
                ]);
            }
        }
    }
    grid
}

/// The rate of the first controller over the size of a transfer, between the memories that it reaches.
fn sizes(soc: &Soc) -> Option<Figure> {
    let first = soc.edma.values().find_map(|engine| engine.transfer_controllers.first())?;
    let mut series: Vec<Series> = Vec::new();
    for from in soc.endpoints.keys() {
        for to in soc.endpoints.keys().filter(|to| *to != from) {
            let point = |power: i32| {
                let size = 2f64.powi(power);
                let transfer = Transfer::linear(&first.name, from, to, Bytes::new(size));
                Some((size, edma::rate(soc, &[transfer], true).ok()?.megabytes()))
            };
            let points: Vec<(f64, f64)> = (LEAST_POWER..=MOST_POWER).filter_map(point).collect();
            if !points.is_empty() && series.len() < SERIES.len() {
                let (name, colour) = (format!("{from} to {to}"), series.len());
                series.push(Series { name, mark: Mark::Predicted, colour, points });
            }
        }
    }
    (!series.is_empty()).then(|| Figure {
        id: "dma-sizes".to_owned(),
        title: format!("{}: rate over the size of one linear transfer", first.name.as_str()),
        x: "Transfer, B".to_owned(),
        y: "MB/s".to_owned(),
        axis: Axis::PowersOfTwo,
        series,
        notes: vec![
            "The time before the first byte is included: it weighs most in small transfers.".to_owned(),
        ],
    })
}

/// From 64 B to 1 MiB.
const LEAST_POWER: i32 = 6;
const MOST_POWER: i32 = 20;

/// What the links to other chips carry at their fastest.
fn links(soc: &Soc) -> Grid {
    let headers = ["transfer", "theoretical", "predicted", "low", "high", "unit", "limited by"];
    let mut grid = Grid::new("links-table", "Each link at its fastest", &headers);
    let mut asked: Vec<String> = Vec::new();
    if let Some(pcie) = &soc.links.pcie {
        let payload = pcie.max_payload_out.value();
        asked.extend(["pcie:read".to_owned(), format!("pcie:write:{payload}")]);
    }
    if let Some(srio) = &soc.links.srio {
        let lanes = srio.lanes.iter().max().copied().unwrap_or(1);
        let rate = srio.line_rates.iter().map(|rate| rate.gigabits()).fold(0.0, f64::max);
        for kind in ["nread", "nwrite", "type11"] {
            let memories = if kind == "type11" { &srio.descriptor } else { &srio.memory };
            asked.extend(memories.keys().map(|memory| format!("srio:{kind}:4096:{lanes}x:{rate}G:{memory}")));
        }
    }
    if let Some(hyperlink) = &soc.links.hyperlink {
        for way in ["read", "write"] {
            for path in hyperlink.path.keys() {
                let memories = hyperlink.memory.keys();
                asked.extend(memories.map(|memory| format!("hyperlink:{way}:{memory},path={path}")));
            }
        }
    }
    for transfer in asked {
        let Ok(found) = ask::answer(soc, &transfer) else { continue };
        grid.rows.push(vec![
            Cell::text(transfer),
            Cell::figure(found.theoretical),
            Cell::figure(found.predicted),
            Cell::figure(found.low),
            Cell::figure(found.high),
            Cell::text(found.unit.symbol()),
            found.bottlenecks.first().map_or(Cell::Empty, |limit| Cell::text(&limit.name)),
        ]);
    }
    grid
}

fn cores(soc: &Soc) -> Grid {
    let headers = ["core", "reads", "single, cycles", "burst, cycles", "most of it"];
    let mut grid = Grid::new("cores-table", "Cycles of the core for each read", &headers);
    for (core, of) in &soc.cores {
        for source in of.reads.keys() {
            let ask = |pattern| ask::read(soc, core, source, pattern).ok();
            let (Some(single), Some(burst)) = (ask(Pattern::Single), ask(Pattern::Burst)) else { continue };
            let most = single.bottlenecks.first();
            grid.rows.push(vec![
                Cell::text(core),
                Cell::text(source),
                Cell::figure(single.predicted),
                Cell::figure(burst.predicted),
                most.map_or(Cell::Empty, |part| Cell::text(format!("{}: {}", part.name, part.explanation))),
            ]);
        }
    }
    grid
}
