//! Why a window was small: losses by their kind, marks, and segments that came out of order.

use super::windows;
use crate::quantity::{bytes, rate, share, span};
use crate::scenario::file::Side;
use crate::scenario::outcome::{FlowOutcome, Outcome};
use crate::verdict::{Verdict, reno_bound_bps, verdict};
use linerate_sim::Queue;
use linerate_transport::{BufferSize, LimitCause};
use std::time::Duration;

/// Segments lost in a ring that are worth a word.
const RING_LOSS: f64 = 0.000_5;
/// Losses in runs of this length on average are bursts.
const BURST: f64 = 2.5;
/// Both directions lose when one loses this part of what the other does.
const BOTH: f64 = 0.2;
/// A window that would carry this many times what got through is not the limit.
const UNEXPLAINED: f64 = 1.5;
/// Acknowledgements lost that are worth a word: each stands for all before it.
const ACK_LOSS: f64 = 0.02;

/// A kind of mishap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Lost,
    Damaged,
    Queue,
    Codel,
    Marked,
    Ring,
    NoBuffer,
    NoMemory,
    TooLong,
    Reordered,
    Acks,
}

/// The kind that made the sender slow down most often; `None` when nothing did.
fn worst(outcome: &Outcome, flow: &FlowOutcome) -> Option<Kind> {
    let seen = &flow.mishaps;
    let there = outcome.paths.of(flow.flow.from);
    let kinds = [
        (Kind::Lost, seen.lost),
        (Kind::Damaged, seen.damaged),
        (Kind::Queue, seen.queue),
        (Kind::Codel, seen.codel),
        (Kind::Marked, seen.marked),
        (Kind::Ring, seen.ring),
        (Kind::NoBuffer, seen.no_buffer),
        (Kind::NoMemory, seen.no_memory),
        (Kind::TooLong, seen.too_long),
    ];
    let (kind, count) = kinds.into_iter().max_by_key(|(_, count)| *count)?;
    // Sent again without need, because it came late.
    let again = flow.info.map_or(0, |info| info.retransmits);
    if there.reorders() && again > 2 * dropped(outcome, flow) {
        return Some(Kind::Reordered);
    }
    if count > 0 {
        return Some(kind);
    }
    let back = outcome.paths.of(flow.flow.from.other());
    let lost = back.stats.offered.saturating_sub(back.stats.delivered) as f64;
    (seen.acks > 0 && lost > ACK_LOSS * back.stats.offered as f64).then_some(Kind::Acks)
}

/// Segments of the data's direction that did not get through, of all flows.
fn dropped(outcome: &Outcome, flow: &FlowOutcome) -> u64 {
    let there = outcome.paths.of(flow.flow.from).stats;
    let host = outcome.hosts.of(flow.flow.from.other());
    there.lost
        + there.scripted
        + there.corrupted
        + there.queue_full
        + there.codel_dropped
        + there.too_long
        + host.nic.rx_ring_full
        + host.nic.rx_no_buffer
        + host.no_memory
}

/// Whether anything was lost on the way, there or back.
pub(super) fn has_any(flow: &FlowOutcome) -> bool {
    let seen = &flow.mishaps;
    seen.lost + seen.damaged + seen.acks + seen.ring + seen.no_buffer + seen.no_memory > 0
}

/// Whether anything at all was lost, in either direction, or came damaged.
pub(super) fn has_lost(outcome: &Outcome) -> bool {
    [Side::Client, Side::Server].iter().any(|side| {
        let (path, host) = (outcome.paths.of(*side).stats, outcome.hosts.of(*side));
        let on_the_way = path.lost + path.scripted + path.corrupted + path.queue_full + path.codel_dropped;
        on_the_way + path.too_long + host.nic.rx_ring_full + host.nic.rx_no_buffer + host.no_memory > 0
    })
}

/// The receiver's interface or stack loses what the network brought.
pub(super) fn at_receiver(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let host = outcome.hosts.of(flow.flow.from.other());
    let lost = host.nic.rx_ring_full + host.nic.rx_no_buffer + host.no_memory;
    if (lost as f64) < RING_LOSS * host.nic.rx_segments.max(1) as f64 {
        return None;
    }
    let kind = worst(outcome, flow)?;
    matches!(kind, Kind::Ring | Kind::NoBuffer | Kind::NoMemory).then(|| explain(outcome, flow, kind, ""))
}

