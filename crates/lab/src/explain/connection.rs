//! A connection as a whole: its views joined, its two directions in figures, and the verdict on the main one.

use super::cause::Cause;
use super::counts::Counts;
use super::ending::Failure;
use super::evidence::Evidence;
use super::flow::View;
use super::histogram::Histogram;
use super::verdict::{Verdict, failed};
use super::wait::Wait;
use super::wireshark;
use serde::Serialize;
use std::net::SocketAddr;

/// A TCP connection.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Its number in the analysis, 1 for the one with the most bytes.
    pub number: usize,
    /// Who opened it, as far as can be known.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// When it is first seen, in seconds from the first packet of the file.
    pub begin_s: f64,
    /// How long it is seen, in seconds.
    pub time_s: f64,
    /// Whether its opening is in the capture.
    pub opened: bool,
    /// Numbers of the interfaces that saw it.
    pub interfaces: Vec<usize>,
    /// Data from the client, and from the server.
    pub directions: [Direction; 2],
    /// Which direction the verdict is on: the one with more bytes, or that of the questions if these are held back.
    pub main: usize,
    /// What limited it.
    pub verdict: Verdict,
    /// What speaks for that.
    pub evidence: Evidence,
    /// Events by Wireshark's rules, each interface for itself.
    pub wireshark: wireshark::Counts,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What was counted.
    #[serde(skip)]
    pub views: Vec<Box<View>>,
}

/// Where a capture was made, seen from a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// At the sender, or on its side of the path.
    Sender,
    /// Nearer to the receiver.
    Receiver,
}

/// Data in one direction, as the view tells that is nearest to its sender.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// Where it was captured.
    pub seen_at: Place,
    /// Packets, those without data included.
    pub packets: u64,
    /// Bytes of data, each once.
    pub bytes: u64,
    /// From the first to the last data, in seconds; at the sender, to the last acknowledgement of data.
    pub time_s: f64,
    /// Bytes of data by that time, in bits per second; at the sender, those that were acknowledged.
    pub goodput_bps: f64,
    /// Most payload of a segment.
    pub mss: u64,
    /// How often the windows told to this sender are to be doubled; nothing where no SYN tells.
    pub window_scale: Option<u8>,
    /// Windows told to this sender in bytes, by time.
    pub window: Histogram,
    /// Bytes under way, by time.
    pub flight: Histogram,
    /// Round-trip times in nanoseconds.
    pub rtt_ns: Histogram,
    /// Least round-trip time in nanoseconds, those of handshake and timestamps included.
    pub rtt_least_ns: Option<u64>,
    /// From data to its acknowledgement, as seen at the capture, in nanoseconds.
    pub answer_ns: Histogram,
    /// Segments that each acknowledgement moved on by, on average.
    pub segments_per_ack: Option<f64>,
    /// Sent at a stroke, in bytes.
    pub burst: Histogram,
    /// Time between packets with data in nanoseconds.
    pub gap_ns: Histogram,
    /// Variation of that time: 0 for a clock, 1 for chance.
    pub gap_variation: Option<f64>,
    /// Waits for the sender's application in nanoseconds.
    pub idle_ns: Histogram,
    /// Packets that a router marked.
    pub congestion_marks: u64,
    /// Segments sent again, all kinds.
    pub again: u64,
    /// Of these, such as the receiver had already.
    pub spurious: u64,
    /// Segments that were sent once and came twice: duplicated on the way.
    pub duplicated: u64,
    /// Everything else that was counted.
    pub counts: Counts,
}

impl Direction {
    fn of(view: &View, side: usize) -> Direction {
        let half = &view.halves[side];
        let counts = half.wire.counts.clone();
        // Of acknowledgements alone, the time is that of what came back.
        let (delivered, span) = half.delivered(view.is_near(side));
        let span = match span {
            None if counts.bytes > 0 => view.span_ns,
            span => span.unwrap_or_default(),
        };
        let time_s = span.1.saturating_sub(span.0) as f64 / 1e9;
        let mss = view.mss(side);
        Direction {
            seen_at: if view.is_near(side) { Place::Sender } else { Place::Receiver },
            packets: view.packets[side],
            bytes: counts.bytes,
            time_s,
            goodput_bps: if time_s > 0.0 { delivered as f64 * 8.0 / time_s } else { 0.0 },
            mss,
            window_scale: view.scale(1 - side),
            window: view.windows(side).0,
            flight: half.sender.flight.clone(),
            rtt_ns: half.rtt.clone(),
            rtt_least_ns: view.rtt_least_ns(side),
            answer_ns: half.wire.answer_time.clone(),
            segments_per_ack: half.wire.ack_bytes.mean().map(|bytes| bytes / mss.max(1) as f64),
            burst: half.sender.burst_bytes.clone(),
            gap_variation: half.data.gaps.variation(),
            gap_ns: half.data.gaps.clone(),
            idle_ns: half.sender.idle.clone(),
            congestion_marks: view.marks[side],
            again: counts.again(),
            spurious: counts.spurious(),
            duplicated: counts.duplicated(),
            counts,
        }
    }
}

