//! One thing at a time.

use super::*;
use crate::model::{Faults, Line};
use core::cell::RefCell;
use linerate_nic::mcdma::queue::ERROR_RESET;
use linerate_nic::mcdma::{Direction, StartError};
use linerate_nic::{ChecksumRequest, DeviceError, Dma as _, Filter, Segmentation};

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let good = settings();
    let len = good.memory_needed();
    assert_eq!(len, 81 * 64);
    for (settings, at, len, expected) in [
        (Settings { mtu: 60, ..good }, DESCRIPTORS, len, "mtu is 60: expected 68 to 9000"),
        (Settings { queues: 9, ..good }, DESCRIPTORS, len, "queues is 9: expected 1 to 8"),
        (Settings { transmit_ring: 8, ..good }, DESCRIPTORS, len, "transmit_ring is 8: expected 20 to 4096"),
        (
            Settings { receive_ring: 9_999, ..good },
            DESCRIPTORS,
            len,
            "receive_ring is 9999: expected 20 to 4096",
        ),
        (Settings { queues: 5, ..good }, DESCRIPTORS, 1 << 20, "5 queues: the hardware has 4"),
        (good, DESCRIPTORS + 32, len, "descriptor memory at 0x100020: expected a multiple of 64"),
        (good, DESCRIPTORS, len - 1, "descriptor memory of 5183 bytes: these rings need 5184"),
    ] {
        let error = open(Board::new(1), at, len, &settings).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let board = Board::new(1);
    board.with(|hardware| hardware.faults = Faults { stuck_reset: true, ..Faults::default() });
    let error = open(board, DESCRIPTORS, len, &good).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "Transmit channels do not come out of their reset");
}

#[test]
fn a_queue_does_not_start_with_memory_that_does_not_do() {
    let start = |receive: &dyn Fn(&Board) -> Pool, transmit: &dyn Fn(&Board) -> Pool| {
        let board = Board::new(1);
        board.with(|hardware| hardware.memory.reaches_only_pools = true);
        let (_, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings()).expect("opens");
        let queue = queues.into_iter().next().expect("a queue");
        queue.start(receive(&board), transmit(&board)).map(|_| ()).unwrap_err()
    };
    let good = |board: &Board| board.pool(48, 2_048, true);
    let small = |board: &Board| board.pool(48, 1_521, false);
    let elsewhere = |_: &Board| Pool::new(8, 2_048);
    let held = RefCell::new(Vec::new());
    let taken = |board: &Board| {
        let pool = board.pool(1, 2_048, false);
        held.borrow_mut().extend(pool.take());
        pool
    };
    let error = start(&good, &small);
    assert_eq!(error.to_string(), "transmit pool: buffers of 1521 bytes; the longest frame has 1522");
    assert_eq!(start(&elsewhere, &good), StartError::Unreachable { pool: "receive" });
    let uneven = |board: &Board| board.pool_at(32, 48, 2_080, true);
    let error = start(&uneven, &good).to_string();
    assert!(
        error.starts_with("receive pool: a buffer at 0x") && error.ends_with("multiples of 64"),
        "{error}"
    );
    assert_eq!(start(&good, &taken), StartError::Empty { pool: "transmit" });
    let few = |board: &Board| board.pool(30, 2_048, false);
    let error = start(&good, &few);
    assert_eq!(error.to_string(), "transmit: 30 buffers; the longest packet takes 33");
    let board = Board::new(1);
    let settings = Settings { transmit_ring: 20, ..settings() };
    let (_, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
    let queue = queues.into_iter().next().expect("a queue");
    let error = queue.start(good(&board), good(&board)).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "transmit: 19 descriptors; the longest packet takes 33");
}

