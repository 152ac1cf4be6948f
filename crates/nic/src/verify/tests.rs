//! Checksums of received frames, good, bad and unknowable.

use super::*;
use crate::layers::parse;
use crate::meta::RxMeta;
use crate::pool::{Pool, Slice};
use crate::selftest::frames::{Kind, Plan, put16};
use ChecksumStatus::{Bad, Good, Unchecked};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

fn slice(bytes: &[u8]) -> Slice {
    let mut buffer = Pool::new(1, bytes.len()).take().unwrap();
    buffer.bytes_mut().copy_from_slice(bytes);
    buffer.freeze(0..bytes.len())
}

/// What is said of `bytes`: without a raw sum, with one, and in two pieces must be the same.
fn status(bytes: &[u8]) -> ChecksumStatus {
    let mut frame = Frame::new(slice(bytes), RxMeta::default());
    let layers = parse(frame.data.bytes(), frame.len()).expect("a frame with layers");
    let plain = verify(&frame, &layers);
    let is_usual = (layers.version, layers.ip, layers.layer4, layers.protocol)
        == (Version::V4, HEADER_LEN, TCP, Protocol::TCP);
    assert_eq!(usual(&frame), Some(layers).filter(|_| is_usual && plain == Good), "the short way");
    frame.meta.raw_sum = Some(checksum::sum(&bytes[14..]).folded());
    assert_eq!(verify(&frame, &layers), plain, "with raw sum");
    let is_usual = is_usual && plain == Good && layers.end == bytes.len();
    assert_eq!(usual(&frame), Some(layers).filter(|_| is_usual), "the short way, with raw sum");
    frame.meta.raw_sum = None;
    // Behind the largest layer-4 header that is looked at.
    let cut = (layers.layer4 + 21).min(bytes.len());
    frame.data = slice(&bytes[..cut]);
    frame.more.push(slice(&bytes[cut..]));
    assert_eq!(verify(&frame, &layers), plain, "in two pieces");
    assert_eq!(usual(&frame), None);
    plain
}

fn check(name: &str, bytes: &[u8], expected: ChecksumStatus) {
    assert_eq!(status(bytes), expected, "{name}");
}

fn all_plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for kind in [Kind::Tcp, Kind::Udp, Kind::Icmp] {
        for tags in 0..=2 {
            for (v6, extra) in [(false, 0), (false, 8), (true, 0), (true, 8)] {
                let next = match (kind, v6) {
                    (Kind::Tcp, _) => 6,
                    (Kind::Udp, _) => 17,
                    (Kind::Icmp, false) => 1,
                    (Kind::Icmp, true) => 58,
                };
                let mut ip_extra = vec![0; extra];
                if v6 && extra > 0 {
                    ip_extra[0] = next;
                } else {
                    ip_extra.fill(1);
                }
                plans.push(Plan { kind, tags, v6, ip_extra, ..Plan::default() });
            }
        }
    }
    plans
}

#[test]
fn intact_frames_are_good_whatever_surrounds_them() {
    for plan in all_plans() {
        for payload in [&b""[..], b"x", b"xy", b"seventeen bytes.."] {
            for padding in [0, 1, 6, 11] {
                let mut frame = plan.frame(payload);
                frame.resize(frame.len() + padding, 0x5a);
                check(&alloc::format!("{plan:?}"), &frame, Good);
            }
        }
    }
}

#[test]
fn udp_without_a_checksum_is_good_over_ipv4_alone() {
    for (v6, expected) in [(false, Good), (true, Bad)] {
        let plan = Plan { kind: Kind::Udp, v6, ..Plan::default() };
        let mut frame = plan.frame(b"abc");
        put16(&mut frame, plan.layer4() + 6, 0);
        check("UDP", &frame, expected);
    }
}

#[test]
fn a_udp_length_below_that_of_ip_limits_the_sum() {
    let plan = Plan { kind: Kind::Udp, ..Plan::default() };
    let inner = plan.frame(b"abc");
    let mut frame = plan.frame(b"abcdefgh");
    let layer4 = plan.layer4();
    frame[layer4..layer4 + 11].copy_from_slice(&inner[layer4..]);
    check("shorter", &frame, Good);
    put16(&mut frame, layer4 + 4, 17);
    check("longer than IP", &frame, Unchecked);
    put16(&mut frame, layer4 + 4, 7);
    check("shorter than its header", &frame, Unchecked);
}

#[test]
fn what_cannot_be_verified_stays_unchecked() {
    for fragment in [0x2000, 0x0001] {
        check("IPv4 fragment", &Plan { fragment, ..Plan::default() }.frame(b"abc"), Unchecked);
    }
    let ip_extra = vec![6, 0, 0, 1, 0, 0, 0, 9];
    let fragment = Plan { v6: true, first_extension: 44, ip_extra: ip_extra.clone(), ..Plan::default() };
    check("IPv6 fragment", &fragment.frame(b"abc"), Unchecked);
    let rerouted = Plan { first_extension: 43, ..fragment };
    check("routing header", &rerouted.frame(b"abc"), Unchecked);
    let other = Plan { ip_extra: vec![1; 4], ..Plan::default() };
    let mut frame = other.frame(b"abc");
    frame[23] = 47;
    crate::checksum::set_ipv4_checksum(&mut frame, 14, 38);
    check("GRE", &frame, Unchecked);
    frame[24] ^= 1;
    check("GRE with a bad IPv4 header", &frame, Bad);
    let mut fragment = Plan { fragment: 0x2000, ..Plan::default() }.frame(b"abc");
    fragment[22] ^= 1;
    check("fragment with a bad IPv4 header", &fragment, Bad);
    let mut cut = Plan::default().frame(b"");
    put16(&mut cut, 16, 20 + 19);
    crate::checksum::set_ipv4_checksum(&mut cut, 14, 34);
    check("half a TCP header", &cut, Unchecked);
}

proptest! {
    #[test]
    fn no_single_wrong_bit_is_good(
        which in 0usize..36,
        payload in proptest::collection::vec(any::<u8>(), 0..80),
        at in any::<proptest::sample::Index>(),
        bit in 0u8..8,
    ) {
        let plans = all_plans();
        let plan = &plans[which % plans.len()];
        let intact = plan.frame(&payload);
        prop_assert_eq!(status(&intact), Good);
        let mut frame = intact.clone();
        let at = plan.ip() + at.index(frame.len() - plan.ip());
        frame[at] ^= 1 << bit;
        // IPv6 leaves traffic class, flow label, hop limit and extension headers to the layers around it; other lengths
        // and protocols may make it something that nobody verifies; a UDP checksum may become "not used".
        let covered = !plan.v6 || at >= plan.layer4() || (plan.ip() + 8..plan.ip() + 40).contains(&at);
        let unused = plan.kind == Kind::Udp && !plan.v6
            && frame[plan.layer4() + 6..plan.layer4() + 8] == [0, 0];
        if parse(&frame, frame.len()).is_none() {
            prop_assert_eq!(usual(&Frame::new(slice(&frame), RxMeta::default())), None);
        } else if covered && !unused {
            prop_assert_ne!(status(&frame), Good, "{:?}, byte {} bit {}", plan, at, bit);
        }
    }
}
