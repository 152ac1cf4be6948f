//! The short ways of what nearly all segments are do exactly what the long ones do: the same transfer with and without them,
//! compared in every field of both connections after every step.

use super::world::{Network, World};
use super::{SHORTCUTS_OFF, config};
use crate::tcp::Config;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{BufferSize, Congestion, Ecn, Pacing, SocketOptions};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    bytes: [u64; 2],
    /// Loss, reordering, duplicates; per thousand.
    faults: [u64; 3],
    has_sack: bool,
    has_timestamps: bool,
    is_cubic: bool,
    is_paced: bool,
    has_ecn: bool,
    nodelay: bool,
    /// Bytes per call.
    piece: u64,
    buffer: Option<usize>,
    coalesce: usize,
    has_device: bool,
    max_payload: usize,
    /// The receiver pauses after so many steps, and reads again after as many.
    pause: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let switches = proptest::array::uniform7(any::<bool>());
    let sizes = (0u64..40_000, 0u64..30_000, 1u64..20_000, 1usize..9, 0usize..400);
    let faults = prop_oneof![1 => Just([0; 3]), 4 => [0u64..80, 0u64..200, 0u64..200]];
    let buffer = prop_oneof![Just(None), (4_000usize..100_000).prop_map(Some)];
    let max_payload = prop_oneof![Just(0usize), Just(20_000)];
    (any::<u64>(), switches, sizes, faults, buffer, max_payload).prop_map(
        |(seed, [sack, stamps, cubic, paced, ecn, nodelay, device], sizes, faults, buffer, max_payload)| {
            Case {
                seed,
                bytes: [sizes.0, sizes.1],
                faults,
                has_sack: sack,
                has_timestamps: stamps,
                is_cubic: cubic,
                is_paced: paced,
                has_ecn: ecn,
                nodelay,
                piece: sizes.2,
                buffer,
                coalesce: sizes.3,
                has_device: device,
                max_payload,
                pause: sizes.4,
            }
        },
    )
}

fn config_of(case: &Case) -> Config {
    let plain = config();
    let size = case.buffer.map_or(BufferSize::Auto { max: 1 << 20 }, BufferSize::Fixed);
    let socket = SocketOptions {
        congestion: if case.is_cubic { Congestion::Cubic } else { Congestion::NewReno },
        pacing: if case.is_paced { Pacing::Auto } else { Pacing::Off },
        ecn: if case.has_ecn { Ecn::Request } else { Ecn::Accept },
        no_delay: case.nodelay,
        receive_buffer: size,
        send_buffer: size,
        ..plain.socket
    };
    Config { sack: case.has_sack, timestamps: case.has_timestamps, socket, ..plain }
}

fn world(case: &Case) -> World {
    let [loss, reorder, duplicate] = case.faults;
    let network = Network { loss, reorder, duplicate, ..Network::default() };
    let mut world = World::new(case.seed, network, config_of(case), config_of(case));
    for (index, side) in world.sides.iter_mut().enumerate() {
        side.to_send = case.bytes[index];
        side.piece = case.piece;
        side.coalesce = case.coalesce;
        side.limits.max_payload = case.max_payload;
    }
    if case.has_device {
        world.set_device(0, Duration::from_micros(20), 16);
        world.set_device(1, Duration::from_micros(20), 16);
    }
    world
}

/// The state after each step, as far as it is short enough to be compared.
fn run(case: &Case, is_short: bool) -> Vec<String> {
    SHORTCUTS_OFF.set(!is_short);
    let mut world = world(case);
    let mut seen = Vec::new();
    let mut steps = 0;
    for _ in 0..4_000 {
        let goes_on = world.run_until(Duration::from_secs(100), |_| true);
        let [a, b] = &world.sides;
        let (ca, cb) = (&a.connection, &b.connection);
        seen.push(format!("{:?} {} {} {ca:?} {cb:?} {:?} {:?}", world.now, a.read, b.read, a.ready, b.ready));
        steps += 1;
        if case.pause > 0 && steps % case.pause == 0 {
            world.sides[1].reads ^= true;
            // As if memory were short, and nothing had come for a while.
            world.sides[steps % 2].connection.rest();
        }
        if !goes_on || !world.go_to_next() {
            break;
        }
    }
    SHORTCUTS_OFF.set(false);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn the_short_way_is_the_long_way(case in case()) {
        let (short, long) = (run(&case, true), run(&case, false));
        for (step, (short, long)) in short.iter().zip(&long).enumerate() {
            prop_assert_eq!(short, long, "step {}", step);
        }
        prop_assert_eq!(short.len(), long.len());
    }
}
