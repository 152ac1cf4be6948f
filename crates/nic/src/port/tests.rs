//! Who does which work, and that it can change while running.

use super::*;
use crate::chunk::Chunk;
use crate::device::Device;
use crate::loopback::{Link, Verdict};
use crate::meta::Segmentation;
use crate::pool::Pool;
use crate::queue::QueuePair;
use crate::selftest::flat;
use crate::selftest::frames::{Kind, Plan};
use alloc::vec::Vec;

const NOW: Instant = Instant::ZERO;
static PAYLOAD: [u8; 5000] = [0x3a; 5000];

fn ports(near: Capabilities, far: Capabilities) -> (Pool, Port<Link>, Port<Link>) {
    let pool = Pool::new(256, 2048);
    let (a, b) = Link::pair(&pool, 1500, Capabilities::ALL, 128);
    let mut a = Port::new(a, PortConfig::default()).unwrap();
    let mut b = Port::new(b, PortConfig::default()).unwrap();
    // The link is able to do everything: what may not be done by it shows what software does. Coalescing in software
    // stays, as a capability that is distrusted and not forbidden.
    a.distrust(near).unwrap();
    b.distrust(far).unwrap();
    (pool, a, b)
}

fn send(port: &mut Port<Link>, plan: &Plan, len: usize, size: u16) {
    let mut queue = TxQueue::with_capacity(1);
    let packet = queue.vacant().unwrap();
    let header = plan.partial_header(len);
    packet.header_mut(header.len()).copy_from_slice(&header);
    packet.push_chunk(Chunk::constant(&PAYLOAD[..len])).unwrap();
    packet.meta = plan.meta();
    packet.meta.token = TxToken(1);
    if size > 0 {
        packet.meta.segmentation = if plan.v6 { Segmentation::Tcp6(size) } else { Segmentation::Tcp4(size) };
    }
    queue.commit();
    assert_eq!(port.transmit(NOW, &mut queue), Ok(1));
    assert!(!port.is_pending());
    assert_eq!((port.poll_completion(), port.poll_completion()), (Some(TxToken(1)), None));
}

fn receive(port: &mut Port<Link>) -> Vec<Frame> {
    let mut batch = RxBatch::with_limit(64);
    let count = port.receive(NOW, &mut batch).unwrap();
    assert_eq!(count, batch.len());
    core::iter::from_fn(|| batch.pop()).collect()
}

#[test]
fn the_stack_sees_the_same_whoever_does_the_work() {
    for near in [Capabilities::NONE, Capabilities::ALL] {
        for far in [Capabilities::NONE, Capabilities::ALL] {
            for v6 in [false, true] {
                let (pool, mut a, mut b) = ports(near, far);
                let plan = Plan { v6, flags: 0x18, ..Plan::default() };
                send(&mut a, &plan, 5000, 1000);
                let frames = receive(&mut b);
                assert_eq!(frames.len(), 1, "{near:?} {far:?}");
                let mut expected = plan.partial_header(5000);
                expected.extend_from_slice(&PAYLOAD);
                let mut got = flat(&frames[0]);
                // Left as it is where nobody sums again.
                let field = plan.layer4() + 16;
                got[field..field + 2].copy_from_slice(&expected[field..field + 2]);
                assert_eq!(got, expected);
                assert_eq!(frames[0].meta.checksum, ChecksumStatus::Good);
                assert_eq!(frames[0].meta.segment_size, 1000);
                let plain = frames[0].plain().expect("a plain packet");
                let seen = (usize::from(plain.ip), plain.layer4(), plain.end as usize, plain.protocol);
                assert_eq!(seen, (14, plan.layer4(), frames[0].len(), linerate_wire::ip::Protocol::TCP));
                let in_software = far == Capabilities::ALL;
                assert_eq!(b.stats().rx.software_good, if in_software { 5 } else { 0 });
                drop(frames);
                assert_eq!(pool.free(), 256);
            }
        }
    }
}

