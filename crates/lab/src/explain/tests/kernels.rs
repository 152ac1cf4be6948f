//! What captures between Linux kernels taught: a verdict needs what it says.

use super::*;
use crate::explain::verdict::Verdict;
use crate::explain::wait::Wait;

/// A verdict on figures of a sender that fills up a buffer, with some of them changed.
fn verdict(change: impl FnOnce(&mut crate::explain::evidence::Evidence)) -> Verdict {
    let mut evidence = bursts(|under_way| 40_000 - under_way).explained().evidence;
    change(&mut evidence);
    Verdict::of(&evidence)
}

fn waits(shares: &[(Wait, f64)]) -> [f64; Wait::COUNT] {
    let mut waits = [0.0; Wait::COUNT];
    for (wait, share) in shares {
        waits[*wait as usize] = *share;
    }
    waits
}

/// A page of 20 KB: ten segments, and the rest a round trip later.
#[test]
fn a_buffer_is_full_for_longer_than_a_first_window() {
    let mut trace = Trace::new(1_460).open(true);
    trace.window = 65_000;
    trace.write(20_000, 14_600);
    for segment in 1..=10_u64 {
        trace.ack(20_000 + RTT_US + segment, segment * 1_460);
    }
    trace.write(20_000 + RTT_US + 20, 5_400);
    trace.ack(20_000 + 2 * RTT_US + 30, 20_000);
    let found = trace.explained();
    assert_eq!(found.verdict.cause, Cause::Unknown, "{:?}", found.verdict.because);
    let would_tell = found.verdict.would_tell.unwrap();
    assert!(would_tell.contains("longer transfer"), "{would_tell}");
}

#[test]
fn what_waits_for_no_acknowledgement_has_no_full_buffer() {
    // 20 KB every 30 ms at a round trip of 40 ms, by CUBIC.
    let writes = verdict(|evidence| {
        evidence.has_ceiling = false;
        evidence.waits =
            waits(&[(Wait::Acknowledgement, 0.40), (Wait::Application, 0.33), (Wait::Rhythm, 0.25)]);
    });
    assert_eq!(writes.cause, Cause::SenderApplication, "{:?}", writes.because);
    // A buffer of 64 KiB, by BBR.
    let buffer = verdict(|evidence| {
        evidence.waits =
            waits(&[(Wait::Acknowledgement, 0.54), (Wait::Rhythm, 0.36), (Wait::Application, 0.09)]);
    });
    assert_eq!(buffer.cause, Cause::SenderBuffer);
    assert!(buffer.because[0].contains("nothing lost"), "{:?}", buffer.because);
    let lossy = verdict(|evidence| {
        (evidence.lost, evidence.at_ceiling, evidence.flight_mean) = (3, 1.0, 36_000.0);
    });
    assert_eq!(lossy.cause, Cause::SenderBuffer);
    assert!(lossy.because[0].contains("though 3 segments were lost"), "{:?}", lossy.because);
    // BBR, a hundredth lost: most of the time goes to what is sent again.
    let lost = verdict(|evidence| {
        (evidence.lost, evidence.at_ceiling, evidence.run) = (9_457, 0.51, 10.0);
        evidence.waits =
            waits(&[(Wait::Recovery, 0.57), (Wait::Rhythm, 0.23), (Wait::Acknowledgement, 0.16)]);
    });
    assert_eq!(lost.cause, Cause::CongestionAfterLoss, "{:?}", lost.because);
}

/// An upload over 400 ms whose window grew to 1 MiB: Linux sent to within two segments of its edge.
#[test]
fn what_ends_where_the_window_does_is_the_window() {
    let of = |high: u64| {
        verdict(|evidence| {
            (evidence.flight_high, evidence.flight_most, evidence.window_most) = (high, high, 60_000);
        })
    };
    let held = of(58_000);
    assert_eq!(held.cause, Cause::ReceiverWindow, "{:?}", held.because);
    assert_eq!(of(50_000).cause, Cause::SenderBuffer);
}

#[test]
fn a_sender_that_paces_to_the_edge_of_the_window_is_held_by_it() {
    let paces = |open: f64, window: f64, at_edge: f64| {
        let found = verdict(|evidence| {
            evidence.waits = waits(&[
                (Wait::Window, window),
                (Wait::Acknowledgement, 0.95 - window - 0.55),
                (Wait::Rhythm, 0.55),
            ]);
            (evidence.open, evidence.at_edge, evidence.beat) = (open, at_edge, 0.9);
        });
        found.cause
    };
    // BBR before a reader of 1 MB/s, and before a window of 64 KiB, seen from the receiver.
    assert_eq!(paces(0.2, 0.35, 0.35), Cause::ReceiverApplication);
    assert_eq!(paces(1.0, 0.35, 0.45), Cause::ReceiverWindow);
    // BBR with room in the window.
    assert_eq!(paces(1.0, 0.01, 0.02), Cause::Pacing);
}

