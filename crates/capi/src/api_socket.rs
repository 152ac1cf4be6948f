//! C functions for sockets: open, connect, configure, poll, close.

use crate::address;
use crate::errno::{Errno, Result};
use crate::handle::{enter, lr_stack};
use crate::host::{Host, NULL};
use crate::options::Value;
use crate::stream::unspecified;
use crate::table::{Kind, Settings, Socket};
use core::ffi::{c_int, c_ulong, c_void};
use core::net::SocketAddr;
use libc::{AF_INET, AF_INET6, nfds_t, pollfd, sockaddr, socklen_t};
use linerate_transport::{ConnState, Transport as _};

/// Most entries of one `lr_poll`.
const MAX_POLL: usize = 1 << 16;

/// Opens a socket: `domain` AF_INET or AF_INET6, `kind` SOCK_STREAM or SOCK_DGRAM (SOCK_NONBLOCK and SOCK_CLOEXEC may be
/// added and change nothing: every socket is non-blocking), `protocol` 0 or IPPROTO_TCP or IPPROTO_UDP to match.
///
/// Returns a descriptor (0 or more, only good for this stack); -EAFNOSUPPORT, -EPROTOTYPE or -EPROTONOSUPPORT for what
/// there is not; -EMFILE when `max_sockets` are open.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_socket(
    stack: *mut lr_stack,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    let work = |host: &mut Host| {
        if domain != AF_INET && domain != AF_INET6 {
            return Err(Errno(libc::EAFNOSUPPORT));
        }
        let kind = match (kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC), protocol) {
            (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Kind::Idle { local: None },
            (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Kind::Datagram { id: None, peer: None },
            (libc::SOCK_STREAM | libc::SOCK_DGRAM, _) => return Err(Errno(libc::EPROTONOSUPPORT)),
            _ => return Err(Errno(libc::EPROTOTYPE)),
        };
        host.sockets.insert(Socket { family: domain, settings: Settings::new(host.buffer_max), kind })
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Binds a socket to one of our addresses (or the unspecified one, for all) and a port; port 0 takes a free one.
///
/// Returns 0; -EADDRNOTAVAIL if the address is not ours; -EADDRINUSE; -EINVAL if it is bound, connected or listening
/// already, or `length` is short; -EAFNOSUPPORT for another family than the socket's; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `address` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_bind(
    stack: *mut lr_stack,
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        let socket = host.sockets.get(fd)?;
        // SAFETY: the caller's contract.
        let address = unsafe { address::read(address, length, socket.family)? };
        match socket.kind {
            Kind::Datagram { .. } => host.bind_datagram(fd, address).map(|_| 0),
            _ => host.bind_stream(fd, address).map(|()| 0),
        }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Makes a stream socket a listener for which up to `backlog` connections (1 to 65,535) may wait, half-open ones
/// included; beyond that SYNs get cookies. Accepted sockets start with the listener's options. An AF_INET6 listener on
/// the unspecified address takes IPv4 connections too, unless IPV6_V6ONLY is set.
///
/// Returns 0; -EADDRINUSE; -EINVAL if it is connected; -EOPNOTSUPP on a datagram socket; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_listen(stack: *mut lr_stack, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { enter(stack, |host| host.listen(fd, backlog).map(|()| 0)) }
}

/// Takes the next established connection of a listener. `address` and `length` get the peer's address and may be null.
///
/// Returns the new descriptor; -EAGAIN if none waits; -EMFILE (the connection keeps waiting); -EINVAL if the socket does
/// not listen; -EOPNOTSUPP on a datagram socket; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`; `length` is null or valid, `address` is null or valid for `*length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_accept(
    stack: *mut lr_stack,
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        if !address.is_null() && length.is_null() {
            return Err(NULL);
        }
        let (accepted, remote) = host.accept(fd)?;
        let family = host.sockets.get(accepted)?.family;
        // SAFETY: the caller's contract.
        unsafe { address::write(remote, family, address, length)? };
        Ok(accepted)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Connects a socket. A stream socket starts its handshake: POLLOUT tells when that is over, and SO_ERROR how. A datagram
/// socket gets a peer, for `lr_send` and as the only one it receives from; the unspecified address takes the peer away.
///
/// Returns 0 on a datagram socket; on a stream socket -EINPROGRESS the first time, -EALREADY while the handshake is
/// under way, -EISCONN when connected, and once the error of a failed one (-ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH),
/// after which it can connect again. Also -ENETUNREACH without a route, -EADDRNOTAVAIL if the bound address and port
/// cannot be used with this peer, -ENOBUFS, -EAFNOSUPPORT, -EINVAL, -EBADF, -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `address` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_connect(
    stack: *mut lr_stack,
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        let socket = host.sockets.get(fd)?;
        // SAFETY: the caller's contract.
        let remote = unsafe { address::read(address, length, socket.family)? };
        match socket.kind {
            Kind::Datagram { .. } => host.connect_datagram(fd, remote).map(|()| 0),
            _ => host.connect_stream(fd, remote).map(|()| 0),
        }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Shuts a connection: `how` SHUT_RD (reads return 0 where nothing is waiting, instead of -EAGAIN), SHUT_WR (FIN after
/// everything written; further writes return -EPIPE) or SHUT_RDWR.
///
/// Returns 0; -ENOTCONN; -EINVAL; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_shutdown(stack: *mut lr_stack, fd: c_int, how: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { enter(stack, |host| host.shutdown(fd, how).map(|()| 0)) }
}

/// Closes a socket; its descriptor is free at once. What was written is still delivered, in the background and bounded by
/// the user timeout, also with SO_LINGER (nothing here waits). The connection is reset instead if SO_LINGER is on with
/// 0 seconds, if received data was not read (RFC 2525 section 2.17), or when data comes later. Connections of a listener that were not accepted
/// are reset.
///
/// Returns 0; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_close(stack: *mut lr_stack, fd: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { enter(stack, |host| host.close(fd).map(|()| 0)) }
}

