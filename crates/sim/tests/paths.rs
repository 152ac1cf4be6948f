//! What a path does to frames between two scripted nodes: times to the nanosecond, bounds, faults, changes.

use linerate_sim::*;
use std::time::Duration;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

/// A frame of `len` bytes from A to B whose payload begins with its number.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len.max(18)];
    frame[..6].copy_from_slice(&B.0);
    frame[6..12].copy_from_slice(&A.0);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])
}

/// Two scripted nodes, and a path from the first to the second.
fn pair(seed: u64, path: Path) -> (World, RawId, RawId) {
    let mut world = World::new(seed);
    let a = world.add_raw("a", A);
    let b = world.add_raw("b", B);
    world.set_path(a, Direction::Up, path);
    (world, a, b)
}

/// Sends `count` frames of `len` bytes at once; their numbers and times of arrival in ns since then.
fn burst(world: &mut World, a: RawId, b: RawId, count: u32, len: usize) -> Vec<(u32, u64)> {
    let start = world.now();
    (0..count).for_each(|number_| world.send(a, frame(number_, len)));
    world.run_for(Duration::from_secs(5));
    let received = world.received(b);
    received.iter().map(|(at, frame)| (number(frame), (*at - start).as_nanos() as u64)).collect()
}

#[test]
fn rate_and_delay_are_exact() {
    // (rate, frame length, delay, time of the first, second and 1,000th)
    let cases = [
        (1_000_000_000, 1_514, 100_000, [112_304, 124_608, 12_404_000]),
        (10_000_000_000, 1_514, 0, [1_230, 2_460, 1_230_400]),
        (10_000_000, 60, 1, [67_201, 134_401, 67_200_001]),
        // Shorter frames take the wire as if they were padded.
        (10_000_000, 20, 1, [67_201, 134_401, 67_200_001]),
        (3, 60, 0, [224_000_000_000, 448_000_000_000, 224_000_000_000_000]),
        (7_000_000_000, 60, 0, [96, 192, 96_000]),
    ];
    for (rate, len, delay, expected) in cases {
        let path = Path {
            rate_bps: Some(rate),
            delay: Duration::from_nanos(delay),
            queue: Queue::packets(usize::MAX),
            ..Path::default()
        };
        let (mut world, a, b) = pair(1, path);
        let start = world.now();
        (0..1_000).for_each(|number| world.send(a, frame(number, len)));
        world.run_for(Duration::from_secs(300_000));
        let received = world.received(b);
        let at = |index: usize| (received[index].0 - start).as_nanos() as u64;
        assert_eq!([at(0), at(1), at(999)], expected, "{rate} b/s, {len} bytes");
        assert!(received.iter().enumerate().all(|(index, (_, frame))| number(frame) == index as u32));
    }
}

#[test]
fn a_queue_drops_what_does_not_fit() {
    let path = |queue| Path { rate_bps: Some(1_000_000), queue, ..Path::default() };
    // One is being sent, the others wait.
    let cases = [
        (Queue::packets(3), 4),
        (Queue::bytes(4_000), 1 + 4_000 / 1_000),
        (Queue::bytes(3_999), 1 + 3),
        (Queue::DropTail { packets: 2, bytes: 100_000 }, 3),
        (Queue::packets(0), 0),
    ];
    for (queue, expected) in cases {
        let (mut world, a, b) = pair(1, path(queue));
        let arrived = burst(&mut world, a, b, 20, 1_000);
        let stats = world.path_stats(a, Direction::Up);
        assert_eq!(arrived.len(), expected, "{queue:?}");
        assert_eq!(stats.queue_full, 20 - expected as u64);
        assert_eq!((stats.offered, stats.delivered), (20, expected as u64));
        assert_eq!(world.queue_len(a, Direction::Up), (0, 0));
    }
}

