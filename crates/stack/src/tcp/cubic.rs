//! CUBIC congestion control (RFC 9438) in integer arithmetic.
//!
//! ```text
//! W_cubic(t) = C (t - K)³ + W_max          t: time since congestion avoidance began; C = 0.4 segments per s³
//! K = cube root of ((W_max - cwnd_epoch) / C)
//! W_est                                     what Reno would have, with alpha = 3 (1 - beta) / (1 + beta) = 9/17
//! ```
//!
//! Times are counted in ticks of 2^-20 s, sizes in bytes. `cube_root` is exact but for the fraction of a tick (less than
//! 1 µs); `W_cubic` is exact but for that and the fraction of a byte. Numbers stay in range for windows up to
//! [`MAX_WINDOW`] and segments up to 64 KiB: distances from K count up to 512 s ([`MOST_TICKS`]), so cubes stay
//! below 2^87, and 2^104 with a segment size; the curve is cut at [`MAX_WINDOW`] long before. The additions to the window
//! carry their remainders, so nothing is lost by rounding.
//!
//! What the application leaves unused does not count as time (section 5.8): the beginning of the epoch moves with it.

use super::congestion::{self, AckEvent, Calm, CongestionControl, MAX_WINDOW, Saved};
use super::slow_start::SlowStart;
use core::time::Duration;
use linerate_wire::units::{Instant, nanos};

/// Beta: what remains of the window after a loss (section 4.6).
const BETA: Ratio = Ratio(7, 10);
/// What remains of W_max when the window had not reached it again: (1 + beta) / 2 (section 4.7).
const FAST_CONVERGENCE: Ratio = Ratio(17, 20);
/// Growth of the Reno estimate below the window before the last loss, in segments per window (section 4.3).
const ALPHA: Ratio = Ratio(9, 17);
/// C in segments per s³ (section 5.1).
const C: Ratio = Ratio(2, 5);

/// Ticks in a second, as a power of two.
const TICK_BITS: u32 = 20;
/// The longest distance from K that counts: 512 s.
const MOST_TICKS: u64 = 512 << TICK_BITS;

/// A fraction.
#[derive(Clone, Copy)]
struct Ratio(u64, u64);

impl Ratio {
    /// The part of `bytes`, rounded down.
    fn of(self, bytes: u64) -> u64 {
        bytes * self.0 / self.1
    }
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Epoch {
    began: Instant,
    /// K in ticks.
    k: u64,
    /// Where the curve is flat, in bytes.
    origin: u64,
    /// W_est in bytes.
    reno: u64,
    /// Remainder of W_est's growth.
    reno_carry: u64,
    /// Remainder of the window's growth.
    carry: u64,
}

/// What an undo restores (section 4.9).
#[derive(Clone, Copy, Debug)]
struct Before {
    saved: Saved,
    w_max: Option<u64>,
    prior: u64,
    epoch: Option<Epoch>,
}

/// The algorithm's variables.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    mss: u64,
    window: u64,
    threshold: Option<u64>,
    initial: u64,
    slow_start: SlowStart,
    /// The window at the last loss, after fast convergence. `None`: the next stage starts where it is, on the flat part.
    w_max: Option<u64>,
    /// The window at the last loss (cwnd_prior).
    prior: u64,
    epoch: Option<Epoch>,
    last_ack: Instant,
    before: Option<Before>,
}

impl Cubic {
    /// In slow start, with the initial window of RFC 6928 for `initial_segments` = 10.
    pub fn new(mss: u64, initial_segments: u8) -> Self {
        let initial = congestion::initial_window(mss, initial_segments);
        Cubic {
            mss,
            window: initial,
            threshold: None,
            initial,
            slow_start: SlowStart::default(),
            w_max: None,
            prior: initial,
            epoch: None,
            last_ack: Instant::ZERO,
            before: None,
        }
    }

