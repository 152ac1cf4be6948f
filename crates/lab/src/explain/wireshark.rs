//! Events counted by Wireshark's rules, for whoever compares with `tshark`: docs/lab/explain.md has the rules in words.
//!
//! The rules look at one segment and little memory, which makes them robust and coarse. What this program thinks itself of a
//! segment is in [`super::wire`].

use super::segment::Segment;
use linerate_wire::tcp::Flags;
use serde::Serialize;
use std::ops::AddAssign;

/// Out-of-order, and not retransmitted, is what comes sooner after the newest segment than this, where no round-trip time is known.
const OUT_OF_ORDER_NS: u64 = 3_000_000;
/// A fast retransmission comes within this time of the last acknowledgement.
const FAST_NS: u64 = 20_000_000;

/// Segments by Wireshark's analysis flags, `tcp.analysis.*`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// `retransmission`, with those that are counted as fast or spurious beside.
    pub retransmission: u64,
    /// `fast_retransmission`.
    pub fast_retransmission: u64,
    /// `spurious_retransmission`.
    pub spurious_retransmission: u64,
    /// `out_of_order`.
    pub out_of_order: u64,
    /// `duplicate_ack`.
    pub duplicate_ack: u64,
    /// `zero_window`.
    pub zero_window: u64,
    /// `zero_window_probe`.
    pub zero_window_probe: u64,
    /// `zero_window_probe_ack`.
    pub zero_window_probe_ack: u64,
    /// `window_full`.
    pub window_full: u64,
    /// `window_update`.
    pub window_update: u64,
    /// `lost_segment`.
    pub lost_segment: u64,
    /// `ack_lost_segment`.
    pub ack_lost_segment: u64,
    /// `keep_alive`.
    pub keep_alive: u64,
    /// `keep_alive_ack`.
    pub keep_alive_ack: u64,
}

impl Counts {
    /// The name of each flag as `tshark` has it, and its count.
    pub fn named(&self) -> [(&'static str, u64); 14] {
        [
            ("retransmission", self.retransmission),
            ("fast_retransmission", self.fast_retransmission),
            ("spurious_retransmission", self.spurious_retransmission),
            ("out_of_order", self.out_of_order),
            ("duplicate_ack", self.duplicate_ack),
            ("zero_window", self.zero_window),
            ("zero_window_probe", self.zero_window_probe),
            ("zero_window_probe_ack", self.zero_window_probe_ack),
            ("window_full", self.window_full),
            ("window_update", self.window_update),
            ("lost_segment", self.lost_segment),
            ("ack_lost_segment", self.ack_lost_segment),
            ("keep_alive", self.keep_alive),
            ("keep_alive_ack", self.keep_alive_ack),
        ]
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.retransmission += other.retransmission;
        self.fast_retransmission += other.fast_retransmission;
        self.spurious_retransmission += other.spurious_retransmission;
        self.out_of_order += other.out_of_order;
        self.duplicate_ack += other.duplicate_ack;
        self.zero_window += other.zero_window;
        self.zero_window_probe += other.zero_window_probe;
        self.zero_window_probe_ack += other.zero_window_probe_ack;
        self.window_full += other.window_full;
        self.window_update += other.window_update;
        self.lost_segment += other.lost_segment;
        self.ack_lost_segment += other.ack_lost_segment;
        self.keep_alive += other.keep_alive;
        self.keep_alive_ack += other.keep_alive_ack;
    }
}

/// What is remembered of a direction. Zero stands for "nothing seen", as in Wireshark.
#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    /// The highest sequence number so far, and when it came.
    next: u32,
    next_at_ns: u64,
    /// The highest one without a gap before it.
    contiguous: u32,
    /// The end of what came in order; what fills a gap ends there, whatever came behind it.
    in_order: u32,
    /// Something was acknowledged that was not seen, and all that was seen: nothing is missed before a gap is seen again.
    missed: bool,
    window: u32,
    /// `None` as long as no SYN was seen; `Some(None)` where its SYN has no scale.
    scale: Option<Option<u8>>,
    /// No acknowledgement was seen after the SYN: windows are not scaled yet.
    first_ack: bool,
    last_ack: u32,
    last_ack_at_ns: u64,
    duplicates: u32,
    /// What the last segment was.
    kept_alive: bool,
    probed: bool,
}

impl Flow {
    /// Whether a segment of the other direction acknowledges what was not seen of this one. Once that was all that was seen, no
    /// acknowledgement alone does before there is another gap, and no data with the same number.
    fn is_missing(&mut self, segment: &Segment, last_ack: u32) -> bool {
        self.missed &= segment.len == 0 || segment.ack == last_ack;
        if self.contiguous == 0 || !segment.has(Flags::ACK) || self.missed {
            return false;
        }
        let is_missing = after(segment.ack, self.contiguous);
        if is_missing || after(segment.ack, self.in_order) {
            let is_known = segment.len == 0 || self.contiguous == self.next;
            self.missed = is_known && !after(self.next, segment.ack);
            self.in_order = self.next;
        }
        if is_missing {
            self.contiguous = self.next;
        }
        is_missing
    }
}

