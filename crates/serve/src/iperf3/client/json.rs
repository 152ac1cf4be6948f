//! A client's report as JSON, in the form of the original as far as it is meaningful here.

use super::super::params::{Params, Protocol};
use super::error::ClientError;
use super::report::{Amount, Interval, Report, StreamEnd, StreamInterval, sum};
use super::text::seconds_of;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use serde_json::{Map, Value, json};

/// The report of a test as far as it got. What the owner of the client knows beside it (version, system, time) goes into
/// `start` by `about`.
pub fn report(
    report: &Report,
    intervals: &[Interval],
    about: &Map<String, Value>,
    outcome: Result<(), ClientError>,
) -> Value {
    let mut all = json!({
        "start": start(report, about),
        "intervals": intervals.iter().map(|one| interval(report, one)).collect::<Vec<_>>(),
        "end": if report.streams.is_empty() { json!({}) } else { end(report) },
    });
    if let Some(text) = &report.server_output {
        all["server_output_text"] = text.as_str().into();
    }
    if let Some(title) = &report.title {
        all["title"] = title.as_str().into();
    }
    if let Err(error) = outcome {
        all["error"] = error.to_string().into();
    }
    all
}

fn start(report: &Report, about: &Map<String, Value>) -> Value {
    let connected = report.connected.iter().map(|one| {
        json!({
            "socket": one.id,
            "local_host": one.local.ip().to_string(),
            "local_port": one.local.port(),
            "remote_host": one.remote.ip().to_string(),
            "remote_port": one.remote.port(),
        })
    });
    let Params { parallel, len, omit, time, bytes, blocks, reverse, bidirectional, tos, rate_bps, .. } =
        report.params;
    let mut start = json!({
        "connected": connected.collect::<Vec<_>>(),
        "connecting_to": { "host": report.server.ip().to_string(), "port": report.server.port() },
        "cookie": String::from_utf8_lossy(&report.cookie[..report.cookie.len() - 1]),
        "target_bitrate": rate_bps,
        "sock_bufsize": report.params.window.unwrap_or(0),
        "test_start": {
            "protocol": if is_udp(report) { "UDP" } else { "TCP" },
            "num_streams": parallel,
            "blksize": len,
            "omit": omit.as_secs(),
            "duration": time.as_secs(),
            "bytes": bytes,
            "blocks": blocks,
            "reverse": u8::from(reverse),
            "bidir": u8::from(bidirectional),
            "tos": tos,
            "target_bitrate": rate_bps,
        },
    });
    if !is_udp(report) {
        start["tcp_mss_default"] = report.mss.into();
    }
    for (name, value) in about {
        start[name] = value.clone();
    }
    start
}

fn is_udp(report: &Report) -> bool {
    report.params.protocol == Protocol::Udp
}

/// What all lines of figures have.
fn figures(start_s: f64, end_s: f64, seconds: f64, bytes: u64) -> Value {
    let bits = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    json!({ "start": start_s, "end": end_s, "seconds": seconds, "bytes": bytes, "bits_per_second": bits })
}

/// What is known of datagrams.
fn put_datagrams(json: &mut Value, amount: &Amount, is_receiver: bool) {
    json["packets"] = amount.packets.into();
    if is_receiver {
        let share = if amount.packets > 0 { amount.lost as f64 / amount.packets as f64 } else { 0.0 };
        json["jitter_ms"] = (amount.jitter_s * 1e3).into();
        json["lost_packets"] = amount.lost.into();
        json["lost_percent"] = (share * 100.0).into();
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn interval(report: &Report, one: &Interval) -> Value {
    let seconds = one.end_s - one.start_s;
    let line = |amount: &Amount, sends: bool| {
        let mut json = figures(one.start_s, one.end_s, seconds, amount.bytes);
        if is_udp(report) {
            put_datagrams(&mut json, amount, !sends);
        } else if let Some(again) = amount.retransmits {
            json["retransmits"] = again.into();
        }
        json["omitted"] = one.omitted.into();
        json["sender"] = sends.into();
        json
    };
    let stream = |stream: &StreamInterval| {
        let mut json = line(&stream.amount, stream.sends);
        json["socket"] = stream.id.into();
        let mut set = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                json[name] = value.into();
            }
        };
        set("snd_cwnd", stream.congestion_window.map(u64::from));
        set("snd_wnd", stream.send_window.map(u64::from));
        set("rtt", stream.rtt.map(micros));
        set("rttvar", stream.rtt_var.map(micros));
        set("pmtu", stream.path_mtu.map(u64::from));
        json
    };
    let mut json = json!({ "streams": one.streams.iter().map(stream).collect::<Vec<_>>() });
    for (sends, name) in directions(&report.params, "sum") {
        let of = one.streams.iter().filter(|stream| stream.sends == sends);
        json[name] = line(&sum(of.map(|stream| stream.amount)), sends);
    }
    json
}

