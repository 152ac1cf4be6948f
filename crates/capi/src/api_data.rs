//! C functions that move data: read and write in all their forms.

use crate::address;
use crate::buffers::{Gather, Scatter, one};
use crate::errno::{Errno, Result};
use crate::handle::{enter, lr_stack};
use crate::host::{Host, NULL};
use crate::table::Kind;
use core::ffi::{c_int, c_void};
use core::net::SocketAddr;
use libc::{iovec, msghdr, sockaddr, socklen_t, ssize_t};

/// Flags that change nothing: nothing blocks, no signal is raised, data waits for the next turn anyway.
const HARMLESS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE;

/// What a receive gave beside the bytes.
struct Received {
    /// The value to return.
    len: usize,
    remote: Option<SocketAddr>,
    is_cut: bool,
}

/// Receives on a socket of any kind.
fn receive(host: &mut Host, fd: c_int, mut out: Scatter<'_>, flags: c_int) -> Result<Received> {
    if flags & !(HARMLESS | libc::MSG_PEEK | libc::MSG_TRUNC) != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let peek = flags & libc::MSG_PEEK != 0;
    match &mut host.sockets.get(fd)?.kind {
        Kind::Idle { .. } | Kind::Listening { .. } => Err(Errno(libc::ENOTCONN)),
        Kind::Stream(_) if flags & libc::MSG_TRUNC != 0 => Err(Errno(libc::EOPNOTSUPP)),
        Kind::Stream(stream) => {
            let len = stream.read(&mut host.node.stack, &mut out, peek)?;
            Ok(Received { len, remote: None, is_cut: false })
        }
        Kind::Datagram { .. } => {
            let got = host.receive_datagram(fd, &mut out, peek)?;
            let len = if flags & libc::MSG_TRUNC != 0 { got.whole } else { got.copied };
            Ok(Received { len, remote: Some(got.remote), is_cut: got.copied < got.whole })
        }
    }
}

/// Sends on a socket of any kind.
fn send(
    host: &mut Host,
    fd: c_int,
    data: &Gather<'_>,
    flags: c_int,
    to: Option<SocketAddr>,
) -> Result<usize> {
    if flags & !HARMLESS != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    match &mut host.sockets.get(fd)?.kind {
        Kind::Idle { .. } | Kind::Listening { .. } => Err(Errno(libc::ENOTCONN)),
        Kind::Stream(stream) => stream.write(&mut host.node.stack, data),
        Kind::Datagram { .. } => host.send_datagram(fd, to, data),
    }
}

/// A length as C's signed one; buffers are not longer than that.
fn signed(len: usize) -> ssize_t {
    ssize_t::try_from(len).unwrap_or(ssize_t::MAX)
}

/// Receives into one buffer; see `lr_recvmsg`.
///
/// # Safety
///
/// As `lr_stack_turn`; `buffer` is null or points to `length` writable bytes that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_read(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
) -> ssize_t {
    // SAFETY: the caller's contract is that of `lr_recv`.
    unsafe { lr_recv(stack, fd, buffer, length, 0) }
}

/// Receives into `count` pieces (at most 1,024), which are filled one after the other; see `lr_recvmsg`.
///
/// # Safety
///
/// As `lr_stack_turn`; `pieces` is null or points to `count` pieces, each null or with as many writable bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_readv(
    stack: *mut lr_stack,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    let work = |host: &mut Host| {
        // SAFETY: the caller's contract.
        let out = unsafe { Scatter::from_raw(pieces, count)? };
        receive(host, fd, out, 0).map(|got| signed(got.len))
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Receives into one buffer with flags; see `lr_recvmsg`.
///
/// # Safety
///
/// As `lr_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_recv(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract; no address is asked for.
    unsafe { lr_recvfrom(stack, fd, buffer, length, flags, core::ptr::null_mut(), core::ptr::null_mut()) }
}

