//! A run for programs: one object. Times are in seconds, rates in bits per second (those in bytes say so), sizes in bytes.

use super::text::cause_name;
use linerate_lab::scenario::file::Side;
use linerate_lab::scenario::outcome::{FlowOutcome, Outcome, QueueOutcome};
use linerate_lab::scenario::verdict;
use linerate_transport::LimitCause;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The object.
pub fn json(outcome: &Outcome) -> String {
    let sides = [Side::Server, Side::Client];
    let flows: Vec<Value> = outcome.flows.iter().map(|flow| one(outcome, flow)).collect();
    let object = json!({
        "title": outcome.title,
        "seed": outcome.seed,
        "time": outcome.time.as_secs_f64(),
        "flows": flows,
        "paths": sides.iter().map(|side| path(outcome, *side)).collect::<Vec<_>>(),
        "hosts": sides.iter().map(|side| host(outcome, *side)).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn seconds(time: Option<Duration>) -> Value {
    time.map_or(Value::Null, |time| json!(time.as_secs_f64()))
}

fn one(outcome: &Outcome, flow: &FlowOutcome) -> Value {
    let verdict = verdict::of(outcome, flow);
    let mut limits = Map::new();
    for cause in LimitCause::ALL {
        let ns = flow.info.map_or(0, |info| info.limits.ns[cause as usize]);
        limits.insert(cause_name(cause).to_owned(), json!(ns as f64 / 1e9));
    }
    let info = flow.info.map(|info| {
        json!({
            "segments": info.segments_sent,
            "retransmits": info.retransmits,
            "bytes_retransmitted": info.bytes_retransmitted,
            "segment_size": info.send_mss,
            "path_mtu": info.path_mtu,
            "congestion_window": info.congestion_window,
        })
    });
    json!({
        "from": flow.flow.from.name(),
        "to": flow.flow.from.other().name(),
        "received": flow.received,
        "complete": flow.is_complete,
        "closed": flow.closed.map(|reason| format!("{reason:?}")),
        "error": flow.error,
        "opened_at": seconds(flow.opened_at),
        "last_byte_at": seconds(flow.last_byte_at),
        "until": flow.until.as_secs_f64(),
        "goodput": flow.goodput_bps(),
        "goodput_bytes": flow.goodput_bps() / 8.0,
        "ideal": outcome.ideal_bps(flow.flow.from),
        "longest_stall": flow.longest_stall.as_secs_f64(),
        "stalled_at": flow.stalled_at.as_secs_f64(),
        "sender": info,
        "rtt": flow.rtt.map(|[least, mean, most]| {
            json!({ "least": least.as_secs_f64(), "mean": mean.as_secs_f64(), "most": most.as_secs_f64() })
        }),
        "limits": limits,
        "mishaps": mishaps(flow),
        "bottleneck": verdict.bottleneck,
        "because": verdict.because,
        "advice": verdict.advice,
    })
}

/// Round trips in which each kind of mishap happened.
fn mishaps(flow: &FlowOutcome) -> Value {
    let seen = &flow.mishaps;
    json!({
        "lost": seen.lost,
        "damaged": seen.damaged,
        "queue": seen.queue,
        "codel": seen.codel,
        "marked": seen.marked,
        "ring": seen.ring,
        "no_buffer": seen.no_buffer,
        "no_memory": seen.no_memory,
        "too_long": seen.too_long,
        "reordered": seen.reordered,
        "acks": seen.acks,
    })
}

fn path(outcome: &Outcome, side: Side) -> Value {
    let path = outcome.paths.of(side);
    let stats = path.stats;
    json!({
        "from": side.name(),
        "rate": outcome.rate_bps(side),
        "utilisation": path.used,
        "segments": stats.offered,
        "delivered": stats.delivered,
        "lost": stats.lost,
        "queue_full": stats.queue_full,
        "codel_dropped": stats.codel_dropped,
        "too_long": stats.too_long,
        "marked": stats.marked,
        "corrupted": stats.corrupted,
        "duplicated": stats.duplicated,
        "reordered": stats.reordered,
        "queue_max": stats.queue_max,
        "queue_max_bytes": stats.queue_max_bytes,
        "mean_wait": path.mean_wait().as_secs_f64(),
    })
}

fn host(outcome: &Outcome, side: Side) -> Value {
    let host = outcome.hosts.of(side);
    json!({
        "name": side.name(),
        "line_rate": host.line_rate_bps,
        "tx_packets": host.nic.tx_packets,
        "tx_segments": host.nic.tx_segments,
        "tx_refused": host.nic.tx_refused,
        "rx_segments": host.nic.rx_segments,
        "rx_frames": host.nic.rx_frames,
        "rx_ring_full": host.nic.rx_ring_full,
        "rx_no_buffer": host.nic.rx_no_buffer,
        "interrupts": host.nic.interrupts,
        "queues": host.queues.iter().map(queue).collect::<Vec<_>>(),
        "rx_wait": host.mean_rx_wait().as_secs_f64(),
        "processor": host.cpu_used,
        "memory": host.memory,
        "memory_used": host.memory_used,
        "no_memory": host.no_memory,
    })
}

fn queue(queue: &QueueOutcome) -> Value {
    json!({
        "tx_segments": queue.nic.tx_segments,
        "rx_segments": queue.nic.rx_segments,
        "rx_frames": queue.nic.rx_frames,
        "interrupts": queue.nic.interrupts,
        "letters": queue.letters.letters,
        "letters_dropped": queue.letters.dropped,
        "passed_packets": queue.letters.packets,
        "passed_bytes": queue.letters.packet_bytes,
    })
}
