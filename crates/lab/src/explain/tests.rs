//! Mechanisms, each by packets made up for it, beside others that differ from them in one respect.

mod cut;
mod duplicates;
mod failures;
mod kernels;
mod merged;
mod pauses;
mod rates;
mod scales;

use super::cause::Cause;
use super::connection::{self, Connection};
use super::segment::Segment;
use super::table::Table;
use linerate_wire::tcp::{Flags, Options, Timestamps};
use std::net::SocketAddr;

const RTT_US: u64 = 10_000;
/// How long an end that is captured at takes.
const OWN_US: u64 = 10;
const WINDOW: u64 = 60_000;

/// Packets of a connection whose client sends.
struct Trace {
    segments: Vec<Segment>,
    sent: u64,
    front: u64,
    mss: u16,
    window: u64,
}

impl Trace {
    fn new(mss: u16) -> Trace {
        Trace { segments: Vec::new(), sent: 0, front: 0, mss, window: WINDOW }
    }

    /// Opens it, with a round trip of `RTT_US`, as seen at the sender or at the receiver.
    fn open(mut self, near: bool) -> Trace {
        let answered_us = if near { RTT_US } else { OWN_US };
        self.take(0, true, Flags::SYN, 0);
        self.take(answered_us, false, Flags::SYN | Flags::ACK, 0);
        self.take(RTT_US + OWN_US, true, Flags::ACK, 0);
        self
    }

    fn take(&mut self, at_us: u64, from_client: bool, flags: Flags, len: u64) -> &mut Segment {
        let ends = [("10.0.0.1", 40_000), ("10.0.0.2", 80)];
        let [client, server] = ends.map(|(host, port)| SocketAddr::new(host.parse().unwrap(), port));
        let (from, to) = if from_client { (client, server) } else { (server, client) };
        let is_syn = flags.intersects(Flags::SYN);
        let seq = match (is_syn, from_client) {
            (true, _) => 0,
            (false, true) => 1 + self.sent as u32,
            (false, false) => 1,
        };
        let ack = match (flags.intersects(Flags::ACK), from_client) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 1 + self.front as u32,
        };
        let mss = is_syn.then_some(self.mss);
        self.segments.push(Segment {
            at_ns: 1_000_000_000 + at_us * 1_000,
            from,
            to,
            seq,
            ack,
            flags,
            window: if from_client { 65_535 } else { self.window as u16 },
            options: Options { mss, ..Options::default() },
            options_len: 0,
            options_cut: false,
            cut_sack: None,
            len: len as u32,
            outgoing: None,
            congested: false,
            identification: None,
        });
        self.segments.last_mut().unwrap()
    }

    fn send(&mut self, at_us: u64, len: u64, pushed: bool) -> &mut Segment {
        let flags = if pushed { Flags::ACK | Flags::PSH } else { Flags::ACK };
        self.take(at_us, true, flags, len);
        self.sent += len;
        self.segments.last_mut().unwrap()
    }

    /// Segments of a write, at once; the last is pushed.
    fn write(&mut self, at_us: u64, len: u64) {
        let mss = u64::from(self.mss);
        let mut left = len;
        while left > 0 {
            self.send(at_us, left.min(mss), left <= mss);
            left -= left.min(mss);
        }
    }

    fn ack(&mut self, at_us: u64, front: u64) {
        self.front = front;
        self.take(at_us, false, Flags::ACK, 0);
    }

    fn explained(self) -> Connection {
        let mut table = Table::default();
        for segment in &self.segments {
            table.take(0, segment);
        }
        table.finish();
        connection::connections(table.views, 0).remove(0)
    }
}

fn check(what: &str, trace: Trace, cause: Cause) {
    let found = trace.explained();
    let evidence = &found.evidence;
    assert_eq!(found.verdict.cause, cause, "{what}: {:?}\n{evidence:#?}", found.verdict.because);
}