    /// See [`Calm`]. When the last acknowledgement came counts only for a stage of congestion avoidance.
    pub fn calm(&self) -> Option<Calm> {
        let is_calm = self.threshold.is_none()
            && self.w_max.is_none()
            && self.prior == self.initial
            && self.epoch.is_none()
            && self.before.is_none();
        if is_calm { Calm::new(self.mss, self.window, self.initial, &self.slow_start) } else { None }
    }

    /// The same again.
    pub fn after(calm: &Calm) -> Self {
        Cubic {
            mss: calm.mss.into(),
            window: calm.window.into(),
            threshold: None,
            initial: calm.initial.into(),
            slow_start: SlowStart::after(calm.last_round),
            w_max: None,
            prior: calm.initial.into(),
            epoch: None,
            last_ack: Instant::ZERO,
            before: None,
        }
    }

    /// Grows in slow start; returns the bytes that are left for congestion avoidance.
    fn grow_in_slow_start(&mut self, ack: &AckEvent) -> u64 {
        let step = self.slow_start.on_ack(ack, self.mss, self.threshold.is_none());
        let room = self.threshold.unwrap_or(MAX_WINDOW).saturating_sub(self.window);
        self.window += step.growth.min(room);
        if step.is_over {
            // Section 4.10: without a loss there is no W_max.
            self.threshold = Some(self.window);
            self.w_max = None;
        }
        step.growth.saturating_sub(room)
    }

    /// Congestion avoidance (sections 4.2 to 4.5).
    fn grow(&mut self, now: Instant, ack: &AckEvent, arrived: u64) {
        if arrived == 0 {
            return;
        }
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now),
        };
        self.grow_reno(&mut epoch, arrived);
        let elapsed = ticks(now - epoch.began);
        let window = self.window;
        if epoch.at(elapsed, self.mss) < epoch.reno {
            self.window = window.max(epoch.reno);
        } else {
            let ahead = elapsed.saturating_add(ticks(ack.smoothed_rtt.unwrap_or_default()));
            let target = epoch.at(ahead, self.mss).clamp(window, window + window / 2);
            let credit = (target - window) * arrived.min(window) + epoch.carry;
            self.window += credit / window;
            epoch.carry = credit % window;
        }
        self.epoch = Some(epoch);
    }

    fn begin_epoch(&mut self, now: Instant) -> Epoch {
        let origin = (*self.w_max.get_or_insert(self.window)).max(self.window);
        let k = curve_ticks(origin - self.window, self.mss);
        Epoch { began: now, k, origin, reno: self.window, reno_carry: 0, carry: 0 }
    }

    /// Section 4.3: alpha segments per window that arrives; one, when the window is where it was before the loss.
    fn grow_reno(&self, epoch: &mut Epoch, arrived: u64) {
        let Ratio(up, down) = if epoch.reno >= self.prior { Ratio(1, 1) } else { ALPHA };
        let credit = arrived.min(self.window) * self.mss * up + epoch.reno_carry;
        let whole = self.window * down;
        epoch.reno = (epoch.reno + credit / whole).min(MAX_WINDOW);
        epoch.reno_carry = credit % whole;
    }

    /// The threshold for `flight` bytes in flight, and what is remembered of this loss (sections 4.6 and 4.7).
    fn reduce(&mut self, flight: u64) {
        let reached = self.w_max.is_none_or(|w_max| self.window >= w_max);
        self.w_max = Some(if reached { self.window } else { FAST_CONVERGENCE.of(self.window) });
        self.prior = self.window;
        self.threshold = Some(BETA.of(flight.min(MAX_WINDOW)).max(2 * self.mss));
        self.epoch = None;
    }

    /// Time in which the window was not used does not count (section 5.8).
    fn pause(&mut self, now: Instant) {
        let since = self.last_ack;
        if let Some(epoch) = &mut self.epoch {
            epoch.began += now - since.max(epoch.began);
        }
    }
}

impl Epoch {
    /// W_cubic after `elapsed` ticks, in bytes, at most [`MAX_WINDOW`].
    fn at(&self, elapsed: u64, mss: u64) -> u64 {
        let distance = curve_bytes(elapsed.abs_diff(self.k), mss);
        let window = if elapsed < self.k {
            self.origin.saturating_sub(distance)
        } else {
            self.origin.saturating_add(distance)
        };
        window.min(MAX_WINDOW)
    }
}

