//! Resources that are used up: the link, an interface, a processor, the way back.

use super::windows;
use crate::quantity::{bytes, rate, share, span};
use crate::scenario::file::Side;
use crate::scenario::outcome::{FlowOutcome, Outcome};
use crate::verdict::{Verdict, verdict};
use std::time::Duration;

/// A link this busy is the limit, whatever else there is.
const BUSY: f64 = 0.95;
/// The same for a processor: it also waits for interrupts.
const BUSY_PROCESSOR: f64 = 0.9;
/// A busy link whose receiver gets less than this part of what it could carry is busy with something else.
const USEFUL: f64 = 0.9;
/// Waiting this many times the round-trip time without a queue is a bloated one.
const BLOAT: f64 = 2.0;
/// Small segments are worth a word when full ones would carry this much more.
const GAIN: f64 = 1.1;

/// The rate is used up.
pub(super) fn link(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let side = flow.flow.from;
    let used = outcome.paths.of(side).used;
    if used < BUSY || outcome.paths.of(side).changes {
        return None;
    }
    let bps = outcome.rate_bps(side) as f64;
    let is_path = outcome.paths.of(side).path.rate_bps.is_some_and(|path| path <= outcome.rate_bps(side));
    let place = if is_path { "the link" } else { "the interface" };
    let busy = format!("{place} was busy {} of the time at {}", share(used), rate(bps));
    // What is all in one segment is as long as it is.
    let is_one = flow.info.is_some_and(|info| {
        flow.queued <= u64::from(info.send_mss) && info.segments_sent <= 1 + info.retransmits
    });
    if let Some(verdict) = small_segments(outcome, flow, &busy).filter(|_| !is_one) {
        return Some(verdict);
    }
    if !is_one
        && useful_bytes(outcome, side) * 8.0
            < USEFUL * bps * flow.payload_share() * outcome.active().as_secs_f64()
    {
        return None;
    }
    let because = format!("{busy} (at most {} of payload)", rate(bps * flow.payload_share()));
    let wait = outcome.paths.of(side).mean_wait();
    let base = windows::bare_rtt(outcome, side).max(Duration::from_millis(1));
    if !is_one && wait.as_secs_f64() > BLOAT * base.as_secs_f64() && wait > Duration::from_millis(10) {
        let because = format!("{because}; its queue holds everything up by {}", span(wait));
        let advice = "the rate is used up, but others wait too: a smaller queue, or queue = { codel = true, ecn = true } with \
                      tcp.ecn = \"request\"";
        return Some(verdict(place, because, advice));
    }
    Some(verdict(place, because, "nothing is left to gain at this rate"))
}

/// What all transfers of a side got, and what may have been on its way when the run ended: on the wire, and in part.
fn useful_bytes(outcome: &Outcome, side: Side) -> f64 {
    let path = &outcome.paths.of(side).path;
    let on_wire = outcome.rate_bps(side) as f64 / 8.0 * path.delay.as_secs_f64();
    let flows = outcome.flows.iter().filter(|flow| flow.flow.from == side);
    let got = |flow: &FlowOutcome| {
        let segment = flow.info.map_or(0.0, |info| f64::from(info.send_mss));
        flow.received as f64 + if flow.is_complete { 0.0 } else { 2.0 * segment }
    };
    flows.clone().map(got).sum::<f64>()
        + if flows.clone().all(|flow| flow.is_complete) { 0.0 } else { on_wire }
}

/// The link is busy, but with headers.
fn small_segments(outcome: &Outcome, flow: &FlowOutcome, busy: &str) -> Option<Verdict> {
    let info = flow.info?;
    let mtu = outcome.hosts.of(flow.flow.from).mtu;
    let headers = flow.header_bytes();
    // The end of the data takes a number too.
    let payload = (info.bytes_acked + u64::from(info.in_flight)).min(flow.queued) + info.bytes_retransmitted;
    let sent = payload as f64 / info.segments_sent.max(1) as f64;
    let share_of = |payload: f64| payload / (payload + headers);
    let full = share_of(mtu as f64 - flow.ip_header_bytes());
    let (now, negotiated) = (share_of(sent.min(f64::from(info.send_mss))), flow.payload_share());
    if full < GAIN * now {
        return None;
    }
    let is_alone = outcome.flows.iter().filter(|other| other.flow.from == flow.flow.from).count() == 1;
    let of_what = if is_alone { "of it with headers" } else { "of what this transfer sent were headers" };
    let because = |what: String| format!("{busy}, {} {of_what}: {what}", share(1.0 - now));
    // The application writes less at once than a segment holds.
    if full < GAIN * negotiated || now * GAIN < negotiated {
        let what = format!("{} in a segment that may hold {} B", bytes(sent as u64), info.send_mss);
        return Some(verdict("the sender", because(what), "write more at once, or without no-delay"));
    }
    let what = format!("{} B in a segment", info.send_mss);
    if (info.path_mtu as usize) < mtu {
        let what = format!("{what}, as the path carries packets of {} B", info.path_mtu);
        return Some(verdict("path MTU", because(what), "a path that carries longer packets"));
    }
    Some(verdict("the segment size", because(what), "a larger mss: the MTU has room for more"))
}

