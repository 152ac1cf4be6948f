//! A queue of a network interface: rings of any size, any set of offloads, a line rate, and paced interrupts.

use crate::dma::Dma;
use crate::journal::{Drop, Pen, What};
use crate::link::{LinkPath, Output, Transmitter};
use crate::parcel::{Parcel, Stock};
use crate::spread::{Spread, Spreader};
use crate::timeline::{Pace, Timeline};
use linerate_nic::{
    Capabilities, Device, DeviceError, MacAddr, Pacing, PacingConfig, PacingMode, Pool, QueuePair, RxBatch,
    Segmentation, Steering, TxPacket, TxQueue, TxToken,
};
use linerate_wire::units::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Add;
use std::rc::Rc;
use std::time::Duration;

/// What an interface is like.
#[derive(Clone, PartialEq, Debug)]
pub struct NicConfig {
    /// Offloads that it has; all of them are switched on. The interface coalesces segments that were one super-segment;
    /// others are left to the offload layer. Default: all.
    pub capabilities: Capabilities,
    /// Line rate in bits per second, on the wire as for [`Path::rate_bps`](crate::Path::rate_bps); `None`: packets leave
    /// at once. Default: 1 Gb/s.
    pub rate_bps: Option<u64>,
    /// Largest IP packet in bytes. Default: 1,500.
    pub mtu: usize,
    /// Packets that the transmit ring holds (a super-segment is one), at least 1. A place is free again when the
    /// completion is reported. Default: 256.
    pub tx_ring: usize,
    /// Frames that the receive ring holds, at least 1; more are dropped. Coalesced segments are one frame. Default: 512.
    pub rx_ring: usize,
    /// When received frames interrupt the host. Default: 50 us after the first one, or 32 of them.
    pub pacing: PacingConfig,
    /// Time from a packet's last bit to the report of its completion. Default: none.
    pub completion_delay: Duration,
    /// Receive buffers in the pool. Default: 4,096.
    pub rx_buffers: usize,
    /// Bytes of each; at least an Ethernet header of 22 bytes and the MTU must fit. Default: 2,048, more for larger MTUs.
    pub rx_buffer_size: usize,
}

impl Default for NicConfig {
    fn default() -> Self {
        NicConfig {
            capabilities: Capabilities::ALL,
            rate_bps: Some(1_000_000_000),
            mtu: 1_500,
            tx_ring: 256,
            rx_ring: 512,
            pacing: PacingConfig::default(),
            completion_delay: Duration::ZERO,
            rx_buffers: 4_096,
            rx_buffer_size: 2_048,
        }
    }
}

impl NicConfig {
    /// An interface at this rate, the rest as by default.
    pub fn with_rate(rate_bps: u64) -> NicConfig {
        NicConfig { rate_bps: Some(rate_bps), ..NicConfig::default() }
    }
}

/// What an interface has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NicStats {
    /// Packets taken from the stack; a super-segment is one.
    pub tx_packets: u64,
    /// Segments sent.
    pub tx_segments: u64,
    /// Packets that asked for what is not switched on, that do not fit the MTU, or whose request lies outside of them.
    pub tx_refused: u64,
    /// Times that packets waited because the transmit ring was full.
    pub tx_ring_full: u64,
    /// Segments that arrived.
    pub rx_segments: u64,
    /// Frames handed to the host; coalesced segments are one.
    pub rx_frames: u64,
    /// Segments dropped because the receive ring was full.
    pub rx_ring_full: u64,
    /// Frames dropped because the pool had no buffer, or the frame does not fit one.
    pub rx_no_buffer: u64,
    /// Times that the host was interrupted, or looked by itself, and found frames.
    pub interrupts: u64,
    /// Time that segments waited in the receive ring until the host took them, in ns, of all taken together.
    pub rx_wait_ns: u64,
    /// Segments taken from the receive ring.
    pub rx_taken: u64,
}

impl Add for NicStats {
    type Output = NicStats;

