//! Tests of neighbour discovery: every rule of RFC 4861 sections 6.1 and 7.1, round trips, arbitrary bytes.

extern crate std;
use super::*;
use crate::ipv6::{ALL_NODES, ALL_ROUTERS};
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const ANY: Ipv6Addr = Ipv6Addr::UNSPECIFIED;
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 4);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const SOLICITATION: Message = Message::NeighbourSolicitation { target: HOST };
const SOURCE_MAC: &[NdpOption<'_>] = &[NdpOption::SourceLinkLayer(MAC)];

fn advertisement(solicited: bool) -> Message {
    Message::NeighbourAdvertisement { router: false, solicited, overrides: true, target: HOST }
}

fn written(message: Message, options: &[NdpOption<'_>], source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut out = std::vec![0xee; message.emitted_len(options)];
    assert_eq!(message.emit(options, source, destination, &mut out), Ok(out.len()));
    assert!(icmpv6::verify_checksum(source, destination, &out));
    out
}

#[track_caller]
fn check(
    message: Message,
    options: &[NdpOption<'_>],
    source: Ipv6Addr,
    destination: Ipv6Addr,
    refused: Option<Field>,
) {
    let bytes = written(message, options, source, destination);
    match (Packet::parse(&bytes, source, destination, 255), refused) {
        (Ok(packet), None) => {
            assert_eq!(packet.message(), message);
            assert!(packet.options().eq(options.iter().copied()));
        }
        (Err(ParseError::Invalid { field, .. }), Some(refused)) => assert_eq!(field, refused),
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}

#[test]
fn router_solicitations() {
    let message = Message::RouterSolicitation;
    check(message, &[], ANY, ALL_ROUTERS, None);
    check(message, SOURCE_MAC, ROUTER, ALL_ROUTERS, None);
    check(message, SOURCE_MAC, ANY, ALL_ROUTERS, Some(Field::NdpSource));
}

#[test]
fn router_advertisements() {
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: 64,
        managed: true,
        other_configuration: false,
        lifetime_s: 1800,
        reachable_ms: 30_000,
        retransmit_ms: 1_000,
    });
    let prefix = NdpOption::Prefix(PrefixInformation {
        prefix: Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 0),
        prefix_len: 64,
        on_link: true,
        autonomous: true,
        valid_s: INFINITE_LIFETIME,
        preferred_s: 14_400,
    });
    // A list of DNS servers is passed over.
    let dns = NdpOption::Other { kind: 25, data: &[7; 22] };
    let options = [NdpOption::SourceLinkLayer(MAC), prefix, NdpOption::Mtu(1500), dns];
    check(message, &options, ROUTER, ALL_NODES, None);
    check(message, &options, HOST, ALL_NODES, Some(Field::NdpSource));
}

#[test]
fn neighbour_solicitations() {
    check(SOLICITATION, SOURCE_MAC, ROUTER, solicited_node(HOST), None);
    check(SOLICITATION, SOURCE_MAC, ROUTER, HOST, None);
    // Duplicate address detection.
    check(SOLICITATION, &[], ANY, solicited_node(HOST), None);
    check(SOLICITATION, &[], ANY, HOST, Some(Field::NdpDestination));
    check(SOLICITATION, SOURCE_MAC, ANY, solicited_node(HOST), Some(Field::NdpSource));
    check(Message::NeighbourSolicitation { target: ALL_NODES }, &[], ROUTER, HOST, Some(Field::NdpTarget));
}

#[test]
fn neighbour_advertisements() {
    let options = [NdpOption::TargetLinkLayer(MAC)];
    check(advertisement(true), &options, HOST, ROUTER, None);
    check(advertisement(false), &options, HOST, ALL_NODES, None);
    check(advertisement(true), &options, HOST, ALL_NODES, Some(Field::NdpSolicited));
    let group = Message::NeighbourAdvertisement {
        router: true,
        solicited: false,
        overrides: false,
        target: ALL_NODES,
    };
    check(group, &options, HOST, ALL_NODES, Some(Field::NdpTarget));
}

#[test]
fn headers_that_are_not_as_they_must_be() {
    let bytes = written(SOLICITATION, SOURCE_MAC, ROUTER, HOST);
    let parse = |bytes: &[u8], hop_limit| {
        Packet::parse(bytes, ROUTER, HOST, hop_limit).map(|packet| packet.message())
    };
    assert_eq!(parse(&bytes, 254), Err(ParseError::Invalid { field: Field::NdpHopLimit, found: 254 }));
    let with = |at: usize, value| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        parse(&bytes, 255)
    };
    assert_eq!(with(1, 3), Err(ParseError::Invalid { field: Field::NdpCode, found: 3 }));
    assert_eq!(with(0, 137), Err(ParseError::Invalid { field: Field::NdpType, found: 137 }));
    assert_eq!(with(25, 0), Err(ParseError::Invalid { field: Field::NdpOptionLength, found: 0 }));
    assert_eq!(with(25, 2), Err(ParseError::Invalid { field: Field::NdpOptionLength, found: 2 }));
    for len in 0..bytes.len() {
        // Without its option the message is whole.
        assert_eq!(parse(&bytes[..len], 255).is_ok(), len == 24, "{len}");
    }
}

