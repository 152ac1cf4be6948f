//! The window: how far the peer may send, and the memory that is promised for it.

use super::super::budget::{DEAREST, MemoryBudget};
use super::super::shortcuts_are_off;
use super::{COMPACT_BELOW, Receiver};
use core::ops::RangeInclusive;

/// The memory that data takes is reckoned in this many parts of a byte.
pub(super) const COST_ONE: usize = 256;

/// Least and most memory that a byte of data is reckoned to take: a peer that sends super-segments may go over to single
/// ones.
const COSTS: RangeInclusive<usize> = COST_ONE * 5 / 4..=COST_ONE * COMPACT_BELOW;
const _: () = assert!(DEAREST == COMPACT_BELOW, "or plenty of memory is not enough");

/// The first window of a connection is one part in this many of what nobody was promised, so that a crowd that comes at
/// once finds room.
const FIRST_SHARE: usize = 16;

/// Segments that every connection is granted which holds nothing: with fewer, a peer could wait for its own timer.
const LEAST_SEGMENTS: usize = 2;

/// The memory that these take, each in a buffer of its own.
pub(super) fn grant(budget: &MemoryBudget, mss: usize) -> usize {
    LEAST_SEGMENTS * mss * first_cost(budget, mss) / COST_ONE
}

/// The first window where nothing is held nor promised, in bytes; two small segments at least.
pub(in super::super) fn first_window_of(budget: &MemoryBudget) -> usize {
    (budget.capacity() / FIRST_SHARE * COST_ONE / *COSTS.end()).max(2 * 536)
}

/// The memory that a byte is reckoned to take before anything came: as if each segment had a buffer of its own.
pub(super) fn first_cost(budget: &MemoryBudget, mss: usize) -> usize {
    let cost = budget.buffer_size().map_or(COST_ONE * 3 / 2, |size| size * COST_ONE / mss.min(size.max(1)));
    cost.clamp(*COSTS.start(), *COSTS.end())
}

impl Receiver {
    /// The window field of the next segment. The promised edge moves by steps worth it only (RFC 9293 section
    /// 3.8.6.2.2).
    pub fn window_field(&mut self, in_syn: bool) -> u16 {
        // That of a SYN-ACK stands since the SYN came.
        let step = if in_syn { self.window() + 1 } else { self.step(self.mss) as u64 };
        let least = (self.edge + step).saturating_sub(self.next);
        // Where the buffer has no room for the step, the memory need not be reckoned with.
        if in_syn || shortcuts_are_off() || self.room() as u64 >= least {
            let wanted = if in_syn { self.first_window() } else { self.space() as u64 };
            if wanted >= least {
                self.edge = self.next + wanted;
            }
        }
        let scale = if in_syn { 0 } else { self.scale };
        let field = self.edge.saturating_sub(self.next()) >> scale;
        let field = u16::try_from(field).unwrap_or(u16::MAX);
        // What the field cannot express was not promised.
        self.edge = self.edge.min(self.next() + (u64::from(u16::MAX) << scale)).max(self.next);
        self.enter_promise();
        field
    }

    /// Bytes that the peer may still send, as promised.
    pub fn window(&self) -> u64 {
        self.edge.saturating_sub(self.next())
    }

    /// Whether the application read so much that the peer should hear of it: its window is less than half of the buffer
    /// and would at least double, by a step worth a segment.
    pub fn is_update_due(&self) -> bool {
        if self.finished {
            return false;
        }
        // What the window field cannot express is no news.
        let most = usize::from(u16::MAX) << self.scale;
        let (offered, half) = (self.window() as usize, self.tuner.limit().min(most) / 2);
        if offered >= half {
            return false;
        }
        // Where nothing is left to read, nothing else will tell a peer that waits for room for a whole segment.
        let waits = offered < self.mss && self.queued == 0;
        let worth = if waits { self.step(self.mss) } else { offered.max(self.step(2 * self.mss)) };
        let is_worth = |space: usize| space.min(most).saturating_sub(offered) >= worth;
        (shortcuts_are_off() || is_worth(self.room())) && is_worth(self.space())
    }

