//! DHCP against a scripted server, stateless IPv6 configuration against a scripted router, duplicate addresses.

mod common;

use common::Bench;
use common::frames::*;
use common::peer::{Peer, answers, modern, old};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use linerate_nic::MacAddr;
use linerate_stack::{AddressError, Seat, StackConfig};
use linerate_transport::{
    CloseReason, ConnId, ConnState, ListenAddr, ListenOptions, ListenerId, Payload, Transport,
};
use linerate_wire::arp::Operation;
use linerate_wire::dhcpv4::{self, DhcpOption, MessageType};
use linerate_wire::ethernet::EtherType;
use linerate_wire::ip::Protocol;
use linerate_wire::ndp::{Message, NdpOption, PrefixInformation, RouterAdvertisement};
use linerate_wire::tcp::{Builder, Flags, Options};
use linerate_wire::{ethernet, ipv4, ipv6, udp};

const GIVEN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);

fn addresses(bench: &Bench) -> Vec<String> {
    let mut all: Vec<String> = bench.host.stack.addresses().map(|cidr| cidr.to_string()).collect();
    all.sort();
    all
}

/// The DHCP messages among frames of the host: type, transaction, and what server it names.
fn dhcp_messages(frames: &[Vec<u8>]) -> Vec<(MessageType, u32, Ipv4Addr)> {
    let read = |frame: &Vec<u8>| {
        let header = ethernet::Header::parse(frame).ok()?;
        let ip = ipv4::Header::parse(header.payload()).ok()?;
        let datagram = udp::Header::parse(ip.payload()).ok()?;
        assert!(datagram.verify_checksum4(ip.pseudo_header()));
        assert_eq!((datagram.source_port(), datagram.destination_port()), (68, 67));
        let message = dhcpv4::Message::parse(datagram.payload()).ok()?;
        Some((message.message_type()?, message.transaction_id(), message.client_ip()))
    };
    frames.iter().filter_map(read).collect()
}

fn dhcp_reply(kind: MessageType, transaction_id: u32, lease_s: u32) -> Vec<u8> {
    dhcp_reply_of(kind, transaction_id, lease_s, GIVEN, [255, 255, 255, 0], PEER4)
}

fn dhcp_reply_of(
    kind: MessageType,
    transaction_id: u32,
    lease_s: u32,
    given: Ipv4Addr,
    mask: [u8; 4],
    router: Ipv4Addr,
) -> Vec<u8> {
    let router = [router.octets()];
    let options = [
        DhcpOption::MessageType(kind),
        DhcpOption::ServerIdentifier(PEER4),
        DhcpOption::LeaseTime(lease_s),
        DhcpOption::SubnetMask(mask.into()),
        DhcpOption::Routers(dhcpv4::Addresses::new(&router)),
    ];
    let message = dhcpv4::Builder {
        operation: dhcpv4::Operation::Reply,
        your_ip: given,
        ..dhcpv4::Builder::request(transaction_id, HOST_MAC, &options)
    };
    let mut payload = vec![0; message.emitted_len()];
    message.emit(&mut payload).unwrap();
    let ip = ipv4::Builder::new(PEER4, Ipv4Addr::BROADCAST, Protocol::UDP, 8 + payload.len());
    let header = udp::Builder { source_port: 67, destination_port: 68, ..udp::Builder::default() };
    let mut bytes = vec![0; 8];
    header.emit_with_checksum(&mut bytes, ip.pseudo_header(), &payload).unwrap();
    bytes.extend_from_slice(&payload);
    let mut frame = frame4(ip, &bytes);
    frame[..6].copy_from_slice(&MacAddr::BROADCAST.0);
    frame
}

fn dhcp_bench() -> Bench {
    Bench::new(StackConfig { dhcp: true, ipv6: false, ..StackConfig::default() })
}

