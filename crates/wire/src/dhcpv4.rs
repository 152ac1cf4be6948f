//! DHCP for IPv4 (RFC 2131): message view, options including overload, and writing a message.

mod options;

pub use options::{Addresses, DhcpOption, MessageType, OptionIter, code};

use crate::bytes::{Writer, be32, split};
use crate::error::{EmitError, Field, Layer, ParseError};
use crate::ethernet::MacAddr;
use core::net::Ipv4Addr;

/// UDP port of servers.
pub const SERVER_PORT: u16 = 67;
/// UDP port of clients.
pub const CLIENT_PORT: u16 = 68;
/// Bytes before the options, magic cookie included.
pub const HEADER_LEN: usize = 240;
/// Shorter messages are filled up to this: relays of old drop them (RFC 1542 section 2.1).
pub const MIN_MESSAGE_LEN: usize = 300;

const MAGIC_COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A client (1).
    Request,
    /// A server (2).
    Reply,
}

/// A message whose options can be walked and whose known options have their lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    fixed: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    /// Whether the fields `file` and `sname` hold options too.
    overload: u8,
}

impl<'a> Message<'a> {
    /// Reads a message, `bytes` being the whole UDP payload.
    ///
    /// # Errors
    ///
    /// Fewer than 240 bytes; an operation other than 1 and 2; other hardware than Ethernet; another magic cookie; an option
    /// that leaves its field, or is known but has an impossible length (the error's value is its code); an overload that
    /// is not 1 to 3 or stands in an overloaded field.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (fixed, options) = split::<HEADER_LEN>(Layer::Dhcpv4, bytes)?;
        let [operation, hardware, hardware_len, ..] = *fixed;
        if !matches!(operation, 1 | 2) {
            return Err(ParseError::invalid(Field::DhcpOperation, operation));
        }
        if (hardware, hardware_len) != (1, 6) {
            let found = u16::from_be_bytes([hardware, hardware_len]);
            return Err(ParseError::invalid(Field::DhcpHardwareType, found));
        }
        if fixed.last_chunk::<4>() != Some(&MAGIC_COOKIE) {
            return Err(ParseError::invalid(Field::DhcpCookie, be32(fixed, HEADER_LEN - 4).unwrap_or(0)));
        }
        let overload = options::validate(options)?;
        let message = Message { fixed, options, overload };
        for field in [message.file_options(), message.server_name_options()] {
            if options::validate(field)? != 0 {
                return Err(ParseError::invalid(Field::DhcpOverload, overload));
            }
        }
        Ok(message)
    }

    fn file_options(&self) -> &'a [u8] {
        if self.overload & 1 != 0 { self.fixed.get(108..236).unwrap_or_default() } else { &[] }
    }

    fn server_name_options(&self) -> &'a [u8] {
        if self.overload & 2 != 0 { self.fixed.get(44..108).unwrap_or_default() } else { &[] }
    }

    /// Who speaks.
    pub fn operation(&self) -> Operation {
        if self.fixed[0] == 1 { Operation::Request } else { Operation::Reply }
    }

    /// What request and reply have in common (xid).
    pub fn transaction_id(&self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// Seconds since the client began.
    pub fn elapsed_s(&self) -> u16 {
        u16::from_be_bytes([self.fixed[8], self.fixed[9]])
    }

    /// Whether the client wants broadcast replies.
    pub fn broadcast(&self) -> bool {
        self.fixed[10] & 0x80 != 0
    }

    /// The address that the client has (ciaddr).
    pub fn client_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[12], self.fixed[13], self.fixed[14], self.fixed[15])
    }

    /// The address that the client gets (yiaddr).
    pub fn your_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[16], self.fixed[17], self.fixed[18], self.fixed[19])
    }

    /// The server to boot from (siaddr), which need not be the DHCP server.
    pub fn boot_server_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[20], self.fixed[21], self.fixed[22], self.fixed[23])
    }

    /// The relay agent (giaddr).
    pub fn relay_ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.fixed[24], self.fixed[25], self.fixed[26], self.fixed[27])
    }

    /// The client's MAC address (chaddr).
    pub fn client_mac(&self) -> MacAddr {
        MacAddr([
            self.fixed[28],
            self.fixed[29],
            self.fixed[30],
            self.fixed[31],
            self.fixed[32],
            self.fixed[33],
        ])
    }

    /// All options: those of the options field, then those in `file` and `sname` (RFC 2131 section 4.1).
    pub fn options(&self) -> OptionIter<'a> {
        OptionIter::new([self.options, self.file_options(), self.server_name_options()])
    }

    /// The message type; `None` in BOOTP messages.
    pub fn message_type(&self) -> Option<MessageType> {
        self.options().find_map(|option| match option {
            DhcpOption::MessageType(kind) => Some(kind),
            _ => None,
        })
    }

    /// The server that speaks or is spoken to (54).
    pub fn server_identifier(&self) -> Option<Ipv4Addr> {
        self.options().find_map(|option| match option {
            DhcpOption::ServerIdentifier(address) => Some(address),
            _ => None,
        })
    }

    /// The address that the client would like (50).
    pub fn requested_ip(&self) -> Option<Ipv4Addr> {
        self.options().find_map(|option| match option {
            DhcpOption::RequestedIp(address) => Some(address),
            _ => None,
        })
    }

    /// How long the address may be used, in seconds (51); `u32::MAX` is for ever.
    pub fn lease_time_s(&self) -> Option<u32> {
        self.options().find_map(|option| match option {
            DhcpOption::LeaseTime(seconds) => Some(seconds),
            _ => None,
        })
    }

    /// When to ask the same server to renew, T1, in seconds after the start of the lease (58).
    pub fn renewal_time_s(&self) -> Option<u32> {
        self.options().find_map(|option| match option {
            DhcpOption::RenewalTime(seconds) => Some(seconds),
            _ => None,
        })
    }

    /// When to ask any server, T2, in seconds after the start of the lease (59).
    pub fn rebinding_time_s(&self) -> Option<u32> {
        self.options().find_map(|option| match option {
            DhcpOption::RebindingTime(seconds) => Some(seconds),
            _ => None,
        })
    }

    /// The subnet mask (1); not checked to be contiguous: see [`prefix_len`](Self::prefix_len).
    pub fn subnet_mask(&self) -> Option<Ipv4Addr> {
        self.options().find_map(|option| match option {
            DhcpOption::SubnetMask(mask) => Some(mask),
            _ => None,
        })
    }

    /// Length of the subnet's prefix in bits; `None` if there is no mask or it has holes.
    pub fn prefix_len(&self) -> Option<u8> {
        let mask = self.subnet_mask()?.to_bits();
        // At most 32.
        (mask.leading_ones() == mask.count_ones()).then_some(mask.leading_ones() as u8)
    }

    /// Routers in order of preference (3).
    pub fn routers(&self) -> Addresses<'a> {
        let found = self.options().find_map(|option| match option {
            DhcpOption::Routers(routers) => Some(routers),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// DNS servers in order of preference (6).
    pub fn dns_servers(&self) -> Addresses<'a> {
        let found = self.options().find_map(|option| match option {
            DhcpOption::DnsServers(servers) => Some(servers),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The host's name (12), as bytes of the peer's choice.
    pub fn host_name(&self) -> Option<&'a [u8]> {
        self.options().find_map(|option| match option {
            DhcpOption::HostName(name) => Some(name),
            _ => None,
        })
    }

    /// The client's identifier (61).
    pub fn client_identifier(&self) -> Option<&'a [u8]> {
        self.options().find_map(|option| match option {
            DhcpOption::ClientIdentifier(identifier) => Some(identifier),
            _ => None,
        })
    }
}

/// A message to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Builder<'a> {
    /// Who speaks.
    pub operation: Operation,
    /// What request and reply have in common.
    pub transaction_id: u32,
    /// Seconds since the client began.
    pub elapsed_s: u16,
    /// Whether the client wants broadcast replies.
    pub broadcast: bool,
    /// The address that the client has.
    pub client_ip: Ipv4Addr,
    /// The address that the client gets.
    pub your_ip: Ipv4Addr,
    /// The server to boot from.
    pub boot_server_ip: Ipv4Addr,
    /// The relay agent.
    pub relay_ip: Ipv4Addr,
    /// The client's MAC address.
    pub client_mac: MacAddr,
    /// Options, in the order in which they are to be written; the message type should come first.
    pub options: &'a [DhcpOption<'a>],
}

