//! One thing at a time.

use super::*;
use crate::model::memory::CacheOperation;
use linerate_nic::gem::{OpenError, is_gem, memory_len};
use linerate_nic::{
    Capabilities, ChecksumRequest, ChecksumStatus, Device as _, DeviceError, Filter, Interface, Segmentation,
};
use linerate_wire::units::Rate;

#[test]
fn it_says_what_it_is() {
    for kind in KINDS {
        let bench = Bench::new(kind);
        assert_eq!((bench.device.mac(), bench.device.mtu()), (MacAddr(model::MAC), 1_500));
        let link = bench.device.link();
        let gigabit = Some(Rate::from_bps(1_000_000_000));
        assert_eq!((link.is_up, link.speed, link.is_full_duplex), (true, gigabit, true));
        let capabilities = bench.device.capabilities();
        assert!(capabilities.tx_checksum4 && capabilities.rx_checksum && capabilities.gather);
        assert!(!capabilities.tso4 && !capabilities.rx_coalescing);
        assert_eq!((bench.device.queues(), bench.device.control().phy()), (1, 12));
        fn is_interface(_: &impl Interface) {}
        is_interface(&bench.device);
        // Gigabit, full duplex, no FCS, and a clock of at most 2.5 MHz for the PHY out of 100: divided by 48.
        let config = bench.board.with(|hardware| hardware.config());
        assert_eq!(config & (1 << 17 | 1 << 10 | 0b11), 1 << 17 | 1 << 10 | 0b10);
        assert_eq!(config >> 18 & 7, 3);
    }
}

#[test]
fn a_device_that_cannot_be_used_is_named() {
    let refused = |change: &dyn Fn(&mut model::Hardware), settings: &Settings| {
        let board = Board::new(Kind::Hardware);
        board.with(change);
        let pools = (board.pool(4, 1_600, true), board.pool(32, 192, false));
        let memory = (DESCRIPTORS, DESCRIPTORS_LEN);
        let error = Gem::open(board.clone(), memory, pools.0, &pools.1, settings).unwrap_err();
        assert!(!board.with(|hardware| hardware.receives()), "it is off");
        error
    };
    let settings = settings();
    let none = refused(&|it| it.revision = 0x0001_0100, &settings);
    assert!(none.to_string().contains("revision_reg (0xfc) is 0x00010100"), "{none}");
    assert_eq!(refused(&|it| it.revision = !0, &settings), OpenError::NoGem(!0));
    assert_eq!(refused(&|it| it.phy_address = 77, &settings), OpenError::NoPhy(None));
    assert_eq!(refused(&|it| it.phy_hangs = true, &settings), OpenError::NoPhy(None));
    let at = Settings { phy: Some(3), ..settings };
    assert_eq!(refused(&|_| (), &at).to_string(), "no PHY answers at address 3");
    for (len, other) in [(16, 32), (31, 32), (5_000, 32)] {
        let wrong = Settings { receive_ring: other, transmit_ring: len, ..settings };
        assert_eq!(refused(&|_| (), &wrong), OpenError::Length(len));
    }
    let nobody = Settings { mac: None, ..settings };
    assert_eq!(refused(&|_| (), &nobody), OpenError::NoAddress);
    let two = Settings { queues: 2, ..settings };
    assert_eq!(refused(&|_| (), &two), OpenError::Queues { want: 2, have: 1 });
    // Memory that is given up on purpose is a leak to the sanitizer.
    if std::env::var_os("ASAN_OPTIONS").is_none() {
        assert_eq!(refused(&|it| it.is_deaf = true, &settings), OpenError::Stuck { queue: 0 });
    }
}

