//! Two connections and a network between them, all in virtual time, all from one seed.

use super::{SHORTCUTS_OFF, Wire, addr, byte_at, config, drain, resources, stream};
use crate::tcp::{Config, Connection, Outcome, Resources, SegmentIn, State, TxLimits};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_nic::{Pieces, Pool, TxPacket};
use linerate_transport::{Bytes, Payload, Ready, SendError};
use linerate_wire::tcp::{Flags, SeqNumber};
use linerate_wire::units::Instant;

/// A small generator of pseudo-random numbers (xorshift64*).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound.max(1)
    }

    pub fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1_000) < chance
    }
}

/// What the network does to segments.
#[derive(Clone)]
pub struct Network {
    pub delay: Duration,
    /// Chances per thousand.
    pub loss: u64,
    pub reorder: u64,
    pub duplicate: u64,
    /// Bytes per second of each direction, and how many bytes wait at most; `None` without limit.
    pub bottleneck: Option<(u64, u64)>,
    /// Payloads above this are dropped in silence, as by a path that lost its MTU.
    pub max_payload: usize,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            delay: Duration::from_millis(5),
            loss: 0,
            reorder: 0,
            duplicate: 0,
            bottleneck: None,
            max_payload: usize::MAX,
        }
    }
}

/// Says of a segment of a side whether it gets lost.
pub type Filter = alloc::boxed::Box<dyn FnMut(usize, &Wire) -> bool>;

/// One end: a connection, its device and its application.
pub struct Side {
    pub connection: Connection,
    pub limits: TxLimits,
    pub resources: Resources,
    /// Bytes still to be queued, and queued so far.
    pub to_send: u64,
    pub queued: u64,
    /// Bytes read and found right.
    pub read: u64,
    /// Whether the application reads.
    pub reads: bool,
    /// Most bytes per call of the application.
    pub piece: u64,
    pub shutdown_at_end: bool,
    pub ready: Ready,
    /// Most frames that are merged on reception; 1: none.
    pub coalesce: usize,
    /// Segments sent, for looking at.
    pub sent: Vec<(Instant, Wire)>,
    /// Packets in the device: its rate in packets per ms, and completions to come. `None`: packets leave at once.
    pub device: Option<Device>,
    rx: Pool,
    busy_until: Instant,
}

/// A device that takes its time.
pub struct Device {
    pub per_packet: Duration,
    pub ring: usize,
    pub waiting: VecDeque<(Instant, Option<u32>, Vec<Wire>)>,
}

pub struct World {
    pub now: Instant,
    pub network: Network,
    pub sides: [Side; 2],
    pub random: Random,
    /// Segments under way by time of arrival.
    air: BTreeMap<(Instant, u64), (usize, Wire)>,
    serial: u64,
    /// Segments that the filter picks are dropped. Called with the sending side and the segment.
    pub filter: Option<Filter>,
}

impl Side {
    fn new(connection: Connection, resources: Resources) -> Self {
        Side {
            connection,
            limits: TxLimits { max_payload: 0, completions: false },
            resources,
            to_send: 0,
            queued: 0,
            read: 0,
            reads: true,
            piece: 16 << 10,
            shutdown_at_end: true,
            ready: Ready::NONE,
            coalesce: 1,
            sent: Vec::new(),
            device: None,
            rx: Pool::new(20_000, 2_048),
            busy_until: Instant::ZERO,
        }
    }

