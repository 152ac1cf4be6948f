//! What is served: files of fixed sizes, made once; a place in memory for what is stored.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

const FILES: [(&str, u64); 7] = [
    ("f1.bin", 1),
    ("f354.bin", 354),
    ("f10k.bin", 10 << 10),
    ("f32m.bin", 32 << 20),
    ("f256m.bin", 256 << 20),
    ("f1g.bin", 1 << 30),
    ("f4g.bin", 4 << 30),
];

/// User and group nobody of Debian.
const NOBODY: u32 = 65_534;

/// Folders of a run.
#[derive(Debug)]
pub struct Files {
    /// What is served, kept from run to run.
    pub root: PathBuf,
    /// For this run, in memory where the machine has `/dev/shm`: uploads, settings, logs.
    pub work: PathBuf,
}

impl Files {
    /// Makes the folders, and the files that are named and are not there yet.
    pub fn new(root: &Path, names: &[&str]) -> Result<Files> {
        fs::create_dir_all(root).with_context(|| root.display().to_string())?;
        for (name, size) in FILES.iter().filter(|(name, _)| names.contains(name)) {
            let path = root.join(name);
            if fs::metadata(&path).is_ok_and(|found| found.len() == *size) {
                warm(&path)?;
            } else {
                fill(&path, *size).with_context(|| path.display().to_string())?;
            }
        }
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let work = base.join(format!("linerate-bench-{}", std::process::id()));
        let files = Files { root: root.canonicalize()?, work };
        fs::create_dir_all(files.home().join("up"))?;
        fs::create_dir_all(files.work.join("empty"))?;
        // Some open their logs only when they are nobody.
        for folder in [files.work.clone(), files.home(), files.home().join("up")] {
            chown(&folder, Some(NOBODY), Some(NOBODY))?;
        }
        for (folder, mode) in
            [(&files.work, 0o755), (&files.home(), 0o755), (&files.home().join("up"), 0o777)]
        {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
        }
        Ok(files)
    }

    /// What is served where files are stored.
    pub fn home(&self) -> PathBuf {
        self.work.join("home")
    }

    /// Removes what was stored.
    pub fn forget_uploads(&self) {
        for entry in fs::read_dir(self.home().join("up")).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.work);
    }
}

/// Bytes that no file system and no link makes shorter.
fn fill(path: &Path, size: u64) -> Result<()> {
    let mut file = File::create(path)?;
    let (mut block, mut state) = (vec![0; 1 << 20], 0x9e37_79b9_7f4a_7c15_u64);
    let mut left = size;
    while left > 0 {
        for word in block.as_chunks_mut::<8>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        let len = left.min(block.len() as u64);
        file.write_all(&block[..len as usize])?;
        left -= len;
    }
    file.sync_all()?;
    Ok(())
}

/// Reads a file once, so that it lies in the page cache.
fn warm(path: &Path) -> Result<()> {
    let (mut file, mut block) = (File::open(path)?, vec![0; 1 << 20]);
    while file.read(&mut block)? > 0 {}
    Ok(())
}
