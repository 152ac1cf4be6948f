//! A device that fails, lies, or does not stop, and a cable that comes and goes.

use super::*;
use crate::model::{Fault, Lie};
use linerate_nic::{Device as _, DeviceError};

#[test]
fn what_cannot_be_is_counted_and_dropped() {
    for kind in KINDS {
        for lie in [Lie::Empty, Lie::TooLong, Lie::NoStart, Lie::NoEnd] {
            let mut bench = Bench::new(kind);
            bench.board.with(|hardware| hardware.lie = Some(lie));
            for number in 0..100 {
                bench.arrive(frame(number, 100));
                assert!(bench.receive().is_empty(), "{lie:?}");
            }
            assert_eq!(bench.device.stats().drop_rx_errors, 100, "{lie:?}");
            assert_eq!(bench.receive.free(), 48 - 31);
            bench.board.with(|hardware| hardware.lie = None);
            bench.works();
        }
    }
}

#[test]
fn a_device_at_another_place_of_the_ring_is_found_again() {
    for kind in KINDS {
        for lie in [Lie::Ahead, Lie::NoStatus] {
            let mut bench = Bench::new(kind);
            bench.board.with(|hardware| hardware.lie = Some(lie));
            bench.arrive(frame(1, 100));
            bench.board.with(|hardware| hardware.lie = None);
            bench.arrive(frame(2, 100));
            assert!(bench.receive().is_empty());
            assert_eq!(bench.device.stats().rx_resets, 1, "{lie:?}");
            bench.works();
            assert_eq!(bench.receive.free(), 48 - 31);
        }
    }
}

#[test]
fn a_device_far_ahead_is_found_by_a_look() {
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| hardware.skip(0, 20));
    bench.arrive(frame(1, 100));
    assert!(bench.receive().is_empty());
    assert_eq!(bench.device.stats().rx_resets, 0);
    bench.pass(1_100);
    assert!(bench.receive().is_empty());
    assert_eq!(bench.device.stats().rx_resets, 1);
    bench.works();
}

#[test]
fn a_packet_that_fails_costs_its_ring_and_nothing_else() {
    for kind in KINDS {
        for fault in [Fault::Underrun, Fault::Retry, Fault::Corrupted, Fault::Bus] {
            let mut bench = Bench::new(kind);
            bench.board.with(|hardware| hardware.holds_back = true);
            (1..=5).for_each(|number| bench.offer(number, 2, 300));
            bench.transmit();
            bench.arrive(frame(1, 60));
            bench.board.with(|hardware| {
                hardware.holds_back = false;
                hardware.fault = Some((0, fault));
            });
            bench.step();
            assert!(bench.is_interrupted(), "errors always interrupt: {fault:?}");
            let before = bench.receive().len();
            assert_eq!(before, usize::from(fault != Fault::Bus), "both rings, where the bus has failed");
            assert_eq!(bench.completions(), [1, 2, 3, 4, 5], "each token once: {fault:?}");
            let stats = bench.device.stats();
            let counted = [stats.tx_underruns, stats.tx_retries, stats.tx_corrupted, stats.bus_errors];
            assert_eq!((counted.iter().sum::<u64>(), stats.tx_resets), (1, 1));
            assert_eq!((stats.drop_tx_failed, stats.drop_tx_abandoned), (1, 4));
            bench.works();
            assert!(!bench.is_interrupted() || !bench.is_interrupted());
        }
    }
}

#[test]
fn an_overrun_is_counted() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        bench.board.with(|hardware| hardware.fail(0, 10));
        assert!(bench.is_interrupted());
        assert!(bench.receive().is_empty());
        assert_eq!((bench.device.stats().rx_overruns, bench.device.stats().rx_resets), (1, 0));
        bench.works();
    }
}

#[test]
fn an_error_whose_interrupt_was_lost_is_found() {
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| hardware.fail(0, 11));
    bench.pass(1_100);
    assert!(bench.arm(), "something was there");
    assert_eq!((bench.device.stats().bus_errors, bench.device.stats().rx_resets), (1, 1));
    bench.works();
}

