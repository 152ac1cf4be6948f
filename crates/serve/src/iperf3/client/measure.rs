//! What is measured, in each interval and at the end.

use super::super::params::Protocol;
use super::super::stream::Stream;
use super::marks::counted;
use super::report::{Amount, Interval, Report, StreamEnd, StreamInterval};
use super::state::Client;
use crate::Context;
use core::time::Duration;
use serde_json::Value;

/// From one look to the next. A late datagram takes a loss of an earlier interval back.
fn since(now: Amount, before: Amount) -> Amount {
    Amount {
        bytes: now.bytes.saturating_sub(before.bytes),
        retransmits: now.retransmits.map(|n| n.saturating_sub(before.retransmits.unwrap_or(0))),
        packets: now.packets.saturating_sub(before.packets),
        lost: now.lost.saturating_sub(before.lost),
        out_of_order: now.out_of_order.saturating_sub(before.out_of_order),
        jitter_s: now.jitter_s,
    }
}

impl Client {
    /// All that is known of the test, also when it did not come to its end.
    pub fn report(&self) -> Report {
        report(self)
    }

    /// Seconds that count.
    pub(super) fn duration_s(&self) -> f64 {
        (self.ended - self.counted_from).as_nanos() as f64 / 1e9
    }

    pub(super) fn measure_interval(&mut self, ctx: &Context<'_>) -> Interval {
        let at = |time| (time - self.counted_from) as Duration;
        let (start, end) = (at(self.interval_from), at(ctx.now));
        let mut streams = alloc::vec::Vec::with_capacity(self.streams.len());
        for (stream, marks) in self.streams.iter_mut().zip(&mut self.marks) {
            stream.measure(ctx);
            let info = marks.look(ctx, stream).filter(|_| stream.sends);
            let now = counted(stream);
            streams.push(StreamInterval {
                id: stream.id,
                sends: stream.sends,
                amount: since(now, marks.before),
                congestion_window: info.map(|info| info.congestion_window),
                send_window: info.map(|info| info.send_window),
                rtt: info.and_then(|info| info.rtt),
                rtt_var: info.and_then(|info| info.rtt_var),
                path_mtu: info.map(|info| info.path_mtu).filter(|mtu| *mtu > 0),
            });
            marks.before = now;
        }
        Interval { start_s: start.as_secs_f64(), end_s: end.as_secs_f64(), omitted: self.omits, streams }
    }
}

/// A number of the server's results.
fn number(json: &Value, name: &str) -> f64 {
    json[name].as_f64().filter(|n| n.is_finite() && *n >= 0.0).unwrap_or(0.0)
}

/// What the server says of a stream, and its seconds.
fn remote(json: &Value, server_sends: bool, is_udp: bool) -> (Amount, f64) {
    let whole = |name: &str| number(json, name) as u64;
    // A server before 3.14 counts the omit time in; a later one says how much of it that is.
    let counting = |all: &str, omitted: &str| whole(all).saturating_sub(whole(omitted));
    let retransmits = json["retransmits"].as_i64().and_then(|n| u64::try_from(n).ok());
    let amount = Amount {
        bytes: whole("bytes"),
        retransmits: retransmits.filter(|_| server_sends && !is_udp),
        packets: counting("packets", "omitted_packets"),
        lost: counting("errors", "omitted_errors"),
        out_of_order: 0,
        jitter_s: number(json, "jitter"),
    };
    (amount, (number(json, "end_time") - number(json, "start_time")).max(0.0))
}

fn stream_end(client: &Client, index: usize, stream: &Stream) -> StreamEnd {
    let marks = client.marks.get(index).copied().unwrap_or_default();
    let (ours, ours_s) = (counted(stream), client.duration_s());
    let is_udp = client.params.protocol == Protocol::Udp;
    let found = client.results.as_ref().and_then(|results| {
        let all = results["streams"].as_array()?;
        all.iter().find(|one| one["id"].as_u64() == Some(u64::from(stream.id)))
    });
    let (theirs, theirs_s) = match found {
        Some(json) => {
            let (amount, seconds) = remote(json, !stream.sends, is_udp);
            (amount, if seconds > 0.0 { seconds } else { ours_s })
        }
        None => (Amount::default(), ours_s),
    };
    let ((sent, sent_s), (received, received_s)) = match stream.sends {
        true => ((ours, ours_s), (theirs, theirs_s)),
        false => ((theirs, theirs_s), (ours, ours_s)),
    };
    StreamEnd {
        id: stream.id,
        sends: stream.sends,
        sent,
        received,
        sent_s,
        received_s,
        max_congestion_window: marks.max_congestion_window.filter(|_| stream.sends),
        max_send_window: marks.max_send_window.filter(|_| stream.sends),
        rtt: marks.rtt().filter(|_| stream.sends),
    }
}

/// All that is known of a test.
fn report(client: &Client) -> Report {
    let results = client.results.as_ref().unwrap_or(&Value::Null);
    let cpu = |name: &str| number(results, name);
    let text = |name: &str| results[name].as_str().map(Into::into);
    let streams = client.streams.iter().enumerate();
    Report {
        server: client.config.server,
        params: client.params.clone(),
        cookie: client.cookie,
        mss: client.mss,
        connected: client.connected.clone(),
        streams: streams.map(|(index, stream)| stream_end(client, index, stream)).collect(),
        has_server: client.results.is_some(),
        duration_s: client.duration_s(),
        cpu: client.cpu_share,
        server_cpu: [cpu("cpu_util_total"), cpu("cpu_util_user"), cpu("cpu_util_system")],
        congestion: client.streams.iter().find_map(|stream| stream.congestion),
        server_congestion: text("congestion_used"),
        // The original's server sends it to each client after the first that asked for it.
        server_output: text("server_output_text")
            .or_else(|| {
                let json = &results["server_output_json"];
                (!json.is_null()).then(|| alloc::format!("{json:#}"))
            })
            .filter(|_| client.params.server_output),
        title: client.config.title.clone(),
    }
}
