//! The relay: a device that hands frames between a TAP and our stack, and does to each connection's frames what its
//! world wants.

use super::frames::{Layout, Wire};
use super::plan::{Impairment, LabKind, Narrow, Plan, Random, Side};
use super::recent::{Fate, Recent};
use super::trace::{Point, Trace};
use linerate_linux::RxPools;
use linerate_linux::tap::Tap;
use linerate_nic::{
    Capabilities, ChecksumRequest, ChecksumStatus, Chunk, Device, DeviceError, Frame, MacAddr, Pool,
    QueuePair, RxBatch, RxMeta, Segmentation, Slice, TxQueue, TxToken,
};
use linerate_wire::tcp::CHECKSUM_OFFSET;
use linerate_wire::units::Instant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

/// Frames taken from the TAP in one turn.
const BATCH: usize = 256;
/// Frames of our stack that a tiny ring takes in one turn.
const TINY_RING: usize = 4;
/// Super-segments that the relay cuts before they suffer, in parts of 10,000; the others suffer whole.
const CUT: u32 = 5_000;

/// How long frames are lost in a row.
const LONGEST_BURST: Duration = Duration::from_millis(50);

/// What one connection's frames suffered.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowStats {
    /// Frames of both directions.
    pub frames: u64,
    /// Of these, lost.
    pub lost: u64,
    /// Of these, with flipped bits.
    pub corrupted: u64,
    /// Of these, delivered twice.
    pub duplicated: u64,
    /// Of these, overtaken by others.
    pub reordered: u64,
    /// Of these, longer than the link became.
    pub too_big: u64,
}

/// One direction of one connection.
struct Lane {
    impairment: Impairment,
    /// Frames of a burst that are still to be lost, and when it ends at the latest: it is one of frames that follow
    /// each other, not of retransmissions seconds apart.
    burst: u32,
    burst_until: Instant,
    /// When the last frame that was not overtaken arrives.
    last: Instant,
}

/// One connection.
struct Flow {
    random: Random,
    lanes: [Lane; 2],
    narrow: Option<Narrow>,
    stats: FlowStats,
    recent: Recent,
}

/// Frames on their way to one side, by time of arrival.
#[derive(Default)]
struct Road {
    order: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: BTreeMap<u64, Wire>,
    next: u64,
}

impl Road {
    fn send(&mut self, due: Instant, wire: Wire) {
        self.order.push(Reverse((due, self.next)));
        self.frames.insert(self.next, wire);
        self.next += 1;
    }

    fn next_due(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, _))| *due)
    }

    /// The frame that has arrived and waits longest.
    fn arrived(&self, now: Instant) -> Option<&Wire> {
        let Reverse((due, number)) = self.order.peek()?;
        if *due > now { None } else { self.frames.get(number) }
    }

    fn pop(&mut self) {
        if let Some(Reverse((_, number))) = self.order.pop() {
            self.frames.remove(&number);
        }
    }
}

/// The device that our stack sees.
pub struct Relay {
    tap: Tap,
    tiny: bool,
    offloads: Capabilities,
    enabled: Capabilities,
    pools: RxPools,
    flows: HashMap<u16, Flow>,
    random: Random,
    /// By the receiver's [`Side`].
    roads: [Road; 2],
    batch: RxBatch,
    queue: TxQueue,
    completions: VecDeque<TxToken>,
    trace: Option<Trace>,
    /// Frames lost because no buffer was free.
    starved: u64,
}

impl Relay {
    /// A relay between `tap` and a stack that receives into `pools`.
    pub fn new(tap: Tap, kind: LabKind, pools: RxPools) -> Relay {
        let offloads = if kind.offloads { Capabilities::ALL } else { Capabilities::NONE };
        Relay {
            tap,
            tiny: kind.tiny_rings,
            offloads,
            enabled: Capabilities::NONE,
            pools,
            flows: HashMap::new(),
            random: Random::new(0),
            roads: [Road::default(), Road::default()],
            batch: RxBatch::with_limit(BATCH),
            queue: TxQueue::with_capacity(BATCH),
            completions: VecDeque::new(),
            trace: None,
            starved: 0,
        }
    }

    /// The TAP below.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// From now on the connection whose ports are both `port` suffers what `plan` says.
    pub fn add_flow(&mut self, port: u16, plan: &Plan) {
        let lane =
            |impairment| Lane { impairment, burst: 0, burst_until: Instant::ZERO, last: Instant::ZERO };
        let flow = Flow {
            random: Random::new(plan.seed ^ 0x7e1a),
            lanes: [lane(plan.to_ours), lane(plan.to_kernel)],
            narrow: plan.narrow,
            stats: FlowStats::default(),
            recent: Recent::default(),
        };
        self.flows.insert(port, flow);
    }

    /// What the connection suffered so far.
    pub fn flow_stats(&self, port: u16) -> FlowStats {
        self.flows.get(&port).map(|flow| flow.stats).unwrap_or_default()
    }

