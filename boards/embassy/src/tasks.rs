//! The tasks, and how long each ran.

use crate::board::Embassy;
use crate::trace::TRACE;
use crate::{Hardware, application, console, wake, watch};
use alloc::boxed::Box;
use core::cell::Cell;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll};
use critical_section::Mutex;
use linerate_firmware::{open, serve};
use linerate_wire::units::Instant;

/// The number of the first in the trace, and that of none of them.
const FIRST: u16 = 1;
const NONE: usize = usize::MAX;

/// The one that is being polled.
static RUNNING: AtomicUsize = AtomicUsize::new(NONE);
/// Nanoseconds that each was polled.
static RAN_NS: Mutex<Cell<[u64; watch::TASKS]>> = Mutex::new(Cell::new([0; watch::TASKS]));

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// A task, by its place among those that are watched; how long it is polled is noted.
pub(crate) struct Task {
    who: usize,
    work: Work,
    now: fn() -> Instant,
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let from = (self.now)();
        RUNNING.store(self.who, Ordering::Relaxed);
        TRACE.run_task(number(self.who));
        let polled = self.work.as_mut().poll(context);
        TRACE.run_task(number(watch::TASKS));
        RUNNING.store(NONE, Ordering::Relaxed);
        let ns = (self.now)().as_nanos().saturating_sub(from.as_nanos());
        critical_section::with(|cs| {
            let mut all = RAN_NS.borrow(cs).get();
            all[self.who] += ns;
            RAN_NS.borrow(cs).set(all);
        });
        polled
    }
}

/// Its number in the trace; that behind the last is of none.
pub(crate) fn number(who: usize) -> u16 {
    FIRST + who as u16
}

/// The one that is being polled, if any.
pub(crate) fn running() -> Option<usize> {
    Some(RUNNING.load(Ordering::Relaxed)).filter(|who| *who < watch::TASKS)
}

/// Nanoseconds that each was polled, the poll that goes on left out.
pub(crate) fn ran_ns() -> [u64; watch::TASKS] {
    critical_section::with(|cs| RAN_NS.borrow(cs).get())
}

/// All of them.
pub(crate) fn all<H: Hardware>() -> [Task; watch::TASKS] {
    let task = |who, work: Work| Task { who, work, now: H::now };
    [
        task(watch::NETWORK, Box::pin(network::<H>())),
        task(watch::CONSOLE, Box::pin(console::run::<H>())),
        task(watch::COMPUTE, Box::pin(application::run())),
    ]
}

async fn network<H: Hardware>() {
    H::enable_timer();
    H::enable_keys();
    watch::WATCHDOG.turns(watch::NETWORK);
    let mut board = Embassy::<H>::new();
    match serve(&mut board, H::SETTINGS, open::<H>(&TRACE)).await {
        Ok(never) => match never {},
        Err(error) => H::print(&alloc::format!("\nthe network ended: {error}\n")),
    }
    // The console goes on, and hears nothing any more.
    wake::NETWORK.wait().await;
}
