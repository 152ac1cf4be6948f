//! The explanation as text: a table of connections, then what is to be said of the largest.

use super::Analysis;
use super::connection::{Connection, Direction, Place};
use super::histogram::Histogram;
use super::verdict::Verdict;
use crate::quantity::{byte_rate, bytes, count, share, span};
use crate::report::grid::{Cell, Grid, GridFormat};
use std::fmt::Write as _;
use std::time::Duration;

/// Most rows of the table.
const ROWS: usize = 40;

/// The table of connections.
pub fn table(analysis: &Analysis) -> Grid {
    let headers =
        ["", "from", "to", "cause", "sure", "rate", "data", "time", "RTT least, median, p95", "again"];
    let mut grid =
        Grid::new("connections", "Connections, by bytes of data; each in its main direction", &headers);
    for connection in analysis.connections.iter().take(ROWS) {
        let main = &connection.directions[connection.main];
        let ends = [connection.client, connection.server];
        grid.rows.push(vec![
            Cell::number(connection.number as f64, 0),
            Cell::text(ends[connection.main].to_string()),
            Cell::text(ends[1 - connection.main].to_string()),
            Cell::text(connection.verdict.cause.name()),
            Cell::text(sure(&connection.verdict)),
            Cell::text(carried(main)),
            Cell::text(bytes(main.bytes)),
            Cell::text(lasted(main)),
            Cell::text(rtt(main)),
            Cell::text(again(main)),
        ]);
    }
    if analysis.connections.len() > ROWS {
        grid.notes.push(format!("and {} more", count((analysis.connections.len() - ROWS) as u64)));
    }
    grid
}

/// How sure a verdict is, in a word.
pub fn sure(verdict: &Verdict) -> &'static str {
    match verdict.confidence {
        // The deciding figure is half as large again as it must be, or a tenth.
        0.5.. => "yes",
        0.1.. => "fairly",
        _ => "barely",
    }
}

/// How long data came; nothing of a single packet.
pub fn lasted(direction: &Direction) -> String {
    match direction.time_s {
        0.0 => "-".to_owned(),
        time_s => span(Duration::from_secs_f64(time_s)),
    }
}

/// Its rate, if that can be told: what was sent in less than a round trip tells how fast the sender is, not what got through.
pub fn carried(direction: &Direction) -> String {
    let rtt_s = least_rtt(direction).map_or(0.0, |ns| ns as f64 / 1e9);
    match direction.time_s > 0.0 && direction.time_s >= rtt_s {
        true => byte_rate(direction.goodput_bps),
        false => "-".to_owned(),
    }
}

/// The least round trip, those of handshake and timestamps included, in nanoseconds.
fn least_rtt(direction: &Direction) -> Option<u64> {
    direction.rtt_least_ns.or(direction.rtt_ns.least())
}

fn again(direction: &Direction) -> String {
    let segments = direction.counts.segments.max(1);
    match direction.again {
        0 => "0".to_owned(),
        again => format!("{} ({})", count(again), share(again as f64 / segments as f64)),
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), |ns| span(Duration::from_nanos(ns)))
}

fn rtt(direction: &Direction) -> String {
    let rtt = &direction.rtt_ns;
    match (least_rtt(direction), rtt.median()) {
        (None, None) => "-".to_owned(),
        (least, median) => format!("{}, {}, {}", time(least), time(median), time(rtt.quantile(0.95))),
    }
}

