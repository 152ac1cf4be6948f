//! Hardware's segments beside those of the software fallback, and super-frames that are not what their requests say.

use super::*;
use crate::chunk::Chunk;
use crate::device::Capabilities;
use crate::meta::{Segmentation, TxToken};
use crate::offload::checksum_tx::{self, Layer4, Outcome};
use crate::selftest::frames::{Kind as Above, Plan};
use crate::split::Splitter;
use crate::tx::{TxPacket, TxQueue};
use alloc::vec;
use proptest::prelude::*;

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 255) as u8).collect()
}

/// The super-frame of `plan`, and what a driver asks for it as Linux does: the pseudo-header's sum is in the field.
fn asked(plan: &Plan, len: usize, size: u16) -> (Vec<u8>, Request) {
    let mut frame = plan.partial_header(len);
    let header_len = frame.len() as u8;
    frame.extend_from_slice(&payload(len));
    let begin = plan.layer4() as u16;
    let insert = begin + plan.checksum_offset() as u16;
    let request = Request {
        kind: if plan.kind == Above::Tcp { Kind::Tcp } else { Kind::Udp },
        size,
        header_len,
        ip: plan.ip() as u8,
        ipv6: plan.v6,
        checksum: Some(Partial { init: 0, begin, insert }),
    };
    (frame, request)
}

/// What leaves the machine: segments with their checksums.
fn finished(frame: &[u8], request: &Request) -> Result<Vec<Vec<u8>>, Malformed> {
    let segments = segment(frame, request)?.segments.into_iter();
    Ok(segments
        .map(|Segment { mut data, checksum, ip_checksum }| {
            let ip = ip_checksum.then_some(request.ip);
            let asked = checksum_tx::Request { layer4: Layer4::Partial(checksum), ip };
            assert_eq!(checksum_tx::insert(&mut data, &asked, 65_600), Outcome::Inserted);
            data
        })
        .collect())
}

/// What the software fallback sends.
fn by_software(plan: &Plan, frame: &[u8], size: u16) -> Option<Vec<Vec<u8>>> {
    let mut packet = TxPacket::new();
    let (header, payload) = frame.split_at(plan.partial_header(0).len());
    packet.header_mut(header.len()).copy_from_slice(header);
    packet.push_chunk(Chunk::Shared(bytes::Bytes::copy_from_slice(payload))).ok()?;
    packet.meta = plan.meta();
    packet.meta.segmentation = if plan.v6 { Segmentation::Tcp6(size) } else { Segmentation::Tcp4(size) };
    packet.meta.token = TxToken(1);
    let mut splitter = Splitter::new();
    splitter.begin(&mut packet).ok()?;
    // More than the segments of any frame here.
    let mut queue = TxQueue::with_capacity(1000);
    splitter.run(&mut queue, Capabilities::NONE);
    let mut frames = Vec::new();
    while let Some(packet) = queue.front_mut() {
        let mut bytes = vec![0; packet.len()];
        packet.linearise(&mut bytes)?;
        frames.push(bytes);
        queue.pop();
    }
    Some(frames)
}

fn plans() -> impl Strategy<Value = Plan> {
    let flags = any::<(bool, bool, u8, u32, u16)>();
    (flags, 0u8..=2, 0usize..=10).prop_map(|((v6, extended, flags, sequence, ident), tags, options)| {
        let mut ip_extra = vec![if v6 { 0 } else { 1 }; if extended { 8 } else { 0 }];
        if v6 && extended {
            ip_extra[0] = 6;
        }
        // Two tags, an extension header and all options are more than hardware can hold.
        let options = if v6 && extended && tags == 2 { options.min(9) } else { options };
        Plan { v6, tags, ip_extra, flags, sequence, ident, options: vec![1; options * 4], ..Plan::default() }
    })
}

