//! HASH: a digest of a file, computed piece by piece (draft-bryan-ftpext-hash).

use super::hub::{JobId, Kind, Turn};
use super::reply::{Replies, reply};
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};
use linerate_transport::{FileError, FileId, FileOp, FileReply, VirtualPath};
use sha2::{Digest, Sha256};

/// Bytes read at once. At some hundred MB/s a piece takes less than a millisecond of the loop's time.
const READ_LEN: usize = 128 << 10;

/// The algorithm that HASH uses, set with OPTS HASH.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum HashAlgorithm {
    #[default]
    Sha256,
    /// The CRC of Ethernet and ZIP: against accidents, not against attackers.
    Crc32,
}

impl HashAlgorithm {
    pub(super) fn name(self) -> &'static str {
        match self {
            HashAlgorithm::Sha256 => "SHA-256",
            HashAlgorithm::Crc32 => "CRC32",
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        [HashAlgorithm::Sha256, HashAlgorithm::Crc32]
            .into_iter()
            .find(|a| a.name().eq_ignore_ascii_case(name))
    }

    /// The list of FEAT, the current one with a star.
    pub(super) fn feature(current: Self) -> &'static str {
        match current {
            HashAlgorithm::Sha256 => "SHA-256*;CRC32",
            HashAlgorithm::Crc32 => "SHA-256;CRC32*",
        }
    }
}

/// A digest under way.
enum State {
    Sha256(Box<Sha256>),
    Crc32(u32),
}

/// The remainders of all bytes under the reversed polynomial of CRC-32 (IEEE 802.3).
static CRC32: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ 0xedb8_8320 } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
};

impl State {
    fn new(algorithm: HashAlgorithm) -> Self {
        match algorithm {
            HashAlgorithm::Sha256 => State::Sha256(Box::default()),
            HashAlgorithm::Crc32 => State::Crc32(u32::MAX),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            State::Sha256(state) => state.update(bytes),
            State::Crc32(rest) => {
                for byte in bytes {
                    let at = (*rest as u8 ^ byte) as usize;
                    *rest = *rest >> 8 ^ CRC32[at];
                }
            }
        }
    }

    fn finish(self) -> String {
        let mut hex = String::new();
        let mut put = |bytes: &[u8]| bytes.iter().try_for_each(|byte| write!(hex, "{byte:02x}"));
        // Writing to a string does not fail.
        let _: fmt::Result = match self {
            State::Sha256(state) => put(&state.finalize()),
            State::Crc32(rest) => put(&(!rest).to_be_bytes()),
        };
        hex
    }
}

/// A file being hashed.
pub(super) struct HashJob {
    job: JobId,
    algorithm: HashAlgorithm,
    state: State,
    file: FileId,
    path: VirtualPath,
    offset: u64,
}

impl HashJob {
    /// The file is open: begins to read it.
    pub(super) fn begin(
        turn: &mut Turn<'_, '_>,
        job: JobId,
        algorithm: HashAlgorithm,
        path: VirtualPath,
        file: FileId,
    ) -> Self {
        let hash = HashJob { job, algorithm, state: State::new(algorithm), file, path, offset: 0 };
        hash.read(turn);
        hash
    }

    fn read(&self, turn: &mut Turn<'_, '_>) {
        let op = FileOp::Read { file: self.file, offset: self.offset, len: READ_LEN };
        turn.submit(self.job, Kind::Read, op);
    }

    /// A file operation ended. The job when it goes on, the reply when that was all.
    pub(super) fn on_file(
        mut self: Box<Self>,
        turn: &mut Turn<'_, '_>,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) -> Result<Box<Self>, Replies> {
        match result {
            Ok(FileReply::Data(data)) if !data.is_empty() => {
                self.state.update(data.as_ref());
                self.offset += data.len() as u64;
                self.read(turn);
                return Ok(self);
            }
            _ if kind != Kind::Read => return Ok(self),
            _ => {}
        }
        self.abandon(turn);
        Err(match result {
            Ok(_) => {
                let HashJob { algorithm, state, offset, path, .. } = *self;
                let (name, digest) = (algorithm.name(), state.finish());
                reply(213, format_args!("{name} 0-{offset} {digest} {path}"))
            }
            Err(error) => reply(451, error),
        })
    }

    /// Lets the file go.
    pub(super) fn abandon(&self, turn: &mut Turn<'_, '_>) {
        turn.close(self.job, Some(self.file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(algorithm: HashAlgorithm, bytes: &[u8], expected: &str) {
        for piece in [1, 7, 1000] {
            let mut state = State::new(algorithm);
            bytes.chunks(piece).for_each(|part| state.update(part));
            assert_eq!(state.finish(), expected);
        }
    }

    #[test]
    fn digests_are_those_of_the_standards() {
        check(HashAlgorithm::Crc32, b"123456789", "cbf43926");
        check(HashAlgorithm::Crc32, b"", "00000000");
        // FIPS 180-2 appendix B.1.
        check(
            HashAlgorithm::Sha256,
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        );
        assert_eq!(HashAlgorithm::by_name("crc32"), Some(HashAlgorithm::Crc32));
        assert_eq!(HashAlgorithm::by_name("MD5"), None);
    }
}