#[test]
fn frames_leave_in_one_batch_with_one_doorbell_and_are_reported_once() {
    let mut bench = Bench::new(1);
    for number in 1..=3 {
        bench.offer(number, number as usize, 400);
    }
    let before = bench.queue.stats().doorbells;
    assert_eq!(bench.transmit(), 3);
    assert_eq!(bench.queue.stats().doorbells, before + 1);
    assert!(bench.completions().is_empty(), "nothing has left yet");
    bench.pass_us(100);
    let sent: Vec<u64> = bench.wire().iter().map(|bytes| number(bytes, 400)).collect();
    assert_eq!((sent, bench.completions()), (vec![1, 2, 3], vec![1, 2, 3]));
    assert!(bench.completions().is_empty());
    assert_eq!(bench.transmit.free(), bench.transmit.len());
    assert_eq!(bench.queue.stats().copied, 0);
}

#[test]
fn payload_is_copied_where_it_cannot_be_read() {
    for (reaches_only_pools, gather, pieces, copied) in
        [(false, true, 7, 0), (false, true, 18, 0), (true, true, 1, 1), (false, false, 1, 1)]
    {
        let mut bench = Bench::new(1);
        bench.board.with(|hardware| hardware.memory.reaches_only_pools = reaches_only_pools);
        bench.control.enable(Capabilities { gather, ..Capabilities::NONE }).expect("it has that");
        bench.offer(5, pieces, 1_514);
        assert_eq!(bench.transmit(), 1);
        bench.pass_us(100);
        assert_eq!(number(&bench.wire()[0], 1_514), 5);
        assert_eq!(bench.queue.stats().copied, copied, "{pieces} pieces");
        assert_eq!(bench.completions(), [5]);
    }
}

#[test]
fn payload_and_headers_stay_with_the_engine_until_it_is_done() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.memory.reaches_only_pools = true);
    let payload = bench.board.pool(4, 512, false);
    for number in 1..=4 {
        let bytes = frame(number, 200, PEER);
        let mut buffer = payload.take().expect("a buffer");
        buffer.bytes_mut()[..186].copy_from_slice(&bytes[14..]);
        let packet = bench.out.vacant().expect("room");
        packet.header_mut(14).copy_from_slice(&bytes[..14]);
        packet.push_chunk(Chunk::Pool(buffer.freeze(0..186))).expect("room in the list");
        packet.meta.token = TxToken(number);
        bench.out.commit();
        bench.transmit();
        assert_eq!((payload.free(), bench.transmit.free()), (4 - number as usize, 48 - number as usize));
    }
    bench.pass_us(100);
    assert_eq!(payload.free(), 0, "not before the driver has seen it");
    assert_eq!(bench.completions(), [1, 2, 3, 4]);
    assert_eq!((payload.free(), bench.transmit.free()), (4, 48));
    assert!(bench.wire().iter().map(|bytes| number(bytes, 200)).eq(1..=4));
    assert_eq!(bench.queue.stats().copied, 0);
}

#[test]
fn what_the_hardware_cannot_do_is_not_given_to_it() {
    let mut bench = Bench::new(1);
    let request = |start, offset| Some(ChecksumRequest { start, offset });
    for (at, (len, checksum, segmentation)) in [
        (1_523, None, Segmentation::None),
        (60, request(40, 19), Segmentation::None),
        (60, request(0xFFFF, 0xFFFF), Segmentation::None),
        (60, request(14, 16), Segmentation::Tcp4(20)),
    ]
    .into_iter()
    .enumerate()
    {
        bench.offer(at as u64 + 1, 1, len);
        let packet = bench.out.front_mut().expect("it");
        (packet.meta.checksum, packet.meta.segmentation) = (checksum, segmentation);
        assert_eq!(bench.transmit(), 1, "taken all the same");
        assert_eq!(bench.completions(), [at as u64 + 1]);
    }
    bench.pass_us(100);
    assert!(bench.wire().is_empty());
    assert_eq!((bench.queue.stats().refused, bench.queue.stats().sent), (4, 0));
}

