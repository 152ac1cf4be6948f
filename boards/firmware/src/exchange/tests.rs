//! Tests of what cores hand to each other, on the host.

use super::lane::{FRAME, Lane};
use super::*;
use crate::disk::{CAPTURE, Disk};
use crate::held::Held;
use crate::probe::Probe;
use crate::trace::{Ring, Tracer};
use alloc::collections::VecDeque;
use core::cell::Cell;
use linerate_nic::{
    Capabilities, Chunk, Link, PacingConfig, Pool, QueuePair, RxBatch, TxMeta, TxQueue, TxToken,
};
use linerate_transport::{FileOp, Files as _, OpenMode, Owner, VirtualPath};
use linerate_wire::units::Instant;
use proptest::prelude::*;
use std::boxed::Box;
use std::thread_local;

const SETTINGS: Settings = Settings {
    name: "bench",
    cores: 4,
    mac: [2, 0, 0, 0, 0, 1],
    addresses: &[],
    gateways: &[],
    ipv6: true,
    offloads: false,
    interrupts: crate::Interrupts::AT_ONCE,
    watchdog: 0,
    http: &[80],
    iperf3: &[5201],
    iperf3_by_core: Some(5301),
    ftp: &[21],
    ftp_users: &[],
    ftp_anonymous: true,
    connections: 16,
    socket_memory: 1 << 16,
    send_buffer: 1 << 12,
    receive_buffer: 1 << 12,
    receive_buffers: 16,
    ram_disk: 1 << 12,
    trace: 0,
    capture: 1 << 12,
};

thread_local! {
    /// How often each seat was rung at.
    static RUNG: Cell<[usize; 4]> = const { Cell::new([0; 4]) };
}

fn ring(seat: usize) {
    RUNG.with(|rung| {
        let mut counts = rung.get();
        counts[seat] += 1;
        rung.set(counts);
    });
}

fn exchange(seats: u16) -> &'static Exchange {
    let mut random = 0_u64;
    let mut random = || {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        random
    };
    Box::leak(Box::new(Exchange::new(&SETTINGS, 0, seats, ring, &mut random)))
}

/// A datagram over IPv4 to a port, with a number in it.
fn frame(from: u16, to: u16, number: u32) -> [u8; 46] {
    let mut frame = [0; 46];
    frame[..6].copy_from_slice(&SETTINGS.mac);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 9, 10, 0, 0, 1]);
    frame[34..36].copy_from_slice(&from.to_be_bytes());
    frame[36..38].copy_from_slice(&to.to_be_bytes());
    frame[38..40].copy_from_slice(&12_u16.to_be_bytes());
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[42..46].try_into().unwrap())
}

#[test]
fn a_frame_belongs_to_the_seat_of_its_port_or_its_hash() {
    let spreading = Spreading::new(&SETTINGS, 4, [7; KEY_LEN]);
    for (to, seat) in [(5301, 0), (5302, 1), (5303, 2), (5304, 3), (5201, 0), (21, 0), (20, 0), (50_002, 2)] {
        assert_eq!(spreading.seat_of(&frame(40_000, to, 0)), seat, "port {to}");
    }
    let mut seats = [0; 4];
    for from in 30_000..31_000 {
        let seat = spreading.seat_of(&frame(from, 80, 0));
        assert_eq!(seat, spreading.seat_of(&frame(from, 80, 1)), "a flow stays");
        seats[usize::from(seat)] += 1;
    }
    assert!(seats.iter().all(|count| *count > 150), "{seats:?}");
    // To a group, a fragment, not IP, nothing at all.
    let mut group = frame(40_000, 5302, 0);
    group[0] |= 1;
    let mut fragment = frame(40_000, 5302, 0);
    fragment[20] = 0x20;
    let mut arp = frame(40_000, 5302, 0);
    arp[13] = 6;
    for frame in [&group[..], &fragment, &arp, &[]] {
        assert_eq!(spreading.seat_of(frame), 0);
    }
}

/// No trace.
struct Untraced;

impl Tracer for Untraced {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn is_on(&self) -> bool {
        false
    }

    fn switch(&self, _is_on: bool) {}

    fn with(&self, _work: &mut dyn FnMut(&mut Ring)) {}
}

impl Watched for Link {
    fn is_watched(&self) -> bool {
        false
    }
}

impl Watched for NoQueue {
    fn is_watched(&self) -> bool {
        false
    }
}

fn probed(device: Link, capture: Held<Capture>) -> Probe<Link> {
    Probe::new(device, PacingConfig::default(), &Untraced, capture)
}

