//! The sender, as far as a capture shows it: what each of its waits ended with, and what was under way meanwhile.
//!
//! Times are those at the capture. What the sender learns from an acknowledgement it answers a turn later, as seen from here: the
//! time from here to the sender and back. So acknowledgements take effect here a turn after they passed.

use super::echo::Heard;
use super::histogram::Histogram;
use super::passing::Passing;
use super::refill::Refill;
use super::timeline::Timeline;
use super::turn::Soonest;
use super::wait::Wait;
use super::wire::{Answer, Kind};
use std::collections::VecDeque;

/// Acknowledgements that may be on their way to the sender.
const MAX_PENDING: usize = 4_096;
/// An acknowledgement counts as what the sender waited for if it sent within this part of the wait. Were the two independent, one
/// wait in ten would end so by accident.
const PROMPT: u64 = 10;
/// The same where the application may have had no more: two explanations compete, and the coincidence has to be closer.
const PROMPT_AFTER_END: u64 = 50;

/// A host answers within this time: interrupts that are held back, and a program that is woken.
const WAKING_NS: u64 = 100_000;

/// Who sleeps is not woken sooner: Linux groups timers within this time. What comes sooner is the work of a program that runs.
const WORKING_NS: u64 = 50_000;

/// A segment that the sender sent.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When it passed here.
    pub at_ns: u64,
    /// What it is.
    pub kind: Kind,
    /// One beyond its last byte.
    pub end: u64,
    /// Bytes of payload.
    pub len: u64,
    /// It ends what the application had written.
    pub pushed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at_ns: u64,
    answer: Answer,
}

/// The acknowledgement after which the sender may have gone on.
#[derive(Clone, Copy, Debug)]
struct Trigger {
    at_ns: u64,
    answer: Answer,
    /// Bytes that the window took before it.
    room: u64,
    /// Bytes under way after it.
    flight: u64,
}

/// Waits for acknowledgements of everything, before a segment that is not full.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NagleWaits {
    /// How many.
    pub count: u64,
    /// How long, in nanoseconds.
    pub time_ns: u64,
    /// How long beyond the least round trip: what the receiver added.
    pub delay_ns: u64,
}

impl NagleWaits {
    /// How many, how long, and how long beyond the least round trip, in seconds.
    pub fn in_seconds(self) -> (u64, f64, f64) {
        (self.count, self.time_ns as f64 / 1e9, self.delay_ns as f64 / 1e9)
    }
}

/// The sender of one direction.
#[derive(Clone, Debug)]
pub struct Sender {
    /// What happened when.
    pub timeline: Timeline,
    /// Time by [`Wait`], in nanoseconds.
    pub waits_ns: [u64; Wait::COUNT],
    /// Waits in Nagle's manner.
    pub nagle: NagleWaits,
    /// Time between segments that nothing seen ended, with data under way.
    pub rhythm: Histogram,
    /// The same, each weighed by itself.
    pub beat: Histogram,
    /// Bytes sent at one of those times.
    pub rhythm_bytes: Histogram,
    /// Time from one burst to the next, in nanoseconds.
    pub burst_bytes: Histogram,
    /// Waits for the application that ended with all acknowledged.
    pub idle: Histogram,
    /// Most bytes under way.
    pub most_flight: u64,
    /// Bytes under way, weighed by nanoseconds.
    pub flight: Histogram,
    /// Waits for the application that began behind a segment that was not full, in nanoseconds.
    pub after_short_ns: u64,
    /// Segments that ended what the application had written, and were not full.
    pub pushed_short: u64,
    /// Windows told, weighed by nanoseconds; as they were told as long as their scale is inferred.
    pub windows: Histogram,
    /// Waits for the other end's answer: how many, and the least that they take, a round trip each, in nanoseconds.
    pub replies: (u64, u64),
    /// Where the sender stopped, and where it went on.
    pub refill: Refill,
    /// Where it stopped to wait for its application.
    pub refill_idle: Refill,
    /// How long segments take to pass the narrowest link.
    passing: Passing,
    /// The soonest answers of the sender as seen from here, if it is not near: of all, and of those with data.
    pub turn: [Option<Soonest>; 2],
    /// When the last segment left, as far as the narrowest link's time is known.
    last_left_ns: u64,
    /// Bytes under way after the last segment.
    last_flight: u64,
    /// What ended the last wait.
    pub last_wait: Wait,
    /// How open the window was: it as a part of the largest until then, times nanoseconds; and the nanoseconds.
    pub open_ns: (f64, f64),
    /// How long the window had no room for a full segment, in nanoseconds.
    pub edge_ns: f64,
    /// Payload of a full segment.
    mss: u64,
    largest_window: u64,
    pending: VecDeque<Arrival>,
    trigger: Option<Trigger>,
    next: u64,
    front: u64,
    edge: u64,
    /// As told where the scale is inferred: it may be known better later.
    window: u64,
    last_sent_ns: Option<u64>,
    last_event_ns: u64,
    /// When the last acknowledgement left nothing under way.
    empty_since_ns: Option<u64>,
    /// The last segment was not full: it ended what the application had written.
    last_was_short: bool,
    /// The last segment was pushed. Some senders push every burst, so that this alone tells nothing.
    last_was_pushed: bool,
    /// Least time between two segments with data.
    least_gap_ns: u64,
    burst: u64,
    least_reaction_ns: u64,
}

