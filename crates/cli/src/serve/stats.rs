//! The statistics line: rates since the line before, and gauges.

use super::engine::Figures;
use linerate_linux::cpu;
use linerate_wire::units::Instant;
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

    /// The line for the time since the last one.
    pub fn line(&mut self, now: Instant, figures: Figures) -> String {
        let cpu_ns = cpu::process_time_ns();
        let span_ns = (now - self.last).as_nanos().max(1) as f64;
        let line = format(span_ns, &self.figures, &figures, cpu_ns - self.cpu_ns, cpu::resident_bytes());
        self.next = (self.next + self.interval).max(now);
        self.last = now;
        self.figures = figures;
        self.cpu_ns = cpu_ns;
        line
    }
}

fn format(span_ns: f64, before: &Figures, now: &Figures, cpu_ns: u64, resident: Option<u64>) -> String {
    let gbps = |bytes: u64| bytes as f64 * 8.0 / span_ns;
    let per_second = |count: u64| count as f64 * 1e9 / span_ns;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        line,
        "in {:.3} Gb/s {:.0} pkt/s  out {:.3} Gb/s {:.0} pkt/s  conns {}  retrans {}  drops {}  memory {:.1} MiB",
        gbps(now.received_bytes.saturating_sub(before.received_bytes)),
        per_second(now.received_packets.saturating_sub(before.received_packets)),
        gbps(now.sent_bytes.saturating_sub(before.sent_bytes)),
        per_second(now.sent_packets.saturating_sub(before.sent_packets)),
        now.connections,
        now.retransmits.saturating_sub(before.retransmits),
        now.drops.saturating_sub(before.drops),
        mib(now.memory_bytes),
    );
    if let Some(resident) = resident {
        let _ = write!(line, "  rss {:.1} MiB", mib(resident));
    }
    let _ = write!(line, "  cpu {:.0}%", cpu_ns as f64 / span_ns * 100.0);
    line
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
        assert_eq!(
            format(1e9, &before, &now, 250_000_000, Some(3 << 20)),
            "in 1.000 Gb/s 100000 pkt/s  out 0.000 Gb/s 0 pkt/s  conns 3  retrans 2  drops 0  memory 1.0 MiB  \
             rss 3.0 MiB  cpu 25%"
        );
    }
}