#[test]
fn a_full_ring_takes_what_fits_and_has_room_again() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.set_link(false));
    (1..=40).for_each(|number| bench.offer(number, 1, 100));
    let taken = bench.transmit();
    assert_eq!(taken, 23, "packets of two descriptors in a ring of 48");
    assert_eq!((bench.out.len(), bench.queue.stats().ring_full), (40 - taken, 1));
    assert!(!bench.arm());
    bench.board.with(|hardware| hardware.set_link(true));
    bench.pass_us(2);
    assert!(bench.is_interrupted(), "there is room");
    let mut sent = Vec::new();
    while sent.len() < 40 {
        bench.pass_us(100);
        bench.transmit();
        sent.extend(bench.completions());
    }
    assert!(sent.into_iter().eq(1..=40));
    assert_eq!(bench.wire().len(), 40);
}

#[test]
fn frames_come_in_buffers_that_return() {
    let mut bench = Bench::new(1);
    for round in 0..100 {
        bench.arrive(frame(round, 60 + round as usize, MAC));
        let frames = bench.receive();
        assert_eq!(frames.len(), 1);
        assert_eq!(number(frames[0].data.bytes(), 60 + round as usize), round);
    }
    assert_eq!(bench.receive.free(), 64 - 31, "all but what the ring has");
    assert_eq!(bench.queue.stats().received, 100);
}

#[test]
fn the_engine_keeps_buffers_while_the_pool_is_dry() {
    let mut bench = Bench::with(1, &settings(), 40);
    let mut held = Vec::new();
    for round in 0..200 {
        bench.arrive(frame(round, 100, MAC));
        held.extend(bench.receive());
    }
    assert_eq!(held.len(), 40 - 7, "a quarter of the ring stays");
    let dropped = bench.queue.stats().receive_no_buffer;
    assert_eq!(dropped, 200 - held.len() as u64);
    assert_eq!(bench.board.with(|hardware| hardware.overflows()), 0, "and the hardware has to drop nothing");
    drop(held);
    // Buffers came back while the loop did something else; what comes next is handed on.
    for round in 200..300 {
        bench.arrive(frame(round, 100, MAC));
        let frames = bench.receive();
        assert_eq!(number(frames[0].data.bytes(), 100), round);
    }
    assert_eq!(bench.queue.stats().receive_no_buffer, dropped);
}

#[test]
fn frames_that_are_wrong_are_dropped_and_counted() {
    let mut bench = Bench::new(1);
    // Longer than the longest frame, in two descriptors.
    bench.arrive(frame(1, 3_000, MAC));
    assert!(bench.receive().is_empty());
    assert_eq!(bench.queue.stats().receive_length, 1);
    bench.board.with(|hardware| hardware.faults.packet_error = 1_000);
    bench.arrive(frame(2, 100, MAC));
    assert!(bench.receive().is_empty());
    bench.offer(7, 1, 100);
    bench.transmit();
    bench.pass_us(100);
    assert_eq!((bench.completions(), bench.wire().len()), (vec![7], 0));
    bench.board.with(|hardware| hardware.faults.packet_error = 0);
    bench.arrive(frame(3, 100, MAC));
    assert_eq!(number(bench.receive()[0].data.bytes(), 100), 3);
    let stats = bench.queue.stats();
    assert_eq!((stats.receive_errors, stats.transmit_errors, stats.received), (1, 1, 1));
}

#[test]
fn nothing_comes_unseen_between_arming_and_sleeping() {
    let mut bench = Bench::new(1);
    // Before: arming says so. The interrupt that has been waiting meanwhile wakes nobody for nothing.
    bench.arrive(frame(1, 100, MAC));
    assert!(bench.arm());
    assert_eq!(bench.receive().len(), 1);
    assert!(!bench.arm());
    assert!(!bench.is_interrupted());
    // After: an interrupt.
    bench.arrive(frame(2, 100, MAC));
    assert!(bench.is_interrupted());
    assert!(!bench.is_interrupted(), "acknowledged");
    // Until it is armed again there is none, and then there is one if something is left.
    bench.arrive(frame(3, 100, MAC));
    bench.offer(8, 1, 100);
    bench.transmit();
    bench.pass_us(100);
    assert!(bench.board.with(|hardware| hardware.poll_interrupt()).is_none());
    assert!(bench.arm());
    assert_eq!((bench.receive().len(), bench.completions()), (2, vec![8]));
    bench.offer(9, 1, 100);
    bench.transmit();
    assert!(!bench.arm());
    bench.pass_us(100);
    assert!(bench.is_interrupted(), "a completion");
    assert_eq!(bench.completions(), [9]);
    assert!(!bench.interrupt.handle(), "without a cause");
}

