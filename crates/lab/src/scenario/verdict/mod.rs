//! What limited a transfer, in plain words, and what to do about it.
//!
//! The checks go from what stops a transfer, over a resource that is used up, to what bounds its rate: the cause that the
//! sender's clocks name. What hides behind that cause is found from what the paths, interfaces and hosts counted: which
//! kind of mishap made the window small, or which part of the round trip made it too small.

mod losses;
mod nothing;
mod resources;
mod windows;

#[cfg(test)]
mod tests;

use super::models::{ReaderModel, WriterModel};
use super::outcome::{FlowOutcome, Outcome};
use crate::quantity::{bytes, rate, share, span};
pub use crate::verdict::Verdict;
use crate::verdict::{self, Sender, verdict};
use linerate_transport::{BufferSize, LimitCause};
use std::time::Duration;

/// A pause of this many round trips without waiting, of three with it, and of a second at least, is a stall.
const STALL_ROUNDS: u32 = 10;
/// A handshake is the limit when it took this part of the whole time, and so many round trips.
const HANDSHAKE: (f64, u32) = (0.5, 4);

/// What limited a transfer of a run.
pub fn of(outcome: &Outcome, flow: &FlowOutcome) -> Verdict {
    broken(outcome, flow)
        .or_else(|| handshake(outcome, flow))
        .or_else(|| resources::link(outcome, flow))
        .or_else(|| resources::processor(outcome, flow))
        .or_else(|| losses::at_receiver(outcome, flow))
        .or_else(|| stalled(outcome, flow))
        .or_else(|| resources::way_back(outcome, flow))
        .unwrap_or_else(|| by_cause(outcome, flow))
}

/// The transfer did not work at all.
fn broken(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    if let Some(error) = &flow.error {
        return Some(verdict("an error", error.clone(), "this is a fault of the stack: please report it"));
    }
    if flow.opened_at.is_none() && flow.flow.start >= outcome.time {
        let because =
            format!("the run of {} ended before its start at {}", span(outcome.time), span(flow.flow.start));
        return Some(verdict("the scenario", because, "a longer world.duration, or an earlier start"));
    }
    let path = outcome.paths.of(flow.flow.from);
    if flow.received == 0 && flow.flow.reader.is_none() {
        // Who was too busy to write has something to send all the same.
        let is_tried = flow.opened_at.is_none() || flow.queued > 0;
        let found =
            if is_tried { nothing::cause(outcome, flow) } else { resources::processor(outcome, flow) };
        if found.is_some() {
            return found;
        }
    }
    if flow.opened_at.is_none() {
        let lost = path.stats.lost + outcome.paths.of(flow.flow.from.other()).stats.lost;
        let mut because = match flow.closed {
            Some(reason) => format!("no connection came to be: {}", ended(reason)),
            None => format!("no connection came to be in {}", span(outcome.time)),
        };
        if lost > 0 {
            because = format!("{because}; {lost} segments of the handshake were lost");
        }
        return Some(verdict("the path", because, "let both directions pass packets"));
    }
    let too_long = path.stats.too_long;
    if flow.received == 0 && too_long > 0 {
        return Some(verdict(
            "path MTU",
            format!("{too_long} packets were too long for the path, and nothing arrived"),
            "lower world.mtu, or tcp.mss, to what the path carries",
        ));
    }
    if flow.received == 0 && flow.queued == 0 {
        let because = "it had nothing to send".to_owned();
        return Some(verdict("the sender", because, "give it bytes or a duration"));
    }
    if flow.received == 0 && flow.flow.reader.is_none() {
        let because = format!("nothing arrived in {}", span(outcome.time));
        return Some(verdict("the path", because, "look at the counters of the path above"));
    }
    None
}

/// Why a connection ended, in words.
pub fn ended(reason: linerate_transport::CloseReason) -> &'static str {
    use linerate_transport::CloseReason as Reason;
    match reason {
        Reason::Done => "both sides finished",
        Reason::Reset => "the peer reset it",
        Reason::Refused => "the peer refused it",
        Reason::Unreachable => "the peer cannot be reached",
        Reason::TimedOut => "nothing was acknowledged within the user timeout",
        Reason::KeepAlive => "the peer answered no keep-alive probe",
        Reason::NoMemory => "the memory ran out",
        Reason::File => "a file could not be read",
        Reason::Stale => "it was over before",
    }
}

/// Most of the time went by before there was a connection.
fn handshake(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let took = flow.opened_at?.checked_sub(flow.flow.start)?;
    let whole = flow.until.checked_sub(flow.flow.start)?;
    let usual = outcome.base_rtt().max(Duration::from_millis(1)) * HANDSHAKE.1;
    if took < usual || took.as_secs_f64() < HANDSHAKE.0 * whole.as_secs_f64() {
        return None;
    }
    if !losses::has_lost(outcome) {
        return resources::slow_handshake(outcome, flow, took, whole);
    }
    let because = format!(
        "it took {} of {}: its segments were lost, and sent again by a timer",
        span(took),
        span(whole)
    );
    Some(verdict(
        "the handshake",
        because,
        "find what loses them, or keep connections open for more than one transfer",
    ))
}