/// The connections of the views of a capture, the one with the most bytes first; of some with as many, the one that began first. The
/// capture goes on until `end_ns`, if not longer.
pub fn connections(mut views: Vec<Box<View>>, end_ns: u64) -> Vec<Connection> {
    // What was held back to see whether it comes twice is behind what was not.
    views.sort_by_key(|view| view.span_ns.0);
    let first_ns = views.first().map_or(0, |view| view.span_ns.0);
    let end_ns = views.iter().map(|view| view.span_ns.1).fold(end_ns, u64::max);
    let mut connections: Vec<Connection> =
        groups(views).into_iter().map(|views| connection(views, (first_ns, end_ns))).collect();
    connections.sort_by_key(|connection| {
        std::cmp::Reverse(connection.directions.iter().map(|direction| direction.bytes).sum::<u64>())
    });
    for (index, connection) in connections.iter_mut().enumerate() {
        connection.number = index + 1;
    }
    connections
}

/// Views of one connection at several interfaces together.
fn groups(views: Vec<Box<View>>) -> Vec<Vec<Box<View>>> {
    let mut groups: Vec<Vec<Box<View>>> = Vec::new();
    let mut of_ends: std::collections::HashMap<[SocketAddr; 2], Vec<usize>> =
        std::collections::HashMap::new();
    for view in views {
        let key = [view.ends[0].min(view.ends[1]), view.ends[0].max(view.ends[1])];
        let known = of_ends.entry(key).or_default();
        let found =
            known.iter().copied().find(|index| groups.get(*index).is_some_and(|group| belongs(group, &view)));
        match found.and_then(|index| groups.get_mut(index)) {
            Some(group) => group.push(view),
            None => {
                known.push(groups.len());
                groups.push(vec![view]);
            }
        }
    }
    groups
}

/// Whether a view shows the connection of these: another interface, the same SYN or, where one is missing, the same time.
fn belongs(group: &[Box<View>], view: &View) -> bool {
    let Some(first) = group.first() else { return false };
    if group.iter().any(|other| (other.interface, other.second) == (view.interface, view.second)) {
        return false;
    }
    let isn = |view: &View| view.syns[0].map(|syn| (view.ends[0], syn.seq));
    match (isn(first), isn(view)) {
        (Some(one), Some(other)) => one == other,
        _ => first.span_ns.0 <= view.span_ns.1 && view.span_ns.0 <= first.span_ns.1,
    }
}

/// Which end of `view` is end `side` of the connection.
fn side_in(view: &View, end: SocketAddr) -> usize {
    usize::from(view.ends[0] != end)
}

/// The view that shows most of what the sender at `end` did.
fn nearest(views: &[Box<View>], end: SocketAddr) -> Option<&View> {
    let seen = views.iter().map(Box::as_ref);
    seen.max_by_key(|view| {
        let side = side_in(view, end);
        (view.is_near(side), view.halves[side].wire.counts.packets)
    })
}

/// One of these views; `span_ns` is that of the capture.
fn connection(views: Vec<Box<View>>, span_ns: (u64, u64)) -> Connection {
    let first_ns = span_ns.0;
    let opener = views.iter().find(|view| view.syns[0].is_some()).or(views.first());
    let ends = opener.map_or([SocketAddr::from(([0, 0, 0, 0], 0)); 2], |view| view.ends);
    let nothing = View::empty(ends);
    let chosen = ends.map(|end| nearest(&views, end).unwrap_or(&nothing));
    let sides = [side_in(chosen[0], ends[0]), side_in(chosen[1], ends[1])];
    let directions = [Direction::of(chosen[0], sides[0]), Direction::of(chosen[1], sides[1])];
    let judged = |side: usize| {
        let mut evidence = Evidence::of(chosen[side], sides[side]);
        // What was overtaken is best seen behind the place where it happened.
        let seen_late =
            views.iter().map(|view| view.halves[side_in(view, ends[side])].wire.counts.late).max();
        evidence.late = evidence.late.max(seen_late.unwrap_or(0));
        let verdict = Verdict::of(&evidence);
        (evidence, verdict)
    };
    let mut main = usize::from(directions[1].bytes > directions[0].bytes);
    let (mut evidence, mut verdict) = judged(main);
    let is_asked = verdict.cause == Cause::SenderApplication && directions[1 - main].bytes > 0;
    if let Some(asks) = is_asked.then(|| judged(1 - main)).filter(|asks| holds_back(asks, &evidence)) {
        main = 1 - main;
        (evidence, verdict) = asks;
    }
    let mut notes = notes(&evidence, &directions[main], &views);
    if directions[main].bytes < directions[1 - main].bytes {
        notes.push("the other direction has more bytes, but its sender waits for this one".to_owned());
    }
    if is_copied(&directions[main]) {
        // Copies look like what was sent again: nothing that is said of losses is sure.
        verdict.confidence = 0.0;
        notes.push(
            "nearly half of all packets came twice at once: the capture has each at two interfaces and does not tell which (a capture on \
             one interface, or LINKTYPE_LINUX_SLL2, does)"
                .to_owned(),
        );
    }
    verdict = ended(verdict, chosen[0], span_ns.1, &mut notes);
    let mut wireshark = wireshark::Counts::default();
    for counts in views.iter().flat_map(|view| view.wireshark.counts()) {
        wireshark += counts;
    }
    let begin_ns = views.iter().map(|view| view.span_ns.0).min().unwrap_or(first_ns);
    let end_ns = views.iter().map(|view| view.span_ns.1).max().unwrap_or(begin_ns);
    Connection {
        number: 0,
        client: ends[0],
        server: ends[1],
        begin_s: begin_ns.saturating_sub(first_ns) as f64 / 1e9,
        time_s: end_ns.saturating_sub(begin_ns) as f64 / 1e9,
        opened: views.iter().any(|view| view.syns.iter().any(Option::is_some)),
        interfaces: interfaces(&views),
        main,
        verdict,
        notes,
        evidence,
        wireshark,
        directions,
        views,
    }
}

