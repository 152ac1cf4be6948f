//! What the wire sees is the same, whoever does the work.

use super::*;
use crate::checksum::fill_packet;
use crate::chunk::Chunk;
use crate::device::Device;
use crate::feature::Feature;
use crate::frame::RxBatch;
use crate::loopback::Link;
use crate::pool::Pool;
use crate::selftest::flat;
use crate::selftest::frames::{Kind, Plan};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;
static PAYLOAD: [u8; 3000] = [0x5c; 3000];

/// One packet of a test.
#[derive(Clone, Debug)]
struct Item {
    kind: Kind,
    v6: bool,
    len: usize,
    /// Segment size of a super-segment; 0 for none.
    size: u16,
}

fn queue_up(queue: &mut TxQueue, item: &Item, token: u64) {
    let plan = Plan { kind: item.kind, v6: item.v6, sequence: token as u32 * 10_000, ..Plan::default() };
    let header = plan.partial_header(item.len);
    let packet = queue.vacant().expect("room");
    packet.header_mut(header.len()).copy_from_slice(&header);
    let cut = item.len / 3;
    packet.push_chunk(Chunk::constant(&PAYLOAD[..cut])).unwrap();
    packet.push_chunk(Chunk::constant(&PAYLOAD[cut..item.len])).unwrap();
    packet.meta = plan.meta();
    packet.meta.token = TxToken(token);
    if item.size > 0 {
        packet.meta.segmentation =
            if item.v6 { Segmentation::Tcp6(item.size) } else { Segmentation::Tcp4(item.size) };
    }
    queue.commit();
}

/// The frames that must arrive for `item`.
fn reference(item: &Item, token: u64) -> Vec<Vec<u8>> {
    let size = if item.size == 0 { item.len.max(1) } else { usize::from(item.size) };
    let count = item.len.div_ceil(size).max(1);
    (0..count)
        .map(|i| {
            let plan = Plan {
                kind: item.kind,
                v6: item.v6,
                sequence: token as u32 * 10_000 + (i * size) as u32,
                ident: Plan::default().ident + i as u16,
                ..Plan::default()
            };
            plan.frame(&PAYLOAD[i * size..item.len.min((i + 1) * size)])
        })
        .collect()
}

/// Sends `items` through devices with changing capabilities, and compares what arrives on the wire.
fn check(items: &[Item], ring: usize, room: usize, abilities: &[Capabilities]) -> TxStats {
    let pool = Pool::new(64, 4096);
    let (mut near, mut far) = Link::pair(&pool, 3100, Capabilities::ALL, ring);
    far.enable(Capabilities::NONE).unwrap();
    let mut fallback = Fallback::new(room);
    let mut queue = TxQueue::with_capacity(items.len());
    let mut expected = Vec::new();
    for (i, item) in items.iter().enumerate() {
        queue_up(&mut queue, item, i as u64 + 1);
        expected.extend(reference(item, i as u64 + 1));
    }
    let (mut arrived, mut tokens, mut taken) = (Vec::new(), Vec::new(), 0);
    let mut batch = RxBatch::with_limit(64);
    for turn in 0..10_000 {
        let enabled = abilities[turn % abilities.len()];
        near.enable(enabled).unwrap();
        fallback.set_enabled(enabled);
        taken += fallback.transmit(&mut near, NOW, &mut queue).unwrap();
        far.receive(NOW, &mut batch).unwrap();
        arrived.extend(core::iter::from_fn(|| batch.pop()).map(|frame| flat(&frame)));
        if abilities.iter().all(|enabled| !enabled.tso4 && !enabled.tso6) {
            assert_eq!(fallback.stats().bytes, arrived.iter().map(|frame| frame.len() as u64).sum::<u64>());
        }
        tokens.extend(core::iter::from_fn(|| near.poll_completion()).map(|token| token.0));
        if queue.is_empty() && !fallback.is_pending() {
            break;
        }
    }
    far.receive(NOW, &mut batch).unwrap();
    arrived.extend(core::iter::from_fn(|| batch.pop()).map(|frame| flat(&frame)));
    assert_eq!(arrived, expected);
    assert_eq!(tokens, (1..=items.len() as u64).collect::<Vec<_>>());
    assert_eq!(taken, items.len());
    assert_eq!(near.stats().refused, 0, "the device never saw what it cannot do");
    assert_eq!(fallback.stats().malformed, 0);
    fallback.stats()
}

