//! The figures of the throughput guide that show a table: a curve or bars for the model, dots for printed numbers.

use super::compare::{Pair, pairs};
use linerate_fabric::guide::{Guide, Role, Table};
use linerate_fabric::predict::TableModel;
use linerate_lab::report::plot::{Axis, Figure, Mark, Series};

/// How a figure shows tables.
enum Shape {
    /// Bars: a group for each column, a series for each table, of the measured row.
    Columns,
    /// Bars: a group for each row, a series for each column of each table.
    Rows,
    /// Curves over the number in the first cell, one for each of these columns (from 0) with its name.
    Curves(&'static [(usize, &'static str)]),
}

/// One figure and the tables it shows.
struct Plan {
    number: &'static str,
    tables: &'static [&'static str],
    /// What sets the tables apart, in the order of `tables`.
    names: &'static [&'static str],
    shape: Shape,
    x: &'static str,
    y: &'static str,
}

const LANES: Shape = Shape::Curves(&[
    (0, "4 lanes, L2"),
    (1, "4 lanes, DDR3"),
    (2, "2 lanes, L2"),
    (3, "2 lanes, DDR3"),
    (4, "1 lane, L2"),
    (5, "1 lane, DDR3"),
]);

const fn edma(number: &'static str, tables: &'static [&'static str], names: &'static [&'static str]) -> Plan {
    Plan { number, tables, names, shape: Shape::Columns, x: "Transfer controllers", y: "MB/s" }
}

const fn srio(number: &'static str, tables: &'static [&'static str]) -> Plan {
    Plan { number, tables, names: &[""], shape: LANES, x: "Payload, B", y: "Mb/s" }
}

const PLANS: [Plan; 15] = [
    edma("2", &["6"], &["L2 to L2"]),
    edma("3", &["7"], &["L2 and MSMC"]),
    edma("4", &["8"], &["MSMC to MSMC"]),
    edma("5", &["9", "10"], &["MSMC and DDR3A", "MSMC and DDR3B"]),
    edma("6", &["11", "12", "13"], &["DDR3A to DDR3A", "DDR3B to DDR3B", "DDR3A and DDR3B"]),
    edma("7", &["14", "15"], &["L2 and DDR3A", "L2 and DDR3B"]),
    srio("16", &["16"]),
    srio("17", &["18"]),
    srio("18", &["17"]),
    srio("19", &["19"]),
    srio("20", &["20"]),
    srio("21", &["21"]),
    Plan {
        number: "22",
        tables: &["23", "24"],
        names: &["achievable", "measured"],
        shape: Shape::Rows,
        x: "",
        y: "Gb/s",
    },
    Plan {
        number: "23",
        tables: &["25", "26"],
        names: &["achievable", "measured"],
        shape: Shape::Rows,
        x: "",
        y: "Gb/s",
    },
    Plan {
        number: "25",
        tables: &["10gbe"],
        names: &[""],
        shape: Shape::Curves(&[(2, "10GbE")]),
        x: "Packet, B",
        y: "Mb/s",
    },
];

/// The figures that show tables, by their number.
pub fn of_tables(guide: &Guide, model: &dyn TableModel) -> Vec<(String, Figure)> {
    PLANS.iter().filter_map(|plan| Some((plan.number.to_owned(), plan.figure(guide, model)?))).collect()
}

/// The caption of a figure as the guide prints it.
pub fn caption(guide: &Guide, number: &str) -> String {
    let found = guide.figures.iter().find(|figure| figure.number == number);
    match found {
        Some(figure) => format!("Figure {number}. {}", figure.caption),
        None => format!("Figure {number}"),
    }
}

impl Plan {
    fn figure(&self, guide: &Guide, model: &dyn TableModel) -> Option<Figure> {
        let tables: Vec<(&Table, &str)> = self
            .tables
            .iter()
            .zip(self.names)
            .filter_map(|(id, name)| Some((guide.table(id)?, *name)))
            .collect();
        let mut series = Vec::new();
        let mut axis = None;
        for (number, (table, name)) in tables.iter().enumerate() {
            let pairs = pairs(table, model);
            match &self.shape {
                Shape::Columns => {
                    let row = table.rows.iter().position(|row| row.role == Some(Role::Measured));
                    let row =
                        row.or_else(|| table.rows.iter().position(|row| row.name.starts_with("Aggregate")))?;
                    let names = table.columns.iter().map(|column| column.name()).collect();
                    axis.get_or_insert(Axis::Categories(names));
                    let of_row = pairs.iter().filter(|pair| pair.row == row);
                    add(&mut series, name, number, of_row.map(|pair| (pair.column as f64, pair)));
                }
                Shape::Rows => {
                    let names = table.rows.iter().map(|row| row.name.clone()).collect();
                    axis.get_or_insert(Axis::Categories(names));
                    for (at, column) in table.columns.iter().enumerate() {
                        let of_column = pairs.iter().filter(|pair| pair.column == at);
                        let name = format!("{}, {name}", column.name().replace(" (Gbps)", ""));
                        let colour = number * table.columns.len() + at;
                        add(&mut series, &name, colour, of_column.map(|pair| (pair.row as f64, pair)));
                    }
                }
                Shape::Curves(columns) => {
                    let spread =
                        |row: usize| table.rows.get(row).and_then(|row| row.name.trim().parse::<f64>().ok());
                    let powers =
                        (0..table.rows.len()).filter_map(spread).all(|x| x > 0.0 && x.log2().fract() == 0.0);
                    axis.get_or_insert(if powers { Axis::PowersOfTwo } else { Axis::Linear });
                    for (colour, (at, name)) in columns.iter().enumerate() {
                        let of_column = pairs.iter().filter(|pair| pair.column == *at);
                        let points = of_column.filter_map(|pair| Some((spread(pair.row)?, pair)));
                        add(&mut series, name, colour, points);
                    }
                }
            }
        }
        let drawn = series.iter().any(|series| !series.points.is_empty());
        drawn.then(|| Figure {
            id: format!("figure-{}", self.number),
            title: caption(guide, self.number),
            x: self.x.to_owned(),
            y: self.y.to_owned(),
            axis: axis.unwrap_or(Axis::Linear),
            series,
            notes: self.notes(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let what = match self.shape {
            Shape::Columns | Shape::Rows => "Bars are predictions",
            Shape::Curves(_) => "Curves are predictions",
        };
        let tables = self.tables.join(", ");
        let tables =
            if self.tables.len() == 1 { format!("table {tables}") } else { format!("tables {tables}") };
        vec![format!("{what}, dots the numbers printed in {tables}; withheld numbers have no dot.")]
    }
}

/// The predicted series of some cells, and the published one if anything is printed.
fn add<'a>(
    series: &mut Vec<Series>,
    name: &str,
    colour: usize,
    points: impl Iterator<Item = (f64, &'a Pair<'a>)>,
) {
    let points: Vec<(f64, &Pair<'_>)> = points.collect();
    let predicted = points.iter().filter_map(|(x, pair)| Some((*x, pair.predicted.as_ref()?.predicted)));
    let published = points.iter().filter_map(|(x, pair)| Some((*x, pair.published.value()?)));
    let predicted = predicted.collect::<Vec<_>>();
    let published = published.collect::<Vec<_>>();
    for (mark, points, suffix) in
        [(Mark::Predicted, predicted, ""), (Mark::Published, published, " (published)")]
    {
        if !points.is_empty() {
            series.push(Series { name: format!("{name}{suffix}"), mark, colour, points });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::guide;
    use linerate_fabric::predict::{Prediction, Unit};

    /// Says 1000 everywhere.
    struct Flat;

    impl TableModel for Flat {
        fn cell(&self, _: &str, _: &str, _: usize) -> Option<Prediction> {
            Some(Prediction::exact(1000.0, Unit::MegabytesPerSecond))
        }
    }

    #[test]
    fn every_plan_finds_its_tables() {
        let guide = guide::load(include_str!("../../../../boards/guides/keystone2.toml")).unwrap();
        let figures = of_tables(&guide, &Flat);
        assert_eq!(figures.len(), PLANS.len());
        let check = |number: &str, predicted: usize, published: usize| {
            let (_, figure) = figures.iter().find(|(found, _)| found == number).unwrap();
            let points = |mark| {
                let of = figure.series.iter().filter(|series| series.mark == mark);
                of.map(|series| series.points.len()).sum::<usize>()
            };
            assert_eq!(
                (points(Mark::Predicted), points(Mark::Published)),
                (predicted, published),
                "{number}"
            );
            figure.svg().unwrap();
        };
        check("2", 2, 2);
        check("4", 4, 4);
        check("5", 6, 3);
        check("16", 66, 66);
        check("17", 66, 0);
        check("22", 12, 12);
        check("23", 12, 8);
        check("25", 15, 8);
    }
}