/// The analysis of one connection.
#[derive(Clone, Default, Debug)]
pub struct Counter {
    flows: [Flow; 2],
    /// From the SYN to the first acknowledgement that has none.
    first_rtt_ns: Option<u64>,
    syn_at_ns: Option<u64>,
    counts: [Counts; 2],
}

/// `a` comes after `b`.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Counter {
    /// Events of both directions.
    pub fn counts(&self) -> [Counts; 2] {
        self.counts
    }

    /// The next segment, from end `side`.
    pub fn take(&mut self, side: usize, segment: &Segment) {
        self.handshake(side, segment);
        let mut marks = Counts::default();
        let (forward, back) = (self.flows[side], self.flows[1 - side]);
        let scaled = self.scaled(side, segment);
        let probe = segment.len == 1 && segment.seq == forward.next && back.window == 0 && back.last_ack != 0;
        let mut duplicate = false;
        if probe {
            marks.zero_window_probe = 1;
        } else {
            duplicate = first_marks(&mut marks, &forward, &back, segment, scaled);
        }
        if duplicate {
            self.flows[side].duplicates += 1;
        }
        if segment.ack != forward.last_ack {
            self.flows[side].duplicates = 0;
        }
        marks.ack_lost_segment = u64::from(self.flows[1 - side].is_missing(segment, forward.last_ack));
        let synchronises = segment.flags.intersects(Flags::SYN | Flags::FIN);
        if (segment.len > 0 || synchronises) && marks.keep_alive == 0 {
            let threshold_ns = self.first_rtt_ns.filter(|ns| *ns > 0).unwrap_or(OUT_OF_ORDER_NS);
            retransmitted(&mut marks, &forward, &back, segment, threshold_ns);
        }
        self.remember(side, segment, scaled, probe, marks.keep_alive > 0);
        self.counts[side] += marks;
    }

    fn handshake(&mut self, side: usize, segment: &Segment) {
        if segment.has(Flags::SYN) {
            self.flows[side].scale = Some(segment.options.window_scale);
            self.flows[side].first_ack = true;
            if !segment.has(Flags::ACK) {
                self.syn_at_ns = self.syn_at_ns.or(Some(segment.at_ns));
            }
        } else if let Some(syn_at_ns) = self.syn_at_ns.filter(|_| segment.has(Flags::ACK)) {
            self.first_rtt_ns = self.first_rtt_ns.or(Some(segment.at_ns.saturating_sub(syn_at_ns)));
        }
    }

    /// The window in bytes. Both ends must have offered to scale.
    fn scaled(&self, side: usize, segment: &Segment) -> u32 {
        let window = u32::from(segment.window);
        if segment.has(Flags::SYN) {
            return window;
        }
        match (self.flows[side].scale, self.flows[1 - side].scale) {
            (Some(Some(scale)), Some(Some(_))) => window << scale.min(14),
            _ => window,
        }
    }

    fn remember(&mut self, side: usize, segment: &Segment, scaled: u32, probe: bool, kept_alive: bool) {
        let flow = &mut self.flows[side];
        flow.missed &= flow.next == 0 || !after(segment.seq, flow.next);
        let mut next = segment.seq.wrapping_add(segment.len);
        if segment.flags.intersects(Flags::SYN | Flags::FIN) {
            next = next.wrapping_add(1);
        }
        if !probe {
            if after(next, flow.next) || flow.next == 0 {
                (flow.next, flow.next_at_ns) = (next, segment.at_ns);
            }
            if segment.seq == flow.contiguous || flow.contiguous == 0 {
                flow.contiguous = flow.next;
            }
            if segment.seq == flow.in_order || flow.in_order == 0 {
                flow.in_order = next;
            }
        }
        flow.window = scaled;
        flow.last_ack = segment.ack;
        flow.last_ack_at_ns = segment.at_ns;
        flow.kept_alive = kept_alive;
        flow.probed = probe;
        if !segment.has(Flags::SYN) {
            flow.first_ack = false;
        }
    }
}

/// Marks that windows and sequence numbers give; whether it is a duplicate acknowledgement.
fn first_marks(marks: &mut Counts, forward: &Flow, back: &Flow, segment: &Segment, scaled: u32) -> bool {
    let resets = segment.has(Flags::RST);
    let plain = !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
    if segment.window == 0 && plain {
        marks.zero_window = 1;
    }
    if forward.next != 0 && after(segment.seq, forward.next) && !resets {
        marks.lost_segment = 1;
    }
    if segment.len <= 1 && segment.seq == forward.next.wrapping_sub(1) && plain && forward.next != 0 {
        marks.keep_alive = 1;
    }
    let repeats = segment.len == 0 && segment.seq == forward.next && segment.ack == forward.last_ack && plain;
    if repeats && scaled != 0 && scaled != forward.window {
        marks.window_update = 1;
    }
    let edge = back.last_ack.wrapping_add(back.window);
    if segment.len > 0 && back.scale.is_some() && segment.seq.wrapping_add(segment.len) == edge && plain {
        marks.window_full = 1;
    }
    let unchanged = repeats && scaled == forward.window;
    if unchanged && scaled != 0 && back.kept_alive {
        marks.keep_alive_ack = 1;
        return false;
    }
    if unchanged && scaled == 0 && back.probed {
        marks.zero_window_probe_ack = 1;
        return false;
    }
    let duplicate = unchanged && scaled != 0;
    marks.duplicate_ack = u64::from(duplicate);
    duplicate
}

