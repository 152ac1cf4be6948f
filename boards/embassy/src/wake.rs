//! Who is woken by an interrupt or by another task, and how long after each other the interface interrupted.

use crate::trace::TRACE;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use critical_section::Mutex;
use linerate_firmware::trace::Interrupt;
use linerate_firmware::{INTERVALS, Intervals};
use linerate_wire::units::Instant;

/// What one task waits for: it is set or not, and whoever waits takes it.
pub(crate) struct Signal(Mutex<RefCell<State>>);

struct State {
    is_set: bool,
    waiting: Option<Waker>,
}

impl Signal {
    const fn new() -> Signal {
        Signal(Mutex::new(RefCell::new(State { is_set: false, waiting: None })))
    }

    /// Wakes the task that waits, or the next wait is over at once.
    pub(crate) fn set(&self) {
        let waiting = critical_section::with(|cs| {
            let mut state = self.0.borrow_ref_mut(cs);
            state.is_set = true;
            state.waiting.take()
        });
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Waits until it is set, and takes that.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| {
            critical_section::with(|cs| {
                let mut state = self.0.borrow_ref_mut(cs);
                if core::mem::take(&mut state.is_set) {
                    return Poll::Ready(());
                }
                state.waiting = Some(context.waker().clone());
                Poll::Pending
            })
        })
        .await;
    }
}

/// Lets the others have their turn.
pub(crate) async fn give_way() {
    let mut has_given = false;
    poll_fn(|context| {
        if core::mem::replace(&mut has_given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The interface has something, the timer is due, or a command waits.
pub(crate) static NETWORK: Signal = Signal::new();
/// A key was pressed, or there is an answer.
pub(crate) static CONSOLE: Signal = Signal::new();
/// The application was switched on.
pub(crate) static COMPUTE: Signal = Signal::new();
/// How long after each other the interface interrupted.
static FRAMES: Mutex<RefCell<Intervals>> = Mutex::new(RefCell::new(Intervals::new()));

/// How long after each other the interface interrupted.
pub(crate) fn intervals() -> [u32; INTERVALS] {
    critical_section::with(|cs| FRAMES.borrow_ref(cs).counts())
}

/// What the interface's interrupt handler calls, once the interface keeps quiet.
pub fn on_frame(now: Instant) {
    let begun = TRACE.begin();
    critical_section::with(|cs| FRAMES.borrow_ref_mut(cs).add(now));
    NETWORK.set();
    TRACE.end(Interrupt::Ethernet, begun);
}

/// What the timer's interrupt handler calls.
pub fn on_time() {
    let begun = TRACE.begin();
    NETWORK.set();
    TRACE.end(Interrupt::Timer, begun);
}

/// What the serial line's interrupt handler calls.
pub fn on_key() {
    let begun = TRACE.begin();
    CONSOLE.set();
    TRACE.end(Interrupt::Serial, begun);
}
