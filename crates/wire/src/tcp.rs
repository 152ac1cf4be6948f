//! TCP segments (RFC 9293): header view, control bits, sequence numbers, options, and writing a header.

mod fast_open;
mod flags;
mod options;
mod sequence;

pub use fast_open::{FastOpenCookie, MAX_COOKIE_LEN, MIN_COOKIE_LEN};
pub use flags::Flags;
pub use options::{
    MAX_OPTIONS_LEN, MAX_SACK_BLOCKS, MAX_WINDOW_SCALE, Options, SackBlock, SackBlocks, Timestamps,
};
pub use sequence::SeqNumber;

use crate::bytes::{split, split_at};
use crate::checksum::Sum;
use crate::error::{EmitError, Field, Layer, ParseError};

/// Bytes of the header without options.
pub const MIN_HEADER_LEN: usize = 20;

/// Bytes of the longest header.
pub const MAX_HEADER_LEN: usize = MIN_HEADER_LEN + MAX_OPTIONS_LEN;

/// Where the checksum lies, in bytes from the start of the header.
pub const CHECKSUM_OFFSET: usize = 16;

/// A segment whose data offset is within its bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header at the front of `segment`, which ends where the IP payload ends.
    ///
    /// Options are not looked at: no option can make a segment unreadable. The checksum is not verified.
    ///
    /// # Errors
    ///
    /// Fewer bytes than the header takes; a data offset below 5.
    #[inline]
    pub fn parse(segment: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<MIN_HEADER_LEN>(Layer::Tcp, segment)?;
        let words = fixed[12] >> 4;
        let header_len = usize::from(words) * 4;
        let Some(options_len) = header_len.checked_sub(MIN_HEADER_LEN) else {
            return Err(ParseError::invalid(Field::TcpDataOffset, words));
        };
        let Ok((options, payload)) = split_at(Layer::Tcp, rest, options_len) else {
            return Err(ParseError::truncated(Layer::Tcp, header_len, segment.len()));
        };
        Ok(Header { fixed, options, payload })
    }

    /// Reads the header of a segment whose end a capture has left out: options and payload are what there is of them, so that
    /// [`header_len`](Self::header_len) may be less than the segment says, which [`told_header_len`](Self::told_header_len)
    /// tells.
    ///
    /// # Errors
    ///
    /// Fewer than 20 bytes; a data offset below 5.
    pub fn parse_cut(segment: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<MIN_HEADER_LEN>(Layer::Tcp, segment)?;
        let words = fixed[12] >> 4;
        let Some(options_len) = (usize::from(words) * 4).checked_sub(MIN_HEADER_LEN) else {
            return Err(ParseError::invalid(Field::TcpDataOffset, words));
        };
        let (options, payload) = rest.split_at_checked(options_len).unwrap_or((rest, &[]));
        Ok(Header { fixed, options, payload })
    }

    /// Bytes of the header as its data offset has them.
    pub fn told_header_len(&self) -> usize {
        usize::from(self.fixed[12] >> 4) * 4
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Sequence number of the first payload byte, or of the SYN.
    pub fn sequence(&self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]]))
    }

    /// Next sequence number that the sender expects; counts only with ACK set.
    pub fn acknowledgement(&self) -> SeqNumber {
        SeqNumber(u32::from_be_bytes([self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]]))
    }

    /// Bytes of the header with options: 20 to 60.
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// Control bits.
    pub fn flags(&self) -> Flags {
        Flags(self.fixed[13])
    }

    /// Window as it stands in the segment, unscaled.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.fixed[14], self.fixed[15]])
    }

    /// Checksum as it stands in the segment.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[16], self.fixed[17]])
    }

    /// Urgent pointer; counts only with URG set.
    pub fn urgent(&self) -> u16 {
        u16::from_be_bytes([self.fixed[18], self.fixed[19]])
    }

    /// The options, parsed.
    #[inline]
    pub fn options(&self) -> Options {
        Options::parse(self.options)
    }

    /// The options as bytes.
    pub fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Sequence numbers that the segment takes: payload bytes, and one each for SYN and FIN (SEG.LEN).
    pub fn sequence_len(&self) -> u32 {
        let flags = self.flags();
        // An IP payload has at most 2^32 - 1 bytes, jumbograms included.
        self.payload.len() as u32
            + u32::from(flags.contains(Flags::SYN))
            + u32::from(flags.contains(Flags::FIN))
    }

    /// Whether the checksum is right, `pseudo_header` being the sum that
    /// [`pseudo_header4`](crate::checksum::pseudo_header4) or [`pseudo_header6`](crate::checksum::pseudo_header6) gives.
    pub fn verify_checksum(&self, pseudo_header: Sum) -> bool {
        let mut sum = pseudo_header;
        sum.add(self.fixed);
        sum.add(self.options);
        sum.add(self.payload);
        sum.is_valid()
    }
}

