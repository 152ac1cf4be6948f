//! The arithmetic of a verdict, in sentences.

use super::judge::{Judgement, MOST};
use crate::explain::cause::Cause;
use crate::explain::evidence::Evidence;
use crate::explain::wait::Wait;
use crate::quantity::{byte_rate, bytes, count, share, span};
use std::time::Duration;

/// A time in seconds, as people read it.
pub fn seconds(time_s: f64) -> String {
    span(Duration::from_secs_f64(time_s.clamp(0.0, 1e9)))
}

fn of_bytes(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

/// What speaks for the judgement: the case for it, then what was not the limit.
pub fn sentences(evidence: &Evidence, judgement: &Judgement) -> Vec<String> {
    let mut all = vec![case(evidence, judgement.cause)];
    if judgement.cause != Cause::Unknown || evidence.has_data {
        all.extend(marks(evidence));
        all.extend(pause(evidence, judgement.cause));
        all.extend(longest_wait(evidence, judgement.cause));
        all.extend(window(evidence, judgement.cause));
        all.extend(path(evidence, judgement));
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}

/// The case for a cause.
fn case(evidence: &Evidence, cause: Cause) -> String {
    let waits = |wait: Wait| share(evidence.waits[wait as usize]);
    let rate = byte_rate(evidence.rate * 8.0);
    let rtt = evidence.rtt_median_s.or(evidence.rtt_least_s);
    let counts = &evidence.counts;
    match cause {
        Cause::ReceiverWindow => full_window(evidence),
        Cause::ReceiverApplication => unread(evidence),
        Cause::SenderBuffer => format!(
            "{} were under way on average and never more than {}: always as much, with room in the window {}; {}",
            of_bytes(evidence.flight_mean),
            bytes(evidence.flight_high),
            match evidence.lost {
                0 if evidence.counts.again() > 0 => {
                    format!("and nothing lost, though {} sent again in vain", count(evidence.counts.again()))
                }
                0 => "and nothing lost".to_owned(),
                1 => "though a segment was lost".to_owned(),
                lost => format!("though {} segments were lost", count(lost)),
            },
            carried(evidence.flight_mean, rtt, &rate)
        ),
        Cause::SenderApplication => format!(
            "the sender waits {} of the time for its own application: what it had written was sent, or the other end had not asked",
            waits(Wait::Application)
        ),
        Cause::CongestionAfterLoss => format!(
            "{} segments were lost in {} recoveries, {:.1} in each and {:.1} in a row on average; {} under way on average, {} at most",
            count(evidence.lost),
            count(counts.recoveries),
            evidence.lost as f64 / counts.recoveries.max(1) as f64,
            evidence.run,
            of_bytes(evidence.flight_mean),
            bytes(evidence.flight_most)
        ),
        Cause::RandomLoss => format!(
            "{} of {} segments were lost, {:.1} in a row on average, in {} recoveries: {}",
            count(evidence.lost),
            count(evidence.segments),
            evidence.run,
            count(counts.recoveries),
            mathis(evidence)
        ),
        Cause::Reordering => format!(
            "{} segments were overtaken or reported twice, {} really lost: the sender took for lost what was late",
            count(evidence.overtaken()),
            count(evidence.lost)
        ),
        Cause::DelayedAckNagle => format!(
            "{} times the sender held back less than a segment until all was acknowledged, {} of the time, {} each time, {} of it beyond \
             a round trip",
            count(evidence.nagle.0),
            waits(Wait::Nagle),
            seconds(evidence.nagle.1 / evidence.nagle.0.max(1) as f64),
            seconds(evidence.nagle.2 / evidence.nagle.0.max(1) as f64)
        ),
        Cause::PathBandwidth | Cause::Queueing => full_path(evidence, &rate),
        Cause::Pacing => format!(
            "{rate}, in trains no faster than {}, and data never waited on the path: the sender keeps to a rate",
            evidence.train_rates.map_or("that".to_owned(), |rates| byte_rate(rates[2] * 8.0))
        ),
        Cause::SmallSegments => format!(
            "segments carry {} each where the sender's interface takes more: with full ones the same path would carry {} more",
            of_bytes(evidence.mean_segment),
            share(evidence.fuller - 1.0)
        ),
        _ => "the capture does not tell what limited".to_owned(),
    }
}

/// A window that is full whenever the sender waits, or most of it is in use by a sender that paces.
fn full_window(evidence: &Evidence) -> String {
    let size =
        format!("{} on average and {} of its largest", of_bytes(evidence.window_mean), share(evidence.open));
    let waits = evidence.waits[Wait::Window as usize] + evidence.waits[Wait::WindowUpdate as usize];
    match waits < MOST {
        true => format!(
            "of the window, {size}, {} were in use on average, and it had no room for a segment {} of the time",
            of_bytes(evidence.flight_mean),
            share(evidence.at_edge)
        ),
        false => format!("the window, {size}, was full whenever the sender waited for most of the time"),
    }
}

/// A receiver that does not read.
fn unread(evidence: &Evidence) -> String {
    let asked = match evidence.counts.probes {
        0 => String::new(),
        probes => format!(", and the sender asked {} whether it opens", times(probes)),
    };
    let size = match evidence.window_most {
        0 => String::new(),
        _ => format!(
            "{} on average, {} of its largest, ",
            of_bytes(evidence.window_mean),
            share(evidence.open)
        ),
    };
    format!("the receiver's window was {size}{}: data lay unread{asked}", closed(evidence))
}

fn closed(evidence: &Evidence) -> String {
    match evidence.counts.zero_windows {
        0 => "never quite closed".to_owned(),
        number => format!(
            "closed {} for {} in all",
            times(number),
            seconds(evidence.counts.zero_window_ns as f64 / 1e9)
        ),
    }
}

/// The longest pause, where the receiver's window was closed in it and nothing else is known.
fn pause(evidence: &Evidence, cause: Cause) -> Option<String> {
    (cause == Cause::Unknown && evidence.pauses_for_the_receiver()).then(|| {
        let longest_s = evidence.counts.zero_window_longest_ns as f64 / 1e9;
        let which = match evidence.counts.zero_windows {
            1 => "the longest pause of all".to_owned(),
            _ => format!("the longest pause of all was one of them, {}", seconds(longest_s)),
        };
        let part = share(evidence.closed);
        format!("the receiver's window was {}, {part} of the time: {which}", closed(evidence))
    })
}

/// How often.
fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{} times", count(number)),
    }
}

