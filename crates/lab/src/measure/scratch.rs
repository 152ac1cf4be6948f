//! Folders for files of an experiment.

use super::place::own_name;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// A folder for files of a run, removed with the value, or by [`super::place::end`].
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one among the temporary files.
    pub fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(own_name());
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the folder for temporary files is removed with it some day.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
