//! A transfer drawn: sequence numbers over time, and round-trip time, bytes under way and window below.

use super::connection::Connection;
use super::flow::View;
use super::half::Half;
use super::sketch::{Stretch, Thinned};
use crate::report::plot::{FAINT, INK, SERIES, TEXT, WIDTH};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// Sizes of the pictures in pixels.
const SEQUENCES: (u32, u32) = (WIDTH, 350);
/// Of the one over time.
const COURSE: (u32, u32) = (WIDTH, 600);
/// Most points drawn of a kind: twice as many would fall on the same pixels.
const DRAWN: usize = 500;
/// Colours by what is drawn: data, window's edge, acknowledgements, held out of order, overtaken, sent again.
const DATA: usize = 0;
const EDGE: usize = 1;
const ACKS: usize = 2;
const HELD: usize = 3;
const LATE: usize = 4;
const AGAIN: usize = 6;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Axes and grid, the same in all charts.
macro_rules! mesh {
    ($chart:expr, $title:expr) => {{
        let text = ("sans-serif", TEXT).into_font().color(&INK);
        $chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(text.clone())
            .x_labels(6)
            .y_labels(6)
            .x_desc("s")
            .y_desc($title)
            .axis_desc_style(text)
            .x_label_formatter(&|x| short(*x))
            .y_label_formatter(&|y| short(*y))
            .draw()?;
    }};
}

/// Which part of a transfer is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The first packets, each of them.
    Beginning,
    /// All of it, thinned out.
    Whole,
}

/// The view of the main direction that is drawn, and its side.
fn drawn(connection: &Connection) -> Option<(&View, usize)> {
    let end = [connection.client, connection.server][connection.main];
    let side = |view: &View| usize::from(view.ends[0] != end);
    let view = connection
        .views
        .iter()
        .max_by_key(|view| (view.is_near(side(view)), view.halves[side(view)].wire.counts.packets))?;
    Some((view, side(view)))
}

