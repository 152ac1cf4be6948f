//! The other cores: how they are started, and where they wait for work.

use crate::ethernet::Controller;
use crate::registers::{read, write};
use crate::{clock, interrupts, processor, start};
use core::cell::Cell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use critical_section::Mutex;
use linerate_firmware::exchange::Exchange;
use linerate_nic::gem::StoppedQueue;
use linerate_nic::{Capabilities, MacAddr};

/// How many there are, as `start.s` has it.
pub const MOST: usize = 4;

/// The one that has the second queue.
const SECOND: usize = 1;

/// Where a core begins after its reset (UG1087, module APU, `RVBARADDR0L`), for each, 8 bytes apart.
const RESET_VECTORS: usize = 0xfd5c_0040;
/// Which cores are held in reset (module CRF_APB, `RST_FPD_APU`): the processors, and their power-on resets.
const RESETS: usize = 0xfd1a_0104;
const POWER_ON_SHIFT: usize = 10;
/// How long a core may take to come.
const PATIENCE: Duration = Duration::from_millis(200);

/// What another core is to know of the interface.
#[derive(Clone, Copy)]
pub struct Work {
    /// What all share.
    pub exchange: &'static Exchange,
    /// The interface's address.
    pub mac: MacAddr,
    /// The largest packet.
    pub mtu: usize,
    /// What it is able to do.
    pub capabilities: Capabilities,
}

static WORK: Mutex<Cell<Option<Work>>> = Mutex::new(Cell::new(None));
static HAS_WORK: AtomicBool = AtomicBool::new(false);
static HAS_COME: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];

/// Starts cores, up to so many in all, one after the other; how many there are then. `level` is the exception level that the image
/// began at: from the third on it is alone and lets them out of their reset itself, else it asks whoever is above.
pub fn start(wanted: usize, level: u64) -> usize {
    let wanted = wanted.min(MOST);
    for (core, has_come) in HAS_COME.iter().enumerate().take(wanted).skip(1) {
        if level == 3 {
            release(core);
        } else if processor::start_core(core, start::entry()) != 0 {
            return core;
        }
        let late = clock::now() + PATIENCE;
        while !has_come.load(Ordering::Acquire) {
            if clock::now() > late {
                return core;
            }
            spin_loop();
        }
    }
    wanted.max(1)
}

/// The second queue, on its way to the second core.
static QUEUE: Mutex<Cell<Option<StoppedQueue<Controller>>>> = Mutex::new(Cell::new(None));

/// The queue of this core, if it has one; once.
pub fn take_queue(core: usize) -> Option<StoppedQueue<Controller>> {
    if core == SECOND { critical_section::with(|cs| QUEUE.borrow(cs).take()) } else { None }
}

/// Lets the other cores begin.
pub fn hand_over(work: Work, queue: Option<StoppedQueue<Controller>>) {
    critical_section::with(|cs| QUEUE.borrow(cs).set(queue));
    critical_section::with(|cs| WORK.borrow(cs).set(Some(work)));
    HAS_WORK.store(true, Ordering::Release);
}

/// Lets a core out of its reset.
fn release(core: usize) {
    write(RESET_VECTORS + 8 * core, start::entry() as u32);
    write(RESET_VECTORS + 8 * core + 4, 0);
    processor::barrier();
    write(RESETS, read(RESETS) & !(1 << core | 1 << (POWER_ON_SHIFT + core)));
}

/// Where a core goes on that was started.
pub fn arrive(core: usize) -> ! {
    interrupts::start_core();
    HAS_COME[core].store(true, Ordering::Release);
    while !HAS_WORK.load(Ordering::Acquire) {
        spin_loop();
    }
    match critical_section::with(|cs| WORK.borrow(cs).get()) {
        // One that came late is not counted on.
        Some(work) if core < work.exchange.seats().into() => crate::run_member(core, work),
        _ => loop {
            processor::wait_for_interrupt();
        },
    }
}
