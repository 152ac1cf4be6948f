//! The results that both sides exchange as JSON.

use super::config::CpuTimes;
use super::params::Protocol;
use super::report;
use super::session::Test;
use super::stream::Stream;
use alloc::vec::Vec;
use linerate_wire::units::Instant;
use serde_json::{Value, json};

/// What either side knows of its end of a test.
pub struct View<'a> {
    /// Whether datagrams carry the streams.
    pub is_udp: bool,
    pub streams: &'a [Stream],
    /// Seconds that count.
    pub duration_s: f64,
    /// Share of the processor in percent: total, user, system.
    pub cpu: [f64; 3],
}

/// Share of the processor that the process used since the test began, in percent: total, user, system.
pub fn cpu_percent(test: &Test, now: CpuTimes) -> [f64; 3] {
    cpu_share(test.started, test.ended, test.cpu, now)
}

/// The same from a time to another, when so much had been used before and afterwards.
pub fn cpu_share(from: Instant, to: Instant, before: CpuTimes, after: CpuTimes) -> [f64; 3] {
    let wall_ns = (to - from).as_nanos() as f64;
    if wall_ns <= 0.0 {
        return [0.0; 3];
    }
    let user = after.user_ns.saturating_sub(before.user_ns) as f64 / wall_ns * 100.0;
    let system = after.system_ns.saturating_sub(before.system_ns) as f64 / wall_ns * 100.0;
    [user + system, user, system]
}

/// This server's results as a client wants them.
pub fn emit(test: &Test, cpu: CpuTimes) -> Vec<u8> {
    let is_udp = test.params.as_ref().is_some_and(|params| params.protocol == Protocol::Udp);
    let (streams, duration_s) = (&test.streams[..], test.duration_s());
    let mut json = view(&View { is_udp, streams, duration_s, cpu: cpu_percent(test, cpu) });
    if test.params.as_ref().is_some_and(|params| params.server_output) {
        json["server_output_text"] = Value::String(report::text(test, cpu));
    }
    serde_json::to_vec(&json).unwrap_or_default()
}

/// The results of one side.
pub fn view(view: &View<'_>) -> Value {
    let sends = view.streams.iter().any(|stream| stream.sends);
    let [total, user, system] = view.cpu;
    let streams: Vec<Value> = view.streams.iter().map(|stream| stream_json(view, stream)).collect();
    let mut json = json!({
        "cpu_util_total": total,
        "cpu_util_user": user,
        "cpu_util_system": system,
        "sender_has_retransmits": if sends && !view.is_udp { 1 } else { -1 },
        "streams": streams,
    });
    // The other side shows it beside its own, as `sender_tcp_congestion` or `receiver_tcp_congestion`.
    if let Some(name) = view.streams.iter().find_map(|stream| stream.congestion.as_ref()) {
        json["congestion_used"] = name.as_str().into();
    }
    json
}

fn stream_json(view: &View<'_>, stream: &Stream) -> Value {
    let retransmits = match (stream.sends, view.is_udp) {
        (true, false) => (stream.retransmits - stream.omitted_retransmits.min(stream.retransmits)) as i64,
        _ => -1,
    };
    let (packets, omitted) = match stream.sends {
        true => (stream.datagrams, stream.omitted_datagrams),
        false => (stream.reception.packets, stream.omitted.packets),
    };
    json!({
        "id": stream.id,
        "bytes": stream.counted_bytes(),
        "retransmits": retransmits,
        "jitter": stream.reception.jitter_s,
        "errors": stream.reception.errors,
        "omitted_errors": stream.omitted.errors,
        "packets": packets,
        "omitted_packets": omitted,
        "start_time": 0.0,
        "end_time": view.duration_s,
    })
}
