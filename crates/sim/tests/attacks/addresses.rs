//! Addresses that cannot be: land, martians, broadcast (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5, RFC 9293
//! section 3.9.2.3).

use super::arena::{Attack, Outcome, Setup};
use super::frames::*;
use super::script::Flood;
use super::server::PORT;
use linerate_wire::tcp::{Builder, Flags};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const PER_SECOND: u64 = 50_000;
/// Of these, what must be counted: beside an upload some are lost in the switch.
const MOST: u64 = 49_000;

/// SYNs from these sources to this destination, each with the service's port on both ends.
fn check(name: &str, sources: Vec<IpAddr>, destination: IpAddr, holds: impl Fn(&Outcome)) {
    let script = |_: &_| -> Box<dyn super::script::Script> {
        let sources = sources.clone();
        Box::new(Flood::new(PER_SECOND, move |n, random| {
            let source = SocketAddr::new(sources[n as usize % sources.len()], PORT);
            let syn = Builder { options: modern(), ..with(Flags::SYN, random.next_u64() as u32, 0) };
            segment(source, SocketAddr::new(destination, PORT), syn, &[])
        }))
    };
    let setup = Setup { ipv6: destination.is_ipv6(), ..Setup::default() };
    for outcome in (Attack { name, setup, script: &script }).run() {
        assert_eq!(outcome.answers(), 0, "{:?}", outcome.shown());
        assert!(outcome.most_connections <= 4, "the bystander's and the newcomers'");
        holds(&outcome);
    }
}

#[test]
fn segments_from_the_victim_to_itself() {
    let land = |outcome: &Outcome| assert!(outcome.count("drop_land") >= MOST, "{:?}", outcome.shown());
    check("land", vec![VICTIM4.into()], VICTIM4.into(), land);
    check("land, IPv6", vec![VICTIM6.into()], VICTIM6.into(), land);
}

#[test]
fn sources_that_cannot_be() {
    // A group as a source is found by whoever looks first.
    let martian = |outcome: &Outcome| {
        let dropped = outcome.count("drop_martian_source") + outcome.count("drop_tcp_broadcast");
        assert!(dropped >= MOST, "{:?}", outcome.shown());
    };
    let sources = [
        "127.0.0.1",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "10.0.0.255",
    ];
    check(
        "martians, broadcast sources",
        sources.iter().map(|ip| ip.parse().unwrap()).collect(),
        VICTIM4.into(),
        martian,
    );
    let sources = ["::1", "::", "ff02::1", "ff0e::1"];
    check("martians, IPv6", sources.iter().map(|ip| ip.parse().unwrap()).collect(), VICTIM6.into(), martian);
}

#[test]
fn segments_to_everybody() {
    for destination in ["10.0.0.255", "255.255.255.255", "224.0.0.1"] {
        check("SYN to broadcast", vec![BYSTANDER4.into()], destination.parse().unwrap(), |outcome| {
            let dropped = ["drop_tcp_broadcast", "drop_not_our_address", "drop_ethernet_not_for_us"];
            assert!(
                dropped.iter().map(|name| outcome.count(name)).sum::<u64>() >= MOST,
                "{:?}",
                outcome.shown()
            );
        });
    }
    let group: Ipv6Addr = "ff02::1".parse().unwrap();
    check("SYN to multicast, IPv6", vec![BYSTANDER6.into()], group.into(), |outcome| {
        let dropped = ["drop_tcp_broadcast", "drop_not_our_address"];
        assert!(dropped.iter().map(|name| outcome.count(name)).sum::<u64>() >= MOST, "{:?}", outcome.shown());
    });
}