impl Sender {
    /// A sender that is first seen at this time.
    pub fn new(at_ns: u64) -> Sender {
        Sender {
            timeline: Timeline::new(at_ns),
            waits_ns: [0; Wait::COUNT],
            nagle: NagleWaits::default(),
            rhythm: Histogram::default(),
            beat: Histogram::default(),
            rhythm_bytes: Histogram::default(),
            burst_bytes: Histogram::default(),
            idle: Histogram::default(),
            most_flight: 0,
            flight: Histogram::default(),
            after_short_ns: 0,
            pushed_short: 0,
            windows: Histogram::default(),
            replies: (0, 0),
            refill: Refill::default(),
            refill_idle: Refill::default(),
            passing: Passing::default(),
            turn: [None; 2],
            last_left_ns: at_ns,
            last_flight: 0,
            last_wait: Wait::Rhythm,
            open_ns: (0.0, 0.0),
            edge_ns: 0.0,
            mss: 1,
            largest_window: 0,
            pending: VecDeque::new(),
            trigger: None,
            next: 0,
            front: 0,
            edge: 0,
            window: 0,
            last_sent_ns: None,
            last_event_ns: at_ns,
            empty_since_ns: None,
            last_was_short: false,
            last_was_pushed: true,
            least_gap_ns: u64::MAX,
            burst: 0,
            least_reaction_ns: u64::MAX,
        }
    }

    /// An acknowledgement passed; it takes effect a turn later.
    pub fn answered(&mut self, at_ns: u64, turn_ns: u64, answer: Answer) {
        if self.pending.len() >= MAX_PENDING {
            self.take_effect(u64::MAX, 1);
        }
        self.pending.push_back(Arrival { at_ns: at_ns.saturating_add(turn_ns), answer });
        if turn_ns == 0 {
            self.take_effect(at_ns, usize::MAX);
        }
    }

    /// An acknowledgement reached the sender that was not captured.
    pub fn heard(&mut self, heard: &Heard) {
        let moved = heard.front.saturating_sub(self.front);
        let answer =
            Answer { moved, front: heard.front, data: heard.data, duplicate: true, ..Answer::default() };
        self.learn(&Arrival { at_ns: heard.at_ns, answer });
    }

    /// The sender knows of acknowledgements that reached it until `now_ns`.
    fn take_effect(&mut self, now_ns: u64, most: usize) {
        for _ in 0..most {
            let Some(arrival) = self.pending.front().copied().filter(|arrival| arrival.at_ns <= now_ns)
            else {
                return;
            };
            self.pending.pop_front();
            self.learn(&arrival);
        }
    }

    fn learn(&mut self, arrival: &Arrival) {
        let Arrival { at_ns, answer } = *arrival;
        self.pass(at_ns);
        let room = self.room();
        self.front = self.front.max(answer.front);
        let is_new = answer.moved > 0
            || answer.edge > self.edge
            || answer.progress > 0
            || answer.duplicate
            || answer.data;
        (self.edge, self.window) = (answer.edge, answer.unscaled.unwrap_or(answer.window));
        if !answer.opening {
            self.largest_window = self.largest_window.max(self.window);
        }
        let flight = self.next.saturating_sub(self.front);
        if flight == 0 && answer.moved > 0 {
            self.empty_since_ns = Some(at_ns);
        }
        if is_new {
            self.trigger = Some(Trigger { at_ns, answer, room, flight });
        }
        let step = self.timeline.at(at_ns);
        step.acked += answer.moved;
        step.late = step.late.saturating_add(answer.late_beyond);
        self.timeline.window(at_ns, answer.window);
    }

    fn room(&self) -> u64 {
        match self.edge {
            // No window was told yet: nothing is known to hold back.
            0 => u64::MAX,
            edge => edge.saturating_sub(self.next),
        }
    }

