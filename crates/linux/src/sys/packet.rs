//! AF_PACKET sockets (`linux/if_packet.h`, packet(7)): options, binding, and many messages per call.
#![allow(unsafe_code)]

use core::ffi::c_int;
use core::mem::{MaybeUninit, size_of, zeroed};
use core::ptr;
use linerate_nic::MacAddr;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, Result};
use std::io::{IoSlice, IoSliceMut};

/// Of auxiliary data: the checksum is partial.
pub(crate) const CHECKSUM_PARTIAL: u32 = 1 << 3;
/// Of auxiliary data: a VLAN tag was taken out.
pub(crate) const VLAN_VALID: u32 = 1 << 4;
/// Of auxiliary data: the tag's protocol is given too.
pub(crate) const VLAN_TPID_VALID: u32 = 1 << 6;
/// Of auxiliary data: the checksum was verified.
pub(crate) const CHECKSUM_VALID: u32 = 1 << 7;

/// Most messages of one call.
pub(crate) const MAX_BATCH: usize = 32;

/// Bytes of ancillary data: one `cmsghdr` with a `tpacket_auxdata`, and nothing else is asked for.
const CONTROL_LEN: usize = 64;

/// What the kernel says beside a frame: `struct tpacket_auxdata`.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AuxData {
    /// A set of the bits above.
    pub(crate) status: u32,
    /// The VLAN tag that was taken out.
    pub(crate) vlan_tci: u16,
    /// Its protocol.
    pub(crate) vlan_tpid: u16,
}

/// One message received.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Received {
    /// Bytes that were filled in.
    pub(crate) len: usize,
    /// Whether there were more.
    pub(crate) cut: bool,
    /// What the kernel said.
    pub(crate) aux: AuxData,
}

/// Ancillary data, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_LEN]);

/// Sets an option that is a plain integer.
fn set_int(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> Result<()> {
    set_option(fd, level, name, &value)
}

/// Sets an option. `T` is a C structure without padding that matters: the kernel only reads it.
pub(super) fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes at the pointer, which is exactly the live `value`, and keeps no pointer to it
    // (a filter program is copied during the call; its caller keeps it alive until then).
    let answer = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// A virtio-net header before each frame, both ways.
pub(crate) fn set_virtio_header(fd: BorrowedFd<'_>) -> Result<()> {
    set_int(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)
}

/// Auxiliary data with each frame.
pub(crate) fn set_auxdata(fd: BorrowedFd<'_>) -> Result<()> {
    set_int(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)
}

/// No frames that this machine itself sends on the interface.
pub(crate) fn set_ignore_outgoing(fd: BorrowedFd<'_>) -> Result<()> {
    set_int(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Promiscuous mode of the interface, for as long as the socket lives.
pub(crate) fn set_promiscuous(fd: BorrowedFd<'_>, index: u32) -> Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: c_int::try_from(index).map_err(|_| Errno::NODEV)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Lets only frames to `mac` and to groups (broadcast among them) into the socket. The kernel drops the others.
pub(crate) fn set_destination_filter(fd: BorrowedFd<'_>, mac: MacAddr) -> Result<()> {
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let [a, b, c, d, e, f] = mac.0;
    let mut steps = [
        step(LOAD_BYTE, 0, 0, 0),
        step(JUMP_IF_SET, 4, 0, 1),
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 3, u32::from_be_bytes([a, b, c, d])),
        step(LOAD_HALF, 0, 0, 4),
        step(JUMP_IF_EQUAL, 0, 1, u32::from(u16::from_be_bytes([e, f]))),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ];
    set_filter(fd, &mut steps)
}

/// Lets into the socket what this classic BPF program says.
pub(super) fn set_filter(fd: BorrowedFd<'_>, steps: &mut [libc::sock_filter]) -> Result<()> {
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Binds to all protocols of the interface: from now on frames come.
pub(crate) fn bind(fd: BorrowedFd<'_>, index: u32) -> Result<()> {
    // SAFETY: `sockaddr_ll` consists of integers and an array of them, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = c_int::try_from(index).map_err(|_| Errno::NODEV)?;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes at the pointer, exactly the live `address`.
    let answer = unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) };
    if answer == 0 { Ok(()) } else { Err(last_error()) }
}

/// How many frames the kernel has dropped since the last call because the socket's buffer was full.
pub(crate) fn take_drops(fd: BorrowedFd<'_>) -> Result<u32> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes at the pointer, the size of the live `stats`, and the length it
    // wrote to `len`.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            ptr::from_mut(&mut stats).cast(),
            &mut len,
        )
    };
    if answer == 0 { Ok(stats.tp_drops) } else { Err(last_error()) }
}

