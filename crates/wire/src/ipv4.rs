//! IPv4 packets (RFC 791): header view, options, fragment fields, and writing a header.

mod options;

pub use options::{Ipv4Option, OptionIter, OptionKind};

use crate::bytes::{split, split_at};
use crate::checksum::{self, Sum};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ip::{Ecn, Protocol};
use core::net::Ipv4Addr;

/// Bytes of the header without options.
pub const MIN_HEADER_LEN: usize = 20;

/// Bytes of the longest header.
pub const MAX_HEADER_LEN: usize = 60;

/// Every host must take in packets of this many bytes (RFC 791 section 3.1).
pub const MIN_REASSEMBLY_LEN: usize = 576;

/// A packet whose version, lengths and options are sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header at the front of `bytes`; what lies behind the total length is padding of the link.
    ///
    /// The header checksum is not verified: see [`verify_checksum`](Self::verify_checksum).
    ///
    /// # Errors
    ///
    /// Fewer bytes than the total length says; another version; a header length below 20 bytes or beyond the total
    /// length; an option whose length is below 2 or leaves the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let header = Self::parse_front(bytes)?;
        let total_len = usize::from(header.total_len());
        let Some(payload_len) = total_len.checked_sub(header.header_len()) else {
            return Err(ParseError::invalid(Field::Ipv4TotalLength, header.total_len()));
        };
        let Ok((payload, _padding)) = split_at(Layer::Ipv4, header.payload, payload_len) else {
            return Err(ParseError::truncated(Layer::Ipv4, total_len, bytes.len()));
        };
        options::validate(header.options)?;
        Ok(Header { payload, ..header })
    }

    /// Reads the header of a packet that an ICMP error quotes: its end may be missing, and [`payload`](Self::payload) is
    /// what there is of it. The options are not validated, the total length is not compared.
    ///
    /// # Errors
    ///
    /// The header itself is incomplete; another version; a header length below 20 bytes.
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let header = Self::parse_front(bytes)?;
        let payload_len = usize::from(header.total_len()).saturating_sub(header.header_len());
        let payload = header.payload.get(..payload_len).unwrap_or(header.payload);
        Ok(Header { payload, ..header })
    }

    /// The header at the front of `bytes` of which somebody has found out that it is sound and has no options: nothing is checked
    /// again, and the payload is not shown. `None` if it is not there.
    #[inline]
    pub fn known_plain(bytes: &'a [u8]) -> Option<Self> {
        Some(Header { fixed: bytes.first_chunk()?, options: &[], payload: &[] })
    }

    fn parse_front(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<MIN_HEADER_LEN>(Layer::Ipv4, bytes)?;
        if fixed[0] >> 4 != 4 {
            return Err(ParseError::invalid(Field::Ipv4Version, fixed[0] >> 4));
        }
        let header_len = usize::from(fixed[0] & 0x0f) * 4;
        let Some(options_len) = header_len.checked_sub(MIN_HEADER_LEN) else {
            return Err(ParseError::invalid(Field::Ipv4HeaderLength, (fixed[0] & 0x0f) * 4));
        };
        let Ok((options, payload)) = split_at(Layer::Ipv4, rest, options_len) else {
            return Err(ParseError::truncated(Layer::Ipv4, header_len, bytes.len()));
        };
        Ok(Header { fixed, options, payload })
    }

    /// Bytes of the header with options: 20 to 60.
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// Differentiated services code point.
    pub fn dscp(&self) -> u8 {
        self.fixed[1] >> 2
    }

    /// ECN field.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.fixed[1])
    }

    /// Bytes of header and payload.
    pub fn total_len(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Identification: what the fragments of one packet have in common.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// Whether it must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        self.fixed[6] & 0x40 != 0
    }

    /// Whether another fragment follows this one.
    pub fn more_fragments(&self) -> bool {
        self.fixed[6] & 0x20 != 0
    }

    /// Where the payload belongs in the whole packet's payload, in bytes.
    pub fn fragment_offset(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6] & 0x1f, self.fixed[7]]) << 3
    }

    /// Whether it is a fragment of something larger.
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// What the payload is.
    pub fn protocol(&self) -> Protocol {
        Protocol(self.fixed[9])
    }

    /// Header checksum as it stands in the packet.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[10], self.fixed[11]])
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }

    /// The options in their order, up to the end of the list.
    pub fn options(&self) -> OptionIter<'a> {
        OptionIter::new(self.options)
    }

    /// The options as bytes, padding included.
    pub fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// What follows the header, without padding of the link.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the header checksum is right.
    pub fn verify_checksum(&self) -> bool {
        let mut sum = Sum::ZERO;
        sum.add(self.fixed);
        sum.add(self.options);
        sum.is_valid()
    }

    /// The pseudo-header's sum for the payload.
    pub fn pseudo_header(&self) -> Sum {
        // At most 65,535.
        let len = self.payload.len() as u32;
        checksum::pseudo_header4(self.source(), self.destination(), self.protocol().0, len)
    }
}