/// Bursts at odd times, at the sender; how much each has is told by what is under way. A segment is acknowledged a round trip after
/// it left, those of a burst one after the other.
fn bursts(amount: impl Fn(u64) -> u64) -> Trace {
    let mut trace = Trace::new(1_460).open(true);
    let mut acks: Vec<(u64, u64)> = Vec::new();
    let mut at_us = 20_000;
    for turn in 0..200 {
        at_us += [13_200, 12_100, 12_900, 26_000, 12_600, 13_400, 12_300][turn % 7];
        let (past, rest): (Vec<_>, Vec<_>) =
            acks.into_iter().partition(|(ack_us, _)| *ack_us <= at_us - 1_500);
        acks = rest;
        for (ack_us, front) in past {
            trace.ack(ack_us, front);
        }
        let before = trace.sent;
        let len = amount(trace.sent - trace.front);
        trace.write(at_us, len);
        let mut free_us = acks.last().map_or(0, |(ack_us, _)| *ack_us).max(at_us + RTT_US);
        for end in (before..trace.sent).step_by(1_460).skip(1).chain([trace.sent]) {
            free_us += 120;
            acks.push((free_us, end));
        }
    }
    trace
}

#[test]
fn a_buffer_is_filled_up_to_one_amount_from_wherever_it_was() {
    check("to 40 KB each time", bursts(|under_way| 40_000 - under_way), Cause::SenderBuffer);
    check("20 KB each time", bursts(|_| 20_000), Cause::SenderApplication);
}

/// A segment of so much, acknowledged at once, each so many microseconds.
fn beat(len: u64, every_us: u64, ack_us: u64, count: u64) -> Trace {
    let mut trace = Trace::new(1_460).open(true);
    for number in 0..count {
        let at_us = 20_000 + number * every_us;
        trace.send(at_us, len, true);
        if number % 10 == 9 || ack_us < every_us {
            let sent = trace.sent;
            trace.ack(at_us + ack_us, sent);
        }
    }
    trace
}

#[test]
fn who_keeps_to_a_rate_sends_full_segments() {
    check("ten segments at once", beat(14_600, 25_000, 10_100, 200), Cause::Pacing);
    check("nearly ten segments at once", beat(14_000, 25_000, 10_100, 200), Cause::SenderApplication);
}

#[test]
fn a_program_that_does_not_sleep_is_not_waited_for() {
    check("100 bytes each 4 us", beat(100, 4, 4, 5_000), Cause::SmallSegments);
    check("100 bytes each 2 ms", beat(100, 2_000, 10_050, 500), Cause::SenderApplication);
}

#[test]
fn less_than_a_segment_of_window_is_left_until_a_timer_ends() {
    let rounds = |len: u64| {
        let mut trace = Trace::new(1_460).open(true);
        trace.window = 2_200;
        for round in 0..50 {
            let at_us = 20_000 + round * 220_000;
            trace.send(at_us, 1_460, false);
            trace.send(at_us + 200_000, len, true);
            let sent = trace.sent;
            trace.ack(at_us + 200_000 + RTT_US, sent);
        }
        trace
    };
    check("up to the edge", rounds(740), Cause::ReceiverWindow);
    check("below it", rounds(700), Cause::DelayedAckNagle);
}

#[test]
fn an_exchange_takes_a_round_trip_in_any_case() {
    let exchanges = |think_us: u64| {
        let mut trace = Trace::new(1_460).open(true);
        let mut at_us = 20_000;
        for _ in 0..100 {
            trace.send(at_us, 200, true);
            let sent = trace.sent;
            at_us += RTT_US;
            trace.ack(at_us, sent);
            at_us += OWN_US;
            trace.send(at_us, 300, true);
            at_us += RTT_US + think_us;
            trace.front = trace.sent;
            trace.take(at_us, false, Flags::ACK | Flags::PSH, 0).len = 1;
            at_us += OWN_US;
        }
        trace
    };
    check("answered soon", exchanges(500), Cause::DelayedAckNagle);
    check("answered late", exchanges(25_000), Cause::SenderApplication);
}

