//! Options of neighbour discovery: type, length in units of 8 bytes, data (RFC 4861 section 4.6).

use crate::bytes::{Writer, be32};
use crate::error::{EmitError, Field, ParseError};
use crate::ethernet::MacAddr;
use core::net::Ipv6Addr;

/// A lifetime in seconds that never ends.
pub const INFINITE_LIFETIME: u32 = u32::MAX;

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;

/// A prefix that a router tells of (RFC 4861 section 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrefixInformation {
    /// The prefix; bits behind its length are of no meaning.
    pub prefix: Ipv6Addr,
    /// Its length in bits; not checked to be at most 128.
    pub prefix_len: u8,
    /// Whether its addresses are on this link.
    pub on_link: bool,
    /// Whether hosts may make addresses from it (RFC 4862).
    pub autonomous: bool,
    /// How long it is valid, in seconds; [`INFINITE_LIFETIME`] for ever.
    pub valid_s: u32,
    /// How long addresses from it are preferred, in seconds.
    pub preferred_s: u32,
}

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpOption<'a> {
    /// Type 1: link-layer address of the sender.
    SourceLinkLayer(MacAddr),
    /// Type 2: link-layer address of the target.
    TargetLinkLayer(MacAddr),
    /// Type 3.
    Prefix(PrefixInformation),
    /// Type 5: MTU of the link in bytes; not checked for sense.
    Mtu(u32),
    /// Any other type (DNS servers, routes, nonces, ...), or one of the above with another length than its own.
    Other {
        /// Type.
        kind: u8,
        /// What follows type and length.
        data: &'a [u8],
    },
}

impl<'a> NdpOption<'a> {
    fn from_parts(kind: u8, data: &'a [u8]) -> Self {
        Self::known(kind, data).unwrap_or(NdpOption::Other { kind, data })
    }

    fn known(kind: u8, data: &'a [u8]) -> Option<Self> {
        match (kind, data.len()) {
            (SOURCE_LINK_LAYER, 6) => data.first_chunk().map(|mac| NdpOption::SourceLinkLayer(MacAddr(*mac))),
            (TARGET_LINK_LAYER, 6) => data.first_chunk().map(|mac| NdpOption::TargetLinkLayer(MacAddr(*mac))),
            (PREFIX_INFORMATION, 30) => {
                let [prefix_len, flags] = *data.first_chunk::<2>()?;
                Some(NdpOption::Prefix(PrefixInformation {
                    prefix: Ipv6Addr::from(*data.last_chunk::<16>()?),
                    prefix_len,
                    on_link: flags & 0x80 != 0,
                    autonomous: flags & 0x40 != 0,
                    valid_s: be32(data, 2)?,
                    preferred_s: be32(data, 6)?,
                }))
            }
            (MTU, 6) => be32(data, 2).map(NdpOption::Mtu),
            _ => None,
        }
    }

    /// Bytes that it will take: a multiple of 8.
    pub(super) fn emitted_len(&self) -> usize {
        match self {
            NdpOption::SourceLinkLayer(_) | NdpOption::TargetLinkLayer(_) | NdpOption::Mtu(_) => 8,
            NdpOption::Prefix(_) => 32,
            NdpOption::Other { data, .. } => (2 + data.len()).next_multiple_of(8),
        }
    }

    pub(super) fn emit(&self, out: &mut Writer<'_>) -> Result<(), EmitError> {
        let len = self.emitted_len();
        let units = u8::try_from(len / 8).map_err(|_| EmitError::invalid(Field::NdpOptionLength, len))?;
        match self {
            NdpOption::SourceLinkLayer(mac) => {
                out.put(&[SOURCE_LINK_LAYER, units])?;
                out.put(&mac.0)
            }
            NdpOption::TargetLinkLayer(mac) => {
                out.put(&[TARGET_LINK_LAYER, units])?;
                out.put(&mac.0)
            }
            NdpOption::Prefix(prefix) => {
                let flags = u8::from(prefix.on_link) << 7 | u8::from(prefix.autonomous) << 6;
                out.put(&[PREFIX_INFORMATION, units, prefix.prefix_len, flags])?;
                out.put32(prefix.valid_s)?;
                out.put32(prefix.preferred_s)?;
                out.put32(0)?;
                out.put(&prefix.prefix.octets())
            }
            NdpOption::Mtu(mtu) => {
                out.put(&[MTU, units, 0, 0])?;
                out.put32(*mtu)
            }
            NdpOption::Other { kind, data } => {
                out.put(&[*kind, units])?;
                out.put(data)?;
                (2 + data.len()..len).try_for_each(|_| out.put8(0))
            }
        }
    }
}

/// Walks options that were found sound.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        OptionIter { rest }
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = NdpOption<'a>;

    fn next(&mut self) -> Option<NdpOption<'a>> {
        let [kind, units, ..] = *self.rest else { return None };
        let (option, rest) = self.rest.split_at_checked(usize::from(units) * 8)?;
        self.rest = rest;
        Some(NdpOption::from_parts(kind, option.get(2..)?))
    }
}

/// Checks that every option has a length above 0 and ends within the message (RFC 4861 section 4.6).
pub(super) fn validate(options: &[u8]) -> Result<(), ParseError> {
    let mut rest = options;
    while !rest.is_empty() {
        let units = rest.get(1).copied().unwrap_or(0);
        rest = match rest.get(usize::from(units) * 8..) {
            Some(after) if units > 0 => after,
            _ => return Err(ParseError::invalid(Field::NdpOptionLength, units)),
        };
    }
    Ok(())
}
