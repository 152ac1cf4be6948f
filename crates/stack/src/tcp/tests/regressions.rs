//! Faults that tables, models and fuzzing found, each by name.

use super::solo::{ACK, Solo, ms};
use core::time::Duration;
use linerate_transport::{CloseReason, ConnState};

#[test]
fn a_peer_that_takes_probes_and_stays_closed_is_probed_less_and_less_and_left() {
    let mut solo = Solo::established();
    solo.window = 0;
    let _ = solo.input(ACK, 0, 0, 0);
    solo.send(1_000);
    assert!(solo.output().is_empty());
    let begin = solo.now;
    let (mut taken, mut last) = (0, Duration::ZERO);
    while taken < 6 {
        let waited = solo.fire();
        assert_eq!(solo.lengths(), [(taken, 1)]);
        assert!(waited + ms(1) >= last * 2, "{waited:?} after {last:?}");
        last = waited;
        solo.pass(ms(1));
        taken += 1;
        solo.ack(taken);
        assert!(solo.output().is_empty());
    }
    while solo.connection.state() == (ConnState::Open { finished: false }) {
        solo.fire();
        solo.output();
    }
    assert_eq!(solo.connection.state(), ConnState::Closed(CloseReason::TimedOut));
    assert_eq!(solo.now - begin, Duration::from_secs(60), "the user timeout");
}
