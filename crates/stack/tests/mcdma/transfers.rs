//! A mebibyte each way under each fault, and under all together, byte by byte.

use super::world::{SIZES, Sizes, World};
use super::*;
use crate::model::Faults;
use crate::model::mac::ALL;
use linerate_nic::mcdma::nic_regs::register;
use linerate_nic::mcdma::{AppWords, Seeding};
use linerate_nic::{PacingConfig, PacingMode};

const LEN: usize = 1 << 20;

/// Bound of virtual time: what a stall of five seconds or a lost interrupt takes, many times.
const LIMIT: Duration = Duration::from_secs(1_200);

/// Seeds of everything at once.
const SEEDS: u64 = 3;

fn check(name: &str, faults: &Faults) -> World {
    check_with(name, faults, |_| {})
}

fn check_with(name: &str, faults: &Faults, prepare: impl FnOnce(&mut World)) -> World {
    let mut world = World::new(7, LEN);
    world.with(|hardware| hardware.faults = faults.clone());
    prepare(&mut world);
    let is_done = world.run(LIMIT, |world| world.is_done());
    let stats = [world.hosts[0].stats(), world.hosts[1].stats()];
    let received = world.hosts.each_ref().map(|host| host.received.len());
    assert!(is_done, "{name}: {received:?} bytes after {:?}: {stats:?}", world.now);
    world
}

fn late() -> Faults {
    Faults { late: 500, late_by: Duration::from_millis(3), ..Faults::default() }
}

#[test]
fn without_faults_the_loops_sleep_and_nothing_is_reset() {
    let mut world = check("none", &Faults::default());
    assert!(world.now < Instant::from_millis(200), "{:?}", world.now);
    for host in &mut world.hosts {
        let stats = host.stats();
        assert!(host.woken > 10 && host.slept >= host.woken, "{} of {}", host.woken, host.slept);
        assert_eq!((stats.stalls, stats.failures, stats.receive_no_buffer, stats.copied), (0, 0, 0, 0));
        assert_eq!(host.node.port.stats().tx.software_checksums, 0, "the hardware sums");
        assert_eq!(host.node.port.stats().rx.software_good, 0);
    }
    world.check();
}

/// Neighbour discovery needs frames to groups, which the MAC's filter lets through by their hash.
#[test]
fn over_version_6_of_the_protocol() {
    let mut world = World::with_sizes("[fd00::2]:80", 7, LEN, SIZES);
    assert!(world.run(Duration::from_secs(5), |world| world.is_done()), "{:?}", world.now);
    for host in &mut world.hosts {
        assert_eq!(host.node.port.stats().tx.software_checksums, 0, "the hardware sums");
        assert_eq!(host.stats().failures + host.stats().stalls, 0);
    }
    world.check();
}

/// Every layout of the app words, both ways of the pseudo-header's sum, and with every offload built in or none.
#[test]
fn with_hardware_of_every_kind() {
    for address in ["10.0.0.2:80", "[fd00::2]:80"] {
        for words in [AppWords::TenGig, AppWords::AxiEthernet] {
            for (seeding, features) in [(Seeding::Field, ALL), (Seeding::Word, ALL), (Seeding::Field, 0)] {
                let sizes = Sizes { words, seeding, features, ..SIZES };
                let mut world = World::with_sizes(address, 7, LEN, sizes);
                let name = format!("{address} {words:?} {seeding:?} {features:#x}");
                assert!(world.run(Duration::from_secs(5), |world| world.is_done()), "{name}");
                for host in &mut world.hosts {
                    let (stats, port) = (host.stats(), host.node.port.stats());
                    let is_plain = features == 0;
                    assert_eq!(port.tx.software_checksums > 0, is_plain, "{name}: {port:?}");
                    assert_eq!(stats.received_joined > 10, !is_plain, "{name}: {stats:?}");
                    assert_eq!((stats.failures, stats.stalls, stats.refused), (0, 0, 0), "{name}");
                }
                world.check();
            }
        }
    }
}

#[test]
fn with_interrupts_paced() {
    for threshold in [4, 64] {
        let mut world = World::new(7, LEN);
        for host in &mut world.hosts {
            let (mode, timer_ticks) = (PacingMode::LastNewPacket, 2);
            let pacing = PacingConfig { mode, timer_ticks, tick_ns: 25_000, threshold };
            host.node.port.device_mut().queue.set_pacing(pacing).expect("it has this");
        }
        assert!(world.run(Duration::from_secs(1), |world| world.is_done()), "{threshold}");
        world.check();
    }
}

#[test]
fn rings_and_pools_that_are_too_small() {
    let features = ALL & !(register::FEATURES_TSO | register::FEATURES_LRO);
    for (ring, receive, transmit) in [(20, 256, 64), (64, 256, 4), (64, 80, 64), (20, 20, 2)] {
        let mut world =
            World::with_sizes("10.0.0.2:80", 7, LEN, Sizes { features, ring, receive, transmit, ..SIZES });
        assert!(world.run(LIMIT, |world| world.is_done()), "{ring} {receive} {transmit}: {:?}", world.now);
        let stats = world.hosts.each_mut().map(|host| host.stats());
        let has_waited = stats.iter().all(|stats| stats.ring_full + stats.no_header_buffer > 10);
        // With few receive buffers windows are so small that nothing has to wait.
        assert_eq!(has_waited, receive == 256, "{ring} {receive} {transmit}: {stats:?}");
        world.check();
    }
}

#[test]
fn completions_late() {
    check("late", &late()).check();
}

