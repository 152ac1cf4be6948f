//! Follows each burst of a mix: every resource works on one at a time, and takes the most urgent that waits.

use super::Stream;
use std::collections::VecDeque;

/// The most bursts of one run.
pub const MAX_BURSTS: u64 = 1_000_000;

/// What bursts do.
pub(super) struct Followed {
    /// Bytes per nanosecond of each flow from its first burst being ready to its last being over.
    pub(super) rates: Vec<f64>,
    /// The mean time from a burst being ready to its being over, in nanoseconds.
    pub(super) mean: Vec<f64>,
    /// The time that 99 of 100 stay within.
    pub(super) most: Vec<f64>,
}

/// One flow at work. All times in nanoseconds.
struct Sender<'a> {
    stream: &'a Stream,
    left: f64,
    /// When its next burst is ready to go, its window permitting.
    ready: f64,
    /// When it last went.
    served: f64,
    /// Bursts under way: when each is over, and its bytes.
    window: VecDeque<(f64, f64)>,
    under_way: f64,
    moved: f64,
    first: f64,
    last: f64,
    waits: Vec<f64>,
}

/// Runs until all flows that end have ended.
pub(super) fn run(streams: &[Stream], resources: usize) -> Result<Followed, String> {
    let bursts: f64 = streams
        .iter()
        .filter(|stream| !stream.endless)
        .map(|stream| (stream.flow.bytes.value() / stream.flow.burst.value()).ceil())
        .sum();
    if bursts > MAX_BURSTS as f64 / 4.0 {
        return Err(format!("{bursts} bursts; expected at most {}", MAX_BURSTS / 4));
    }
    let mut free = vec![0.0f64; resources];
    let mut senders: Vec<Sender> = streams
        .iter()
        .map(|stream| {
            let ready = (stream.start + stream.flow.setup).value();
            Sender {
                stream,
                left: stream.flow.bytes.value(),
                ready,
                served: 0.0,
                window: VecDeque::new(),
                under_way: 0.0,
                moved: 0.0,
                first: ready,
                last: ready,
                waits: Vec::new(),
            }
        })
        .collect();
    let bounded = streams.iter().any(|stream| !stream.endless);
    let endless_bursts = if bounded { MAX_BURSTS } else { 20_000 };
    for _ in 0..endless_bursts {
        if bounded && senders.iter().all(|sender| sender.stream.endless || sender.left <= 0.0) {
            break;
        }
        let Some(next) = next(&senders, &free) else { break };
        let Some(sender) = senders.get_mut(next) else { break };
        sender.send(&mut free);
        let (done, end) = (sender.left <= 0.0 && !sender.stream.endless, sender.last);
        if done {
            follow(&mut senders, next, end);
        }
    }
    let rate = |sender: &Sender| {
        let time = sender.last - sender.first;
        if time > 0.0 { sender.moved / time } else { 0.0 }
    };
    Ok(Followed {
        rates: senders.iter().map(rate).collect(),
        mean: senders
            .iter()
            .map(|one| one.waits.iter().sum::<f64>() / one.waits.len().max(1) as f64)
            .collect(),
        most: senders.iter().map(|one| within(&one.waits)).collect(),
    })
}

/// What 99 of 100 stay within.
fn within(waits: &[f64]) -> f64 {
    let mut sorted = waits.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * 0.99).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// The flow whose burst goes next: the one that can begin first; of those that wait for the same moment the most urgent, and
/// of these the one that was served longest ago.
fn next(senders: &[Sender<'_>], free: &[f64]) -> Option<usize> {
    let mut best: Option<(f64, u8, f64, usize)> = None;
    for (at, sender) in senders.iter().enumerate() {
        let blocked = senders
            .iter()
            .take(at)
            .any(|other| other.stream.queue == sender.stream.queue && other.left > 0.0);
        if sender.left <= 0.0 || blocked {
            continue;
        }
        let own = (sender.start(free), sender.stream.priority, sender.served, at);
        let sooner = best.is_none_or(|known| {
            if (own.0 - known.0).abs() > 1e-6 { own.0 < known.0 } else { (own.1, own.2) < (known.1, known.2) }
        });
        if sooner {
            best = Some(own);
        }
    }
    best.map(|(.., at)| at)
}

/// The next flow of the same controller begins when this one has ended.
fn follow(senders: &mut [Sender<'_>], done: usize, end: f64) {
    let Some(queue) = senders.get(done).map(|sender| sender.stream.queue) else { return };
    let next = senders.iter_mut().skip(done + 1).find(|sender| sender.stream.queue == queue);
    if let Some(sender) = next {
        sender.ready = sender.ready.max(end);
        sender.first = sender.first.max(end);
    }
}

impl Sender<'_> {
    fn burst(&self) -> f64 {
        let burst = self.stream.flow.burst.value();
        if self.stream.endless { burst } else { burst.min(self.left) }
    }

    /// When its window has room for the next burst.
    fn room(&self) -> f64 {
        let mut under_way = self.under_way;
        let mut at = self.ready;
        for (over, bytes) in &self.window {
            if under_way + self.burst() <= self.stream.flow.outstanding.value().max(self.burst()) {
                break;
            }
            under_way -= bytes;
            at = at.max(*over);
        }
        at
    }

    /// When its next burst can begin.
    fn start(&self, free: &[f64]) -> f64 {
        let costs = self.stream.flow.costs.iter();
        costs.fold(self.room(), |start, (resource, _)| start.max(free.get(*resource).copied().unwrap_or(0.0)))
    }

    fn send(&mut self, free: &mut [f64]) {
        let (burst, ready) = (self.burst(), self.room());
        let start = self.start(free);
        while let Some((_, bytes)) = self.window.front().copied().filter(|(over, _)| *over <= start + 1e-9) {
            self.under_way -= bytes;
            self.window.pop_front();
        }
        let mut done = start;
        let mut bus = start;
        for (place, (resource, cost)) in self.stream.flow.costs.iter().enumerate() {
            let Some(free) = free.get_mut(*resource) else { continue };
            // What several parts of its way share, they take one after the other.
            *free = free.max(start) + cost * burst;
            done = done.max(*free);
            if place == 0 {
                bus = *free;
            }
        }
        let flow = &self.stream.flow;
        // A window over its rate is the time that it takes to come back; what arrives from outside is over when it is moved.
        let back = if flow.cap.is_finite() { flow.outstanding.value() / flow.cap } else { 0.0 };
        let round = if self.stream.paced { 0.0 } else { back };
        let over =
            self.window.back().map_or(0.0, |(over, _)| *over).max(done).max(start + round.min(MOST_ROUND));
        self.window.push_back((over, burst));
        self.under_way += burst;
        self.moved += burst;
        if !self.stream.endless {
            self.left -= burst;
        }
        self.waits.push(done + flow.latency.value() - ready);
        self.served = start;
        self.last = self.last.max(over);
        self.ready = if self.stream.paced && flow.cap.is_finite() {
            // The next arrives at its pace, whether this one has waited or not; but no more waits than there is room for.
            (self.ready + burst / flow.cap).max(start - back.min(MOST_ROUND))
        } else if flow.outstanding.value() <= burst && flow.cap.is_finite() {
            self.ready.max(self.first) + burst / flow.cap
        } else {
            bus.max(ready)
        };
    }
}

/// No window comes back later than this.
const MOST_ROUND: f64 = 1e9;