#[test]
fn all_pass_by_the_first_seat_until_the_capture_is_fetched() {
    let exchange = exchange(2);
    let capture = Held::Shared(Arc::clone(&exchange.capture), Several);
    let pool = Pool::on_demand(64, FRAME);
    // A queue each.
    let ends = || Link::pair(&pool, 1_500, Capabilities::NONE, 64);
    let ((near, _there), (own, mut beyond)) = (ends(), ends());
    let seat = |device, seat| {
        let probe = probed(device, capture.clone());
        Spread::shared(probe, ((exchange, seat), Several), pool.clone(), 64)
    };
    let (mut first, mut other) = (seat(near, 0), seat(own, 1));
    let mut sends_itself = |first: &mut Spread<Probe<Link>>| {
        first.receive(Instant::ZERO, &mut RxBatch::with_limit(64)).unwrap();
        let mut queue = TxQueue::with_capacity(1);
        fill(&mut queue, &pool, [frame(5302, 9, 0)]);
        assert_eq!(other.transmit(Instant::ZERO, &mut queue), Ok(1));
        beyond.receive(Instant::ZERO, &mut RxBatch::with_limit(1)).unwrap() == 1
    };
    assert!(sends_itself(&mut first));
    first.device_mut().start_capture(None);
    assert!(!sends_itself(&mut first));
    let mut disk = Disk::new(&[], 0, 0);
    disk.set_instruments(&Untraced, capture.clone());
    let op = FileOp::Open { path: VirtualPath::parse(CAPTURE).unwrap(), mode: OpenMode::Read };
    disk.submit(Owner(1), 0, op).unwrap();
    assert!(disk.poll_done().unwrap().result.is_ok());
    assert!(sends_itself(&mut first));
}

/// Seat 0 with a cable, and the others.
struct Bench {
    exchange: &'static Exchange,
    first: Spread<Link>,
    others: Vec<Spread<NoQueue>>,
    peer: Link,
    frames: Pool,
}

fn bench(seats: u16, buffers: usize) -> Bench {
    let exchange = exchange(seats);
    let (near, peer) = Link::pair(&Pool::on_demand(4_096, FRAME), 1_500, Capabilities::NONE, 1_024);
    let no_queue = || NoQueue::new(linerate_nic::MacAddr(SETTINGS.mac), 1_500, Capabilities::NONE);
    let other =
        |seat| Spread::shared(no_queue(), ((exchange, seat), Several), Pool::on_demand(buffers, FRAME), 64);
    Bench {
        exchange,
        first: Spread::shared(near, ((exchange, 0), Several), Pool::on_demand(buffers, FRAME), 64),
        others: (1..seats).map(other).collect(),
        peer,
        frames: Pool::new(1_024, 64),
    }
}

/// Fills a queue with frames; the headers end behind the first 42 bytes.
fn fill(queue: &mut TxQueue, pool: &Pool, frames: impl IntoIterator<Item = [u8; 46]>) {
    for frame in frames {
        let packet = queue.vacant().unwrap();
        packet.header_mut(42).copy_from_slice(&frame[..42]);
        let mut buffer = pool.take().unwrap();
        buffer.bytes_mut()[..4].copy_from_slice(&frame[42..]);
        packet.push_chunk(Chunk::Pool(buffer.freeze(0..4))).unwrap();
        packet.meta = TxMeta { token: TxToken(number(&frame).into()), ..TxMeta::default() };
        queue.commit();
    }
}

impl Bench {
    fn peer_sends(&mut self, frames: impl IntoIterator<Item = [u8; 46]>) {
        let mut queue = TxQueue::with_capacity(1_024);
        fill(&mut queue, &self.frames, frames);
        self.peer.transmit(Instant::ZERO, &mut queue).unwrap();
        assert!(queue.is_empty());
        while self.peer.poll_completion().is_some() {}
    }

    /// Numbers of the frames that a seat finds.
    fn receives(&mut self, seat: usize) -> Vec<u32> {
        let mut batch = RxBatch::with_limit(64);
        let now = Instant::ZERO;
        match seat.checked_sub(1) {
            None => self.first.receive(now, &mut batch).unwrap(),
            Some(other) => self.others[other].receive(now, &mut batch).unwrap(),
        };
        core::iter::from_fn(|| batch.pop()).map(|frame| number(frame.data.bytes())).collect()
    }

    fn peer_receives(&mut self) -> Vec<u32> {
        let mut batch = RxBatch::with_limit(1_024);
        self.peer.receive(Instant::ZERO, &mut batch).unwrap();
        let one = |frame: linerate_nic::Frame| {
            let mut bytes = frame.data.bytes().to_vec();
            frame.more.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
            number(&bytes)
        };
        core::iter::from_fn(|| batch.pop()).map(one).collect()
    }
}

