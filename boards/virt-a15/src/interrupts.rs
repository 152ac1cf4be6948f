//! The interrupt controller (GICv2) and the interrupts that are used.

use crate::registers::{read, write};
use crate::system::wake;
use crate::{clock, ethernet, uart};

const DISTRIBUTOR: usize = 0x0800_0000;
const DISTRIBUTOR_CTRL: usize = DISTRIBUTOR;
/// Of each interrupt, whether it is of the group that comes as IRQ, or as FIQ.
const GROUPS: usize = DISTRIBUTOR + 0x80;
const SET_ENABLE: usize = DISTRIBUTOR + 0x100;
const PRIORITIES: usize = DISTRIBUTOR + 0x400;
const TARGETS: usize = DISTRIBUTOR + 0x800;
const CPU: usize = 0x0801_0000;
const CPU_CTRL: usize = CPU;
const PRIORITY_MASK: usize = CPU + 4;
const BINARY_POINT: usize = CPU + 8;

const ACKNOWLEDGE: usize = CPU + 0x0c;
const END: usize = CPU + 0x10;

/// Of distributor and core: the first group, and the second.
const FAST: u32 = 1;
const ORDINARY: u32 = 2;
/// Of the core: both groups are acknowledged in the same place, and the first comes as FIQ.
const IN_ONE_PLACE: u32 = 4;
const AS_FIQ: u32 = 8;
const ALL_PRIORITIES: u32 = 0xff;
/// The bits of an acknowledged interrupt that are its number.
const NUMBER: u32 = 0x3ff;
/// Numbers from here on mean that there is none.
#[cfg(not(feature = "freertos"))]
const NONE: u32 = 1_020;
/// Below what FreeRTOS may be called from (`freertos/UserConfig.h`), and for the tick the lowest that it demands.
const PRIORITY: u32 = 0xc0;
#[cfg(feature = "freertos")]
const TICK_PRIORITY: u32 = 0xf0;
/// Above what FreeRTOS masks.
const WATCHDOG_PRIORITY: u32 = 0x20;
const FIRST_CORE: u32 = 1;

/// An interrupt, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interrupt(pub u32);

/// The virtual timer, which ticks.
#[cfg(feature = "freertos")]
const TICK: Interrupt = Interrupt(27);
/// The physical timer, which wakes the network task.
pub const WAKE: Interrupt = Interrupt(30);
/// The serial line.
pub const UART: Interrupt = Interrupt(33);
/// The clock of the date, which is the watchdog's.
const WATCHDOG: Interrupt = Interrupt(34);
/// How many interrupts belong to a register with a bit for each, and how many such registers there are.
const EACH: u32 = 32;
const REGISTERS: usize = 9;

#[cfg(feature = "freertos")]
// SAFETY: FreeRTOS has this function, without arguments; it is called where FreeRTOS wants it, in the tick's interrupt.
unsafe extern "C" {
    #[link_name = "FreeRTOS_Tick_Handler"]
    safe fn on_tick();
}

/// Switches the controller on; no interrupt is enabled yet.
pub fn start() {
    write(DISTRIBUTOR_CTRL, FAST | ORDINARY);
    (0..REGISTERS).for_each(|register| write(GROUPS + 4 * register, !0));
    write(PRIORITY_MASK, ALL_PRIORITIES);
    // All bits of a priority tell which interrupts which.
    write(BINARY_POINT, 0);
    write(CPU_CTRL, FAST | ORDINARY | IN_ONE_PLACE | AS_FIQ);
}

/// Lets none come any more but the watchdog's.
pub fn stop() {
    write(CPU_CTRL, FAST | IN_ONE_PLACE | AS_FIQ);
}

/// Lets the watchdog's come, as the only FIQ.
pub fn enable_watchdog() {
    let Interrupt(number) = WATCHDOG;
    let group = GROUPS + (number / EACH) as usize * 4;
    write(group, read(group) & !(1 << (number % EACH)));
    enable_at(WATCHDOG, WATCHDOG_PRIORITY);
}

/// The watchdog's is heard, and may come again: no other is an FIQ.
pub fn end_watchdog() {
    write(END, read(ACKNOWLEDGE));
}

/// Lets an interrupt come to this core.
pub fn enable(interrupt: Interrupt) {
    enable_at(interrupt, PRIORITY);
}

/// Lets the tick come.
#[cfg(feature = "freertos")]
pub fn enable_tick() {
    enable_at(TICK, TICK_PRIORITY);
}

fn enable_at(Interrupt(number): Interrupt, priority: u32) {
    critical_section::with(|_| {
        set_byte(PRIORITIES, number, priority);
        set_byte(TARGETS, number, FIRST_CORE);
    });
    write(SET_ENABLE + (number / EACH) as usize * 4, 1 << (number % EACH));
}

/// Writes the byte of an interrupt in registers that hold four of them.
fn set_byte(registers: usize, number: u32, byte: u32) {
    let (address, shift) = (registers + number as usize / 4 * 4, number % 4 * 8);
    write(address, read(address) & !(0xff << shift) | byte << shift);
}

/// Called by `bare.s` with the vector unit untouched: acknowledges an interrupt and ends it.
#[cfg(not(feature = "freertos"))]
// SAFETY: no other function has this name; only `bare.s` calls it, with a stack for interrupts.
#[unsafe(no_mangle)]
extern "C" fn board_interrupt() {
    let acknowledged = read(ACKNOWLEDGE);
    let interrupt = Interrupt(acknowledged & NUMBER);
    if interrupt.0 < NONE {
        handle(interrupt);
        write(END, acknowledged);
    }
}

/// Called by FreeRTOS with what the controller said when it was asked for the interrupt; FreeRTOS has
/// saved the vector unit's registers, and tells the controller when this has ended.
#[cfg(feature = "freertos")]
// SAFETY: the name and the type are those that FreeRTOS demands.
#[unsafe(no_mangle)]
extern "C" fn vApplicationFPUSafeIRQHandler(acknowledged: u32) {
    handle(Interrupt(acknowledged & NUMBER));
}

/// Quiets an interrupt and wakes who waits for it.
fn handle(interrupt: Interrupt) {
    match interrupt {
        #[cfg(feature = "freertos")]
        TICK => on_tick(),
        WAKE => {
            clock::stop_waking();
            wake::on_time();
        }
        UART => {
            uart::acknowledge();
            wake::on_key();
        }
        interrupt if ethernet::is_mine(interrupt) => {
            ethernet::hold_interrupts();
            wake::on_frame(clock::now());
        }
        // Gone before it was looked at: the controller says 1,023.
        _ => {}
    }
}
