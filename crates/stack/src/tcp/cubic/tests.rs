//! CUBIC against its RFC, and against the same formulas in floating point.

extern crate std;

use super::*;
use proptest::prelude::*;

const MSS: u64 = 1_000;

fn ack(delivered: u64, pipe: u64, rtt: Duration) -> AckEvent {
    AckEvent { una: 0, nxt: 0, delivered, pipe, rtt_ns: None, smoothed_rtt: Some(rtt), paced: false }
}

fn millis(ms: u64) -> Instant {
    Instant::from_millis(1_000_000 + ms)
}

/// A connection that lost something with a window of `segments` and goes on from there in congestion avoidance.
fn after_loss(segments: u64) -> Cubic {
    let mut cubic = Cubic::new(MSS, 10);
    cubic.window = segments * MSS;
    cubic.on_loss(millis(0), segments * MSS);
    cubic
}

/// A round trip of `rtt_ms` with an acknowledgement for every second segment, ending at `now_ms`.
fn round(cubic: &mut Cubic, now_ms: u64, rtt_ms: u64) {
    let acks = (cubic.window / (2 * MSS)).max(1);
    for at in 1..=acks {
        let now = millis(now_ms - rtt_ms) + Duration::from_micros(rtt_ms * 1_000 * at / acks);
        let window = cubic.window;
        cubic.on_ack(now, &ack((2 * MSS).min(window), window, Duration::from_millis(rtt_ms)));
    }
}

#[test]
fn section_4_6_a_loss_leaves_seven_tenths_of_the_flight_and_at_least_two_segments() {
    let cubic = after_loss(100);
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (70_000, Some(70_000)));
    assert_eq!((cubic.w_max, cubic.prior), (Some(100_000), 100_000));
    let mut cubic = after_loss(2);
    cubic.on_loss(millis(1), 2_000);
    assert_eq!(cubic.window(), 2_000);
}

#[test]
fn section_4_7_fast_convergence_gives_room_to_new_flows() {
    let mut cubic = after_loss(100);
    cubic.on_loss(millis(1), 70_000);
    assert_eq!(cubic.w_max, Some(59_500), "0.85 of a window that had not come back to W_max");
    cubic.window = 80_000;
    cubic.on_loss(millis(2), 80_000);
    assert_eq!(cubic.w_max, Some(80_000));
}

#[test]
fn section_4_8_the_tail_of_a_transfer_does_not_make_the_threshold_small() {
    let mut cubic = after_loss(100);
    cubic.on_timeout(millis(0), 1_000, true);
    assert_eq!(cubic.slow_start_threshold(), Some(49_000), "0.7 of the window, whatever was in flight");
}

#[test]
fn section_4_8_a_timeout_starts_the_next_stage_on_the_flat_part() {
    let mut cubic = after_loss(100);
    cubic.on_timeout(millis(0), 70_000, true);
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (1_000, Some(49_000)));
    cubic.on_timeout(millis(1), 1_000, false);
    assert_eq!(cubic.slow_start_threshold(), Some(49_000));
    let mut now = 1;
    while cubic.is_in_slow_start() {
        now += 100;
        round(&mut cubic, now, 100);
    }
    round(&mut cubic, now + 100, 100);
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.origin), (0, 49_000));
}

#[test]
fn section_4_9_an_undo_restores_everything() {
    let mut cubic = after_loss(100);
    for at in 1..=20 {
        round(&mut cubic, at * 100, 100);
    }
    let before = cubic.clone();
    cubic.save();
    cubic.on_loss(millis(2_001), cubic.window);
    assert!(cubic.window < before.window);
    cubic.on_undo(millis(2_010), before.window);
    assert_eq!(
        (cubic.window, cubic.threshold, cubic.w_max, cubic.prior, cubic.epoch),
        (before.window, before.threshold, before.w_max, before.prior, before.epoch)
    );
}

