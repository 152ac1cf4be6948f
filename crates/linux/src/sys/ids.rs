//! The user and groups of the whole process: the C library changes them in all threads, where the system call alone
//! would change one.
#![allow(unsafe_code)]

use std::io;

/// Replaces the supplementary groups.
pub(crate) fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: pointer and count are those of a slice that lives through the call, which only reads it; `gid_t` is `u32`
    // on Linux.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })
}

/// Changes the real, effective and saved group.
pub(crate) fn set_group(gid: u32) -> io::Result<()> {
    // SAFETY: takes three numbers and touches no memory of ours.
    check(unsafe { libc::setresgid(gid, gid, gid) })
}

/// Changes the real, effective and saved user.
pub(crate) fn set_user(uid: u32) -> io::Result<()> {
    // SAFETY: takes three numbers and touches no memory of ours.
    check(unsafe { libc::setresuid(uid, uid, uid) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
