//! Captures that have each segment twice at one interface, as the captures of both ends do that were merged into one file.
//!
//! A copy has everything in common with the segment: numbers, window, timestamps, the identification of its packet. What is sent again
//! differs in one of them, and never is nearly everything sent again. So the first segments of a connection are held back until
//! they tell. If each of them comes twice, there are two places, and each gets its own: what an end sends passes its own place
//! first. If the clocks of the places differ by more than the way takes, one place has all that comes first.

use super::segment::Segment;
use super::table::Table;
use linerate_wire::tcp::Flags;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// Added to the number of an interface for the second of two places.
pub const SECOND: usize = 1 << 24;
/// Segments of a connection that are looked at. Without its opening, or where clocks differ, as many come before the first copy as the
/// path holds.
const HELD: usize = 512;
/// Most segments that are held back, of all connections: 64 MiB of them.
const MOST_HELD: usize = 1 << 18;
/// Pairs are no accident if there are so many, each of two alike.
const PAIRS: usize = 3;
/// Of the segments that must have come twice by now, so many did: some are lost on the way.
const COPIED: f64 = 0.8;
/// First copies that are remembered: what a path holds, many times.
const REMEMBERED: usize = 1 << 16;

type Ends = [SocketAddr; 2];

/// All connections, as far as it is known whether they come twice.
#[derive(Debug, Default)]
pub struct Copies {
    connections: HashMap<Ends, State>,
    /// In the order of their first segments.
    order: Vec<Ends>,
    held: usize,
}

#[derive(Debug)]
enum State {
    Held(Vec<(usize, Segment)>),
    Once,
    Twice(Box<Places>),
}

impl Copies {
    /// The next segment of an interface; the table takes what is known to be one place's.
    pub fn take(&mut self, interface: usize, segment: Segment, table: &mut Table) {
        let ends = [segment.from.min(segment.to), segment.from.max(segment.to)];
        if self.connections.len() >= super::table::MAX_VIEWS && !self.connections.contains_key(&ends) {
            // Those that are held back have the room that is left.
            table.left_out += 1;
            return;
        }
        let order = &mut self.order;
        let state = self.connections.entry(ends).or_insert_with(|| {
            order.push(ends);
            State::Held(Vec::new())
        });
        match state {
            State::Once => table.take(interface, &segment),
            State::Twice(places) => table.take(places.of(interface, &segment), &segment),
            State::Held(held) => {
                held.push((interface, segment));
                self.held += 1;
                if held.len() >= HELD || self.held > MOST_HELD {
                    self.held -= held.len();
                    *state = settled(std::mem::take(held), table);
                }
            }
        }
    }

    /// All segments were taken.
    pub fn finish(&mut self, table: &mut Table) {
        for ends in &self.order {
            if let Some(State::Held(held)) = self.connections.get_mut(ends) {
                settled(std::mem::take(held), table);
            }
        }
    }
}

/// Hands on what was held back, now that it tells.
fn settled(held: Vec<(usize, Segment)>, table: &mut Table) -> State {
    let Some((mut places, orphans)) = Places::found(&held) else {
        held.iter().for_each(|(interface, segment)| table.take(*interface, segment));
        return State::Once;
    };
    for ((interface, segment), _) in held.iter().zip(orphans).filter(|(_, is_orphan)| !is_orphan) {
        table.take(places.of(*interface, segment), segment);
    }
    State::Twice(Box::new(places))
}

/// What a segment and its copy have in common.
fn identity(interface: usize, segment: &Segment) -> u64 {
    let mut hasher = DefaultHasher::new();
    let stamps = segment.options.timestamps.map(|stamps| (stamps.value, stamps.echo));
    (interface, segment.from, segment.seq, segment.ack, segment.flags.0, segment.len).hash(&mut hasher);
    (segment.window, stamps, segment.identification).hash(&mut hasher);
    for block in segment.options.sack_blocks.as_slice() {
        (block.left.0, block.right.0).hash(&mut hasher);
    }
    hasher.finish()
}

/// Two segments that are the same, by their places among those held back.
struct Pair {
    first: usize,
    second: usize,
}

fn pairs(held: &[(usize, Segment)]) -> Vec<Pair> {
    let mut alike: HashMap<u64, Vec<usize>> = HashMap::new();
    for (number, (interface, segment)) in held.iter().enumerate() {
        alike.entry(identity(*interface, segment)).or_default().push(number);
    }
    // What comes three times, as keep-alives do, is no copy.
    let mut pairs: Vec<Pair> = alike
        .into_values()
        .filter_map(|numbers| match numbers[..] {
            [first, second] => Some(Pair { first, second }),
            _ => None,
        })
        .collect();
    pairs.sort_by_key(|pair| pair.first);
    pairs
}

/// What is remembered of the first copies that one end sent.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    /// One beyond the highest number.
    end: Option<u32>,
    /// The newest clock value, and when it came first.
    clock: Option<(u32, u64)>,
    /// Least time between two copies, in nanoseconds.
    least_ns: u64,
}

