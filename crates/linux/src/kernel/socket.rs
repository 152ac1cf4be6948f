//! Opening sockets, their settings, and addresses as the kernel tells them.

use crate::sys::socket as sys;
use linerate_transport::{
    BufferSize, Congestion, ConnectError, ListenAddr, ListenError, Pacing, SocketOptions,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Opens a non-blocking socket.
pub(crate) fn open(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, Errno> {
    net::socket_with(family, kind, FLAGS, None)
}

pub(crate) fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// An address as a server shall see it: IPv4 as IPv4, also where an IPv6 socket carried it; IPv6 with its zone.
pub(crate) fn normalise(addr: SocketAddr) -> SocketAddr {
    match addr.ip().to_canonical() {
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, addr.port()),
        IpAddr::V6(_) => addr,
    }
}

/// An address as a socket of `family` takes it; `None` when it cannot.
pub(crate) fn for_family(addr: SocketAddr, family: AddressFamily) -> Option<SocketAddr> {
    match addr {
        SocketAddr::V4(v4) if family == AddressFamily::INET6 => {
            Some(SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port()))
        }
        SocketAddr::V6(_) if family == AddressFamily::INET => None,
        same => Some(same),
    }
}

/// An address of a kernel that names one.
pub(crate) fn ip_addr(addr: SocketAddrAny) -> Option<SocketAddr> {
    SocketAddr::try_from(addr).ok().map(normalise)
}

/// The address a socket is bound to.
pub(crate) fn local_addr(fd: impl AsFd) -> Option<SocketAddr> {
    net::getsockname(fd).ok().and_then(ip_addr)
}

/// Opens and binds a socket: to one address, or to all of both families where the host has IPv6, of IPv4 otherwise.
/// `prepare` sets what must be set before binding.
pub(crate) fn bind(
    addr: ListenAddr,
    kind: SocketType,
    prepare: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(OwnedFd, AddressFamily), ListenError> {
    let try_bind = |ip: IpAddr, dual: bool| {
        let family = family(ip);
        let fd = open(family, kind)?;
        if family == AddressFamily::INET6 {
            sockopt::set_ipv6_v6only(&fd, !dual)?;
        }
        prepare(fd.as_fd())?;
        net::bind(&fd, &SocketAddr::new(ip, addr.port))?;
        Ok((fd, family))
    };
    let result = match addr.ip {
        Some(ip) => try_bind(ip, false),
        None => match try_bind(IpAddr::V6(Ipv6Addr::UNSPECIFIED), true) {
            // The host has no IPv6, or it is switched off.
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL | Errno::NOPROTOOPT) => {
                try_bind(IpAddr::V4(Ipv4Addr::UNSPECIFIED), false)
            }
            other => other,
        },
    };
    result.map_err(|errno| match errno {
        Errno::ADDRINUSE => ListenError::InUse,
        Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT | Errno::NODEV | Errno::INVAL => ListenError::NoSuchAddress,
        Errno::ACCESS | Errno::PERM => ListenError::Permission,
        _ => ListenError::NoMemory,
    })
}

/// Why a connect could not start; `None` when it did start, and its end is reported by an event.
pub(crate) fn connect_error(errno: Errno, bound: bool) -> Option<ConnectError> {
    match errno {
        Errno::ADDRINUSE | Errno::INVAL | Errno::ACCESS => Some(ConnectError::Address),
        // Without a local address it is the ephemeral ports that ran out.
        Errno::ADDRNOTAVAIL if bound => Some(ConnectError::Address),
        Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::AGAIN => {
            Some(ConnectError::NoMemory)
        }
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::PERM | Errno::AFNOSUPPORT => {
            Some(ConnectError::Unreachable)
        }
        _ => None,
    }
}

fn seconds(duration: Duration) -> Duration {
    // The kernel counts keep-alive times in whole seconds, from 1 to 32,767.
    Duration::from_secs(duration.as_secs().clamp(1, 32_767))
}

