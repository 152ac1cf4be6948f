//! Kernel sockets driven like any other engine.

use super::KernelTransport;
use linerate_nic::DeviceError;
use linerate_transport::{Engine, Input, Left, Output, Transport};
use linerate_wire::units::Instant;

/// Input and output are the kernel's: both halves of a turn move what its sockets have and take. Ranges of files are
/// sent from their descriptors, so no file data is asked for.
impl Engine for KernelTransport {
    type Error = DeviceError;

    fn net(&mut self) -> &mut dyn Transport {
        self
    }

    fn input(&mut self, now: Instant) -> Result<Input, DeviceError> {
        self.turn(now);
        Ok(Input { moved: self.pending(), more: self.has_work() })
    }

    fn output(&mut self, now: Instant) -> Result<Output, DeviceError> {
        let moved = self.pending();
        if moved {
            // What has come meanwhile is the next turn's.
            self.work(now);
            self.watch_accepted(false);
        }
        let left = if self.pending() { Left::More } else { Left::Nothing };
        Ok(Output { moved, left })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        KernelTransport::poll_timeout(self)
    }

    fn waits_for_room(&self) -> bool {
        // The descriptor tells of room too.
        false
    }

    fn memory_used(&self) -> usize {
        KernelTransport::memory_used(self)
    }

    fn refused(&self) -> u64 {
        self.counters().accept_refused
    }

    fn unfinished(&self) -> usize {
        KernelTransport::unfinished(self)
    }

    fn abort_all(&mut self, _now: Instant) -> usize {
        KernelTransport::abort_all(self)
    }
}
