//! Linux cooked headers, which stand in captures in place of a link header: version 1 (LINKTYPE_LINUX_SLL) and 2
//! (LINKTYPE_LINUX_SLL2).

use crate::bytes::split;
use crate::error::{Layer, ParseError};
use crate::ethernet::EtherType;

/// Bytes of a header of version 1.
pub const V1_LEN: usize = 16;

/// Bytes of a header of version 2.
pub const V2_LEN: usize = 20;

/// The packet type of what the host sends itself.
const OUTGOING: u16 = 4;

/// What both versions say of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    ether_type: EtherType,
    packet_type: u16,
    interface: Option<u32>,
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads a header of version 1.
    ///
    /// # Errors
    ///
    /// Fewer than 16 bytes.
    pub fn parse_v1(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, payload) = split::<V1_LEN>(Layer::Cooked, bytes)?;
        Ok(Header {
            ether_type: EtherType(u16::from_be_bytes([fixed[14], fixed[15]])),
            packet_type: u16::from_be_bytes([fixed[0], fixed[1]]),
            interface: None,
            payload,
        })
    }

    /// Reads a header of version 2.
    ///
    /// # Errors
    ///
    /// Fewer than 20 bytes.
    pub fn parse_v2(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, payload) = split::<V2_LEN>(Layer::Cooked, bytes)?;
        Ok(Header {
            ether_type: EtherType(u16::from_be_bytes([fixed[0], fixed[1]])),
            packet_type: u16::from(fixed[10]),
            interface: Some(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]])),
            payload,
        })
    }

    /// The protocol of the payload; not checked, since other networks have other numbers there.
    pub fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// Whether the host that captured sent it itself.
    pub fn is_outgoing(&self) -> bool {
        self.packet_type == OUTGOING
    }

    /// Number of the interface that saw it, where the version has one.
    pub fn interface(&self) -> Option<u32> {
        self.interface
    }

    /// What follows the header.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let v1 = [0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x08, 0x00, 0x45];
        let header = Header::parse_v1(&v1).unwrap();
        assert_eq!((header.ether_type(), header.is_outgoing()), (EtherType::IPV4, true));
        assert_eq!((header.payload(), header.interface()), (&[0x45][..], None));
        let v2 = [0x86, 0xdd, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x60];
        let header = Header::parse_v2(&v2).unwrap();
        assert_eq!((header.ether_type(), header.is_outgoing()), (EtherType::IPV6, false));
        assert_eq!((header.payload(), header.interface()), (&[0x60][..], Some(3)));
        for len in 0..V2_LEN {
            assert!(Header::parse_v2(&v2[..len]).is_err());
            assert_eq!(Header::parse_v1(&v1[..len.min(16)]).is_err(), len < V1_LEN);
        }
    }
}
