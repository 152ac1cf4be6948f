//! A network interface in programmable logic, driven from a process: `linerate_nic::mcdma` with registers and interrupts by UIO
//! and buffers by u-dma-buf.
//!
//! The kernel maps the registers for us and turns an interrupt into something to `poll` for; a DMA buffer is memory in one piece whose
//! bus address is known. Payload that the stack holds lies elsewhere and is copied into that buffer on its way out.
//!
//! # Interrupts of several queues
//!
//! A UIO device has one line for all. Each queue opens the device for itself and is told of each interrupt; it lets its own through
//! only while it sleeps, so that the line falls when all that were woken have looked. The kernel shuts the line with each
//! interrupt, and whoever goes to sleep opens it again.

mod board;
mod error;
mod find;
mod queue;

pub use board::UioBoard;
pub use error::UioError;
pub use queue::{UioOptions, UioQueue};

use crate::rx::RxPools;
use crate::stats::DeviceStats;
use linerate_nic::mcdma::{Control, Queue};
use linerate_nic::{
    Capabilities, Device, DeviceError, Filter, Joined, LinkState, MacAddr, Member, PacingConfig, Pool,
    QueuePair, RxBatch, Steering, TxQueue, TxToken,
};
use linerate_wire::units::Instant;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// What buffers begin at a multiple of: a cache line.
const LINE: usize = 64;

/// The queue, with the control if it is the first.
#[derive(Debug)]
enum Seat {
    Owner(Joined<Control<UioBoard>, Queue<UioBoard>>),
    Member(Member<Queue<UioBoard>>),
}

/// A queue of the interface as a device. Wait on it with `poll` ([`AsFd`]) once it is armed: it is readable after an interrupt.
#[derive(Debug)]
pub struct UioDevice {
    seat: Seat,
    interrupts: OwnedFd,
    pools: RxPools,
    capabilities: Capabilities,
    /// Interrupts are let through.
    is_armed: bool,
}

/// Calls a method of the device, whichever it is.
macro_rules! seated {
    ($self:ident, $device:ident => $call:expr) => {
        match &$self.seat {
            Seat::Owner($device) => $call,
            Seat::Member($device) => $call,
        }
    };
    (mut $self:ident, $device:ident => $call:expr) => {
        match &mut $self.seat {
            Seat::Owner($device) => $call,
            Seat::Member($device) => $call,
        }
    };
}

impl UioDevice {
    /// Opens an interface with one queue.
    pub fn open(options: &UioOptions) -> Result<Self, UioError> {
        let queues = UioQueue::open_all(&UioOptions { queues: 1, ..options.clone() })?;
        match queues.into_iter().next() {
            Some(queue) => queue.into_device(),
            None => Err(UioError::Open(linerate_nic::mcdma::OpenError::Queues { want: 1, have: 0 })),
        }
    }

    fn over(queue: UioQueue) -> Result<Self, UioError> {
        let pool = |memory, size| {
            // The parts were cut so that many fit.
            Pool::over(memory, size, LINE).unwrap_or_else(|_| Pool::new(0, size))
        };
        let (receive, transmit) =
            (pool(queue.receive, queue.buffer_size), pool(queue.transmit, queue.buffer_size));
        let started = queue.queue.start(receive.clone(), transmit).map_err(UioError::Start)?;
        let seat = match queue.control {
            Some(control) => Seat::Owner(Joined { control, queue: started }),
            None => {
                let about = About { mac: queue.mac, mtu: queue.mtu, capabilities: queue.capabilities };
                Seat::Member(Member::new(started, &about))
            }
        };
        let device = UioDevice {
            seat,
            interrupts: queue.interrupts,
            pools: RxPools { small: receive, large: Pool::new(0, crate::MIN_LARGE_BUFFER) },
            capabilities: queue.capabilities,
            is_armed: false,
        };
        device.open_line().map_err(|error| UioError::NoInterruptControl(error.into()))?;
        Ok(device)
    }

    /// The counters.
    pub fn stats(&self) -> DeviceStats {
        let stats = match &self.seat {
            Seat::Owner(joined) => joined.queue.stats(),
            Seat::Member(member) => member.queue.stats(),
        };
        DeviceStats {
            rx_frames: stats.received,
            rx_bytes: stats.received_bytes,
            rx_super_frames: stats.received_joined,
            rx_cut: stats.receive_no_buffer + stats.receive_no_list,
            rx_refused: stats.receive_errors + stats.receive_length,
            tx_frames: stats.sent,
            tx_bytes: stats.sent_bytes,
            tx_super_frames: stats.sent_split,
            tx_full: stats.ring_full + stats.no_header_buffer,
            tx_refused: stats.refused + stats.transmit_errors,
            ..DeviceStats::default()
        }
    }