/// The congestion window was full.
pub(super) fn congestion(outcome: &Outcome, flow: &FlowOutcome, time: &str) -> Verdict {
    let full = format!("the congestion window was full {time}: ");
    match worst(outcome, flow) {
        Some(kind) => explain(outcome, flow, kind, &full),
        None => windows::growing(outcome, flow, &full),
    }
}

/// A window of this kind was full, but would have carried much more than got through: it was full because of losses, which
/// keep everything behind them from being acknowledged and read.
pub(super) fn behind_a_window(
    outcome: &Outcome,
    flow: &FlowOutcome,
    cause: LimitCause,
    time: &str,
) -> Option<Verdict> {
    let [least, ..] = flow.rtt?;
    let window = match (cause, flow.flow.send_buffer) {
        (LimitCause::SendBuffer, BufferSize::Fixed(bytes)) => bytes as f64,
        (LimitCause::SendBuffer, BufferSize::Auto { .. }) => flow.mean.in_flight,
        _ => flow.mean.window,
    };
    let could = (window * 8.0 / least.as_secs_f64().max(1e-9)).min(outcome.rate_bps(flow.flow.from) as f64);
    if could < UNEXPLAINED * flow.goodput_bps() {
        return None;
    }
    let kind = worst(outcome, flow)?;
    Some(explain(outcome, flow, kind, &format!("a window was full {time} behind what was missing: ")))
}

/// What a kind of mishap did.
fn explain(outcome: &Outcome, flow: &FlowOutcome, kind: Kind, full: &str) -> Verdict {
    let stats = outcome.paths.of(flow.flow.from).stats;
    let host = outcome.hosts.of(flow.flow.from.other());
    let of_all = |count: u64| format!("{count} of {} segments", stats.offered);
    match kind {
        Kind::Lost => lost(outcome, flow, full),
        Kind::Damaged => verdict(
            "damaged segments",
            format!("{full}{} were damaged on the way", of_all(stats.corrupted)),
            "find what damages segments: a cable, a connector, a port",
        ),
        Kind::Queue => verdict(
            "the queue",
            format!(
                "{full}the queue before the link ({} at most) dropped {}",
                bytes(stats.queue_max_bytes as u64),
                of_all(stats.queue_full)
            ),
            format!(
                "a queue of {} (a round trip's worth), pacing = \"auto\", or marks (ecn) instead of drops",
                bytes(windows::path_holds(outcome, flow.flow.from))
            ),
        ),
        Kind::Codel => verdict(
            "the queue",
            format!("{full}CoDel dropped {}", of_all(stats.codel_dropped)),
            "marks instead of drops (ecn), or a longer target where the round trip is long",
        ),
        Kind::Marked => marked(outcome, flow, full),
        Kind::Ring => ring(outcome, flow),
        Kind::NoBuffer => verdict(
            "the receive buffers of the interface",
            format!(
                "the interface had no buffer for {} of {} segments",
                host.nic.rx_no_buffer, host.nic.rx_segments
            ),
            "more rx-buffers, or a smaller receive-buffer",
        ),
        Kind::NoMemory => verdict(
            "memory",
            format!("the receiver had no memory for {} of {} segments", host.no_memory, host.nic.rx_segments),
            "more memory for the receiver, or a smaller receive-buffer",
        ),
        Kind::TooLong => verdict(
            "path MTU",
            format!("{full}{} were too long for the path", of_all(stats.too_long)),
            "let routers tell of it (too-long-is-told), or lower world.mtu",
        ),
        Kind::Reordered => reordered(outcome, flow, full),
        Kind::Acks => acks(outcome, flow, full),
    }
}

