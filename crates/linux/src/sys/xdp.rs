//! AF_XDP sockets (`linux/if_xdp.h`): options, rings, binding, waking, and how many queues an interface has.
#![allow(unsafe_code)]

use super::map::{Mapping, Scoped, map_at};
use super::packet::set_option;
use super::rings::{Consumer, Descriptor, Entry, Layout, Producer};
use core::ffi::c_int;
use core::mem::{size_of, zeroed};
use core::ptr;
use rustix::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use std::io;

/// XDP_MAX_TX_SKB_BUDGET, since Linux 6.17: frames that one system call sends.
const MOST_AT_ONCE: c_int = 9;
/// In the flags of shared memory, since Linux 6.11: it is said how many bytes of metadata are in front of frames to transmit.
const HAS_METADATA_LEN: u32 = 1 << 2;
// Where the rings are in what a socket maps: XDP_PGOFF_ and XDP_UMEM_PGOFF_, whose types differ.
const RECEIVE_RING_AT: u64 = 0;
const TRANSMIT_RING_AT: u64 = 0x8000_0000;
const FILL_RING_AT: u64 = 0x1_0000_0000;
const COMPLETION_RING_AT: u64 = 0x1_8000_0000;
/// ETHTOOL_GCHANNELS.
const GET_CHANNELS: u32 = 0x3c;
const SIOCETHTOOL: u32 = 0x8946;

/// The memory that frames lie in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Bytes of each buffer: a power of two, at least 2,048 and at most a page.
    pub(crate) chunk: u32,
    /// Free bytes in front of each received frame, beside the kernel's own 256.
    pub(crate) headroom: u32,
    /// Bytes of metadata in front of each frame to transmit; 0 for none.
    pub(crate) metadata: u32,
}

/// Our ends of a socket's four rings.
#[derive(Debug)]
pub(crate) struct Rings {
    pub(crate) fill: Producer<u64>,
    pub(crate) receive: Consumer<Descriptor>,
    pub(crate) transmit: Producer<Descriptor>,
    pub(crate) complete: Consumer<u64>,
}

/// What the kernel dropped, and why.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Drops {
    /// Received frames for which there was no buffer, or that were too long.
    pub(crate) dropped: u64,
    /// Received frames for which the ring had no room.
    pub(crate) ring_full: u64,
    /// Descriptors of ours that the kernel refused, of either direction.
    pub(crate) invalid: u64,
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn check(answer: c_int) -> Result<()> {
    if answer >= 0 { Ok(()) } else { Err(last_error()) }
}

/// A new socket, without memory or rings.
pub(crate) fn socket() -> Result<OwnedFd> {
    // SAFETY: takes three numbers and touches no memory of ours.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: the kernel has just made it for us, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the socket the memory that it and we share for as long as either has it open.
pub(crate) fn register(fd: BorrowedFd<'_>, area: &Mapping, memory: &Memory) -> Result<()> {
    let request = libc::xdp_umem_reg {
        addr: area.address() as u64,
        len: area.len() as u64,
        chunk_size: memory.chunk,
        headroom: memory.headroom,
        flags: if memory.metadata > 0 { HAS_METADATA_LEN } else { 0 },
        tx_metadata_len: memory.metadata,
    };
    // The area is memory of our own that stays mapped to the end of the process (`Mapping`), so that the kernel never reaches
    // anything else through it; who looks at which part when is settled by the rings.
    set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
}

/// Makes the rings, of so many entries each (powers of two), and maps them.
pub(crate) fn rings(fd: BorrowedFd<'_>, receive: u32, transmit: u32) -> Result<Rings> {
    for (ring, size) in [
        (libc::XDP_UMEM_FILL_RING, receive),
        (libc::XDP_RX_RING, receive),
        (libc::XDP_TX_RING, transmit),
        (libc::XDP_UMEM_COMPLETION_RING, transmit),
    ] {
        set_option(fd, libc::SOL_XDP, ring, &size)?;
    }
    // SAFETY: the structure consists of integers, for which zero is a value, and so is whatever the kernel writes.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    get_option(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    let fill = mapped::<u64>(fd, &offsets.fr, receive, FILL_RING_AT)?;
    let rx = mapped::<Descriptor>(fd, &offsets.rx, receive, RECEIVE_RING_AT)?;
    let tx = mapped::<Descriptor>(fd, &offsets.tx, transmit, TRANSMIT_RING_AT)?;
    let complete = mapped::<u64>(fd, &offsets.cr, transmit, COMPLETION_RING_AT)?;
    let made = || {
        Some(Rings {
            fill: Producer::new(fill.0, fill.1, receive)?,
            receive: Consumer::new(rx.0, rx.1, receive)?,
            transmit: Producer::new(tx.0, tx.1, transmit)?,
            complete: Consumer::new(complete.0, complete.1, transmit)?,
        })
    };
    made().ok_or(Errno::PROTO)
}

/// A ring's mapping, which keeps the socket open, and where its parts are.
fn mapped<T: Entry>(
    fd: BorrowedFd<'_>,
    offsets: &libc::xdp_ring_offset,
    size: u32,
    at: u64,
) -> Result<(Scoped, Layout)> {
    let place = |offset: u64| usize::try_from(offset).map_err(|_| Errno::OVERFLOW);
    let layout = Layout {
        producer: place(offsets.producer)?,
        consumer: place(offsets.consumer)?,
        flags: place(offsets.flags)?,
        entries: place(offsets.desc)?,
    };
    let len = layout.entries + size as usize * size_of::<T>();
    let mapping = map_at(fd, len, at).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok((mapping.scoped(), layout))
}

/// Binds to a queue of an interface. The kernel takes the interface's zero-copy mode where its driver has one, and copies otherwise.
/// With `pieces`, frames may lie in several buffers.
pub(crate) fn bind(fd: BorrowedFd<'_>, interface: u32, queue: u32, pieces: bool) -> Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP | if pieces { libc::XDP_USE_SG } else { 0 },
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes at the pointer, exactly the live `address`.
    check(unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), len) })
}

