//! A path at work.

use crate::icmp;
use crate::journal::{Drop, Pen, SegmentId, What};
use crate::loss::LossState;
use crate::parcel::{Parcel, Stock, wire_bytes};
use crate::path::{Change, Jitter, Path, PathStats, Scheduled, TooLong};
use crate::queue::{Backlog, Managed};
use crate::random::Random;
use crate::timeline::{Pace, Timeline};
use linerate_nic::loopback::Verdict;
use linerate_wire::units::{Instant, nanos};
use std::time::Duration;

/// Decides about each segment that comes to a path, before everything else; it sees time and frame.
pub type Script = Box<dyn FnMut(Instant, &[u8]) -> Verdict>;

/// What a path gave out in one step.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Segments at the other end, with their times there.
    pub(crate) forward: Vec<(Instant, Option<Pace>, Parcel)>,
    /// Messages of a router to the sender.
    pub(crate) back: Vec<(Instant, Parcel)>,
}

/// A transmitter that works at a rate: exact to a fraction of a nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transmitter {
    /// When it is free again, rounded down.
    pub(crate) free_at: Instant,
    rest: u64,
    /// Time that all transmissions take which were begun.
    begun: Duration,
}

impl Transmitter {
    /// Sends `bytes` from `now`, or as soon as it is free; returns how it began.
    pub(crate) fn send(&mut self, now: Instant, bytes: u64, bps: u64) -> Pace {
        let bps = bps.max(1);
        if now > self.free_at {
            self.rest = 0;
        }
        let start = now.max(self.free_at);
        let pace = Pace { start, rest: self.rest, bps };
        let units = u128::from(bytes) * 8_000_000_000 + u128::from(self.rest);
        self.free_at = start + Duration::from_nanos((units / u128::from(bps)) as u64);
        self.rest = (units % u128::from(bps)) as u64;
        self.begun += self.free_at - start;
        pace
    }

    /// For how long it has been busy by `now`.
    pub(crate) fn busy_by(&self, now: Instant) -> Duration {
        self.begun.saturating_sub(self.free_at.max(now) - now)
    }
}

pub(crate) struct LinkPath {
    pub(crate) path: Path,
    pub(crate) stats: PathStats,
    script: Option<Script>,
    /// Segments that will come to this path.
    approaching: Timeline,
    backlog: Backlog,
    transmitter: Transmitter,
    /// The segment whose bits are leaving.
    sending: Option<Parcel>,
    paused: bool,
    resumed_at: Instant,
    loss: LossState,
    random: Random,
    changes: Vec<Scheduled>,
    /// For paths in which nothing may overtake.
    last_out: Instant,
    /// Whether the model of loss took the segment before.
    was_lost: bool,
    /// Notes what waits, leaves and is dropped.
    pen: Pen,
}

impl LinkPath {
    pub(crate) fn new(path: Path, random: Random) -> LinkPath {
        LinkPath {
            path,
            stats: PathStats::default(),
            script: None,
            approaching: Timeline::default(),
            backlog: Backlog::default(),
            transmitter: Transmitter::default(),
            sending: None,
            paused: false,
            resumed_at: Instant::ZERO,
            loss: LossState::default(),
            random,
            changes: Vec::new(),
            last_out: Instant::ZERO,
            was_lost: false,
            pen: Pen::default(),
        }
    }

    pub(crate) fn set_pen(&mut self, pen: Pen) {
        self.pen = pen;
    }

    fn note_drop(&self, at: Instant, segment: Option<SegmentId>, why: Drop) {
        self.pen.note(at, || What::Dropped { segment, why });
    }

    fn note_queue(&self, at: Instant) {
        let (segments, bytes) = self.queue_len();
        self.pen.note(at, || What::Queue { segments: segments as u32, bytes: bytes as u64 });
    }

    pub(crate) fn set_script(&mut self, script: Option<Script>) {
        self.script = script;
    }

    /// Segments and bytes that wait in the queue.
    pub(crate) fn queue_len(&self) -> (usize, usize) {
        (self.backlog.len(), self.backlog.bytes())
    }

    /// For how long bits have left by `now`, where there is a rate.
    pub(crate) fn busy_by(&self, now: Instant) -> Duration {
        self.transmitter.busy_by(now)
    }

    /// Whether nothing is under way here.
    pub(crate) fn is_idle(&self) -> bool {
        self.approaching.len() == 0 && self.backlog.len() == 0 && self.sending.is_none()
    }

