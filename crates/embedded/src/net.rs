//! An engine shared by the tasks of one executor, and the task that runs it.

use crate::clock::Clock;
use crate::waits::{QueueId, Waits};
use core::cell::{RefCell, RefMut};
use core::convert::Infallible;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use linerate_transport::{Engine, Left, SocketOptions, Source, Transport};

/// Most events handed out in one turn: after that, packets have their turn again.
const PER_TURN: usize = 1024;

/// What a socket sees of its net: the transport, and who waits.
pub(crate) trait Parts {
    /// Both.
    fn parts(&mut self) -> (&mut dyn Transport, &mut Waits);
}

/// A net without the types of its engine and clock, so that sockets need not name them.
pub(crate) trait Shared {
    /// The parts, with the time told.
    fn borrow(&self) -> RefMut<'_, dyn Parts + '_>;
}

impl<'a> dyn Shared + 'a {
    /// Calls `f` with the parts, and lets the net run if `f` gave it something to do.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut dyn Transport, &mut Waits) -> R) -> R {
        let (result, runner) = {
            let mut inner = self.borrow();
            let (net, waits) = inner.parts();
            let result = f(net, waits);
            (result, waits.take_runner())
        };
        // Wakers run code of the executor: never while the net is borrowed.
        if let Some(runner) = runner {
            runner.wake();
        }
        result
    }
}

/// A place in a queue of tasks, given up when it is dropped.
pub(crate) struct Waiting<'a> {
    shared: &'a dyn Shared,
    queue: QueueId,
    at: Option<usize>,
}

impl<'a> Waiting<'a> {
    /// Not waiting yet.
    pub(crate) fn new(shared: &'a dyn Shared, queue: QueueId) -> Self {
        Waiting { shared, queue, at: None }
    }

    /// Waits in the queue.
    pub(crate) fn wait(&mut self, waits: &mut Waits, cx: &Context<'_>) {
        self.at = Some(waits.wait(self.queue, self.at, cx));
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            self.shared.with(|_, waits| waits.leave(self.queue, at));
        }
    }
}

/// The engine, and who waits for it.
struct Inner<E> {
    engine: E,
    waits: Waits,
}

impl<E: Engine> Parts for Inner<E> {
    fn parts(&mut self) -> (&mut dyn Transport, &mut Waits) {
        (self.engine.net(), &mut self.waits)
    }
}

/// An engine that the tasks of one executor share.
///
/// It is not `Sync`: all of its tasks are on one core, and so is it. Sockets borrow it, so that firmware keeps it in a
/// `static` cell or leaks a box.
///
/// One task awaits [`Net::run`]; without it nothing moves. In each turn of it the engine takes in what has come, the tasks
/// that wait for that are woken and have their turn, and then what is due leaves: what several tasks write, and what
/// one task writes in many small pieces, leaves in as few packets as it fits.
pub struct Net<E, C> {
    inner: RefCell<Inner<E>>,
    clock: C,
    options: SocketOptions,
}

impl<E: Engine, C: Clock> Shared for Net<E, C> {
    fn borrow(&self) -> RefMut<'_, dyn Parts + '_> {
        let mut inner = self.inner.borrow_mut();
        inner.engine.set_now(self.clock.now());
        inner
    }
}

impl<E: Engine, C: Clock> Net<E, C> {
    /// A net over an engine.
    pub fn new(engine: E, clock: C) -> Self {
        Net {
            inner: RefCell::new(Inner { engine, waits: Waits::default() }),
            clock,
            options: SocketOptions::default(),
        }
    }

    /// The same net, whose `connect` gives sockets these settings.
    pub fn with_options(mut self, options: SocketOptions) -> Self {
        self.options = options;
        self
    }

