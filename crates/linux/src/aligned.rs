//! Buffers that the kernel copies into at full speed.
//!
//! An allocation of 128 KiB and more begins 16 bytes into a page. What lies in the page cache or in a socket begins at its start
//! as a rule, and to copy to an address 8 to 24 bytes further within its page takes three times as long: a load seems to need a
//! store that is still under way, as processors compare only the lowest 12 bits of the addresses at first. From page to page it
//! does not. docs/performance.md has the figures.

use std::ops::{Deref, DerefMut};

/// Bytes of a page, and of a line of the cache.
const PAGE: usize = 4 << 10;
const LINE: usize = 64;

/// Bytes that begin at a page, or at a line if they are so few that a page more would matter. Large ones take no memory before
/// they are written to. Every connection has one, mostly without bytes, so that it is kept small.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    bytes: Box<[u8]>,
    /// Bytes before those, and behind them.
    before: u16,
    behind: u16,
}

const _: () = assert!(PAGE <= u16::MAX as usize);

impl Aligned {
    /// `len` zeros.
    pub(crate) fn new(len: usize) -> Self {
        if len == 0 {
            return Aligned::default();
        }
        let align = if len < 16 * PAGE { LINE } else { PAGE };
        let bytes = vec![0; len + align - 1].into_boxed_slice();
        // Nobody promises that it can be told.
        let before = bytes.as_ptr().align_offset(align).min(align - 1);
        Aligned { bytes, before: before as u16, behind: (align - 1 - before) as u16 }
    }
}

impl Deref for Aligned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[usize::from(self.before)..self.bytes.len() - usize::from(self.behind)]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - usize::from(self.behind);
        &mut self.bytes[usize::from(self.before)..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_all_sizes_begin_at_a_line_and_large_ones_at_a_page() {
        assert!(Aligned::default().is_empty() && Aligned::new(0).is_empty());
        for len in [1, 63, 64, 4 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20] {
            let mut held: Vec<Aligned> = (0..9).map(|_| Aligned::new(len)).collect();
            for buffer in &mut held {
                let align = if len < 64 << 10 { LINE } else { PAGE };
                assert_eq!((buffer.len(), buffer.as_ptr() as usize % align), (len, 0));
                buffer[len - 1] = 1;
            }
        }
    }
}
