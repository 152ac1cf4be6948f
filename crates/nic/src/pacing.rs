//! Interrupt pacing: when to take an interrupt, or wake up, for packets that have arrived.
//!
//! The four modes are those of queue accumulators, as the RTOS FTP application note describes them in section 4.5.3:
//! a threshold alone, or a threshold and a timer that counts from the last interrupt, from the first new packet, or
//! from the last new packet.

mod adaptive;

pub use adaptive::{AdaptiveConfig, AdaptivePacing};

use core::time::Duration;
use linerate_wire::units::Instant;

/// What the timer counts from. In all modes a threshold of packets fires at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PacingMode {
    /// There is no timer: only the threshold fires. Packets below the threshold wait *for ever* if no more come, so this
    /// mode is for devices that are polled anyway, or with a threshold of 1.
    None,
    /// The last interrupt: at most one interrupt per timer period below the threshold, and none while nothing comes.
    LastInterrupt,
    /// The first packet after an interrupt: no packet waits longer than the timer.
    #[default]
    FirstNewPacket,
    /// The newest packet: fires when a burst has ended. A steady stream with gaps below the timer fires by the threshold
    /// alone.
    LastNewPacket,
}

impl PacingMode {
    /// All, in the order of the accumulator firmware's numbers.
    pub const ALL: [PacingMode; 4] =
        [PacingMode::None, PacingMode::LastInterrupt, PacingMode::FirstNewPacket, PacingMode::LastNewPacket];

    /// As settings and commands name it.
    pub const fn name(self) -> &'static str {
        match self {
            PacingMode::None => "none",
            PacingMode::LastInterrupt => "last-interrupt",
            PacingMode::FirstNewPacket => "first-new-packet",
            PacingMode::LastNewPacket => "last-new-packet",
        }
    }
}

/// Settings of interrupt pacing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacingConfig {
    /// What the timer counts from.
    pub mode: PacingMode,
    /// The timer in ticks; 0 fires with the first packet (except in mode [`PacingMode::None`]).
    pub timer_ticks: u32,
    /// Length of a tick in nanoseconds.
    pub tick_ns: u32,
    /// Packets that fire at once; 0 counts as 1.
    pub threshold: u32,
}

impl PacingConfig {
    /// The tick of the accumulator firmware in the application note: 25 us.
    pub const DEFAULT_TICK_NS: u32 = 25_000;

    /// The timer's period.
    pub const fn period(&self) -> Duration {
        // Two 32-bit numbers: the product fits.
        Duration::from_nanos(self.timer_ticks as u64 * self.tick_ns as u64)
    }
}

impl Default for PacingConfig {
    /// What the application note found best: 50 us since the first new packet; and a threshold of 32 packets.
    fn default() -> Self {
        PacingConfig {
            mode: PacingMode::FirstNewPacket,
            timer_ticks: 2,
            tick_ns: PacingConfig::DEFAULT_TICK_NS,
            threshold: 32,
        }
    }
}

/// One queue's pacing.
///
/// Call order: [`Pacing::handle_packet`] as packets arrive; [`Pacing::poll_interrupt`] after that and at
/// [`Pacing::poll_timeout`]; when it says so, take the packets and call [`Pacing::handle_interrupt_taken`]. If a budget
/// left packets in the queue, tell of them with `handle_packet` again.
#[derive(Clone, Debug)]
pub struct Pacing {
    config: PacingConfig,
    pending: u64,
    last_interrupt: Instant,
    first_new: Instant,
    last_new: Instant,
}

impl Pacing {
    /// Pacing that starts at `now` with no packet waiting; the start counts as the last interrupt.
    pub fn new(config: PacingConfig, now: Instant) -> Self {
        Pacing { config, pending: 0, last_interrupt: now, first_new: now, last_new: now }
    }

    /// The settings.
    pub fn config(&self) -> PacingConfig {
        self.config
    }

    /// Changes the settings; packets that wait are kept and judged by the new ones.
    pub fn set_config(&mut self, config: PacingConfig) {
        self.config = config;
    }

    /// Packets that have arrived since the last interrupt.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// `count` packets have arrived.
    pub fn handle_packet(&mut self, now: Instant, count: u32) {
        if count == 0 {
            return;
        }
        if self.pending == 0 {
            self.first_new = now;
        }
        self.last_new = now;
        self.pending = self.pending.saturating_add(u64::from(count));
    }

    /// Whether the interrupt is due. It stays due until it is taken (a restart of the timer by another packet aside).
    pub fn poll_interrupt(&self, now: Instant) -> bool {
        self.is_full() || self.timer().is_some_and(|due| now >= due)
    }

    /// When [`Pacing::poll_interrupt`] becomes true if nothing else happens: a time in the past if it is due already,
    /// `None` if it would never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_full() { Some(self.last_new) } else { self.timer() }
    }

    /// The interrupt was taken, or the queue was polled: all packets that arrived until `now` have been seen.
    pub fn handle_interrupt_taken(&mut self, now: Instant) {
        self.pending = 0;
        self.last_interrupt = now;
    }

    fn is_full(&self) -> bool {
        self.pending >= u64::from(self.config.threshold.max(1))
    }

    /// When the timer fires; it only runs while packets wait.
    fn timer(&self) -> Option<Instant> {
        let from = match self.config.mode {
            PacingMode::None => return None,
            PacingMode::LastInterrupt => self.last_interrupt,
            PacingMode::FirstNewPacket => self.first_new,
            PacingMode::LastNewPacket => self.last_new,
        };
        (self.pending > 0).then(|| from + self.config.period())
    }
}

