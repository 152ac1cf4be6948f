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

/// Jitter by which packets overtake each other, CUBIC: 14 segments sent again in vain, 1,379 overtaken, none lost.
#[test]
fn what_stands_below_its_highest_after_reordering_is_no_buffer() {
    let of = |at_ceiling: f64| {
        verdict(|evidence| {
            (evidence.late, evidence.counts.recoveries, evidence.has_ceiling) = (1_379, 3, false);
            (evidence.counts.fast, evidence.counts.dsacks, evidence.lost) = (14, 14, 0);
            (evidence.alike, evidence.at_ceiling) = (0.9, at_ceiling);
            evidence.flight_mean = 0.83 * evidence.flight_high as f64;
            evidence.waits = waits(&[(Wait::Acknowledgement, 0.98), (Wait::Recovery, 0.01)]);
        })
    };
    let late = of(0.2);
    assert_eq!(
        (late.cause, late.runner_up),
        (Cause::Reordering, Some(Cause::SenderBuffer)),
        "{:?}",
        late.because
    );
    // Where each burst ends at the highest amount, it is a buffer all the same; and what was sent again is told.
    let held = of(0.9);
    assert_eq!(held.cause, Cause::SenderBuffer, "{:?}", held.because);
    assert!(held.because[0].contains("nothing lost, though 14 sent again in vain"), "{:?}", held.because);
}

#[test]
fn a_buffer_that_carries_another_rate_than_was_measured_is_not_sure() {
    let of = |part: f64| {
        verdict(|evidence| {
            evidence.rtt_mean_s = Some(evidence.flight_mean / evidence.rate / part);
        })
    };
    assert_eq!((of(1.3).cause, of(1.0).cause), (Cause::SenderBuffer, Cause::SenderBuffer));
    assert!(of(1.3).confidence < 0.1 && of(1.0).confidence >= 0.1, "{}", of(1.0).confidence);
}

/// A queue of ten segments, CUBIC: 17 of 4,634 segments lost, 1.4 in a row, in two recoveries.
#[test]
fn many_lost_in_each_recovery_are_a_burst_though_not_in_a_row() {
    let of = |recoveries: u64, rate: f64| {
        verdict(|evidence| {
            (evidence.lost, evidence.segments, evidence.run, evidence.mss) = (17, 4_634, 1.4, 1_448);
            (evidence.counts.fast, evidence.counts.recoveries) = (17, recoveries);
            (evidence.flight_mean, evidence.flight_high) = (66_414.0, 112_000);
            (evidence.alike, evidence.at_ceiling, evidence.has_ceiling) = (0.36, 0.08, false);
            (evidence.rtt_median_s, evidence.rate) = (Some(0.041), rate);
        })
    };
    let burst = of(2, 1.63e6);
    assert_eq!(burst.cause, Cause::CongestionAfterLoss, "{:?}", burst.because);
    assert!(burst.because[0].contains("8.5 in each"), "{:?}", burst.because);
    // Each for itself; sure only where the formula explains what was measured.
    let (explained, off) = (of(16, 0.7e6), of(16, 1.63e6));
    assert_eq!((explained.cause, off.cause), (Cause::RandomLoss, Cause::RandomLoss));
    assert!(
        explained.confidence >= 0.1 && off.confidence < 0.1,
        "{} {}",
        explained.confidence,
        off.confidence
    );
}

#[test]
fn one_episode_of_a_short_transfer_is_not_sure() {
    let of = |recoveries: u64, rtts: f64| {
        verdict(|evidence| {
            (evidence.late, evidence.counts.recoveries, evidence.counts.fast) = (40, recoveries, 6);
            (evidence.has_ceiling, evidence.alike, evidence.at_ceiling) = (false, 0.2, 0.1);
            evidence.flight_mean = 0.4 * evidence.flight_high as f64;
            evidence.rtt_median_s = Some(evidence.time_s / rtts);
        })
    };
    for (recoveries, rtts, sure) in [(1, 20.0, false), (4, 20.0, true), (4, 5.0, false), (1, 100.0, true)] {
        let found = of(recoveries, rtts);
        assert_eq!(found.cause, Cause::Reordering, "{:?}", found.because);
        assert_eq!(found.confidence >= 0.1, sure, "{recoveries} in {rtts}: {}", found.confidence);
    }
}

/// A send buffer of 64 KiB, BBR: as much each round trip for seventy of them, but not always as much under way.
#[test]
fn a_long_transfer_needs_no_longer_one_to_tell() {
    let of = |flights: u64| {
        verdict(|evidence| {
            (evidence.has_ceiling, evidence.alike, evidence.at_ceiling) = (false, 0.7, 0.08);
            evidence.flight_mean = 0.52 * evidence.flight_high as f64;
            evidence.bytes = flights * evidence.flight_high;
            evidence.waits = waits(&[(Wait::Acknowledgement, 0.58), (Wait::Rhythm, 0.42)]);
        })
    };
    let (long, short) = (of(40), of(10));
    assert_eq!((long.cause, short.cause), (Cause::Unknown, Cause::Unknown), "{:?}", long.because);
    assert!(long.would_tell.unwrap().contains("accounts: whether its buffer or its congestion window"));
    assert!(short.would_tell.unwrap().contains("a longer transfer"));
}

/// A receiver that does not read for 1.5 s of 5 s, seen at its side: the sender keeps to the path's rate most of the time.
#[test]
fn a_window_that_was_closed_once_is_named_as_the_longest_pause() {
    let of = |closed_s: f64| {
        verdict(|evidence| {
            (evidence.near_sender, evidence.beat, evidence.has_ceiling) = (false, 0.0, false);
            (evidence.alike, evidence.closed, evidence.pause_s) = (0.5, closed_s / 5.2, 1.61);
            evidence.counts.zero_windows = u64::from(closed_s > 0.0);
            evidence.counts.closed_for((closed_s * 1e9) as u64);
            evidence.waits = waits(&[(Wait::Rhythm, 0.64), (Wait::Acknowledgement, 0.34)]);
        })
    };
    let found = of(1.54);
    assert_eq!(found.cause, Cause::Unknown, "{:?}", found.because);
    let told = "the receiver's window was closed once for 1.54 s in all, 29.6 % of the time: the longest pause of all";
    assert!(found.because.iter().any(|sentence| sentence == told), "{:?}", found.because);
    assert!(found.would_tell.unwrap().contains("the receiver's application"));
    // Another pause was longer, or there was no such one.
    for closed_s in [0.6, 0.0] {
        let found = of(closed_s);
        assert_eq!(found.cause, Cause::Unknown, "{:?}", found.because);
        assert!(found.would_tell.unwrap().contains("the sender's processor"));
    }
}

/// The same of a slow reader whose window has a scale that is inferred.
#[test]
fn a_window_of_inferred_scale_that_seems_full_is_what_would_tell() {
    let found = verdict(|evidence| {
        (evidence.near_sender, evidence.beat, evidence.has_ceiling) = (false, 0.0, false);
        (evidence.scale_known, evidence.at_edge, evidence.alike) = (false, 0.45, 0.5);
        evidence.waits = waits(&[(Wait::Rhythm, 0.55), (Wait::Window, 0.44)]);
    });
    assert_eq!(found.cause, Cause::Unknown, "{:?}", found.because);
    assert!(found.would_tell.unwrap().starts_with("the opening of the connection"));
}
