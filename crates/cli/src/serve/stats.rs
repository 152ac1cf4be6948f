//! The statistics line: rates since the line before, and gauges.

use super::engine::Figures;
use crate::output;
use linerate_linux::cpu;
use linerate_wire::units::Instant;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// Prints a line at each interval.
pub struct Stats {
    interval: Duration,
    next: Instant,
    last: Instant,
    figures: Figures,
    cpu_ns: u64,
}

impl Stats {
    /// A line every `interval` from `now` on.
    pub fn new(now: Instant, interval: Duration) -> Self {
        Stats {
            interval,
            next: now + interval,
            last: now,
            figures: Figures::default(),
            cpu_ns: cpu::process_time_ns(),
        }
    }

    /// When the next line is due.
    pub fn due_at(&self) -> Instant {
        self.next
    }

    /// Prints the line for the time since the last one.
    pub fn print(&mut self, now: Instant, figures: Figures) {
        let cpu_ns = cpu::process_time_ns();
        let sample = Sample {
            span_ns: (now - self.last).as_nanos().max(1) as f64,
            before: self.figures,
            now: figures,
            cpu_ns: cpu_ns - self.cpu_ns,
            resident: cpu::resident_bytes(),
        };
        output::event("stats", sample.text(), sample.json());
        self.next = (self.next + self.interval).max(now);
        self.last = now;
        self.figures = figures;
        self.cpu_ns = cpu_ns;
    }
}

/// Totals at both ends of a span of time.
struct Sample {
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

    fn text(&self) -> String {
        let gbps = |total: fn(&Figures) -> u64| self.per_second(total) * 8.0 / 1e9;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            line,
            "in {:.3} Gb/s {:.0} pkt/s  out {:.3} Gb/s {:.0} pkt/s  conns {}  retrans {}  drops {}  memory {:.1} MiB",
            gbps(|figures| figures.received_bytes),
            self.per_second(|figures| figures.received_packets),
            gbps(|figures| figures.sent_bytes),
            self.per_second(|figures| figures.sent_packets),
            self.now.connections,
            self.since(|figures| figures.retransmits),
            self.since(|figures| figures.drops),
            mib(self.now.memory_bytes),
        );
        if let Some(resident) = self.resident {
            let _ = write!(line, "  rss {:.1} MiB", mib(resident));
        }
        let _ = write!(line, "  cpu {:.0}%", self.cpu_percent());
        line
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "seconds": self.span_ns / 1e9,
            "in_bits_per_second": self.per_second(|figures| figures.received_bytes) * 8.0,
            "in_packets_per_second": self.per_second(|figures| figures.received_packets),
            "out_bits_per_second": self.per_second(|figures| figures.sent_bytes) * 8.0,
            "out_packets_per_second": self.per_second(|figures| figures.sent_packets),
            "connections": self.now.connections,
            "retransmits": self.since(|figures| figures.retransmits),
            "drops": self.since(|figures| figures.drops),
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
        let sample = Sample { span_ns: 1e9, before, now, cpu_ns: 250_000_000, resident: Some(3 << 20) };
        assert_eq!(
            sample.text(),
            "in 1.000 Gb/s 100000 pkt/s  out 0.000 Gb/s 0 pkt/s  conns 3  retrans 2  drops 0  memory 1.0 MiB  \
             rss 3.0 MiB  cpu 25%"
        );
        let json = sample.json();
        assert_eq!((&json["in_bits_per_second"], &json["retransmits"]), (&1e9.into(), &2.into()));
        assert_eq!((&json["resident_bytes"], &json["cpu_percent"]), (&(3 << 20).into(), &25.0.into()));
    }
}