    /// What the driver counts.
    pub fn queue_stats(&self) -> linerate_nic::mcdma::QueueStats {
        match &self.seat {
            Seat::Owner(joined) => joined.queue.stats(),
            Seat::Member(member) => member.queue.stats(),
        }
    }

    /// Frames that may wait for us in the ring.
    pub fn queue_len(&self) -> usize {
        queue::RING
    }

    /// The buffers that it receives into. There are no large ones: what the hardware joins lies in several.
    pub fn pools(&self) -> &RxPools {
        &self.pools
    }

    /// Reads the interrupts that have come, which `poll` then tells of no more.
    fn drain(&self) -> Result<(), DeviceError> {
        let mut count = [0; 4];
        loop {
            match rustix::io::read(&self.interrupts, &mut count) {
                Ok(1..) | Err(Errno::INTR) => {}
                Ok(0) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::IO | Errno::NODEV) => return Err(DeviceError::Gone),
                Err(error) => return Err(DeviceError::Io(error.raw_os_error())),
            }
        }
    }

    /// Lets the next interrupt of the line through.
    fn open_line(&self) -> Result<(), Errno> {
        rustix::io::retry_on_intr(|| rustix::io::write(&self.interrupts, &1u32.to_ne_bytes())).map(|_| ())
    }

    /// After a sleep: no interrupts until the next one, and the link may have changed.
    fn wake(&mut self) -> Result<(), DeviceError> {
        if !std::mem::take(&mut self.is_armed) {
            return Ok(());
        }
        match &mut self.seat {
            Seat::Owner(joined) => {
                joined.queue.disarm();
                joined.control.handle_interrupt();
            }
            Seat::Member(member) => member.queue.disarm(),
        }
        self.drain()
    }
}

/// What a member knows of its control, which belongs to another thread.
struct About {
    mac: MacAddr,
    mtu: usize,
    capabilities: Capabilities,
}

impl Device for About {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported)
    }
}

impl AsFd for UioDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.interrupts.as_fd()
    }
}

impl Device for UioDevice {
    fn mac(&self) -> MacAddr {
        seated!(self, device => device.mac())
    }

    fn mtu(&self) -> usize {
        seated!(self, device => device.mtu())
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        seated!(mut self, device => device.enable(wanted))
    }

    fn link(&self) -> LinkState {
        seated!(self, device => device.link())
    }

    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        seated!(mut self, device => device.set_filter(filter))
    }

    fn queues(&self) -> usize {
        seated!(self, device => device.queues())
    }

    fn set_steering(&mut self, steering: &Steering<'_>) -> Result<(), DeviceError> {
        seated!(mut self, device => device.set_steering(steering))
    }
}

impl QueuePair for UioDevice {
    fn enabled(&self) -> Capabilities {
        seated!(self, device => device.enabled())
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.wake()?;
        seated!(mut self, device => device.receive(now, batch))
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        seated!(mut self, device => device.transmit(now, queue))
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        seated!(mut self, device => device.poll_completion())
    }

    /// First what has come is forgotten; then the queue lets interrupts through and its rings are looked at; then the line is
    /// opened, which is up by then if anything came in between, and makes the descriptor readable.
    fn arm(&mut self, now: Instant) -> bool {
        // An error shows again in the next call that can tell of it.
        let is_broken = self.drain().is_err();
        self.is_armed = true;
        let is_ready = seated!(mut self, device => device.arm(now));
        let is_open = self.open_line().is_ok();
        let has_changed = match &mut self.seat {
            Seat::Owner(joined) => joined.control.handle_interrupt(),
            Seat::Member(_) => false,
        };
        is_ready || is_broken || !is_open || has_changed
    }

    fn poll_timeout(&self) -> Option<Instant> {
        seated!(self, device => device.poll_timeout())
    }

    fn set_pacing(&mut self, pacing: PacingConfig) -> Result<(), DeviceError> {
        seated!(mut self, device => device.set_pacing(pacing))
    }
}
