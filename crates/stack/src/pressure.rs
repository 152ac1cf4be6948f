//! What gives way when memory runs out: those who hold it and get nowhere.
//!
//! While the budget or a pool is short ([`memory::refuses_connections`]), or files are not read for want of memory, the table
//! of connections is looked over twice a second. What a connection moved since the last look, against what it holds, says how long it will go on holding it.
//!
//! The same look is taken while hardly any memory is left to promise as windows ([`tcp::MemoryBudget`]).
//!
//! 1. What was promised to connections that received nothing between two looks does not count any more, beyond the least.
//!    Data out of order that waited for the whole time is dropped; the sender has it still (RFC 2018 section 8).
//! 2. While memory is short, connections whose send buffers would take more than [`PATIENCE`] to drain are reset, the
//!    slowest first: those whose peers keep a window of zero or take a few bytes at a time, and which hold their share of
//!    the budget. This ends when a quarter of the budget is free. A shortage of receive buffers is not their fault, and
//!    resets nobody.
//!
//! What our own application does not read is never the peer's fault, and costs nobody the connection.
//!
//! Closed connections that still deliver what they hold ("orphans") are bounded by number; beyond it, and when the table is
//! full, the longest stalled among the oldest goes.

use crate::conns::{Brink, Mark, Stage};
use crate::memory;
use crate::stack::Stack;
use crate::tcp::State;
use crate::timers::Timer;
use core::time::Duration;
use linerate_transport::CloseReason;
use linerate_wire::units::Instant;

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// A rate is measured over this at least.
const MEASURE: Duration = Duration::from_millis(900);
/// Connections that would hold their memory for longer may be reset.
const PATIENCE: Duration = Duration::from_secs(10);
/// Orphans looked at to find the one to give up.
const ORPHANS_COMPARED: usize = 16;

/// A connection that may be reset, and how long it would take to drain.
#[derive(Clone, Copy)]
struct Candidate {
    slot: u32,
    drain_ms: u64,
    held: usize,
}

impl Stack {
    fn is_short(&self) -> bool {
        let budget = &self.conns.resources.budget;
        memory::refuses_connections(budget, &self.net.pools) || !budget.has_room_to_read(0)
    }

    fn is_at_ease(&self) -> bool {
        self.conns.resources.budget.is_at_ease() && !memory::is_short(&self.net.pools.pages)
    }

    fn is_promised_away(&self) -> bool {
        self.conns.resources.budget.is_promised_away()
    }

    /// Begins to look for connections to give up, if memory is short. Called once for each batch that may have changed it.
    #[inline]
    pub(crate) fn watch_pressure(&mut self) {
        if !self.conns.under_pressure && !self.is_at_ease() {
            self.note_pressure();
        }
    }

    #[inline(never)]
    fn note_pressure(&mut self) {
        if self.is_short() || self.is_promised_away() {
            self.conns.under_pressure = true;
            self.net.timers.set(Timer::Pressure, Some(self.net.now));
        }
    }

    /// Looks over the connections; see the module.
    pub(crate) fn run_pressure(&mut self) {
        let now = self.net.now;
        let is_short = self.is_short();
        self.conns.under_pressure = is_short || self.is_promised_away();
        if !self.conns.under_pressure {
            return;
        }
        self.net.timers.set(Timer::Pressure, Some(now + INTERVAL));
        // One victim a pass over the bounded table would be slow; the worst eight of each pass are enough, as a pass
        // follows every half second, and each ends what holds memory longest.
        let mut worst: [Option<Candidate>; 8] = [None; 8];
        for slot in 0..self.net.config.max_connections as u32 {
            if let Some(candidate) = self.look_at(slot, now, is_short) {
                insert_by_badness(&mut worst, candidate);
            }
        }
        for candidate in worst.into_iter().flatten() {
            self.shed(candidate.slot);
        }
    }

