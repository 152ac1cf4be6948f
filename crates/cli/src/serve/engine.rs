//! What the loop drives: a transport with its input and output.

use crate::status::collect::Observed;
use linerate_linux::files::AnyFiles;
use linerate_linux::poller::PollFlags;
use linerate_nic::{Capabilities, DeviceError};
use linerate_transport::{FileDone, Transport};
use linerate_wire::units::Instant;
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

/// A transport and what carries it.
///
/// One turn of the loop: [`Engine::input`], then events and file completions to the services, then
/// [`Engine::output`]. When nothing happened in a turn, the loop sleeps on [`Engine::fd`] until
/// [`Engine::poll_timeout`].
pub trait Engine {
    /// The sockets.
    fn net(&mut self) -> &mut dyn Transport;

    /// Takes in what has arrived, within a budget; returns whether anything had.
    fn input(&mut self, now: Instant) -> Result<bool, DeviceError>;

    /// Sends what is queued; returns whether anything was.
    fn output(&mut self, now: Instant, files: &mut AnyFiles) -> Result<bool, DeviceError>;

    /// Takes a finished file operation that the transport asked for.
    fn handle_file(&mut self, now: Instant, done: FileDone);

    /// When [`Engine::input`] must be called at the latest.
    fn poll_timeout(&self) -> Option<Instant>;

    /// What to sleep on.
    fn fd(&self) -> (BorrowedFd<'_>, PollFlags);

    /// Totals and gauges.
    fn figures(&mut self) -> Figures;

    /// Everything that reports tell of it.
    fn observed(&mut self) -> &mut dyn Observed;

    /// Bytes of memory that connections take now: what is charged to sockets, and the table of connections.
    fn memory_used(&self) -> u64;

    /// Newcomers reset since the start because there was no place for them, and no server heard of them.
    fn refused(&self) -> u64;

    /// Changes the offloads that may be used; returns what the device does from now on.
    fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError>;

    /// Addresses that peers can reach now; `None` where that is the host's business.
    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        None
    }

    /// Whether nothing would be lost if the process ended now.
    fn is_quiet(&self) -> bool;

    /// Resets what is still under way and sees to it that the resets leave; returns how many connections these were.
    fn cut_off(&mut self, now: Instant) -> u64;
}
