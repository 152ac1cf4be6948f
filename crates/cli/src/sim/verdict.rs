//! What limited a transfer, in plain words, and what to do about it.

use super::models::ReaderModel;
use super::outcome::{FlowOutcome, Outcome};
use super::text::{bytes, rate, share, span};
pub use crate::verdict::Verdict;
use crate::verdict::{self, Sender, reno_bound_bps, verdict};
use linerate_sim::Queue;
use linerate_transport::{BufferSize, LimitCause};
use std::time::Duration;

/// A link this busy is the limit, whatever else there is.
const BUSY: f64 = 0.95;
/// A pause of this many round trips without waiting, of three with it, and of a second at least, is a stall.
const STALL_ROUNDS: u32 = 10;
/// Segments lost in a ring that are worth a word.
const RING_LOSS: f64 = 0.000_5;
/// Waiting this many times the round-trip time without a queue is a bloated one.
const BLOAT: f64 = 2.0;

/// What limited a transfer of a run. The checks go from what stops a transfer over what loses segments without need to what
/// only bounds its rate.
pub fn of(outcome: &Outcome, flow: &FlowOutcome) -> Verdict {
    broken(outcome, flow)
        .or_else(|| ring(outcome, flow))
        .or_else(|| link(outcome, flow))
        .or_else(|| stalled(outcome, flow))
        .unwrap_or_else(|| by_cause(outcome, flow))
}

/// The transfer did not work at all.
fn broken(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    if let Some(error) = &flow.error {
        return Some(verdict("an error", error.clone(), "this is a fault of the stack: please report it"));
    }
    if flow.opened_at.is_none() {
        let because = match flow.closed {
            Some(reason) => format!("no connection came to be ({reason:?})"),
            None => "no connection came to be in the time".to_owned(),
        };
        return Some(verdict("the path", because, "let both directions pass packets"));
    }
    let too_long = outcome.paths.of(flow.flow.from).stats.too_long;
    if flow.received == 0 && too_long > 0 {
        return Some(verdict(
            "path MTU",
            format!("{too_long} packets were too long for the path, and nothing arrived"),
            "lower world.mtu, or tcp.mss, to what the path carries",
        ));
    }
    if flow.received == 0 {
        let because = format!("nothing arrived in {}", span(outcome.time));
        return Some(verdict("the path", because, "look at the counters of the path above"));
    }
    None
}

/// The receiver's ring loses what the network brought.
fn ring(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let host = outcome.hosts.of(flow.flow.from.other());
    let lost = host.nic.rx_ring_full + host.nic.rx_no_buffer;
    if (lost as f64) < RING_LOSS * host.nic.rx_segments.max(1) as f64 {
        return None;
    }
    let info = flow.info?;
    let frames = flow_window(flow).div_ceil(u64::from(info.send_mss.max(1)));
    let because = format!(
        "the receive ring of {} frames was full for {lost} of {} segments, while {} of window ({frames} frames) may come \
         at once",
        host.rx_ring,
        host.nic.rx_segments,
        bytes(flow_window(flow))
    );
    let advice = format!(
        "make rx-ring at least {frames}, or receive-buffer at most {}",
        bytes(host.rx_ring as u64 * u64::from(info.send_mss))
    );
    Some(verdict("the receive ring", because, advice))
}

/// The most that the receiver lets come at once.
fn flow_window(flow: &FlowOutcome) -> u64 {
    let window = flow.info.map_or(0, |info| info.send_window);
    match flow.flow.receive_buffer {
        BufferSize::Fixed(bytes) => bytes as u64,
        BufferSize::Auto { .. } => u64::from(window),
    }
}

/// For a long time nothing got on.
fn stalled(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let waited = flow.rtt.map_or(Duration::ZERO, |[_, mean, _]| mean * 3);
    let long = (outcome.base_rtt() * STALL_ROUNDS).max(waited).max(Duration::from_secs(1));
    let reads = !matches!(flow.flow.reader, Some(ReaderModel::From(_) | ReaderModel::Never));
    if flow.longest_stall < long || !reads {
        return None;
    }
    let path = outcome.paths.of(flow.flow.from);
    let because =
        format!("nothing new came for {} from {} on", span(flow.longest_stall), span(flow.stalled_at));
    Some(match path.stats.too_long {
        0 => verdict("a stall", because, "see the plot: an outage, or losses that only the timer repairs"),
        count => verdict(
            "path MTU",
            format!("{because}; {count} packets were too long for the path"),
            "let routers tell of it (too-long-is-told), or lower world.mtu",
        ),
    })
}