/// The same at every point: a frame, or a completion, comes at each access of the driver's to the hardware while it arms.
#[test]
fn whenever_something_comes_while_arming_it_is_seen_or_interrupts() {
    let access = Duration::from_nanos(100);
    for is_frame in [true, false] {
        let (mut seen, mut interrupted) = (0, 0);
        for at in 0..100 {
            let mut bench = Bench::new(1);
            // The interrupt of something that has long been taken is waiting, as it would be in a busy loop.
            bench.arrive(frame(1, 100, MAC));
            bench.receive();
            let late_by = access * at;
            bench.board.with(|hardware| {
                hardware.faults = Faults { late: 1_000, late_by, late_exactly: true, ..Faults::default() };
            });
            if is_frame {
                bench.board.with(|hardware| hardware.arrive(bench.now, frame(2, 100, MAC)));
            } else {
                bench.offer(2, 1, 100);
                bench.transmit();
            }
            bench.board.with(|hardware| hardware.access = access);
            let is_seen = bench.arm();
            bench.board.with(|hardware| hardware.access = Duration::ZERO);
            bench.pass_us(100);
            let is_interrupted = bench.is_interrupted();
            assert!(is_seen || is_interrupted, "lost at access {at}");
            seen += u32::from(is_seen);
            interrupted += u32::from(!is_seen);
            assert_eq!(bench.receive().len() + bench.completions().len(), 1);
        }
        assert!(interrupted > 10 && (seen > 5 || !is_frame), "{seen} and {interrupted}");
    }
}

#[test]
fn packets_come_back_in_any_order_and_each_once() {
    let mut bench = Bench::new(3);
    bench.board.with(|hardware| {
        hardware.faults =
            Faults { late: 1_000, late_by: Duration::from_millis(1), any_order: true, ..Faults::default() };
    });
    (1..=10).for_each(|number| bench.offer(number, 2, 200));
    let (mut taken, mut reported) = (bench.transmit(), Vec::new());
    for _ in 0..2_000 {
        bench.pass_us(2);
        reported.extend(bench.completions());
        taken += bench.transmit();
    }
    assert_eq!(taken, 10);
    assert!(!reported.is_sorted(), "this seed lets none pass another");
    reported.sort_unstable();
    assert!(reported.into_iter().eq(1..=10));
}

#[test]
fn a_packet_that_never_comes_back_is_given_up_and_not_sent_again() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.faults.never = 1_000);
    bench.offer(1, 1, 200);
    bench.transmit();
    bench.pass(Duration::from_millis(4_990));
    assert!(!bench.arm() && bench.completions().is_empty());
    bench.board.with(|hardware| hardware.faults.never = 0);
    bench.offer(2, 1, 200);
    bench.transmit();
    bench.pass(Duration::from_millis(20));
    assert!(bench.arm());
    let mut reported = bench.completions();
    reported.sort_unstable();
    assert_eq!(reported, [1, 2]);
    bench.offer(3, 1, 200);
    bench.transmit();
    bench.pass_us(100);
    assert_eq!(bench.completions(), [3]);
    let sent: Vec<u64> = bench.wire().iter().map(|bytes| number(bytes, 200)).collect();
    assert_eq!(sent, [1, 2, 3], "each once");
    assert_eq!((bench.queue.stats().stalls, bench.queue.stats().abandoned), (1, 1));
}

