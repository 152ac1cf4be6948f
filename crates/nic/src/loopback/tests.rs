//! Two devices joined in memory.

use super::*;
use crate::chunk::Chunk;
use crate::meta::ChecksumRequest;
use alloc::vec::Vec;

const NOW: Instant = Instant::ZERO;

/// Queues one packet of `header` zero bytes (field at 16 from 14 on, if asked for) and payload.
fn send(end: &mut Link, header: usize, payload: &'static [u8], prepare: impl FnOnce(&mut TxPacket)) {
    let mut queue = TxQueue::with_capacity(1);
    let packet = queue.vacant().unwrap();
    packet.header_mut(header).fill(0);
    packet.push_chunk(Chunk::constant(payload)).unwrap();
    prepare(packet);
    queue.commit();
    assert_eq!(end.transmit(NOW, &mut queue), Ok(1));
}

fn receive(end: &mut Link, now: Instant) -> Vec<Frame> {
    let mut batch = RxBatch::with_limit(100);
    end.receive(now, &mut batch).unwrap();
    core::iter::from_fn(|| batch.pop()).collect()
}

fn flat(frame: &Frame) -> Vec<u8> {
    core::iter::once(frame.data.bytes())
        .chain(frame.more.iter().map(|p| p.bytes()))
        .flatten()
        .copied()
        .collect()
}

#[test]
fn frames_arrive_at_the_other_end_and_tokens_return() {
    let pool = Pool::new(4, 256);
    let (mut a, mut b) = Link::pair(&pool, 200, Capabilities::NONE, 4);
    assert_ne!(a.mac(), b.mac());
    send(&mut a, 14, b"hello", |packet| packet.meta.token = TxToken(7));
    assert_eq!(receive(&mut a, NOW).len(), 0);
    let frames = receive(&mut b, NOW);
    assert_eq!(&flat(&frames[0])[14..], b"hello");
    assert_eq!((a.poll_completion(), a.poll_completion()), (Some(TxToken(7)), None));
    drop(frames);
    assert_eq!(pool.free(), 4);
}

#[test]
fn a_super_segment_passes_whole_over_several_buffers() {
    static PAYLOAD: [u8; 1000] = [9; 1000];
    let pool = Pool::new(8, 256);
    let (mut a, mut b) = Link::pair(&pool, 200, Capabilities::ALL, 4);
    send(&mut a, 54, &PAYLOAD, |packet| {
        packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
        packet.meta.segmentation = Segmentation::Tcp4(146);
    });
    let frames = receive(&mut b, NOW);
    assert_eq!((frames.len(), frames[0].len(), frames[0].more.len()), (1, 1054, 4));
    assert_eq!(frames[0].meta.segment_size, 146);
    assert_eq!(frames[0].meta.checksum, ChecksumStatus::Good);
}

#[test]
fn the_ring_pushes_back_and_the_pool_drops() {
    let pool = Pool::new(1, 256);
    let (mut a, _b) = Link::pair(&pool, 200, Capabilities::NONE, 1);
    let mut queue = TxQueue::with_capacity(3);
    for _ in 0..3 {
        queue.vacant().unwrap().header_mut(14).fill(1);
        queue.commit();
    }
    assert_eq!(a.transmit(NOW, &mut queue), Ok(1));
    assert_eq!((queue.len(), a.stats().sent), (2, 1));
    let (mut a, _b) = Link::pair(&pool, 200, Capabilities::NONE, 4);
    assert_eq!(a.transmit(NOW, &mut queue), Ok(2));
    assert_eq!((a.stats().sent, a.stats().no_buffer), (2, 2));
}

#[test]
fn every_verdict_does_what_it_says() {
    let pool = Pool::new(16, 256);
    let ms = Duration::from_millis;
    let cases: [(Verdict, &[&str], &[&str]); 5] = [
        (Verdict::Deliver, &["1", "2"], &[]),
        (Verdict::Drop, &["2"], &[]),
        (Verdict::Duplicate, &["1", "1", "2"], &[]),
        (Verdict::Delay(ms(5)), &["2"], &["1"]),
        (Verdict::Corrupt { at: 14, mask: 2 }, &["3", "2"], &[]),
    ];
    for (verdict, now, later) in cases {
        let (mut a, mut b) = Link::pair(&pool, 200, Capabilities::NONE, 4);
        a.set_hook(move |_| verdict);
        send(&mut a, 14, b"1", |_| {});
        a.clear_hook();
        send(&mut a, 14, b"2", |_| {});
        for (at, expected) in [(NOW, now), (NOW + ms(5), later)] {
            let got: Vec<_> = receive(&mut b, at).iter().map(|f| flat(f)[14..].to_vec()).collect();
            let expected: Vec<_> = expected.iter().map(|text| text.as_bytes().to_vec()).collect();
            assert_eq!(got, expected, "{verdict:?}");
        }
    }
}

#[test]
fn the_receiver_decides_whether_a_checksum_is_filled_in() {
    let pool = Pool::new(4, 256);
    let (mut a, mut b) = Link::pair(&pool, 200, Capabilities::ALL, 4);
    let ask = |packet: &mut TxPacket| packet.meta.checksum = Some(ChecksumRequest { start: 14, offset: 16 });
    send(&mut a, 34, &[1, 2, 3], ask);
    assert_eq!(receive(&mut b, NOW)[0].meta.checksum, ChecksumStatus::Good);
    a.set_hook(|_| Verdict::Corrupt { at: 20, mask: 1 });
    send(&mut a, 34, &[1, 2, 3], ask);
    assert_eq!(receive(&mut b, NOW)[0].meta.checksum, ChecksumStatus::Bad);
    a.clear_hook();
    b.enable(Capabilities::NONE).unwrap();
    send(&mut a, 34, &[1, 2, 3], ask);
    let frame = receive(&mut b, NOW).remove(0);
    assert_eq!(frame.meta.checksum, ChecksumStatus::Unchecked);
    assert_eq!(checksum::sum(&flat(&frame)[14..]).folded(), 0xffff);
}

#[test]
fn what_is_not_switched_on_is_refused() {
    let pool = Pool::new(4, 256);
    let (mut a, _b) = Link::pair(&pool, 200, Capabilities::NONE, 4);
    assert_eq!(a.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
    send(&mut a, 54, b"x", |packet| packet.meta.segmentation = Segmentation::Tcp4(1));
    send(&mut a, 54, b"x", |packet| {
        packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
    });
    assert_eq!(a.stats().refused, 2);
    static LONG: [u8; 300] = [0; 300];
    send(&mut a, 14, &LONG, |_| {});
    assert_eq!(a.stats().oversize, 1);
    a.cut();
    assert_eq!(a.receive(NOW, &mut RxBatch::with_limit(1)), Err(DeviceError::Gone));
}
