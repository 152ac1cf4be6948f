//! Little memory: what a window let in finds a buffer.

use crate::lab::{Lab, Wire};
use crate::uploads::{Congestion, Upload, measure};

/// Each upload delivers what was sent, and sends (nearly) nothing twice: what a window let in found a buffer. The best of
/// three, as a server that gets no processor time for a while is taken for a lost segment.
fn check(lab: &Lab, upload: Upload, name: &str) {
    let worst = |_| {
        let result = measure(lab, upload);
        assert_eq!(result.received, result.sent, "{name} {upload:?}");
        result.retransmitted()
    };
    let share = (0..3).map(worst).find(|share| *share <= 0.001);
    assert!(share.is_some(), "{name} {upload:?}: more than 0.1 % retransmitted three times");
}

#[test]
fn little_memory_makes_nobody_send_twice() {
    for wire in [Wire::Tap, Wire::Packet] {
        for memory in ["4MiB", "16MiB"] {
            for offload in ["all", "none"] {
                let lab = Lab::start(wire, 1500, &["--memory", memory, "--offload", offload]);
                let name = format!("{wire:?} {memory} offload {offload}");
                for congestion in [Congestion::Cubic, Congestion::Bbr] {
                    for parallel in [1, 8] {
                        check(&lab, Upload::bytes(parallel, congestion, 50_000_000), &name);
                    }
                }
                lab.stop();
            }
        }
    }
}

#[test]
fn a_hundred_uploads_share_little_memory() {
    let lab = Lab::start(Wire::Tap, 1500, &["--memory", "4MiB"]);
    check(&lab, Upload::bytes(100, Congestion::Bbr, 1_000_000_000), "4 MiB");
    lab.stop();
}