/// `duration` in ticks, at most twice [`MOST_TICKS`].
fn ticks(duration: Duration) -> u64 {
    let most_ns = 2 * (MOST_TICKS >> TICK_BITS) * 1_000_000_000;
    (nanos(duration).min(most_ns) << TICK_BITS) / 1_000_000_000
}

/// C t³ in bytes, for `t` in ticks.
fn curve_bytes(t: u64, mss: u64) -> u64 {
    let t = u128::from(t.min(MOST_TICKS));
    let scaled = (t * t * t * u128::from(mss)) >> (3 * TICK_BITS - 4);
    // Four bits of fraction are left until the division.
    let Ratio(up, down) = C;
    ((scaled as u64).saturating_mul(up) / down) >> 4
}

/// The cube root of `bytes` / C, in ticks.
fn curve_ticks(bytes: u64, mss: u64) -> u64 {
    let Ratio(up, down) = C;
    let segments = (u128::from(bytes.min(MAX_WINDOW)) * u128::from(down)) << (3 * TICK_BITS);
    cube_root(segments / (u128::from(mss.max(1)) * u128::from(up))).min(MOST_TICKS)
}

/// The cube root, rounded down, bit by bit; of values below 2^96.
fn cube_root(value: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..32).rev() {
        let next = root | 1 << bit;
        if next * next * next <= value {
            root = next;
        }
    }
    root as u64
}

impl CongestionControl for Cubic {
    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.threshold
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent) {
        if congestion::is_used(self.window, ack.pipe) {
            let arrived = if self.is_in_slow_start() { self.grow_in_slow_start(ack) } else { ack.delivered };
            self.grow(now, ack, arrived);
            self.window = self.window.min(MAX_WINDOW);
        } else {
            self.pause(now);
        }
        self.last_ack = now;
    }

    fn save(&mut self) {
        let saved = Saved { window: self.window, threshold: self.threshold };
        self.before = Some(Before { saved, w_max: self.w_max, prior: self.prior, epoch: self.epoch });
    }

    fn on_loss(&mut self, _now: Instant, flight: u64) {
        // Section 4.6 lets the window count instead of the flight, as it does not grow while it is not used. A flight
        // that is small because a recovery has just ended says nothing about the path.
        self.reduce(flight.max(self.window));
        self.window = self.threshold.unwrap_or(self.window);
    }

    fn on_recovered(&mut self, _now: Instant, pipe: u64) {
        // As NewReno: no greater burst than an initial window.
        let threshold = self.threshold.unwrap_or(self.window);
        self.window = threshold.min(pipe + self.initial).max(2 * self.mss);
    }

    fn on_timeout(&mut self, _now: Instant, flight: u64, first: bool) {
        if first {
            // Section 4.8 refers to 4.6, so the window counts here too: the flight of a short tail says nothing of the path.
            self.reduce(flight.max(self.window));
            // Section 4.8: the stage after a timeout starts on the flat part.
            self.w_max = None;
        }
        self.epoch = None;
        self.window = self.mss;
        self.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _now: Instant, pipe: u64) {
        let Some(before) = self.before.take() else { return };
        (self.window, self.threshold) = before.saved.restored(self.window, pipe, self.initial);
        (self.w_max, self.prior, self.epoch) = (before.w_max, before.prior, before.epoch);
    }

    fn on_congestion_experienced(&mut self, now: Instant, flight: u64) {
        self.before = None;
        self.on_loss(now, flight);
    }

    fn on_idle(&mut self, now: Instant) {
        self.pause(now);
        self.last_ack = now;
        self.threshold = congestion::threshold_after_idle(self.threshold, self.window);
        self.window = self.window.min(self.initial);
    }

    fn on_segment_size(&mut self, mss: u64) {
        self.mss = mss;
        self.window = self.window.max(mss);
        // K and the estimate count in segments.
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests;
