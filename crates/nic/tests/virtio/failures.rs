//! A device that fails, lies, or does not stop.

use super::*;
use crate::model::Lie;
use linerate_nic::DeviceError;

/// Both directions work.
fn works(bench: &mut Bench) {
    for number in 1_000..1_100 {
        bench.offer(number, 1, 100);
        assert_eq!(bench.transmit(), 1);
        bench.step();
        assert_eq!(bench.wire(), [frame(number, 100)]);
        assert_eq!(bench.completions(), [number]);
        bench.arrive(frame(number, 2_000));
        assert_eq!(bytes(&bench.receive()[0]), frame(number, 2_000));
    }
}

#[test]
fn a_device_that_speaks_of_what_it_does_not_have_is_begun_anew() {
    let lies = [Lie::Beyond, Lie::NotGiven, Lie::TooLong, Lie::NoBuffers, Lie::TooMany];
    for lie in lies {
        let mut bench = Bench::new();
        bench.board.with(|hardware| hardware.lie = Some(lie));
        bench.offer(1, 1, 100);
        bench.transmit();
        bench.arrive(frame(1, 100));
        assert!(bench.receive().is_empty());
        // Whatever became of the packet, its token comes once.
        assert_eq!(bench.completions(), [1], "{lie:?}");
        bench.board.with(|hardware| {
            hardware.lie = None;
            hardware.wire.clear();
        });
        assert!(bench.device.stats().resets >= 1, "{lie:?}");
        works(&mut bench);
        assert_eq!(bench.receive.free(), 48 - 32, "{lie:?}");
    }
}

#[test]
fn a_device_that_asks_for_a_reset_gets_one() {
    let mut bench = Bench::new();
    bench.board.with(|hardware| hardware.holds_back = true);
    let pool = bench.board.pool(1, 64, false);
    let packet = bench.out.vacant().unwrap();
    packet.header_mut(14).fill(7);
    packet.push_chunk(Chunk::Pool(pool.take().unwrap().freeze(0..64))).unwrap();
    packet.meta.token = TxToken(5);
    bench.out.commit();
    bench.transmit();
    bench.board.with(|hardware| {
        hardware.holds_back = false;
        hardware.give_up();
    });
    assert!(bench.is_interrupted());
    assert!(bench.receive().is_empty());
    assert_eq!((bench.completions(), pool.free()), (vec![5], 1));
    assert_eq!(bench.device.stats().resets, 1);
    works(&mut bench);
}

#[test]
fn a_device_that_does_not_stop_keeps_its_buffers() {
    // Memory that is given up on purpose is a leak to the sanitizer.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    let mut bench = Bench::new();
    bench.offer(1, 1, 100);
    bench.transmit();
    bench.board.with(|hardware| {
        hardware.is_stuck = true;
        hardware.give_up();
    });
    assert!(bench.is_interrupted());
    let now = Instant::ZERO;
    assert_eq!(bench.device.receive(now, &mut bench.batch), Err(DeviceError::Io(1)));
    assert_eq!(bench.device.transmit(now, &mut bench.out), Err(DeviceError::Io(1)));
    assert!(bench.device.poll_completion().is_none() && bench.arm());
    let Bench { device, receive, .. } = bench;
    drop(device);
    assert_eq!(receive.free(), 48 - 32, "what the device may write to is nobody's");
}

#[test]
fn a_device_that_is_dropped_stops_first() {
    let Bench { board, device, receive, .. } = Bench::new();
    drop(device);
    assert_eq!(receive.free(), 48);
    board.with(|hardware| assert_eq!((hardware.status, hardware.held()), (0, [0, 0])));
}

#[test]
fn an_interrupt_without_a_cause_wakes_nobody() {
    let bench = Bench::new();
    assert!(!bench.interrupt.handle());
}
