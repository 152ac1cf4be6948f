//! ICMP for IPv4 (RFC 792): echo and errors, with the packet that an error quotes.

use crate::bytes::{Writer, split};
use crate::checksum::{self, Sum};
use crate::error::{EmitError, Layer, ParseError};
use crate::ipv4;

/// Bytes before an echo's data or an error's quoted packet.
pub const HEADER_LEN: usize = 8;

/// Most bytes that an error message should have, IP header included (RFC 1812 section 4.3.2.3).
pub const MAX_ERROR_LEN: usize = 576;

const ECHO_REPLY: u8 = 0;
const DESTINATION_UNREACHABLE: u8 = 3;
/// Type of an echo request. One with a code other than 0 reads as [`Message::Other`].
pub const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// Why a destination cannot be reached: the code of type 3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnreachableCode(pub u8);

impl UnreachableCode {
    /// No route to the network.
    pub const NETWORK: UnreachableCode = UnreachableCode(0);
    /// The host does not answer.
    pub const HOST: UnreachableCode = UnreachableCode(1);
    /// The host does not know the protocol.
    pub const PROTOCOL: UnreachableCode = UnreachableCode(2);
    /// Nobody listens on the port.
    pub const PORT: UnreachableCode = UnreachableCode(3);
    /// The packet is too long and must not be fragmented.
    pub const FRAGMENTATION_NEEDED: UnreachableCode = UnreachableCode(4);
    /// The source route failed.
    pub const SOURCE_ROUTE_FAILED: UnreachableCode = UnreachableCode(5);
    /// Administratively prohibited (RFC 1812).
    pub const PROHIBITED: UnreachableCode = UnreachableCode(13);

    /// Whether a filter forbids it: to the network (9), to the host (10), or by rule (13) (RFC 1122 section 3.2.2.1, RFC
    /// 1812 section 5.2.7.1).
    pub fn is_prohibited(self) -> bool {
        matches!(self.0, 9 | 10 | 13)
    }
}

/// An echo request's or reply's identity and data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo<'a> {
    /// Identifier: one run of ping.
    pub identifier: u16,
    /// Sequence number: one echo of the run.
    pub sequence: u16,
    /// Data, to be sent back unchanged.
    pub data: &'a [u8],
}

/// The packet that an error is about: its header and as much of its payload as the error quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted<'a>(pub &'a [u8]);

