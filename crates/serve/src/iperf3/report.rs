//! The server's own report as text, for `--get-server-output`.

use super::config::CpuTimes;
use super::params::Protocol;
use super::results::cpu_percent;
use super::session::Test;
use alloc::string::String;
use core::fmt::Write as _;

/// A table of intervals and totals in the manner of the original.
pub fn text(test: &Test, cpu: CpuTimes) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(test, cpu, &mut out);
    out
}

fn write(test: &Test, cpu: CpuTimes, out: &mut String) -> core::fmt::Result {
    let udp = test.params.as_ref().is_some_and(|params| params.protocol == Protocol::Udp);
    writeln!(out, "-----------------------------------------------------------")?;
    writeln!(out, "linerate iperf3 server, client {}", test.client)?;
    writeln!(out, "[ ID] Interval           Transfer     Bitrate")?;
    for interval in &test.intervals {
        let (start, end) = (interval.start_ns as f64 / 1e9, interval.end_ns as f64 / 1e9);
        for (bytes, role) in [(interval.received, "receiver"), (interval.sent, "sender")] {
            if bytes > 0 {
                line(out, "SUM", start, end, bytes, role)?;
            }
        }
    }
    writeln!(out, "- - - - - - - - - - - - - - - - - - - - - - - - -")?;
    for stream in &test.streams {
        let role = if stream.sends { "sender" } else { "receiver" };
        let mut id = String::new();
        write!(id, "{:3}", stream.id)?;
        line(out, &id, 0.0, test.duration_s(), stream.counted_bytes(), role)?;
        if udp && !stream.sends {
            let lost = stream.reception.errors - stream.omitted.errors.min(stream.reception.errors);
            let total = stream.reception.packets - stream.omitted.packets.min(stream.reception.packets);
            let share = if total > 0 { lost as f64 / total as f64 * 100.0 } else { 0.0 };
            let jitter = stream.reception.jitter_s * 1e3;
            writeln!(out, "[{id}] jitter {jitter:.3} ms, lost {lost}/{total} ({share:.2}%)")?;
        } else if stream.sends && !udp {
            let again = stream.retransmits - stream.omitted_retransmits.min(stream.retransmits);
            writeln!(out, "[{id}] {again} retransmissions")?;
        }
    }
    let [total, user, system] = cpu_percent(test, cpu);
    writeln!(out, "CPU: {total:.1}% ({user:.1}% user, {system:.1}% system)")
}

fn line(out: &mut String, id: &str, start: f64, end: f64, bytes: u64, role: &str) -> core::fmt::Result {
    let span = end - start;
    let bits = if span > 0.0 { bytes as f64 * 8.0 / span } else { 0.0 };
    let (size, size_unit) = scaled(bytes as f64, 1024.0, ["Bytes", "KBytes", "MBytes", "GBytes"]);
    let (rate, rate_unit) = scaled(bits, 1000.0, ["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec"]);
    writeln!(out, "[{id}] {start:6.2}-{end:<6.2} sec {size:7.2} {size_unit} {rate:7.2} {rate_unit}  {role}")
}

fn scaled(mut value: f64, step: f64, units: [&'static str; 4]) -> (f64, &'static str) {
    for unit in &units[..3] {
        if value < step {
            return (value, unit);
        }
        value /= step;
    }
    (value, units[3])
}
