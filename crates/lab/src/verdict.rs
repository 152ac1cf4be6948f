//! What limited a connection, in plain words, and what to do about it: the part that a simulated and a live one share.

use crate::quantity::{bytes, rate, share, span};
use linerate_transport::{LimitCause, LimitTimes};
use std::time::Duration;

/// Segments sent again that are worth a word, as a share of all.
const LOSS: f64 = 0.000_1;

/// Advice where a path reorders.
const KEEP_ORDER: &str = "keep segments of a flow in order: one path and one queue for each";

/// The limit of one transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The part that limits, in one or two words.
    pub bottleneck: &'static str,
    /// Why, with figures.
    pub because: String,
    /// What would help.
    pub advice: String,
}

/// A verdict of these three.
pub fn verdict(bottleneck: &'static str, because: String, advice: impl Into<String>) -> Verdict {
    Verdict { bottleneck, because, advice: advice.into() }
}

/// What is known of the sending end of a connection, beside its time by cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sender {
    /// Round-trip time.
    pub rtt: Duration,
    /// Size of the send buffer in bytes; `None` where it grows by itself and its size is not known.
    pub send_buffer: Option<u64>,
    /// The peer's window in bytes.
    pub peer_window: u64,
    /// What the path holds, in bytes: its rate times its round-trip time; `None` where nobody knows the rate.
    pub path_holds: Option<u64>,
    /// Rate of our interface in bits per second, where it is known.
    pub line_rate_bps: Option<f64>,
    /// Payload bytes of a full segment.
    pub segment: u64,
    /// Segments sent with payload, the ones sent again among them.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Those of them that the peer reported to have come twice.
    pub needless: u64,
    /// Whether segments were seen to overtake each other.
    pub reorders: bool,
}

/// The cause of the longest time, and its share of all time; `None` when no time was measured.
pub fn main_limit(times: &LimitTimes) -> Option<(LimitCause, f64)> {
    let total: u64 = times.ns.iter().sum();
    let cause = LimitCause::ALL.into_iter().max_by_key(|cause| times.ns[*cause as usize])?;
    (total > 0).then(|| (cause, times.ns[cause as usize] as f64 / total as f64))
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
        LimitCause::Nagle => "Nagle",
    }
}

/// The verdict for a sender that `cause` limited for `part` of the time.
pub fn by_cause(cause: LimitCause, part: f64, sender: &Sender) -> Verdict {
    let time = format!("for {} of the time", share(part));
    let bound = |window: u64| rate(window as f64 * 8.0 / sender.rtt.as_secs_f64().max(1e-9));
    let larger = |name: &str| match sender.path_holds {
        Some(holds) => {
            format!("make {name} larger: the path holds {} (rate times round-trip time)", bytes(holds))
        }
        None => format!("make {name} larger"),
    };
    match cause {
        LimitCause::SendBuffer => {
            let because = match sender.send_buffer {
                Some(size) => format!(
                    "it was full {time}: {} a round trip of {} is {}",
                    bytes(size),
                    span(sender.rtt),
                    bound(size)
                ),
                None => format!("it was full {time}"),
            };
            verdict("the send buffer", because, larger("send-buffer"))
        }
        LimitCause::PeerWindow if sender.peer_window == 0 => verdict(
            "the receive buffer",
            format!(
                "its window was full {time}, and is closed now: nothing may be sent until the receiver reads"
            ),
            larger("receive-buffer"),
        ),
        LimitCause::PeerWindow => verdict(
            "the receive buffer",
            format!(
                "its window was full {time}: {} a round trip of {} is {}",
                bytes(sender.peer_window),
                span(sender.rtt),
                bound(sender.peer_window)
            ),
            larger("receive-buffer"),
        ),
        LimitCause::Congestion => congestion(&time, sender),
        LimitCause::Application => verdict(
            "the sender",
            format!("it had nothing queued {time}"),
            "send more, or for longer: the network was idle",
        ),
        LimitCause::Device => {
            let at = sender.line_rate_bps.map_or(String::new(), |bps| format!(", at {}", rate(bps)));
            let because = format!("it had more to send than it could {time}{at}");
            verdict("the interface", because, "a faster line-rate")
        }
        LimitCause::Processor => verdict(
            "the loop",
            format!("segments waited for their turn {time}"),
            "fewer flows, or larger interrupts",
        ),
        LimitCause::Nagle => verdict(
            "Nagle and delayed acknowledgements",
            format!("what was queued did not fill a segment, and waited for an acknowledgement {time}"),
            "set no-delay, or write whole messages at once",
        ),
        LimitCause::Pacing => {
            verdict("pacing", format!("the sender kept to its rate {time}"), "a higher rate for the socket")
        }
    }
}

/// The congestion window, as far as the sender alone can tell why it was not larger.
fn congestion(time: &str, sender: &Sender) -> Verdict {
    let lost = sender.retransmits as f64 / sender.segments.max(1) as f64;
    if lost < LOSS && sender.reorders {
        let because = format!(
            "it was full {time}, and next to nothing was lost, but segments overtake each other there"
        );
        return verdict("the path", because, KEEP_ORDER);
    }
    if lost < LOSS {
        let because = format!("it was full {time}, and next to nothing was lost");
        return verdict("the path", because, "nothing is left to gain here: the path carries no more");
    }
    if sender.reorders && sender.needless.saturating_mul(2) >= sender.retransmits {
        let because = format!(
            "the congestion window was full {time}: segments overtook each other on the way, and {} of the {} that were \
             sent again had not been lost",
            sender.needless.min(sender.retransmits),
            sender.retransmits
        );
        return verdict("reordering", because, KEEP_ORDER);
    }
    let because = format!(
        "it was full {time}: {} of {} segments were sent again ({}), each taken for congestion; Reno could do {} here \
         (RFC 9438 section 5.2)",
        sender.retransmits,
        sender.segments,
        share(lost),
        rate(reno_bound_bps(sender.segment as f64, sender.rtt, lost))
    );
    verdict("congestion window", because, "find what loses segments; more rate would not help")
}

/// What Reno reaches with random losses: 1.22 segments a round trip over the root of the loss rate (RFC 9438 section 5.2
/// compares with it; Mathis et al. 1997).
pub fn reno_bound_bps(segment: f64, rtt: Duration, loss: f64) -> f64 {
    1.22 * segment * 8.0 / (rtt.as_secs_f64().max(1e-9) * loss.max(1e-12).sqrt())
}
