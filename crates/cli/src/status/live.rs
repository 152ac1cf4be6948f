//! What limits a live connection, and what to do about it, from what the server's end of it knows.

use linerate_lab::quantity::{bytes, rate, share, span};
use linerate_lab::verdict::{Sender, Verdict, by_cause, verdict};
use linerate_transport::{ConnDetail, LimitCause};
use std::time::Duration;

/// Payload in one direction this many times that of the other makes it the direction of the connection.
const ONE_WAY: f64 = 4.0;
/// This much of a window in use is a full one.
const FULL: f64 = 0.8;
/// No more than this much of a window can be in use.
const STALE: f64 = 1.2;

/// What was seen of a connection within a span of time.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its measurements.
    pub detail: &'a ConnDetail,
    /// Whether it is a socket of the host's, whose kernel knows nothing of what waits in our queue.
    pub is_kernel: bool,
    /// Payload sent, in bits per second.
    pub send_rate: f64,
    /// Payload received, in bits per second.
    pub receive_rate: f64,
    /// The cause with the largest share of the time, and that share.
    pub cause: Option<(LimitCause, f64)>,
}

/// The verdict.
pub fn of(seen: &Seen<'_>) -> Verdict {
    let ConnDetail { info, state, queued, unread } = seen.detail;
    if matches!(*state, "syn-sent" | "syn-received") {
        return verdict(
            "the handshake",
            "it has not ended yet".to_owned(),
            "wait; if it stays, look at the path",
        );
    }
    if *state == "time-wait" {
        return verdict(
            "nothing",
            "it is over, and waits for old segments to die out".to_owned(),
            "nothing to do",
        );
    }
    if seen.receive_rate > seen.send_rate * ONE_WAY {
        return receiving(seen);
    }
    let moves = seen.send_rate > 0.0 || seen.receive_rate > 0.0;
    if !moves && *queued == 0 && *unread == 0 && info.in_flight == 0 {
        return verdict(
            "nothing",
            "it is idle: neither side has anything to send".to_owned(),
            "nothing to do",
        );
    }
    let Some((cause, part)) = seen.cause else {
        return verdict("nothing", "nothing was measured yet".to_owned(), "look again in a second");
    };
    if seen.is_kernel && cause == LimitCause::Application && *queued > 0 {
        let because = format!(
            "the kernel had nothing to send for {} of the time, while {} waited here",
            share(part),
            bytes(*queued)
        );
        return verdict("the loop or the disk", because, "a faster processor or disk, or fewer connections");
    }
    let sender = Sender {
        rtt: info.rtt.unwrap_or_default(),
        send_buffer: None,
        peer_window: u64::from(info.send_window),
        path_holds: None,
        line_rate_bps: None,
        segment: u64::from(info.send_mss),
        segments: info.segments_sent,
        retransmits: info.retransmits,
        needless: info.duplicates_reported,
        reorders: info.reordering_seen,
    };
    advised(cause, by_cause(cause, part, &sender))
}

/// The same verdict, with parts and advice as the owner of a server knows them, not of a scenario's tables.
fn advised(cause: LimitCause, found: Verdict) -> Verdict {
    let (bottleneck, advice) = match cause {
        LimitCause::SendBuffer => (found.bottleneck, "more --memory, or a larger send-buffer in [tcp]"),
        LimitCause::PeerWindow => {
            ("the client's window", "a larger receive buffer at the client, or a client that reads faster")
        }
        LimitCause::Application => {
            ("the server", "nothing, if the client asked for no more; else a faster disk")
        }
        LimitCause::Device => (found.bottleneck, "a faster interface, or --offload all"),
        LimitCause::Processor => {
            (found.bottleneck, "a faster processor, --offload all, or fewer connections")
        }
        LimitCause::Nagle => (found.bottleneck, "no-delay = true in [tcp]"),
        LimitCause::Pacing => (found.bottleneck, "a higher rate: pacing in [tcp], or --fq-rate of iperf3"),
        LimitCause::Congestion => return found,
    };
    Verdict { bottleneck, advice: advice.to_owned(), ..found }
}

