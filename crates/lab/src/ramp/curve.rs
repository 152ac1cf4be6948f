//! A ramp as a curve of text: what a terminal shows without a file.

use super::run::Ramp;
use super::table::{mark, rates};
use std::fmt::Write as _;

/// Columns of the longest bar.
const WIDTH: f64 = 44.0;
/// Eighths of a column.
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The p99 of response times over the rate, on a scale of equal ratios; refused levels have no bar.
pub fn text(ramp: &Ramp) -> String {
    let shown = |ms: f64| if ms.is_finite() && ms > 0.0 { Some(ms) } else { None };
    let values: Vec<f64> = ramp
        .levels
        .iter()
        .filter(|level| level.is_valid())
        .filter_map(|level| shown(level.p99_ms()))
        .collect();
    let (Some(least), Some(most)) =
        (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max))
    else {
        return String::new();
    };
    // The shortest bar is a twentieth of the longest.
    let decades = (most / least).log10().max(0.5);
    let mut text = format!("{:>12}  p99 of response times (bars: logarithm), {}\n", "requests/s", ramp.name);
    for level in &ramp.levels {
        let rate = rates(level.offered_rate);
        let bar = match shown(level.p99_ms()).filter(|_| level.is_valid()) {
            Some(ms) => {
                let share = 0.05 + 0.95 * (ms / least).log10() / decades;
                format!("{} {}", bar(share * WIDTH), milliseconds(ms))
            }
            None => String::new(),
        };
        let mark = mark(ramp, level);
        let _ = writeln!(text, "{}", format!("{rate:>12}  {bar}  {mark}").trim_end());
    }
    text
}

fn bar(columns: f64) -> String {
    let whole = columns as usize;
    let mut bar = "█".repeat(whole);
    let part = ((columns - whole as f64) * 8.0) as usize;
    bar.extend(part.checked_sub(1).and_then(|part| PARTS.get(part)));
    bar
}

fn milliseconds(ms: f64) -> String {
    match ms {
        1000.0.. => format!("{:.1} s", ms / 1e3),
        10.0.. => format!("{ms:.0} ms"),
        1.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::knee::{find, tests::level};
    use super::super::level::Limit;
    use super::*;

    #[test]
    fn bars_grow_with_their_logarithm() {
        let mut levels = vec![
            level(100.0, 100.0, 1.0),
            level(200.0, 200.0, 10.0),
            level(400.0, 9.0, 100.0),
            level(800.0, 9.0, 100.0),
        ];
        levels[2].limit = Limit::Server("slow".into());
        levels[3].limit = Limit::Client("late".into());
        let knee = find(&levels);
        let ramp = Ramp {
            name: "x".into(),
            url: String::new(),
            workload: String::new(),
            status: 200,
            requests_per_connection: None,
            server_pid: None,
            levels,
            knee,
        };
        let text = text(&ramp);
        let lines: Vec<&str> = text.lines().collect();
        let length = |line: &str| line.matches('█').count();
        assert_eq!(
            (length(lines[1]), length(lines[2]), length(lines[3]), length(lines[4])),
            (2, 23, 44, 0),
            "{text}"
        );
        assert!(lines[2].ends_with("10 ms  knee") && lines[3].ends_with("100 ms  server"), "{text}");
        assert!(lines[4].ends_with("refused (client)"), "{text}");
    }
}
