//! The chain of extension headers between the IPv6 header and the upper layer (RFC 8200 section 4).

use super::HEADER_LEN;
use crate::bytes::{Writer, split, split_at};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ip::Protocol;
use core::fmt;

/// Most extension headers of one packet; more are refused (RFC 8504 section 5.3 allows a limit).
pub const MAX_EXTENSIONS: usize = 8;

/// Most options of one hop-by-hop or destination options header, padding not counted (RFC 8504 section 5.3).
const MAX_OPTIONS: usize = 8;

/// Bytes of [`ROUTER_ALERT_MLD`].
pub const ROUTER_ALERT_MLD_LEN: usize = 8;

/// A hop-by-hop options header, followed by ICMPv6, with the router alert that every MLD message carries (RFC 2711,
/// RFC 3810 section 5).
pub const ROUTER_ALERT_MLD: [u8; ROUTER_ALERT_MLD_LEN] = [Protocol::ICMPV6.0, 0, 5, 2, 0, 0, 1, 0];

/// A fragment header (RFC 8200 section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fragment {
    /// What the whole packet's fragmentable part begins with.
    pub next_header: Protocol,
    /// Where the payload belongs in the fragmentable part, in bytes: a multiple of 8.
    pub offset: u16,
    /// Whether another fragment follows.
    pub more: bool,
    /// What the fragments of one packet have in common.
    pub identification: u32,
}

impl Fragment {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// Whether it is the only fragment: then the packet is whole (RFC 6946).
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }

    /// Writes the header to the front of `out` and returns its length, 8.
    ///
    /// # Errors
    ///
    /// `out` is shorter than that; the offset is no multiple of 8.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if !self.offset.is_multiple_of(8) {
            return Err(EmitError::invalid(Field::Ipv6FragmentOffset, self.offset.into()));
        }
        let mut out = Writer::new(out);
        out.put(&[self.next_header.0, 0])?;
        out.put16(self.offset | u16::from(self.more))?;
        out.put32(self.identification)?;
        Ok(out.len())
    }

    fn from_bytes(bytes: [u8; 8]) -> Fragment {
        let [next_header, _, high, low, a, b, c, d] = bytes;
        Fragment {
            next_header: Protocol(next_header),
            offset: u16::from_be_bytes([high, low & 0xf8]),
            more: low & 1 == 1,
            identification: u32::from_be_bytes([a, b, c, d]),
        }
    }
}

/// Where the walk over the extension headers ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain<'a> {
    /// What `payload` is. In a fragment, what the whole packet's fragmentable part begins with.
    pub upper: Protocol,
    /// What the last extension header is followed by: the upper layer, or a fragment of it.
    pub payload: &'a [u8],
    /// Offset of `payload` in bytes from the start of the IPv6 header.
    pub offset: usize,
    /// The fragment header, unless the packet is whole: the walk stops there, as what follows may be headers cut in
    /// pieces. Atomic fragments are whole packets and are walked on. Whether its length is a multiple of 8 (RFC 8200 section 4.5)
    /// is not looked at: what an ICMP error quotes may end anywhere.
    pub fragment: Option<Fragment>,
    /// Whether an atomic fragment's header was among those: neighbour discovery must not come behind one (RFC 6980 section 5).
    pub is_atomic: bool,
    /// Offset, in bytes from the start of the IPv6 header, of the "next header" field that names `upper`: what the
    /// pointer of a parameter problem with an unrecognised upper layer is (RFC 4443 section 3.4).
    pub next_header_offset: usize,
    /// Value of the router alert option, if there is one (RFC 2711); 0 is MLD.
    pub router_alert: Option<u16>,
}

/// What a parameter problem message is to say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Offender {
    /// Code 0: a field has a value that it may not have.
    Field,
    /// Code 1: the next header is unknown, or stands where it may not.
    NextHeader,
    /// Code 2: an option is unknown and must not be skipped.
    Option,
}

impl Offender {
    /// The code of the parameter problem message.
    pub const fn code(self) -> u8 {
        match self {
            Offender::Field => 0,
            Offender::NextHeader => 1,
            Offender::Option => 2,
        }
    }
}

/// Why the upper layer was not reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChainError {
    /// A header is cut off or one too many: drop the packet.
    Malformed(ParseError),
    /// An unknown option of type `kind` demands that the packet be dropped silently.
    Discard {
        /// The option's type.
        kind: u8,
    },
    /// The packet is to be dropped and answered with a parameter problem. An answer to a packet for a multicast group is
    /// due only for [`Offender::Option`] (RFC 4443 section 2.4 (e.3)), which is returned only where it is due.
    ParameterProblem {
        /// What is wrong.
        offender: Offender,
        /// Where: offset in bytes from the start of the IPv6 header.
        pointer: u32,
    },
}

impl From<ParseError> for ChainError {
    fn from(error: ParseError) -> Self {
        ChainError::Malformed(error)
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Malformed(error) => fmt::Display::fmt(error, f),
            ChainError::Discard { kind } => {
                write!(f, "IPv6: unknown option {kind:#04x} demands to drop the packet")
            }
            ChainError::ParameterProblem { offender, pointer } => {
                let what = match offender {
                    Offender::Field => "impossible field",
                    Offender::NextHeader => "misplaced header",
                    Offender::Option => "unknown option",
                };
                write!(f, "IPv6: {what} at byte {pointer}")
            }
        }
    }
}

