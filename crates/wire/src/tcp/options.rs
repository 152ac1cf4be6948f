//! TCP options: maximum segment size, window scale, SACK, timestamps, Fast Open (RFC 9293 section 3.2, RFC 7323, RFC 2018, RFC
//! 7413).

use super::{FastOpenCookie, SeqNumber};
use crate::bytes::{Writer, be32};
use crate::error::EmitError;
use core::fmt;

/// Most bytes that options can take.
pub const MAX_OPTIONS_LEN: usize = 40;

/// Most SACK blocks of one segment: four without timestamps, three with.
pub const MAX_SACK_BLOCKS: usize = 4;

/// Largest window scale; a larger one counts as this (RFC 7323 section 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;

/// Bytes of the timestamps option with the padding before it (RFC 7323 appendix A).
pub(super) const TIMESTAMPS_LEN: usize = 12;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock, in ticks of its own.
    pub value: u32,
    /// TSecr: the clock value that it echoes; counts only with ACK set.
    pub echo: u32,
}

impl Timestamps {
    /// Those of options that are these and their padding alone, as nearly every segment has them (RFC 7323 appendix A).
    #[inline]
    pub fn alone(options: &[u8]) -> Option<Timestamps> {
        let &[x, y, kind, len, a, b, c, d, e, f, g, h] = options else { return None };
        // As one number: one comparison.
        if u32::from_be_bytes([x, y, kind, len]) != u32::from_be_bytes([NOP, NOP, TIMESTAMPS, 10]) {
            return None;
        }
        Some(Timestamps { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) })
    }
}

/// One SACK block: bytes that were received, `left` up to but not including `right` (RFC 2018 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNumber,
    /// First sequence number after it.
    pub right: SeqNumber,
}

/// Up to four SACK blocks by value.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// No block.
    pub const EMPTY: SackBlocks = SackBlocks {
        blocks: [SackBlock { left: SeqNumber(0), right: SeqNumber(0) }; MAX_SACK_BLOCKS],
        len: 0,
    };

    /// The blocks, in the order of the segment.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a block; `false` if there are four already.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = block;
                self.len += 1;
                true
            }
            None => false,
        }
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The options of one segment, by value: parsed from it, or to be written to it.
///
/// # Layout when written
///
/// Every option begins so that what follows stays on a 4-byte boundary: `02 04 MSS`, then `01 01 08 0a` (or
/// `04 02 08 0a` with SACK permitted) and the timestamps, `01 03 03 scale`, NOPs, `22 len` and the
/// cookie, `01 01 05 len` and the blocks. Blocks that do not fit into 40 bytes are left out; everything else always fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size in bytes, as offered; not checked for sense.
    pub mss: Option<u16>,
    /// Window scale, at most [`MAX_WINDOW_SCALE`].
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted.
    pub sack_permitted: bool,
    /// SACK blocks.
    pub sack_blocks: SackBlocks,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// A Fast Open cookie, or the request for one; counts only with SYN set (RFC 7413 section 4.1.1).
    pub fast_open: Option<FastOpenCookie>,
    /// Kind of the first option with an illegal length (RFC 9293 MUST-7). An option that is known, but has another
    /// length than its own, is skipped; one that is shorter than two bytes or leaves the header ends parsing. What came
    /// before stays valid. Ignored when written.
    pub malformed: Option<u8>,
}

impl Options {
    /// Reads the options between the fixed header and the payload. Unknown ones are skipped (MUST-6).
    pub fn parse(bytes: &[u8]) -> Options {
        let mut options = Options::default();
        if let timestamps @ Some(_) = Timestamps::alone(bytes) {
            options.timestamps = timestamps;
            return options;
        }
        let mut rest = bytes;
        while let [kind, tail @ ..] = rest {
            let kind = *kind;
            match kind {
                END => break,
                NOP => rest = tail,
                _ => {
                    let len = tail.first().map_or(0, |&len| usize::from(len));
                    let (Some(option), Some(after)) = (rest.get(2..len), rest.get(len..)) else {
                        options.malformed = options.malformed.or(Some(kind));
                        break;
                    };
                    if options.take(kind, option).is_none() {
                        options.malformed = options.malformed.or(Some(kind));
                    }
                    rest = after;
                }
            }
        }
        options
    }

    /// Where the first SACK block begins in options whose end is missing, as in a capture that keeps only the front of each
    /// packet: in a whole header [`sack_blocks`](Self::sack_blocks) has it.
    pub fn cut_sack(bytes: &[u8]) -> Option<SeqNumber> {
        let mut rest = bytes;
        loop {
            match rest {
                [NOP, tail @ ..] => rest = tail,
                [SACK, len, block @ ..] if usize::from(*len) > rest.len() => {
                    return be32(block, 0).map(SeqNumber);
                }
                [END, ..] | [] | [_] => return None,
                [_, len, ..] => rest = rest.get(usize::from(*len).max(2)..)?,
            }
        }
    }

