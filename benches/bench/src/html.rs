//! A page with plots: for each row a bar for each contender, with the range of its rounds.

use crate::report::{Contestant, Report, RowReport, Verdict};
use crate::rows::Metric;
use crate::table;
use linerate_lab::measure::statistics::spread;
use linerate_lab::report::html::{STYLE, escape};
use std::fmt::Write as _;

/// What the page adds to the style sheet of all reports.
const BARS: &str = "td.MISSED{color:var(--poor);font-weight:600}td.met{color:var(--good)}td.refused{color:var(--soft)}
.bars{margin:.4rem 0 .8rem;overflow-x:auto}.bars svg text{font-size:12px;fill:var(--ink)}.bars svg .soft{fill:var(--soft)}
.bars .ours{fill:var(--s0)}.bars .missed{fill:var(--s1)}.bars .other{fill:var(--soft);opacity:.55}.bars line{stroke:var(--ink)}
#comparisons table{font-size:.8rem}#comparisons th,#comparisons td{padding:.3rem .45rem}
h3{margin:1.5rem 0 .2rem;font-size:1.02rem}";

const NAME: f64 = 190.0;
const WIDTH: f64 = 380.0;
const LINE: f64 = 20.0;

/// The page.
pub fn page(report: &Report) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>linerate: benchmarks</title>\n\
         <style>\n{STYLE}{BARS}</style>\n</head>\n<body>\n<header><h1>linerate beside others</h1>\
         <p>{}, {} rounds, {} s</p><p><code>{}</code></p></header>\n<nav aria-label=\"Contents\"><h2>Contents</h2><ul>\
         <li><a href=\"#comparisons\">Comparisons</a></li><li><a href=\"#rows\">Rows</a><ul>",
        escape(&report.date),
        report.rounds,
        report.took,
        escape(&report.command),
    );
    for (number, row) in report.rows.iter().enumerate() {
        let _ = write!(page, "<li><a href=\"#row-{number}\">{}</a></li>", escape(&row.name));
    }
    page += "</ul></li><li><a href=\"#machine\">Machine and versions</a></li></ul></nav>\n<main>\n";
    comparisons(&mut page, report);
    page += "<section id=\"rows\"><h2>Rows</h2>\n";
    for (number, row) in report.rows.iter().enumerate() {
        let _ = write!(page, "<h3 id=\"row-{number}\">{}</h3>", escape(&row.name));
        for (title, metric, scale) in plots(row) {
            page += &plot(row, &title, metric, scale);
        }
        for note in table::notes(row) {
            let _ = write!(page, "<p class=\"note\">{}</p>", escape(&note));
        }
    }
    page +=
        "</section>\n<section id=\"machine\"><h2>Machine and versions</h2><div class=\"wide\"><table><tbody>";
    for (name, value) in report.machine.iter().chain(&report.versions) {
        let _ = write!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td></tr>",
            escape(name),
            escape(value)
        );
    }
    page + "</tbody></table></div></section>\n</main>\n</body>\n</html>\n"
}

fn comparisons(page: &mut String, report: &Report) {
    *page += "<section id=\"comparisons\"><h2>Comparisons</h2><div class=\"wide\"><table><thead><tr>";
    for head in table::HEADS {
        let _ = write!(page, "<th scope=\"col\">{head}</th>");
    }
    *page += "</tr></thead><tbody>\n";
    for row in &report.rows {
        for judgement in &row.judgements {
            *page += "<tr>";
            for cell in table::cells(row, judgement) {
                let class = ["met", "MISSED", "refused"].into_iter().find(|class| *class == cell);
                let _ = write!(page, "<td class=\"{}\">{}</td>", class.unwrap_or(""), escape(&cell));
            }
            *page += "</tr>\n";
        }
    }
    *page += "</tbody></table></div></section>\n";
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
        "<div class=\"bars\"><svg width=\"{}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\
         <text class=\"soft\" x=\"{NAME}\" y=\"14\">{title}</text>",
        NAME + WIDTH + 80.0,
        title = escape(title)
    );
    for (at, (contestant, spread)) in measured.iter().enumerate() {
        let y = LINE * (at + 1) as f64;
        let x = |value: f64| NAME + value / most * WIDTH;
        let missed = row.judgements.iter().any(|judgement| {
            judgement.ours == contestant.name
                && judgement.metric == metric
                && judgement.verdict == Verdict::Missed
        });
        let class = match (contestant.name.starts_with("linerate"), missed) {
            (true, true) => "missed",
            (true, false) => "ours",
            _ => "other",
        };
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{NAME}\" y=\"{}\" width=\"{:.1}\" height=\"12\" \
             class=\"{class}\"/><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{}\" y2=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            NAME - 6.0,
            y + 12.0,
            escape(&contestant.name),
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
    svg + "</svg></div>\n"
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
