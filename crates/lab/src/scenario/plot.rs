//! The run over time as an SVG picture: goodput, congestion window, round-trip time and queue, one panel each.

use super::file::Side;
use super::outcome::{FlowSample, Outcome, Sample};
use crate::report::plot::SERIES;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Size of the picture in pixels.
const SIZE: (u32, u32) = (900, 980);
/// Height of the title above the panels in pixels.
const TITLE: u32 = 56;
/// Points of the goodput curve: each is a mean over the time since the one before.
const GOODPUT_POINTS: usize = 200;
/// More curves than this have no legend: it would leave no room for them.
const MAX_LEGEND: usize = 6;
const INK: RGBColor = RGBColor(0x1B, 0x1F, 0x23);
const FAINT: RGBColor = RGBColor(0xD9, 0xDD, 0xE1);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A curve with its name.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// One panel.
struct Panel {
    /// What is drawn; its unit is found from the largest value.
    title: &'static str,
    /// Units with their size, the largest last.
    units: &'static [(&'static str, f64)],
    curves: Vec<Curve>,
}

const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const BYTES: &[(&str, f64)] = &[("B", 1.0), ("KiB", 1_024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
const TIMES: &[(&str, f64)] = &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

/// The picture, or why there is none.
pub fn svg(outcome: &Outcome) -> Result<String, String> {
    let mut svg = String::new();
    draw(outcome, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(outcome: &Outcome, svg: &mut String) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = outcome.title.as_deref().unwrap_or("linerate sim");
    root.draw(&Text::new(title.to_owned(), (16, 14), ("sans-serif", 19).into_font().color(&INK)))?;
    let below = format!("seed {}", outcome.seed);
    root.draw(&Text::new(below, (16, 38), ("sans-serif", 13).into_font().color(&INK)))?;
    let (_, body) = root.split_vertically(TITLE);
    let panels = panels(outcome);
    let end = outcome.time.as_secs_f64().max(1e-6);
    for (area, panel) in body.split_evenly((panels.len(), 1)).iter().zip(&panels) {
        one(area, panel, end)?;
    }
    root.present()?;
    Ok(())
}

fn panels(outcome: &Outcome) -> Vec<Panel> {
    let samples = &outcome.samples;
    let of_flows = |points: &dyn Fn(usize) -> Vec<(f64, f64)>| {
        let curve = |(index, flow): (usize, &super::outcome::FlowOutcome)| {
            let from = flow.flow.from;
            let name = format!("{}: {} to {}", index + 1, from.name(), from.other().name());
            Curve { name, points: points(index) }
        };
        outcome.flows.iter().enumerate().map(curve).collect::<Vec<Curve>>()
    };
    let seen = |flow: usize, value: fn(&FlowSample) -> Option<f64>| {
        let point = |sample: &Sample| Some((sample.at.as_secs_f64(), value(sample.flows.get(flow)?)?));
        samples.iter().filter_map(point).collect::<Vec<_>>()
    };
    let queue = |side: Side| Curve {
        name: format!("from {}", side.name()),
        points: samples.iter().map(|s| (s.at.as_secs_f64(), *s.queued.of(side) as f64)).collect(),
    };
    let queues = [Side::Server, Side::Client];
    let queues = queues.into_iter().filter(|side| outcome.paths.of(*side).path.rate_bps.is_some());
    vec![
        Panel { title: "goodput", units: RATES, curves: of_flows(&|flow| goodput(samples, flow)) },
        Panel {
            title: "congestion window",
            units: BYTES,
            curves: of_flows(&|flow| seen(flow, |s| s.congestion_window.map(f64::from))),
        },
        Panel {
            title: "smoothed round-trip time",
            units: TIMES,
            curves: of_flows(&|flow| seen(flow, |s| s.rtt.map(|rtt| rtt.as_secs_f64()))),
        },
        Panel { title: "queue", units: BYTES, curves: queues.map(queue).collect() },
    ]
}

/// Bits per second that were read, between samples far enough apart.
fn goodput(samples: &[Sample], flow: usize) -> Vec<(f64, f64)> {
    let every = samples.len().div_ceil(GOODPUT_POINTS).max(1);
    let received = |sample: &Sample| sample.flows.get(flow).map_or(0, |flow| flow.received);
    let chosen: Vec<&Sample> = samples.iter().step_by(every).collect();
    chosen
        .windows(2)
        .filter(|pair| pair[1].at > pair[0].at)
        .map(|pair| {
            let time = (pair[1].at - pair[0].at).as_secs_f64();
            let bytes = received(pair[1]) - received(pair[0]);
            (pair[1].at.as_secs_f64(), bytes as f64 * 8.0 / time)
        })
        .collect()
}

fn one(area: &Area<'_>, panel: &Panel, end: f64) -> Result<(), Box<dyn Error>> {
    let most = panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
    let (unit, size) = *panel.units.iter().rev().find(|(_, size)| most >= *size).unwrap_or(&panel.units[0]);
    // The legend stands above the curves, not on them.
    let has_legend = (2..=MAX_LEGEND).contains(&panel.curves.len());
    let headroom = if has_legend { 1.1 + 0.14 * panel.curves.len() as f64 } else { 1.08 };
    let mut chart = ChartBuilder::on(area)
        .margin_left(10)
        .margin_right(24)
        .margin_bottom(8)
        .x_label_area_size(36)
        .y_label_area_size(62)
        .caption(format!("{}, {unit}", panel.title), ("sans-serif", 15).into_font().color(&INK))
        .build_cartesian_2d(0.0..end, 0.0..(most / size * headroom).max(1e-9))?;
    let text = |size: u32| ("sans-serif", size).into_font().color(&INK);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(FAINT)
        .axis_style(INK)
        .label_style(text(12))
        .x_labels(11)
        .y_labels(5)
        .x_desc("s")
        .axis_desc_style(text(12))
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .draw()?;
    for (index, curve) in panel.curves.iter().enumerate() {
        let colour = SERIES[index % SERIES.len()];
        let points = curve.points.iter().map(|(x, y)| (*x, y / size));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(1)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    if has_legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .label_font(text(12))
            .draw()?;
    }
    Ok(())
}

/// A number without needless decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
