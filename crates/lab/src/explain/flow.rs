//! A connection as one interface saw it.

use super::echo::Echoes;
use super::ending::Ending;
use super::half::Half;
use super::histogram::Histogram;
use super::scale;
use super::segment::Segment;
use super::turn::{Echoed, Turn};
use super::wait::Wait;
use super::wire::Known;
use super::wireshark::Counter;
use linerate_wire::tcp::{Flags, MAX_WINDOW_SCALE};
use std::net::SocketAddr;

/// Bounds of the payload of a segment where no SYN tells: the least that any host takes (RFC 9293 section 3.7.1), and that of
/// Ethernet's packets. What is larger is taken for a super-frame.
const LEAST_MSS: u64 = 536;
/// The upper one.
const MAX_MSS: u64 = 1_460;
/// An end is near the capture if its answers take less than this part of what the other's take: with a capture at an end there are
/// only its own delays on this side.
const NEAR: u64 = 4;

/// What a SYN told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Syn {
    /// Its sequence number.
    pub seq: u32,
    /// When it passed, in nanoseconds.
    pub at_ns: u64,
    /// Largest segment that its sender takes.
    pub mss: Option<u16>,
    /// Window scale; `None` if it was cut off.
    pub scale: Option<Option<u8>>,
    /// Whether selective acknowledgements may be sent to it.
    pub sack: bool,
    /// Whether it has timestamps.
    pub stamps: bool,
}

/// A connection at one interface.
#[derive(Clone, Debug)]
pub struct View {
    /// Number of the interface in the file.
    pub interface: usize,
    /// It is of the second copies that the interface has.
    pub second: bool,
    /// Where the packets of each end were captured: another interface where each sees one direction alone, as the two ports of a
    /// network tap do.
    pub seen_at: [usize; 2],
    /// The ends; the first one opened the connection, as far as can be known.
    pub ends: [SocketAddr; 2],
    /// Data from each end.
    pub halves: [Half; 2],
    /// The SYN of each end.
    pub syns: [Option<Syn>; 2],
    /// What each end's data tells of acknowledgements that were not captured.
    pub echoes: [Echoes; 2],
    /// How long each end takes to answer.
    pub turns: [Turn; 2],
    /// First and last packet, in nanoseconds.
    pub span_ns: (u64, u64),
    /// Packets from each end.
    pub packets: [u64; 2],
    /// Events by Wireshark's rules.
    pub wireshark: Counter,
    /// Packets of each end that the file says were sent by the host that captured, less those that it received.
    pub own: [i64; 2],
    /// The host that captured passes packets on: that it sent one does not tell that it made it.
    pub forwarded: bool,
    /// Whether the capture seemed to be near each end when it was last answered.
    near: [bool; 2],
    /// Packets with a congestion mark from each end.
    pub marks: [u64; 2],
    /// Whether it was refused, not answered or reset.
    pub ending: Ending,
    /// Whether FIN or RST was seen from each end.
    pub closed: [bool; 2],
    /// Bytes of options in data from each end.
    pub options_len: [u64; 2],
    /// Largest payload of a packet from each end that is none of a super-frame.
    pub largest: [u64; 2],
    /// The same of those behind which more was queued: not pushed, so that their size is the largest that may be sent.
    pub largest_cut: [u64; 2],
}

impl View {
    /// The view that an interface has of a connection whose first segment this is.
    pub fn new(interface: usize, segment: &Segment) -> View {
        let opened = !(segment.has(Flags::SYN) && segment.has(Flags::ACK));
        let ends = if opened { [segment.from, segment.to] } else { [segment.to, segment.from] };
        View::begin(interface, ends, segment.at_ns)
    }

    /// One that saw nothing.
    pub fn empty(ends: [SocketAddr; 2]) -> View {
        View::begin(0, ends, 0)
    }