/// Answers DISCOVER and REQUEST; returns the frames that the host sends then.
fn lease(bench: &mut Bench, lease_s: u32) -> Vec<(linerate_wire::units::Instant, Vec<u8>)> {
    let sent: Vec<_> = bench.pass(Duration::from_secs(5)).into_iter().map(|(_, frame)| frame).collect();
    let messages = dhcp_messages(&sent);
    let (kind, id, _) = *messages.last().expect("a message");
    assert_eq!(kind, MessageType::Discover);
    let sent = bench.ask(&dhcp_reply(MessageType::Offer, id, lease_s));
    assert_eq!(dhcp_messages(&sent), [(MessageType::Request, id, Ipv4Addr::UNSPECIFIED)]);
    bench.send(&dhcp_reply(MessageType::Ack, id, lease_s));
    bench.pass(Duration::from_millis(600))
}

#[test]
fn a_lease_is_taken_probed_used_renewed_and_lost() {
    let mut bench = dhcp_bench();
    let sent = lease(&mut bench, 3_600);
    let probe = Seen::Arp(Operation::REQUEST, Ipv4Addr::UNSPECIFIED, GIVEN);
    assert_eq!(sent.iter().filter(|(_, frame)| see(frame) == probe).count(), 2);
    assert!(addresses(&bench).is_empty(), "not before nobody answered the probes");
    let sent = bench.pass(Duration::from_secs(1));
    let announcement = Seen::Arp(Operation::REQUEST, GIVEN, GIVEN);
    assert!(sent.iter().any(|(_, frame)| see(frame) == announcement));
    assert_eq!(addresses(&bench), ["10.0.0.77/24"]);
    // The router leads everywhere.
    let socket = bench.host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    bench.host.stack.udp_send(socket, None, "8.8.8.8:53".parse().unwrap(), b"?").unwrap();
    let sent = bench.receive();
    assert_eq!(see(&sent[0]), Seen::Arp(Operation::REQUEST, GIVEN, PEER4));
    // Renewal at half of the time, by unicast.
    bench.pass(Duration::from_secs(1_797));
    bench.ask(&arp(Operation::REQUEST, PEER4, GIVEN));
    let sent = bench.pass(Duration::from_secs(4));
    let frames: Vec<_> = sent.into_iter().map(|(_, frame)| frame).collect();
    let messages = dhcp_messages(&frames);
    assert_eq!((messages[0].0, messages[0].2), (MessageType::Request, GIVEN));
    bench.ask(&dhcp_reply(MessageType::Ack, messages[0].1, 3_600));
    bench.pass(Duration::from_secs(1_700));
    assert_eq!(addresses(&bench), ["10.0.0.77/24"]);
    // Nobody answers any more.
    bench.pass(Duration::from_secs(3_600));
    assert!(addresses(&bench).is_empty());
    let error = bench.host.stack.udp_send(socket, None, "8.8.8.8:53".parse().unwrap(), b"?");
    assert_eq!(error, Err(linerate_transport::UdpSendError::Unreachable));
}

#[test]
fn an_address_that_somebody_has_is_declined() {
    let mut bench = dhcp_bench();
    lease(&mut bench, 3_600);
    let answers = bench.ask(&arp(Operation::REPLY, GIVEN, Ipv4Addr::UNSPECIFIED));
    assert_eq!(dhcp_messages(&answers)[0].0, MessageType::Decline);
    assert!(addresses(&bench).is_empty());
    let sent = bench.pass(Duration::from_secs(12));
    let (when, frame) = &sent.last().unwrap();
    assert_eq!(dhcp_messages(std::slice::from_ref(frame))[0].0, MessageType::Discover);
    assert!(when.as_millis() >= 10_000);
}

/// The last DHCP message that the host sends within a time.
fn last_dhcp(bench: &mut Bench, time: Duration) -> (MessageType, u32, Ipv4Addr) {
    let frames: Vec<_> = bench.pass(time).into_iter().map(|(_, frame)| frame).collect();
    *dhcp_messages(&frames).last().expect("a message")
}

