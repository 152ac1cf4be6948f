//! What gives way when memory runs out: those who hold it and get nowhere.
//!
//! While the budget or a pool is short ([`memory::refuses_connections`]), or three quarters of what may be held for sending are
//! held, the table of connections is looked over twice a second. What a connection moved since the last look says what it
//! needs, and, against what it holds, how long it will go on holding it.
//!
//! The same look is taken while hardly any memory is left to promise as windows ([`tcp::MemoryBudget`]).
//!
//! 1. What was promised to connections that received nothing between two looks does not count any more, beyond the least.
//!    Data out of order that waited for the whole time is dropped; the sender has it still (RFC 2018 section 8).
//! 2. While memory is short, a send buffer holds no more than the peer takes in two seconds, and [`LEAST`] in any case; what was
//!    read of files beyond that, and not sent, is given back. So who is slow holds little, and who is fast finds what it needs.
//! 3. What cannot be read again is left then. Connections whose peers took nothing for [`STANDSTILL`], or whose send buffers
//!    would take more than [`PATIENCE`] to drain, are reset, the slowest first, as many as it takes until three eighths of the
//!    budget are free: those that hold their share of it. A shortage of receive buffers is not their fault, and resets nobody.
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
/// Who took nothing for so long is as slow as can be. The window of a kernel that is read at 12 KB/s opens about as often.
const STANDSTILL: Duration = Duration::from_secs(15);
/// What a send buffer may hold in any case while memory is short, in bytes; half an equal share where that is less.
const LEAST: usize = 16 << 10;
/// Connections that would hold their memory for longer may be reset.
const PATIENCE: Duration = Duration::from_secs(180);
/// Orphans looked at to find the one to give up.
const ORPHANS_COMPARED: usize = 16;

/// A connection that may be reset.
#[derive(Clone, Copy)]
struct Drain {
    /// How long what it holds would take.
    seconds: u64,
    held: usize,
}

impl Drain {
    /// How bad that is: the binary logarithm of the time.
    fn rank(self) -> u32 {
        self.seconds.max(1).ilog2()
    }
}

/// What the connections that may be reset hold together, by rank: so nobody is compared with anybody, however many there are.
struct Slow {
    /// What each connection may hold in any case.
    least: usize,
    held: [usize; u64::BITS as usize],
}

impl Slow {
    fn add(&mut self, drain: Drain) {
        self.held[drain.rank() as usize] += drain.held;
    }

    /// From which rank on connections are reset so that `excess` bytes come free, or all that there are; `None` without any.
    fn least_to_shed(&self, excess: usize) -> Option<u32> {
        let (mut freed, mut least) = (0, None);
        for rank in (0..u64::BITS).rev().filter(|&rank| self.held[rank as usize] > 0) {
            freed += self.held[rank as usize];
            least = Some(rank);
            if freed >= excess {
                break;
            }
        }
        least
    }
}

impl Stack {
    fn is_short(&self) -> bool {
        let budget = &self.conns.resources.budget;
        memory::refuses_connections(budget, &self.net.pools) || budget.is_sending_tight()
    }

    /// Whether there is no memory for a new connection. Who holds it will have to give way, even if alone.
    pub(crate) fn refuses_newcomers(&mut self) -> bool {
        let refuses = memory::refuses_connections(&self.conns.resources.budget, &self.net.pools);
        self.conns.has_refused |= refuses;
        refuses
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
        self.conns.has_refused &= is_short;
        if !self.conns.under_pressure {
            return;
        }
        self.net.timers.set(Timer::Pressure, Some(now + INTERVAL));
        let share = self.conns.resources.budget.sending_limit() / (2 * self.conns.table.len()).max(1);
        let mut slow = Slow { least: share.min(LEAST), held: [0; _] };
        for slot in 0..self.net.config.max_connections as u32 {
            self.look_at(slot, now, is_short.then_some(&mut slow));
        }
        if is_short {
            self.shed_slow(&slow);
        }
    }

