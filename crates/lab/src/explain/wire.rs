//! What passed the capture in one direction, and what was answered: each segment told apart as new, sent again or late, each
//! acknowledgement as progress, duplicate or window.

use super::counts::Counts;
use super::histogram::Histogram;
use super::packets::Packets;
use super::scale::Guess;
use super::segment::Segment;
use super::sequence::Unwrapped;
use super::turn::Soonest;
use linerate_wire::tcp::{Flags, SackBlock};
use serde::Serialize;
use std::collections::VecDeque;

/// Most segments that are remembered as under way; older ones are joined.
const MAX_UNDER_WAY: usize = 16_384;
/// Nobody sends again so soon: what comes twice within this time was captured twice.
const COPY_NS: u64 = 200_000;
/// Most gaps that are remembered: bytes that passed elsewhere, or not yet.
const MAX_GAPS: usize = 1_024;

/// What a segment with data is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It brings new bytes, right behind the newest.
    New,
    /// It brings new bytes, and some before it were not seen.
    Ahead,
    /// It fills a gap, and is older than what came before it: it was overtaken.
    Late,
    /// What was sent again has passed already: this is the first one, which was overtaken by it.
    Original,
    /// It fills a gap, and is younger: the first one was lost before it got here.
    Filled,
    /// Sent again after acknowledgements that told of a loss.
    Fast,
    /// Sent again after nothing but time.
    Timeout,
    /// Sent again although it had been acknowledged already when it passed.
    Needless,
    /// One byte or none, to see whether the other end is there.
    Probe,
    /// The same packet a second time: it was sent once.
    Duplicate,
}

impl Kind {
    /// Whether bytes are sent a second time.
    pub fn is_again(self) -> bool {
        matches!(self, Kind::Filled | Kind::Fast | Kind::Timeout | Kind::Needless)
    }

    /// Whether bytes beyond the newest are sent.
    pub fn is_new(self) -> bool {
        matches!(self, Kind::New | Kind::Ahead)
    }
}

/// Bytes under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    first_ns: u64,
    last_ns: u64,
    stamp: Option<u32>,
    identification: Option<u16>,
    times: u8,
    held: bool,
}

/// Bytes that were not seen when later ones were.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u64,
    end: u64,
    at_ns: u64,
    /// The clock of the sender in what came instead.
    stamp: Option<u32>,
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Answer {
    /// Bytes acknowledged for the first time, or told to have arrived out of order.
    pub progress: u64,
    /// Bytes by which the acknowledged front moved.
    pub moved: u64,
    /// From the segment to its acknowledgement, in nanoseconds, as seen from here.
    pub time_ns: Option<u64>,
    /// It is a duplicate.
    pub duplicate: bool,
    /// It carries data.
    pub data: bool,
    /// It is that of a SYN, whose window is none of the buffer's size yet.
    pub opening: bool,
    /// The window's edge, the window, and the front afterwards.
    pub edge: u64,
    /// Bytes that the receiver takes.
    pub window: u64,
    /// The same as long as its scale is inferred: as it was told, not doubled.
    pub unscaled: Option<u64>,
    /// First byte that is not acknowledged.
    pub front: u64,
    /// Gaps that were overtaken beyond the capture and are now acknowledged.
    pub late_beyond: u32,
}

/// One direction of a connection.
#[derive(Clone, Default, Debug)]
pub struct Wire {
    numbers: Unwrapped,
    /// One beyond the newest byte.
    pub next: u64,
    /// First byte that is not acknowledged; 0 as long as nothing was.
    pub front: u64,
    /// End of the window, and the window itself; 0 as long as none was told.
    pub edge: u64,
    /// The window in bytes.
    pub window: u64,
    under_way: VecDeque<Sent>,
    packets: Packets,
    gaps: VecDeque<Gap>,
    recovers_until: u64,
    run_end: u64,
    closed_at_ns: Option<u64>,
    last_ack: Option<(u32, u64)>,
    /// When an acknowledgement last told of a loss.
    told_ns: Option<u64>,
    last_sent_ns: u64,
    highest_held: u64,
    /// When a report was last cut off.
    cut_ns: Option<u64>,
    /// Segments sent again when reports began that do not tell.
    hidden_since: Option<u64>,
    /// The scale of windows where no SYN tells.
    pub guess: Guess,
    raw_window: u64,
    /// Sums.
    pub counts: Counts,
    /// From data to its acknowledgement, in nanoseconds, as seen from here; of segments sent once (RFC 6298 section 3).
    pub answer_time: Histogram,
    /// Bytes in a row that each acknowledgement moved on by.
    pub ack_bytes: Histogram,
}