/// Whom the host asks for on the link to send to `to`.
fn next_hop(bench: &mut Bench, to: &str) -> Ipv4Addr {
    let socket = bench.host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    bench.host.stack.udp_send(socket, None, to.parse().unwrap(), b"?").unwrap();
    let sent = bench.receive();
    bench.host.stack.udp_close(socket);
    let asked = sent.iter().find_map(|frame| match see(frame) {
        Seen::Arp(Operation::REQUEST, _, target) => Some(target),
        _ => None,
    });
    asked.expect("it asks")
}

#[test]
fn a_renewal_may_bring_another_mask_and_router() {
    let mut bench = dhcp_bench();
    lease(&mut bench, 3_600);
    bench.pass(Duration::from_secs(10));
    assert_eq!(next_hop(&mut bench, "10.0.1.1:53"), PEER4, "by the router");
    // To the server, of which the host asks on the link.
    bench.pass(Duration::from_secs(1_785));
    bench.ask(&arp(Operation::REQUEST, PEER4, GIVEN));
    let (kind, id, _) = last_dhcp(&mut bench, Duration::from_secs(10));
    assert_eq!(kind, MessageType::Request);
    let router = Ipv4Addr::new(10, 0, 9, 9);
    let sent = bench.ask(&dhcp_reply_of(MessageType::Ack, id, 3_600, GIVEN, [255, 255, 0, 0], router));
    assert_eq!(addresses(&bench), ["10.0.0.77/16"]);
    assert!(sent.is_empty(), "the address is in use already: {sent:?}");
    assert_eq!(next_hop(&mut bench, "10.0.1.1:53"), Ipv4Addr::new(10, 0, 1, 1), "on the link");
    assert_eq!(next_hop(&mut bench, "8.8.8.8:53"), router);
}

fn interrupt_link(bench: &mut Bench) {
    bench.host.stack.handle_link(bench.now, false);
    bench.host.stack.handle_link(bench.now, true);
}

#[test]
fn a_lease_that_nobody_confirms_when_the_link_is_back_is_used_until_there_is_another() {
    let mut bench = dhcp_bench();
    lease(&mut bench, 3_600);
    bench.pass(Duration::from_secs(10));
    let before = bench.host.stack.counters().dhcp_out;
    interrupt_link(&mut bench);
    // The server hears the third question only.
    let (kind, id, ip) = last_dhcp(&mut bench, Duration::from_secs(20));
    assert_eq!((kind, ip), (MessageType::Request, Ipv4Addr::UNSPECIFIED));
    assert_eq!(bench.host.stack.counters().dhcp_out, before + 3);
    bench.ask(&dhcp_reply(MessageType::Ack, id, 3_600));
    bench.pass(Duration::from_secs(1_790));
    bench.ask(&arp(Operation::REQUEST, PEER4, GIVEN));
    assert_eq!(last_dhcp(&mut bench, Duration::from_secs(20)).2, GIVEN, "T1");
    // A server of another network does not say that the address is wrong there.
    interrupt_link(&mut bench);
    let (kind, id, _) = last_dhcp(&mut bench, Duration::from_secs(70));
    assert_eq!(kind, MessageType::Discover);
    assert_eq!(addresses(&bench), ["10.0.0.77/24"]);
    let (other, router) = (Ipv4Addr::new(10, 5, 0, 7), Ipv4Addr::new(10, 5, 0, 1));
    let reply = |kind| dhcp_reply_of(kind, id, 3_600, other, [255, 255, 255, 0], router);
    bench.ask(&reply(MessageType::Offer));
    bench.ask(&reply(MessageType::Ack));
    bench.pass(Duration::from_secs(5));
    assert_eq!(addresses(&bench), ["10.5.0.7/24"]);
    assert_eq!(next_hop(&mut bench, "10.0.0.1:53"), router);
}

fn slaac_bench(dad_transmits: u8) -> Bench {
    Bench::new(StackConfig { slaac: true, dad_transmits, ..StackConfig::default() })
}