/// Receives up to one message per scatter list of `places` (at most [`MAX_BATCH`] are used), without waiting; returns
/// how many came, told in `received` (as long as `places`).
pub(crate) fn receive_many<const PIECES: usize>(
    fd: BorrowedFd<'_>,
    places: &mut [[IoSliceMut<'_>; PIECES]],
    received: &mut [Received],
) -> Result<usize> {
    let count = places.len().min(received.len()).min(MAX_BATCH);
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; MAX_BATCH];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    for ((message, control), places) in
        messages.iter_mut().zip(&mut controls).zip(places.iter_mut()).take(count)
    {
        let control = control.write(Control([0; CONTROL_LEN]));
        // SAFETY: `mmsghdr` consists of integers and pointers, for which zero is a value.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        // `IoSliceMut` has the layout of `iovec` (std guarantees it on Unix).
        header.msg_hdr.msg_iov = places.as_mut_ptr().cast();
        header.msg_hdr.msg_iovlen = PIECES as _;
        header.msg_hdr.msg_control = ptr::from_mut(control).cast();
        header.msg_hdr.msg_controllen = CONTROL_LEN as _;
        message.write(header);
    }
    let flags = libc::MSG_DONTWAIT as _;
    // SAFETY: the first `count` headers are initialised above. Each points to a scatter list and to ancillary space,
    // which live in `places` and `controls` beyond the call, are borrowed mutably by nobody else, and whose lengths are
    // given. A null time-out is allowed.
    let answer = unsafe {
        libc::recvmmsg(fd.as_raw_fd(), messages.as_mut_ptr().cast(), count as _, flags, ptr::null_mut())
    };
    let came = usize::try_from(answer).map_err(|_| last_error())?.min(count);
    for (message, out) in messages.iter().zip(received).take(came) {
        // SAFETY: `came <= count`, and the first `count` are initialised.
        let header = unsafe { message.assume_init_ref() };
        *out = Received {
            len: header.msg_len as usize,
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            aux: auxdata(&header.msg_hdr),
        };
    }
    Ok(came)
}

/// The auxiliary data of a received message.
fn auxdata(header: &libc::msghdr) -> AuxData {
    // SAFETY: the kernel has set the pointer's length to what it filled in of our aligned space, and CMSG_FIRSTHDR gives
    // null or a whole header within it.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() };
    let Some(first) = first else { return AuxData::default() };
    // SAFETY: CMSG_LEN only computes.
    let needed = unsafe { libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) } as usize;
    let ours = first.cmsg_level == libc::SOL_PACKET && first.cmsg_type == libc::PACKET_AUXDATA;
    if !ours || first.cmsg_len < needed as _ || header.msg_controllen < needed as _ {
        return AuxData::default();
    }
    // SAFETY: `needed` bytes were checked to be there, which is header and data; the structure is integers, and an
    // unaligned read makes no claim of alignment.
    let data: libc::tpacket_auxdata = unsafe { ptr::read_unaligned(libc::CMSG_DATA(first).cast()) };
    AuxData { status: data.tp_status, vlan_tci: data.tp_vlan_tci, vlan_tpid: data.tp_vlan_tpid }
}

/// Sends one message per gather list (at most [`MAX_BATCH`] are used), without waiting; returns how many were taken, at
/// least one. The error is about the first message.
pub(crate) fn send_many(fd: BorrowedFd<'_>, gathers: &[&[IoSlice<'_>]]) -> Result<usize> {
    let count = gathers.len().min(MAX_BATCH);
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    for (message, pieces) in messages.iter_mut().zip(gathers).take(count) {
        // SAFETY: `mmsghdr` consists of integers and pointers, for which zero is a value.
        let mut header: libc::mmsghdr = unsafe { zeroed() };
        // `IoSlice` has the layout of `iovec` (std guarantees it on Unix).
        header.msg_hdr.msg_iov = pieces.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = pieces.len() as _;
        message.write(header);
    }
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
    // SAFETY: the first `count` headers are initialised above and point to gather lists that live beyond the call. The
    // kernel writes to the headers' lengths only and reads what the lists point to.
    let answer = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr().cast(), count as _, flags) };
    usize::try_from(answer).map_err(|_| last_error())
}