    /// Its last frames.
    pub fn recent(&self, port: u16) -> String {
        self.flows.get(&port).map(|flow| flow.recent.to_string()).unwrap_or_default()
    }

    /// Lets the connection's frames pass unharmed from now on.
    pub fn remove_flow(&mut self, port: u16) {
        self.flows.remove(&port);
    }

    /// Keeps all frames from now on.
    pub fn start_trace(&mut self) {
        self.trace = Some(Trace::new());
    }

    /// What was kept.
    pub fn take_trace(&mut self) -> Option<Trace> {
        self.trace.take()
    }

    /// When the next frame arrives somewhere.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.roads.iter().filter_map(Road::next_due).min()
    }

    /// Frames to our stack that were lost because no buffer was free.
    pub fn starved(&self) -> u64 {
        self.starved
    }

    /// Frames on their way.
    pub fn in_flight(&self) -> usize {
        self.roads.iter().map(|road| road.frames.len()).sum()
    }

    /// Takes one frame from its sender.
    fn take(&mut self, now: Instant, wire: Wire, to: Side) {
        if let Some(trace) = &mut self.trace {
            trace.add(now, Point::Left, &wire.bytes);
        }
        let layout = wire.layout();
        let flow = layout.and_then(|layout| Some((layout, self.flows.get_mut(&layout.port)?)));
        let Some((layout, flow)) = flow else {
            self.roads[to as usize].send(now, wire);
            return;
        };
        let whole = wire.segment_size > 0 && !self.random.chance(CUT);
        if whole {
            flow.take(now, wire, layout, to, &mut self.roads);
        } else if wire.segment_size > 0 {
            for piece in wire.cut(layout) {
                flow.take(now, piece, layout, to, &mut self.roads);
            }
        } else {
            flow.take(now, wire, layout, to, &mut self.roads);
        }
    }

    /// Hands frames that have arrived at the kernel to it.
    pub fn flush(&mut self, now: Instant) -> Result<bool, DeviceError> {
        let road = &mut self.roads[Side::Kernel as usize];
        let mut any = false;
        while let Some(wire) = road.arrived(now) {
            let Some(slot) = self.queue.vacant() else { break };
            fill_slot(slot, wire);
            if let Some(trace) = &mut self.trace {
                trace.add(now, Point::Arrived, &wire.bytes);
            }
            note(&mut self.flows, now, Side::Kernel, Fate::Arrived, wire);
            self.queue.commit();
            road.pop();
            any = true;
        }
        self.tap.transmit(now, &mut self.queue)?;
        Ok(any)
    }

    fn read_tap(&mut self, now: Instant) -> Result<(), DeviceError> {
        self.tap.receive(now, &mut self.batch)?;
        while let Some(frame) = self.batch.pop() {
            let more = frame.more.iter().map(Slice::bytes);
            let bytes = core::iter::once(frame.data.bytes()).chain(more).collect::<Vec<_>>().concat();
            let partial = frame.meta.checksum == ChecksumStatus::Good;
            let segment_size = frame.meta.segment_size.into();
            self.take(now, Wire { bytes, partial, segment_size }, Side::Ours);
        }
        Ok(())
    }
}

impl Lane {
    /// Whether the next frame is lost.
    fn loses(&mut self, now: Instant, random: &mut Random) -> bool {
        let mean = self.impairment.burst.max(1);
        if self.burst > 0 && now < self.burst_until {
            self.burst -= 1;
            return true;
        }
        let begins = random.chance(self.impairment.loss / mean);
        if begins {
            self.burst = random.within(0, 2 * u64::from(mean - 1)) as u32;
            self.burst_until = now + LONGEST_BURST;
        }
        begins
    }
}

impl Flow {
    fn take(&mut self, now: Instant, wire: Wire, layout: Layout, to: Side, roads: &mut [Road; 2]) {
        self.stats.frames += 1;
        if let Some(narrow) = self.narrow
            && self.stats.frames > narrow.after.into()
            && wire.packet_len(layout) > narrow.mtu
        {
            self.stats.too_big += 1;
            self.recent.note(now, to, Fate::TooBig, &wire, layout);
            if !narrow.silent {
                let sender = if to == Side::Ours { Side::Kernel } else { Side::Ours };
                roads[sender as usize].send(now, wire.too_big(layout, narrow.mtu));
            }
            return;
        }
        let lane = &mut self.lanes[to as usize];
        let (impairment, random) = (lane.impairment, &mut self.random);
        if lane.loses(now, random) {
            self.stats.lost += 1;
            self.recent.note(now, to, Fate::Lost, &wire, layout);
            return;
        }
        let mut due = now + impairment.delay + part_of(random, impairment.jitter);
        if random.chance(impairment.reorder) {
            self.stats.reordered += 1;
            due += part_of(random, impairment.late);
        } else {
            due = due.max(lane.last);
            lane.last = due;
        }
        let road = &mut roads[to as usize];
        if random.chance(impairment.duplicate) {
            self.stats.duplicated += 1;
            road.send(due + part_of(random, impairment.late), wire.clone());
        }
        if wire.segment_size == 0 && random.chance(impairment.corrupt) {
            self.stats.corrupted += 1;
            self.recent.note(now, to, Fate::Corrupted, &wire, layout);
            for mut piece in wire.cut(layout) {
                piece.corrupt(random);
                road.send(due, piece);
            }
        } else {
            self.recent.note(now, to, Fate::Left, &wire, layout);
            road.send(due, wire);
        }
    }
}