#[cfg(test)]
mod tests {
    use super::PacingMode::{FirstNewPacket, LastInterrupt, LastNewPacket, None as NoTimer};
    use super::*;

    /// What happens at a time in microseconds.
    enum Event {
        /// So many packets arrive.
        Packets(u32),
        /// The owner asks, is told this, and takes the interrupt if due.
        Ask(bool),
        /// The timeout is this many microseconds after the start.
        Timeout(Option<u64>),
    }
    use Event::{Ask, Packets, Timeout};

    fn check(mode: PacingMode, timer_ticks: u32, threshold: u32, events: &[(u64, Event)]) {
        let config = PacingConfig { mode, timer_ticks, threshold, ..PacingConfig::default() };
        let mut pacing = Pacing::new(config, Instant::ZERO);
        for (line, (at, event)) in events.iter().enumerate() {
            let now = Instant::from_micros(*at);
            match event {
                Packets(count) => pacing.handle_packet(now, *count),
                Ask(due) => {
                    assert_eq!(pacing.poll_interrupt(now), *due, "{mode:?}, event {line} at {at} us");
                    if *due {
                        pacing.handle_interrupt_taken(now);
                    }
                }
                Timeout(expected) => assert_eq!(
                    pacing.poll_timeout(),
                    expected.map(Instant::from_micros),
                    "{mode:?}, event {line} at {at} us"
                ),
            }
        }
    }

    #[test]
    fn without_a_timer_only_the_threshold_fires() {
        let year_us = 31_536_000_000_000;
        check(
            NoTimer,
            2,
            4,
            &[
                (0, Packets(3)),
                (0, Timeout(None)),
                (50, Ask(false)),
                (year_us, Ask(false)),
                (year_us, Packets(1)),
                (year_us, Timeout(Some(year_us))),
                (year_us, Ask(true)),
                (year_us, Ask(false)),
            ],
        );
    }

    #[test]
    fn since_the_last_interrupt_it_is_periodic_while_packets_come() {
        check(
            LastInterrupt,
            2,
            100,
            &[
                (10, Ask(false)),
                (10, Timeout(None)),
                (10, Packets(1)),
                (10, Timeout(Some(50))),
                (49, Packets(1)),
                (49, Ask(false)),
                (50, Ask(true)),
                (60, Packets(1)),
                (99, Ask(false)),
                (100, Ask(true)),
                // Nothing comes for a while: no empty interrupts, and the next packet has waited long enough already.
                (151, Ask(false)),
                (500, Packets(1)),
                (500, Ask(true)),
                (510, Packets(100)),
                (510, Ask(true)),
            ],
        );
    }

    #[test]
    fn since_the_first_new_packet_no_packet_waits_longer() {
        check(
            FirstNewPacket,
            2,
            100,
            &[
                (1000, Packets(1)),
                (1000, Timeout(Some(1050))),
                (1040, Packets(1)),
                (1040, Timeout(Some(1050))),
                (1049, Ask(false)),
                (1050, Ask(true)),
                (1050, Timeout(None)),
                (1200, Ask(false)),
                (1200, Packets(1)),
                (1249, Ask(false)),
                (1250, Ask(true)),
                (1260, Packets(60)),
                (1261, Packets(39)),
                (1261, Ask(false)),
                (1262, Packets(1)),
                (1262, Ask(true)),
            ],
        );
    }

    #[test]
    fn since_the_last_new_packet_it_waits_for_the_end_of_the_burst() {
        check(
            LastNewPacket,
            2,
            4,
            &[
                (0, Packets(1)),
                (40, Packets(1)),
                (50, Ask(false)),
                (80, Packets(1)),
                (80, Timeout(Some(130))),
                (129, Ask(false)),
                (130, Ask(true)),
                // A steady stream is stopped by the threshold alone.
                (200, Packets(1)),
                (240, Packets(1)),
                (280, Packets(1)),
                (320, Ask(false)),
                (320, Packets(1)),
                (320, Ask(true)),
            ],
        );
    }

    #[test]
    fn a_timer_or_threshold_of_zero_fires_with_the_first_packet() {
        for mode in [LastInterrupt, FirstNewPacket, LastNewPacket] {
            check(mode, 0, 100, &[(5, Packets(0)), (5, Ask(false)), (7, Packets(1)), (7, Ask(true))]);
        }
        check(NoTimer, 0, 100, &[(7, Packets(99)), (7, Ask(false))]);
        check(NoTimer, 0, 0, &[(7, Ask(false)), (7, Packets(1)), (7, Ask(true))]);
    }

    #[test]
    fn new_settings_judge_waiting_packets() {
        let mut pacing = Pacing::new(PacingConfig::default(), Instant::ZERO);
        pacing.handle_packet(Instant::ZERO, 5);
        assert!(!pacing.poll_interrupt(Instant::from_micros(10)));
        pacing.set_config(PacingConfig { threshold: 5, ..pacing.config() });
        assert!(pacing.poll_interrupt(Instant::from_micros(10)));
        assert_eq!(pacing.pending(), 5);
    }

    #[test]
    fn the_default_is_the_one_that_was_found_best() {
        let config = PacingConfig::default();
        assert_eq!((config.mode, config.period()), (FirstNewPacket, Duration::from_micros(50)));
    }
}