/// The directions of a test, and what their sums are called.
fn directions(params: &Params, name: &str) -> Vec<(bool, String)> {
    match params.bidirectional {
        true => alloc::vec![(true, name.into()), (false, alloc::format!("{name}_bidir_reverse"))],
        false => alloc::vec![(!params.reverse, name.into())],
    }
}

fn end(report: &Report) -> Value {
    let streams: Vec<Value> = report.streams.iter().map(|one| stream_end(report, one)).collect();
    let mut json = json!({ "streams": streams });
    for by_sender in [true, false] {
        let name = if by_sender { "sum_sent" } else { "sum_received" };
        for (sends, name) in directions(&report.params, name) {
            let amount = report.sum(sends, by_sender);
            json[name] = end_line(report, &amount, seconds_of(report, sends, by_sender), sends, by_sender);
        }
    }
    if is_udp(report) {
        // Of bytes those that were sent, of datagrams what the receiver says, as in the original.
        for (sends, name) in directions(&report.params, "sum") {
            let (sent, received) = (report.sum(sends, true), report.sum(sends, false));
            let amount = Amount { bytes: sent.bytes, ..received };
            let mut line = end_line(report, &amount, seconds_of(report, sends, false), sends, false);
            line["sender"] = sends.into();
            json[name] = line;
        }
    }
    let ([host, user, system], [remote, remote_user, remote_system]) = (report.cpu, report.server_cpu);
    json["cpu_utilization_percent"] = json!({
        "host_total": host, "host_user": user, "host_system": system,
        "remote_total": remote, "remote_user": remote_user, "remote_system": remote_system,
    });
    let ours = report.congestion.as_ref().map(|name| name.as_str());
    let theirs = report.server_congestion.as_deref();
    let (sender, receiver) = if report.params.reverse { (theirs, ours) } else { (ours, theirs) };
    for (name, algorithm) in [("sender_tcp_congestion", sender), ("receiver_tcp_congestion", receiver)] {
        if let Some(algorithm) = algorithm.filter(|_| !is_udp(report)) {
            json[name] = algorithm.into();
        }
    }
    json
}

fn end_line(report: &Report, amount: &Amount, seconds: f64, sends: bool, by_sender: bool) -> Value {
    let mut json = figures(0.0, seconds, seconds, amount.bytes);
    if is_udp(report) {
        // Who sends does not know what is lost.
        let told = if by_sender { Amount { lost: 0, jitter_s: 0.0, ..*amount } } else { *amount };
        put_datagrams(&mut json, &told, true);
        // Of datagrams it is whose figures these are, of TCP who sends here.
        json["sender"] = by_sender.into();
        return json;
    }
    if let Some(again) = amount.retransmits.filter(|_| by_sender) {
        json["retransmits"] = again.into();
    }
    json["sender"] = sends.into();
    json
}

fn stream_end(report: &Report, one: &StreamEnd) -> Value {
    if is_udp(report) {
        let mut json = end_line(report, &one.received, one.received_s, one.sends, false);
        // With the receiver's losses, the original shows the sender's bytes.
        json["bytes"] = one.sent.bytes.into();
        json["bits_per_second"] = (one.sent.bytes as f64 * 8.0 / one.sent_s.max(f64::MIN_POSITIVE)).into();
        json["out_of_order"] = one.received.out_of_order.into();
        json["socket"] = one.id.into();
        return json!({ "udp": json });
    }
    let mut sender = end_line(report, &one.sent, one.sent_s, one.sends, true);
    let mut receiver = end_line(report, &one.received, one.received_s, one.sends, false);
    sender["socket"] = one.id.into();
    receiver["socket"] = one.id.into();
    if let Some(window) = one.max_congestion_window {
        sender["max_snd_cwnd"] = window.into();
    }
    if let Some(window) = one.max_send_window {
        sender["max_snd_wnd"] = window.into();
    }
    if let Some([least, mean, most]) = one.rtt {
        sender["min_rtt"] = micros(least).into();
        sender["mean_rtt"] = micros(mean).into();
        sender["max_rtt"] = micros(most).into();
    }
    json!({ "sender": sender, "receiver": receiver })
}
