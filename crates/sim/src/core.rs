//! One of a host's cores: a stack on a queue of the interface, the loop around it, and its applications.

use crate::apps::{App, AppWork, Context};
use crate::host::{CpuCost, CpuTimes, Turn};
use crate::journal::{Pen, What};
use crate::nic::SimNic;
use linerate_stack::{Message, Node};
use linerate_transport::{Engine as _, Event, Owner, Source, Transport as _};
use linerate_wire::units::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// Letters that may be on their way to a core; beyond them packets are dropped and counted.
const MOST_LETTERS: usize = 4_096;

/// What other cores have sent to one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LetterStats {
    /// Letters of all kinds.
    pub letters: u64,
    /// Of them packets that came in on another queue.
    pub packets: u64,
    /// Bytes of these packets, each copied twice: out of the buffers of one core, and into those of the other.
    pub packet_bytes: u64,
    /// Packets dropped because too many letters were on their way.
    pub dropped: u64,
}

/// What went through an offload layer, or from core to core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Work {
    sent: u64,
    received: u64,
    packets: u64,
    bytes: u64,
    /// Checksums that software has done.
    sums: u64,
    interrupts: u64,
    apps: AppWork,
}

/// See the module.
pub struct Core {
    /// The stack, to be used as an application would, and the queue with its offload layer. The world gives the core its
    /// turn afterwards.
    pub node: Node<SimNic>,
    /// Events of sockets that belong to no application of this host.
    pub events: VecDeque<Event>,
    /// By owner.
    pub(crate) apps: BTreeMap<u16, Box<dyn App>>,
    pub(crate) file_len: u64,
    /// It may have something to do at the present time.
    pub(crate) is_touched: bool,
    cpu: CpuCost,
    cpu_times: CpuTimes,
    worked: Work,
    /// When the processor is free again.
    pub(crate) busy_until: Instant,
    /// Letters of other cores, and when they are here.
    inbox: VecDeque<(Instant, Message)>,
    letters: LetterStats,
    /// Notes the turns.
    pub(crate) pen: Pen,
}

impl Deref for Core {
    type Target = Node<SimNic>;

    fn deref(&self) -> &Node<SimNic> {
        &self.node
    }
}

impl DerefMut for Core {
    fn deref_mut(&mut self) -> &mut Node<SimNic> {
        &mut self.node
    }
}

impl Core {
    pub(crate) fn new(node: Node<SimNic>, cpu: CpuCost, file_len: u64) -> Core {
        Core {
            node,
            events: VecDeque::new(),
            apps: BTreeMap::new(),
            file_len,
            is_touched: true,
            cpu,
            cpu_times: CpuTimes::default(),
            worked: Work::default(),
            busy_until: Instant::ZERO,
            inbox: VecDeque::new(),
            letters: LetterStats::default(),
            pen: Pen::default(),
        }
    }

    /// The queue.
    pub fn nic(&self) -> &SimNic {
        self.node.port.device()
    }

    /// Time that the processor has spent so far.
    pub fn cpu_times(&self) -> CpuTimes {
        self.cpu_times
    }

    /// How much of that has passed by `now`: the work of a turn lasts beyond its beginning.
    pub fn busy_by(&self, now: Instant) -> Duration {
        self.cpu_times.total().saturating_sub(self.busy_until.max(now) - now)
    }

    /// What other cores have sent so far.
    pub fn letters(&self) -> LetterStats {
        self.letters
    }

    /// The next event of a socket opened with owner [`TEST`](crate::TEST) on this source, if there is one.
    pub fn take_event(&mut self, source: Source) -> Option<Event> {
        let at = self.events.iter().position(|event| event.source == source)?;
        self.events.remove(at)
    }

    pub(crate) fn nic_mut(&mut self) -> &mut SimNic {
        self.node.port.device_mut()
    }

    /// Puts a letter of another core into the box, where it is seen at `at`.
    pub(crate) fn deliver(&mut self, at: Instant, message: Message) {
        if self.inbox.len() >= MOST_LETTERS && message.is_packet() {
            self.letters.dropped += 1;
            return;
        }
        let packet = message.packet_len();
        self.letters.letters += 1;
        self.letters.packets += u64::from(packet > 0);
        self.letters.packet_bytes += packet as u64;
        self.inbox.push_back((at, message));
    }

