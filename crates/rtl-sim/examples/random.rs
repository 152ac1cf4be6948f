//! Many random frames through the blocks and their references: `random FRAMES SEED [BLOCK ...]`, as many blocks at a time as the
//! process may use processors.

use linerate_rtl_sim::blocks;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| args.get(index).and_then(|value| value.parse::<u64>().ok());
    let (Some(frames), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: random FRAMES SEED [BLOCK ...]");
        return ExitCode::FAILURE;
    };
    let mut names: Vec<&str> = args[2..].iter().map(String::as_str).collect();
    if names.is_empty() {
        names.extend(blocks::ALL.iter().map(|(name, _)| *name));
    }
    names.retain(|name| {
        let block = name.split('@').next();
        let is_known = blocks::ALL.iter().any(|(known, _)| block == Some(known));
        if !is_known {
            println!("random {name}: compared by its parts");
        }
        is_known
    });
    // What takes longest begins first.
    let slow = ["lro", "dma", "tx_path", "rx_fifo"];
    names.sort_by_key(|name| slow.iter().position(|slow| name.starts_with(slow)).unwrap_or(slow.len()));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(names.len()) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !compare(name, seed, frames) {
                        failed.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    if failed.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn compare(name: &str, seed: u64, frames: u64) -> bool {
    let began = Instant::now();
    match blocks::compare(name, seed, frames) {
        Ok(coverage) => {
            println!("random {name}: {coverage}; seed {seed}, {:.1} s", began.elapsed().as_secs_f64());
            true
        }
        Err(fault) => {
            eprintln!("random {name}: {fault}");
            false
        }
    }
}
