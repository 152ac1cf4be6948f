//! Frames for the pictures.

use linerate_wire::checksum::{Sum, checksum};

pub const ACK: u8 = 0x10;
pub const PSH: u8 = 0x08;

/// Where the headers are, and their checksums.
pub const IP: usize = 14;
pub const TCP: usize = 34;
pub const IP_SUM: usize = IP + 10;
pub const TCP_SUM: usize = TCP + 16;
/// All headers.
pub const HEADERS: usize = 54;

/// A frame of TCP over IPv4 to `port`, with `payload` bytes that begin at sequence number `seq`.
pub fn tcp(port: u16, seq: u32, flags: u8, payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let total = (HEADERS - IP + payload) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(&ip);
    frame.extend(49_152u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, flags, 4, 0, 0, 0, 0, 0]);
    frame.extend((0..payload).map(|at| at as u8));
    let sum = Sum::finish(sum_with_pseudo_header(&frame));
    frame[TCP_SUM..TCP_SUM + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The sum of the pseudo-header alone.
pub fn pseudo_header(frame: &[u8]) -> Sum {
    let mut sum = Sum::ZERO;
    sum.add(&frame[IP + 12..TCP]);
    sum.add_u32(6);
    sum.add_u32((frame.len() - TCP) as u32);
    sum
}

fn sum_with_pseudo_header(frame: &[u8]) -> Sum {
    let mut sum = pseudo_header(frame);
    sum.add(&frame[TCP..]);
    sum
}
