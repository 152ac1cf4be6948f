//! The timing diagrams of the manual, drawn from what the compiled blocks do.

use super::blocks::Block;
use super::setup::Tools;
use crate::shell;
use anyhow::Result;

const FOLDER: &str = "docs/rtl";

/// Draws those of the blocks that have a page; with `check` it compares them with what is there.
pub fn run(tools: &Tools, blocks: &[&Block], check: bool) -> Result<()> {
    let mut cargo = tools.cargo();
    cargo.args(["run", "--quiet", "--release", "--package=linerate-rtl-sim", "--example=waves", "--"]);
    cargo.args(check.then_some("--check"));
    shell::run(cargo.arg(FOLDER).args(blocks.iter().map(|block| block.name.as_str())))
}
