//! Connections in TIME-WAIT (RFC 9293 section 3.6.1): the oldest give way when they are too many, and one timer serves them all.
//!
//! They wait equally long, so a list in the order in which they began to wait is in the order in which they end, and neither to begin
//! nor to end costs more when there are many. Only the first one's end is a deadline of the stack.

use crate::conns::{Brink, Stage};
use crate::stack::Stack;
use crate::timers::Timer;
use linerate_wire::units::Instant;

impl Stack {
    /// A connection has come into TIME-WAIT, or something else has happened to it there: it waits until `end`, and `is_new` where
    /// it begins to, or begins again.
    pub(crate) fn wait_out(&mut self, slot: u32, end: Instant, is_new: bool) {
        if is_new {
            self.conns.leave(Brink::TimeWait, slot);
        }
        self.conns.enter(Brink::TimeWait, slot);
        self.net.timers.set(Timer::TimeWait, Some(end));
        if self.conns.count(Brink::TimeWait) > self.net.config.max_time_wait
            && let Some(oldest) = self.conns.oldest(Brink::TimeWait)
        {
            self.net.counters.tcp_time_wait_recycled += 1;
            self.recycle(oldest);
        }
    }

    /// The first may have waited long enough.
    pub(crate) fn run_time_wait(&mut self) {
        for _ in 0..self.conns.count(Brink::TimeWait) {
            let Some((slot, end)) = self.first_to_end() else { break };
            if end > self.net.now {
                break;
            }
            self.end_time_wait(slot);
        }
        let next = self.first_to_end().map(|(_, end)| end);
        self.net.timers.set(Timer::TimeWait, next);
    }

    fn first_to_end(&self) -> Option<(u32, Instant)> {
        let slot = self.conns.first(Brink::TimeWait)?;
        let conn = self.conns.table.at(slot)?;
        Some((slot, conn.tcp.time_wait_end().unwrap_or(Instant::ZERO)))
    }

    /// Who has let go of it is not told, so that it need not wake up for that.
    fn end_time_wait(&mut self, slot: u32) {
        let now = self.net.now;
        if self.conns.table.at(slot).is_some_and(|conn| conn.stage == Stage::Orphan) {
            return self.release(slot);
        }
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.handle_timeout(now);
        }
        self.settle(slot);
    }
}
