//! Our own stack on a device as an engine.

use super::engine::{Engine, Figures};
use crate::status::collect::Observed;
use linerate_linux::files::AnyFiles;
use linerate_linux::packet::PacketDevice;
use linerate_linux::poller::PollFlags;
use linerate_linux::tap::Tap;
use linerate_linux::{DeviceStats, RxPools};
use linerate_nic::{Capabilities, Device, DeviceError, Port, PortConfig, RxBatch, TxQueue};
use linerate_stack::{Stack, StackFileRequest};
use linerate_transport::{FileDone, FileError, FileOp, FileReply, Files as _, Owner, Shared, Transport};
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Packets between stack and device.
const TX_QUEUE: usize = 128;
/// Frames between device and stack.
const RX_BATCH: usize = 256;
/// Rounds of filling and emptying the transmit queue in one turn.
const TX_ROUNDS: usize = 4;

/// Rounds, and the pause after one in which the device took nothing, while the last packets are sent: 0.2 s at most for
/// a device that takes nothing at all.
const FLUSH_ROUNDS: usize = 2_000;
const FLUSH_PAUSE: Duration = Duration::from_micros(100);

/// A device that can be slept on and counts its bytes.
pub trait HostDevice: Device + AsFd {
    /// What it counted since it was opened.
    fn counted(&mut self) -> DeviceStats;

    /// Whether receiving stopped because too few buffers were free.
    fn is_starved(&self) -> bool;

    /// Frames that may wait for us in the kernel.
    fn queue_len(&self) -> usize;
}

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
}

impl HostDevice for PacketDevice {
    fn counted(&mut self) -> DeviceStats {
        self.stats()
    }

    fn is_starved(&self) -> bool {
        self.starved()
    }

    fn queue_len(&self) -> usize {
        Self::queue_len(self)
    }
}

/// The receive buffers of a server for a device of this MTU: five eighths of its memory. The stack's pools and tables have
/// the rest.
pub fn receive_pools(memory: u64, mtu: usize) -> RxPools {
    RxPools::for_memory(usize::try_from(memory / 8 * 5).unwrap_or(usize::MAX), mtu)
}

/// Our stack on a device.
pub struct OwnStack<D> {
    pub(super) stack: Stack,
    pub(super) port: Port<D>,
    batch: RxBatch,
    queue: TxQueue,
    pub(super) pools: RxPools,
    /// A file request that the file service had no room for.
    refused: Option<StackFileRequest>,
    /// Whatever lies beyond the device and must outlive it.
    _host: Option<linerate_linux::netconfig::HostInterface>,
}

impl<D: HostDevice> OwnStack<D> {
    /// A stack on a device; `host` is kept as long as the device.
    pub fn new(
        stack: Stack,
        device: D,
        pools: RxPools,
        allowed: Capabilities,
        host: Option<linerate_linux::netconfig::HostInterface>,
    ) -> Result<Self, DeviceError> {
        let mut port = Port::new(device, PortConfig::default())?;
        port.set_offloads(allowed)?;
        Ok(OwnStack {
            stack,
            port,
            batch: RxBatch::with_limit(RX_BATCH),
            queue: TxQueue::with_capacity(TX_QUEUE),
            pools,
            refused: None,
            _host: host,
        })
    }

    fn read_files(&mut self, files: &mut AnyFiles) -> bool {
        let mut any = false;
        while let Some(request) = self.refused.take().or_else(|| self.stack.poll_file_request()) {
            let op = FileOp::Read { file: request.file, offset: request.offset, len: request.len };
            if files.submit(Owner::TRANSPORT, request.token, op).is_err() {
                // Too many under way: some of them end soon, and then this one's turn comes.
                self.refused = Some(request);
                break;
            }
            any = true;
        }
        any
    }
}

impl<D: HostDevice> Engine for OwnStack<D> {
    fn net(&mut self) -> &mut dyn Transport {
        &mut self.stack
    }

    fn input(&mut self, now: Instant) -> Result<bool, DeviceError> {
        self.stack.set_now(now);
        let received = self.port.receive(now, &mut self.batch)? > 0;
        while !self.batch.is_empty() {
            self.stack.handle_frames(now, &mut self.batch);
        }
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
        }
        Ok(received)
    }

    fn output(&mut self, now: Instant, files: &mut AnyFiles) -> Result<bool, DeviceError> {
        let mut any = self.read_files(files);
        for _ in 0..TX_ROUNDS {
            self.stack.poll_transmit(now, &mut self.queue);
            if self.queue.is_empty() && !self.port.is_pending() {
                break;
            }
            let sent = self.port.transmit(now, &mut self.queue)?;
            while let Some(token) = self.port.poll_completion() {
                self.stack.handle_completion(now, token);
            }
            any |= sent > 0;
            if sent == 0 {
                break;
            }
        }
        Ok(any)
    }

    fn handle_file(&mut self, now: Instant, done: FileDone) {
        let data: Result<Shared, FileError> = match done.result {
            Ok(FileReply::Data(data)) => Ok(data),
            Ok(_) => Err(FileError::Io),
            Err(error) => Err(error),
        };
        self.stack.handle_file_data(now, done.tag, data);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.stack.poll_timeout()
    }

    fn fd(&self) -> (BorrowedFd<'_>, PollFlags) {
        // Frames that wait for a buffer would wake the loop for nothing until one comes back.
        let starved =
            self.port.device().is_starved() && self.pools.large.free() + self.pools.small.free() == 0;
        let mut flags = if starved { PollFlags::empty() } else { PollFlags::IN };
        if !self.queue.is_empty() || self.port.is_pending() {
            flags |= PollFlags::OUT;
        }
        (self.port.device().as_fd(), flags)
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
            memory_bytes: Engine::memory_used(self),
        }
    }

    fn observed(&mut self) -> &mut dyn Observed {
        self
    }

    fn memory_used(&self) -> u64 {
        (self.stack.memory_used() + self.stack.table_bytes()) as u64
    }

    fn refused(&self) -> u64 {
        let counters = self.stack.counters();
        counters.drop_syn_cookie_table + counters.drop_syn_cookie_backlog
    }

    fn set_offloads(&mut self, allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        self.port.set_offloads(allowed)
    }

    fn is_quiet(&self) -> bool {
        self.queue.is_empty() && !self.port.is_pending() && self.stack.unfinished() == 0
    }

    fn cut_off(&mut self, now: Instant) -> u64 {
        let cut_off = self.stack.abort_all(now);
        for _ in 0..FLUSH_ROUNDS {
            self.stack.poll_transmit(now, &mut self.queue);
            if self.queue.is_empty() && !self.port.is_pending() {
                break;
            }
            match self.port.transmit(now, &mut self.queue) {
                // A device that is full takes more in a moment.
                Ok(0) => std::thread::sleep(FLUSH_PAUSE),
                Ok(_) => {}
                Err(error) => {
                    log::warn!("resets could not be sent: {error}");
                    break;
                }
            }
        }
        cut_off as u64
    }

    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        Some(self.stack.addresses().map(|cidr| cidr.address()).collect())
    }
}
