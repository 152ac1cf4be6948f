//! Segments forged in the bystander's name: blind ones that sweep the numbers, and ones by somebody who sees the
//! connection and misses only the exact number (RFC 5961, RFC 7323 section 5).
//!
//! Who sees the connection can end it by the exact number; nothing but cryptography helps against that.

use super::arena::{Attack, Outcome, Scene, Seen, Setup};
use super::frames::*;
use super::script::{Flood, Script};
use linerate_sim::Random;
use linerate_wire::tcp::{Builder, Flags, Options, Timestamps};
use std::net::SocketAddr;

const PER_SECOND: u64 = 50_000;
/// A step of a sweep over all numbers: a window without scaling, as one would who hopes to hit it once a round.
const STEP: u32 = 65_535;

/// Segments from the bystander to the victim: flags and numbers by `header`, of the packet's number, what was seen, and
/// chance.
fn forge(
    scene: &Scene,
    data: &'static [u8],
    header: impl Fn(u64, Seen, &mut Random) -> Builder + 'static,
) -> Box<dyn Script> {
    let (from, to, seen) = (scene.bystander, scene.victim, scene.seen.clone());
    Box::new(Flood::new(PER_SECOND, move |n, random| segment(from, to, header(n, seen.get(), random), data)))
}

/// Segments with guessed numbers and timestamps that were dropped.
fn guesses_dropped(outcome: &Outcome) -> u64 {
    let reasons = ["out_of_window", "duplicate", "old_timestamp", "bad_ack"];
    reasons.iter().map(|reason| outcome.count(&format!("drop_tcp_{reason}"))).sum()
}

fn check(name: &str, script: &dyn Fn(&Scene) -> Box<dyn Script>, holds: impl Fn(&Outcome)) {
    check_in(name, Setup::default(), script, holds);
}

fn check_on_path(name: &str, script: &dyn Fn(&Scene) -> Box<dyn Script>, holds: impl Fn(&Outcome)) {
    check_in(name, Setup { is_on_path: true, ..Setup::default() }, script, holds);
}

fn check_in(name: &str, setup: Setup, script: &dyn Fn(&Scene) -> Box<dyn Script>, holds: impl Fn(&Outcome)) {
    for outcome in (Attack { name, setup, script }).run() {
        assert_eq!(outcome.traffic.answers.packets, 0, "the attacker hears nothing");
        assert!(outcome.answers() * 100 <= outcome.traffic.sent.packets, "hardly an answer to anybody");
        assert_eq!(outcome.count("tcp_resets_out"), 0);
        holds(&outcome);
    }
}

#[test]
fn resets_that_sweep_all_numbers() {
    for flags in [Flags::RST, Flags::RST | Flags::ACK] {
        check(
            "RST sweep",
            &move |scene| {
                forge(scene, b"", move |n, _, random| with(flags, n as u32 * STEP, random.next_u64() as u32))
            },
            |outcome| {
                let dropped =
                    outcome.count("drop_tcp_out_of_window") + outcome.count("drop_tcp_inexact_reset");
                assert!(dropped >= 49_990, "{:?}", outcome.shown());
            },
        );
    }
}

#[test]
fn resets_of_guessed_ports() {
    check(
        "RST, all ports",
        &|scene: &Scene| {
            let (ip, to) = (scene.bystander.ip(), scene.victim);
            Box::new(Flood::new(PER_SECOND, move |n, random| {
                let reset = with(Flags::RST, random.next_u64() as u32, 0);
                segment(SocketAddr::new(ip, 1_024 + (n % 64_000) as u16), to, reset, b"")
            }))
        },
        |outcome| assert!(outcome.count("drop_tcp_no_connection") > 49_000, "{:?}", outcome.shown()),
    );
}

#[test]
fn resets_within_the_window() {
    check_on_path(
        "RST in window",
        &|scene| forge(scene, b"", |n, seen, _| with(Flags::RST, seen.next + 1 + n as u32 % 30_000, 0)),
        |outcome| {
            assert!(outcome.count("drop_tcp_inexact_reset") > 45_000, "{:?}", outcome.shown());
            let challenges = outcome.count("tcp_challenge_acks");
            assert!(challenges > 0 && challenges <= 40, "{challenges} in a second");
            assert!(outcome.count("tcp_challenge_acks_limited") > 40_000);
        },
    );
}

#[test]
fn syns_within_the_window() {
    check_on_path(
        "SYN in window",
        &|scene| {
            forge(scene, b"", |n, seen, _| Builder {
                options: Options {
                    timestamps: Some(Timestamps { value: seen.timestamp, echo: 0 }),
                    ..modern()
                },
                ..with(Flags::SYN, seen.next + n as u32 % 30_000, 0)
            })
        },
        |outcome| {
            assert!(outcome.count("drop_tcp_unexpected_syn") > 45_000, "{:?}", outcome.shown());
            assert!(outcome.count("tcp_challenge_acks_limited") > 40_000);
        },
    );
}

#[test]
fn acknowledgements_that_sweep_all_numbers() {
    let stamps = |value| Options { timestamps: Some(Timestamps { value, echo: 1 }), ..Options::default() };
    check(
        "ACK sweep",
        &|scene| {
            forge(scene, b"", move |n, _, random| Builder {
                options: stamps(random.next_u64() as u32),
                ..with(Flags::ACK, random.next_u64() as u32, n as u32 * STEP)
            })
        },
        |outcome| assert!(guesses_dropped(outcome) > 49_000, "{:?}", outcome.shown()),
    );
    check_on_path(
        "ACK of the future",
        &|scene| {
            forge(scene, b"", move |n, seen, _| Builder {
                options: stamps(seen.timestamp),
                ..with(Flags::ACK, seen.next, seen.ack + (1 << 27) + n as u32 * 1_448)
            })
        },
        |outcome| assert!(outcome.count("drop_tcp_bad_ack") > 45_000, "{:?}", outcome.shown()),
    );
}

#[test]
fn data_that_is_not_the_bystanders() {
    let stamps = |value| Options { timestamps: Some(Timestamps { value, echo: 1 }), ..Options::default() };
    check(
        "data, all guessed",
        &|scene| {
            forge(scene, b"not what was sent", move |_, _, random| Builder {
                options: stamps(random.next_u64() as u32),
                ..with(Flags::ACK, random.next_u64() as u32, random.next_u64() as u32)
            })
        },
        |outcome| assert!(guesses_dropped(outcome) > 49_000, "{:?}", outcome.shown()),
    );
    check_on_path(
        "data in window, ACK guessed",
        &|scene| {
            forge(scene, b"not what was sent", move |n, seen, random| Builder {
                options: stamps(seen.timestamp),
                ..with(
                    Flags::ACK,
                    seen.next + n as u32 % 30_000,
                    seen.ack ^ (1 << 31) ^ random.below(1 << 30) as u32,
                )
            })
        },
        |outcome| assert!(outcome.count("drop_tcp_bad_ack") > 45_000, "{:?}", outcome.shown()),
    );
    check_on_path(
        "data in window, no timestamp",
        &|scene| {
            forge(scene, b"not what was sent", |n, seen, _| {
                with(Flags::ACK | Flags::FIN, seen.next + n as u32 % 30_000, seen.ack)
            })
        },
        |outcome| assert!(outcome.count("drop_tcp_no_timestamp") > 45_000, "{:?}", outcome.shown()),
    );
}
