//! The timing diagrams of the manual, drawn from what the compiled blocks do.

use super::blocks::Block;
use crate::suites;
use anyhow::Result;

const FOLDER: &str = "docs/rtl";

/// Draws those of the blocks that have a page; with `check` it compares them with what is there.
pub fn run(blocks: &[&Block], check: bool) -> Result<()> {
    let args = check.then_some("--check").into_iter().chain([FOLDER]);
    suites::example("waves", &args.chain(blocks.iter().map(|block| block.name.as_str())).collect::<Vec<_>>())
}
