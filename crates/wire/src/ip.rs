//! What IPv4 and IPv6 share: protocol numbers and the ECN field.

use core::fmt;

/// A protocol number, or "next header" in IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Protocol = Protocol(0);
    /// ICMP for IPv4.
    pub const ICMPV4: Protocol = Protocol(1);
    /// IGMP.
    pub const IGMP: Protocol = Protocol(2);
    /// TCP.
    pub const TCP: Protocol = Protocol(6);
    /// UDP.
    pub const UDP: Protocol = Protocol(17);
    /// IPv6 routing header.
    pub const ROUTING: Protocol = Protocol(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Protocol = Protocol(44);
    /// Encapsulating security payload.
    pub const ESP: Protocol = Protocol(50);
    /// Authentication header.
    pub const AUTHENTICATION: Protocol = Protocol(51);
    /// ICMP for IPv6.
    pub const ICMPV6: Protocol = Protocol(58);
    /// IPv6: nothing follows.
    pub const NO_NEXT_HEADER: Protocol = Protocol(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Protocol = Protocol(60);
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Protocol::HOP_BY_HOP => "hop-by-hop options",
            Protocol::ICMPV4 => "ICMPv4",
            Protocol::IGMP => "IGMP",
            Protocol::TCP => "TCP",
            Protocol::UDP => "UDP",
            Protocol::ROUTING => "routing header",
            Protocol::FRAGMENT => "fragment header",
            Protocol::ESP => "ESP",
            Protocol::AUTHENTICATION => "AH",
            Protocol::ICMPV6 => "ICMPv6",
            Protocol::NO_NEXT_HEADER => "no next header",
            Protocol::DESTINATION_OPTIONS => "destination options",
            Protocol(other) => return write!(f, "protocol {other}"),
        })
    }
}

/// The ECN field (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// The transport does not use ECN.
    #[default]
    NotCapable,
    /// ECN-capable, code point 01.
    Capable1,
    /// ECN-capable, code point 10.
    Capable0,
    /// Congestion experienced.
    Congested,
}

impl Ecn {
    /// From the low two bits of the traffic class; the others are ignored.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Congested,
        }
    }

    /// The low two bits of the traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotCapable => 0,
            Ecn::Capable1 => 1,
            Ecn::Capable0 => 2,
            Ecn::Congested => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_code_points_come_back() {
        for bits in 0..=255 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits & 3);
        }
    }
}
