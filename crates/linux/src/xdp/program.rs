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

#[cfg(test)]
mod tests {
    use super::*;

    /// What an interpreter of these few instructions answers for a frame on a queue: the queue's number where it redirects.
    fn run(program: &[Instruction], frame: &[u8], queue: u32) -> Option<u32> {
        const BASE: u64 = 0x1000;
        let context = |at: i16| match at {
            DATA => BASE,
            DATA_END => BASE + frame.len() as u64,
            RX_QUEUE => u64::from(queue),
            other => panic!("no field at {other}"),
        };
        let mut registers = [0u64; 11];
        let mut at = 0usize;
        for _ in 0..64 {
            let step = program[at];
            let (to, from) = match cfg!(target_endian = "little") {
                true => (usize::from(step.registers & 15), usize::from(step.registers >> 4)),
                false => (usize::from(step.registers >> 4), usize::from(step.registers & 15)),
            };
            // Register 1 is the context until the map's address is put there.
            let load = |len: usize| {
                if from == 1 {
                    return context(step.offset);
                }
                let start = (registers[from] - BASE) as usize + step.offset as usize;
                let mut bytes = [0; 8];
                bytes[..len].copy_from_slice(&frame[start..start + len]);
                u64::from_le_bytes(bytes)
            };
            let constant = step.immediate as i64 as u64;
            let mut jump = false;
            match step.code {
                LOAD_WORD => registers[to] = load(4),
                LOAD_HALF => registers[to] = load(2),
                LOAD_BYTE => registers[to] = load(1),
                MOVE => registers[to] = registers[from],
                MOVE_CONSTANT => registers[to] = constant,
                ADD_CONSTANT => registers[to] = registers[to].wrapping_add(constant),
                JUMP_IF_GREATER => jump = registers[to] > registers[from],
                JUMP_IF_ANY_BIT => jump = registers[to] & constant != 0,
                JUMP_IF_OTHER_WORD => jump = registers[to] as u32 != step.immediate as u32,
                LOAD_WIDE => {
                    registers[to] = constant;
                    at += 1;
                }
                CALL => {
                    assert_eq!((step.immediate, registers[1], registers[3]), (51, 77, 2));
                    return Some(registers[2] as u32);
                }
                EXIT => {
                    assert_eq!(registers[0], 2, "XDP_PASS");
                    return None;
                }
                other => panic!("no instruction {other:#x}"),
            }
            at += 1;
            if jump {
                at = at.checked_add_signed(step.offset as isize).unwrap();
            }
        }
        panic!("no end");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn frames_to_us_and_to_groups_are_taken() {
        let mac = MacAddr([0x82, 0x11, 0xfe, 0xff, 0x80, 0x99]);
        let program = program(mac, 77);
        let frame = |to: [u8; 6], len: usize| {
            let mut bytes = vec![0u8; len];
            bytes[..6].copy_from_slice(&to);
            bytes
        };
        for queue in [0, 3] {
            assert_eq!(run(&program, &frame(mac.0, 60), queue), Some(queue));
            assert_eq!(run(&program, &frame(mac.0, 14), queue), Some(queue));
            assert_eq!(run(&program, &frame([0xff; 6], 60), queue), Some(queue));
            assert_eq!(run(&program, &frame([0x33, 0x33, 0, 0, 0, 1], 60), queue), Some(queue));
        }
        assert_eq!(run(&program, &frame(mac.0, 13), 0), None, "no header");
        assert_eq!(run(&program, &[], 0), None);
        for byte in 0..6 {
            let mut other = mac.0;
            other[byte] ^= 2;
            assert_eq!(run(&program, &frame(other, 60), 0), None, "byte {byte}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_bytes_are_those_of_the_instruction_set() {
        let program = program(MacAddr([2, 0, 0, 0, 0, 4]), 77);
        let bytes = |at: usize| {
            let Instruction { code, registers, offset, immediate } = program[at];
            let (offset, immediate) = (offset.to_le_bytes(), immediate.to_le_bytes());
            let mut out = [code, registers, offset[0], offset[1], 0, 0, 0, 0];
            out[4..].copy_from_slice(&immediate);
            out
        };
        // r2 = *(u32 *)(r1 + 0)
        assert_eq!(bytes(0), [0x61, 0x12, 0, 0, 0, 0, 0, 0]);
        // r4 += 14
        assert_eq!(bytes(3), [0x07, 0x04, 0, 0, 14, 0, 0, 0]);
        // if w4 != 0x00000002 goto +8
        assert_eq!(bytes(8), [0x56, 0x04, 8, 0, 2, 0, 0, 0]);
        // r1 = map fd 77, in two
        assert_eq!((bytes(12), bytes(13)), ([0x18, 0x11, 0, 0, 77, 0, 0, 0], [0; 8]));
        // call 51, exit
        assert_eq!((bytes(15), bytes(16)), ([0x85, 0, 0, 0, 51, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]));
    }
}
