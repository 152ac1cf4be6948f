//! NewReno congestion control (RFC 5681, RFC 6582, RFC 6928), counting bytes that newly arrived (RFC 3465).

use super::congestion::{self, AckEvent, Calm, CongestionControl, MAX_WINDOW, Saved};
use super::slow_start::SlowStart;
use linerate_wire::units::Instant;

/// The algorithm's variables.
#[derive(Clone, Debug)]
pub(super) struct NewReno {
    mss: u64,
    window: u64,
    threshold: Option<u64>,
    /// Bytes that arrived since the window last grew in congestion avoidance.
    arrived: u64,
    initial: u64,
    slow_start: SlowStart,
    saved: Option<Saved>,
}

impl NewReno {
    /// In slow start, with the initial window of RFC 6928 for `initial_segments` = 10.
    pub fn new(mss: u64, initial_segments: u8) -> Self {
        let initial = congestion::initial_window(mss, initial_segments);
        let slow_start = SlowStart::default();
        NewReno { mss, window: initial, threshold: None, arrived: 0, initial, slow_start, saved: None }
    }

    /// See [`Calm`].
    pub fn calm(&self) -> Option<Calm> {
        let is_calm = self.threshold.is_none() && self.arrived == 0 && self.saved.is_none();
        if is_calm { Calm::new(self.mss, self.window, self.initial, &self.slow_start) } else { None }
    }

    /// The same again.
    pub fn after(calm: &Calm) -> Self {
        NewReno {
            mss: calm.mss.into(),
            window: calm.window.into(),
            threshold: None,
            arrived: 0,
            initial: calm.initial.into(),
            slow_start: SlowStart::after(calm.last_round),
            saved: None,
        }
    }

    fn reduced(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.mss)
    }

    /// Grows in slow start; returns the bytes that are left for congestion avoidance.
    fn grow_in_slow_start(&mut self, ack: &AckEvent) -> u64 {
        let step = self.slow_start.on_ack(ack, self.mss, self.threshold.is_none());
        let room = self.threshold.unwrap_or(MAX_WINDOW).saturating_sub(self.window);
        self.window += step.growth.min(room);
        if step.is_over {
            self.threshold = Some(self.window);
        }
        step.growth.saturating_sub(room)
    }
}

