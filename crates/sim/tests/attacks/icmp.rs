//! Lies about the bystander's connection: "unreachable", "too big", with quotes that guess (RFC 5927).

use super::arena::{Attack, Outcome, Scene, Setup};
use super::frames::*;
use super::script::Flood;
use linerate_sim::Random;
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{Builder, Flags, SeqNumber};
use linerate_wire::{ipv4, ipv6};
use std::net::{IpAddr, SocketAddr};

const PER_SECOND: u64 = 20_000;

/// What a router quotes: headers of a packet of 1,500 bytes from the victim to the bystander, with this number.
fn quote(from: SocketAddr, to: SocketAddr, sequence: u32) -> Vec<u8> {
    let segment = Builder {
        source_port: from.port(),
        destination_port: to.port(),
        sequence: SeqNumber(sequence),
        flags: Flags::ACK,
        ..Builder::default()
    };
    let mut bytes = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut bytes = vec![0; 20];
            ipv4::Builder::new(from, to, Protocol::TCP, 1_480).emit(&mut bytes).unwrap();
            bytes
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut bytes = vec![0; 40];
            ipv6::Builder::new(from, to, Protocol::TCP, 1_460).emit(&mut bytes).unwrap();
            bytes
        }
        _ => unreachable!("both are of one family"),
    };
    let ip_len = bytes.len();
    bytes.resize(ip_len + 20, 0);
    segment.emit(&mut bytes[ip_len..]).unwrap();
    bytes
}

/// Type and code, and the four bytes after the checksum.
type Error = ((u8, u8), u32);

/// A flood of errors, type and code and rest by number, about the connection's ports or guessed ones.
fn check(
    name: &str,
    ipv6: bool,
    knows_ports: bool,
    error: fn(u64, &mut Random) -> Error,
    holds: impl Fn(&Outcome),
) {
    let script = |scene: &Scene| -> Box<dyn super::script::Script> {
        let (from, to) = (scene.victim, scene.bystander);
        Box::new(Flood::new(PER_SECOND, move |n, random| {
            let port = if knows_ports { to.port() } else { 1_024 + (n % 64_000) as u16 };
            // Never the right port by chance: that is the other case.
            let port = if !knows_ports && port == to.port() { 1 } else { port };
            let (kind, rest) = error(n, random);
            let quoted = quote(from, SocketAddr::new(to.ip(), port), random.next_u64() as u32);
            icmp_error(ipv6, kind, rest, &quoted)
        }))
    };
    let setup = Setup { ipv6, ..Setup::default() };
    for outcome in (Attack { name, setup, script: &script }).run() {
        assert_eq!(outcome.answers(), 0, "no ICMP error is answered");
        holds(&outcome);
    }
}

/// All codes of "unreachable", "time exceeded" and "parameter problem".
fn unreachable4(n: u64, _: &mut Random) -> Error {
    (
        [(3, 0), (3, 1), (3, 2), (3, 3), (3, 9), (3, 10), (3, 13), (11, 0), (11, 1), (12, 0), (4, 0)]
            [n as usize % 11],
        0,
    )
}

fn unreachable6(n: u64, _: &mut Random) -> Error {
    ([(1, 0), (1, 1), (1, 3), (1, 4), (3, 0), (3, 1), (4, 0), (4, 1)][n as usize % 8], 0)
}

/// "Fragmentation needed" with sizes from absurd to plausible.
fn too_big4(n: u64, _: &mut Random) -> Error {
    ((3, 4), [0, 1, 68, 296, 552, 576, 1_000, 1_280, 1_400][n as usize % 9])
}

/// "Packet too big" with sizes from absurd to plausible.
fn too_big6(n: u64, _: &mut Random) -> Error {
    ((2, 0), [0, 1, 68, 1_279, 1_280, 1_400, u32::MAX][n as usize % 7])
}

#[test]
fn errors_that_quote_guessed_ports() {
    let unknown = |outcome: &Outcome| {
        let dropped = outcome.count("drop_icmp_error_unknown") + outcome.count("drop_icmp_type");
        assert!(dropped >= 19_000, "{:?}", outcome.shown());
        assert_eq!(outcome.count("path_mtu_lowered"), 0);
    };
    check("unreachable, ports guessed", false, false, unreachable4, unknown);
    check("unreachable, ports guessed, IPv6", true, false, unreachable6, unknown);
}

#[test]
fn errors_that_quote_guessed_numbers() {
    let not_in_flight = |outcome: &Outcome| {
        let dropped = outcome.count("drop_icmp_error_not_in_flight") + outcome.count("drop_icmp_type");
        assert!(dropped >= 19_000, "{:?}", outcome.shown());
    };
    check("unreachable, ports known", false, true, unreachable4, not_in_flight);
    check("unreachable, ports known, IPv6", true, true, unreachable6, not_in_flight);
}

#[test]
fn lies_about_the_path_mtu_with_guessed_ports() {
    let nothing =
        |outcome: &Outcome| assert_eq!(outcome.count("path_mtu_lowered"), 0, "{:?}", outcome.shown());
    check("too big, ports guessed", false, false, too_big4, nothing);
    check("too big, ports guessed, IPv6", true, false, too_big6, nothing);
}

#[test]
fn lies_about_the_path_mtu_with_known_ports() {
    let few = |outcome: &Outcome| {
        let refused =
            outcome.count("drop_icmp_error_not_in_flight") + outcome.count("drop_icmp_too_big_absurd");
        assert!(refused >= 19_000, "{:?}", outcome.shown());
    };
    check("too big, ports known", false, true, too_big4, few);
    check("too big, ports known, IPv6", true, true, too_big6, few);
}
