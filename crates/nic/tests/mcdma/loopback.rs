//! The self-test through the MAC's loopback, on hardware that does what it says and on hardware that does not.

use super::*;
use linerate_nic::mcdma::{AppWords, Seeding, self_test};
use linerate_nic::selftest::{Failure, Outcome, Report};
use linerate_nic::{Feature, Port, PortConfig};

fn report(board: &Board, seeding: Seeding) -> (Joined<Control<Board>, Queue<Board>>, Report) {
    let settings = Settings { transmit_ring: 64, receive_ring: 64, seeding, ..Settings::new(MAC) };
    let mut device = device(board, &settings);
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
    for words in [AppWords::TenGig, AppWords::AxiEthernet] {
        for seeding in [Seeding::Field, Seeding::Word] {
            for reaches_only_pools in [false, true] {
                let board = Board::new(1);
                board.with(|hardware| {
                    (hardware.words, hardware.memory.reaches_only_pools) = (words, reaches_only_pools);
                });
                let (device, report) = report(&board, seeding);
                assert_eq!(device.capabilities(), Capabilities::ALL);
                for (feature, outcome) in report.outcomes {
                    assert_eq!(outcome, Outcome::Passed, "{feature} {words:?} {seeding:?}");
                }
                assert!(board.with(|hardware| hardware.wire.is_empty()), "nothing has left");
                assert!(!board.with(|hardware| hardware.mac.is_looped()));
            }
        }
    }
}

#[test]
fn a_frame_for_somebody_else_is_not_received_around_the_test() {
    let board = Board::new(1);
    let mut device = device(&board, &Settings { transmit_ring: 64, receive_ring: 64, ..Settings::new(MAC) });
    // One comes with each access of the driver.
    let step = Duration::from_micros(1);
    let mut now = Instant::from_millis(1);
    board.with(|hardware| {
        hardware.access = step;
        (0..30_000).for_each(|at| hardware.arrive(now + step * at, frame(1, 60, PEER)));
    });
    self_test(&mut device, 20, || {
        now += Duration::from_micros(20);
        now
    })
    .expect("the filter is set");
    assert!(board.with(|hardware| hardware.now) < Instant::from_millis(30), "frames came until the end");
    board.with(|hardware| hardware.access = Duration::ZERO);
    let mut batch = RxBatch::with_limit(64);
    assert_eq!(device.receive(Instant::from_millis(40), &mut batch), Ok(0));
}

/// A driver that takes the app words for those of the other layout gets no offload right.
#[test]
fn the_wrong_layout_is_found_out() {
    let board = Board::new(1);
    let words = Some(AppWords::AxiEthernet);
    let settings = Settings { transmit_ring: 64, receive_ring: 64, words, ..Settings::new(MAC) };
    let mut device = device(&board, &settings);
    let mut now = Instant::from_millis(1);
    let plain = Capabilities { gather: true, rx_checksum: true, ..Capabilities::NONE };
    board.with(|hardware| {
        use linerate_nic::mcdma::nic_regs::register as nic_regs;
        hardware.mac.features = nic_regs::FEATURES_RX_CHECKSUM;
    });
    let report = self_test(&mut device, 20, || {
        now += Duration::from_micros(20);
        board.with(|hardware| hardware.step(now));
        now
    });
    let failed = report.expect("the filter is set").failed();
    assert!(
        failed.rx_checksum && failed.tx_checksum4 && failed.tso4 && !failed.gather,
        "{failed:?} {plain:?}"
    );
}

#[test]
fn hardware_that_lies_is_distrusted_and_the_transfer_is_right() {
    let board = Board::new(1);
    board.with(|hardware| (hardware.faults.transmit_lies, hardware.faults.receive_lies) = (true, true));
    let (device, report) = report(&board, Seeding::Field);
    let failed = report.failed();
    assert!(failed.tx_checksum4 && failed.tx_checksum6 && failed.rx_checksum && !failed.gather);
    let rx = report.outcomes.iter().find(|(feature, _)| *feature == Feature::RxChecksum).expect("it");
    assert_eq!(rx.1, Outcome::Failed(Failure::CorruptionUnnoticed));
    let mut port = Port::new(device, PortConfig::default()).expect("a port");
    let enabled = port.distrust(failed).expect("it can be switched off");
    assert!(enabled.gather && !enabled.tx_checksum4 && !enabled.rx_checksum);
}
