//! What of a file lies in memory, so that it can be sent without waiting for a disk.
//!
//! Places are looked at, each by reading a byte of it (`preadv2` with `RWF_NOWAIT`). `cachestat` would count the pages, but tells only
//! who may write to the file.

use super::table::{Content, OpenFile};
use rustix::fd::AsFd;
use rustix::io::Errno;

/// Distance in bytes between the places that are looked at: the kernel's read-ahead brings in pieces of this length unless it is
/// set to less. Each look costs as much as sending 4 KiB or more.
const STRIDE: u64 = 128 << 10;
/// The same where all was there so far: a worker brings in as much at a time.
const STRIDE_MAX: u64 = 1 << 20;
/// Bytes that are looked through at once, and of how many it is known before more are.
const LOOKED_THROUGH: u64 = 2 << 20;
const KNOWN_LEAST: u64 = 256 << 10;

/// What of a file is known to lie in memory, as far as samples can tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    /// Up to this offset.
    to: u64,
    /// Distance of the next samples: the more of a file was there, the fewer are taken.
    stride: u64,
}

impl Default for Resident {
    fn default() -> Self {
        Resident { to: 0, stride: STRIDE }
    }
}

impl Resident {
    /// The file was brought into memory up to `offset`.
    pub(crate) fn set(&mut self, offset: u64) {
        self.to = offset;
    }

    /// Looks further where little is known beyond `offset`; returns how much of `len` bytes is known then.
    pub(crate) fn look(&mut self, file: &OpenFile, offset: u64, len: u64) -> u64 {
        if offset.checked_add(len).is_none() {
            // No file is that long: who sends it will meet the error.
            return len;
        }
        let known = self.to.saturating_sub(offset);
        if known < len.min(KNOWN_LEAST) {
            let (from, end) = (self.to.max(offset), offset + len.min(LOOKED_THROUGH));
            let mut to = file.resident_to(from, end, self.stride);
            if to < end && self.stride > STRIDE {
                to = file.resident_to(from, end, STRIDE);
            }
            self.stride = if to < end { STRIDE } else { (2 * self.stride).min(STRIDE_MAX) };
            self.to = to;
        }
        self.to.saturating_sub(offset).min(len)
    }
}

impl OpenFile {
    /// Up to where the bytes from `from` to `end` can be read without waiting for a disk, as far as places at this distance tell: the last
    /// that is there in front of one that is not.
    pub(super) fn resident_to(&self, from: u64, end: u64, stride: u64) -> u64 {
        let Content::Fd(fd) = &self.content else { return end };
        if let Some(answer) = self.medium.is_always_resident() {
            return if answer { end } else { from };
        }
        let last = end.saturating_sub(1).max(from);
        let (mut at, mut there) = (from, from);
        loop {
            match self.medium.read(fd.as_fd(), &mut [0], at) {
                // The end of the file, or an error: who sends the piece will meet it at once.
                Ok(0) => return end,
                Ok(_) => there = at,
                Err(Errno::AGAIN | Errno::OPNOTSUPP) => return there,
                Err(_) => return end,
            }
            if at >= last {
                return end;
            }
            at = at.saturating_add(stride).min(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::TempDir;

    fn file_of(len: u64) -> (TempDir, OpenFile) {
        let dir = TempDir::new();
        let file = std::fs::File::create_new(dir.0.join("a")).unwrap();
        file.set_len(len).unwrap();
        let file = std::fs::File::open(dir.0.join("a")).unwrap();
        // A hole's pages come into memory by being read.
        assert_eq!(std::io::copy(&mut &file, &mut std::io::sink()).unwrap(), len);
        (dir, OpenFile::new(Content::Fd(file.into()), false))
    }

    #[test]
    fn the_more_was_there_the_fewer_places_are_looked_at() {
        let len = 40 << 20;
        let (_dir, file) = file_of(len);
        let (mut resident, mut at, mut looks) = (Resident::default(), 0, 0);
        while at < len {
            let before = resident.to;
            let known = resident.look(&file, at, len - at);
            looks += u32::from(resident.to > before);
            assert!(known >= KNOWN_LEAST.min(len - at) && resident.to <= len, "{known} at {at}");
            at += known.min(300 << 10);
        }
        assert_eq!(resident.stride, STRIDE_MAX);
        assert!((20..=24).contains(&looks), "{looks} times 2 MiB less what was known");
    }

    #[test]
    fn what_lies_in_front_of_a_hole_is_known() {
        let (from, hole, len) = (1 << 20, 2 << 20, 6 << 20);
        let dir = TempDir::new();
        std::fs::write(dir.0.join("a"), vec![7; len as usize]).unwrap();
        let file = std::fs::File::open(dir.0.join("a")).unwrap();
        file.sync_all().unwrap();
        let rest = std::num::NonZeroU64::new(len - hole);
        rustix::fs::fadvise(&file, hole, rest, rustix::fs::Advice::DontNeed).unwrap();
        let file = OpenFile::new(Content::Fd(file.into()), false);
        let mut resident = Resident { to: 0, stride: STRIDE_MAX };
        let known = resident.look(&file, from, len - from);
        if known == LOOKED_THROUGH {
            // This file system keeps what it is told to forget, or cannot tell.
            return;
        }
        // The last place that is looked at in front of the hole, which begins at one; or behind it, where pages are forgotten by more.
        assert!(from + known >= hole - STRIDE && known.is_multiple_of(STRIDE), "{known}");
        assert_eq!((resident.to, resident.stride), (from + known, STRIDE));
    }

    #[test]
    fn what_was_known_is_sent_before_what_is_not_there_is_asked_for() {
        let len = 3 << 20;
        let (_dir, file) = file_of(len);
        file.mute();
        let mut resident = Resident { to: 0, stride: STRIDE_MAX };
        assert_eq!(resident.look(&file, 0, len), 0);
        assert_eq!(resident.stride, STRIDE);
        resident.set(1 << 20);
        assert_eq!(resident.look(&file, 0, len), 1 << 20);
        assert_eq!(resident.look(&file, (1 << 20) - 5, len), 5);
        assert_eq!(resident.look(&file, 1 << 20, len), 0);
        // What no file can have is not waited for.
        assert_eq!(resident.look(&file, u64::MAX, 7), 7);
    }
}