/// What is said of a connection that failed until the capture ended; a note where more is known than that it was reset.
fn ended(verdict: Verdict, view: &View, end_ns: u64, notes: &mut Vec<String>) -> Verdict {
    let Some(failure) = view.ending.failure(end_ns) else { return verdict };
    let begin_ns = view.span_ns.0;
    if let Failure::Reset { by, at_ns } = failure
        && verdict.cause != Cause::Unknown
    {
        notes.push(failed::reset(view.ends[by], at_ns.saturating_sub(begin_ns)));
    }
    verdict.failed(failure, view.ends, begin_ns)
}

/// A packet and its copy are half of all packets each, but for those that only one place saw.
const COPIED: f64 = 0.4;

/// Whether the capture has packets twice.
fn is_copied(direction: &Direction) -> bool {
    let packets = direction.counts.packets + direction.counts.duplicated_before;
    direction.counts.copies as f64 >= COPIED * packets.max(1) as f64
}

/// The gap of a sender that waits to be asked is covered if that took most of it.
const COVERED: f64 = 0.5;

/// Whether the other end waits for the acknowledgement of a part of its question, for most of the time that the answering end of
/// `answers` waits for the whole.
fn holds_back(asks: &(Evidence, Verdict), answers: &Evidence) -> bool {
    let gap_s = answers.waits[Wait::Application as usize] * answers.time_s;
    asks.1.cause == Cause::DelayedAckNagle && asks.0.nagle.1 >= COVERED * gap_s
}

/// The interfaces of all views, each once.
fn interfaces(views: &[Box<View>]) -> Vec<usize> {
    let mut all: Vec<usize> = views.iter().flat_map(|view| view.seen_at).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// That everything comes twice, and how far apart.
fn twice(views: &[Box<View>]) -> Option<String> {
    let second = views.iter().find(|view| view.second)?;
    let first = views.iter().find(|view| view.interface == second.interface && !view.second)?;
    let apart = match (first.syns[0], second.syns[0]) {
        (Some(one), Some(other)) => {
            let apart = std::time::Duration::from_nanos(one.at_ns.abs_diff(other.at_ns));
            format!(", its SYN {} apart", crate::quantity::span(apart))
        }
        _ => String::new(),
    };
    Some(format!(
        "the capture has each segment twice{apart}, as if the captures of both ends were merged: each direction is explained by the copies \
         nearest to its sender"
    ))
}

/// What limits what can be said.
fn notes(evidence: &Evidence, main: &Direction, views: &[Box<View>]) -> Vec<String> {
    let mut notes: Vec<String> = twice(views).into_iter().collect();
    if views.iter().all(|view| view.syns.iter().all(Option::is_none)) {
        notes.push(
            "the opening is not in the capture: window scale and largest segment are inferred".to_owned(),
        );
    } else if !evidence.scale_known && evidence.has_acks {
        notes.push(
            "the window scale was not seen: windows are as small as what was sent allows, larger ones cannot be excluded"
                .to_owned(),
        );
    }
    if !evidence.has_acks {
        notes.push("no acknowledgements were captured".to_owned());
    }
    if !evidence.has_data && evidence.bytes > 0 {
        notes.push("no data was captured, only what acknowledges it".to_owned());
    }
    if main.counts.missed_bytes > 0 && evidence.has_data {
        notes.push(format!(
            "{} bytes were acknowledged that the capture does not have: it missed packets",
            crate::quantity::count(main.counts.missed_bytes)
        ));
    }
    if main.counts.super_frames > 0 {
        notes.push(format!(
            "{} packets hold more than a segment: the interface segments or coalesces, and the wire had smaller ones",
            crate::quantity::count(main.counts.super_frames)
        ));
    }
    notes
}