fn router_advertisement(lifetime_s: u16, valid_s: u32, mtu: u32) -> Vec<u8> {
    let prefix = PrefixInformation {
        prefix: "2001:db8:5::".parse().unwrap(),
        prefix_len: 64,
        on_link: true,
        autonomous: true,
        valid_s,
        preferred_s: valid_s / 2,
    };
    let options = [NdpOption::SourceLinkLayer(PEER_MAC), NdpOption::Mtu(mtu), NdpOption::Prefix(prefix)];
    let message =
        Message::RouterAdvertisement(RouterAdvertisement { lifetime_s, ..RouterAdvertisement::default() });
    ndp(message, &options, ROUTER, ipv6::ALL_NODES)
}

/// The types of ICMPv6 messages that the host sent, with their times in whole seconds.
fn icmp6(sent: &[(linerate_wire::units::Instant, Vec<u8>)]) -> Vec<(u64, u8)> {
    let kind = |frame: &[u8]| match see(frame) {
        Seen::V6(Protocol::ICMPV6, _, payload) => Some(payload[0]),
        _ => None,
    };
    sent.iter().filter_map(|(when, frame)| Some((when.as_millis() / 1_000, kind(frame)?))).collect()
}

#[test]
fn addresses_are_probed_before_they_are_used() {
    let mut bench = slaac_bench(1);
    let sent = bench.pass(Duration::from_millis(900));
    assert!(icmp6(&sent).contains(&(0, 135)), "{:?}", icmp6(&sent));
    assert!(addresses(&bench).is_empty());
    bench.pass(Duration::from_millis(200));
    assert_eq!(addresses(&bench), [format!("{LINK_LOCAL}/64")]);
    // Somebody else probes for the same address while we do, or answers: it is not used.
    for is_probe in [true, false] {
        let mut bench = slaac_bench(1);
        bench.receive();
        let conflict = match is_probe {
            true => ndp(
                Message::NeighbourSolicitation { target: LINK_LOCAL },
                &[],
                Ipv6Addr::UNSPECIFIED,
                ipv6::solicited_node(LINK_LOCAL),
            ),
            false => advertisement_to_all(LINK_LOCAL),
        };
        bench.ask(&conflict);
        bench.pass(Duration::from_secs(2));
        assert!(addresses(&bench).is_empty());
        assert_eq!(bench.host.stack.counters().dad_conflicts, 1);
    }
}

/// When the host says unasked, and as it should, that an IPv6 address is its own: in milliseconds.
fn unsolicited(sent: &[(linerate_wire::units::Instant, Vec<u8>)], target: Ipv6Addr) -> Vec<u64> {
    let is_it = |frame: &[u8]| match see(frame) {
        Seen::V6(Protocol::ICMPV6, to, payload) if payload[0] == 136 => {
            assert_eq!((to, &frame[..6]), (ipv6::ALL_NODES, &MacAddr::ipv6_multicast(to).0[..]));
            // Override alone, and the option with our Ethernet address.
            assert_eq!((&payload[4..8], &payload[24..26]), (&[0x20, 0, 0, 0][..], &[2, 1][..]));
            assert_eq!(payload[26..32], HOST_MAC.0);
            payload[8..24] == target.octets()
        }
        _ => false,
    };
    sent.iter().filter(|(_, frame)| is_it(frame)).map(|(when, _)| when.as_millis()).collect()
}

#[test]
fn an_ipv6_address_is_advertised_when_it_is_usable_and_when_the_link_is_back() {
    let mut bench = slaac_bench(1);
    let sent = bench.pass(Duration::from_secs(10));
    assert_eq!(unsolicited(&sent, LINK_LOCAL), [1_001, 3_001]);
    let back = bench.now;
    bench.host.stack.handle_link(back, false);
    bench.host.stack.handle_link(back, true);
    let sent = bench.pass(Duration::from_secs(10));
    assert_eq!(unsolicited(&sent, LINK_LOCAL), [1_000, 3_000].map(|after| back.as_millis() + after));
    // Without probes, only then.
    let mut bench = slaac_bench(0);
    let sent = bench.pass(Duration::from_secs(10));
    assert_eq!(unsolicited(&sent, LINK_LOCAL), []);
    let back = bench.now;
    bench.host.stack.handle_link(back, false);
    bench.host.stack.handle_link(back, true);
    let sent = bench.pass(Duration::from_secs(10));
    assert_eq!(unsolicited(&sent, LINK_LOCAL), [0, 2_000].map(|after| back.as_millis() + after));
}

