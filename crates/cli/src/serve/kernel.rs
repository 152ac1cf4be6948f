//! The host's own sockets as an engine.

use super::engine::{Figures, HostEngine};
use crate::status::collect::Observed;
use linerate_linux::kernel::KernelTransport;
use linerate_nic::{Capabilities, DeviceError};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

impl HostEngine for KernelTransport {
    fn sleep(&mut self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<u32> {
        KernelTransport::sleep(self, others, timeout)
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

    fn set_offloads(&mut self, _allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        // The kernel uses what its interfaces have.
        Ok(Capabilities::NONE)
    }
}
