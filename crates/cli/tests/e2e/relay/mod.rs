//! Our TCP against the Linux kernel's, over a relay that loses, repeats, delays, overtakes, falsifies and narrows.
//!
//! Every world is one connection, made of one seed: who connects, how much goes each way, how slowly it is read, how
//! small the buffers are, what its frames suffer, whether somebody breaks off. Every byte must arrive exactly once and in
//! order, or the connection must end with a reason that such a world gives; nothing may go on for ever; and at the end
//! nobody may hold any memory.
//!
//! | variable | meaning |
//! |---|---|
//! | `LINERATE_SEED` | run the world of this seed alone |
//! | `LINERATE_WORLDS` | how many worlds, from that seed or from 1 on; 1,000 unless told |
//! | `LINERATE_PCAP` | with one world: the file that its frames are written to, as pcapng |
//!
//! The clock is the real one and half of the work is done by the kernel, so a seed gives the same world again, but not
//! the same schedule.

mod bench;
mod device;
mod end;
mod frames;
mod plan;
mod recent;
mod report;
mod trace;
mod world;

use plan::{LABS, Plan};
use report::Report;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Instant;

/// Descriptors that all worlds under way need.
const DESCRIPTORS: u64 = 8_192;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.trim().parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
    let wanted = Rlimit { current: Some(current.max(limit.current.unwrap_or(current))), ..limit };
    setrlimit(Resource::Nofile, wanted).expect("a limit below the hard one");
}

/// Runs the worlds `first..first + count` in their laboratories, all at the same time.
fn run(first: u64, count: u64) -> Report {
    let mut plans: Vec<Vec<Plan>> = LABS.iter().map(|_| Vec::new()).collect();
    for seed in first..first + count {
        let plan = Plan::new(seed);
        plans[plan.lab()].push(plan);
    }
    let file = std::env::var_os("LINERATE_PCAP").filter(|_| count == 1);
    let traces = file.is_some();
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let work = LABS.into_iter().zip(plans).filter(|(_, plans)| !plans.is_empty());
        let labs: Vec<_> =
            work.map(|(kind, plans)| scope.spawn(move || bench::run(kind, plans, traces))).collect();
        for lab in labs {
            let (part, trace) = lab.join().expect("a laboratory panicked");
            report.merge(part);
            if let (Some(file), Some(trace)) = (&file, trace) {
                std::fs::write(file, trace.bytes()).expect("the trace is written");
            }
        }
    });
    report
}

#[test]
fn relay_worlds_lose_no_byte_against_the_kernel() {
    raise_descriptor_limit();
    let seed = number("LINERATE_SEED");
    let count = number("LINERATE_WORLDS").unwrap_or(if seed.is_some() { 1 } else { 1_000 });
    let start = Instant::now();
    let report = run(seed.unwrap_or(1), count);
    println!("{report}\nwall time         {:.1} s", start.elapsed().as_secs_f64());
    for fault in &report.faults {
        println!("\nseed {}: {}", fault.seed, fault.what);
        println!("again: LINERATE_SEED={} cargo xtask test relay_worlds", fault.seed);
    }
    assert!(report.faults.is_empty(), "{} worlds went wrong; see above", report.faults.len());
}
