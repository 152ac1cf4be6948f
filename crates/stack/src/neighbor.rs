//! One bounded cache of link-layer addresses for ARP and NDP.
//!
//! The states are those of RFC 4861 section 7.3.2, for both families (ARP gains unreachability detection by it):
//!
//! ```text
//!            use                 answer                     30 s
//!   (none) ───────▶ INCOMPLETE ──────────▶ REACHABLE ───────────────▶ STALE
//!                       │ 3 requests, 1 s apart    ▲  ▲                 │ use
//!                       ▼                   answer │  │ progress of TCP ▼
//!                    failed ◀───────────────────── PROBE ◀──────────────┘
//!                             3 requests, 1 s apart
//! ```
//!
//! Simplified: DELAY is the first five seconds of PROBE, and times are constants (a router's Reachable Time and Retrans
//! Timer are not taken over). Packets go out in every state but INCOMPLETE.
//!
//! Whoever claims another link-layer address for a neighbour that is REACHABLE or being probed is not believed: the neighbour is
//! asked at its known address, at a limited rate, and only when it does not answer is the entry given up and everybody
//! asked. An answer counts as solicited only where we asked. (RFC 4861 section 7.2.5 takes the new address at once when
//! the override flag is set, which anybody can set. A neighbour that really moves costs three seconds.) When the
//! table is full, entries that were never confirmed go first, so that a flood of new ones only displaces itself.
//!
//! What one unreachable peer can use up is bounded: a connection keeps its data and waits in a list (no packet is held
//! at all), other packets wait in a queue of [`PARKED_PER_NEIGHBOR`] per entry, and so many in all, new entries
//! are made for on-link addresses only (the caller checks) and at a limited rate, and unanswered entries take half of
//! the table at most.

use crate::random::KeyedState;
use crate::rate::RateLimit;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::num::NonZeroU32;
use core::time::Duration;
use hashbrown::HashMap;
use linerate_nic::MacAddr;
use linerate_wire::units::Instant;

/// Packets that wait for one neighbour; the oldest goes first (RFC 1122 section 2.3.2.2 asks for the latest to be kept).
pub(crate) const PARKED_PER_NEIGHBOR: usize = 4;
const REACHABLE_TIME: Duration = Duration::from_secs(30);
const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
const RETRANSMIT: Duration = Duration::from_secs(1);
const REQUESTS: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Incomplete { sent: u8 },
    Reachable,
    Stale,
    Probe { sent: u8 },
}

#[derive(Debug)]
struct Entry {
    ip: IpAddr,
    mac: MacAddr,
    state: State,
    deadline: Option<Instant>,
    last_used: Instant,
    generation: NonZeroU32,
    /// It answered us, or carried a connection.
    confirmed: bool,
    /// Somebody claims another address for it, and it was asked.
    disputed: bool,
    /// In the queue of solicitations to send.
    due: bool,
    live: bool,
}

/// A handle that a connection keeps, so that it does not hash for every packet. It never reaches another address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NeighborRef {
    pub(crate) slot: u32,
    generation: NonZeroU32,
}

/// What the cache knows of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    /// Send there.
    Known(NeighborRef, MacAddr),
    /// Wait: a solicitation is under way.
    Pending(NeighborRef),
    /// The table or the rate of new entries is exhausted; try again later.
    Refused,
}

/// What a neighbour's timer or a message about it led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nothing that others must know.
    Nothing,
    /// The address became known: wake who waits.
    Resolved(u32),
    /// It has another address from now on.
    Moved(u32),
    /// Somebody claimed another address for it: it is being asked.
    Disputed(u32),
    /// Nobody answered: tell who waits. The entry is gone.
    Failed(u32),
}

/// A solicitation to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Solicit {
    pub(crate) ip: IpAddr,
    /// Where to: the neighbour itself while its address is being confirmed, everybody otherwise.
    pub(crate) unicast: Option<MacAddr>,
}

/// The cache. `P` is a packet that waits.
pub(crate) struct NeighborCache<P> {
    entries: Vec<Entry>,
    index: HashMap<IpAddr, u32, KeyedState>,
    /// Where the last lookup ended: datagrams in a row go to one neighbour.
    last: u32,
    free: Vec<u32>,
    due: VecDeque<u32>,
    parked: VecDeque<(u32, P)>,
    max_parked: usize,
    incomplete: usize,
    /// Entries made because we want to send.
    new_entries: RateLimit,
    /// Entries made because others asked for us: a flood of them must not keep us from asking.
    observed_entries: RateLimit,
    /// Neighbours asked because of what others claimed.
    disputes: RateLimit,
    /// Entries thrown out to make room.
    pub(crate) evicted: u64,
}

