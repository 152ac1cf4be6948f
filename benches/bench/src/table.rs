//! The table of a run: a line for each comparison.

use crate::report::{Judgement, RowReport, Verdict};
use crate::rows::Metric;

/// Heads of the columns.
pub const HEADS: [&str; 9] = ["row", "ours", "beside", "figure", "ours", "theirs", "ratio", "goal", ""];

/// A number with three figures or so.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "-".into(),
        v if v >= 100_000.0 => format!("{:.0}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The cells of a comparison.
pub fn cells(row: &RowReport, judgement: &Judgement) -> [String; 9] {
    let (figure, scale) = match judgement.metric {
        Metric::Rate => (row.unit.clone(), row.scale),
        Metric::PerCpu => (format!("{} a CPU s", row.unit.trim_end_matches("/s")), row.scale),
        Metric::CpuPerGb => ("CPU s/GB".into(), 1.0),
        Metric::Loss => ("% lost".into(), 0.01),
        Metric::P50 => ("p50, us".into(), 1e-6),
        Metric::P99 => ("p99, us".into(), 1e-6),
        Metric::P999 => ("p99.9, us".into(), 1e-6),
    };
    let most = !matches!(judgement.metric, Metric::Rate | Metric::PerCpu);
    let verdict = match &judgement.verdict {
        Verdict::Met => "met",
        Verdict::Missed => "MISSED",
        Verdict::Refused(_) => "refused",
    };
    [
        row.name.clone(),
        judgement.ours.clone(),
        judgement.other.clone(),
        figure,
        short(judgement.our_value / scale),
        short(judgement.other_value / scale),
        format!(
            "{:.2} ({:.2}-{:.2}, {} runs)",
            judgement.ratio.median, judgement.ratio.least, judgement.ratio.most, judgement.runs
        ),
        format!("{} {:.2}", if most { "<=" } else { ">=" }, judgement.goal),
        verdict.into(),
    ]
}

/// What is to be said below the tables of a row: why it is refused, and what else is to be known.
pub fn notes(row: &RowReport) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for judgement in &row.judgements {
        let reason = match &judgement.verdict {
            Verdict::Refused(reason) => Some(reason),
            _ => None,
        };
        notes.extend(reason.into_iter().chain(&judgement.remarks).cloned());
    }
    for contestant in row.contestants.iter().filter(|contestant| contestant.samples.is_empty()) {
        let reason = contestant.failure.as_deref().unwrap_or("it was stopped");
        let reason = reason.lines().next().unwrap_or_default();
        notes.push(format!("{} was not measured: {reason}", contestant.name));
    }
    notes.sort();
    notes.dedup();
    notes
}

/// The table as text with aligned columns.
pub fn text(rows: &[RowReport]) -> String {
    let mut lines = vec![HEADS.map(str::to_owned)];
    for row in rows {
        lines.extend(row.judgements.iter().map(|judgement| cells(row, judgement)));
    }
    let mut widths = [0; 9];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in &lines {
        let padded: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += padded.join("  ").trim_end();
        text.push('\n');
    }
    for row in rows {
        for note in notes(row) {
            text += &format!("{}: {note}\n", row.name);
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::Contestant;
    use crate::report::tests::sample;
    use linerate_lab::measure::statistics::Spread;

    pub(crate) fn row(verdict: Verdict) -> RowReport {
        let contestant = |name: &str, units| Contestant {
            name: name.into(),
            samples: vec![sample(units, 1.0, 0.5); 3],
            ..Contestant::default()
        };
        RowReport {
            name: "tap-in".into(),
            unit: "Gb/s".into(),
            scale: 0.125e9,
            contestants: vec![contestant("linerate, TAP", 2.5e9), contestant("floor, <TAP>", 2e9)],
            judgements: vec![Judgement {
                ours: "linerate, TAP".into(),
                other: "floor, <TAP>".into(),
                metric: Metric::Rate,
                our_value: 2.5e9,
                other_value: 2e9,
                ratio: Spread { median: 1.25, least: 1.2, most: 1.3 },
                goal: 0.9,
                runs: 3,
                verdict,
                remarks: Vec::new(),
            }],
        }
    }

    #[test]
    fn a_line() {
        let text = text(&[row(Verdict::Met)]);
        let line: Vec<&str> = text.lines().nth(1).unwrap().split("  ").map(str::trim).collect();
        let line: Vec<&str> = line.into_iter().filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            line,
            [
                "tap-in",
                "linerate, TAP",
                "floor, <TAP>",
                "Gb/s",
                "20.0",
                "16.0",
                "1.25 (1.20-1.30, 3 runs)",
                ">= 0.90",
                "met"
            ]
        );
    }

    #[test]
    fn a_refusal_says_why() {
        let text = text(&[row(Verdict::Refused("the client was the limit".into()))]);
        assert!(text.contains("refused\ntap-in: the client was the limit\n"), "{text}");
    }

    #[test]
    fn numbers() {
        let found = [1_234_567.0, 1_234.0, 12.34, 1.234, 0.1234, f64::NAN].map(short);
        assert_eq!(found, ["1235k", "1234", "12.3", "1.23", "0.123", "-"]);
    }
}
