//! What memory and the interface's engine carry, each alone, measured by the board itself: a strap asks for it, in place of the servers.
//!
//! Each line `rate` of the console is a question as `linerate fabric predict boards/socs/softcore.toml` takes it, how many loads or bytes were
//! measured, and how many clocks they took. A line `frames` asks whoever is at the cable's other end for frames.
//! The processor sleeps while the engine moves them.

use crate::ethernet::{Hardware, UNCACHED, silence};
use crate::registers::loops::{self, chase};
use crate::registers::write;
use crate::{clock, processor, uart};
use alloc::vec;
use core::fmt::Write as _;
use core::hint::black_box;
use linerate_nic::Bus;
use linerate_nic::mcdma::Direction;
use linerate_nic::mcdma::nic_regs::register as nic;
use linerate_nic::mcdma::regs::mm2s_ch as channel;
// Both directions' descriptors begin alike.
use linerate_nic::mcdma::regs::{mm2s_descriptor as layout, register};

/// What the data cache holds, and a line of it.
const CACHE: usize = 16 << 10;
const LINE: usize = 32;
/// The largest working set, and two of them for copies.
const LARGEST: usize = 256 << 10;
/// Working sets: in the cache, as large as it, beyond it.
const SETS: [usize; 7] = [4 << 10, 8 << 10, 16 << 10, 24 << 10, 32 << 10, 64 << 10, LARGEST];
/// Bytes between loads that follow each other through memory.
const STRIDES: [usize; 2] = [64, 128];
/// Loads that are measured of each working set, at least: whole rounds of it.
const LOADS: usize = 8_192;
/// Frames of one size in a row: what the threshold of the interrupt can count.
const MANY: usize = 192;
/// Their sizes without check sequence, and that.
const SIZES: [usize; 5] = [60, 252, 508, 1_020, 1_514];
const CHECK_SEQUENCE: usize = 4;
/// A long frame.
const LONG: usize = 60_000;
/// What is sure to fit into the interface's FIFO of 32 KiB, and turns of a loop while it is filled.
const FIFO: usize = 28_000;
const FILLED: u32 = 4_000;

/// Measures everything, and sleeps.
pub fn run() -> ! {
    let region = vec![0_u8; 2 * LARGEST + CACHE].leak();
    let region = region.as_mut_ptr().expose_provenance().next_multiple_of(CACHE);
    loads(region);
    streams(region);
    frames(region);
    say("end", 0, 0);
    loop {
        processor::wait_for_interrupt();
    }
}

fn say(question: &str, count: usize, clocks: u64) {
    // The line always takes it.
    let _ = writeln!(uart::Out, "rate {question} {count} {clocks}");
}

fn say_of(kind: &str, bytes: usize, rest: &str, count: usize, clocks: u64) {
    let _ = writeln!(uart::Out, "rate {kind}:{}KiB{rest} {count} {clocks}", bytes >> 10);
}

/// Clocks that some work takes, without those of asking.
fn clocks_of(work: impl Fn()) -> u64 {
    warm_clocks_of(&work) - warm_clocks_of(&|| ())
}

/// Clocks of the second of two times: by then data and all code on the way to it are in the caches, wherever the linker puts them.
#[inline(never)]
fn warm_clocks_of(work: &dyn Fn()) -> u64 {
    let mut clocks = 0;
    // Not unrolled, as the second copy would be code that has not run.
    for _time in 0..black_box(2) {
        let began = clock::clocks();
        work();
        clocks = clock::clocks() - began;
    }
    clocks
}

/// Loads that wait for each other: through a working set in an order that no stride describes, by strides, and past the cache.
fn loads(region: usize) {
    for bytes in SETS {
        link(region, bytes / LINE, LINE);
        let count = LOADS.next_multiple_of(bytes / LINE);
        say_of("load:vexriscv", bytes, ",stride=32", count, clocks_of(|| chase(region, count)));
    }
    for stride in STRIDES {
        let count = LARGEST / stride;
        (0..count).for_each(|at| write(region + at * stride, (region + (at + 1) % count * stride) as u32));
        let rest = alloc::format!(":burst,stride={stride}");
        say_of("load:vexriscv", LARGEST, &rest, count, clocks_of(|| chase(region, count)));
    }
    // Each leads to itself, past the cache.
    let at = UNCACHED | region;
    write(at, at as u32);
    say("core:vexriscv:uncached:single", LOADS, clocks_of(|| chase(at, LOADS)));
}

