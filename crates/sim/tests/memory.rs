//! Windows never promise more than the receive pool holds: whoever sends, however many, and whoever reads.

use linerate_sim::*;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

struct Case {
    uploads: usize,
    buffers: usize,
    capabilities: Capabilities,
    loss: Loss,
    /// Every other one is read slowly.
    slow: bool,
}

/// All uploads end whole, and the receiver drops nothing for want of memory. At no time is more in use and promised than
/// there are buffers. Without loss on the way nothing is sent twice.
fn check(case: &Case) {
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, MS);
    config.a_to_b.loss = case.loss.clone();
    config.hosts[0].offloads = case.capabilities;
    config.hosts[1].offloads = case.capabilities;
    config.hosts[1].nic.rx_buffers = case.buffers;
    let (mut world, a, b) = World::pair(7, config);
    let bytes = 24_000_000 / case.uploads as u64;
    let flows: Vec<FlowId> = (0..case.uploads)
        .map(|n| {
            let mut flow = FlowConfig::upload(a, b, Amount::Bytes(bytes));
            if case.slow && n % 2 == 1 {
                flow.server_reader = Reader::Paced { bytes: 20_000, every: 5 * MS };
            }
            world.add_flow(flow)
        })
        .collect();
    let (mut most, mut size) = (0, 0);
    let done = world.run_until(300 * SECOND, |world| {
        let memory = world.host(b).stack.memory();
        let pool = memory.receive.expect("the host has a pool");
        most = most.max((pool.total - pool.free) * pool.buffer_size + memory.promised);
        size = pool.total * pool.buffer_size;
        flows.iter().all(|flow| world.is_flow_done(*flow))
    });
    let figures = format!(
        "{} uploads, {} buffers, slow: {}; at most {most} of {size} bytes",
        case.uploads, case.buffers, case.slow
    );
    println!("{figures}");
    assert!(done, "{figures}");
    for flow in flows {
        assert_eq!(world.flow(flow).verdict(), Ok(()), "{figures}");
        assert_eq!(world.flow(flow).server.bytes_received, bytes, "{figures}");
    }
    assert!(most <= size, "{figures}");
    let counters = world.host(b).stack.counters();
    assert_eq!((counters.drop_tcp_no_memory, counters.drop_tcp_out_of_order_full), (0, 0), "{figures}");
    assert_eq!(world.host(b).nic().stats().rx_no_buffer, 0, "{figures}");
    if case.loss == Loss::None {
        assert_eq!(world.host(a).stack.counters().tcp_retransmits, 0, "{figures}");
    }
}

#[test]
fn a_small_pool_is_shared_and_never_runs_dry() {
    for uploads in [1, 8, 100] {
        for capabilities in [Capabilities::NONE, Capabilities::ALL] {
            for slow in [false, true] {
                check(&Case { uploads, buffers: 512, capabilities, loss: Loss::None, slow });
            }
        }
    }
}

#[test]
fn what_waits_for_a_missing_segment_is_kept() {
    for uploads in [1, 8, 50] {
        for capabilities in [Capabilities::NONE, Capabilities::ALL] {
            check(&Case { uploads, buffers: 512, capabilities, loss: Loss::Random(0.005), slow: false });
        }
    }
}
