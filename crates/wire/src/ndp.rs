//! Neighbour discovery (RFC 4861): solicitations and advertisements of routers and neighbours, validated.

mod options;

pub use options::{INFINITE_LIFETIME, NdpOption, OptionIter, PrefixInformation};

use crate::bytes::{Writer, split};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ethernet::MacAddr;
use crate::icmpv6;
use crate::ipv6::solicited_node;
use core::net::Ipv6Addr;

/// Hop limit of every message: proof that no router has passed it on.
pub const HOP_LIMIT: u8 = 255;

/// ICMPv6 type of a router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// ICMPv6 type of a router advertisement.
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// ICMPv6 type of a neighbour solicitation.
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// ICMPv6 type of a neighbour advertisement.
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// What a router says of itself and the link (RFC 4861 section 4.2), but for the options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RouterAdvertisement {
    /// Hop limit that packets should have; 0 if not said.
    pub hop_limit: u8,
    /// Whether addresses are to be had by DHCPv6.
    pub managed: bool,
    /// Whether other configuration is to be had by DHCPv6.
    pub other_configuration: bool,
    /// How long it is a default router, in seconds; 0 if it is none.
    pub lifetime_s: u16,
    /// How long a neighbour counts as reachable, in milliseconds; 0 if not said.
    pub reachable_ms: u32,
    /// Time between solicitations, in milliseconds; 0 if not said.
    pub retransmit_ms: u32,
}

/// A message without its options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// Type 133: routers, advertise yourselves.
    RouterSolicitation,
    /// Type 134.
    RouterAdvertisement(RouterAdvertisement),
    /// Type 135: who has this address?
    NeighbourSolicitation {
        /// The address.
        target: Ipv6Addr,
    },
    /// Type 136.
    NeighbourAdvertisement {
        /// The sender is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It may replace a cached link-layer address.
        overrides: bool,
        /// The address that it is about.
        target: Ipv6Addr,
    },
}

/// A message that passed the rules of RFC 4861 sections 6.1 and 7.1, checksum aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    message: Message,
    options: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads and validates a message, `bytes` being the whole upper layer; the rest is from the IPv6 header. The
    /// checksum is for [`icmpv6::verify_checksum`].
    ///
    /// # Errors
    ///
    /// Another type than 133 to 136 (redirects are not understood); fewer bytes than the type has; a hop limit other than
    /// 255; a code other than 0; an option of no length or beyond the end; a target that is a group; a router's address
    /// that is not link-local; an unspecified source that gives a link-layer address, or solicits other than at the
    /// target's solicited-node group; a solicited advertisement to a group. Where an address is at fault, the value in
    /// the error is its last 32 bits.
    pub fn parse(
        bytes: &'a [u8],
        source: Ipv6Addr,
        destination: Ipv6Addr,
        hop_limit: u8,
    ) -> Result<Self, ParseError> {
        let (&[kind, code, _, _, first, second, third, fourth], rest) = split::<8>(Layer::Ndp, bytes)?;
        if hop_limit != HOP_LIMIT {
            return Err(ParseError::invalid(Field::NdpHopLimit, hop_limit));
        }
        if code != 0 {
            return Err(ParseError::invalid(Field::NdpCode, code));
        }
        let (message, options) = match kind {
            ROUTER_SOLICITATION => (Message::RouterSolicitation, rest),
            ROUTER_ADVERTISEMENT => {
                let (times, options) = split::<8>(Layer::Ndp, rest)?;
                let [a, b, c, d, e, f, g, h] = *times;
                let advertisement = RouterAdvertisement {
                    hop_limit: first,
                    managed: second & 0x80 != 0,
                    other_configuration: second & 0x40 != 0,
                    lifetime_s: u16::from_be_bytes([third, fourth]),
                    reachable_ms: u32::from_be_bytes([a, b, c, d]),
                    retransmit_ms: u32::from_be_bytes([e, f, g, h]),
                };
                (Message::RouterAdvertisement(advertisement), options)
            }
            NEIGHBOUR_SOLICITATION => {
                let (target, options) = split::<16>(Layer::Ndp, rest)?;
                (Message::NeighbourSolicitation { target: Ipv6Addr::from(*target) }, options)
            }
            NEIGHBOUR_ADVERTISEMENT => {
                let (target, options) = split::<16>(Layer::Ndp, rest)?;
                let message = Message::NeighbourAdvertisement {
                    router: first & 0x80 != 0,
                    solicited: first & 0x40 != 0,
                    overrides: first & 0x20 != 0,
                    target: Ipv6Addr::from(*target),
                };
                (message, options)
            }
            _ => return Err(ParseError::invalid(Field::NdpType, kind)),
        };
        options::validate(options)?;
        let packet = Packet { message, options };
        packet.validate(source, destination)?;
        Ok(packet)
    }

    /// The rules that tie message, options and addresses together.
    fn validate(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<(), ParseError> {
        let low = |address: Ipv6Addr| address.to_bits() as u32;
        let nameless = source.is_unspecified();
        match self.message {
            Message::RouterSolicitation | Message::NeighbourSolicitation { .. }
                if nameless && self.source_link_layer().is_some() =>
            {
                return Err(ParseError::invalid(Field::NdpSource, low(source)));
            }
            Message::RouterAdvertisement(_) if !source.is_unicast_link_local() => {
                return Err(ParseError::invalid(Field::NdpSource, low(source)));
            }
            Message::NeighbourSolicitation { target }
                if nameless && destination != solicited_node(target) =>
            {
                return Err(ParseError::invalid(Field::NdpDestination, low(destination)));
            }
            Message::NeighbourAdvertisement { solicited: true, .. } if destination.is_multicast() => {
                return Err(ParseError::invalid(Field::NdpSolicited, 1u32));
            }
            _ => {}
        }
        match self.message {
            Message::NeighbourSolicitation { target } | Message::NeighbourAdvertisement { target, .. }
                if target.is_multicast() =>
            {
                Err(ParseError::invalid(Field::NdpTarget, low(target)))
            }
            _ => Ok(()),
        }
    }

    /// The message.
    pub fn message(&self) -> Message {
        self.message
    }

    /// The options in their order.
    pub fn options(&self) -> OptionIter<'a> {
        OptionIter::new(self.options)
    }

    /// The sender's link-layer address, if an option gives it.
    pub fn source_link_layer(&self) -> Option<MacAddr> {
        self.options().find_map(|option| match option {
            NdpOption::SourceLinkLayer(address) => Some(address),
            _ => None,
        })
    }

    /// The target's link-layer address, if an option gives it.
    pub fn target_link_layer(&self) -> Option<MacAddr> {
        self.options().find_map(|option| match option {
            NdpOption::TargetLinkLayer(address) => Some(address),
            _ => None,
        })
    }
}

