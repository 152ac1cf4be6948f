//! What the loop asks of an engine because it runs in a process of this host.

use super::record::Recorder;
use crate::status::collect::Observed;
use linerate_nic::{Capabilities, DeviceError};
use linerate_stack::{Letter, Message};
use linerate_transport::Engine;
use linerate_wire::units::Instant;
use std::io;
use std::net::IpAddr;
use std::ops::Add;
use std::os::fd::BorrowedFd;
use std::time::Duration;

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

impl Add for Figures {
    type Output = Figures;

    fn add(self, other: Figures) -> Figures {
        Figures {
            received_bytes: self.received_bytes + other.received_bytes,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_packets: self.received_packets + other.received_packets,
            sent_packets: self.sent_packets + other.sent_packets,
            connections: self.connections + other.connections,
            accepted: self.accepted + other.accepted,
            retransmits: self.retransmits + other.retransmits,
            memory_bytes: self.memory_bytes + other.memory_bytes,
        }
    }
}

/// What a loop sleeps on beside its engine at most: files, letters, orders to the process, who asks for the status.
pub const MOST_OTHERS: usize = 4;

/// An engine of this host: what it sleeps on, and what is told of it.
pub trait HostEngine: Engine<Error = DeviceError> {
    /// Sleeps until it has something to do, one of `others` ([`MOST_OTHERS`] at most) can be read, or the time is over. Which of
    /// these can is told as bits, the first one the lowest.
    fn sleep(&mut self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<u32>;

    /// Totals and gauges.
    fn figures(&mut self) -> Figures;

    /// Everything that reports tell of it.
    fn observed(&mut self) -> &mut dyn Observed;

    /// Lets a recorder look at the frames that pass, where there are any to see.
    fn watch(&mut self, _recorder: Recorder) {}

    /// Packets that wait for the device; `None` where that is the host's business.
    fn waiting(&self) -> Option<usize> {
        None
    }

    /// Changes the offloads that may be used; returns what the device does from now on.
    fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError>;

    /// Addresses that peers can reach now; `None` where that is the host's business.
    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        None
    }

    /// The next letter to the engines of other queues.
    fn poll_letter(&mut self) -> Option<Letter> {
        None
    }

    /// Takes a letter of another queue's.
    fn handle_message(&mut self, _now: Instant, _message: Message) {}

    /// A letter found no room.
    fn handle_lost_letter(&mut self) {}
}