/// For a long time nothing got on.
fn stalled(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let waiting = outcome.paths.client.mean_wait() + outcome.paths.server.mean_wait();
    let waited = (outcome.base_rtt() + waiting) * 3;
    let long = (outcome.base_rtt() * STALL_ROUNDS).max(waited).max(Duration::from_secs(1));
    let waits = flow.flow.reader.is_some() || flow.flow.writer.is_some();
    if flow.longest_stall < long || waits {
        return None;
    }
    let path = outcome.paths.of(flow.flow.from);
    let because =
        format!("nothing new came for {} from {} on", span(flow.longest_stall), span(flow.stalled_at));
    if path.stats.too_long > 0 {
        return Some(verdict(
            "path MTU",
            format!("{because}; {} packets were too long for the path", path.stats.too_long),
            "let routers tell of it (too-long-is-told), or lower world.mtu",
        ));
    }
    if let Some(verdict) = nothing::interrupts(outcome) {
        return Some(verdict);
    }
    // What the counters know, they know better.
    if losses::has_any(flow) && !path.changes {
        return None;
    }
    Some(verdict("a stall", because, "see the plot: an outage, or losses that only the timer repairs"))
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
    let time = format!("for {} of the time", share(part));
    match cause {
        LimitCause::Congestion => losses::congestion(outcome, flow, &time),
        LimitCause::PeerWindow | LimitCause::SendBuffer => {
            losses::behind_a_window(outcome, flow, cause, &time)
                .unwrap_or_else(|| windows::of(outcome, flow, cause, part))
        }
        LimitCause::Application => application(flow, &time),
        LimitCause::Device => resources::device(outcome, flow, &time),
        LimitCause::Processor => resources::busy(outcome, flow.flow.from),
        LimitCause::Nagle | LimitCause::Pacing => verdict::by_cause(cause, part, &sender(outcome, flow)),
    }
}

/// What the sender knows, for what live connections and simulated ones share.
fn sender(outcome: &Outcome, flow: &FlowOutcome) -> Sender {
    let rtt = flow.rtt.map_or(outcome.base_rtt(), |[_, mean, _]| mean);
    let (BufferSize::Fixed(send_buffer) | BufferSize::Auto { max: send_buffer }) = flow.flow.send_buffer;
    Sender {
        rtt,
        send_buffer: Some(send_buffer as u64),
        peer_window: flow.mean.window as u64,
        path_holds: Some(windows::path_holds(outcome, flow.flow.from)),
        line_rate_bps: Some(outcome.hosts.of(flow.flow.from).line_rate_bps as f64),
        segment: flow.info.map_or(0, |info| u64::from(info.send_mss)),
        segments: flow.info.map_or(0, |info| info.segments_sent),
        retransmits: flow.info.map_or(0, |info| info.retransmits),
        // What the path did is known, and judged, without asking the sender.
        needless: 0,
        reorders: false,
    }
}

/// The application had nothing to send.
fn application(flow: &FlowOutcome, time: &str) -> Verdict {
    let (how, advice) = match flow.flow.writer {
        Some(WriterModel::Rate(bits)) => (
            format!("it writes {} and had nothing queued {time}", rate(bits.value())),
            "write faster: the network was idle",
        ),
        Some(WriterModel::Pieces { bytes: size, every }) => (
            format!("it writes {} every {} and had nothing queued {time}", bytes(size), span(every)),
            "write more at once, or more often: the network was idle",
        ),
        Some(WriterModel::Calls { bytes: size, .. }) => (
            format!("it writes {} a call and had nothing queued {time}", bytes(size)),
            "write more at once: the network was idle",
        ),
        Some(WriterModel::Request { bytes: size }) => (
            format!("it waits for an answer to each {} and had nothing queued {time}", bytes(size)),
            "longer requests, or several at a time: each costs a round trip",
        ),
        None => (format!("it had nothing queued {time}"), "send more, or for longer: the network was idle"),
    };
    verdict("the sender", how, advice)
}

/// The receiver leaves in its buffer what it has got.
fn slow_reader(flow: &FlowOutcome, time: &str) -> Verdict {
    let how = match flow.flow.reader {
        Some(ReaderModel::Rate(bits)) => format!("it reads {}", rate(bits.value())),
        Some(ReaderModel::From(at)) => format!("it reads from {} on", span(at)),
        Some(ReaderModel::Never) => "it never reads".to_owned(),
        None => "it is slower than the network".to_owned(),
    };
    let because = format!(
        "{how}: {} waited to be read, and kept the window full {time}",
        bytes(flow.mean.unread as u64)
    );
    verdict("the reader", because, "read faster: no buffer makes up for that")
}
