//! What follows when a connection has changed: events, accept queues, timers, and its end.

use crate::conns::{About, Brink, Conn, Conns, Stage, unpack};
use crate::dormancy::Awake;
use crate::ready::{ReadyQueue, Slot};
use crate::stack::Stack;
use crate::tcp::{Connection, State};
use crate::tcp_input::mtu_for;
use crate::timers::{Timer, Timers};
use core::time::Duration;
use linerate_nic::TxToken;
use linerate_transport::{CloseReason, Ready};
use linerate_wire::units::Instant;

/// When to look for a next hop again that nobody answers for.
const RETRY: Duration = Duration::from_secs(1);
/// Until a timer is looked at again that waits for what the device holds.
const BACKLOG_LOOK: Duration = Duration::from_millis(1);

impl Stack {
    /// Brings everything around a connection up to date. To be called after every call that may change it.
    pub(crate) fn settle(&mut self, slot: u32) {
        if !self.settle_calm(slot) {
            self.settle_any(slot);
        }
    }

    /// The same for a connection that was open before and is, of which nothing but events and deadlines can have changed.
    /// False where it is not so; nothing is done then.
    #[inline]
    fn settle_calm(&mut self, slot: u32) -> bool {
        let Conns { table, link_full, .. } = &mut self.conns;
        let Some(Conn { tcp, about }) = table.at_mut(slot) else { return false };
        let Some(tcp) = tcp.connection_mut() else { return false };
        about.is_touched = true;
        !*link_full && settle_calm(slot, tcp, about, &mut self.ready, &mut self.net.timers)
    }

    fn settle_any(&mut self, slot: u32) {
        let link_full = self.conns.link_full;
        let mut told = None;
        let Some(mut conn) = self.conns.awake(slot) else { return };
        let ready = conn.tcp.poll_ready();
        let state = conn.tcp.tcp_state();
        if link_full {
            conn.tcp.handle_link_full(self.net.now);
        }
        if let Some(tally) = conn.tcp.take_tally() {
            self.net.counters.count_tally(&tally);
        }
        if let Some(mss) = conn.tcp.poll_path_mss() {
            let remote = conn.tcp.remote().ip();
            let mtu = mtu_for(remote, mss);
            let is_lower = self.net.paths.lower(remote, mtu, self.net.now);
            self.net.counters.path_mtu_lowered += u64::from(is_lower);
            told = is_lower.then_some((remote, mtu));
        }
        match conn.stage {
            Stage::Owned => self.ready.raise(Slot::Conn(slot), ready),
            Stage::HalfOpen(_) | Stage::Waiting(_) => conn.pending |= ready,
            Stage::Orphan => {}
        }
        let is_new = !conn.is_counted && state.is_synchronized();
        conn.is_counted |= is_new;
        let is_finished = conn.tcp.is_finished();
        let reads = conn.tcp.next_file_read().is_some();
        let retry_at = conn.retry_at;
        let waits_until = conn.tcp.time_wait_end();
        let begins = self.net.now + conn.tcp.config().time_wait;
        match waits_until {
            // What was due before is not any more.
            Some(_) => self.net.timers.set(Timer::Conn(slot), deadline(own_timeout(conn.tcp), retry_at)),
            None => arm(&mut self.net.timers, slot, conn.tcp, retry_at),
        }
        if let Some((remote, mtu)) = told {
            self.tell_of_path(remote, mtu, false);
        }
        if is_new {
            self.net.counters.tcp_established += 1;
            self.conns.leave(Brink::HalfOpen, slot);
            self.end_early(slot, true);
            self.offer(slot);
        }
        if is_finished {
            self.finish(slot);
            return;
        }
        if reads {
            self.conns.reading.push(slot);
        }
        if let Some(end) = waits_until {
            self.wait_out(slot, end, end == begins);
        }
    }

    /// A segment was taken on a connection. What follows may wait for the next one if it is open, and open before: then
    /// nothing follows but its events, in the order in which they came, and its timer.
    pub(crate) fn settle_later(&mut self, slot: u32, is_steady: bool) {
        if is_steady && self.conns.unsettled == Some(slot) {
            return;
        }
        self.settle_last();
        if is_steady {
            self.conns.unsettled = Some(slot);
        } else {
            self.settle(slot);
        }
    }

    /// Does what was left for later. Before anything but another segment is taken in, and at the end of a batch.
    #[inline]
    pub(crate) fn settle_last(&mut self) {
        if let Some(slot) = self.conns.unsettled.take() {
            self.settle(slot);
        }
    }