    fn begin(interface: usize, ends: [SocketAddr; 2], at_ns: u64) -> View {
        View {
            interface,
            second: false,
            seen_at: [interface; 2],
            ends,
            halves: [Half::new(at_ns), Half::new(at_ns)],
            syns: [None; 2],
            echoes: [Echoes::default(), Echoes::default()],
            turns: [Turn::default(), Turn::default()],
            span_ns: (at_ns, at_ns),
            packets: [0; 2],
            wireshark: Counter::default(),
            own: [0; 2],
            forwarded: false,
            near: [true; 2],
            marks: [0; 2],
            ending: Ending::default(),
            closed: [false; 2],
            options_len: [0; 2],
            largest: [0; 2],
            largest_cut: [0; 2],
        }
    }

    /// Most bytes of payload of a segment from end `side`, super-frames aside: what both offer, less the options that each segment
    /// carries (RFC 6691).
    pub fn mss(&self, side: usize) -> u64 {
        let told = self.syns.map(|syn| syn.and_then(|syn| syn.mss).map(u64::from));
        // What the other end takes, and the size of the sender's own packets, which its offer tells of.
        let offer = match (told[1 - side], told[side]) {
            (Some(far), Some(own)) => far.min(own),
            (Some(far), None) => far,
            // What the other end takes was not seen, but what is sent to it.
            (None, Some(own)) if self.largest_cut[side] > 0 => return own.min(self.largest_cut[side]),
            (None, Some(own)) => own,
            (None, None) => return self.largest[side].clamp(LEAST_MSS, MAX_MSS),
        };
        offer.saturating_sub(self.options_len[side]).max(1)
    }

    /// How often windows told by `side` are to be doubled; `None` if no SYN tells.
    pub fn scale(&self, side: usize) -> Option<u8> {
        match (self.syns[side], self.syns[1 - side]) {
            (Some(own), Some(other)) => match (own.scale?, other.scale?) {
                (Some(scale), Some(_)) => Some(scale.min(MAX_WINDOW_SCALE)),
                _ => Some(0),
            },
            // Both must offer it.
            (Some(own), None) if own.scale == Some(None) => Some(0),
            (None, Some(other)) if other.scale == Some(None) => Some(0),
            // Of a connection only half of whose handshake was seen, the answer has the same option as a rule.
            (Some(own), None) => own.scale?,
            _ => None,
        }
    }

    /// Windows told to end `side` in bytes by time, and how often they are doubled beyond what the sender seemed to need: one each
    /// round trip has to carry what was measured.
    pub fn windows(&self, side: usize) -> (Histogram, u8) {
        let half = &self.halves[side];
        if self.scale(1 - side).is_some() {
            return (half.sender.windows.clone(), 0);
        }
        let least = half.wire.guess.least;
        let windows = half.sender.windows.doubled(least);
        let (bytes, span) = half.delivered(self.is_near(side));
        let span_ns = span.map_or(0, |span| span.1.saturating_sub(span.0));
        let rate = bytes as f64 / span_ns.max(1) as f64;
        let rtt_ns = self.rtt_least_ns(side).or(half.rtt.least()).map(|ns| ns as f64);
        let rate = if span_ns > 0 { rate } else { 0.0 };
        let more = match half.wire.guess.is_proven() {
            true => 0,
            false => scale::doublings(windows.most().unwrap_or(0), least, rate, rtt_ns),
        };
        (windows.doubled(more), more)
    }

    /// Whether the capture was made at end `side`, or on its side of the path.
    pub fn is_near(&self, side: usize) -> bool {
        let own = if self.forwarded { 0 } else { self.own[side] - self.own[1 - side] };
        match own {
            1.. => return true,
            ..0 => return false,
            0 => {}
        }
        match (self.turns[side].bound_ns(), self.turns[1 - side].bound_ns()) {
            (Some(own), Some(other)) => own <= other / NEAR,
            // Nothing tells; most captures are made at servers, and what there is to explain is sent by them.
            _ => true,
        }
    }

    /// What is known when something of direction `side` comes.
    fn known(&self, side: usize) -> Known {
        let turn_ns = if self.is_near(side) { 0 } else { self.turns[side].bound_ns().unwrap_or(0) };
        Known {
            mss: self.mss(side),
            scale: self.scale(1 - side),
            turn_ns,
            turn: [self.turns[side].soonest, self.turns[side].soonest_data]
                .map(|known| known.filter(|_| turn_ns > 0)),
            far_ns: self.turns[1 - side].least_ns.unwrap_or(0),
        }
    }