#[test]
fn frames_reach_their_seat_in_order_and_what_it_sends_leaves() {
    let mut bench = bench(4, 256);
    bench.peer_sends((0..40).map(|number| frame(9, 5301 + (number % 4) as u16, number)));
    assert_eq!(bench.receives(0), (0..40).step_by(4).collect::<Vec<_>>());
    for seat in 1..4 {
        assert_eq!(bench.receives(seat), (seat as u32..40).step_by(4).collect::<Vec<_>>());
    }
    let mut queue = TxQueue::with_capacity(64);
    fill(&mut queue, &bench.frames, (0..50).map(|number| frame(5303, 9, number)));
    assert_eq!(bench.others[1].transmit(Instant::ZERO, &mut queue), Ok(50));
    let completed: Vec<_> = core::iter::from_fn(|| bench.others[1].poll_completion()).collect();
    assert_eq!(completed, (0..50).map(TxToken).collect::<Vec<_>>(), "they were copied");
    assert!(bench.peer_receives().is_empty(), "nobody has taken them yet");
    assert!(bench.receives(0).is_empty());
    assert_eq!(bench.peer_receives(), (0..50).collect::<Vec<_>>());
    assert_eq!(bench.first.poll_completion(), None, "these are not the first seat's");
}

#[test]
fn what_finds_no_parcel_or_no_buffer_is_counted() {
    let mut bench = bench(2, 16);
    let sent = INBOUND as u32 + 100;
    bench.peer_sends((0..sent).map(|number| frame(9, 5302, number)));
    while Link::poll_timeout(bench.first.device()).is_some() {
        assert!(bench.receives(0).is_empty());
    }
    assert_eq!(bench.exchange.drops(1)[0], ("drop_mailbox_full", 100));
    // Its pool has sixteen buffers, and the batch keeps them.
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(bench.others[0].receive(Instant::ZERO, &mut batch), Ok(16));
    assert_eq!(bench.exchange.drops(1)[1].1, INBOUND as u64 - 16);
}

#[test]
fn a_seat_that_finds_no_room_waits_and_is_rung_at() {
    let mut bench = bench(2, 16);
    let mut queue = TxQueue::with_capacity(OUTBOUND + 44);
    fill(&mut queue, &bench.frames, (0..OUTBOUND as u32 + 44).map(|number| frame(5302, 9, number)));
    assert_eq!(bench.others[0].transmit(Instant::ZERO, &mut queue), Ok(OUTBOUND));
    assert_eq!(bench.others[0].transmit(Instant::ZERO, &mut queue), Ok(0));
    assert!(!bench.others[0].arm(Instant::ZERO), "it sleeps");
    RUNG.with(|rung| rung.set([0; 4]));
    bench.receives(0);
    assert_eq!(RUNG.with(Cell::get), [0, 1, 0, 0], "there is room");
    bench.receives(1);
    assert_eq!(bench.others[0].transmit(Instant::ZERO, &mut queue), Ok(44));
    (0..20).for_each(|_| {
        bench.receives(0);
    });
    assert_eq!(bench.peer_receives(), (0..OUTBOUND as u32 + 44).collect::<Vec<_>>());
}

#[test]
fn nobody_sleeps_over_what_has_come() {
    let mut bench = bench(2, 64);
    RUNG.with(|rung| rung.set([0; 4]));
    bench.receives(1);
    bench.peer_sends([frame(9, 5302, 1)]);
    bench.receives(0);
    assert_eq!(RUNG.with(Cell::get), [0; 4], "it is awake");
    assert!(bench.others[0].arm(Instant::ZERO), "a frame has come before it slept");
    assert_eq!(bench.receives(1), [1]);
    assert!(!bench.others[0].arm(Instant::ZERO));
    bench.peer_sends([frame(9, 5302, 2)]);
    bench.receives(0);
    assert_eq!(RUNG.with(Cell::get), [0, 1, 0, 0]);
    // Post counts, too, in both directions; and one ring is enough.
    assert!(!bench.first.arm(Instant::ZERO));
    for _ in 0..3 {
        assert!(bench.exchange.tell(0, Post::Ask(1)));
    }
    assert_eq!(RUNG.with(Cell::get), [1, 1, 0, 0]);
    assert!(bench.first.arm(Instant::ZERO));
}

