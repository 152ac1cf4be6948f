//! Our own stack on a device of this host as an engine.

use super::engine::{Figures, HostEngine, MOST_OTHERS};
use super::record::Recorder;
use crate::status::collect::Observed;
use linerate_linux::netconfig::LinkWatch;
use linerate_linux::packet::PacketDevice;
use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::tap::Tap;
use linerate_linux::uio::UioDevice;
use linerate_linux::xdp::XdpDevice;
use linerate_linux::{DeviceStats, RxPools};
use linerate_nic::{Capabilities, DeviceError, Interface};
use linerate_stack::{Letter, Message, Node};
use linerate_transport::Engine as _;
use linerate_wire::units::Instant;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Before a device is tried again that does not tell when it has room.
const JAM_PAUSE: Duration = Duration::from_millis(1);

/// A device that can be slept on and counts its bytes.
pub trait HostDevice: Interface + AsFd {
    /// What it counted since it was opened.
    fn counted(&mut self) -> DeviceStats;

    /// Whether receiving stopped because too few buffers were free. Where the device keeps buffers of its own, it does not: what comes
    /// while there are no others is dropped, and nothing waits.
    fn is_starved(&self) -> bool {
        false
    }

    /// Whether what was full had no descriptor that tells when it has room.
    fn is_jammed(&self) -> bool {
        false
    }

    /// Frames that may wait for us in the kernel.
    fn queue_len(&self) -> usize;

    /// The buffers that it receives into.
    fn pools(&self) -> &RxPools;

    /// Whether the host's interface under it is up, where that is watched.
    fn link_watch(&self) -> Option<&LinkWatch> {
        None
    }

    /// Lets a recorder look at what passes, from now on; none but [`Watched`](super::record::watched::Watched) do.
    fn watch(&mut self, _recorder: Recorder) {}
}

/// In an implementation of [`HostDevice`] by a wrapper: passes what it does not change on to a field.
macro_rules! pass_on_host {
    ($field:ident) => {
        fn counted(&mut self) -> linerate_linux::DeviceStats {
            self.$field.counted()
        }

        fn is_starved(&self) -> bool {
            self.$field.is_starved()
        }

        fn is_jammed(&self) -> bool {
            self.$field.is_jammed()
        }

        fn queue_len(&self) -> usize {
            self.$field.queue_len()
        }

        fn pools(&self) -> &linerate_linux::RxPools {
            self.$field.pools()
        }
    };
}
pub(super) use pass_on_host;

impl HostDevice for Tap {
    fn counted(&mut self) -> DeviceStats {
        self.stats()
    }

    fn is_starved(&self) -> bool {
        self.starved()
    }

    fn queue_len(&self) -> usize {
        Self::queue_len(self)
    }

    fn pools(&self) -> &RxPools {
        Self::pools(self)
    }
}

impl HostDevice for PacketDevice {
    fn counted(&mut self) -> DeviceStats {
        self.stats()
    }

    fn is_starved(&self) -> bool {
        self.starved()
    }

    fn is_jammed(&self) -> bool {
        self.jammed()
    }

    fn queue_len(&self) -> usize {
        Self::queue_len(self)
    }

    fn pools(&self) -> &RxPools {
        Self::pools(self)
    }
}

impl HostDevice for XdpDevice {
    fn counted(&mut self) -> DeviceStats {
        self.stats()
    }

    fn queue_len(&self) -> usize {
        Self::queue_len(self)
    }

    fn pools(&self) -> &RxPools {
        Self::pools(self)
    }
}

impl HostDevice for UioDevice {
    fn counted(&mut self) -> DeviceStats {
        self.stats()
    }

    fn queue_len(&self) -> usize {
        Self::queue_len(self)
    }

    fn pools(&self) -> &RxPools {
        Self::pools(self)
    }
}

/// The receive buffers of a server for a device of this MTU: five eighths of its memory. The stack's pools and tables have
/// the rest.
pub fn receive_pools(memory: u64, mtu: usize) -> RxPools {
    RxPools::for_memory(buffer_memory(memory), mtu)
}

/// What of a server's memory the buffers of its device have.
pub fn buffer_memory(memory: u64) -> usize {
    usize::try_from(memory / 8 * 5).unwrap_or(usize::MAX)
}

impl<D: HostDevice> HostEngine for Node<D> {
    fn sleep(&mut self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<u32> {
        let device = self.port.device();
        let pools = device.pools();
        // Frames that wait for a buffer would wake the loop for nothing until one comes back.
        let starved = device.is_starved() && pools.large.free() + pools.small.free() == 0;
        let mut flags = if starved { PollFlags::empty() } else { PollFlags::IN };
        let mut timeout = timeout;
        if self.waits_for_room() {
            if device.is_jammed() {
                timeout = Some(timeout.map_or(JAM_PAUSE, |timeout| timeout.min(JAM_PAUSE)));
            } else {
                flags |= PollFlags::OUT;
            }
        }
        let own = device.as_fd();
        let link = device.link_watch();
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: [PollFd<'_>; MOST_OTHERS + 2] =
            std::array::from_fn(|place| readable(*others.get(place).unwrap_or(&own)));
        let count = others.len().min(MOST_OTHERS);
        fds[count] = PollFd::from_borrowed_fd(own, flags);
        if let Some(link) = link {
            fds[count + 1] = readable(link.as_fd());
        }
        poller::wait(&mut fds[..count + 1 + usize::from(link.is_some())], timeout)?;
        if let Some(link) = link.filter(|_| !fds[count + 1].revents().is_empty()) {
            link.look();
        }
        let ready = (0..count).filter(|place| !fds[*place].revents().is_empty());
        Ok(ready.fold(0, |all, place| all | 1 << place))
    }

    fn figures(&mut self) -> Figures {
        let traffic = self.traffic();
        Figures {
            received_bytes: traffic.received_bytes,
            sent_bytes: traffic.sent_bytes,
            received_packets: traffic.received_packets,
            sent_packets: traffic.sent_packets,
            connections: self.stack.memory().connections as u64,
            accepted: self.stack.counters().tcp_established,
            retransmits: traffic.retransmits,
            memory_bytes: self.memory_used() as u64,
        }
    }

    fn observed(&mut self) -> &mut dyn Observed {
        self
    }

    fn watch(&mut self, recorder: Recorder) {
        self.port.device_mut().watch(recorder);
    }

    fn waiting(&self) -> Option<usize> {
        Some(self.waiting_packets())
    }

    fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        self.port.set_offloads(allowed)
    }

    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        Some(self.stack.addresses().map(|cidr| cidr.address()).collect())
    }

    fn poll_letter(&mut self) -> Option<Letter> {
        self.stack.poll_letter()
    }

    fn handle_message(&mut self, now: Instant, message: Message) {
        self.stack.handle_message(now, message);
    }

    fn handle_lost_letter(&mut self) {
        self.stack.handle_lost_letter();
    }
}
