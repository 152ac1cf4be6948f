//! The host's own sockets as an engine.

use super::engine::{Engine, Figures};
use crate::status::collect::Observed;
use linerate_linux::files::AnyFiles;
use linerate_linux::kernel::KernelTransport;
use linerate_linux::poller::PollFlags;
use linerate_nic::{Capabilities, DeviceError};
use linerate_transport::{FileDone, Transport};
use linerate_wire::units::Instant;
use std::os::fd::{AsFd, BorrowedFd};

impl Engine for KernelTransport {
    fn net(&mut self) -> &mut dyn Transport {
        self
    }

    fn input(&mut self, now: Instant) -> Result<bool, DeviceError> {
        self.turn(now);
        Ok(self.pending())
    }

    fn output(&mut self, now: Instant, _files: &mut AnyFiles) -> Result<bool, DeviceError> {
        if self.pending() {
            self.turn(now);
            return Ok(true);
        }
        Ok(false)
    }

    fn handle_file(&mut self, _now: Instant, done: FileDone) {
        // Kernel sockets take ranges from the descriptor and submit nothing.
        log::debug!("a file operation came back that nobody asked for: {done:?}");
    }

    fn poll_timeout(&self) -> Option<Instant> {
        KernelTransport::poll_timeout(self)
    }

    fn fd(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.as_fd(), PollFlags::IN)
    }

    fn figures(&mut self) -> Figures {
        let counters = self.counters();
        Figures {
            received_bytes: counters.bytes_received,
            sent_bytes: counters.bytes_sent,
            received_packets: counters.datagrams_received,
            sent_packets: counters.datagrams_sent,
            connections: counters.connections,
            accepted: counters.accepted,
            retransmits: 0,
            memory_bytes: counters.memory,
        }
    }

    fn observed(&mut self) -> &mut dyn Observed {
        self
    }

    fn memory_used(&self) -> u64 {
        KernelTransport::memory_used(self) as u64
    }

    fn refused(&self) -> u64 {
        self.counters().accept_refused
    }

    fn set_offloads(&mut self, _allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        // The kernel uses what its interfaces have.
        Ok(Capabilities::NONE)
    }

    fn is_quiet(&self) -> bool {
        self.unfinished() == 0
    }

    fn cut_off(&mut self, _now: Instant) -> u64 {
        self.abort_all() as u64
    }
}
