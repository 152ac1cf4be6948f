//! DHCP options: code, length in bytes, data (RFC 2132).

use crate::bytes::{Writer, be16, be32};
use crate::error::{EmitError, Field, ParseError};
use core::fmt;
use core::net::Ipv4Addr;

/// The codes of options.
pub mod code {
    /// Padding, without length and data.
    pub const PAD: u8 = 0;
    /// Subnet mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Routers.
    pub const ROUTERS: u8 = 3;
    /// DNS servers.
    pub const DNS_SERVERS: u8 = 6;
    /// Host name.
    pub const HOST_NAME: u8 = 12;
    /// Interface MTU.
    pub const INTERFACE_MTU: u8 = 26;
    /// Requested IP address.
    pub const REQUESTED_IP: u8 = 50;
    /// Lease time.
    pub const LEASE_TIME: u8 = 51;
    /// Option overload.
    pub const OVERLOAD: u8 = 52;
    /// Message type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Server identifier.
    pub const SERVER_IDENTIFIER: u8 = 54;
    /// Parameter request list.
    pub const PARAMETER_REQUEST_LIST: u8 = 55;
    /// Error message.
    pub const MESSAGE: u8 = 56;
    /// Longest message that the sender takes.
    pub const MAX_MESSAGE_LEN: u8 = 57;
    /// Renewal time, T1.
    pub const RENEWAL_TIME: u8 = 58;
    /// Rebinding time, T2.
    pub const REBINDING_TIME: u8 = 59;
    /// Client identifier.
    pub const CLIENT_IDENTIFIER: u8 = 61;
    /// End of the field, without length and data.
    pub const END: u8 = 255;
}

/// What a message is (RFC 2132 section 9.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MessageType {
    /// Client: who can give me an address?
    Discover = 1,
    /// Server: I can.
    Offer = 2,
    /// Client: give me that one, or let me keep it.
    Request = 3,
    /// Client: that address is in use.
    Decline = 4,
    /// Server: it is yours.
    Ack = 5,
    /// Server: it is not yours.
    Nak = 6,
    /// Client: I do not need it any more.
    Release = 7,
    /// Client: I have an address, tell me the rest.
    Inform = 8,
}

impl MessageType {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => MessageType::Discover,
            2 => MessageType::Offer,
            3 => MessageType::Request,
            4 => MessageType::Decline,
            5 => MessageType::Ack,
            6 => MessageType::Nak,
            7 => MessageType::Release,
            8 => MessageType::Inform,
            _ => return None,
        })
    }
}

/// A list of IPv4 addresses as it lies in an option; iterates over them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Addresses<'a> {
    bytes: &'a [[u8; 4]],
}

impl<'a> Addresses<'a> {
    /// The list of these addresses, as octets; at most 63 fit an option.
    pub const fn new(octets: &'a [[u8; 4]]) -> Self {
        Addresses { bytes: octets }
    }
}

impl Iterator for Addresses<'_> {
    type Item = Ipv4Addr;

    fn next(&mut self) -> Option<Ipv4Addr> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(Ipv4Addr::from(*first))
    }
}

