//! The interface as the stack of a seat sees it: what is between it and the driver where cores share one.

use super::lane::{FRAME, Parcel};
use super::{Exchange, Place, Several};
use crate::counting::Counting;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linerate_nic::{
    Capabilities, Chunk, Device, DeviceError, Frame, LinkState, MacAddr, Pool, QueuePair, RxBatch, RxMeta,
    TxMeta, TxQueue, TxToken, pass_on,
};
use linerate_wire::units::Instant;

/// The completion of a packet that another seat sent: that one was told when it was copied.
const OF_ANOTHER: TxToken = TxToken(u64::MAX);
/// Rounds of sending what others want to send, in one turn.
const ROUNDS: usize = 4;

/// A driver that instruments may look at.
pub(crate) trait Watched {
    /// Whether one of them does.
    fn is_watched(&self) -> bool;
}

/// An interface that may be shared. On a machine with one core it is the driver, and a comparison.
pub(crate) struct Spread<D> {
    device: D,
    role: Role,
}

enum Role {
    Alone,
    First(Box<First>, Several),
    Other(Box<Other>, Several),
}

/// Seat 0: has the interface, and serves the others.
struct First {
    exchange: &'static Exchange,
    taken: RxBatch,
    others: Vec<Way>,
    /// What others send, on its way to the driver; and its memory.
    outgoing: TxQueue,
    buffers: Pool,
    /// Whose turn it is to send.
    turn: usize,
}

/// What seat 0 has at hand of the way to another seat.
#[derive(Default)]
struct Way {
    empty: VecDeque<Parcel>,
    /// Frames for it.
    full: VecDeque<Parcel>,
    /// Frames from it that did not leave yet, and parcels to be given back.
    leaving: VecDeque<Parcel>,
    used: VecDeque<Parcel>,
}

/// Another seat.
struct Other {
    exchange: &'static Exchange,
    seat: u16,
    receive: Pool,
    arrived: VecDeque<Parcel>,
    used: VecDeque<Parcel>,
    empty: VecDeque<Parcel>,
    full: VecDeque<Parcel>,
    completed: VecDeque<TxToken>,
    /// Packets wait for an empty parcel.
    is_full: bool,
    /// It has a queue of the interface, too.
    has_queue: bool,
}

impl<D> Spread<D> {
    /// The driver for a machine with one core.
    pub(crate) fn alone(device: D) -> Self {
        Spread { device, role: Role::Alone }
    }

    /// The driver as a seat of the exchange has it; frames that another core hands over are copied to `receive`.
    pub(crate) fn shared(
        device: D,
        ((exchange, seat), several): ((&'static Exchange, u16), Several),
        receive: Pool,
        batch: usize,
    ) -> Self
    where
        D: Device,
    {
        let role = if seat == 0 {
            let first = First {
                exchange,
                taken: RxBatch::with_limit(batch),
                others: (1..exchange.seats()).map(|_| Way::default()).collect(),
                outgoing: TxQueue::with_capacity(batch),
                buffers: Pool::new(4 * batch, FRAME),
                turn: 0,
            };
            Role::First(Box::new(first), several)
        } else {
            let other = Other {
                exchange,
                seat,
                receive,
                arrived: VecDeque::new(),
                used: VecDeque::new(),
                empty: VecDeque::new(),
                full: VecDeque::new(),
                completed: VecDeque::new(),
                is_full: false,
                has_queue: device.queues() > 0,
            };
            Role::Other(Box::new(other), several)
        };
        Spread { device, role }
    }

    /// What was dropped on the way to this seat; nothing on a machine with one core.
    pub(crate) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let drops = match &self.role {
            Role::Other(other, _) => Some(other.exchange.drops(other.seat)),
            Role::Alone | Role::First(..) => None,
        };
        drops.into_iter().flatten()
    }

    /// The driver.
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// The driver.
    pub(crate) fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }
}