    /// Settings of sockets that `connect` makes.
    pub fn options(&self) -> &SocketOptions {
        &self.options
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Calls `f` with the engine: addresses, counters, settings.
    ///
    /// # Panics
    ///
    /// When `f` uses this net or a socket of it; dropping one counts as use.
    pub fn with<R>(&self, f: impl FnOnce(&mut E) -> R) -> R {
        let (result, runner) = {
            let mut inner = self.inner.borrow_mut();
            inner.engine.set_now(self.clock.now());
            let result = f(&mut inner.engine);
            inner.waits.call();
            (result, inner.waits.take_runner())
        };
        if let Some(runner) = runner {
            runner.wake();
        }
        result
    }

    /// Returns what `f` finds; asks it now, and again whenever something has moved. For an address, for example:
    /// `net.until(|node| node.stack.addresses().next()).await`. `f` must not use the net.
    pub async fn until<R>(&self, mut f: impl FnMut(&mut E) -> Option<R>) -> R {
        let mut waiting = Waiting::new(self, QueueId::Progress);
        poll_fn(|cx| {
            let mut inner = self.inner.borrow_mut();
            inner.engine.set_now(self.clock.now());
            match f(&mut inner.engine) {
                Some(found) => Poll::Ready(found),
                None => {
                    waiting.wait(&mut inner.waits, cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Runs the engine until its device fails; may be called again then. Sockets wait while nothing runs it.
    ///
    /// Before the net sleeps it calls `listen`, which hands the waker to what shall wake the net: the device's interrupt, when
    /// a frame comes, when one has left, or when a full device has room. After that it arms the engine ([`Engine::arm`]), and
    /// does not sleep when that says that there is something already, nor beyond [`Engine::poll_timeout`], which it asks then. `listen` must not use the net's sockets.
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub async fn run(&self, mut listen: impl FnMut(&mut E, &Waker)) -> Result<Infallible, E::Error> {
        let mut busy = true;
        loop {
            let taken = self.take_in()?;
            if taken || busy {
                // The tasks do their work between input and output.
                yield_now().await;
            }
            busy = self.send_out()? || taken;
            if !busy {
                self.idle(&mut listen).await;
            }
        }
    }

    /// The first half of a turn: what has come, and who is woken by it. Returns whether anything had.
    fn take_in(&self) -> Result<bool, E::Error> {
        let input = self.inner.borrow_mut().engine.input(self.clock.now());
        // What came before an error counts.
        let mut busy = false;
        for _ in 0..PER_TURN {
            let mut inner = self.inner.borrow_mut();
            let Some(event) = inner.engine.net().poll_event() else { break };
            let woken = inner.waits.take(event);
            drop(inner);
            woken.into_iter().flatten().for_each(|waker| waker.wake());
            if let Source::Listener(listener) = event.source {
                self.wake_all(QueueId::Listener(listener));
            }
            busy = true;
        }
        let input = input?;
        busy |= input.moved || input.more;
        if busy {
            self.wake_all(QueueId::Progress);
        }
        Ok(busy)
    }

    /// The second half: packets out. Returns whether any left, or would in another turn.
    fn send_out(&self) -> Result<bool, E::Error> {
        let output = {
            let mut inner = self.inner.borrow_mut();
            inner.waits.take_calls();
            inner.engine.output(self.clock.now())?
        };
        if output.moved {
            self.wake_all(QueueId::Progress);
        }
        Ok(output.moved || output.left == Left::More)
    }

    fn wake_all(&self, queue: QueueId) {
        let places = self.inner.borrow_mut().waits.places(queue);
        for at in 0..places {
            let waker = self.inner.borrow_mut().waits.take_queued(queue, at);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Sleeps until the engine's deadline, its device, or a socket calls.
    async fn idle(&self, listen: &mut impl FnMut(&mut E, &Waker)) {
        let mut sleep = pin!(None);
        let mut due = None;
        poll_fn(|cx| {
            let deadline = {
                let mut inner = self.inner.borrow_mut();
                if !inner.waits.sleep(cx) {
                    return Poll::Ready(());
                }
                listen(&mut inner.engine, cx.waker());
                if inner.engine.arm(self.clock.now()) {
                    return Poll::Ready(());
                }
                // Arming may set one: until when a device lets frames wait, for example.
                inner.engine.poll_timeout()
            };
            if deadline != due {
                due = deadline;
                sleep.set(deadline.map(|at| self.clock.sleep_until(at)));
            }
            sleep.as_mut().as_pin_mut().map_or(Poll::Pending, |sleep| sleep.poll(cx))
        })
        .await;
    }
}

/// Lets the other tasks that are ready have their turn.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
