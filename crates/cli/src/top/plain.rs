//! A report as plain text, for scripts and logs.

use super::columns::{Column, shown};
use super::watch::Watch;
use linerate_lab::quantity::{bytes, count, rate};
use std::fmt::Write as _;

/// Wide enough for all columns.
const WIDTH: u16 = u16::MAX;

/// The text.
pub fn text(watch: &Watch) -> String {
    let mut out = String::new();
    let Some(report) = watch.report() else { return out };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "linerate {} on {}", report.version, report.device);
    if let Some(totals) = watch.totals() {
        let _ = writeln!(
            out,
            "in {}  out {}  connections {}  sent again {:.0}/s  drops {:.0}/s  cpu {:.0} %",
            rate(totals.receive_rate),
            rate(totals.send_rate),
            count(report.connections.total),
            totals.retransmits,
            totals.drops,
            totals.cpu * 100.0
        );
    }
    let memory = &report.memory;
    let _ = write!(
        out,
        "memory {} of {}, {} at most",
        bytes(memory.used),
        bytes(memory.limit),
        bytes(memory.peak)
    );
    for pool in &report.pools {
        let _ = write!(out, "; {} {} of {}", pool.name, pool.total.saturating_sub(pool.free), pool.total);
    }
    out.push('\n');
    for drop in watch.drops().iter().filter(|drop| drop.growth > 0.0) {
        let _ = writeln!(out, "dropping: {} {} (+{:.1}/s)", drop.reason, count(drop.total), drop.growth);
    }
    let rows = watch.rows();
    if rows.is_empty() {
        return out;
    }
    out.push('\n');
    let columns: Vec<&Column> = shown(WIDTH).collect();
    line(&mut out, &columns, columns.iter().map(|column| column.title.to_owned()).collect());
    for conn in rows {
        line(&mut out, &columns, columns.iter().map(|column| (column.value)(conn)).collect());
        let _ = writeln!(out, "  {}: {}; {}", conn.bottleneck, conn.because, conn.advice);
    }
    out
}

fn line(out: &mut String, columns: &[&Column], cells: Vec<String>) {
    let mut text = String::new();
    for (column, cell) in columns.iter().zip(cells) {
        let width = usize::from(column.width);
        let _ = match column.is_number {
            true => write!(text, "{cell:>width$}  "),
            false => write!(text, "{cell:<width$}  "),
        };
    }
    let _ = writeln!(out, "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_connection_and_one_that_says_why() {
        let watch = crate::top::view::tests::busy();
        let text = text(&watch);
        for part in [
            "out 1 Gbit/s",
            "drops 40/s",
            "dropping: tcp no memory 80 (+40.0/s)",
            "memory 42 MiB of 48 MiB",
            "\nclient ",
            "\n192.168.1.8:40001      iperf3   established ",
            "\n  the path: it was full for 75 % of the time",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(super::text(&Watch::default()), "");
    }
}
