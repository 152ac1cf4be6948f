//! Two queues: frames go where their port says, and a queue goes to another core.

use super::*;
use linerate_nic::mcdma::nic_regs::register as mac;
use linerate_nic::mcdma::regs::register;
use linerate_nic::mcdma::{Bus as _, StoppedQueue};
use linerate_nic::{Member, PacingConfig, Port, PortConfig, Steering};
use linerate_wire::toeplitz::MICROSOFT_KEY;

fn two() -> (Board, Control<Board>, [StoppedQueue<Board>; 2]) {
    let board = Board::new(1);
    let settings = Settings { queues: 2, ..settings() };
    let (mut control, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
    let steering = Steering { key: &[0; 40], indirection: &[0], ports: &[(5_302, 1), (5_303, 0)] };
    control.set_steering(&steering).expect("by ports");
    let queues: [StoppedQueue<Board>; 2] = queues.try_into().ok().expect("two queues");
    (board, control, queues)
}

fn start(board: &Board, queue: StoppedQueue<Board>) -> Queue<Board> {
    queue.start(board.pool(64, 2_048, true), board.pool(48, 1_536, false)).expect("starts")
}

/// A UDP datagram over IPv4 without checksums, to this port.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = [&MAC.0[..], &[2, 0, 0, 0, 0, 2], &[8, 0]].concat();
    frame.extend([0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1]);
    frame.extend([&[0x10, 0][..], &port.to_be_bytes(), &[0, 12, 0, 0], b"data"].concat());
    frame
}

fn received(queue: &mut Queue<Board>) -> Vec<u16> {
    let mut batch = RxBatch::with_limit(16);
    queue.receive(Instant::from_millis(1), &mut batch).expect("works");
    core::iter::from_fn(|| batch.pop()).map(|frame| frame.meta.queue).collect()
}

#[test]
fn frames_go_to_the_queue_of_their_port() {
    let (board, _control, [first, second]) = two();
    let (mut first, mut second) = (start(&board, first), start(&board, second));
    let interrupts = [first.interrupt(), second.interrupt()];
    for (ms, port, expected) in [(1, 5_301, 0), (2, 5_302, 1), (3, 5_303, 0)] {
        let now = Instant::from_millis(ms);
        assert!(!first.arm(now) && !second.arm(now));
        board.with(|hardware| {
            hardware.arrive(now, datagram(port));
            hardware.step(now + Duration::from_micros(1));
        });
        let woken = interrupts.each_ref().map(|interrupt| interrupt.handle());
        let mut wanted = [vec![], vec![]];
        wanted[expected as usize] = vec![expected];
        assert_eq!([received(&mut first), received(&mut second)], wanted, "port {port}");
        assert_eq!(woken, [expected == 0, expected == 1], "port {port}");
    }
}

#[test]
fn nothing_is_left_of_who_had_the_device_before() {
    let board = Board::new(1);
    let wide = Settings { queues: 2, ..settings() };
    let (mut control, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &wide).expect("opens");
    let steering = Steering { key: &MICROSOFT_KEY, indirection: &[0, 1], ports: &[] };
    control.set_steering(&steering).expect("by the hash");
    for (at, queue) in queues.into_iter().enumerate() {
        let mut queue = start(&board, queue);
        let config = PacingConfig { threshold: 4, ..PacingConfig::default() };
        queue.set_pacing(config).expect("a pacer");
        assert_ne!(board.read(mac::PACING_BASE + mac::PACING_STRIDE * at as u32), 0);
    }
    board.write(mac::RULE_ENABLE, 0b11);
    board.write(mac::RSS_CONTROL, 1 << mac::RSS_CONTROL_DEFAULT_QUEUE_SHIFT);

    let mut bench = Bench::on(board.clone(), &settings(), 64);
    for port in 5_300..5_316 {
        bench.arrive(datagram(port));
    }
    assert_eq!(bench.receive().len(), 16);
    for register in [mac::RULE_ENABLE, mac::PACING_BASE, mac::PACING_BASE + mac::PACING_STRIDE] {
        assert_eq!(board.read(register), 0, "{register:#x}");
    }
    assert_eq!(board.read(mac::RSS_CONTROL), mac::RSS_CONTROL_TCP | mac::RSS_CONTROL_UDP);
}

#[test]
fn a_frame_waits_for_its_descriptor_as_long_as_it_holds_up_nobody_else() {
    for (queues, expected) in [(1, register::S2MM_PATIENCE_FOREVER), (2, 5)] {
        let board = Board::new(1);
        let settings = Settings { queues, ..settings() };
        let _device = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
        assert_eq!(board.read(register::S2MM_PATIENCE), expected, "2 us in units of 64 clocks");
    }
}

#[test]
fn a_queue_goes_to_another_core_and_belongs_to_it() {
    let (board, control, [first, second]) = two();
    let mut owner =
        Port::new(Joined { control, queue: start(&board, first) }, PortConfig::default()).expect("a port");
    let (mac, mtu) = (owner.mac(), owner.mtu());
    let other_board = board.clone();
    let sent = std::thread::scope(|scope| {
        let core = scope.spawn(move || {
            let mut queue = start(&other_board, second);
            // What the owner has switched on holds here.
            assert!(queue.enabled().gather && queue.enabled().tx_checksum4);
            let mut out = TxQueue::with_capacity(4);
            let packet = out.vacant().expect("room");
            packet.header_mut(14).copy_from_slice(&frame(9, 200, PEER)[..14]);
            packet.push_chunk(Chunk::Shared(frame(9, 200, PEER)[14..].to_vec().into())).expect("room");
            packet.meta.token = TxToken(9);
            out.commit();
            assert_eq!(queue.transmit(Instant::from_millis(1), &mut out), Ok(1));
            other_board.with(|hardware| hardware.step(Instant::from_millis(2)));
            queue.poll_completion()
        });
        core.join().expect("no panic there")
    });
    assert_eq!(sent, Some(TxToken(9)));
    assert_eq!(number(&board.with(|hardware| hardware.wire.pop_front()).expect("a frame"), 200), 9);
    assert_eq!((mac, mtu), (MAC, 1_500));
    owner.set_offloads(Capabilities::NONE).expect("it can");
}

#[test]
fn a_member_has_what_its_control_has_and_may_ask_for_less() {
    let (board, mut control, [_, second]) = two();
    let member = Member::new(start(&board, second), &control);
    let mut member = Port::new(member, PortConfig::default()).expect("a port");
    assert_eq!(member.mac(), MAC);
    control.enable(Capabilities::ALL).expect("it has these");
    assert_eq!(member.enabled(), Capabilities::ALL);
    member.set_offloads(Capabilities::NONE).expect("it can");
    assert_eq!(member.enabled(), Capabilities::NONE);
    control.enable(Capabilities::NONE).expect("it can");
    member.set_offloads(Capabilities::ALL).expect("it can");
    assert_eq!(member.enabled(), Capabilities::NONE, "no more than there is");
}