/// Three packets of 8000 bytes under way, whose passing takes 1.3 ms, seen at the receiver; `next_us` tells when one arrives: by when
/// the one before did, and when the third before was acknowledged.
fn seen_at_the_receiver(next_us: impl Fn(u64, u64) -> u64) -> Trace {
    let mut trace = Trace::new(8_960).open(false);
    let mut arrived: Vec<u64> = Vec::new();
    for number in 0..400 {
        let last_us = arrived.last().copied().unwrap_or(20_000);
        let third_us = arrived.len().checked_sub(3).map_or(0, |index| arrived[index]);
        let at_us = next_us(last_us, third_us + 40).max(last_us + 1_300);
        arrived.push(at_us);
        trace.send(at_us + number % 3 * 20, 8_000, true);
        let sent = trace.sent;
        trace.ack(at_us + 80, sent);
    }
    trace
}

#[test]
fn seen_from_the_receiver_data_comes_a_turn_and_its_passing_after_what_let_it_go() {
    let released = seen_at_the_receiver(|_, acked_us| acked_us + RTT_US + 1_290);
    let evidence = released.explained().evidence;
    // Never the receiver's own answer time.
    assert!(evidence.rtt_least_s.is_some_and(|rtt_s| (0.01..0.0101).contains(&rtt_s)), "{evidence:#?}");
    let released = seen_at_the_receiver(|_, acked_us| acked_us + RTT_US + 1_290);
    check("three under way", released, Cause::SenderBuffer);
    let odd_us = |last_us: u64, _| last_us + 6_000 + last_us / 1_000 % 7 * 500;
    check("each 6 to 9 ms", seen_at_the_receiver(odd_us), Cause::SenderApplication);
}

/// Data alone at the receiver: one in twenty is sent again, and the first one comes after it or not at all.
fn sent_again(first_comes: bool, told: impl Fn(&mut Segment, u64)) -> Trace {
    let mut trace = Trace::new(1_460);
    trace.take(0, true, Flags::SYN, 0);
    let mut at_us = 20_000;
    for _ in 0..30 {
        let gap = trace.sent;
        trace.sent += 1_460;
        for _ in 0..19 {
            at_us += 1_000;
            let left_us = at_us;
            told(trace.send(at_us, 1_460, false), left_us);
        }
        let newest = std::mem::replace(&mut trace.sent, gap);
        let left_us = at_us - 19_500;
        at_us += 80_000;
        let again_us = at_us;
        told(trace.send(at_us, 1_460, false), again_us);
        if first_comes {
            at_us += 100_000;
            trace.sent = gap;
            told(trace.send(at_us, 1_460, false), left_us);
        }
        trace.sent = newest;
    }
    trace
}

#[test]
fn what_was_sent_first_and_comes_after_what_was_sent_again_was_late() {
    let clock = |segment: &mut Segment, left_us: u64| {
        segment.options.timestamps = Some(Timestamps { value: (left_us / 1_000) as u32, echo: 0 });
    };
    let number = |segment: &mut Segment, left_us: u64| segment.identification = Some((left_us / 500) as u16);
    check("by the sender's clock", sent_again(true, clock), Cause::Reordering);
    check("by the packets' numbers", sent_again(true, number), Cause::Reordering);
    check("never", sent_again(false, clock), Cause::RandomLoss);
}

#[test]
fn what_is_not_pushed_is_as_large_as_may_be() {
    let data_alone = |pushed_each: u64| {
        let mut trace = Trace::new(212);
        trace.take(0, true, Flags::SYN, 0);
        for number in 0..500 {
            trace.send(
                20_000 + number / 4 * 1_000 + number % 4,
                200,
                number % pushed_each == pushed_each - 1,
            );
        }
        trace.explained()
    };
    let cut = data_alone(4);
    assert_eq!(
        (cut.directions[0].mss, cut.verdict.cause),
        (200, Cause::SmallSegments),
        "{:#?}",
        cut.evidence
    );
    assert_eq!(data_alone(1).directions[0].mss, 212);
}