impl<P> NeighborCache<P> {
    /// A cache of `capacity` entries; `max_parked` packets may wait for them in all.
    pub(crate) fn new(capacity: usize, max_parked: usize, state: KeyedState) -> Self {
        NeighborCache {
            entries: Vec::with_capacity(capacity),
            index: HashMap::with_capacity_and_hasher(capacity, state),
            last: 0,
            free: Vec::with_capacity(capacity),
            due: VecDeque::with_capacity(capacity),
            parked: VecDeque::with_capacity(max_parked),
            max_parked,
            incomplete: 0,
            new_entries: RateLimit::new(200, 64),
            observed_entries: RateLimit::new(200, 64),
            disputes: RateLimit::new(10, 10),
            evicted: 0,
        }
    }

    fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// The address of a neighbour that a packet is about to be sent to; begins to ask for it if it is not known.
    pub(crate) fn resolve(&mut self, ip: IpAddr, now: Instant) -> Lookup {
        let is_it = |entry: &&Entry| entry.live && entry.ip == ip;
        if self.entries.get(self.last as usize).filter(is_it).is_some() {
            return self.use_slot(self.last, now);
        }
        if let Some(&slot) = self.index.get(&ip) {
            self.last = slot;
            return self.use_slot(slot, now);
        }
        if self.incomplete >= self.capacity() / 2 || !self.new_entries.allow(now) {
            return Lookup::Refused;
        }
        let entry = Entry {
            ip,
            mac: MacAddr::default(),
            state: State::Incomplete { sent: 0 },
            deadline: Some(now + RETRANSMIT),
            last_used: now,
            generation: NonZeroU32::MIN,
            confirmed: false,
            disputed: false,
            due: false,
            live: true,
        };
        let Some(slot) = self.create(entry) else { return Lookup::Refused };
        self.incomplete += 1;
        self.push_due(slot);
        Lookup::Pending(self.handle(slot))
    }

    /// As [`NeighborCache::resolve`], by handle; `None` when the entry is another one by now.
    pub(crate) fn resolve_ref(&mut self, neighbor: NeighborRef, now: Instant) -> Option<Lookup> {
        let entry = self.entries.get(neighbor.slot as usize)?;
        (entry.live && entry.generation == neighbor.generation).then(|| self.use_slot(neighbor.slot, now))
    }

    fn use_slot(&mut self, slot: u32, now: Instant) -> Lookup {
        let entry = &mut self.entries[slot as usize];
        entry.last_used = now;
        match entry.state {
            State::Incomplete { .. } => Lookup::Pending(self.handle(slot)),
            State::Stale => {
                entry.state = State::Probe { sent: 0 };
                entry.deadline = Some(now + DELAY_FIRST_PROBE);
                Lookup::Known(self.handle(slot), self.entries[slot as usize].mac)
            }
            State::Reachable | State::Probe { .. } => {
                let mac = entry.mac;
                Lookup::Known(self.handle(slot), mac)
            }
        }
    }

    fn handle(&self, slot: u32) -> NeighborRef {
        NeighborRef { slot, generation: self.entries[slot as usize].generation }
    }

    /// The deadline of an entry, for the timer heap.
    pub(crate) fn deadline(&self, slot: u32) -> Option<Instant> {
        let entry = self.entries.get(slot as usize)?;
        if entry.live { entry.deadline } else { None }
    }

    /// Makes a packet wait for the entry of `neighbor`. Returns a packet that had to give way, if any.
    pub(crate) fn park(&mut self, neighbor: NeighborRef, packet: P) -> Option<P> {
        let of_this = self.parked.iter().filter(|(slot, _)| *slot == neighbor.slot).count();
        let mut dropped = None;
        if of_this >= PARKED_PER_NEIGHBOR {
            let at = self.parked.iter().position(|(slot, _)| *slot == neighbor.slot);
            dropped = at.and_then(|at| self.parked.remove(at)).map(|(_, packet)| packet);
        } else if self.parked.len() >= self.max_parked {
            return Some(packet);
        }
        self.parked.push_back((neighbor.slot, packet));
        dropped
    }

