//! An interface of the machine whose frames come to us before its kernel has made packets of them: AF_XDP sockets, with a small
//! program in the interface's driver that picks our frames.
//!
//! As on a packet socket, our stack has an Ethernet address of its own, to which the interface listens in promiscuous mode. Frames
//! to it go to us, and so do those to groups, broadcast among them: the kernel no longer sees ARP requests and neighbour
//! solicitations there, so it can keep its own addresses on this interface only for those who know its Ethernet address. An
//! interface, or a pair, of its own is the usual place.
//!
//! Received frames lie in the buffers that the stack gets: between the ring and the stack nothing is copied. Frames to transmit
//! are copied once into memory that the kernel shares, as payload lies where files and pages are. Where the driver does zero-copy, that is
//! all; otherwise (veth) the kernel copies each frame on its side.
//!
//! # Checksums and super-frames
//!
//! AF_XDP says nothing of a received frame's checksum, so software verifies it. A frame that this machine sent itself, as over
//! veth, may have the sum of its pseudo-header where its checksum would be, for a card to complete: on interfaces
//! that are software such a frame is taken for intact, as it never was on a wire. There are no
//! super-frames: Linux stops the other end of a veth pair from sending them.

mod error;
mod partial;
mod program;
mod queue;
mod receive;
#[cfg(test)]
mod tests;
mod transmit;

pub use error::XdpError;
pub use queue::{MOST_QUEUES, XdpOptions, XdpQueue};

use crate::MIN_LARGE_BUFFER;
use crate::rx::RxPools;
use crate::stats::DeviceStats;
use crate::sys::xdp::{self as sys, Drops};
use crate::tx::{self, Completions};
use linerate_nic::{
    Capabilities, ChecksumStatus, Device, DeviceError, MacAddr, Pool, QueuePair, RxBatch, RxMeta, TxQueue,
    TxToken,
};
use linerate_wire::units::Instant;
use queue::Shared;
use receive::Receiver;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;
use transmit::{Abilities, Sender};

/// Most times that one call of `transmit` fills the ring and lets the kernel empty it.
const ROUNDS: usize = 8;

/// Most system calls for the frames of one round: a kernel that sends 32 at once needs them.
const MOST_CALLS: usize = 128;

/// A queue of an interface, by an AF_XDP socket. The program stays on the interface for as long as one of its queues lives.
///
/// Wait on it with `poll` ([`AsFd`]): readable when a frame waits, writable when the ring has room.
pub struct XdpDevice {
    fd: OwnedFd,
    receiver: Receiver,
    sender: Sender,
    pools: RxPools,
    capabilities: Capabilities,
    enabled: Capabilities,
    completions: Completions,
    stats: DeviceStats,
    /// What the kernel had dropped when it was asked last.
    dropped: Drops,
    /// Nothing has passed since the last sleep.
    idle: bool,
    gone: bool,
    shared: Arc<Shared>,
}