#[test]
fn section_4_10_slow_start_that_ends_without_loss_goes_on_in_the_convex_region() {
    let mut cubic = Cubic::new(MSS, 10);
    cubic.window = 100_000;
    cubic.threshold = Some(100_000);
    round(&mut cubic, 100, 100);
    assert_eq!(cubic.epoch.map(|epoch| (epoch.k, epoch.origin)), Some((0, 100_000)));
    assert!(cubic.window >= 100_000);
}

#[test]
fn section_5_8_time_in_which_the_window_is_not_used_does_not_count() {
    let mut busy = after_loss(1_000);
    let mut paused = after_loss(1_000);
    for at in 1..=10 {
        round(&mut busy, at * 100, 100);
        round(&mut paused, at * 100, 100);
    }
    for at in 0..600 {
        paused.on_ack(millis(1_000 + at * 100), &ack(MSS, MSS, Duration::from_millis(100)));
    }
    paused.on_ack(millis(60_900), &ack(MSS, MSS, Duration::from_millis(100)));
    assert_eq!(paused.window, busy.window);
    for at in 1..=10 {
        round(&mut busy, 1_000 + at * 100, 100);
        round(&mut paused, 60_900 + at * 100, 100);
    }
    assert_eq!(paused.window, busy.window);
}

#[test]
fn a_pause_falls_back_to_the_initial_window_and_keeps_three_quarters_as_threshold() {
    let mut cubic = after_loss(200);
    cubic.on_idle(millis(1_000));
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (10_000, Some(140_000)));
}

/// Rounds until the window is back at W_max, and the window just after the same time as Reno would have it.
#[test]
fn section_4_2_the_window_is_back_at_w_max_after_k() {
    // 1,000 segments: K = (300 / 0.4)^(1/3) = 9.086 s.
    let mut cubic = after_loss(1_000);
    let mut now = 0;
    while cubic.window < 999 * MSS {
        now += 100;
        round(&mut cubic, now, 100);
        assert!(now < 20_000, "stuck at {}", cubic.window);
    }
    assert!((7_500..9_100).contains(&now), "{now} ms: the curve is flat before K");
    for _ in 0..50 {
        now += 100;
        round(&mut cubic, now, 100);
    }
    assert!(cubic.window > 1_020 * MSS, "convex after K: {}", cubic.window);
}

#[test]
fn section_4_3_on_short_paths_it_is_as_fast_as_reno() {
    // 20 segments, 1 ms: Reno-friendly. alpha = 9/17 segments a round up to the old window, one beyond it.
    let mut cubic = after_loss(20);
    for at in 1..=11 {
        round(&mut cubic, at, 1);
    }
    assert!((19_000..=20_000).contains(&cubic.window), "{}", cubic.window);
    for at in 12..=22 {
        round(&mut cubic, at, 1);
    }
    assert!((28_000..=31_000).contains(&cubic.window), "{}", cubic.window);
}

/// The formulas in floating point, with the same inputs.
struct Reference {
    window: f64,
    reno: f64,
    began: f64,
    k: f64,
    origin: f64,
    prior: f64,
    mss: f64,
}

impl Reference {
    fn at(&self, t: f64) -> f64 {
        (self.origin + 0.4 * self.mss * (t - self.k).powi(3)).min(MAX_WINDOW as f64)
    }

    fn on_ack(&mut self, now: f64, rtt: f64, arrived: f64) {
        let arrived = arrived.min(self.window);
        let alpha = if self.reno >= self.prior { 1.0 } else { 9.0 / 17.0 };
        self.reno += alpha * self.mss * arrived / self.window;
        let t = now - self.began;
        if self.at(t) < self.reno {
            self.window = self.window.max(self.reno);
        } else {
            let target = self.at(t + rtt).clamp(self.window, 1.5 * self.window);
            self.window += (target - self.window) * arrived / self.window;
        }
        self.window = self.window.min(MAX_WINDOW as f64);
    }
}

