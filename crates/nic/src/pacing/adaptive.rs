//! A timer of interrupt pacing that follows the load.

use super::{Pacing, PacingConfig};
use linerate_wire::units::Instant;

/// Settings of [`AdaptivePacing`], beside those of the pacing itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AdaptiveConfig {
    /// The shortest timer in ticks; 0 counts as 1. The longest is [`PacingConfig::timer_ticks`], also where that is less.
    pub min_ticks: u32,
    /// An interrupt for so many packets or fewer halves the timer.
    pub low: u32,
    /// An interrupt for so many packets or more lengthens the timer by a tick; goes before `low`.
    pub high: u32,
}

impl Default for AdaptiveConfig {
    /// Between two packets, which is a question and its answer, and 16.
    fn default() -> Self {
        AdaptiveConfig { min_ticks: 1, low: 2, high: 16 }
    }
}

/// [`Pacing`] whose timer grows a tick at a time while interrupts find many packets, and is halved by each that finds few:
/// under load fewer interrupts, and soon short waits again when there is little to do.
///
/// The configured timer stays the promise how long a packet waits. The order of calls is that of [`Pacing`].
#[derive(Clone, Debug)]
pub struct AdaptivePacing {
    pacing: Pacing,
    config: AdaptiveConfig,
    longest_ticks: u32,
}

impl AdaptivePacing {
    /// Pacing that starts at `now` with the shortest timer and no packet waiting.
    pub fn new(pacing: PacingConfig, config: AdaptiveConfig, now: Instant) -> Self {
        let mut this =
            AdaptivePacing { pacing: Pacing::new(pacing, now), config, longest_ticks: pacing.timer_ticks };
        this.set_ticks(0);
        this
    }

    /// Changes the settings; packets that wait are kept and judged by the new ones.
    pub fn set_config(&mut self, pacing: PacingConfig, config: AdaptiveConfig) {
        let ticks = self.ticks();
        self.pacing.set_config(pacing);
        (self.config, self.longest_ticks) = (config, pacing.timer_ticks);
        self.set_ticks(ticks);
    }

    /// The timer in force, in ticks.
    pub fn ticks(&self) -> u32 {
        self.pacing.config().timer_ticks
    }

    /// The pacing with the timer in force, to ask it what it is asked.
    pub fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// `count` packets have arrived.
    pub fn handle_packet(&mut self, now: Instant, count: u32) {
        self.pacing.handle_packet(now, count);
    }

    /// The interrupt was taken, or the queue was polled. With no packet waiting that says nothing about the load.
    pub fn handle_interrupt_taken(&mut self, now: Instant) {
        let (count, ticks) = (self.pacing.pending(), self.ticks());
        self.pacing.handle_interrupt_taken(now);
        if count == 0 {
            return;
        }
        if count >= u64::from(self.config.high) {
            self.set_ticks(ticks.saturating_add(1));
        } else if count <= u64::from(self.config.low) {
            self.set_ticks(ticks / 2);
        }
    }

    fn set_ticks(&mut self, ticks: u32) {
        let timer_ticks = ticks.max(self.config.min_ticks).max(1).min(self.longest_ticks);
        self.pacing.set_config(PacingConfig { timer_ticks, ..self.pacing.config() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacingMode;
    use proptest::prelude::*;

    const PACING: PacingConfig = PacingConfig {
        mode: PacingMode::FirstNewPacket,
        timer_ticks: 8,
        tick_ns: PacingConfig::DEFAULT_TICK_NS,
        threshold: 1000,
    };

    /// Takes an interrupt for each number of packets; the timer after each.
    fn timers(pacing: &mut AdaptivePacing, counts: &[u32]) -> alloc::vec::Vec<u32> {
        let take = |count: &u32| {
            pacing.handle_packet(Instant::ZERO, *count);
            pacing.handle_interrupt_taken(Instant::ZERO);
            pacing.ticks()
        };
        counts.iter().map(take).collect()
    }

    #[test]
    fn it_grows_by_ticks_and_shrinks_by_halves_between_its_bounds() {
        let mut pacing = AdaptivePacing::new(PACING, AdaptiveConfig::default(), Instant::ZERO);
        assert_eq!(pacing.ticks(), 1);
        assert_eq!(timers(&mut pacing, &[16, 50, 15, 3, 16, 0]), [2, 3, 3, 3, 4, 4]);
        assert_eq!(timers(&mut pacing, &[16, 16, 16, 16, 16]), [5, 6, 7, 8, 8]);
        assert_eq!(timers(&mut pacing, &[2, 1, 2, 1]), [4, 2, 1, 1]);
    }

    #[test]
    fn new_settings_bound_the_timer_at_once() {
        let config = AdaptiveConfig::default();
        let mut pacing = AdaptivePacing::new(PACING, config, Instant::ZERO);
        timers(&mut pacing, &[99; 5]);
        pacing.set_config(PacingConfig { timer_ticks: 3, ..PACING }, config);
        assert_eq!(pacing.ticks(), 3);
        pacing.set_config(PACING, AdaptiveConfig { min_ticks: 5, ..config });
        assert_eq!(pacing.ticks(), 5);
        pacing.set_config(PACING, AdaptiveConfig { min_ticks: 50, ..config });
        assert_eq!(pacing.ticks(), 8);
    }

    proptest! {
        #[test]
        fn no_packet_waits_longer_than_the_configured_timer(counts in proptest::collection::vec(0u32..40, 0..50)) {
            let mut pacing = AdaptivePacing::new(PACING, AdaptiveConfig::default(), Instant::ZERO);
            timers(&mut pacing, &counts);
            pacing.handle_packet(Instant::from_micros(100), 1);
            prop_assert!(pacing.pacing().poll_interrupt(Instant::from_micros(100) + PACING.period()));
            prop_assert!(!pacing.pacing().poll_interrupt(Instant::from_micros(124)));
        }
    }
}
