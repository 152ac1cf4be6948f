//! What the soft core's image does while it is looked at, for a profile and for the places of functions: what is measured, all of it.

use super::OUT;
use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Two at a time, the long ones first.
const WORK: [&[&str]; 6] = [
    &["requests"],
    &["closing"],
    &["send"],
    &["send", "without-offloads"],
    &["receive"],
    &["receive", "without-offloads"],
];

/// Has an image do each work: what the simulation writes to a file of that kind, `counters` or `way`, in each.
pub fn each(hardware: &Path, image: &Path, kind: &str) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for pair in WORK.chunks(2) {
        let told: Vec<Result<Vec<u8>>> = std::thread::scope(|scope| {
            let works: Vec<_> =
                pair.iter().map(|work| scope.spawn(|| one(hardware, image, kind, work))).collect();
            works.into_iter().map(|work| work.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
        });
        files.extend(told.into_iter().collect::<Result<Vec<_>>>()?);
    }
    Ok(files)
}

fn one(hardware: &Path, image: &Path, kind: &str, work: &[&str]) -> Result<Vec<u8>> {
    let file = Path::new(OUT).join(format!("softcore-{kind}-{}", work.join("-")));
    let mut command = Command::new(hardware);
    command.arg(image).arg("measure").args(work).arg(format!("{kind}={}", file.display()));
    println!("{kind}, {}: {}", work.join(" "), shell::output(command.stderr(Stdio::null()))?.trim());
    std::fs::read(&file).with_context(|| file.display().to_string())
}
