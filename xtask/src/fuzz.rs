//! Fuzzing, bounded in time.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

/// Targets that run at the same time: the least that a machine for this has cores.
const AT_ONCE: usize = 2;

/// Bytes of a finding that are printed.
const MOST_SHOWN: usize = 16 << 10;

/// How long to run a target.
struct Job {
    target: String,
    seconds: u32,
}

/// Runs each fuzz target on top of its kept corpus: for the seconds that `TARGET=SECONDS` among the arguments gives it,
/// otherwise for those of the first argument (60 without one). Two run at the same time, the longest first.
pub fn run(args: &[&str]) -> Result<()> {
    let (seconds, longer) = match args.split_first() {
        None => (60, args),
        Some((seconds, longer)) => (seconds.parse().context(format!("fuzz: {seconds:?} seconds"))?, longer),
    };
    if !shell::succeeds(Command::new("cargo").args(["fuzz", "--version"])) {
        // It only calls others, and is not worth being optimized.
        shell::run(Command::new("cargo").args(["install", "cargo-fuzz", "--locked", "--quiet", "--debug"]))?;
    }
    let targets = shell::output(Command::new("cargo").args(["+nightly", "fuzz", "list"]))?;
    let mut jobs: Vec<Job> =
        targets.lines().map(|target| Job { target: target.to_string(), seconds }).collect();
    for arg in longer {
        let (target, seconds) =
            arg.split_once('=').context(format!("fuzz: {arg:?} is not TARGET=SECONDS"))?;
        let seconds = seconds.parse().context(format!("fuzz: {seconds:?} seconds"))?;
        match jobs.iter_mut().find(|job| job.target == target) {
            Some(job) => job.seconds = seconds,
            None => bail!("fuzz: there is no target {target:?}"),
        }
    }
    shell::run(Command::new("cargo").args(["+nightly", "fuzz", "build"]))?;
    jobs.sort_by_key(|job| job.seconds);
    run_all(jobs)
}

/// Runs the jobs, the last first, and reports the first failure after all have ended.
fn run_all(jobs: Vec<Job>) -> Result<()> {
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().ok().and_then(|mut jobs| jobs.pop());
    let work = || -> Result<()> {
        while let Some(job) = next() {
            run_one(&job)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let results: Vec<Result<()>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| bail!("fuzz: a worker panicked")))
            .collect();
        results.into_iter().collect()
    })
}

fn run_one(job: &Job) -> Result<()> {
    let Job { target, seconds } = job;
    let grown = Path::new("target/fuzz-corpus").join(target);
    let kept = Path::new("fuzz/corpus").join(target);
    std::fs::create_dir_all(&grown).with_context(|| format!("cannot make {}", grown.display()))?;
    std::fs::create_dir_all(&kept).with_context(|| format!("cannot make {}", kept.display()))?;
    // New inputs go to the first folder, so that a run does not change the kept corpus.
    let mut fuzz = Command::new("cargo");
    fuzz.args(["+nightly", "fuzz", "run", target]).arg(&grown).arg(&kept);
    fuzz.args(["--", &format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"]);
    fuzz.arg("-print_final_stats=1").arg("-verbosity=0");
    let result = shell::run(&mut fuzz);
    if result.is_err() {
        show_findings(target);
    }
    result
}

/// Prints what a target stumbled over, because CI keeps nothing but what was printed.
fn show_findings(target: &str) {
    let folder = Path::new("fuzz/artifacts").join(target);
    let Ok(entries) = std::fs::read_dir(&folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        println!("{} ({} bytes); to get it back: xxd -r -p > FILE", path.display(), bytes.len());
        for line in bytes[..bytes.len().min(MOST_SHOWN)].chunks(60) {
            let hex: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("{hex}");
        }
    }
}