#[test]
fn corruption_is_seen_by_device_and_by_software() {
    for (far, expected) in [(Capabilities::NONE, (1, 0)), (Capabilities::ALL, (0, 1))] {
        let (_pool, mut a, mut b) = ports(Capabilities::NONE, far);
        a.device().set_hook(|_| Verdict::Corrupt { at: 60, mask: 4 });
        send(&mut a, &Plan::default(), 100, 0);
        assert_eq!(receive(&mut b)[0].meta.checksum, ChecksumStatus::Bad);
        let rx = b.stats().rx;
        assert_eq!((rx.device_bad, rx.software_bad), expected);
        assert_eq!((rx.frames, rx.bytes), (1, 154));
    }
}

#[test]
fn offloads_switch_while_running() {
    let (_pool, mut a, mut b) = ports(Capabilities::NONE, Capabilities::NONE);
    assert_eq!(a.enabled(), Capabilities::ALL);
    assert_eq!(a.set_offloads(Capabilities::NONE), Ok(Capabilities::NONE));
    assert_eq!(b.set_offloads(Capabilities::NONE), Ok(Capabilities::NONE));
    send(&mut a, &Plan::default(), 3000, 1000);
    let frames = receive(&mut b);
    assert_eq!(frames.len(), 3, "coalescing is not allowed");
    assert!(frames.iter().all(|frame| frame.meta.checksum == ChecksumStatus::Good));
    assert_eq!((a.stats().tx.software_splits, a.stats().tx.software_checksums), (1, 3));
    assert_eq!((b.stats().rx.software_good, b.stats().rx.coalesced), (3, 0));
    b.set_offloads(Capabilities::NONE.with(Feature::RxCoalescing, true)).unwrap();
    a.set_offloads(Capabilities::ALL).unwrap();
    send(&mut a, &Plan::default(), 3000, 1000);
    assert_eq!(receive(&mut b).len(), 1);
    assert_eq!(a.stats().tx.software_splits, 1);
}

#[test]
fn reasons_are_visible() {
    let pool = Pool::new(1, 2048);
    let able = Capabilities::ALL.with(Feature::Tso6, false);
    let (link, _other) = Link::pair(&pool, 1500, able, 1);
    let mut port = Port::new(link, PortConfig::default()).unwrap();
    port.set_offloads(Capabilities::ALL.with(Feature::TxChecksum4, false).with(Feature::RxCoalescing, false))
        .unwrap();
    port.distrust(Capabilities::NONE.with(Feature::RxChecksum, true)).unwrap();
    let places = Feature::ALL.map(|feature| port.place(feature));
    let expected = [
        Place::Software(Reason::NotAllowed),
        Place::Device,
        Place::Software(Reason::SelfTest),
        Place::Software(Reason::NeedsChecksum),
        Place::Software(Reason::NotCapable),
        Place::Off(Reason::NotAllowed),
        Place::Device,
    ];
    assert_eq!(places, expected);
    assert_eq!(
        alloc::format!("{}", places[3]),
        "software (splitting needs the checksum offload, which is off)"
    );
}

/// A device that claims everything but refuses some of it together.
struct Picky {
    link: Link,
    refuses: fn(Capabilities) -> bool,
}

impl Device for Picky {
    fn mac(&self) -> MacAddr {
        self.link.mac()
    }
    fn mtu(&self) -> usize {
        self.link.mtu()
    }
    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if (self.refuses)(wanted) { Err(DeviceError::Unsupported) } else { self.link.enable(wanted) }
    }
}

impl QueuePair for Picky {
    fn enabled(&self) -> Capabilities {
        self.link.enabled()
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.link.receive(now, batch)
    }
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.link.transmit(now, queue)
    }
    fn poll_completion(&mut self) -> Option<TxToken> {
        self.link.poll_completion()
    }
}

#[test]
fn a_refusal_leaves_as_much_as_the_device_takes() {
    let pool = Pool::new(1, 2048);
    let (link, _other) = Link::pair(&pool, 1500, Capabilities::ALL, 1);
    let port = Port::new(Picky { link, refuses: |wanted| wanted.tso4 }, PortConfig::default()).unwrap();
    let expected = Capabilities { tso4: false, tso6: false, rx_coalescing: false, ..Capabilities::ALL };
    assert_eq!(port.enabled(), expected);
    assert_eq!(port.place(Feature::Tso4), Place::Software(Reason::Refused));
    assert_eq!(port.place(Feature::RxCoalescing), Place::Software(Reason::Refused));
}

