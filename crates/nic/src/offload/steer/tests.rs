//! Every way to a queue, with hashes from the vectors of Microsoft.

use super::*;
use core::net::SocketAddr;
use linerate_wire::toeplitz::MICROSOFT_KEY;
use proptest::prelude::*;

fn tuple(source: &str, destination: &str, protocol: Protocol) -> Tuple {
    let [source, destination]: [SocketAddr; 2] =
        [source, destination].map(|end| end.parse().expect("an end"));
    let ports = Some([source.port(), destination.port()]);
    Tuple { source: source.ip(), destination: destination.ip(), protocol, ports }
}

/// By hash to its low four bits.
fn spread() -> Steer {
    let mut steer = Steer::new(MICROSOFT_KEY);
    (0u8..).zip(&mut steer.indirection).for_each(|(index, channel)| *channel = index % 16);
    steer
}

/// A line of Microsoft's verification suite, hash over addresses only and with ports, through all switches.
fn check(source: &str, destination: &str, addresses: u32, ports: u32) {
    let tcp = tuple(source, destination, Protocol::TCP);
    let udp = Tuple { protocol: Protocol::UDP, ..tcp };
    let is_v4 = tcp.source.is_ipv4();
    let [two, tcp_type, udp_type] = if is_v4 {
        [HashType::Ipv4, HashType::Tcp4, HashType::Udp4]
    } else {
        [HashType::Ipv6, HashType::Tcp6, HashType::Udp6]
    };
    let steer = spread();
    let found = |steer: &Steer, tuple: &Tuple| {
        let steered = steer.steer_tuple(tuple);
        assert_eq!((u32::from(steered.channel), steered.drop), (steered.hash % 16, false));
        assert_eq!(steered.decided_by, Decision::Hash);
        (steered.hash, steered.hash_type)
    };
    assert_eq!(found(&steer, &tcp), (ports, tcp_type));
    assert_eq!(found(&steer, &udp), (ports, udp_type));
    assert_eq!(found(&steer, &Tuple { ports: None, ..udp }), (addresses, two));
    assert_eq!(found(&steer, &Tuple { protocol: Protocol::ICMPV4, ports: None, ..tcp }), (addresses, two));
    let no_tcp = Steer { hash_tcp: false, ..spread() };
    assert_eq!((found(&no_tcp, &tcp), found(&no_tcp, &udp)), ((addresses, two), (ports, udp_type)));
    let no_udp = Steer { hash_udp: false, ..spread() };
    assert_eq!((found(&no_udp, &tcp), found(&no_udp, &udp)), ((ports, tcp_type), (addresses, two)));
}

#[test]
fn the_vectors_of_microsoft() {
    check("66.9.149.187:2794", "161.142.100.80:1766", 0x323e8fc2, 0x51ccc178);
    check("199.92.111.2:14230", "65.69.140.83:4739", 0xd718262a, 0xc626b0ea);
    check("24.19.198.95:12898", "12.22.207.184:38024", 0xd2d0a5de, 0x5c2b394a);
    check("38.27.205.30:48228", "209.142.163.6:2217", 0x82989176, 0xafc7327f);
    check("153.39.163.191:44251", "202.188.127.2:1303", 0x5d1809c5, 0x10e828a2);
    check("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x2cc18cd5, 0x40207d3d);
    check("[3ffe:501:8::260:97ff:fe40:efab]:14230", "[ff02::1]:4739", 0x0f0c461c, 0xdde51bbf);
    let (source, destination) =
        ("[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251", "[fe80::200:f8ff:fe21:67cf]:38024");
    check(source, destination, 0x4b61e985, 0x02d1feef);
}

/// UDP over IPv4 in a frame: 66.9.149.187:2794 to 161.142.100.80:1766.
fn frame(tags: &[u8], fragment: u16, payload: &[u8]) -> alloc::vec::Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut frame = [&[2; 12], tags, &[8, 0, 0x45, 0], &total.to_be_bytes(), &[0, 7]].concat();
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, 17, 0, 0, 66, 9, 149, 187, 161, 142, 100, 80]);
    frame.extend([2794u16, 1766, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0xee);
    frame
}

#[test]
fn all_fragments_of_a_datagram_go_to_one_queue() {
    let steer = spread();
    for fragment in [0x2000, 0x2001, 0x0001, 0x1fff] {
        let steered = steer.steer(&frame(&[], fragment, &[1; 64]));
        assert_eq!((steered.hash, steered.hash_type), (0x323e8fc2, HashType::Ipv4), "{fragment:04x}");
    }
    assert_eq!(steer.steer(&frame(&[], 0x4000, &[1; 64])).hash_type, HashType::Udp4);
}

#[test]
fn tags_change_nothing() {
    let steer = spread();
    for tags in [&[][..], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 9, 0x81, 0, 0xe0, 5]] {
        let steered = steer.steer(&frame(tags, 0, &[]));
        assert_eq!((steered.hash, steered.hash_type), (0x51ccc178, HashType::Udp4));
    }
    let three = steer.steer(&frame(&[0x81, 0, 0, 5].repeat(3), 0, &[]));
    assert_eq!((three.hash, three.hash_type), (0, HashType::None));
}

#[test]
fn padding_is_not_taken_for_ports() {
    let mut short = frame(&[], 0, &[]);
    // The packet ends within its ports; what follows is padding.
    short[17] = 23;
    let steered = spread().steer(&short);
    assert_eq!((steered.hash, steered.hash_type), (0x323e8fc2, HashType::Ipv4));
}

