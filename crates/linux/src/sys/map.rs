//! Memory that a device shares with us: its registers, and a buffer that it reads and writes by itself.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// Bytes of a mapping, which is never undone: what is made of it may be anywhere when it would be.
///
/// Nothing but this module knows its address. What is not split off is reached by words alone.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a `Mapping` owns its bytes as a `Box<[u8]>` would: no thread that created it is remembered in it.
unsafe impl Send for Mapping {}

/// Maps the first `len` bytes of what `fd` is, for reading and writing.
pub(crate) fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Mapping> {
    map_at(fd, len, 0)
}

/// Maps `len` bytes of what `fd` is from `offset` on, for reading and writing.
pub(crate) fn map_at(fd: BorrowedFd<'_>, len: usize, offset: u64) -> io::Result<Mapping> {
    new_mapping(fd.as_raw_fd(), len, libc::MAP_SHARED, offset)
}

/// Fresh memory of our own, all zero, which begins at a page.
pub(crate) fn anonymous(len: usize) -> io::Result<Mapping> {
    new_mapping(-1, len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
}

fn new_mapping(fd: c_int, len: usize, kind: c_int, offset: u64) -> io::Result<Mapping> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: a new mapping at an address of the kernel's choice replaces none of ours; the descriptor, if there is one, is open
    // for the call.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), len, protection, kind, fd, offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    match NonNull::new(start.cast()) {
        Some(start) => Ok(Mapping { start, len }),
        None => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

impl Mapping {
    /// No byte.
    pub(crate) const EMPTY: Mapping = Mapping { start: NonNull::dangling(), len: 0 };

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where it begins, for comparing addresses.
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// To be undone with the value: for what keeps a socket open for as long as it is mapped.
    pub(crate) fn scoped(self) -> Scoped {
        Scoped(self)
    }

    /// The first `len` bytes (at most all), and the rest.
    pub(crate) fn split(self, len: usize) -> (Mapping, Mapping) {
        let len = len.min(self.len);
        // SAFETY: `len` is at most the length of the mapping, so the address is inside of it or one past its end.
        let second = unsafe { self.start.add(len) };
        (Mapping { start: self.start, len }, Mapping { start: second, len: self.len - len })
    }

    /// To be reached word by word.
    pub(crate) fn into_words(self) -> Words {
        Words { start: self.start.cast(), count: self.len / 4 }
    }

    /// As bytes of ours, which the device reads and writes too: a driver looks at none that the device has.
    pub(crate) fn into_bytes(self) -> &'static mut [u8] {
        // SAFETY: the bytes are mapped for reading and writing and stay so to the end of the process; this was their only owner,
        // and it is used up, so there is no other reference. What the device does to them counts as done in the `Dma` methods
        // of the board, which are opaque to the compiler; the driver leaves alone what the device has (`linerate_nic::Dma`).
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// A mapping that ends with its owner, who keeps what is made of it to himself.
#[derive(Debug)]
pub(crate) struct Scoped(Mapping);

impl Scoped {
    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len
    }

    /// Where it begins. Nothing may be reached through it once the value is gone.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.0.start
    }
}

impl Drop for Scoped {
    fn drop(&mut self) {
        if self.0.len > 0 {
            // SAFETY: this is a whole mapping, or a part of one that was split at a page, whose only owner is this value; who made
            // pointers of it holds them beside the value and is gone with it. An error leaves it mapped.
            unsafe { libc::munmap(self.0.start.as_ptr().cast(), self.0.len) };
        }
    }
}

/// Words of 32 bits, little endian, that a device reads and writes too. Each access is one access of the processor's.
#[derive(Debug)]
pub(crate) struct Words {
    start: NonNull<u32>,
    count: usize,
}

// SAFETY: nothing in it belongs to a thread; the mapping stays to the end of the process.
unsafe impl Send for Words {}
// SAFETY: every access is volatile, aligned and a single word, and no reference to a word is ever made: whoever else accesses
// it, another thread or the device, is seen as a device is.
unsafe impl Sync for Words {}

impl Words {
    /// The word at this offset in bytes, which is a multiple of four.
    ///
    /// # Panics
    /// The offset is not inside.
    pub(crate) fn read(&self, offset: usize) -> u32 {
        let at = self.at(offset);
        // SAFETY: `at` has made sure that the word is inside the mapping and aligned.
        let value = unsafe { at.read_volatile() };
        after_read();
        u32::from_le(value)
    }

    /// Writes the word at this offset; what was written before, here or to any memory, is seen before it.
    ///
    /// # Panics
    /// The offset is not inside.
    pub(crate) fn write(&self, offset: usize, value: u32) {
        let at = self.at(offset);
        before_write();
        // SAFETY: as in `read`.
        unsafe { at.write_volatile(value.to_le()) }
    }

    fn at(&self, offset: usize) -> NonNull<u32> {
        assert!(offset.is_multiple_of(4) && offset / 4 < self.count, "no word at {offset:#x}");
        // SAFETY: the word's number is below their count, so its address is inside the mapping; a page, and with it the first
        // word, is aligned to more than four bytes, and mappings are split at multiples of a page.
        unsafe { self.start.add(offset / 4) }
    }
}

/// What is written before is seen by a device before what is written after. Among cores the language orders; a device on Arm or
/// RISC-V is outside of that.
pub(crate) fn before_write() {
    fence(Ordering::SeqCst);
    // SAFETY: barriers touch no memory and no register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("dsb st", options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
}

/// What is read before was read before what is read after.
pub(crate) fn after_read() {
    // SAFETY: barriers touch no memory and no register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("dsb ld", options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        core::arch::asm!("fence iorw, iorw", options(nostack, preserves_flags));
    }
    fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd as _;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    #[test]
    fn words_and_bytes_of_one_file() {
        let fd = memfd_create("map", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 3 * 4_096).unwrap();
        let other = map(fd.as_fd(), 3 * 4_096).unwrap().into_words();
        let (words, rest) = map(fd.as_fd(), 3 * 4_096).unwrap().split(4_096);
        let (middle, last) = rest.split(4_096);
        assert_eq!((words.len(), middle.len(), last.len()), (4_096, 4_096, 4_096));
        assert_eq!(middle.address() + 4_096, last.address());
        let (words, bytes) = (words.into_words(), middle.into_bytes());
        words.write(8, 0x0102_0304);
        bytes[4] = 7;
        assert_eq!((other.read(8), other.read(4_096 + 4)), (0x0102_0304, 7));
        other.write(2 * 4_096, 9);
        assert_eq!(last.into_words().read(0), 9);
        for wrong in [2, 4_096, usize::MAX] {
            assert!(std::panic::catch_unwind(|| words.read(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let fd =
            rustix::fs::open("/dev/null", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        assert!(map(fd.as_fd(), 4_096).is_err());
    }
}