fn count(counter: &core::sync::atomic::AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl First {
    /// Takes frames in, and passes on those of others.
    fn receive(
        &mut self,
        device: &mut (impl QueuePair + Device + Watched),
        now: Instant,
        batch: &mut RxBatch,
    ) -> Result<usize, DeviceError> {
        self.exchange.falls_asleep(0, false);
        self.exchange.set_link(device.link());
        let before = batch.len();
        let result = if self.taken.is_empty() { device.receive(now, &mut self.taken) } else { Ok(0) };
        // In each turn: commands begin it, and whoever fetches what was kept ends it.
        self.exchange.is_watched.store(device.is_watched(), Ordering::Relaxed);
        while !batch.is_full()
            && let Some(frame) = self.taken.pop()
        {
            match self.exchange.spreading.seat_of(frame.data.bytes()) {
                0 => {
                    let fits = batch.push(frame).is_ok();
                    debug_assert!(fits, "there was room");
                }
                seat => self.pass(seat, &frame),
            }
        }
        for (seat, way) in (1..).zip(&mut self.others) {
            if let Some((inbound, _)) = lanes(self.exchange, seat)
                && !way.full.is_empty()
            {
                inbound.full.push_all(&mut way.full);
                self.exchange.wake(seat);
            }
        }
        self.forward(device, now)?;
        result.map(|_| batch.len() - before)
    }

    /// Copies a frame for another seat.
    fn pass(&mut self, seat: u16, frame: &Frame) {
        let Some(way) = self.others.get_mut(usize::from(seat) - 1) else { return };
        let Some(Place { lanes: Some((inbound, _)), drops, .. }) = self.exchange.place(seat) else { return };
        let Some(mut parcel) = inbound.take_empty(&mut way.empty) else { return count(&drops.full) };
        if parcel.receive(frame) {
            way.full.push_back(parcel);
        } else {
            count(&drops.too_long);
            way.empty.push_back(parcel);
        }
    }

    /// Sends what others want to send, a packet of each in turn.
    fn forward(&mut self, device: &mut impl QueuePair, now: Instant) -> Result<(), DeviceError> {
        for _ in 0..ROUNDS {
            self.fill();
            if self.outgoing.is_empty() {
                break;
            }
            if device.transmit(now, &mut self.outgoing)? == 0 {
                break;
            }
        }
        for (seat, way) in (1..).zip(&mut self.others) {
            let Some(place) = self.exchange.place(seat) else { continue };
            let Some((_, outbound)) = &place.lanes else { continue };
            if !way.used.is_empty() {
                outbound.empty.push_all(&mut way.used);
                if place.wants_room.swap(false, Ordering::SeqCst) {
                    self.exchange.wake(seat);
                }
            }
        }
        Ok(())
    }

    /// Fills the queue to the driver.
    fn fill(&mut self) {
        for (seat, way) in (1..).zip(&mut self.others) {
            if let Some((_, outbound)) = lanes(self.exchange, seat)
                && way.leaving.is_empty()
            {
                outbound.full.take_all(&mut way.leaving);
            }
        }
        // As long as one of them had something.
        let mut idle = 0;
        while idle < self.others.len() {
            let at = self.turn % self.others.len();
            self.turn = at + 1;
            let way = &mut self.others[at];
            let Some(parcel) = way.leaving.pop_front() else {
                idle += 1;
                continue;
            };
            idle = 0;
            if let Err(parcel) = put(parcel, &mut self.outgoing, &self.buffers, &mut way.used) {
                way.leaving.push_front(parcel);
                return;
            }
        }
    }

    /// Whether there is something to do although nothing interrupts. What the driver has no room for waits for its interrupt.
    fn has_work(&self) -> bool {
        let waits = |(seat, way): (u16, &Way)| {
            let has_more = lanes(self.exchange, seat).is_some_and(|(_, outbound)| !outbound.full.is_empty());
            self.outgoing.is_empty() && (has_more || !way.leaving.is_empty())
        };
        !self.taken.is_empty() || self.exchange.has_post(0) || (1..).zip(&self.others).any(waits)
    }
}

/// Makes a packet of a parcel; gives it back where there is no room or no buffer.
fn put(
    parcel: Parcel,
    queue: &mut TxQueue,
    buffers: &Pool,
    used: &mut VecDeque<Parcel>,
) -> Result<(), Parcel> {
    let Some(packet) = queue.vacant() else { return Err(parcel) };
    let (header, payload) = (parcel.header(), parcel.bytes());
    packet.header_mut(header.len()).copy_from_slice(header);
    if !payload.is_empty() {
        let Some(mut buffer) = buffers.take() else { return Err(parcel) };
        buffer.bytes_mut()[..payload.len()].copy_from_slice(payload);
        let fits = packet.push_chunk(Chunk::Pool(buffer.freeze(0..payload.len()))).is_ok();
        debug_assert!(fits, "an empty packet has room for a chunk");
    }
    packet.meta = parcel.meta(TxMeta { token: OF_ANOTHER, ..TxMeta::default() });
    queue.commit();
    used.push_back(parcel);
    Ok(())
}

fn lanes(exchange: &Exchange, seat: u16) -> Option<&(super::Lane, super::Lane)> {
    exchange.place(seat)?.lanes.as_ref()
}

impl Other {
    fn receive(&mut self, batch: &mut RxBatch) -> usize {
        self.exchange.falls_asleep(self.seat, false);
        let Some(Place { lanes: Some((inbound, _)), drops, .. }) = self.exchange.place(self.seat) else {
            return 0;
        };
        let before = batch.len();
        if self.arrived.is_empty() {
            inbound.full.take_all(&mut self.arrived);
        }
        while !batch.is_full()
            && let Some(parcel) = self.arrived.pop_front()
        {
            let bytes = parcel.bytes();
            if bytes.len() > self.receive.buffer_size() {
                count(&drops.too_long);
            } else if let Some(mut buffer) = self.receive.take() {
                buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                let meta = RxMeta { checksum: parcel.checksum, ..RxMeta::default() };
                let fits = batch.push(Frame::new(buffer.freeze(0..bytes.len()), meta)).is_ok();
                debug_assert!(fits, "there was room");
            } else {
                count(&drops.no_buffer);
            }
            self.used.push_back(parcel);
        }
        inbound.empty.push_all(&mut self.used);
        batch.len() - before
    }

    fn transmit(&mut self, queue: &mut TxQueue) -> usize {
        let Some(Place { lanes: Some((_, outbound)), drops, wants_room, .. }) =
            self.exchange.place(self.seat)
        else {
            return 0;
        };
        let mut sent = 0;
        self.is_full = false;
        while let Some(packet) = queue.front() {
            let mut empty = outbound.take_empty(&mut self.empty);
            if empty.is_none() {
                // Whoever gives some back from here on rings.
                wants_room.store(true, Ordering::SeqCst);
                empty = outbound.take_empty(&mut self.empty);
            }
            let Some(mut parcel) = empty else {
                self.is_full = true;
                break;
            };
            self.completed.push_back(packet.meta.token);
            if parcel.send(packet) {
                self.full.push_back(parcel);
            } else {
                count(&drops.too_long);
                self.empty.push_back(parcel);
            }
            queue.pop();
            sent += 1;
        }
        if !self.full.is_empty() {
            outbound.full.push_all(&mut self.full);
            self.exchange.wake(0);
        }
        sent
    }

    /// Whether it sends by its own queue; while somebody looks, the frames of all pass by the first seat.
    fn sends_itself(&self) -> bool {
        self.has_queue && !self.exchange.is_watched.load(Ordering::Relaxed)
    }

    fn has_work(&self) -> bool {
        let Some((inbound, outbound)) = lanes(self.exchange, self.seat) else { return false };
        !self.arrived.is_empty()
            || !inbound.full.is_empty()
            || self.exchange.has_post(self.seat)
            || self.is_full && !outbound.empty.is_empty()
    }
}

impl<D: QueuePair + Device + Watched> QueuePair for Spread<D> {
    pass_on!(device: enabled, poll_timeout, set_pacing);

    #[inline]
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        match &mut self.role {
            Role::Alone => self.device.receive(now, batch),
            Role::First(first, _) => first.receive(&mut self.device, now, batch),
            Role::Other(other, _) => {
                let handed_over = other.receive(batch);
                let own = if other.has_queue { self.device.receive(now, batch)? } else { 0 };
                Ok(handed_over + own)
            }
        }
    }

    #[inline]
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        match &mut self.role {
            Role::Alone | Role::First(..) => self.device.transmit(now, queue),
            Role::Other(other, _) if other.sends_itself() => {
                other.is_full = false;
                self.device.transmit(now, queue)
            }
            Role::Other(other, _) => Ok(other.transmit(queue)),
        }
    }

    #[inline]
    fn poll_completion(&mut self) -> Option<TxToken> {
        match &mut self.role {
            Role::Alone => self.device.poll_completion(),
            Role::First(..) => loop {
                match self.device.poll_completion() {
                    Some(OF_ANOTHER) => {}
                    token => return token,
                }
            },
            Role::Other(other, _) => other.completed.pop_front().or_else(|| self.device.poll_completion()),
        }
    }

    fn arm(&mut self, now: Instant) -> bool {
        let (exchange, seat) = match &self.role {
            Role::Alone => return self.device.arm(now),
            Role::First(first, _) => (first.exchange, 0),
            Role::Other(other, _) => (other.exchange, other.seat),
        };
        // In this order: what comes behind the look finds the core asleep, and rings.
        exchange.falls_asleep(seat, true);
        let has_work = match &self.role {
            Role::Alone => false,
            Role::First(first, _) => first.has_work(),
            Role::Other(other, _) => other.has_work(),
        };
        let has_work = self.device.arm(now) || has_work;
        if has_work {
            exchange.falls_asleep(seat, false);
        }
        has_work
    }
}