impl Message {
    /// Bytes that the message will take with these options.
    pub fn emitted_len(&self, options: &[NdpOption<'_>]) -> usize {
        let fixed = match self {
            Message::RouterSolicitation => 8,
            Message::RouterAdvertisement(_) => 16,
            Message::NeighbourSolicitation { .. } | Message::NeighbourAdvertisement { .. } => 24,
        };
        options.iter().fold(fixed, |len, option| len + option.emitted_len())
    }

    /// Writes the message with its checksum to the front of `out` and returns its length. The rules of
    /// [`Packet::parse`] are the caller's to keep.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`emitted_len`](Self::emitted_len); an option takes more than 255 units of 8 bytes.
    pub fn emit(
        &self,
        options: &[NdpOption<'_>],
        source: Ipv6Addr,
        destination: Ipv6Addr,
        out: &mut [u8],
    ) -> Result<usize, EmitError> {
        let mut out = Writer::new(out);
        match *self {
            Message::RouterSolicitation => out.put(&[ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0])?,
            Message::RouterAdvertisement(advertisement) => {
                let flags =
                    u8::from(advertisement.managed) << 7 | u8::from(advertisement.other_configuration) << 6;
                out.put(&[ROUTER_ADVERTISEMENT, 0, 0, 0, advertisement.hop_limit, flags])?;
                out.put16(advertisement.lifetime_s)?;
                out.put32(advertisement.reachable_ms)?;
                out.put32(advertisement.retransmit_ms)?;
            }
            Message::NeighbourSolicitation { target } => {
                out.put(&[NEIGHBOUR_SOLICITATION, 0, 0, 0, 0, 0, 0, 0])?;
                out.put(&target.octets())?;
            }
            Message::NeighbourAdvertisement { router, solicited, overrides, target } => {
                let flags = u8::from(router) << 7 | u8::from(solicited) << 6 | u8::from(overrides) << 5;
                out.put(&[NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0])?;
                out.put(&target.octets())?;
            }
        }
        for option in options {
            option.emit(&mut out)?;
        }
        let message = out.finish();
        icmpv6::fill_checksum(source, destination, message);
        Ok(message.len())
    }
}

#[cfg(test)]
mod tests;