    /// Ends a row of reports of the device on one connection: nothing but its timers has changed.
    #[inline]
    pub(crate) fn arm_last(&mut self) {
        if let Some(slot) = self.conns.unarmed.take() {
            self.arm_after_reports(slot);
        }
    }

    #[inline(never)]
    fn arm_after_reports(&mut self, slot: u32) {
        if let Some(conn) = self.conns.awake(slot) {
            conn.tcp.reports_taken(self.net.now);
            arm(&mut self.net.timers, slot, conn.tcp, conn.retry_at);
        }
    }

    /// Received data was consumed: nothing follows but an acknowledgement, if the connection `owes` one, and a part of a file
    /// that it `reads`, if there is memory for it now.
    #[inline]
    pub(crate) fn settle_consumed(&mut self, slot: u32, owes: bool, reads: bool) {
        if owes {
            self.conns.urgent.push(slot);
        }
        if self.conns.link_full {
            self.settle(slot);
        } else if reads {
            self.conns.reading.push(slot);
        }
    }

    /// Sets the timer of a connection to its earliest deadline.
    fn arm(&mut self, slot: u32) {
        let Some(conn) = self.conns.table.at(slot) else { return };
        let own = conn.tcp.poll_timeout().filter(|at| conn.tcp.time_wait_end() != Some(*at));
        self.net.timers.set(Timer::Conn(slot), deadline(own, conn.retry_at));
    }

    /// A listener's connection may be accepted.
    pub(crate) fn offer(&mut self, slot: u32) {
        let Some(conn) = self.conns.table.at_mut(slot) else { return };
        let Stage::HalfOpen(listener) = conn.stage else { return };
        conn.stage = Stage::Waiting(listener);
        let id = conn.id;
        if let Some(listening) = self.conns.listener_mut(listener) {
            listening.establish(id);
            self.ready.raise(Slot::Listener(listener.index()), Ready::READABLE);
        }
    }

    /// A connection is over: nothing leads to it any more. Its slot is free unless its owner still has the id.
    pub(crate) fn finish(&mut self, slot: u32) {
        let Some(conn) = self.conns.awake(slot) else { return };
        let ready = conn.tcp.poll_ready();
        let (stage, id) = (conn.stage, conn.id);
        self.end_early(slot, false);
        self.detach(slot);
        match stage {
            Stage::Owned => {
                self.ready.raise(Slot::Conn(slot), ready);
                return;
            }
            Stage::HalfOpen(listener) => {
                if let Some(listener) = self.conns.listener_mut(listener) {
                    listener.fail();
                }
            }
            Stage::Waiting(listener) => {
                if let Some(listener) = self.conns.listener_mut(listener) {
                    listener.forget(id);
                }
            }
            Stage::Orphan => {}
        }
        self.release(slot);
    }

    /// Takes a connection out of every table but the slots.
    fn detach(&mut self, slot: u32) {
        self.conns.detach(slot);
        self.conns.leave_any(slot);
        self.net.waiting.leave(slot);
        self.net.timers.set(Timer::Conn(slot), None);
    }

    /// Forgets a connection and frees its slot and memory.
    pub(crate) fn release(&mut self, slot: u32) {
        self.detach(slot);
        self.ready.clear(Slot::Conn(slot));
        self.conns.remove(slot);
    }

    /// The timer of a connection fired, maybe early.
    pub(crate) fn run_conn(&mut self, slot: u32) {
        let now = self.net.now;
        let Some(conn) = self.conns.table.at_mut(slot) else { return };
        let is_due = |at| at <= now;
        let may_wait = || conn.tcp.connection().is_some_and(|tcp| tcp.may_listen_first(now));
        if self.net.has_backlog && !is_due(conn.retry_at) && may_wait() {
            return self.net.timers.set(Timer::Conn(slot), Some(now + BACKLOG_LOOK));
        }
        if is_due(conn.retry_at) {
            conn.retry_at = Instant::FAR_FUTURE;
            self.conns.sending.push(slot);
        }
        if conn.tcp.poll_timeout().is_some_and(is_due) {
            if let Some(conn) = self.conns.awake(slot) {
                conn.tcp.handle_timeout(now);
                self.conns.sending.push(slot);
            }
        } else if conn.tcp.is_asleep() {
            return self.arm(slot);
        }
        self.settle(slot);
    }

    /// The link is back: what a connection sent in vain is not waited for any longer.
    pub(crate) fn retransmit_soon(&mut self, slot: u32) {
        let is_waiting = |conn: &Conn| conn.tcp.connection().is_some_and(Connection::is_backed_off);
        if self.conns.table.at(slot).is_some_and(is_waiting)
            && let Some(conn) = self.conns.awake(slot)
        {
            conn.tcp.retransmit_soon(self.net.now);
            self.arm(slot);
        }
    }

