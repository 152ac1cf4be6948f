//! Interrupts: each says that the loop has to look, and what of it concerns the trace.

use crate::trace::TRACE;
use crate::{clock, uart};
use alloc::sync::Arc;
use alloc::task::Wake;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;
use critical_section::Mutex;
use embassy_stm32::interrupt::InterruptExt;
use embassy_stm32::interrupt::typelevel::{self, Handler};
use embassy_stm32::{bind_interrupts, eth, interrupt, peripherals, rng};
use linerate_firmware::trace::Interrupt;
use linerate_firmware::{INTERVALS, Intervals};

bind_interrupts!(
    /// What handles each line.
    pub struct Lines {
        ETH => Heard, eth::InterruptHandler;
        RNG => rng::InterruptHandler<peripherals::RNG>;
        TIM2 => Due;
        USART3 => Typed;
    }
);

/// The loop has to look.
static WOKEN: AtomicBool = AtomicBool::new(false);
/// How long after each other the interface interrupts.
static FRAMES: Mutex<RefCell<Intervals>> = Mutex::new(RefCell::new(Intervals::new()));

/// Before the handler of the Ethernet driver.
pub struct Heard;
/// The timer's.
pub struct Due;
/// The serial line's.
pub struct Typed;

impl Handler<typelevel::ETH> for Heard {
    // SAFETY: it asks nothing of its caller.
    unsafe fn on_interrupt() {
        let begun = TRACE.begin();
        critical_section::with(|cs| FRAMES.borrow_ref_mut(cs).add(clock::now()));
        TRACE.end(Interrupt::Ethernet, begun);
    }
}

impl Handler<typelevel::TIM2> for Due {
    // SAFETY: it asks nothing of its caller.
    unsafe fn on_interrupt() {
        let begun = TRACE.begin();
        clock::stop_waking();
        WOKEN.store(true, Ordering::Relaxed);
        TRACE.end(Interrupt::Timer, begun);
    }
}

impl Handler<typelevel::USART3> for Typed {
    // SAFETY: it asks nothing of its caller.
    unsafe fn on_interrupt() {
        let begun = TRACE.begin();
        // The loop takes what has come, and switches it on again.
        uart::quiet();
        WOKEN.store(true, Ordering::Relaxed);
        TRACE.end(Interrupt::Serial, begun);
    }
}

/// Lets timer and serial line interrupt; the driver of the Ethernet does so itself.
pub fn start() {
    // SAFETY: both handlers are above, and share nothing with the loop but under critical sections and by one flag.
    unsafe {
        interrupt::TIM2.enable();
        interrupt::USART3.enable();
    }
}

/// Sleeps until an interrupt comes, unless the loop has to look already; whether it has to.
pub fn wait() -> bool {
    // What comes between the question and the sleep waits for the end of the section, and ends the sleep.
    critical_section::with(|_| {
        if !WOKEN.load(Ordering::Relaxed) {
            cortex_m::asm::wfi();
        }
    });
    WOKEN.swap(false, Ordering::Relaxed)
}

/// For the Ethernet driver: it wakes the loop.
pub fn waker() -> Waker {
    struct Loop;
    impl Wake for Loop {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }
        fn wake_by_ref(self: &Arc<Self>) {
            WOKEN.store(true, Ordering::Relaxed);
        }
    }
    Waker::from(Arc::new(Loop))
}

/// How long after each other the interface interrupted.
pub fn intervals() -> [u32; INTERVALS] {
    critical_section::with(|cs| FRAMES.borrow_ref(cs).counts())
}