#[test]
fn completions_in_any_order() {
    let mut world = check("any order", &Faults { any_order: true, ..late() });
    // A descriptor that was used again too early would be found complete by the engine.
    assert!(world.hosts.iter_mut().all(|host| host.stats().failures == 0));
    world.check();
}

#[test]
fn completions_that_never_come() {
    let mut world = check("never", &Faults { never: 3, ..Faults::default() });
    assert!(world.hosts.iter_mut().any(|host| host.stats().stalls > 0));
    world.check();
}

#[test]
fn interrupts_lost() {
    check("lost interrupts", &Faults { lost_interrupt: 200, ..Faults::default() }).check();
}

#[test]
fn interrupts_without_cause() {
    check("spurious interrupts", &Faults { spurious: 500, ..Faults::default() }).check();
}

#[test]
fn descriptors_in_error() {
    let mut world = check("errors", &Faults { channel_error: 30, packet_error: 5, ..Faults::default() });
    assert!(world.hosts.iter_mut().any(|host| host.stats().failures > 0));
    world.check();
}

#[test]
fn channels_that_forget_everything() {
    let mut world = check("resets", &Faults { self_reset: 5, ..Faults::default() });
    assert!(world.hosts.iter_mut().any(|host| host.stats().failures > 0));
    world.check();
}

#[test]
fn frames_lost() {
    check("loss", &Faults { frame_loss: 10, ..Faults::default() }).check();
}

#[test]
fn memory_that_the_device_does_not_reach() {
    let mut world = check_with("reach", &Faults::default(), |world| {
        world.with(|hardware| hardware.memory.reaches_only_pools = true);
    });
    assert!(world.hosts.iter_mut().all(|host| host.stats().copied > 20));
    world.check();
}

fn flap(world: &mut World) {
    let mut at = world.now + Duration::from_millis(1);
    for down_ms in [1, 300, 6_000, 20] {
        world.link.push_back((at, false));
        world.link.push_back((at + Duration::from_millis(down_ms), true));
        at += Duration::from_millis(down_ms + 500);
    }
}

#[test]
fn a_link_that_goes_down_and_up() {
    let mut world = check_with("link", &Faults::default(), flap);
    assert!(world.hosts.iter_mut().all(|host| host.stats().stalls == 0), "that was the link, not the engine");
    world.check();
}

#[test]
fn resets_while_running() {
    let (mut count, mut next) = (0, Instant::from_millis(2));
    let mut world = World::new(7, LEN);
    let is_done = world.run(LIMIT, |world| {
        if world.now >= next {
            let host = &mut world.hosts[count % 2];
            host.node.port.device_mut().queue.reset().expect("the engine stops");
            host.wake();
            count += 1;
            next = world.now + Duration::from_millis(1);
        }
        world.is_done()
    });
    assert!(is_done && count > 3, "{count} resets until {:?}", world.now);
    world.check();
}

#[test]
fn everything_at_once() {
    let all = Faults {
        any_order: true,
        never: 1,
        lost_interrupt: 50,
        spurious: 50,
        channel_error: 2,
        self_reset: 2,
        packet_error: 2,
        frame_loss: 5,
        ..late()
    };
    for seed in 1..=SEEDS {
        let mut world = World::new(seed, LEN);
        // A neighbour that cannot be found for seconds is a reason to give up; it is found before the trouble begins.
        assert!(world.run(LIMIT, |world| world.hosts.iter().all(|host| !host.received.is_empty())));
        world.with(|hardware| {
            hardware.faults = all.clone();
            hardware.memory.reaches_only_pools = true;
        });
        flap(&mut world);
        let is_done = world.run(LIMIT, |world| world.is_done());
        let stats = [world.hosts[0].stats(), world.hosts[1].stats()];
        assert!(is_done, "seed {seed}: after {:?}: {stats:?}", world.now);
        world.check();
    }
}

/// The last packet is lost on the way, and its completion comes late, with an interrupt or without: only the timer that is
/// armed then brings it to the other side.
#[test]
fn the_timer_of_the_last_packet_is_armed_however_late_its_completion_is() {
    for (late_ms, lost_interrupt) in [(0, 0), (400, 0), (3_000, 0), (400, 1_000)] {
        let mut world = World::new(7, 1_000);
        world.hosts.iter_mut().for_each(|host| host.holds = true);
        let has_all = |world: &World, len| world.hosts.iter().all(|host| host.received.len() == len);
        assert!(world.run(Duration::from_secs(5), |world| has_all(world, 1_000)));
        // Whatever else is due comes to an end.
        world.run(Duration::from_secs(5), |_| false);
        let late_by = Duration::from_millis(late_ms);
        let faults = Faults { late: 1_000, late_by, late_exactly: true, lost_interrupt, ..Faults::default() };
        world.hosts[0].board.with(|hardware| hardware.faults = faults);
        world.hosts[1].board.with(|hardware| hardware.faults.frame_loss = 1_000);
        let before = world.hosts[0].stats().sent;
        world.hosts[0].add(b"the last");
        world.run(Duration::from_millis(1), |_| false);
        assert_eq!(world.hosts[0].stats().sent, before + 1);
        world.hosts[1].board.with(|hardware| hardware.faults.frame_loss = 0);
        let start = world.now;
        let came = world.run(Duration::from_secs(30), |world| world.hosts[1].received.ends_with(b"the last"));
        assert!(came, "late by {late_ms} ms, {lost_interrupt} interrupts of 1000 lost");
        assert!(world.now - start < late_by + Duration::from_secs(3), "after {:?}", world.now - start);
    }
}