/// A host with 10.0.0.1/24 from its settings, whose addresses are probed.
fn static_bench() -> Bench {
    let addresses = vec!["10.0.0.1/24".parse().unwrap()];
    Bench::new(StackConfig { addresses, ipv6: false, ..StackConfig::default() })
}

/// The ARP packets that the host sent, with their times in milliseconds.
fn arps(sent: &[(linerate_wire::units::Instant, Vec<u8>)]) -> Vec<(u64, Seen)> {
    let seen = sent.iter().map(|(when, frame)| (when.as_millis(), see(frame)));
    seen.filter(|(_, seen)| matches!(seen, Seen::Arp(..))).collect()
}

#[test]
fn a_static_ipv4_address_is_used_while_it_is_probed_and_announced_afterwards() {
    let mut bench = static_bench();
    assert_eq!(addresses(&bench), ["10.0.0.1/24"]);
    let probe = || Seen::Arp(Operation::REQUEST, Ipv4Addr::UNSPECIFIED, HOST4);
    let announcement = || Seen::Arp(Operation::REQUEST, HOST4, HOST4);
    let mut sent = bench.pass(Duration::from_millis(100));
    // Who asks for it is answered, also who probes for it.
    for sender in [PEER4, Ipv4Addr::UNSPECIFIED] {
        let answers = bench.ask(&arp(Operation::REQUEST, sender, HOST4));
        assert_eq!(see(&answers[0]), Seen::Arp(Operation::REPLY, HOST4, sender));
    }
    sent.extend(bench.pass(Duration::from_secs(10)));
    let expected = [(1, probe()), (201, probe()), (401, announcement()), (2_401, announcement())];
    assert_eq!(arps(&sent), expected);
    // From now on it is defended.
    let answers = bench.ask(&arp(Operation::REPLY, HOST4, HOST4));
    assert_eq!(see(&answers[0]), announcement());
    assert_eq!(addresses(&bench), ["10.0.0.1/24"]);
}

#[test]
fn a_static_ipv4_address_that_somebody_has_is_given_up() {
    // An answer to the probe, or a claim of its own.
    let claims = [(Operation::REPLY, Ipv4Addr::UNSPECIFIED), (Operation::REQUEST, HOST4)];
    for (operation, target) in claims {
        for is_at_once in [true, false] {
            let mut bench = static_bench();
            if !is_at_once {
                bench.pass(Duration::from_millis(300));
            }
            assert_eq!(bench.ask(&arp(operation, HOST4, target)).len(), 0);
            assert!(addresses(&bench).is_empty());
            assert_eq!(bench.host.stack.counters().arp_conflicts, 1);
            assert_eq!(arps(&bench.pass(Duration::from_secs(10))), [], "not announced");
            assert!(bench.ask(&arp(Operation::REQUEST, PEER4, HOST4)).is_empty());
        }
    }
    // The same when the link comes back, maybe to another network.
    let mut bench = static_bench();
    bench.pass(Duration::from_secs(10));
    let back = bench.now;
    bench.host.stack.handle_link(back, false);
    bench.host.stack.handle_link(back, true);
    bench.ask(&arp(Operation::REPLY, HOST4, Ipv4Addr::UNSPECIFIED));
    assert!(addresses(&bench).is_empty());
}

