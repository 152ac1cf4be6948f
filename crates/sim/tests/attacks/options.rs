//! Bombs of TCP options: unknown, repeated, of impossible lengths, SACK blocks that make no sense (RFC 9293 section 3.1,
//! RFC 2018, RFC 7323).

use super::arena::{Attack, Scene, Setup};
use super::frames::*;
use super::script::{Flood, Script};
use super::server::PORT;
use linerate_sim::Random;
use linerate_wire::tcp::Flags;
use linerate_wire::units::Instant;
use std::net::{Ipv4Addr, SocketAddr};

const PER_SECOND: u64 = 50_000;

/// Forty bytes of options of one kind of nonsense.
fn bomb(n: u64, random: &mut Random, around: u32) -> [u8; 40] {
    let mut bytes = [0; 40];
    match n % 8 {
        0 => bytes.copy_from_slice(&[254u8, 2].repeat(20)),
        1 => bytes.copy_from_slice(&[2u8, 4, 0, 0].repeat(10)),
        2 => bytes.fill(1),
        3 => bytes[..2].copy_from_slice(&[8, 0]),
        4 => bytes[..4].copy_from_slice(&[2, 255, 5, 180]),
        5 => {
            bytes.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random.next_u64().to_be_bytes()))
        }
        6 => sack(&mut bytes, [0; 4].map(|_| [random.next_u64() as u32, random.next_u64() as u32])),
        _ => {
            // Near what is in flight: single bytes, backwards, overlapping, beyond.
            let mut near = || around.wrapping_add(random.below(40_000) as u32).wrapping_sub(5_000);
            let left = near();
            sack(
                &mut bytes,
                [[left, left.wrapping_add(1)], [near(), near()], [near(), near()], [left, near()]],
            );
        }
    }
    bytes
}

/// Four SACK blocks and their padding.
fn sack(bytes: &mut [u8; 40], blocks: [[u32; 2]; 4]) {
    bytes[..4].copy_from_slice(&[1, 1, 5, 34]);
    let edges = blocks.as_flattened();
    for (place, edge) in bytes[4..36].chunks_exact_mut(4).zip(edges) {
        place.copy_from_slice(&edge.to_be_bytes());
    }
}

#[test]
fn syns_with_forty_bytes_of_nonsense() {
    let script = |_: &Scene| -> Box<dyn Script> {
        Box::new(Flood::new(PER_SECOND, |n, random| {
            let source = SocketAddr::new(Ipv4Addr::from_bits(0x1400_0000 + n as u32).into(), 5_000);
            let syn = with(Flags::SYN, random.next_u64() as u32, 0);
            segment_with(source, SocketAddr::new(VICTIM4.into(), PORT), syn, &bomb(n, random, 0))
        }))
    };
    for outcome in (Attack { name: "SYN option bombs", setup: Setup::default(), script: &script }).run() {
        let answers = outcome.traffic.answers;
        assert!(answers.wire_bytes <= outcome.traffic.sent.wire_bytes, "{answers:?}");
        assert!(outcome.count("syn_cookies_sent") > 40_000, "{:?}", outcome.shown());
    }
}

type MakeFrame = Box<dyn FnMut(u64, &mut Random) -> Vec<u8>>;

/// A client that fetches the object, never acknowledges a byte of it in earnest, and sends bombs instead.
struct Bomber {
    flood: Flood<MakeFrame>,
    state: std::rc::Rc<std::cell::Cell<Option<(u32, u32)>>>,
    started: bool,
}

fn from() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(20, 0, 0, 1).into(), 30_000)
}

fn to() -> SocketAddr {
    SocketAddr::new(VICTIM4.into(), PORT)
}

impl Bomber {
    fn new() -> Bomber {
        let state = std::rc::Rc::<std::cell::Cell<Option<(u32, u32)>>>::default();
        let known = state.clone();
        let frame = move |n: u64, random: &mut Random| {
            let (next, ack) = known.get().unwrap_or((1, 0));
            segment_with(from(), to(), with(Flags::ACK, next, ack), &bomb(n, random, ack))
        };
        Bomber { flood: Flood::new(PER_SECOND, Box::new(frame)), state, started: false }
    }
}

impl Script for Bomber {
    fn tick(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        if self.state.get().is_some() {
            return self.flood.tick(now, out);
        }
        if !self.started {
            self.started = true;
            let syn = linerate_wire::tcp::Builder {
                options: linerate_wire::tcp::Options { timestamps: None, ..modern() },
                ..with(Flags::SYN, 0, 0)
            };
            out.push(segment(from(), to(), syn, &[]));
        }
    }

    fn hear(&mut self, _: Instant, frame: &[u8], _: &mut Vec<Vec<u8>>) {
        let Some(heard) = hear(frame).filter(|heard| heard.port == from().port()) else { return };
        if heard.flags.contains(Flags::SYN) && self.state.get().is_none() {
            self.state.set(Some((1, heard.seq.0.wrapping_add(1))));
        }
    }
}

#[test]
fn acknowledgements_with_forty_bytes_of_nonsense() {
    let script = |_: &Scene| -> Box<dyn Script> { Box::new(Bomber::new()) };
    for outcome in (Attack { name: "ACK option bombs", setup: Setup::default(), script: &script }).run() {
        let traffic = outcome.traffic;
        assert!(
            traffic.sent.packets > 45_000 && traffic.answers.packets < traffic.sent.packets,
            "{traffic:?}"
        );
        assert!(outcome.most_used < 12 << 20, "{}", outcome.most_used);
    }
}
