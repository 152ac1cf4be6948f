//! The calls on sockets and files that no safe crate offers: TCP_INFO, TCP_MAXSEG, packet information of datagrams,
//! and closing with an answer.
#![allow(unsafe_code)]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Longest `struct tcp_info` that is asked for; what the kernel does not have is left out, what it has beyond is cut.
pub(crate) const TCP_INFO_LEN: usize = 240;

/// Reads `struct tcp_info` as bytes; returns how many the kernel filled.
pub(crate) fn tcp_info(fd: impl AsFd, into: &mut [u8; TCP_INFO_LEN]) -> io::Result<usize> {
    let mut len = TCP_INFO_LEN as libc::socklen_t;
    // SAFETY: `into` is writable for `len` bytes, as its type says, and outlives the call; the kernel writes at most
    // `len` bytes there and the count to `len`. Any byte pattern is a valid `u8`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            into.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if result == 0 { Ok((len as usize).min(TCP_INFO_LEN)) } else { Err(io::Error::last_os_error()) }
}

/// Sets an integer option of a socket.
fn set_int(fd: impl AsFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives on the stack during the call and is only read.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bounds the segment size (before connecting or listening it bounds the option sent to the peer, too).
pub(crate) fn set_max_segment(fd: impl AsFd, bytes: u16) -> io::Result<()> {
    set_int(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, libc::c_int::from(bytes))
}

/// Bounds the rate at which the kernel sends, in bytes a second; it counts headers, too.
pub(crate) fn set_max_pacing_rate(fd: impl AsFd, rate: u64) -> io::Result<()> {
    // What is all ones is no bound, and so is what the integer of the option does not hold (from 34 Gb/s on).
    let rate = u32::try_from(rate).unwrap_or(u32::MAX);
    set_int(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate.cast_signed())
}

/// Says which of a socket's buffers keep their sizes, and which the kernel may let grow.
pub(crate) fn set_fixed_buffers(fd: impl AsFd, send: bool, receive: bool) -> Result<(), Errno> {
    /// `SOCK_SNDBUF_LOCK` and `SOCK_RCVBUF_LOCK` of the kernel's `include/uapi/linux/socket.h`.
    const LOCKS: (libc::c_int, libc::c_int) = (1, 2);
    let locks = (libc::c_int::from(send) * LOCKS.0) | (libc::c_int::from(receive) * LOCKS.1);
    set_int(fd, libc::SOL_SOCKET, libc::SO_BUF_LOCK, locks).map_err(|_| errno())
}

/// Makes the kernel tell with each datagram which of our addresses it was sent to. A dual-stack socket tells it for
/// IPv4 as a mapped address.
pub(crate) fn enable_packet_info(fd: impl AsFd, v6: bool) -> io::Result<()> {
    if v6 {
        set_int(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    } else {
        set_int(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    }
}

/// Room for one control message with packet information of either family, aligned as control messages must be.
#[repr(C)]
union Control {
    _align: libc::cmsghdr,
    bytes: [u8; 64],
}

impl Control {
    fn new() -> Control {
        Control { bytes: [0; 64] }
    }
}

fn errno() -> Errno {
    io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Receives one datagram: its length, who sent it, and to which address of ours.
pub(crate) fn receive_from(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
) -> Result<(usize, SocketAddr, Option<IpAddr>), Errno> {
    let mut control = Control::new();
    let mut slice = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all fields of both structures are integers, pointers or arrays of integers, for which zero is valid.
    let (mut name, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: `message` points to `name`, `slice` and `control`, with their true lengths; `slice` to the `into` that is
    // borrowed mutably; all of them outlive the call and nobody else uses them during it.
    let len = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| errno())?;
    let remote = socket_addr(&name).ok_or(Errno::AFNOSUPPORT)?;
    Ok((len, remote, packet_info(&message)))
}

/// The destination address in the control messages of a received datagram.
fn packet_info(message: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: the kernel has set `msg_control` and `msg_controllen` to a valid chain of control messages within the
    // buffer that the caller holds; the macro's functions stay within them, and the data of a message of this level and
    // type is the structure read from it, unaligned for safety.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            let data = libc::CMSG_DATA(found);
            match (found.cmsg_level, found.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    return Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => header = libc::CMSG_NXTHDR(message, header),
            }
        }
    }
    None
}

/// Sends one datagram, whose bytes lie in two places, from the address `from` if given.
pub(crate) fn send_to(
    fd: BorrowedFd<'_>,
    from: Option<IpAddr>,
    remote: SocketAddr,
    data: [&[u8]; 2],
) -> Result<(), Errno> {
    let mut control = Control::new();
    let (mut name, name_len) = raw_addr(remote);
    let mut slices =
        data.map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: as in `receive_from`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = name_len;
    message.msg_iov = slices.as_mut_ptr();
    message.msg_iovlen = slices.len() as _;
    if let Some(from) = from {
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        message.msg_controllen = put_packet_info(&mut message, from, remote.is_ipv6()) as _;
    }
    // SAFETY: `message` points to `name`, `slices` and `control` with lengths within them; the kernel only reads all of
    // them, and `data` through `slices`, and they outlive the call.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if sent >= 0 { Ok(()) } else { Err(errno()) }
}

/// Writes the source address as the one control message of `message`; returns its length.
fn put_packet_info(message: &mut libc::msghdr, from: IpAddr, v6: bool) -> usize {
    // SAFETY: `msg_control` points to a zeroed [`Control`] of the length in `msg_controllen`, which has room for a
    // header and the longer of both structures (16 + 20 bytes); the header is aligned by its type, and the data is
    // written unaligned.
    unsafe {
        let Some(header) = libc::CMSG_FIRSTHDR(message).as_mut() else { return 0 };
        let data = libc::CMSG_DATA(header);
        if v6 {
            let from = match from {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            let len = size_of::<libc::in6_pktinfo>() as u32;
            header.cmsg_level = libc::IPPROTO_IPV6;
            header.cmsg_type = libc::IPV6_PKTINFO;
            header.cmsg_len = libc::CMSG_LEN(len) as _;
            let addr = libc::in6_addr { s6_addr: from.octets() };
            data.cast::<libc::in6_pktinfo>()
                .write_unaligned(libc::in6_pktinfo { ipi6_addr: addr, ipi6_ifindex: 0 });
            return libc::CMSG_SPACE(len) as usize;
        }
        let IpAddr::V4(from) = from else { return 0 };
        let len = size_of::<libc::in_pktinfo>() as u32;
        header.cmsg_level = libc::IPPROTO_IP;
        header.cmsg_type = libc::IP_PKTINFO;
        header.cmsg_len = libc::CMSG_LEN(len) as _;
        let addr = libc::in_addr { s_addr: u32::from(from).to_be() };
        let info =
            libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: addr, ipi_addr: libc::in_addr { s_addr: 0 } };
        data.cast::<libc::in_pktinfo>().write_unaligned(info);
        libc::CMSG_SPACE(len) as usize
    }
}

/// An address as the kernel wrote it.
fn socket_addr(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: a `sockaddr_storage` is long enough and aligned for every address type, zeroed beyond what the
            // kernel wrote, and the family says which type it holds.
            let v4 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*(&raw const *name).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// An address as the kernel reads it, and its length.
fn raw_addr(addr: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all fields are integers or arrays of them, for which zero is valid.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let len = match addr {
        SocketAddr::V4(v4) => {
            // SAFETY: a `sockaddr_storage` is long enough and aligned for every address type, and borrowed mutably.
            let raw = unsafe { &mut *(&raw mut name).cast::<libc::sockaddr_in>() };
            raw.sin_family = libc::AF_INET as libc::sa_family_t;
            raw.sin_port = v4.port().to_be();
            raw.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            // SAFETY: as above.
            let raw = unsafe { &mut *(&raw mut name).cast::<libc::sockaddr_in6>() };
            raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            raw.sin6_port = v6.port().to_be();
            raw.sin6_addr.s6_addr = v6.ip().octets();
            raw.sin6_flowinfo = v6.flowinfo();
            raw.sin6_scope_id = v6.scope_id();
            size_of::<libc::sockaddr_in6>()
        }
    };
    (name, len as libc::socklen_t)
}

/// Closes a descriptor and tells what the system reports about writes before it.
pub(crate) fn close(fd: OwnedFd) -> Result<(), Errno> {
    // SAFETY: `into_raw_fd` gave up the only owner of this open descriptor, so that closing it here is the one time
    // it is closed, and nothing uses its number afterwards.
    match unsafe { libc::close(fd.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}