/// A header to write; its checksum is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builder<'a> {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// What the payload is.
    pub protocol: Protocol,
    /// Time to live.
    pub ttl: u8,
    /// Differentiated services code point, 0 to 63; higher bits are not written.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Identification; of no meaning where `dont_fragment` is set and it is no fragment (RFC 6864).
    pub identification: u16,
    /// Whether it must not be fragmented.
    pub dont_fragment: bool,
    /// Whether another fragment follows.
    pub more_fragments: bool,
    /// Where the payload belongs in the whole packet's payload, in bytes: a multiple of 8.
    pub fragment_offset: u16,
    /// Options as bytes, at most 40; filled up with end-of-list to a multiple of 4.
    pub options: &'a [u8],
    /// Bytes of payload that will follow.
    pub payload_len: usize,
}

impl Builder<'_> {
    /// A packet with no options that must not be fragmented and lives for 64 hops.
    pub const fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: Protocol,
        payload_len: usize,
    ) -> Self {
        Builder {
            source,
            destination,
            protocol,
            ttl: 64,
            dscp: 0,
            ecn: Ecn::NotCapable,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            options: &[],
            payload_len,
        }
    }

    /// Bytes that the header will take: 20 to 60.
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len().next_multiple_of(4)
    }

    /// The pseudo-header's sum for the payload.
    #[inline]
    pub fn pseudo_header(&self) -> Sum {
        let len = u32::try_from(self.payload_len).unwrap_or(u32::MAX);
        checksum::pseudo_header4(self.source, self.destination, self.protocol.0, len)
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`header_len`](Self::header_len); more than 40 bytes of options; header and payload exceed
    /// 65,535 bytes; the fragment offset is no multiple of 8.
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if self.options.len() > MAX_HEADER_LEN - MIN_HEADER_LEN {
            return Err(EmitError::invalid(Field::Ipv4HeaderLength, self.options.len()));
        }
        let header_len = self.header_len();
        let total = header_len.saturating_add(self.payload_len);
        let total_len =
            u16::try_from(total).map_err(|_| EmitError::invalid(Field::Ipv4TotalLength, total))?;
        if !self.fragment_offset.is_multiple_of(8) {
            return Err(EmitError::invalid(Field::Ipv4FragmentOffset, self.fragment_offset.into()));
        }
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        let available = out.len();
        let too_short = EmitError::too_short(header_len, available);
        let header = out.get_mut(..header_len).ok_or(too_short)?;
        let (fixed, options) = header.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(too_short)?;
        // At most 60 / 4 = 15.
        fixed[0] = 0x40 | (header_len / 4) as u8;
        fixed[1] = self.dscp << 2 | self.ecn.bits();
        fixed[2..4].copy_from_slice(&total_len.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.identification.to_be_bytes());
        fixed[6..8].copy_from_slice(&(flags | self.fragment_offset >> 3).to_be_bytes());
        fixed[8..12].copy_from_slice(&[self.ttl, self.protocol.0, 0, 0]);
        fixed[12..16].copy_from_slice(&self.source.octets());
        fixed[16..20].copy_from_slice(&self.destination.octets());
        let mut sum = Sum::ZERO;
        sum.add(fixed);
        if let Some((given, padding)) = options.split_at_mut_checked(self.options.len())
            && !self.options.is_empty()
        {
            given.copy_from_slice(self.options);
            padding.fill(0);
            sum.add(given);
            sum.add(padding);
        }
        fixed[10..12].copy_from_slice(&sum.finish().to_be_bytes());
        Ok(header_len)
    }
}

#[cfg(test)]
mod tests;
