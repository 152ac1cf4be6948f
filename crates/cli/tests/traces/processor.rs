//! Perfetto's own trace processor, to be asked by tests.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The rows that a query finds in a trace, which the trace processor has understood whole.
pub fn query(trace: &Path, sql: &str) -> Vec<Vec<Value>> {
    let script = root().join("crates/cli/tests/traces/trace_processor.mjs");
    let output = Command::new("node").arg(script).arg(trace).arg(sql).output().unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