#[test]
fn memory_that_cannot_be_used_is_named() {
    let board = Board::new(Kind::Hardware);
    assert!(is_gem(&board));
    let (settings, need) = (settings(), memory_len(&settings()));
    let try_on = |board: &Board, memory, receive: usize, (count, size)| {
        let pools = (board.pool(4, receive, true), board.pool(count, size, false));
        Gem::open(board.clone(), memory, pools.0, &pools.1, &settings).unwrap_err()
    };
    let short = OpenError::Memory { base: DESCRIPTORS, have: need - 1, need };
    assert_eq!(try_on(&board, (DESCRIPTORS, need - 1), 1_600, (32, 192)), short);
    assert!(matches!(try_on(&board, (DESCRIPTORS + 8, need), 1_600, (32, 192)), OpenError::Memory { .. }));
    let across = try_on(&board, ((1 << 32) - 64, need), 1_600, (32, 192));
    assert!(across.to_string().ends_with("crosses a multiple of 4 GiB"), "{across}");
    let small = try_on(&board, (DESCRIPTORS, need), 1_500, (32, 192));
    assert_eq!(small.to_string(), "receive pool: expected 1 buffers of 1536 bytes");
    let few = try_on(&board, (DESCRIPTORS, need), 1_600, (31, 192));
    assert_eq!(few.to_string(), "header pool: expected 32 buffers of 160 bytes");
    // Of a part with addresses of 32 bits.
    let narrow = Board::narrow(Kind::Hardware);
    let far = try_on(&narrow, (1 << 33, need), 1_600, (32, 192));
    assert_eq!(far, OpenError::Half { base: 1 << 33, is_wide: false });
    let wide = Board::new(Kind::Hardware);
    wide.with(|hardware| hardware.design_6 = 2);
    let beyond = try_on(&wide, (DESCRIPTORS, need), 1_600, (32, 192));
    assert!(matches!(beyond, OpenError::Beyond { name: "receive", .. }), "{beyond}");
    assert!(
        Gem::open(
            wide.clone(),
            (DESCRIPTORS, need),
            wide.pool(4, 1_600, true),
            &wide.pool(32, 192, false),
            &settings
        )
        .is_err()
    );
}

#[test]
fn packets_of_all_sizes_and_pieces_leave() {
    for kind in KINDS {
        for board in [Board::new(kind), Board::narrow(kind)] {
            // Where payload is out of reach, it is copied.
            let is_narrow = board.with(|hardware| !hardware.is_wide);
            let mut bench = Bench::on(board, 48, if is_narrow { 1_600 } else { 192 });
            let mut number = 0;
            for len in [23, 60, 61, 63, 64, 65, 200, 1_514, 1_518] {
                for pieces in [1, 2, 7, 17] {
                    number += 1;
                    bench.offer(number, pieces, len);
                    assert_eq!(bench.transmit(), 1);
                    bench.step();
                    assert_eq!(bench.wire(), [frame(number, len)], "{len} in {pieces}");
                    assert_eq!(bench.completions(), [number]);
                }
            }
            let stats = bench.device.stats();
            assert_eq!((stats.tx_packets, stats.tx_copied), (number, if is_narrow { number } else { 0 }));
            bench.works();
        }
    }
}

#[test]
fn frames_of_all_sizes_come_and_buffers_return() {
    for kind in KINDS {
        for board in [Board::new(kind), Board::narrow(kind)] {
            let mut bench = Bench::on(board, 48, 1_600);
            for (number, len) in (0..).zip([60, 61, 64, 100, 1_514, 1_518, 1_532].repeat(20)) {
                bench.arrive(frame(number, len));
                let frames = bench.receive();
                assert_eq!((frames.len(), frames[0].data.bytes()), (1, &frame(number, len)[..]));
            }
            assert_eq!(bench.receive.free(), 48 - 31);
            drop(bench.device);
            assert_eq!((bench.receive.free(), bench.headers.free()), (48, 32));
        }
    }
}

