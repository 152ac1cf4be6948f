//! The caller's memory: lists of pieces to copy from and to copy into, checked once and then safe to use.

use crate::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use libc::iovec;

/// Most pieces in one call (IOV_MAX of Linux).
const MAX_PIECES: usize = 1024;

/// Checks what can be checked of a list: a sane count, no null piece that has a length, no sum beyond `isize`.
fn check(pieces: &[iovec]) -> Result<usize> {
    let mut total = 0usize;
    for piece in pieces {
        if piece.iov_base.is_null() && piece.iov_len > 0 {
            return Err(Errno(libc::EFAULT));
        }
        total = total.checked_add(piece.iov_len).ok_or(Errno(libc::EINVAL))?;
    }
    if isize::try_from(total).is_err() { Err(Errno(libc::EINVAL)) } else { Ok(total) }
}

/// The list of pieces of a call.
///
/// # Safety
///
/// `pieces` is null or points to `count` valid `iovec`s that stay as they are for `'a`.
unsafe fn list<'a>(pieces: *const iovec, count: c_int) -> Result<&'a [iovec]> {
    let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
    if count > MAX_PIECES {
        return Err(Errno(libc::EINVAL));
    }
    if count == 0 {
        return Ok(&[]);
    }
    if pieces.is_null() || !pieces.is_aligned() {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: not null and aligned (just checked), and `count` valid elements that nobody changes for `'a` (the caller's
    // contract); 1,024 of them are far from `isize::MAX` bytes.
    Ok(unsafe { core::slice::from_raw_parts(pieces, count) })
}

/// One buffer as a list of pieces.
pub(crate) fn one(buffer: *const c_void, len: usize) -> [iovec; 1] {
    [iovec { iov_base: buffer.cast_mut(), iov_len: len }]
}

/// Memory of the caller to copy from.
pub(crate) struct Gather<'a> {
    pieces: &'a [iovec],
    len: usize,
}

impl<'a> Gather<'a> {
    /// Takes a list of pieces.
    ///
    /// # Safety
    ///
    /// Every piece that is not null points to `iov_len` initialised bytes that nobody changes for `'a`.
    pub(crate) unsafe fn new(pieces: &'a [iovec]) -> Result<Self> {
        Ok(Gather { pieces, len: check(pieces)? })
    }

    /// Takes a C list of pieces.
    ///
    /// # Safety
    ///
    /// As [`Gather::new`], and `pieces` is null or points to `count` valid elements.
    pub(crate) unsafe fn from_raw(pieces: *const iovec, count: c_int) -> Result<Self> {
        // SAFETY: the caller's contract has both conditions.
        unsafe { Gather::new(list(pieces, count)?) }
    }

    /// All bytes together.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The pieces that have bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.pieces.iter().filter(|piece| piece.iov_len > 0).map(|piece| {
            // SAFETY: `check` saw that it is not null and not longer than `isize::MAX`; that the bytes are there,
            // initialised and unchanged is the contract of `new`.
            unsafe { core::slice::from_raw_parts(piece.iov_base.cast::<u8>().cast_const(), piece.iov_len) }
        })
    }

    /// Copies all bytes into `out`, which has room for them.
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) {
        out.clear();
        self.iter().for_each(|piece| out.extend_from_slice(piece));
    }
}

/// Memory of the caller to copy into. It is never read, and may be uninitialised.
pub(crate) struct Scatter<'a> {
    pieces: &'a [iovec],
    /// Bytes of the first piece that are filled.
    filled: usize,
    room: usize,
    _memory: PhantomData<&'a mut [u8]>,
}

impl<'a> Scatter<'a> {
    /// Takes a list of pieces.
    ///
    /// # Safety
    ///
    /// Every piece that is not null points to `iov_len` writable bytes that nobody else uses for `'a`.
    pub(crate) unsafe fn new(pieces: &'a [iovec]) -> Result<Self> {
        Ok(Scatter { pieces, filled: 0, room: check(pieces)?, _memory: PhantomData })
    }

    /// Takes a C list of pieces.
    ///
    /// # Safety
    ///
    /// As [`Scatter::new`], and `pieces` is null or points to `count` valid elements.
    pub(crate) unsafe fn from_raw(pieces: *const iovec, count: c_int) -> Result<Self> {
        // SAFETY: the caller's contract has both conditions.
        unsafe { Scatter::new(list(pieces, count)?) }
    }

    /// Bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Copies as much of `bytes` as fits; returns how much.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some((piece, later)) = self.pieces.split_first().filter(|_| !rest.is_empty()) {
            let count = (piece.iov_len - self.filled).min(rest.len());
            if count > 0 {
                // SAFETY: `filled + count` is at most the piece's length, so the target lies within the writable bytes
                // that `new` was promised; the source is a live slice of memory that is ours, which nobody else uses
                // the target for, so they do not overlap.
                unsafe {
                    let to = piece.iov_base.cast::<u8>().add(self.filled);
                    core::ptr::copy_nonoverlapping(rest.as_ptr(), to, count);
                }
            }
            self.filled += count;
            rest = &rest[count..];
            if self.filled == piece.iov_len {
                self.pieces = later;
                self.filled = 0;
            }
        }
        let copied = bytes.len() - rest.len();
        self.room -= copied;
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: &mut [u8]) -> iovec {
        iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    }

    #[test]
    fn bytes_are_scattered_over_pieces_and_gathered_from_them() {
        let (mut a, mut b, mut c) = ([0; 2], [0; 0], [0; 3]);
        let pieces = [piece(&mut a), piece(&mut b), piece(&mut c)];
        // SAFETY: three live arrays, used by nobody else until the scatter is gone.
        let mut scatter = unsafe { Scatter::new(&pieces) }.unwrap();
        assert_eq!((scatter.put(b"1"), scatter.room()), (1, 4));
        assert_eq!((scatter.put(b"23456"), scatter.room()), (4, 0));
        assert_eq!(scatter.put(b"7"), 0);
        // SAFETY: the same arrays, initialised and unchanged.
        let gather = unsafe { Gather::new(&pieces) }.unwrap();
        let mut out = vec![9];
        gather.copy_to(&mut out);
        assert_eq!((gather.len(), out.as_slice()), (5, &b"12345"[..]));
    }

    #[test]
    fn bad_lists_are_refused() {
        let null = iovec { iov_base: core::ptr::null_mut(), iov_len: 1 };
        let huge = iovec { iov_base: core::ptr::dangling_mut::<u8>().cast(), iov_len: usize::MAX / 2 + 1 };
        assert_eq!(check(&[null]), Err(Errno(libc::EFAULT)));
        assert_eq!(check(&[huge]), Err(Errno(libc::EINVAL)));
        assert_eq!(check(&[huge, huge]), Err(Errno(libc::EINVAL)));
        let count = |count| {
            // SAFETY: a null list is allowed.
            unsafe { Gather::from_raw(core::ptr::null(), count) }.map(|gather| gather.len())
        };
        assert_eq!(count(0), Ok(0));
        assert_eq!(count(1), Err(Errno(libc::EFAULT)));
        assert_eq!(count(-1), Err(Errno(libc::EINVAL)));
        assert_eq!(count(1025), Err(Errno(libc::EINVAL)));
    }
}
