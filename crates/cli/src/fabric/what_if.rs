//! `linerate fabric predict --sweep`: the same questions at many values of one key.

use super::args::{Predict, SweepFormat};
use super::change::{DEFAULT_POINTS, MAX_POINTS, Setting, Sweep, apply};
use super::error::FabricError;
use super::predict;
use super::show::{self, Answer};
use linerate_fabric::soc::Soc;
use linerate_lab::report::grid::{Cell, Grid, GridFormat};
use linerate_lab::report::plot::{Axis, Figure, Mark, Series};

/// A point of a sweep with the answers there.
struct Point {
    number: f64,
    answers: Vec<Answer>,
}

/// What the command prints.
pub fn run(soc: &Soc, args: &Predict, sweep: &Sweep) -> Result<String, FabricError> {
    let count = args.points.unwrap_or(DEFAULT_POINTS);
    if !(2..=MAX_POINTS).contains(&count) {
        return Err(FabricError::value("--points", count, format!("2 to {MAX_POINTS} points")));
    }
    let mut points = Vec::new();
    for number in sweep.points(count) {
        let setting = sweep.setting(number);
        let changed =
            apply(soc.clone(), std::slice::from_ref(&setting)).map_err(|error| at(&setting, error))?;
        let answers = predict::answers(&changed, &args.transfer, !args.without_setup, args.engine)?;
        points.push(Point { number, answers });
    }
    match args.format {
        SweepFormat::Text => Ok(grid(sweep, &points).render(GridFormat::Terminal, crate::output::width())),
        SweepFormat::Csv => Ok(grid(sweep, &points).render(GridFormat::Csv, None)),
        SweepFormat::Json => Ok(grid(sweep, &points).render(GridFormat::Json, None)),
        SweepFormat::Svg => {
            let mut units: Vec<&str> = points
                .iter()
                .flat_map(|point| &point.answers)
                .map(|one| one.prediction.unit.symbol())
                .collect();
            units.sort_unstable();
            units.dedup();
            if units.len() > 1 {
                let expected = "transfers of one unit in a picture; the other formats have all";
                return Err(FabricError::value("--transfer", units.join(" and "), expected));
            }
            let svg =
                figure(sweep, &points).standalone().map_err(|why| FabricError::Failed(why.to_string()))?;
            Ok(format!("{svg}\n"))
        }
    }
}

fn at(setting: &Setting, error: FabricError) -> FabricError {
    match error {
        FabricError::Value { expected, .. } => FabricError::value("--sweep", setting, expected),
        FabricError::Change { value, why, .. } => FabricError::Change { name: "--sweep", value, why },
        other => other,
    }
}

fn heading(sweep: &Sweep) -> String {
    if sweep.unit.is_empty() { sweep.key.clone() } else { format!("{}, {}", sweep.key, sweep.unit) }
}

/// A line for each point and question.
fn grid(sweep: &Sweep, points: &[Point]) -> Grid {
    let key = heading(sweep);
    let headers = [key.as_str(), "transfer", "predicted", "low", "high", "unit", "limited by"];
    let mut grid = Grid::new("sweep", format!("Sweep of {}", sweep.key), &headers);
    for point in points {
        for answer in &point.answers {
            let found = &answer.prediction;
            let limit = found.bottlenecks.first();
            grid.rows.push(vec![
                Cell::number(point.number, decimals(point.number)),
                Cell::text(&answer.question),
                Cell::text(show::figure(found.predicted)),
                Cell::text(show::figure(found.low)),
                Cell::text(show::figure(found.high)),
                Cell::text(found.unit.symbol()),
                limit.map_or(Cell::Empty, |limit| Cell::text(&limit.name)),
            ]);
        }
    }
    grid
}

/// As many decimals as the number has, to the nine that points are rounded to: each point has a label of its own.
fn decimals(number: f64) -> usize {
    number.to_string().split_once('.').map_or(0, |(_, digits)| digits.len().min(9))
}

fn figure(sweep: &Sweep, points: &[Point]) -> Figure {
    let questions = points.first().map_or(&[][..], |point| &point.answers);
    let unit = questions.first().map_or("", |answer| answer.prediction.unit.symbol());
    let series = questions.iter().enumerate().map(|(colour, question)| Series {
        name: question.question.clone(),
        mark: Mark::Predicted,
        colour,
        points: points
            .iter()
            .filter_map(|point| Some((point.number, point.answers.get(colour)?.prediction.predicted)))
            .collect(),
    });
    Figure {
        id: "sweep".to_owned(),
        title: format!("Sweep of {}", sweep.key),
        x: heading(sweep),
        y: unit.to_owned(),
        axis: Axis::Linear,
        series: series.collect(),
        notes: Vec::new(),
    }
}