#[test]
fn what_the_device_cannot_do_is_dropped_and_reported() {
    let mut bench = Bench::new(Kind::Hardware);
    for (len, change) in [(1_519, None), (300, Some(Segmentation::Tcp4(100)))] {
        bench.offer(2, 1, len);
        bench.out.front_mut().unwrap().meta.segmentation = change.unwrap_or_default();
        assert_eq!((bench.transmit(), bench.completions()), (1, vec![2]));
    }
    bench.offer(3, 1, 100);
    // The field is not among the headers.
    bench.out.front_mut().unwrap().meta.checksum = Some(ChecksumRequest { start: 10, offset: 6 });
    assert_eq!((bench.transmit(), bench.completions()), (1, vec![3]));
    assert_eq!(bench.device.stats().drop_tx_errors, 3);
    // Out of reach, and too long to be copied.
    let mut bench = Bench::on(Board::narrow(Kind::Hardware), 48, 192);
    bench.offer(4, 1, 193);
    assert_eq!((bench.transmit(), bench.completions()), (1, vec![4]));
    bench.offer(5, 1, 192);
    assert_eq!(bench.transmit(), 1);
    bench.step();
    assert_eq!(bench.wire(), [frame(5, 192)]);
}

#[test]
fn a_full_ring_waits_and_interrupts_when_there_is_room() {
    let mut bench = Bench::new(Kind::Hardware);
    bench.board.with(|hardware| hardware.holds_back = true);
    (1..=20).for_each(|number| bench.offer(number, 1, 100));
    // Two descriptors each, and one of 32 stays.
    assert_eq!((bench.transmit(), bench.out.len()), (15, 5));
    assert!(!bench.arm() && !bench.is_interrupted());
    bench.board.with(|hardware| hardware.holds_back = false);
    bench.step();
    assert!(bench.is_interrupted());
    assert_eq!(bench.transmit(), 5);
    bench.step();
    assert_eq!(bench.completions(), (1..=20).collect::<Vec<_>>());
    assert_eq!((bench.wire().len(), bench.device.stats().tx_full), (20, 1));
}

#[test]
fn checksums_are_filled_in_by_the_device() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        for (protocol, header, field) in [(6, 54, 50), (17, 42, 40)] {
            let whole = packet(protocol, 5_201, 0);
            let out = bench.out.vacant().unwrap();
            out.header_mut(header).copy_from_slice(&whole[..header]);
            // The sum of the pseudo-header lies there, which this device does not want.
            out.header_bytes_mut()[field..field + 2].fill(0x77);
            out.push_chunk(Chunk::Shared(whole[header..].to_vec().into())).unwrap();
            out.meta.checksum = Some(ChecksumRequest { start: 34, offset: field as u16 - 34 });
            bench.out.commit();
            assert_eq!(bench.transmit(), 1);
            bench.step();
            assert_eq!(bench.wire(), [whole]);
        }
        // Switched off, nothing is touched, and nobody may ask.
        bench.device.enable(Capabilities { gather: true, ..Capabilities::NONE }).unwrap();
        bench.board.with(|hardware| assert_eq!(hardware.written[&0x010] >> 11 & 1, 0));
        bench.offer(1, 1, 100);
        bench.out.front_mut().unwrap().meta.checksum = Some(ChecksumRequest { start: 0, offset: 0 });
        bench.transmit();
        assert_eq!(bench.device.stats().drop_tx_errors, 1);
        assert_eq!(bench.device.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
    }
}

#[test]
fn verified_checksums_are_reported_and_wrong_ones_do_not_come() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        let (good, unchecked) = (ChecksumStatus::Good, ChecksumStatus::Unchecked);
        let mut status = |bytes: Vec<u8>| {
            bench.arrive(bytes);
            bench.receive().iter().map(|frame| frame.meta.checksum).collect::<Vec<_>>()
        };
        assert_eq!(status(packet(6, 80, 0)), [good]);
        assert_eq!(status(packet(17, 80, 0)), [good]);
        assert_eq!(status(packet(1, 80, 0)), [unchecked]);
        assert_eq!(status(frame(1, 60)), [unchecked]);
        let mut wrong = packet(6, 80, 0);
        wrong[60] ^= 1;
        assert_eq!(status(wrong.clone()), []);
        bench.device.enable(Capabilities { gather: true, ..Capabilities::NONE }).unwrap();
        bench.arrive(wrong);
        assert_eq!(bench.receive()[0].meta.checksum, unchecked);
        assert_eq!(bench.device.stats().rx_verified, 2);
    }
}

