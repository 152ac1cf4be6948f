//! One thing at a time.

use super::*;
use crate::model::memory::CacheOperation;
use linerate_nic::virtio::{OpenError, is_network, memory_len};
use linerate_nic::{
    Capabilities, ChecksumRequest, ChecksumStatus, Device as _, DeviceError, Interface, LinkState, MacAddr,
    Segmentation,
};

fn open(board: &Board, settings: &Settings) -> Result<Virtio<Board>, OpenError> {
    let (receive, headers) = (board.pool(48, 1_600, true), board.pool(64, 172, false));
    Virtio::open(board.clone(), (DESCRIPTORS, DESCRIPTORS_LEN), receive, &headers, settings)
}

#[test]
fn it_agrees_on_what_both_know() {
    let bench = Bench::new();
    assert_eq!(bench.device.mac(), MacAddr(model::MAC));
    assert_eq!((bench.device.mtu(), bench.device.link()), (1_500, LinkState::UP));
    assert_eq!(bench.device.capabilities(), Capabilities::ALL);
    // Features that the driver does not know stay the device's.
    bench.board.with(|hardware| assert_eq!(hardware.agreed, model::ALL & !(1 << 17)));
    fn is_interface(_: &impl Interface) {}
    is_interface(&bench.device);
}

#[test]
fn offloads_that_nobody_wants_are_not_agreed_on() {
    let board = Board::new(model::ALL);
    let mut device = open(&board, &Settings { offloads: Capabilities::NONE, ..settings() }).unwrap();
    let wanted = Capabilities { gather: true, ..Capabilities::NONE };
    assert_eq!(device.capabilities(), wanted);
    assert_eq!(device.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
    drop(device);
    // Coalescing and splitting stand on checksums, coalescing on frames in several buffers.
    for (without, lost) in [(1, 0b1_1000), (1 << 1, 0x20), (model::MRG_RXBUF, 0x20)] {
        let board = Board::new(model::ALL & !without);
        let capabilities = open(&board, &settings()).unwrap().capabilities();
        let has =
            [(capabilities.tso4, 0b1000), (capabilities.tso6, 0b1_0000), (capabilities.rx_coalescing, 0x20)];
        for (has, bit) in has {
            assert_eq!(has, lost & bit == 0, "{without:#x} {bit:#x}");
        }
    }
}

#[test]
fn a_device_that_cannot_be_used_is_named() {
    let refused = |change: &dyn Fn(&mut model::Hardware), settings: &Settings| {
        let board = Board::new(model::ALL);
        board.with(change);
        open(&board, settings).unwrap_err()
    };
    let settings = settings();
    assert_eq!(refused(&|it| it.magic = 0, &settings), OpenError::NoAnswer(0));
    let legacy = refused(&|it| it.version = 1, &settings);
    assert!(legacy.to_string().contains("force-legacy=false"), "{legacy}");
    assert_eq!(refused(&|it| it.kind = 2, &settings), OpenError::OtherDevice(2));
    assert_eq!(refused(&|it| it.is_stuck = true, &settings), OpenError::Stuck);
    assert!(matches!(refused(&|it| it.refuses = true, &settings), OpenError::Refused(_)));
    assert!(matches!(refused(&|it| it.offered &= !(1 << 32), &settings), OpenError::Refused(_)));
    for len in [0, 16, 33, 2_048] {
        assert_eq!(refused(&|_| {}, &Settings { transmit_ring: len, ..settings }), OpenError::Length(len));
    }
    let board = Board::new(model::ALL);
    assert!(is_network(&board));
    let need = memory_len(&settings);
    let try_with = |memory, receive: usize, headers: usize| {
        let pools = (board.pool(4, receive, true), board.pool(headers, 172, false));
        Virtio::open(board.clone(), memory, pools.0, &pools.1, &settings).unwrap_err()
    };
    let short = OpenError::Memory { base: DESCRIPTORS, have: need - 1, need };
    assert_eq!(try_with((DESCRIPTORS, need - 1), 1_600, 32), short);
    assert!(matches!(try_with((DESCRIPTORS + 8, need), 1_600, 32), OpenError::Memory { .. }));
    assert!(try_with((DESCRIPTORS, need), 1_500, 32).to_string().contains("1 buffers of 1534 bytes"));
    assert!(try_with((DESCRIPTORS, need), 1_600, 31).to_string().contains("32 buffers of 172 bytes"));
}

#[test]
fn packets_leave_in_order_and_are_reported_in_any() {
    for any_order in [false, true] {
        let mut bench = Bench::new();
        bench.board.with(|hardware| hardware.any_order = any_order);
        let mut number = 0;
        for round in 0..40 {
            let from = number;
            for pieces in [0, 1, 2, 7] {
                number += 1;
                bench.offer(number, pieces, 60 + round + 10 * pieces);
            }
            assert_eq!(bench.transmit(), 4);
            bench.step();
            let left: Vec<_> = bench.wire();
            for (at, sent) in (from + 1..=number).zip(&left) {
                assert_eq!(*sent, frame(at, sent.len()));
            }
            let mut done = bench.completions();
            done.sort_unstable();
            assert_eq!(done, (from + 1..=number).collect::<Vec<_>>());
        }
        assert_eq!(bench.device.stats().tx_packets, 160);
    }
}

#[test]
fn a_full_ring_waits_and_interrupts_when_there_is_room() {
    let mut bench = Bench::new();
    bench.board.with(|hardware| hardware.holds_back = true);
    for number in 1..=20 {
        bench.offer(number, 1, 100);
    }
    // Two descriptors each of 32.
    assert_eq!((bench.transmit(), bench.out.len()), (16, 4));
    assert!(!bench.arm() && !bench.is_interrupted());
    bench.board.with(|hardware| hardware.holds_back = false);
    bench.step();
    assert!(bench.is_interrupted());
    assert_eq!(bench.transmit(), 4);
    bench.step();
    assert_eq!(bench.completions(), (1..=20).collect::<Vec<_>>());
    assert_eq!((bench.wire().len(), bench.device.stats().tx_full), (20, 1));
}

#[test]
fn room_that_came_before_the_loop_sleeps_is_not_forgotten() {
    let mut bench = Bench::new();
    bench.board.with(|hardware| hardware.holds_back = true);
    // Nobody asks for a token of these.
    (0..20).for_each(|_| bench.offer(0, 1, 100));
    assert_eq!((bench.transmit(), bench.transmit()), (16, 0));
    bench.board.with(|hardware| hardware.holds_back = false);
    bench.step();
    assert!(bench.completions().is_empty());
    assert!(bench.arm(), "four can be sent");
    assert_eq!(bench.transmit(), 4);
    bench.step();
    assert!(bench.completions().is_empty() && !bench.arm());
}

#[test]
fn payload_is_kept_until_the_device_has_read_it() {
    let mut bench = Bench::new();
    bench.board.with(|hardware| hardware.holds_back = true);
    let pool = bench.board.pool(4, 64, false);
    let packet = bench.out.vacant().unwrap();
    packet.header_mut(14).fill(7);
    packet.push_chunk(Chunk::Pool(pool.take().unwrap().freeze(0..64))).unwrap();
    bench.out.commit();
    bench.transmit();
    bench.step();
    assert_eq!((bench.completions().len(), pool.free()), (0, 3));
    bench.board.with(|hardware| hardware.holds_back = false);
    bench.step();
    // Without a token nothing is reported, and the buffer comes back all the same.
    assert_eq!((bench.completions().len(), pool.free()), (0, 4));
}

#[test]
fn what_is_asked_of_the_device_stands_in_the_header() {
    let mut bench = Bench::new();
    bench.offer(1, 1, 3_000);
    let packet = bench.out.front_mut().unwrap();
    packet.header_mut(54);
    packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
    packet.meta.segmentation = Segmentation::Tcp4(1_448);
    packet.meta.header_len = 54;
    bench.transmit();
    bench.step();
    let sent = bench.board.with(|hardware| hardware.wire.pop_front()).unwrap();
    assert_eq!(sent.header, [1, 1, 54, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0]);
    assert_eq!((bench.device.stats().tx_split, bench.completions()), (1, vec![1]));
    // What the device cannot do is dropped, counted, and reported.
    bench.device.enable(Capabilities { tso4: false, ..Capabilities::ALL }).unwrap();
    for (len, segmentation) in [(3_000, Segmentation::Tcp4(1_448)), (1_523, Segmentation::None)] {
        bench.offer(2, 1, len);
        bench.out.front_mut().unwrap().meta.segmentation = segmentation;
        assert_eq!((bench.transmit(), bench.completions()), (1, vec![2]));
    }
    assert_eq!(bench.device.stats().drop_tx_errors, 2);
}

#[test]
fn frames_come_in_as_many_buffers_as_they_need() {
    let mut bench = Bench::new();
    for round in 0..40 {
        let sizes = [60, 1_514, 1_588, 1_589, 5_000, 14 + 20_000];
        for (at, len) in (0..).zip(sizes) {
            bench.arrive(frame(round * 10 + at, len));
        }
        let frames = bench.receive();
        assert_eq!(frames.len(), sizes.len());
        for (at, (got, len)) in (0..).zip(frames.iter().zip(sizes)) {
            assert_eq!((got.len(), bytes(got)), (len, frame(round * 10 + at, len)));
        }
    }
    assert!(bench.receive().is_empty());
    assert_eq!(bench.receive.free(), 48 - 32);
    assert_eq!(bench.device.stats().rx_frames, 240);
}

/// A buffer begins with whatever it was used for before, a checksum's bytes for example.
#[test]
fn without_merged_buffers_each_frame_is_one_whatever_the_field_says() {
    let mut bench = Bench::on(Board::new(model::ALL & !model::MRG_RXBUF), 48, 1_600);
    let taken: Vec<_> = core::iter::from_fn(|| bench.receive.take()).collect();
    for mut buffer in taken {
        buffer.bytes_mut().fill(0xa5);
    }
    for number in 0..100 {
        bench.arrive(frame(number, 700));
        let frames = bench.receive();
        assert_eq!(frames.len(), 1, "{number}");
        assert_eq!(bytes(&frames[0]), frame(number, 700));
    }
    assert_eq!(bench.device.stats().resets, 0);
}

#[test]
fn what_the_device_says_of_a_frame_is_passed_on() {
    let mut bench = Bench::new();
    let mut header = [0; 12];
    let mut statuses = Vec::new();
    for (flags, kind, size) in [(0, 0, 0), (2, 0, 0), (1, 4, 1_440), (0, 3, 0)] {
        (header[0], header[1]) = (flags, kind);
        header[4..6].copy_from_slice(&u16::to_le_bytes(size));
        bench.board.with(|hardware| hardware.arrive(header, frame(1, 100)));
        bench.step();
        statuses.extend(bench.receive().iter().map(|frame| (frame.meta.checksum, frame.meta.segment_size)));
    }
    let good = ChecksumStatus::Good;
    assert_eq!(statuses, [(ChecksumStatus::Unchecked, 0), (good, 0), (good, 1_440)]);
    let stats = bench.device.stats();
    assert_eq!((stats.rx_coalesced, stats.drop_rx_errors), (1, 1));
}

/// A later kind of segments, for example.
#[test]
fn a_frame_whose_header_means_nothing_is_dropped_with_all_its_buffers() {
    let mut bench = Bench::new();
    let mut header = [0; 12];
    header[1] = 5;
    bench.board.with(|hardware| hardware.arrive(header, frame(1, 4_000)));
    bench.arrive(frame(2, 4_000));
    let frames = bench.receive();
    assert_eq!((frames.len(), bytes(&frames[0])), (1, frame(2, 4_000)));
    let stats = bench.device.stats();
    assert_eq!((stats.rx_frames, stats.drop_rx_errors, stats.resets), (1, 1, 0));
}

#[test]
fn a_dry_pool_drops_frames_and_never_starves_the_device() {
    let mut bench = Bench::on(Board::new(model::ALL), 32, 1_600);
    let mut kept = Vec::new();
    for number in 0..100 {
        bench.arrive(frame(number, 60));
        kept.extend(bench.receive());
    }
    let stats = bench.device.stats();
    assert_eq!((kept.len(), stats.drop_rx_no_buffer), (24, 76));
    kept.clear();
    for number in 0..100 {
        bench.arrive(frame(number, 3_000));
        assert_eq!(bytes(&bench.receive()[0]), frame(number, 3_000));
    }
}

#[test]
fn the_device_is_notified_and_interrupts_when_the_other_waits() {
    for events in [0, model::EVENT_IDX] {
        let mut bench = Bench::on(Board::new(model::ALL & !model::EVENT_IDX | events), 48, 1_600);
        let before = bench.board.with(|hardware| (hardware.notified, hardware.interrupts));
        for number in 1..=8 {
            bench.offer(number, 1, 100);
        }
        bench.transmit();
        bench.step();
        // One notification for all, no interrupt while nobody waits.
        let after = bench.board.with(|hardware| (hardware.notified, hardware.interrupts));
        assert_eq!((after.0[1] - before.0[1], after.1 - before.1), (1, 0), "{events:#x}");
        assert!(bench.arm(), "completions wait");
        bench.completions();
        bench.receive();
        assert!(!bench.arm());
        bench.arrive(frame(1, 60));
        assert!(bench.is_interrupted());
        assert!(!bench.is_interrupted());
        assert_eq!(bench.receive().len(), 1);
        // Awake from here on.
        let before = bench.board.with(|hardware| hardware.interrupts);
        bench.arrive(frame(2, 60));
        bench.offer(9, 1, 100);
        bench.transmit();
        bench.step();
        assert_eq!(bench.board.with(|hardware| hardware.interrupts), before, "nobody armed it");
        assert_eq!(bench.receive().len(), 1);
    }
}

/// For a loop that lets frames wait until there are so many; without events the device interrupts at each.
#[test]
fn it_interrupts_at_the_buffer_that_was_asked_for() {
    for events in [0, model::EVENT_IDX] {
        let mut bench = Bench::on(Board::new(model::ALL & !model::EVENT_IDX | events), 48, 1_600);
        assert_eq!(bench.device.arm_for(Instant::ZERO, 3), Some(false));
        for waiting in 1..=3 {
            bench.arrive(frame(waiting, 60));
            let interrupts = bench.is_interrupted();
            assert_eq!(u64::from(bench.device.waiting()), waiting);
            assert_eq!(interrupts, events == 0 || waiting == 3);
        }
        let [three, four] = [3, 4].map(|frames| bench.device.arm_for(Instant::ZERO, frames));
        assert_eq!((three, four), (Some(true), Some(false)));
        assert_eq!(bench.receive().len(), 3);
        assert_eq!(bench.device.most_counted(), Some(8));
        // More than a quarter of the ring are as many as a quarter: the device is not to run out of buffers.
        assert_eq!(bench.device.arm_for(Instant::ZERO, u32::MAX), Some(false));
        let interrupts = (1..=8).find(|number| {
            bench.arrive(frame(*number, 60));
            bench.is_interrupted()
        });
        assert_eq!(interrupts, Some(if events == 0 { 1 } else { 8 }));
    }
}

#[test]
fn the_link_goes_and_comes() {
    let mut bench = Bench::new();
    for is_up in [false, true] {
        bench.board.with(|hardware| hardware.plug(is_up));
        assert!(bench.is_interrupted() && bench.arm());
        bench.receive();
        assert_eq!(bench.device.link().is_up, is_up);
        assert!(!bench.arm());
    }
    assert_eq!(bench.device.stats().link_changes, 2);
}

#[test]
fn no_cache_operation_is_left_out() {
    for left_out in [
        None,
        Some(CacheOperation::CleanHeader),
        Some(CacheOperation::CleanPayload),
        Some(CacheOperation::InvalidateBefore),
        Some(CacheOperation::InvalidateAfter),
    ] {
        let board = Board::new(model::ALL);
        board.with(|hardware| hardware.memory.leaves_out = left_out);
        let mut bench = Bench::on(board, 33, 1_600);
        let mut is_intact = true;
        for number in 1..=200 {
            bench.offer(number, 2, 200);
            bench.transmit();
            bench.step();
            is_intact &= bench.wire() == [frame(number, 200)];
            bench.completions();
            bench.arrive(frame(number, 150));
            let frames = bench.receive();
            is_intact &= frames.len() == 1;
            for got in frames {
                is_intact &= bytes(&got) == frame(number, 150);
                // Somebody writes to the buffer afterwards.
                drop(got);
                let all: Vec<_> = core::iter::from_fn(|| bench.receive.take()).collect();
                all.into_iter().for_each(|mut buffer| buffer.bytes_mut().fill(0xEE));
            }
        }
        assert_eq!(is_intact, left_out.is_none(), "{left_out:?}");
    }
}
