//! Ethernet II frames with up to two VLAN tags, and MAC addresses (IEEE 802.3, 802.1Q).

use crate::bytes::{Writer, split};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::vlan::{Tag, Tags};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Bytes of the header without tags.
pub const HEADER_LEN: usize = 14;

/// An Ethernet (EUI-48) address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// 00:00:00:00:00:00, which no station has.
    pub const UNSPECIFIED: MacAddr = MacAddr([0; 6]);

    /// The address that frames to an IPv4 group go to (RFC 1112 section 6.4).
    pub const fn ipv4_multicast(group: Ipv4Addr) -> MacAddr {
        let [_, b, c, d] = group.octets();
        MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The address that frames to an IPv6 group go to (RFC 2464 section 7).
    pub const fn ipv6_multicast(group: Ipv6Addr) -> MacAddr {
        let [.., a, b, c, d] = group.octets();
        MacAddr([0x33, 0x33, a, b, c, d])
    }

    /// Whether it names a group; broadcast is one.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether it is ff:ff:ff:ff:ff:ff.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// Whether it can name one station: no group, and not all zero.
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast() && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }

    /// Whether it is administered locally instead of by a manufacturer.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 == 2
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six pairs of hexadecimal digits with colons or hyphens between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacAddrError;

impl fmt::Display for MacAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a MAC address: expected six pairs of hexadecimal digits such as 02:00:5e:10:00:01")
    }
}

impl core::error::Error for MacAddrError {}

impl FromStr for MacAddr {
    type Err = MacAddrError;

    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        let mut address = MacAddr::UNSPECIFIED;
        let mut pairs = text.split([':', '-']);
        for byte in &mut address.0 {
            let pair = pairs.next().filter(|pair| pair.len() == 2 && !pair.starts_with('+'));
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or(MacAddrError)?;
        }
        if pairs.next().is_some() { Err(MacAddrError) } else { Ok(address) }
    }
}

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// A customer VLAN tag (802.1Q).
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// A service VLAN tag (802.1ad).
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);

    /// Whether a VLAN tag follows.
    pub const fn is_vlan(self) -> bool {
        matches!(self, EtherType::VLAN | EtherType::SERVICE_VLAN)
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EtherType::IPV4 => f.write_str("IPv4"),
            EtherType::ARP => f.write_str("ARP"),
            EtherType::VLAN => f.write_str("VLAN"),
            EtherType::IPV6 => f.write_str("IPv6"),
            EtherType::SERVICE_VLAN => f.write_str("service VLAN"),
            EtherType(other) => write!(f, "{other:#06x}"),
        }
    }
}

/// Where a frame goes and where it comes from; `None` if it is too short to say. For who need not know what else is in its header.
#[inline]
pub fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr)> {
    let &[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5] = frame.first_chunk()?;
    Some((MacAddr([d0, d1, d2, d3, d4, d5]), MacAddr([s0, s1, s2, s3, s4, s5])))
}

/// The addresses, tags and type at the front of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
    tags: Tags,
    ether_type: EtherType,
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header of `frame`, which comes without preamble and frame check sequence.
    ///
    /// Up to two VLAN tags are taken off; a third stays as the [`ether_type`](Self::ether_type).
    ///
    /// # Errors
    ///
    /// Fewer bytes than header and tags take; an 802.3 length where the EtherType should be.
    pub fn parse(frame: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<HEADER_LEN>(Layer::Ethernet, frame)?;
        let mut ether_type = EtherType(u16::from_be_bytes([fixed[12], fixed[13]]));
        let mut payload = rest;
        let mut tags = Tags::NONE;
        while ether_type.is_vlan() && !tags.is_full() {
            let (tag, rest) = split::<4>(Layer::Vlan, payload)?;
            tags.push(Tag::from_control(ether_type, u16::from_be_bytes([tag[0], tag[1]])));
            ether_type = EtherType(u16::from_be_bytes([tag[2], tag[3]]));
            payload = rest;
        }
        if ether_type.0 < 0x0600 {
            return Err(ParseError::invalid(Field::EtherType, ether_type.0));
        }
        Ok(Header { fixed, tags, ether_type, payload })
    }

    /// Destination address.
    pub fn destination(&self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = *self.fixed;
        MacAddr([a, b, c, d, e, f])
    }

    /// Source address.
    pub fn source(&self) -> MacAddr {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.fixed;
        MacAddr([a, b, c, d, e, f])
    }

    /// VLAN tags, the outer one first.
    pub fn tags(&self) -> Tags {
        self.tags
    }

    /// What the payload is, after the tags.
    pub fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// Bytes of header and tags: 14, 18 or 22.
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.tags.emitted_len()
    }

    /// What follows, padding of short frames included.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A header to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Builder {
    /// Destination address.
    pub destination: MacAddr,
    /// Source address.
    pub source: MacAddr,
    /// VLAN tags, the outer one first.
    pub tags: Tags,
    /// What the payload is.
    pub ether_type: EtherType,
}

