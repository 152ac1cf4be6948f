//! The LAN9118 of this board: where its registers are, and how its FIFOs are emptied and filled fast.

use crate::registers::{read, write};
use crate::{SETTINGS, interrupts};
use core::arch::global_asm;
use core::cell::Cell;
use critical_section::Mutex;
use linerate_firmware::lan9118::{BUFFER_SIZE, FIFO_FRAMES, Lan9118, OpenError, Registers, silence};
use linerate_firmware_freertos::Opened;
use linerate_nic::{MacAddr, Pool};

const BASE: usize = 0xa000_0000;
/// The data FIFOs answer at eight words each, so that eight are read or written by one instruction.
const RX_DATA: usize = BASE;
const TX_DATA: usize = BASE + 0x20;
/// Bytes of eight words.
const BLOCK: usize = 32;

/// Bytes of a receive buffer: whole blocks, so that each begins at a multiple of them.
const BUFFER: usize = BUFFER_SIZE.next_multiple_of(BLOCK);
/// Frames taken in and packets handed over at once.
const BATCH: usize = 16;
const PACKET_MEMORY: usize = SETTINGS.receive_buffers * BUFFER;

/// The memory that packets are received into.
#[repr(align(32))]
struct PacketMemory([u8; PACKET_MEMORY]);

// SAFETY: the section is memory of its own (memory.x) that nobody initialises; any bytes are good bytes.
#[unsafe(link_section = ".packet.receive")]
static mut RECEIVE: PacketMemory = PacketMemory([0; PACKET_MEMORY]);
static IS_TAKEN: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));

/// The registers.
pub struct Chip;

// Loops over blocks of eight words, four blocks a round where there are so many, and the sum of what was read (RFC 1071) along the way.
// The carry lives from one addition to the next, within a round; adding the last cannot carry, as that takes a sum of all ones and a
// carry before it.
global_asm!(
    ".syntax unified",
    // The sum begins with an addition that takes no carry, or goes on with the carry of the block before.
    ".macro summed_block first",
    "ldmia r0, {{r3-r10}}",
    "stmia r1!, {{r3-r10}}",
    "\\first r11, r11, r3",
    "adcs r11, r11, r4",
    "adcs r11, r11, r5",
    "adcs r11, r11, r6",
    "adcs r11, r11, r7",
    "adcs r11, r11, r8",
    "adcs r11, r11, r9",
    "adcs r11, r11, r10",
    ".endm",
    ".section .text.fifo, \"ax\"",
    ".thumb_func",
    ".type fifo_read, %function",
    ".global fifo_read",
    // r0: FIFO, r1: to, r2: blocks, not zero
    "fifo_read:",
    "push {{r4-r10, lr}}",
    "1: ldmia r0, {{r3-r10}}",
    "subs r2, r2, #1",
    "stmia r1!, {{r3-r10}}",
    "bne 1b",
    "pop {{r4-r10, pc}}",
    ".size fifo_read, . - fifo_read",
    ".thumb_func",
    ".type fifo_read_summed, %function",
    ".global fifo_read_summed",
    // r0: FIFO, r1: to, r2: blocks, not zero; answers with the sum, carries added
    "fifo_read_summed:",
    "push {{r4-r11, lr}}",
    "movs r11, #0",
    "subs r2, r2, #4",
    "blo 2f",
    "1: summed_block adds",
    ".rept 3",
    "summed_block adcs",
    ".endr",
    "adc r11, r11, #0",
    "subs r2, r2, #4",
    "bhs 1b",
    "2: adds r2, r2, #4",
    "beq 4f",
    "3: summed_block adds",
    "adc r11, r11, #0",
    "subs r2, r2, #1",
    "bne 3b",
    "4: mov r0, r11",
    "pop {{r4-r11, pc}}",
    ".size fifo_read_summed, . - fifo_read_summed",
    ".thumb_func",
    ".type fifo_write, %function",
    ".global fifo_write",
    // r0: FIFO, r1: from, a multiple of four, r2: blocks, not zero
    "fifo_write:",
    "push {{r4-r10, lr}}",
    "subs r2, r2, #4",
    "blo 2f",
    "1:",
    ".rept 4",
    "ldmia r1!, {{r3-r10}}",
    "stmia r0, {{r3-r10}}",
    ".endr",
    "subs r2, r2, #4",
    "bhs 1b",
    "2: adds r2, r2, #4",
    "beq 4f",
    "3: ldmia r1!, {{r3-r10}}",
    "subs r2, r2, #1",
    "stmia r0, {{r3-r10}}",
    "bne 3b",
    "4: pop {{r4-r10, pc}}",
    ".size fifo_write, . - fifo_write",
    ".thumb_func",
    ".type fifo_write_unaligned, %function",
    ".global fifo_write_unaligned",
    // The same from any address: single loads may be unaligned, multiple ones not.
    "fifo_write_unaligned:",
    "push {{r4-r10, lr}}",
    "1: ldr r3, [r1], #4",
    "ldr r4, [r1], #4",
    "ldr r5, [r1], #4",
    "ldr r6, [r1], #4",
    "ldr r7, [r1], #4",
    "ldr r8, [r1], #4",
    "ldr r9, [r1], #4",
    "ldr r10, [r1], #4",
    "subs r2, r2, #1",
    "stmia r0, {{r3-r10}}",
    "bne 1b",
    "pop {{r4-r10, pc}}",
    ".size fifo_write_unaligned, . - fifo_write_unaligned",
);