#[test]
fn a_ring_without_buffers_fills_again() {
    for kind in KINDS {
        let mut bench = Bench::on(Board::new(kind), 96, 192);
        for round in 0..3 {
            for number in 0..50 {
                bench.arrive(frame(100 * round + number, 60));
            }
            let frames = bench.receive();
            // The emulator keeps what found no buffer; hardware loses it.
            let expected = if kind == Kind::Emulator { 50 } else { 31 };
            assert_eq!(frames.len(), expected, "{kind:?}");
            for (at, got) in (0..).zip(&frames) {
                assert_eq!(got.data.bytes(), frame(100 * round + at, 60));
            }
        }
        assert!(bench.device.stats().rx_no_buffer >= 3, "{kind:?}");
        bench.works();
    }
}

#[test]
fn a_dry_pool_drops_frames_and_never_starves_the_device() {
    for kind in KINDS {
        let mut bench = Bench::on(Board::new(kind), 32, 192);
        let mut kept = Vec::new();
        for number in 0..100 {
            bench.arrive(frame(number, 60));
            kept.extend(bench.receive());
        }
        let stats = bench.device.stats();
        assert_eq!(kept.len() as u64 + stats.drop_rx_no_buffer, 100);
        assert!(kept.len() > 20 && stats.drop_rx_no_buffer > 20, "{}", kept.len());
        kept.clear();
        bench.works();
    }
}

#[test]
fn the_link_goes_and_comes_in_the_middle_of_packets() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        for round in 0..5u64 {
            bench.board.with(|hardware| hardware.holds_back = true);
            (1..=5).for_each(|number| bench.offer(10 * round + number, 2, 300));
            bench.transmit();
            bench.board.with(|hardware| hardware.plug(false));
            bench.pass(300);
            assert!(bench.device.poll_timeout().is_some_and(|at| at <= bench.now));
            assert!(bench.arm(), "there is news");
            assert!(!bench.device.link().is_up);
            assert_eq!(bench.completions().len(), 5, "all are reported");
            // The device is asked nevertheless: nothing leaves, and nothing is kept for ever.
            bench.offer(10 * round + 6, 2, 300);
            bench.transmit();
            bench.board.with(|hardware| {
                hardware.holds_back = false;
                hardware.plug(true);
                // At 100 Mb/s this time.
                (hardware.phy[10], hardware.phy[5]) = (0, 0x01E1);
            });
            bench.pass(300);
            bench.receive();
            assert!(bench.device.link().is_up);
            assert_eq!(bench.completions(), [10 * round + 6]);
            let config = bench.board.with(|hardware| hardware.config());
            assert_eq!(config & (1 << 10 | 0b11), 0b11, "100 Mb/s, full duplex");
            bench.wire();
            bench.works();
        }
        assert_eq!(bench.device.control().link_changes(), 10);
        assert_eq!(bench.device.link().speed.map(|speed| speed.as_bps()), Some(100_000_000));
    }
}

/// The clock of RGMII is the board's, and goes by the speed: it is told of each, before packets leave at it.
#[test]
fn the_board_is_told_of_each_speed() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let mut expected = vec![(1_000, 0)];
        for (round, (partner, partner_1000, megabits)) in
            (1..).zip([(0x0081, 0, 100), (0x0081, 0, 100), (0x0041, 0, 10), (0x01E1, 0x0800, 1_000)])
        {
            bench.board.with(|hardware| hardware.plug(false));
            bench.pass(300);
            bench.receive();
            bench.board.with(|hardware| {
                (hardware.phy[5], hardware.phy[10]) = (partner, partner_1000);
                hardware.plug(true);
            });
            bench.offer(round, 0, 60);
            bench.pass(300);
            bench.receive();
            bench.transmit();
            bench.step();
            assert_eq!(bench.wire(), [frame(round, 60)]);
            if expected.last() != Some(&(megabits, 0)) {
                expected.push((megabits, 0));
            }
            bench.board.with(|hardware| assert_eq!(hardware.speeds, expected));
        }
    }
}

#[test]
fn a_cable_that_was_away_between_two_looks_is_noticed() {
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| {
        hardware.plug(false);
        hardware.plug(true);
    });
    bench.pass(300);
    bench.receive();
    assert!(bench.device.link().is_up);
    assert_eq!((bench.device.control().link_changes(), bench.device.stats().tx_resets), (1, 1));
    bench.works();
}

