//! Floods of SYNs from forged sources (RFC 4987).

use super::arena::{Attack, Scene, Setup, Way};
use super::frames::*;
use super::script::{Flood, Script};
use super::server::PORT;
use linerate_wire::tcp::{Builder, Flags, Options};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An address somewhere behind the router.
fn anybody(ipv6: bool, chance: u64) -> IpAddr {
    if ipv6 {
        Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(chance)).into()
    } else {
        Ipv4Addr::from_bits(0x1400_0000 + (chance as u32 & 0x3fff_ffff)).into()
    }
}

/// SYNs at this rate with these options, every one from somebody else.
fn syns(per_second: u64, ipv6: bool, options: Options) -> Box<dyn Script> {
    let victim: IpAddr = if ipv6 { VICTIM6.into() } else { VICTIM4.into() };
    Box::new(Flood::new(per_second, move |_, random| {
        let chance = random.next_u64();
        let source = SocketAddr::new(anybody(ipv6, chance), 1_024 + (chance >> 33) as u16 % 60_000);
        let syn = Builder { options, ..with(Flags::SYN, random.next_u64() as u32, 0) };
        segment(source, SocketAddr::new(victim, PORT), syn, &[])
    }))
}

/// What must hold of any flood of SYNs.
fn check(attack: &Attack<'_>, syns: u64) {
    for outcome in attack.run() {
        let (sent, answers) = (outcome.traffic.sent, outcome.traffic.answers);
        assert_eq!(sent.packets, syns);
        // The 256 half-open connections that the backlog lets in repeat their SYN-ACK; no other answer comes twice.
        assert!(answers.packets <= sent.packets + 4 * 256, "{answers:?}");
        assert!(answers.wire_bytes <= sent.wire_bytes + 4 * 256 * 102, "no amplification: {answers:?}");
        assert!(
            outcome.most_connections <= 256 + 8,
            "the backlog is the bound: {}",
            outcome.most_connections
        );
        assert!(outcome.count("syn_cookies_sent") > syns * 95 / 100, "{:?}", outcome.shown());
        assert!(outcome.count("syn_cookies_accepted") >= 3, "the newcomers came in by cookies");
        assert_eq!(outcome.count("tcp_established"), 4, "nobody but the newcomers");
        if outcome.way == Way::Up {
            // The bystander fills the queue of the switch, in which a newcomer's only question or SYN may be lost; both come
            // again after a second.
            assert!(outcome.newcomers_ms.iter().all(|ms| *ms < 1_100.0), "{:?}", outcome.newcomers_ms);
        }
    }
}

#[test]
fn two_hundred_thousand_syns_a_second_for_ten_seconds() {
    // Slow builds take a fifth of it, to be done in time.
    let seconds = if cfg!(debug_assertions) { 2 } else { 10 };
    let setup = Setup { attack_ms: seconds * 1_000, ..Setup::default() };
    let name = format!("SYN flood, {seconds} s");
    check(&Attack { name: &name, setup, script: &|_| syns(200_000, false, modern()) }, seconds * 200_000);
}

#[test]
fn shortest_syns_and_ipv6() {
    let setup = Setup::default();
    check(
        &Attack {
            name: "SYN flood, no options",
            setup,
            script: &|_| syns(200_000, false, Options::default()),
        },
        200_000,
    );
    let setup = Setup { ipv6: true, ..setup };
    check(&Attack { name: "SYN flood, IPv6", setup, script: &|_| syns(200_000, true, modern()) }, 200_000);
}

/// During a flood, ACKs that guess cookies.
#[test]
fn guessed_cookies() {
    let script = |_: &Scene| -> Box<dyn Script> {
        Box::new(Flood::new(200_000, |n, random| {
            let source = SocketAddr::new(anybody(false, random.next_u64()), 5_000);
            let header = match n % 2 {
                0 => Builder { options: modern(), ..with(Flags::SYN, random.next_u64() as u32, 0) },
                _ => with(Flags::ACK, random.next_u64() as u32, random.next_u64() as u32),
            };
            segment(source, SocketAddr::new(VICTIM4.into(), PORT), header, &[])
        }))
    };
    for outcome in
        (Attack { name: "SYNs and guessed cookies", setup: Setup::default(), script: &script }).run()
    {
        assert!(outcome.count("syn_cookies_failed") > 90_000, "{:?}", outcome.shown());
        assert_eq!(outcome.count("tcp_established"), 4, "nobody but the newcomers");
    }
}
