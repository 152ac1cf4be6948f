//! Finding out at start whether the hardware does what it says.

use crate::bus::Platform;
use crate::device::{Device as _, DeviceError, Filter};
use crate::mcdma::control::Control;
use crate::mcdma::queue::Queue;
use crate::queue::Joined;
use crate::selftest;
use linerate_wire::units::Instant;

/// Sends known packets through the MAC's loopback and compares what comes back with software; what failed goes to
/// [`Port::distrust`](crate::Port::distrust). Before the first turn: afterwards the filter lets nothing through but
/// the device's own address, until the node sets it. For a quiet line: a frame that comes while loopback is switched on or off is
/// cut.
///
/// `now` is asked for the time before each of at most `attempts` looks, and may wait a little.
pub fn self_test<P: Platform>(
    device: &mut Joined<Control<P>, Queue<P>>,
    attempts: usize,
    now: impl FnMut() -> Instant,
) -> Result<selftest::Report, DeviceError> {
    let own = Filter { groups: &[], all_groups: false, promiscuous: false };
    // All is let in only while nothing comes from the wire.
    device.control.set_loopback(true);
    let report = device
        .set_filter(&Filter { promiscuous: true, ..own })
        .map(|()| selftest::run(device, attempts, now));
    let closed = device.set_filter(&own);
    device.control.set_loopback(false);
    closed.and(report)
}