#[test]
fn what_is_not_ip_goes_to_the_default_queue_whatever_the_rules() {
    let mut steer = Steer { default_channel: 5, ..spread() };
    steer.rules[3] = Some(Rule::all(Action::Drop));
    let mut arp = frame(&[], 0, &[]);
    arp[13] = 6;
    let expected = Steered { channel: 5, ..Steered::default() };
    assert_eq!((steer.steer(&arp), steer.steer(&[1])), (expected, expected));
    assert!(steer.steer(&frame(&[], 0, &[])).drop);
}

#[test]
fn rules_go_before_ports_and_ports_before_the_hash() {
    let flow = tuple("66.9.149.187:2794", "161.142.100.80:1766", Protocol::TCP);
    let mut steer = spread();
    steer.ports[7] = Some((1766, 9));
    steer.ports[8] = Some((1766, 10));
    let queue = |steer: &Steer, tuple: &Tuple| {
        let steered = steer.steer_tuple(tuple);
        (steered.channel, steered.drop, steered.decided_by)
    };
    assert_eq!(queue(&steer, &flow), (9, false, Decision::Port));
    assert_eq!(queue(&steer, &Tuple { ports: None, ..flow }), (2, false, Decision::Hash));
    steer.rules[30] = Some(Rule::flow(&flow, Action::Queue(11)));
    assert_eq!(queue(&steer, &flow), (11, false, Decision::Rule));
    steer.rules[29] = Some(Rule { destination_port: Some(1766), ..Rule::all(Action::Drop) });
    assert_eq!(queue(&steer, &flow), (0, true, Decision::Rule));
    let other = Tuple { ports: Some([1766, 1765]), ..flow };
    assert_eq!(queue(&steer, &other).2, Decision::Hash);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let steer = |table: &[u16], ports: &[(u16, u16)]| spread().with_tables(table, ports);
    let good = steer(&[3, 2, 1, 0], &[(80, 7)]).expect("four queues");
    assert_eq!((good.indirection[4], good.indirection[127], good.ports[0]), (3, 0, Some((80, 7))));
    for (table, ports) in [(&[][..], 0), (&[1, 2, 3], 0), (&[16], 0), (&[0; 256], 0), (&[0], 17)] {
        assert_eq!(steer(table, &alloc::vec![(1, 1); ports]), None);
    }
    assert_eq!(steer(&[0], &[(1, 16)]), None);
}

#[test]
fn a_rule_with_addresses_of_both_versions_has_no_words() {
    let [v4, v6] = ["10.0.0.1", "fe80::1"].map(|text| Network::host(text.parse().expect("an address")));
    let rule = Rule { source: Some(v4), ..Rule::all(Action::Drop) };
    assert!(rule.words().is_some());
    assert_eq!(Rule { destination: Some(v6), ..rule }.words(), None);
    assert_eq!(Rule { version: Some(Version::V6), ..rule }.words(), None);
}

fn address() -> impl Strategy<Value = IpAddr> {
    // Few of them, so that they are often alike.
    (any::<bool>(), 0u8..3, 0u8..3).prop_map(|(is_v4, high, low)| {
        let (high, low) = (high << 6, low << 1);
        if is_v4 {
            IpAddr::from([high, 0, 0, low])
        } else {
            IpAddr::from([high, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, low])
        }
    })
}

fn network() -> impl Strategy<Value = Option<Network>> {
    let network = |(address, prefix_len)| Network { address, prefix_len };
    proptest::option::of((address(), prop_oneof![Just(255), 0u8..140]).prop_map(network))
}

fn rule() -> impl Strategy<Value = Rule> {
    let version = proptest::option::of(prop_oneof![Just(Version::V4), Just(Version::V6)]);
    let protocol = proptest::option::of((0u8..20).prop_map(Protocol));
    let port = || proptest::option::of(0u16..3);
    (version, protocol, network(), network(), port(), port()).prop_map(
        |(version, protocol, source, destination, source_port, destination_port)| Rule {
            version,
            protocol,
            source,
            destination,
            source_port,
            destination_port,
            action: Action::Drop,
        },
    )
}

proptest! {
    #[test]
    fn the_words_of_a_rule_say_what_it_says(
        rule in rule(),
        source in address(),
        destination in address(),
        protocol in 0u8..20,
        ports in proptest::option::of([0u16..3, 0u16..3]),
    ) {
        prop_assume!(source.is_ipv4() == destination.is_ipv4());
        let tuple = Tuple { source, destination, protocol: Protocol(protocol), ports };
        let by_words = rule.words().is_some_and(|words| {
            words.iter().zip(tuple.words()).all(|(rule, word)| rule.matches(word))
        });
        prop_assert_eq!(by_words, rule.matches(&tuple));
    }

    #[test]
    fn a_flows_own_rule_fits_it_and_no_other(
        source in address(), destination in address(), from: u16, to: u16, other: u16,
    ) {
        prop_assume!(source.is_ipv4() == destination.is_ipv4());
        let tuple = Tuple { source, destination, protocol: Protocol::UDP, ports: Some([from, to]) };
        let rule = Rule::flow(&tuple, Action::Queue(1));
        prop_assert!(rule.matches(&tuple));
        let (fragment, other_flow) = (Tuple { ports: None, ..tuple }, Tuple { ports: Some([from, other]), ..tuple });
        prop_assert!(!rule.matches(&fragment));
        prop_assert_eq!(rule.matches(&other_flow), to == other);
    }

    #[test]
    fn any_bytes_are_steered(bytes in proptest::collection::vec(any::<u8>(), 0..150)) {
        let steered = spread().steer(&bytes);
        prop_assert_eq!(steered.decided_by == Decision::NotIp, steered.hash_type == HashType::None);
    }
}