/// Marks of a segment that brings nothing new.
fn retransmitted(marks: &mut Counts, forward: &Flow, back: &Flow, segment: &Segment, threshold_ns: u64) {
    let end = segment.seq.wrapping_add(segment.len);
    let mut old = forward.next != 0 && after(forward.next, segment.seq);
    // The first byte may have been a probe of a closed window.
    if segment.len > 1 && forward.next.wrapping_sub(1) == segment.seq {
        old = false;
    }
    if segment.len > 0 && back.last_ack != 0 && !after(end, back.last_ack) {
        marks.spurious_retransmission = 1;
        marks.retransmission = 1;
        return;
    }
    if !old {
        return;
    }
    // Where a capture's time runs backwards, nothing follows soon.
    let within =
        |since_ns: u64, bound_ns| segment.at_ns.checked_sub(since_ns).is_some_and(|ns| ns < bound_ns);
    if back.duplicates >= 2 && back.last_ack == segment.seq && within(back.last_ack_at_ns, FAST_NS) {
        marks.fast_retransmission = 1;
        marks.retransmission = 1;
        return;
    }
    // What synchronises has a place of its own in the sequence.
    let place = u32::from(segment.flags.intersects(Flags::SYN | Flags::FIN));
    if within(forward.next_at_ns, threshold_ns) && forward.next != end.wrapping_add(place) {
        marks.out_of_order = 1;
        return;
    }
    marks.retransmission = 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_wire::tcp::Options;
    use std::net::SocketAddr;

    fn segment(at_ns: u64, seq: u32, flags: Flags, len: u32) -> Segment {
        let end = |last, port| SocketAddr::from(([10, 0, 0, last], port));
        Segment {
            at_ns,
            from: end(1, 1_000),
            to: end(2, 80),
            seq,
            ack: 0,
            flags,
            window: 1_000,
            options: Options::default(),
            options_len: 0,
            options_cut: false,
            cut_sack: None,
            len,
            outgoing: None,
            congested: false,
            identification: None,
        }
    }

    #[test]
    fn what_comes_twice_at_once_was_sent_again_and_what_lies_before_it_came_late() {
        let check = |segments: &[(u64, u32, Flags, u32)], again: u64, late: u64| {
            let mut counter = Counter::default();
            for (at_ns, seq, flags, len) in segments {
                counter.take(0, &segment(*at_ns, *seq, *flags, *len));
            }
            let [counts, _] = counter.counts();
            assert_eq!((counts.retransmission, counts.out_of_order), (again, late), "{segments:?}");
        };
        let (syn, ack, fin) = (Flags::SYN, Flags::ACK, Flags::ACK | Flags::FIN);
        check(&[(0, 9, syn, 0), (100_000, 9, syn, 0)], 1, 0);
        check(&[(0, 9, ack, 10), (1, 19, ack, 10), (2, 19, ack, 10)], 1, 0);
        check(&[(0, 9, ack, 10), (1, 19, ack, 10), (2, 9, ack, 10)], 0, 1);
        check(&[(0, 9, fin, 10), (100_000, 9, fin, 10)], 1, 0);
        // The capture's time runs backwards.
        check(&[(5, 9, ack, 10), (5, 19, ack, 10), (4, 9, ack, 10)], 1, 0);
    }

    #[test]
    fn what_was_not_seen_is_acknowledged_once_for_each_gap() {
        let mut counter = Counter::default();
        let data = |seq: u32| (0, segment(0, seq, Flags::ACK, 10));
        let ack = |ack: u32| (1, Segment { ack, ..segment(0, 7, Flags::ACK, 0) });
        // Two gaps of ten; the second one is acknowledged before and after it is seen.
        let steps = [
            (data(100), 0),
            (ack(110), 0),
            (ack(120), 1),
            (ack(120), 0),
            (data(120), 0),
            (ack(130), 1),
            (data(130), 0),
            (ack(140), 0),
            (ack(150), 0),
            (data(150), 0),
            (ack(160), 1),
        ];
        for (number, ((side, segment), more)) in steps.iter().enumerate() {
            let before = counter.counts()[1].ack_lost_segment;
            counter.take(*side, segment);
            assert_eq!(counter.counts()[1].ack_lost_segment - before, *more, "{number}");
        }
    }
}