    /// Accounts for what was under way until now.
    fn pass(&mut self, now_ns: u64) {
        let from_ns = self.last_event_ns;
        if now_ns <= from_ns {
            return;
        }
        let flight = self.next.saturating_sub(self.front);
        self.flight.weigh(flight, (now_ns - from_ns) as f64);
        // The window of a SYN is not scaled, and none of the buffer's size.
        if self.largest_window > 0 {
            self.windows.weigh(self.window, (now_ns - from_ns) as f64);
            self.open_ns.0 += self.window as f64 / self.largest_window as f64 * (now_ns - from_ns) as f64;
            self.open_ns.1 += (now_ns - from_ns) as f64;
            if self.room() < self.mss {
                self.edge_ns += (now_ns - from_ns) as f64;
            }
        }
        self.timeline.between(from_ns, now_ns, |step, ns| {
            step.flight_ns += flight as f64 * ns as f64;
            step.flight_most = step.flight_most.max(flight);
        });
        self.last_event_ns = now_ns;
    }

    /// A segment with data passed.
    pub fn sent(&mut self, sent: &Departure, mss: u64, rtt_least_ns: u64) {
        // Between its leaving and its passing here lies the time that the narrowest link needs for its bytes; small packets, by
        // which the least turn is known, need none.
        let passing_ns = self.passing_ns(sent.len);
        let left_ns = sent.at_ns.saturating_sub(passing_ns);
        // It may be younger than what the least turn tells: news that it must have had, it had.
        self.take_effect(left_ns, usize::MAX);
        while sent.end > self.edge && self.edge > 0 && !self.pending.is_empty() && sent.kind.is_new() {
            self.take_effect(u64::MAX, 1);
        }
        self.pass(sent.at_ns);
        self.mss = mss;
        if let Some(last_ns) = self.last_sent_ns {
            self.waited(last_ns, left_ns, sent, mss, rtt_least_ns);
            self.passing.took(sent.at_ns.saturating_sub(last_ns), sent.len, rtt_least_ns);
        }
        self.trigger = None;
        (self.last_sent_ns, self.last_left_ns) = (Some(sent.at_ns), left_ns);
        let is_short = !sent.len.is_multiple_of(mss);
        (self.last_was_short, self.last_was_pushed) = (is_short, sent.pushed);
        self.pushed_short += u64::from(is_short && sent.pushed);
        let before = self.next;
        self.next = self.next.max(sent.end);
        if self.front == 0 {
            self.front = before.max(sent.end - sent.len);
        }
        self.empty_since_ns = None;
        let flight = self.next.saturating_sub(self.front);
        (self.most_flight, self.last_flight) = (self.most_flight.max(flight), flight);
        let step = self.timeline.at(sent.at_ns);
        step.flight_most = step.flight_most.max(flight);
        if sent.kind.is_again() {
            step.again = step.again.saturating_add(sent.len.div_ceil(mss.max(1)) as u32);
        } else {
            step.sent += sent.len;
        }
        step.late = step.late.saturating_add(u32::from(sent.kind == Kind::Late));
    }

    /// Time from an acknowledgement to so much data that it lets go, beyond the least turn: what the narrowest link needs for the bytes.
    fn passing_ns(&self, len: u64) -> u64 {
        let [Some(soonest), data] = self.turn else { return 0 };
        let own_ns = self.passing.of(len);
        let turn_ns = |known: Soonest| {
            known.time_ns.saturating_add(own_ns).saturating_sub(self.passing.of(u64::from(known.len)))
        };
        let least_ns = data.map_or(turn_ns(soonest), |data| turn_ns(data).min(turn_ns(soonest)));
        least_ns.saturating_sub(soonest.time_ns)
    }

    fn waited(&mut self, from_ns: u64, left_ns: u64, sent: &Departure, mss: u64, rtt_least_ns: u64) {
        let wait = self.wait(left_ns, sent, mss, rtt_least_ns);
        self.last_wait = wait;
        let time_ns = sent.at_ns.saturating_sub(from_ns);
        let stop = (self.last_flight, self.next.saturating_sub(self.front));
        // What only stood behind another at the narrowest link had not stopped.
        let stopped = wait == Wait::Application || wait != Wait::Rhythm && self.trigger.is_some();
        if stopped && !sent.kind.is_again() {
            self.refill.went_on(stop.0, stop.1, time_ns);
        }
        self.least_gap_ns = self.least_gap_ns.min(time_ns);
        match wait {
            Wait::Nagle => {
                self.nagle.count += 1;
                self.nagle.time_ns = self.nagle.time_ns.saturating_add(time_ns);
                let delay_ns = time_ns.saturating_sub(rtt_least_ns);
                self.nagle.delay_ns = self.nagle.delay_ns.saturating_add(delay_ns);
            }
            Wait::Rhythm => {
                self.rhythm.record(time_ns);
                self.beat.weigh(time_ns, time_ns as f64);
                self.rhythm_bytes.record(sent.len);
            }
            Wait::Application => {
                self.idle.record(time_ns);
                let counts_ns = if self.last_was_short { time_ns } else { 0 };
                self.after_short_ns = self.after_short_ns.saturating_add(counts_ns);
                self.refill_idle.went_on(stop.0, stop.1, time_ns);
                if self.trigger.is_some_and(|trigger| trigger.answer.data) {
                    self.replies.0 += 1;
                    self.replies.1 = self.replies.1.saturating_add(time_ns.min(rtt_least_ns));
                }
            }
            _ => {}
        }
        if wait != Wait::Rhythm && self.burst > 0 {
            self.end_burst();
        }
        self.burst += sent.len;
        let sum_ns = &mut self.waits_ns[wait as usize];
        *sum_ns = sum_ns.saturating_add(time_ns);
        self.timeline.between(from_ns, sent.at_ns, |step, ns| {
            let sum_ns = &mut step.waits_ns[wait as usize];
            *sum_ns = sum_ns.saturating_add(ns);
        });
    }

