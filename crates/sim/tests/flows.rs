//! Whole transfers through the simulated network.

use linerate_sim::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_clean_gigabit_is_full() {
    let (mut world, a, b) =
        World::pair(1, PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100)));
    let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Bytes(50_000_000)));
    assert!(world.run_flow(flow, 10 * SECOND), "{:?}", world.flow(flow));
    let report = world.flow(flow);
    assert_eq!(report.verdict(), Ok(()));
    // 1,448 of 1,538 bytes on the wire are payload.
    let share = report.server.goodput_bps().unwrap() / (1e9 * 1_448.0 / 1_538.0);
    assert!(share > 0.9, "{share}");
    assert!(share <= 1.01, "{share}");
}
