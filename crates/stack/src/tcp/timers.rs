//! The timers of a connection.

use core::fmt;
use linerate_wire::units::Instant;

/// Every timer that a connection has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Timer {
    /// Retransmission (RFC 6298). Runs from the moment the device sent the oldest unacknowledged segment.
    Retransmit,
    /// What arrived tells that something is lost unless it arrives by then (RFC 8985 section 6.2, RACK reordering timer).
    Reorder,
    /// A tail loss probe (RFC 8985 section 7, PTO).
    LossProbe,
    /// Probing a closed window, or sending what a small window holds (RFC 9293 sections 3.8.6.1 and 3.8.6.2.1).
    Persist,
    /// A delayed acknowledgement (RFC 9293 section 3.8.6.3).
    DelayedAck,
    /// The next keep-alive probe (RFC 9293 section 3.8.4).
    KeepAlive,
    /// No progress in sending (RFC 9293 section 3.8.3, RFC 5482).
    UserTimeout,
    /// The end of TIME-WAIT (RFC 9293 section 3.6.1).
    TimeWait,
    /// The end of waiting for the peer's FIN after `close`.
    FinWait2,
    /// The next piece of a connection whose sends are paced.
    Pace,
    /// The application was refused memory for sending, and shall try again.
    Memory,
}

const COUNT: usize = Timer::Memory as usize + 1;

/// The running timers of one connection.
#[derive(Clone)]
pub(super) struct Timers {
    /// `FAR_FUTURE` for those that do not run, so that the first is found without a branch for each.
    at: [Instant; COUNT],
    /// None of those that run is due before. Where one was stopped or moved, it may be earlier than need be.
    not_before: Instant,
    /// Those that run, a bit for each.
    running: u16,
}

/// Those that an acknowledgement which has come by then stops.
const LOSS: [Timer; 3] = [Timer::Retransmit, Timer::Reorder, Timer::LossProbe];

/// When they are due: the rest is known from that.
impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)
    }
}

impl Default for Timers {
    fn default() -> Self {
        Timers { at: [Instant::FAR_FUTURE; COUNT], not_before: Instant::FAR_FUTURE, running: 0 }
    }
}

impl Timers {
    /// Starts or moves a timer.
    pub fn set(&mut self, timer: Timer, at: Instant) {
        if at == Instant::FAR_FUTURE {
            return self.stop(timer);
        }
        self.at[timer as usize] = at;
        self.not_before = self.not_before.min(at);
        self.running |= 1 << timer as u16;
    }

    /// Starts a timer unless it runs.
    pub fn set_if_idle(&mut self, timer: Timer, at: Instant) {
        if !self.is_running(timer) {
            self.set(timer, at);
        }
    }

    /// Stops a timer.
    pub fn stop(&mut self, timer: Timer) {
        self.at[timer as usize] = Instant::FAR_FUTURE;
        self.running &= !(1 << timer as u16);
    }

    /// Stops all.
    pub fn clear(&mut self) {
        *self = Timers::default();
    }

    /// When a timer is due, if it runs.
    pub fn at(&self, timer: Timer) -> Option<Instant> {
        Some(self.at[timer as usize]).filter(|at| *at != Instant::FAR_FUTURE)
    }

    /// Whether a timer runs.
    pub fn is_running(&self, timer: Timer) -> bool {
        self.at[timer as usize] != Instant::FAR_FUTURE
    }

    /// Stops the timer and says so, if it has come due.
    pub fn expired(&mut self, timer: Timer, now: Instant) -> bool {
        let due = self.is_running(timer) && self.at[timer as usize] <= now;
        if due {
            self.stop(timer);
        }
        due
    }

    /// When those are due that may run while nothing happens, if no other does; `ending`: the one that ends the state.
    pub fn lasting(&self, ending: Timer) -> Option<[Instant; 3]> {
        let lasting = [Timer::KeepAlive, Timer::UserTimeout, ending].map(|timer| self.at[timer as usize]);
        let count = |timers: &[Instant]| timers.iter().filter(|at| **at != Instant::FAR_FUTURE).count();
        (count(&self.at) == count(&lasting)).then_some(lasting)
    }

