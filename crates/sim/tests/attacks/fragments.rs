//! Fragments of both families: overlapping, tiny, too long, never completed (RFC 791, RFC 1858, RFC 5722, RFC 8200).

use super::arena::{Attack, Outcome, Setup};
use super::frames::*;
use super::script::Flood;
use linerate_sim::Random;
use linerate_wire::ip::Protocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const PER_SECOND: u64 = 50_000;

/// Fragments made from their number and chance; for each family the source that `frame` is to use: the bystander's
/// address for even numbers, anybody's on the link for odd ones.
fn check(
    name: &str,
    frame: impl Fn(IpAddr, u64, &mut Random) -> Vec<u8> + Copy + 'static,
    holds: impl Fn(&Outcome),
) {
    for ipv6 in [false, true] {
        let source = move |n: u64| -> IpAddr {
            let other = n % 2 == 1;
            let last = 10 + (n / 2 % 200) as u16;
            match ipv6 {
                false if other => Ipv4Addr::new(10, 0, 0, last as u8).into(),
                false => BYSTANDER4.into(),
                true if other => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, last).into(),
                true => BYSTANDER6.into(),
            }
        };
        let name = format!("{name}, IPv{}", if ipv6 { 6 } else { 4 });
        let setup = Setup { ipv6, ..Setup::default() };
        let attack = Attack {
            name: &name,
            setup,
            script: &move |_| Box::new(Flood::new(PER_SECOND, move |n, random| frame(source(n), n, random))),
        };
        for outcome in attack.run() {
            // Errors ("reassembly time exceeded", "parameter problem") have a limit of 100 a second.
            assert!(outcome.count("icmp_errors_out") <= 400, "{:?}", outcome.shown());
            holds(&outcome);
        }
    }
}

#[test]
fn fragments_that_overlap() {
    check(
        "overlapping fragments",
        |source, n, _| {
            // Pairs of one source and one identification: bytes 0 to 1,000 and 504 to 1,504.
            let (pair, second) = (n / 4, n / 2 % 2 == 1);
            let (offset, more) = if second { (504, false) } else { (0, true) };
            fragment(source, Protocol::UDP, pair as u32, (offset, more), &[n as u8; 1_000])
        },
        |outcome| assert!(outcome.count("drop_fragment_overlap") > 5_000, "{:?}", outcome.shown()),
    );
}

#[test]
fn fragments_that_are_tiny() {
    check(
        "tiny fragments",
        |source, n, _| {
            // A TCP header in pieces of 8 bytes: the second hides the flags.
            let offset = if n / 2 % 2 == 0 { 0 } else { 8 };
            fragment(source, Protocol::TCP, n as u32 / 4, (offset, true), &[n as u8; 8])
        },
        |outcome| assert!(outcome.count("drop_fragment_tiny") > 20_000, "{:?}", outcome.shown()),
    );
}

#[test]
fn fragments_beyond_the_longest_datagram() {
    check(
        "fragments too long",
        |source, n, _| {
            let offset = if n % 3 == 0 { 0 } else { 65_528 };
            fragment(source, Protocol::UDP, n as u32, (offset, offset == 0), &[0; 800])
        },
        |outcome| assert!(outcome.count("drop_fragment_too_long") > 20_000, "{:?}", outcome.shown()),
    );
}

#[test]
fn fragments_of_datagrams_that_never_become_complete() {
    check(
        "fragment flood",
        |source, _, random| {
            let offset = 8 * random.below(180) as u16;
            fragment(source, Protocol::UDP, random.next_u64() as u32, (offset, true), &[0; 64])
        },
        |outcome| {
            assert!(outcome.count("drop_reassembly_full") > 40_000, "{:?}", outcome.shown());
            assert!(outcome.count("drop_reassembly_timeout") <= 32, "no more than there are buffers");
        },
    );
}

#[test]
fn fragments_with_as_many_holes_as_can_be() {
    check(
        "fragments with holes",
        |source, n, random| {
            let offset = 16 * random.below(4_000) as u16;
            fragment(source, Protocol::UDP, (n / 8_000) as u32, (offset, true), &[0; 8])
        },
        |outcome| {
            let dropped = ["drop_fragment_holes", "drop_fragment_overlap", "drop_reassembly_full"];
            let dropped: u64 = dropped.iter().map(|name| outcome.count(name)).sum();
            assert!(dropped > 20_000, "{:?}", outcome.shown());
        },
    );
}