/// What is known of a connection when a segment comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Most bytes of payload of a segment.
    pub mss: u64,
    /// How often the receiver's windows are to be doubled; `None` where no SYN tells.
    pub scale: Option<u8>,
    /// From an acknowledgement that passes here to what the sender answers: the least seen, in nanoseconds.
    pub turn_ns: u64,
    /// The answers by which that is known, and how much payload they had.
    pub turn: [Option<Soonest>; 2],
    /// The same time to the other end and back.
    pub far_ns: u64,
}

impl Wire {
    /// Whether bytes of this direction were seen.
    pub fn has_begun(&self) -> bool {
        self.numbers.has_begun()
    }

    /// Where in the stream a number belongs.
    pub fn position(&self, seq: u32) -> u64 {
        self.numbers.peek(seq)
    }

    /// Since when a gap is open that `segment` fills.
    pub fn gap_since(&self, segment: &Segment) -> Option<u64> {
        let start = self.position(segment.seq);
        let gap = self.gaps.iter().find(|gap| gap.start <= start && start < gap.end)?;
        Some(gap.at_ns)
    }

    /// A segment of this direction that has data, SYN or FIN.
    pub fn sent(&mut self, segment: &Segment, known: &Known) -> Kind {
        let start = self.numbers.peek(segment.seq);
        let end = start + u64::from(segment.sequence_len());
        if !self.has_begun() {
            // The first number decides where the stream lies, not its end, which may have wrapped.
            self.numbers.position(segment.seq);
            (self.next, self.front) = (start, start);
        }
        // Numbers far from all else belong to nothing that was seen; they are taken for new only if they are ahead.
        if end > self.next {
            self.numbers.position(segment.seq.wrapping_add(segment.sequence_len()));
        }
        let is_duplicate = self.packets.has_passed(segment, end <= self.next);
        let kind = if is_duplicate { Kind::Duplicate } else { self.kind(segment, start, end, known) };
        if known.scale.is_none() && kind.is_new() {
            self.guess.sent(segment, end, known);
            if self.raw_window > 0 {
                self.edge = self.front + (self.raw_window << self.guess.least);
            }
        }
        let last_ns = self.find(start).map(|sent| sent.last_ns);
        let is_copy = (is_duplicate || kind.is_again())
            && last_ns.is_some_and(|ns| segment.at_ns.saturating_sub(ns) < COPY_NS);
        self.counts.copies += u64::from(is_copy && segment.len > 0);
        self.count(segment, kind, known, start, end);
        if !matches!(kind, Kind::Probe | Kind::Duplicate) {
            self.keep(segment, kind, start, end);
        }
        self.last_sent_ns = segment.at_ns;
        kind
    }

    /// A segment of this direction without data: a question whether the other end is there if it lies before the newest byte.
    pub fn asked(&mut self, segment: &Segment) {
        let is_question = self.has_begun() && self.position(segment.seq) + 1 == self.next;
        self.counts.probes += u64::from(is_question);
    }

    fn kind(&mut self, segment: &Segment, start: u64, end: u64, known: &Known) -> Kind {
        let is_plain = !segment.flags.intersects(Flags::SYN | Flags::FIN);
        if segment.len <= 1
            && is_plain
            && (start + 1 == self.next || (self.window == 0 && self.edge > 0))
            && end <= self.next + 1
        {
            return Kind::Probe;
        }
        if start > self.next {
            let gap = Gap { start: self.next, end: start, at_ns: segment.at_ns, stamp: stamp(segment) };
            if self.gaps.len() >= MAX_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back(gap);
            return Kind::Ahead;
        }
        if end > self.next {
            return Kind::New;
        }
        if let Some(gap) = self.gaps.iter().find(|gap| start < gap.end && end > gap.start).copied() {
            self.close(start, end);
            if end <= self.front {
                return Kind::Needless;
            }
            return match is_younger(&gap, segment, known) {
                true => Kind::Filled,
                false => Kind::Late,
            };
        }
        if self.find(start).is_some_and(|sent| sent.times > 1 && is_older(sent, segment)) {
            return Kind::Original;
        }
        if end <= self.front {
            return Kind::Needless;
        }
        let since = self.find(start).map_or(self.last_sent_ns, |sent| sent.last_ns);
        match self.told_ns {
            Some(told_ns) if told_ns >= since => Kind::Fast,
            _ => Kind::Timeout,
        }
    }

