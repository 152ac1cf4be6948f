//! What can be wrong with bytes that are read, and with a buffer that is written to.

use core::fmt;

/// The protocol whose header is meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet II.
    Ethernet,
    /// An 802.1Q or 802.1ad tag.
    Vlan,
    /// A Linux cooked header, in captures.
    Cooked,
    /// A BSD loopback header, in captures.
    Loopback,
    /// ARP.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6, extension headers included.
    Ipv6,
    /// ICMP for IPv4.
    Icmpv4,
    /// ICMP for IPv6.
    Icmpv6,
    /// Neighbour discovery.
    Ndp,
    /// Multicast listener discovery.
    Mld,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// DHCP for IPv4.
    Dhcpv4,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Ethernet => "Ethernet",
            Layer::Vlan => "VLAN",
            Layer::Cooked => "Linux cooked header",
            Layer::Loopback => "loopback header",
            Layer::Arp => "ARP",
            Layer::Ipv4 => "IPv4",
            Layer::Ipv6 => "IPv6",
            Layer::Icmpv4 => "ICMPv4",
            Layer::Icmpv6 => "ICMPv6",
            Layer::Ndp => "NDP",
            Layer::Mld => "MLD",
            Layer::Udp => "UDP",
            Layer::Tcp => "TCP",
            Layer::Dhcpv4 => "DHCPv4",
        })
    }
}

macro_rules! fields {
    ($($variant:ident: $layer:ident, $name:literal, $expected:literal;)*) => {
        /// A header field that can hold a value which makes the packet unusable, or that a value to write must fit.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Field {
            $(#[doc = concat!("The ", $name, ": ", $expected, ".")] $variant,)*
        }

        impl Field {
            /// The protocol it belongs to.
            pub const fn layer(self) -> Layer {
                match self { $(Field::$variant => Layer::$layer,)* }
            }

            /// Its name in the protocol's specification.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$variant => $name,)* }
            }

            /// What it may hold, in words.
            pub const fn expected(self) -> &'static str {
                match self { $(Field::$variant => $expected,)* }
            }
        }
    };
}

fields! {
    EtherType: Ethernet, "EtherType", "at least 0x0600";
    ArpHardwareType: Arp, "hardware type", "1 (Ethernet)";
    ArpProtocolType: Arp, "protocol type", "0x0800 (IPv4)";
    ArpHardwareLength: Arp, "hardware address length", "6";
    ArpProtocolLength: Arp, "protocol address length", "4";
    Ipv4Version: Ipv4, "version", "4";
    Ipv4HeaderLength: Ipv4, "header length", "20 to 60 bytes, a multiple of 4";
    Ipv4TotalLength: Ipv4, "total length", "at least the header length, at most 65,535";
    Ipv4Option: Ipv4, "option", "a length of at least 2 that stays within the header";
    Ipv4FragmentOffset: Ipv4, "fragment offset", "a multiple of 8, below 65,536";
    Ipv6Version: Ipv6, "version", "6";
    Ipv6PayloadLength: Ipv6, "payload length", "at most 65,535";
    Ipv6ExtensionCount: Ipv6, "number of extension headers", "at most 8";
    Ipv6FragmentOffset: Ipv6, "fragment offset", "a multiple of 8, below 65,536";
    UdpLength: Udp, "length", "8 to the length of the IP payload";
    TcpDataOffset: Tcp, "data offset", "at least 5 words";
    NdpHopLimit: Ndp, "hop limit", "255";
    NdpCode: Ndp, "code", "0";
    NdpOptionLength: Ndp, "option length", "at least one unit of 8 bytes";
    NdpTarget: Ndp, "target address", "a unicast address";
    NdpSource: Ndp, "IP source address", "link-local for routers; unspecified only without a link-layer address option";
    NdpDestination: Ndp, "IP destination address", "as the message's rules demand";
    NdpSolicited: Ndp, "solicited flag", "0 when sent to a multicast group";
    NdpType: Ndp, "type", "133 to 136";
    MldRecordCount: Mld, "number of records", "at most 65,535";
    DhcpOperation: Dhcpv4, "operation", "1 (request) or 2 (reply)";
    DhcpHardwareType: Dhcpv4, "hardware type and address length", "1 (Ethernet) and 6";
    DhcpCookie: Dhcpv4, "magic cookie", "0x63825363";
    DhcpOption: Dhcpv4, "option", "a length that stays within its field";
    DhcpOverload: Dhcpv4, "option overload", "1, 2 or 3, one byte, and only in the options field";
    DhcpMessageType: Dhcpv4, "message type", "1 to 8, one byte";
}