#[test]
fn the_filter_is_the_devices() {
    let mut bench = Bench::new(Kind::Hardware);
    let comes = |bench: &mut Bench, to: [u8; 6]| {
        let mut frame = frame(1, 60);
        frame[..6].copy_from_slice(&to);
        bench.arrive(frame);
        !bench.receive().is_empty()
    };
    let (group, other) = ([0x33, 0x33, 0, 0, 0, 1], [0x01, 0, 0x5E, 0, 0, 0xFB]);
    assert!(comes(&mut bench, model::MAC) && comes(&mut bench, [0xFF; 6]));
    assert!(!comes(&mut bench, group) && !comes(&mut bench, [2, 0, 0, 0, 0, 7]));
    let none = Filter { groups: &[], all_groups: false, promiscuous: false };
    bench.device.set_filter(&Filter { groups: &[MacAddr(group)], ..none }).unwrap();
    assert!(comes(&mut bench, group) && !comes(&mut bench, other));
    bench.device.set_filter(&Filter { all_groups: true, ..none }).unwrap();
    assert!(comes(&mut bench, other) && !comes(&mut bench, [2, 0, 0, 0, 0, 7]));
    bench.device.set_filter(&Filter { promiscuous: true, ..none }).unwrap();
    assert!(comes(&mut bench, [2, 0, 0, 0, 0, 7]));
    bench.device.set_filter(&none).unwrap();
    assert!(!comes(&mut bench, group) && comes(&mut bench, model::MAC));
}

#[test]
fn interrupts_come_when_somebody_waits() {
    for kind in KINDS {
        let mut bench = Bench::new(kind);
        assert!(!bench.is_interrupted() && !bench.interrupt.handle(), "none without a cause");
        assert!(!bench.arm());
        bench.arrive(frame(1, 60));
        assert!(bench.is_interrupted() && !bench.is_interrupted());
        bench.arrive(frame(2, 60));
        assert!(!bench.is_interrupted(), "nobody armed it");
        assert!(bench.arm(), "frames wait");
        assert_eq!(bench.receive().len(), 2);
        bench.is_interrupted();
        assert!(!bench.arm());
        bench.board.with(|hardware| hardware.holds_back = true);
        bench.offer(3, 1, 100);
        bench.transmit();
        assert!(!bench.arm());
        bench.board.with(|hardware| hardware.holds_back = false);
        bench.step();
        assert!(bench.is_interrupted());
        assert_eq!(bench.completions(), [3]);
        assert!(bench.device.poll_timeout().is_some_and(|at| at > bench.now), "the link is looked at");
    }
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
        let board = Board::new(Kind::Hardware);
        board.with(|hardware| hardware.memory.leaves_out = left_out);
        let mut bench = Bench::on(board, 33, 192);
        let mut is_intact = true;
        for number in 1..=200 {
            bench.offer(number, 2, 200);
            bench.transmit();
            bench.step();
            is_intact &= bench.wire() == [frame(number, 200)];
            bench.completions();
            let mut to_all = frame(number, 150);
            to_all[..6].fill(0xFF);
            bench.arrive(to_all.clone());
            for got in bench.receive() {
                is_intact &= got.data.bytes() == to_all;
                // Somebody writes to the buffer afterwards.
                drop(got);
                let all: Vec<_> = core::iter::from_fn(|| bench.receive.take()).collect();
                all.into_iter().for_each(|mut buffer| buffer.bytes_mut().fill(0xEE));
            }
        }
        assert_eq!(is_intact, left_out.is_none(), "{left_out:?}");
    }
}
