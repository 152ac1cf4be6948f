//! Why a capture cannot be read.

use std::fmt;
use std::io;

/// What is wrong with a capture, and where.
#[derive(Debug)]
pub enum ExplainError {
    /// The bytes cannot be read at all.
    Read {
        /// Bytes of the file that were read before.
        offset: u64,
        /// What the system said.
        why: io::Error,
    },
    /// The file is neither pcap nor pcapng.
    Unrecognised {
        /// Its first bytes, four at most.
        found: Vec<u8>,
    },
    /// A block or record is not what the format demands.
    Malformed {
        /// Where it begins, in bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExplainError::Read { offset, why } => write!(f, "cannot read on at byte {offset}: {why}"),
            ExplainError::Unrecognised { found } if found.is_empty() => {
                f.write_str("the file is empty: expected a capture as pcap or pcapng")
            }
            ExplainError::Unrecognised { found } if packer(found).is_some() => {
                let (name, program) = packer(found).unwrap_or_default();
                write!(
                    f,
                    "compressed by {name}: expected the capture itself, as in {program} FILE | linerate explain -"
                )
            }
            ExplainError::Unrecognised { found } => {
                f.write_str("not a capture: it begins with")?;
                found.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
                f.write_str(
                    "; expected pcap (d4 c3 b2 a1, 4d 3c b2 a1, or these in reverse) or pcapng (0a 0d 0d 0a)",
                )
            }
            ExplainError::Malformed { offset, what } => write!(f, "at byte {offset}: {what}"),
        }
    }
}

/// What compressed a file that begins so, and what unpacks it.
fn packer(found: &[u8]) -> Option<(&'static str, &'static str)> {
    match found {
        [0x1f, 0x8b, ..] => Some(("gzip", "zcat")),
        [0x28, 0xb5, 0x2f, 0xfd] => Some(("zstd", "zstdcat")),
        [0xfd, b'7', b'z', b'X'] => Some(("xz", "xzcat")),
        [b'B', b'Z', b'h', _] => Some(("bzip2", "bzcat")),
        [0x04, 0x22, 0x4d, 0x18] => Some(("lz4", "lz4cat")),
        _ => None,
    }
}

impl std::error::Error for ExplainError {}