impl Sent {
    /// Whether it is a copy that was cut in other places: bytes that passed before, with a clock that has moved on since, or has not in
    /// the time that a copy takes. What is sent again has a later one.
    fn is_passing_again(&mut self, segment: &Segment) -> bool {
        let is_newer = |a: u32, b: u32| (a.wrapping_sub(b) as i32) > 0;
        let end = segment.seq.wrapping_add(segment.sequence_len());
        let clock = segment.options.timestamps.map(|stamps| stamps.value);
        let is_old = self.end.is_some_and(|newest| !is_newer(end, newest));
        if let Some((own, (newest, since_ns))) = clock.zip(self.clock) {
            let is_late = segment.at_ns.saturating_sub(since_ns) >= self.least_ns / 2;
            if segment.len > 0 && is_old && (is_newer(newest, own) || newest == own && is_late) {
                return true;
            }
        }
        if !is_old {
            self.end = Some(end);
        }
        if let Some(own) = clock.filter(|own| self.clock.is_none_or(|(newest, _)| is_newer(*own, newest))) {
            self.clock = Some((own, segment.at_ns));
        }
        false
    }
}

/// The two places of a connection.
#[derive(Debug)]
struct Places {
    /// Whose first copies are the first place's.
    near: SocketAddr,
    /// Each end's segments pass its own place first.
    crosses: bool,
    /// How often each came that was not seen twice yet, and when last.
    waiting: HashMap<u64, (u32, u64)>,
    order: VecDeque<u64>,
    sent: [Sent; 2],
}

impl Places {
    /// The places that segments tell of, if they come twice; and which of them may be copies of what passed before the first.
    fn found(held: &[(usize, Segment)]) -> Option<(Places, Vec<bool>)> {
        let pairs = pairs(held);
        let (near, last_ns) = (held.first()?.1.from, held.last()?.1.at_ns);
        let apart_ns = |pair: &Pair| held[pair.second].1.at_ns.saturating_sub(held[pair.first].1.at_ns);
        let longest_ns = pairs.iter().map(apart_ns).max()?;
        let mut is_paired = vec![false; held.len()];
        pairs.iter().for_each(|pair| (is_paired[pair.first], is_paired[pair.second]) = (true, true));
        let share = |counts: &dyn Fn(&Segment) -> bool| {
            let due = held.iter().zip(&is_paired).filter(|((_, segment), _)| {
                counts(segment) && segment.at_ns.saturating_add(longest_ns) <= last_ns
            });
            let (all, twice) =
                due.fold((0, 0), |(all, twice), (_, paired)| (all + 1, twice + u32::from(*paired)));
            f64::from(twice) / f64::from(all.max(1))
        };
        // Interfaces that segment or coalesce cut data in other places; the rest is the same.
        let is_opened = pairs.iter().any(|pair| held[pair.first].1.has(Flags::SYN));
        let is_twice =
            share(&|_| true) >= COPIED || is_opened && share(&|segment| segment.len == 0) >= COPIED;
        if pairs.len() < PAIRS || !is_twice {
            return None;
        }
        let mut sent = [Sent::default(); 2];
        for (side, sent) in sent.iter_mut().enumerate() {
            let of_side = pairs.iter().filter(|pair| usize::from(held[pair.first].1.from != near) == side);
            sent.least_ns = of_side.map(apart_ns).min().unwrap_or(0);
        }
        let crosses = crosses(held, &pairs);
        let begin_ns = held.first().filter(|(_, first)| !first.has(Flags::SYN)).map(|(_, first)| first.at_ns);
        let is_orphan = |(held, is_paired): (&(usize, Segment), &bool)| {
            !is_paired && begin_ns.is_some_and(|ns| held.1.at_ns <= ns.saturating_add(longest_ns))
        };
        let orphans = held.iter().zip(&is_paired).map(is_orphan).collect();
        Some((Places { near, crosses, waiting: HashMap::new(), order: VecDeque::new(), sent }, orphans))
    }

    /// The number of the place that saw a segment.
    fn of(&mut self, interface: usize, segment: &Segment) -> usize {
        let is_second = self.is_second(interface, segment);
        let is_other = self.crosses && segment.from != self.near;
        if is_second != is_other { interface + SECOND } else { interface }
    }

    fn is_second(&mut self, interface: usize, segment: &Segment) -> bool {
        let key = identity(interface, segment);
        let sent = &mut self.sent[usize::from(segment.from != self.near)];
        let waited = self.waiting.get_mut(&key);
        if let Some((count, last_ns)) = waited.filter(|(_, last_ns)| {
            // Sooner than any copy: another one that looks the same.
            segment.at_ns.saturating_sub(*last_ns) >= sent.least_ns / 2
        }) {
            *count -= 1;
            *last_ns = segment.at_ns.min(*last_ns);
            if *count == 0 {
                self.waiting.remove(&key);
            }
            return true;
        }
        if sent.is_passing_again(segment) {
            return true;
        }
        let known = self.waiting.entry(key).or_insert((0, segment.at_ns));
        *known = (known.0 + 1, segment.at_ns);
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
        }
        false
    }
}

/// Whether first copies of each end are its own place's. They are not if an acknowledgement comes before the second copy of what it
/// acknowledges, which passed the place of that end before.
fn crosses(held: &[(usize, Segment)], pairs: &[Pair]) -> bool {
    let is_early = |answer: &Pair| {
        let segment = &held[answer.first].1;
        segment.has(Flags::ACK)
            && pairs.iter().any(|pair| {
                let data = &held[pair.first].1;
                data.from == segment.to
                    && data.sequence_len() > 0
                    && data.seq.wrapping_add(data.sequence_len()) == segment.ack
                    && pair.first < answer.first
                    && answer.first < pair.second
            })
    };
    !pairs.iter().any(is_early)
}
