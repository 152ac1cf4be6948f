//! The order of questions that leads from evidence to a cause.
//!
//! First, what ended the sender's waits: what it asked for itself (its application, Nagle's rule) or the receiver's window. Then,
//! whether the path was full, whether segments were small, whether bytes came at one pace without a queue, whether losses or
//! overtaking kept the congestion window down, and whether as much was always under way. Each number below has its reason.

use crate::explain::cause::Cause;
use crate::explain::evidence::Evidence;
use crate::explain::wait::Wait;

/// What took more time than all else together is what limited.
pub const MOST: f64 = 0.5;
/// A path is full whose bytes pass at this part of the rate that its trains have: recoveries and the start take the rest.
const FULL: f64 = 0.8;
/// Bytes come at one pace if trains are faster than their mean by no more than a tenth.
const STEADY: f64 = 0.9;
/// More than half of a round trip is the queue if it waits for longer than the way takes.
const LONG_QUEUE: f64 = 1.0;
/// A host answers within this time: interrupts that are held back, and a program that is woken.
const WAKING_S: f64 = 100e-6;
/// An application that keeps up leaves less than a third of its buffer unread.
const OPEN: f64 = 0.7;
/// Full segments would carry a tenth more on the same path: that is worth a verdict.
const FULLER: f64 = 1.1;
/// A lost segment's neighbour is more likely lost than not if runs are longer than this.
const BURST: f64 = 2.0;
/// The congestion window falls to 0.5 or 0.7 of what it was upon a loss and grows again (RFC 5681, RFC 9438): on average 0.75 or
/// 0.85 is under way where nothing but losses limits, and much less where they come before it has grown. What a buffer holds is
/// under way all the time, but for the half round trip in which it fills again.
const FLAT: f64 = 0.65;
/// Of exchanges that are all held back, the first and the last few are not.
const EACH: f64 = 0.9;
/// A congestion window that goes from 0.7 of its largest to that is within a tenth of its median for 0.54 of the time, a buffer
/// always: this is half-way.
const ALIKE: f64 = 0.75;
/// Four times between packets are two thirds of a round trip at most if so many packets come in one; trains that are longer say
/// nothing of how bytes come within a round trip.
const PACKETS_IN_RTT: f64 = 6.0;
/// An application that has no more leaves a segment that is not full each time; a buffer that is full does so now and then.
const AFTER_END: f64 = 0.8;

/// Slow start has sent less than twice what it has under way when it ends. Whose amount stays has been there for some round trips.
const FLIGHTS: u64 = 4;
/// From the first window of ten segments on, a congestion window that doubles each round trip fills any path in fewer.
const LONG_FLIGHTS: u64 = 20;
/// A sender that paces as fast as the receiver takes (BBR) stands at the window's edge for a third of the time between Linux kernels,
/// one that is held by anything else for a twentieth; who starts slowly, for a fifth.
const AT_EDGE: f64 = 0.25;
/// A sender that gathers what it sends at once stops a few segments short of the window (Linux does not send what fills less than half of
/// a burst); one that is held by a buffer has a window of twice as much, as receivers grow theirs.
const BRIM: f64 = 0.95;
/// Who paces what the window lets through has a fifth of it free at most, as acknowledgements come for some segments at once and
/// what they let go is sent one after the other.
const FILLED: f64 = 0.8;
/// So much of the time is more than what an application's gaps take by chance.
const GAPS: f64 = 0.2;

/// What would let ten times as much through is not what limits: recoveries take their time, but not nine tenths of it.
const RARE: f64 = 10.0;

/// What is under way on average, by the mean round trip, carries the mean rate, but for a fifth: both are means over other times.
const CARRIES: f64 = 1.25;
/// CUBIC carries up to twice what the formula says, which is Reno's; delayed acknowledgements cost a third.
const FORMULA: f64 = 2.0;
/// What happened once within so many round trips may never happen again; of fewer than a fifth of them, nothing is a habit.
const SHORT_RTTS: f64 = 50.0;
/// Of what is no more than a guess.
const BARELY: f64 = 0.05;

/// What was found, and how closely.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The cause.
    pub cause: Cause,
    /// The cause on the other side of the closest comparison.
    pub rival: Option<Cause>,
    /// How far that was.
    pub margin: f64,
    /// Whether the path was full.
    pub full: bool,
    /// What would tell more.
    pub would_tell: Option<String>,
}

