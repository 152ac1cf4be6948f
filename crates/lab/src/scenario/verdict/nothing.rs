//! Why nothing came, where what was counted tells.

use super::{resources, windows};
use crate::quantity::{rate, span};
use crate::scenario::file::Side;
use crate::scenario::outcome::{FlowOutcome, Outcome};
use crate::verdict::{Verdict, verdict};
use linerate_sim::Jitter;
use std::time::Duration;

/// Damage is the reason when this part of all segments has it.
const MOST: f64 = 0.5;
/// Round trips before data can come: one finds the peer's address, one opens the connection.
const ROUNDS: u32 = 2;

/// Waiting so long for more frames is worth a word.
const LONG: Duration = Duration::from_millis(100);

/// What kept a connection from coming to be, or its data from arriving.
pub(super) fn cause(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    interrupts(outcome)
        .or_else(|| damaged(outcome))
        .or_else(|| too_slow(outcome, flow))
        .or_else(|| late(outcome, flow))
        .or_else(|| resources::processor(outcome, flow))
}

/// Frames wait for more of them, and there is no timer.
pub(super) fn interrupts(outcome: &Outcome) -> Option<Verdict> {
    [Side::Client, Side::Server].into_iter().find_map(|side| {
        let host = outcome.hosts.of(side);
        let packets = host.interrupt_packets?;
        let came = host.nic.rx_segments.saturating_sub(host.nic.rx_ring_full + host.nic.rx_no_buffer);
        let waiting = came.saturating_sub(host.nic.rx_taken);
        // What waited may have been taken when a timer of TCP made the host look.
        let waited = host.mean_rx_wait();
        let how = match waiting {
            0 if waited < LONG => return None,
            0 => format!("segments waited {} on average", span(waited)),
            _ => format!("{waiting} of {came} segments waited when the run ended"),
        };
        let because = format!(
            "with interrupt-mode none the {} hears of frames only when there are {packets}: {how}",
            side.name()
        );
        Some(verdict("interrupt delay", because, "another interrupt-mode, or interrupt-packets = 1"))
    })
}

/// Most of what was sent came damaged.
fn damaged(outcome: &Outcome) -> Option<Verdict> {
    [Side::Client, Side::Server].into_iter().find_map(|side| {
        let stats = outcome.paths.of(side).stats;
        let is_most = stats.corrupted > 0 && stats.corrupted as f64 >= MOST * stats.delivered as f64;
        is_most.then(|| {
            let because = format!(
                "{} of {} segments from the {} were damaged on the way",
                stats.corrupted,
                stats.offered,
                side.name()
            );
            verdict("damaged segments", because, "find what damages segments: a cable, a connector, a port")
        })
    })
}

/// Jitter makes all come later than who waits for it has patience.
fn late(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let from = flow.flow.from;
    let (side, by) = [from, from.other()]
        .into_iter()
        .filter(|side| outcome.paths.of(*side).path.jitter != Jitter::None)
        .map(|side| (side, outcome.paths.of(side).mean_lateness()))
        .max_by_key(|(_, by)| *by)
        .filter(|(_, by)| *by >= LONG)?;
    let what = if flow.opened_at.is_none() { "no connection came to be" } else { "nothing arrived" };
    let because =
        format!("{what}: what the {} sent came {} late on average by jitter", side.name(), span(by));
    Some(verdict("jitter", because, "less link.jitter"))
}

/// The time is too short for what must go there and back before.
fn too_slow(outcome: &Outcome, flow: &FlowOutcome) -> Option<Verdict> {
    let from = flow.flow.from;
    let (what, takes) = match flow.opened_at {
        None => {
            let trip = windows::round_trip(outcome, from, windows::SYN_FRAME);
            (format!("a connection takes {ROUNDS} round trips of {}", span(trip)), trip * ROUNDS)
        }
        Some(_) => {
            let trip = windows::bare_rtt(outcome, from);
            (format!("a full segment and its acknowledgement take {}", span(trip)), trip)
        }
    };
    let had = outcome.time.saturating_sub(flow.opened_at.unwrap_or(flow.flow.start));
    if takes < had {
        return None;
    }
    let because = format!("nothing could arrive in {}: {what}", span(had));
    if takes < outcome.base_rtt() * ROUNDS * 2 {
        return Some(verdict("the scenario", because, "a longer world.duration, or a shorter delay"));
    }
    let slower = [from, from.other()].into_iter().min_by_key(|side| outcome.rate_bps(*side))?;
    let because = format!("{because} at {}", rate(outcome.rate_bps(slower) as f64));
    Some(verdict("the link", because, "more rate, or a longer world.duration"))
}