    /// Takes a stretch out of the gaps.
    fn close(&mut self, start: u64, end: u64) {
        let mut rest = VecDeque::with_capacity(self.gaps.len());
        for gap in self.gaps.drain(..) {
            if start >= gap.end || end <= gap.start {
                rest.push_back(gap);
                continue;
            }
            if gap.start < start {
                rest.push_back(Gap { end: start, ..gap });
            }
            if gap.end > end {
                rest.push_back(Gap { start: end, ..gap });
            }
        }
        rest.truncate(MAX_GAPS);
        self.gaps = rest;
    }

    fn find(&self, start: u64) -> Option<&Sent> {
        let index = self.under_way.partition_point(|sent| sent.end <= start);
        self.under_way.get(index).filter(|sent| sent.start <= start)
    }

    fn count(&mut self, segment: &Segment, kind: Kind, known: &Known, start: u64, end: u64) {
        let len = u64::from(segment.len);
        let mss = known.mss.max(1);
        let segments = len.div_ceil(mss);
        let counts = &mut self.counts;
        if kind == Kind::Probe {
            counts.probes += 1;
            return;
        }
        if kind == Kind::Duplicate {
            counts.duplicated_before += segments;
            return;
        }
        if len > 0 {
            counts.slowed += u64::from(segment.has(Flags::CWR) && !segment.has(Flags::SYN));
            counts.packets += 1;
            counts.segments += segments;
            counts.short += u64::from(!len.is_multiple_of(mss));
            counts.super_frames += u64::from(len > mss);
            if self.edge > 0 && end >= self.edge {
                counts.window_full += 1;
            }
        }
        let segments = segments.max(1);
        match kind {
            Kind::Fast => counts.fast += segments,
            Kind::Timeout => counts.timeouts += segments,
            Kind::Needless => counts.needless += segments,
            Kind::Filled => counts.filled += segments,
            Kind::Late => counts.late += segments,
            Kind::Original => {
                // It was not lost, and has been counted as sent again.
                counts.late += segments;
                counts.filled = counts.filled.saturating_sub(segments);
            }
            Kind::New | Kind::Ahead | Kind::Probe | Kind::Duplicate => {}
        }
        let fresh = if kind.is_new() { end - self.next.max(start) } else { 0 };
        match kind {
            // What a gap lacks was not counted before.
            Kind::Filled | Kind::Late => counts.bytes += len,
            _ => {
                counts.bytes += fresh.min(len);
                counts.bytes_again += len.saturating_sub(fresh);
            }
        }
        if matches!(kind, Kind::Fast | Kind::Timeout | Kind::Filled) {
            if start != self.run_end {
                self.counts.runs += 1;
            }
            self.run_end = end;
            if self.front >= self.recovers_until {
                self.counts.recoveries += 1;
                self.recovers_until = self.next;
            }
        }
    }

    fn keep(&mut self, segment: &Segment, kind: Kind, start: u64, end: u64) {
        let sent = Sent {
            start,
            end,
            first_ns: segment.at_ns,
            last_ns: segment.at_ns,
            stamp: stamp(segment),
            identification: segment.identification,
            times: 1,
            held: false,
        };
        if kind.is_new() {
            let sent = Sent { start: start.max(self.next), ..sent };
            self.next = end;
            if self.under_way.len() >= MAX_UNDER_WAY
                && let Some(first) = self.under_way.pop_front()
                && let Some(second) = self.under_way.front_mut()
            {
                second.start = first.start;
            }
            self.under_way.push_back(sent);
            return;
        }
        if kind == Kind::Original {
            return;
        }
        if matches!(kind, Kind::Late | Kind::Filled) {
            let index = self.under_way.partition_point(|other| other.start < start);
            let times = if kind == Kind::Filled { 2 } else { 1 };
            if start >= self.front && self.under_way.len() < MAX_UNDER_WAY {
                self.under_way.insert(index, Sent { times, ..sent });
            }
            return;
        }
        let from = self.under_way.partition_point(|other| other.end <= start);
        for other in self.under_way.range_mut(from..).take_while(|other| other.start < end) {
            other.times = other.times.saturating_add(1);
            other.last_ns = segment.at_ns;
            (other.stamp, other.identification) = (stamp(segment), segment.identification);
        }
    }

    /// The capture ended: a window that is closed still was so until then.
    pub fn finish(&mut self, at_ns: u64) {
        if let Some(since_ns) = self.closed_at_ns.take() {
            self.counts.closed_for(at_ns.saturating_sub(since_ns));
        }
    }

