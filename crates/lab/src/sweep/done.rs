//! Whether a table is already that of a sweep: a run that has nothing to do does nothing.
//!
//! Beside a table that is whole stands `OUT.done`, with a hash of the table and that of its sweep. A table without it, or one
//! that was changed since, is no work of ours.

use super::journal::Rows;
use super::plan::{Plan, digest};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the file holds.
#[derive(PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    sweep: u64,
    table: u64,
}

/// The file beside a table.
pub fn beside(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".done");
    PathBuf::from(name)
}

/// Notes that the table at `out` is this text, of this sweep.
///
/// # Errors
/// What the system says.
pub fn note(out: &Path, plan: &Plan, table: &str) -> io::Result<()> {
    let done = Done { sweep: plan.digest, table: digest(&[table]) };
    fs::write(beside(out), serde_json::to_vec(&done)?)
}

/// The rows of the table at `out`, where it is one of this sweep as a run left it; none otherwise.
pub fn rows(out: &Path, plan: &Plan) -> Rows {
    let read = || {
        let done: Done = serde_json::from_slice(&fs::read(beside(out)).ok()?).ok()?;
        let table = fs::read_to_string(out).ok()?;
        let ours = Done { sweep: plan.digest, table: digest(&[&table]) };
        (done == ours).then(|| split(table.strip_prefix(&plan.header())?)).flatten()
    };
    read().unwrap_or_default()
}

/// Rows by item. A cell in quotes may have ends of lines.
fn split(text: &str) -> Option<Rows> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut begins = Vec::new();
    for record in reader.records() {
        let record = record.ok()?;
        begins.push((record.get(0)?.parse().ok()?, record.position()?.byte() as usize));
    }
    let ends = begins.iter().skip(1).map(|(_, begin)| *begin).chain([text.len()]);
    begins
        .iter()
        .zip(ends)
        .map(|((item, begin), end)| Some((*item, text.get(*begin..end)?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_where_they_begin() {
        let text = "3,0,a\n5,1,\"b\nc\"\n10,2,\n";
        let rows = split(text).unwrap();
        assert_eq!(rows.keys().copied().collect::<Vec<_>>(), [3, 5, 10]);
        assert_eq!(rows[&5], "5,1,\"b\nc\"\n");
        assert_eq!(rows.values().cloned().collect::<String>(), text);
        assert_eq!(split(""), Some(Rows::new()));
        assert_eq!(split("x,1\n"), None);
    }
}
