//! Status codes of frames of every kind, and that they say what the software fallback says.

use super::*;
use crate::frame::Frame;
use crate::meta::RxMeta;
use crate::pool::Pool;
use crate::selftest::frames::{Kind, Plan, put16};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// What the port says in software of the same frame.
fn in_software(bytes: &[u8]) -> ChecksumStatus {
    let Some(layers) = layers::parse(bytes, bytes.len()) else { return ChecksumStatus::Unchecked };
    let mut buffer = Pool::new(1, bytes.len()).take().expect("a buffer");
    buffer.bytes_mut().copy_from_slice(bytes);
    let mut frame = Frame::new(buffer.freeze(0..bytes.len()), RxMeta::default());
    frame.meta.raw_sum = Some(raw_sum(bytes));
    crate::verify::verify(&frame, &layers)
}

fn plan(kind: Kind, v6: bool, tags: usize) -> Vec<u8> {
    Plan { kind, v6, tags: tags as u8, ..Plan::default() }.frame(b"any payload")
}

#[test]
fn codes_come_back() {
    for status in Status::ALL {
        assert_eq!(Status::from_code(status.code()), status);
    }
    assert_eq!(Status::from_code(4), Status::Unchecked, "reserved");
}

#[test]
fn each_code_has_a_frame() {
    for tags in 0..=2 {
        for v6 in [false, true] {
            let ip = 14 + 4 * tags;
            let layer4 = ip + if v6 { 40 } else { 20 };
            let tcp = plan(Kind::Tcp, v6, tags);
            let udp = plan(Kind::Udp, v6, tags);
            assert_eq!(status(&tcp), Status::TcpGood);
            assert_eq!(status(&udp), Status::UdpGood);
            assert_eq!(status(&plan(Kind::Icmp, v6, tags)), Status::IpGood);
            assert_eq!(status(&tcp[..tcp.len() - 1]), Status::Unchecked, "cut short");
            for (frame, bad) in [(&tcp, Status::TcpBad), (&udp, Status::UdpBad)] {
                let mut wrong = frame.clone();
                wrong[layer4 + 1] ^= 1;
                assert_eq!(status(&wrong), bad);
            }
            let mut unused = udp.clone();
            put16(&mut unused, layer4 + 6, 0);
            assert_eq!(status(&unused), if v6 { Status::UdpBad } else { Status::UdpGood }, "a checksum of 0");
            if !v6 {
                let mut wrong = tcp.clone();
                wrong[ip + 10] ^= 0x80;
                assert_eq!(status(&wrong), Status::IpBad);
            }
        }
    }
}

#[test]
fn the_raw_sum_begins_at_the_15th_byte_and_takes_padding() {
    let mut frame = vec![0xffu8; 14];
    assert_eq!(raw_sum(&frame), 0);
    frame.extend([0x12, 0x34, 0x56]);
    assert_eq!(raw_sum(&frame), 0x6834);
    assert_eq!(raw_sum(&frame[..5]), 0);
}

proptest! {
    #[test]
    fn hardware_says_what_software_says_but_of_icmp(
        kind in prop_oneof![Just(Kind::Tcp), Just(Kind::Udp)],
        v6: bool,
        tags in 0usize..=2,
        spoil in prop::collection::vec((12usize..80, any::<u8>()), 0..3),
        cut in 0usize..4,
        padding in 0usize..9,
    ) {
        let mut frame = plan(kind, v6, tags);
        for (at, value) in spoil {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        frame.truncate(frame.len() - cut.saturating_sub(1));
        frame.resize(frame.len() + padding, 0x5a);
        let is_icmp = layers::parse(&frame, frame.len())
            .is_some_and(|layers| matches!(layers.protocol, Protocol::ICMPV4 | Protocol::ICMPV6));
        prop_assert!(is_icmp || status(&frame).to_meta() == in_software(&frame));
    }
}