/// The comparisons on the way to a verdict.
struct Way {
    margin: f64,
    rival: Option<Cause>,
    full: bool,
}

impl Way {
    /// Whether `value` is at least `limit`; if it went the other way, `rival` would have been said.
    fn is(&mut self, value: f64, limit: f64, rival: Cause) -> bool {
        let margin = (value / limit - 1.0).abs().min(1.0);
        if margin < self.margin {
            (self.margin, self.rival) = (margin, Some(rival));
        }
        value >= limit
    }

    fn to(self, cause: Cause) -> Judgement {
        Judgement { cause, rival: self.rival, margin: self.margin, full: self.full, would_tell: None }
    }

    fn unknown(self, would_tell: &str) -> Judgement {
        Judgement { margin: 0.0, would_tell: Some(would_tell.to_owned()), ..self.to(Cause::Unknown) }
    }
}

/// Judges.
pub fn judge(evidence: &Evidence) -> Judgement {
    let way = Way { margin: 1.0, rival: None, full: false };
    if !evidence.has_data && evidence.bytes > 0 {
        return acknowledgements_alone(evidence, way);
    }
    let judgement = by_data(evidence, way);
    let disturbances = [Cause::Reordering, Cause::RandomLoss, Cause::CongestionAfterLoss];
    match disturbances.contains(&judgement.cause) && is_one_episode(evidence) {
        true => Judgement { margin: judgement.margin.min(BARELY), ..judgement },
        false => judgement,
    }
}

/// Whether losses, or what looked like them, were one episode of a short transfer: that tells nothing of what the path does.
fn is_one_episode(evidence: &Evidence) -> bool {
    let rtt_s = evidence.rtt_median_s.or(evidence.rtt_least_s).unwrap_or(0.0);
    let rtts = if rtt_s > 0.0 { evidence.time_s / rtt_s } else { f64::MAX };
    rtts < SHORT_RTTS / 5.0 || rtts < SHORT_RTTS && evidence.counts.recoveries <= 1
}

/// The same where data was captured.
fn by_data(evidence: &Evidence, mut way: Way) -> Judgement {
    // Whoever asks whether the window opens has something to send, and that it is not sent is the receiver's doing, however little
    // was sent before.
    if evidence.closed >= MOST && evidence.counts.probes > 0 {
        way.is(evidence.closed, MOST, Cause::ReceiverWindow);
        return way.to(Cause::ReceiverApplication);
    }
    if evidence.segments < 3 || evidence.time_s <= 0.0 {
        return way.unknown("a capture with more than two segments of data");
    }
    if evidence.rtt_least_s.is_some_and(|rtt_s| evidence.time_s < rtt_s) {
        return way.unknown("a capture of more than a round trip");
    }
    let share = |wait: Wait| evidence.waits[wait as usize];
    // An exchange takes a round trip whatever anybody does: of those that are held back each time, the rest of the time counts.
    let inevitable =
        if evidence.nagle.0 as f64 >= EACH * evidence.replies.0 as f64 { evidence.replies.1 } else { 0.0 };
    if way.is(share(Wait::Nagle), MOST * (1.0 - inevitable), Cause::DelayedAckNagle) {
        way.rival = Some(Cause::SenderApplication);
        return way.to(Cause::DelayedAckNagle);
    }
    if !evidence.has_acks {
        return data_alone(evidence, way);
    }
    // Its application does not read: nothing else closes a window, least of all a path that is full.
    let window = share(Wait::Window) + share(Wait::WindowUpdate);
    if evidence.closed >= MOST || window >= MOST && evidence.open < OPEN {
        way.is(evidence.open, OPEN, Cause::ReceiverWindow);
        return way.to(Cause::ReceiverApplication);
    }
    if way.is(share(Wait::Application), MOST, Cause::SenderApplication) {
        way.rival = Some(Cause::DelayedAckNagle);
        return way.to(Cause::SenderApplication);
    }
    way.full = is_full(evidence);
    let is_small = evidence.fuller >= FULLER;
    if way.full {
        return full(evidence, way, is_small);
    }
    if way.is(window, MOST, Cause::ReceiverWindow) {
        way.margin = 1.0;
        way.is(evidence.open, OPEN, Cause::ReceiverApplication);
        return way.to(Cause::ReceiverWindow);
    }
    if is_small && share(Wait::Rhythm) >= MOST {
        way.is(evidence.fuller, FULLER, Cause::Pacing);
        return way.to(Cause::SmallSegments);
    }
    open(evidence, way)
}

