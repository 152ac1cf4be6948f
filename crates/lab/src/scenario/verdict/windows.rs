//! A window that was full carries its size a round trip: either it is too small for the path, or a part of the round trip
//! that need not be is too long.

use super::{sender, slow_reader};
use crate::quantity::{bytes, rate, share, span};
use crate::scenario::file::Side;
use crate::scenario::outcome::{FlowOutcome, Outcome};
use crate::verdict::{self, Verdict, verdict};
use linerate_sim::wire_bytes;
use linerate_transport::{BufferSize, LimitCause};
use std::time::Duration;

/// A window of this part of what the path holds without waiting is large enough for it.
const ENOUGH: f64 = 0.8;
/// A part of the round trip is the limit when it is this part of it.
const MOST: f64 = 0.5;
/// Acknowledgements of more than this part of what is under way come too rarely to keep it moving.
const RARE: f64 = 0.25;
/// Payload and headers of an acknowledgement's frame in bytes.
const ACK_FRAME: usize = 66;

/// The same of a segment of the handshake.
pub(super) const SYN_FRAME: usize = 74;

/// A part of the round trip that need not be. Waiting in the queue before the link is none: that is the link being busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    WayBack,
    Jitter,
    Interrupts,
    Acknowledgement,
}

/// What the path holds, in bytes: rate times round-trip time without waiting.
pub(super) fn path_holds(outcome: &Outcome, from: Side) -> u64 {
    (outcome.rate_bps(from) as f64 / 8.0 * bare_rtt(outcome, from).as_secs_f64()) as u64
}

/// The round trip of a full segment and its acknowledgement when nothing waits.
pub(super) fn bare_rtt(outcome: &Outcome, from: Side) -> Duration {
    round_trip(outcome, from, outcome.hosts.of(from).mtu + 14)
}

/// The round trip of a frame of so many bytes and its acknowledgement when nothing waits.
pub(super) fn round_trip(outcome: &Outcome, from: Side, frame: usize) -> Duration {
    let on_wire = |side: Side, len: usize| {
        let bits = wire_bytes(len) as f64 * 8.0;
        let path = outcome.paths.of(side).path.rate_bps.map_or(0.0, |bps| bits / bps.max(1) as f64);
        Duration::from_secs_f64(path + bits / outcome.hosts.of(side).line_rate_bps.max(1) as f64)
    };
    outcome.base_rtt() + on_wire(from, frame) + on_wire(from.other(), ACK_FRAME)
}

/// The parts of the round trip that need not be, by how long they took. What nobody else has counted is the time that the
/// receiver took to acknowledge.
fn waits(outcome: &Outcome, flow: &FlowOutcome, rtt: Duration) -> [(Wait, Duration); 4] {
    let from = flow.flow.from;
    let both = |wait: &dyn Fn(Side) -> Duration| wait(from) + wait(from.other());
    let [queue, way_back] = [from, from.other()].map(|side| outcome.paths.of(side).mean_wait());
    let jitter = both(&|side| outcome.paths.of(side).mean_lateness());
    let interrupts = both(&|side| outcome.hosts.of(side).mean_rx_wait());
    let known = bare_rtt(outcome, from) + queue + way_back + jitter + interrupts;
    [
        (Wait::WayBack, way_back),
        (Wait::Jitter, jitter),
        (Wait::Interrupts, interrupts),
        (Wait::Acknowledgement, rtt.saturating_sub(known)),
    ]
}

/// The longest of them, if it is most of the round trip.
fn longest(outcome: &Outcome, flow: &FlowOutcome) -> Option<(Wait, Duration, Duration)> {
    let rtt = flow.time_in_flight()?;
    let (wait, time) = waits(outcome, flow, rtt).into_iter().max_by_key(|(_, time)| *time)?;
    (time.as_secs_f64() >= MOST * rtt.as_secs_f64()).then_some((wait, time, rtt))
}

/// The window of this kind was full.
pub(super) fn of(outcome: &Outcome, flow: &FlowOutcome, cause: LimitCause, part: f64) -> Verdict {
    let time = format!("for {} of the time", share(part));
    let from = flow.flow.from;
    let is_receiver = cause == LimitCause::PeerWindow;
    if is_receiver && flow.mean.unread > flow.mean.window {
        return slow_reader(flow, &time);
    }
    let owner = if is_receiver { from.other() } else { from };
    let size = if is_receiver { flow.flow.receive_buffer } else { flow.flow.send_buffer };
    let (BufferSize::Fixed(allowed) | BufferSize::Auto { max: allowed }) = size;
    let window = if is_receiver { flow.mean.window } else { flow.mean.in_flight };
    if let Some(verdict) = memory(outcome, flow, owner, allowed, &time) {
        return verdict;
    }
    let is_enough = window >= ENOUGH * path_holds(outcome, from) as f64;
    if let Some((wait, took, rtt)) = longest(outcome, flow)
        && is_enough
    {
        let why = format!(
            "{} were under way on average, enough for the round trip of {}, but data was acknowledged after {}, {} of it",
            bytes(flow.mean.in_flight as u64),
            span(bare_rtt(outcome, from)),
            span(rtt),
            span(took)
        );
        return waiting(wait, &why);
    }
    if is_enough && let Some(verdict) = rare_acknowledgements(outcome, flow, &time) {
        return verdict;
    }
    let mut known = sender(outcome, flow);
    if let BufferSize::Auto { .. } = size {
        known.send_buffer = Some(flow.mean.in_flight as u64);
    }
    let mut found = verdict::by_cause(cause, part, &known);
    if let Some(took) = flow.time_in_flight() {
        let nominal = match (is_receiver, size) {
            (_, BufferSize::Fixed(bytes)) => format!("its {} were", bytes_of(bytes)),
            (true, BufferSize::Auto { .. }) => {
                format!("its window ({} on average) was", bytes(window as u64))
            }
            (false, BufferSize::Auto { max }) => format!("it (at most {}) was", bytes_of(max)),
        };
        found.because = format!(
            "{nominal} full {time}: {} under way, acknowledged after {}, are {}",
            bytes(flow.mean.in_flight as u64),
            span(took),
            rate(flow.mean.in_flight * 8.0 / took.as_secs_f64().max(1e-9))
        );
        if let Some([_, rtt, _]) = flow.rtt.filter(|[_, rtt, _]| took > *rtt * 3 / 2) {
            found.because = format!(
                "{}; a round trip took {}, the rest is the wait of acknowledgements for a second segment",
                found.because,
                span(rtt)
            );
        }
    }
    found
}