    /// Takes the oldest packet that waits for this entry.
    pub(crate) fn unpark(&mut self, slot: u32) -> Option<P> {
        let at = self.parked.iter().position(|(of, _)| *of == slot)?;
        self.parked.remove(at).map(|(_, packet)| packet)
    }

    /// Somebody told us its address while asking for ours (ARP request, NS, RS, RA with a source link-layer option,
    /// unsolicited NA): known, not confirmed. `create` makes an entry where there is none.
    pub(crate) fn observe(&mut self, ip: IpAddr, mac: MacAddr, create: bool, now: Instant) -> Outcome {
        let Some(&slot) = self.index.get(&ip) else {
            if create && self.observed_entries.allow(now) {
                self.create(Entry {
                    ip,
                    mac,
                    state: State::Stale,
                    deadline: None,
                    last_used: now,
                    generation: NonZeroU32::MIN,
                    confirmed: false,
                    disputed: false,
                    due: false,
                    live: true,
                });
            }
            return Outcome::Nothing;
        };
        let entry = &mut self.entries[slot as usize];
        if matches!(entry.state, State::Incomplete { .. }) {
            entry.mac = mac;
            entry.state = State::Stale;
            entry.deadline = None;
            self.incomplete -= 1;
            return Outcome::Resolved(slot);
        }
        if entry.mac == mac {
            return Outcome::Nothing;
        }
        self.claim(slot, mac, true, now)
    }

    /// Somebody says, without having been asked, that the neighbour has another address now.
    fn claim(&mut self, slot: u32, mac: MacAddr, overrides: bool, now: Instant) -> Outcome {
        let entry = &mut self.entries[slot as usize];
        match entry.state {
            State::Stale => {
                if !overrides {
                    return Outcome::Nothing;
                }
                entry.mac = mac;
                entry.confirmed = false;
                Outcome::Moved(slot)
            }
            State::Reachable if self.disputes.allow(now) => {
                entry.state = State::Probe { sent: 0 };
                entry.deadline = Some(now + RETRANSMIT);
                entry.disputed = true;
                self.push_due(slot);
                Outcome::Disputed(slot)
            }
            State::Reachable | State::Probe { .. } | State::Incomplete { .. } => Outcome::Nothing,
        }
    }

    /// An answer to a solicitation (RFC 4861 section 7.2.5; an ARP reply to us counts as solicited and overriding).
    pub(crate) fn advertise(
        &mut self,
        ip: IpAddr,
        mac: Option<MacAddr>,
        solicited: bool,
        overrides: bool,
        now: Instant,
    ) -> Outcome {
        let Some(&slot) = self.index.get(&ip) else { return Outcome::Nothing };
        let entry = &mut self.entries[slot as usize];
        if let State::Incomplete { .. } = entry.state {
            let Some(mac) = mac else { return Outcome::Nothing };
            entry.mac = mac;
            entry.state = if solicited { State::Reachable } else { State::Stale };
            entry.confirmed = solicited;
            entry.deadline = solicited.then(|| now + REACHABLE_TIME);
            self.incomplete -= 1;
            return Outcome::Resolved(slot);
        }
        if let Some(mac) = mac.filter(|&mac| mac != entry.mac) {
            return self.claim(slot, mac, overrides, now);
        }
        // An answer, if we asked.
        if solicited && matches!(entry.state, State::Probe { sent: 1.. }) {
            entry.state = State::Reachable;
            entry.confirmed = true;
            entry.disputed = false;
            entry.deadline = Some(now + REACHABLE_TIME);
        }
        Outcome::Nothing
    }

    /// What the owner of the link knows of a neighbour; `None`: it does not answer.
    pub(crate) fn learn(&mut self, ip: IpAddr, mac: Option<MacAddr>, now: Instant) -> Outcome {
        let Some(&slot) = self.index.get(&ip) else { return Outcome::Nothing };
        let Some(mac) = mac else {
            self.remove(slot);
            return Outcome::Failed(slot);
        };
        let entry = &mut self.entries[slot as usize];
        let was_incomplete = matches!(entry.state, State::Incomplete { .. });
        let has_moved = entry.mac != mac;
        entry.mac = mac;
        entry.state = State::Reachable;
        entry.confirmed = true;
        entry.disputed = false;
        entry.deadline = Some(now + REACHABLE_TIME);
        self.incomplete -= usize::from(was_incomplete);
        match (was_incomplete, has_moved) {
            (true, _) => Outcome::Resolved(slot),
            (false, true) => Outcome::Moved(slot),
            (false, false) => Outcome::Nothing,
        }
    }