#[test]
fn a_link_that_still_negotiates_is_down() {
    for (control, partner, partner_1000, expected) in [
        (0x1140, 0x0041, 0, Some((10, true))),
        (0x1140, 0x0081, 0, Some((100, false))),
        (0x1140, 0, 0x0400, Some((1_000, false))),
        (0x1140, 0, 0, Some((10, false))),
        (0x2100, 0, 0, Some((100, true))),
        (0x0000, 0, 0, Some((10, false))),
        (0x0140, 0, 0, Some((1_000, true))),
        (0x1141, 0, 0, None),
    ] {
        let board = Board::new(Kind::Hardware);
        board.with(|hardware| {
            (hardware.phy[0], hardware.phy[5], hardware.phy[10]) = (control, partner, partner_1000);
            if expected.is_none() {
                // The link's bit alone.
                hardware.phy[1] &= !(1 << 5);
            }
        });
        let bench = Bench::on(board, 48, 192);
        let link = bench.device.link();
        let speed = link.speed.map(|speed| speed.as_bps() / 1_000_000);
        assert_eq!(speed.map(|speed| (speed, link.is_full_duplex)), expected);
        assert_eq!(link.is_up, expected.is_some());
    }
}

#[test]
fn a_phy_that_sleeps_is_woken_and_one_that_hangs_means_no_link() {
    let board = Board::new(Kind::Hardware);
    board.with(|hardware| hardware.phy[0] |= 1 << 11 | 1 << 10);
    let mut bench = Bench::on(board, 48, 192);
    bench.board.with(|hardware| assert_eq!(hardware.phy[0], 0x1140));
    bench.board.with(|hardware| hardware.phy_hangs = true);
    bench.pass(300);
    bench.receive();
    assert!(!bench.device.link().is_up);
    bench.board.with(|hardware| hardware.phy_hangs = false);
    bench.pass(300);
    bench.receive();
    assert!(bench.device.link().is_up);
    bench.works();
}

#[test]
fn a_packet_that_does_not_come_back_is_given_up() {
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| hardware.is_stuck = true);
    bench.offer(1, 2, 300);
    bench.transmit();
    for _ in 0..45 {
        bench.pass(100);
        bench.receive();
        bench.arm();
    }
    assert_eq!((bench.completions().len(), bench.device.stats().stalls), (0, 0));
    bench.pass(2_000);
    // It does not halt, either: the transmitter is stopped.
    assert!(bench.arm());
    assert_eq!((bench.completions(), bench.device.stats().stalls), (vec![1], 1));
    bench.board.with(|hardware| hardware.is_stuck = false);
    bench.works();
}

#[test]
fn a_device_that_takes_no_ring_keeps_its_buffers() {
    // Memory that is given up on purpose is a leak to the sanitizer.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| {
        hardware.is_deaf = true;
        hardware.holds_back = true;
    });
    // The ring has moved on, so that the register does not name its beginning.
    bench.arrive(frame(1, 60));
    bench.board.with(|hardware| hardware.fail(0, 11));
    assert!(bench.is_interrupted());
    let now = bench.now;
    assert_eq!(bench.device.receive(now, &mut bench.batch), Err(DeviceError::Io(1)));
    assert_eq!(bench.device.transmit(now, &mut bench.out), Err(DeviceError::Io(1)));
    assert!(bench.device.poll_completion().is_none() && bench.arm());
    let Bench { device, receive, .. } = bench;
    drop(device);
    assert_eq!(receive.free(), 48 - 31, "what the device may write to is nobody's");
}

#[test]
fn a_device_that_is_dropped_stops_first() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        bench.board.with(|hardware| hardware.holds_back = true);
        bench.offer(1, 2, 300);
        bench.transmit();
        let Bench { board, device, receive, headers, .. } = bench;
        drop(device);
        assert_eq!((receive.free(), headers.free()), (48, 32));
        board.with(|hardware| {
            hardware.holds_back = false;
            assert!(!hardware.receives() && !hardware.is_interrupting(0));
            hardware.arrive(frame(1, 60));
            hardware.step();
            assert!(hardware.wire.is_empty());
        });
    }
}
