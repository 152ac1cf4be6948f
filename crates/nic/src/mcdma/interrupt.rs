//! What the interrupt handler of a queue does.

use crate::bus::Bus;
use crate::mcdma::channel::{Channel, Direction};

/// The interrupt of one queue. It lives in the handler, apart from the queue: the two share nothing but registers. The handler
/// runs on the queue's core, and may come between any two accesses of the queue's.
#[derive(Clone, Debug)]
pub struct Interrupt<P> {
    receive: Channel<P>,
    transmit: Channel<P>,
}

impl<P: Bus + Clone> Interrupt<P> {
    pub(crate) fn new(bus: &P, queue: u16) -> Self {
        Interrupt {
            receive: Channel::new(bus.clone(), Direction::Receive, queue),
            transmit: Channel::new(bus.clone(), Direction::Transmit, queue),
        }
    }

    /// Acknowledges what has come and lets nothing through until the queue is armed again. True if there was something: the
    /// loop is to be woken. False for an interrupt without a cause, or with one elsewhere on a shared line.
    ///
    /// It does not look at the rings. What was acknowledged here is found by the loop, which looks at both rings
    /// whatever woke it.
    pub fn handle(&self) -> bool {
        let come = self.receive.acknowledge() | self.transmit.acknowledge();
        if come == 0 {
            return false;
        }
        self.receive.let_through(false);
        self.transmit.let_through(false);
        true
    }
}