/// Sets what of `options` the kernel has, as far as the socket's state still allows it. What it refuses stays as it
/// is: settings tune a connection and never decide whether there is one.
pub(crate) fn apply(fd: BorrowedFd<'_>, options: &SocketOptions) {
    let mut refused = 0;
    let mut note = |result: Result<(), Errno>| refused += u32::from(result.is_err());
    if let BufferSize::Fixed(bytes) = options.send_buffer {
        note(sockopt::set_socket_send_buffer_size(fd, bytes));
    }
    if let BufferSize::Fixed(bytes) = options.receive_buffer {
        note(sockopt::set_socket_recv_buffer_size(fd, bytes));
    }
    if let Some(mss) = options.mss {
        // The kernel takes 88 and more; less than that is raised to it.
        refused += u32::from(sys::set_max_segment(fd, mss.max(88)).is_err());
    }
    // Its own pace is the kernel's choice.
    if let Pacing::Rate(rate) = options.pacing {
        refused += u32::from(sys::set_max_pacing_rate(fd, rate).is_err());
    }
    let mut note = |result: Result<(), Errno>| refused += u32::from(result.is_err());
    note(sockopt::set_tcp_nodelay(fd, options.no_delay));
    // CUBIC, the default, leaves the host's choice.
    if options.congestion == Congestion::NewReno {
        note(sockopt::set_tcp_congestion(fd, "reno"));
    }
    // An urgent byte stays where it is in the stream, as the contract promises all bytes in order: FTP clients send the
    // last byte of ABOR as urgent, and the command would never end without it (RFC 6093 section 5 advises the same).
    note(sockopt::set_socket_oobinline(fd, true));
    note(sockopt::set_socket_keepalive(fd, options.keep_alive.is_some()));
    if let Some(keep_alive) = options.keep_alive {
        note(sockopt::set_tcp_keepidle(fd, seconds(keep_alive.idle)));
        note(sockopt::set_tcp_keepintvl(fd, seconds(keep_alive.interval)));
        note(sockopt::set_tcp_keepcnt(fd, u32::from(keep_alive.probes.clamp(1, 127))));
    }
    let timeout = i32::try_from(options.user_timeout.as_millis()).unwrap_or(i32::MAX);
    note(sockopt::set_tcp_user_timeout(fd, timeout.unsigned_abs()));
    set_tos(fd, options.tos);
    if refused > 0 {
        log::debug!("the kernel refused {refused} socket settings of {options:?}");
    }
}

/// Sets the differentiated services code point for both families; a socket of one ignores that of the other.
pub(crate) fn set_tos(fd: BorrowedFd<'_>, tos: u8) {
    let tos = tos & 0xfc;
    if sockopt::ip_tos(fd).is_ok_and(|now| now & 0xfc != tos) {
        let _ = sockopt::set_ip_tos(fd, tos);
    }
    if sockopt::ipv6_tclass(fd).is_ok_and(|now| now & 0xfc != u32::from(tos)) {
        let _ = sockopt::set_ipv6_tclass(fd, u32::from(tos));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str) {
        assert_eq!(normalise(from.parse().unwrap()), to.parse().unwrap());
    }

    #[test]
    fn mapped_addresses_are_those_of_ipv4_and_zones_stay() {
        check("[::ffff:192.0.2.1]:80", "192.0.2.1:80");
        check("192.0.2.1:80", "192.0.2.1:80");
        check("[fe80::1%3]:80", "[fe80::1%3]:80");
        check("[::1]:80", "[::1]:80");
    }

    #[test]
    fn a_socket_takes_what_its_family_can_reach() {
        let (v4, v6) = ("192.0.2.1:1".parse().unwrap(), "[2001:db8::1]:1".parse().unwrap());
        let mapped = "[::ffff:192.0.2.1]:1".parse().unwrap();
        assert_eq!(for_family(v4, AddressFamily::INET), Some(v4));
        assert_eq!(for_family(v4, AddressFamily::INET6), Some(mapped));
        assert_eq!(for_family(v6, AddressFamily::INET6), Some(v6));
        assert_eq!(for_family(v6, AddressFamily::INET), None);
    }

    #[test]
    fn a_rate_is_the_kernel_s_to_keep() {
        /// Where `struct tcp_info` has the greatest rate (`tcpi_max_pacing_rate`).
        const MAX_PACING_RATE: core::ops::Range<usize> = 112..120;
        for (pacing, rate) in [(Pacing::Rate(2_500_000), 2_500_000), (Pacing::Off, u64::MAX)] {
            let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            apply(socket.as_fd(), &SocketOptions { pacing, ..SocketOptions::default() });
            let mut info = [0; sys::TCP_INFO_LEN];
            sys::tcp_info(&socket, &mut info).unwrap();
            assert_eq!(u64::from_ne_bytes(info[MAX_PACING_RATE].try_into().unwrap()), rate, "{pacing:?}");
        }
    }
}
