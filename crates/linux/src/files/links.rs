//! Absolute symbolic links that lead back into the served directory.
//!
//! `openat2` refuses every absolute link beneath a directory, also one that names a place within it by its full path, as
//! `ln -s $PWD/a b` makes them. Such a path is rewritten here to one without links. What comes out is only text: the
//! system resolves it beneath the directory all the same, so that a mistake, or a link that changes meanwhile, leads
//! nowhere else.

use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use std::path::Path;

/// Most links followed on one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// The names that the served directory itself has on this machine, each without a slash at its end.
pub(super) fn names_of_root(fd: impl AsFd, given: &Path) -> Vec<String> {
    let descriptor = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&fd.as_fd()));
    let real = std::fs::read_link(descriptor).ok();
    let given = std::path::absolute(given).ok();
    let mut names: Vec<String> = Vec::new();
    for name in [real, given].into_iter().flatten() {
        let Some(name) = name.to_str() else { continue };
        let name = name.trim_end_matches('/');
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// `path`, relative to the root, with its links replaced by what they lead to; `None` when one leads out.
pub(super) fn rewrite(
    root: impl AsFd,
    names: &[String],
    path: &str,
    resolve: ResolveFlags,
) -> Option<String> {
    // Real directories only, so that `..` can be taken by name.
    let mut done: Vec<String> = Vec::new();
    let mut left: Vec<String> = components(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." {
            done.pop()?;
            continue;
        }
        done.push(name);
        let at = done.join("/");
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat2(&root, &at, flags, Mode::empty(), resolve) else {
            // It does not exist: it may be about to.
            continue;
        };
        let stat = rustix::fs::fstat(&fd).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        done.pop();
        let target = rustix::fs::readlinkat(&fd, "", Vec::new()).ok()?;
        let target = target.to_str().ok()?;
        if target.starts_with('/') {
            left.extend(components(names.iter().find_map(|root| within(target, root))?));
            done.clear();
        } else {
            left.extend(components(target));
        }
    }
    Some(done.join("/"))
}

/// The components of a path, the first one last.
fn components(path: &str) -> Vec<String> {
    path.rsplit('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect()
}

/// What follows the name of the root in an absolute path.
fn within<'a>(target: &'a str, root: &str) -> Option<&'a str> {
    target.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}