    fn add(self, other: NicStats) -> NicStats {
        NicStats {
            tx_packets: self.tx_packets + other.tx_packets,
            tx_segments: self.tx_segments + other.tx_segments,
            tx_refused: self.tx_refused + other.tx_refused,
            tx_ring_full: self.tx_ring_full + other.tx_ring_full,
            rx_segments: self.rx_segments + other.rx_segments,
            rx_frames: self.rx_frames + other.rx_frames,
            rx_ring_full: self.rx_ring_full + other.rx_ring_full,
            rx_no_buffer: self.rx_no_buffer + other.rx_no_buffer,
            interrupts: self.interrupts + other.interrupts,
            rx_wait_ns: self.rx_wait_ns + other.rx_wait_ns,
            rx_taken: self.rx_taken + other.rx_taken,
        }
    }
}

/// Segments in the receive ring.
#[derive(Debug)]
struct Arrived {
    parcel: Parcel,
    /// The sum of the times at which they came, in ns.
    at_ns: u128,
}

/// See the module. The world moves it between the calls of [`Device`]. Queues of one interface share a line, and how
/// frames are spread; everything else each has for itself.
#[derive(Debug)]
pub struct SimNic {
    mac: MacAddr,
    queue: u16,
    spreader: Rc<RefCell<Spreader>>,
    config: NicConfig,
    enabled: Capabilities,
    stock: Stock,
    dma: Dma,
    /// Taken over, no bit has left.
    waiting: VecDeque<(Parcel, TxToken)>,
    /// Begun; when the completion is reported.
    completing: VecDeque<(Instant, TxToken)>,
    done: VecDeque<TxToken>,
    pub(crate) inbound: Timeline,
    ring: VecDeque<Arrived>,
    pacing: Pacing,
    stats: NicStats,
    /// Packets wait for a place in the transmit ring.
    is_full: bool,
    /// Notes how full the rings are.
    pub(crate) pen: Pen,
}

/// How a packet leaves the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    /// When its first bit does.
    pub(crate) from: Instant,
    /// When its first segment has left.
    pub(crate) at: Instant,
    /// How the others follow.
    pub(crate) pace: Option<Pace>,
}

impl SimNic {
    pub(crate) fn new(
        mac: MacAddr,
        mut config: NicConfig,
        stock: Stock,
        queue: u16,
        spreader: Rc<RefCell<Spreader>>,
    ) -> SimNic {
        config.tx_ring = config.tx_ring.max(1);
        config.rx_ring = config.rx_ring.max(1);
        config.rx_buffer_size = config.rx_buffer_size.max(config.mtu + 64);
        let dma = Dma::new(Pool::new(config.rx_buffers, config.rx_buffer_size));
        SimNic {
            mac,
            queue,
            spreader,
            enabled: config.capabilities,
            stock,
            dma,
            waiting: VecDeque::with_capacity(config.tx_ring),
            completing: VecDeque::with_capacity(config.tx_ring),
            done: VecDeque::with_capacity(config.tx_ring),
            inbound: Timeline::default(),
            ring: VecDeque::with_capacity(config.rx_ring),
            pacing: Pacing::new(config.pacing, Instant::ZERO),
            stats: NicStats::default(),
            is_full: false,
            pen: Pen::default(),
            config,
        }
    }

    /// The settings.
    pub fn config(&self) -> &NicConfig {
        &self.config
    }

    /// What was counted.
    pub fn stats(&self) -> NicStats {
        self.stats
    }

    /// The pool of receive buffers.
    pub fn pool(&self) -> &Pool {
        self.dma.pool()
    }

    /// Packets in the transmit ring whose completion was not reported yet.
    pub fn tx_in_ring(&self) -> usize {
        self.waiting.len() + self.completing.len()
    }

    /// Frames in the receive ring.
    pub fn rx_in_ring(&self) -> usize {
        self.ring.len()
    }

    /// Whether packets wait for a place in the transmit ring.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether there are frames or completions that the host could take now.
    pub(crate) fn has_news(&self) -> bool {
        !self.ring.is_empty() || !self.done.is_empty()
    }