    /// An acknowledgement of this direction, in a segment of the other.
    pub fn answered(&mut self, segment: &Segment, known: &Known) -> Answer {
        let at_ns = segment.at_ns;
        if !self.has_begun() {
            // Only acknowledgements pass here: they tell where the stream is.
            self.next = self.numbers.position(segment.ack);
            self.front = self.next;
        }
        let ack = self.numbers.peek(segment.ack);
        let window = u64::from(segment.window) << known.scale.unwrap_or(self.guess.least);
        let is_pure = segment.len == 0 && !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        let mut answer =
            Answer { data: segment.len > 0, opening: segment.has(Flags::SYN), ..Answer::default() };
        self.counts.pure_acks += u64::from(is_pure);
        self.counts.congestion_echoes += u64::from(segment.has(Flags::ECE) && !segment.has(Flags::SYN));
        if ack > self.next {
            self.counts.missed_bytes += ack - self.next;
            self.counts.bytes += ack - self.next;
            self.next = ack;
            self.numbers.position(segment.ack);
        }
        // What this acknowledgement itself reports as held says nothing of what it moves over: it may have been delayed.
        let held_before = self.highest_held;
        self.sacks(segment, ack, known, &mut answer);
        if ack > self.front {
            self.advance(segment, ack, known, held_before, &mut answer);
        } else if is_pure && ack == self.front && self.next > ack {
            let same = self.last_ack == Some((segment.ack, window));
            answer.duplicate = same || segment.has_sack();
            self.counts.duplicate_acks += u64::from(answer.duplicate);
        }
        let again = self.counts.again();
        let hidden = segment.hides_sack() || answer.duplicate && !segment.has_sack();
        match (hidden, self.hidden_since) {
            (true, None) => self.hidden_since = Some(again),
            (false, Some(since)) if is_pure && answer.moved > 0 => {
                self.counts.healed += u64::from(since == again);
                self.hidden_since = None;
            }
            _ => {}
        }
        if answer.duplicate || segment.has_sack() {
            self.told_ns = Some(at_ns);
        }
        if segment.hides_sack() {
            self.cut_ns = Some(at_ns);
        }
        self.window_told(segment, ack, window, is_pure, known.scale.is_none());
        if is_pure || answer.data {
            self.last_ack = Some((segment.ack, window));
        }
        let unscaled = known.scale.is_none().then_some(self.raw_window);
        Answer { edge: self.edge, window: self.window, unscaled, front: self.front, ..answer }
    }

    fn sacks(&mut self, segment: &Segment, ack: u64, known: &Known, answer: &mut Answer) {
        let blocks = segment.options.sack_blocks;
        let range = |block: &SackBlock| (self.numbers.peek(block.left.0), self.numbers.peek(block.right.0));
        let ranges: Vec<(u64, u64)> = blocks.as_slice().iter().map(range).collect();
        // Of a block that was cut off, the left edge tells as much.
        if blocks.is_empty() && segment.cut_sack.is_some_and(|left| self.numbers.peek(left.0) < ack) {
            self.counts.dsacks += 1;
        }
        // A first block below the acknowledgement, or within the second, reports a duplicate (RFC 2883 section 4).
        let is_duplicate = ranges.first().is_some_and(|first| {
            first.1 <= ack || ranges.get(1).is_some_and(|second| second.0 <= first.0 && first.1 <= second.1)
        });
        if is_duplicate {
            let bytes = ranges.first().map_or(0, |block| block.1.saturating_sub(block.0));
            self.counts.dsacks += bytes.div_ceil(known.mss.max(1)).clamp(1, 1_000);
        }
        for (left, right) in ranges.into_iter().skip(usize::from(is_duplicate)) {
            if right <= left || right > self.next {
                continue;
            }
            self.highest_held = self.highest_held.max(right);
            let from = self.under_way.partition_point(|sent| sent.end <= left);
            for sent in self.under_way.range_mut(from..).take_while(|sent| sent.end <= right) {
                if !sent.held && sent.start >= left {
                    sent.held = true;
                    answer.progress += sent.end - sent.start;
                    if sent.times == 1 && known.turn_ns < u64::MAX {
                        answer.time_ns = Some(segment.at_ns.saturating_sub(sent.first_ns));
                    }
                }
            }
        }
    }

