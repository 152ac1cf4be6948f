//! Two queues: which frames go where, a queue on another core, and a queue whose interrupt goes nowhere.

use super::*;
use linerate_nic::gem::{
    Compare, Condition, Control, Origin, Queue, Screener, ScreenerCounts, ScreenerError, StoppedQueue, Value,
    open,
};
use linerate_nic::{Device as _, DeviceError, Member, Steering};

fn two_with(board: &Board, settings: &Settings) -> (Control<Board>, [StoppedQueue<Board>; 2]) {
    let settings = Settings { queues: 2, ..*settings };
    let (control, queues) = open(board.clone(), (DESCRIPTORS, DESCRIPTORS_LEN), &settings).expect("opens");
    (control, queues.try_into().expect("two queues"))
}

fn start(board: &Board, queue: StoppedQueue<Board>) -> Queue<Board> {
    queue.start(board.pool(48, 1_600, true), &board.pool(32, 192, false)).expect("starts")
}

fn two(kind: Kind) -> (Board, Control<Board>, [Queue<Board>; 2]) {
    let board = Board::new(kind);
    let (control, queues) = two_with(&board, &settings());
    let queues = queues.map(|queue| start(&board, queue));
    (board, control, queues)
}

fn received(queue: &mut Queue<Board>) -> Vec<u16> {
    let mut batch = RxBatch::with_limit(16);
    queue.receive(Instant::from_millis(1), &mut batch).expect("works");
    core::iter::from_fn(|| batch.pop()).map(|frame| frame.meta.queue).collect()
}

/// The queue that a frame comes to.
fn queue_of(board: &Board, queues: &mut [Queue<Board>; 2], frame: Vec<u8>) -> u16 {
    board.with(|hardware| {
        hardware.arrive(frame);
        hardware.step();
    });
    let [first, second] = queues;
    match (&received(first)[..], &received(second)[..]) {
        ([0], []) => 0,
        ([], [1]) => 1,
        other => panic!("{other:?}"),
    }
}

fn send(queue: &mut Queue<Board>, number: u64) {
    let mut out = TxQueue::with_capacity(4);
    let packet = out.vacant().expect("room");
    packet.header_mut(14).copy_from_slice(&frame(number, 200)[..14]);
    packet.push_chunk(Chunk::Shared(frame(number, 200)[14..].to_vec().into())).expect("room");
    packet.meta.token = TxToken(number);
    out.commit();
    assert_eq!(queue.transmit(Instant::from_millis(1), &mut out), Ok(1));
}

#[test]
fn screeners_choose_the_queue() {
    for kind in KINDS {
        let (board, mut control, mut queues) = two(kind);
        let vlan = |bytes: [u8; 2]| Value::Two { value: bytes, mask: [0x0F, 0xFF] };
        let at_ip = |offset, value| Compare { origin: Origin::Ip, offset, value };
        for (condition, to_second, to_first) in [
            (Condition::UdpPort(5_001), packet(17, 5_001, 0), packet(6, 5_001, 0)),
            (Condition::TrafficClass(46 << 2), packet(17, 9, 46 << 2), packet(17, 46 << 2, 0)),
            (Condition::EtherType(0x88B5), frame(1, 60), packet(17, 9, 0)),
            (
                Condition::Compare(at_ip(2, Value::Two { value: [0x13, 0x88], mask: [0xFF; 2] })),
                packet(6, 5_000, 0),
                packet(6, 5_001, 0),
            ),
            (
                Condition::Compare(Compare {
                    origin: Origin::Frame,
                    offset: 6,
                    value: Value::Four([2, 0, 0, 0]),
                }),
                frame(1, 60),
                {
                    let mut other = frame(1, 60);
                    other[9] = 1;
                    other
                },
            ),
            (
                Condition::EtherTypeCompare(
                    0x88B5,
                    Compare { origin: Origin::EtherType, offset: 6, value: vlan([0xF1, 2]) },
                ),
                frame(0x0102, 60),
                frame(0x0202, 60),
            ),
            (
                Condition::Compare(Compare {
                    origin: Origin::Transport,
                    offset: 0,
                    value: Value::Four([0x5A; 4]),
                }),
                packet(17, 1, 0),
                packet(1, 1, 0),
            ),
        ] {
            control.set_screeners(&[Screener { condition, queue: 1 }]).expect("it can");
            assert_eq!(queue_of(&board, &mut queues, to_second.clone()), 1, "{condition:?}");
            assert_eq!(queue_of(&board, &mut queues, to_first), 0, "{condition:?}");
            control.set_screeners(&[]).expect("it can");
            assert_eq!(queue_of(&board, &mut queues, to_second), 0, "{condition:?}");
        }
    }
}