impl Builder {
    /// Bytes that the header will take: 14, 18 or 22.
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.tags.emitted_len()
    }

    /// Writes the header to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`header_len`](Self::header_len).
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut out = Writer::new(out);
        out.put(&self.destination.0)?;
        out.put(&self.source.0)?;
        for tag in self.tags.as_slice() {
            out.put16(tag.protocol.0)?;
            out.put16(tag.control())?;
        }
        out.put16(self.ether_type.0)?;
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::string::ToString;

    fn check_mac(text: &str, expected: Option<MacAddr>) {
        assert_eq!(text.parse().ok(), expected, "{text}");
    }

    #[test]
    fn mac_addresses_as_text() {
        let address = MacAddr([0x02, 0, 0x5e, 0x10, 0xab, 1]);
        assert_eq!(address.to_string(), "02:00:5e:10:ab:01");
        check_mac("02:00:5e:10:ab:01", Some(address));
        check_mac("02-00-5E-10-AB-01", Some(address));
        for bad in [
            "",
            "02:00:5e:10:ab",
            "02:00:5e:10:ab:01:02",
            "2:00:5e:10:ab:01",
            "+2:00:5e:10:ab:01",
            "0g:00:5e:10:ab:01",
        ] {
            check_mac(bad, None);
        }
    }

    #[test]
    fn mac_addresses_by_kind() {
        assert!(MacAddr::BROADCAST.is_multicast() && MacAddr::BROADCAST.is_broadcast());
        assert!(!MacAddr::UNSPECIFIED.is_unicast() && !MacAddr::BROADCAST.is_unicast());
        let local = MacAddr([0x02, 0, 0, 0, 0, 1]);
        assert!(local.is_unicast() && local.is_local());
        assert_eq!(MacAddr::ipv4_multicast(Ipv4Addr::new(224, 129, 2, 3)), MacAddr([1, 0, 0x5e, 1, 2, 3]));
        let group = "ff02::1:ff00:4".parse().expect("an address");
        assert_eq!(MacAddr::ipv6_multicast(group), MacAddr([0x33, 0x33, 0xff, 0, 0, 4]));
    }

    const DOUBLE_TAGGED: [u8; 24] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xa8, 0x30, 0x05, 0x81, 0x00, 0xf0, 0x64,
        0x86, 0xdd, 0x60, 0,
    ];

    #[test]
    fn a_double_tagged_frame() {
        let header = Header::parse(&DOUBLE_TAGGED).expect("a frame");
        assert_eq!(
            (header.header_len(), header.ether_type(), header.payload()),
            (22, EtherType::IPV6, &[0x60, 0][..])
        );
        let outer = Tag { protocol: EtherType::SERVICE_VLAN, priority: 1, drop_eligible: true, id: 5 };
        let inner = Tag { protocol: EtherType::VLAN, priority: 7, drop_eligible: true, id: 100 };
        assert_eq!(header.tags().as_slice(), [outer, inner]);
        assert_eq!(addresses(&DOUBLE_TAGGED), Some((header.destination(), header.source())));
        assert_eq!(addresses(&DOUBLE_TAGGED[..11]), None);
        for len in 0..22 {
            assert!(Header::parse(&DOUBLE_TAGGED[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn lengths_in_place_of_types_and_third_tags() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[0x00, 0x26]);
        assert_eq!(Header::parse(&frame), Err(ParseError::Invalid { field: Field::EtherType, found: 0x26 }));
        for at in [12, 16, 20] {
            frame[at..at + 2].copy_from_slice(&[0x81, 0]);
        }
        let header = Header::parse(&frame).expect("a frame");
        assert_eq!((header.header_len(), header.ether_type()), (22, EtherType::VLAN));
    }

    proptest! {
        #[test]
        fn written_headers_read_back(addresses: [[u8; 6]; 2], ether_type in 0x8800u16..0x88a8, controls in vec(any::<u16>(), 0..=2)) {
            let mut tags = Tags::NONE;
            for control in controls {
                tags.push(Tag::from_control(EtherType::VLAN, control));
            }
            let builder = Builder {
                destination: MacAddr(addresses[0]),
                source: MacAddr(addresses[1]),
                tags,
                ether_type: EtherType(ether_type),
            };
            let mut out = [0; 22];
            let len = builder.emit(&mut out).expect("room");
            prop_assert_eq!(len, builder.header_len());
            let header = Header::parse(&out[..len]).expect("a frame");
            let again = Builder {
                destination: header.destination(),
                source: header.source(),
                tags: header.tags(),
                ether_type: header.ether_type(),
            };
            prop_assert_eq!(again, builder);
            for short in 0..len {
                prop_assert!(builder.emit(&mut out[..short]).is_err());
                prop_assert!(Header::parse(&out[..short]).is_err());
            }
        }

        #[test]
        fn arbitrary_frames_are_read_or_refused(bytes in vec(any::<u8>(), 0..80)) {
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(header.header_len() + header.payload().len(), bytes.len());
            }
        }
    }
}
