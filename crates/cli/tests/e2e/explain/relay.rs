//! A cable between two TAPs that has a rate, a queue and a delay, and loses and holds back frames.

use crate::lab::Namespace;
use linerate_lab::scenario::build::path;
use linerate_lab::scenario::file::PathTable;
use linerate_linux::RxPools;
use linerate_linux::clock::MonotonicClock;
use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::tap::{Tap, TapConfig};
use linerate_nic::{Capabilities, Chunk, QueuePair as _, RxBatch, Slice, TxQueue};
use linerate_sim::{LossState, Path, Queue, Random, wire_bytes};
use linerate_wire::ethernet::{EtherType, Header as Ethernet};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::Header as Tcp;
use linerate_wire::units::Instant;
use linerate_wire::{ipv4, ipv6};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Frames taken from a TAP, or handed to one, in one turn.
const BATCH: usize = 256;
/// Longest sleep, after which the relay looks whether it is to end.
const PATIENCE: Duration = Duration::from_millis(20);
/// What one direction did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Frames.
    pub frames: u64,
    /// Frames that the model of loss took.
    pub lost: u64,
    /// In so many runs.
    pub lost_runs: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
    /// Frames that were held back.
    pub reordered: u64,
    /// Time for which the rate was in use.
    pub busy: Duration,
    /// Time that frames waited in the queue, together.
    pub waited: Duration,
    /// When the first frame with data came, and the last.
    pub span: Option<(Instant, Instant)>,
}

impl Counts {
    /// Share of the time in which the rate was in use.
    pub fn busy_share(&self) -> f64 {
        let Some((first, last)) = self.span else { return 0.0 };
        self.busy.as_secs_f64() / last.saturating_since(first).as_secs_f64().max(1e-6)
    }

    /// Mean wait of a frame.
    pub fn mean_wait(&self) -> Duration {
        self.waited / u32::try_from(self.frames.max(1)).unwrap_or(u32::MAX)
    }
}

/// One direction.
struct Lane {
    path: Path,
    loss: LossState,
    random: Random,
    free_at: Instant,
    was_lost: bool,
    order: BinaryHeap<Reverse<(Instant, u64)>>,
    frames: BTreeMap<u64, Vec<u8>>,
    next: u64,
    counts: Counts,
}

impl Lane {
    fn new(table: &PathTable, stream: u64) -> Lane {
        Lane {
            path: path(table),
            loss: LossState::default(),
            random: Random::stream(1, stream),
            free_at: Instant::ZERO,
            was_lost: false,
            order: BinaryHeap::new(),
            frames: BTreeMap::new(),
            next: 0,
            counts: Counts::default(),
        }
    }

    fn take(&mut self, now: Instant, frame: Vec<u8>) {
        let has_data = has_data(&frame);
        let start = now.max(self.free_at);
        let mut left = start;
        if let Some(rate_bps) = self.path.rate_bps {
            let waiting = start.saturating_since(now).as_secs_f64() * rate_bps as f64 / 8.0;
            if let Queue::DropTail { packets, bytes } = self.path.queue
                && (waiting as usize + frame.len() > bytes || waiting as usize / 1_500 >= packets)
            {
                self.counts.dropped += 1;
                return;
            }
            let sending = Duration::from_nanos((wire_bytes(frame.len()) * 8_000_000_000).div_ceil(rate_bps));
            left = start + sending;
            self.free_at = left;
            self.counts.busy += sending;
            self.counts.waited += start.saturating_since(now);
        }
        self.counts.frames += 1;
        if has_data {
            let first = self.counts.span.map_or(now, |(first, _)| first);
            self.counts.span = Some((first, now));
            let is_lost = self.loss.loses(&self.path.loss, &mut self.random);
            self.counts.lost += u64::from(is_lost);
            self.counts.lost_runs += u64::from(is_lost && !self.was_lost);
            self.was_lost = is_lost;
            if is_lost {
                return;
            }
        }
        let mut due = left + self.path.delay;
        if has_data && self.random.chance(self.path.reorder) {
            self.counts.reordered += 1;
            due += self.path.reorder_delay;
        }
        self.order.push(Reverse((due, self.next)));
        self.frames.insert(self.next, frame);
        self.next += 1;
    }

    fn next_due(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, _))| *due)
    }

    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let Reverse((due, number)) = *self.order.peek()?;
        if due > now {
            return None;
        }
        self.order.pop();
        self.frames.remove(&number)
    }
}

