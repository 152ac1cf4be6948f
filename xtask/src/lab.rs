//! The Python environment that the lab's tests need, made once from the pinned lists.

use crate::{packages, shell};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What is installed; it names the list of `sweep_dask.py`.
const LIST: &str = "crates/lab/requirements.txt";
const DASK: &str = "crates/lab/dask/requirements.txt";

/// What the lists are called inside the environment that was made from them.
const STAMP: &str = "linerate-requirements.txt";

/// Debian's part: environments of Python, and what runs WebAssembly.
const PACKAGES: [&str; 2] = ["python3-venv", "nodejs"];

/// Makes `target/lab/venv` if it is not there or a list has changed.
pub fn prepare() -> Result<()> {
    let venv = shell::root().join("target/lab/venv");
    let list = [LIST, DASK].map(|file| fs::read_to_string(file).context(file));
    let list = list.into_iter().collect::<Result<Vec<_>>>()?.concat();
    packages::require(&PACKAGES)?;
    if fs::read_to_string(venv.join(STAMP)).ok().as_deref() == Some(list.as_str()) {
        return Ok(());
    }
    println!("installing {LIST} into target/lab/venv (about 200 MB, once)");
    fs::create_dir_all(&venv)?;
    shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    shell::run(Command::new(venv.join("bin/pip")).args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        LIST,
    ]))?;
    fs::write(venv.join(STAMP), list)?;
    Ok(())
}

/// What Perfetto's own trace processor finds in a trace that it understands whole: the rows of a query.
pub fn query(trace: &Path, sql: &str) -> Result<Vec<Vec<Value>>> {
    let script = shell::root().join("crates/cli/tests/traces/trace_processor.mjs");
    let rows = shell::output(Command::new("node").arg(script).arg(trace).arg(sql))?;
    serde_json::from_str(&rows).with_context(|| format!("{sql} was answered by {rows:?}"))
}