/// Only data was captured. How a sender's waits end is not seen; how bytes follow each other is, and what comes again.
fn data_alone(evidence: &Evidence, mut way: Way) -> Judgement {
    let share = |wait: Wait| evidence.waits[wait as usize];
    let steady = evidence.steadiness(1).unwrap_or(0.0);
    if evidence.fuller >= FULLER && share(Wait::Application) < MOST {
        way.is(evidence.fuller, FULLER, Cause::PathBandwidth);
        return way.to(Cause::SmallSegments);
    }
    if way.is(share(Wait::Application), MOST, Cause::SenderApplication) {
        // A buffer that is full, too, makes segments that are not; but rarely.
        return match way.is(evidence.after_short, AFTER_END, Cause::SenderBuffer) {
            true => way.to(Cause::SenderApplication),
            false => {
                way.unknown("the acknowledgements: whether the sender waited for them or for its application")
            }
        };
    }
    if evidence.is_marked() {
        return way.to(Cause::PathBandwidth);
    }
    if evidence.late > evidence.lost {
        way.is(evidence.late as f64, evidence.lost.max(1) as f64, Cause::RandomLoss);
        return way.to(Cause::Reordering);
    }
    if evidence.lost > 0 && !way.is(steady, FULL, Cause::PathBandwidth) {
        way.margin = 1.0;
        return match way.is(evidence.run, BURST, Cause::CongestionAfterLoss) {
            true => {
                way.rival = Some(Cause::RandomLoss);
                way.to(Cause::CongestionAfterLoss)
            }
            false => {
                // Without acknowledgements, what was overtaken and what was lost look the same.
                way.rival = Some(Cause::Reordering);
                way.to(Cause::RandomLoss)
            }
        };
    }
    way.unknown(
        "the acknowledgements: they tell the window, the round-trip time and what the sender waited for",
    )
}

/// Only acknowledgements were captured.
fn acknowledgements_alone(evidence: &Evidence, mut way: Way) -> Judgement {
    if evidence.open < OPEN {
        way.is(evidence.open, OPEN, Cause::ReceiverWindow);
        return way.to(Cause::ReceiverApplication);
    }
    way.unknown("the data: what was under way, sent again, and when")
}

/// The path was full.
fn full(evidence: &Evidence, mut way: Way, is_small: bool) -> Judgement {
    way.margin = 1.0;
    // By its long wait alone: what else it would be, nothing tells.
    if let Some(steady) = evidence.steadiness(1).filter(|steady| *steady < FULL && !evidence.is_marked()) {
        way.is(steady.max(MOST), MOST, Cause::Unknown);
    }
    if is_small {
        way.is(evidence.fuller, FULLER, Cause::PathBandwidth);
        return way.to(Cause::SmallSegments);
    }
    match way.is(evidence.queue_rtts().unwrap_or(0.0), LONG_QUEUE, Cause::PathBandwidth) {
        true => way.to(Cause::Queueing),
        false => {
            way.rival = Some(Cause::Queueing);
            way.to(Cause::PathBandwidth)
        }
    }
}

