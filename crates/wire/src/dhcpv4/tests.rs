//! Tests of DHCP messages: every option, overload, refusals, round trips, arbitrary bytes.

extern crate std;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);

fn written(builder: Builder<'_>) -> Vec<u8> {
    let mut out = std::vec![0xee; builder.emitted_len()];
    assert_eq!(builder.emit(&mut out), Ok(out.len()));
    out
}

/// A message with these bytes as options field.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = written(Builder::request(7, MAC, &[]));
    bytes.truncate(HEADER_LEN);
    bytes.extend(options);
    bytes
}

#[test]
fn an_ack_tells_everything() {
    let options = [
        DhcpOption::MessageType(MessageType::Ack),
        DhcpOption::ServerIdentifier(ROUTER),
        DhcpOption::LeaseTime(86_400),
        DhcpOption::RenewalTime(43_200),
        DhcpOption::RebindingTime(75_600),
        DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)),
        DhcpOption::Routers(Addresses::new(&[[192, 168, 1, 1]])),
        DhcpOption::DnsServers(Addresses::new(&[[192, 168, 1, 2], [9, 9, 9, 9]])),
        DhcpOption::HostName(b"board"),
        DhcpOption::InterfaceMtu(1500),
        DhcpOption::Other { code: 15, data: b"example.org" },
    ];
    let your_ip = Ipv4Addr::new(192, 168, 1, 4);
    let builder =
        Builder { operation: Operation::Reply, your_ip, ..Builder::request(0xdead_beef, MAC, &options) };
    let bytes = written(builder);
    assert_eq!((bytes.len(), builder.emitted_len()), (314, 314));
    let message = Message::parse(&bytes).expect("a message");
    assert_eq!((message.operation(), message.transaction_id()), (Operation::Reply, 0xdead_beef));
    assert_eq!((message.your_ip(), message.client_mac(), message.broadcast()), (your_ip, MAC, false));
    assert_eq!((message.message_type(), message.server_identifier()), (Some(MessageType::Ack), Some(ROUTER)));
    let times = (message.lease_time_s(), message.renewal_time_s(), message.rebinding_time_s());
    assert_eq!(times, (Some(86_400), Some(43_200), Some(75_600)));
    assert_eq!((message.prefix_len(), message.routers().next()), (Some(24), Some(ROUTER)));
    let servers = [Ipv4Addr::new(192, 168, 1, 2), Ipv4Addr::new(9, 9, 9, 9)];
    assert!(message.dns_servers().eq(servers));
    assert_eq!((message.host_name(), message.requested_ip()), (Some(&b"board"[..]), None));
    assert!(message.options().eq(options));
}

#[test]
fn a_discover_is_filled_up_to_300_bytes() {
    let options = [
        DhcpOption::MessageType(MessageType::Discover),
        DhcpOption::ClientIdentifier(&[1, 2, 0, 0, 0, 0, 9]),
        DhcpOption::ParameterRequestList(&[1, 3, 6]),
        DhcpOption::MaxMessageLen(1500),
        DhcpOption::RequestedIp(ROUTER),
    ];
    let bytes = written(Builder { broadcast: true, elapsed_s: 3, ..Builder::request(7, MAC, &options) });
    assert_eq!(bytes.len(), MIN_MESSAGE_LEN);
    let message = Message::parse(&bytes).expect("a message");
    assert_eq!(
        (message.operation(), message.broadcast(), message.elapsed_s()),
        (Operation::Request, true, 3)
    );
    assert_eq!(message.client_identifier(), Some(&[1, 2, 0, 0, 0, 0, 9][..]));
    assert_eq!((message.requested_ip(), message.routers().next()), (Some(ROUTER), None));
    assert!(message.options().eq(options));
}

#[test]
fn masks_with_holes_have_no_prefix_length() {
    for (mask, expected) in
        [([255, 255, 254, 0], Some(23)), ([0; 4], Some(0)), ([255; 4], Some(32)), ([255, 0, 255, 0], None)]
    {
        let bytes = written(Builder::request(7, MAC, &[DhcpOption::SubnetMask(mask.into())]));
        assert_eq!(Message::parse(&bytes).expect("a message").prefix_len(), expected, "{mask:?}");
    }
}

#[test]
fn overloaded_fields_are_read_after_the_options() {
    let mut bytes = with_options(&[52, 1, 3, 53, 1, 5, 255]);
    // file: a router and the end; sname: a lease time up to the field's last byte.
    bytes[108..115].copy_from_slice(&[3, 4, 192, 168, 1, 1, 255]);
    bytes[44..102].fill(0);
    bytes[102..108].copy_from_slice(&[51, 4, 0, 0, 0, 60]);
    let message = Message::parse(&bytes).expect("a message");
    assert_eq!((message.routers().next(), message.lease_time_s()), (Some(ROUTER), Some(60)));
    assert_eq!(message.options().count(), 4);
    for (overload, routers, lease) in [(1, Some(ROUTER), None), (2, None, Some(60))] {
        bytes[242] = overload;
        let message = Message::parse(&bytes).expect("a message");
        assert_eq!((message.routers().next(), message.lease_time_s()), (routers, lease), "{overload}");
    }
}

#[track_caller]
fn check_refused(bytes: &[u8], field: Field, found: u32) {
    assert_eq!(Message::parse(bytes), Err(ParseError::Invalid { field, found }));
}