    /// Bytes that the options take when written: a multiple of 4, at most 40.
    pub fn emitted_len(&self) -> usize {
        let blocks = self.fitting_sack_blocks();
        self.len_without_sack() + if blocks == 0 { 0 } else { 4 + 8 * blocks }
    }

    /// How many SACK blocks fit beside the other options.
    pub fn max_sack_blocks(&self) -> usize {
        ((MAX_OPTIONS_LEN - self.len_without_sack()).saturating_sub(4) / 8).min(MAX_SACK_BLOCKS)
    }

    /// Writes the options to the front of `out`, [`emitted_len`](Self::emitted_len) bytes, and returns how many.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut out = Writer::new(out);
        if let Some(mss) = self.mss {
            out.put(&[MSS, 4])?;
            out.put16(mss)?;
        }
        match (self.timestamps, self.sack_permitted) {
            (Some(timestamps), permitted) => {
                let head = if permitted { [SACK_PERMITTED, 2] } else { [NOP, NOP] };
                out.put(&head)?;
                out.put(&[TIMESTAMPS, 10])?;
                out.put32(timestamps.value)?;
                out.put32(timestamps.echo)?;
            }
            (None, true) => out.put(&[NOP, NOP, SACK_PERMITTED, 2])?,
            (None, false) => {}
        }
        if let Some(scale) = self.window_scale {
            out.put(&[NOP, WINDOW_SCALE, 3, scale.min(MAX_WINDOW_SCALE)])?;
        }
        if let Some(cookie) = self.fast_open {
            let len = 2 + cookie.as_slice().len();
            out.put([NOP; 4].get(..len.next_multiple_of(4) - len).unwrap_or_default())?;
            // At most 2 + 16.
            out.put(&[FAST_OPEN, len as u8])?;
            out.put(cookie.as_slice())?;
        }
        let blocks = self.fitting_sack_blocks();
        if blocks > 0 {
            // At most 2 + 8 * 4 = 34.
            out.put(&[NOP, NOP, SACK, 2 + 8 * blocks as u8])?;
            for block in self.sack_blocks.as_slice().iter().take(blocks) {
                out.put32(block.left.0)?;
                out.put32(block.right.0)?;
            }
        }
        Ok(out.len())
    }

    /// Stores one option's data; `None` if its length is not the option's.
    fn take(&mut self, kind: u8, data: &[u8]) -> Option<()> {
        match (kind, data) {
            (MSS, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
            (WINDOW_SCALE, [scale]) => self.window_scale = Some((*scale).min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, _) if data.len() == 8 => self.timestamps = timestamps(data),
            (SACK, _) if !data.is_empty() && data.len().is_multiple_of(8) => {
                for block in data.chunks_exact(8) {
                    let (left, right) = (be32(block, 0)?, be32(block, 4)?);
                    self.sack_blocks.push(SackBlock { left: SeqNumber(left), right: SeqNumber(right) });
                }
            }
            (FAST_OPEN, _) => self.fast_open = Some(FastOpenCookie::new(data)?),
            (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => return None,
            _ => {}
        }
        Some(())
    }

    fn len_without_sack(&self) -> usize {
        let timestamps_or_permitted = match (self.timestamps, self.sack_permitted) {
            (Some(_), _) => 12,
            (None, true) => 4,
            (None, false) => 0,
        };
        4 * usize::from(self.mss.is_some())
            + timestamps_or_permitted
            + 4 * usize::from(self.window_scale.is_some())
            + self.fast_open.map_or(0, |cookie| (2 + cookie.as_slice().len()).next_multiple_of(4))
    }

    fn fitting_sack_blocks(&self) -> usize {
        self.sack_blocks.len().min(self.max_sack_blocks())
    }
}

/// The option as it stands in a header.
pub(super) fn padded_timestamps(timestamps: Timestamps) -> [u8; TIMESTAMPS_LEN] {
    let [a, b, c, d] = timestamps.value.to_be_bytes();
    let [e, f, g, h] = timestamps.echo.to_be_bytes();
    [NOP, NOP, super::options::TIMESTAMPS, 10, a, b, c, d, e, f, g, h]
}

fn timestamps(data: &[u8]) -> Option<Timestamps> {
    Some(Timestamps { value: be32(data, 0)?, echo: be32(data, 4)? })
}
