//! Echo requests as fast as they come back.

use crate::lab::{Lab, Wire};

#[test]
fn ten_thousand_echoes_without_loss() {
    for wire in [Wire::Tap, Wire::Packet, Wire::Xdp(1)] {
        let lab = Lab::start(wire, 1500, &[]);
        for host in [lab.host4(), lab.host6()] {
            let report = lab.client.must(&format!("ping -n -q -f -c 10000 {host}"));
            assert!(report.contains(" 0% packet loss"), "{wire:?} {host}: {report}");
            // Larger than a frame: fragments both ways.
            let report = lab.client.must(&format!("ping -n -q -c 3 -i 0.05 -s 8000 {host}"));
            assert!(report.contains(" 0% packet loss"), "{wire:?} {host}: {report}");
        }
        lab.stop();
    }
}