    /// Least round-trip time, in nanoseconds, if both sides of the path are known.
    pub fn rtt_least_ns(&self, side: usize) -> Option<u64> {
        let far = self.turns[1 - side].least_ns?;
        let own = if self.is_near(side) { Some(0) } else { self.turns[side].least_ns };
        Some(far.saturating_add(own?))
    }

    /// Which end sent a segment.
    pub fn side(&self, segment: &Segment) -> usize {
        usize::from(segment.from != self.ends[0])
    }

    /// Whether a SYN opens another connection between the same ends.
    pub fn is_reused(&self, segment: &Segment) -> bool {
        if !segment.has(Flags::SYN) || segment.has(Flags::ACK) {
            return false;
        }
        match self.syns[self.side(segment)] {
            Some(syn) => syn.seq != segment.seq,
            // It went on when the capture began.
            None => self.packets[0] + self.packets[1] > 0,
        }
    }

    /// The next segment of it.
    pub fn take(&mut self, segment: &Segment) {
        let side = self.side(segment);
        let other = 1 - side;
        self.span_ns.1 = self.span_ns.1.max(segment.at_ns);
        self.packets[side] += 1;
        self.marks[side] += u64::from(segment.congested);
        self.closed[side] |= segment.flags.intersects(Flags::FIN | Flags::RST);
        match segment.outgoing {
            Some(true) => self.own[side] += 1,
            Some(false) => self.own[other] += 1,
            None => {}
        }
        if segment.has(Flags::SYN) {
            self.synchronise(side, segment);
        } else if segment.len > 0 {
            // Blocks of acknowledged data make single segments smaller; all have the rest.
            let usual = u64::from(segment.options_len);
            let least = self.options_len[side];
            self.options_len[side] = if self.largest[side] == 0 { usual } else { least.min(usual) };
            let most = self.syns[side].and_then(|syn| syn.mss).map_or(MAX_MSS, u64::from);
            if u64::from(segment.len) <= most {
                self.largest[side] = self.largest[side].max(u64::from(segment.len));
                if !segment.flags.intersects(Flags::PSH | Flags::FIN) {
                    self.largest_cut[side] = self.largest_cut[side].max(u64::from(segment.len));
                }
            } else if self.largest[side] == 0 {
                self.largest[side] = most.saturating_sub(usual).max(1);
            }
        }
        let is_stale = self.is_stale(side, segment);
        if !is_stale {
            self.ending.take(side, segment);
        }
        let round_trip = self.answers(side, segment);
        self.wireshark.take(side, segment);
        if segment.has(Flags::RST) || is_stale {
            return;
        }
        let known = self.known(side);
        if segment.has(Flags::ACK) && !(segment.has(Flags::SYN) && self.syns[other].is_none()) {
            self.answered(side, segment);
        }
        let alone = segment.len > 0 && self.packets[other] == 0;
        if let Some(stamps) = segment.options.timestamps.filter(|_| alone)
            && let Some(heard) =
                self.echoes[side].passed(segment.at_ns, stamps.echo, segment.ack, known.far_ns)
        {
            self.halves[side].sender.heard(&heard);
        }
        if segment.sequence_len() > 0 {
            self.halves[side].sent(segment, &known);
        } else {
            self.halves[side].wire.asked(segment);
        }
        if let Some(round_trip) = round_trip {
            self.round_trip(side, segment.at_ns, round_trip);
        }
        if alone {
            let end = self.halves[side].wire.position(segment.seq.wrapping_add(segment.len));
            self.echoes[side].sent(segment.at_ns, end);
        }
    }