/// A connection that mostly receives. What keeps the client from sending faster is its own knowledge; ours is whether our
/// window or our server stood in its way.
fn receiving(seen: &Seen<'_>) -> Verdict {
    let ConnDetail { info, unread, .. } = seen.detail;
    let window = f64::from(info.receive_window);
    if *unread > 0 && *unread as f64 >= window * FULL {
        let because = format!(
            "{} lie unread, and only {} of window are left",
            bytes(*unread),
            bytes(u64::from(info.receive_window))
        );
        return verdict(
            "the server",
            because,
            "a faster disk or processor: what it takes in has to go somewhere",
        );
    }
    let Some(rtt) = info.rtt.filter(|rtt| *rtt > Duration::ZERO) else {
        let because = format!("our window of {} was open", bytes(u64::from(info.receive_window)));
        return verdict("the client or the path", because, "look at the sending end");
    };
    let in_flight = seen.receive_rate / 8.0 * rtt.as_secs_f64();
    if in_flight > window * STALE {
        // More than fits: the round-trip time is an old one, as who mostly receives measures it rarely.
        let because = format!("our window of {} was open", bytes(u64::from(info.receive_window)));
        return verdict("the client or the path", because, "look at the sending end");
    }
    if in_flight >= window * FULL {
        let because = format!(
            "our window of {} a round trip of {} is {}",
            bytes(u64::from(info.receive_window)),
            span(rtt),
            rate(window * 8.0 / rtt.as_secs_f64())
        );
        return verdict(
            "our receive window",
            because,
            "more --memory, a larger receive-buffer in [tcp], or on a TAP device a longer txqueuelen",
        );
    }
    let because = format!(
        "about {} were in flight at a time, and our window of {} was open: {} of it was used",
        bytes(in_flight as u64),
        bytes(u64::from(info.receive_window)),
        share(in_flight / window.max(1.0))
    );
    verdict(
        "the client or the path",
        because,
        "look at the sending end: what it waits for is seen only there",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_transport::{ConnInfo, LimitTimes};

    fn detail() -> ConnDetail {
        let info = ConnInfo {
            local: "192.168.1.4:5201".parse().unwrap(),
            remote: "192.168.1.1:40000".parse().unwrap(),
            rtt: Some(Duration::from_millis(10)),
            rtt_var: None,
            rto: None,
            send_mss: 1448,
            congestion_window: 100_000,
            slow_start_threshold: None,
            send_window: 65_536,
            receive_window: 100_000,
            in_flight: 50_000,
            bytes_acked: 1_000_000,
            bytes_received: 0,
            retransmits: 0,
            bytes_retransmitted: 0,
            duplicates_reported: 0,
            reordering_seen: false,
            segments_sent: 1_000,
            path_mtu: 1_500,
            limits: LimitTimes::default(),
        };
        ConnDetail { info, state: "established", queued: 60_000, unread: 0 }
    }

    fn check(detail: ConnDetail, rates: (f64, f64), cause: LimitCause, bottleneck: &str, parts: &[&str]) {
        let seen = Seen {
            detail: &detail,
            is_kernel: false,
            send_rate: rates.0,
            receive_rate: rates.1,
            cause: Some((cause, 0.9)),
        };
        let verdict = of(&seen);
        assert_eq!(verdict.bottleneck, bottleneck, "{verdict:?}");
        for part in parts {
            let text = format!("{} {}", verdict.because, verdict.advice);
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }

    #[test]
    fn a_sender_is_judged_by_its_causes() {
        let sends = (50e6, 0.0);
        check(
            detail(),
            sends,
            LimitCause::PeerWindow,
            "the client's window",
            &["64 KiB", "90 %", "52.4 Mbit/s"],
        );
        let mut closed = detail();
        closed.info.send_window = 0;
        let closed_now = ["closed now", "90 %", "reads faster"];
        check(closed, (0.0, 0.0), LimitCause::PeerWindow, "the client's window", &closed_now);
        check(detail(), sends, LimitCause::Congestion, "the path", &["next to nothing was lost"]);
        let mut lossy = detail();
        lossy.info.retransmits = 20;
        check(lossy, sends, LimitCause::Congestion, "congestion window", &["20 of 1000", "2 %"]);
        lossy.info.reordering_seen = true;
        (lossy.info.retransmits, lossy.info.duplicates_reported) = (20, 9);
        check(lossy, sends, LimitCause::Congestion, "congestion window", &["20 of 1000", "2 %"]);
        lossy.info.duplicates_reported = 10;
        check(lossy, sends, LimitCause::Congestion, "reordering", &["10 of the 20", "in order"]);
        lossy.info.retransmits = 0;
        check(lossy, sends, LimitCause::Congestion, "the path", &["overtake each other", "in order"]);
        check(detail(), sends, LimitCause::Application, "the server", &["nothing queued", "90 %"]);
        check(detail(), sends, LimitCause::SendBuffer, "the send buffer", &["--memory"]);
        check(detail(), sends, LimitCause::Device, "the interface", &["90 %"]);
    }

    #[test]
    fn what_waits_before_the_kernel_is_not_the_clients_doing() {
        let detail = detail();
        let cause = Some((LimitCause::Application, 0.5));
        let seen = Seen { detail: &detail, is_kernel: true, send_rate: 1e6, receive_rate: 0.0, cause };
        let verdict = of(&seen);
        assert_eq!(verdict.bottleneck, "the loop or the disk");
        assert!(verdict.because.contains("50 %") && verdict.because.contains("58.6 KiB"), "{verdict:?}");
    }

    #[test]
    fn a_receiver_is_judged_by_its_window() {
        let receives = |rate| (0.0, rate);
        let cause = LimitCause::Application;
        check(detail(), receives(10e6), cause, "the client or the path", &["12.2 KiB", "12.5 %"]);
        check(detail(), receives(79e6), cause, "our receive window", &["97.7 KiB", "80 Mbit/s", "--memory"]);
        check(detail(), receives(200e6), cause, "the client or the path", &["97.7 KiB was open"]);
        let mut slow = detail();
        (slow.unread, slow.info.receive_window) = (90_000, 1_000);
        check(slow, receives(79e6), cause, "the server", &["87.9 KiB"]);
        let mut unmeasured = detail();
        unmeasured.info.rtt = None;
        check(unmeasured, receives(10e6), cause, "the client or the path", &["sending end"]);
    }

    #[test]
    fn what_does_nothing_is_not_blamed() {
        let mut idle = detail();
        (idle.queued, idle.info.in_flight) = (0, 0);
        check(idle, (0.0, 0.0), LimitCause::Application, "nothing", &["idle"]);
        let mut over = detail();
        over.state = "time-wait";
        check(over, (0.0, 0.0), LimitCause::Application, "nothing", &["over"]);
        let mut opening = detail();
        opening.state = "syn-received";
        check(opening, (0.0, 0.0), LimitCause::Application, "the handshake", &[]);
        // Something is queued, and nothing moves: that is worth a cause.
        check(detail(), (0.0, 0.0), LimitCause::PeerWindow, "the client's window", &["full"]);
    }
}