/// Makes places lead to each other in one round. The step has no factor in common with any of the counts, so that no place comes twice before
/// all have come once; and it is half a round and more, so that neighbours are far apart.
fn link(region: usize, count: usize, distance: usize) {
    let step = (count * 5 / 8) | 1;
    let at = |index: usize| region + index % count * distance;
    (0..count).for_each(|index| write(at(index * step), at((index + 1) * step) as u32));
}

/// Reads, fills and copies of all of a working set, in words.
fn streams(region: usize) {
    for bytes in SETS {
        let end = region + bytes;
        let works: [(&str, &dyn Fn()); 3] = [
            ("read", &|| loops::read(region, end)),
            ("fill", &|| loops::fill(region, end)),
            ("copy", &|| loops::copy(region, end, region + LARGEST)),
        ];
        for (name, work) in works {
            let kind = alloc::format!("memory:vexriscv:{name}");
            say_of(&kind, bytes, "", bytes, clocks_of(work));
        }
    }
}

/// Frames out and in, of one size at a time. What many take more than some is what they take in a row.
fn frames(region: usize) {
    for direction in Direction::BOTH {
        for size in SIZES {
            let (name, most) = match direction {
                Direction::Transmit => ("out", MANY),
                // They wait in the FIFO, which has room for so many.
                Direction::Receive => ("in", MANY.min(FIFO / size)),
            };
            let [some, many] = [most / 3, most].map(|count| transfer(direction, region, count, size));
            let question = alloc::format!("ethernet:{},port={name}", size + CHECK_SEQUENCE);
            say(&question, most - most / 3, many - some);
        }
    }
    let [some, many] = [1, 2].map(|count| transfer(Direction::Transmit, region, count, LONG));
    say("edma:OUT:memory->cable:60000", LONG, many - some);
}

/// Has the engine move frames, each by a descriptor of its own: clocks until it interrupts after the last.
fn transfer(direction: Direction, ring: usize, count: usize, size: usize) -> u64 {
    silence();
    let is_out = direction == Direction::Transmit;
    let (enable, control, run) = if is_out {
        (register::MM2S_CHEN, register::MM2S_CCR, register::MM2S_CCR_RS)
    } else {
        (register::S2MM_CHEN, register::S2MM_CCR, register::S2MM_CCR_RS)
    };
    // One buffer for all frames, behind the ring.
    let (address, len) = (ring + MANY * 64, if is_out { size } else { size.next_multiple_of(64) });
    for index in 0..count {
        let at = UNCACHED | (ring + index * 64);
        (0..16).for_each(|word| write(at + 4 * word, 0));
        write(at, (ring + (index + 1) % count * 64) as u32);
        write(at + layout::BUFFER as usize, address as u32);
        let whole = if is_out { layout::CONTROL_SOF | layout::CONTROL_EOF } else { 0 };
        write(at + layout::CONTROL as usize, len as u32 | whole);
    }
    Hardware.write(enable, 1);
    Hardware.write(control, run);
    let base = direction.channel(0);
    Hardware.write(base + channel::CURDESC, ring as u32);
    let pacing = (count as u32) << channel::CR_THRESHOLD_SHIFT;
    Hardware.write(base + channel::CR, channel::CR_RS | channel::CR_IOC_EN | pacing);
    if !is_out {
        // A channel that runs has them wait for descriptors.
        Hardware.write(register::S2MM_PATIENCE, register::S2MM_PATIENCE_FOREVER);
        Hardware.write(nic::MODE, nic::MODE_ENABLE | nic::MODE_PROMISCUOUS);
        let _ = writeln!(uart::Out, "frames {size} {count}");
        // The FIFO is full by then, or has all.
        (0..FILLED).for_each(|turn| {
            black_box(turn);
        });
    }
    processor::hear_nothing();
    let began = clock::clocks();
    Hardware.write(base + channel::TAILDESC, (ring + (count - 1) * 64) as u32);
    while Hardware.read(base + channel::SR) & channel::SR_IOC == 0 {
        processor::wait_for_interrupt();
    }
    let clocks = clock::clocks() - began;
    Hardware.write(base + channel::SR, channel::SR_IOC);
    clocks
}
