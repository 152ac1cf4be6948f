//! A page with plots: for each row a bar for each contender, with the range of its rounds.

use crate::report::{Contestant, Report, RowReport, Verdict};
use crate::rows::Metric;
use crate::table;
use linerate_lab::measure::statistics::spread;
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px sans-serif;margin:2em auto;max-width:64em;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}td,th{padding:2px 8px;text-align:left;border-bottom:1px solid #ddd}
.MISSED{color:#b00020}.met{color:#1b6e20}.refused{color:#777}h3{margin-bottom:.2em}svg text{font:12px sans-serif}";

const NAME: f64 = 190.0;
const WIDTH: f64 = 380.0;
const LINE: f64 = 20.0;

/// The text, to stand in HTML or SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The page.
pub fn page(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>linerate: benchmarks</title><style>{STYLE}</style>
<h1>linerate beside others</h1><p>{}, <code>{}</code>, {} rounds, {} s</p><table>",
        escaped(&report.date),
        escaped(&report.command),
        report.rounds,
        report.took
    );
    for (name, value) in report.machine.iter().chain(&report.versions) {
        let _ = write!(page, "<tr><td>{}</td><td>{}</td></tr>", escaped(name), escaped(value));
    }
    page += "</table><h2>Comparisons</h2><table><tr>";
    for head in table::HEADS {
        let _ = write!(page, "<th>{head}</th>");
    }
    page += "</tr>";
    for row in &report.rows {
        for judgement in &row.judgements {
            page += "<tr>";
            for cell in table::cells(row, judgement) {
                let class = ["met", "MISSED", "refused"].into_iter().find(|class| *class == cell);
                let _ = write!(page, "<td class=\"{}\">{}</td>", class.unwrap_or(""), escaped(&cell));
            }
            page += "</tr>\n";
        }
    }
    page += "</table><h2>Rows</h2>";
    for row in &report.rows {
        let _ = write!(page, "<h3>{}</h3>", escaped(&row.name));
        for (title, metric, scale) in plots(row) {
            page += &plot(row, &title, metric, scale);
        }
        for note in table::notes(row) {
            let _ = write!(page, "<p>{}</p>", escaped(&note));
        }
    }
    page + "</html>\n"
}

/// What of a row is drawn: its rate, and processor time beside it.
fn plots(row: &RowReport) -> Vec<(String, Metric, f64)> {
    if row.has_latency() {
        return [("p50", Metric::P50), ("p99", Metric::P99), ("p99.9", Metric::P999)]
            .map(|(name, metric)| (format!("{name}, microseconds"), metric, 1e-6))
            .to_vec();
    }
    let rate = (row.unit.clone(), Metric::Rate, row.scale);
    let per_cpu = format!("{} for a CPU second of the server", row.unit.trim_end_matches("/s"));
    if row.scale > 1.0 {
        vec![rate, ("CPU seconds of the server for 1 GB".into(), Metric::CpuPerGb, 1.0)]
    } else {
        vec![rate, (per_cpu, Metric::PerCpu, 1.0)]
    }
}

fn plot(row: &RowReport, title: &str, metric: Metric, scale: f64) -> String {
    let measured: Vec<(&Contestant, _)> = row
        .contestants
        .iter()
        .filter_map(|contestant| {
            let values = contestant.samples.iter().map(|sample| sample.value(metric) / scale);
            Some((contestant, spread(values)?))
        })
        .collect();
    let most = measured.iter().map(|(_, spread)| spread.most).fold(1e-12, f64::max);
    let height = LINE * (measured.len() + 1) as f64;
    let mut svg = format!(
        "<svg width=\"{}\" height=\"{height}\" role=\"img\"><text x=\"{NAME}\" y=\"14\" fill=\"#555\">{}</text>",
        NAME + WIDTH + 80.0,
        escaped(title)
    );
    for (at, (contestant, spread)) in measured.iter().enumerate() {
        let y = LINE * (at + 1) as f64;
        let x = |value: f64| NAME + value / most * WIDTH;
        let missed = row.judgements.iter().any(|judgement| {
            judgement.ours == contestant.name
                && judgement.metric == metric
                && judgement.verdict == Verdict::Missed
        });
        let colour = match (contestant.name.starts_with("linerate"), missed) {
            (true, true) => "#c0504d",
            (true, false) => "#2f6db3",
            _ => "#a8a8a8",
        };
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{NAME}\" y=\"{}\" width=\"{:.1}\" height=\"12\" \
             fill=\"{colour}\"/><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#222\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            NAME - 6.0,
            y + 12.0,
            escaped(&contestant.name),
            y + 2.0,
            x(spread.median) - NAME,
            x(spread.least),
            x(spread.most),
            y + 8.0,
            y + 8.0,
            x(spread.most) + 6.0,
            y + 12.0,
            table::short(spread.median)
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_row_with_its_bars() {
        let report = Report { rows: vec![table::tests::row(Verdict::Missed)], ..Report::default() };
        let page = page(&report);
        assert_eq!(page.matches("<svg").count(), 2);
        assert_eq!(page.matches("<rect").count(), 4);
        assert!(page.contains("floor, &lt;TAP&gt;") && !page.contains("<TAP>"));
        assert!(page.contains("<td class=\"MISSED\">MISSED</td>"));
    }
}