/// A processor is used up.
pub(super) fn processor(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let used = |side: Side| outcome.hosts.of(side).cpu_used;
    let sides = [flow.flow.from, flow.flow.from.other()];
    let busiest = sides.into_iter().max_by(|a, b| used(*a).total_cmp(&used(*b)))?;
    (used(busiest) >= BUSY_PROCESSOR).then(|| busy(outcome, busiest))
}

/// What a busy processor does.
pub(super) fn busy(outcome: &Outcome, side: Side) -> Verdict {
    let host = outcome.hosts.of(side);
    let cpu = host.cpu;
    let total = cpu.total().as_secs_f64().max(1e-9);
    let part = |time: Duration| share(time.as_secs_f64() / total);
    let name = match side {
        Side::Client => "the client's processor",
        Side::Server => "the server's processor",
    };
    let Some((what, worst)) = cpu.parts().into_iter().max_by_key(|(_, time)| *time) else {
        return verdict(name, "it was busy".to_owned(), "a faster processor");
    };
    let has_long_packets = host.offloads.tso4 && host.offloads.rx_coalescing;
    let advice = match what {
        "checksums" => "let the interface do checksums (offload tx-checksum, rx-checksum)",
        "bytes" => "a faster processor or memory: every byte costs",
        "copies" => "hand payload over instead of copying it",
        "calls" => "write and read more with a call: every call costs",
        "giving way" => "give way less often: every time costs",
        "interrupts" => "fewer interrupts (interrupt-timer, interrupt-packets)",
        _ if has_long_packets => "a faster processor, or a larger MTU: every packet costs",
        _ => "fewer, longer packets (offload tso and gro, a larger MTU): every packet costs",
    };
    let because =
        format!("it was busy {} of the time, {} of that with {what}", share(host.cpu_used), part(worst));
    verdict(name, because, advice)
}

/// The acknowledgements have no room.
pub(super) fn way_back(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let back = flow.flow.from.other();
    let used = outcome.paths.of(back).used_by_all;
    if used < BUSY || outcome.paths.of(back).changes {
        return None;
    }
    let because = format!(
        "acknowledgements have {} and use {} of it; they waited {} on average",
        rate(outcome.rate_bps(back) as f64),
        share(used),
        span(outcome.paths.of(back).mean_wait())
    );
    Some(verdict(
        "the way back",
        because,
        "more rate there, or fewer acknowledgements (delayed-ack-segments, gro)",
    ))
}

/// The handshake took long, and nothing was lost: its segments take long on the wire.
pub(super) fn slow_handshake(
    outcome: &Outcome,
    flow: &FlowOutcome,
    took: Duration,
    whole: Duration,
) -> Option<Verdict> {
    let on_wire = windows::round_trip(outcome, flow.flow.from, windows::SYN_FRAME) - outcome.base_rtt();
    if on_wire * 2 < took / 2 {
        return None;
    }
    let slower =
        [flow.flow.from, flow.flow.from.other()].into_iter().min_by_key(|side| outcome.rate_bps(*side))?;
    let because = format!(
        "the handshake took {} of {}: its segments and the answers to them take {} a round trip at {}",
        span(took),
        span(whole),
        span(on_wire),
        rate(outcome.rate_bps(slower) as f64)
    );
    Some(verdict("the link", because, "more rate, or keep connections open for more than one transfer"))
}

/// The interface, or the ring in front of it, took no more.
pub(super) fn device(outcome: &Outcome, flow: &FlowOutcome, time: &str) -> Verdict {
    let side = flow.flow.from;
    let host = outcome.hosts.of(side);
    let used = host.line_used;
    if host.nic.tx_ring_full > 0 && used < USEFUL {
        let because = format!(
            "its {} packets were full {time}, while the interface was busy {} of the time; a packet leaves it {} after its \
             last bit",
            host.tx_ring,
            share(used),
            span(host.completion_delay)
        );
        return verdict(
            "the transmit ring",
            because,
            "a larger tx-ring, or completions that are told sooner",
        );
    }
    let because = format!("it had more to send than it could {time}, at {}", rate(host.line_rate_bps as f64));
    verdict("the interface", because, "a faster line-rate")
}