#[test]
fn more_screeners_than_there_are_are_refused() {
    let (board, mut control, mut queues) = two(Kind::Hardware);
    let port = |port, queue| Screener { condition: Condition::UdpPort(port), queue };
    let four = [port(1, 1), port(2, 1), port(3, 1), port(4, 0)];
    control.set_screeners(&four).expect("as many as there are");
    assert_eq!(control.screeners(), ScreenerCounts::ZYNQMP);
    let few = control.set_screeners(&[port(1, 1); 5]).unwrap_err();
    assert_eq!(few.to_string(), "5 type 1 screeners: the device has 4");
    let kind = Screener { condition: Condition::EtherType(1), queue: 1 };
    assert!(matches!(control.set_screeners(&[kind; 5]), Err(ScreenerError::Few { want: 5, have: 4, .. })));
    assert_eq!(control.set_screeners(&[port(1, 2)]), Err(ScreenerError::Queue { queue: 2, have: 2 }));
    let compare = Compare { origin: Origin::Frame, offset: 128, value: Value::Four([0; 4]) };
    let far = Screener { condition: Condition::Compare(compare), queue: 1 };
    assert_eq!(control.set_screeners(&[far]), Err(ScreenerError::Offset(128)));
    // What was set stays.
    assert_eq!(queue_of(&board, &mut queues, packet(17, 3, 0)), 1);
    assert_eq!(queue_of(&board, &mut queues, packet(17, 4, 0)), 0);
    // A part that says that it has none, and a board that knows better.
    let board = Board::new(Kind::Emulator);
    board.with(|hardware| hardware.design_8 = 0);
    let (mut control, _) = two_with(&board, &settings());
    assert!(control.set_screeners(&[port(1, 1)]).is_err());
    drop(control);
    let settings = Settings { screeners: Some(ScreenerCounts::ZYNQMP), ..settings() };
    let (mut control, _) = two_with(&board, &settings);
    assert_eq!(control.set_screeners(&[port(1, 1)]), Ok(()));
}

#[test]
fn steering_by_ports_takes_tcp_and_udp() {
    let (board, mut control, mut queues) = two(Kind::Hardware);
    let steering = Steering { key: &[0; 40], indirection: &[0], ports: &[(5_302, 1), (5_303, 0)] };
    control.set_steering(&steering).expect("by ports");
    for protocol in [6, 17] {
        for (port, expected) in [(5_301, 0), (5_302, 1), (5_303, 0)] {
            assert_eq!(queue_of(&board, &mut queues, packet(protocol, port, 0)), expected, "{port}");
        }
    }
    let hashed = Steering { indirection: &[0, 1], ..steering };
    assert_eq!(control.set_steering(&hashed), Err(DeviceError::Unsupported));
    let many = Steering { ports: &[(1, 1); 17], ..steering };
    assert_eq!(control.set_steering(&many), Err(DeviceError::Unsupported));
}

#[test]
fn both_queues_send_and_the_second_goes_first() {
    for kind in KINDS {
        let (board, _control, [mut first, mut second]) = two(kind);
        board.with(|hardware| hardware.holds_back = true);
        send(&mut first, 1);
        send(&mut second, 2);
        board.with(|hardware| {
            hardware.holds_back = false;
            hardware.step();
            let left: Vec<_> = hardware.wire.drain(..).collect();
            assert_eq!(left, [(1, frame(2, 200)), (0, frame(1, 200))]);
        });
        assert_eq!((first.poll_completion(), second.poll_completion()), (Some(TxToken(1)), Some(TxToken(2))));
        // Interrupts are apart.
        assert!(!first.arm(Instant::ZERO) && !second.arm(Instant::ZERO));
        board.with(|hardware| hardware.fail(1, 10));
        assert!(!first.interrupt().handle() && second.interrupt().handle());
        received(&mut second);
        assert_eq!((first.stats().rx_overruns, second.stats().rx_overruns), (0, 1));
    }
}