/// A TAP device joins segments only where it may vouch for them.
#[test]
fn a_refusal_of_coalescing_leaves_segmentation() {
    let pool = Pool::new(1, 2048);
    let (link, _other) = Link::pair(&pool, 1500, Capabilities::ALL, 1);
    let refuses = |wanted: Capabilities| wanted.rx_coalescing && !wanted.rx_checksum;
    let mut port = Port::new(Picky { link, refuses }, PortConfig::default()).unwrap();
    assert_eq!(port.enabled(), Capabilities::ALL);
    let allowed = Capabilities { rx_checksum: false, ..Capabilities::ALL };
    let expected = Capabilities { rx_coalescing: false, ..allowed };
    assert_eq!(port.set_offloads(allowed), Ok(expected));
    assert_eq!(port.place(Feature::RxCoalescing), Place::Software(Reason::Refused));
}

#[test]
fn budget_and_batch_bound_one_call() {
    let pool = Pool::new(256, 256);
    let (mut a, b) = Link::pair(&pool, 200, Capabilities::NONE, 128);
    let config = PortConfig { rx_batch: 8, rx_budget: 20, ..PortConfig::default() };
    let mut b = Port::new(b, config).unwrap();
    let mut queue = TxQueue::with_capacity(100);
    for i in 0..100u32 {
        let bytes = Plan { sequence: i * 50, ..Plan::default() }.frame(&[1; 50]);
        queue.vacant().unwrap().header_mut(bytes.len()).copy_from_slice(&bytes);
        queue.commit();
    }
    a.transmit(NOW, &mut queue).unwrap();
    let mut batch = RxBatch::with_limit(3);
    let mut counts = Vec::new();
    while let Ok(count @ 1..) = b.receive(NOW, &mut batch) {
        counts.push(count);
        assert!(b.has_more(), "the budget was used up, though the batch was not");
        while batch.pop().is_some() {}
    }
    assert!(!b.has_more());
    // Each call joins its 20 segments to one frame.
    assert_eq!(counts, [1; 5]);
    assert_eq!((b.stats().rx.frames, b.stats().rx.coalesced), (100, 95));
}

/// Short frames begin no flow, but end one, and keep their place in it.
#[test]
fn an_acknowledgement_is_not_joined_and_not_overtaken() {
    let pool = Pool::new(256, 256);
    let (mut a, b) = Link::pair(&pool, 200, Capabilities::NONE, 128);
    let mut b = Port::new(b, PortConfig::default()).unwrap();
    let mut queue = TxQueue::with_capacity(100);
    let mut sequence = 0;
    for len in [0, 10, 10, 50, 50, 0, 50, 50, 10, 10] {
        let bytes = Plan { sequence, ..Plan::default() }.frame(&[1; 64][..len]);
        sequence += len as u32;
        queue.vacant().unwrap().header_mut(bytes.len()).copy_from_slice(&bytes);
        queue.commit();
    }
    a.transmit(NOW, &mut queue).unwrap();
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(b.receive(NOW, &mut batch), Ok(7));
    let lens: Vec<_> = core::iter::from_fn(|| batch.pop()).map(|frame| frame.len() - 54).collect();
    assert_eq!(lens, [0, 10, 10, 100, 0, 110, 10]);
    assert_eq!((b.stats().rx.frames, b.stats().rx.coalesced, b.stats().rx.software_good), (10, 3, 10));
}

#[test]
fn frames_before_an_error_are_delivered() {
    let (_pool, mut a, mut b) = ports(Capabilities::NONE, Capabilities::NONE);
    send(&mut a, &Plan { kind: Kind::Udp, ..Plan::default() }, 10, 0);
    let mut batch = RxBatch::with_limit(4);
    assert_eq!(b.receive(NOW, &mut batch), Ok(1));
    b.device().cut();
    assert_eq!(b.receive(NOW, &mut batch), Err(DeviceError::Gone));
    assert_eq!(batch.len(), 1);
}
