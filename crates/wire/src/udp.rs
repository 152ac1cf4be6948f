//! UDP datagrams (RFC 768; over IPv6, RFC 8200 section 8.1).

use crate::bytes::{Writer, split};
use crate::checksum::Sum;
use crate::error::{EmitError, Field, Layer, ParseError};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// Where the checksum lies, in bytes from the start of the header.
pub const CHECKSUM_OFFSET: usize = 6;

/// A datagram whose length is sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    fixed: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Reads the datagram at the front of `bytes`, the IP payload; what lies behind the length is not part of it.
    ///
    /// # Errors
    ///
    /// Fewer bytes than the length says; a length below 8 (so no jumbograms).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<HEADER_LEN>(Layer::Udp, bytes)?;
        let len = u16::from_be_bytes([fixed[4], fixed[5]]);
        let Some(payload_len) = usize::from(len).checked_sub(HEADER_LEN) else {
            return Err(ParseError::invalid(Field::UdpLength, len));
        };
        let payload = rest
            .get(..payload_len)
            .ok_or_else(|| ParseError::truncated(Layer::Udp, usize::from(len), bytes.len()))?;
        Ok(Header { fixed, payload })
    }

    /// Source port; 0 if no answer is wanted.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Bytes of header and payload.
    #[allow(clippy::len_without_is_empty)] // It is never below 8.
    pub fn len(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// Checksum as it stands in the datagram; 0 if the sender computed none.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the checksum is right or, as IPv4 allows, absent. `pseudo_header` covers [`len`](Self::len) bytes.
    pub fn verify_checksum4(&self, pseudo_header: Sum) -> bool {
        self.checksum() == 0 || self.verify_checksum6(pseudo_header)
    }

    /// Whether the checksum is right; over IPv6 it may not be absent. `pseudo_header` covers [`len`](Self::len) bytes.
    pub fn verify_checksum6(&self, pseudo_header: Sum) -> bool {
        let mut sum = pseudo_header;
        sum.add(self.fixed);
        sum.add(self.payload);
        self.checksum() != 0 && sum.is_valid()
    }
}

/// A header to write.
///
/// `checksum` is written as it is: [`Sum::finish_udp`] of pseudo-header, header and payload, or the folded pseudo-header
/// sum where a device completes it, or 0 for none over IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Builder {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes of payload that will follow.
    pub payload_len: usize,
    /// What the checksum field is to hold.
    pub checksum: u16,
}

impl Builder {
    /// Writes the header to the front of `out` and returns its length, 8.
    ///
    /// # Errors
    ///
    /// `out` is shorter than that; header and payload exceed 65,535 bytes.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let total = self.payload_len.saturating_add(HEADER_LEN);
        let len = u16::try_from(total).map_err(|_| EmitError::invalid(Field::UdpLength, total))?;
        let mut out = Writer::new(out);
        out.put16(self.source_port)?;
        out.put16(self.destination_port)?;
        out.put16(len)?;
        out.put16(self.checksum)?;
        Ok(out.len())
    }

    /// Writes the header with the checksum of `pseudo_header`, header and `payload` in place of
    /// [`checksum`](Self::checksum). `pseudo_header` covers header and payload; the payload's own length counts.
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    pub fn emit_with_checksum(
        &self,
        out: &mut [u8],
        pseudo_header: Sum,
        payload: &[u8],
    ) -> Result<usize, EmitError> {
        let mut header = [0; HEADER_LEN];
        let mut builder = Builder { payload_len: payload.len(), checksum: 0, ..*self };
        builder.emit(&mut header)?;
        let mut sum = pseudo_header;
        sum.add(&header);
        sum.add(payload);
        builder.checksum = sum.finish_udp();
        builder.emit(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_header4;
    use core::net::Ipv4Addr;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const DATAGRAM: [u8; 14] = [0x13, 0x88, 0x14, 0x51, 0, 12, 0, 0, 1, 2, 3, 4, 0xee, 0xee];

    #[test]
    fn a_datagram_with_a_tail() {
        let header = Header::parse(&DATAGRAM).expect("a datagram");
        assert_eq!((header.source_port(), header.destination_port(), header.len()), (5000, 5201, 12));
        assert_eq!(header.payload(), [1, 2, 3, 4]);
        let pseudo = pseudo_header4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, 17, 12);
        // No checksum: allowed over IPv4 only.
        assert!(header.verify_checksum4(pseudo) && !header.verify_checksum6(pseudo));
        for len in 0..12 {
            let needed = if len < 8 { 8 } else { 12 };
            let error = ParseError::Truncated { layer: Layer::Udp, needed, available: len as u32 };
            assert_eq!(Header::parse(&DATAGRAM[..len]), Err(error));
        }
    }

    #[test]
    fn lengths_below_the_header_are_refused() {
        for len in 0..8 {
            let mut bytes = DATAGRAM;
            bytes[5] = len;
            assert_eq!(Header::parse(&bytes), Err(ParseError::invalid(Field::UdpLength, len)));
        }
        let long = Builder { payload_len: 65_528, ..Builder::default() };
        let error = EmitError::Invalid { field: Field::UdpLength, value: 65_536 };
        assert_eq!(long.emit(&mut [0; 8]), Err(error));
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // A payload that brings the sum to 0xffff.
        let builder = Builder { source_port: 1, destination_port: 2, ..Builder::default() };
        let mut bytes = [0; 10];
        let rest = 0xffff - (1 + 2 + 10u16);
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        assert_eq!(builder.emit_with_checksum(&mut bytes, Sum::ZERO, &rest.to_be_bytes()), Ok(8));
        let header = Header::parse(&bytes).expect("a datagram");
        assert_eq!(header.checksum(), 0xffff);
        assert!(header.verify_checksum6(Sum::ZERO));
    }

    proptest! {
        #[test]
        fn written_datagrams_read_back(ports: [u16; 2], payload in vec(any::<u8>(), 0..60), seed: u16) {
            let builder = Builder { source_port: ports[0], destination_port: ports[1], payload_len: payload.len(), checksum: 0 };
            let mut out = [0xee; 80];
            let pseudo = Sum::from_folded(seed);
            prop_assert_eq!(builder.emit_with_checksum(&mut out, pseudo, &payload), Ok(8));
            out[8..8 + payload.len()].copy_from_slice(&payload);
            let header = Header::parse(&out).expect("a datagram");
            prop_assert_eq!((header.source_port(), header.destination_port()), (ports[0], ports[1]));
            prop_assert_eq!(header.payload(), &payload[..]);
            prop_assert!(header.verify_checksum4(pseudo) && header.verify_checksum6(pseudo));
            for short in 0..8 {
                prop_assert!(builder.emit(&mut out[..short]).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..80), len in 0u8..80) {
            let mut bytes = bytes;
            if let Some(field) = bytes.get_mut(4..6) {
                field.copy_from_slice(&[0, len]);
            }
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(header.payload().len() + 8, usize::from(header.len()));
                header.verify_checksum4(Sum::ZERO);
            }
        }
    }
}