#[test]
fn malformed_messages_are_refused_with_the_reason() {
    let good = with_options(&[53, 1, 1, 255]);
    assert!(Message::parse(&good).is_ok());
    let with = |at: usize, value| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    check_refused(&with(0, 3), Field::DhcpOperation, 3);
    check_refused(&with(1, 6), Field::DhcpHardwareType, 0x0606);
    check_refused(&with(2, 16), Field::DhcpHardwareType, 0x0110);
    check_refused(&with(239, 0x64), Field::DhcpCookie, 0x6382_5364);
    check_refused(&with(242, 9), Field::DhcpMessageType, 9);
    for len in 0..HEADER_LEN {
        let error = ParseError::Truncated { layer: Layer::Dhcpv4, needed: 240, available: len as u32 };
        assert_eq!(Message::parse(&good[..len]), Err(error));
    }
}

#[test]
fn malformed_options_are_refused_with_their_code() {
    // Cut off, of a wrong length, an empty or uneven list.
    check_refused(&with_options(&[53]), Field::DhcpOption, 53);
    check_refused(&with_options(&[12, 3, 1, 2]), Field::DhcpOption, 12);
    check_refused(&with_options(&[1, 3, 255, 255, 255]), Field::DhcpOption, 1);
    check_refused(&with_options(&[51, 5, 0, 0, 0, 0, 1]), Field::DhcpOption, 51);
    check_refused(&with_options(&[3, 0]), Field::DhcpOption, 3);
    check_refused(&with_options(&[6, 5, 1, 2, 3, 4, 5]), Field::DhcpOption, 6);
    check_refused(&with_options(&[26, 1, 1]), Field::DhcpOption, 26);
    check_refused(&with_options(&[53, 2, 1, 1]), Field::DhcpMessageType, 1);
    check_refused(&with_options(&[52, 1, 4]), Field::DhcpOverload, 4);
    check_refused(&with_options(&[52, 2, 1, 1]), Field::DhcpOverload, 1);
    // Overload within an overloaded field.
    let mut bytes = with_options(&[52, 1, 1, 255]);
    bytes[108..112].copy_from_slice(&[52, 1, 2, 255]);
    check_refused(&bytes, Field::DhcpOverload, 1);
    // What follows the end, and a missing end, do no harm.
    assert!(Message::parse(&with_options(&[255, 1, 99])).is_ok());
    assert!(Message::parse(&with_options(&[53, 1, 1])).is_ok());
}

#[test]
fn options_of_more_than_255_bytes_cannot_be_written() {
    let options = [DhcpOption::HostName(&[b'a'; 256])];
    let builder = Builder::request(7, MAC, &options);
    let error = EmitError::Invalid { field: Field::DhcpOption, value: 256 };
    assert_eq!(builder.emit(&mut [0; 600]), Err(error));
}

proptest! {
    #[test]
    fn written_messages_read_back(
        id: u32, elapsed_s: u16, flags: [bool; 2], ips: [u32; 5], mac: [u8; 6], words: [u32; 3],
        name in vec(any::<u8>(), 0..200), list in vec(any::<[u8; 4]>(), 1..20),
    ) {
        let options = [
            DhcpOption::MessageType(MessageType::Offer),
            DhcpOption::ServerIdentifier(ips[4].into()),
            DhcpOption::LeaseTime(words[0]),
            DhcpOption::RenewalTime(words[1]),
            DhcpOption::RebindingTime(words[2]),
            DhcpOption::Routers(Addresses::new(&list)),
            DhcpOption::HostName(&name),
            DhcpOption::Message(&name),
        ];
        let builder = Builder {
            operation: if flags[0] { Operation::Request } else { Operation::Reply },
            transaction_id: id,
            elapsed_s,
            broadcast: flags[1],
            client_ip: ips[0].into(),
            your_ip: ips[1].into(),
            boot_server_ip: ips[2].into(),
            relay_ip: ips[3].into(),
            client_mac: MacAddr(mac),
            options: &options,
        };
        let bytes = written(builder);
        let message = Message::parse(&bytes).expect("a message");
        prop_assert!(message.options().eq(options));
        let again = Builder {
            operation: message.operation(),
            transaction_id: message.transaction_id(),
            elapsed_s: message.elapsed_s(),
            broadcast: message.broadcast(),
            client_ip: message.client_ip(),
            your_ip: message.your_ip(),
            boot_server_ip: message.boot_server_ip(),
            relay_ip: message.relay_ip(),
            client_mac: message.client_mac(),
            options: &options,
        };
        prop_assert_eq!(again, builder);
        for short in 0..bytes.len() {
            prop_assert!(builder.emit(&mut [0; 900][..short]).is_err());
            // Cut between two options it is a message still, with some of them.
            if let Ok(message) = Message::parse(&bytes[..short]) {
                prop_assert!(message.options().zip(options).all(|(found, written)| found == written));
            }
        }
    }

    #[test]
    fn arbitrary_options_are_read_or_refused(
        options in vec(prop_oneof![0u8..7, 50u8..62, Just(255u8), any::<u8>()], 0..80),
        name in vec(prop_oneof![0u8..7, any::<u8>()], 192),
    ) {
        let mut bytes = with_options(&options);
        bytes[44..236].copy_from_slice(&name);
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert!(message.options().count() <= (options.len() + name.len()) / 2);
            let _ = (message.message_type(), message.prefix_len(), message.dns_servers().count());
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(Message::parse(&bytes).is_ok() <= (bytes.len() >= HEADER_LEN));
    }
}