    /// When the core has something to do without anything coming from outside.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.apps.values().filter_map(|app| app.poll_timeout()).min();
        let letter = self.inbox.front().map(|(at, _)| *at);
        [self.node.poll_timeout(), apps, letter].into_iter().flatten().min()
    }

    /// Whether the loop takes a turn now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let has_work = self.is_touched || self.poll_timeout().is_some_and(|at| at <= now);
        has_work && self.busy_until <= now
    }

    /// One turn of the loop.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        let before = self.worked;
        let heard = self.read_letters(now);
        // A simulated interface never fails.
        let input = self.node.input(now);
        debug_assert!(input.is_ok(), "{input:?}");
        let mut told = self.run_events(now);
        let ran = self.run_timers(now);
        self.answer_files(now);
        let output = self.node.output(now);
        debug_assert!(output.is_ok(), "{output:?}");
        // Sending may have told something too.
        let told_late = self.run_events(now);
        told |= told_late;
        let after = self.work();
        self.worked = after;
        let (packets, cost) = (after.packets - before.packets, self.spend(before, after));
        self.busy_until = now + cost.total();
        let nic = self.nic();
        let sends = self.node.wants_transmit() && !nic.is_full();
        let has_more = ran || told_late || sends || nic.has_news();
        let moved = heard || ran || told || after != before;
        if moved {
            self.pen.note(now, || What::Turn { cost, packets });
        }
        Turn { has_more, moved }
    }

    /// Takes what other cores have sent; true if there was anything.
    pub(crate) fn read_letters(&mut self, now: Instant) -> bool {
        let mut any = false;
        while self.inbox.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, message)) = self.inbox.pop_front() else { break };
            self.node.stack.handle_message(now, message);
            any = true;
        }
        any
    }

    /// What went through the offload layer and came from other cores so far.
    fn work(&self) -> Work {
        let stats = self.node.port.stats();
        let (rx, tx) = (stats.rx, stats.tx);
        Work {
            sent: tx.packets,
            received: rx.frames,
            packets: rx.frames + tx.packets + self.letters.packets,
            bytes: rx.bytes + tx.bytes + self.letters.packet_bytes,
            sums: rx.software_good + rx.software_bad + tx.software_checksums,
            interrupts: self.nic().stats().interrupts,
            apps: self.apps.values().map(|app| app.work()).fold(AppWork::default(), |sum, work| sum + work),
        }
    }

    /// What a turn costs the processor. The packets whose checksums software did have the mean length of the turn.
    fn spend(&mut self, before: Work, after: Work) -> CpuTimes {
        let of = |cost: Duration, bytes: u64| {
            Duration::from_nanos(bytes.saturating_mul(cost.as_nanos() as u64) / 1_000)
        };
        let (packets, bytes) = (after.packets - before.packets, after.bytes - before.bytes);
        let sums = (after.sums - before.sums).min(packets);
        let summed = (sums * bytes).checked_div(packets).unwrap_or(0);
        let times = |cost: Duration, count: u64| cost * u32::try_from(count).unwrap_or(u32::MAX);
        let (sent, received) = (after.sent - before.sent, after.received - before.received);
        let turn = CpuTimes {
            packets: times(self.cpu.packet, packets)
                + times(self.cpu.transmit, sent)
                + times(self.cpu.receive, received),
            bytes: of(self.cpu.kilobyte, bytes),
            checksums: of(self.cpu.checksum, summed),
            interrupts: times(self.cpu.interrupt, after.interrupts - before.interrupts),
            calls: times(self.cpu.call, after.apps.calls - before.apps.calls),
            ways: times(self.cpu.give_way, after.apps.ways - before.apps.ways),
            copies: of(self.cpu.copy, after.apps.bytes - before.apps.bytes),
        };
        self.cpu_times = self.cpu_times + turn;
        turn
    }

    /// Hands out events; true if there were any.
    fn run_events(&mut self, now: Instant) -> bool {
        let mut told = false;
        while let Some(event) = self.node.stack.poll_event() {
            told = true;
            let owner = event.owner;
            match self.apps.get_mut(&owner.0) {
                Some(app) => {
                    app.handle_event(&mut Context { now, owner, stack: &mut self.node.stack }, event)
                }
                None => self.events.push_back(event),
            }
        }
        told
    }

    /// Runs what is due in applications; true if anything was.
    fn run_timers(&mut self, now: Instant) -> bool {
        let mut ran = false;
        for (owner, app) in &mut self.apps {
            if app.poll_timeout().is_some_and(|at| at <= now) {
                let owner = Owner(*owner);
                app.handle_timeout(&mut Context { now, owner, stack: &mut self.node.stack });
                ran = true;
            }
        }
        ran
    }

    fn answer_files(&mut self, now: Instant) {
        while let Some(request) = self.node.stack.poll_file_request() {
            let left = self.file_len.saturating_sub(request.offset);
            let mut bytes = vec![0; request.len.min(usize::try_from(left).unwrap_or(usize::MAX))];
            crate::Pattern::new(0).fill(request.offset, &mut bytes);
            self.node.stack.handle_file_data(now, request.token, Ok(bytes.into()));
        }
    }
}
