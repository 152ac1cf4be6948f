//! A platform that leaves out an operation on the cache, and hardware that lies: found out by what arrives.

use super::world::World;
use super::*;
use model::CacheOperation::{CleanHeader, CleanPayload, InvalidateAfter};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Without a clean of the payload the hardware's checksums are right, as they are over what it read: only who knows what was sent can
/// tell. What is lost for want of an invalidation before, TCP sends again; that one only costs time here.
#[test]
fn a_transfer_notices_too() {
    for left_out in [CleanHeader, CleanPayload, InvalidateAfter] {
        let mut world = World::new(1, 100_000);
        world.with(|hardware| hardware.memory.leaves_out = Some(left_out));
        let result = catch_unwind(AssertUnwindSafe(move || {
            assert!(world.run(Duration::from_secs(20), |world| world.is_done()), "it is not through");
            world.check();
        }));
        assert!(result.is_err(), "{left_out:?}: nobody noticed");
    }
}

#[test]
fn hardware_that_lies_and_is_distrusted_does_no_harm() {
    let distrusted = Capabilities { gather: false, ..Capabilities::ALL };
    let mut world = World::new(1, 1 << 20);
    world.with(|hardware| (hardware.faults.transmit_lies, hardware.faults.receive_lies) = (true, true));
    for host in &mut world.hosts {
        host.node.port.distrust(distrusted).expect("it can be switched off");
    }
    assert!(world.run(Duration::from_secs(60), |world| world.is_done()));
    assert!(world.hosts.iter().all(|host| host.node.port.stats().tx.software_checksums > 500));
    assert!(world.hosts.iter().all(|host| host.node.port.stats().rx.software_bad == 0));
    world.check();
}

#[test]
fn hardware_that_lies_and_is_trusted_gets_nothing_through() {
    let mut world = World::new(1, 1 << 20);
    world.with(|hardware| hardware.faults.transmit_lies = true);
    assert!(!world.run(Duration::from_secs(10), |world| world.is_done()));
    assert!(world.hosts.iter().any(|host| host.node.port.stats().rx.device_bad > 0));
}
