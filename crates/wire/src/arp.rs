//! ARP for IPv4 over Ethernet (RFC 826), and its use for conflict detection (RFC 5227).

use crate::bytes::{Writer, split};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ethernet::MacAddr;
use core::net::Ipv4Addr;

/// Bytes of a packet.
pub const PACKET_LEN: usize = 28;

/// What a packet asks or tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Operation(pub u16);

impl Operation {
    /// Who has the target address?
    pub const REQUEST: Operation = Operation(1);
    /// The sender has the sender address.
    pub const REPLY: Operation = Operation(2);
}

/// A packet for IPv4 over Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    fixed: &'a [u8; PACKET_LEN],
}

impl<'a> Packet<'a> {
    /// Reads the packet at the front of `bytes`; what follows is padding.
    ///
    /// # Errors
    ///
    /// Fewer than 28 bytes; other hardware than Ethernet or another protocol than IPv4.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, _padding) = split::<PACKET_LEN>(Layer::Arp, bytes)?;
        let hardware = u16::from_be_bytes([fixed[0], fixed[1]]);
        if hardware != 1 {
            return Err(ParseError::invalid(Field::ArpHardwareType, hardware));
        }
        let protocol = u16::from_be_bytes([fixed[2], fixed[3]]);
        if protocol != 0x0800 {
            return Err(ParseError::invalid(Field::ArpProtocolType, protocol));
        }
        if fixed[4] != 6 {
            return Err(ParseError::invalid(Field::ArpHardwareLength, fixed[4]));
        }
        if fixed[5] != 4 {
            return Err(ParseError::invalid(Field::ArpProtocolLength, fixed[5]));
        }
        Ok(Packet { fixed })
    }

    /// The operation.
    pub fn operation(&self) -> Operation {
        Operation(u16::from_be_bytes([self.fixed[6], self.fixed[7]]))
    }

    /// MAC address of the sender, as it says itself.
    pub fn sender_mac(&self) -> MacAddr {
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.fixed;
        MacAddr([a, b, c, d, e, f])
    }

    /// IPv4 address of the sender; unspecified in a probe.
    pub fn sender_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[14], self.fixed[15], self.fixed[16], self.fixed[17])
    }

    /// MAC address of the target; of no meaning in a request.
    pub fn target_mac(&self) -> MacAddr {
        let [.., a, b, c, d, e, f, _, _, _, _] = *self.fixed;
        MacAddr([a, b, c, d, e, f])
    }

    /// IPv4 address of the target.
    pub fn target_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[24], self.fixed[25], self.fixed[26], self.fixed[27])
    }
}

/// A packet to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builder {
    /// The operation.
    pub operation: Operation,
    /// MAC address of the sender.
    pub sender_mac: MacAddr,
    /// IPv4 address of the sender; unspecified in a probe.
    pub sender_ip: Ipv4Addr,
    /// MAC address of the target; zero in a request.
    pub target_mac: MacAddr,
    /// IPv4 address of the target.
    pub target_ip: Ipv4Addr,
}

impl Builder {
    /// Writes the packet to the front of `out` and returns its length, 28.
    ///
    /// # Errors
    ///
    /// `out` is shorter than that.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut out = Writer::new(out);
        out.put(&[0, 1, 8, 0, 6, 4])?;
        out.put16(self.operation.0)?;
        out.put(&self.sender_mac.0)?;
        out.put(&self.sender_ip.octets())?;
        out.put(&self.target_mac.0)?;
        out.put(&self.target_ip.octets())?;
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const REQUEST: [u8; 28] =
        [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 192, 168, 1, 1, 0, 0, 0, 0, 0, 0, 192, 168, 1, 4];

    #[test]
    fn a_request() {
        let packet = Packet::parse(&REQUEST).expect("a packet");
        assert_eq!(
            (packet.operation(), packet.sender_mac()),
            (Operation::REQUEST, MacAddr([2, 0, 0, 0, 0, 9]))
        );
        assert_eq!(
            (packet.sender_ip(), packet.target_ip()),
            (Ipv4Addr::new(192, 168, 1, 1), Ipv4Addr::new(192, 168, 1, 4))
        );
        for len in 0..28 {
            let error = ParseError::Truncated { layer: Layer::Arp, needed: 28, available: len as u32 };
            assert_eq!(Packet::parse(&REQUEST[..len]), Err(error));
        }
    }

    fn check_refused(at: usize, value: u8, field: Field, found: u32) {
        let mut bytes = REQUEST;
        bytes[at] = value;
        assert_eq!(Packet::parse(&bytes), Err(ParseError::Invalid { field, found }));
    }

    #[test]
    fn other_hardware_and_protocols_are_refused() {
        check_refused(1, 6, Field::ArpHardwareType, 6);
        check_refused(2, 0x86, Field::ArpProtocolType, 0x8600);
        check_refused(4, 8, Field::ArpHardwareLength, 8);
        check_refused(5, 16, Field::ArpProtocolLength, 16);
    }

    proptest! {
        #[test]
        fn written_packets_read_back(operation: u16, macs: [[u8; 6]; 2], ips: [u32; 2], padding in 0usize..20) {
            let builder = Builder {
                operation: Operation(operation),
                sender_mac: MacAddr(macs[0]),
                sender_ip: ips[0].into(),
                target_mac: MacAddr(macs[1]),
                target_ip: ips[1].into(),
            };
            let mut out = [0; 48];
            prop_assert_eq!(builder.emit(&mut out), Ok(28));
            let packet = Packet::parse(&out[..28 + padding]).expect("a packet");
            let again = Builder {
                operation: packet.operation(),
                sender_mac: packet.sender_mac(),
                sender_ip: packet.sender_ip(),
                target_mac: packet.target_mac(),
                target_ip: packet.target_ip(),
            };
            prop_assert_eq!(again, builder);
            for short in 0..28 {
                prop_assert!(builder.emit(&mut out[..short]).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..60)) {
            prop_assert!(Packet::parse(&bytes).is_ok() <= (bytes.len() >= 28));
        }
    }
}