/// Neither the ends' applications nor the window nor the path: the sender's own pace, losses, or a buffer.
fn open(evidence: &Evidence, mut way: Way) -> Judgement {
    let share = |wait: Wait| evidence.waits[wait as usize];
    let rhythm = share(Wait::Rhythm) >= MOST;
    let flat = evidence.flight_mean / evidence.flight_high.max(1) as f64;
    let overtaken = evidence.overtaken();
    // Who waits for the time to send again most of the time is slow by its losses, whatever they would allow.
    let is_rare = share(Wait::Recovery) < MOST
        && evidence.halved_rate().is_some_and(|rate| rate >= RARE * evidence.rate);
    let disturbed = (evidence.lost + overtaken > 0 || evidence.is_marked()) && !is_rare;
    if let Some(cause) = at_edge(evidence) {
        way.margin = 1.0;
        way.is(evidence.at_edge, AT_EDGE, Cause::Pacing);
        return way.to(cause);
    }
    if rhythm && !disturbed && filled(evidence) >= FILLED {
        way.margin = 1.0;
        way.is(filled(evidence), FILLED, Cause::Pacing);
        return way.to(of_window(evidence));
    }
    // Whose own timer sends may be late now and then; who waits for acknowledgements shows bursts in the fastest trains.
    let (steady, limit) = match rhythm {
        true => (evidence.steadiness(1), FULL),
        false => (
            evidence.steadiness(2).filter(|_| evidence.packets_in_rtt().unwrap_or(0.0) >= PACKETS_IN_RTT),
            STEADY,
        ),
    };
    // A timer that sends several segments at once makes trains of them that are faster than it. Behind the path, a beat may be the
    // narrowest link's.
    let beats = rhythm && evidence.near_sender && !disturbed && evidence.beat >= FULL;
    if let Some(steady) = steady
        && (beats || way.is(steady, limit, Cause::Pacing))
    {
        // Who keeps below what the path carries loses nothing; a queue that is kept short drops now and then.
        if evidence.lost > 0 || evidence.is_marked() {
            way.rival = Some(Cause::Pacing);
            return way.to(Cause::PathBandwidth);
        }
        way.rival = Some(if rhythm { Cause::SenderApplication } else { Cause::SenderBuffer });
        return way.to(Cause::Pacing);
    }
    // A buffer ends each burst at the same amount; a congestion window that recovers does not. One that is cut for what was only late
    // is given back as soon as that is told (RFC 4015), and stands as still as a buffer, but rarely at its highest.
    let is_late = evidence.counts.recoveries > 0 && overtaken > evidence.lost && !evidence.has_ceiling;
    let moves = share(Wait::Recovery) >= MOST
        || (evidence.lost > 0 || evidence.is_marked() || is_late)
            && evidence.at_ceiling < MOST
            && (evidence.alike < ALIKE || is_late);
    if disturbed && (moves || !way.is(flat, FLAT, Cause::RandomLoss)) {
        way.margin = 1.0;
        if evidence.is_marked() {
            let (marks, losses) = (evidence.counts.slowed as f64, evidence.counts.recoveries.max(1) as f64);
            way.is(marks, losses, Cause::CongestionAfterLoss);
            return full(evidence, way, false);
        }
        if way.is(overtaken as f64, (evidence.lost as f64).max(1.0), Cause::Reordering) {
            way.rival = Some(Cause::RandomLoss);
            if is_late && flat >= FLAT {
                way.is(evidence.at_ceiling, MOST, Cause::SenderBuffer);
            }
            return way.to(Cause::Reordering);
        }
        return lost(evidence, way);
    }
    buffer(evidence, way, flat)
}

/// Segments were lost: in bursts, or each for itself.
fn lost(evidence: &Evidence, mut way: Way) -> Judgement {
    // A queue that overflows drops every other packet as well as several in a row.
    match way.is(evidence.run.max(evidence.bunched()), BURST, Cause::CongestionAfterLoss) {
        true => {
            way.rival = Some(Cause::RandomLoss);
            way.to(Cause::CongestionAfterLoss)
        }
        false => {
            // The formula is good to a factor of two; what it misses by more, it does not explain.
            let part = evidence.by_losses().map_or(1.0, |carries| carries / evidence.rate.max(1.0));
            if !(1.0 / FORMULA..=FORMULA).contains(&part) {
                way.margin = way.margin.min(BARELY);
            }
            way.to(Cause::RandomLoss)
        }
    }
}

/// The window, if the sender stands at its edge for much of the time though it mostly keeps to a pace: that is then the receiver's.
fn at_edge(evidence: &Evidence) -> Option<Cause> {
    // An inferred window has no edge that is known.
    (evidence.scale_known && at_window(evidence)).then_some(of_window(evidence))
}

/// Whether the sender stands at the window's edge for much of the time.
fn at_window(evidence: &Evidence) -> bool {
    let share = |wait: Wait| evidence.waits[wait as usize];
    let window = share(Wait::Window) + share(Wait::WindowUpdate);
    let others = share(Wait::Acknowledgement).max(share(Wait::Application)).max(share(Wait::Recovery));
    evidence.at_edge >= AT_EDGE && window > others
}

/// Whose doing a window is that limits.
fn of_window(evidence: &Evidence) -> Cause {
    if evidence.open < OPEN { Cause::ReceiverApplication } else { Cause::ReceiverWindow }
}

