//! Wall time of a minute of virtual time at 1 Gb/s. With any argument the bottleneck is a path with a queue and a loss of
//! one in 100,000, so that every segment is an event of its own.

use linerate_sim::*;
use std::time::Duration;

fn main() {
    let began = std::time::Instant::now();
    let mut config = PairConfig::with_rate_and_delay(1_000_000_000, Duration::from_micros(100));
    if std::env::args().len() > 1 {
        for host in &mut config.hosts {
            host.nic.rate_bps = Some(10_000_000_000);
        }
        config.a_to_b.rate_bps = Some(1_000_000_000);
        config.a_to_b.loss = Loss::Random(1e-5);
    }
    let (mut world, a, b) = World::pair(1, config);
    let until = world.now() + Duration::from_secs(60);
    let flow = world.add_flow(FlowConfig::upload(a, b, Amount::Until(until)));
    world.run_flow(flow, Duration::from_secs(70));
    let report = world.flow(flow);
    let stats = world.path_stats(a, Direction::Up);
    println!(
        "{:.2} s of wall time; {} segments out, {} back, {} steps; {:.1} Mb/s; {:?}",
        began.elapsed().as_secs_f64(),
        stats.delivered,
        world.path_stats(b, Direction::Up).delivered,
        world.events(),
        report.server.goodput_bps().unwrap_or(0.0) / 1e6,
        report.verdict(),
    );
}