/// Receives into one buffer and tells the sender of a datagram; see `lr_recvmsg`. `address` and `address_length` may be
/// null. On a stream socket the length becomes 0.
///
/// # Safety
///
/// As `lr_read`; `address_length` is null or valid, `address` is null or valid for `*address_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_recvfrom(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    let work = |host: &mut Host| {
        if !address.is_null() && address_length.is_null() {
            return Err(NULL);
        }
        let pieces = one(buffer, length);
        // SAFETY: the caller's contract.
        let out = unsafe { Scatter::new(&pieces)? };
        let got = receive(host, fd, out, flags)?;
        let family = host.sockets.get(fd)?.family;
        // SAFETY: the caller's contract.
        unsafe { give_sender(got.remote, family, address, address_length)? };
        Ok(signed(got.len))
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Writes the sender's address, or length 0 where there is none.
///
/// # Safety
///
/// As [`address::write`].
unsafe fn give_sender(
    remote: Option<SocketAddr>,
    family: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> Result<()> {
    match remote {
        // SAFETY: the caller's contract.
        Some(remote) => unsafe { address::write(remote, family, address, length) },
        None => {
            if !length.is_null() {
                // SAFETY: not null, so it is valid (the caller's contract).
                unsafe { length.write_unaligned(0) };
            }
            Ok(())
        }
    }
}

/// Receives. On a stream socket: as many bytes as are there and fit. On a datagram socket: one datagram, of which what
/// does not fit is lost; then MSG_TRUNC is set in `msg_flags`, and the flag MSG_TRUNC makes the call return the whole
/// length. `msg_name` (may be null) gets a datagram's sender. There are no control messages: `msg_controllen` becomes 0.
/// The flag MSG_PEEK leaves the data there; a read would give the same. MSG_DONTWAIT and
/// MSG_NOSIGNAL change nothing; urgent data (MSG_OOB) is not supported, it is delivered in line.
///
/// Returns the number of bytes; 0 at the end of a stream or when it is shut for reading; -EAGAIN if there is nothing yet;
/// once the error that ended the connection (-ECONNRESET, -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH), then 0; -ENOTCONN;
/// -EOPNOTSUPP for other flags; -EINVAL for bad counts or lengths; -EFAULT for a null piece with a length; -EBADF.
///
/// # Safety
///
/// As `lr_stack_turn`; `message` is null or valid, its pointers as for `lr_readv` and `lr_recvfrom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_recvmsg(
    stack: *mut lr_stack,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    let work = |host: &mut Host| {
        // SAFETY: null or valid (the caller's contract).
        let message = unsafe { message.as_mut() }.ok_or(NULL)?;
        let count = c_int::try_from(message.msg_iovlen).map_err(|_| Errno(libc::EMSGSIZE))?;
        // SAFETY: the caller's contract.
        let out = unsafe { Scatter::from_raw(message.msg_iov, count)? };
        let got = receive(host, fd, out, flags)?;
        let family = host.sockets.get(fd)?.family;
        let name = message.msg_name.cast();
        // SAFETY: `msg_name` is null or has room for `msg_namelen` bytes (the caller's contract).
        unsafe { give_sender(got.remote, family, name, &mut message.msg_namelen)? };
        message.msg_controllen = 0;
        message.msg_flags = if got.is_cut { libc::MSG_TRUNC } else { 0 };
        Ok(signed(got.len))
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Sends one buffer; see `lr_sendmsg`.
///
/// # Safety
///
/// As `lr_stack_turn`; `buffer` is null or points to `length` bytes that nobody changes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_write(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *const c_void,
    length: usize,
) -> ssize_t {
    // SAFETY: the caller's contract is that of `lr_send`.
    unsafe { lr_send(stack, fd, buffer, length, 0) }
}

/// Sends `count` pieces (at most 1,024) one after the other; see `lr_sendmsg`.
///
/// # Safety
///
/// As `lr_stack_turn`; `pieces` is null or points to `count` pieces, each null or with as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_writev(
    stack: *mut lr_stack,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    let work = |host: &mut Host| {
        // SAFETY: the caller's contract.
        let data = unsafe { Gather::from_raw(pieces, count)? };
        send(host, fd, &data, 0, None).map(signed)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// Sends one buffer with flags; see `lr_sendmsg`.
///
/// # Safety
///
/// As `lr_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_send(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract; no address is given.
    unsafe { lr_sendto(stack, fd, buffer, length, flags, core::ptr::null(), 0) }
}

/// Sends one buffer to an address; see `lr_sendmsg`. A null `address` is none.
///
/// # Safety
///
/// As `lr_write`; `address` is null or points to `address_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_sendto(
    stack: *mut lr_stack,
    fd: c_int,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let work = |host: &mut Host| {
        let pieces = one(buffer, length);
        // SAFETY: the caller's contract.
        let data = unsafe { Gather::new(&pieces)? };
        // SAFETY: the caller's contract.
        let to = unsafe { destination(host, fd, address, address_length)? };
        send(host, fd, &data, flags, to).map(signed)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}

/// The address to send to, if one is given.
///
/// # Safety
///
/// `address` is null or points to `length` bytes.
unsafe fn destination(
    host: &mut Host,
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> Result<Option<SocketAddr>> {
    let family = host.sockets.get(fd)?.family;
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's contract.
    unsafe { address::read(address, length, family).map(Some) }
}

/// Sends. The bytes are copied before this returns and leave with the next `lr_stack_turn`. On a stream socket as many
/// are taken as fit in the send buffer; on a datagram socket the pieces are one datagram, to `msg_name` or, if that is
/// null, the connected peer; a stream socket does not look at it. An unbound datagram socket is bound to a free port
/// first. There are no control messages: `msg_controllen` must be 0. MSG_DONTWAIT, MSG_NOSIGNAL (no signal is ever raised) and MSG_MORE change nothing.
///
/// Returns the number of bytes taken; -EAGAIN if there is no room; -EPIPE on a stream that is shut for writing or over;
/// once the error that ended it; -ENOTCONN; -EDESTADDRREQ without an address; -EMSGSIZE for a datagram that is too long; -ENETUNREACH; -EOPNOTSUPP for other flags or control messages; -EINVAL,
/// -EFAULT, -EBADF, -EAFNOSUPPORT.
///
/// # Safety
///
/// As `lr_stack_turn`; `message` is null or valid, its pointers as for `lr_writev` and `lr_sendto`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lr_sendmsg(
    stack: *mut lr_stack,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    let work = |host: &mut Host| {
        // SAFETY: null or valid (the caller's contract).
        let message = unsafe { message.as_ref() }.ok_or(NULL)?;
        let count = c_int::try_from(message.msg_iovlen).map_err(|_| Errno(libc::EMSGSIZE))?;
        if message.msg_controllen != 0 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        // SAFETY: the caller's contract.
        let data = unsafe { Gather::from_raw(message.msg_iov, count)? };
        // SAFETY: `msg_name` is null or points to `msg_namelen` bytes (the caller's contract).
        let to = unsafe { destination(host, fd, message.msg_name.cast(), message.msg_namelen)? };
        send(host, fd, &data, flags, to).map(signed)
    };
    // SAFETY: the caller's contract.
    unsafe { enter(stack, work) }
}