/// How much of the window is under way on average, if it is full at times: who keeps to a rate of its own does not get there.
fn filled(evidence: &Evidence) -> f64 {
    let is_reached = evidence.flight_high as f64 >= BRIM * evidence.window_most as f64;
    match evidence.scale_known && is_reached && evidence.window_mean > 0.0 {
        true => evidence.flight_mean / evidence.window_mean,
        false => 0.0,
    }
}

/// Nothing disturbs the sender, and nothing but a buffer is left; or it is too early to say.
fn buffer(evidence: &Evidence, mut way: Way, flat: f64) -> Judgement {
    let share = |wait: Wait| evidence.waits[wait as usize];
    if evidence.bytes < FLIGHTS * evidence.flight_high {
        return way.unknown("a longer transfer: the congestion window was growing still when it ended");
    }
    let rhythm = share(Wait::Rhythm);
    if rhythm >= MOST {
        return own_rhythm(evidence, way);
    }
    // A full buffer waits for acknowledgements.
    let own = rhythm + share(Wait::Application);
    if own > share(Wait::Acknowledgement) && share(Wait::Application) >= GAPS {
        way.margin = 1.0;
        way.is(own, MOST, Cause::SenderBuffer);
        return match evidence.after_short >= AFTER_END {
            true => way.to(Cause::SenderApplication),
            false => way.unknown("the sender's socket's accounts: whether its application had more to send"),
        };
    }
    // Where nothing disturbs it, a congestion window grows from each round trip to the next.
    if evidence.has_ceiling || evidence.alike >= ALIKE || way.is(flat, FLAT, Cause::SenderBuffer) {
        way.rival = Some(Cause::CongestionAfterLoss);
        // What is under way takes a round trip: where that says another rate than was measured, it is no case.
        if evidence.carries_rate().is_some_and(|part| !(1.0 / CARRIES..=CARRIES).contains(&part)) {
            way.margin = way.margin.min(BARELY);
        }
        let filled = evidence.flight_high as f64 / evidence.window_most.max(1) as f64;
        // An inferred window is never much larger than what was under way.
        if evidence.scale_known && way.is(filled, BRIM, Cause::SenderBuffer) {
            way.rival = Some(Cause::SenderBuffer);
            return way.to(of_window(evidence));
        }
        return way.to(Cause::SenderBuffer);
    }
    // In so many flights, a congestion window has grown as far as it does.
    if evidence.bytes >= LONG_FLIGHTS * evidence.flight_high {
        return way
            .unknown("the sender's socket's accounts: whether its buffer or its congestion window was full");
    }
    way.unknown("a longer transfer: the congestion window was growing still when it ended")
}

/// It sent when it liked, at no pace, with more to send; or so it seems.
fn own_rhythm(evidence: &Evidence, way: Way) -> Judgement {
    if evidence.pauses_for_the_receiver() {
        return way.unknown("what the receiver's application did while its window was closed");
    }
    // As inferred, it stands at the edge; but a window that is inferred may be larger.
    if !evidence.scale_known && at_window(evidence) {
        return way.unknown("the opening of the connection: whether the window, which seems to be full at times, is no larger");
    }
    way.unknown("the sender's processor load and its socket's accounts during the transfer")
}

/// Whether the path carried all it could. Its bytes come at the rate of its trains, and wait in its queue; or they have waited for
/// longer than the way takes nearly all the time. If they come at less than half of that rate, they may have waited for a host as long
/// as it takes to wake; for more, acknowledgements came together.
fn is_full(evidence: &Evidence) -> bool {
    let steadiness = evidence.steadiness(1);
    let steady = steadiness.unwrap_or(0.0);
    match evidence.queued_time {
        Some(queued) => {
            let waits = evidence.queue_rtts().unwrap_or(0.0);
            let is_hosts = steadiness.is_some_and(|steady| steady < MOST)
                && waits * evidence.rtt_least_s.unwrap_or(0.0) < WAKING_S;
            let long = queued >= FULL && waits >= LONG_QUEUE && !is_hosts;
            // A queue that is kept short by marks is never long.
            steady >= FULL && (queued >= MOST || evidence.is_marked()) || long
        }
        // Only what was lost and came again tells how long a round trip was.
        None => {
            steady >= FULL && (evidence.is_marked() || evidence.queue_rtts().is_some_and(|wait| wait > 0.0))
        }
    }
}