    /// What the application does: reads all, checks it, queues what fits.
    fn run(&mut self, now: Instant) {
        self.ready |= self.connection.poll_ready();
        while self.reads && self.connection.readable() > 0 {
            let bytes = self.connection.peek();
            assert!(!bytes.is_empty());
            for &byte in bytes {
                assert_eq!(byte, byte_at(self.read), "at {} of the stream", self.read);
                self.read += 1;
            }
            let count = bytes.len();
            self.connection.consume(now, count);
        }
        while self.to_send > 0 {
            let len = self.to_send.min(self.piece);
            let bytes = stream(self.queued..self.queued + len);
            let result = if len <= 256 {
                self.connection.write(now, &bytes)
            } else {
                self.connection.send(now, Payload::Shared(Bytes::from(bytes)))
            };
            match result {
                Ok(()) => {
                    self.queued += len;
                    self.to_send -= len;
                }
                Err(SendError::Full) => break,
                Err(SendError::Closed) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
        let state = self.connection.tcp_state();
        if self.to_send == 0 && self.shutdown_at_end && state.is_synchronized() {
            self.connection.shutdown(now);
        }
    }
}

impl World {
    /// An active (0) and a passive (1) side; the passive one appears with the SYN.
    pub fn new(seed: u64, network: Network, client: Config, server: Config) -> Self {
        let mut random = Random::new(seed);
        let now = Instant::from_millis(1_000);
        let (ours, theirs) = (resources(), resources());
        let iss = SeqNumber(random.next() as u32);
        let active = Connection::active(now, client, &ours, addr(1, 40_000), addr(4, 80), iss);
        let mut world = World {
            now,
            network,
            sides: [
                Side::new(active, ours),
                // A placeholder in SYN-SENT that never sends: replaced by the passive connection.
                Side::new(
                    Connection::active(now, server.clone(), &theirs, addr(4, 80), addr(1, 40_000), iss),
                    theirs,
                ),
            ],
            random,
            air: BTreeMap::new(),
            serial: 0,
            filter: None,
        };
        let limits = world.sides[0].limits;
        let syn = drain(&mut world.sides[0].connection, now, &limits).remove(0);
        let segment = syn.to_segment(&world.sides[1].rx);
        let iss = SeqNumber(world.random.next() as u32);
        let resources = world.sides[1].resources.clone();
        let mut passive = Connection::active(now, server, &resources, addr(4, 80), addr(1, 40_000), iss);
        passive.answer(now, &segment).expect("a SYN opens");
        world.sides[1].connection = passive;
        world
    }

    pub fn plain(seed: u64, network: Network) -> Self {
        World::new(seed, network, config(), config())
    }

    pub fn set_device(&mut self, side: usize, per_packet: Duration, ring: usize) {
        self.sides[side].limits.completions = true;
        self.sides[side].device = Some(Device { per_packet, ring, waiting: VecDeque::new() });
    }

    /// Runs until `done`, or the virtual deadline; says which.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&World) -> bool) -> bool {
        let deadline = self.now + limit;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let Some(next) = self.next_event() else { return done(self) };
            if next > deadline {
                self.now = deadline;
                return false;
            }
            self.now = self.now.max(next);
        }
    }

    pub fn run_for(&mut self, limit: Duration) {
        self.run_until(limit, |_| false);
    }

    /// Runs until both have received what the other sent and both FINs are acknowledged.
    pub fn run_to_end(&mut self, limit: Duration) {
        let total: u64 = self.sides.iter().map(|side| side.to_send + side.queued).sum();
        let done = self.run_until(limit, |world| {
            let over = |side: &Side| matches!(side.connection.tcp_state(), State::TimeWait | State::Closed);
            world.sides.iter().map(|side| side.read).sum::<u64>() == total && world.sides.iter().all(over)
        });
        let [a, b] = &self.sides;
        assert!(
            done,
            "not done at {:?}: read {} and {} of {total}, states {:?} {:?}\n{:?}\n{:?}",
            self.now,
            a.read,
            b.read,
            a.connection.tcp_state(),
            b.connection.tcp_state(),
            a.connection,
            b.connection
        );
    }

    /// Goes on to the time of the next event; false if there is none.
    pub fn go_to_next(&mut self) -> bool {
        let next = self.next_event();
        self.now = next.map_or(self.now, |next| next.max(self.now));
        next.is_some()
    }

    fn next_event(&self) -> Option<Instant> {
        let air = self.air.keys().next().map(|key| key.0);
        let timers = self.sides.iter().filter_map(|side| side.connection.poll_timeout());
        let devices = self.sides.iter().filter_map(|side| Some(side.device.as_ref()?.waiting.front()?.0));
        air.into_iter().chain(timers).chain(devices).min()
    }

    fn step(&mut self) {
        self.deliver();
        for index in 0..2 {
            let now = self.now;
            self.complete(index);
            self.sides[index].connection.handle_timeout(now);
            self.sides[index].run(now);
            self.transmit(index);
            let side = &mut self.sides[index];
            side.connection.take_tally();
            super::doze(&mut side.connection, &side.resources, now);
        }
    }

    fn complete(&mut self, index: usize) {
        let mut left = Vec::new();
        let Some(device) = &mut self.sides[index].device else { return };
        while device.waiting.front().is_some_and(|packet| packet.0 <= self.now) {
            left.extend(device.waiting.pop_front());
        }
        for (_, tag, segments) in left {
            if let Some(tag) = tag {
                self.sides[index].connection.handle_transmitted(self.now, tag);
            }
            segments.into_iter().for_each(|segment| self.put_on_air(index, segment));
        }
    }

