//! The line at the end: what was moved, for whom, and what was cut off.

use super::engine::Figures;
use crate::output;
use serde_json::json;
use std::time::Duration;

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// Totals at the end.
    pub figures: Figures,
    /// Connections that were reset with something still to move.
    pub cut_off: u64,
    /// How long it ran.
    pub duration: Duration,
}

impl Summary {
    /// Prints it.
    pub fn print(&self) {
        let fields = json!({
            "received_bytes": self.figures.received_bytes,
            "sent_bytes": self.figures.sent_bytes,
            "connections": self.figures.accepted,
            "cut_off": self.cut_off,
            "seconds": self.duration.as_secs_f64(),
        });
        output::event("ended", self.text(), fields);
    }

    fn text(&self) -> String {
        let plural = if self.figures.accepted == 1 { "" } else { "s" };
        format!(
            "Ended: {} received, {} sent, {} connection{plural}, {} cut off, in {}.",
            size(self.figures.received_bytes),
            size(self.figures.sent_bytes),
            self.figures.accepted,
            self.cut_off,
            span(self.duration)
        )
    }
}

/// Bytes for people: whole ones below 1 KiB, one decimal place above.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let unit = (bytes.ilog2() / 10) as usize;
    let tenths = (u128::from(bytes) * 10) >> (unit * 10);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit - 1])
}

/// A time for people: the two largest units.
fn span(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        0..60 => format!("{s}.{} s", duration.subsec_millis() / 100),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_one_line() {
        let figures =
            Figures { received_bytes: 1_536, sent_bytes: 3 << 30, accepted: 57, ..Figures::default() };
        let summary = Summary { figures, cut_off: 2, duration: Duration::from_millis(62_700) };
        let text = "Ended: 1.5 KiB received, 3.0 GiB sent, 57 connections, 2 cut off, in 1 min 2 s.";
        assert_eq!(summary.text(), text);
    }

    #[test]
    fn figures_are_for_people() {
        let sizes = [0, 1_023, 1_024, 1_048_575, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "15.9 EiB"]);
        let spans = [900, 59_990, 3_599_000, 3_600_000, 90_000_000].map(|ms| span(Duration::from_millis(ms)));
        assert_eq!(spans, ["0.9 s", "59.9 s", "59 min 59 s", "1 h 0 min", "1 d 1 h"]);
    }
}