    /// What ended the wait that a segment ends.
    fn wait(&mut self, left_ns: u64, sent: &Departure, mss: u64, rtt_least_ns: u64) -> Wait {
        if sent.kind.is_again() {
            return Wait::Recovery;
        }
        let from_ns = self.last_left_ns;
        let flight = self.next.saturating_sub(self.front);
        // All was acknowledged, and a round trip passed, and another: whoever keeps to a rate sends sooner.
        let idle = flight == 0 && left_ns.saturating_sub(from_ns) >= rtt_least_ns.saturating_mul(2);
        let Some(trigger) = self.trigger.filter(|trigger| trigger.at_ns >= from_ns) else {
            return self.unasked(left_ns, sent, mss, idle);
        };
        let reaction_ns = left_ns.saturating_sub(trigger.at_ns);
        let waited_ns = trigger.at_ns - from_ns;
        if waited_ns > reaction_ns {
            self.least_reaction_ns = self.least_reaction_ns.min(reaction_ns);
        }
        // Without the acknowledgement the segment could not have been sent: that needs no other proof than that the sender did not
        // let most of the time pass afterwards, or no more than a host takes.
        if trigger.room < sent.len.min(mss) && reaction_ns <= waited_ns.max(WAKING_NS) {
            return if trigger.answer.moved == 0 { Wait::WindowUpdate } else { Wait::Window };
        }
        // What an acknowledgement lets go comes when the sender has been woken, and passes the narrowest link before it gets here.
        let passed_ns = sent.at_ns.saturating_sub(left_ns);
        let is_far = self.turn[0].is_some();
        let gap_ns = if is_far { self.least_gap_ns.saturating_sub(passed_ns) } else { 0 };
        let soonest_ns = self.least_reaction_ns.min(gap_ns.saturating_add(WAKING_NS));
        let part = if self.last_was_short { PROMPT_AFTER_END } else { PROMPT };
        if reaction_ns.saturating_sub(soonest_ns).saturating_mul(part) > waited_ns {
            return self.unasked(left_ns, sent, mss, idle);
        }
        if trigger.answer.data && trigger.flight == 0 {
            Wait::Application
        } else if trigger.flight == 0 && sent.len < mss && trigger.answer.moved > 0 {
            Wait::Nagle
        } else {
            Wait::Acknowledgement
        }
    }

    /// What a wait was for that nothing seen ended.
    fn unasked(&self, left_ns: u64, sent: &Departure, mss: u64, idle: bool) -> Wait {
        let flight = self.next.saturating_sub(self.front);
        let since = |before_ns: u64| sent.at_ns.saturating_sub(before_ns);
        if sent.len < mss && self.edge > 0 && sent.end >= self.edge && self.last_left_ns < left_ns {
            // Less than a segment of window was left, which a sender does not fill before a timer tells it to (RFC 9293 section
            // 3.8.6.2.1).
            Wait::Window
        } else if self.trigger.is_none() && since(left_ns) >= self.last_sent_ns.map_or(u64::MAX, since) / 2 {
            // It stood behind the last one at the narrowest link, and left with it: what let that go let this go, too.
            match self.last_wait {
                Wait::Application | Wait::Nagle => Wait::Rhythm,
                same => same,
            }
        } else if left_ns.saturating_sub(self.last_left_ns) < WORKING_NS {
            Wait::Rhythm
        } else if self.last_was_short || idle && self.last_was_pushed {
            Wait::Application
        } else if flight > 0 && sent.len < mss && !self.last_was_pushed {
            // More was queued, less than a segment, and went when a timer had enough of waiting for the acknowledgement.
            Wait::Nagle
        } else {
            Wait::Rhythm
        }
    }

    /// Whoever sends in its own rhythm goes on while acknowledgements come: no more than was under way at once was one stroke.
    fn end_burst(&mut self) {
        self.burst_bytes.record(std::mem::take(&mut self.burst).min(self.most_flight));
    }

    /// All that is known took effect.
    pub fn finish(&mut self) {
        self.take_effect(u64::MAX, usize::MAX);
        if self.burst > 0 {
            self.end_burst();
        }
    }
}