    /// Timers of which only these run.
    pub fn with(lasting: [Instant; 3], ending: Timer) -> Timers {
        let mut timers = Timers::default();
        for (timer, at) in [Timer::KeepAlive, Timer::UserTimeout, ending].into_iter().zip(lasting) {
            timers.set(timer, at);
        }
        timers
    }

    /// A time before which none is due, if any runs: known without a look at each.
    pub fn not_before(&self) -> Option<Instant> {
        (self.running != 0).then_some(self.not_before)
    }

    /// As [`Timers::next`], which is known without a look from now on.
    pub fn find_next(&mut self) -> Option<Instant> {
        let next = self.next();
        self.not_before = next.unwrap_or(Instant::FAR_FUTURE);
        next
    }

    /// When the first of those was due that look for losses, if any of them is due and no other is.
    pub fn loss_due(&self, now: Instant) -> Option<Instant> {
        let first = LOSS.map(|timer| self.at[timer as usize]).into_iter().min()?;
        let is_due = |at: &&Instant| **at <= now;
        let due = |timers: &[Instant]| timers.iter().filter(is_due).count();
        let alone = due(&self.at) == due(&LOSS.map(|timer| self.at[timer as usize]));
        Some(first).filter(|first| *first <= now && alone)
    }

    /// When the first of them is due.
    pub fn next(&self) -> Option<Instant> {
        let first = self.at.iter().fold(Instant::FAR_FUTURE, |first, at| first.min(*at));
        Some(first).filter(|at| *at != Instant::FAR_FUTURE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_next_and_expires_once() {
        let mut timers = Timers::default();
        timers.set(Timer::Retransmit, Instant::from_millis(5));
        timers.set(Timer::FinWait2, Instant::from_millis(3));
        timers.set_if_idle(Timer::FinWait2, Instant::from_millis(1));
        assert_eq!(timers.next(), Some(Instant::from_millis(3)));
        assert!(!timers.expired(Timer::FinWait2, Instant::from_millis(2)));
        assert!(timers.expired(Timer::FinWait2, Instant::from_millis(3)));
        assert!(!timers.expired(Timer::FinWait2, Instant::from_millis(9)));
        assert_eq!(timers.next(), Some(Instant::from_millis(5)));
        timers.clear();
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn what_looks_for_losses_is_told_from_the_rest() {
        let at = Instant::from_millis;
        let mut timers = Timers::default();
        timers.set(Timer::UserTimeout, at(9));
        assert_eq!(timers.loss_due(at(8)), None);
        timers.set(Timer::LossProbe, at(5));
        timers.set(Timer::Retransmit, at(7));
        assert_eq!([4, 5, 8].map(|now| timers.loss_due(at(now))), [None, Some(at(5)), Some(at(5))]);
        assert_eq!(timers.loss_due(at(9)), None, "another one is due");
    }

    #[test]
    fn what_is_known_without_a_look_is_never_too_late() {
        let mut timers = Timers::default();
        let all = [Timer::Retransmit, Timer::DelayedAck, Timer::KeepAlive, Timer::Memory];
        let mut state = 7u32;
        for step in 0..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (timer, at) =
                (all[(state >> 30) as usize], Instant::from_millis(u64::from(state >> 20 & 0xff)));
            match state >> 12 & 7 {
                0 => timers.stop(timer),
                1 => timers.set(timer, Instant::FAR_FUTURE),
                2 => timers.set_if_idle(timer, at),
                3 => drop(timers.expired(timer, at)),
                4 if step % 10 == 0 => timers.clear(),
                5 => assert_eq!(timers.find_next(), timers.not_before()),
                _ => timers.set(timer, at),
            }
            assert_eq!(timers.not_before().is_some(), timers.next().is_some());
            assert!(timers.not_before() <= timers.next());
        }
    }
}
