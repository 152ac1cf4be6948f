//! Tests of IPv4 headers.

extern crate std;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

/// An ICMP echo request's IPv4 header, with 4 bytes of payload and 2 of padding.
const PACKET: [u8; 26] = [
    0x45, 0x02, 0, 24, 0x12, 0x34, 0x40, 0, 64, 1, 0xa5, 0x59, 192, 168, 1, 1, 192, 168, 1, 4, 8, 0, 0xf7,
    0xff, 0xee, 0xee,
];

#[test]
fn a_packet_with_padding() {
    let header = Header::parse(&PACKET).expect("a packet");
    assert!(header.verify_checksum());
    assert_eq!(
        (header.header_len(), header.total_len(), header.payload()),
        (20, 24, &[8, 0, 0xf7, 0xff][..])
    );
    assert_eq!((header.dscp(), header.ecn(), header.identification()), (0, Ecn::Capable0, 0x1234));
    assert_eq!((header.dont_fragment(), header.more_fragments(), header.fragment_offset()), (true, false, 0));
    assert_eq!((header.ttl(), header.protocol(), header.is_fragment()), (64, Protocol::ICMPV4, false));
    assert_eq!(header.source(), Ipv4Addr::new(192, 168, 1, 1));
    assert_eq!(header.destination(), Ipv4Addr::new(192, 168, 1, 4));
    assert_eq!(header.options().count(), 0);
    for len in 0..24 {
        let needed = if len < 20 { 20 } else { 24 };
        let error = ParseError::Truncated { layer: Layer::Ipv4, needed, available: len as u32 };
        assert_eq!(Header::parse(&PACKET[..len]), Err(error));
        assert_eq!(Header::parse_quoted(&PACKET[..len]).is_ok(), len >= 20);
    }
}

fn check_refused(at: usize, value: u8, field: Field, found: u32) {
    let mut bytes = PACKET;
    bytes[at] = value;
    assert_eq!(Header::parse(&bytes), Err(ParseError::Invalid { field, found }));
}

#[test]
fn impossible_fields_are_refused() {
    check_refused(0, 0x65, Field::Ipv4Version, 6);
    check_refused(0, 0x44, Field::Ipv4HeaderLength, 16);
    check_refused(3, 19, Field::Ipv4TotalLength, 19);
}

fn check_options(options: &[u8], expected: Result<&[(u8, &[u8])], u32>) {
    let mut out = [0; 60];
    let builder =
        Builder { options, ..Builder::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP, 0) };
    let len = builder.emit(&mut out).expect("room");
    match (Header::parse(&out[..len]), expected) {
        (Ok(header), Ok(expected)) => {
            let found: Vec<_> = header.options().map(|option| (option.kind.0, option.data)).collect();
            assert_eq!(found, expected);
            assert!(header.verify_checksum());
        }
        (found, expected) => {
            let found = found.map(|_| ());
            assert_eq!(found, expected.map(|_| ()).map_err(|at| ParseError::invalid(Field::Ipv4Option, at)));
        }
    }
}

#[test]
fn options_are_walked_and_validated() {
    check_options(&[148, 4, 0, 0], Ok(&[(148, &[0, 0])]));
    check_options(&[1, 1, 148, 4, 0, 0, 1, 7, 2], Ok(&[(148, &[0, 0]), (7, &[])]));
    check_options(&[0, 148, 99, 0], Ok(&[]));
    check_options(&[148, 1, 0, 0], Err(20));
    check_options(&[148, 0, 0, 0], Err(20));
    check_options(&[1, 148, 4, 0], Err(21));
    check_options(&[1, 1, 1, 148], Err(23));
    assert!(OptionKind(131).is_source_route() && !OptionKind(148).is_source_route());
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let mut out = [0; 100];
    let good = Builder::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::UDP, 65_515);
    assert_eq!(good.emit(&mut out), Ok(20));
    let check = |builder: Builder<'_>, field, value| {
        assert_eq!(builder.emit(&mut [0; 100]), Err(EmitError::Invalid { field, value }));
    };
    check(Builder { payload_len: 65_516, ..good }, Field::Ipv4TotalLength, 65_536);
    check(Builder { fragment_offset: 12, ..good }, Field::Ipv4FragmentOffset, 12);
    check(Builder { options: &[1; 41], ..good }, Field::Ipv4HeaderLength, 41);
}

