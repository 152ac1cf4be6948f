//! Building all test programs at once, and where each one is.

use crate::shell;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The profile of everything that tests run; `Cargo.toml` says what is in it.
pub const PROFILE: [&str; 2] = ["--profile", "checked"];

/// Always for the workspace, so that the features of dependencies are the same and nothing is built twice; with the simulated
/// interface, which an end-to-end test serves over.
pub const EVERYTHING: [&str; 2] = ["--workspace", "--features=linerate-cli/rtl"];

/// A test program.
pub struct Suite {
    /// Package and target, as `linerate-stack/complaints`.
    pub name: String,
    program: PathBuf,
    folder: PathBuf,
}

impl Suite {
    /// The program, started as cargo does: in the folder of its package.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Builds the test programs of the whole workspace and the end-to-end tests, or those alone, and shows what cargo says
/// meanwhile.
pub fn build(end_to_end_only: bool) -> Result<Vec<Suite>> {
    let mut suites = if end_to_end_only { Vec::new() } else { compile("--tests")? };
    // They are not among the tests of plain `cargo test`, and cargo takes them by name only alone.
    suites.extend(compile("--test=e2e")?);
    Ok(suites)
}

/// Builds an example as the tests are built, and runs it.
pub fn example(name: &str, args: &[&str]) -> Result<()> {
    let example = format!("--example={name}");
    shell::run(shell::cargo().args(["build", "--quiet"]).args(PROFILE).args(EVERYTHING).arg(example))?;
    shell::run(Command::new(shell::target().join("checked/examples").join(name)).args(args))
}

fn compile(what: &str) -> Result<Vec<Suite>> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(PROFILE);
    cargo.args(EVERYTHING).arg(what).stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut suites = Vec::new();
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line?).context("cargo's messages are not JSON")?;
        suites.extend(suite(&message));
    }
    if !child.wait()?.success() {
        bail!("the tests do not compile");
    }
    Ok(suites)
}

/// The test program that a message of cargo announces, if it does.
fn suite(message: &Value) -> Option<Suite> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let package = folder.file_name()?.to_str()?;
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let name = if kind == "test" { format!("{package}/{target}") } else { format!("{package} ({kind})") };
    Some(Suite { name, program, folder })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_test_programs_are_suites() {
        let message = |test: bool, kind: &str| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": "/w/crates/stack/Cargo.toml",
                "target": { "kind": [kind], "name": "complaints" },
                "profile": { "test": test },
                "executable": "/w/target/complaints-1",
            })
        };
        let name = |message: &Value| suite(message).map(|suite| suite.name);
        assert_eq!(name(&message(true, "test")).as_deref(), Some("stack/complaints"));
        assert_eq!(name(&message(true, "lib")).as_deref(), Some("stack (lib)"));
        assert_eq!(name(&message(false, "bin")), None);
        assert_eq!(name(&json!({ "reason": "build-script-executed" })), None);
    }
}
