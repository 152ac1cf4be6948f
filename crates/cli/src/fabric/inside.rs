//! The inside of any chip in a report: its memories, what its DMA moves between them, and what its cores wait for.

use super::grid::{Cell, Grid};
use super::page::{Block, Section};
use super::show;
use linerate_fabric::ask;
use linerate_fabric::edma::{self, Transfer};
use linerate_fabric::memory::Pattern;
use linerate_fabric::soc::{EndpointKind, Soc};
use linerate_fabric::units::Bytes;

/// What is moved for the table of controllers.
const MOVED: Bytes = Bytes::new(65_536.0);

/// The sections that a chip has something for.
pub fn sections(soc: &Soc) -> Vec<Section> {
    let parts = [
        ("memories", "Memories", memories(soc)),
        ("dma", "DMA between memories", controllers(soc)),
        ("cores", "Reads by cores", cores(soc)),
    ];
    let section = |(id, title, grid): (&str, &str, Grid)| {
        (!grid.rows.is_empty()).then(|| Section {
            id: id.to_owned(),
            title: title.to_owned(),
            blocks: vec![Block::Grid(grid)],
        })
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
                Cell::text(show::figure(single.predicted)),
                Cell::text(show::figure(burst.predicted)),
                most.map_or(Cell::Empty, |part| Cell::text(format!("{}: {}", part.name, part.explanation))),
            ]);
        }
    }
    grid
}