/// What routers' marks tell.
fn marks(evidence: &Evidence) -> Option<String> {
    let counts = &evidence.counts;
    (evidence.marks + counts.congestion_echoes + counts.slowed > 0).then(|| {
        format!(
            "a queue on the path marks instead of dropping (ECN): {} marks seen, {} acknowledgements echo one, the sender slowed down {}",
            count(evidence.marks),
            count(counts.congestion_echoes),
            times(counts.slowed)
        )
    })
}

/// What so much under way carries at that round-trip time.
fn carried(flight: f64, rtt_s: Option<f64>, rate: &str) -> String {
    match rtt_s.filter(|rtt| *rtt > 0.0) {
        Some(rtt) => {
            let carries = byte_rate(flight / rtt * 8.0);
            format!("{} / {} = {carries}; {rate} measured", of_bytes(flight), seconds(rtt))
        }
        None => format!("{rate} measured"),
    }
}

/// What a congestion window carries at that loss.
fn mathis(evidence: &Evidence) -> String {
    let loss = evidence.lost as f64 / evidence.segments.max(1) as f64;
    match evidence.rtt_median_s.or(evidence.rtt_least_s).zip(evidence.by_losses()) {
        Some((rtt, carries)) => format!(
            "1.22 x {} / {} / sqrt({}) = {}; {} measured",
            bytes(evidence.mss),
            seconds(rtt),
            share(loss),
            byte_rate(carries * 8.0),
            byte_rate(evidence.rate * 8.0)
        ),
        None => "the congestion window never grew".to_owned(),
    }
}

