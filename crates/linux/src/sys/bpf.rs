//! bpf(2) as far as a device by AF_XDP needs it: a map of sockets, a program, and its link to an interface (`linux/bpf.h`).
#![allow(unsafe_code)]

use core::ffi::c_long;
use core::mem::size_of;
use core::ptr;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// One instruction: `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instruction {
    /// Class, operation and kind of operand.
    pub(crate) code: u8,
    /// Destination and source register, a nibble each; which is which depends on the machine's byte order.
    pub(crate) registers: u8,
    /// Of a jump, in instructions from the next one; of a load, in bytes.
    pub(crate) offset: i16,
    /// The constant operand.
    pub(crate) immediate: i32,
}

// Commands.
const MAP_CREATE: c_long = 0;
const MAP_UPDATE_ELEM: c_long = 2;
const PROG_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;

/// BPF_MAP_TYPE_XSKMAP.
const SOCKET_MAP: u32 = 17;
/// BPF_PROG_TYPE_XDP.
const XDP_PROGRAM: u32 = 6;
/// BPF_XDP.
const ATTACH_XDP: u32 = 37;
/// BPF_F_XDP_HAS_FRAGS: the program takes frames that lie in several buffers.
const HAS_FRAGMENTS: u32 = 1 << 5;
/// XDP_FLAGS_SKB_MODE.
const GENERIC: u32 = 1 << 1;
/// XDP_FLAGS_DRV_MODE.
const NATIVE: u32 = 1 << 2;
/// Bytes of the verifier's explanation that are kept.
const LOG_LEN: usize = 16 << 10;
/// Ours, with its terminating zero; helpers of the kernel that want another are not used.
const LICENSE: &[u8] = b"MIT OR Apache-2.0\0";
const NAME: [u8; 16] = *b"linerate\0\0\0\0\0\0\0\0";

/// Where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// In the interface's driver, before the kernel has made a packet of the frame.
    Native,
    /// In the kernel's receive path, for drivers that cannot.
    Generic,
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map: u32,
    numa_node: u32,
    name: [u8; 16],
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Makes a map from numbers below `entries` to AF_XDP sockets.
pub(crate) fn socket_map(entries: u32) -> Result<OwnedFd, Errno> {
    let request = MapCreate {
        kind: SOCKET_MAP,
        key_size: 4,
        value_size: 4,
        max_entries: entries,
        flags: 0,
        inner_map: 0,
        numa_node: 0,
        name: NAME,
    };
    // SAFETY: the request has no pointers.
    let fd = unsafe { call(MAP_CREATE, &request) }?;
    descriptor(fd)
}

/// Puts a socket into the map.
pub(crate) fn set_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let value = socket.as_raw_fd();
    let request = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: ptr::from_ref(&key).expose_provenance() as u64,
        value: ptr::from_ref(&value).expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: the map's keys and values have four bytes, as `key` and `value` do, which live through the call; they are read only.
    unsafe { call(MAP_UPDATE_ELEM, &request) }.map(|_| ())
}

/// Loads an XDP program; on failure with what the verifier said of it, which is empty where it said nothing.
pub(crate) fn load(program: &[Instruction], fragments: bool) -> Result<OwnedFd, (Errno, String)> {
    let mut log = vec![0u8; LOG_LEN];
    let request = ProgramLoad {
        kind: XDP_PROGRAM,
        count: program.len() as u32,
        instructions: program.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        log_level: 1,
        log_size: LOG_LEN as u32,
        log: log.as_mut_ptr().expose_provenance() as u64,
        kernel_version: 0,
        flags: if fragments { HAS_FRAGMENTS } else { 0 },
        name: NAME,
        interface: 0,
        attach_type: ATTACH_XDP,
    };
    // SAFETY: program, licence and log live through the call with the lengths given (the licence is ended by a zero); the kernel
    // reads the first two and writes at most `log_size` bytes to the log, which nothing else borrows.
    let answer = unsafe { call(PROG_LOAD, &request) };
    core::hint::black_box(&mut log);
    let explained = |error| {
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        (error, String::from_utf8_lossy(&log[..end]).trim().to_owned())
    };
    answer.and_then(descriptor).map_err(explained)
}

/// Attaches a program to an interface for as long as the descriptor that is returned, or a copy of it, is open.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: u32, mode: Mode) -> Result<OwnedFd, Errno> {
    let request = LinkCreate {
        program: program.as_raw_fd() as u32,
        interface,
        attach_type: ATTACH_XDP,
        flags: match mode {
            Mode::Native => NATIVE,
            Mode::Generic => GENERIC,
        },
    };
    // SAFETY: the request has no pointers.
    let fd = unsafe { call(LINK_CREATE, &request) }?;
    descriptor(fd)
}

/// bpf(2).
///
/// # Safety
/// `T` is what the kernel's `union bpf_attr` has for the command, from its beginning, without padding; its pointers are good for
/// what the command does with them.
unsafe fn call<T>(command: c_long, request: &T) -> Result<c_long, Errno> {
    let len = size_of::<T>() as c_long;
    // SAFETY: the kernel reads `len` bytes of the live request and takes the rest of its union for zero; it writes to none of
    // them with these commands. The pointers inside are the caller's promise.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(request), len) };
    if answer >= 0 {
        return Ok(answer);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// The descriptor that a call returned, which is closed when a program is started.
fn descriptor(answer: c_long) -> Result<OwnedFd, Errno> {
    let fd = i32::try_from(answer).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just made it for us (bpf(2) sets close-on-exec), and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
