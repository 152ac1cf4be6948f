//! `docs/benchmarks.svg`: a few rows as a picture, ours beside peers and floor.

use crate::report::Report;
use crate::rows::Metric;
use crate::table;
use linerate_lab::measure::statistics::{Spread, spread};
use linerate_lab::report::html::escape;
use std::fmt::Write as _;

/// What is drawn: the rows, which share a unit, a title, and the figure.
const PANELS: [(&[&str], &str, Metric); 7] = [
    (&["tap-in", "packet-in"], "TCP into the server: Gb/s", Metric::Rate),
    (&["tap-out", "packet-out"], "TCP out of the server: Gb/s", Metric::Rate),
    (
        &["http-354-keep-64"],
        "HTTP, 354 bytes, 64 connections kept: requests for a CPU second",
        Metric::PerCpu,
    ),
    (&["http-354-close-64"], "HTTP, 354 bytes, a connection each: requests for a CPU second", Metric::PerCpu),
    (&["file-32m"], "HTTP, 32 MiB: MB for a CPU second", Metric::PerCpu),
    (&["ftp-256m-down"], "FTP down, 256 MiB: MB/s", Metric::Rate),
    (&["ftp-256m-up"], "FTP up, 256 MiB: MB/s", Metric::Rate),
];

/// Narrow, so that it can be read on a phone.
const WIDTH: f64 = 600.0;
const NAME: f64 = 215.0;
const BARS: f64 = 300.0;
const LINE: f64 = 22.0;
const TITLE: f64 = 34.0;
const MARGIN: f64 = 12.0;

/// The picture; `None` where none of its rows was measured.
pub fn svg(report: &Report) -> Option<String> {
    let panels: Vec<(Vec<Bar<'_>>, &str)> =
        PANELS.iter().map(|(names, title, metric)| (bars(report, names, *metric), *title)).collect();
    let panels: Vec<_> = panels.into_iter().filter(|(bars, _)| !bars.is_empty()).collect();
    if panels.is_empty() {
        return None;
    }
    let mut body = String::new();
    let mut y = MARGIN;
    text(
        &mut body,
        MARGIN,
        y + 16.0,
        "start",
        "#1b1f23",
        "linerate (blue) beside others (grey) and beside a bare responder (white)",
    );
    text(
        &mut body,
        MARGIN,
        y + 36.0,
        "start",
        "#57606a",
        &format!("longer is better; medians and ranges of {} rounds, {} UTC", report.rounds, report.date),
    );
    y += 40.0;
    for (bars, title) in panels {
        text(&mut body, MARGIN, y + 24.0, "start", "#1b1f23", title);
        y += TITLE;
        y += panel(&mut body, &bars, y);
    }
    let height = y + MARGIN;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"15\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
    ))
}

/// A contender's name and figure.
type Bar<'a> = (&'a str, Spread);

/// What the contenders of these rows reached, each once.
fn bars<'a>(report: &'a Report, names: &[&str], metric: Metric) -> Vec<Bar<'a>> {
    let mut bars: Vec<Bar<'_>> = Vec::new();
    for row in names.iter().filter_map(|name| report.rows.iter().find(|row| row.name == *name)) {
        for contestant in &row.contestants {
            let values = contestant.samples.iter().map(|sample| sample.value(metric) / row.scale);
            if let Some(spread) = spread(values)
                && !bars.iter().any(|(name, _)| *name == contestant.name)
            {
                bars.push((&contestant.name, spread));
            }
        }
    }
    bars
}

/// Draws the bars; returns how high they are.
fn panel(body: &mut String, bars: &[Bar<'_>], top: f64) -> f64 {
    let most = bars.iter().map(|(_, spread)| spread.most).fold(1e-12, f64::max);
    for (at, (name, spread)) in bars.iter().enumerate() {
        let y = top + LINE * at as f64;
        let x = |value: f64| NAME + value / most * BARS;
        let (fill, edge) = match name {
            name if name.starts_with("linerate") => ("#2b6cb0", "#2b6cb0"),
            name if name.starts_with("floor") => ("#fff", "#57606a"),
            _ => ("#b5bac0", "#b5bac0"),
        };
        text(body, NAME - 8.0, y + 15.0, "end", "#1b1f23", name);
        let _ = writeln!(
            body,
            "<rect x=\"{NAME}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" fill=\"{fill}\" stroke=\"{edge}\"/>\
             <path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"#1b1f23\"/>",
            y + 3.0,
            x(spread.median) - NAME,
            x(spread.least),
            y + 10.0,
            x(spread.most),
        );
        text(body, x(spread.most) + 6.0, y + 15.0, "start", "#57606a", &table::short(spread.median));
    }
    LINE * bars.len() as f64
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, fill: &str, text: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{}</text>",
        escape(text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;
    use crate::rows;

    #[test]
    fn every_contender_of_a_row_has_a_bar() {
        let report = Report { rows: vec![table::tests::row(Verdict::Met)], ..Report::default() };
        let svg = svg(&report).unwrap();
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(svg.contains("floor, &lt;TAP&gt;") && svg.contains(">20.0<"), "{svg}");
        assert_eq!(super::svg(&Report::default()), None);
    }

    #[test]
    fn what_is_drawn_is_measured() {
        let rows = rows::all();
        for name in PANELS.iter().flat_map(|(names, ..)| names.iter()) {
            assert!(rows.iter().any(|row| row.name == *name && !row.long), "{name}");
        }
    }
}