    /// When something happens here next that the host must see, or that goes onto the wire, which is free from
    /// `line_free_at` on (`None`: nobody knows when). The host takes no interrupt before `busy_until`.
    pub(crate) fn poll_timeout(&self, line_free_at: Option<Instant>, busy_until: Instant) -> Option<Instant> {
        let start = line_free_at.filter(|_| !self.waiting.is_empty());
        let complete = self.completing.front().map(|(at, _)| *at);
        let interrupt = self.interrupt_at().map(|at| at.max(busy_until));
        [start, complete, interrupt].into_iter().flatten().min()
    }

    /// When received frames interrupt the host, or when to look again. What arrives before need not be looked at: it is
    /// taken into account with its own time, later.
    fn interrupt_at(&self) -> Option<Instant> {
        let next = self.inbound.next();
        let config = self.pacing.config();
        let timer = self.pacing.poll_timeout();
        if config.mode != PacingMode::FirstNewPacket {
            return [timer, next].into_iter().flatten().min();
        }
        let due = timer.or_else(|| next.map(|next| next + config.period()))?;
        let missing = u64::from(config.threshold).saturating_sub(self.pacing.pending()).max(1);
        Some(self.inbound.time_of(missing, due).unwrap_or(due))
    }

    /// Moves what is there by `now`, at most `most` segments at once; true if the host is to be woken.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        most: u16,
        mut seen: impl FnMut(&Parcel, Instant),
    ) -> bool {
        let mut wakes = false;
        while self.completing.front().is_some_and(|(at, _)| *at <= now) {
            wakes |= std::mem::take(&mut self.is_full);
            let Some((at, token)) = self.completing.pop_front() else { break };
            self.pen.note(at, || What::TransmitRing(self.tx_in_ring() as u32));
            if token != TxToken(0) {
                self.done.push_back(token);
            }
        }
        while let Some((first_at, last_at, parcel)) = self.inbound.take(now, most) {
            seen(&parcel, last_at);
            self.pacing.handle_packet(first_at, 1);
            self.pacing.handle_packet(last_at, u32::from(parcel.count()) - 1);
            self.arrive(parcel, first_at, last_at);
        }
        wakes || !self.done.is_empty() || self.pacing.poll_interrupt(now)
    }

    /// Puts segments into the receive ring that came between these times at a steady rate.
    fn arrive(&mut self, mut parcel: Parcel, first_at: Instant, last_at: Instant) {
        let mean_ns = u128::from(first_at.as_nanos()) / 2 + u128::from(last_at.as_nanos()) / 2;
        let at_ns = mean_ns * u128::from(parcel.count());
        self.stats.rx_segments += u64::from(parcel.count());
        if self.enabled.rx_coalescing
            && let Some(last) = self.ring.back_mut()
            && last.parcel.is_followed_by(&parcel)
        {
            last.parcel.append(parcel);
            last.at_ns += at_ns;
            return;
        }
        while parcel.count() > 1 && !self.enabled.rx_coalescing {
            let segment = parcel.split_front(1);
            self.put(Arrived { parcel: segment, at_ns: mean_ns }, last_at);
        }
        let at_ns = mean_ns * u128::from(parcel.count());
        self.put(Arrived { parcel, at_ns }, last_at);
    }

    fn put(&mut self, arrived: Arrived, at: Instant) {
        if self.ring.len() < self.config.rx_ring {
            self.ring.push_back(arrived);
            self.pen.note(at, || What::ReceiveRing(self.ring.len() as u32));
        } else {
            let segment = Some(arrived.parcel.id());
            self.pen.note(at, || What::Dropped { segment, why: Drop::RingFull });
            self.stats.rx_ring_full += u64::from(arrived.parcel.count());
        }
    }

    /// Begins to send the next packet, if there is one; `seen` is told of it.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        transmitter: &mut Transmitter,
        line: &mut LinkPath,
        out: &mut Output,
        mut seen: impl FnMut(&Parcel, Leaving),
    ) -> bool {
        let Some((parcel, token)) = self.waiting.pop_front() else { return false };
        let bytes = parcel.wire_bytes_through(parcel.count() - 1);
        let leaving = match self.config.rate_bps {
            None => Leaving { from: now, at: now, pace: None },
            Some(bps) => {
                let pace = transmitter.send(now, bytes, bps);
                let (from, at) = (pace.start, pace.at(&parcel, 0));
                Leaving { from, at, pace: Some(pace).filter(|_| parcel.count() > 1) }
            }
        };
        let left = transmitter.free_at.max(now);
        self.completing.push_back((left + self.config.completion_delay, token));
        self.stats.tx_segments += u64::from(parcel.count());
        self.spreader.borrow_mut().leave(&parcel, self.queue);
        seen(&parcel, leaving);
        line.offer(leaving.at, leaving.pace, parcel, out);
        true
    }

    /// Whether what the packet asks for is switched on, and it fits.
    fn accepts(&self, packet: &TxPacket) -> bool {
        let split = match packet.meta.segmentation {
            Segmentation::None => packet.len() <= self.config.mtu + 22,
            Segmentation::Tcp4(_) => self.enabled.tso4,
            Segmentation::Tcp6(_) => self.enabled.tso6,
        };
        let sum = packet.meta.checksum.is_none() || self.enabled.tx_checksum4 || self.enabled.tx_checksum6;
        split && sum
    }
}

