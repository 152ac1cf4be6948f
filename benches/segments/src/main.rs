//! Moves a stream between two stacks in one process, to be counted by valgrind.
//!
//! `segments STACK SUMS COUNT`: STACK is `linerate` or `smoltcp`; SUMS is `sums` (computed and verified in software) or
//! `none` (as with a device that does them); COUNT is the number of full segments. The wire between the two copies each
//! frame once, as cheaply for one as for the other. The sender hands over 8 frames a turn; the receiver takes two a turn and
//! acknowledges them. The instructions of two runs, their difference divided by that of the counts, are those of one segment
//! with its share of acknowledgements; those within the functions `sender` and `receiver` are those of the two ends.
//!
//! `segments requests COUNT CONNECTIONS [idle]` asks our HTTP server COUNT times for 354 bytes, each time over another of so many
//! connections, in random order; with `idle` all have been quiet for 5 s. `segments answers LENGTH` asks over one connection
//! for as many answers of LENGTH bytes as make 4 MiB, at least one. What is to be counted is within the function `measured`.
//!
//! `segments idle own|kernel COUNT` prints the bytes that our HTTP server and its stack, or the kernel's sockets under it,
//! have allocated for each of so many connections that have asked once.

mod crowd;
mod idle;
mod ours;
mod theirs;
mod weight;

use std::process::ExitCode;

/// Bytes that count as one segment: the payload of a frame of 1,500 without TCP options. Ours carries timestamps and so 12
/// bytes less, which is counted against it.
pub const MSS: usize = 1_460;
/// Send and receive buffers of both, in bytes.
pub const BUFFER: usize = 64 << 10;
/// Frames that the sender hands over in one turn: what the wire holds in each direction.
pub const WIRE: usize = 8;
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

const USAGE: &str = "expected: linerate|smoltcp sums|none COUNT, requests COUNT CONNECTIONS [idle], answers LENGTH, \
                     or idle own|kernel COUNT";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number > 0);
    match words.as_slice() {
        ["requests", count, connections, rest @ ..] if rest.is_empty() || rest == ["idle"] => {
            if let (Some(count), Some(connections)) = (number(count), number(connections)) {
                println!("{} packets", crowd::requests(count, connections, !rest.is_empty()));
                return ExitCode::SUCCESS;
            }
        }
        ["answers", len] => {
            if let Some(len) = number(len) {
                println!("{} bytes", crowd::answers(len));
                return ExitCode::SUCCESS;
            }
        }
        ["idle", sockets @ ("own" | "kernel"), count] => {
            if let Some(count) = number(count) {
                let found = if *sockets == "own" { Ok(idle::own(count)) } else { idle::kernel(count) };
                return match found {
                    Ok(bytes) => {
                        println!("{bytes} bytes each");
                        ExitCode::SUCCESS
                    }
                    Err(error) => {
                        eprintln!("{count} kernel sockets: {error}");
                        ExitCode::FAILURE
                    }
                };
            }
        }
        _ => {}
    }
    let [stack, sums, count] = args.as_slice() else {
        eprintln!("{USAGE}");
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