#[test]
fn data_alone_tells_of_acknowledgements_by_their_clock() {
    // Pairs of small writes; the second leaves when the first is acknowledged, after a delay, or whenever it is written.
    let pairs = |held_back: bool| {
        let mut trace = Trace::new(1_460);
        trace.take(0, true, Flags::SYN, 0);
        trace.take(RTT_US, true, Flags::ACK, 0);
        let mut at_us = 20_000;
        for number in 1..=100 {
            for (wait_us, is_answer) in [(RTT_US, true), (RTT_US + 40_000, false)] {
                at_us += wait_us;
                let told_us = if held_back || is_answer { at_us } else { at_us - 35_000 };
                let segment = trace.send(at_us, 200, true);
                segment.options.timestamps =
                    Some(Timestamps { value: (at_us / 1_000) as u32, echo: (told_us / 1_000) as u32 });
                segment.ack = number;
            }
        }
        trace
    };
    check("held back", pairs(true), Cause::DelayedAckNagle);
    check("written late", pairs(false), Cause::SenderApplication);
}

/// A client that stops being served: a segment, then questions whether the window opens, or nothing at all.
fn closed_to_the_end(questions: u64) -> Trace {
    let mut trace = Trace::new(1_460).open(true);
    trace.send(20_000, 1_000, true);
    trace.window = 0;
    trace.ack(20_000 + RTT_US, 1_000);
    for number in 1..=questions {
        let at_us = number * 3_000_000;
        trace.take(at_us, true, Flags::ACK, 0).seq -= 1;
        trace.ack(at_us + RTT_US, 1_000);
    }
    trace.take(9_500_000, true, Flags::ACK, 0);
    trace
}

#[test]
fn a_window_that_stays_closed_is_the_receivers_however_little_was_sent() {
    check("with something to send", closed_to_the_end(3), Cause::ReceiverApplication);
    check("with nothing to send", closed_to_the_end(0), Cause::Unknown);
    let verdict = closed_to_the_end(3).explained().verdict;
    assert!(
        verdict.because[0]
            .contains("closed once for 9.47 s in all: data lay unread, and the sender asked 3 times"),
        "{:?}",
        verdict.because
    );
    assert!(!verdict.because.iter().any(|sentence| sentence.contains("measured")), "{:?}", verdict.because);
}

/// A congestion window that grows by a segment each round trip between two sizes. Where it falls, the sender says that it was told to
/// (ECN), or does not.
fn sawtooth(low: u64, high: u64, until_us: u64, marked: bool) -> Trace {
    const MSS: u64 = 1_460;
    let mut trace = Trace::new(MSS as u16).open(true);
    let mut acks = std::collections::VecDeque::new();
    let (mut allowed, mut slowed) = (low as f64, false);
    trace.write(20_000, low * MSS);
    acks.extend((1..=low).map(|number| (20_000 + RTT_US + number * 200, number * MSS)));
    while let Some((at_us, front)) = acks.pop_front().filter(|(at_us, _)| *at_us < until_us) {
        trace.ack(at_us, front);
        if marked && allowed >= high as f64 {
            trace.segments.last_mut().unwrap().flags |= Flags::ECE;
        }
        allowed += 1.0 / allowed;
        if allowed >= high as f64 {
            (allowed, slowed) = (low as f64, true);
        }
        while trace.sent + MSS <= trace.front + (allowed as u64) * MSS {
            let sent = trace.send(at_us + 10, MSS, false);
            if std::mem::take(&mut slowed) && marked {
                sent.flags |= Flags::CWR;
            }
            let last_us = acks.back().map_or(0, |(last_us, _)| *last_us);
            acks.push_back(((at_us + 10 + RTT_US).max(last_us + 20), trace.sent));
        }
    }
    trace
}

#[test]
fn a_sender_that_marks_slow_down_is_held_back_by_the_path() {
    let marked = sawtooth(20, 40, 6_000_000, true).explained();
    assert!(marked.evidence.counts.slowed > 3, "{:#?}", marked.evidence.counts);
    assert_eq!(marked.verdict.cause, Cause::PathBandwidth, "{:#?}", marked.evidence);
    assert!(
        marked.verdict.because.iter().any(|it| it.contains("marks instead of dropping")),
        "{:?}",
        marked.verdict.because
    );
    let silent = sawtooth(20, 40, 6_000_000, false).explained().verdict;
    assert_ne!(silent.cause, Cause::PathBandwidth, "{:?}", silent.because);
}