/// Writes the value of an option to `value`, cut to `*length` bytes, and its length to `*length`. The numbers are the
/// system's: SOL_SOCKET with SO_ERROR (a positive errno or 0; reading it clears it), SO_TYPE, SO_DOMAIN, SO_ACCEPTCONN,
/// SO_REUSEADDR, SO_KEEPALIVE, SO_SNDBUF, SO_RCVBUF (bytes; not doubled, brought into 2 KiB to 1 GiB), SO_LINGER (struct
/// linger); IPPROTO_TCP with TCP_NODELAY, TCP_QUICKACK, TCP_MAXSEG (bytes, 88 to 65,535), TCP_KEEPIDLE, TCP_KEEPINTVL
/// (seconds), TCP_KEEPCNT, TCP_USER_TIMEOUT (ms; 0: the default of 180 s), TCP_CONGESTION (text), TCP_INFO (lr_tcp_info); IPPROTO_IP with IP_TOS; IPPROTO_IPV6
/// with IPV6_TCLASS and IPV6_V6ONLY. All others are an int.
///
/// Returns 0; -ENOPROTOOPT for an option that there is not; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `length` is null or valid, `value` is null or points to `*length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_getsockopt(
    stack: *mut lr_stack,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        if value.is_null() || length.is_null() {
            return Err(NULL);
        }
        let found = host.option(fd, level, name)?;
        // SAFETY: not null, so they are valid as the caller's contract says.
        unsafe {
            match &found {
                Value::Int(number) => put_value(number, value, length),
                Value::Linger(linger) => put_value(linger, value, length),
                Value::Name(name) => put_value(name, value, length),
                Value::Info(info) => put_value(&**info, value, length),
            }
        }
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Copies `found`, a plain C value without padding, to `value`, cut to `*length`, which becomes what was copied.
///
/// # Safety
///
/// `length` is valid for reads and writes, `value` for writes of `*length` bytes.
unsafe fn put_value<T: Copy>(found: &T, value: *mut c_void, length: *mut socklen_t) {
    // SAFETY: `length` is valid (the caller's contract).
    let count = (unsafe { length.read_unaligned() } as usize).min(size_of::<T>());
    // SAFETY: `found` has `size_of::<T>()` bytes and `value` room for `count` (the caller's contract); a value of ours
    // does not overlap with the caller's memory.
    unsafe {
        core::ptr::copy_nonoverlapping(core::ptr::from_ref(found).cast::<u8>(), value.cast::<u8>(), count);
        length.write_unaligned(count as socklen_t);
    }
}

