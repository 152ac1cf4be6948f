//! Running many worlds, and telling how to run the one again that failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Threads that run worlds at the same time.
const THREADS: u64 = 2;

/// Runs `world` for the seeds 0 to `count` - 1 on two threads, or, if the environment variable `LINERATE_SEED` is set, for
/// that seed alone. Panics with the lowest failing seed found and the command that runs it again. `package` and `test` name
/// the test in that command.
pub fn check(package: &str, test: &str, count: u64, world: impl Fn(u64) -> Result<(), String> + Sync) {
    let asked = std::env::var("LINERATE_SEED").ok();
    if let Some(seed) = asked.and_then(|text| text.trim().parse::<u64>().ok()) {
        if let Err(message) = run(seed, &world) {
            panic!("{}", failure(package, test, seed, &message));
        }
        return;
    }
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let failed: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return;
            }
            if let Err(message) = run(seed, &world) {
                stop.store(true, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                    *failed = Some((seed, message));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(work)));
    });
    let failed = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((seed, message)) = failed {
        panic!("{}", failure(package, test, seed, &message));
    }
}

/// Whether captures are asked for (`LINERATE_PCAP=path`): a world should then call
/// [`World::capture_all`](crate::World::capture_all) at its start.
pub fn wants_capture() -> bool {
    std::env::var_os("LINERATE_PCAP").is_some()
}

/// Writes the world's capture to the path in `LINERATE_PCAP`, if there is one. The only place that touches a file, and
/// only when told to.
pub fn write_capture(world: &crate::World) {
    if let Some(path) = std::env::var_os("LINERATE_PCAP")
        && let Err(error) = std::fs::write(&path, world.pcapng())
    {
        eprintln!("cannot write {}: {error}", path.display());
    }
}

fn failure(package: &str, test: &str, seed: u64, message: &str) -> String {
    format!(
        "seed {seed} fails: {message}\nagain: LINERATE_SEED={seed} cargo test -p {package} --release {test}\n\
         (with LINERATE_PCAP=file.pcapng a world that captures keeps its frames)"
    )
}

/// Runs one world; a panic is a failure too.
fn run(seed: u64, world: &(impl Fn(u64) -> Result<(), String> + Sync)) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| world(seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        Err(text.unwrap_or_else(|| "it panicked".to_string()))
    })
}
