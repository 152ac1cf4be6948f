//! The interface in simulation: its RTL between our stack and a TAP device that is its cable.
//!
//! The hardware's clock runs when we look at it, and stands still otherwise: it is slow, and nothing is lost by it, as the cable waits
//! in the kernel. What the hardware says of time (arrival, pacing) means nothing here.

use super::own::HostDevice;
use linerate_linux::tap::{Tap, TapError, TapQueue};
use linerate_linux::{DeviceStats, RxPools};
use linerate_nic::mcdma::nic_regs::register;
use linerate_nic::mcdma::{self, Bus as _, Control, Queue};
use linerate_nic::{
    Bytes, Capabilities, Chunk, Device, DeviceError, Joined, Pool, QueuePair, RxBatch, TxMeta, TxQueue,
    pass_on,
};
use linerate_rtl_sim::Timing;
use linerate_rtl_sim::nic::{Board, OpenError, Simulation, open};
use linerate_wire::units::Instant;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

/// Descriptors of each ring, and buffers for received frames beyond those in the ring.
const RING: usize = 256;
const SPARE: usize = 1_024;
/// Cache lines of the hardware's memory.
const LINE: usize = 64;
/// Clocks from an address to its data: what a memory controller takes.
const LATENCY: u64 = 20;
/// Clocks that a segment waits for others to join it. Short, as the simulation has to be clocked through them.
const JOIN_CLOCKS: u32 = 200;
/// When nothing has moved for so many clocks, nothing will before somebody acts.
const QUIET: u64 = JOIN_CLOCKS as u64 + 100;
/// Most clocks in one look.
const MOST: u64 = 50_000;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Frames between cable and hardware at once.
const BATCH: usize = 64;

/// Why the hardware cannot be had.
#[derive(Debug)]
pub enum RtlError {
    /// No TAP device for its cable.
    Cable(TapError),
    /// No simulation.
    Simulation(String),
    /// The driver refuses it.
    Open(OpenError),
}

impl fmt::Display for RtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RtlError::Cable(error) => write!(f, "no cable: {error}"),
            RtlError::Simulation(error) => f.write_str(error),
            RtlError::Open(error) => error.fmt(f),
        }
    }
}

/// The simulated interface, with its cable.
pub struct RtlDevice {
    cable: Tap,
    hardware: Joined<Control<Board>, Queue<Board>>,
    board: Board,
    pools: RxPools,
    incoming: RxBatch,
    outgoing: TxQueue,
}

impl RtlDevice {
    /// Hardware at the end of this cable.
    pub fn new(cable: TapQueue, pools: RxPools) -> Result<Self, RtlError> {
        let cable = cable.into_device(Capabilities::NONE, pools).map_err(RtlError::Cable)?;
        let (mac, mtu) = (cable.mac(), cable.mtu());
        let simulation = Simulation::new(Timing::steady(LATENCY), 1).map_err(RtlError::Simulation)?;
        let board = Board::new(simulation);
        let settings =
            mcdma::Settings { mtu, transmit_ring: RING, receive_ring: RING, ..mcdma::Settings::new(mac) };
        let size = settings.longest().next_multiple_of(LINE);
        let pool = |count: usize| {
            // For the life of the process, as a DMA region is.
            let memory = vec![0; count * size + LINE].leak();
            Pool::over(memory, size, LINE).unwrap_or_else(|_| Pool::new(0, size))
        };
        let (receive, transmit) = (pool(RING + SPARE), pool(RING));
        let hardware = open(&board, &settings, receive.clone(), transmit).map_err(RtlError::Open)?;
        board.write(register::JOIN_TIMER, JOIN_CLOCKS);
        let pools = RxPools { small: receive, large: Pool::new(0, linerate_linux::MIN_LARGE_BUFFER) };
        let (incoming, outgoing) = (RxBatch::with_limit(BATCH), TxQueue::with_capacity(BATCH));
        Ok(RtlDevice { cable, hardware, board, pools, incoming, outgoing })
    }

    /// Carries frames both ways, and lets the hardware work until it has nothing to do.
    fn exchange(&mut self, now: Instant) -> Result<(), DeviceError> {
        let mut hardware = self.board.hardware_mut();
        if hardware.waiting() < BATCH {
            self.cable.receive(now, &mut self.incoming)?;
        }
        while let Some(frame) = self.incoming.pop() {
            let mut bytes = frame.data.bytes().to_vec();
            frame.more.iter().for_each(|piece| bytes.extend_from_slice(piece.bytes()));
            hardware.receive(bytes, false);
        }
        hardware.settle(QUIET, MOST);
        while self.outgoing.room() > 0 {
            let Some(frame) = hardware.sent() else { break };
            if let Some(packet) = self.outgoing.vacant() {
                let head = frame.len().min(ETHERNET);
                packet.header_mut(head).copy_from_slice(&frame[..head]);
                // Cannot fail: a packet that is vacant has no piece yet.
                packet
                    .push_chunk(Chunk::Shared(Bytes::from(frame).slice(head..)))
                    .map_err(|_| DeviceError::Unsupported)?;
                packet.meta = TxMeta { header_len: head as u16, ..TxMeta::default() };
                self.outgoing.commit();
            }
        }
        self.cable.transmit(now, &mut self.outgoing)?;
        if let Err(fault) = hardware.check() {
            log::error!("the simulated interface broke a rule: {fault}");
            return Err(DeviceError::Gone);
        }
        Ok(())
    }
}

impl Device for RtlDevice {
    pass_on!(hardware: mac, mtu, capabilities, enable, link, set_filter, set_steering);
}

impl QueuePair for RtlDevice {
    pass_on!(hardware: enabled, poll_completion, poll_timeout);

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.exchange(now)?;
        self.hardware.receive(now, batch)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let taken = self.hardware.transmit(now, queue)?;
        if taken > 0 {
            self.exchange(now)?;
        }
        Ok(taken)
    }

    /// The hardware is at rest after each exchange, and only the cable wakes it.
    fn arm(&mut self, now: Instant) -> bool {
        self.hardware.arm(now) || !self.outgoing.is_empty()
    }
}

impl AsFd for RtlDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.cable.as_fd()
    }
}

impl HostDevice for RtlDevice {
    fn counted(&mut self) -> DeviceStats {
        self.cable.stats()
    }

    fn is_starved(&self) -> bool {
        false
    }

    fn queue_len(&self) -> usize {
        RING
    }

    fn pools(&self) -> &RxPools {
        &self.pools
    }
}
