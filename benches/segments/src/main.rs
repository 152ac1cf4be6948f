//! Moves a stream between two stacks in one process, to be counted by valgrind.
//!
//! `segments STACK SUMS COUNT`: STACK is `linerate` or `smoltcp`; SUMS is `sums` (computed and verified in software) or
//! `none` (as with a device that does them); COUNT is the number of full segments. The wire between the two copies each
//! frame once, as cheaply for one as for the other. The sender hands over 8 frames a turn; the receiver takes two a turn and
//! acknowledges them. The instructions of two runs, their difference divided by that of the counts, are those of one segment
//! with its share of acknowledgements; those within the functions `sender` and `receiver` are those of the two ends.

mod ours;
mod theirs;

use std::process::ExitCode;

/// Bytes that count as one segment: the payload of a frame of 1,500 without TCP options. Ours carries timestamps and so 12
/// bytes less, which is counted against it.
pub const MSS: usize = 1_460;
/// Send and receive buffers of both, in bytes.
pub const BUFFER: usize = 64 << 10;
/// Frames that the receiver takes in one turn, each of which ends with an acknowledgement: one for every second segment.
pub const RECEIVED: usize = 2;

/// Payload that varies.
pub fn data() -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(32 << 10).collect()
}

/// What was moved.
pub struct Moved {
    /// Segments with payload.
    pub segments: u64,
    /// Acknowledgements without.
    pub acks: u64,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [stack, sums, count] = args.as_slice() else {
        eprintln!("expected three arguments: linerate|smoltcp sums|none COUNT");
        return ExitCode::from(2);
    };
    let (Ok(count), sums) = (count.parse::<usize>(), sums == "sums") else {
        eprintln!("'{count}' is no number of segments");
        return ExitCode::from(2);
    };
    let moved = match stack.as_str() {
        "linerate" => ours::run(sums, count),
        "smoltcp" => theirs::run(sums, count),
        _ => {
            eprintln!("'{stack}' is no stack; expected linerate or smoltcp");
            return ExitCode::from(2);
        }
    };
    println!("{} segments, {} acknowledgements", moved.segments, moved.acks);
    ExitCode::SUCCESS
}
