//! Headers found in frames of every layout.

use super::*;
use crate::selftest::frames::{Kind, Plan};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Hop-by-hop of 8 bytes, destination options of 16, both naming what follows.
fn extensions(last: u8) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    bytes[0] = 60;
    bytes[8] = last;
    bytes[9] = 1;
    bytes
}

fn fragment_header(next: u8, offset_and_more: u16) -> Vec<u8> {
    let [a, b] = offset_and_more.to_be_bytes();
    vec![next, 0, a, b, 0, 0, 0, 1]
}

fn check(name: &str, plan: &Plan, padding: usize, fragment: bool, rerouted: bool) {
    let mut frame = plan.frame(b"odd");
    let end = frame.len();
    frame.resize(end + padding, 0xaa);
    let version = if plan.v6 { Version::V6 } else { Version::V4 };
    let protocol = match plan.kind {
        Kind::Tcp => Protocol::TCP,
        Kind::Udp => Protocol::UDP,
        Kind::Icmp if plan.v6 => Protocol::ICMPV6,
        Kind::Icmp => Protocol::ICMPV4,
    };
    let expected =
        Layers { version, ip: plan.ip(), layer4: plan.layer4(), end, protocol, fragment, rerouted };
    assert_eq!(parse(&frame, frame.len()), Some(expected), "{name}");
    let is_plain = plan.ip_extra.is_empty() && !fragment;
    let found = PlainPacket { version, protocol, ip: plan.ip() as u16, end: end as u32 };
    assert_eq!(expected.plain(), is_plain.then_some(found), "{name}");
    for cut in 0..plan.layer4() {
        assert_eq!(parse(&frame[..cut], frame.len()), None, "{name}, headers cut to {cut} bytes");
    }
    assert_eq!(parse(&frame, end - 1), None, "{name}, frame shorter than its packet");
}

#[test]
fn layers_are_found_behind_tags_and_extensions() {
    for tags in 0..=2 {
        for kind in [Kind::Tcp, Kind::Udp, Kind::Icmp] {
            let v4 = Plan { kind, tags, ..Plan::default() };
            check("IPv4", &v4, 0, false, false);
            check("IPv4, padded", &v4, 7, false, false);
            check("IPv4, options", &Plan { ip_extra: vec![1; 12], ..v4.clone() }, 1, false, false);
            check("IPv4, first fragment", &Plan { fragment: 0x2000, ..v4.clone() }, 0, true, false);
            check("IPv4, last fragment", &Plan { fragment: 0x0007, ..v4.clone() }, 0, true, false);
            let v6 = Plan { v6: true, ..v4 };
            check("IPv6", &v6, 0, false, false);
            let next = *v6.frame(&[]).get(v6.ip() + 6).unwrap();
            check("IPv6, extensions", &Plan { ip_extra: extensions(next), ..v6.clone() }, 3, false, false);
            for (bits, fragment) in [(0, false), (6, false), (1, true), (8, true)] {
                let plan = Plan { first_extension: 44, ip_extra: fragment_header(next, bits), ..v6.clone() };
                check("IPv6, fragment header", &plan, 0, fragment, false);
            }
            for (left, rerouted) in [(0, false), (1, true)] {
                let ip_extra = vec![next, 0, 2, left, 0, 0, 0, 0];
                let plan = Plan { first_extension: 43, ip_extra, ..v6.clone() };
                check("IPv6, routing header", &plan, 0, false, rerouted);
            }
            let ip_extra = [&[next, 4][..], &[0; 22]].concat();
            check("IPv6, authentication", &Plan { first_extension: 51, ip_extra, ..v6 }, 0, false, false);
        }
    }
}

#[test]
fn what_is_not_ip_has_no_layers() {
    let frame = Plan::default().frame(&[1, 2, 3]);
    let change = |at: usize, value: u8| {
        let mut frame = frame.clone();
        frame[at] = value;
        parse(&frame, frame.len())
    };
    assert!(change(8, 1).is_some());
    assert_eq!(change(13, 6), None, "ARP");
    assert_eq!(change(14, 0x44), None, "IPv4 header shorter than itself");
    assert_eq!(change(14, 0x65), None, "IPv6 in an IPv4 frame");
    assert_eq!(change(17, 19), None, "packet shorter than its header");
    let three_tags = Plan { tags: 3, ..Plan::default() }.frame(&[]);
    assert_eq!(parse(&three_tags, three_tags.len()), None);
    let endless = Plan { v6: true, ip_extra: vec![0; 8 * 9], ..Plan::default() }.frame(&[]);
    assert_eq!(parse(&endless, endless.len()), None);
}

proptest! {
    #[test]
    fn any_bytes_give_layers_inside_of_the_frame_or_none(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0usize..4,
        more in 0usize..100,
    ) {
        let start: &[u8] = match kind {
            0 => &[],
            1 => &[8, 0, 0x45, 0, 0],
            2 => &[0x86, 0xdd, 0x60, 0, 0, 0, 0],
            _ => &[0x81, 0, 0, 0, 0x86, 0xdd, 0x60, 0, 0, 0, 0],
        };
        if bytes.len() > 12 + start.len() {
            bytes[12..12 + start.len()].copy_from_slice(start);
        }
        if let Some(layers) = parse(&bytes, bytes.len() + more) {
            prop_assert!(layers.ip < layers.layer4 && layers.layer4 <= layers.end);
            prop_assert!(layers.layer4 <= bytes.len() && layers.end <= bytes.len() + more);
        }
    }
}
