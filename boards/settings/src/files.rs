//! The folder that becomes files in flash.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// A file of the folder.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path on the board, as `/a/index.html`.
    pub(crate) path: String,
    /// Where it lies, absolute.
    pub(crate) source: PathBuf,
}

/// All files of a folder and of those in it, by name.
pub(crate) fn collect(folder: &Path) -> Result<Vec<File>> {
    let root =
        folder.canonicalize().with_context(|| format!("files.flash: no folder {}", folder.display()))?;
    let mut files = Vec::new();
    walk(&root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(folder: &Path, below: &str, files: &mut Vec<File>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name =
            name.to_str().with_context(|| format!("{}: the name is not UTF-8", entry.path().display()))?;
        let path = format!("{below}/{name}");
        ensure!(
            !["/ram", "/stats", "/trace", "/capture.pcapng"].contains(&path.as_str()),
            "{}: the board has a {path} of its own",
            folder.display()
        );
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &path, files)?;
        } else {
            files.push(File { path, source: entry.path() });
        }
    }
    Ok(())
}