impl Device for SimNic {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.config.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.config.capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(self.config.capabilities) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.enabled = wanted;
        Ok(())
    }

    fn queues(&self) -> usize {
        usize::from(self.spreader.borrow().queues())
    }

    /// Holds for what comes to the interface from now on, not for what is on its way there.
    fn set_steering(&mut self, steering: &Steering<'_>) -> Result<(), DeviceError> {
        self.spreader.borrow_mut().spread = Spread::from(steering);
        Ok(())
    }
}

impl QueuePair for SimNic {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        if self.pacing.pending() > 0 {
            let pending = self.pacing.pending();
            self.pacing.handle_interrupt_taken(now);
            self.stats.interrupts += 1;
            self.pen.note(now, || What::Interrupt(pending));
        }
        let mut count = 0;
        while !batch.is_full() {
            let Some(Arrived { parcel, at_ns }) = self.ring.pop_front() else { break };
            let waited = (u128::from(now.as_nanos()) * u128::from(parcel.count())).saturating_sub(at_ns);
            self.stats.rx_wait_ns += u64::try_from(waited).unwrap_or(u64::MAX);
            self.stats.rx_taken += u64::from(parcel.count());
            match self.dma.frame(&parcel, self.enabled.rx_checksum) {
                Some(frame) => {
                    // There is room: asked above.
                    let _ = batch.push(frame);
                    count += 1;
                }
                None => {
                    self.stats.rx_no_buffer += 1;
                    let segment = Some(parcel.id());
                    self.pen.note(now, || What::Dropped { segment, why: Drop::NoBuffer });
                }
            }
        }
        self.stats.rx_frames += count as u64;
        if count > 0 {
            self.pen.note(now, || What::ReceiveRing(self.ring.len() as u32));
        }
        Ok(count)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut count = 0;
        while let Some(packet) = queue.front_mut() {
            if self.tx_in_ring() >= self.config.tx_ring {
                self.stats.tx_ring_full += 1;
                self.is_full = true;
                break;
            }
            let token = packet.meta.token;
            let parcel = if self.accepts(packet) { self.stock.take_packet(packet) } else { None };
            queue.pop();
            count += 1;
            match parcel {
                Some(parcel) => {
                    self.stats.tx_packets += 1;
                    self.waiting.push_back((parcel, token));
                }
                None => {
                    self.stats.tx_refused += 1;
                    if token != TxToken(0) {
                        self.done.push_back(token);
                    }
                }
            }
        }
        if count > 0 {
            self.pen.note(now, || What::TransmitRing(self.tx_in_ring() as u32));
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.done.pop_front()
    }

    fn arm(&mut self, _now: Instant) -> bool {
        self.has_news()
    }

    fn set_pacing(&mut self, pacing: PacingConfig) -> Result<(), DeviceError> {
        self.config.pacing = pacing;
        self.pacing.set_config(pacing);
        Ok(())
    }
}
