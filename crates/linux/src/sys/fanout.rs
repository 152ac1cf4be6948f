//! Several packet sockets that share what comes in on an interface (PACKET_FANOUT, packet(7)), and the program that says
//! which of them a packet is for.
//!
//! The kernel's own hash has a secret key. This program is one that we know: what we choose a port for, we can choose so that
//! the answers come home.
//!
//! | packet | socket |
//! |---|---|
//! | TCP or UDP to a shared port | by the peer's address and port |
//! | TCP or UDP to another port | our port modulo the number of sockets |
//! | fragments, and everything else | the first |
#![allow(unsafe_code)]

use super::packet::{set_filter, set_option};
use core::ffi::c_int;
use core::mem::size_of;
use core::ptr;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, Result};

/// Most shared ports: jumps in the program reach no farther.
pub(crate) const MOST_SHARED: usize = 64;

/// A program chooses the socket (PACKET_FANOUT_CBPF).
const BY_PROGRAM: u32 = 6;
/// The kernel chooses a group that nobody else has (PACKET_FANOUT_FLAG_UNIQUEID).
const UNIQUE_ID: u32 = 0x2000;
/// Frames that this machine sends are not for the group (PACKET_FANOUT_FLAG_IGNORE_OUTGOING).
const IGNORE_OUTGOING: u32 = 0x4000;
/// PACKET_FANOUT_DATA.
const SET_PROGRAM: c_int = 22;

/// An odd multiplier whose product's upper half depends on every bit of the other factor (2^32 divided by the golden ratio):
/// clients may use even ports only.
const SPREAD: u32 = 0x9e37_79b1;

/// Makes a group of bound sockets, in the order of their numbers.
pub(crate) fn join(sockets: &[BorrowedFd<'_>], shared_ports: &[u16]) -> Result<()> {
    let Some((first, others)) = sockets.split_first() else { return Ok(()) };
    let how = BY_PROGRAM | IGNORE_OUTGOING;
    set_fanout(*first, (how | UNIQUE_ID) << 16)?;
    let id = fanout(*first)? & 0xffff;
    for socket in others {
        set_fanout(*socket, how << 16 | id)?;
    }
    let mut steps = program(sockets.len() as u32, shared_ports);
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set_option(*first, libc::SOL_PACKET, SET_PROGRAM, &program)
}

/// Lets nothing into the socket.
pub(crate) fn close(socket: BorrowedFd<'_>) -> Result<()> {
    set_filter(socket, &mut [step(RETURN, 0, 0, 0)])
}

fn set_fanout(socket: BorrowedFd<'_>, value: u32) -> Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)
}

fn fanout(socket: BorrowedFd<'_>) -> Result<u32> {
    let mut value: u32 = 0;
    let mut len = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes at the pointer, the size of the live `value`, and the length it wrote to
    // `len`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_FANOUT,
            ptr::from_mut(&mut value).cast(),
            &mut len,
        )
    };
    if answer == 0 {
        return Ok(value);
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_BEHIND_X: u16 = 0x48;
const X_IS: u16 = 0x01;
const X_IS_HEADER_LEN: u16 = 0xb1;
const X_IS_STORED: u16 = 0x61;
const STORE: u16 = 0x02;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const MULTIPLY: u16 = 0x24;
const SHIFT_RIGHT: u16 = 0x74;
const MODULO: u16 = 0x94;
const XOR_X: u16 = 0xac;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// The program for so many sockets. It sees packets from the network header on, without a VLAN tag.
fn program(sockets: u32, shared_ports: &[u16]) -> Vec<libc::sock_filter> {
    let shared = &shared_ports[..shared_ports.len().min(MOST_SHARED)];
    // Where the steps below are: the choice by the peer, and the first socket.
    let by_peer = 19 + shared.len() + 2;
    let first = by_peer + 7;
    let to_first = |at: usize| (first - at - 1) as u8;
    let protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
    let mut steps = vec![
        step(LOAD_WORD, 0, 0, protocol),
        step(JUMP_IF_EQUAL, 0, 9, libc::ETH_P_IP as u32),
        // IPv4: protocol, fragment offset and more-fragments bit, source address.
        step(LOAD_BYTE, 0, 0, 9),
        step(JUMP_IF_EQUAL, 1, 0, libc::IPPROTO_TCP as u32),
        step(JUMP_IF_EQUAL, 0, to_first(4), libc::IPPROTO_UDP as u32),
        step(LOAD_HALF, 0, 0, 6),
        step(JUMP_IF_SET, to_first(6), 0, 0x3fff),
        step(LOAD_WORD, 0, 0, 12),
        step(STORE, 0, 0, 0),
        step(X_IS_HEADER_LEN, 0, 0, 0),
        step(JUMP, 0, 0, 7),
        // IPv6: next header (a fragment header is none of the two), the end of the source address.
        step(JUMP_IF_EQUAL, 0, to_first(11), libc::ETH_P_IPV6 as u32),
        step(LOAD_BYTE, 0, 0, 6),
        step(JUMP_IF_EQUAL, 1, 0, libc::IPPROTO_TCP as u32),
        step(JUMP_IF_EQUAL, 0, to_first(14), libc::IPPROTO_UDP as u32),
        step(LOAD_WORD, 0, 0, 20),
        step(STORE, 0, 0, 0),
        step(X_IS, 0, 0, 40),
        // Our port.
        step(LOAD_HALF_BEHIND_X, 0, 0, 2),
    ];
    for (number, port) in shared.iter().enumerate() {
        let at = 19 + number;
        steps.push(step(JUMP_IF_EQUAL, (by_peer - at - 1) as u8, 0, u32::from(*port)));
    }
    steps.extend([
        step(MODULO, 0, 0, sockets),
        step(RETURN_A, 0, 0, 0),
        // The peer's port and address.
        step(LOAD_HALF_BEHIND_X, 0, 0, 0),
        step(X_IS_STORED, 0, 0, 0),
        step(XOR_X, 0, 0, 0),
        step(MULTIPLY, 0, 0, SPREAD),
        step(SHIFT_RIGHT, 0, 0, 16),
        step(MODULO, 0, 0, sockets),
        step(RETURN_A, 0, 0, 0),
        step(RETURN, 0, 0, 0),
    ]);
    steps
}
