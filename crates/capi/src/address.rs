//! Socket addresses between C's layout and ours.

use crate::errno::{Errno, Result};
use core::ffi::c_int;
use core::mem::{offset_of, size_of};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Bytes of the longest address.
const MAX_LEN: usize = size_of::<sockaddr_in6>();

/// Reads an address that a socket of `family` may be bound or connected to.
///
/// # Safety
///
/// `addr` is null or points to `len` readable bytes.
pub(crate) unsafe fn read(addr: *const sockaddr, len: socklen_t, family: c_int) -> Result<SocketAddr> {
    if addr.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    let len = (len as usize).min(MAX_LEN);
    let mut bytes = [0; MAX_LEN];
    // SAFETY: `addr` points to at least `len` readable bytes (the caller's contract), `bytes` has room for MAX_LEN of
    // them, and a local cannot overlap with the caller's memory.
    unsafe { core::ptr::copy_nonoverlapping(addr.cast::<u8>(), bytes.as_mut_ptr(), len) };
    parse(&bytes[..len], family)
}

/// The address in these bytes. All layouts begin with family and port, so fields are read at their offsets: alignment
/// does not matter.
fn parse(bytes: &[u8], family: c_int) -> Result<SocketAddr> {
    let field = |at: usize, len: usize| bytes.get(at..at + len).ok_or(Errno(libc::EINVAL));
    let at = offset_of!(sockaddr, sa_family);
    let mut named = [0; size_of::<sa_family_t>()];
    named.copy_from_slice(field(at, size_of::<sa_family_t>())?);
    if c_int::from(sa_family_t::from_ne_bytes(named)) != family {
        return Err(Errno(libc::EAFNOSUPPORT));
    }
    let port = field(offset_of!(sockaddr_in, sin_port), 2)?;
    let port = u16::from_be_bytes([port[0], port[1]]);
    if family == AF_INET {
        let mut ip = [0; 4];
        ip.copy_from_slice(field(offset_of!(sockaddr_in, sin_addr), 4)?);
        Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
    } else {
        let mut ip = [0; 16];
        ip.copy_from_slice(field(offset_of!(sockaddr_in6, sin6_addr), 16)?);
        Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(ip)), port))
    }
}

/// The bytes of `address` for a socket of `family`, and their length. An IPv6 socket sees IPv4 peers as mapped addresses
/// (RFC 4291 section 2.5.5.2); an unspecified address takes the socket's family.
fn emit(address: SocketAddr, family: c_int) -> ([u8; MAX_LEN], usize) {
    let mut bytes = [0; MAX_LEN];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(offset_of!(sockaddr, sa_family), &(family as sa_family_t).to_ne_bytes());
    put(offset_of!(sockaddr_in, sin_port), &address.port().to_be_bytes());
    if family == AF_INET {
        let ip = match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        put(offset_of!(sockaddr_in, sin_addr), &ip.octets());
        (bytes, size_of::<sockaddr_in>())
    } else {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv6Addr::UNSPECIFIED,
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        put(offset_of!(sockaddr_in6, sin6_addr), &ip.octets());
        (bytes, size_of::<sockaddr_in6>())
    }
}

/// Writes an address as the BSD calls do: cut to the room that `*len` names, with the whole length in `*len` afterwards.
/// Both pointers may be null: then nothing is written.
///
/// # Safety
///
/// `len` is null or valid for reads and writes; `addr` is null or points to `*len` writable bytes.
pub(crate) unsafe fn write(
    address: SocketAddr,
    family: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<()> {
    if addr.is_null() {
        return Ok(());
    }
    if len.is_null() {
        return Err(Errno(libc::EFAULT));
    }
    let (bytes, whole) = emit(address, family);
    // SAFETY: `len` is not null, so it is valid (the caller's contract); it need not be aligned.
    let room = unsafe { len.read_unaligned() } as usize;
    // SAFETY: `addr` points to `room` writable bytes (the caller's contract) and `bytes` has `whole` of them; a local
    // cannot overlap with the caller's memory.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), addr.cast::<u8>(), whole.min(room)) };
    // SAFETY: as for the read above.
    unsafe { len.write_unaligned(whole as socklen_t) };
    Ok(())
}

/// Whether a socket of `family` may talk to `remote`; `v6_only` keeps an IPv6 socket from IPv4 peers (RFC 3493 section
/// 5.3).
pub(crate) fn suits(family: c_int, v6_only: bool, remote: IpAddr) -> bool {
    match remote.to_canonical() {
        IpAddr::V4(_) => family == AF_INET || !v6_only,
        IpAddr::V6(_) => family == AF_INET6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, family: c_int, expected: &str) {
        let (bytes, len) = emit(text.parse().unwrap(), family);
        assert_eq!(parse(&bytes[..len], family), Ok(expected.parse().unwrap()), "{text}");
        assert!(parse(&bytes[..len - 12], family).is_err(), "{text}, cut short");
    }

    #[test]
    fn addresses_survive_the_way_through_c() {
        check("192.168.1.4:80", AF_INET, "192.168.1.4:80");
        check("[::ffff:1.2.3.4]:80", AF_INET, "1.2.3.4:80");
        check("[::]:7", AF_INET, "0.0.0.0:7");
        check("[fd00::4]:65535", AF_INET6, "[fd00::4]:65535");
        check("1.2.3.4:80", AF_INET6, "[::ffff:1.2.3.4]:80");
        check("0.0.0.0:7", AF_INET6, "[::]:7");
    }

    #[test]
    fn another_family_is_refused() {
        let (bytes, len) = emit("1.2.3.4:80".parse().unwrap(), AF_INET);
        assert_eq!(parse(&bytes[..len], AF_INET6), Err(Errno(libc::EAFNOSUPPORT)));
        assert_eq!(parse(&[], AF_INET), Err(Errno(libc::EINVAL)));
    }

    #[test]
    fn families_suit_peers() {
        let ip = |text: &str| text.parse().unwrap();
        assert!(suits(AF_INET, false, ip("1.2.3.4")));
        assert!(!suits(AF_INET, false, ip("fd00::1")));
        assert!(suits(AF_INET6, false, ip("::ffff:1.2.3.4")));
        assert!(!suits(AF_INET6, true, ip("1.2.3.4")));
        assert!(suits(AF_INET6, true, ip("fd00::1")));
    }
}
