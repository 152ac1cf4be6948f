//! Bulk transfers both ways at once, over networks of every kind.

use super::config;
use super::world::{Network, World};
use crate::tcp::Config;
use core::time::Duration;
use linerate_transport::{BufferSize, SocketOptions};

const MIB: u64 = 1 << 20;

fn check(seed: u64, network: Network, bytes: [u64; 2], prepare: impl FnOnce(&mut World)) -> World {
    let mut world = World::plain(seed, network);
    world.sides[0].to_send = bytes[0];
    world.sides[1].to_send = bytes[1];
    prepare(&mut world);
    world.run_to_end(Duration::from_secs(7_200));
    for (side, expected) in [(0, bytes[1]), (1, bytes[0])] {
        assert_eq!(world.sides[side].read, expected, "seed {seed}");
    }
    let held: usize = world.sides.iter().map(|side| side.resources.budget.used()).sum();
    assert_eq!(held, 0, "all memory came back");
    world
}

#[test]
fn clean_network_both_ways() {
    let world = check(1, Network::default(), [3 * MIB, 2 * MIB], |_| {});
    for side in &world.sides {
        let counters = side.connection.counters();
        assert_eq!((counters.retransmits, counters.timeouts), (0, 0));
        assert_eq!(counters.dropped.iter().sum::<u64>(), 0);
    }
}

#[test]
fn clean_network_with_super_segments_and_coalescing() {
    let world = check(2, Network::default(), [4 * MIB, 4 * MIB], |world| {
        for side in &mut world.sides {
            side.limits.max_payload = 65_000;
            side.coalesce = 44;
            side.piece = 64 << 10;
        }
    });
    for side in &world.sides {
        let counters = side.connection.counters();
        assert_eq!(counters.retransmits, 0);
        assert!(
            counters.acks_sent < counters.segments_received / 4,
            "one ACK per batch: {} for {}",
            counters.acks_sent,
            counters.segments_received
        );
    }
}

#[test]
fn every_loss_rate_delivers_everything() {
    for loss in [1, 5, 10, 30, 50, 100, 200] {
        let bytes = if loss <= 50 { MIB } else { MIB / 8 };
        let network = Network { loss, ..Network::default() };
        check(loss, network, [bytes, bytes], |world| {
            // Where a fifth is lost each way, six in a row happen: a minute of doubled timeouts.
            let options = SocketOptions { user_timeout: Duration::from_secs(600), ..config().socket };
            for side in &mut world.sides {
                side.connection.set_options(linerate_wire::units::Instant::ZERO, &options);
            }
        });
    }
}

#[test]
fn loss_with_super_segments() {
    for loss in [5, 20, 100] {
        let network = Network { loss, ..Network::default() };
        check(loss, network, [MIB, MIB / 2], |world| {
            for side in &mut world.sides {
                side.limits.max_payload = 65_000;
                side.coalesce = 16;
            }
        });
    }
}

#[test]
fn without_sack_timestamps_and_scaling() {
    for (sack, timestamps, window_scaling) in [
        (false, true, true),
        (true, false, true),
        (false, false, true),
        (true, true, false),
        (false, false, false),
    ] {
        for loss in [0, 10, 50] {
            let plain = Config { sack, timestamps, window_scaling, ..config() };
            let network = Network { loss, reorder: 10, ..Network::default() };
            let mut world = World::new(loss + 7, network, plain.clone(), config());
            world.sides[0].to_send = MIB / 2;
            world.sides[1].to_send = MIB / 2;
            world.run_to_end(Duration::from_secs(3_600));
        }
    }
}

#[test]
fn reordering_and_duplicates() {
    for seed in 0..5 {
        let network = Network { reorder: 100, duplicate: 50, loss: 10, ..Network::default() };
        check(seed, network, [MIB, MIB], |_| {});
    }
}

#[test]
fn a_bottleneck_with_a_short_queue() {
    let network = Network {
        delay: Duration::from_millis(10),
        bottleneck: Some((2_500_000, 30_000)),
        ..Network::default()
    };
    let world = check(5, network, [5 * MIB, 0], |_| {});
    let counters = world.sides[0].connection.counters();
    assert!(counters.fast_recoveries > 0, "the queue overflows");
    assert_eq!(counters.timeouts, 0, "and no loss takes a timeout");
    let seconds = (world.now.as_nanos() - 1_000_000_000) as f64 / 1e9;
    assert!(seconds < 2.1 * 1.5, "{seconds} s; 2.1 s at the rate of the bottleneck");
}

#[test]
fn tiny_buffers() {
    for (send, receive) in [(2_048, 2_048), (3_000, 100_000), (100_000, 4_000), (1, 1)] {
        for loss in [0, 50] {
            let socket = SocketOptions {
                send_buffer: BufferSize::Fixed(send),
                receive_buffer: BufferSize::Fixed(receive),
                ..SocketOptions::default()
            };
            let network = Network { delay: Duration::from_millis(1), loss, ..Network::default() };
            let small = Config::new(socket, 1_460);
            let mut world = World::new(3, network, small.clone(), small);
            world.sides[0].to_send = 100_000;
            world.sides[1].to_send = 50_000;
            world.run_to_end(Duration::from_secs(3_600));
        }
    }
}

#[test]
fn segment_sizes_and_pieces_of_all_kinds() {
    for (mss, piece) in [(88, 1_000), (536, 1), (1_460, 100), (1_460, 7), (1_220, 300), (8_960, 60_000)] {
        let mss: u16 = mss;
        let network = Network { loss: 5, reorder: 5, ..Network::default() };
        let sized = Config::new(SocketOptions::default(), mss.min(2_000));
        let mut world = World::new(u64::from(mss), network, config(), sized);
        world.sides[0].piece = piece;
        world.sides[1].piece = piece;
        world.sides[0].to_send = 20_000 + piece * 20;
        world.sides[1].to_send = 30_000 + piece * 20;
        world.run_to_end(Duration::from_secs(3_600));
    }
}

#[test]
fn slow_devices_on_both_sides() {
    for loss in [0, 20] {
        let network = Network { loss, ..Network::default() };
        check(11, network, [MIB / 2, MIB / 2], |world| {
            world.set_device(0, Duration::from_micros(100), 8);
            world.set_device(1, Duration::from_millis(1), 4);
        });
    }
}

#[test]
fn many_seeds() {
    for seed in 100..130 {
        let mut random = super::world::Random::new(seed);
        let network = Network {
            delay: Duration::from_micros(50 + random.below(40_000)),
            loss: random.below(60),
            reorder: random.below(60),
            duplicate: random.below(30),
            ..Network::default()
        };
        check(seed, network, [random.below(300_000), random.below(300_000)], |world| {
            for side in &mut world.sides {
                side.limits.max_payload = [0, 3_000, 65_000][random.below(3) as usize];
                side.coalesce = 1 + random.below(20) as usize;
                side.piece = 1 + random.below(20_000);
            }
        });
    }
}