    /// Whether a segment is of an earlier connection between the same ends: it answers a SYN without acknowledging it (RFC 9293 section
    /// 3.10.7.3). Its numbers are none of this one's.
    fn is_stale(&self, side: usize, segment: &Segment) -> bool {
        let other = 1 - side;
        let opens = self.syns[side].is_none() && !self.ending.has_gone_on(other);
        let is_answer = segment.has(Flags::ACK) && !segment.flags.intersects(Flags::SYN | Flags::RST);
        let asked = self.syns[other].filter(|_| opens && is_answer);
        asked.is_some_and(|syn| segment.ack != syn.seq.wrapping_add(1))
    }

    /// The acknowledgement in a segment from end `side`.
    fn answered(&mut self, side: usize, segment: &Segment) {
        let other = 1 - side;
        let mut known_other = self.known(other);
        if segment.has(Flags::SYN) {
            // The window of a SYN is never scaled (RFC 7323 section 2.2).
            known_other.scale = Some(0);
        }
        let answer = self.halves[other].answered(segment, &known_other);
        if let Some(time_ns) = answer.time_ns {
            self.turns[side].took(time_ns, segment.len);
            let near = self.is_near(other);
            if self.near[other] && !near {
                // What was known was the receiver's own time.
                self.halves[other].rtt = Histogram::default();
            }
            self.near[other] = near;
            // What answers a SYN does not tell yet on which side of the path the capture is.
            if near && !segment.has(Flags::SYN) {
                self.halves[other].round_trip(segment.at_ns, time_ns);
            }
        }
    }

    fn synchronise(&mut self, side: usize, segment: &Segment) {
        let options = &segment.options;
        let syn = Syn {
            seq: segment.seq,
            at_ns: segment.at_ns,
            mss: options.mss,
            scale: if segment.options_cut {
                options.window_scale.map(Some)
            } else {
                Some(options.window_scale)
            },
            sack: options.sack_permitted,
            stamps: options.timestamps.is_some(),
        };
        self.syns[side] = self.syns[side].filter(|first| first.seq == segment.seq).or(Some(syn));
    }

    /// Seen from the receiver, the round trip is that from an acknowledgement to the data that it let go. What the sender's application kept
    /// back for a while is no answer, and nothing tells where that is not known.
    fn round_trip(&mut self, side: usize, at_ns: u64, echoed: Echoed) {
        let is_silence = matches!(self.halves[side].sender.last_wait, Wait::Application | Wait::Rhythm);
        let is_known = !echoed.is_bound || self.turns[side].least_ns.is_some() && !is_silence;
        if let Some(far_ns) = self.turns[1 - side].least_ns
            && is_known
            && !self.is_near(side)
        {
            self.halves[side].round_trip(at_ns, echoed.time_ns.saturating_add(far_ns));
        }
    }

    /// Answers of the handshake and those that timestamps tell; what data echoes of the latter.
    fn answers(&mut self, side: usize, segment: &Segment) -> Option<Echoed> {
        let other = 1 - side;
        let mut with_data = None;
        if let Some(stamps) = segment.options.timestamps {
            self.turns[other].shown(segment.at_ns, stamps.value);
            let took = if segment.has(Flags::ACK) && !segment.has(Flags::SYN) {
                self.turns[side].echoed(segment.at_ns, stamps.echo, segment.len)
            } else {
                None
            };
            with_data = took.filter(|_| segment.len > 0);
        }
        // Where what comes back is not captured, it came between the first segment and its sender's next.
        if segment.has(Flags::ACK)
            && !segment.has(Flags::SYN)
            && (self.packets[side], self.packets[other]) == (2, 0)
            && let Some(syn) = self.syns[side]
        {
            self.turns[other].took(segment.at_ns.saturating_sub(syn.at_ns), 0);
        }
        // The third segment of the handshake answers the second; it has no number of its own to be acknowledged.
        if side == 0
            && segment.has(Flags::ACK)
            && !segment.has(Flags::SYN)
            && self.packets[0] == 2
            && let Some(syn) = self.syns[1].filter(|syn| segment.ack == syn.seq.wrapping_add(1))
        {
            self.turns[0].took(segment.at_ns.saturating_sub(syn.at_ns), segment.len);
        }
        with_data
    }
}
