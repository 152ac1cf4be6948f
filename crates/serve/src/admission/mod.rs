//! Who gives way when a server's connections run short: the one that waited longest, of the source that holds most.
//!
//! A server has a limit of connections, and a lower one for each source ([`Source`]). Nine tenths of the limit are there
//! for everybody. Beyond that, and where a source has reached its own limit, one connection gives way for each newcomer:
//!
//! 1. one of the newcomer's own source, if that has reached its limit or holds more than an equal share;
//! 2. else one of the sources that hold most, if they hold more than an equal share;
//! 3. else the one that waited longest of all.
//!
//! Those that *wait* for their client go first (nothing is under way, or half a request came), the oldest first, and only
//! where none of them is left those that *move* something, too slowly to count; the server judges that. Where nobody
//! can give way, the newcomer is refused, and told so at once. A few connections count as an equal share in any case, or a
//! client with two of them would lose one to a crowd of many with one each.
//!
//! Everything costs O(1), or O(log n) when a connection comes or goes.
//!
//! Servers on several queues of a device share their limits by a [`Census`].

mod census;
mod list;
mod source;

pub use census::Census;
pub use source::Source;

use crate::crowd;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use census::Shared;
use core::fmt;
use core::time::Duration;
use linerate_transport::ConnId;
use linerate_wire::units::Instant;
use list::{Ends, Links};

/// Sources that hold much and are looked at for one that can give way.
const SOURCES_TRIED: usize = 4;
/// Connections that a source may hold without holding more than its share, however many sources there are: a browser or a
/// test opens some at once.
const LEAST_SHARE: usize = 8;
/// Connections judged for one newcomer.
const JUDGED_MAX: usize = 32;
/// Between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// What a connection is doing, as far as giving way is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It waits for its client: it may give way.
    Waiting,
    /// Something is under way that its client may slow down: it may give way if it is too slow.
    Moving,
    /// The server works for it: it stays.
    Busy,
}

/// How to treat a newcomer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There is room.
    Admit,
    /// There is room once this one has been closed and removed.
    Replace(ConnId),
    /// There is none: its source has reached its limit.
    SourceFull,
    /// There is none at all.
    Full,
}

/// What a crowd did since the last report, for the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Connections when the last one gave way or was refused: by the time of the report the crowd may have gone.
    pub used: usize,
    /// The limit.
    pub limit: usize,
    /// The source that held most then.
    pub source: Source,
    /// How many it held.
    pub held: usize,
    /// The limit of one source.
    pub per_source: usize,
    /// Connections that gave way since the last report.
    pub gave_way: u64,
    /// Newcomers refused since the last report.
    pub refused: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { used, limit, source, held, per_source, gave_way, refused } = self;
        write!(
            f,
            "since the last report {gave_way} gave way to newcomers and {refused} newcomers were refused; at the last of \
             them {used} of {limit} connections were in use, {held} of {per_source} by {source}, which held the most"
        )
    }
}

/// How full it was when somebody gave way or was refused.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    used: usize,
    /// Who held most, and how many.
    source: Source,
    held: usize,
}

#[derive(Debug)]
struct Entry {
    id: ConnId,
    holder: u32,
    standing: Standing,
    since: Instant,
}

/// A source with what it holds.
#[derive(Debug)]
struct Holder {
    source: Source,
    count: u32,
    waiting: Ends,
    moving: Ends,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Admission {
    limit: usize,
    per_source: usize,
    len: usize,
    /// By the slot of their id.
    entries: Vec<Option<Entry>>,
    /// Places in the lists of all, and in those of the source.
    all: Links,
    own: Links,
    waiting: Ends,
    moving: Ends,
    holders: Vec<Holder>,
    free_holders: Vec<u32>,
    sources: BTreeMap<Source, u32>,
    /// The one among them that gave up its last connection last. It is still there, as it may well be the next to come.
    gone: Option<u32>,
    /// Sources by how many they hold, while somebody may ask: from the first crowd on, until less than half of the limit is used.
    by_count: Option<BTreeSet<(u32, Source)>>,
    gave_way: u64,
    refused: u64,
    /// At the last of these.
    pressed: Option<Pressed>,
    report_at: Option<Instant>,
    shared: Shared,
}

impl Admission {
    /// At most `limit` connections, `per_source` of them from one source.
    pub fn new(limit: usize, per_source: usize) -> Admission {
        Admission { limit, per_source, ..Admission::default() }
    }

    /// Other limits from now on; those beyond them stay until they end or give way.
    pub fn set_limits(&mut self, limit: usize, per_source: usize) {
        (self.limit, self.per_source) = (limit, per_source);
    }

    /// The limits are those of several crowds together, which this one counts. To be set before the first connection comes.
    /// Who gives way is chosen among its own.
    pub fn share(&mut self, census: Box<dyn Census>) {
        self.shared.0 = Some(census);
    }

