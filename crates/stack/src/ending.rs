//! The end of a whole stack: what is still under way, and cutting it off.

use crate::conns::{Conn, Stage};
use crate::ready::Slot;
use crate::stack::Stack;
use crate::tcp::State;
use alloc::vec::Vec;
use linerate_transport::CloseReason;
use linerate_wire::units::Instant;

impl Stack {
    /// Connections that the stack must not be dropped under: they have data to deliver, or the end of it, or the peer's
    /// to take. Half-open ones, and those that only wait for the peer's FIN or for old segments to die out, are not
    /// among them.
    ///
    /// A walk over the table: for a program that is about to end.
    pub fn unfinished(&self) -> usize {
        self.conns.table.iter().filter(|(_, conn)| is_unfinished(conn)).count()
    }

    /// Resets all connections but those whose data and FIN the peer has, and returns how many of them were unfinished. The
    /// owners' ids are stale from now on. The resets are among the next packets of [`Stack::poll_transmit`].
    pub fn abort_all(&mut self, now: Instant) -> usize {
        self.set_now(now);
        let is_over = |conn: &Conn| matches!(conn.tcp.tcp_state(), State::FinWait2 | State::TimeWait);
        let slots: Vec<u32> =
            self.conns.table.iter().filter(|(_, conn)| !is_over(conn)).map(|(slot, _)| slot).collect();
        let mut cut_off = 0;
        for slot in slots {
            cut_off += usize::from(self.conns.table.at(slot).is_some_and(is_unfinished));
            let Some(mut conn) = self.conns.awake(slot) else { continue };
            conn.stage = Stage::Orphan;
            self.ready.clear(Slot::Conn(slot));
            conn.tcp.abort(now, CloseReason::Done);
            self.conns.sending.push(slot);
            self.settle(slot);
        }
        cut_off
    }
}

fn is_unfinished(conn: &Conn) -> bool {
    matches!(
        conn.tcp.tcp_state(),
        State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck
    )
}