#[test]
fn a_threshold_marks_what_can_be_marked() {
    // (IPv4's second byte of the header before, and after, when behind the threshold)
    for (tos, marked) in [(0u8, 0u8), (1, 3), (2, 3), (3, 3), (0xb9, 0xbb)] {
        let queue = Queue::Threshold { mark_bytes: 2_000, bytes: 10_000 };
        let (mut world, a, b) = pair(1, Path { rate_bps: Some(1_000_000), queue, ..Path::default() });
        for _ in 0..6 {
            let mut bytes = frame(0, 1_000);
            bytes[12..34].copy_from_slice(&[
                8, 0, 0x45, tos, 3, 0xda, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            let sum = linerate_wire::checksum::checksum(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            world.send(a, bytes);
        }
        world.run_for(Duration::from_secs(1));
        let received = world.received(b);
        // One is sent at once, two wait before it is 2,000 bytes.
        let found: Vec<u8> = received.iter().map(|(_, frame)| frame[15]).collect();
        assert_eq!(found, [tos, tos, tos, marked, marked, marked]);
        assert!(received.iter().all(|(_, frame)| linerate_wire::checksum::verify(&frame[14..34])));
        let expected = if tos & 3 == 0 { 0 } else { 3 };
        assert_eq!(world.path_stats(a, Direction::Up).marked, expected);
    }
}

#[test]
fn losses_and_duplicates_are_counted() {
    let path = Path { loss: Loss::List(vec![1, 3, 4]), ..Path::default() };
    let (mut world, a, b) = pair(1, path);
    let arrived = burst(&mut world, a, b, 7, 100);
    assert_eq!(arrived.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 2, 5, 6]);
    assert_eq!(world.path_stats(a, Direction::Up).lost, 3);

    let (mut world, a, b) = pair(1, Path { duplicate: 1.0, ..Path::default() });
    let arrived = burst(&mut world, a, b, 2, 100);
    assert_eq!(arrived.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(world.path_stats(a, Direction::Up).duplicated, 2);
}

#[test]
fn corruption_flips_one_bit() {
    let (mut world, a, b) = pair(3, Path { corrupt: 1.0, ..Path::default() });
    for number in 0..200 {
        world.send(a, frame(number, 100));
    }
    world.run_for(Duration::from_secs(1));
    // With two nodes there is a cable: wrong addresses arrive too.
    let received = world.received(b);
    assert_eq!(received.len(), 200);
    let mut places = std::collections::BTreeSet::new();
    for (number, (_, found)) in received.iter().enumerate() {
        let sent = frame(number as u32, 100);
        let flipped: u32 = sent.iter().zip(found).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(flipped, 1);
        places.insert(sent.iter().zip(found).position(|(a, b)| a != b));
    }
    assert!(places.len() > 60, "bits are chosen all over the frame: {places:?}");
}

#[test]
fn jitter_keeps_order_unless_told_otherwise() {
    let jitter = Jitter::Uniform(Duration::from_millis(2));
    let path = Path { delay: Duration::from_millis(1), jitter, ..Path::default() };
    let (mut world, a, b) = pair(5, path.clone());
    let arrived = burst(&mut world, a, b, 200, 100);
    assert!(arrived.is_sorted());
    assert!(arrived.iter().all(|(_, at)| (1_000_000..=3_000_000).contains(at)));

    let (mut world, a, b) = pair(5, Path { jitter_reorders: true, ..path });
    let mut arrived = burst(&mut world, a, b, 2_000, 100);
    assert!(arrived.is_sorted_by_key(|(_, at)| *at) && !arrived.is_sorted());
    assert!(arrived.iter().all(|(_, at)| (1_000_000..=3_000_000).contains(at)));
    let mean = arrived.iter().map(|(_, at)| *at).sum::<u64>() / 2_000;
    assert!((1_950_000..2_050_000).contains(&mean), "{mean}");
    arrived.sort_unstable();
    assert!(arrived.iter().enumerate().all(|(index, (number, _))| index as u32 == *number), "each once");
}

#[test]
fn normal_jitter_has_its_deviation() {
    let jitter = Jitter::Normal(Duration::from_millis(1));
    let path = Path { delay: Duration::from_millis(10), jitter, jitter_reorders: true, ..Path::default() };
    let (mut world, a, b) = pair(6, path);
    let arrived = burst(&mut world, a, b, 4_000, 100);
    let ms: Vec<f64> = arrived.iter().map(|(_, at)| *at as f64 / 1e6).collect();
    let mean = ms.iter().sum::<f64>() / ms.len() as f64;
    let deviation = (ms.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / ms.len() as f64).sqrt();
    assert!((9.9..10.1).contains(&mean) && (0.95..1.05).contains(&deviation), "{mean} {deviation}");
}

#[test]
fn what_is_held_back_is_overtaken() {
    let path = Path { reorder: 0.3, reorder_delay: Duration::from_millis(5), ..Path::default() };
    let (mut world, a, b) = pair(8, path);
    let arrived = burst(&mut world, a, b, 100, 100);
    assert_eq!(arrived.len(), 100);
    let held = arrived.iter().filter(|(_, at)| *at == 5_000_000).count() as u64;
    assert_eq!(held, world.path_stats(a, Direction::Up).reordered);
    assert!((15..50).contains(&held), "{held}");
    assert!(arrived.iter().all(|(_, at)| *at == 0 || *at == 5_000_000));
}

#[test]
fn scripts_decide_first() {
    let (mut world, a, b) = pair(1, Path { loss: Loss::EveryNth(3), ..Path::default() });
    let script = |_: Instant, bytes: &[u8]| match number(bytes) {
        0 => Verdict::Drop,
        1 => Verdict::Duplicate,
        2 => Verdict::Delay(Duration::from_millis(7)),
        3 => Verdict::Corrupt { at: 17, mask: 0xf0 },
        _ => Verdict::Deliver,
    };
    world.set_script(a, Direction::Up, Some(Box::new(script)));
    let arrived = burst(&mut world, a, b, 6, 100);
    // Past the script come 1, 1, 2, 3, 4, 5, of which the third and the sixth are lost.
    assert_eq!(arrived, [(1, 0), (1, 0), (0xf3, 0), (4, 0)]);
    assert_eq!(world.path_stats(a, Direction::Up).scripted, 1);
}

#[test]
fn a_pause_holds_everything_and_loses_nothing() {
    for rate_bps in [None, Some(1_000_000_000)] {
        let (mut world, a, b) = pair(1, Path { rate_bps, ..Path::default() });
        let resume = world.now() + Duration::from_millis(3);
        world.change(a, Direction::Up, Change::Pause);
        world.change_at(resume, a, Direction::Up, Change::Resume);
        let arrived = burst(&mut world, a, b, 10, 1_514);
        assert_eq!(arrived.len(), 10);
        let service = if rate_bps.is_some() { 12_304 } else { 0 };
        for (index, (number, at)) in arrived.iter().enumerate() {
            assert_eq!((*number, *at), (index as u32, 3_000_000 + service * (index as u64 + 1)));
        }
    }
}

#[test]
fn changes_come_at_their_time() {
    let (mut world, a, b) = pair(1, Path::with_delay(Duration::from_millis(1)));
    let start = world.now();
    let at = |ms| start + Duration::from_millis(ms);
    world.change_at(at(10), a, Direction::Up, Change::Delay(Duration::from_millis(2)));
    world.change_at(at(20), a, Direction::Up, Change::Rate(Some(1_000_000)));
    world.change_at(at(30), a, Direction::Up, Change::Loss(Loss::EveryNth(1)));
    for number in 0..4 {
        world.send(a, frame(number, 101));
        world.run_for(Duration::from_millis(10));
    }
    world.run_for(Duration::from_secs(1));
    let times: Vec<_> = world.received(b).iter().map(|(at, _)| (*at - start).as_nanos()).collect();
    // 125 bytes on the wire take 1 ms.
    assert_eq!(times, [1_000_000, 12_000_000, 23_000_000]);
}

#[test]
fn what_came_before_a_change_is_treated_as_it_was_then() {
    let rate_bps = Some(1_000_000);
    let (mut world, a, b) = pair(1, Path { rate_bps, queue: Queue::packets(1), ..Path::default() });
    // 1,000 bytes take 8.192 ms: the third frame is dropped before the queue becomes longer, the next two fit.
    let longer = Path { rate_bps, queue: Queue::packets(3), ..Path::default() };
    world.change_at(world.now() + Duration::from_millis(3), a, Direction::Up, Change::All(Box::new(longer)));
    for number in 0..6 {
        world.send(a, frame(number, 1_000));
        world.run_for(Duration::from_millis(1));
    }
    assert_eq!(world.queue_len(a, Direction::Up), (3, 3_000));
    world.run_for(Duration::from_secs(1));
    let numbers: Vec<_> = world.received(b).iter().map(|(_, frame)| number(frame)).collect();
    assert_eq!(numbers, [0, 1, 3, 4]);
}

#[test]
fn a_model_of_loss_goes_on_where_all_else_changes() {
    let check = |to: Loss, expected: &[u32]| {
        let path = |loss, delay| Path { loss, ..Path::with_delay(Duration::from_millis(delay)) };
        let (mut world, a, b) = pair(1, path(Loss::EveryNth(3), 1));
        (0..2).for_each(|number| world.send(a, frame(number, 100)));
        world.run_for(Duration::from_millis(10));
        world.set_path(a, Direction::Up, path(to, 2));
        (2..7).for_each(|number| world.send(a, frame(number, 100)));
        world.run_for(Duration::from_secs(1));
        let numbers: Vec<_> = world.received(b).iter().map(|(_, frame)| number(frame)).collect();
        assert_eq!(numbers, expected);
    };
    check(Loss::EveryNth(3), &[0, 1, 3, 4, 6]);
    check(Loss::EveryNth(4), &[0, 1, 2, 3, 4, 6]);
}

/// A peer that answers each frame 1 ms later, from its own timer.
#[derive(Default)]
struct Late {
    due: Option<Instant>,
}

impl Peer for Late {
    fn handle_frame(&mut self, now: Instant, _frame: &[u8], _out: &mut Vec<Vec<u8>>) {
        self.due = Some(now + Duration::from_millis(1));
    }

    fn handle_timeout(&mut self, _now: Instant, out: &mut Vec<Vec<u8>>) {
        self.due = None;
        let mut answer = frame(99, 60);
        answer[..12].rotate_left(6);
        out.push(answer);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[test]
fn a_peer_acts_at_its_own_times() {
    let (mut world, a, b) = pair(1, Path::with_delay(Duration::from_millis(1)));
    world.set_peer(b, Late::default());
    let start = world.now();
    world.send(a, frame(0, 60));
    assert!(world.run_until(Duration::from_secs(1), |world| !world.received(a).is_empty()));
    assert_eq!(world.now() - start, Duration::from_millis(2));
}

/// A peer that wants to act for ever at one point in time.
struct Restless;

impl Peer for Restless {
    fn handle_frame(&mut self, _now: Instant, _frame: &[u8], _out: &mut Vec<Vec<u8>>) {}

    fn poll_timeout(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

#[test]
#[should_panic(expected = "b does not come to rest at 0.001000000s: a livelock (seed 77)")]
fn a_livelock_is_named() {
    let (mut world, _, b) = pair(77, Path::default());
    world.set_peer(b, Restless);
    world.run_for(Duration::from_secs(1));
}

#[test]
fn the_switch_learns_and_floods() {
    let mut world = World::new(1);
    let macs = [1u8, 2, 3, 4].map(|last| MacAddr([2, 0, 0, 0, 9, last]));
    let nodes = [0, 1, 2].map(|index| world.add_raw("node", macs[index]));
    let send = |world: &mut World, from: usize, source: usize, to: MacAddr| {
        let mut bytes = frame(0, 60);
        bytes[..6].copy_from_slice(&to.0);
        bytes[6..12].copy_from_slice(&macs[source].0);
        world.send(nodes[from], bytes);
        world.run_for(Duration::from_millis(1));
        nodes.map(|node| world.received(node).len())
    };
    assert_eq!(send(&mut world, 0, 0, macs[1]), [0, 1, 0]);
    assert_eq!(send(&mut world, 0, 0, MacAddr::BROADCAST), [0, 1, 1]);
    assert_eq!(send(&mut world, 0, 0, macs[3]), [0, 1, 1], "unknown");
    assert_eq!(send(&mut world, 2, 3, macs[0]), [1, 0, 0]);
    assert_eq!(send(&mut world, 0, 0, macs[3]), [0, 0, 1], "learnt");
    assert_eq!(send(&mut world, 0, 0, macs[0]), [0, 0, 0], "to itself");
}