#[test]
fn cores_hand_over_in_order_and_lose_nothing() {
    const ITEMS: u32 = 20_000;
    let lane: &'static Lane = Box::leak(Box::new(Lane::new(8)));
    let sender = std::thread::spawn(move || {
        let (mut empty, mut full) = (VecDeque::new(), VecDeque::new());
        let mut next = 0;
        while next < ITEMS {
            let Some(mut parcel) = lane.take_empty(&mut empty) else {
                std::thread::yield_now();
                continue;
            };
            let mut packet = linerate_nic::TxPacket::new();
            packet.header_mut(4).copy_from_slice(&next.to_be_bytes());
            assert!(parcel.send(&packet));
            full.push_back(parcel);
            next += 1;
            lane.full.push_all(&mut full);
        }
    });
    let (mut come, mut expected) = (VecDeque::new(), 0_u32);
    while expected < ITEMS {
        lane.full.take_all(&mut come);
        assert!(come.len() <= 8, "there are no more parcels");
        come.iter().for_each(|parcel| {
            assert_eq!(parcel.header(), expected.to_be_bytes());
            expected += 1;
        });
        lane.empty.push_all(&mut come);
        std::thread::yield_now();
    }
    sender.join().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8),
    Pop,
    PushAll(u8),
    TakeAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..20_u8).prop_map(Step::Push),
        Just(Step::Pop),
        (0..20_u8).prop_map(Step::PushAll),
        Just(Step::TakeAll),
    ]
}

proptest! {
    #[test]
    fn a_mailbox_is_a_queue_with_a_bound(steps in prop::collection::vec(step(), 0..100)) {
        let mailbox = Mailbox::with_room(4);
        let (mut model, mut next) = (VecDeque::new(), 0_u32);
        for step in steps {
            match step {
                Step::Push(most) => {
                    let most = usize::from(most);
                    let fits = mailbox.push_within(most, next);
                    prop_assert_eq!(fits, if model.len() < most { Ok(()) } else { Err(next) });
                    if fits.is_ok() {
                        model.push_back(next);
                    }
                    next += 1;
                }
                Step::Pop => prop_assert_eq!(mailbox.pop(), model.pop_front()),
                Step::PushAll(count) => {
                    let mut items: VecDeque<u32> = (next..next + u32::from(count)).collect();
                    next += u32::from(count);
                    model.extend(&items);
                    mailbox.push_all(&mut items);
                    prop_assert!(items.is_empty());
                }
                Step::TakeAll => {
                    let mut taken = VecDeque::new();
                    mailbox.take_all(&mut taken);
                    prop_assert_eq!(&taken, &model);
                    model.clear();
                }
            }
            prop_assert_eq!(mailbox.is_empty(), model.is_empty());
        }
    }

}

proptest! {
    // Each of these makes an exchange that stays for good.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the order of turns: each frame reaches its seat once and in order, or is counted; what seats send leaves whole.
    #[test]
    fn turns_in_any_order_lose_nothing_without_a_count(turns in prop::collection::vec((0..7_usize, 1..80_u32), 1..60)) {
        let mut bench = bench(4, 256);
        let mut queues: Vec<_> = (0..3).map(|_| TxQueue::with_capacity(1_024)).collect();
        let (mut sent, mut received, mut leaving, mut left) = ([0_u32; 4], [0_u32; 4], 0_u32, 0_usize);
        let mut last = [None; 4];
        let mut take = |bench: &mut Bench, seat: usize, received: &mut [u32; 4]| {
            for number in bench.receives(seat) {
                assert!(last[seat] < Some(number), "seat {seat}: {number} after {:?}", last[seat]);
                (last[seat], received[seat]) = (Some(number), received[seat] + 1);
            }
        };
        for (what, count) in turns {
            match what {
                0..4 => take(&mut bench, what, &mut received),
                4 => {
                    // The cable and its ring have room for all: it is emptied before more come.
                    while Link::poll_timeout(bench.first.device()).is_some() {
                        take(&mut bench, 0, &mut received);
                    }
                    let first = sent[0];
                    bench.peer_sends((first..first + count).flat_map(|at| (0..4).map(move |seat| frame(9, 5301 + seat, at))));
                    sent.iter_mut().for_each(|sent| *sent += count);
                }
                _ => {
                    let at = what % 3;
                    let room = (queues[at].room() as u32).min(count);
                    fill(&mut queues[at], &bench.frames, (0..room.min(64)).map(|_| frame(1, 9, 0)));
                    leaving += room.min(64);
                    bench.others[at].transmit(Instant::ZERO, &mut queues[at]).unwrap();
                    left += bench.peer_receives().len();
                }
            }
        }
        for _ in 0..200 {
            (0..4).for_each(|seat| take(&mut bench, seat, &mut received));
            for (other, queue) in bench.others.iter_mut().zip(&mut queues) {
                other.transmit(Instant::ZERO, queue).unwrap();
            }
            left += bench.peer_receives().len();
        }
        for seat in 0..4 {
            let dropped: u64 = bench.exchange.drops(seat as u16).iter().map(|(_, count)| count).sum();
            prop_assert_eq!(u64::from(sent[seat]), u64::from(received[seat]) + dropped, "seat {}", seat);
        }
        prop_assert_eq!(left as u32, leaving);
    }
}
