//! The guide as a page with pictures.

use super::staircase::{self, Curve};
use super::{beside, tables};
use crate::guide::plan::Part;
use crate::guide::run::Guide;
use crate::guide::table::{Point, Table};
use crate::report::grid::{Cell, Grid};
use crate::report::page::{self, Block, Compared, Comparison, Section};
use crate::report::plot::{Axis, Figure, Mark, PlotError, SERIES, Series};

/// The page.
///
/// # Errors
/// A picture that cannot be drawn.
pub fn page(guide: &Guide) -> Result<String, PlotError> {
    let mut sections = vec![summary(guide)];
    for table in &guide.tables {
        let mut blocks = pictures(guide, table)?;
        blocks.push(Block::Compared(compared(table)));
        sections.push(Section {
            id: table.part.name().to_owned(),
            title: table.part.title().to_owned(),
            blocks,
        });
    }
    let others: Vec<Block> = beside::grids(guide).into_iter().map(Block::Grid).collect();
    if !others.is_empty() {
        let title = "Beside the KeyStone II guide".to_owned();
        sections.push(Section { id: "keystone".to_owned(), title, blocks: others });
    }
    if let Some(chip) = &guide.chip {
        let lines = chip.lines().filter(|line| !line.trim().is_empty());
        let mut grid = Grid::new("chip-file", "The chip as `linerate fabric` reads it", &["line"]);
        grid.rows.extend(lines.map(|line| vec![Cell::text(line)]));
        sections.push(Section {
            id: "chip".to_owned(),
            title: "Chip".to_owned(),
            blocks: vec![Block::Grid(grid)],
        });
    }
    let title = format!("Throughput guide: {}", part(guide, "processor"));
    page::page(&title, &guide.provenance.sentence(), &sections)
}

fn part<'a>(guide: &'a Guide, name: &str) -> &'a str {
    guide.provenance.machine.get(name).map_or("this machine", String::as_str)
}

fn summary(guide: &Guide) -> Section {
    let mut tiles = vec![(format!("{:.2} GHz", 1.0 / guide.cycle.ns), "clock of the core".to_owned())];
    for (at, level) in guide.levels.iter().enumerate() {
        // Where sizes end in a cache, the last level is that cache.
        let is_cache = level.ends.is_some() || at < guide.caches.len();
        let name = if is_cache { format!("L{} load", at + 1) } else { "memory load".to_owned() };
        tiles.push((format!("{:.1} ns", level.latency * guide.cycle.ns), name));
    }
    if let Some(whole) = guide.accuracy {
        tiles.push((
            format!("{:.1} %", whole.median * 100.0),
            format!("median error of {} predicted cells", whole.cells),
        ));
    }
    let mut blocks = vec![Block::Tiles(tiles)];
    blocks.push(Block::Text(
        "Every other cell of a table calibrates a description of this machine; the others are predicted from it before they are \
         compared. In a cell the figure on top is the prediction, where there is one, and below it stands what was measured."
            .to_owned(),
    ));
    blocks.extend(tables::accuracy(guide).map(Block::Grid));
    blocks.extend(picture_of_errors(guide).map(Block::Figure));
    blocks.extend(tables::levels(guide).map(Block::Grid));
    let mut notes = guide.notes.clone();
    notes.extend([guide.pages.sentence(), tables::build_note().to_owned()]);
    blocks.extend(notes.into_iter().map(Block::Text));
    Section { id: "summary".to_owned(), title: "Summary".to_owned(), blocks }
}

/// Predicted over measured of every cell that calibrated nothing, table by table.
fn picture_of_errors(guide: &Guide) -> Option<Figure> {
    guide.accuracy?;
    let names: Vec<String> = guide.by_table.iter().map(|one| one.part.name().to_owned()).collect();
    let bars = |pick: fn(&crate::guide::table::Accuracy) -> f64| -> Vec<(f64, f64)> {
        guide.by_table.iter().enumerate().map(|(at, one)| (at as f64, pick(&one.accuracy) * 100.0)).collect()
    };
    let series = |name: &str, colour: usize, points: Vec<(f64, f64)>| Series {
        name: name.to_owned(),
        mark: Mark::Predicted,
        colour,
        points,
    };
    Some(Figure {
        id: "errors".to_owned(),
        title: "Errors of the predictions by table".to_owned(),
        x: "table".to_owned(),
        y: "%".to_owned(),
        axis: Axis::Categories(names),
        series: vec![
            series("median", 0, bars(|of| of.median)),
            series("nine of ten within", 1, bars(|of| of.ninth)),
        ],
        notes: Vec::new(),
    })
}