/// iperf3 over 40 ms with a window of 35 KiB: Linux paces by a congestion window that is larger, and stops at the edge for a fifth of
/// the time.
#[test]
fn a_sender_that_paces_what_the_window_lets_through_is_held_by_it() {
    let paces = |mean: f64, high: u64| {
        verdict(|evidence| {
            evidence.waits =
                waits(&[(Wait::Window, 0.2), (Wait::Acknowledgement, 0.28), (Wait::Rhythm, 0.52)]);
            (evidence.open, evidence.at_edge, evidence.beat) = (1.0, 0.2, 0.85);
            (evidence.window_mean, evidence.window_most) = (36_000.0, 36_200);
            (evidence.flight_mean, evidence.flight_high, evidence.flight_most) = (mean, high, high);
        })
    };
    let held = paces(32_150.0, 35_840);
    assert_eq!(held.cause, Cause::ReceiverWindow, "{:?}", held.because);
    assert!(held.confidence < 0.5 && held.runner_up == Some(Cause::Pacing), "{held:?}");
    assert!(held.because[0].contains("31.4 KiB were in use on average"), "{:?}", held.because);
    // Room is left, if only just; or it is full now and then.
    assert_eq!(paces(32_150.0, 33_000).cause, Cause::Pacing);
    assert_eq!(paces(26_000.0, 35_840).cause, Cause::Pacing);
}

/// A window of less than two segments over 40 ms takes one at a time.
#[test]
fn a_window_that_limits_is_not_called_no_limit() {
    let says = |rate: f64, window: f64| {
        let found = verdict(|evidence| {
            evidence.waits = waits(&[(Wait::Window, 1.0)]);
            (evidence.open, evidence.rtt_median_s, evidence.mss) = (0.93, Some(0.0409), 1_448);
            (evidence.rate, evidence.window_mean) = (rate, window);
        });
        assert_eq!(found.cause, Cause::ReceiverWindow, "{:?}", found.because);
        found.because.into_iter().find(|sentence| sentence.contains("peer's window")).unwrap()
    };
    let one = says(35_800.0, 2_714.0);
    assert!(one.contains("2.65 KiB, 1.41 KiB of it in whole segments, / 40.9 ms = 35.4 kB/s"), "{one}");
    assert!(one.ends_with("all that it lets through"), "{one}");
    assert!(says(600_000.0, 30_000.0).contains("= 733 kB/s; 600 kB/s measured: the limit"));
    assert!(!says(200_000.0, 30_000.0).contains("not the limit"));
}

/// Acknowledgements come together for the host's reasons: what the path carries, data tells that has passed it.
#[test]
fn what_the_path_holds_is_told_behind_it() {
    for near_sender in [false, true] {
        let advice = verdict(|evidence| {
            evidence.near_sender = near_sender;
            evidence.train_rates = Some([6e9; 3]);
        });
        assert_eq!(advice.cause, Cause::SenderBuffer, "{:?}", advice.because);
        assert_eq!(advice.advice.contains("the path holds"), !near_sender, "{}", advice.advice);
    }
}

/// 2 MB over a pair of veth: the first round trip was one of interrupts, the others those of programs that are woken.
#[test]
fn a_path_is_not_full_that_carries_a_tenth_of_its_trains() {
    let waits_long = |trains: f64, least_s: f64| {
        verdict(|evidence| {
            (evidence.rtt_least_s, evidence.rtt_median_s) = (Some(least_s), Some(4.5 * least_s));
            (evidence.queued_time, evidence.train_rates) = (Some(1.0), Some([trains * evidence.rate; 3]));
        })
    };
    let idle = waits_long(14.5, 9e-6);
    assert!(![Cause::Queueing, Cause::PathBandwidth].contains(&idle.cause), "{:?}", idle.because);
    // Milliseconds are no host's; but nothing is sure where trains tell of another path.
    for (trains, least_s, confidence) in
        [(14.5, 9e-3, 0.0..0.01), (1.6, 9e-6, 0.2..0.3), (1.1, 9e-6, 1.0..1.1)]
    {
        let found = waits_long(trains, least_s);
        assert_eq!(found.cause, Cause::Queueing, "{trains}: {:?}", found.because);
        assert!(confidence.contains(&found.confidence), "{trains}: {found:?}");
    }
}

/// Numbers that wrap within the first segment that is seen.
#[test]
fn numbers_may_wrap_at_once() {
    let shifted = |by: u32| {
        let mut trace = bursts(|under_way| 40_000 - under_way);
        for segment in &mut trace.segments {
            let number = if segment.from.port() == 80 { &mut segment.ack } else { &mut segment.seq };
            *number = number.wrapping_add(by);
        }
        trace.explained().directions[0].bytes
    };
    assert!(shifted(0) > 1_000_000);
    assert_eq!(shifted(u32::MAX), shifted(0));
}