    /// Whether the path holds traffic back at the sender.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(crate) fn schedule(&mut self, at: Instant, change: Change) {
        let index = self.changes.partition_point(|other| other.at <= at);
        self.changes.insert(index, Scheduled { at, change });
    }

    /// Takes segments that come at `at`, one after the other at a pace where there is one.
    pub(crate) fn offer(&mut self, at: Instant, pace: Option<Pace>, parcel: Parcel, out: &mut Output) {
        let is_plain = self.path.is_plain() && self.script.is_none() && !self.paused;
        if is_plain && self.changes.is_empty() && self.is_idle() && at + self.path.delay >= self.last_out {
            self.pass(at, pace, parcel, out);
            return;
        }
        match pace {
            Some(pace) => self.approaching.insert_paced(pace, parcel),
            None => self.approaching.insert(at, parcel),
        }
    }

    /// Nothing happens to these but the delay.
    fn pass(&mut self, at: Instant, pace: Option<Pace>, parcel: Parcel, out: &mut Output) {
        let (count, len) = (u64::from(parcel.count()), parcel.len() as u64);
        let headers = parcel.header_len() as u64 * (count - 1);
        self.stats.offered += count;
        self.stats.offered_bytes += len + headers;
        self.stats.delivered += count;
        self.stats.delivered_bytes += len + headers;
        let delay = self.path.delay;
        let pace = pace.map(|pace| Pace { start: pace.start + delay, ..pace });
        out.forward.push((at + delay, pace, parcel));
    }

    /// When something happens here next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let change = self.changes.first().map(|change| change.at);
        if self.paused {
            // With a rate, what comes goes into the queue.
            let coming = self.approaching.next().filter(|_| self.path.rate_bps.is_some());
            return [change, coming].into_iter().flatten().min();
        }
        let done = self.sending.as_ref().map(|_| self.transmitter.free_at);
        // While a segment is being sent, others only join the queue. That can be done later, each with its own time,
        // unless somebody must hear of it.
        let is_silent = done.is_some() && self.script.is_none() && self.path.mtu.is_none();
        let coming = self.approaching.next().filter(|_| !is_silent);
        [change, done, coming].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, stock: &Stock, out: &mut Output) {
        while self.changes.first().is_some_and(|change| change.at <= now) {
            let Scheduled { at, change } = self.changes.remove(0);
            // What came before the change is treated as it was then.
            self.advance(at.min(now), stock, out);
            self.change(now, change);
        }
        self.advance(now, stock, out);
    }

    /// Arrivals and departures up to `now`, in the order of their times.
    fn advance(&mut self, now: Instant, stock: &Stock, out: &mut Output) {
        loop {
            let done = self.sending.as_ref().map(|_| self.transmitter.free_at);
            let done = done.filter(|at| *at <= now && !self.paused);
            let waits = self.paused && self.path.rate_bps.is_none();
            let coming = self.approaching.next().filter(|at| *at <= now && !waits);
            match (done, coming) {
                // What leaves at the same time makes room first.
                (Some(at), coming) if coming.is_none_or(|coming| at <= coming) => {
                    if let Some(parcel) = self.sending.take() {
                        self.leave(at, parcel, Duration::ZERO, out);
                    }
                    self.begin(at);
                }
                (_, Some(_)) => {
                    if let Some((at, parcel)) = self.approaching.take_one(now) {
                        self.arrive(at.max(self.resumed_at), parcel, stock, out);
                    }
                }
                _ => return,
            }
        }
    }

    fn change(&mut self, now: Instant, change: Change) {
        match change {
            Change::Rate(rate) => self.path.rate_bps = rate,
            Change::Delay(delay) => self.path.delay = delay,
            Change::Loss(loss) => {
                self.path.loss = loss;
                self.loss.reset();
            }
            Change::Mtu(mtu) => self.path.mtu = mtu,
            Change::Faults { reorder, reorder_delay, duplicate, corrupt } => {
                self.path.reorder = reorder;
                self.path.reorder_delay = reorder_delay;
                self.path.duplicate = duplicate;
                self.path.corrupt = corrupt;
            }
            Change::Pause => self.paused = true,
            Change::Resume => {
                self.paused = false;
                self.resumed_at = now;
                self.transmitter.free_at = self.transmitter.free_at.max(now);
            }
            Change::All(path) => {
                if path.loss != self.path.loss {
                    self.loss.reset();
                }
                self.path = *path;
            }
        }
        if !self.paused {
            self.begin(now);
        }
    }

    /// A segment has come to the path.
    fn arrive(&mut self, at: Instant, mut parcel: Parcel, stock: &Stock, out: &mut Output) {
        let len = parcel.len();
        self.stats.offered += 1;
        self.stats.offered_bytes += len as u64;
        let mut extra = Duration::ZERO;
        if let Some(script) = &mut self.script {
            match script(at, &parcel.bytes()) {
                Verdict::Deliver => {}
                Verdict::Drop => {
                    self.stats.scripted += 1;
                    self.note_drop(at, Some(parcel.id()), Drop::Lost);
                    return;
                }
                Verdict::Duplicate => {
                    self.stats.duplicated += 1;
                    self.carry(at, parcel.clone(), extra, out);
                }
                Verdict::Delay(more) => extra = more,
                Verdict::Corrupt { at, mask } => {
                    parcel.corrupt_at(at, mask);
                    self.stats.corrupted += 1;
                }
            }
        }
        if let Some(mtu) = self.path.mtu
            && parcel.ip_len().is_some_and(|ip_len| ip_len > mtu)
        {
            self.stats.too_long += 1;
            self.note_drop(at, Some(parcel.id()), Drop::TooLong);
            if let TooLong::Tell { v4, v6 } = self.path.too_long
                && let Some(message) = icmp::too_long(&parcel.bytes(), mtu, v4, v6)
                && let Some(message) = stock.take_bytes(message)
            {
                out.back.push((at + self.path.delay, message));
            }
            return;
        }
        self.carry(at, parcel, extra, out);
    }

    /// Through queue and rate, if there is a rate.
    fn carry(&mut self, at: Instant, parcel: Parcel, extra: Duration, out: &mut Output) {
        if self.path.rate_bps.is_none() && self.backlog.len() == 0 && self.sending.is_none() {
            self.leave(at, parcel, extra, out);
            return;
        }
        match self.backlog.push(&self.path.queue, at, parcel) {
            Ok(marked) => {
                self.stats.marked += u64::from(marked);
                self.note_queue(at);
            }
            Err(parcel) => {
                self.stats.queue_full += 1;
                self.note_drop(at, Some(parcel.id()), Drop::QueueFull);
            }
        }
        self.begin(at);
        self.stats.queue_max = self.stats.queue_max.max(self.backlog.len());
        self.stats.queue_max_bytes = self.stats.queue_max_bytes.max(self.backlog.bytes());
    }

    /// Begins to send the next segment, if none is being sent.
    fn begin(&mut self, at: Instant) {
        if self.sending.is_some() || self.paused {
            return;
        }
        let mut managed = Managed::default();
        let next = self.backlog.pop(&self.path.queue, at, &mut managed);
        self.stats.codel_dropped += managed.dropped;
        (0..managed.dropped).for_each(|_| self.note_drop(at, None, Drop::Codel));
        self.stats.marked += managed.marked;
        if let Some(parcel) = next {
            self.stats.queue_wait_ns += nanos(at - self.backlog.taken_from.min(at));
            // Without a rate any more, what waits leaves at once.
            let bps = self.path.rate_bps.unwrap_or(u64::MAX);
            let from = self.transmitter.send(at, wire_bytes(parcel.len()), bps).start;
            let (segment, len) = (parcel.id(), parcel.len() as u32);
            self.note_queue(at);
            self.pen.note(self.transmitter.free_at, || What::OnWire { segment, from, len });
            self.sending = Some(parcel);
        }
    }

    /// Onto the wire: loss, corruption, duplication, delay.
    fn leave(&mut self, at: Instant, mut parcel: Parcel, extra: Duration, out: &mut Output) {
        let len = parcel.len() as u64;
        if self.loss.loses(&self.path.loss, &mut self.random) {
            self.stats.lost += 1;
            self.stats.lost_runs += u64::from(!self.was_lost);
            self.was_lost = true;
            self.note_drop(at, Some(parcel.id()), Drop::Lost);
            self.stats.lost_bytes += len;
            return;
        }
        self.was_lost = false;
        if self.random.chance(self.path.corrupt) {
            parcel.corrupt(self.random.next_u64() as u32);
            self.stats.corrupted += 1;
        }
        if self.random.chance(self.path.duplicate) {
            self.stats.duplicated += 1;
            let due = self.due(at, extra);
            self.stats.delivered += 1;
            self.stats.delivered_bytes += len;
            out.forward.push((due, None, parcel.clone()));
        }
        let due = self.due(at, extra);
        self.stats.delivered += 1;
        self.stats.delivered_bytes += len;
        out.forward.push((due, None, parcel));
    }

    /// When a segment that leaves at `at` is at the other end.
    fn due(&mut self, at: Instant, extra: Duration) -> Instant {
        let delay_without_faults = self.path.delay;
        let delay = delay_without_faults;
        let delay = match self.path.jitter {
            Jitter::None => delay,
            Jitter::Uniform(most) => {
                let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
                delay + Duration::from_nanos(self.random.below(most.saturating_add(1)))
            }
            Jitter::Normal(deviation) => {
                let off = self.random.normal() * deviation.as_secs_f64();
                Duration::from_secs_f64((delay.as_secs_f64() + off).max(delay.as_secs_f64() / 2.0))
            }
        };
        let mut due = at + delay;
        if !self.path.jitter_reorders {
            due = due.max(self.last_out);
            self.last_out = due;
        }
        if self.random.chance(self.path.reorder) {
            self.stats.reordered += 1;
            due += self.path.reorder_delay;
        }
        self.stats.late_ns += nanos((due - at).saturating_sub(delay_without_faults));
        due + extra
    }
}
