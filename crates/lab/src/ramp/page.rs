//! The report of ramps: one page with the table of each and pictures like those of seed 003, whose curves are in them.

use super::level::{Level, QUANTILES, Times};
use super::picture::{Curve, Mark, Picture, Scale};
use super::record::Beside;
use super::run::Ramp;
use super::table::{grid, rates, sentence};
use crate::measure::provenance::Provenance;
use crate::report::page::{Block, Section, page};
use crate::report::plot::SERIES;

/// What is written, or why it cannot be. `late_ms`: by how much one departure in a hundred could be late before a level was refused, in
/// milliseconds.
pub fn html(ramps: &[Ramp], beside: &[Beside], origin: &Provenance, late_ms: f64) -> Result<String, String> {
    let lead = "Load at rising rates, whether or not answers come: response times count from when a request was due. A level at \
                which the client or the path was the limit is refused.";
    let found = Section {
        id: "found".to_owned(),
        title: "What was found".to_owned(),
        blocks: [
            vec![Block::Tiles(tiles(ramps))],
            ramps.iter().map(|ramp| Block::Text(format!("{}: {}", ramp.name, sentence(ramp)))).collect(),
        ]
        .concat(),
    };
    let figures =
        Section { id: "figures".to_owned(), title: "Curves".to_owned(), blocks: pictures(ramps, beside)? };
    let tables = Section {
        id: "levels".to_owned(),
        title: "Levels".to_owned(),
        blocks: ramps.iter().enumerate().map(|(number, ramp)| Block::Grid(grid(number, ramp))).collect(),
    };
    let how = Section {
        id: "how".to_owned(),
        title: "How it was measured".to_owned(),
        blocks: [vec![Block::Text(origin.sentence())], method(late_ms).map(Block::Text).to_vec()].concat(),
    };
    page("Ramp", lead, &[found, figures, tables, how]).map_err(|error| error.to_string())
}

fn method(late_ms: f64) -> [String; 3] {
    [
        "Knee: the highest level at which at least 95 % of what is offered is answered, at most 1 % fails, and the p99 of response \
         times has not left its plateau: five times the median p99 of the three lowest levels, and at least 10 ms more than that."
            .to_owned(),
        format!(
            "Refused: one departure in a hundred was late by more than {late_ms} ms and more than a tenth of the p99 response time; or \
             the client's thread used its whole core, or it had no port or descriptor left, or the machine's host took more than 5 % \
             of a core, or other programs the cores; or the link was full; or segments were lost while the server had time."
        ),
        "Figures of seed 003 are those of its tables A.1 to A.3: httperf, three requests a connection, 3,000 connections a level; \
         its response times are means, counted from when a request was sent."
            .to_owned(),
    ]
}

fn tiles(ramps: &[Ramp]) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    for ramp in ramps {
        let knee = match (ramp.knee.offered_rate, ramp.knee.below_rate) {
            (Some(rate), Some(_)) => rates(rate),
            (Some(rate), None) => format!("> {}", rates(rate)),
            (None, _) => "none".to_owned(),
        };
        tiles.push((knee, format!("requests/s at the knee, {}", ramp.name)));
        if let Some(plateau) = ramp.knee.plateau_ms {
            tiles.push((format!("{plateau:.2} ms"), format!("p99 before it, {}", ramp.name)));
        }
    }
    tiles
}

/// All pictures that have points.
fn pictures(ramps: &[Ramp], beside: &[Beside]) -> Result<Vec<Block>, String> {
    let all = [
        ("response", Picture { title: "Response times".to_owned(), ..response_times(ramps, beside) }),
        ("answered", answered(ramps, beside)),
        ("errors", errors(ramps, beside)),
        ("throughput", throughput(ramps, beside)),
        ("cpu", processor(ramps)),
        ("connect", connect_times(ramps)),
        ("open", open(ramps)),
    ];
    let mut blocks = Vec::new();
    for (id, picture) in all {
        if let Some(svg) = picture.svg() {
            let (id, title, notes) = (id.to_owned(), picture.title.clone(), Vec::new());
            blocks.push(Block::Picture { id, title, svg: svg?, key: Vec::new(), notes });
        }
    }
    Ok(blocks)
}

/// A curve over the rates of a ramp's levels that tell something of the server.
fn over_rates(
    ramp: &Ramp,
    name: String,
    mark: Mark,
    colour: usize,
    of: impl Fn(&Level) -> Option<f64>,
) -> Curve {
    let valid = ramp.levels.iter().filter(|level| level.is_valid());
    let points = valid.filter_map(|level| Some((level.offered_rate, of(level)?))).collect();
    Curve { name, mark, colour, points }
}

