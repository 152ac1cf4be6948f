//! Floods and lies in address resolution (RFC 826, RFC 5227, RFC 4861, RFC 4862).

use super::arena::{Attack, Outcome, Setup};
use super::frames::*;
use super::script::Flood;
use linerate_sim::{MacAddr, Random};
use linerate_wire::arp::Operation;
use linerate_wire::ndp::{Message, NdpOption, RouterAdvertisement};
use std::net::{Ipv4Addr, Ipv6Addr};

const PER_SECOND: u64 = 50_000;
/// Of these, what must be counted: beside an upload some are lost in the switch.
const MOST: u64 = 49_000;

fn check(
    name: &str,
    ipv6: bool,
    frame: impl Fn(u64, &mut Random) -> Vec<u8> + Copy + 'static,
    holds: impl Fn(&Outcome),
) {
    let setup = Setup { ipv6, ..Setup::default() };
    let attack = Attack { name, setup, script: &move |_| Box::new(Flood::new(PER_SECOND, frame)) };
    for outcome in attack.run() {
        let traffic = outcome.traffic;
        assert!(traffic.answers.packets <= traffic.sent.packets + 200, "{traffic:?}");
        assert!(traffic.answers.wire_bytes <= traffic.sent.wire_bytes + 20_000, "{traffic:?}");
        holds(&outcome);
    }
}

/// A station that does not exist.
fn nobody(random: &mut Random) -> MacAddr {
    MacAddr([2, 0, 1, 0, 0, random.below(64) as u8])
}

#[test]
fn arp_requests_of_stations_that_do_not_exist() {
    check(
        "ARP requests",
        false,
        |_, random| {
            let ip = Ipv4Addr::new(10, 0, 0, 10 + random.below(240) as u8);
            arp(Operation::REQUEST, (nobody(random), ip), VICTIM4)
        },
        |outcome| assert!(outcome.count("arp_in") >= MOST, "{:?}", outcome.shown()),
    );
}

#[test]
fn arp_replies_that_nobody_asked_for() {
    check(
        "ARP claims",
        false,
        |n, random| {
            let ip = [BYSTANDER4, ROUTER4, VICTIM4][n as usize % 3];
            let operation = if n / 4 % 2 == 0 { Operation::REPLY } else { Operation::REQUEST };
            arp(operation, (nobody(random), ip), if n / 8 % 2 == 0 { ip } else { VICTIM4 })
        },
        |outcome| {
            assert!(outcome.count("neighbors_disputed") > 0, "{:?}", outcome.shown());
            assert!(outcome.count("arp_conflicts") > 10_000, "{:?}", outcome.shown());
            assert_eq!(outcome.count("neighbors_unreachable"), 0);
        },
    );
}

#[test]
fn solicitations_of_stations_that_do_not_exist() {
    check(
        "solicitations",
        true,
        |_, random| {
            let source =
                Ipv6Addr::from_bits(VICTIM6.to_bits() + 0x1_0000 + u128::from(random.next_u64() >> 8));
            let option = [NdpOption::SourceLinkLayer(nobody(random))];
            ndp(Message::NeighbourSolicitation { target: VICTIM6 }, &option, source, VICTIM6)
        },
        |outcome| assert!(outcome.count("ndp_in") >= MOST, "{:?}", outcome.shown()),
    );
}

#[test]
fn advertisements_that_nobody_asked_for() {
    check(
        "advertisement claims",
        true,
        |n, random| {
            let target = [BYSTANDER6, ROUTER6, VICTIM6][n as usize % 3];
            let message = Message::NeighbourAdvertisement {
                router: n % 3 == 0,
                solicited: n % 2 == 0,
                overrides: n % 5 != 0,
                target,
            };
            let source = if target == VICTIM6 { ROUTER6 } else { target };
            ndp(message, &[NdpOption::TargetLinkLayer(nobody(random))], source, VICTIM6)
        },
        |outcome| {
            assert!(outcome.count("neighbors_disputed") > 0, "{:?}", outcome.shown());
            assert_eq!(outcome.count("neighbors_unreachable"), 0, "{:?}", outcome.shown());
        },
    );
}

#[test]
fn probes_for_the_victims_address_and_advertisements_of_routers() {
    check(
        "probes, router advertisements",
        true,
        |n, random| {
            if n % 2 == 0 {
                let message = Message::NeighbourSolicitation { target: VICTIM6 };
                return ndp(
                    message,
                    &[],
                    Ipv6Addr::UNSPECIFIED,
                    linerate_wire::ipv6::solicited_node(VICTIM6),
                );
            }
            let source = Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(random.next_u64()));
            let message = Message::RouterAdvertisement(RouterAdvertisement {
                hop_limit: 1,
                lifetime_s: 9_000,
                reachable_ms: 1,
                retransmit_ms: 1,
                ..RouterAdvertisement::default()
            });
            let options = [NdpOption::SourceLinkLayer(nobody(random)), NdpOption::Mtu(1_280)];
            ndp(message, &options, source, linerate_wire::ipv6::ALL_NODES)
        },
        |outcome| assert!(outcome.count("ndp_in") >= MOST, "{:?}", outcome.shown()),
    );
}
