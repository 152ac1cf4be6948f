//! What the loop asks of an engine because it runs in a process of this host.

use crate::status::collect::Observed;
use linerate_linux::poller::PollFlags;
use linerate_nic::{Capabilities, DeviceError};
use linerate_transport::Engine;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// Totals since the start, and gauges, for the statistics line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Bytes received: frames of a device, payload of kernel sockets.
    pub received_bytes: u64,
    /// Bytes sent, counted alike.
    pub sent_bytes: u64,
    /// Frames (own stack) received; 0 where the kernel does not tell.
    pub received_packets: u64,
    /// Frames sent.
    pub sent_packets: u64,
    /// Connections now.
    pub connections: u64,
    /// Connections that came since the start.
    pub accepted: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Bytes that connections take, their table included: now, or in the line of figures the most since the last one.
    pub memory_bytes: u64,
}

/// An engine of this host: what it sleeps on, and what is told of it.
pub trait HostEngine: Engine<Error = DeviceError> {
    /// What to sleep on.
    fn fd(&self) -> (BorrowedFd<'_>, PollFlags);

    /// Totals and gauges.
    fn figures(&mut self) -> Figures;

    /// Everything that reports tell of it.
    fn observed(&mut self) -> &mut dyn Observed;

    /// Changes the offloads that may be used; returns what the device does from now on.
    fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError>;

    /// Addresses that peers can reach now; `None` where that is the host's business.
    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        None
    }
}