/// A header to write.
///
/// `checksum` is written as it is: zero when the sum is filled in later with [`set_checksum`], or the folded
/// pseudo-header sum where a device completes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Builder {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: SeqNumber,
    /// Acknowledgement number; zero unless ACK is set.
    pub acknowledgement: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window, already scaled down.
    pub window: u16,
    /// What the checksum field is to hold.
    pub checksum: u16,
    /// Urgent pointer; zero unless URG is set.
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

impl Builder {
    /// Bytes that the options will take: a multiple of 4, at most 40.
    pub fn options_len(&self) -> usize {
        self.options.emitted_len()
    }

    /// Bytes that the header will take: 20 to 60.
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options_len()
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`header_len`](Self::header_len).
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let (needed, available) = (self.header_len(), out.len());
        let too_short = EmitError::too_short(needed, available);
        let (fixed, rest) = out.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(too_short)?;
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.sequence.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.acknowledgement.0.to_be_bytes());
        // At most 60 / 4 = 15.
        fixed[12] = ((needed / 4) as u8) << 4;
        fixed[13] = self.flags.0;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..18].copy_from_slice(&self.checksum.to_be_bytes());
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        self.options.emit(rest).map_err(|_| too_short)?;
        Ok(needed)
    }
}

/// A header whose options are timestamps or none, as with nearly all segments: what [`Builder`] writes, in fewer steps. The
/// checksum field and the urgent pointer are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainBuilder {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: SeqNumber,
    /// Acknowledgement number; zero unless ACK is set.
    pub acknowledgement: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window, already scaled down.
    pub window: u16,
    /// The one option.
    pub timestamps: Option<Timestamps>,
}

impl PlainBuilder {
    /// Bytes that the header will take: 20 or 32.
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + if self.timestamps.is_some() { options::TIMESTAMPS_LEN } else { 0 }
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`header_len`](Self::header_len).
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let needed = self.header_len();
        let too_short = EmitError::too_short(needed, out.len());
        let (fixed, rest) = out.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(too_short)?;
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.sequence.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.acknowledgement.0.to_be_bytes());
        // 5 or 8.
        fixed[12..14].copy_from_slice(&[((needed / 4) as u8) << 4, self.flags.0]);
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..20].copy_from_slice(&[0; 4]);
        if let Some(timestamps) = self.timestamps {
            let option = rest.first_chunk_mut::<{ options::TIMESTAMPS_LEN }>().ok_or(too_short)?;
            *option = options::padded_timestamps(timestamps);
        }
        Ok(needed)
    }
}

/// Brings the header at the front of `header` to other numbers, another window and other timestamps. It must have been written by
/// [`PlainBuilder`], with timestamps if there are some now. Its checksum field is left as it is.
///
/// # Errors
///
/// `header` is shorter than that.
#[inline]
pub fn renew(
    header: &mut [u8],
    (sequence, acknowledgement): (SeqNumber, SeqNumber),
    window: u16,
    timestamps: Option<Timestamps>,
) -> Result<(), EmitError> {
    let needed = MIN_HEADER_LEN + if timestamps.is_some() { options::TIMESTAMPS_LEN } else { 0 };
    let too_short = EmitError::too_short(needed, header.len());
    let (fixed, rest) = header.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(too_short)?;
    fixed[4..8].copy_from_slice(&sequence.0.to_be_bytes());
    fixed[8..12].copy_from_slice(&acknowledgement.0.to_be_bytes());
    fixed[14..16].copy_from_slice(&window.to_be_bytes());
    if let Some(timestamps) = timestamps {
        let option = rest.first_chunk_mut::<{ options::TIMESTAMPS_LEN }>().ok_or(too_short)?;
        *option = options::padded_timestamps(timestamps);
    }
    Ok(())
}

/// Writes the checksum field of the header at the front of `header`.
///
/// # Errors
///
/// `header` is shorter than the fixed header.
pub fn set_checksum(header: &mut [u8], checksum: u16) -> Result<(), EmitError> {
    let available = header.len();
    let fixed =
        header.first_chunk_mut::<MIN_HEADER_LEN>().ok_or(EmitError::too_short(MIN_HEADER_LEN, available))?;
    fixed[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
