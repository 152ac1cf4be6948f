//! The end: what happened is printed, and the board is started anew a little later. Nothing is allocated.

use crate::uart::Out;
use crate::{processor, stack, watchdog};
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};
use linerate_firmware::Watchdog;
use linerate_firmware::backtrace::{Code, Instructions};

/// Calls that are shown.
const SHOWN: usize = 32;

/// The core that has ended the machine already, whose report is being printed: its number and one, or 0.
static OVER: AtomicUsize = AtomicUsize::new(0);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    begin();
    say(format_args!("\n*** panic\n{info}\n"));
    say_core();
    let here = 0_u64;
    calls((&raw const here).addr());
    stop()
}

/// What comes before the report. A second one, about what the first one met, would never end; and one of another core would be
/// printed in between.
fn begin() {
    // The watchdog of this core has nothing more to say.
    processor::mask();
    let me = processor::core() + 1;
    match OVER.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        Err(core) if core == me => {
            say(format_args!("\n*** and the report of it failed\n"));
            stop();
        }
        // Whoever was first starts the board anew.
        Err(_) => loop {
            processor::wait_for_interrupt();
        },
    }
}

/// Which core it was, where that is not the first.
fn say_core() {
    let core = processor::core();
    if core > 0 {
        say(format_args!("on core {core}\n"));
    }
}

fn say(what: core::fmt::Arguments<'_>) {
    // Writing to the line does not fail.
    let _sent = Out.write_fmt(what);
}

fn stop() -> ! {
    watchdog::wait_and_reset()
}

/// The registers when a fault or the watchdog came, as `start.s` lays them down.
#[repr(C)]
pub struct Registers {
    x: [u64; 31],
    sp: u64,
    pc: u64,
    pstate: u64,
    syndrome: u64,
    address: u64,
}

/// What the processor cannot go on from.
// SAFETY: no other function has this name; only `start.s` calls it, with registers that it has just stored.
#[unsafe(no_mangle)]
extern "C" fn board_fault(vector: u32, registers: &Registers) -> ! {
    begin();
    let syndrome = registers.syndrome;
    // The class of an exception: D17.2.37 of the architecture's manual, ESR_EL1.
    let name = match (vector % 4, syndrome >> 26) {
        (0, 0b000000) => "undefined instruction",
        (0, 0b100000 | 0b100001) => "no instruction there",
        (0, 0b100100 | 0b100101) => "data fault",
        (0, 0b100010 | 0b100110) => "unaligned instruction or stack",
        (3, _) => "error reported by the bus",
        _ => "unexpected exception",
    };
    say(format_args!("\n*** {name}"));
    print(registers);
    stop()
}

/// What this core's watchdog has to say of its loop, which makes no progress.
pub fn report_stuck(watchdog: &Watchdog<1>, registers: &Registers) {
    begin();
    watchdog.say_stuck(watchdog::NETWORK, say);
    print(registers);
}

/// The registers, the core, and the calls that led there.
fn print(registers: &Registers) {
    let Registers { x, sp, pc, pstate, syndrome, address } = registers;
    say(format_args!(
        "\npc {pc:#x} sp {sp:#x} pstate {pstate:#x}\naddress {address:#x} syndrome {syndrome:#x}"
    ));
    for (number, value) in x.iter().enumerate() {
        let before = if number % 4 == 0 { '\n' } else { ' ' };
        say(format_args!("{before}x{number:<2} {value:#018x}"));
    }
    say(format_args!("\n"));
    say_core();
    say(format_args!("  at {pc:#010x}\n"));
    calls(*sp as usize);
}

// What the linker tells by addresses: where code begins and ends.
// SAFETY: memory.x has these names; nothing is read through them.
unsafe extern "C" {
    static __code_start: u8;
    static __text_end: u8;
}

/// The calls that led to the place where the stack pointer is this.
fn calls(pointer: usize) {
    let (start, end) = (&raw const __code_start, (&raw const __text_end).addr());
    // SAFETY: all between the two is code, which nobody writes to.
    let bytes = unsafe { core::slice::from_raw_parts(start, end - start.addr()) };
    let code = Code { bytes, start: start.addr() as u32, instructions: Instructions::A64 };
    say(format_args!("calls that the stack tells of, the last one first; some may be old:\n"));
    let words = stack::words(pointer).filter_map(|word| u32::try_from(word).ok());
    for call in words.filter_map(|word| code.call_before(word)).take(SHOWN) {
        say(format_args!("  at {call:#010x}\n"));
    }
}