/// Sequence numbers over time: data, acknowledgements, the window's edge, what was held and sent again.
///
/// # Errors
///
/// The transfer has nothing to draw, or the picture cannot be drawn.
pub fn sequences(connection: &Connection, part: Part) -> std::result::Result<String, String> {
    let (view, side) = drawn(connection).ok_or("no packets")?;
    let mut svg = String::new();
    draw_sequences(&view.halves[side], view.span_ns.0, part, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn points(thinned: &Thinned, part: Part) -> Vec<Stretch> {
    let all = match part {
        Part::Beginning => &thinned.first,
        Part::Whole => &thinned.points,
    };
    all.iter().step_by(all.len().div_ceil(DRAWN).max(1)).copied().collect()
}

fn draw_sequences(half: &Half, begin_ns: u64, part: Part, svg: &mut String) -> Result<()> {
    let sketch = &half.sketch;
    let [sent, again, late, acks, held] =
        [&sketch.sent, &sketch.again, &sketch.late, &sketch.acks, &sketch.held]
            .map(|kind| points(kind, part));
    let data = || sent.iter().chain(&again).chain(&late);
    let base =
        data().map(|point| point.start).min().or(acks.iter().map(|ack| ack.start).min()).ok_or("no data")?;
    let until_ns = match part {
        // As far as the first data goes; what was sent again may be from much later.
        Part::Beginning => sent.iter().map(|point| point.at_ns).max(),
        Part::Whole => data().chain(&acks).map(|point| point.at_ns).max(),
    };
    let until_ns = until_ns.unwrap_or(begin_ns).max(begin_ns.saturating_add(1));
    let within = |at_ns: u64| at_ns <= until_ns;
    let shown_acks = || acks.iter().filter(|ack| within(ack.at_ns));
    let ends = data().filter(|point| within(point.at_ns)).map(|point| point.end);
    let most = ends.chain(shown_acks().map(|ack| ack.start)).max().unwrap_or(base + 1);
    // The window's edge may lie far beyond what is sent: it is drawn as far as it helps.
    let height = most.saturating_sub(base).max(1) as f64;
    let edge = shown_acks().map(|ack| ack.end.saturating_sub(base)).max().unwrap_or(0) as f64;
    let top = height.max(edge.min(height * 1.6)) * 1.04;
    let (unit, size) = unit(top, &BYTES);
    let root = SVGBackend::with_string(svg, SEQUENCES).into_drawing_area();
    root.fill(&WHITE)?;
    let seconds = |at_ns: u64| at_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let bytes = |position: u64| position.saturating_sub(base) as f64 / size;
    let end_s = seconds(until_ns).max(1e-9);
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_right(24)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..end_s, 0.0..top / size)?;
    mesh!(chart, &format!("sequence, {unit}"));
    let line = |value: &dyn Fn(&Stretch) -> u64| {
        // Steps: what an acknowledgement tells holds until the next.
        let mut points = Vec::new();
        for ack in shown_acks() {
            let (x, y) = (seconds(ack.at_ns), bytes(value(ack)).min(top / size));
            if let Some((_, before)) = points.last().copied() {
                points.push((x, before));
            }
            points.push((x, y));
        }
        points
    };
    chart.draw_series(LineSeries::new(line(&|ack| ack.end), SERIES[EDGE].stroke_width(1)))?;
    chart.draw_series(LineSeries::new(line(&|ack| ack.start), SERIES[ACKS].stroke_width(1)))?;
    for (stretches, colour, width) in
        [(&held, HELD, 1), (&sent, DATA, 2), (&late, LATE, 3), (&again, AGAIN, 3)]
    {
        let style = SERIES[colour].stroke_width(width);
        let bar = |point: &Stretch| {
            let x = seconds(point.at_ns);
            // A segment of a long transfer is less than a pixel high.
            let low = bytes(point.start);
            PathElement::new([(x, low), (x, bytes(point.end).max(low + top / size / 250.0))], style)
        };
        chart.draw_series(stretches.iter().filter(|point| within(point.at_ns)).map(bar))?;
    }
    drop(chart);
    root.present()?;
    Ok(())
}

/// What the lines of [`sequences`] are, with the numbers of their colours.
pub const KEY: [(&str, usize); 6] = [
    ("data sent", DATA),
    ("acknowledged", ACKS),
    ("window's edge", EDGE),
    ("held out of order (SACK)", HELD),
    ("overtaken", LATE),
    ("sent again", AGAIN),
];

/// What the lines of [`course`] are, panel by panel.
pub const COURSE_KEY: [(&str, usize); 3] =
    [("data sent, under way", DATA), ("round-trip time", ACKS), ("window", EDGE)];

/// Round-trip time, bytes under way and window over time.
///
/// # Errors
///
/// The transfer has nothing to draw, or the picture cannot be drawn.
pub fn course(connection: &Connection) -> std::result::Result<String, String> {
    let (view, side) = drawn(connection).ok_or("no packets")?;
    let mut svg = String::new();
    draw_course(&view.halves[side], &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

const BYTES: [(&str, f64); 4] =
    [("B", 1.0), ("KiB", 1_024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)];
const TIMES: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const RATES: [(&str, f64); 4] = [("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)];

fn unit(most: f64, units: &[(&'static str, f64)]) -> (&'static str, f64) {
    units.iter().rev().find(|(_, size)| most >= *size).or(units.first()).copied().unwrap_or(("", 1.0))
}

/// A panel: what is drawn, its units, the largest value, its lines.
type Panel = (&'static str, &'static [(&'static str, f64)], f64, Vec<Line>);
/// A line of a panel: its colour, and its points in seconds and a basic unit.
type Line = (usize, Vec<(f64, f64)>);

fn draw_course(half: &Half, svg: &mut String) -> Result<()> {
    let timeline = &half.sender.timeline;
    let step_s = timeline.step_ns as f64 / 1e9;
    let steps = timeline.steps();
    let count = steps.len();
    let together = count.div_ceil(DRAWN).max(1);
    let of = |value: &dyn Fn(&super::timeline::Step) -> Option<f64>| -> Vec<(f64, f64)> {
        let group = |(index, steps): (usize, &[super::timeline::Step])| {
            let values: Vec<f64> = steps.iter().filter_map(value).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then_some(((index * together) as f64 * step_s, mean))
        };
        steps.chunks(together).enumerate().filter_map(group).collect()
    };
    let rate = of(&|step| Some(step.sent as f64 / step_s));
    let rtt = of(&|step| step.rtt_mean_ns().map(|ns| ns / 1e9));
    let flight = of(&|step| (step.flight_ns > 0.0).then_some(step.flight_ns / timeline.step_ns as f64));
    let window = of(&|step| (step.windows > 0).then_some(step.window_most as f64));
    let end_s = (count as f64 * step_s).max(1e-9);
    let most = |line: &[(f64, f64)]| line.iter().map(|point| point.1).fold(0.0, f64::max);
    // A window far above what is under way leaves the rest of the panel flat: it is cut off there.
    let flight_top = most(&flight).max(most(&window).min(most(&flight) * 2.0));
    let window: Vec<(f64, f64)> = window.into_iter().map(|(x, y)| (x, y.min(flight_top * 1.03))).collect();
    let root = SVGBackend::with_string(svg, COURSE).into_drawing_area();
    root.fill(&WHITE)?;
    let panels: [Panel; 3] = [
        ("data sent", &RATES, most(&rate), vec![(DATA, rate)]),
        ("round-trip time", &TIMES, most(&rtt), vec![(ACKS, rtt)]),
        ("under way, and window", &BYTES, flight_top, vec![(EDGE, window), (DATA, flight)]),
    ];
    for (area, (title, units, most, lines)) in root.split_evenly((3, 1)).iter().zip(panels) {
        panel(area, title, unit(most, units), most, end_s, &lines)?;
    }
    root.present()?;
    Ok(())
}

fn panel(
    area: &Area<'_>,
    title: &str,
    (unit, size): (&str, f64),
    most: f64,
    end_s: f64,
    lines: &[Line],
) -> Result<()> {
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..end_s, 0.0..(most / size * 1.08).max(1e-9))?;
    mesh!(chart, &format!("{title}, {unit}"));
    for (colour, points) in lines {
        let points = points.iter().map(|(x, y)| (*x, y / size));
        chart.draw_series(LineSeries::new(points, SERIES[*colour].stroke_width(1)))?;
    }
    Ok(())
}

/// A number without needless decimals.
fn short(value: f64) -> String {
    let text =
        if value.abs() >= 0.01 || value == 0.0 { format!("{value:.3}") } else { format!("{value:.6}") };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