    fn transmit(&mut self, index: usize) {
        let now = self.now;
        let mut packet = TxPacket::new();
        loop {
            let side = &mut self.sides[index];
            if side.device.as_ref().is_some_and(|device| device.waiting.len() >= device.ring) {
                side.connection.handle_link_full(now);
                break;
            }
            let limits = side.limits;
            let Some(info) = side.connection.poll_transmit(now, &limits, &mut packet, super::L4_OFFSET)
            else {
                break;
            };
            let segments = super::to_wire(&packet, &info);
            packet.clear();
            for segment in &segments {
                side.sent.push((now, segment.clone()));
            }
            if let Some(device) = &mut side.device {
                let start = device.waiting.back().map_or(now, |packet| packet.0).max(now);
                device.waiting.push_back((start + device.per_packet, info.completion, segments));
            } else {
                segments.into_iter().for_each(|segment| self.put_on_air(index, segment));
            }
            if info.is_last && !SHORTCUTS_OFF.get() {
                break;
            }
        }
    }

    fn put_on_air(&mut self, from: usize, segment: Wire) {
        if self.filter.as_mut().is_some_and(|filter| filter(from, &segment)) {
            return;
        }
        if segment.payload.len() > self.network.max_payload || self.random.per_mille(self.network.loss) {
            return;
        }
        let mut at = self.now + self.network.delay;
        if let Some((rate, queue)) = self.network.bottleneck {
            let side = &mut self.sides[from];
            let size = segment.payload.len() as u64 + 60;
            let start = side.busy_until.max(self.now);
            if (start - self.now).as_nanos() as u64 > queue * 1_000_000_000 / rate {
                return;
            }
            side.busy_until = start + Duration::from_nanos(size * 1_000_000_000 / rate);
            at = side.busy_until + self.network.delay;
        }
        if self.random.per_mille(self.network.reorder) {
            at += Duration::from_micros(self.random.below(10_000));
        }
        if self.random.per_mille(self.network.duplicate) {
            self.serial += 1;
            let late = at + Duration::from_micros(self.random.below(3_000));
            self.air.insert((late, self.serial), (from, segment.clone()));
        }
        self.serial += 1;
        self.air.insert((at, self.serial), (from, segment));
    }

    fn deliver(&mut self) {
        let mut pending: Option<(usize, SegmentIn)> = None;
        while let Some(entry) = self.air.first_entry()
            && entry.key().0 <= self.now
        {
            let (from, segment) = entry.remove();
            let to = 1 - from;
            let side = &self.sides[to];
            let segment = segment.to_segment(&side.rx);
            let limit = side.coalesce;
            match pending.take() {
                Some((last, mut merged)) if last == to && may_merge(&merged, &segment, limit) => {
                    merge(&mut merged, segment);
                    pending = Some((to, merged));
                }
                other => {
                    self.hand_over(other);
                    pending = Some((to, segment));
                }
            }
        }
        self.hand_over(pending);
    }

    fn hand_over(&mut self, segment: Option<(usize, SegmentIn)>) {
        if let Some((to, segment)) = segment {
            let outcome = self.sides[to].connection.handle_segment(self.now, segment);
            let _: Outcome = outcome;
        }
    }
}

/// What receive coalescing joins: same ACK and options, in sequence, full segments.
fn may_merge(first: &SegmentIn, second: &SegmentIn, limit: usize) -> bool {
    let size = first.payload.as_ref().map_or(0, |slice| slice.len());
    let plain = |segment: &SegmentIn| segment.flags.without(Flags::PSH) == Flags::ACK;
    plain(first)
        && plain(second)
        && !first.flags.contains(Flags::PSH)
        && first.segments() < limit
        && second.payload_len() > 0
        && second.payload_len() <= size
        && first.payload_len().is_multiple_of(size.max(1))
        && first.seq + first.payload_len() as u32 == second.seq
        && first.ack == second.ack
        && first.options == second.options
}

fn merge(first: &mut SegmentIn, mut second: SegmentIn) {
    first.segment_size = first.payload.as_ref().map_or(0, |slice| slice.len()) as u16;
    first.flags |= second.flags;
    let mut more = core::mem::replace(&mut first.more, Pieces::new());
    more.push(second.payload.take().expect("payload"));
    first.more = more;
}