/// Whether a frame holds data of TCP.
fn has_data(frame: &[u8]) -> bool {
    let Ok(ethernet) = Ethernet::parse(frame) else { return false };
    let (protocol, bytes) = match ethernet.ether_type() {
        EtherType::IPV4 => match ipv4::Header::parse(ethernet.payload()) {
            Ok(header) => (header.protocol(), header.payload()),
            Err(_) => return false,
        },
        EtherType::IPV6 => match ipv6::Header::parse(ethernet.payload()) {
            Ok(header) => (header.next_header(), header.payload()),
            Err(_) => return false,
        },
        _ => return false,
    };
    protocol == Protocol::TCP && Tcp::parse(bytes).is_ok_and(|header| !header.payload().is_empty())
}

/// One end of the cable, as the relay holds it.
struct End {
    tap: Tap,
    /// What comes in here.
    lane: Lane,
    queue: TxQueue,
}

/// The cable.
pub struct Relay {
    ends: [End; 2],
    clock: MonotonicClock,
    batch: RxBatch,
}

/// A TAP in `namespace`, which this thread enters.
fn tap(namespace: &Namespace, mtu: u32) -> Tap {
    let file = std::fs::File::open(format!("/run/netns/{}", namespace.name())).expect("the namespace");
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
    let pools = RxPools::for_memory(4 << 20, 9_000);
    let config = TapConfig {
        name: "net0".to_owned(),
        mtu: Some(mtu),
        enabled: Capabilities::NONE,
        ..TapConfig::new(pools)
    };
    Tap::open(config).expect("a TAP device")
}

impl Relay {
    /// Joins two namespaces by a TAP in each, `net0`; `tables` say what happens to frames that come in at each. The thread
    /// is in the second namespace then.
    pub fn new(sides: &[Namespace; 2], mtu: u32, tables: [&PathTable; 2]) -> Relay {
        let ends = [0, 1].map(|side| End {
            tap: tap(&sides[side], mtu),
            lane: Lane::new(tables[side], side as u64),
            queue: TxQueue::with_capacity(BATCH),
        });
        Relay { ends, clock: MonotonicClock::new(), batch: RxBatch::with_limit(BATCH) }
    }

    /// Works until `over` is set; returns what each direction did.
    pub fn run(mut self, over: &AtomicBool) -> [Counts; 2] {
        // Where many run at a time, a cable must not wait for its turn. Without the right to do so, it is less exact.
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        let mut urgent = Command::new("chrt");
        urgent.args(["-f", "-p", "10", &thread]).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = urgent.status();
        while !over.load(Ordering::Relaxed) {
            self.turn();
        }
        self.ends.map(|end| end.lane.counts)
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        for end in &mut self.ends {
            end.tap.receive(now, &mut self.batch).expect("the TAP lives");
            while let Some(frame) = self.batch.pop() {
                let more = frame.more.iter().map(Slice::bytes);
                let bytes = core::iter::once(frame.data.bytes()).chain(more).collect::<Vec<_>>().concat();
                end.lane.take(now, bytes);
            }
        }
        let [a, b] = &mut self.ends;
        deliver(now, &mut a.lane, b.queue_and_tap());
        deliver(now, &mut b.lane, a.queue_and_tap());
        let next = [a.lane.next_due(), b.lane.next_due()].into_iter().flatten().min();
        let wait = next.map_or(PATIENCE, |due| due.saturating_since(self.clock.now()).min(PATIENCE));
        if !wait.is_zero() {
            let [a, b] = &self.ends;
            let mut fds = [&a.tap, &b.tap].map(|tap| PollFd::from_borrowed_fd(tap.as_fd(), PollFlags::IN));
            poller::wait(&mut fds, Some(wait)).expect("poll");
        }
    }
}

impl End {
    fn queue_and_tap(&mut self) -> (&mut TxQueue, &mut Tap) {
        (&mut self.queue, &mut self.tap)
    }
}

fn deliver(now: Instant, lane: &mut Lane, (queue, tap): (&mut TxQueue, &mut Tap)) {
    while queue.room() > 0
        && let Some(frame) = lane.arrived(now)
    {
        let slot = queue.vacant().expect("there is room");
        let (head, rest) = frame.split_at(frame.len().min(linerate_nic::MAX_HEADER));
        slot.header_mut(head.len()).copy_from_slice(head);
        if !rest.is_empty() {
            slot.push_chunk(Chunk::Shared(rest.to_vec().into())).expect("one piece of an empty list");
        }
        queue.commit();
    }
    tap.transmit(now, queue).expect("the TAP lives");
}
