//! The interrupts of this board that are used.

use crate::{clock, ethernet, uart};
use cortex_m::peripheral::NVIC;
use linerate_firmware_freertos::wake;

/// The lines of the interrupt controller: that of the serial line,
pub const UART0_RECEIVE: Line = Line(0);
/// that of the timer that wakes,
pub const TIMER1: Line = Line(9);
/// and that of the interface.
pub const ETHERNET: Line = Line(13);
const LINES: usize = 32;
/// Below what FreeRTOS may be called from (`build.rs`).
const PRIORITY: u8 = 0xc0;

/// A line of the interrupt controller.
#[derive(Clone, Copy)]
pub struct Line(u16);

// SAFETY: the numbers are those of the board, below the number of its lines.
unsafe impl cortex_m::interrupt::InterruptNumber for Line {
    fn number(self) -> u16 {
        self.0
    }
}

type Handler = unsafe extern "C" fn();

// SAFETY: provided by cortex-m-rt.
unsafe extern "C" {
    fn DefaultHandler();
}

/// The part of the vector table that is the board's.
// SAFETY: cortex-m-rt expects it under this name in this section, one pointer to a handler for each line.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
static __INTERRUPTS: [Handler; LINES] = {
    let mut table: [Handler; LINES] = [DefaultHandler; LINES];
    table[UART0_RECEIVE.0 as usize] = on_key;
    table[TIMER1.0 as usize] = on_time;
    table[ETHERNET.0 as usize] = on_frame;
    table
};

/// Lets a line interrupt.
pub fn enable(line: Line) {
    // SAFETY: only this function writes priorities, before the line is enabled; unmasking breaks no critical section that a
    // mask of lines would be, as there is none.
    unsafe {
        let mut core = cortex_m::Peripherals::steal();
        core.NVIC.set_priority(line, PRIORITY);
        NVIC::unmask(line);
    }
}

extern "C" fn on_frame() {
    ethernet::hold_interrupts();
    wake::on_frame(clock::now());
}

extern "C" fn on_time() {
    clock::stop_waking();
    wake::on_time();
}

extern "C" fn on_key() {
    uart::acknowledge();
    wake::on_key();
}
