//! What is served: files of fixed sizes, made once; a place in memory for what is stored.

use crate::rows::{Client, Row, Store};
use anyhow::{Context, Result};
use linerate_lab::measure::place;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    /// For this run, beside what is served: uploads to disk.
    disk: PathBuf,
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
        let root = root.canonicalize()?;
        let disk = root.with_file_name(format!("stored-{}", std::process::id()));
        let files = Files { root, work, disk };
        fs::create_dir_all(files.work.join("empty"))?;
        // Some open their logs only when they are nobody.
        own(&files.work, 0o755)?;
        Ok(files)
    }

    /// Makes what a row needs; returns the folder that its servers serve.
    pub fn prepare(&self, row: &Row) -> Result<PathBuf> {
        if matches!(row.client, Client::Ftp { up: true, .. }) {
            let home = if row.store == Store::Disk { &self.disk } else { &self.work }.join("home");
            let up = home.join("up");
            fs::create_dir_all(&up).with_context(|| up.display().to_string())?;
            own(&home, 0o755)?;
            own(&up, 0o777)?;
            return Ok(home);
        }
        if row.store == Store::Memory {
            let served = self.work.join("served");
            fs::create_dir_all(&served)?;
            if let Some(name) = row.client.file() {
                fs::copy(self.root.join(name), served.join(name)).context(name)?;
            }
            return Ok(served);
        }
        Ok(self.root.clone())
    }

    /// Before a measurement: has a row's file in the page cache, from which a kernel may take what was not used for a while,
    /// or not in it, where that is what is measured.
    pub fn lay(&self, row: &Row) -> Result<()> {
        let (Client::Download { .. } | Client::Ftp { .. }, Some(name)) = (row.client, row.client.file())
        else {
            return Ok(());
        };
        match row.store {
            Store::Cold => {
                let file = format!("if={}", self.root.join(name).display());
                place::run(Command::new("dd").args([&file, "iflag=nocache", "count=0", "status=none"]))?;
                Ok(())
            }
            Store::Memory => warm(&self.work.join("served").join(name)),
            Store::Usual | Store::Disk => warm(&self.root.join(name)),
        }
        .context(name)
    }

    /// Removes what was stored.
    pub fn forget_uploads(&self) {
        for folder in [&self.work, &self.disk] {
            for entry in fs::read_dir(folder.join("home/up")).into_iter().flatten().flatten() {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Gives back the memory that a row's file takes.
    pub fn forget_served(&self) {
        let _ = fs::remove_dir_all(self.work.join("served"));
    }
}

/// Gives a folder to nobody.
fn own(folder: &Path, mode: u32) -> Result<()> {
    chown(folder, Some(NOBODY), Some(NOBODY))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    Ok(())
}

impl Drop for Files {
    fn drop(&mut self) {
        for folder in [&self.work, &self.disk] {
            let _ = fs::remove_dir_all(folder);
        }
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