/// Sets an option; see `lr_getsockopt` for their values. TCP_CONGESTION knows "cubic" and "reno". SO_REUSEADDR lets a socket bind to
/// a port of connections in TIME-WAIT, which here is always allowed, or of another bound socket that does not listen.
/// TCP_MAXSEG has an effect before connect, on a listener for connections to come; IPV6_V6ONLY before connect and listen. Buffers of a fixed size end autotuning.
///
/// Returns 0; -ENOPROTOOPT for an option that there is not, or that can only be read; -EINVAL for a value out of range
/// or a short `length`; -ENOENT for an unknown congestion control; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `value` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_setsockopt(
    stack: *mut lr_stack,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        if value.is_null() {
            return Err(NULL);
        }
        // No option is longer; a copy needs no assumption about alignment or other threads.
        let mut bytes = [0; 32];
        let len = (length as usize).min(bytes.len());
        // SAFETY: `value` points to `length` bytes (the caller's contract), `bytes` has room for `len`.
        unsafe { core::ptr::copy_nonoverlapping(value.cast::<u8>(), bytes.as_mut_ptr(), len) };
        host.set_option(fd, level, name, &bytes[..len]).map(|()| 0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Writes the address that a socket is bound to.
///
/// Returns 0; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_accept`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_getsockname(
    stack: *mut lr_stack,
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        let socket = host.sockets.get(fd)?;
        let family = socket.family;
        let local = match &socket.kind {
            Kind::Idle { local } => *local,
            Kind::Listening { id, .. } => host.node.stack.listener_addr(*id),
            Kind::Stream(stream) => host.node.stack.info(stream.id).map(|info| info.local),
            Kind::Datagram { id, .. } => id.and_then(|id| host.node.stack.udp_addr(id)),
        };
        // SAFETY: the caller's contract.
        unsafe { give_address(local.unwrap_or(unspecified(family)), family, address, length) }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Writes the address of the peer.
///
/// Returns 0; -ENOTCONN; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_accept`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_getpeername(
    stack: *mut lr_stack,
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let work = |host: &mut Host| {
        let socket = host.sockets.get(fd)?;
        let family = socket.family;
        let remote = match &socket.kind {
            Kind::Stream(stream) if matches!(host.node.stack.state(stream.id), ConnState::Open { .. }) => {
                host.node.stack.remote_addr(stream.id)
            }
            Kind::Datagram { peer, .. } => *peer,
            _ => None,
        };
        let remote = remote.ok_or(Errno(libc::ENOTCONN))?;
        // SAFETY: the caller's contract.
        unsafe { give_address(remote, family, address, length) }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// As [`address::write`], but null is an error.
///
/// # Safety
///
/// As [`address::write`].
unsafe fn give_address(
    found: SocketAddr,
    family: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> Result<c_int> {
    if address.is_null() {
        return Err(NULL);
    }
    // SAFETY: the caller's contract.
    unsafe { address::write(found, family, address, length).map(|()| 0) }
}

/// The part of fcntl that makes sense here: F_GETFL gives O_RDWR | O_NONBLOCK; F_SETFL with O_NONBLOCK changes nothing.
///
/// Returns the flags or 0; -EOPNOTSUPP for F_SETFL without O_NONBLOCK (no call here ever blocks); -EINVAL for another
/// command; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_fcntl(stack: *mut lr_stack, fd: c_int, command: c_int, argument: c_int) -> c_int {
    let work = |host: &mut Host| {
        host.sockets.get(fd)?;
        match command {
            libc::F_GETFL => Ok(libc::O_RDWR | libc::O_NONBLOCK),
            libc::F_SETFL if argument & libc::O_NONBLOCK != 0 => Ok(0),
            libc::F_SETFL => Err(Errno(libc::EOPNOTSUPP)),
            _ => Err(Errno(libc::EINVAL)),
        }
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// The part of ioctl that makes sense here: FIONREAD (SIOCINQ) writes to the int behind `argument` how many bytes can be
/// read, on a datagram socket the length of the next datagram; TIOCOUTQ (SIOCOUTQ) how many were written and not
/// acknowledged; FIONBIO with a value other than zero changes nothing.
///
/// Returns 0; -EINVAL on a listener; -EOPNOTSUPP for FIONBIO with zero; -ENOTTY for another request; -EBADF; -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `argument` is null or points to an int.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_ioctl(
    stack: *mut lr_stack,
    fd: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    let work = |host: &mut Host| {
        let kind = host.sockets.get(fd)?.kind.clone();
        let number = argument.cast::<c_int>();
        if number.is_null() {
            return Err(NULL);
        }
        let count = match (request, &kind) {
            (libc::FIONREAD, Kind::Datagram { .. }) => host.next_datagram_len(fd)? as u64,
            (libc::FIONREAD, Kind::Stream(stream)) => host.node.stack.readable(stream.id) as u64,
            (libc::TIOCOUTQ, Kind::Stream(stream)) => host.node.stack.unsent(stream.id),
            (libc::FIONREAD | libc::TIOCOUTQ, Kind::Listening { .. }) => return Err(Errno(libc::EINVAL)),
            (libc::FIONREAD | libc::TIOCOUTQ, _) => 0,
            (libc::FIONBIO, _) => {
                // SAFETY: not null, so it points to an int (the caller's contract).
                let on = unsafe { number.read_unaligned() };
                return if on != 0 { Ok(0) } else { Err(Errno(libc::EOPNOTSUPP)) };
            }
            _ => return Err(Errno(libc::ENOTTY)),
        };
        // SAFETY: not null, so it points to an int (the caller's contract).
        unsafe { number.write_unaligned(c_int::try_from(count).unwrap_or(c_int::MAX)) };
        Ok(0)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Looks at sockets, without waiting: sets `revents` of each entry to what is true now of what `events` asks for (POLLIN,
/// POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM), and to POLLERR, POLLHUP and POLLNVAL where they apply. Entries with a
/// negative descriptor are skipped. Readiness is by level: it stays until it is used up.
///
/// Returns the number of entries with any bit; -EINVAL for more than 65,536 entries; -EFAULT.
///
/// # Safety
///
/// As `lr_stack_turn`; `entries` is null or points to `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_poll(stack: *mut lr_stack, entries: *mut pollfd, count: nfds_t) -> c_int {
    let work = |host: &mut Host| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_POLL {
            return Err(Errno(libc::EINVAL));
        }
        if count > 0 && (entries.is_null() || !entries.is_aligned()) {
            return Err(NULL);
        }
        let mut ready = 0;
        for index in 0..count {
            // SAFETY: `index` is below the number of entries behind `entries` (the caller's contract), which is neither
            // null nor misaligned.
            let entry = unsafe { &mut *entries.add(index) };
            entry.revents = match (entry.fd, host.readiness(entry.fd)) {
                (..0, _) => 0,
                (_, Ok(bits)) => bits & (entry.events | libc::POLLERR | libc::POLLHUP),
                (_, Err(_)) => libc::POLLNVAL,
            };
            ready += c_int::from(entry.revents != 0);
        }
        Ok(ready)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}