    /// Nothing came for a while: what was promised is honoured, and neither counted on nor raised beyond the least, so that
    /// idle connections do not keep memory from others. This lasts until data arrives in order or the application reads; what
    /// is sent meanwhile does not end it.
    pub fn rest(&mut self) {
        self.rests = true;
        self.enter_promise();
    }

    fn step(&self, mss: usize) -> usize {
        mss.min(self.tuner.limit() / 2).max(1)
    }

    /// Room for data from `next` on, as far as the limit goes.
    fn room(&self) -> usize {
        self.tuner.limit().saturating_sub(self.queued)
    }

    /// Room for data from `next` on: what the limit leaves, within what memory is there for.
    #[inline]
    fn space(&self) -> usize {
        // Nearly always there is more memory than the limit lets in, and how much need not be reckoned.
        if !self.rests && !shortcuts_are_off() && self.charge.budget().has_plenty(self.room()) {
            return self.room();
        }
        self.space_in_memory()
    }

    #[inline(never)]
    fn space_in_memory(&self) -> usize {
        let budget = self.charge.budget();
        // Where much is promised already, who has sent nothing yet, and may never, does not get more than in the beginning.
        let share = if self.bytes_received == 0 && budget.is_half_promised() {
            self.first_share()
        } else {
            budget.share(self.charge.bytes(), self.promise.bytes())
        };
        let window = if self.rests { 0 } else { share.saturating_mul(COST_ONE) / self.cost };
        // What waits lies within the window and has its memory.
        let window = window.saturating_add(self.waiting_len).max(self.least());
        self.room().min(window)
    }

    /// The window that is offered whatever memory says, in bytes: to whoever holds nothing.
    fn least(&self) -> usize {
        if self.queued == 0 { LEAST_SEGMENTS * self.mss } else { 0 }
    }

    /// The window of a SYN, in bytes.
    pub(super) fn first_window(&self) -> u64 {
        let window = (self.first_share().saturating_mul(COST_ONE) / self.cost).max(self.least());
        self.tuner.limit().min(window).min(usize::from(u16::MAX)) as u64
    }

    /// The memory that may be promised to whoever has sent nothing yet.
    fn first_share(&self) -> usize {
        self.charge.budget().unpromised().saturating_add(self.promise.bytes()) / FIRST_SHARE
    }

    /// Memory that `len` bytes of data are reckoned to take.
    fn memory_for(&self, len: u64) -> usize {
        // A window has 30 bits (RFC 7323 section 2.3), and a cost few.
        usize::try_from(len * self.cost as u64 / COST_ONE as u64).unwrap_or(usize::MAX)
    }

    /// The memory that is promised for the window, what waits in it included.
    fn quota(&self) -> usize {
        if self.rests { 0 } else { self.memory_for(self.window()) }
    }

    /// Whether memory was promised for `held` bytes more of what waits.
    pub(super) fn is_covered(&self, held: usize) -> bool {
        self.waiting_held + held <= self.quota().max(self.promise.grant())
    }

    /// Enters what may still come into the budget.
    pub(super) fn enter_promise(&mut self) {
        if self.finished || self.discard {
            return self.promise.end();
        }
        // What waits lies within the window.
        self.promise.set(self.quota().saturating_sub(self.waiting_held), self.charge.bytes());
    }

    /// `len` bytes of data took `held` bytes of memory.
    pub(super) fn note_cost(&mut self, held: usize, len: usize) {
        if let Some(cost) = (held * COST_ONE).checked_div(len) {
            let cost = cost.clamp(*COSTS.start(), *COSTS.end());
            // Rises faster than it falls.
            self.cost =
                if cost > self.cost { (self.cost + cost) / 2 } else { self.cost - (self.cost - cost) / 8 };
        }
    }
}
