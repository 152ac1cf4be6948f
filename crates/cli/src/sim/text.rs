//! A run for people.

use linerate_lab::quantity::{byte_rate, count};
pub use linerate_lab::quantity::{bytes, rate, share, span};
use linerate_lab::scenario::file::Side;
use linerate_lab::scenario::outcome::{FlowOutcome, HostOutcome, Outcome, PathOutcome, QueueOutcome};
use linerate_lab::scenario::verdict;
pub use linerate_lab::verdict::cause_name;
use linerate_transport::{ConnInfo, LimitCause};
use std::fmt::Write as _;

/// Causes that took less than this share of the time are not printed.
const WORTH: f64 = 0.001;

/// The whole answer.
pub fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    if let Some(title) = &outcome.title {
        let _ = writeln!(text, "{title}");
    }
    let _ = writeln!(text, "seed {}, {} of virtual time\n", outcome.seed, span(outcome.time));
    for flow in &outcome.flows {
        one(&mut text, outcome, flow);
    }
    for side in [Side::Server, Side::Client] {
        path(&mut text, side, outcome.paths.of(side));
    }
    for side in [Side::Server, Side::Client] {
        host(&mut text, side, outcome);
    }
    text
}

fn one(text: &mut String, outcome: &Outcome, flow: &FlowOutcome) {
    let from = flow.flow.from;
    let _ = writeln!(text, "{} -> {}: {}", from.name(), from.other().name(), transferred(outcome, flow));
    if let Some(info) = flow.info {
        let _ = writeln!(text, "  segments    {}", segments(&info));
        if let Some([least, mean, most]) = flow.rtt {
            let _ = writeln!(
                text,
                "  round trip  {} mean, {} to {} smoothed, {} without waiting",
                span(mean),
                span(least),
                span(most),
                span(outcome.base_rtt())
            );
        }
        let ns = info.limits.ns;
        let total = ns.iter().sum::<u64>().max(1) as f64;
        let mut causes: Vec<(f64, LimitCause)> =
            LimitCause::ALL.into_iter().map(|cause| (ns[cause as usize] as f64 / total, cause)).collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        let causes: Vec<String> = causes
            .into_iter()
            .filter(|(part, _)| *part >= WORTH)
            .map(|(part, cause)| format!("{} {}", cause_name(cause), share(part)))
            .collect();
        if !causes.is_empty() {
            let _ = writeln!(text, "  limited by  {}", causes.join(", "));
        }
    }
    let verdict = verdict::of(outcome, flow);
    let _ = writeln!(text, "  bottleneck  {}: {}", verdict.bottleneck, verdict.because);
    let _ = writeln!(text, "  advice      {}\n", verdict.advice);
}

/// How many segments with data were sent. Those of the handshake and of the end, which have none, may be sent again too.
fn segments(info: &ConnInfo) -> String {
    // Each segment with data that was sent again had a byte at least, and was sent before.
    let most = info.bytes_retransmitted.min(info.segments_sent.saturating_sub(1));
    let again = info.retransmits.min(most);
    let sent = info.segments_sent.max(1) as f64;
    let mut text = format!(
        "{} sent, of them {} again ({})",
        count(info.segments_sent),
        count(again),
        share(again as f64 / sent)
    );
    if info.retransmits > again {
        let _ = write!(text, "; {} without data sent again", count(info.retransmits - again));
    }
    text
}

/// How much came in how long, and how it ended.
fn transferred(outcome: &Outcome, flow: &FlowOutcome) -> String {
    let mut text = bytes(flow.received);
    if let Some(time) = flow.active() {
        let goodput = flow.goodput_bps();
        let _ = write!(text, " in {}, {} = {}", span(time), rate(goodput), byte_rate(goodput));
    }
    let sharing = outcome.flows.iter().filter(|other| other.flow.from == flow.flow.from).count();
    if let Some(ideal) = outcome.ideal_bps(flow.flow.from)
        && sharing == 1
    {
        let _ = write!(text, " ({} of the ideal {})", share(flow.goodput_bps() / ideal), rate(ideal));
    }
    match flow.closed {
        Some(reason) if !flow.is_complete => {
            let _ = write!(text, "; ended early: {}", verdict::ended(reason));
        }
        _ => {}
    }
    text
}

fn path(text: &mut String, side: Side, path: &PathOutcome) {
    let stats = path.stats;
    let counted = [
        ("lost", stats.lost),
        ("dropped by the queue", stats.queue_full),
        ("dropped by CoDel", stats.codel_dropped),
        ("too long", stats.too_long),
        ("marked", stats.marked),
        ("damaged", stats.corrupted),
        ("doubled", stats.duplicated),
        ("held back", stats.reordered),
    ];
    let mut line = format!("from {}: {} segments", side.name(), count(stats.offered));
    for (name, number) in counted.into_iter().filter(|(_, number)| *number > 0) {
        let _ = write!(line, ", {} {name}", count(number));
    }
    if stats.queue_max > 0 {
        let _ = write!(
            line,
            "; queue at most {} ({} segments), {} to wait on average",
            bytes(stats.queue_max_bytes as u64),
            count(stats.queue_max as u64),
            span(path.mean_wait())
        );
    }
    let _ = writeln!(text, "{line}");
}

fn host(text: &mut String, side: Side, outcome: &Outcome) {
    let host = outcome.hosts.of(side);
    let nic = host.nic;
    let mut line = format!(
        "{}: {} packets as {} segments sent, {} segments as {} frames received in {} interrupts",
        side.name(),
        count(nic.tx_packets),
        count(nic.tx_segments),
        count(nic.rx_segments),
        count(nic.rx_frames),
        count(nic.interrupts)
    );
    let counted = [
        ("lost to a full receive ring", nic.rx_ring_full),
        ("lost for want of buffers", nic.rx_no_buffer),
        ("lost for want of memory", host.no_memory),
        ("refused", nic.tx_refused),
    ];
    for (name, number) in counted.into_iter().filter(|(_, number)| *number > 0) {
        let _ = write!(line, ", {} {name}", count(number));
    }
    if !host.cpu.total().is_zero() {
        let _ = write!(line, "; processor busy {}", share(host.cpu_used));
    }
    let _ = writeln!(text, "{line}");
    if host.queues.len() > 1 {
        queues(text, side, host);
    }
}

/// How frames were spread over the queues, and what went from one stack to another.
fn queues(text: &mut String, side: Side, host: &HostOutcome) {
    let whole = host.nic.rx_segments.max(1) as f64;
    let shares: Vec<String> =
        host.queues.iter().map(|queue| share(queue.nic.rx_segments as f64 / whole)).collect();
    let sum = |of: fn(&QueueOutcome) -> u64| host.queues.iter().map(of).sum::<u64>();
    let _ = writeln!(
        text,
        "{}: {} queues with {} of the segments; {} letters between them, with {} packets ({}) that came in elsewhere",
        side.name(),
        host.queues.len(),
        shares.join(", "),
        count(sum(|queue| queue.letters.letters)),
        count(sum(|queue| queue.letters.packets)),
        bytes(sum(|queue| queue.letters.packet_bytes))
    );
}