#[test]
fn what_happens_once_in_a_long_transfer_does_not_limit_it() {
    // The last segment comes a second time, late: that is all that is wrong with ten thousand.
    let mut trace = sawtooth(1, 20, 20_000_000, false);
    let again =
        trace.segments.iter().rposition(|segment| segment.len > 0 && segment.from.port() != 80).unwrap();
    let mut again = trace.segments[again].clone();
    trace.ack(20_000_000 + RTT_US, trace.sent);
    again.at_ns = trace.segments.last().unwrap().at_ns + 1_000_000;
    trace.segments.push(again);
    let found = trace.explained();
    assert_eq!(found.evidence.counts.spurious(), 1, "{:#?}", found.evidence.counts);
    assert_ne!(found.verdict.cause, Cause::Reordering, "{:?}", found.verdict.because);
}

#[test]
fn no_sentence_says_the_same_again() {
    for trace in [beat(100, 2_000, 10_050, 500), bursts(|_| 20_000)] {
        let because = trace.explained().verdict.because;
        let told = because.iter().filter(|sentence| sentence.contains("its own application")).count();
        assert_eq!(told, 1, "{because:?}");
    }
}

/// The connection of packets, each at the interface that `at` tells.
fn captured(segments: &[Segment], at: impl Fn(usize, &Segment) -> Vec<usize>) -> Vec<Connection> {
    let mut table = Table::default();
    for (number, segment) in segments.iter().enumerate() {
        at(number, segment).into_iter().for_each(|interface| table.take(interface, segment));
    }
    table.finish();
    connection::connections(table.views, 0)
}

#[test]
fn two_interfaces_with_a_direction_each_show_one_connection() {
    let segments = bursts(|_| 20_000).segments;
    let port = |segment: &Segment| usize::from(segment.from.port() == 80);
    let whole = captured(&segments, |_, _| vec![0]);
    let tapped = captured(&segments, |_, segment| vec![port(segment)]);
    assert_eq!((tapped.len(), tapped[0].interfaces.as_slice()), (1, &[0, 1][..]));
    assert_eq!(tapped[0].verdict, whole[0].verdict);
    assert!(tapped[0].notes.is_empty(), "{:?}", tapped[0].notes);
    // Both ports of a router see both directions, but the first packet of each is missing at one.
    let routed =
        captured(&segments, |number, segment| if number < 2 { vec![port(segment)] } else { vec![0, 1] });
    assert_eq!((routed.len(), routed[0].views.len()), (1, 2));
    assert_eq!(routed[0].verdict.cause, whole[0].verdict.cause);
    assert_eq!(routed[0].directions[0].bytes, whole[0].directions[0].bytes);
    // Ends that are used again.
    let mut again = segments.clone();
    again.extend(segments.iter().cloned().map(|mut segment| {
        segment.at_ns += 10_000_000_000;
        segment.seq = segment.seq.wrapping_add(7_000_000);
        segment.ack = segment.ack.wrapping_add(7_000_000);
        segment
    }));
    let twice = captured(&again, |_, segment| vec![port(segment)]);
    assert_eq!(twice.len(), 2);
    assert!(
        twice.iter().all(|one| one.verdict.cause == whole[0].verdict.cause && one.notes.is_empty()),
        "{:?}",
        twice[0].notes
    );
}

/// Paced data seen at the receiver, without its opening: twenty segments under way, each acknowledged as it comes. Timestamps tell the
/// turn; windows are told in steps of 256 bytes.
fn cut_at_the_receiver() -> Trace {
    let mut trace = Trace::new(1_460);
    trace.window = 300;
    for number in 0..2_000 {
        let at_us = 20_000 + number * 500;
        let stamp = |at_us: u64| (at_us / 1_000) as u32;
        let echo = stamp(at_us - RTT_US + 500);
        trace.send(at_us, 1_448, false).options.timestamps = Some(Timestamps { value: stamp(at_us), echo });
        let sent = trace.sent;
        trace.ack(at_us + 5, sent);
        let acknowledged = trace.segments.last_mut().unwrap();
        acknowledged.options.timestamps = Some(Timestamps { value: stamp(at_us), echo: stamp(at_us) });
    }
    trace
}