    /// Who an entry is, or was last, about.
    pub(crate) fn named(&self, slot: u32) -> Option<(IpAddr, MacAddr)> {
        self.entries.get(slot as usize).map(|entry| (entry.ip, entry.mac))
    }

    /// A connection made progress over this neighbour, so it is reachable (RFC 4861 section 7.3.1), unless its address is disputed:
    /// what arrived may have come from the other one. Cheap enough for every ACK.
    pub(crate) fn confirm(&mut self, neighbor: NeighborRef, now: Instant) {
        if let Some(entry) = self.entries.get_mut(neighbor.slot as usize)
            && entry.live
            && entry.generation == neighbor.generation
            && !matches!(entry.state, State::Incomplete { .. })
            && !entry.disputed
        {
            entry.state = State::Reachable;
            entry.confirmed = true;
            entry.deadline = Some(now + REACHABLE_TIME);
        }
    }

    /// The timer of an entry fired (maybe early; then nothing happens).
    pub(crate) fn handle_timeout(&mut self, slot: u32, now: Instant) -> Outcome {
        let Some(entry) = self.entries.get_mut(slot as usize).filter(|entry| entry.live) else {
            return Outcome::Nothing;
        };
        if entry.deadline.is_none_or(|deadline| deadline > now) {
            return Outcome::Nothing;
        }
        match entry.state {
            State::Reachable | State::Stale => {
                entry.state = State::Stale;
                entry.deadline = None;
                Outcome::Nothing
            }
            State::Incomplete { sent } | State::Probe { sent } if sent >= REQUESTS => {
                self.remove(slot);
                Outcome::Failed(slot)
            }
            State::Incomplete { .. } | State::Probe { .. } => {
                entry.deadline = Some(now + RETRANSMIT);
                self.push_due(slot);
                Outcome::Nothing
            }
        }
    }

    /// The next solicitation to send; counts it as sent.
    pub(crate) fn poll_solicit(&mut self, now: Instant) -> Option<Solicit> {
        while let Some(slot) = self.due.pop_front() {
            let entry = &mut self.entries[slot as usize];
            entry.due = false;
            if !entry.live {
                continue;
            }
            match &mut entry.state {
                State::Incomplete { sent } => {
                    *sent += 1;
                    entry.deadline = Some(now + RETRANSMIT);
                    return Some(Solicit { ip: entry.ip, unicast: None });
                }
                State::Probe { sent } => {
                    *sent += 1;
                    entry.deadline = Some(now + RETRANSMIT);
                    return Some(Solicit { ip: entry.ip, unicast: Some(entry.mac) });
                }
                State::Reachable | State::Stale => {}
            }
        }
        None
    }

    /// Whether a solicitation waits to be sent.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Entries in the cache.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    fn push_due(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        if !entry.due {
            entry.due = true;
            self.due.push_back(slot);
        }
    }

    fn create(&mut self, mut entry: Entry) -> Option<u32> {
        if self.index.len() >= self.capacity() && !self.evict() {
            return None;
        }
        let ip = entry.ip;
        let slot = match self.free.pop() {
            Some(slot) => {
                let old = &self.entries[slot as usize];
                entry.generation = old.generation;
                entry.due = old.due;
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.index.insert(ip, slot);
        Some(slot)
    }

    /// Throws out the entry unused for longest that is not being asked for, one that was never confirmed first. A walk over a bounded table, at the limited
    /// rate of new entries.
    fn evict(&mut self) -> bool {
        let victim = (self.entries.iter().enumerate())
            .filter(|(_, entry)| entry.live && !matches!(entry.state, State::Incomplete { .. }))
            .min_by_key(|(_, entry)| (entry.confirmed, entry.last_used))
            .map(|(slot, _)| slot as u32);
        let Some(victim) = victim else { return false };
        self.evicted += 1;
        self.remove(victim);
        true
    }

    fn remove(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        entry.live = false;
        entry.deadline = None;
        entry.generation = entry.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        if matches!(entry.state, State::Incomplete { .. }) {
            self.incomplete -= 1;
        }
        self.index.remove(&entry.ip);
        self.free.push(slot);
    }
}

#[cfg(test)]
#[path = "neighbor_tests.rs"]
mod tests;