proptest! {
    /// The cube root is exact, and the curve within 2 bytes and one tick's slope of the real one.
    #[test]
    fn arithmetic_is_within_its_bounds(value in 0u128..1 << 94, t in 0..MOST_TICKS, mss in 64u64..=65_535) {
        let root = u128::from(cube_root(value));
        prop_assert!(root.pow(3) <= value && value < (root + 1).pow(3));
        let seconds = t as f64 / f64::from(1u32 << TICK_BITS);
        let exact = 0.4 * mss as f64 * seconds.powi(3);
        prop_assert!((curve_bytes(t, mss) as f64 - exact).abs() <= 2.0 + exact * 1e-12);
        let bytes = (exact as u64).min(MAX_WINDOW);
        let back = curve_ticks(bytes, mss);
        let expected = (bytes as f64 / (0.4 * mss as f64)).cbrt() * f64::from(1u32 << TICK_BITS);
        prop_assert!((back as f64 - expected.min(MOST_TICKS as f64)).abs() <= 1.0 + expected * 1e-9);
    }

    /// A stage of congestion avoidance follows the floating-point model within two segments and a thousandth.
    #[test]
    fn follows_the_reference_model(
        segments in 3u64..700_000,
        mss in 76u64..9_000,
        rtt_us in 50u64..300_000,
        batch in 1u64..100,
        rounds in 1u64..400,
    ) {
        let window = (segments * mss).min(MAX_WINDOW);
        let mut cubic = Cubic::new(mss, 10);
        cubic.window = window;
        cubic.on_loss(millis(0), window);
        let start = cubic.window as f64;
        let mut model = Reference {
            window: start,
            reno: start,
            began: 0.0,
            k: ((window as f64 - start).max(0.0) / (0.4 * mss as f64)).cbrt(),
            origin: (window as f64).max(start),
            prior: window as f64,
            mss: mss as f64,
        };
        // At most eight acknowledgements a round, so that large windows stay cheap to try.
        let arrived = (batch * mss).max(window / 8);
        let began = Instant::from_nanos(1 << 50);
        let mut now = began;
        for _ in 0..rounds * 8 {
            let before = cubic.window;
            cubic.on_ack(now, &ack(arrived, MAX_WINDOW, Duration::from_micros(rtt_us)));
            let seconds = (now - began).as_secs_f64();
            model.on_ack(seconds, rtt_us as f64 / 1e6, arrived as f64);
            now += Duration::from_micros(rtt_us / 8);
            prop_assert!(cubic.window >= before, "never falls without a loss");
            let bound = 2.0 * mss as f64 + model.window / 1_000.0;
            prop_assert!(
                (cubic.window as f64 - model.window).abs() <= bound,
                "{} instead of {} after {seconds} s", cubic.window, model.window
            );
        }
    }

    /// Whatever happens in whatever order, with times that jump anyhow: at least a segment, at most the maximum.
    #[test]
    fn the_window_stays_in_range(
        mss in 76u64..=65_535,
        steps in proptest::collection::vec((0u8..9, 0u64..1 << 31, 0u64..1 << 62), 1..200),
    ) {
        let mut cubic = Cubic::new(mss, 10);
        for (what, bytes, at) in steps {
            let now = Instant::from_nanos(at);
            match what {
                0 => cubic.on_loss(now, bytes),
                1 => cubic.on_timeout(now, bytes, at % 2 == 0),
                2 => cubic.on_recovered(now, bytes),
                3 => cubic.save(),
                4 => cubic.on_undo(now, bytes),
                5 => cubic.on_congestion_experienced(now, bytes),
                6 => cubic.on_idle(now),
                _ => {
                    let event = ack(bytes, bytes, Duration::from_nanos(at));
                    cubic.on_ack(now, &AckEvent { una: at, nxt: at + bytes, ..event });
                }
            }
            prop_assert!((mss..=MAX_WINDOW).contains(&cubic.window()), "{} after {what}", cubic.window());
        }
    }
}