#[test]
fn seen_from_the_receiver_a_window_has_to_cover_a_round_trip() {
    let found = cut_at_the_receiver().explained();
    let evidence = &found.evidence;
    let window = evidence.window_most as f64;
    assert!(window >= evidence.rate * evidence.rtt_median_s.unwrap(), "{evidence:#?}");
    let window_causes = [Cause::ReceiverWindow, Cause::ReceiverApplication];
    assert!(!window_causes.contains(&found.verdict.cause), "{:?}", found.verdict.because);
}

#[test]
fn a_tail_that_is_sent_twice_was_overtaken_by_nothing() {
    let mut evidence = cut_at_the_receiver().explained().evidence;
    (evidence.counts.dsacks, evidence.counts.needless) = (2, 2);
    assert_eq!(evidence.overtaken(), 0);
    evidence.counts.filled = 1;
    assert_eq!(evidence.overtaken(), 1, "the first one came after what filled its gap");
    evidence.counts.fast = 1;
    assert_eq!(evidence.overtaken(), 2, "duplicate acknowledgements asked for it");
    evidence.late = 3;
    assert_eq!(evidence.overtaken(), 5);
}

#[test]
fn questions_that_are_held_back_limit_larger_answers() {
    let exchanges = |held_us: u64| {
        let mut trace = Trace::new(1_460).open(true);
        let mut at_us = 20_000;
        let mut answered = 0;
        for _ in 0..50 {
            trace.send(at_us, 300, true);
            let sent = trace.sent;
            if held_us > 0 {
                trace.ack(at_us + RTT_US + held_us, sent);
                trace.segments.last_mut().unwrap().seq += answered;
                at_us += RTT_US + held_us + OWN_US;
            }
            trace.send(at_us, 200, true);
            trace.front = trace.sent;
            // The other end thinks for as long as the acknowledgement would have taken.
            at_us += RTT_US + 40_000 - held_us;
            let answer = trace.take(at_us, false, Flags::ACK | Flags::PSH, 1_200);
            answer.seq += answered;
            answered += 1_200;
            trace.take(at_us + OWN_US, true, Flags::ACK, 0).ack = 1 + answered;
            at_us += 2 * OWN_US;
        }
        trace
    };
    let held = exchanges(40_000).explained();
    assert_eq!((held.main, held.verdict.cause), (0, Cause::DelayedAckNagle), "{:?}", held.verdict.because);
    let slow = exchanges(0).explained();
    assert_eq!((slow.main, slow.verdict.cause), (1, Cause::SenderApplication), "{:?}", slow.verdict.because);
}

#[test]
fn packets_that_come_twice_at_one_interface_make_nothing_sure() {
    let segments = bursts(|_| 20_000).segments;
    let twice: Vec<Segment> = segments
        .iter()
        .flat_map(|segment| [segment.clone(), Segment { at_ns: segment.at_ns + 5_000, ..segment.clone() }])
        .collect();
    let found = captured(&twice, |_, _| vec![0]).remove(0);
    assert_eq!(found.verdict.confidence, 0.0);
    assert!(found.notes.iter().any(|note| note.contains("twice at once")), "{:?}", found.notes);
    // What a router receives at one interface leaves by another: it made none of it.
    let passed: Vec<Segment> = twice
        .iter()
        .enumerate()
        .map(|(number, segment)| Segment { outgoing: Some(number % 2 == 1), ..segment.clone() })
        .collect();
    let routed =
        captured(&passed, |number, segment| vec![(number + usize::from(segment.from.port() == 80)) % 2]);
    assert_eq!((routed.len(), routed[0].views.len()), (1, 2));
    assert!(routed[0].views.iter().all(|view| view.forwarded));
    assert_eq!(routed[0].directions[0].again, 0);
}

#[test]
fn connections_beyond_the_bound_are_counted() {
    let mut table = Table::new(2);
    for port in [1, 2, 3, 1, 3] {
        let mut trace = Trace::new(1_460);
        trace.take(0, true, Flags::SYN, 0).from.set_port(port);
        table.take(0, &trace.segments[0]);
    }
    assert_eq!((table.views.len(), table.left_out), (2, 2));
}
