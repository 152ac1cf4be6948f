//! Memory files: `memory/256M` reads as that many bytes and `memory/null` swallows whatever is written, both without
//! a disk, so that the network alone is measured (seed 000's test method).

use linerate_transport::VirtualPath;

/// A virtual file that lives in no file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFile {
    /// Reads as this many bytes of the [`pattern`].
    Source {
        /// Length in bytes.
        len: u64,
    },
    /// Takes and forgets everything.
    Null,
}

/// Longest memory file: 1 TiB.
pub const MAX_LEN: u64 = 1 << 40;

const PATTERN_LEN: usize = 1 << 16;

/// Begins where a cache line does: processors that load several words at once want whole words.
#[repr(align(64))]
struct Pattern([u8; PATTERN_LEN]);

/// The bytes of memory files, repeated every 64 KiB: all byte values, no two equal neighbours.
static PATTERN: Pattern = {
    let mut bytes = [0; PATTERN_LEN];
    let mut i = 0;
    while i < PATTERN_LEN {
        // A row of 251 (prime) shifts the values against powers of two, so that a lost or repeated block shows.
        bytes[i] = (i % 251) as u8;
        i += 1;
    }
    Pattern(bytes)
};

/// The piece of a memory file's content from `offset` on, at most `len` and at most up to the next 64 KiB boundary.
pub fn pattern(offset: u64, len: u64) -> &'static [u8] {
    let start = (offset % PATTERN_LEN as u64) as usize;
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(PATTERN_LEN - start);
    &PATTERN.0[start..start + len]
}

/// Recognises `/memory/SIZE` (decimal digits and an optional K, M, G or T for powers of 1,024) and `/memory/null`.
pub fn lookup(path: &VirtualPath) -> Option<MemoryFile> {
    let name = path.as_str().strip_prefix("/memory/")?;
    if name == "null" {
        return Some(MemoryFile::Null);
    }
    let (digits, shift) = match name.as_bytes().last()? {
        b'k' | b'K' => (&name[..name.len() - 1], 10),
        b'm' | b'M' => (&name[..name.len() - 1], 20),
        b'g' | b'G' => (&name[..name.len() - 1], 30),
        b't' | b'T' => (&name[..name.len() - 1], 40),
        _ => (name, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let len = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (len <= MAX_LEN).then_some(MemoryFile::Source { len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<MemoryFile>) {
        assert_eq!(lookup(&VirtualPath::parse(path).unwrap()), expected, "{path}");
    }

    #[test]
    fn names_are_sizes() {
        check("/memory/0", Some(MemoryFile::Source { len: 0 }));
        check("/memory/256M", Some(MemoryFile::Source { len: 256 << 20 }));
        check("/memory/1g", Some(MemoryFile::Source { len: 1 << 30 }));
        check("/memory/null", Some(MemoryFile::Null));
        check("/memory/2T", None);
        check("/memory/M", None);
        check("/memory/-1", None);
        check("/memory/99999999999999999999", None);
        check("/memory/1M/x", None);
        check("/memory", None);
    }

    #[test]
    fn the_pattern_is_continuous_over_its_pieces() {
        let mut offset = 0;
        while offset < 200_000 {
            let piece = pattern(offset, 70_000);
            assert_eq!(piece[0], ((offset as usize % PATTERN_LEN) % 251) as u8);
            offset += piece.len() as u64;
        }
        assert_eq!(pattern(65_535, 10).len(), 1);
        assert!(pattern(5, 0).is_empty());
    }
}
