//! Tests of IPv6 headers and chains of extension headers.

extern crate std;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 4);

fn packet(next_header: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = std::vec![0; HEADER_LEN];
    Builder::new(SOURCE, DESTINATION, next_header, payload.len()).emit(&mut bytes).expect("room");
    bytes.extend(payload);
    bytes
}

#[test]
fn a_packet_with_padding() {
    let mut bytes = packet(Protocol::UDP, &[1, 2, 3]);
    bytes[0] = 0x6b;
    bytes[1] = 0x8a;
    bytes.extend([0xee; 5]);
    let header = Header::parse(&bytes).expect("a packet");
    assert_eq!((header.source(), header.destination()), (SOURCE, DESTINATION));
    assert_eq!((header.dscp(), header.ecn(), header.flow_label()), (46, Ecn::NotCapable, 0xa0000));
    assert_eq!(
        (header.next_header(), header.hop_limit(), header.payload()),
        (Protocol::UDP, 64, &[1, 2, 3][..])
    );
    for len in 0..43 {
        let needed = if len < 40 { 40 } else { 43 };
        let error = ParseError::Truncated { layer: Layer::Ipv6, needed, available: len as u32 };
        assert_eq!(Header::parse(&bytes[..len]), Err(error));
        assert_eq!(Header::parse_quoted(&bytes[..len]).is_ok(), len >= 40);
    }
    bytes[0] = 0x45;
    assert_eq!(Header::parse(&bytes), Err(ParseError::Invalid { field: Field::Ipv6Version, found: 4 }));
    let long = Builder::new(SOURCE, DESTINATION, Protocol::UDP, 65_536);
    let error = EmitError::Invalid { field: Field::Ipv6PayloadLength, value: 65_536 };
    assert_eq!(long.emit(&mut bytes), Err(error));
}

/// Walks `payload` behind an IPv6 header; expects upper layer, its offset and the field that named it.
#[track_caller]
fn check(first: Protocol, payload: &[u8], expected: Result<(Protocol, usize, usize), ChainError>) {
    let bytes = packet(first, payload);
    let found = Header::parse(&bytes).expect("a packet").chain();
    assert_eq!(found.map(|chain| (chain.upper, chain.offset, chain.next_header_offset)), expected);
    if let Ok(chain) = found {
        assert_eq!(chain.payload, &bytes[chain.offset..]);
        assert_eq!(bytes[chain.next_header_offset], chain.upper.0);
    }
}

fn problem(offender: Offender, pointer: u32) -> Result<(Protocol, usize, usize), ChainError> {
    Err(ChainError::ParameterProblem { offender, pointer })
}

#[test]
fn chains_are_walked_to_the_upper_layer() {
    check(Protocol::TCP, &[9; 20], Ok((Protocol::TCP, 40, 6)));
    check(Protocol::HOP_BY_HOP, &ROUTER_ALERT_MLD, Ok((Protocol::ICMPV6, 48, 40)));
    check(Protocol::NO_NEXT_HEADER, &[], Ok((Protocol::NO_NEXT_HEADER, 40, 6)));
    // Hop-by-hop with padding, destination options of 16 bytes, a spent routing header, UDP.
    let mut payload = Vec::from([60, 0, 1, 4, 0, 0, 0, 0]);
    payload.extend([43, 1, 0x1e, 4, 1, 2, 3, 4, 1, 6, 0, 0, 0, 0, 0, 0]);
    payload.extend([17, 0, 4, 0, 0, 0, 0, 0]);
    payload.extend([7; 8]);
    check(Protocol::HOP_BY_HOP, &payload, Ok((Protocol::UDP, 72, 64)));
    // An atomic fragment is walked on.
    check(Protocol::FRAGMENT, &[6, 0, 0, 0, 1, 2, 3, 4, 9, 9], Ok((Protocol::TCP, 48, 40)));
    // An unknown upper layer is told where its number stands.
    check(Protocol::DESTINATION_OPTIONS, &[200, 0, 1, 4, 0, 0, 0, 0], Ok((Protocol(200), 48, 40)));
}

#[test]
fn a_router_alert_is_seen() {
    let bytes = packet(Protocol::HOP_BY_HOP, &ROUTER_ALERT_MLD);
    let chain = Header::parse(&bytes).expect("a packet").chain().expect("a chain");
    assert_eq!(chain.router_alert, Some(0));
}

#[test]
fn the_walk_stops_at_a_fragment() {
    let mut payload = [0; 24];
    let fragment =
        Fragment { next_header: Protocol::UDP, offset: 1480, more: true, identification: 0x01020304 };
    assert_eq!(fragment.emit(&mut payload), Ok(8));
    let bytes = packet(Protocol::FRAGMENT, &payload);
    let chain = Header::parse(&bytes).expect("a packet").chain().expect("a chain");
    assert_eq!((chain.fragment, chain.upper, chain.payload.len()), (Some(fragment), Protocol::UDP, 16));
    // Of any length, as in a quote.
    check(Protocol::FRAGMENT, &payload[..23], Ok((Protocol::UDP, 48, 40)));
    let error = EmitError::Invalid { field: Field::Ipv6FragmentOffset, value: 4 };
    assert_eq!(Fragment { offset: 4, ..fragment }.emit(&mut payload), Err(error));
}

