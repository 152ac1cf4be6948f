//! Files to serve and folders to receive into.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Names and lengths of the files that every transfer test moves.
pub const SIZES: [(&str, u64); 4] = [("empty", 0), ("one", 1), ("mib", 1 << 20), ("gib", 1 << 30)];

/// A folder that is removed with the value.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        let name =
            format!("linerate-e2e-{}-data-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder { path }
    }

    /// A folder with the files of [`SIZES`] up to `largest` bytes.
    pub fn with_files(largest: u64) -> Folder {
        let folder = Folder::new();
        for (name, len) in SIZES.iter().filter(|(_, len)| *len <= largest) {
            write_random(&folder.file(name), *len);
        }
        folder
    }

    /// The folder as text.
    pub fn path(&self) -> &str {
        self.path.to_str().expect("UTF-8")
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Writes `len` bytes that no two places share.
pub fn write_random(path: &Path, len: u64) {
    let mut state = 0x1234_5678_9abc_def1_u64 ^ len;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("a file"));
    let mut left = len;
    while left > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let take = left.min(8) as usize;
        file.write_all(&state.to_le_bytes()[..take]).expect("room on the disk");
        left -= take as u64;
    }
    file.flush().expect("room on the disk");
}

/// Asserts that two files have the same SHA-256 hash.
pub fn assert_same(a: &Path, b: &Path) {
    let output = Command::new("sha256sum").arg(a).arg(b).output().expect("sha256sum");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let hashes: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(
        hashes.len() == 2 && hashes[0] == hashes[1],
        "{} and {} differ:\n{text}",
        a.display(),
        b.display()
    );
}