fn full_path(evidence: &Evidence, rate: &str) -> String {
    let trains = evidence.train_rates.map_or(String::new(), |[_, trains, ..]| {
        if evidence.rate > trains {
            format!("{rate}, as fast as packets follow each other")
        } else {
            format!("{rate} of the {} at which packets follow each other", byte_rate(trains * 8.0))
        }
    });
    let queue = match (evidence.queue_rtts(), evidence.rtt_least_s) {
        (Some(wait), Some(least)) => format!(
            ", and a round trip of {} instead of {}: {} in a queue ({:.1} times the way)",
            seconds(least * (1.0 + wait)),
            seconds(least),
            of_bytes(evidence.rate * least * wait),
            wait
        ),
        _ => String::new(),
    };
    format!("{trains}{queue}")
}

/// The longest of the sender's waits, as long as it is not the case itself.
fn longest_wait(evidence: &Evidence, cause: Cause) -> Option<String> {
    let of_time = |wait: &Wait| evidence.waits[*wait as usize];
    let longest = Wait::ALL.into_iter().max_by(|a, b| of_time(a).total_cmp(&of_time(b)))?;
    let part = of_time(&longest);
    let is_told = matches!(
        (cause, longest),
        (Cause::SenderApplication, Wait::Application) | (Cause::DelayedAckNagle, Wait::Nagle)
    );
    (part > 0.0 && !is_told)
        .then(|| format!("the sender waits {} of the time for {}", share(part), longest.name()))
}

/// The least share of a window that is under way where it limits: it is full on average up to the last segment or two.
const NEARLY: f64 = 0.7;

/// What the peer's window would carry.
fn window(evidence: &Evidence, cause: Cause) -> Option<String> {
    // In less than a round trip, nothing that was measured is a rate.
    let rtt =
        evidence.rtt_median_s.or(evidence.rtt_least_s).filter(|rtt| *rtt > 0.0 && *rtt <= evidence.time_s)?;
    let is_case = cause == Cause::ReceiverWindow;
    let window = if is_case { evidence.window_mean } else { evidence.window_most as f64 };
    if window <= 0.0 || evidence.rate <= 0.0 {
        return None;
    }
    // Less than a segment of room is left unused (RFC 9293 section 3.8.6.2.1): of a window of one or two, that is much.
    let mss = evidence.mss.max(1) as f64;
    let whole = (window / mss).floor() * mss;
    let (carried, part_of_it) = match is_case && whole > 0.0 && evidence.rate < NEARLY * window / rtt {
        true => (whole, format!(", {} of it in whole segments,", of_bytes(whole))),
        false => (window, String::new()),
    };
    let carries = carried / rtt;
    let measured = byte_rate(evidence.rate * 8.0);
    let verdict = match evidence.rate / carries {
        // A mean window and a median round trip are no exact bound; what is far beyond them was none.
        beyond if beyond > 1.0 && is_case => "all that it lets through",
        beyond if beyond > 1.0 => "not the limit",
        // An inferred window is the least that fits, so that what was measured is never far below it.
        _ if !evidence.scale_known && !is_case && cause != Cause::ReceiverApplication => {
            "it may be larger, and is not known to be the limit"
        }
        part if part >= NEARLY => "the limit",
        _ if is_case => "the limit whenever the sender waited for it",
        _ => "not the limit",
    };
    let guessed = if evidence.scale_known { "" } else { " (scale not seen, inferred)" };
    Some(format!(
        "peer's window {}{guessed}{part_of_it} / {} = {}; {measured} measured: {verdict}",
        of_bytes(window),
        seconds(rtt),
        byte_rate(carries * 8.0)
    ))
}

/// What the path seems to carry, where it was not full.
fn path(evidence: &Evidence, judgement: &Judgement) -> Option<String> {
    if judgement.full || matches!(judgement.cause, Cause::Pacing | Cause::SmallSegments) {
        return None;
    }
    let [_, rate, _] = evidence.train_rates?;
    (evidence.rate < rate * 0.8).then(|| {
        format!("packets follow each other at up to {}: the path is not full", byte_rate(rate * 8.0))
    })
}