/// A table with a prediction in each cell that calibrated nothing.
fn compared(table: &Table) -> Compared {
    let grid = tables::measured(table);
    let figure = |value: f64| Cell::figure(value).shown();
    let cell = |point: &Option<Point>| match point {
        None => Comparison { published: "-".to_owned(), ..Comparison::default() },
        Some(point) => Comparison {
            predicted: point.predicted.filter(|_| !point.calibrates).map(figure),
            published: figure(point.value),
            error: point.error().filter(|_| !point.calibrates),
            hint: format!(
                "{}: {} samples, {} disturbed, spread {:.1} %",
                point.asked.transfer,
                point.sampled.samples,
                point.sampled.disturbed,
                point.spread * 100.0
            ),
        },
    };
    let rows =
        table.rows.iter().map(|(name, points)| (name.clone(), points.iter().map(cell).collect())).collect();
    Compared {
        id: format!("{}-table", table.part),
        title: grid.title,
        headers: grid.headers,
        rows,
        notes: grid.notes,
    }
}

/// The pictures of a table.
fn pictures(guide: &Guide, table: &Table) -> Result<Vec<Block>, PlotError> {
    let chosen: &[&str] = match table.part {
        Part::Latency => return Ok(vec![staircase(guide, table)?]),
        Part::Pages => return Ok(vec![pages(table)?]),
        Part::Copy => &["read", "fill", "copy"],
        Part::Threads | Part::Packets => &[],
        _ => return Ok(Vec::new()),
    };
    let mut series = Vec::new();
    for (number, column) in table
        .columns
        .iter()
        .filter(|own| chosen.is_empty() || chosen.contains(&own.heading.as_str()))
        .enumerate()
    {
        if series.len() / 2 >= SERIES.len() {
            break;
        }
        let measured = points(table, &column.heading, |point| Some(point.value));
        let predicted = points(table, &column.heading, |point| point.predicted.filter(|_| !point.calibrates));
        let name = column.heading.clone();
        series.push(Series {
            name: format!("{name}, measured"),
            mark: Mark::Predicted,
            colour: number,
            points: measured,
        });
        series.push(Series {
            name: format!("{name}, predicted"),
            mark: Mark::Published,
            colour: number,
            points: predicted,
        });
    }
    Ok(vec![Block::Figure(Figure {
        id: format!("{}-figure", table.part),
        title: table.part.title().to_owned(),
        x: format!("{}, B", table.corner),
        y: table.columns.first().map_or("", |column| column.unit.symbol()).to_owned(),
        axis: Axis::PowersOfTwo,
        series,
        notes: vec!["Lines are measured, dots predicted.".to_owned()],
    })])
}

/// A column over the size of its working set, or of its packets.
fn points(table: &Table, heading: &str, wanted: impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let size = |point: &Point| match point.asked.packet {
        Some((_, bytes)) => bytes as f64,
        None => crate::guide::calibrate::size_of(point),
    };
    let own = table.points_by_column().filter(|(column, _)| column.heading == heading);
    let found = own.filter_map(|(_, point)| Some((size(point), wanted(point)?)));
    found.filter(|(size, _)| *size > 0.0).collect()
}

fn staircase(guide: &Guide, table: &Table) -> Result<Block, PlotError> {
    let curves: Vec<Curve> = table
        .columns
        .iter()
        .map(|column| Curve {
            name: column.heading.clone(),
            measured: points(table, &column.heading, |point| Some(point.value)),
            predicted: points(table, &column.heading, |point| point.predicted.filter(|_| !point.calibrates)),
        })
        .collect();
    let levels: Vec<(f64, String)> = guide
        .levels
        .iter()
        .enumerate()
        .filter_map(|(at, level)| Some((level.ends?, format!("L{} ends", at + 1))))
        .collect();
    picture("latency-figure", table, &curves, &levels)
}

fn pages(table: &Table) -> Result<Block, PlotError> {
    let curves: Vec<Curve> = table
        .columns
        .iter()
        .map(|column| Curve {
            name: column.heading.clone(),
            measured: points(table, &column.heading, |point| Some(point.value)),
            predicted: points(table, &column.heading, |point| point.predicted.filter(|_| !point.calibrates)),
        })
        .collect();
    picture("pages-figure", table, &curves, &[])
}

fn picture(id: &str, table: &Table, curves: &[Curve], levels: &[(f64, String)]) -> Result<Block, PlotError> {
    let title = table.part.title();
    let svg = staircase::svg(title, curves, levels).map_err(PlotError::Drawing)?;
    let key = curves.iter().enumerate().map(|(colour, curve)| (curve.name.clone(), colour)).collect();
    let notes = vec!["Lines are measured, dots predicted.".to_owned()];
    Ok(Block::Picture { id: id.to_owned(), title: title.to_owned(), svg, key, notes })
}
