//! The ring of a trace where tasks and interrupts share it.

use super::{Event, Interrupt, Ring, Tracer, What};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};
use critical_section::Mutex;
use linerate_wire::units::Instant;

type Clock = fn() -> Instant;

/// A ring, and the clock that its events are timed by.
pub struct Shared {
    /// All that is looked at while nothing is noted.
    is_on: &'static AtomicBool,
    ring: Mutex<RefCell<Ring>>,
    clock: Mutex<Cell<Option<Clock>>>,
}

impl Shared {
    /// Without room; `is_on` is this trace's alone to write.
    pub const fn new(is_on: &'static AtomicBool) -> Self {
        Shared { is_on, ring: Mutex::new(RefCell::new(Ring::new())), clock: Mutex::new(Cell::new(None)) }
    }

    /// Makes the ring; before anything is noted.
    pub fn prepare(&self, bytes: usize, clock: Clock) {
        let ring = Ring::with_bytes(bytes);
        critical_section::with(|cs| {
            self.clock.borrow(cs).set(Some(clock));
            // The one that it replaces has no memory to be freed.
            *self.ring.borrow_ref_mut(cs) = ring;
        });
    }

    /// An interrupt begins; says when, if anybody wants to know.
    pub fn begin(&self) -> Option<Instant> {
        self.is_on().then(|| self.now())
    }

    /// It ends.
    pub fn end(&self, interrupt: Interrupt, begun: Option<Instant>) {
        if let Some(from) = begun {
            let event = Event::new(What::Interrupt(interrupt), from, self.now());
            self.with(&mut |ring| ring.push(event));
        }
    }

    /// The processor goes over to the task of this number.
    pub fn run_task(&self, number: u16) {
        if self.is_on() {
            let now = self.now();
            self.with(&mut |ring| ring.run_task(number, now));
        }
    }
}

impl Tracer for Shared {
    fn now(&self) -> Instant {
        let clock = critical_section::with(|cs| self.clock.borrow(cs).get());
        clock.map_or(Instant::ZERO, |clock| clock())
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    fn switch(&self, is_on: bool) {
        let now = self.now();
        critical_section::with(|cs| {
            let is_on = self.ring.borrow_ref_mut(cs).switch(is_on, now);
            self.is_on.store(is_on, Ordering::Relaxed);
        });
    }

    fn with(&self, work: &mut dyn FnMut(&mut Ring)) {
        critical_section::with(|cs| work(&mut self.ring.borrow_ref_mut(cs)));
    }
}