#[test]
fn what_somebody_has_when_the_link_is_back_is_given_up() {
    let mut bench = dhcp_bench();
    lease(&mut bench, 3_600);
    bench.pass(Duration::from_secs(10));
    interrupt_link(&mut bench);
    let probe = Seen::Arp(Operation::REQUEST, Ipv4Addr::UNSPECIFIED, GIVEN);
    let sent = bench.pass(Duration::from_millis(300));
    assert!(
        arps(&sent).iter().all(|(_, seen)| *seen == probe) && arps(&sent).len() == 2,
        "{:?}",
        arps(&sent)
    );
    assert_eq!(addresses(&bench), ["10.0.0.77/24"], "in use meanwhile");
    let sent = bench.ask(&arp(Operation::REPLY, GIVEN, Ipv4Addr::UNSPECIFIED));
    assert_eq!(dhcp_messages(&sent)[0].0, MessageType::Decline);
    assert!(addresses(&bench).is_empty());

    let mut bench = slaac_bench(1);
    bench.pass(Duration::from_secs(10));
    interrupt_link(&mut bench);
    let sent = bench.pass(Duration::from_millis(300));
    assert!(icmp6(&sent).iter().any(|&(_, kind)| kind == 135), "{:?}", icmp6(&sent));
    assert_eq!(addresses(&bench), [format!("{LINK_LOCAL}/64")], "in use meanwhile");
    // Who asks for it is answered, but keeps what he knows (RFC 4429 section 3.3).
    let question = Message::NeighbourSolicitation { target: LINK_LOCAL };
    let option = [NdpOption::SourceLinkLayer(PEER_MAC)];
    let answers = bench.ask(&ndp(question, &option, ROUTER, ipv6::solicited_node(LINK_LOCAL)));
    let answers = payloads(&answers, Protocol::ICMPV6);
    assert_eq!((answers[0][0], answers[0][4]), (136, 0x40), "solicited, without override");
    bench.ask(&advertisement_to_all(LINK_LOCAL));
    assert!(addresses(&bench).is_empty());
    assert_eq!(bench.host.stack.counters().dad_conflicts, 1);
    assert_eq!(unsolicited(&bench.pass(Duration::from_secs(10)), LINK_LOCAL), []);
}

fn advertisement_to_all(target: Ipv6Addr) -> Vec<u8> {
    let message =
        Message::NeighbourAdvertisement { router: false, solicited: false, overrides: true, target };
    ndp(message, &[NdpOption::TargetLinkLayer(PEER_MAC)], target, ipv6::ALL_NODES)
}

#[test]
fn routers_are_solicited_three_times() {
    let mut bench = slaac_bench(0);
    let sent = icmp6(&bench.pass(Duration::from_secs(30)));
    let solicitations: Vec<u64> =
        sent.iter().filter(|(_, kind)| *kind == 133).map(|(when, _)| *when).collect();
    assert_eq!(solicitations, [0, 4, 8]);
}

#[test]
fn routers_are_asked_for_again_when_the_last_one_went() {
    for takes_leave in [false, true] {
        let mut bench = slaac_bench(0);
        bench.pass(Duration::from_secs(1));
        bench.ask(&router_advertisement(30, 3_600, 1_400));
        bench.pass(Duration::from_secs(20));
        if takes_leave {
            bench.ask(&router_advertisement(0, 3_600, 1_400));
        }
        let sent = icmp6(&bench.pass(Duration::from_secs(100)));
        let asked: Vec<u64> = sent.iter().filter(|(_, kind)| *kind == 133).map(|(when, _)| *when).collect();
        // A minute after the router went, and not before.
        assert_eq!(asked, [if takes_leave { 21 + 60 } else { 31 + 60 }]);
    }
}

/// Opens a connection of the peer over IPv6.
fn connect6(bench: &mut Bench, listener: ListenerId, port: u16) -> ConnId {
    let options = Options { mss: Some(1_440), ..old() };
    let syn = Builder { options, ..Peer::new(port, options).syn() };
    let answer = answers(&bench.ask(&tcp6(syn, &[]))).remove(0);
    let ack = Builder { acknowledgement: answer.seq + 1, ..Peer::new(port, old()).segment(Flags::ACK) };
    bench.ask(&tcp6(Builder { sequence: syn.sequence + 1, ..ack }, &[]));
    bench.host.stack.accept(listener).expect("accepted")
}

