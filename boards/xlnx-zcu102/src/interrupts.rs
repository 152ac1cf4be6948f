//! The interrupt controller (GICv2), which is asked what is due.

use crate::processor;
use crate::registers::{read, write};

const DISTRIBUTOR: usize = 0xf901_0000;
const DISTRIBUTOR_CTRL: usize = DISTRIBUTOR;
const SET_ENABLE: usize = DISTRIBUTOR + 0x100;
const CLEAR_PENDING: usize = DISTRIBUTOR + 0x280;
const PRIORITIES: usize = DISTRIBUTOR + 0x400;
const TARGETS: usize = DISTRIBUTOR + 0x800;
const SOFTWARE: usize = DISTRIBUTOR + 0xf00;
const CPU: usize = 0xf902_0000;
const CPU_CTRL: usize = CPU;
const PRIORITY_MASK: usize = CPU + 0x04;
const ACKNOWLEDGE: usize = CPU + 0x0c;
const END: usize = CPU + 0x10;

const ENABLE: u32 = 1;
const ALL_PRIORITIES: u32 = 0xff;
const PRIORITY: u32 = 0x80;
/// The watchdog's, and what lets nothing else through.
const WATCHDOG_PRIORITY: u32 = 0x20;
const WATCHDOG_ALONE: u32 = 0x40;
const FIRST_CORE: u32 = 1;
/// Where the cores begin that a software interrupt goes to, one bit each.
const TO_CORES_SHIFT: usize = 16;
/// The bits of an acknowledged interrupt that are its number; numbers from here on mean that there is none.
const NUMBER: u32 = 0x3ff;
const NONE: u32 = 1_020;

/// An interrupt, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt(pub u32);

/// The virtual timer.
pub const TIMER: Interrupt = Interrupt(27);
/// The physical timer, which is the watchdog's.
pub const WATCHDOG: Interrupt = Interrupt(30);
/// The first serial line.
pub const UART: Interrupt = Interrupt(53);
/// The fourth Ethernet controller, the one with a plug on this board.
const ETHERNET: Interrupt = Interrupt(95);

/// What one core tells another by: that it has put something into its mailbox.
pub const BELL: Interrupt = Interrupt(0);

/// Switches the controller on, with the interrupts that are used; on the first core.
pub fn start() {
    write(DISTRIBUTOR_CTRL, ENABLE);
    start_core();
    for interrupt in [UART, ETHERNET] {
        set_byte(TARGETS, interrupt.0, FIRST_CORE);
        enable(interrupt);
    }
}

/// Switches on what each core has for itself, on that core.
pub fn start_core() {
    write(PRIORITY_MASK, ALL_PRIORITIES);
    write(CPU_CTRL, ENABLE);
    enable(TIMER);
    enable(BELL);
}

/// Lets this core's watchdog interrupt.
pub fn enable_watchdog() {
    enable_at(WATCHDOG, WATCHDOG_PRIORITY);
}

/// From here on only the watchdog comes to this core.
pub fn hear_watchdog() {
    write(PRIORITY_MASK, WATCHDOG_ALONE);
    // It holds once it can be read.
    let _is_there = read(PRIORITY_MASK);
}

/// From here on all interrupts that are switched on come to this core.
pub fn hear_all() {
    write(PRIORITY_MASK, ALL_PRIORITIES);
}

fn enable(interrupt: Interrupt) {
    enable_at(interrupt, PRIORITY);
}

fn enable_at(Interrupt(number): Interrupt, priority: u32) {
    set_byte(PRIORITIES, number, priority);
    let (word, bit) = (number as usize / 32 * 4, 1 << (number % 32));
    write(CLEAR_PENDING + word, bit);
    write(SET_ENABLE + word, bit);
}

/// Rings at a core; `wfi` ends there, now or as soon as it is reached.
pub fn ring(core: usize) {
    // What is in the mailbox comes first.
    processor::barrier();
    write(SOFTWARE, 1 << (TO_CORES_SHIFT + core) | BELL.0);
}

/// Writes the byte of an interrupt in registers that hold four of them.
fn set_byte(registers: usize, number: u32, byte: u32) {
    let (address, shift) = (registers + number as usize / 4 * 4, number % 4 * 8);
    write(address, read(address) & !(0xff << shift) | byte << shift);
}

/// An interrupt that is due. Its cause is quieted, and then it [ends](Due::end).
#[derive(Debug)]
pub struct Due {
    acknowledged: u32,
}

impl Due {
    /// Which it is.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(self.acknowledged & NUMBER)
    }

    /// The next one may come.
    pub fn end(self) {
        write(END, self.acknowledged);
    }
}

/// Asks what is due.
pub fn take() -> Option<Due> {
    let acknowledged = read(ACKNOWLEDGE);
    (acknowledged & NUMBER < NONE).then_some(Due { acknowledged })
}
