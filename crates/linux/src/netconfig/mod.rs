//! Configures the kernel's side of an interface over rtnetlink: up, MTU, addresses, neighbours, without any helper
//! program, and takes back what it did.

mod error;
mod host;
mod message;
#[cfg(test)]
mod tests;
mod watch;

pub use error::NetconfigError;
pub use host::HostInterface;
pub use watch::LinkWatch;

use linerate_nic::MacAddr;
use message::{Reply, Request, attributes, replies, word16, word32};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::net::IpAddr;
use std::time::Duration;

const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
const CHANGE: u16 = REQUEST | libc::NLM_F_ACK as u16;
const DUMP: u16 = REQUEST | libc::NLM_F_DUMP as u16;
const CREATE: u16 = CHANGE | libc::NLM_F_CREATE as u16 | libc::NLM_F_EXCL as u16;
const REPLACE: u16 = CHANGE | libc::NLM_F_CREATE as u16 | libc::NLM_F_REPLACE as u16;

/// `VETH_INFO_PEER` of `linux/veth.h`.
const VETH_INFO_PEER: u16 = 1;

/// The kernel answers at once; this only keeps a fault from hanging the program.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Most messages read while waiting for the answer to a request.
const MAX_ANSWERS: usize = 64;

/// What the kernel says of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address; zero where it has none.
    pub mac: MacAddr,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Frames that its transmit queue holds.
    pub tx_queue_len: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether there is a carrier: of a TAP, whether somebody has it open.
    pub has_carrier: bool,
    /// Its kind in `if_arp.h`: 1 for Ethernet, 772 for loopback.
    pub hardware: u16,
    /// Whether it is software of the kernel, as `veth` or `bridge`, and no card.
    pub is_software: bool,
}

/// What to change of an interface; `None` leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkChange {
    /// Administratively up or down.
    pub up: Option<bool>,
    /// Largest IP packet in bytes.
    pub mtu: Option<u32>,
    /// Frames that the transmit queue holds.
    pub tx_queue_len: Option<u32>,
    /// Ethernet address.
    pub mac: Option<MacAddr>,
}

/// Whether an interface can have this name: 1 to 15 bytes, neither `.` nor `..`, no slash, colon, or white space.
pub fn is_interface_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && !name
            .bytes()
            .any(|byte| matches!(byte, b'/' | b':' | 0) || byte.is_ascii_whitespace() || byte == 0x0b)
}

/// A netlink socket, in the network namespace of the thread that opened it.
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
    buffer: Box<[u8]>,
}