impl<'a> Builder<'a> {
    /// A client's message that has no address yet.
    pub const fn request(transaction_id: u32, client_mac: MacAddr, options: &'a [DhcpOption<'a>]) -> Self {
        Builder {
            operation: Operation::Request,
            transaction_id,
            elapsed_s: 0,
            broadcast: false,
            client_ip: Ipv4Addr::UNSPECIFIED,
            your_ip: Ipv4Addr::UNSPECIFIED,
            boot_server_ip: Ipv4Addr::UNSPECIFIED,
            relay_ip: Ipv4Addr::UNSPECIFIED,
            client_mac,
            options,
        }
    }

    /// Bytes that the message will take: at least [`MIN_MESSAGE_LEN`].
    pub fn emitted_len(&self) -> usize {
        let options = self.options.iter().map(DhcpOption::emitted_len).sum::<usize>();
        (HEADER_LEN + options + 1).max(MIN_MESSAGE_LEN)
    }

    /// Writes the message to the front of `out` and returns its length.
    ///
    /// # Errors
    ///
    /// `out` is shorter than [`emitted_len`](Self::emitted_len); an option has more than 255 bytes.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let len = self.emitted_len();
        let mut out = Writer::new(out);
        out.put(&[if self.operation == Operation::Request { 1 } else { 2 }, 1, 6, 0])?;
        out.put32(self.transaction_id)?;
        out.put16(self.elapsed_s)?;
        out.put16(if self.broadcast { 0x8000 } else { 0 })?;
        for address in [self.client_ip, self.your_ip, self.boot_server_ip, self.relay_ip] {
            out.put(&address.octets())?;
        }
        out.put(&self.client_mac.0)?;
        // The rest of chaddr, sname and file.
        out.put(&[0; 10 + 64 + 128])?;
        out.put(&MAGIC_COOKIE)?;
        for option in self.options {
            option.emit(&mut out)?;
        }
        out.put8(code::END)?;
        while out.len() < len {
            out.put8(code::PAD)?;
        }
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests;
