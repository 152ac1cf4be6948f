//! Files to serve and folders to receive into.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Bytes of a file that are looked at at once.
const PIECE: usize = 1 << 20;

/// Held while a file that all tests serve is made: tests run side by side.
static MAKING: Mutex<()> = Mutex::new(());

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
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        for ((name, len), kept) in SIZES.iter().zip(kept_files()).filter(|((_, len), _)| *len <= largest) {
            // A gigabyte takes longer to make than to move: it is made once, whole or not at all, and linked.
            if !kept.exists() {
                let part = kept.with_extension(std::process::id().to_string());
                write_random(&part, *len);
                std::fs::rename(&part, &kept).expect("a file");
            }
            let file = folder.file(name);
            std::fs::hard_link(&kept, &file)
                .or_else(|_| std::fs::copy(&kept, &file).map(drop))
                .expect("a file");
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

/// Asserts that two files are the same, byte for byte.
pub fn assert_same(a: &Path, b: &Path) {
    let opened =
        |path: &Path| std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (first, second) = (opened(a), opened(b));
    let len = |file: &std::fs::File| file.metadata().expect("an open file").len();
    assert_eq!(len(&first), len(&second), "lengths of {} and {}", a.display(), b.display());
    let mut pieces = [vec![0; PIECE], vec![0; PIECE]];
    for at in (0..len(&first)).step_by(PIECE) {
        let piece = (len(&first) - at).min(PIECE as u64) as usize;
        let [x, y] = &mut pieces;
        let (x, y) = (&mut x[..piece], &mut y[..piece]);
        first.read_exact_at(x, at).expect("a file that can be read");
        second.read_exact_at(y, at).expect("a file that can be read");
        if x != y {
            let differing = x.iter().zip(&*y).position(|(x, y)| x != y).unwrap_or(0) as u64;
            panic!("{} and {} differ at byte {}", a.display(), b.display(), at + differing);
        }
    }
}

fn kept_files() -> [PathBuf; SIZES.len()] {
    SIZES.map(|(name, _)| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}