impl<'a> Quoted<'a> {
    /// The quoted packet's IPv4 header; its payload may end early.
    ///
    /// # Errors
    ///
    /// As [`ipv4::Header::parse_quoted`].
    pub fn header(&self) -> Result<ipv4::Header<'a>, ParseError> {
        ipv4::Header::parse_quoted(self.0)
    }
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Type 8: asks for an [`EchoReply`](Message::EchoReply).
    EchoRequest(Echo<'a>),
    /// Type 0.
    EchoReply(Echo<'a>),
    /// Type 3.
    DestinationUnreachable {
        /// Why.
        code: UnreachableCode,
        /// With [`UnreachableCode::FRAGMENTATION_NEEDED`], the MTU in bytes of the link that was too small (RFC 1191
        /// section 4); 0 from old routers.
        next_hop_mtu: u16,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 11.
    TimeExceeded {
        /// 0: the time to live ran out; 1: reassembly took too long.
        code: u8,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 12.
    ParameterProblem {
        /// 0: `pointer` tells where; 1: a required option is missing.
        code: u8,
        /// Offset of the fault in the quoted packet, in bytes.
        pointer: u8,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Any other type.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// What follows the checksum.
        body: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads a message, `bytes` being the whole IP payload. The checksum is not verified: see [`verify_checksum`].
    ///
    /// # Errors
    ///
    /// Fewer than 8 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<HEADER_LEN>(Layer::Icmpv4, bytes)?;
        let [kind, code, _, _, a, b, c, d] = *fixed;
        let echo =
            Echo { identifier: u16::from_be_bytes([a, b]), sequence: u16::from_be_bytes([c, d]), data: rest };
        let quoted = Quoted(rest);
        Ok(match kind {
            ECHO_REQUEST if code == 0 => Message::EchoRequest(echo),
            ECHO_REPLY if code == 0 => Message::EchoReply(echo),
            DESTINATION_UNREACHABLE => {
                let next_hop_mtu = u16::from_be_bytes([c, d]);
                Message::DestinationUnreachable { code: UnreachableCode(code), next_hop_mtu, quoted }
            }
            TIME_EXCEEDED => Message::TimeExceeded { code, quoted },
            PARAMETER_PROBLEM => Message::ParameterProblem { code, pointer: a, quoted },
            _ => Message::Other { kind, code, body: bytes.get(4..).unwrap_or_default() },
        })
    }

    /// Whether it is an error, which no error may answer (RFC 1122 section 3.2.2). Redirect (5) and source quench (4)
    /// count.
    pub fn is_error(&self) -> bool {
        match self {
            Message::DestinationUnreachable { .. }
            | Message::TimeExceeded { .. }
            | Message::ParameterProblem { .. } => true,
            Message::EchoRequest(_) | Message::EchoReply(_) => false,
            Message::Other { kind, .. } => matches!(kind, 4 | 5),
        }
    }

    /// Bytes that the message will take, at least 8.
    pub fn emitted_len(&self) -> usize {
        let (.., tail) = self.parts();
        HEADER_LEN + tail.len()
    }

    /// Writes the message with its checksum to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`emitted_len`](Self::emitted_len).
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let (.., tail) = self.parts();
        let mut sum = Sum::ZERO;
        sum.add(tail);
        let available = out.len();
        let len = self.emitted_len();
        let out = out.get_mut(..len).ok_or(EmitError::too_short(len, available))?;
        let (front, rest) = out.split_at_mut(HEADER_LEN.min(len));
        self.emit_header(front, sum)?;
        rest.copy_from_slice(tail);
        Ok(len)
    }

    /// Writes the first 8 bytes only, with the checksum of the whole message, and returns 8. `tail` is the sum of what
    /// follows them, wherever that lies: the echo's data, the quoted packet.
    ///
    /// # Errors
    ///
    /// `out` is shorter than 8 bytes.
    pub fn emit_header(&self, out: &mut [u8], tail: Sum) -> Result<usize, EmitError> {
        let (kind, code, rest, _) = self.parts();
        let [a, b, c, d] = rest;
        let mut sum = Sum::ZERO;
        sum.add(&[kind, code, a, b, c, d]);
        sum.append(tail);
        let mut out = Writer::new(out);
        out.put(&[kind, code])?;
        out.put16(sum.finish())?;
        out.put(&rest)?;
        Ok(out.len())
    }

    /// Type, code, the four bytes after the checksum, and what follows them.
    fn parts(&self) -> (u8, u8, [u8; 4], &'a [u8]) {
        let pair = |first: u16, second: u16| {
            let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
            [a, b, c, d]
        };
        match *self {
            Message::EchoRequest(echo) => (ECHO_REQUEST, 0, pair(echo.identifier, echo.sequence), echo.data),
            Message::EchoReply(echo) => (ECHO_REPLY, 0, pair(echo.identifier, echo.sequence), echo.data),
            Message::DestinationUnreachable { code, next_hop_mtu, quoted } => {
                (DESTINATION_UNREACHABLE, code.0, pair(0, next_hop_mtu), quoted.0)
            }
            Message::TimeExceeded { code, quoted } => (TIME_EXCEEDED, code, [0; 4], quoted.0),
            Message::ParameterProblem { code, pointer, quoted } => {
                (PARAMETER_PROBLEM, code, [pointer, 0, 0, 0], quoted.0)
            }
            Message::Other { kind, code, body } => match body.split_first_chunk::<4>() {
                Some((rest, tail)) => (kind, code, *rest, tail),
                // A body that never was parsed; the message has four bytes of it in any case.
                None => (kind, code, [0; 4], &[]),
            },
        }
    }
}

/// Whether the checksum of the message, which `bytes` is the whole of, is right.
pub fn verify_checksum(bytes: &[u8]) -> bool {
    checksum::verify(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Protocol;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn an_echo_request_becomes_its_reply() {
        let request = [8, 0, 0xf7, 0xf8, 0, 1, 0, 2, 0, 4];
        assert!(verify_checksum(&request));
        let Ok(Message::EchoRequest(echo)) = Message::parse(&request) else { panic!("an echo request") };
        assert_eq!(echo, Echo { identifier: 1, sequence: 2, data: &[0, 4] });
        let mut out = [0; 10];
        assert_eq!(Message::EchoReply(echo).emit(&mut out), Ok(10));
        assert_eq!(out, [0, 0, 0xff, 0xf8, 0, 1, 0, 2, 0, 4]);
        for len in 0..10 {
            assert!(Message::EchoReply(echo).emit(&mut out[..len]).is_err());
            assert_eq!(Message::parse(&request[..len]).is_ok(), len >= 8);
        }
    }

    #[test]
    fn an_error_quotes_a_packet() {
        let mut bytes = [0; 36];
        bytes[..8].copy_from_slice(&[3, 4, 0, 0, 0, 0, 0x05, 0x78]);
        let quoted = ipv4::Builder::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP, 1480);
        assert_eq!(quoted.emit(&mut bytes[8..]), Ok(20));
        bytes[28..].copy_from_slice(&[0, 80, 0x30, 0x39, 1, 2, 3, 4]);
        let Ok(Message::DestinationUnreachable { code, next_hop_mtu, quoted }) = Message::parse(&bytes)
        else {
            panic!("destination unreachable")
        };
        assert_eq!((code, next_hop_mtu), (UnreachableCode::FRAGMENTATION_NEEDED, 1400));
        let header = quoted.header().expect("a quoted packet");
        assert_eq!((header.total_len(), header.payload()), (1500, &bytes[28..]));
    }

    fn check_error(kind: u8, expected: bool) {
        let bytes = [kind, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Message::parse(&bytes).map(|message| message.is_error()), Ok(expected), "{kind}");
    }

    #[test]
    fn errors_are_told_from_queries() {
        for kind in [3, 4, 5, 11, 12] {
            check_error(kind, true);
        }
        for kind in [0, 8, 9, 10, 13, 14, 42] {
            check_error(kind, false);
        }
    }

    proptest! {
        #[test]
        fn messages_read_back(kind in prop_oneof![0u8..14, any::<u8>()], code in 0u8..4, rest: [u8; 4], tail in vec(any::<u8>(), 0..70)) {
            let mut bytes = std::vec![kind, code, 0, 0];
            bytes.extend(rest);
            bytes.extend(&tail);
            let message = Message::parse(&bytes).expect("8 bytes are enough");
            let mut out = [0xee; 80];
            let len = message.emit(&mut out).expect("room");
            prop_assert_eq!((len, message.emitted_len()), (bytes.len(), bytes.len()));
            prop_assert!(verify_checksum(&out[..len]));
            prop_assert_eq!(Message::parse(&out[..len]), Ok(message));
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..80)) {
            match Message::parse(&bytes) {
                Ok(Message::DestinationUnreachable { quoted, .. } | Message::TimeExceeded { quoted, .. }) => {
                    prop_assert!(quoted.header().is_err() || quoted.0.len() >= 20);
                }
                Ok(message) => prop_assert_eq!(message.emitted_len(), bytes.len()),
                Err(_) => prop_assert!(bytes.len() < 8),
            }
        }
    }

    extern crate std;
}