impl Netlink {
    /// Opens the socket. Needs no privilege; most requests do.
    pub fn open() -> Result<Self, NetconfigError> {
        let route = None; // NETLINK_ROUTE is protocol 0.
        let flags = SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, route)?;
        set_socket_timeout(&fd, Timeout::Recv, Some(ANSWER_LIMIT))?;
        Ok(Netlink { fd, sequence: 0, buffer: vec![0; 32 << 10].into_boxed_slice() })
    }

    /// The interface called `name`.
    pub fn link(&mut self, name: &str) -> Result<Link, NetconfigError> {
        if !is_interface_name(name) {
            return Err(NetconfigError::Name(name.to_owned()));
        }
        let mut request = self.request(libc::RTM_GETLINK, REQUEST, &interface_info(0, 0, 0));
        request.attribute(libc::IFLA_IFNAME, &zero_terminated(name));
        self.exchange(request, |reply| parse_link(reply.body))?.map_err(|error| match error {
            Errno::NODEV => NetconfigError::NoSuchInterface(name.to_owned()),
            other => NetconfigError::refused("looking an interface up", other),
        })
    }

    /// Changes the interface numbered `index`. Does nothing when there is nothing to change.
    pub fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), NetconfigError> {
        if *change == LinkChange::default() {
            return Ok(());
        }
        let up = libc::IFF_UP as u32;
        let (flags, mask) = change.up.map_or((0, 0), |on| (if on { up } else { 0 }, up));
        let mut request = self.request(libc::RTM_NEWLINK, CHANGE, &interface_info(index, flags, mask));
        if let Some(mtu) = change.mtu {
            request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(len) = change.tx_queue_len {
            request.attribute(libc::IFLA_TXQLEN, &len.to_ne_bytes());
        }
        if let Some(mac) = change.mac {
            request.attribute(libc::IFLA_ADDRESS, &mac.0);
        }
        self.command(request)?.map_err(|error| match error {
            Errno::NODEV => NetconfigError::NoSuchInterface(format!("number {index}")),
            other => NetconfigError::refused("changing an interface", other),
        })
    }

    /// Removes the interface numbered `index`.
    pub fn delete_link(&mut self, index: u32) -> Result<(), NetconfigError> {
        let request = self.request(libc::RTM_DELLINK, CHANGE, &interface_info(index, 0, 0));
        self.command(request)?.map_err(|error| match error {
            Errno::NODEV => NetconfigError::NoSuchInterface(format!("number {index}")),
            other => NetconfigError::refused("removing an interface", other),
        })
    }

    /// Makes a pair of Ethernet interfaces connected to each other.
    pub fn create_veth(&mut self, name: &str, peer: &str) -> Result<(), NetconfigError> {
        if let Some(bad) = [name, peer].into_iter().find(|name| !is_interface_name(name)) {
            return Err(NetconfigError::Name(bad.to_owned()));
        }
        let mut request = self.request(libc::RTM_NEWLINK, CREATE, &interface_info(0, 0, 0));
        request.attribute(libc::IFLA_IFNAME, &zero_terminated(name));
        let link_info = request.begin(libc::IFLA_LINKINFO);
        request.attribute(libc::IFLA_INFO_KIND, b"veth");
        let data = request.begin(libc::IFLA_INFO_DATA);
        let other = request.begin(VETH_INFO_PEER);
        request.raw(&interface_info(0, 0, 0));
        request.attribute(libc::IFLA_IFNAME, &zero_terminated(peer));
        request.end(other);
        request.end(data);
        request.end(link_info);
        self.command(request)?.map_err(|error| NetconfigError::refused("making a veth pair", error))
    }

    /// Gives the interface an address; whether it is new (false: the interface had it already). An IPv6 address goes
    /// without duplicate address detection, but its route comes a moment later: see [`Netlink::is_local`].
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<bool, NetconfigError> {
        let request = self.address_request(libc::RTM_NEWADDR, CREATE, index, address, prefix_len)?;
        match self.command(request)? {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(Errno::ACCESS | Errno::OPNOTSUPP) if address.is_ipv6() => Err(NetconfigError::NoIpv6),
            Err(Errno::NODEV) => Err(NetconfigError::NoSuchInterface(format!("number {index}"))),
            Err(error) => Err(NetconfigError::refused("adding an address", error)),
        }
    }

    /// Takes an address from the interface; whether it had it.
    pub fn delete_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<bool, NetconfigError> {
        let request = self.address_request(libc::RTM_DELADDR, CHANGE, index, address, prefix_len)?;
        match self.command(request)? {
            Ok(()) => Ok(true),
            Err(Errno::ADDRNOTAVAIL | Errno::NODEV) => Ok(false),
            Err(error) => Err(NetconfigError::refused("removing an address", error)),
        }
    }

    /// Addresses of the interface with their prefix lengths, without those that are good on the link alone.
    pub fn addresses(&mut self, index: u32) -> Result<Vec<(IpAddr, u8)>, NetconfigError> {
        let request = self.request(libc::RTM_GETADDR, DUMP, &[0; 8]);
        rustix::net::send(&self.fd, &request.finish(), SendFlags::empty())?;
        let mut found = Vec::new();
        for _ in 0..MAX_ANSWERS {
            let (len, _) = match rustix::net::recv(&self.fd, &mut *self.buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            for reply in replies(&self.buffer[..len]).filter(|reply| reply.sequence == self.sequence) {
                match i32::from(reply.kind) {
                    libc::NLMSG_DONE => return Ok(found),
                    libc::NLMSG_ERROR => {
                        let code = word32(reply.body, 0).ok_or(NetconfigError::Answer)? as i32;
                        let error = Errno::from_raw_os_error(code.wrapping_neg());
                        return Err(NetconfigError::refused("listing addresses", error));
                    }
                    _ => found.extend(parse_address(reply.body, index)),
                }
            }
        }
        Err(NetconfigError::Answer)
    }

    /// Fixes the Ethernet address of a neighbour on the interface, without ARP or NDP.
    pub fn set_neighbour(&mut self, index: u32, address: IpAddr, mac: MacAddr) -> Result<(), NetconfigError> {
        let mut neighbour = [0; 12];
        neighbour[0] = family(address);
        neighbour[4..8].copy_from_slice(&index.to_ne_bytes());
        neighbour[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let mut request = self.request(libc::RTM_NEWNEIGH, REPLACE, &neighbour);
        with_octets(address, |octets| request.attribute(libc::NDA_DST, octets));
        request.attribute(libc::NDA_LLADDR, &mac.0);
        self.command(request)?.map_err(|error| NetconfigError::refused("adding a neighbour", error))
    }

    /// Whether packets to `address` are delivered to this machine.
    pub fn is_local(&mut self, address: IpAddr) -> Result<bool, NetconfigError> {
        let len = if address.is_ipv4() { 32 } else { 128 };
        let route = [family(address), len, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut request = self.request(libc::RTM_GETROUTE, REQUEST, &route);
        with_octets(address, |octets| request.attribute(libc::RTA_DST, octets));
        // `rtm_type` is the eighth byte of the answer's fixed part.
        match self.exchange(request, |reply| reply.body.get(7).map(|&kind| RouteKind(kind)))? {
            Ok(kind) => Ok(kind == RouteKind(libc::RTN_LOCAL)),
            Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::INVAL | Errno::ACCESS) => Ok(false),
            Err(error) => Err(NetconfigError::refused("looking a route up", error)),
        }
    }

    fn address_request(
        &mut self,
        kind: u16,
        flags: u16,
        index: u32,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<Request, NetconfigError> {
        if prefix_len > if address.is_ipv4() { 32 } else { 128 } {
            return Err(NetconfigError::Prefix(address, prefix_len));
        }
        let nodad = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
        let mut info = [family(address), prefix_len, nodad, libc::RT_SCOPE_UNIVERSE, 0, 0, 0, 0];
        info[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut request = self.request(kind, flags, &info);
        with_octets(address, |octets| {
            request.attribute(libc::IFA_LOCAL, octets);
            request.attribute(libc::IFA_ADDRESS, octets);
        });
        // RFC 3021: there is no broadcast address on links of two hosts.
        if let IpAddr::V4(v4) = address
            && prefix_len < 31
        {
            let broadcast = u32::from(v4) | (u32::MAX >> prefix_len);
            request.attribute(libc::IFA_BROADCAST, &broadcast.to_be_bytes());
        }
        Ok(request)
    }

    fn request(&mut self, kind: u16, flags: u16, fixed: &[u8]) -> Request {
        self.sequence = self.sequence.wrapping_add(1);
        Request::new(kind, flags, self.sequence, fixed)
    }

    /// Sends a request that is only acknowledged.
    fn command(&mut self, request: Request) -> Result<Result<(), Errno>, NetconfigError> {
        self.exchange(request, |_| None)
    }

    /// Sends `request` and gives what `parse` makes of the answer, or the error number that came instead. The outer
    /// result is about the socket.
    fn exchange<T: Acknowledged>(
        &mut self,
        request: Request,
        parse: impl Fn(&Reply<'_>) -> Option<T>,
    ) -> Result<Result<T, Errno>, NetconfigError> {
        rustix::net::send(&self.fd, &request.finish(), SendFlags::empty())?;
        for _ in 0..MAX_ANSWERS {
            let (len, _) = match rustix::net::recv(&self.fd, &mut *self.buffer, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let ours = |reply: &Reply<'_>| reply.sequence == self.sequence;
            let Some(reply) = replies(&self.buffer[..len]).find(ours) else { continue };
            if i32::from(reply.kind) != libc::NLMSG_ERROR {
                return parse(&reply).map(Ok).ok_or(NetconfigError::Answer);
            }
            return match word32(reply.body, 0).ok_or(NetconfigError::Answer)? as i32 {
                0 => T::acknowledged().map(Ok).ok_or(NetconfigError::Answer),
                code => Ok(Err(Errno::from_raw_os_error(code.wrapping_neg()))),
            };
        }
        Err(NetconfigError::Answer)
    }
}

/// What an acknowledgement without data stands for.
trait Acknowledged: Sized {
    fn acknowledged() -> Option<Self>;
}

impl Acknowledged for () {
    fn acknowledged() -> Option<()> {
        Some(())
    }
}

impl Acknowledged for Link {
    fn acknowledged() -> Option<Link> {
        None
    }
}

/// What a route does with packets: one of the `RTN_` constants.
#[derive(PartialEq, Eq)]
struct RouteKind(u8);

impl Acknowledged for RouteKind {
    fn acknowledged() -> Option<RouteKind> {
        None
    }
}

/// `struct ifinfomsg`.
fn interface_info(index: u32, flags: u32, mask: u32) -> [u8; 16] {
    let mut info = [0; 16];
    info[4..8].copy_from_slice(&index.to_ne_bytes());
    info[8..12].copy_from_slice(&flags.to_ne_bytes());
    info[12..16].copy_from_slice(&mask.to_ne_bytes());
    info
}

fn parse_link(body: &[u8]) -> Option<Link> {
    let mut link = Link {
        index: word32(body, 4)?,
        name: String::new(),
        mac: MacAddr::default(),
        mtu: 0,
        tx_queue_len: 0,
        up: word32(body, 8)? & libc::IFF_UP as u32 != 0,
        has_carrier: false,
        hardware: word16(body, 2)?,
        is_software: false,
    };
    for (kind, value) in attributes(body.get(16..)?) {
        match kind {
            libc::IFLA_IFNAME => {
                let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
                link.name = String::from_utf8_lossy(&value[..end]).into_owned();
            }
            libc::IFLA_ADDRESS => {
                if let Ok(mac) = value.try_into() {
                    link.mac = MacAddr(mac);
                }
            }
            libc::IFLA_MTU => link.mtu = word32(value, 0)?,
            libc::IFLA_CARRIER => link.has_carrier = value.first().is_some_and(|carrier| *carrier != 0),
            libc::IFLA_TXQLEN => link.tx_queue_len = word32(value, 0)?,
            // What stands for a card is made by a driver, and has no kind.
            libc::IFLA_LINKINFO => {
                link.is_software = attributes(value).any(|(kind, _)| kind == libc::IFLA_INFO_KIND);
            }
            _ => {}
        }
    }
    Some(link)
}

/// The address that a `struct ifaddrmsg` with its attributes gives to interface `index`.
fn parse_address(body: &[u8], index: u32) -> Option<(IpAddr, u8)> {
    let (prefix_len, scope) = (*body.get(1)?, *body.get(3)?);
    if word32(body, 4)? != index || scope != libc::RT_SCOPE_UNIVERSE {
        return None;
    }
    // On a link of two hosts IFA_ADDRESS is the other one's.
    let of_kind = |wanted| attributes(body.get(8..).unwrap_or(&[])).find(move |(kind, _)| *kind == wanted);
    let (_, octets) = of_kind(libc::IFA_LOCAL).or_else(|| of_kind(libc::IFA_ADDRESS))?;
    let ip = match octets.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
    };
    Some((ip, prefix_len))
}

fn zero_terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn with_octets(address: IpAddr, mut with: impl FnMut(&[u8])) {
    match address {
        IpAddr::V4(v4) => with(&v4.octets()),
        IpAddr::V6(v6) => with(&v6.octets()),
    }
}