#[test]
fn link_layer_addresses_of_other_lengths_are_not_taken_for_ours() {
    let long = NdpOption::Other { kind: 1, data: &[9; 14] };
    let bytes = written(SOLICITATION, &[long], ROUTER, HOST);
    let packet = Packet::parse(&bytes, ROUTER, HOST, 255).expect("a message");
    assert_eq!((packet.source_link_layer(), packet.options().next()), (None, Some(long)));
}

fn any_option() -> impl Strategy<Value = NdpOption<'static>> {
    prop_oneof![
        any::<[u8; 6]>().prop_map(|mac| NdpOption::SourceLinkLayer(MacAddr(mac))),
        any::<[u8; 6]>().prop_map(|mac| NdpOption::TargetLinkLayer(MacAddr(mac))),
        any::<u32>().prop_map(NdpOption::Mtu),
        (any::<u128>(), any::<u8>(), any::<[bool; 2]>(), any::<[u32; 2]>()).prop_map(
            |(prefix, prefix_len, flags, times)| {
                NdpOption::Prefix(PrefixInformation {
                    prefix: prefix.into(),
                    prefix_len,
                    on_link: flags[0],
                    autonomous: flags[1],
                    valid_s: times[0],
                    preferred_s: times[1],
                })
            }
        ),
        (6u8.., 0usize..3)
            .prop_map(|(kind, units)| NdpOption::Other { kind, data: &[5; 30][..6 + 8 * units] }),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        Just(Message::RouterSolicitation),
        (any::<u8>(), any::<[bool; 2]>(), any::<u16>(), any::<[u32; 2]>()).prop_map(
            |(hop_limit, flags, lifetime_s, times)| {
                Message::RouterAdvertisement(RouterAdvertisement {
                    hop_limit,
                    managed: flags[0],
                    other_configuration: flags[1],
                    lifetime_s,
                    reachable_ms: times[0],
                    retransmit_ms: times[1],
                })
            }
        ),
        (0u128..0xff << 120).prop_map(|target| Message::NeighbourSolicitation { target: target.into() }),
        (0u128..0xff << 120, any::<[bool; 3]>()).prop_map(|(target, flags)| {
            Message::NeighbourAdvertisement {
                router: flags[0],
                solicited: flags[1],
                overrides: flags[2],
                target: target.into(),
            }
        }),
    ]
}

proptest! {
    #[test]
    fn written_messages_read_back(message in any_message(), options in vec(any_option(), 0..5)) {
        check(message, &options, ROUTER, HOST, None);
        for short in 0..message.emitted_len(&options) {
            prop_assert!(message.emit(&options, ROUTER, HOST, &mut [0; 300][..short]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(kind in 133u8..138, mut bytes in vec(prop_oneof![0u8..5, any::<u8>()], 0..120)) {
        if let Some(front) = bytes.first_chunk_mut::<2>() {
            *front = [kind, 0];
        }
        if let Ok(packet) = Packet::parse(&bytes, ROUTER, HOST, 255) {
            let options: Vec<_> = packet.options().collect();
            prop_assert_eq!(packet.message().emitted_len(&options), bytes.len());
        }
    }
}
