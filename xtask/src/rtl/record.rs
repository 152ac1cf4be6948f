//! `rtl/results.toml`: what took long and was done, with the hash of what it was done to; `rtl/RESULTS.md` is made from it.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher as _;
use std::path::PathBuf;

const PATH: &str = "rtl/results.toml";

/// The record.
#[derive(Default, Deserialize, Serialize)]
pub struct Record {
    /// By the path of the proof's description.
    #[serde(default)]
    pub proofs: BTreeMap<String, Proof>,
    /// By the block.
    #[serde(default)]
    pub synthesis: BTreeMap<String, Synthesis>,
    /// By the block.
    #[serde(default)]
    pub mutants: BTreeMap<String, Mutants>,
    /// By the block, with the width behind it where it is not the default: `rss@128`.
    #[serde(default)]
    pub random: BTreeMap<String, Random>,
}

/// A proof that was made.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
pub struct Proof {
    pub hash: String,
    pub date: String,
    pub seconds: u64,
    /// What the prover said last: by induction, or up to a depth.
    pub result: String,
}

/// Size and clock.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
pub struct Synthesis {
    pub hash: String,
    pub date: String,
    pub ecp5_lut4: u64,
    pub ecp5_ff: u64,
    pub ecp5_ram: u64,
    /// After placement, for each seed of the placer.
    pub fmax_mhz: Vec<f64>,
    pub xc7_lut: u64,
    pub xc7_ff: u64,
    /// In halves of a 36 kbit memory.
    pub xc7_ram18: u64,
}

impl Synthesis {
    /// The clock that counts: the middle one.
    pub fn mhz(&self) -> f64 {
        let mut values = self.fmax_mhz.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    }
}

/// How many seeded faults were found.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
pub struct Mutants {
    pub hash: String,
    pub date: String,
    pub seed: u64,
    pub frames: u64,
    pub killed: u64,
    pub total: u64,
    /// Left out: proved to be none.
    #[serde(default)]
    pub equivalent: u64,
    /// Left out: nothing can be seen of them, by an argument in `mutants.toml`.
    #[serde(default)]
    pub argued: u64,
}

/// A long comparison with the reference, without a difference.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
pub struct Random {
    /// Of the block's RTL.
    pub hash: String,
    pub date: String,
    pub seed: u64,
    /// What was compared, as the comparison counts it: at least as many as were asked for.
    pub frames: u64,
    pub seconds: u64,
}

impl Record {
    /// What is recorded; nothing if there is no record yet.
    pub fn read() -> Result<Record> {
        match fs::read_to_string(PATH) {
            Ok(text) => toml::from_str(&text).context(PATH),
            Err(_) => Ok(Record::default()),
        }
    }

    /// Reads it, changes it and keeps it: what took long goes in by itself, beside what others may have written meanwhile.
    pub fn update(change: impl FnOnce(&mut Record)) -> Result<()> {
        let mut record = Record::read()?;
        change(&mut record);
        record.write()
    }

    fn write(&self) -> Result<()> {
        let text = toml::to_string(self).context(PATH)?;
        let head = "# Made by `cargo xtask rtl formal --long`, `synth --long`, `random --long` and `mutants`; not to be edited.\n\n";
        fs::write(PATH, format!("{head}{text}")).context(PATH)?;
        fs::write("rtl/RESULTS.md", super::results::page(self)?).context("rtl/RESULTS.md")
    }
}

/// The hash of files and of whatever else a result depends on.
pub fn hash(files: &[PathBuf], other: &str) -> Result<String> {
    let mut hash = SipHasher13::new();
    hash.write(other.as_bytes());
    for file in files {
        hash.write(file.to_string_lossy().as_bytes());
        hash.write(&fs::read(file).with_context(|| file.display().to_string())?);
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Today, as the machine has it.
pub fn today() -> Result<String> {
    Ok(crate::shell::output(std::process::Command::new("date").arg("+%Y-%m-%d"))?.trim().to_owned())
}

/// One of `count`, another one each time: what is done again though it is recorded.
pub fn at_random(count: usize) -> Option<usize> {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    (count > 0).then(|| clock.subsec_nanos() as usize / 1_000 % count)
}
