//! ICMP for IPv6 (RFC 4443): echo and errors, with the packet that an error quotes.

pub use crate::icmpv4::Echo;

use crate::bytes::{Writer, split};
use crate::checksum::{self, Sum};
use crate::error::{EmitError, Layer, ParseError};
use crate::ip::Protocol;
use crate::ipv6;
use core::net::Ipv6Addr;

/// Bytes before an echo's data or an error's quoted packet.
pub const HEADER_LEN: usize = 8;

/// Most bytes of an error message, IPv6 header included (RFC 4443 section 2.4 (c)).
pub const MAX_ERROR_LEN: usize = ipv6::MIN_MTU;

const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
/// Type of an echo request. One with a code other than 0 reads as [`Message::Other`].
pub const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Why a destination cannot be reached: the code of type 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnreachableCode(pub u8);

impl UnreachableCode {
    /// No route.
    pub const NO_ROUTE: UnreachableCode = UnreachableCode(0);
    /// Administratively prohibited.
    pub const PROHIBITED: UnreachableCode = UnreachableCode(1);
    /// Beyond the scope of the source address.
    pub const BEYOND_SCOPE: UnreachableCode = UnreachableCode(2);
    /// The address does not answer.
    pub const ADDRESS: UnreachableCode = UnreachableCode(3);
    /// Nobody listens on the port.
    pub const PORT: UnreachableCode = UnreachableCode(4);

    /// Whether a filter or a policy forbids it: codes 1, 5 and 6 (RFC 4443 section 3.1).
    pub fn is_prohibited(self) -> bool {
        matches!(self.0, 1 | 5 | 6)
    }
}

/// The packet that an error is about: its header and as much of its payload as the error quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted<'a>(pub &'a [u8]);