const TCP: Item = Item { kind: Kind::Tcp, v6: false, len: 100, size: 0 };
const TCP6: Item = Item { v6: true, ..TCP };
const SUPER: Item = Item { len: 1000, size: 101, ..TCP };
const SUPER6: Item = Item { v6: true, ..SUPER };
const UDP: Item = Item { kind: Kind::Udp, len: 77, ..TCP };

#[test]
fn each_item_is_done_by_whoever_can() {
    let items = [TCP, SUPER, TCP6, SUPER6, UDP];
    let cases = [
        // Enabled, packets to the device, checksums, splits, segments in software.
        (Capabilities::ALL, 5, 0, 0, 0),
        (Capabilities::NONE, 23, 23, 2, 20),
        (Capabilities { tso4: false, ..Capabilities::ALL }, 14, 0, 1, 10),
        (Capabilities { tso6: false, ..Capabilities::ALL }, 14, 0, 1, 10),
        (Capabilities { tx_checksum6: false, tso6: false, ..Capabilities::ALL }, 14, 11, 1, 10),
    ];
    for (enabled, packets, checksums, splits, segments) in cases {
        let stats = check(&items, 64, 64, &[enabled]);
        let got = (stats.packets, stats.software_checksums, stats.software_splits, stats.software_segments);
        assert_eq!(got, (packets, checksums, splits, segments), "{enabled:?}");
        if packets == 23 {
            let bytes = items.iter().enumerate().flat_map(|(i, item)| reference(item, i as u64));
            assert_eq!(stats.bytes, bytes.map(|frame| frame.len() as u64).sum::<u64>());
        }
    }
}

#[test]
fn a_full_ring_stops_in_the_middle_of_a_split() {
    let pool = Pool::new(64, 2048);
    let (mut near, mut far) = Link::pair(&pool, 1500, Capabilities::NONE, 3);
    let mut fallback = Fallback::new(2);
    let mut queue = TxQueue::with_capacity(2);
    queue_up(&mut queue, &SUPER, 9);
    queue_up(&mut queue, &TCP, 10);
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Ok(1));
    assert!(fallback.is_pending());
    assert_eq!((near.poll_completion(), fallback.stats().packets, fallback.stats().ring_full), (None, 3, 1));
    assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Ok(0));
    let mut tokens = Vec::new();
    for turn in 0..3 {
        assert_eq!(far.receive(NOW, &mut batch), Ok(3), "turn {turn}");
        fallback.transmit(&mut near, NOW, &mut queue).unwrap();
        tokens.extend(core::iter::from_fn(|| near.poll_completion()));
    }
    assert_eq!(tokens, [TxToken(9), TxToken(10)]);
    assert!(!fallback.is_pending());
}

#[test]
fn malformed_packets_are_dropped_and_their_tokens_return() {
    let pool = Pool::new(64, 2048);
    let (mut near, mut far) = Link::pair(&pool, 1500, Capabilities::NONE, 16);
    let mut fallback = Fallback::new(2);
    let mut queue = TxQueue::with_capacity(8);
    let items: [fn(&mut TxPacket); 5] = [
        |_| {},
        |packet| packet.meta.checksum.as_mut().unwrap().start = 60_000,
        |packet| packet.meta.segmentation = Segmentation::Tcp6(10),
        |packet| packet.meta.checksum.as_mut().unwrap().offset = 60_000,
        |_| {},
    ];
    for (i, change) in items.iter().enumerate() {
        queue_up(&mut queue, &TCP, i as u64 + 1);
        change(queue.iter_mut().last().unwrap());
    }
    // Only two tokens fit: the third malformed packet waits until they are taken.
    fallback.transmit(&mut near, NOW, &mut queue).unwrap();
    assert_eq!((queue.len(), fallback.stats().malformed), (2, 2));
    fallback.transmit(&mut near, NOW, &mut queue).unwrap();
    assert_eq!(queue.len(), 2);
    assert_eq!(core::iter::from_fn(|| fallback.poll_dropped()).count(), 2);
    fallback.transmit(&mut near, NOW, &mut queue).unwrap();
    assert_eq!((queue.len(), fallback.stats().malformed), (0, 3));
    assert_eq!(fallback.poll_dropped(), Some(TxToken(4)));
    assert_eq!(core::iter::from_fn(|| near.poll_completion()).collect::<Vec<_>>(), [TxToken(1), TxToken(5)]);
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(far.receive(NOW, &mut batch), Ok(2));
}

#[test]
fn an_error_of_the_device_is_passed_on() {
    let pool = Pool::new(4, 2048);
    let (mut near, _far) = Link::pair(&pool, 1500, Capabilities::NONE, 16);
    near.cut();
    let mut fallback = Fallback::new(2);
    let mut queue = TxQueue::with_capacity(8);
    assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Ok(0), "nothing to send, nothing wrong");
    queue_up(&mut queue, &TCP, 1);
    assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Err(DeviceError::Gone));
    queue_up(&mut queue, &SUPER, 1);
    assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Err(DeviceError::Gone));
}