impl core::error::Error for ChainError {}

/// Walks the extension headers at the front of `payload`, what follows the IPv6 header, the first of which is `first`.
///
/// Hop-by-hop options are taken only right behind the IPv6 header. Routing headers with segments left are refused, type 0
/// included (RFC 5095). Anything else than hop-by-hop, routing, fragment and destination options counts as upper layer.
/// A reassembled packet is walked on with its [`Fragment::next_header`] as `first` and what was reassembled as `payload`;
/// pointers then count as if the fragmentable part began right behind the IPv6 header.
///
/// # Errors
///
/// See [`ChainError`].
pub fn walk(first: Protocol, payload: &[u8], multicast: bool) -> Result<Chain<'_>, ChainError> {
    let mut chain = Chain {
        upper: first,
        payload,
        offset: HEADER_LEN,
        fragment: None,
        is_atomic: false,
        next_header_offset: 6,
        router_alert: None,
    };
    for count in 0..=MAX_EXTENSIONS {
        match chain.upper {
            Protocol::HOP_BY_HOP if count > 0 => {
                let pointer = saturate(chain.next_header_offset);
                return Err(ChainError::ParameterProblem { offender: Offender::NextHeader, pointer });
            }
            _ if !is_extension(chain.upper) => return Ok(chain),
            _ if count == MAX_EXTENSIONS => break,
            Protocol::FRAGMENT => {
                let (bytes, rest) = split::<8>(Layer::Ipv6, chain.payload)?;
                let fragment = Fragment::from_bytes(*bytes);
                chain.advance(fragment.next_header, Fragment::LEN, rest);
                if !fragment.is_atomic() {
                    chain.fragment = Some(fragment);
                    return Ok(chain);
                }
                chain.is_atomic = true;
            }
            kind => chain.skip(kind, multicast)?,
        }
    }
    Err(ParseError::invalid(Field::Ipv6ExtensionCount, saturate(MAX_EXTENSIONS + 1)).into())
}

fn is_extension(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::FRAGMENT | Protocol::DESTINATION_OPTIONS
    )
}

impl Chain<'_> {
    /// Checks a header that has a length of its own, and steps over it.
    fn skip(&mut self, kind: Protocol, multicast: bool) -> Result<(), ChainError> {
        let (front, _) = split::<8>(Layer::Ipv6, self.payload)?;
        let [next_header, units, _, segments_left, ..] = *front;
        let len = (usize::from(units) + 1) * 8;
        let (header, rest) = split_at(Layer::Ipv6, self.payload, len)?;
        if kind == Protocol::ROUTING {
            // No routing type is known, so the answer is the same for all (RFC 8200 section 4.4).
            if segments_left != 0 {
                let pointer = saturate(self.offset + 2);
                return Err(ChainError::ParameterProblem { offender: Offender::Field, pointer });
            }
        } else {
            let alert = check_options(header, self.offset, multicast)?;
            if kind == Protocol::HOP_BY_HOP {
                self.router_alert = alert;
            }
        }
        self.advance(Protocol(next_header), len, rest);
        Ok(())
    }
}

impl<'a> Chain<'a> {
    fn advance(&mut self, upper: Protocol, len: usize, rest: &'a [u8]) {
        self.next_header_offset = self.offset;
        self.offset += len;
        self.upper = upper;
        self.payload = rest;
    }
}

/// Checks the options of `header`, which begins `offset` bytes into the packet. Returns the router alert's value.
fn check_options(header: &[u8], offset: usize, multicast: bool) -> Result<Option<u16>, ChainError> {
    const PAD1: u8 = 0;
    const PADN: u8 = 1;
    const ROUTER_ALERT: u8 = 5;
    let mut alert = None;
    let mut count = 0;
    let mut at = 2;
    while let Some(&kind) = header.get(at) {
        if kind == PAD1 {
            at += 1;
            continue;
        }
        let len = header.get(at + 1).map(|&len| usize::from(len));
        let Some(data) = len.and_then(|len| header.get(at + 2..at + 2 + len)) else {
            // The length field itself is at fault, or the type where the header ends before a length.
            let fault = if len.is_some() { at + 1 } else { at };
            let pointer = saturate(offset + fault);
            return Err(ChainError::ParameterProblem { offender: Offender::Field, pointer });
        };
        if kind != PADN {
            count += 1;
            if count > MAX_OPTIONS {
                return Err(ChainError::Discard { kind });
            }
        }
        match (kind, data, kind >> 6) {
            (PADN, ..) => {}
            (ROUTER_ALERT, [high, low], _) => alert = Some(u16::from_be_bytes([*high, *low])),
            (_, _, 0) => {}
            // The top two bits say what is to become of the packet (RFC 8200 section 4.2).
            (_, _, action) if action == 1 || action == 3 && multicast => {
                return Err(ChainError::Discard { kind });
            }
            _ => {
                let pointer = saturate(offset + at);
                return Err(ChainError::ParameterProblem { offender: Offender::Option, pointer });
            }
        }
        at += 2 + data.len();
    }
    Ok(alert)
}

fn saturate(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