/// Whether a bound socket shares its memory with the interface itself.
pub(crate) fn is_zero_copy(fd: BorrowedFd<'_>) -> Result<bool> {
    let mut options = libc::xdp_options { flags: 0 };
    get_option(fd, libc::XDP_OPTIONS, &mut options)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Frames that one system call sends, 32 where this is not known to the kernel.
pub(crate) fn set_most_at_once(fd: BorrowedFd<'_>, count: u32) -> Result<()> {
    set_option(fd, libc::SOL_XDP, MOST_AT_ONCE, &count)
}

/// What the kernel has dropped since the socket was made.
pub(crate) fn drops(fd: BorrowedFd<'_>) -> Result<Drops> {
    // SAFETY: the structure consists of integers, for which zero is a value.
    let mut stats: libc::xdp_statistics = unsafe { zeroed() };
    get_option(fd, libc::XDP_STATISTICS, &mut stats)?;
    Ok(Drops {
        dropped: stats.rx_dropped,
        ring_full: stats.rx_ring_full,
        invalid: stats.rx_invalid_descs + stats.tx_invalid_descs,
    })
}

/// Reads an option into a structure of integers. What the kernel does not fill in stays as it was.
fn get_option<T: Copy>(fd: BorrowedFd<'_>, name: c_int, value: &mut T) -> Result<()> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes at the pointer, the size of the live `value`, for which any bytes are a value
    // (callers pass structures of integers), and the length it wrote to `len`.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, name, ptr::from_mut(value).cast(), &mut len)
    })
}

/// Makes the kernel look at the ring of frames to transmit, without waiting.
pub(crate) fn wake_transmit(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no bytes are sent and no address is given: null pointers are not looked at.
    let answer = unsafe {
        libc::sendto(fd.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, ptr::null(), 0)
    };
    if answer >= 0 { Ok(()) } else { Err(last_error()) }
}

/// Makes the kernel look at the ring of buffers to fill, without waiting.
pub(crate) fn wake_receive(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no bytes are asked for and no address: null pointers are not looked at.
    let answer = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if answer >= 0 { Ok(()) } else { Err(last_error()) }
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ifreq` as SIOCETHTOOL uses it.
#[repr(C)]
struct EthtoolRequest {
    name: [u8; 16],
    data: *mut Channels,
    rest: [u64; 2],
}

/// Queues that the interface receives into; one where its driver does not tell.
pub(crate) fn receive_queues(interface: &str) -> Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    let mut request = EthtoolRequest { name: [0; 16], data: &mut channels, rest: [0; 2] };
    // The last byte stays zero.
    for (to, from) in request.name[..15].iter_mut().zip(interface.as_bytes()) {
        *to = *from;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: SIOCETHTOOL reads a `struct ifreq` at its argument, of which `EthtoolRequest` has the layout and at least the size;
    // with ETHTOOL_GCHANNELS it writes one `struct ethtool_channels` at the pointer in it. Both live through the call, are borrowed
    // by nothing else, and any integers are values of them.
    let answer = unsafe { libc::ioctl(fd, SIOCETHTOOL as _, ptr::from_mut(&mut request)) };
    match check(answer) {
        Ok(()) => Ok((channels.receive + channels.combined).max(1)),
        Err(Errno::OPNOTSUPP | Errno::INVAL) => Ok(1),
        Err(error) => Err(error),
    }
}
