//! The results that both sides exchange as JSON.

use super::config::CpuTimes;
use super::params::Protocol;
use super::report;
use super::session::Test;
use super::stream::Stream;
use alloc::vec::Vec;
use serde_json::{Value, json};

/// Share of the processor that the process used since the test began, in percent: total, user, system.
pub fn cpu_percent(test: &Test, now: CpuTimes) -> [f64; 3] {
    let wall_ns = (test.ended - test.started).as_nanos() as f64;
    if wall_ns <= 0.0 {
        return [0.0; 3];
    }
    let user = now.user_ns.saturating_sub(test.cpu.user_ns) as f64 / wall_ns * 100.0;
    let system = now.system_ns.saturating_sub(test.cpu.system_ns) as f64 / wall_ns * 100.0;
    [user + system, user, system]
}

/// This server's results as a client wants them.
pub fn emit(test: &Test, cpu: CpuTimes) -> Vec<u8> {
    let udp = test.params.as_ref().is_some_and(|params| params.protocol == Protocol::Udp);
    let sends = test.streams.iter().any(|stream| stream.sends);
    let [total, user, system] = cpu_percent(test, cpu);
    let streams: Vec<Value> = test.streams.iter().map(|stream| stream_json(test, stream, udp)).collect();
    let mut json = json!({
        "cpu_util_total": total,
        "cpu_util_user": user,
        "cpu_util_system": system,
        "sender_has_retransmits": if sends && !udp { 1 } else { -1 },
        "streams": streams,
    });
    // The client shows it beside its own, as `sender_tcp_congestion` or `receiver_tcp_congestion`.
    if let Some(name) = test.streams.iter().find_map(|stream| stream.congestion.as_ref()) {
        json["congestion_used"] = name.as_str().into();
    }
    if test.params.as_ref().is_some_and(|params| params.server_output) {
        json["server_output_text"] = Value::String(report::text(test, cpu));
    }
    serde_json::to_vec(&json).unwrap_or_default()
}

fn stream_json(test: &Test, stream: &Stream, udp: bool) -> Value {
    let retransmits = match (stream.sends, udp) {
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
        "end_time": test.duration_s(),
    })
}
