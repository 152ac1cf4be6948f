//! Segments of a split super-segment, field by field.

use super::*;
use crate::chunk::Chunk;
use crate::selftest::frames::{Kind, Plan};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

static PAYLOAD: [u8; 65_000] = {
    let mut bytes = [0; 65_000];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at * 31 + at / 255) as u8;
        at += 1;
    }
    bytes
};

fn super_segment(plan: &Plan, len: usize, cuts: &[usize], size: u16) -> TxPacket {
    let header = plan.partial_header(len);
    let mut packet = TxPacket::new();
    packet.header_mut(header.len()).copy_from_slice(&header);
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (len + 1)).collect();
    cuts.push(len);
    cuts.sort_unstable();
    let mut from = 0;
    for to in cuts {
        packet.push_chunk(Chunk::constant(&PAYLOAD[from..to])).unwrap();
        from = to;
    }
    packet.meta = plan.meta();
    packet.meta.segmentation = if plan.v6 { Segmentation::Tcp6(size) } else { Segmentation::Tcp4(size) };
    packet.meta.token = TxToken(42);
    packet
}

/// Splits through a queue of `room` and compares every segment with one that was written from scratch.
fn check(plan: &Plan, len: usize, cuts: &[usize], size: u16, room: usize, enabled: Capabilities) {
    let mut splitter = Splitter::new();
    splitter.begin(&mut super_segment(plan, len, cuts, size)).unwrap();
    let mut out = TxQueue::with_capacity(room);
    let count = len.div_ceil(size.into());
    let (mut index, mut from) = (0, 0);
    while splitter.is_busy() {
        let Made { segments: made, .. } = splitter.run(&mut out, enabled);
        assert_eq!(made as usize, room.min(count - index), "{plan:?}");
        while let Some(segment) = out.front_mut() {
            let last = index + 1 == count;
            let to = len.min(from + usize::from(size));
            for chunk in segment.chunks() {
                assert!(PAYLOAD.as_ptr_range().contains(&chunk.bytes().as_ptr()), "copied");
            }
            let by_device = if plan.v6 { enabled.tx_checksum6 } else { enabled.tx_checksum4 };
            assert_eq!(segment.meta.checksum.is_some(), by_device);
            assert_eq!(segment.meta.token, TxToken(if last { 42 } else { 0 }));
            assert_eq!(segment.meta.segmentation, Segmentation::None);
            assert!(checksum::fill_packet(segment));
            let mut flags = plan.flags;
            if !last {
                flags &= !0x09;
            }
            if index > 0 {
                flags &= !0x80;
            }
            let expected = Plan {
                flags,
                ident: plan.ident.wrapping_add(index as u16),
                sequence: plan.sequence.wrapping_add(from as u32),
                ..plan.clone()
            };
            let mut bytes = vec![0; segment.len()];
            segment.linearise(&mut bytes).unwrap();
            assert_eq!(bytes, expected.frame(&PAYLOAD[from..to]), "segment {index} of {plan:?}");
            out.pop();
            (index, from) = (index + 1, to);
        }
    }
    assert_eq!((index, from), (count, len));
}

proptest! {
    #[test]
    fn segments_are_as_if_written_one_by_one(
        v6: bool,
        tags in 0u8..=2,
        extended: bool,
        options in 0usize..=10,
        flags: u8,
        sequence: u32,
        ident: u16,
        len in 1usize..9000,
        size in 1u16..1500,
        cuts in proptest::collection::vec(any::<usize>(), 0..17),
        room in 1usize..50,
        by_device: bool,
    ) {
        let mut ip_extra = vec![if v6 { 0 } else { 1 }; if extended { 8 } else { 0 }];
        if v6 && extended {
            ip_extra[0] = 6;
        }
        let options = vec![1; options * 4];
        let plan = Plan { v6, tags, ip_extra, flags, sequence, ident, options, ..Plan::default() };
        let enabled = if by_device { Capabilities::ALL } else { Capabilities::NONE };
        // Tiny segments of large packets take long and show nothing new.
        let len = len.min(usize::from(size) * 60);
        check(&plan, len, &cuts, size, room, enabled);
    }
}

#[test]
fn the_largest_super_segment_splits() {
    check(
        &Plan { flags: 0x99, ..Plan::default() },
        65_000,
        &[1, 4097, 8193, 60_001],
        1460,
        7,
        Capabilities::NONE,
    );
    check(&Plan { v6: true, ..Plan::default() }, 65_000, &[33], 536, 64, Capabilities::NONE);
    check(&Plan::default(), 1, &[], u16::MAX, 1, Capabilities::NONE);
}

#[test]
fn headers_that_are_not_as_told_are_refused() {
    type Change = fn(&mut TxPacket);
    let cases: [(&str, Change, SplitError); 12] = [
        ("no request", |p| p.meta.checksum = None, SplitError::Headers),
        ("not TCP", |p| p.header_bytes_mut()[23] = 17, SplitError::Headers),
        ("a fragment", |p| p.header_bytes_mut()[20] = 0x20, SplitError::Headers),
        ("other IP version", |p| p.meta.segmentation = Segmentation::Tcp6(9), SplitError::Headers),
        ("wrong IP length", |p| p.header_bytes_mut()[17] ^= 1, SplitError::Headers),
        ("wrong header length", |p| p.meta.header_len -= 1, SplitError::Headers),
        ("wrong data offset", |p| p.header_bytes_mut()[46] = 0x60, SplitError::Headers),
        ("tiny data offset", |p| p.header_bytes_mut()[46] = 0, SplitError::Headers),
        ("cut header", |p| p.header_mut(30).fill(0), SplitError::Headers),
        (
            "wrong start",
            |p| p.meta.checksum = Some(ChecksumRequest { start: 35, offset: 16 }),
            SplitError::Headers,
        ),
        (
            "wrong field",
            |p| p.meta.checksum = Some(ChecksumRequest { start: 34, offset: 6 }),
            SplitError::Headers,
        ),
        ("size 0", |p| p.meta.segmentation = Segmentation::Tcp4(0), SplitError::Size),
    ];
    for (name, change, expected) in cases {
        let mut packet = super_segment(&Plan::default(), 100, &[], 10);
        change(&mut packet);
        let mut splitter = Splitter::new();
        assert_eq!(splitter.begin(&mut packet), Err(expected), "{name}");
        assert!(!splitter.is_busy());
        assert_eq!(packet.payload_len(), 100, "{name}: the packet is kept");
    }
    let mut udp = super_segment(&Plan { kind: Kind::Udp, ..Plan::default() }, 100, &[], 10);
    assert_eq!(Splitter::new().begin(&mut udp), Err(SplitError::Headers));
    let mut empty = super_segment(&Plan::default(), 0, &[], 10);
    assert_eq!(Splitter::new().begin(&mut empty), Err(SplitError::Size));
}