    /// The neighbour in this slot is given up, and may answer from elsewhere: what was sent there in vain is not waited for any
    /// longer.
    pub(crate) fn retransmit_over(&mut self, neighbor: u32) {
        for slot in 0..self.net.config.max_connections as u32 {
            let uses = |conn: &Conn| conn.neighbor.is_some_and(|known| known.slot == neighbor);
            if self.conns.table.at(slot).is_some_and(uses) {
                self.retransmit_soon(slot);
            }
        }
    }

    /// Nobody answers for a connection's next hop.
    pub(crate) fn handle_unreachable(&mut self, slot: u32) {
        let now = self.net.now;
        let Some(mut conn) = self.conns.awake(slot) else { return };
        conn.neighbor = None;
        if conn.routes != self.net.routes.version() && self.net.look_for_route(&mut conn) {
            conn.forget_unreachable();
            conn.retry_at = now;
            return self.settle(slot);
        }
        conn.unreachable_since = conn.unreachable_since.min(now);
        let since = conn.unreachable_since;
        let is_opening = matches!(conn.tcp.tcp_state(), State::SynSent | State::SynReceived | State::Closed);
        if is_opening || now - since >= conn.tcp.config().socket.user_timeout {
            conn.tcp.abort(now, CloseReason::Unreachable);
            // A reset could not be delivered either.
            self.finish(slot);
            return;
        }
        // The neighbour is asked for again.
        conn.retry_at = now + RETRY;
        self.settle(slot);
    }

    /// The device has sent a packet of a connection.
    pub(crate) fn complete(&mut self, token: TxToken) {
        self.net.counters.completions += 1;
        let Some((slot, generation, tag)) = unpack(token) else { return };
        let now = self.net.now;
        let Some(conn) = self.conns.awake(slot) else { return };
        if conn.id.generation() & 0x7ff != generation {
            return;
        }
        let waited = conn.tcp.waits_for_device();
        let has_left = conn.tcp.take_report(now, tag);
        if waited && !conn.tcp.waits_for_device() {
            if has_left {
                conn.tcp.reports_taken(now);
            }
            self.conns.sending.push(slot);
            self.settle(slot);
        } else if has_left && self.conns.unarmed != Some(slot) {
            // Nothing but its timers has changed.
            self.arm_last();
            self.conns.unarmed = Some(slot);
        }
    }
}

/// Passes on what there is to tell of a connection, if nothing but events and deadlines can have changed. False where it is not so;
/// nothing is done then.
#[inline]
pub(crate) fn settle_calm(
    slot: u32,
    tcp: &mut Connection,
    about: &About,
    ready: &mut ReadyQueue,
    timers: &mut Timers,
) -> bool {
    let is_calm = tcp.is_calm() && about.is_counted && about.stage == Stage::Owned;
    if is_calm {
        ready.raise(Slot::Conn(slot), tcp.poll_ready());
        arm(timers, slot, tcp, about.retry_at);
    }
    is_calm
}

/// A connection that was settled before has sent its acknowledgement. Nothing is to be told of that, and deadlines have moved in one
/// direction only: nothing follows unless it was the last.
#[inline]
pub(crate) fn settle_bare_ack(slot: u32, conn: &mut Awake<'_>, timers: &mut Timers) {
    if conn.tcp.not_due_before().is_none() {
        let retry_at = conn.retry_at;
        arm(timers, slot, conn.tcp, retry_at);
    }
}

/// Sets the timer of a connection that is awake to its earliest deadline, which is not looked for where it is known to be no
/// earlier than the timer.
#[inline]
pub(crate) fn arm(timers: &mut Timers, slot: u32, tcp: &mut Connection, retry_at: Instant) {
    let timer = Timer::Conn(slot);
    if !timers.is_set_for(timer, deadline(tcp.not_due_before(), retry_at)) {
        timers.set(timer, deadline(own_timeout(tcp), retry_at));
    }
}

/// The earliest deadline of a connection, but for the end of TIME-WAIT, for which there is [one timer](Timer::TimeWait).
fn own_timeout(tcp: &mut Connection) -> Option<Instant> {
    let first = tcp.find_timeout();
    first.filter(|_| first != tcp.time_wait_end())
}

/// The earlier of the deadline of a connection, if it has one, and the time to look for its next hop again, if any.
fn deadline(deadline: Option<Instant>, retry_at: Instant) -> Option<Instant> {
    let at = deadline.unwrap_or(Instant::FAR_FUTURE).min(retry_at);
    (at != Instant::FAR_FUTURE).then_some(at)
}
