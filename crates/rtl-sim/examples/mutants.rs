//! Which seeded faults of one block its comparison does not find: `mutants BLOCK COUNT FRAMES [NUMBER ...]`, with only these if there
//! are numbers. Run by `cargo xtask rtl mutants`, which builds the block with all of them in it and an input `mutant` that chooses
//! one; 0 is none.

use linerate_rtl_sim::{Dut, blocks};
use std::collections::BTreeSet;
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, count, frames, only @ ..] = args.as_slice() else {
        return Err("usage: mutants BLOCK COUNT FRAMES [NUMBER ...]".to_owned());
    };
    let number = |text: &String| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    let (count, frames) = (number(count)?, number(frames)?);
    let only = only.iter().map(number).collect::<Result<Vec<u64>, String>>()?;
    let (_, compare) = blocks::ALL
        .iter()
        .find(|(known, _)| known == name)
        .ok_or_else(|| format!("there is no comparison of {name:?}"))?;
    // A fault may make the comparison stumble over what cannot be: that is a find, and not to be printed.
    panic::set_hook(Box::new(|_| {}));
    let mutants: Vec<u64> =
        (0..=count).filter(|mutant| *mutant == 0 || only.is_empty() || only.contains(mutant)).collect();
    let (next, alive) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let work = || {
        while let Some(&mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            if lives(name, *compare, mutant, frames)? {
                alive.lock().map_err(|error| error.to_string())?.insert(mutant);
            }
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(mutants.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(format!("{name}: the comparison's thread panics")))
        })
    })?;
    let mut text = String::from("alive:");
    for mutant in alive.into_inner().map_err(|error| error.to_string())? {
        text.push_str(&format!(" {mutant}"));
    }
    println!("{text}");
    Ok(())
}

/// Whether the comparison does not find the fault. Without one it must find nothing.
fn lives(name: &str, compare: blocks::Compare, mutant: u64, frames: u64) -> Result<bool, String> {
    let mut dut = Dut::open(name).map_err(|error| error.to_string())?;
    let port = dut.port("mutant")?;
    dut.set(port, mutant);
    let found = panic::catch_unwind(panic::AssertUnwindSafe(|| compare(&mut dut, 1, frames)));
    match found {
        Ok(Ok(_)) => Ok(mutant > 0),
        Ok(Err(fault)) if mutant == 0 => Err(format!("{name} without a fault: {fault}")),
        Err(_) if mutant == 0 => Err(format!("{name} without a fault: the comparison panics")),
        _ => Ok(false),
    }
}