    fn advance(&mut self, segment: &Segment, ack: u64, known: &Known, held_before: u64, answer: &mut Answer) {
        answer.moved = ack - self.front;
        let mut unknown = answer.moved;
        let mut overtaken = 0;
        let echo = segment.options.timestamps.map(|stamps| stamps.echo);
        while let Some(sent) = self.under_way.front().copied().filter(|sent| sent.start < ack) {
            let end = sent.end.min(ack);
            let part = end - sent.start.min(end);
            unknown = unknown.saturating_sub(part);
            if !sent.held {
                answer.progress += part;
                // It was passed over by what is behind it, and needed no second time; unless a report of it was cut off.
                let is_told = self.cut_ns.is_none_or(|cut_ns| cut_ns < sent.first_ns);
                overtaken += u64::from(is_told && sent.times == 1 && sent.end < held_before)
                    * part.div_ceil(known.mss.max(1));
                if sent.times == 1 && sent.end <= ack {
                    answer.time_ns = Some(segment.at_ns.saturating_sub(sent.first_ns));
                }
                let is_older =
                    echo.zip(sent.stamp).is_some_and(|(echo, stamp)| (echo.wrapping_sub(stamp) as i32) < 0);
                // Nobody answers sooner than ever before: this answers the first.
                let took_ns = segment.at_ns.saturating_sub(sent.last_ns);
                let is_soon = took_ns < known.far_ns - known.far_ns / 10;
                self.counts.echoed += u64::from(sent.times == 2 && (is_older || is_soon));
            }
            if sent.end > ack {
                if let Some(first) = self.under_way.front_mut() {
                    first.start = ack;
                }
                break;
            }
            self.under_way.pop_front();
        }
        answer.progress += unknown;
        answer.late_beyond = overtaken as u32;
        self.counts.late_beyond += overtaken;
        while let Some(gap) = self.gaps.front().copied().filter(|gap| gap.start < ack) {
            let end = gap.end.min(ack);
            self.counts.missed_bytes += end - gap.start;
            self.counts.bytes += end - gap.start;
            if gap.end > ack {
                if let Some(first) = self.gaps.front_mut() {
                    first.start = ack;
                }
                break;
            }
            self.gaps.pop_front();
        }
        self.front = ack;
        self.ack_bytes.record(answer.moved);
        if let Some(time_ns) = answer.time_ns {
            self.answer_time.record(time_ns);
        }
    }

    fn window_told(&mut self, segment: &Segment, ack: u64, window: u64, is_pure: bool, guessed: bool) {
        if segment.has(Flags::RST) || ack < self.front {
            return;
        }
        let edge = ack + window;
        let moved = self.last_ack.is_none_or(|(last, _)| last != segment.ack);
        if is_pure && !moved && edge > self.edge {
            self.counts.window_updates += 1;
        }
        (self.edge, self.window) = (edge, window);
        self.raw_window = if segment.has(Flags::SYN) { 0 } else { u64::from(segment.window) };
        if guessed {
            self.guess.told(segment, ack);
        }
        match (window, self.closed_at_ns) {
            (0, None) if !segment.has(Flags::SYN) => {
                self.counts.zero_windows += 1;
                self.closed_at_ns = Some(segment.at_ns);
            }
            (1.., Some(since_ns)) => {
                self.counts.closed_for(segment.at_ns.saturating_sub(since_ns));
                self.closed_at_ns = None;
            }
            _ => {}
        }
    }
}

fn stamp(segment: &Segment) -> Option<u32> {
    segment.options.timestamps.map(|stamps| stamps.value)
}

/// Whether a segment was sent before one that is known: by the sender's clock, or by the numbers of its packets.
fn is_older(known: &Sent, segment: &Segment) -> bool {
    match (known.stamp.zip(stamp(segment)), known.identification.zip(segment.identification)) {
        (Some((known, own)), _) if known != own => (own.wrapping_sub(known) as i32) < 0,
        (_, Some((known, own))) => (own.wrapping_sub(known) as i16) < 0,
        _ => false,
    }
}

/// Whether what fills a gap was sent after what opened it. The sender's clock tells, where it ticks often enough; otherwise time
/// does: nobody sends again before the news of the gap has been there and back.
fn is_younger(gap: &Gap, segment: &Segment, known: &Known) -> bool {
    if let (Some(before), Some(now)) = (gap.stamp, stamp(segment)) {
        match now.wrapping_sub(before) as i32 {
            1.. => return true,
            ..0 => return false,
            0 => {}
        }
    }
    let waited_ns = segment.at_ns.saturating_sub(gap.at_ns);
    let rtt_ns = known.turn_ns.saturating_add(known.far_ns);
    waited_ns >= rtt_ns - rtt_ns / 10
}
