//! Devices that lie are found out.

use super::*;
use crate::device::Device;
use crate::loopback::{Link, Verdict};
use crate::meta::{MacAddr, TxToken};
use crate::pool::Pool;
use crate::queue::QueuePair;

fn outcome_of<D: Interface>(device: &mut D) -> Report {
    run(device, 3, || Instant::ZERO)
}

#[test]
fn a_correct_device_passes_everything_it_claims() {
    let pool = Pool::new(64, 2048);
    let mut device = Link::looped(&pool, 1500, Capabilities::ALL, 32);
    let report = outcome_of(&mut device);
    for (feature, outcome) in report.outcomes {
        assert_eq!(outcome, Outcome::Passed, "{feature}");
    }
    assert_eq!(report.failed(), Capabilities::NONE);
    assert_eq!(device.enabled(), Capabilities::ALL, "switched back");
    assert_eq!(pool.free(), 64);
}

#[test]
fn what_is_not_claimed_is_not_tested() {
    let pool = Pool::new(64, 2048);
    let mut device = Link::looped(&pool, 1500, Capabilities::NONE, 32);
    assert!(outcome_of(&mut device).outcomes.iter().all(|(_, outcome)| *outcome == Outcome::NotClaimed));
}

#[test]
fn a_device_that_does_not_loop_back_fails() {
    let pool = Pool::new(64, 2048);
    let (mut device, _other) = Link::pair(&pool, 1500, Capabilities::ALL, 64);
    let report = outcome_of(&mut device);
    let failed = |(_, outcome): &(Feature, Outcome)| matches!(outcome, Outcome::Failed(_));
    assert!(report.outcomes.iter().all(failed), "{report:?}");
    assert_eq!(report.failed(), Capabilities::ALL);
}

#[test]
fn broken_bytes_are_found_where_they_are() {
    let pool = Pool::new(64, 2048);
    let mut device = Link::looped(&pool, 1500, Capabilities::ALL, 32);
    // The high byte of the TCP checksum over IPv4.
    device.set_hook(|_| Verdict::Corrupt { at: 50, mask: 0x80 });
    let report = outcome_of(&mut device);
    let wrong = Outcome::Failed(Failure::Differs { frame: 0, at: 50 });
    for feature in [Feature::TxChecksum4, Feature::Tso4, Feature::Gather] {
        assert!(report.outcomes.contains(&(feature, wrong)), "{feature}: {report:?}");
    }
    assert!(report.outcomes.contains(&(Feature::RxChecksum, Outcome::Failed(Failure::NotVerified))));
}

#[test]
fn lost_and_doubled_segments_are_found() {
    let cases = [
        (Verdict::Drop, Feature::Tso6, Failure::NotReceived),
        (Verdict::Duplicate, Feature::Tso6, Failure::TooMany),
        (Verdict::Drop, Feature::RxCoalescing, Failure::Coalescing),
        (Verdict::Duplicate, Feature::RxCoalescing, Failure::Coalescing),
    ];
    for (verdict, feature, failure) in cases {
        let pool = Pool::new(64, 2048);
        let mut device = Link::looped(&pool, 1500, Capabilities::NONE.with(feature, true), 32);
        if feature == Feature::Tso6 {
            device =
                Link::looped(&pool, 1500, Capabilities { tx_checksum6: true, ..device.capabilities() }, 32);
        }
        let mut count = 0;
        // The second segment.
        device.set_hook(move |frame| {
            if frame.len() < 150 || frame.len() > 180 {
                return Verdict::Deliver;
            }
            count += 1;
            if count == 2 { verdict } else { Verdict::Deliver }
        });
        let report = outcome_of(&mut device);
        assert!(report.outcomes.contains(&(feature, Outcome::Failed(failure))), "{verdict:?}: {report:?}");
    }
}

/// Says of every frame that its checksum is good.
struct Gullible(Link);

impl Device for Gullible {
    fn mac(&self) -> MacAddr {
        self.0.mac()
    }
    fn mtu(&self) -> usize {
        self.0.mtu()
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.0.enable(wanted)
    }
}

impl QueuePair for Gullible {
    fn enabled(&self) -> Capabilities {
        self.0.enabled()
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let count = self.0.receive(now, batch)?;
        batch.iter_mut().for_each(|frame| frame.meta.checksum = ChecksumStatus::Good);
        Ok(count)
    }
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.0.transmit(now, queue)
    }
    fn poll_completion(&mut self) -> Option<TxToken> {
        self.0.poll_completion()
    }
}

#[test]
fn a_device_that_believes_everything_is_found_out() {
    let pool = Pool::new(64, 2048);
    let mut device = Gullible(Link::looped(&pool, 1500, Capabilities::ALL, 32));
    let report = outcome_of(&mut device);
    let noticed = (Feature::RxChecksum, Outcome::Failed(Failure::CorruptionUnnoticed));
    assert!(report.outcomes.contains(&noticed), "{report:?}");
}
