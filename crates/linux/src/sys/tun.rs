//! The ioctls of `/dev/net/tun` (`linux/if_tun.h`).
#![allow(unsafe_code)]

use core::ffi::{c_int, c_uint};
use rustix::fd::BorrowedFd;
use rustix::io::Result;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETOFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
const TUNSETVNETHDRSZ: Opcode = opcode::write::<c_int>(b'T', 216);

/// A TAP: frames with Ethernet headers.
pub(crate) const IFF_TAP: u16 = 0x0002;
/// Several descriptors, each a queue.
pub(crate) const IFF_MULTI_QUEUE: u16 = 0x0100;
/// No packet-information header before each frame.
pub(crate) const IFF_NO_PI: u16 = 0x1000;
/// A virtio-net header before each frame.
pub(crate) const IFF_VNET_HDR: u16 = 0x4000;

/// We take partial checksums.
pub(crate) const TUN_F_CSUM: usize = 0x01;
/// We take TCP super-segments over IPv4.
pub(crate) const TUN_F_TSO4: usize = 0x02;
/// We take TCP super-segments over IPv6.
pub(crate) const TUN_F_TSO6: usize = 0x04;

/// Length of an interface name's field, its terminating zero included.
pub(crate) const IFNAMSIZ: usize = 16;

/// `struct ifreq` as TUNSETIFF uses it. The union behind the name has 24 bytes on 64-bit machines and 16 on others;
/// here it always has 24.
#[repr(C, align(8))]
struct InterfaceRequest {
    name: [u8; IFNAMSIZ],
    flags: u16,
    rest: [u8; 22],
}

/// Creates or attaches the interface `name` (with a `%d`, or empty: the kernel numbers it); returns the name it has.
pub(crate) fn set_interface(fd: BorrowedFd<'_>, name: [u8; IFNAMSIZ], flags: u16) -> Result<[u8; IFNAMSIZ]> {
    let mut request = InterfaceRequest { name, flags, rest: [0; 22] };
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq` at its argument. `InterfaceRequest` has the layout of its
    // name and flags, is at least as large and as aligned on every architecture, lives through the call, and any bytes
    // are valid for it.
    unsafe { ioctl(fd, Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request))? };
    Ok(request.name)
}

/// Sets the length of the virtio-net header in bytes.
pub(crate) fn set_virtio_header_len(fd: BorrowedFd<'_>, len: usize) -> Result<()> {
    let len = c_int::try_from(len).map_err(|_| rustix::io::Errno::INVAL)?;
    // SAFETY: TUNSETVNETHDRSZ reads one `int` at its argument, which the setter holds through the call.
    unsafe { ioctl(fd, Setter::<TUNSETVNETHDRSZ, c_int>::new(len)) }
}

/// Tells the kernel what it may hand us: a set of `TUN_F_` bits.
pub(crate) fn set_offload(fd: BorrowedFd<'_>, bits: usize) -> Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its bits by value in the argument itself and touches no memory of ours.
    unsafe { ioctl(fd, IntegerSetter::<TUNSETOFFLOAD>::new_usize(bits)) }
}