#[test]
fn a_queue_that_fails_leaves_the_other_alone_and_one_that_stops_all_says_so() {
    for kind in KINDS {
        let (board, _control, [mut first, mut second]) = two(kind);
        for round in 0..3 {
            board.with(|hardware| {
                hardware.holds_back = true;
                hardware.is_stuck = round == 2;
            });
            send(&mut first, 1);
            send(&mut second, 2);
            board.with(|hardware| hardware.fail(1, 4));
            assert!(second.interrupt().handle());
            received(&mut second);
            assert_eq!(second.poll_completion(), Some(TxToken(2)));
            board.with(|hardware| {
                (hardware.is_stuck, hardware.holds_back) = (false, false);
                hardware.step();
            });
            // The other's packet leaves, unless the transmitter had to be stopped for both.
            received(&mut first);
            assert_eq!(first.poll_completion(), Some(TxToken(1)));
            assert_eq!(first.stats().tx_resets, u64::from(round == 2), "{round}");
            board.with(|hardware| hardware.wire.clear());
            send(&mut first, 3);
            board.with(|hardware| {
                hardware.step();
                assert_eq!(hardware.wire.pop_front(), Some((0, frame(3, 200))));
            });
            assert_eq!(first.poll_completion(), Some(TxToken(3)));
        }
    }
}

#[test]
fn a_queue_goes_to_another_core_and_belongs_to_it() {
    let board = Board::new(Kind::Hardware);
    let (control, [first, second]) = two_with(&board, &settings());
    let mut owner = Gem::join(control, start(&board, first));
    let other_board = board.clone();
    let sent = std::thread::scope(|scope| {
        let core = scope.spawn(move || {
            let mut queue = start(&other_board, second);
            // What the owner has switched on holds here.
            assert!(queue.enabled().gather && queue.enabled().tx_checksum4);
            send(&mut queue, 9);
            other_board.with(model::Hardware::step);
            queue.poll_completion()
        });
        core.join().expect("no panic there")
    });
    assert_eq!(sent, Some(TxToken(9)));
    assert_eq!(board.with(|hardware| hardware.wire.pop_front()), Some((1, frame(9, 200))));
    // The queue is gone, and the device has nothing of it; the first goes on.
    owner
        .control_mut()
        .set_screeners(&[Screener { condition: Condition::EtherType(0x88B5), queue: 1 }])
        .unwrap();
    board.with(|hardware| {
        hardware.arrive(frame(1, 60));
        hardware.arrive(packet(6, 80, 0));
        hardware.step();
        assert_eq!(hardware.lost, 1);
    });
    let mut batch = RxBatch::with_limit(4);
    assert_eq!(owner.receive(Instant::from_millis(1), &mut batch), Ok(1));
}

#[test]
fn a_queue_without_an_interrupt_says_when_to_look() {
    let board = Board::new(Kind::Emulator);
    let every = Duration::from_micros(200);
    let settings = Settings { priority_poll: Some(every), ..settings() };
    let (control, [first, second]) = two_with(&board, &settings);
    let (first, second) = (start(&board, first), start(&board, second));
    assert!(first.has_interrupt() && !second.has_interrupt());
    let mut member = Member::new(second, &control);
    let mut now = Instant::from_millis(1);
    assert!(!member.arm(now));
    assert_eq!(member.poll_timeout(), Some(now + every));
    board.with(|hardware| hardware.fail(1, 11));
    assert!(board.with(|hardware| hardware.is_interrupting(1)));
    now += every;
    assert!(member.arm(now), "an error is found by looking");
    assert_eq!(member.queue.stats().bus_errors, 1);
    board.with(|hardware| assert!(!hardware.is_interrupting(1)));
}

#[test]
fn a_queue_that_nobody_uses_has_a_ring_without_a_buffer() {
    for kind in KINDS {
        let bench = Bench::new(kind);
        bench.board.with(|hardware| {
            let (receive, transmit) = hardware.rings(1);
            let load = |at| hardware.memory.load(at).expect("descriptor memory");
            assert_eq!((load(receive) & 3, load(transmit + 4)), (3, 0xC000_0000), "used, and the last");
        });
    }
}

#[test]
fn a_queue_that_is_dropped_sends_nothing_more() {
    for kind in KINDS {
        let (board, _control, [mut first, mut second]) = two(kind);
        board.with(|hardware| hardware.holds_back = true);
        send(&mut first, 1);
        send(&mut second, 2);
        drop(second);
        board.with(|hardware| {
            hardware.holds_back = false;
            hardware.step();
            let left: Vec<_> = hardware.wire.drain(..).collect();
            assert_eq!(left, [(0, frame(1, 200))]);
        });
        assert_eq!(first.poll_completion(), Some(TxToken(1)));
    }
}