#[test]
fn quoted_packets_may_lack_their_end() {
    let header = Header::parse_quoted(&PACKET[..22]).expect("a quoted packet");
    assert_eq!((header.total_len(), header.payload()), (24, &[8, 0][..]));
    assert_eq!(Header::parse_quoted(&PACKET).expect("a quoted packet").payload().len(), 4);
}

proptest! {
    #[test]
    fn written_headers_read_back(
        addresses: [u32; 2], bytes: [u8; 4], identification: u16, flags: [bool; 2], offset in 0u16..0x2000,
        option in vec(any::<u8>(), 0..=38), payload in vec(any::<u8>(), 0..80),
    ) {
        let mut options = Vec::new();
        if !option.is_empty() {
            options.extend([94, option.len() as u8 + 2]);
            options.extend(&option);
        }
        let builder = Builder {
            source: addresses[0].into(),
            destination: addresses[1].into(),
            protocol: Protocol(bytes[0]),
            ttl: bytes[1],
            dscp: bytes[2] >> 2,
            ecn: Ecn::from_bits(bytes[3]),
            identification,
            dont_fragment: flags[0],
            more_fragments: flags[1],
            fragment_offset: offset << 3,
            options: &options,
            payload_len: payload.len(),
        };
        let mut out = [0xee; 160];
        let len = builder.emit(&mut out).expect("room");
        prop_assert_eq!(len, builder.header_len());
        out[len..len + payload.len()].copy_from_slice(&payload);
        let header = Header::parse(&out).expect("a packet");
        prop_assert!(header.verify_checksum());
        prop_assert_eq!(header.payload(), &payload[..]);
        prop_assert_eq!(header.pseudo_header(), builder.pseudo_header());
        let again = Builder {
            source: header.source(),
            destination: header.destination(),
            protocol: header.protocol(),
            ttl: header.ttl(),
            dscp: header.dscp(),
            ecn: header.ecn(),
            identification: header.identification(),
            dont_fragment: header.dont_fragment(),
            more_fragments: header.more_fragments(),
            fragment_offset: header.fragment_offset(),
            options: header.options_bytes().get(..options.len()).unwrap_or_default(),
            payload_len: header.payload().len(),
        };
        prop_assert_eq!(again, builder);
        let known = Header::known_plain(&out).expect("a header");
        prop_assert_eq!((known.source(), known.destination()), (header.source(), header.destination()));
        prop_assert_eq!((known.ttl(), known.ecn()), (header.ttl(), header.ecn()));
        prop_assert!(Header::known_plain(&out[..19]).is_none());
        prop_assert_eq!(header.options().count(), usize::from(!option.is_empty()));
        for short in 0..len {
            prop_assert!(builder.emit(&mut [0; 160][..short]).is_err());
        }
        for short in 0..len + payload.len() {
            prop_assert!(Header::parse(&out[..short]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(mut bytes in vec(any::<u8>(), 0..100), likely: bool) {
        if let (true, Some(front)) = (likely, bytes.first_chunk_mut::<4>()) {
            *front = [0x40 | front[0] & 0x0f, front[1], 0, front[3] & 0x7f];
        }
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(header.header_len() + header.payload().len(), usize::from(header.total_len()));
            prop_assert!(usize::from(header.total_len()) <= bytes.len());
            prop_assert!(header.options().count() <= 20);
        }
        if let Ok(header) = Header::parse_quoted(&bytes) {
            prop_assert!(header.header_len() + header.payload().len() <= bytes.len());
            prop_assert!(header.options().count() <= 20);
        }
    }
}