/// Curves of others: colours from the end, ours from the start.
fn of_others(beside: &[Beside], of: impl Fn(&super::seed::Point) -> f64) -> Vec<Curve> {
    let curve = |(number, beside): (usize, &Beside)| Curve {
        name: beside.name.clone(),
        mark: Mark::Dots,
        colour: SERIES.len() - 1 - number % SERIES.len(),
        points: beside.points.iter().map(|point| (point.demanded, of(point))).collect(),
    };
    beside.iter().enumerate().map(curve).collect()
}

fn knees(ramps: &[Ramp], colour_of: impl Fn(usize) -> usize) -> Vec<(f64, usize)> {
    let knee = |(number, ramp): (usize, &Ramp)| {
        ramp.knee.below_rate.and(ramp.knee.offered_rate).map(|rate| (rate, colour_of(number)))
    };
    ramps.iter().enumerate().filter_map(knee).collect()
}

/// Response times over the rate: all quantiles of a single ramp, median and p99 of each of several.
pub fn response_times(ramps: &[Ramp], beside: &[Beside]) -> Picture {
    let mut curves = Vec::new();
    let of = |pick: fn(&Times) -> f64| move |level: &Level| level.response_ms.as_ref().map(pick);
    if let [ramp] = ramps {
        for (colour, (name, pick)) in QUANTILES.into_iter().take(4).enumerate() {
            curves.push(over_rates(ramp, name.to_owned(), Mark::Line, colour, of(pick)));
        }
    } else {
        for (colour, ramp) in ramps.iter().enumerate() {
            curves.push(over_rates(
                ramp,
                format!("{}, p99", ramp.name),
                Mark::Line,
                colour,
                of(|times| times.p99),
            ));
            curves.push(over_rates(ramp, "median".to_owned(), Mark::Thin, colour, of(|times| times.p50)));
        }
    }
    curves.extend(of_others(beside, |point| point.response_ms));
    let single = ramps.len() == 1;
    Picture {
        title: match ramps {
            [ramp] => format!("Response times, {}", ramp.name),
            _ => "Response times".to_owned(),
        },
        x: "requests/s that were due".to_owned(),
        y: "ms".to_owned(),
        scales: [Scale::Ratios; 2],
        curves,
        knees: knees(ramps, |number| if single { 2 } else { number }),
    }
}

fn answered(ramps: &[Ramp], beside: &[Beside]) -> Picture {
    let mut curves = vec![Curve {
        name: "all answered".to_owned(),
        mark: Mark::Guide,
        colour: 0,
        points: (-40..=130).map(|step| 10f64.powf(f64::from(step) / 20.0)).map(|rate| (rate, rate)).collect(),
    }];
    for (colour, ramp) in ramps.iter().enumerate() {
        curves
            .push(over_rates(ramp, ramp.name.clone(), Mark::Line, colour, |level| Some(level.answered_rate)));
    }
    curves.extend(of_others(beside, |point| point.responses));
    Picture {
        title: "Answered over offered".to_owned(),
        x: "requests/s that were due".to_owned(),
        y: "answers/s".to_owned(),
        scales: [Scale::Ratios; 2],
        curves,
        knees: knees(ramps, |number| number),
    }
}

fn errors(ramps: &[Ramp], beside: &[Beside]) -> Picture {
    let mut curves: Vec<Curve> = ramps
        .iter()
        .enumerate()
        .map(|(colour, ramp)| {
            over_rates(ramp, ramp.name.clone(), Mark::Line, colour, |level| Some(level.error_share() * 100.0))
        })
        .collect();
    curves.extend(of_others(beside, |point| point.errors * 100.0));
    Picture {
        title: "Requests that failed".to_owned(),
        x: "requests/s that were due".to_owned(),
        y: "%".to_owned(),
        scales: [Scale::Ratios, Scale::Linear],
        curves,
        knees: knees(ramps, |number| number),
    }
}

fn throughput(ramps: &[Ramp], beside: &[Beside]) -> Picture {
    let mut curves: Vec<Curve> = ramps
        .iter()
        .enumerate()
        .map(|(colour, ramp)| {
            over_rates(ramp, ramp.name.clone(), Mark::Line, colour, |level| Some(level.received_rate / 1e3))
        })
        .collect();
    curves.extend(of_others(beside, |point| point.io_rate / 1e3));
    Picture {
        title: "Throughput".to_owned(),
        x: "requests/s that were due".to_owned(),
        y: "kB/s".to_owned(),
        scales: [Scale::Ratios; 2],
        curves,
        knees: knees(ramps, |number| number),
    }
}

