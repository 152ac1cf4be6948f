//! Whether the driver needs each of its cache operations on this board: a strap asks for it, in place of the servers, and says which is left out.
//!
//! The driver is the one that serves, with a ring so short that a buffer comes round while lines of it are still in the cache: with the ring of the
//! servers others have taken their places by then. Frames are asked for from whoever is at the cable's other end, each with bytes of its own. A part of
//! each is looked at, in lines of the cache that no other buffer's part has, so that the next frame in that buffer is read out of the cache unless that
//! was emptied.
//! What is written by the processor needs no operation here, as the cache writes through.

use crate::caches::BUFFER;
use crate::ethernet::{self, Hardware};
use crate::{SETTINGS, clock, registers, uart};
use core::fmt::Write as _;
use linerate_nic::mcdma::{self, Settings};
use linerate_nic::{Bus, Device as _, Dma, Filter, Frame, Joined, MacAddr, Pool, QueuePair as _, RxBatch};

/// Descriptors, the fewest that the driver takes, and buffers.
const RING: usize = 20;
const BUFFERS: usize = 24;
/// Descriptors and buffers for what is sent, which is nothing.
const SENT: usize = 128;
/// Frames of a round, their bytes, and rounds: several laps of all buffers.
const TOGETHER: usize = 2;
const SIZE: usize = 300;
const ROUNDS: usize = 60;
/// Looks for frames of a round.
const LOOKS: usize = 1_000;
/// What the data cache holds: bytes so far apart have the same line.
const CACHE: usize = 16 << 10;
/// Bytes of a frame that are looked at: behind those that all frames have alike.
const PART: usize = 64;
const _: () = assert!(PART * (1 + (BUFFERS * BUFFER).div_ceil(CACHE)) < SIZE, "each buffer has a part");

/// What of the driver's cache operations is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    Nothing,
    /// The cache is not emptied for a frame.
    Emptying,
    /// It is not noted when a buffer was given to the interface.
    Noting,
    /// Descriptors are loaded through the cache.
    GoingPast,
}

/// The hardware, with an operation left out.
#[derive(Clone, Copy, Debug)]
struct Careless(LeftOut);

impl Bus for Careless {
    fn read(&self, register: u32) -> u32 {
        Hardware.read(register)
    }

    fn write(&self, register: u32, value: u32) {
        Hardware.write(register, value);
    }

    fn load(&self, address: u64) -> u32 {
        if self.0 == LeftOut::GoingPast { registers::read(address as usize) } else { Hardware.load(address) }
    }

    fn store(&self, address: u64, value: u32) {
        Hardware.store(address, value);
    }
}

impl Dma for Careless {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Hardware.bus_address(bytes)
    }

    fn clean(&self, bytes: &[u8]) {
        Hardware.clean(bytes);
    }

    fn give(&self, bytes: &mut [u8]) {
        if self.0 != LeftOut::Noting {
            Hardware.give(bytes);
        }
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        if self.0 != LeftOut::Emptying {
            Hardware.invalidate(bytes);
        }
    }
}

/// Frames as they should be, others, and those that were not seen to come.
#[derive(Default)]
struct Seen {
    right: usize,
    wrong: usize,
    missing: usize,
}

/// Takes the frames, says how many were right, and sleeps.
pub fn run(left_out: LeftOut) -> ! {
    let seen = match take(left_out) {
        Ok(seen) => seen,
        Err(error) => panic!("{error}"),
    };
    // The line always takes it.
    let _ = writeln!(uart::Out, "seen {} {} {}", seen.right, seen.wrong, seen.missing);
    loop {
        crate::processor::wait_for_interrupt();
    }
}

fn take(left_out: LeftOut) -> Result<Seen, ethernet::OpenError> {
    use ethernet::OpenError;
    let settings =
        Settings { receive_ring: RING, transmit_ring: SENT, ..Settings::new(MacAddr(SETTINGS.mac)) };
    let receive = ethernet::buffers(BUFFERS)?;
    let (rings, len) = ethernet::rings();
    let (control, queues) =
        mcdma::open(Careless(left_out), rings, len, &settings).map_err(OpenError::Device)?;
    let stopped = queues.into_iter().next().ok_or(OpenError::NoQueue)?;
    let queue = stopped.start(receive, Pool::new(SENT, BUFFER)).map_err(OpenError::Start)?;
    let mut device = Joined { control, queue };
    let everything = Filter { groups: &[], all_groups: true, promiscuous: true };
    device.set_filter(&everything).map_err(OpenError::Filter)?;
    let (mut batch, mut seen) = (RxBatch::with_limit(TOGETHER), Seen::default());
    // The ring gets its buffers, and its descriptors have been looked at.
    let mut look = |batch: &mut RxBatch| device.receive(clock::now(), batch).unwrap_or_default();
    look(&mut batch);
    for first in (0..ROUNDS).map(|round| round * TOGETHER) {
        let _ = writeln!(uart::Out, "numbered {SIZE} {TOGETHER} {first}");
        let mut next = first;
        for _ in 0..LOOKS {
            look(&mut batch);
            while let Some(frame) = batch.pop() {
                let is_right = is_number(&frame, next);
                next += 1;
                seen.right += usize::from(is_right);
                seen.wrong += usize::from(!is_right);
            }
            if next == first + TOGETHER {
                break;
            }
        }
        seen.missing += first + TOGETHER - next;
        if next == first {
            // None will come.
            seen.missing = ROUNDS * TOGETHER - seen.right - seen.wrong;
            break;
        }
    }
    Ok(seen)
}

/// Whether a frame has the bytes of this number.
fn is_number(frame: &Frame, number: usize) -> bool {
    let bytes = frame.data.bytes();
    let begin = PART * (1 + bytes.as_ptr().addr() / CACHE % BUFFERS.div_ceil(CACHE / BUFFER));
    let should = |at: usize| number.wrapping_mul(37).wrapping_add(at) as u8;
    // To the end whatever comes first: all of its lines come into the cache.
    let part = bytes.iter().enumerate().skip(begin).take(PART);
    let differ = part.filter(|(at, byte)| **byte != should(*at)).count();
    bytes.len() == SIZE && differ == 0
}
