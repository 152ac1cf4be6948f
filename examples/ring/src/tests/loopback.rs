//! The self-test through the MAC's loopback, on hardware that does what it says and on hardware that does not.

use super::world::{self, World};
use super::*;
use crate::self_test;
use linerate_nic::selftest::{Failure, Outcome};
use linerate_nic::{Feature, Port, PortConfig};

fn report(board: &Board) -> (world::Device, linerate_nic::selftest::Report) {
    let (receive, transmit) = (board.pool(128, 2_048, true), board.pool(64, 1_536, false));
    let (mut device, _) = world::device(1, board, 64, &receive, &transmit);
    let mut now = Instant::from_millis(1);
    let report = self_test(&mut device, 20, || {
        now += Duration::from_micros(20);
        board.with(|hardware| hardware.step(now));
        now
    });
    (device, report.expect("the filter is set"))
}

#[test]
fn honest_hardware_passes() {
    let board = Board::new(1);
    let (device, report) = report(&board);
    for (feature, outcome) in report.outcomes {
        let expected = if device.capabilities().has(feature) { Outcome::Passed } else { Outcome::NotClaimed };
        assert_eq!(outcome, expected, "{feature}");
    }
    assert!(board.with(|hardware| hardware.wire.is_empty()), "nothing has left");
    assert!(!board.with(|hardware| hardware.mac.is_looped()));
}

#[test]
fn hardware_that_lies_is_distrusted_and_the_transfer_is_right() {
    let board = Board::new(1);
    board.with(|hardware| (hardware.faults.transmit_lies, hardware.faults.receive_lies) = (true, true));
    let (device, report) = report(&board);
    let failed = report.failed();
    assert!(failed.tx_checksum4 && failed.tx_checksum6 && failed.rx_checksum && !failed.gather);
    let rx = report.outcomes.iter().find(|(feature, _)| *feature == Feature::RxChecksum).expect("it");
    assert_eq!(rx.1, Outcome::Failed(Failure::CorruptionUnnoticed));
    let mut port = Port::new(device, PortConfig::default()).expect("a port");
    let enabled = port.distrust(failed).expect("it can be switched off");
    assert!(enabled.gather && !enabled.tx_checksum4 && !enabled.rx_checksum);

    let mut world = World::new(1, 1 << 20);
    world.with(|hardware| (hardware.faults.transmit_lies, hardware.faults.receive_lies) = (true, true));
    for host in &mut world.hosts {
        host.node.port.distrust(failed).expect("it can be switched off");
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