impl fmt::Debug for Addresses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// An option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DhcpOption<'a> {
    /// 1.
    SubnetMask(Ipv4Addr),
    /// 3: in order of preference.
    Routers(Addresses<'a>),
    /// 6: in order of preference.
    DnsServers(Addresses<'a>),
    /// 12.
    HostName(&'a [u8]),
    /// 26: in bytes; not checked for sense.
    InterfaceMtu(u16),
    /// 50.
    RequestedIp(Ipv4Addr),
    /// 51: in seconds.
    LeaseTime(u32),
    /// 53.
    MessageType(MessageType),
    /// 54.
    ServerIdentifier(Ipv4Addr),
    /// 55: codes of options.
    ParameterRequestList(&'a [u8]),
    /// 56: why a server refuses, as text of its choice.
    Message(&'a [u8]),
    /// 57: in bytes, IP and UDP header included.
    MaxMessageLen(u16),
    /// 58: T1, in seconds.
    RenewalTime(u32),
    /// 59: T2, in seconds.
    RebindingTime(u32),
    /// 61.
    ClientIdentifier(&'a [u8]),
    /// Any other, option overload included.
    Other {
        /// Code: neither pad nor end.
        code: u8,
        /// Data.
        data: &'a [u8],
    },
}

impl<'a> DhcpOption<'a> {
    /// `None` if the length or value is impossible for the code.
    fn from_parts(code: u8, data: &'a [u8]) -> Option<Self> {
        let address = || Some(Ipv4Addr::from(*data.first_chunk::<4>().filter(|_| data.len() == 4)?));
        let addresses = || match data.as_chunks::<4>() {
            (bytes @ [_, ..], []) => Some(Addresses { bytes }),
            _ => None,
        };
        let word = || be32(data, 0).filter(|_| data.len() == 4);
        let half = || be16(data, 0).filter(|_| data.len() == 2);
        Some(match code {
            code::SUBNET_MASK => DhcpOption::SubnetMask(address()?),
            code::ROUTERS => DhcpOption::Routers(addresses()?),
            code::DNS_SERVERS => DhcpOption::DnsServers(addresses()?),
            code::HOST_NAME => DhcpOption::HostName(data),
            code::INTERFACE_MTU => DhcpOption::InterfaceMtu(half()?),
            code::REQUESTED_IP => DhcpOption::RequestedIp(address()?),
            code::LEASE_TIME => DhcpOption::LeaseTime(word()?),
            code::MESSAGE_TYPE => match data {
                [kind] => DhcpOption::MessageType(MessageType::from_byte(*kind)?),
                _ => return None,
            },
            code::SERVER_IDENTIFIER => DhcpOption::ServerIdentifier(address()?),
            code::PARAMETER_REQUEST_LIST => DhcpOption::ParameterRequestList(data),
            code::MESSAGE => DhcpOption::Message(data),
            code::MAX_MESSAGE_LEN => DhcpOption::MaxMessageLen(half()?),
            code::RENEWAL_TIME => DhcpOption::RenewalTime(word()?),
            code::REBINDING_TIME => DhcpOption::RebindingTime(word()?),
            code::CLIENT_IDENTIFIER => DhcpOption::ClientIdentifier(data),
            _ => DhcpOption::Other { code, data },
        })
    }

    /// Bytes that it will take.
    pub fn emitted_len(&self) -> usize {
        2 + match self {
            DhcpOption::SubnetMask(_)
            | DhcpOption::RequestedIp(_)
            | DhcpOption::ServerIdentifier(_)
            | DhcpOption::LeaseTime(_)
            | DhcpOption::RenewalTime(_)
            | DhcpOption::RebindingTime(_) => 4,
            DhcpOption::InterfaceMtu(_) | DhcpOption::MaxMessageLen(_) => 2,
            DhcpOption::MessageType(_) => 1,
            DhcpOption::Routers(list) | DhcpOption::DnsServers(list) => 4 * list.bytes.len(),
            DhcpOption::HostName(data)
            | DhcpOption::ParameterRequestList(data)
            | DhcpOption::Message(data)
            | DhcpOption::ClientIdentifier(data)
            | DhcpOption::Other { data, .. } => data.len(),
        }
    }

    fn code(&self) -> u8 {
        match self {
            DhcpOption::SubnetMask(_) => code::SUBNET_MASK,
            DhcpOption::Routers(_) => code::ROUTERS,
            DhcpOption::DnsServers(_) => code::DNS_SERVERS,
            DhcpOption::HostName(_) => code::HOST_NAME,
            DhcpOption::InterfaceMtu(_) => code::INTERFACE_MTU,
            DhcpOption::RequestedIp(_) => code::REQUESTED_IP,
            DhcpOption::LeaseTime(_) => code::LEASE_TIME,
            DhcpOption::MessageType(_) => code::MESSAGE_TYPE,
            DhcpOption::ServerIdentifier(_) => code::SERVER_IDENTIFIER,
            DhcpOption::ParameterRequestList(_) => code::PARAMETER_REQUEST_LIST,
            DhcpOption::Message(_) => code::MESSAGE,
            DhcpOption::MaxMessageLen(_) => code::MAX_MESSAGE_LEN,
            DhcpOption::RenewalTime(_) => code::RENEWAL_TIME,
            DhcpOption::RebindingTime(_) => code::REBINDING_TIME,
            DhcpOption::ClientIdentifier(_) => code::CLIENT_IDENTIFIER,
            DhcpOption::Other { code, .. } => *code,
        }
    }

    pub(super) fn emit(&self, out: &mut Writer<'_>) -> Result<(), EmitError> {
        let len = self.emitted_len() - 2;
        let len = u8::try_from(len).map_err(|_| EmitError::invalid(Field::DhcpOption, len))?;
        out.put(&[self.code(), len])?;
        match self {
            DhcpOption::SubnetMask(address)
            | DhcpOption::RequestedIp(address)
            | DhcpOption::ServerIdentifier(address) => out.put(&address.octets()),
            DhcpOption::LeaseTime(word) | DhcpOption::RenewalTime(word) | DhcpOption::RebindingTime(word) => {
                out.put32(*word)
            }
            DhcpOption::InterfaceMtu(half) | DhcpOption::MaxMessageLen(half) => out.put16(*half),
            DhcpOption::MessageType(kind) => out.put8(*kind as u8),
            DhcpOption::Routers(list) | DhcpOption::DnsServers(list) => out.put(list.bytes.as_flattened()),
            DhcpOption::HostName(data)
            | DhcpOption::ParameterRequestList(data)
            | DhcpOption::Message(data)
            | DhcpOption::ClientIdentifier(data)
            | DhcpOption::Other { data, .. } => out.put(data),
        }
    }
}

/// Walks the options of up to three fields that were found sound.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
    fields: [&'a [u8]; 2],
}

impl<'a> OptionIter<'a> {
    pub(super) fn new([first, second, third]: [&'a [u8]; 3]) -> Self {
        OptionIter { rest: first, fields: [second, third] }
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = DhcpOption<'a>;

    fn next(&mut self) -> Option<DhcpOption<'a>> {
        loop {
            match next_option(&mut self.rest) {
                Ok(Some((code, data))) => return DhcpOption::from_parts(code, data),
                Ok(None) | Err(_) if self.fields.iter().all(|field| field.is_empty()) => return None,
                Ok(None) | Err(_) => {
                    let [second, third] = self.fields;
                    (self.rest, self.fields) = (second, [third, &[]]);
                }
            }
        }
    }
}

/// Takes code and data of the next option off the front; `None` at the end of the field, which a field without the end
/// option has as well.
fn next_option<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, ParseError> {
    while let [code::PAD, after @ ..] = *rest {
        *rest = after;
    }
    let (code, tail) = match **rest {
        [] | [code::END, ..] => {
            *rest = &[];
            return Ok(None);
        }
        [code, ref tail @ ..] => (code, tail),
    };
    let found = tail.split_first().and_then(|(&len, data)| data.split_at_checked(usize::from(len)));
    let (data, after) = found.ok_or(ParseError::invalid(Field::DhcpOption, code))?;
    *rest = after;
    Ok(Some((code, data)))
}

/// Checks all options of a field. Returns the value of option overload, 0 if there is none.
pub(super) fn validate(field: &[u8]) -> Result<u8, ParseError> {
    let mut rest = field;
    let mut overload = 0;
    while let Some((code, data)) = next_option(&mut rest)? {
        match (code, data) {
            (code::OVERLOAD, [value @ 1..=3]) => overload = *value,
            (code::OVERLOAD, _) => {
                let found = data.first().copied().unwrap_or(0);
                return Err(ParseError::invalid(Field::DhcpOverload, found));
            }
            _ if DhcpOption::from_parts(code, data).is_none() => {
                let (field, found) = match (code, data) {
                    (code::MESSAGE_TYPE, [kind, ..]) => (Field::DhcpMessageType, *kind),
                    _ => (Field::DhcpOption, code),
                };
                return Err(ParseError::invalid(field, found));
            }
            _ => {}
        }
    }
    Ok(overload)
}
