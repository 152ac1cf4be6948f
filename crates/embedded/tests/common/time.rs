//! Virtual time, for nets and for the timeouts of servers.

use linerate_embedded::Clock;
use linerate_wire::units::Instant;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A clock that stands still until it is told to go on.
pub struct Time {
    now: Cell<Instant>,
    sleepers: RefCell<BTreeMap<(Instant, u64), Waker>>,
    count: Cell<u64>,
}

impl Time {
    pub fn new() -> Time {
        Time { now: Cell::new(Instant::from_millis(1)), sleepers: RefCell::default(), count: Cell::new(0) }
    }

    pub fn now(&self) -> Instant {
        self.now.get()
    }

    /// Goes on to the first time that somebody waits for. False when nobody does.
    pub fn advance(&self) -> bool {
        let Some(((at, _), waker)) = self.sleepers.borrow_mut().pop_first() else { return false };
        self.now.set(self.now.get().max(at));
        waker.wake();
        true
    }

    /// Wakes at `at`, and nobody can call that off.
    pub fn wake_at(&self, at: Instant, waker: &Waker) {
        self.count.set(self.count.get() + 1);
        self.sleepers.borrow_mut().insert((at, self.count.get()), waker.clone());
    }

    pub fn sleep(&self, at: Instant) -> Sleep<'_> {
        self.count.set(self.count.get() + 1);
        Sleep { time: self, key: (at, self.count.get()) }
    }
}

/// Ends at its time; dropped before, nobody waits for that any more.
pub struct Sleep<'a> {
    time: &'a Time,
    key: (Instant, u64),
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.key.0 <= self.time.now() {
            return Poll::Ready(());
        }
        self.time.sleepers.borrow_mut().insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.time.sleepers.borrow_mut().remove(&self.key);
    }
}

impl Clock for Time {
    fn now(&self) -> Instant {
        self.now.get()
    }

    async fn sleep_until(&self, at: Instant) {
        self.sleep(at).await;
    }
}