fn lost(outcome: &Outcome, flow: &FlowOutcome, full: &str) -> Verdict {
    let stats = outcome.paths.of(flow.flow.from).stats;
    let back = outcome.paths.of(flow.flow.from.other()).stats;
    let count = stats.lost + stats.scripted;
    let share_of = |count: u64, offered: u64| count as f64 / offered.max(1) as f64;
    let (there, returning) =
        (share_of(count, stats.offered), share_of(back.lost + back.scripted, back.offered));
    let run = stats.lost as f64 / stats.lost_runs.max(1) as f64;
    let rtt = flow.rtt.map_or(outcome.base_rtt(), |[_, mean, _]| mean);
    let bound = flow.info.map_or(0.0, |info| reno_bound_bps(f64::from(info.send_mss), rtt, there));
    let mut because = format!("{full}the path lost {count} of {} segments ({})", stats.offered, share(there));
    let is_burst = run >= BURST;
    if is_burst {
        because = format!("{because}, {run:.1} one after the other on average");
    }
    if returning >= BOTH * there {
        because = format!("{because}, and {} of the acknowledgements", share(returning));
        let advice =
            "both directions lose: look for a duplex mismatch, a bad cable or radio, or an overloaded device";
        return verdict("loss in both directions", because, advice);
    }
    if is_burst {
        let advice = "find what loses them together: a full buffer, a radio, an interface that resets";
        return verdict("burst loss", because, advice);
    }
    because = format!(
        "{because}, each taken for congestion; Reno could do {} here (RFC 9438 section 5.2)",
        rate(bound)
    );
    verdict("loss", because, "find what loses segments; more rate would not help")
}

fn ring(outcome: &Outcome, flow: &FlowOutcome) -> Verdict {
    let host = outcome.hosts.of(flow.flow.from.other());
    let segment = flow.info.map_or(1, |info| u64::from(info.send_mss.max(1)));
    let window = match flow.flow.receive_buffer {
        BufferSize::Fixed(bytes) => bytes as u64,
        BufferSize::Auto { .. } => flow.info.map_or(0, |info| u64::from(info.send_window)),
    };
    let frames = window.div_ceil(segment);
    let because = format!(
        "the receive ring of {} frames was full for {} of {} segments, while {} of window ({frames} frames) may come at once",
        host.rx_ring,
        host.nic.rx_ring_full,
        host.nic.rx_segments,
        bytes(window)
    );
    let advice = format!(
        "make rx-ring at least {frames}, or receive-buffer at most {}",
        bytes(host.rx_ring as u64 * segment)
    );
    verdict("the receive ring", because, advice)
}

fn marked(outcome: &Outcome, flow: &FlowOutcome, full: &str) -> Verdict {
    let path = outcome.paths.of(flow.flow.from);
    let holds = windows::path_holds(outcome, flow.flow.from);
    let advice = match path.path.queue {
        Queue::Threshold { mark_bytes, .. } => {
            format!("a mark above {}: the path holds {}", bytes(mark_bytes as u64), bytes(holds))
        }
        _ => "a longer target: marks come before the link is busy".to_owned(),
    };
    let because = format!(
        "{full}{} of {} segments were marked with congestion experienced",
        path.stats.marked, path.stats.offered
    );
    verdict("ECN marks", because, advice)
}

fn reordered(outcome: &Outcome, flow: &FlowOutcome, full: &str) -> Verdict {
    let path = outcome.paths.of(flow.flow.from);
    let again = flow.info.map_or(0, |info| info.retransmits);
    let because = format!(
        "{full}segments overtook each other (by {} on average), and {again} were sent again though {} were lost",
        span(
            Duration::from_nanos(path.stats.late_ns.checked_div(path.stats.reordered).unwrap_or(0))
                .max(path.mean_lateness())
        ),
        dropped(outcome, flow)
    );
    verdict("reordering", because, "keep segments of a flow in order")
}

fn acks(outcome: &Outcome, flow: &FlowOutcome, full: &str) -> Verdict {
    let back = outcome.paths.of(flow.flow.from.other()).stats;
    let lost = back.offered.saturating_sub(back.delivered);
    let because = format!(
        "{full}no data was lost, but {lost} of {} acknowledgements were ({})",
        back.offered,
        share(lost as f64 / back.offered.max(1) as f64)
    );
    verdict("lost acknowledgements", because, "find what loses segments on the way back")
}