    /// Measures one connection, forgets its idle promise and drops its idle data out of order. Where memory is short (`slow`), its
    /// send buffer is bounded by what it moves, and who drains too slowly is counted.
    fn look_at(&mut self, slot: u32, now: Instant, slow: Option<&mut Slow>) {
        let Some(conn) = self.conns.table.at_mut(slot) else { return };
        let (sent, received) = conn.tcp.progress();
        if conn.mark.at == Instant::FAR_FUTURE {
            conn.mark = Mark { at: now, sent, received };
        }
        let mark = conn.mark;
        let elapsed = now - mark.at;
        if elapsed < MEASURE {
            return;
        }
        if received == mark.received {
            self.net.counters.tcp_out_of_order_shed += u64::from(conn.tcp.rest());
        }
        conn.mark = Mark { at: now, sent, received };
        let (Some(slow), Some(tcp)) = (slow, conn.tcp.connection_mut()) else { return };
        let moved = sent.saturating_sub(mark.sent);
        tcp.hold_little(moved.saturating_mul(1_000) / elapsed.as_millis() as u64, slow.least);
        if let Some(drain) = self.drain(slot) {
            slow.add(drain);
        }
    }

    /// How long the send buffer of one connection takes to drain, and what that frees, if it is worth giving up.
    fn drain(&self, slot: u32) -> Option<Drain> {
        let tcp = self.conns.table.at(slot)?.tcp.connection()?;
        let held = tcp.send_memory();
        let seconds = held as u64 / u64::from(tcp.drain_rate()).max(1);
        // Many take what many seconds bring at once.
        let lives = tcp.stalled_since().is_none_or(|since| self.net.now - since < STANDSTILL);
        let is_slow = if tcp.drain_rate() == 0 { !lives } else { seconds > PATIENCE.as_secs() };
        (is_slow && self.holds_its_share(held)).then_some(Drain { seconds, held })
    }

    /// Resets the slowest, as many as it takes.
    fn shed_slow(&mut self, slow: &Slow) {
        let resources = &self.conns.resources;
        if !memory::is_short_of_queued(&resources.budget, &self.net.pools) {
            return;
        }
        let excess = resources.budget.sending_excess();
        let Some(least) = slow.least_to_shed(excess) else { return };
        let mut freed = 0;
        for slot in 0..self.net.config.max_connections as u32 {
            let Some(drain) = self.drain(slot).filter(|drain| drain.rank() >= least) else { continue };
            self.net.counters.tcp_stalled_shed += 1;
            self.abort_conn(slot, CloseReason::NoMemory);
            freed += drain.held;
            if freed >= excess && !memory::is_short(&self.net.pools.pages) {
                return;
            }
        }
    }

    /// Whether a connection holds so much that others go without: a quarter of an equal share (pages are a quarter of the
    /// budget). Whoever is alone takes nothing from anybody, unless somebody was refused because of that.
    fn holds_its_share(&self, held: usize) -> bool {
        let connections = self.conns.table.len() + usize::from(self.conns.has_refused);
        connections > 1 && held.saturating_mul(4 * connections) >= self.conns.resources.budget.limit()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_go_and_no_more_than_it_takes() {
        let mut slow = Slow { least: 0, held: [0; _] };
        assert_eq!(slow.least_to_shed(1), None);
        for (seconds, held) in [(61, 1_000), (100, 2_000), (600, 3_000), (u64::MAX, 500)] {
            slow.add(Drain { seconds, held });
        }
        let rank = |seconds| Drain { seconds, held: 0 }.rank();
        for (excess, least) in
            [(1, u64::MAX), (500, u64::MAX), (501, 600), (3_500, 600), (3_501, 100), (1 << 40, 61)]
        {
            assert_eq!(slow.least_to_shed(excess), Some(rank(least)), "{excess}");
        }
        assert_eq!(
            slow.least_to_shed(0),
            Some(rank(u64::MAX)),
            "pages or room for newcomers may be short, too"
        );
    }
}