#[test]
fn a_dead_link_is_no_reason_for_a_reset() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.set_link(false));
    assert!(bench.control.handle_interrupt() && !bench.control.link().is_up);
    bench.offer(1, 1, 200);
    bench.transmit();
    for _ in 0..60 {
        bench.pass(Duration::from_secs(1));
        assert!(!bench.arm());
    }
    bench.board.with(|hardware| hardware.set_link(true));
    assert!(!bench.arm(), "the engine has its time from now on");
    bench.pass_us(100);
    assert_eq!((bench.completions(), bench.wire().len()), (vec![1], 1));
    assert_eq!(bench.queue.stats().stalls, 0);
    assert!(bench.control.handle_interrupt());
    let link = bench.control.link();
    assert_eq!((link.is_up, link.speed.map(|speed| speed.as_bps())), (true, Some(1_000_000_000)));
}

#[test]
fn the_macs_interrupt_tells_of_the_link() {
    let bench = Bench::new(1);
    bench.board.with(|hardware| hardware.set_link(false));
    assert_eq!(bench.board.with(|hardware| hardware.poll_interrupt()), Some(Line::Mac));
    bench.board.with(|hardware| hardware.set_link(true));
    assert_eq!(bench.board.with(|hardware| hardware.poll_interrupt()), None, "not acknowledged yet");
}

#[test]
fn a_lost_status_does_not_stop_what_comes_behind_it_for_ever() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.faults.never = 1_000);
    bench.arrive(frame(1, 100, MAC));
    bench.board.with(|hardware| hardware.faults.never = 0);
    bench.arrive(frame(2, 100, MAC));
    for _ in 0..7 {
        assert!(bench.receive().is_empty());
        bench.pass(Duration::from_secs(1));
        bench.arm();
    }
    bench.arrive(frame(3, 100, MAC));
    assert_eq!(number(bench.receive()[0].data.bytes(), 100), 3);
    assert_eq!(bench.queue.stats().stalls, 1);
}

#[test]
fn an_idle_queue_has_not_stalled() {
    for is_up in [true, false] {
        let mut bench = Bench::new(1);
        bench.board.with(|hardware| hardware.set_link(is_up));
        // A clock that has counted from the start of the machine, as on Linux.
        bench.pass(Duration::from_secs(3_600));
        for _ in 0..12 {
            assert!(!bench.arm());
            bench.pass(Duration::from_secs(1));
        }
        bench.board.with(|hardware| hardware.set_link(true));
        bench.arrive(frame(1, 100, MAC));
        assert_eq!(number(bench.receive()[0].data.bytes(), 100), 1);
        assert_eq!(bench.queue.stats().stalls, 0);
    }
}

#[test]
fn a_channel_that_has_stopped_is_started_again() {
    for direction in [Direction::Receive, Direction::Transmit] {
        for is_silent in [true, false] {
            let mut bench = Bench::new(1);
            if direction == Direction::Transmit {
                bench.offer(1, 1, 200);
                bench.transmit();
            }
            assert!(!bench.arm());
            if is_silent {
                bench.board.with(|hardware| hardware.forget(direction, 0));
                bench.pass(Duration::from_secs(1));
                assert_eq!(bench.queue.poll_timeout().map(|at| at <= bench.now), Some(true));
            } else {
                bench.board.with(|hardware| hardware.faults.channel_error = 1_000);
                match direction {
                    Direction::Transmit => {
                        bench.offer(2, 1, 200);
                        bench.transmit();
                    }
                    Direction::Receive => bench.arrive(frame(2, 100, MAC)),
                }
                bench.pass_us(50);
                assert!(bench.is_interrupted());
                bench.board.with(|hardware| hardware.faults.channel_error = 0);
            }
            assert!(bench.arm(), "interrupts are shut after a reset: the loop comes round");
            bench.completions();
            bench.receive();
            assert!(!bench.arm());
            bench.offer(3, 1, 200);
            bench.transmit();
            bench.arrive(frame(3, 100, MAC));
            assert_eq!(number(bench.receive()[0].data.bytes(), 100), 3, "{direction:?}");
            bench.pass_us(100);
            assert_eq!(bench.completions(), [3], "{direction:?}");
            assert_eq!(bench.transmit.free(), bench.transmit.len());
        }
    }
}

