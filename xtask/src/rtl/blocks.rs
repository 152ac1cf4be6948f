//! `rtl/<block>/block.toml`: what a block is made of.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A block of the RTL.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// The name of its folder.
    #[serde(skip)]
    pub name: String,
    /// The module that is elaborated.
    pub top: String,
    /// In the order of compilation, from `rtl/`.
    pub sources: Vec<String>,
    /// Values of DATA_W that must work; the first that is 64 is synthesized.
    #[serde(default)]
    pub widths: Vec<u32>,
    /// Parameters beside DATA_W, for simulation and synthesis.
    #[serde(default)]
    pub parameters: BTreeMap<String, toml::Value>,
    /// Parameters that elaboration must refuse, one case each.
    #[serde(default)]
    pub refused: Vec<BTreeMap<String, toml::Value>>,
    /// When it is synthesized by itself.
    #[serde(default)]
    pub synth: Synth,
    /// The feature of `rtl-sim` that compiles it in, where it is not always.
    #[serde(default, rename = "feature")]
    pub _feature: Option<String>,
    /// What synthesis must not exceed.
    #[serde(default)]
    pub limits: Limits,
    /// What simulates it with all that lies around it, if anything does.
    pub simulation: Option<Simulation>,
}

/// A simulation of a block with models in the place of some of its sources.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The module that is elaborated.
    pub top: String,
    /// The model in the place of a source.
    pub models: BTreeMap<String, String>,
    /// Sources besides.
    pub around: Vec<String>,
}

/// When a block is synthesized by itself.
#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synth {
    /// In CI where it changed, with three seeds of the placer.
    #[default]
    Always,
    /// By `--long` alone, with one seed: the whole, which keeps the tools busy for too long.
    Long,
    /// It is not: its parts are, or it is part of another.
    Never,
}

/// What synthesis at 64 bits must not exceed; what is not given is not bounded.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// LUT4 on ECP5.
    pub ecp5_lut4: Option<u64>,
    /// Flip-flops on ECP5.
    pub ecp5_ff: Option<u64>,
    /// LUTs on xc7.
    pub xc7_lut: Option<u64>,
    /// Flip-flops on xc7.
    pub xc7_ff: Option<u64>,
    /// Clock on ECP5, speed grade 8, at least.
    pub fmax_mhz: Option<f64>,
}

impl Block {
    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from("rtl").join(&self.name)
    }

    /// The sources of its simulation, from the root.
    pub fn simulated_paths(&self, simulation: &Simulation) -> Vec<PathBuf> {
        let own = self.sources.iter().map(|source| simulation.models.get(source).unwrap_or(source));
        own.chain(&simulation.around).map(|source| PathBuf::from("rtl").join(source)).collect()
    }

    /// Its sources, from the root.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.sources.iter().map(|source| PathBuf::from("rtl").join(source)).collect()
    }
}

/// All blocks by name.
pub fn read() -> Result<Vec<Block>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("rtl").context("rtl")? {
        let path = entry?.path().join("block.toml");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let mut block: Block = toml::from_str(&text).with_context(|| path.display().to_string())?;
        let folder = path.parent().and_then(|folder| folder.file_name());
        block.name = folder.unwrap_or_default().to_string_lossy().into_owned();
        for source in block.paths() {
            source.metadata().with_context(|| format!("{}: {}", path.display(), source.display()))?;
        }
        found.push(block);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}