    /// Connections that count against the limit: its own, or those of all who share it.
    fn counted(&self) -> usize {
        self.shared.0.as_ref().map_or(self.len, |census| census.total())
    }

    /// The same of a source: what counts against its limit.
    pub fn counted_of(&self, source: Source) -> usize {
        self.shared.0.as_ref().map_or_else(|| self.held_by(source), |census| census.held_by(source))
    }

    /// Connections now.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many a source holds.
    pub fn held_by(&self, source: Source) -> usize {
        self.sources.get(&source).map_or(0, |&at| self.holders[at as usize].count as usize)
    }

    /// How to treat a newcomer of `source`. `may_go` tells of a connection that waits or moves whether it may give way at
    /// all; one that may not is asked last from then on.
    pub fn judge(&mut self, source: Source, mut may_go: impl FnMut(ConnId) -> bool) -> Verdict {
        let (used, held) = (self.counted(), self.counted_of(source));
        let mut left = JUDGED_MAX;
        if held >= self.per_source {
            // At its limit it holds the most.
            self.pressed = Some(Pressed { used, source, held });
            return match self.victim_of(source, &mut left, &mut may_go) {
                Some(victim) => self.replace(victim),
                None => {
                    self.refused += 1;
                    Verdict::SourceFull
                }
            };
        }
        if used < self.limit - self.limit / 10 {
            return Verdict::Admit;
        }
        let victim = self.victim_in_crowd(source, held, &mut left, &mut may_go);
        if victim.is_none() && used < self.limit {
            return Verdict::Admit;
        }
        if let Some(&(held, source)) = self.by_count().last() {
            self.pressed = Some(Pressed { used, source, held: held as usize });
        }
        match victim {
            Some(victim) => self.replace(victim),
            None => {
                self.refused += 1;
                Verdict::Full
            }
        }
    }

    fn replace(&mut self, victim: ConnId) -> Verdict {
        self.gave_way += 1;
        Verdict::Replace(victim)
    }

    /// An equal share of the limit, with one more source or not; a few connections are nobody's greed.
    fn fair_share(&self, one_more: bool) -> usize {
        let sources = self.sources.len() - usize::from(self.gone.is_some()) + usize::from(one_more);
        (self.limit / sources.max(1)).max(LEAST_SHARE)
    }

    /// Somebody of those who hold more than their share, else whoever waited longest; those that wait before those that move.
    fn victim_in_crowd(
        &mut self,
        newcomer: Source,
        held: usize,
        left: &mut usize,
        may_go: &mut impl FnMut(ConnId) -> bool,
    ) -> Option<ConnId> {
        let share = self.fair_share(held == 0);
        let mut greedy = [None; SOURCES_TRIED];
        if held >= share {
            greedy[0] = Some(newcomer);
        } else {
            let most = self.by_count().iter().rev().take_while(|(count, _)| *count as usize > share);
            for (place, (_, source)) in greedy.iter_mut().zip(most) {
                *place = Some(*source);
            }
        }
        for standing in [Standing::Waiting, Standing::Moving] {
            for source in greedy.into_iter().flatten() {
                if let Some(victim) = self.first_of(source, standing, left, may_go) {
                    return Some(victim);
                }
            }
            while *left > 0 {
                let first =
                    if standing == Standing::Waiting { self.waiting.first } else { self.moving.first };
                let Some(id) = self.id_at(first) else { break };
                *left -= 1;
                if may_go(id) {
                    return Some(id);
                }
                self.join(first, standing);
            }
        }
        None
    }

    /// Somebody of one source.
    fn victim_of(
        &mut self,
        source: Source,
        left: &mut usize,
        may_go: &mut impl FnMut(ConnId) -> bool,
    ) -> Option<ConnId> {
        let waiting = self.first_of(source, Standing::Waiting, left, may_go);
        waiting.or_else(|| self.first_of(source, Standing::Moving, left, may_go))
    }

    fn first_of(
        &mut self,
        source: Source,
        standing: Standing,
        left: &mut usize,
        may_go: &mut impl FnMut(ConnId) -> bool,
    ) -> Option<ConnId> {
        let holder = *self.sources.get(&source)? as usize;
        // Each is looked at once: those that stay go to the end.
        for _ in 0..(self.holders[holder].count as usize).min(*left) {
            let ends = &self.holders[holder];
            let first = if standing == Standing::Waiting { ends.waiting.first } else { ends.moving.first };
            let id = self.id_at(first)?;
            *left -= 1;
            if may_go(id) {
                return Some(id);
            }
            self.join(first, standing);
        }
        None
    }

    fn id_at(&self, slot: u32) -> Option<ConnId> {
        self.entries.get(slot as usize)?.as_ref().map(|entry| entry.id)
    }

