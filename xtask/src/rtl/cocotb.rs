//! The test benches in Python.

use super::blocks::Block;
use super::setup::Tools;
use crate::shell;
use anyhow::Result;

/// Runs those of every block that has some.
pub fn run(tools: &Tools, blocks: &[&Block]) -> Result<()> {
    let folders: Vec<_> =
        blocks.iter().map(|block| block.folder().join("tb")).filter(|tb| tb.is_dir()).collect();
    if folders.is_empty() {
        return Ok(());
    }
    shell::run(
        tools
            .program("python3")
            .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--durations=5"])
            .args(folders)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}