proptest! {
    #[test]
    fn hardware_and_software_send_the_same(plan in plans(), len in 1usize..6000, size in 1u16..1500) {
        let len = len.min(usize::from(size) * 40);
        let (frame, request) = asked(&plan, len, size);
        prop_assert_eq!(finished(&frame, &request).ok(), by_software(&plan, &frame, size));
    }

    #[test]
    fn hardware_refuses_what_software_refuses(plan in plans(), at in 12usize..100, value: u8) {
        let (mut frame, request) = asked(&plan, 100, 30);
        frame[at] = value;
        // Hardware believes the request in these two: the types of Ethernet, and where extension headers lead.
        let is_trusted = at < plan.ip() || (plan.v6 && at >= plan.ip() + 40 && at < plan.layer4())
            || (plan.v6 && !plan.ip_extra.is_empty() && at == plan.ip() + 6);
        let ours = segment(&frame, &request);
        let theirs = by_software(&plan, &frame, 30);
        if !is_trusted {
            prop_assert_eq!(ours.as_ref().is_ok_and(|all| !all.is_length_wrong), theirs.is_some());
        }
        if let (Some(theirs), false) = (theirs, is_trusted) {
            prop_assert_eq!(finished(&frame, &request), Ok(theirs));
        }
    }

    #[test]
    fn datagrams_are_as_if_written_one_by_one(v6: bool, tags in 0u8..=2, ident: u16, len in 1usize..4000, size in 1u16..1472) {
        let len = len.min(usize::from(size) * 40);
        let plan = Plan { kind: Above::Udp, v6, tags, ident, ..Plan::default() };
        let (frame, request) = asked(&plan, len, size);
        let bytes = payload(len);
        let expected: Vec<_> = bytes.chunks(size.into()).enumerate().map(|(index, part)| {
            Plan { ident: ident.wrapping_add(index as u16), ..plan.clone() }.frame(part)
        }).collect();
        prop_assert_eq!(finished(&frame, &request), Ok(expected));
    }
}

#[test]
fn the_length_in_the_header_decides() {
    let plan = Plan { flags: 0x19, ..Plan::default() };
    let check = |bytes: usize, lens: &[usize], is_wrong: bool| {
        let (mut frame, request) = asked(&plan, 250, 100);
        frame.resize(54 + bytes, 0);
        let all = segment(&frame, &request).expect("sound headers");
        let found: Vec<_> = all.segments.iter().map(|segment| segment.data.len() - 54).collect();
        assert_eq!((found.as_slice(), all.is_length_wrong), (lens, is_wrong), "{bytes} bytes");
        // FIN and PSH are in the segment that should be the last, or nowhere.
        for (index, segment) in all.segments.iter().enumerate() {
            assert_eq!(segment.data[47], if index == 2 { 0x19 } else { 0x10 });
        }
    };
    check(250, &[100, 100, 50], false);
    check(251, &[100, 100, 50], true);
    check(249, &[100, 100, 49], true);
    check(200, &[100, 100], true);
    check(150, &[100, 50], true);
    check(1, &[1], true);
}

#[test]
fn what_a_request_says_wrongly_is_refused() {
    type Change = fn(&mut Request);
    let check = |change: Change| {
        let (frame, mut request) = asked(&Plan::default(), 100, 30);
        change(&mut request);
        assert_eq!(segment(&frame, &request), Err(Malformed), "{request:?}");
    };
    check(|request| request.size = 0);
    check(|request| request.checksum = None);
    check(|request| request.kind = Kind::Udp);
    check(|request| request.header_len = 0);
    check(|request| request.header_len += 4);
    check(|request| request.header_len = 129);
    check(|request| request.header_len = 255);
    check(|request| request.ip += 1);
    check(|request| request.ip = 200);
    check(|request| request.ipv6 = true);
    check(|request| request.checksum = request.checksum.map(|at| Partial { begin: at.begin + 2, ..at }));
    check(|request| request.checksum = request.checksum.map(|at| Partial { begin: 300, insert: 316, ..at }));
    check(|request| request.checksum = request.checksum.map(|at| Partial { insert: at.begin + 6, ..at }));
    let (frame, request) = asked(&Plan::default(), 100, 30);
    for len in 0..=54 {
        assert_eq!(segment(&frame[..len], &request), Err(Malformed), "{len} bytes");
    }
    assert!(segment(&frame[..55], &request).is_ok());
}