fn bytes_of(size: usize) -> String {
    bytes(size as u64)
}

/// The memory of a host holds less than its sockets were allowed: that keeps their buffers from growing.
fn memory(outcome: &Outcome, flow: &FlowOutcome, owner: Side, allowed: usize, time: &str) -> Option<Verdict> {
    let host = outcome.hosts.of(owner);
    let wanted =
        (allowed as u64).min(2 * path_holds(outcome, flow.flow.from)) * outcome.flows.len().max(1) as u64;
    if wanted <= host.memory as u64 / 2 {
        return None;
    }
    let because = format!(
        "the {}'s sockets have {} in all ({} used on average), and a buffer that may have {} could not grow {time}",
        owner.name(),
        bytes_of(host.memory),
        share(host.memory_used),
        bytes_of(allowed)
    );
    let advice = format!("more memory: the path holds {}", bytes(path_holds(outcome, flow.flow.from)));
    Some(verdict("memory", because, advice))
}

/// Each acknowledgement stands for so much of what is under way that the sender waits between two of them.
fn rare_acknowledgements(outcome: &Outcome, flow: &FlowOutcome, time: &str) -> Option<Verdict> {
    let acknowledgements = outcome.paths.of(flow.flow.from.other()).stats.delivered.max(1);
    let received: u64 = outcome.flows.iter().map(|flow| flow.received).sum();
    let each = received as f64 / acknowledgements as f64;
    let segment = flow.info.map_or(1.0, |info| f64::from(info.send_mss.max(1)));
    let is_rare = each > 2.0 * segment && each > RARE * flow.mean.in_flight;
    is_rare.then(|| {
        let because = format!(
            "one came for every {:.0} segments, while {} were under way on average: the sender waited for them {time}",
            each / segment,
            bytes(flow.mean.in_flight as u64)
        );
        verdict("delayed acknowledgements", because, "a smaller delayed-ack-segments at the receiver, or larger buffers")
    })
}

/// Nothing was lost, and the congestion window was full all the same.
pub(super) fn growing(outcome: &Outcome, flow: &FlowOutcome, full: &str) -> Verdict {
    if let Some((wait, took, rtt)) = longest(outcome, flow) {
        let why = format!(
            "{full}it grows once a round trip, and data was acknowledged after {}, {} of it",
            span(rtt),
            span(took)
        );
        return waiting(wait, &why);
    }
    if let Some(verdict) = rare_acknowledgements(outcome, flow, full.trim_end_matches(": ")) {
        return verdict;
    }
    let rounds = flow
        .active()
        .zip(flow.rtt)
        .map_or(0.0, |(time, [_, rtt, _])| time.as_secs_f64() / rtt.as_secs_f64().max(1e-9));
    verdict(
        "slow start",
        format!(
            "{full}nothing was lost, and it was still growing when the transfer ended after {rounds:.0} round trips"
        ),
        "this is how long a short transfer takes; a connection that is kept open is faster",
    )
}

/// What a part of the round trip is called, and what to do about it; `why` ends before it.
fn waiting(wait: Wait, why: &str) -> Verdict {
    match wait {
        Wait::WayBack => verdict(
            "the way back",
            format!("{why} in the queue of the acknowledgements"),
            "a shorter queue there, or queue = \"codel\", for what else goes that way",
        ),
        Wait::Jitter => verdict(
            "jitter",
            format!("{why} because delays vary"),
            "a path whose delay is steady, or larger buffers, which make up for it",
        ),
        Wait::Interrupts => verdict(
            "interrupt delay",
            format!("{why} in receive rings, until the next interrupt"),
            "a shorter interrupt-timer, or fewer interrupt-packets",
        ),
        Wait::Acknowledgement => verdict(
            "delayed acknowledgements",
            format!("{why} until the receiver acknowledged"),
            "a smaller delayed-ack-segments or delayed-ack-timeout at the receiver",
        ),
    }
}