#[test]
fn an_advertisement_of_a_smaller_mtu_reaches_open_connections() {
    // So few connections may be that none is awake for no reason.
    let config = common::Setup::default().config[0].clone();
    let mut bench = Bench::new(StackConfig { slaac: true, max_connections: 64, ..config });
    bench.receive();
    let question = Message::NeighbourSolicitation { target: HOST6 };
    bench.ask(&ndp(question, &[NdpOption::SourceLinkLayer(PEER_MAC)], PEER6, HOST6));
    let listener =
        bench.host.stack.listen(common::OWNER, ListenAddr { ip: None, port: 80 }, &ListenOptions::default());
    let listener = listener.unwrap();
    let asleep = connect6(&mut bench, listener, 5_000);
    bench.pass(Duration::from_secs(5));
    let busy = connect6(&mut bench, listener, 5_001);
    let lengths = |frames: &[Vec<u8>]| -> Vec<usize> {
        answers(frames).iter().map(|answer| answer.payload.len()).collect()
    };
    bench.host.stack.send(busy, Payload::Shared(vec![7; 4_320].into())).unwrap();
    assert_eq!(lengths(&bench.receive()), [1_440; 3]);
    let again = bench.ask(&router_advertisement(1_800, 3_600, 1_280));
    assert_eq!(lengths(&again)[..3], [1_220; 3], "sent again, as much as fits");
    bench.host.stack.send(asleep, Payload::Shared(vec![7; 2_440].into())).unwrap();
    assert_eq!(lengths(&bench.receive()), [1_220; 2]);
}

#[test]
fn an_advertisement_gives_address_route_and_mtu_until_they_expire() {
    let mut bench = slaac_bench(0);
    bench.pass(Duration::from_secs(1));
    bench.ask(&router_advertisement(1_800, 3_600, 1_400));
    bench.pass(Duration::from_millis(10));
    let ours = "2001:db8:5::ff:fe00:1/128";
    assert!(addresses(&bench).iter().any(|address| address == ours), "{:?}", addresses(&bench));
    // Through the router, whose address came with the advertisement, in packets of its MTU.
    let socket = bench.host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    bench.host.stack.udp_send(socket, None, "[2001:db8:ffff::1]:53".parse().unwrap(), &[0; 1_390]).unwrap();
    let sent = bench.receive();
    assert_eq!(sent.len(), 2, "1,438 bytes do not fit 1,400");
    assert_eq!(sent[0][..6], PEER_MAC.0);
    let header = ethernet::Header::parse(&sent[0]).unwrap();
    assert_eq!(header.ether_type(), EtherType::IPV6);
    assert_eq!(
        ipv6::Header::parse(header.payload()).unwrap().source(),
        "2001:db8:5::ff:fe00:1".parse::<Ipv6Addr>().unwrap()
    );
    // A forged end of the lifetime leaves two hours (RFC 4862 section 5.5.3(e)) or what remains, if that is less.
    bench.ask(&router_advertisement(1_800, 0, 1_400));
    bench.pass(Duration::from_secs(60));
    assert!(addresses(&bench).iter().any(|address| address == ours));
    // The router goes after half an hour, the address after an hour.
    let to = "[2001:db8:ffff::1]:53".parse().unwrap();
    bench.pass(Duration::from_secs(1_800));
    let error = bench.host.stack.udp_send(socket, None, to, b"?");
    assert_eq!(error, Err(linerate_transport::UdpSendError::Unreachable));
    bench.pass(Duration::from_secs(1_800));
    assert!(!addresses(&bench).iter().any(|address| address == ours));
}