/// The rate is used up.
fn link(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let side = flow.flow.from;
    let used = outcome.utilisation(side);
    if used < BUSY || outcome.paths.of(side).changes {
        return None;
    }
    let is_path = outcome.paths.of(side).path.rate_bps.is_some_and(|path| path <= outcome.rate_bps(side));
    let place = if is_path { "the link" } else { "the interface" };
    let payload = rate(outcome.rate_bps(side) as f64 * flow.payload_share());
    let because = format!(
        "{} was busy {} of the time at {} (at most {payload} of payload)",
        place,
        share(used),
        rate(outcome.rate_bps(side) as f64)
    );
    let wait = outcome.paths.of(side).mean_wait;
    let base = outcome.base_rtt().max(Duration::from_millis(1));
    if wait.as_secs_f64() > BLOAT * base.as_secs_f64() && wait > Duration::from_millis(10) {
        let because = format!("{because}; its queue holds everything up by {}", span(wait));
        let advice = "the rate is used up, but others wait too: a smaller queue, or queue = { codel = true, ecn = true } with \
                      tcp.ecn = \"request\"";
        return Some(verdict(place, because, advice));
    }
    Some(verdict(place, because, "nothing is left to gain at this rate"))
}

/// By what the sender's clocks say.
fn by_cause(outcome: &Outcome, flow: &FlowOutcome) -> Verdict {
    let Some((cause, part)) = flow.main_limit() else {
        return verdict(
            "the connection",
            "it ended before anything could be measured".to_owned(),
            "send more",
        );
    };
    let rtt = flow.rtt.map_or(outcome.base_rtt(), |[_, mean, _]| mean);
    let product = outcome.rate_bps(flow.flow.from) as f64 / 8.0 * outcome.base_rtt().as_secs_f64();
    let (BufferSize::Fixed(send_buffer) | BufferSize::Auto { max: send_buffer }) = flow.flow.send_buffer;
    let sender = Sender {
        rtt,
        send_buffer: Some(send_buffer as u64),
        peer_window: flow_window(flow),
        path_holds: Some(product as u64),
        line_rate_bps: Some(outcome.hosts.of(flow.flow.from).line_rate_bps as f64),
        segment: flow.info.map_or(0, |info| u64::from(info.send_mss)),
        segments: flow.info.map_or(0, |info| info.segments_sent),
        retransmits: flow.info.map_or(0, |info| info.retransmits),
    };
    match (cause, flow.flow.reader) {
        (LimitCause::PeerWindow, Some(reader)) => {
            slow_reader(reader, &format!("for {} of the time", share(part)))
        }
        (LimitCause::Congestion, _) => {
            congestion(outcome, flow, &format!("for {} of the time", share(part)), rtt)
        }
        _ => verdict::by_cause(cause, part, &sender),
    }
}

fn slow_reader(reader: ReaderModel, time: &str) -> Verdict {
    let how = match reader {
        ReaderModel::Rate(bits) => format!("it reads {} and", rate(bits.value())),
        ReaderModel::From(at) => format!("it reads from {} on and", span(at)),
        ReaderModel::Never => "it never reads and".to_owned(),
    };
    let because = format!("{how} kept its window full {time}");
    verdict("the reader", because, "read faster: no buffer makes up for that")
}

fn congestion(outcome: &Outcome, flow: &FlowOutcome, time: &str, rtt: Duration) -> Verdict {
    let path = outcome.paths.of(flow.flow.from);
    let stats = path.stats;
    let offered = stats.offered.max(1) as f64;
    let because = |why: String| format!("it was full {time}: {why}");
    let lost = stats.lost + stats.scripted;
    let own = stats.queue_full + stats.codel_dropped;
    if lost > 0 && lost >= own {
        let rate_of_loss = lost as f64 / offered;
        let bound = flow.info.map_or(0.0, |info| reno_bound_bps(f64::from(info.send_mss), rtt, rate_of_loss));
        let why = format!(
            "the path lost {lost} of {} segments ({}), each taken for congestion; Reno could do {} here (RFC 9438 \
             section 5.2)",
            stats.offered,
            share(rate_of_loss),
            rate(bound)
        );
        return verdict(
            "congestion window",
            because(why),
            "find what loses segments; more rate would not help",
        );
    }
    if own > 0 {
        let depth = match path.path.queue {
            Queue::DropTail { .. } => bytes(stats.queue_max_bytes as u64),
            _ => "the managed queue".to_owned(),
        };
        let why = format!("the queue ({depth} at most) dropped {own} of {} segments", stats.offered);
        let advice =
            "a queue of a round trip's worth of data, pacing = \"auto\", or marks (ecn) instead of drops";
        return verdict("congestion window", because(why), advice);
    }
    if stats.reordered > 0 {
        let why = format!("{} segments came late and were taken for lost", stats.reordered);
        return verdict("congestion window", because(why), "keep segments of a flow in order");
    }
    if stats.corrupted > 0 {
        let why = format!("{} segments were damaged on the way", stats.corrupted);
        return verdict("congestion window", because(why), "find what damages segments");
    }
    verdict(
        "slow start",
        because("it was still growing when the transfer ended".to_owned()),
        "this is how long a short transfer takes; a connection that is kept open is faster",
    )
}