#[test]
fn udp_never_gets_a_checksum_of_zero() {
    let mut plan = Plan { kind: Kind::Udp, source_port: 0, ..Plan::default() };
    let bytes = plan.frame(&[]);
    plan.source_port = u16::from_be_bytes([bytes[40], bytes[41]]);
    let mut packet = TxPacket::new();
    let header = plan.partial_header(0);
    packet.header_mut(header.len()).copy_from_slice(&header);
    packet.meta = plan.meta();
    assert!(fill_packet(&mut packet));
    assert_eq!(packet.header()[40..42], [0xff, 0xff]);
}

fn item() -> impl Strategy<Value = Item> {
    (0usize..5, 0usize..1300, 1u16..700).prop_map(|(which, len, size)| {
        let base = [TCP, TCP6, SUPER, SUPER6, UDP][which].clone();
        // More segments show nothing new.
        let size = if base.size == 0 { 0 } else { size.max(len as u16 / 12 + 1) };
        Item { len: if size > 0 { len.max(1) } else { len }, size, ..base }
    })
}

fn abilities() -> impl Strategy<Value = Capabilities> {
    any::<[bool; 7]>().prop_map(|bits| {
        let mut all = Capabilities::NONE;
        for (feature, on) in Feature::ALL.into_iter().zip(bits) {
            all = all.with(feature, on);
        }
        all.tso4 &= all.tx_checksum4;
        all.tso6 &= all.tx_checksum6;
        all
    })
}

proptest! {
    #[test]
    fn the_wire_looks_the_same_whatever_the_device_does(
        items in proptest::collection::vec(item(), 1..12),
        ring in 1usize..20,
        room in 1usize..20,
        abilities in proptest::collection::vec(abilities(), 1..4),
    ) {
        check(&items, ring, room, &abilities);
    }
}

#[test]
fn nothing_is_held_after_sending() {
    let pool = Pool::new(2, 2048);
    let wire = Pool::new(64, 2048);
    let (mut near, _far) = Link::pair(&wire, 1500, Capabilities::NONE, 64);
    let mut fallback = Fallback::new(4);
    let mut queue = TxQueue::with_capacity(1);
    queue_up(&mut queue, &Item { len: 0, ..TCP }, 1);
    let payload = Chunk::Pool(pool.take().unwrap().freeze(0..1000));
    let packet = queue.front_mut().unwrap();
    let plan = Plan::default();
    packet.header_bytes_mut().copy_from_slice(&plan.partial_header(1000));
    packet.push_chunk(payload).unwrap();
    packet.meta.segmentation = Segmentation::Tcp4(100);
    fallback.transmit(&mut near, NOW, &mut queue).unwrap();
    assert_eq!((pool.free(), fallback.stats().software_segments), (2, 10));
    assert_eq!(vec![near.poll_completion(), near.poll_completion()], [Some(TxToken(1)), None]);
}

/// Counts doorbells.
struct Counted(Link, u32);

impl Device for Counted {
    fn mac(&self) -> crate::MacAddr {
        self.0.mac()
    }
    fn mtu(&self) -> usize {
        self.0.mtu()
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.0.enable(wanted)
    }
}

impl QueuePair for Counted {
    fn enabled(&self) -> Capabilities {
        self.0.enabled()
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.0.receive(now, batch)
    }
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.1 += 1;
        self.0.transmit(now, queue)
    }
    fn poll_completion(&mut self) -> Option<TxToken> {
        self.0.poll_completion()
    }
}

#[test]
fn a_mixed_queue_takes_one_doorbell() {
    let pool = Pool::new(64, 2048);
    for enabled in [Capabilities::NONE, Capabilities::ALL] {
        let (mut near, _far) = Link::pair(&pool, 1500, Capabilities::ALL, 64);
        near.enable(enabled).unwrap();
        let mut near = Counted(near, 0);
        let mut fallback = Fallback::new(64);
        let mut queue = TxQueue::with_capacity(8);
        for (i, item) in [TCP, SUPER, TCP6, SUPER6, UDP].iter().enumerate() {
            queue_up(&mut queue, item, i as u64 + 1);
        }
        assert_eq!(fallback.transmit(&mut near, NOW, &mut queue), Ok(5));
        assert_eq!(near.1, 1, "{enabled:?}");
    }
}
