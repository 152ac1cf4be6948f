//! Reading and writing at the edges of a buffer without a panic.

use crate::error::{EmitError, Layer, ParseError};

/// The first `N` bytes as an array, and the rest.
pub(crate) fn split<const N: usize>(layer: Layer, bytes: &[u8]) -> Result<(&[u8; N], &[u8]), ParseError> {
    bytes.split_first_chunk::<N>().ok_or_else(|| ParseError::truncated(layer, N, bytes.len()))
}

/// The first `len` bytes, and the rest.
pub(crate) fn split_at(layer: Layer, bytes: &[u8], len: usize) -> Result<(&[u8], &[u8]), ParseError> {
    bytes.split_at_checked(len).ok_or_else(|| ParseError::truncated(layer, len, bytes.len()))
}

/// The 16-bit number at `at`, if it is there.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk::<2>()?))
}

/// The 32-bit number at `at`, if it is there.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

/// Writes one piece after the other.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the front of `out`.
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Writer { out, at: 0 }
    }

    /// Appends `piece`.
    pub(crate) fn put(&mut self, piece: &[u8]) -> Result<(), EmitError> {
        let needed = self.at.saturating_add(piece.len());
        let available = self.out.len();
        let target = self.out.get_mut(self.at..needed).ok_or(EmitError::too_short(needed, available))?;
        target.copy_from_slice(piece);
        self.at = needed;
        Ok(())
    }

    /// Appends one byte.
    pub(crate) fn put8(&mut self, value: u8) -> Result<(), EmitError> {
        self.put(&[value])
    }

    /// Appends a 16-bit number.
    pub(crate) fn put16(&mut self, value: u16) -> Result<(), EmitError> {
        self.put(&value.to_be_bytes())
    }

    /// Appends a 32-bit number.
    pub(crate) fn put32(&mut self, value: u32) -> Result<(), EmitError> {
        self.put(&value.to_be_bytes())
    }

    /// Bytes written so far.
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// What has been written.
    pub(crate) fn finish(self) -> &'a mut [u8] {
        let Writer { out, at } = self;
        out.get_mut(..at).unwrap_or_default()
    }
}