/// Why bytes are not what they should be: the sender's fault, or the wire's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParseError {
    /// The bytes end before the structure does.
    Truncated {
        /// The structure.
        layer: Layer,
        /// Bytes that it needs.
        needed: u32,
        /// Bytes that are there.
        available: u32,
    },
    /// A field holds a value that it may not hold.
    Invalid {
        /// The field.
        field: Field,
        /// Its value.
        found: u32,
    },
}

impl ParseError {
    /// The protocol whose header is at fault.
    pub const fn layer(self) -> Layer {
        match self {
            ParseError::Truncated { layer, .. } => layer,
            ParseError::Invalid { field, .. } => field.layer(),
        }
    }

    pub(crate) fn truncated(layer: Layer, needed: usize, available: usize) -> Self {
        ParseError::Truncated { layer, needed: saturate(needed), available: saturate(available) }
    }

    pub(crate) fn invalid(field: Field, found: impl Into<u32>) -> Self {
        ParseError::Invalid { field, found: found.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ParseError::Truncated { layer, needed, available } => {
                write!(f, "{layer}: needs {needed} bytes, {available} are there")
            }
            ParseError::Invalid { field, found } => {
                write!(f, "{}: {} is {found}, expected {}", field.layer(), field.name(), field.expected())
            }
        }
    }
}

impl core::error::Error for ParseError {}

/// Why a header could not be written: the caller's fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EmitError {
    /// The buffer is too short; what was written to it is unspecified.
    BufferTooShort {
        /// Bytes that the structure takes.
        needed: u32,
        /// Bytes that the buffer has.
        available: u32,
    },
    /// A value does not fit its field.
    Invalid {
        /// The field.
        field: Field,
        /// The value.
        value: u32,
    },
}

impl EmitError {
    pub(crate) fn too_short(needed: usize, available: usize) -> Self {
        EmitError::BufferTooShort { needed: saturate(needed), available: saturate(available) }
    }

    pub(crate) fn invalid(field: Field, value: usize) -> Self {
        EmitError::Invalid { field, value: saturate(value) }
    }
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EmitError::BufferTooShort { needed, available } => {
                write!(f, "the header takes {needed} bytes, the buffer has {available}")
            }
            EmitError::Invalid { field, value } => {
                write!(f, "{}: {} cannot be {value}, only {}", field.layer(), field.name(), field.expected())
            }
        }
    }
}

impl core::error::Error for EmitError {}

fn saturate(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn errors_name_layer_field_found_and_expected() {
        let error = ParseError::invalid(Field::TcpDataOffset, 4u8);
        assert_eq!(error.to_string(), "TCP: data offset is 4, expected at least 5 words");
        assert_eq!(error.layer(), Layer::Tcp);
        let error = ParseError::truncated(Layer::Udp, 8, 3);
        assert_eq!(error.to_string(), "UDP: needs 8 bytes, 3 are there");
        let error = EmitError::too_short(20, 7);
        assert_eq!(error.to_string(), "the header takes 20 bytes, the buffer has 7");
    }

    #[test]
    fn errors_stay_small() {
        assert!(size_of::<ParseError>() <= 12);
        assert!(size_of::<EmitError>() <= 12);
    }
}
