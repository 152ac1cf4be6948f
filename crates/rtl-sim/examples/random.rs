//! Many random frames through the blocks and their references: `random FRAMES SEED [BLOCK ...]`.

use linerate_rtl_sim::blocks;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| args.get(index).and_then(|value| value.parse::<u64>().ok());
    let (Some(frames), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: random FRAMES SEED [BLOCK ...]");
        return ExitCode::FAILURE;
    };
    let names = args.get(2..).unwrap_or_default();
    for (name, _) in
        blocks::ALL.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name))
    {
        let began = Instant::now();
        match blocks::compare(name, seed, frames) {
            Ok(coverage) => {
                println!("random {name}: {coverage}; seed {seed}, {:.1} s", began.elapsed().as_secs_f64())
            }
            Err(fault) => {
                eprintln!("random {name}: {fault}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
