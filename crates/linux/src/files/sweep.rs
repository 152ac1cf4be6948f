//! Removes what uploads of a killed server left behind, in the whole tree, once at the start and beside all else.

use super::root::{RESOLVE, SAFE};
use super::upload::{PREFIX, remove_if_stale};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A thread that goes through the tree.
#[derive(Debug)]
pub(super) struct Sweep {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sweep {
    /// Starts one. Without a thread the tree is left as it is: files are removed when their directory is listed.
    pub(super) fn start(root: OwnedFd) -> Sweep {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("files-sweep".to_owned())
            .spawn(move || sweep(&root, &stopped))
            .ok();
        Sweep { stop, thread }
    }
}

impl Sweep {
    /// Waits for its end.
    pub(super) fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to hand over.
            let _ = thread.join();
        }
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait();
    }
}

fn sweep(root: &OwnedFd, stop: &AtomicBool) {
    let resolve = RESOLVE | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let mut left = vec![String::from(".")];
    while let Some(path) = left.pop() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE;
        let Ok(fd) = rustix::fs::openat2(root, &path, flags, Mode::empty(), resolve) else { continue };
        let Ok(dir) = Dir::new(fd) else { continue };
        sweep_dir(dir, &path, &mut left, stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn sweep_dir(mut dir: Dir, path: &str, left: &mut Vec<String>, stop: &AtomicBool) {
    while let Some(Ok(entry)) = dir.read() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // What is not UTF-8 cannot be reached by the servers and was not made by them.
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        let Ok(fd) = dir.fd() else { return };
        if name.starts_with(PREFIX) {
            remove_if_stale(fd, name);
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match rustix::fs::statat(fd.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => continue,
            },
            kind => kind,
        };
        if kind == FileType::Directory {
            left.push(format!("{path}/{name}"));
        }
    }
}