    /// Measures one connection, forgets its idle promise and drops its idle data out of order; a candidate where memory
    /// `is_short` and it would drain too slowly.
    fn look_at(&mut self, slot: u32, now: Instant, is_short: bool) -> Option<Candidate> {
        let conn = self.conns.table.at_mut(slot)?;
        let (sent, received) = conn.tcp.progress();
        if conn.mark.at == Instant::FAR_FUTURE {
            conn.mark = Mark { at: now, sent, received };
        }
        let mark = conn.mark;
        let elapsed = now - mark.at;
        if elapsed < MEASURE {
            return None;
        }
        conn.mark = Mark { at: now, sent, received };
        if received == mark.received {
            self.net.counters.tcp_out_of_order_shed += u64::from(conn.tcp.rest());
        }
        if !is_short {
            return None;
        }
        let held = conn.tcp.send_memory();
        let moved = sent.saturating_sub(mark.sent);
        let elapsed_ms = elapsed.as_millis() as u64;
        let drain_ms = (held as u64).saturating_mul(elapsed_ms).checked_div(moved).unwrap_or(u64::MAX);
        let is_slow = drain_ms > PATIENCE.as_millis() as u64;
        (held > 0 && is_slow && self.holds_its_share(held)).then_some(Candidate { slot, drain_ms, held })
    }

    /// Whether a connection holds so much that others go without: a quarter of an equal share (pages are a quarter of the
    /// budget). Whoever is alone takes nothing from anybody.
    fn holds_its_share(&self, held: usize) -> bool {
        let connections = self.conns.table.len();
        connections > 1 && held.saturating_mul(4 * connections) >= self.conns.resources.budget.limit()
    }

    fn shed(&mut self, slot: u32) {
        if !memory::is_short_of_queued(&self.conns.resources.budget, &self.net.pools) {
            return;
        }
        self.net.counters.tcp_stalled_shed += 1;
        self.abort_conn(slot, CloseReason::NoMemory);
    }

    fn abort_conn(&mut self, slot: u32, reason: CloseReason) {
        let now = self.net.now;
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.abort(now, reason);
            self.conns.sending.push(slot);
            self.settle(slot);
        }
    }

    /// A connection became an orphan: the list of them is bounded.
    pub(crate) fn bound_orphans(&mut self, slot: u32) {
        let is_orphan = |stage| stage == Stage::Orphan;
        if self.conns.table.at(slot).is_some_and(|conn| is_orphan(conn.stage)) {
            self.conns.enter(Brink::Orphan, slot);
        }
        if self.conns.count(Brink::Orphan) > self.net.config.max_orphans {
            self.shed_orphan(false);
        }
    }

    /// Gives up an orphan: of the oldest few, one that has delivered everything, or whose peer takes nothing for longest. `at_once`: its
    /// slot is needed at once, so that no RST can be sent; the peer hears of it when it sends. False without any.
    pub(crate) fn shed_orphan(&mut self, at_once: bool) -> bool {
        let mut victim: Option<(u32, Instant)> = None;
        for _ in 0..ORPHANS_COMPARED.min(self.conns.count(Brink::Orphan)) {
            let Some(slot) = self.conns.oldest(Brink::Orphan) else { break };
            self.conns.enter(Brink::Orphan, slot);
            let Some(conn) = self.conns.table.at(slot) else { continue };
            // Whose data is all there waits for the peer's FIN and nothing else: nobody loses anything.
            let since = match conn.tcp.tcp_state() {
                State::FinWait2 => Instant::ZERO,
                _ => conn.tcp.stalled_since().unwrap_or(self.net.now),
            };
            if victim.is_none_or(|(_, longest)| since < longest) {
                victim = Some((slot, since));
            }
        }
        let Some((slot, _)) = victim else { return false };
        self.net.counters.tcp_orphans_shed += 1;
        self.conns.leave(Brink::Orphan, slot);
        self.abort_conn(slot, CloseReason::NoMemory);
        if at_once {
            self.finish(slot);
        }
        true
    }
}

/// Keeps the worst, the worst first.
fn insert_by_badness(worst: &mut [Option<Candidate>], mut candidate: Candidate) {
    for place in worst {
        match place {
            Some(other) if (other.drain_ms, other.held) >= (candidate.drain_ms, candidate.held) => {}
            Some(other) => core::mem::swap(other, &mut candidate),
            None => {
                *place = Some(candidate);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_worst_are_kept_in_order() {
        let mut worst = [None; 3];
        for (slot, drain_ms) in [(0, 5), (1, 9), (2, 1), (3, 7), (4, 8)] {
            insert_by_badness(&mut worst, Candidate { slot, drain_ms, held: 1 });
        }
        let slots: Vec<u32> = worst.iter().flatten().map(|candidate| candidate.slot).collect();
        assert_eq!(slots, [1, 4, 3]);
    }
}
