//! What goes wrong in `linerate fabric`, and whose fault it is.

use crate::apart::Clash;
use linerate_fabric::ask::AskError;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command ended without its result.
#[derive(Debug)]
pub enum FabricError {
    /// An argument that does not fit.
    Value {
        /// The flag or argument.
        name: &'static str,
        /// What it was given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Keys of a description that cannot have these values; `why` has what was expected.
    Change {
        /// The flag.
        name: &'static str,
        /// The settings.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// Arguments that are not enough; has what was expected.
    Usage(&'static str),
    /// A transfer that the chip cannot do, and what it can.
    Transfer(String),
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// A file with a mistake; `why` has the place and what was expected.
    Malformed {
        /// The file, or the name of what is built in.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A file or standard output cannot be written.
    Write {
        /// Where to.
        to: String,
        /// What the system said.
        why: std::io::Error,
    },
    /// The work cannot be done on this input.
    Failed(String),
}

impl FabricError {
    /// An argument that does not fit.
    pub fn value(name: &'static str, value: impl fmt::Display, expected: impl Into<String>) -> FabricError {
        FabricError::Value { name, value: value.to_string(), expected: expected.into() }
    }

    /// 2 for what the user said wrong, 1 for what went wrong.
    pub fn code(&self) -> u8 {
        match self {
            FabricError::Value { .. }
            | FabricError::Change { .. }
            | FabricError::Usage(_)
            | FabricError::Transfer(_)
            | FabricError::Unreadable { .. }
            | FabricError::Malformed { .. } => 2,
            FabricError::Write { .. } | FabricError::Failed(_) => 1,
        }
    }

    /// [`Self::code`] for the system.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FabricError::Value { name, value, expected } => {
                write!(f, "invalid value '{value}' for '{name}': expected {expected}")
            }
            FabricError::Change { name, value, why } => {
                write!(f, "invalid value '{value}' for '{name}': {why}")
            }
            FabricError::Transfer(why) => write!(f, "invalid value for '--transfer': {why}"),
            FabricError::Unreadable { path, why } => write!(f, "cannot read {}: {why}", path.display()),
            FabricError::Malformed { file, why } => write!(f, "{file}: {why}"),
            FabricError::Write { to, why } => write!(f, "cannot write {to}: {why}"),
            FabricError::Usage(why) => f.write_str(why),
            FabricError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FabricError {}

impl From<Clash> for FabricError {
    fn from(clash: Clash) -> FabricError {
        FabricError::value(clash.option, clash.file.display(), clash.expected)
    }
}

impl From<AskError> for FabricError {
    fn from(error: AskError) -> FabricError {
        FabricError::Transfer(error.to_string())
    }
}
