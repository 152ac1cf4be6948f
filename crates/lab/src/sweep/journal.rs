//! What a sweep has finished, in a file to which lines are appended: after whatever end, the sweep goes on behind it.
//!
//! A line holds the rows of some items. It is on the disk before the items count as done. What the last line lacks, because
//! the writer ended in it, is cut off.

use super::plan::Plan;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Rows of items.
pub type Rows = BTreeMap<u64, String>;

/// The first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    sweep: u64,
    header: String,
}

/// The others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunk {
    rows: Vec<(u64, String)>,
}

/// See the module.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// A journal that cannot be used.
#[derive(Debug)]
pub enum JournalError {
    /// What the system said.
    File(PathBuf, io::Error),
    /// It is of another sweep.
    Other(PathBuf),
    /// Another process writes it.
    Busy(PathBuf),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::File(path, why) => write!(f, "the journal {}: {why}", path.display()),
            JournalError::Other(path) => write!(
                f,
                "the journal {} is of another sweep, or of this one before its file was changed; remove it to begin anew, or \
                 choose another --out",
                path.display()
            ),
            JournalError::Busy(path) => {
                write!(f, "the journal {} is being written by another process", path.display())
            }
        }
    }
}

impl std::error::Error for JournalError {}

impl Journal {
    /// Opens the journal of a sweep, or begins it; returns what it holds.
    ///
    /// # Errors
    /// A journal of another sweep, one that is in use, and what the system says.
    pub fn open(path: &Path, plan: &Plan) -> Result<(Journal, Rows), JournalError> {
        let failed = |why| JournalError::File(path.to_owned(), why);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| JournalError::Busy(path.to_owned()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let head = Head { sweep: plan.digest, header: plan.header() };
        let mut journal = Journal { file, path: path.to_owned() };
        let (rows, whole) = match read(&bytes, &head) {
            Some(found) => found,
            None => return Err(JournalError::Other(path.to_owned())),
        };
        journal.file.set_len(whole as u64).map_err(failed)?;
        journal.file.seek(SeekFrom::End(0)).map_err(failed)?;
        if whole == 0 {
            journal.put(&head)?;
        }
        Ok((journal, rows))
    }

    /// Notes rows; they are on the disk when it returns.
    ///
    /// # Errors
    /// What the system says.
    pub fn note(&mut self, rows: &[(u64, String)]) -> Result<(), JournalError> {
        self.put(&Chunk { rows: rows.to_vec() })
    }

    /// Removes it: its sweep is done, and its table written.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(self) -> Result<(), JournalError> {
        std::fs::remove_file(&self.path).map_err(|why| JournalError::File(self.path, why))
    }

    fn put(&mut self, line: &impl Serialize) -> Result<(), JournalError> {
        let mut write = || -> io::Result<()> {
            let mut bytes = serde_json::to_vec(line)?;
            bytes.push(b'\n');
            self.file.write_all(&bytes)?;
            self.file.sync_data()
        };
        write().map_err(|why| JournalError::File(self.path.clone(), why))
    }
}

/// The rows of a journal and how many bytes of it are whole lines; `None` if it is of another sweep.
fn read(bytes: &[u8], head: &Head) -> Option<(Rows, usize)> {
    let (mut rows, mut whole) = (Rows::new(), 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        match number {
            0 => {
                let found: Head = serde_json::from_slice(line).ok()?;
                if found != *head {
                    return None;
                }
            }
            _ => match serde_json::from_slice::<Chunk>(line) {
                Ok(chunk) => rows.extend(chunk.rows),
                // Written in part before the machine lost its power; what follows it was never told to be there.
                Err(_) => break,
            },
        }
        whole += line.len();
    }
    Some((rows, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_journal_cut_anywhere_holds_its_whole_lines(
            chunks in proptest::collection::vec(proptest::collection::vec((0u64..100, "[a-z,\"\n]{0,8}"), 0..4), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let head = Head { sweep: 7, header: "item,seed\n".to_owned() };
            let mut bytes = serde_json::to_vec(&head).unwrap();
            bytes.push(b'\n');
            let mut ends = vec![(bytes.len(), Rows::new())];
            let mut rows = Rows::new();
            for chunk in chunks {
                rows.extend(chunk.clone());
                bytes.extend(serde_json::to_vec(&Chunk { rows: chunk }).unwrap());
                bytes.push(b'\n');
                ends.push((bytes.len(), rows.clone()));
            }
            let cut = cut.index(bytes.len() + 1);
            let expected = ends.iter().rev().find(|(end, _)| *end <= cut).cloned().unwrap_or_default();
            let (found, whole) = read(&bytes[..cut], &head).unwrap();
            prop_assert_eq!((whole, found), expected);
            let other = Head { sweep: 8, ..head };
            prop_assert_eq!(read(&bytes, &other), None);
        }
    }
}
