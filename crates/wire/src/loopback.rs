//! The BSD loopback header, which stands in captures before the IP packet: four bytes with the address family
//! (LINKTYPE_NULL in the byte order of the host, LINKTYPE_LOOP in network order).

use crate::bytes::split;
use crate::error::{Layer, ParseError};

/// Bytes of the header.
pub const HEADER_LEN: usize = 4;

/// AF_INET, the same on all systems.
const INET: u32 = 2;
/// AF_INET6 of NetBSD and OpenBSD, FreeBSD, macOS, and Linux.
const INET6: [u32; 4] = [24, 28, 30, 10];

/// A header with what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    family: u32,
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the header. The family of addresses is a small number, which tells the byte order.
    ///
    /// # Errors
    ///
    /// Fewer than four bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, payload) = split::<HEADER_LEN>(Layer::Loopback, bytes)?;
        let family = u32::from_be_bytes(*fixed).min(u32::from_le_bytes(*fixed));
        Ok(Header { family, payload })
    }

    /// Whether the payload is an IPv4 packet.
    pub fn is_ipv4(&self) -> bool {
        self.family == INET
    }

    /// Whether the payload is an IPv6 packet.
    pub fn is_ipv6(&self) -> bool {
        INET6.contains(&self.family)
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
    fn both_byte_orders() {
        for (bytes, v4, v6) in [
            ([2, 0, 0, 0, 9], true, false),
            ([0, 0, 0, 2, 9], true, false),
            ([30, 0, 0, 0, 9], false, true),
            ([0, 0, 0, 24, 9], false, true),
            ([7, 0, 0, 0, 9], false, false),
        ] {
            let header = Header::parse(&bytes).unwrap();
            assert_eq!(
                (header.is_ipv4(), header.is_ipv6(), header.payload()),
                (v4, v6, &[9][..]),
                "{bytes:?}"
            );
        }
        assert!(Header::parse(&[0, 0, 2]).is_err());
    }
}