/// Notes what became of a frame of whichever connection.
fn note(flows: &mut HashMap<u16, Flow>, now: Instant, to: Side, fate: Fate, wire: &Wire) {
    if let Some(layout) = wire.layout()
        && let Some(flow) = flows.get_mut(&layout.port)
    {
        flow.recent.note(now, to, fate, wire, layout);
    }
}

fn part_of(random: &mut Random, most: Duration) -> Duration {
    Duration::from_micros(random.within(0, most.as_micros() as u64))
}

/// Makes a packet for the TAP of a frame.
fn fill_slot(slot: &mut linerate_nic::TxPacket, wire: &Wire) {
    let layout = wire.layout().filter(|_| wire.partial);
    let header_len = layout.map_or(wire.bytes.len().min(linerate_nic::MAX_HEADER), |layout| layout.payload);
    let (header, payload) = wire.bytes.split_at(header_len);
    slot.header_mut(header_len).copy_from_slice(header);
    if !payload.is_empty() {
        // One piece of an empty gather list always fits.
        let _ = slot.push_chunk(Chunk::Shared(payload.to_vec().into()));
    }
    let Some(layout) = layout else { return };
    slot.meta.header_len = header_len as u16;
    slot.meta.checksum = Some(ChecksumRequest { start: layout.tcp as u16, offset: CHECKSUM_OFFSET as u16 });
    slot.meta.segmentation = match (wire.segment_size as u16, layout.v6) {
        (0, _) => Segmentation::None,
        (size, false) => Segmentation::Tcp4(size),
        (size, true) => Segmentation::Tcp6(size),
    };
}

/// A frame for the stack; `None` when no buffer is free.
fn make_frame(pools: &RxPools, wire: &Wire) -> Option<Frame> {
    let fits = |pool: &&Pool| wire.bytes.len() <= pool.buffer_size();
    let mut buffer = [&pools.small, &pools.large].into_iter().filter(fits).find_map(Pool::take)?;
    buffer.bytes_mut()[..wire.bytes.len()].copy_from_slice(&wire.bytes);
    let checksum = if wire.partial { ChecksumStatus::Good } else { ChecksumStatus::Unchecked };
    let meta = RxMeta { checksum, segment_size: wire.segment_size as u16, ..RxMeta::default() };
    Some(Frame::new(buffer.freeze(0..wire.bytes.len()), meta))
}

impl Device for Relay {
    fn mac(&self) -> MacAddr {
        self.tap.mac()
    }

    fn mtu(&self) -> usize {
        self.tap.mtu()
    }

    fn capabilities(&self) -> Capabilities {
        self.offloads
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted.and(self.offloads) != wanted {
            return Err(DeviceError::Unsupported);
        }
        self.tap.enable(wanted)?;
        self.enabled = wanted;
        Ok(())
    }
}

impl QueuePair for Relay {
    fn enabled(&self) -> Capabilities {
        self.enabled
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.read_tap(now)?;
        let road = &mut self.roads[Side::Ours as usize];
        let mut received = 0;
        while let Some(wire) = road.arrived(now) {
            if batch.is_full() {
                break;
            }
            let Some(frame) = make_frame(&self.pools, wire) else {
                // What a card does for which no buffer was left.
                self.starved += 1;
                note(&mut self.flows, now, Side::Ours, Fate::Starved, wire);
                road.pop();
                continue;
            };
            if let Some(trace) = &mut self.trace {
                trace.add(now, Point::Arrived, &wire.bytes);
            }
            note(&mut self.flows, now, Side::Ours, Fate::Arrived, wire);
            road.pop();
            // There was room.
            let _ = batch.push(frame);
            received += 1;
        }
        Ok(received)
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let ring = if self.tiny { TINY_RING } else { usize::MAX };
        let mut taken = 0;
        while taken < ring
            && let Some(packet) = queue.front()
        {
            let mut bytes = vec![0; packet.len()];
            packet.linearise(&mut bytes);
            let meta = packet.meta;
            queue.pop();
            if meta.token != TxToken(0) {
                self.completions.push_back(meta.token);
            }
            let segment_size = meta.segmentation.segment_size().into();
            self.take(now, Wire { bytes, partial: meta.checksum.is_some(), segment_size }, Side::Kernel);
            taken += 1;
        }
        Ok(taken)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop_front()
    }
}
