//! The program that says which frames are ours: those to our address and to groups go to the socket of the queue that they came
//! in by, everything else goes on to the kernel.

use super::error::XdpError;
use crate::sys::bpf::{self, Instruction, Mode};
use linerate_nic::MacAddr;
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;

// Instruction set, RFC 9669: class, size or source, mode or operation.
const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_BYTE: u8 = 0x71;
const LOAD_WIDE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_CONSTANT: u8 = 0xb7;
const ADD_CONSTANT: u8 = 0x07;
const JUMP_IF_GREATER: u8 = 0x2d;
const JUMP_IF_ANY_BIT: u8 = 0x45;
const JUMP_IF_OTHER_WORD: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// Of a wide load's source: the constant is a map's descriptor.
const MAP: u8 = 1;

/// XDP_PASS.
const PASS: i32 = 2;
/// bpf_redirect_map.
const REDIRECT_MAP: i32 = 51;
/// An Ethernet header.
const HEADER: i32 = 14;

// Where the fields of `struct xdp_md` are.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE: i16 = 16;

// The steps that jumps go to.
const TAKE_AT: i16 = 11;
const PASS_AT: i16 = 17;

fn step(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    let registers = if cfg!(target_endian = "little") { to | from << 4 } else { to << 4 | from };
    Instruction { code, registers, offset, immediate }
}

/// The program for our address and a map of sockets by queue.
fn program(mac: MacAddr, map: i32) -> [Instruction; 19] {
    let [a, b, c, d, e, f] = mac.0;
    // Words are compared as this machine reads them.
    let (front, back) = (i32::from_ne_bytes([a, b, c, d]), i32::from(u16::from_ne_bytes([e, f])));
    [
        step(LOAD_WORD, 2, 1, DATA, 0),
        step(LOAD_WORD, 3, 1, DATA_END, 0),
        step(MOVE, 4, 2, 0, 0),
        step(ADD_CONSTANT, 4, 0, 0, HEADER),
        // Shorter than a header: not ours.
        step(JUMP_IF_GREATER, 4, 3, PASS_AT - 5, 0),
        step(LOAD_BYTE, 4, 2, 0, 0),
        step(JUMP_IF_ANY_BIT, 4, 0, TAKE_AT - 7, 1),
        step(LOAD_WORD, 4, 2, 0, 0),
        step(JUMP_IF_OTHER_WORD, 4, 0, PASS_AT - 9, front),
        step(LOAD_HALF, 4, 2, 4, 0),
        step(JUMP_IF_OTHER_WORD, 4, 0, PASS_AT - 11, back),
        // To us or to a group. Without a socket for the queue, the kernel has it.
        step(LOAD_WORD, 2, 1, RX_QUEUE, 0),
        step(LOAD_WIDE, 1, MAP, 0, map),
        step(0, 0, 0, 0, 0),
        step(MOVE_CONSTANT, 3, 0, 0, PASS),
        step(CALL, 0, 0, 0, REDIRECT_MAP),
        step(EXIT, 0, 0, 0, 0),
        // Not ours.
        step(MOVE_CONSTANT, 0, 0, 0, PASS),
        step(EXIT, 0, 0, 0, 0),
    ]
}

/// The program on an interface, for as long as this lives.
#[derive(Debug)]
pub(super) struct Attached {
    /// Keeps the program attached.
    _link: OwnedFd,
    /// Where it runs.
    pub(super) mode: Mode,
}

/// Attaches the program for these sockets, the first of which is that of queue 0.
pub(super) fn attach(
    name: &str,
    index: u32,
    mac: MacAddr,
    sockets: &[BorrowedFd<'_>],
    pieces: bool,
) -> Result<Attached, XdpError> {
    let count = u32::try_from(sockets.len()).unwrap_or(u32::MAX);
    let map = bpf::socket_map(count).map_err(|error| refused("making a BPF map of sockets", error))?;
    for (key, socket) in (0..).zip(sockets) {
        bpf::set_socket(map.as_fd(), key, *socket)
            .map_err(|error| refused("putting a socket into a BPF map", error))?;
    }
    let loaded = bpf::load(&program(mac, map.as_raw_fd()), pieces);
    let loaded = loaded.map_err(|(error, log)| match error {
        Errno::PERM | Errno::ACCESS if log.is_empty() => refused("loading a BPF program", error),
        error => XdpError::Program { source: error.into(), log },
    })?;
    let native = match bpf::attach(loaded.as_fd(), index, Mode::Native) {
        Ok(link) => return Ok(Attached { _link: link, mode: Mode::Native }),
        Err(error @ (Errno::PERM | Errno::ACCESS)) => {
            return Err(refused("attaching an XDP program", error));
        }
        Err(Errno::BUSY | Errno::EXIST) => return Err(taken(name)),
        Err(error) => error,
    };
    match bpf::attach(loaded.as_fd(), index, Mode::Generic) {
        Ok(link) => Ok(Attached { _link: link, mode: Mode::Generic }),
        Err(Errno::BUSY | Errno::EXIST) => Err(taken(name)),
        Err(generic) => {
            Err(XdpError::Attach { name: name.to_owned(), native: native.into(), generic: generic.into() })
        }
    }
}

fn taken(name: &str) -> XdpError {
    XdpError::InUse { name: name.to_owned(), what: "the place for an XDP program" }
}

fn refused(step: &'static str, error: Errno) -> XdpError {
    match error {
        Errno::PERM | Errno::ACCESS => {
            XdpError::Permission { step, capability: "CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN" }
        }
        Errno::NOSYS => XdpError::Kernel { lacks: "bpf(2)" },
        other => XdpError::Io { step, source: other.into() },
    }
}