fn processor(ramps: &[Ramp]) -> Picture {
    let mut curves = Vec::new();
    for (number, ramp) in ramps.iter().enumerate() {
        let name = |of: &str| if ramps.len() == 1 { of.to_owned() } else { format!("{}, {of}", ramp.name) };
        let colour = |of: usize| if ramps.len() == 1 { of } else { number };
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        curves.push(over_rates(ramp, name("server"), Mark::Line, colour(0), |level| {
            percent(level.seen.cpu.server)
        }));
        curves.push(over_rates(ramp, name("client"), Mark::Thin, colour(1), |level| {
            percent(Some(level.seen.cpu.client))
        }));
        if ramps.len() == 1 {
            curves.push(over_rates(ramp, name("interrupts"), Mark::Thin, 2, |level| {
                percent(Some(level.seen.cpu.interrupts))
            }));
        }
    }
    curves.retain(|curve| !curve.points.is_empty());
    Picture {
        title: "Processor time".to_owned(),
        x: "requests/s that were due".to_owned(),
        y: "% of one core".to_owned(),
        scales: [Scale::Ratios, Scale::Linear],
        curves,
        knees: knees(ramps, |number| if ramps.len() == 1 { 0 } else { number }),
    }
}

fn connect_times(ramps: &[Ramp]) -> Picture {
    let mut curves = Vec::new();
    for (colour, ramp) in ramps.iter().enumerate() {
        let of = |pick: fn(&Times) -> f64| move |level: &Level| level.connect_ms.as_ref().map(pick);
        curves.push(over_rates(
            ramp,
            format!("{}, p99", ramp.name),
            Mark::Line,
            colour,
            of(|times| times.p99),
        ));
        curves.push(over_rates(ramp, "median".to_owned(), Mark::Thin, colour, of(|times| times.p50)));
    }
    Picture {
        title: "Time to connect".to_owned(),
        x: "requests/s that were due".to_owned(),
        y: "ms".to_owned(),
        scales: [Scale::Ratios; 2],
        curves,
        knees: knees(ramps, |number| number),
    }
}

/// Open connections over time, level behind level.
fn open(ramps: &[Ramp]) -> Picture {
    let curve = |(colour, ramp): (usize, &Ramp)| {
        let (mut start, mut points) = (0.0, Vec::new());
        for level in &ramp.levels {
            let each = level.seconds / level.open.len().max(1) as f64;
            // No connection at all would have no place on an axis of ratios.
            let at = |(number, open): (usize, &u32)| {
                (start + each * (number + 1) as f64, f64::from(*open).max(0.5))
            };
            points.extend(level.open.iter().enumerate().map(at));
            start += level.seconds;
        }
        Curve { name: ramp.name.clone(), mark: Mark::Thin, colour, points }
    };
    Picture {
        title: "Open connections over time, level behind level".to_owned(),
        x: "s".to_owned(),
        y: "connections (0 is drawn at 0.5)".to_owned(),
        scales: [Scale::Linear, Scale::Ratios],
        curves: ramps.iter().enumerate().map(curve).collect(),
        knees: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::knee::{find, tests::level};
    use super::super::level::Limit;
    use super::*;

    #[test]
    fn a_page_has_all_pictures_and_leaves_out_what_is_refused() {
        let mut levels =
            vec![level(100.0, 100.0, 1.0), level(200.0, 150.0, 900.0), level(77_777.0, 5.0, 1.0)];
        levels[2].limit = Limit::Client("late".into());
        let knee = find(&levels);
        let ramp = Ramp {
            name: "one <b>".into(),
            url: "http://x/".into(),
            workload: "http-3".into(),
            status: 200,
            requests_per_connection: Some(1),
            server_pid: None,
            levels,
            knee,
        };
        let origin = Provenance {
            version: "1".into(),
            command: "linerate lab ramp".into(),
            date: "2026-11-24 06:00".into(),
            machine: [].into(),
            rounds: 1,
        };
        let beside = super::super::record::beside(&crate::published::of("003").unwrap());
        for ramps in [vec![ramp.clone()], vec![ramp.clone(), ramp]] {
            let html = html(&ramps, &beside, &origin, 2.5).unwrap();
            for part in [
                "id=\"response\"",
                "id=\"answered\"",
                "id=\"errors\"",
                "id=\"throughput\"",
                "id=\"cpu\"",
                "id=\"connect\"",
                "id=\"open\"",
                "seed 003, 10 KiB",
                "one &lt;b&gt;",
                "refused",
                "late by more than 2.5 ms",
            ] {
                assert!(html.contains(part), "{part}");
            }
            let rate = response_times(&ramps, &beside);
            assert!(rate.curves.iter().all(|curve| curve.points.iter().all(|point| point.0 < 77_777.0)));
            assert!(html.len() < 250 << 10, "{}", html.len());
        }
    }
}