// SAFETY: these are the functions above, with these arguments; what must hold of them is said where they are called.
unsafe extern "C" {
    fn fifo_read(fifo: usize, to: *mut u8, blocks: usize);
    fn fifo_read_summed(fifo: usize, to: *mut u8, blocks: usize) -> u32;
    fn fifo_write(fifo: usize, from: *const u8, blocks: usize);
    fn fifo_write_unaligned(fifo: usize, from: *const u8, blocks: usize);
}

/// Splits what begins at a multiple of four into blocks and the rest.
fn blocks(bytes: &mut [u8]) -> (&mut [u8], &mut [u8]) {
    let is_aligned = bytes.as_ptr().addr().is_multiple_of(4);
    let len = if is_aligned { bytes.len() / BLOCK * BLOCK } else { 0 };
    bytes.split_at_mut(len)
}

impl Registers for Chip {
    #[inline]
    fn read(&mut self, offset: usize) -> u32 {
        read(BASE + offset)
    }

    #[inline]
    fn write(&mut self, offset: usize, value: u32) {
        write(BASE + offset, value);
    }

    fn read_data(&mut self, out: &mut [u8]) {
        let (whole, rest) = blocks(out);
        if !whole.is_empty() {
            // SAFETY: `whole` is borrowed alone, aligned, and exactly so many blocks long.
            unsafe { fifo_read(RX_DATA, whole.as_mut_ptr(), whole.len() / BLOCK) };
        }
        for word in rest.as_chunks_mut::<4>().0 {
            *word = read(RX_DATA).to_le_bytes();
        }
    }

    fn read_summed(&mut self, out: &mut [u8]) -> u64 {
        let (whole, rest) = blocks(out);
        let mut sum = 0;
        if !whole.is_empty() {
            // SAFETY: as above.
            sum = unsafe { fifo_read_summed(RX_DATA, whole.as_mut_ptr(), whole.len() / BLOCK) }.into();
        }
        for bytes in rest.as_chunks_mut::<4>().0 {
            let word = read(RX_DATA);
            *bytes = word.to_le_bytes();
            // 2^32 is 1 modulo 0xffff, so that words may be added as they are.
            sum += u64::from(word);
        }
        sum
    }

    fn write_data(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.split_at(bytes.len() / BLOCK * BLOCK);
        if !whole.is_empty() {
            let blocks = whole.len() / BLOCK;
            if whole.as_ptr().addr().is_multiple_of(4) {
                // SAFETY: `whole` is readable, aligned, and exactly so many blocks long.
                unsafe { fifo_write(TX_DATA, whole.as_ptr(), blocks) };
            } else {
                // SAFETY: the same without the alignment.
                unsafe { fifo_write_unaligned(TX_DATA, whole.as_ptr(), blocks) };
            }
        }
        let (words, rest) = rest.as_chunks::<4>();
        for word in words {
            write(TX_DATA, u32::from_le_bytes(*word));
        }
        // A copy of so few bytes would be a call.
        if let [first, more @ ..] = rest {
            let byte = |at: usize| more.get(at).copied().unwrap_or_default();
            write(TX_DATA, u32::from_le_bytes([*first, byte(0), byte(1), 0]));
        }
    }
}

/// The interface and the pool that it receives into; once.
pub fn open() -> Result<Opened<Lan9118<Chip>>, OpenError> {
    let is_first = critical_section::with(|cs| !IS_TAKEN.borrow(cs).replace(true));
    assert!(is_first, "the interface is opened once");
    let memory = &raw mut RECEIVE;
    // SAFETY: this is the only place that makes a reference to it, and it comes by once.
    let memory = unsafe { &mut (*memory).0 };
    let pool = Pool::over(memory, BUFFER, BLOCK).expect("the memory was made for these buffers");
    let device = Lan9118::open(Chip, MacAddr(SETTINGS.mac), pool.clone())?;
    interrupts::enable(interrupts::ETHERNET);
    Ok(Opened { device, receive: pool, queue: QUEUE, batch: BATCH })
}

/// What the interrupt handler does with the chip.
pub fn hold_interrupts() {
    silence(&mut Chip);
}

/// Frames that peers may have under way beyond the buffers: those that the chip's FIFO holds, and what the processor takes out
/// while they arrive, which it does ten times as fast as they can.
const QUEUE: usize = FIFO_FRAMES + 10;