impl<D: Device + Watched> Device for Spread<D> {
    pass_on!(device: mac, mtu, capabilities, enable, set_filter, queues, set_steering);

    fn link(&self) -> LinkState {
        match &self.role {
            Role::Other(other, _) => other.exchange.link(),
            _ => self.device.link(),
        }
    }
}

impl<D: Counting> Counting for Spread<D> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.device.count(visit);
    }
}

/// What a seat without a queue of its own has for a driver: everything goes by way of another.
pub struct NoQueue {
    mac: MacAddr,
    mtu: usize,
    capabilities: Capabilities,
    allowed: Capabilities,
}

impl NoQueue {
    /// With the address of the interface and what it is able to do.
    pub fn new(mac: MacAddr, mtu: usize, capabilities: Capabilities) -> NoQueue {
        NoQueue { mac, mtu, capabilities, allowed: Capabilities::NONE }
    }
}

impl QueuePair for NoQueue {
    fn enabled(&self) -> Capabilities {
        self.capabilities.and(self.allowed)
    }

    fn receive(&mut self, _now: Instant, _batch: &mut RxBatch) -> Result<usize, DeviceError> {
        Ok(0)
    }

    fn transmit(&mut self, _now: Instant, _queue: &mut TxQueue) -> Result<usize, DeviceError> {
        Ok(0)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        None
    }
}

impl Device for NoQueue {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.allowed = wanted;
        Ok(())
    }

    fn queues(&self) -> usize {
        0
    }
}

impl Counting for NoQueue {
    fn count(&self, _visit: &mut dyn FnMut(&'static str, u64)) {}
}
