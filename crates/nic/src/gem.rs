//! The driver for the Cadence GEM, the Ethernet controller of the Zynq UltraScale+ and of many others: two queues, gathering,
//! checksums, screeners.
//!
//! Like [`mcdma`](crate::mcdma) it knows nothing of where it runs: a [`Bus`](crate::Bus) reads and writes registers and
//! descriptor memory, a [`Dma`](crate::Dma) tells bus addresses. It is written after AMD UG1085 and UG1087 (module GEM), whose
//! names of registers it uses, and IEEE 802.3 clause 22 for the PHY.
//!
//! | file | concept |
//! |---|---|
//! | `regs`, `descriptor` | registers; descriptors of two or four words |
//! | `mdio` | the PHY: is it there, is the link up, how fast |
//! | `engine` | where the rings lie: told to the device while it runs |
//! | `receive`, `transmit` | who owns which buffer when |
//! | [`screener`] | which frames go to the second queue |
//! | [`queue`], [`control`], [`interrupt`] | the contracts of this crate, and what the host calls |
//! | [`settings`], [`open`](mod@open) | from a board and some memory to control and queues |
//!
//! # One queue, or two
//!
//! [`Gem::open`] gives an interface with one queue. With two, [`open`](fn@open) returns a [`Control`] and a [`StoppedQueue`]
//! for each; a queue goes to its core before it has buffers, and is started there. The core that owns the control makes a
//! [`Gem`] of it and its queue ([`Gem::join`]), the other a [`Member`](crate::Member). Queue 1 gets the frames that a
//! [`Screener`] sends to it, and its packets leave before those of queue 0. Where its interrupt reaches no processor
//! ([`Settings::priority_poll`]) its owner looks at it when [`QueuePair::poll_timeout`] says, and is not told that it may
//! sleep for longer.
//!
//! # What goes wrong
//!
//! | what happens | what the driver does |
//! |---|---|
//! | underrun, retry limit, a packet that broke off | the transmit ring is begun anew; what it had is reported, not sent again |
//! | the bus refused an access (HRESP) | both rings of the queue |
//! | overrun | the device has dropped the frame and goes on: it is counted |
//! | no buffer | counted; the device is told when there is one again |
//! | the link comes or goes, be it between two looks | transmit rings of all queues |
//! | a packet does not come back for 5 s with the link up | the transmit ring |
//! | a descriptor comes back before an older one | the receive ring |
//! | the device does not take a ring | [`DeviceError::Io`] from then on; its memory is not given to anybody |

pub mod control;
pub mod counters;
mod descriptor;
mod engine;
mod error;
pub mod interrupt;
mod mdio;
pub mod open;
pub mod queue;
mod receive;
mod regs;
pub mod screener;
pub mod settings;
mod transmit;

use crate::bus::Platform;
use crate::device::{Device, DeviceError};
use crate::frame::RxBatch;

use crate::pass_on;
use crate::pool::Pool;
use crate::queue::QueuePair;
use core::fmt;
use linerate_wire::units::Instant;

pub use control::Control;
pub use counters::QueueStats;
pub use error::OpenError;
pub use interrupt::Interrupt;
pub use open::{is_gem, open};
pub use queue::{Queue, StoppedQueue};
pub use screener::{Compare, Condition, Origin, Screener, ScreenerError, Value};
pub use settings::{ScreenerCounts, Settings, memory_len};

/// The interface: control and first queue, with the link looked at when it is time to.
///
/// Dropping it stops the device.
pub struct Gem<P: Platform> {
    // Dropped in this order: the device lets go of buffers while it still runs.
    queue: Queue<P>,
    control: Control<P>,
}

impl<P: Platform> Gem<P> {
    /// Resets the device, finds the PHY and starts one queue.
    ///
    /// `memory` is the bus address and the length of descriptor memory ([`memory_len`]), seen by both sides without a cache.
    /// Frames are received into buffers of `receive`, of at least 1,536 bytes each; headers are copied into buffers of
    /// `headers`, of at least 160 bytes, of which one for each descriptor of the transmit ring is taken for good.
    ///
    /// # Errors
    /// What was found, and what was expected; also for settings with two queues, for which there is [`open`](fn@open).
    pub fn open(
        board: P,
        memory: (u64, usize),
        receive: Pool,
        headers: &Pool,
        settings: &Settings,
    ) -> Result<Self, OpenError> {
        if settings.queues != 1 {
            return Err(OpenError::Queues { want: settings.queues, have: 1 });
        }
        let (control, queues) = open(board, memory, settings)?;
        let first = queues.into_iter().next().ok_or(OpenError::Queues { want: 1, have: 0 })?;
        Ok(Gem::join(control, first.start(receive, headers)?))
    }

    /// The interface of the core that owns the control and this queue.
    pub fn join(control: Control<P>, queue: Queue<P>) -> Self {
        Gem { queue, control }
    }

    /// What the queue has counted.
    pub fn stats(&self) -> QueueStats {
        self.queue.stats()
    }

    /// For the handler of the queue's interrupt.
    pub fn interrupt(&self) -> Interrupt<P> {
        self.queue.interrupt()
    }

    /// The control: screeners, the PHY, how often the link came or went.
    pub fn control(&self) -> &Control<P> {
        &self.control
    }

    /// The control, to change something.
    pub fn control_mut(&mut self) -> &mut Control<P> {
        &mut self.control
    }
}

impl<P: Platform> Device for Gem<P> {
    pass_on!(control: all of Device);
}

impl<P: Platform> QueuePair for Gem<P> {
    pass_on!(queue: enabled, transmit, poll_completion, waiting);

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.control.poll(now);
        self.queue.receive(now, batch)
    }

    fn arm(&mut self, now: Instant) -> bool {
        let has_changed = self.control.poll(now);
        self.queue.arm(now) || has_changed
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let look = self.control.next_look();
        Some(self.queue.poll_timeout().map_or(look, |at| at.min(look)))
    }
}

impl<P: Platform> fmt::Debug for Gem<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gem").field("control", &self.control).field("queue", &self.queue).finish()
    }
}