impl<'a> Quoted<'a> {
    /// The quoted packet's IPv6 header; its payload may end early.
    ///
    /// # Errors
    ///
    /// As [`ipv6::Header::parse_quoted`].
    pub fn header(&self) -> Result<ipv6::Header<'a>, ParseError> {
        ipv6::Header::parse_quoted(self.0)
    }
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Type 1.
    DestinationUnreachable {
        /// Why.
        code: UnreachableCode,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 2.
    PacketTooBig {
        /// MTU in bytes of the link that was too small; not checked for sense.
        mtu: u32,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 3.
    TimeExceeded {
        /// 0: the hop limit ran out; 1: reassembly took too long.
        code: u8,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 4.
    ParameterProblem {
        /// What kind: see [`Offender::code`](ipv6::Offender::code); 3: the first fragment lacks headers (RFC 7112).
        code: u8,
        /// Offset of the fault in the quoted packet, in bytes; it may lie behind what is quoted.
        pointer: u32,
        /// The packet.
        quoted: Quoted<'a>,
    },
    /// Type 128: asks for an [`EchoReply`](Message::EchoReply).
    EchoRequest(Echo<'a>),
    /// Type 129.
    EchoReply(Echo<'a>),
    /// Any other type; those of neighbour discovery are read by [`ndp`](crate::ndp).
    Other {
        /// Type; below 128 it is an error.
        kind: u8,
        /// Code.
        code: u8,
        /// What follows the checksum.
        body: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads a message, `bytes` being the whole upper layer. The checksum is not verified: see [`verify_checksum`].
    ///
    /// # Errors
    ///
    /// Fewer than 8 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, rest) = split::<HEADER_LEN>(Layer::Icmpv6, bytes)?;
        let [kind, code, _, _, a, b, c, d] = *fixed;
        let word = u32::from_be_bytes([a, b, c, d]);
        let echo =
            Echo { identifier: u16::from_be_bytes([a, b]), sequence: u16::from_be_bytes([c, d]), data: rest };
        let quoted = Quoted(rest);
        Ok(match kind {
            DESTINATION_UNREACHABLE => {
                Message::DestinationUnreachable { code: UnreachableCode(code), quoted }
            }
            PACKET_TOO_BIG => Message::PacketTooBig { mtu: word, quoted },
            TIME_EXCEEDED => Message::TimeExceeded { code, quoted },
            PARAMETER_PROBLEM => Message::ParameterProblem { code, pointer: word, quoted },
            ECHO_REQUEST if code == 0 => Message::EchoRequest(echo),
            ECHO_REPLY if code == 0 => Message::EchoReply(echo),
            _ => Message::Other { kind, code, body: bytes.get(4..).unwrap_or_default() },
        })
    }

    /// Whether it is an error, which no error may answer (RFC 4443 section 2.4 (e.1)); redirect (137) counts (e.2).
    pub fn is_error(&self) -> bool {
        match self {
            Message::EchoRequest(_) | Message::EchoReply(_) => false,
            Message::Other { kind, .. } => *kind < 128 || *kind == 137,
            _ => true,
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
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut [u8]) -> Result<usize, EmitError> {
        let (.., tail) = self.parts();
        let mut sum = Sum::ZERO;
        sum.add(tail);
        let available = out.len();
        let len = self.emitted_len();
        let out = out.get_mut(..len).ok_or(EmitError::too_short(len, available))?;
        let (front, rest) = out.split_at_mut(HEADER_LEN.min(len));
        self.emit_header(source, destination, front, sum, tail.len())?;
        rest.copy_from_slice(tail);
        Ok(len)
    }

    /// Writes the first 8 bytes only, with the checksum of the whole message, and returns 8. `tail` and `tail_len` are sum
    /// and length in bytes of what follows them, wherever that lies: the echo's data, the quoted packet.
    ///
    /// # Errors
    ///
    /// `out` is shorter than 8 bytes.
    pub fn emit_header(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        out: &mut [u8],
        tail: Sum,
        tail_len: usize,
    ) -> Result<usize, EmitError> {
        let (kind, code, rest, _) = self.parts();
        let [a, b, c, d] = rest;
        let mut sum = pseudo_header(source, destination, HEADER_LEN.saturating_add(tail_len));
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
        let pair = |echo: Echo<'a>| {
            let ([a, b], [c, d]) = (echo.identifier.to_be_bytes(), echo.sequence.to_be_bytes());
            [a, b, c, d]
        };
        match *self {
            Message::DestinationUnreachable { code, quoted } => {
                (DESTINATION_UNREACHABLE, code.0, [0; 4], quoted.0)
            }
            Message::PacketTooBig { mtu, quoted } => (PACKET_TOO_BIG, 0, mtu.to_be_bytes(), quoted.0),
            Message::TimeExceeded { code, quoted } => (TIME_EXCEEDED, code, [0; 4], quoted.0),
            Message::ParameterProblem { code, pointer, quoted } => {
                (PARAMETER_PROBLEM, code, pointer.to_be_bytes(), quoted.0)
            }
            Message::EchoRequest(echo) => (ECHO_REQUEST, 0, pair(echo), echo.data),
            Message::EchoReply(echo) => (ECHO_REPLY, 0, pair(echo), echo.data),
            Message::Other { kind, code, body } => match body.split_first_chunk::<4>() {
                Some((rest, tail)) => (kind, code, *rest, tail),
                // A body that never was parsed; the message has four bytes of it in any case.
                None => (kind, code, [0; 4], &[]),
            },
        }
    }
}

/// Whether the checksum of the message, which `bytes` is the whole of, is right.
pub fn verify_checksum(source: Ipv6Addr, destination: Ipv6Addr, bytes: &[u8]) -> bool {
    let mut sum = pseudo_header(source, destination, bytes.len());
    sum.add(bytes);
    sum.is_valid()
}

/// Fills in the checksum of a message whose checksum field holds 0.
pub(crate) fn fill_checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &mut [u8]) {
    let mut sum = pseudo_header(source, destination, message.len());
    sum.add(message);
    if let Some(field) = message.get_mut(2..4) {
        field.copy_from_slice(&sum.finish().to_be_bytes());
    }
}

fn pseudo_header(source: Ipv6Addr, destination: Ipv6Addr, len: usize) -> Sum {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    checksum::pseudo_header6(source, destination, Protocol::ICMPV6.0, len)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const A: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x6c72, 0, 0, 0, 0, 0, 4);

    #[test]
    fn an_echo_reply_has_the_checksum_computed_by_hand() {
        // fd00 + 6c72 + 1, twice with 1 and 4; length 10, next header 58; 8100 + 1 + 2 + 0304.
        let sum: u32 = 2 * (0xfd00 + 0x6c72) + 1 + 4 + 10 + 58 + 0x8100 + 1 + 2 + 0x0304;
        let expected = !((sum & 0xffff) + (sum >> 16)) as u16;
        let mut out = [0; 10];
        let message = Message::EchoReply(Echo { identifier: 1, sequence: 2, data: &[3, 4] });
        assert_eq!(message.emit(A, B, &mut out), Ok(10));
        assert_eq!(out[2..4], expected.to_be_bytes());
        assert!(verify_checksum(A, B, &out));
        assert!(!verify_checksum(A, A, &out));
        for len in 0..10 {
            assert!(message.emit(A, B, &mut [0; 10][..len]).is_err());
            assert_eq!(Message::parse(&out[..len]).is_ok(), len >= 8);
        }
    }

    #[test]
    fn an_error_quotes_a_packet() {
        let mut bytes = [0; 52];
        bytes[..8].copy_from_slice(&[2, 0, 0, 0, 0, 0, 5, 0]);
        let quoted = ipv6::Builder::new(A, B, Protocol::TCP, 1400);
        assert_eq!(quoted.emit(&mut bytes[8..]), Ok(40));
        let Ok(Message::PacketTooBig { mtu, quoted }) = Message::parse(&bytes) else {
            panic!("packet too big")
        };
        let header = quoted.header().expect("a quoted packet");
        assert_eq!((mtu, header.payload_len(), header.payload().len()), (1280, 1400, 4));
    }

    fn check_error(kind: u8, expected: bool) {
        let bytes = [kind, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Message::parse(&bytes).map(|message| message.is_error()), Ok(expected), "{kind}");
    }

    #[test]
    fn errors_are_told_from_queries() {
        for kind in [0, 1, 2, 3, 4, 100, 127, 137] {
            check_error(kind, true);
        }
        for kind in [128, 129, 133, 135, 143, 255] {
            check_error(kind, false);
        }
    }

    proptest! {
        #[test]
        fn messages_read_back(kind in prop_oneof![0u8..6, 126u8..139, any::<u8>()], code in 0u8..4, rest: [u8; 4], tail in vec(any::<u8>(), 0..70)) {
            let mut bytes = std::vec![kind, code, 0, 0];
            bytes.extend(rest);
            bytes.extend(&tail);
            let message = Message::parse(&bytes).expect("8 bytes are enough");
            let mut out = [0xee; 80];
            let len = message.emit(A, B, &mut out).expect("room");
            prop_assert_eq!((len, message.emitted_len()), (bytes.len(), bytes.len()));
            prop_assert!(verify_checksum(A, B, &out[..len]));
            prop_assert_eq!(Message::parse(&out[..len]), Ok(message));
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..80)) {
            match Message::parse(&bytes) {
                Ok(Message::PacketTooBig { quoted, .. }) => {
                    prop_assert!(quoted.header().is_err() || quoted.0.len() >= 40);
                }
                Ok(message) => prop_assert_eq!(message.emitted_len(), bytes.len()),
                Err(_) => prop_assert!(bytes.len() < 8),
            }
        }
    }
}
