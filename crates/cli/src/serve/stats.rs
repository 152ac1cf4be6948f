//! The statistics line: rates since the line before, and gauges.

use super::engine::Figures;
use crate::output;
use crate::status::catalogue::{self, Tally};
use linerate_lab::quantity::bytes;
use linerate_linux::cpu;
use linerate_serve::calendar::Civil;
use linerate_wire::units::Instant;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Reasons to drop something that a line names at most.
const REASONS: usize = 3;

/// Prints a line at each interval.
pub struct Stats {
    interval: Duration,
    next: Instant,
    last: Instant,
    figures: Figures,
    drops: BTreeMap<(&'static str, &'static str), u64>,
    cpu_ns: u64,
    /// What was counted before the first interval is not known: the next time is its beginning.
    begins: bool,
}

impl Stats {
    /// A line every `interval` from `now` on.
    pub fn new(now: Instant, interval: Duration) -> Self {
        Stats {
            interval,
            next: now + interval,
            last: now,
            figures: Figures::default(),
            drops: BTreeMap::new(),
            cpu_ns: cpu::process_time_ns(),
            begins: false,
        }
    }

    /// The same where much has been counted before: what it is has to be told first.
    pub fn midway(now: Instant, interval: Duration) -> Self {
        Stats { next: now, begins: true, ..Stats::new(now, interval) }
    }

    /// When the next line is due.
    pub fn due_at(&self) -> Instant {
        self.next
    }

    /// Prints the line for the time since the last one; `wall` is the time since 1970-01-01 UTC.
    pub fn print(&mut self, now: Instant, wall: Duration, figures: Figures, tallies: &[Tally]) {
        let drops: BTreeMap<_, _> = catalogue::drops(tallies).collect();
        let cpu_ns = cpu::process_time_ns();
        let sample = Sample {
            wall,
            reasons: reasons(&self.drops, &drops),
            span_ns: (now - self.last).as_nanos().max(1) as f64,
            before: self.figures,
            now: figures,
            cpu_ns: cpu_ns - self.cpu_ns,
            resident: cpu::resident_bytes(),
        };
        if !std::mem::take(&mut self.begins) {
            output::event("stats", sample.text(), sample.json());
        }
        self.next = (self.next + self.interval).max(now);
        self.last = now;
        self.figures = figures;
        self.drops = drops;
        self.cpu_ns = cpu_ns;
    }
}

/// What was dropped between two times, by reason, the most frequent first.
fn reasons(
    before: &BTreeMap<(&'static str, &'static str), u64>,
    now: &BTreeMap<(&'static str, &'static str), u64>,
) -> Vec<(String, u64)> {
    let grown = now.iter().map(|(figure, count)| {
        let count = count.saturating_sub(before.get(figure).copied().unwrap_or_default());
        (catalogue::reason(figure.0, figure.1), count)
    });
    let mut grown: Vec<(String, u64)> = grown.filter(|(_, count)| *count > 0).collect();
    grown.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    grown
}

/// Date and time in UTC, to the second (RFC 3339).
fn timestamp(wall: Duration) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = Civil::from_secs(wall.as_secs() as i64);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Totals at both ends of a span of time.
struct Sample {
    wall: Duration,
    /// What was dropped for each reason, the most frequent first.
    reasons: Vec<(String, u64)>,
    span_ns: f64,
    before: Figures,
    now: Figures,
    cpu_ns: u64,
    resident: Option<u64>,
}

impl Sample {
    fn since(&self, total: impl Fn(&Figures) -> u64) -> u64 {
        total(&self.now).saturating_sub(total(&self.before))
    }

    fn per_second(&self, total: impl Fn(&Figures) -> u64) -> f64 {
        self.since(total) as f64 * 1e9 / self.span_ns
    }

    fn cpu_percent(&self) -> f64 {
        self.cpu_ns as f64 / self.span_ns * 100.0
    }

    fn drops(&self) -> u64 {
        self.reasons.iter().map(|(_, count)| count).sum()
    }

    /// The reasons that grew most.
    fn fastest(&self) -> impl Iterator<Item = &(String, u64)> {
        self.reasons.iter().take(REASONS)
    }

    /// These in words, in parentheses; nothing when nothing was dropped.
    fn named(&self) -> String {
        let words: Vec<String> = self.fastest().map(|(reason, count)| format!("{reason} {count}")).collect();
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }

    fn text(&self) -> String {
        let gbps = |total: fn(&Figures) -> u64| self.per_second(total) * 8.0 / 1e9;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut line = timestamp(self.wall);
        // Writing to a string cannot fail.
        let _ = write!(
            line,
            "  in {:.3} Gb/s {:.0} pkt/s  out {:.3} Gb/s {:.0} pkt/s  conns {}  retrans {}  drops {}{}  memory {}",
            gbps(|figures| figures.received_bytes),
            self.per_second(|figures| figures.received_packets),
            gbps(|figures| figures.sent_bytes),
            self.per_second(|figures| figures.sent_packets),
            self.now.connections,
            self.since(|figures| figures.retransmits),
            self.drops(),
            self.named(),
            bytes(self.now.memory_bytes),
        );
        if let Some(resident) = self.resident {
            let _ = write!(line, "  rss {:.1} MiB", mib(resident));
        }
        let _ = write!(line, "  cpu {:.0}%", self.cpu_percent());
        line
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "time": timestamp(self.wall),
            "seconds": self.span_ns / 1e9,
            "in_bits_per_second": self.per_second(|figures| figures.received_bytes) * 8.0,
            "in_packets_per_second": self.per_second(|figures| figures.received_packets),
            "out_bits_per_second": self.per_second(|figures| figures.sent_bytes) * 8.0,
            "out_packets_per_second": self.per_second(|figures| figures.sent_packets),
            "connections": self.now.connections,
            "retransmits": self.since(|figures| figures.retransmits),
            "drops": self.drops(),
            "drop_reasons": self.fastest().map(|(reason, count)| json!({ "reason": reason, "count": count })).collect::<Vec<_>>(),
            "memory_bytes": self.now.memory_bytes,
            "resident_bytes": self.resident,
            "cpu_percent": self.cpu_percent(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_is_no_rate() {
        let at = Instant::from_millis;
        let mut stats = Stats::midway(at(5_000), Duration::from_secs(2));
        assert_eq!((stats.due_at(), stats.begins), (at(5_000), true), "to be told what was counted");
        let figures = Figures { received_bytes: 1 << 40, ..Figures::default() };
        stats.print(at(5_001), Duration::ZERO, figures, &[]);
        assert_eq!((stats.due_at(), stats.begins), (at(7_000), false));
        assert_eq!((stats.last, stats.figures.received_bytes), (at(5_001), 1 << 40));
        assert!(!Stats::new(at(0), Duration::from_secs(2)).begins);
    }

    #[test]
    fn a_line_has_rates_of_the_interval_and_gauges() {
        let before = Figures { received_bytes: 1000, retransmits: 5, ..Figures::default() };
        let now = Figures {
            received_bytes: 1000 + 125_000_000,
            received_packets: 100_000,
            connections: 3,
            retransmits: 7,
            memory_bytes: 1 << 20,
            ..before
        };
        let counted = |no_memory: u64, vlan: u64, land: u64, martian: u64| {
            let names =
                ["drop_tcp_no_memory", "drop_vlan", "drop_land", "drop_martian_source", "drop_arp_malformed"];
            names.into_iter().map(|name| ("stack", name)).zip([no_memory, vlan, land, martian, 9]).collect()
        };
        let sample = Sample {
            wall: Duration::from_secs(1_795_132_805),
            reasons: reasons(&counted(5, 5, 5, 5), &counted(6, 45, 7, 8)),
            span_ns: 1e9,
            before,
            now,
            cpu_ns: 250_000_000,
            resident: Some(3 << 20),
        };
        assert_eq!(
            sample.text(),
            "2026-11-20T00:00:05Z  in 1.000 Gb/s 100000 pkt/s  out 0.000 Gb/s 0 pkt/s  conns 3  retrans 2  \
             drops 46 (vlan 40, martian source 3, land 2)  memory 1 MiB  rss 3.0 MiB  cpu 25%"
        );
        let json = sample.json();
        assert_eq!((&json["in_bits_per_second"], &json["retransmits"]), (&1e9.into(), &2.into()));
        assert_eq!((&json["drops"], &json["drop_reasons"][0]["reason"]), (&46.into(), &"vlan".into()));
        assert_eq!((&json["resident_bytes"], &json["cpu_percent"]), (&(3 << 20).into(), &25.0.into()));
    }
}