impl CongestionControl for NewReno {
    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.threshold
    }

    fn on_ack(&mut self, _now: Instant, ack: &AckEvent) {
        if !congestion::is_used(self.window, ack.pipe) {
            return;
        }
        self.arrived += if self.is_in_slow_start() { self.grow_in_slow_start(ack) } else { ack.delivered };
        if self.arrived >= self.window {
            self.arrived -= self.window;
            self.window += self.mss;
        }
        self.window = self.window.min(MAX_WINDOW);
    }

    fn save(&mut self) {
        self.saved = Some(Saved { window: self.window, threshold: self.threshold });
    }

    fn on_loss(&mut self, _now: Instant, flight: u64) {
        let threshold = self.reduced(flight);
        self.threshold = Some(threshold);
        self.window = threshold;
        self.arrived = 0;
    }

    fn on_recovered(&mut self, _now: Instant, pipe: u64) {
        // RFC 6582 section 3.2 step 3: the threshold, with no greater burst than an initial window.
        let threshold = self.threshold.unwrap_or(self.window);
        self.window = threshold.min(pipe + self.initial).max(2 * self.mss);
        self.arrived = 0;
    }

    fn on_timeout(&mut self, _now: Instant, flight: u64, first: bool) {
        if first {
            self.threshold = Some(self.reduced(flight));
        }
        self.window = self.mss;
        self.arrived = 0;
        self.slow_start.on_timeout();
    }

    fn on_undo(&mut self, _now: Instant, pipe: u64) {
        if let Some(saved) = self.saved.take() {
            (self.window, self.threshold) = saved.restored(self.window, pipe, self.initial);
            self.arrived = 0;
        }
    }

    fn on_congestion_experienced(&mut self, now: Instant, flight: u64) {
        self.saved = None;
        self.on_loss(now, flight);
    }

    fn on_idle(&mut self, _now: Instant) {
        self.threshold = congestion::threshold_after_idle(self.threshold, self.window);
        self.window = self.window.min(self.initial);
    }

    fn on_segment_size(&mut self, mss: u64) {
        self.mss = mss;
        self.window = self.window.max(mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn ack(delivered: u64, pipe: u64) -> AckEvent {
        AckEvent { una: 0, nxt: 0, delivered, pipe, rtt_ns: None, smoothed_rtt: None, paced: false }
    }

    fn grow_to_100_000(reno: &mut NewReno) {
        reno.on_ack(NOW, &ack(50_000, 10_000));
        reno.on_ack(NOW, &ack(40_000, 60_000));
        assert_eq!(reno.window(), 100_000);
    }

    #[test]
    fn initial_window_is_that_of_rfc_6928() {
        for (mss, window) in [(1_460, 14_600), (536, 5_360), (8_960, 17_920), (2_000, 14_600)] {
            assert_eq!(NewReno::new(mss, 10).window(), window, "mss {mss}");
        }
        assert_eq!(NewReno::new(1_460, 1).window(), 1_460);
    }

    #[test]
    fn slow_start_doubles_per_round_trip_then_adds_one_segment() {
        let mut reno = NewReno::new(1_000, 10);
        reno.on_ack(NOW, &ack(10_000, 10_000));
        assert_eq!(reno.window(), 20_000);
        reno.on_loss(NOW, 20_000);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (10_000, Some(10_000)));
        for _ in 0..10 {
            reno.on_ack(NOW, &ack(1_000, 10_000));
        }
        assert_eq!(reno.window(), 11_000);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut reno = NewReno::new(1_000, 10);
        reno.on_ack(NOW, &ack(1_000, 5_000));
        assert_eq!(reno.window(), 10_000, "half of it");
        reno.on_ack(NOW, &ack(1_000, 5_001));
        assert_eq!(reno.window(), 11_000);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_half_the_flight_as_threshold() {
        let mut reno = NewReno::new(1_000, 10);
        reno.on_timeout(NOW, 10_000, true);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (1_000, Some(5_000)));
        reno.on_timeout(NOW, 1_000, false);
        assert_eq!(reno.slow_start_threshold(), Some(5_000), "not halved again for the same segment");
        // One segment per acknowledgement until all that was outstanding is acknowledged (RFC 3465 section 2.3).
        let steps = [(1, 1_000, 2_000), (3, 2_000, 3_000), (10, 3_000, 5_000), (15, 5_000, 6_000)];
        for (una, delivered, window) in steps {
            reno.on_ack(NOW, &AckEvent { una, nxt: 10, ..ack(delivered, delivered) });
            assert_eq!(reno.window(), window);
        }
    }

    #[test]
    fn an_undo_restores_the_window_without_a_burst() {
        let mut reno = NewReno::new(1_000, 10);
        grow_to_100_000(&mut reno);
        reno.on_undo(NOW, 90_000);
        assert_eq!(reno.window(), 100_000, "nothing to undo");
        reno.save();
        reno.on_loss(NOW, 100_000);
        reno.on_undo(NOW, 95_000);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (100_000, None));
        reno.on_loss(NOW, 100_000);
        reno.save();
        reno.on_timeout(NOW, 50_000, true);
        reno.on_undo(NOW, 2_000);
        assert_eq!((reno.window(), reno.slow_start_threshold()), (12_000, Some(50_000)));
        reno.on_undo(NOW, 50_000);
        assert_eq!(reno.window(), 12_000, "undone once");
    }

    #[test]
    fn recovery_ends_without_a_burst_and_idleness_takes_the_window_back() {
        let mut reno = NewReno::new(1_000, 10);
        reno.on_loss(NOW, 100_000);
        reno.on_recovered(NOW, 3_000);
        assert_eq!(reno.window(), 13_000);
        let mut reno = NewReno::new(1_000, 10);
        grow_to_100_000(&mut reno);
        reno.on_idle(NOW);
        assert_eq!(reno.window(), 10_000);
    }
}