/// The whole explanation; details of the `top` largest connections, or of one alone; for a terminal of `width` columns.
pub fn text(analysis: &Analysis, top: usize, only: Option<usize>, width: Option<u16>) -> String {
    let mut text = format!(
        "frames: {}, TCP segments: {}, connections: {}\n\n",
        count(analysis.frames),
        count(analysis.segments),
        count(analysis.connections.len() as u64)
    );
    if !analysis.connections.is_empty() {
        text.push_str(&table(analysis).render(GridFormat::Terminal, width));
        text.push('\n');
    }
    for connection in chosen(analysis, top, only) {
        details(&mut text, connection);
    }
    for note in analysis.notes() {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The connections that details are wanted of.
pub fn chosen(analysis: &Analysis, top: usize, only: Option<usize>) -> Vec<&Connection> {
    let wanted = |connection: &&Connection| match only {
        Some(number) => connection.number == number,
        None => connection.number <= top,
    };
    analysis.connections.iter().filter(wanted).collect()
}

fn details(text: &mut String, connection: &Connection) {
    let ends = [connection.client, connection.server];
    let main = &connection.directions[connection.main];
    let _ = writeln!(
        text,
        "{}. {} to {}: {}",
        connection.number,
        ends[connection.main],
        ends[1 - connection.main],
        connection.verdict.cause
    );
    for sentence in &connection.verdict.because {
        let _ = writeln!(text, "   {sentence}");
    }
    if !connection.verdict.advice.is_empty() {
        let _ = writeln!(text, "   advice: {}", connection.verdict.advice);
    }
    if let Some(tell) = &connection.verdict.would_tell {
        let _ = writeln!(text, "   would tell: {tell}");
    }
    if let Some(runner_up) = connection.verdict.runner_up {
        let _ = writeln!(
            text,
            "   closest other: {runner_up}; the deciding figure is {} away from it",
            share(connection.verdict.confidence)
        );
    }
    for (name, value) in figures(main) {
        let _ = writeln!(text, "     {name:<22} {value}");
    }
    for note in &connection.notes {
        let _ = writeln!(text, "   note: {note}");
    }
    text.push('\n');
}

fn spread(histogram: &Histogram, show: impl Fn(u64) -> String) -> String {
    spread_from(histogram.least(), histogram, show)
}

/// The same where the least is known from elsewhere.
fn spread_from(least: Option<u64>, histogram: &Histogram, show: impl Fn(u64) -> String) -> String {
    match (least, histogram.median(), histogram.quantile(0.95), histogram.most()) {
        (Some(least), Some(median), Some(high), Some(most)) => {
            format!("{} least, {} median, {} p95, {} most", show(least), show(median), show(high), show(most))
        }
        _ => "-".to_owned(),
    }
}

/// The figures of a direction with their names.
pub fn figures(direction: &Direction) -> Vec<(&'static str, String)> {
    let counts = &direction.counts;
    let ns = |ns: u64| span(Duration::from_nanos(ns));
    let seen_at = match direction.seen_at {
        Place::Sender => "the sender's side of the path",
        Place::Receiver => "the receiver's side of the path",
    };
    let scale = match direction.window_scale {
        Some(scale) => format!("scale {scale}"),
        None => "scale not seen".to_owned(),
    };
    let per_ack =
        direction.segments_per_ack.map_or("-".to_owned(), |segments| format!("{segments:.1} segments"));
    let mut figures = vec![
        ("captured at", seen_at.to_owned()),
        (
            "data",
            format!(
                "{} in {} segments of at most {} B",
                bytes(direction.bytes),
                count(counts.segments),
                direction.mss
            ),
        ),
        ("round trip", spread_from(least_rtt(direction), &direction.rtt_ns, ns)),
        ("under way", spread(&direction.flight, bytes)),
        ("window", format!("{}; {scale}", spread(&direction.window, bytes))),
        ("each acknowledgement", format!("{per_ack}, {} after the data", time(direction.answer_ns.median()))),
    ];
    figures.extend(events(direction));
    if let Some(variation) = direction.gap_variation {
        figures.push((
            "time between packets",
            format!("{}; variation {variation:.2}", spread(&direction.gap_ns, ns)),
        ));
    }
    if direction.congestion_marks + counts.congestion_echoes > 0 {
        let marks = format!(
            "{} packets marked, {} echoes, slowed down {} times",
            count(direction.congestion_marks),
            count(counts.congestion_echoes),
            count(counts.slowed)
        );
        figures.push(("ECN", marks));
    }
    figures
}

/// What happened, as figures with their names.
fn events(direction: &Direction) -> Vec<(&'static str, String)> {
    let counts = &direction.counts;
    let ns = |ns: u64| span(Duration::from_nanos(ns));
    vec![
        (
            "sent again",
            format!(
                "{} upon acknowledgements, {} upon time, {} needless, {} lost before the capture; {} spurious",
                count(counts.fast),
                count(counts.timeouts),
                count(counts.needless),
                count(counts.filled),
                count(direction.spurious)
            ),
        ),
        (
            "out of order",
            format!(
                "{} overtaken before the capture, {} behind it",
                count(counts.late),
                count(counts.late_beyond)
            ),
        ),
        (
            "duplicates",
            format!(
                "{} acknowledgements, {} segments told twice (D-SACK), {} duplicated on the way",
                count(counts.duplicate_acks),
                count(counts.dsacks),
                count(direction.duplicated)
            ),
        ),
        (
            "window full, closed",
            format!(
                "{} segments at its edge, closed {} times for {}, {} updates, {} probes",
                count(counts.window_full),
                count(counts.zero_windows),
                ns(counts.zero_window_ns),
                count(counts.window_updates),
                count(counts.probes)
            ),
        ),
        (
            "application's gaps",
            match direction.idle_ns.count() {
                0 => "none".to_owned(),
                gaps => format!("{}: {}", count(gaps), spread(&direction.idle_ns, ns)),
            },
        ),
        ("at a stroke", spread(&direction.burst, bytes)),
    ]
}