#[test]
fn floods_of_routers_and_prefixes_are_bounded() {
    let mut bench = slaac_bench(0);
    bench.pass(Duration::from_secs(1));
    for i in 0..100u16 {
        let prefix = PrefixInformation {
            prefix: Ipv6Addr::new(0x2001, 0xdb8, i, 0, 0, 0, 0, 0),
            prefix_len: 64,
            on_link: true,
            autonomous: true,
            valid_s: 3_600,
            preferred_s: 3_600,
        };
        let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 1, i);
        let message = RouterAdvertisement { lifetime_s: 60, ..RouterAdvertisement::default() };
        let option = [NdpOption::Prefix(prefix)];
        bench.ask(&ndp(Message::RouterAdvertisement(message), &option, source, ipv6::ALL_NODES));
    }
    bench.pass(Duration::from_millis(10));
    assert_eq!(addresses(&bench).len(), 1 + 8);
    // Off: nothing is taken.
    let mut bench = Bench::new(StackConfig { dad_transmits: 0, ..StackConfig::default() });
    bench.receive();
    bench.ask(&router_advertisement(1_800, 3_600, 1_400));
    bench.pass(Duration::from_millis(10));
    assert_eq!(addresses(&bench), [format!("{LINK_LOCAL}/64")]);
}

#[test]
fn a_program_changes_addresses_and_gateways_while_the_stack_runs() {
    let mut bench = Bench::acquainted();
    let now = bench.now;
    let listener =
        bench.host.stack.listen(common::OWNER, ListenAddr { ip: None, port: 80 }, &ListenOptions::default());
    let conn = Peer::new(5_000, modern()).connect(&mut bench, listener.unwrap());
    assert_eq!(bench.host.stack.add_address(now, "10.0.1.1/24".parse().unwrap()), Ok(()));
    let before = addresses(&bench);
    bench.pass(Duration::from_secs(5));
    assert!(addresses(&bench).contains(&"10.0.1.1/24".into()), "before: {before:?}");
    // Its network is near now.
    let far = "10.0.2.9".parse().unwrap();
    assert_eq!(bench.host.stack.add_gateway(now, far), Err(AddressError::NotNear));
    assert_eq!(bench.host.stack.add_gateway(now, "10.0.1.1".parse().unwrap()), Err(AddressError::NotNear));
    let gateway = "10.0.1.9".parse().unwrap();
    assert_eq!(bench.host.stack.add_gateway(now, gateway), Ok(()));
    let socket = bench.host.stack.udp_bind(common::OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    let anybody = "8.8.8.8:53".parse().unwrap();
    bench.host.stack.udp_send(socket, None, anybody, b"?").unwrap();
    let asked = Seen::Arp(Operation::REQUEST, Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 1, 9));
    assert!(bench.receive().iter().any(|frame| see(frame) == asked));
    bench.host.stack.remove_gateway(now, gateway);
    assert!(bench.host.stack.udp_send(socket, None, anybody, b"?").is_err());
    // What hangs on an address ends with it.
    assert!(bench.host.stack.remove_address(now, HOST4.into()));
    assert!(!bench.host.stack.remove_address(now, HOST4.into()));
    assert_eq!(bench.host.stack.state(conn), ConnState::Closed(CloseReason::Unreachable));
    assert!(answers(&bench.receive()).iter().any(|answer| answer.port == 5_000), "the peer hears of it");
    assert!(!addresses(&bench).contains(&"10.0.0.1/24".into()));
    let of_network = "10.0.1.0/24".parse().unwrap();
    assert_eq!(bench.host.stack.add_address(now, of_network), Err(AddressError::NoHost));
}

#[test]
fn addresses_are_not_added_where_they_cannot_be() {
    let add = |config, cidr: &str| {
        let mut bench = Bench::new(config);
        let now = bench.now;
        bench.host.stack.add_address(now, cidr.parse().unwrap())
    };
    let alone = StackConfig::default;
    assert_eq!(add(StackConfig { ipv6: false, ..alone() }, "fd00::1/64"), Err(AddressError::NoIpv6));
    let member = StackConfig { seat: Seat { index: 1, seats: 2 }, ..alone() };
    assert_eq!(add(member, "10.0.0.1/24"), Err(AddressError::Member));
    let mut bench = Bench::new(StackConfig { ipv6: false, ..alone() });
    let now = bench.now;
    let mut add = |last: u8| bench.host.stack.add_address(now, format!("10.0.{last}.1/24").parse().unwrap());
    assert!((0..32).all(|last| add(last).is_ok()));
    assert_eq!(add(32), Err(AddressError::Full));
    assert_eq!(add(31), Ok(()), "it is there");
}
