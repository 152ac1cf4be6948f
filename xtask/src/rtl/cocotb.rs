//! The test benches in Python: each block's in a process of its own, as many at a time as there are cores.

use super::blocks::Block;
use super::setup::Tools;
use anyhow::{Context, Result, bail};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

/// What the quick form runs: 64 bits, the largest number of queues, small FIFOs, 20 ns.
const QUICK: &str = "[64] or 64-4-0 or [8] or [20]";

/// Runs those of every block that has some; in the `quick` form at one width.
pub fn run(tools: &Tools, blocks: &[&Block], quick: bool) -> Result<()> {
    let next = Mutex::new(blocks.iter().filter(|block| block.folder().join("tb").is_dir()));
    let failed = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        while let Some(block) = next.lock().ok().and_then(|mut blocks| blocks.next()) {
            let began = Instant::now();
            let mut pytest = tools.program("python3");
            pytest.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]).arg(block.folder().join("tb"));
            if quick {
                pytest.args(["-k", QUICK]);
            }
            let output =
                pytest.env("PYTHONDONTWRITEBYTECODE", "1").output().context("cannot start python3")?;
            let text = String::from_utf8_lossy(&output.stdout);
            let last = text.trim_end().lines().last().unwrap_or_default();
            println!("cocotb {}: {last} ({:.0} s)", block.name, began.elapsed().as_secs_f64());
            if !output.status.success() {
                println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
                if let Ok(mut failed) = failed.lock() {
                    failed.push(block.name.clone());
                }
            }
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread that ran test benches panicked"),
        })
    })?;
    match failed.into_inner() {
        Ok(failed) if failed.is_empty() => Ok(()),
        Ok(failed) => bail!("test benches failed: {}", failed.join(", ")),
        Err(_) => bail!("a thread that ran test benches panicked"),
    }
}