    /// Adds a connection, which waits for its client since `now`.
    pub fn add(&mut self, id: ConnId, source: Source, now: Instant) {
        self.remove_slot(id.index());
        let holder = self.holder(source);
        self.change_count(holder, 1);
        let at = id.index() as usize;
        if at >= self.entries.len() {
            crowd::grow(&mut self.entries, at + 1, || None);
        }
        self.entries[at] = Some(Entry { id, holder, standing: Standing::Busy, since: now });
        self.len += 1;
        self.join(id.index(), Standing::Waiting);
    }

    /// What a connection does now, and since when. Cheap where nothing has changed.
    pub fn place(&mut self, id: ConnId, standing: Standing, since: Instant) {
        let Some(Some(entry)) = self.entries.get_mut(id.index() as usize) else { return };
        if entry.id == id && (entry.standing != standing || entry.since != since) {
            entry.since = since;
            self.join(id.index(), standing);
        }
    }

    /// Forgets a connection.
    pub fn remove(&mut self, id: ConnId) {
        if self.id_at(id.index()) == Some(id) {
            self.remove_slot(id.index());
        }
    }

    /// What to tell the log, at most once in ten seconds: `Some` if anybody gave way or was refused since the last time.
    pub fn report(&mut self, now: Instant) -> Option<Report> {
        if self.gave_way + self.refused == 0 || self.report_at.is_some_and(|at| now < at) {
            return None;
        }
        let Pressed { used, source, held } = self.pressed.take()?;
        self.report_at = Some(now + REPORT_INTERVAL);
        Some(Report {
            used,
            limit: self.limit,
            source,
            held,
            per_source: self.per_source,
            gave_way: core::mem::take(&mut self.gave_way),
            refused: core::mem::take(&mut self.refused),
        })
    }

    fn remove_slot(&mut self, slot: u32) {
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::take) else { return };
        self.leave(slot, entry.standing, entry.holder);
        self.change_count(entry.holder, -1);
        self.len -= 1;
        if self.counted() < self.limit / 2 {
            self.by_count = None;
        }
    }

    fn holder(&mut self, source: Source) -> u32 {
        if let Some(&at) = self.sources.get(&source) {
            self.gone = self.gone.filter(|gone| *gone != at);
            return at;
        }
        let holder = Holder { source, count: 0, waiting: Ends::EMPTY, moving: Ends::EMPTY };
        let at = match self.free_holders.pop() {
            Some(at) => {
                self.holders[at as usize] = holder;
                at
            }
            None => {
                self.holders.push(holder);
                self.holders.len() as u32 - 1
            }
        };
        self.sources.insert(source, at);
        at
    }

    fn change_count(&mut self, at: u32, by: i32) {
        let holder = &mut self.holders[at as usize];
        let source = holder.source;
        if let Some(census) = &self.shared.0 {
            census.change(source, by > 0);
        }
        let before = holder.count;
        holder.count = before.saturating_add_signed(by);
        let count = holder.count;
        if let Some(by_count) = &mut self.by_count {
            by_count.remove(&(before, source));
            if count > 0 {
                by_count.insert((count, source));
            }
        }
        if count == 0
            && let Some(earlier) = self.gone.replace(at)
        {
            self.sources.remove(&self.holders[earlier as usize].source);
            self.free_holders.push(earlier);
        }
    }

    /// Sources by how many they hold. It takes some time where nobody has asked since the last crowd, and the next crowd is half of the
    /// limit away then.
    fn by_count(&mut self) -> &BTreeSet<(u32, Source)> {
        let Admission { by_count, sources, holders, .. } = self;
        by_count.get_or_insert_with(|| {
            let mut all = BTreeSet::new();
            for (&source, &at) in sources.iter() {
                let count = holders[at as usize].count;
                if count > 0 {
                    all.insert((count, source));
                }
            }
            all
        })
    }

    /// Puts a connection at the end of the lists of its standing.
    fn join(&mut self, slot: u32, standing: Standing) {
        let Some(Some(entry)) = self.entries.get_mut(slot as usize) else { return };
        let before = core::mem::replace(&mut entry.standing, standing);
        let at = entry.holder;
        self.leave(slot, before, at);
        let holder = &mut self.holders[at as usize];
        match standing {
            Standing::Waiting => {
                self.all.push(&mut self.waiting, slot);
                self.own.push(&mut holder.waiting, slot);
            }
            Standing::Moving => {
                self.all.push(&mut self.moving, slot);
                self.own.push(&mut holder.moving, slot);
            }
            Standing::Busy => {}
        }
    }

    fn leave(&mut self, slot: u32, standing: Standing, holder: u32) {
        let holder = &mut self.holders[holder as usize];
        match standing {
            Standing::Waiting => {
                self.all.remove(&mut self.waiting, slot);
                self.own.remove(&mut holder.waiting, slot);
            }
            Standing::Moving => {
                self.all.remove(&mut self.moving, slot);
                self.own.remove(&mut holder.moving, slot);
            }
            Standing::Busy => {}
        }
    }
}

#[cfg(test)]
mod tests;