impl XdpDevice {
    fn over(queue: XdpQueue, enabled: Capabilities) -> Self {
        let XdpQueue { fd, rings, area, plan, fills_checksums, shared, .. } = queue;
        let base = area.address();
        let (receive, transmit) = area.split(plan.buffers.0 * plan.chunk);
        let pool = |area: crate::sys::map::Mapping| {
            // Cut so that whole buffers fit, at multiples of their size: a mapping begins at a page.
            Pool::over(area.into_bytes(), plan.chunk, plan.chunk).unwrap_or_else(|_| Pool::new(0, plan.chunk))
        };
        let receive = pool(receive);
        let abilities = Abilities { pieces: plan.has_pieces(), checksums: fills_checksums };
        let sender = Sender::new(
            rings.transmit,
            rings.complete,
            &pool(transmit),
            plan.buffers.0 * plan.chunk,
            abilities,
        );
        let receiver =
            Receiver::new(rings.receive, rings.fill, receive.clone(), base, plan.pieces, plan.lent);
        let capabilities = Capabilities {
            tx_checksum4: fills_checksums,
            tx_checksum6: fills_checksums,
            gather: true,
            ..Capabilities::NONE
        };
        XdpDevice {
            fd,
            receiver,
            sender,
            pools: RxPools { small: receive, large: Pool::new(0, MIN_LARGE_BUFFER) },
            capabilities,
            enabled: enabled.and(capabilities),
            completions: Completions::new(),
            stats: DeviceStats::default(),
            dropped: Drops::default(),
            idle: false,
            gone: false,
            shared,
        }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Counters, the kernel's own drops included.
    pub fn stats(&mut self) -> DeviceStats {
        // Where it cannot be asked any more, what it said last stands.
        let now = sys::drops(self.fd.as_fd()).unwrap_or(self.dropped);
        let before = std::mem::replace(&mut self.dropped, now);
        self.stats.rx_kernel_dropped +=
            (now.dropped + now.ring_full).saturating_sub(before.dropped + before.ring_full);
        self.stats.tx_refused += now.invalid.saturating_sub(before.invalid);
        self.stats
    }

    /// Frames that may wait for us in the ring. What comes then is lost.
    pub fn queue_len(&self) -> usize {
        self.receiver.most()
    }

    /// The buffers that it receives into. There are no large ones: a long frame lies in several.
    pub fn pools(&self) -> &RxPools {
        &self.pools
    }

    /// Shows the kernel what is in the ring, and lets it send.
    fn kick(&mut self) -> Result<(), DeviceError> {
        self.sender.publish();
        for _ in 0..MOST_CALLS {
            let before = self.sender.pending();
            if before == 0 || !self.sender.needs_wakeup() {
                return Ok(());
            }
            match sys::wake_transmit(self.fd.as_fd()) {
                Ok(()) => return Ok(()),
                // It has sent as many as one call sends; or its queue is full, and nothing moves.
                Err(Errno::AGAIN) if self.sender.pending() < before => {}
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::BUSY | Errno::NETDOWN | Errno::NOMEM) => {
                    return Ok(());
                }
                Err(error) => return self.fail(error),
            }
        }
        Ok(())
    }

    /// What an error means: an interface that went down may come up again, one that was removed does not.
    fn fail(&mut self, error: Errno) -> Result<(), DeviceError> {
        match error {
            Errno::NETDOWN | Errno::NXIO | Errno::NODEV | Errno::BADF => {
                if self.shared.is_there() {
                    return Ok(());
                }
                self.gone = true;
                Err(DeviceError::Gone)
            }
            other => Err(tx::device_error(other)),
        }
    }
}

impl AsFd for XdpDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Device for XdpDevice {
    fn mac(&self) -> MacAddr {
        self.shared.mac
    }

    fn mtu(&self) -> usize {
        self.shared.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(self.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        Ok(())
    }
}

impl QueuePair for XdpDevice {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let before = batch.len();
        let is_software = self.shared.is_software;
        self.receiver.receive(batch, &mut self.stats, |frame| {
            // The device's word, whatever is enabled: nobody could verify a sum that is not complete.
            let is_intact = is_software && partial::is_partial(frame);
            let checksum = if is_intact { ChecksumStatus::Good } else { ChecksumStatus::Unchecked };
            RxMeta { checksum, ..RxMeta::default() }
        });
        let received = batch.len() - before;
        if received > 0 {
            self.idle = false;
            if self.receiver.needs_wakeup() {
                // An error shows again when a frame is sent, or before the next sleep.
                let _ = sys::wake_receive(self.fd.as_fd());
            }
        } else if self.gone {
            return Err(DeviceError::Gone);
        }
        Ok(received)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.sender.reap();
        let mut taken = 0;
        for _ in 0..ROUNDS {
            let sender = &mut self.sender;
            taken +=
                tx::drain(now, queue, &mut self.completions, &mut self.stats, |queue| sender.put(queue))?;
            let kicked = self.kick();
            let freed = self.sender.reap();
            // The caller hears of the packets that left first, and of the failure at the next call.
            match kicked {
                Err(_) if taken > 0 => break,
                other => other?,
            }
            if queue.is_empty() || freed == 0 {
                break;
            }
        }
        self.idle &= taken == 0;
        Ok(taken)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop()
    }

    /// Frames that the kernel had no room for are shown to it again. Where nothing has passed since the last sleep, it is asked
    /// whether the interface is still there, which it does not tell by itself.
    fn arm(&mut self, _now: Instant) -> bool {
        if self.receiver.has_frames() {
            return true;
        }
        if self.sender.pending() > 0 && self.kick().is_err() {
            return true;
        }
        self.sender.reap();
        if std::mem::replace(&mut self.idle, true) && !self.gone {
            self.gone = !self.shared.is_there();
        }
        self.gone
    }
}