#[test]
fn faults_are_pointed_at() {
    // Hop-by-hop options behind another header.
    check(
        Protocol::DESTINATION_OPTIONS,
        &[0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
        problem(Offender::NextHeader, 40),
    );
    // A routing header with segments left.
    check(Protocol::ROUTING, &[6, 0, 0, 1, 0, 0, 0, 0], problem(Offender::Field, 42));
    // An option that leaves its header, and one whose length is missing.
    check(Protocol::DESTINATION_OPTIONS, &[6, 0, 1, 5, 0, 0, 0, 0], problem(Offender::Field, 43));
    check(Protocol::DESTINATION_OPTIONS, &[6, 0, 0, 0, 0, 0, 0, 1], problem(Offender::Field, 47));
    // Unknown options by what their top bits demand.
    let option = |kind| [6, 0, 1, 0, kind, 2, 0, 0];
    check(Protocol::DESTINATION_OPTIONS, &option(0x1e), Ok((Protocol::TCP, 48, 40)));
    check(Protocol::DESTINATION_OPTIONS, &option(0x5e), Err(ChainError::Discard { kind: 0x5e }));
    check(Protocol::DESTINATION_OPTIONS, &option(0x9e), problem(Offender::Option, 44));
    check(Protocol::DESTINATION_OPTIONS, &option(0xde), problem(Offender::Option, 44));
    assert_eq!(
        walk(Protocol::DESTINATION_OPTIONS, &option(0xde), true),
        Err(ChainError::Discard { kind: 0xde })
    );
    let error = ChainError::ParameterProblem { offender: Offender::Option, pointer: 44 };
    assert_eq!(walk(Protocol::DESTINATION_OPTIONS, &option(0x9e), true), Err(error));
}

#[test]
fn chains_are_bounded() {
    let header = [60, 0, 1, 4, 0, 0, 0, 0];
    let mut payload = header.repeat(MAX_EXTENSIONS);
    let last = payload.len() - 8;
    payload[last] = 6;
    check(Protocol::DESTINATION_OPTIONS, &payload, Ok((Protocol::TCP, 40 + 64, 40 + 56)));
    let payload = header.repeat(MAX_EXTENSIONS + 1);
    let error = ParseError::Invalid { field: Field::Ipv6ExtensionCount, found: 9 };
    check(Protocol::DESTINATION_OPTIONS, &payload, Err(error.into()));
    // Nine options in one header.
    let mut options = Vec::from([6, 2, 1, 2, 0, 0]);
    options.extend([0x1e, 0].repeat(9));
    check(Protocol::DESTINATION_OPTIONS, &options, Err(ChainError::Discard { kind: 0x1e }));
}

#[test]
fn chains_that_are_cut_off_are_refused() {
    let payload = [6, 1, 1, 6, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0];
    for len in 0..payload.len() {
        let needed = if len < 8 { 8 } else { 16 };
        let error = ParseError::Truncated { layer: Layer::Ipv6, needed, available: len as u32 };
        check(Protocol::DESTINATION_OPTIONS, &payload[..len], Err(error.into()));
    }
}

proptest! {
    #[test]
    fn written_headers_read_back(
        addresses: [u128; 2], bytes: [u8; 4], flow_label in 0u32..0x10_0000, payload in vec(any::<u8>(), 0..60),
    ) {
        let builder = Builder {
            source: addresses[0].into(),
            destination: addresses[1].into(),
            next_header: Protocol(bytes[0]),
            hop_limit: bytes[1],
            dscp: bytes[2] >> 2,
            ecn: Ecn::from_bits(bytes[3]),
            flow_label,
            payload_len: payload.len(),
        };
        let mut out = [0xee; 100];
        prop_assert_eq!(builder.emit(&mut out), Ok(HEADER_LEN));
        out[40..40 + payload.len()].copy_from_slice(&payload);
        let header = Header::parse(&out).expect("a packet");
        prop_assert_eq!(header.payload(), &payload[..]);
        prop_assert_eq!(header.pseudo_header(header.next_header(), payload.len() as u32), builder.pseudo_header());
        let again = Builder {
            source: header.source(),
            destination: header.destination(),
            next_header: header.next_header(),
            hop_limit: header.hop_limit(),
            dscp: header.dscp(),
            ecn: header.ecn(),
            flow_label: header.flow_label(),
            payload_len: header.payload().len(),
        };
        prop_assert_eq!(again, builder);
        let known = Header::known_plain(&out).expect("a header");
        prop_assert_eq!((known.source(), known.destination()), (header.source(), header.destination()));
        prop_assert_eq!((known.hop_limit(), known.ecn()), (header.hop_limit(), header.ecn()));
        prop_assert!(Header::known_plain(&out[..39]).is_none());
        for short in 0..HEADER_LEN {
            prop_assert!(builder.emit(&mut [0; HEADER_LEN][..short]).is_err());
        }
    }

    #[test]
    fn arbitrary_chains_end(
        first in prop_oneof![Just(0u8), Just(43), Just(44), Just(60), any::<u8>()],
        mut bytes in vec(prop_oneof![Just(0u8), Just(43), Just(44), Just(60), 0u8..8, any::<u8>()], 0..160),
        multicast: bool,
    ) {
        if let Ok(chain) = walk(Protocol(first), &bytes, multicast) {
            prop_assert_eq!(chain.offset + chain.payload.len(), HEADER_LEN + bytes.len());
            prop_assert!(chain.next_header_offset < chain.offset);
        }
        if let Some(byte) = bytes.first_mut() {
            *byte = 0x60 | *byte & 0x0f;
        }
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert!(header.payload().len() + HEADER_LEN <= bytes.len());
            let _ = header.chain();
        }
    }
}
