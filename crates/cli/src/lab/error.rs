//! What goes wrong in `linerate lab`, whose fault it is, and how results are written.

use crate::apart::{Clash, apart};
use serde::Serialize;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// Why a command ended without its result.
#[derive(Debug)]
pub enum LabError {
    /// What was asked for cannot be: an argument, a file with a mistake.
    Asked(String),
    /// What was asked for went wrong: a program that is missing, a server that does not answer.
    Failed(String),
    /// A file or standard output cannot be written.
    Write {
        /// Where to.
        to: String,
        /// What the system said.
        why: io::Error,
    },
}

impl LabError {
    /// 2 for what the user said wrong, 1 for what went wrong.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            LabError::Asked(_) => 2,
            LabError::Failed(_) | LabError::Write { .. } => 1,
        })
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Asked(why) | LabError::Failed(why) => f.write_str(why),
            LabError::Write { to, why } => write!(f, "cannot write {to}: {why}"),
        }
    }
}

impl std::error::Error for LabError {}

impl From<Clash> for LabError {
    fn from(Clash { option, file, expected }: Clash) -> LabError {
        LabError::Asked(format!("invalid value '{}' for '{option}': expected {expected}", file.display()))
    }
}

/// Prints a result on standard output.
pub fn print(text: &str) -> Result<(), LabError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Who reads only the beginning has what it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|why| LabError::Write { to: "standard output".to_owned(), why }),
    }
}

/// Prints a result as JSON on standard output, as it is made: it may be many times as large as what it is made of.
pub fn print_json(result: &impl Serialize) -> Result<(), LabError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, result).map_err(io::Error::from);
    match written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|why| LabError::Write { to: "standard output".to_owned(), why }),
    }
}

/// What an option writes.
pub type Written<'a> = (&'static str, Option<&'a Path>);

/// Whether what options write can be written, and overwrites neither what is read nor what another writes, before an experiment
/// that may take an hour begins. A file that is there keeps its contents.
pub fn check_outputs(reads: &[&Path], writes: &[Written<'_>]) -> Result<(), LabError> {
    apart(reads, writes)?;
    for (_, file) in writes {
        let Some(file) = file else { continue };
        let tried = match std::fs::symlink_metadata(file) {
            Ok(_) => OpenOptions::new().append(true).open(file).map(drop),
            Err(_) => OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(file)
                .and_then(|_| std::fs::remove_file(file)),
        };
        tried.map_err(|why| LabError::Write { to: file.display().to_string(), why })?;
    }
    Ok(())
}

/// Writes a file.
pub fn write(file: &Path, bytes: impl AsRef<[u8]>) -> Result<(), LabError> {
    std::fs::write(file, bytes).map_err(|why| LabError::Write { to: file.display().to_string(), why })
}

/// A result as JSON, for people too, with a line end.
pub fn json(result: &impl Serialize) -> Result<String, LabError> {
    let text = serde_json::to_string_pretty(result).map_err(|why| LabError::Failed(why.to_string()))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_told_and_what_can_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("linerate-writable-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let [new, old] = ["new.html", "old.html"].map(|name| folder.join(name));
        std::fs::write(&old, "kept").unwrap();
        let outputs =
            |[plot, html]: [Option<&Path>; 2]| check_outputs(&[], &[("--plot", plot), ("--html", html)]);
        outputs([Some(&new), None]).unwrap();
        outputs([None, Some(&old)]).unwrap();
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
        for wrong in [folder.clone(), folder.join("nowhere/x.html")] {
            let error = outputs([Some(&wrong), None]).unwrap_err();
            assert!(error.to_string().contains(&format!("cannot write {}", wrong.display())), "{error}");
        }
        let error = outputs([Some(&new), Some(&new)]).unwrap_err();
        assert!(error.to_string().contains("--html': expected a file other than that of --plot"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
