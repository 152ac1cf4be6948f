//! IPv6 packets (RFC 8200): header view, the chain of extension headers, and writing a header.

mod address;
mod extension;

pub use address::{ALL_NODES, ALL_ROUTERS, interface_identifier, link_local, solicited_node, with_interface};
pub use extension::{
    Chain, ChainError, Fragment, MAX_EXTENSIONS, Offender, ROUTER_ALERT_MLD, ROUTER_ALERT_MLD_LEN, walk,
};

use crate::bytes::{Writer, split, split_at};
use crate::checksum::{self, Sum};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ip::{Ecn, Protocol};
use core::net::Ipv6Addr;

/// Bytes of the header without extensions.
pub const HEADER_LEN: usize = 40;

/// Every link carries packets of this many bytes (RFC 8200 section 5).
pub const MIN_MTU: usize = 1280;

/// A packet whose version and length are sound; its extension headers are not looked at yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header at the front of `bytes`; what lies behind the payload length is padding of the link.
    ///
    /// Jumbograms (RFC 2675) are not understood: a payload length of 0 means no payload.
    ///
    /// # Errors
    ///
    /// Fewer bytes than the payload length says; another version.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let header = Self::parse_front(bytes)?;
        let len = usize::from(header.payload_len());
        let Ok((payload, _padding)) = split_at(Layer::Ipv6, header.payload, len) else {
            return Err(ParseError::truncated(Layer::Ipv6, HEADER_LEN + len, bytes.len()));
        };
        Ok(Header { payload, ..header })
    }

    /// Reads the header of a packet that an ICMP error quotes: its end may be missing, and [`payload`](Self::payload) is
    /// what there is of it.
    ///
    /// # Errors
    ///
    /// The header itself is incomplete; another version.
    pub fn parse_quoted(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let header = Self::parse_front(bytes)?;
        let payload = header.payload.get(..usize::from(header.payload_len())).unwrap_or(header.payload);
        Ok(Header { payload, ..header })
    }

    /// The header at the front of `bytes` of which somebody has found out that it is sound: nothing is checked again, and the
    /// payload is not shown. `None` if it is not there.
    #[inline]
    pub fn known_plain(bytes: &'a [u8]) -> Option<Self> {
        Some(Header { fixed: bytes.first_chunk()?, payload: &[] })
    }

    fn parse_front(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, payload) = split::<HEADER_LEN>(Layer::Ipv6, bytes)?;
        if fixed[0] >> 4 != 6 {
            return Err(ParseError::invalid(Field::Ipv6Version, fixed[0] >> 4));
        }
        Ok(Header { fixed, payload })
    }

    /// Differentiated services code point.
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// ECN field.
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class())
    }

    fn traffic_class(&self) -> u8 {
        self.fixed[0] << 4 | self.fixed[1] >> 4
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.fixed[1] & 0x0f, self.fixed[2], self.fixed[3]])
    }

    /// Bytes that follow the header, extension headers included.
    pub fn payload_len(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// What follows this header: an extension header or the upper layer.
    pub fn next_header(&self) -> Protocol {
        Protocol(self.fixed[6])
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        let [_, _, _, _, _, _, _, _, address @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            *self.fixed;
        Ipv6Addr::from(address)
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        self.fixed.last_chunk::<16>().copied().map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from)
    }

    /// What follows the header, extension headers included, without padding of the link.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks the extension headers to the upper layer or to a fragment header.
    ///
    /// # Errors
    ///
    /// See [`ChainError`].
    pub fn chain(&self) -> Result<Chain<'a>, ChainError> {
        walk(self.next_header(), self.payload, self.destination().is_multicast())
    }

    /// The pseudo-header's sum for an upper layer of `len` bytes behind all extension headers.
    pub fn pseudo_header(&self, upper: Protocol, len: u32) -> Sum {
        checksum::pseudo_header6(self.source(), self.destination(), upper.0, len)
    }
}

/// A header to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builder {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// What follows: an extension header or the upper layer.
    pub next_header: Protocol,
    /// Hop limit.
    pub hop_limit: u8,
    /// Differentiated services code point, 0 to 63; higher bits are not written.
    pub dscp: u8,
    /// ECN field.
    pub ecn: Ecn,
    /// Flow label, 20 bits; higher bits are not written.
    pub flow_label: u32,
    /// Bytes that will follow, extension headers included.
    pub payload_len: usize,
}

impl Builder {
    /// A packet that lives for 64 hops.
    pub const fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        next_header: Protocol,
        payload_len: usize,
    ) -> Self {
        Builder {
            source,
            destination,
            next_header,
            hop_limit: 64,
            dscp: 0,
            ecn: Ecn::NotCapable,
            flow_label: 0,
            payload_len,
        }
    }

    /// The pseudo-header's sum for a payload without extension headers.
    pub fn pseudo_header(&self) -> Sum {
        let len = u32::try_from(self.payload_len).unwrap_or(u32::MAX);
        checksum::pseudo_header6(self.source, self.destination, self.next_header.0, len)
    }

    /// Writes the header to the front of `out` and returns its length, 40.
    ///
    /// # Errors
    ///
    /// `out` is shorter than that; the payload exceeds 65,535 bytes.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let payload_len = u16::try_from(self.payload_len)
            .map_err(|_| EmitError::invalid(Field::Ipv6PayloadLength, self.payload_len))?;
        let traffic_class = u32::from(self.dscp << 2 | self.ecn.bits());
        let mut out = Writer::new(out);
        out.put32(6 << 28 | traffic_class << 20 | self.flow_label & 0xf_ffff)?;
        out.put16(payload_len)?;
        out.put(&[self.next_header.0, self.hop_limit])?;
        out.put(&self.source.octets())?;
        out.put(&self.destination.octets())?;
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests;