#[test]
fn what_came_before_a_failure_is_kept() {
    let mut bench = Bench::new(1);
    for number in 1..=2 {
        bench.arrive(frame(number, 100, MAC));
        bench.offer(number, 1, 100);
    }
    bench.transmit();
    bench.pass_us(100);
    bench.board.with(|hardware| hardware.faults.channel_error = 1_000);
    bench.arrive(frame(3, 100, MAC));
    bench.offer(3, 1, 100);
    bench.transmit();
    bench.board.with(|hardware| hardware.faults.channel_error = 0);
    assert!(bench.arm());
    let numbers: Vec<u64> = bench.receive().iter().map(|frame| number(frame.data.bytes(), 100)).collect();
    assert_eq!((numbers, bench.completions()), (vec![1, 2], vec![1, 2, 3]));
    assert_eq!((bench.wire().len(), bench.queue.stats().abandoned), (2, 1));
    assert!(bench.arm(), "now there is nothing left to keep");
    assert!(!bench.arm());
    bench.arrive(frame(4, 100, MAC));
    assert_eq!(number(bench.receive()[0].data.bytes(), 100), 4);
}

#[test]
fn an_engine_that_does_not_stop_keeps_its_memory() {
    // Memory that is given up on purpose is a leak to the sanitizer.
    if std::env::var_os("ASAN_OPTIONS").is_some() {
        return;
    }
    let Bench { board, mut queue, receive, .. } = Bench::new(1);
    let (free, now) = (receive.free(), Instant::from_millis(1));
    board.with(|hardware| hardware.faults.stuck_reset = true);
    assert_eq!(queue.reset(), Err(DeviceError::Io(ERROR_RESET)));
    assert!(queue.receive(now, &mut RxBatch::with_limit(1)).is_err());
    assert!(queue.arm(now), "the loop comes round and sees the error");
    drop(queue);
    assert_eq!(receive.free(), free, "31 buffers are never given to anybody again");
}

#[test]
fn a_dropped_queue_gives_everything_back() {
    let mut bench = Bench::new(1);
    bench.board.with(|hardware| hardware.set_link(false));
    bench.offer(1, 1, 200);
    bench.transmit();
    let Bench { queue, receive, transmit, board, .. } = bench;
    drop(queue);
    assert_eq!((receive.free(), transmit.free()), (receive.len(), transmit.len()));
    // What comes now is written nowhere.
    board.with(|hardware| hardware.arrive(Instant::ZERO, frame(1, 100, MAC)));
    let buffer = receive.take().expect("a buffer");
    assert!(board.bus_address(buffer.bytes()).is_some());
    board.with(|hardware| hardware.step(Instant::from_millis(100)));
}

#[test]
fn the_filter_lets_through_what_it_should() {
    let mut bench = Bench::new(1);
    let group = MacAddr([0x33, 0x33, 0, 0, 0, 1]);
    let other = MacAddr([0x33, 0x33, 0xFF, 0, 0, 9]);
    let all = [MAC, MacAddr([0xFF; 6]), PEER, group, other];
    for (groups, all_groups, promiscuous, expected) in [
        (&[][..], false, false, [true, true, false, false, false]),
        (&[group][..], false, false, [true, true, false, true, false]),
        (&[], true, false, [true, true, false, true, true]),
        (&[], false, true, [true; 5]),
    ] {
        bench.control.set_filter(&Filter { groups, all_groups, promiscuous }).expect("it has one");
        for (to, expected) in all.into_iter().zip(expected) {
            bench.arrive(frame(1, 100, to));
            assert_eq!(bench.receive().len(), usize::from(expected), "{to:?}");
        }
    }
}
