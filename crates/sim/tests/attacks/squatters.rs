//! Peers that connect and make the victim hold memory: closed windows, sockstress, slow readers, holes.
//!
//! Cables of 100 Mb/s and a round trip of 20 ms, so that the bystander needs 250 kB of the memory that is fought for.

use super::arena::{Attack, Outcome, Setup};
use super::crowd::{Crowd, Manner};
use std::time::Duration;

const SETUP: Setup = Setup {
    rate_bps: 100_000_000,
    delay_us: 10_000,
    attack_ms: 20_000,
    ipv6: false,
    is_on_path: false,
    object: 1_000_000,
    memory: 64 << 20,
};

fn check(name: &str, setup: Setup, count: usize, manner: Manner, holds: impl Fn(&Outcome)) {
    let attack = Attack { name, setup, script: &move |_| Box::new(Crowd::new(count, manner)) };
    for outcome in attack.run() {
        // Beyond the cap: what is read for who has nothing left, and what was promised by windows.
        assert!(outcome.most_used <= setup.memory / 4 * 5, "the cap holds: {}", outcome.most_used);
        assert!(setup.memory < SETUP.memory || outcome.most_connections > count * 9 / 10, "they connected");
        holds(&outcome);
    }
}

/// Memory for a tenth of what the squatters would have. New clients wait at the door while it is short.
const SHORT: Setup = Setup { memory: 8 << 20, ..SETUP };

#[test]
fn a_thousand_closed_windows() {
    check("1,000 zero windows", SETUP, 1_000, Manner::ZeroWindow, |_| {});
}

#[test]
fn a_thousand_closed_windows_with_little_memory() {
    check("1,000 zero windows, 8 MiB", SHORT, 1_000, Manner::ZeroWindow, |outcome| {
        assert!(outcome.count("tcp_stalled_shed") > 0, "{:?}", outcome.shown());
    });
}

#[test]
fn sockstress() {
    for window in [0, 4] {
        let name = format!("sockstress, window {window}");
        check(&name, SHORT, 1_000, Manner::Silent { window }, |outcome| {
            let answers = outcome.traffic.answers;
            assert!(answers.packets <= 40_000, "{answers:?}: a handful of probes or repetitions each");
        });
    }
}

#[test]
fn a_thousand_slow_readers() {
    check("1,000 slow readers", SHORT, 1_000, Manner::SlowReader { bytes: 10 }, |outcome| {
        assert!(outcome.count("tcp_stalled_shed") > 0, "{:?}", outcome.shown());
    });
}

#[test]
fn slow_readers_that_live_are_not_reset() {
    // As phones at the edge of their cell: their files would fill the memory several times.
    let few = Setup { memory: 8 << 20, ..SETUP };
    let each_second = |bytes| (bytes, Manner::SlowReader { bytes });
    let bursts = (6_000, Manner::Bursts { bytes: 60_000, every: Duration::from_secs(10) });
    for (setup, count, (rate, manner)) in
        [(SETUP, 400, each_second(12_000)), (SETUP, 400, bursts), (few, 100, each_second(2_500))]
    {
        check(&format!("{count} readers of {rate} B/s"), setup, count, manner, |outcome| {
            assert_eq!(outcome.shed, 0, "{:?}", outcome.shown());
        });
    }
}

#[test]
fn single_bytes_out_of_order_on_hundreds_of_connections() {
    // A short object, so that nothing but the holes is held.
    let setup = Setup { object: 1_000, ..SETUP };
    check("300 senders of holes", setup, 300, Manner::Holes { per_second: 50 }, |outcome| {
        assert!(outcome.count("drop_tcp_out_of_order_full") > 10_000, "{:?}", outcome.shown());
        assert!(outcome.least_receive > 0.05, "the receive pool is not used up: {}", outcome.least_receive);
    });
}
