//! A run for people.

use super::outcome::{FlowOutcome, HostOutcome, Outcome, PathOutcome};
use super::scenario::Side;
use super::verdict;
use linerate_transport::LimitCause;
use std::fmt::Write as _;
use std::time::Duration;

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
        host(&mut text, side, outcome.hosts.of(side));
    }
    text
}

fn one(text: &mut String, outcome: &Outcome, flow: &FlowOutcome) {
    let from = flow.flow.from;
    let _ = writeln!(text, "{} -> {}: {}", from.name(), from.other().name(), transferred(outcome, flow));
    if let Some(info) = flow.info {
        let again = info.retransmits as f64 / info.segments_sent.max(1) as f64;
        let _ = writeln!(
            text,
            "  segments    {} sent, of them {} again ({})",
            count(info.segments_sent),
            count(info.retransmits),
            share(again)
        );
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
        let _ = writeln!(text, "  limited by  {}", causes.join(", "));
    }
    let verdict = verdict::of(outcome, flow);
    let _ = writeln!(text, "  bottleneck  {}: {}", verdict.bottleneck, verdict.because);
    let _ = writeln!(text, "  advice      {}\n", verdict.advice);
}

/// How much came in how long, and how it ended.
fn transferred(outcome: &Outcome, flow: &FlowOutcome) -> String {
    let mut text = bytes(flow.received);
    if let Some(time) = flow.active() {
        let _ = write!(text, " in {}, {}", span(time), rate(flow.goodput_bps()));
    }
    let sharing = outcome.flows.iter().filter(|other| other.flow.from == flow.flow.from).count();
    if let Some(ideal) = outcome.ideal_bps(flow.flow.from)
        && sharing == 1
    {
        let _ = write!(text, " ({} of the ideal {})", share(flow.goodput_bps() / ideal), rate(ideal));
    }
    match flow.closed {
        Some(reason) if !flow.is_complete => {
            let _ = write!(text, "; ended early: {reason:?}");
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
            span(path.mean_wait)
        );
    }
    let _ = writeln!(text, "{line}");
}

fn host(text: &mut String, side: Side, host: &HostOutcome) {
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
        ("refused", nic.tx_refused),
    ];
    for (name, number) in counted.into_iter().filter(|(_, number)| *number > 0) {
        let _ = write!(line, ", {} {name}", count(number));
    }
    let _ = writeln!(text, "{line}");
}

/// What a cause is called.
pub fn cause_name(cause: LimitCause) -> &'static str {
    match cause {
        LimitCause::Application => "application",
        LimitCause::SendBuffer => "send buffer",
        LimitCause::Congestion => "congestion window",
        LimitCause::PeerWindow => "peer's window",
        LimitCause::Device => "device",
        LimitCause::Processor => "processor",
        LimitCause::Pacing => "pacing",
    }
}

/// Four digits at most, no needless ones.
fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 { 0 } else { 2 - value.abs().max(1.0).log10().floor() as usize };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Bits per second.
pub fn rate(bps: f64) -> String {
    match bps {
        1e9.. => format!("{} Gbit/s", digits(bps / 1e9)),
        1e6.. => format!("{} Mbit/s", digits(bps / 1e6)),
        1e3.. => format!("{} kbit/s", digits(bps / 1e3)),
        _ => format!("{} bit/s", digits(bps)),
    }
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0x4000_0000.. => format!("{} GiB", digits(value / 1_073_741_824.0)),
        0x10_0000.. => format!("{} MiB", digits(value / 1_048_576.0)),
        0x400.. => format!("{} KiB", digits(value / 1_024.0)),
        _ => format!("{bytes} B"),
    }
}

/// A time.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        1.0.. => format!("{} s", digits(seconds)),
        1e-3.. => format!("{} ms", digits(seconds * 1e3)),
        _ => format!("{} us", digits(seconds * 1e6)),
    }
}

/// A share of a whole.
pub fn share(part: f64) -> String {
    format!("{} %", digits(part * 100.0))
}

/// A number with its thousands apart.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(rate(94_930_000.0), "94.9 Mbit/s");
        assert_eq!(rate(1e9), "1 Gbit/s");
        assert_eq!(bytes(65_536), "64 KiB");
        assert_eq!(bytes(1_000), "1000 B");
        assert_eq!(span(Duration::from_micros(2_346)), "2.35 ms");
        assert_eq!(span(Duration::from_secs(10)), "10 s");
        assert_eq!(share(0.00512), "0.51 %");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }
}
