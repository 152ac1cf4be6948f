//! The report as metrics, in the OpenMetrics text format 1.0.

use super::catalogue::{self, metric_name, metric_reason};
use super::report::Report;
use linerate_wire::figures::{Kind, Unit};
use std::fmt::{Display, Write as _};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of a sample: names and values.
type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text of metric families, one after the other.
struct Exposition {
    text: String,
    family: String,
    suffix: &'static str,
}

impl Exposition {
    /// Begins a family. A counter's samples get `_total`, an info's `_info`.
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        self.family = name.to_owned();
        self.suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    /// A sample of the family that was begun last.
    fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        let _ = write!(self.text, "{}{}", self.family, self.suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{open}{name}=\"{}\"", escaped(value));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {value}");
    }

    /// A family with one sample.
    fn one(&mut self, name: &str, kind: &str, unit: &str, help: &str, value: impl Display) {
        self.family(name, kind, unit, help);
        self.sample(&[], value);
    }
}

/// Text with what would end a label or a line escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The metrics.
pub fn text(report: &Report) -> String {
    let mut out = Exposition { text: String::new(), family: String::new(), suffix: "" };
    process(&mut out, report);
    memory(&mut out, report);
    connections(&mut out, report);
    counters(&mut out, report);
    out.text.push_str("# EOF\n");
    out.text
}

fn process(out: &mut Exposition, report: &Report) {
    out.family("linerate", "info", "", "The program and what it runs on.");
    let labels = [
        ("version", report.version.as_str()),
        ("transport", report.transport.as_str()),
        ("device", report.device.as_str()),
    ];
    out.sample(&labels, 1);
    let cpu = "Processor time of all threads, in user mode and in the kernel.";
    out.one("process_cpu_seconds", "counter", "seconds", cpu, report.process.cpu);
    let start = "When the server was started, since 1970-01-01 UTC.";
    out.one("process_start_time_seconds", "gauge", "seconds", start, report.time - report.uptime);
    if let Some(resident) = report.process.resident {
        out.one("process_resident_memory_bytes", "gauge", "bytes", "Resident memory.", resident);
    }
    let report_help = "What the making of this report took of the loop's time.";
    out.one("linerate_report_seconds", "gauge", "seconds", report_help, report.process.report);
    let traffic = &report.traffic;
    let families = [
        (
            "linerate_received_bytes",
            traffic.received_bytes,
            "Bytes received: frames, or payload of kernel sockets.",
        ),
        ("linerate_sent_bytes", traffic.sent_bytes, "Bytes sent: frames, or payload of kernel sockets."),
    ];
    for (name, value, help) in families {
        out.one(name, "counter", "bytes", help, value);
    }
    out.one("linerate_received_packets", "counter", "", "Frames received.", traffic.received_packets);
    out.one("linerate_sent_packets", "counter", "", "Frames sent.", traffic.sent_packets);
}

fn memory(out: &mut Exposition, report: &Report) {
    let memory = &report.memory;
    for (name, value, help) in [
        ("limit", memory.limit, "The most that sockets may hold."),
        ("used", memory.used, "What sockets hold now."),
        ("peak", memory.peak, "The most that sockets have held since the start."),
        ("tables", memory.tables, "What the tables of connections take."),
    ] {
        out.one(&format!("linerate_memory_{name}_bytes"), "gauge", "bytes", help, value);
    }
    out.one(
        "linerate_memory_refused",
        "counter",
        "",
        "How often memory was asked for and refused.",
        memory.refused,
    );
    if !memory.owners.is_empty() {
        let help =
            "What the data of connections holds, by server; closing for those that their server has closed.";
        out.family("linerate_memory_owner_bytes", "gauge", "bytes", help);
        for (owner, held) in &memory.owners {
            out.sample(&[("owner", owner)], held);
        }
    }
    if report.pools.is_empty() {
        return;
    }
    type Value = fn(&super::report::PoolReport) -> u64;
    let families: [(&str, &str, &str, &str, Value); 5] = [
        ("buffer_bytes", "gauge", "bytes", "Size of a buffer of the pool.", |pool| pool.buffer),
        ("buffers", "gauge", "", "Buffers of the pool.", |pool| pool.total),
        ("free", "gauge", "", "Buffers free now.", |pool| pool.free),
        ("low_water", "gauge", "", "Fewest buffers that were ever free.", |pool| pool.low_water),
        ("exhausted", "counter", "", "How often a buffer was asked for and none was free.", |pool| {
            pool.exhausted
        }),
    ];
    for (name, kind, unit, help, value) in families {
        out.family(&format!("linerate_pool_{name}"), kind, unit, help);
        for pool in &report.pools {
            out.sample(&[("pool", &pool.name)], value(pool));
        }
    }
}

fn connections(out: &mut Exposition, report: &Report) {
    let connections = &report.connections;
    out.one("linerate_connections", "gauge", "", "TCP connections now.", connections.total);
    for (name, label, help, counts) in [
        ("linerate_connections_by_state", "state", "TCP connections now, by state.", &connections.states),
        ("linerate_connections_by_server", "server", "TCP connections now, by server.", &connections.servers),
        (
            "linerate_connections_limited",
            "cause",
            "TCP connections now, by what keeps them from sending faster.",
            &connections.limited,
        ),
    ] {
        if !counts.is_empty() {
            out.family(name, "gauge", "", help);
            for (value, count) in counts {
                out.sample(&[(label, value)], count);
            }
        }
    }
}

fn counters(out: &mut Exposition, report: &Report) {
    let values = || {
        catalogue::GROUPS.iter().flat_map(|group| {
            let counted = report.counters.get(group.name);
            group.figures().filter_map(move |figure| Some((group.name, figure, *counted?.get(figure.name)?)))
        })
    };
    for (group, figure, value) in values().filter(|(_, figure, _)| figure.kind != Kind::Drop) {
        let kind = if figure.kind == Kind::Gauge { "gauge" } else { "counter" };
        let unit = if figure.unit == Unit::Bytes { "bytes" } else { "" };
        out.one(&metric_name(group, figure), kind, unit, figure.description(), value);
    }
    let help = "What was thrown away, refused or given up, by the part that counts it and the reason.";
    out.family("linerate_drops", "counter", "", help);
    for (group, figure, value) in values().filter(|(_, figure, _)| figure.kind == Kind::Drop) {
        out.sample(&[("group", group), ("reason", metric_reason(figure))], value);
    }
}

#[cfg(test)]
mod tests;
