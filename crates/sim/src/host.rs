//! A host: a core with a stack of ours for each queue of its interface, and what they share.

use crate::apps::{App, Context};
use crate::core::Core;
use crate::journal::Pen;
use crate::link::{LinkPath, Output, Transmitter};
use crate::nic::{Leaving, NicConfig, NicStats, SimNic};
use crate::parcel::{Parcel, Stock};
use crate::random::Random;
use crate::spread::{Spread, Spreader};
use crate::timeline::Timeline;
use linerate_nic::{Capabilities, DeviceError, MacAddr, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, Seat, StackConfig, StackPools};
use linerate_transport::Owner;
use linerate_wire::units::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::{Add, Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

/// The owner of sockets that a test opens by itself, without an application; their events are in [`Core::events`].
pub const TEST: Owner = Owner(0x7fff);

/// Time that a processor takes. A turn of the loop works at its start; the next turn waits until its time is over, while
/// the interface goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuCost {
    /// For each frame received and each packet given to the interface.
    pub packet: Duration,
    /// For each kilobyte (1,000 bytes) of them.
    pub kilobyte: Duration,
    /// For each kilobyte whose checksum software computes or verifies, because the interface does not.
    pub checksum: Duration,
    /// For each packet given to the interface, beside [`CpuCost::packet`]: what a driver does to send it.
    pub transmit: Duration,
    /// For each frame received, beside [`CpuCost::packet`].
    pub receive: Duration,
    /// For each interrupt, or look at the interface, that found frames.
    pub interrupt: Duration,
    /// For each call of an application that writes or reads.
    pub call: Duration,
    /// For each time that an application gives way to others.
    pub give_way: Duration,
    /// For each kilobyte that applications write and read: a copy between them and the stack.
    pub copy: Duration,
}

impl CpuCost {
    /// No time for anything.
    pub const NONE: CpuCost = CpuCost {
        packet: Duration::ZERO,
        kilobyte: Duration::ZERO,
        checksum: Duration::ZERO,
        transmit: Duration::ZERO,
        receive: Duration::ZERO,
        interrupt: Duration::ZERO,
        call: Duration::ZERO,
        give_way: Duration::ZERO,
        copy: Duration::ZERO,
    };
}

/// Time that a processor has spent, by what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    /// On frames and packets, whatever their length.
    pub packets: Duration,
    /// On their bytes.
    pub bytes: Duration,
    /// On checksums in software.
    pub checksums: Duration,
    /// On interrupts.
    pub interrupts: Duration,
    /// On calls of applications.
    pub calls: Duration,
    /// On giving way.
    pub ways: Duration,
    /// On copies between applications and the stack.
    pub copies: Duration,
}

impl CpuTimes {
    /// Each part with what it is spent on, in one word.
    pub fn parts(&self) -> [(&'static str, Duration); 7] {
        [
            ("packets", self.packets),
            ("bytes", self.bytes),
            ("checksums", self.checksums),
            ("interrupts", self.interrupts),
            ("calls", self.calls),
            ("giving way", self.ways),
            ("copies", self.copies),
        ]
    }

    /// All of it.
    pub fn total(&self) -> Duration {
        self.parts().iter().map(|(_, time)| *time).sum()
    }
}

impl Add for CpuTimes {
    type Output = CpuTimes;

    fn add(self, other: CpuTimes) -> CpuTimes {
        CpuTimes {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            checksums: self.checksums + other.checksums,
            interrupts: self.interrupts + other.interrupts,
            calls: self.calls + other.calls,
            ways: self.ways + other.ways,
            copies: self.copies + other.copies,
        }
    }
}

/// How to build a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its name, in captures and messages.
    pub name: String,
    /// Its stack; `mac` and `mtu` are replaced by those of the interface.
    pub stack: StackConfig,
    /// Its interface.
    pub nic: NicConfig,
    /// Its Ethernet address; `None`: 02:00:00:00 and the number of the node, from 1.
    pub mac: Option<MacAddr>,
    /// Offloads that may be used; the rest is done in software. Default: all that the interface has.
    pub offloads: Capabilities,
    /// Sizes of the offload layer.
    pub port: PortConfig,
    /// Slots of the queue between stack and interface. Default: 128.
    pub tx_queue: usize,
    /// Time that a processor takes; each core has one. Default: none.
    pub cpu: CpuCost,
    /// Length of the only file there is, in bytes; it holds [`Pattern`](crate::Pattern) 0. Default: without end.
    pub file_len: u64,
    /// Queues of the interface, each with a core and a stack of its own; at least 1. Rings are those of each queue; receive
    /// buffers and memory are divided among them. Default: 1.
    pub queues: u16,
    /// How the interface spreads frames over them. Default: by hash.
    pub spread: Spread,
    /// How long a letter is on its way from one core to another. Default: 1 us.
    pub letter_delay: Duration,
}

impl HostConfig {
    /// A host with these addresses (as `10.0.0.1/24`), which are used at once. Panics on text that is no address with
    /// a prefix length.
    pub fn new(name: &str, addresses: &[&str]) -> HostConfig {
        let addresses = addresses.iter().map(|text| match text.parse() {
            Ok(address) => address,
            Err(error) => panic!("{text}: {error}"),
        });
        HostConfig {
            name: name.to_string(),
            stack: StackConfig { addresses: addresses.collect(), dad_transmits: 0, ..StackConfig::default() },
            nic: NicConfig::default(),
            mac: None,
            offloads: Capabilities::ALL,
            port: PortConfig::default(),
            tx_queue: 128,
            cpu: CpuCost::default(),
            file_len: u64::MAX / 2,
            queues: 1,
            spread: Spread::default(),
            letter_delay: Duration::from_micros(1),
        }
    }
}

/// What came of a turn of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// There is more to do now.
    pub(crate) has_more: bool,
    /// Something went in, out, or to an application.
    pub(crate) moved: bool,
}

/// See the module. A host is its first core, and the others where there are several queues.
pub struct Host {
    name: String,
    cores: Vec<Core>,
    /// The core of each application.
    homes: Vec<usize>,
    spreader: Rc<RefCell<Spreader>>,
    /// Other ways to spread frames, and from when on.
    spreads: VecDeque<(Instant, Spread)>,
    letter_delay: Duration,
    /// The line to which all queues send.
    transmitter: Transmitter,
    /// The queue whose turn it is to send.
    next_queue: usize,
}

impl Deref for Host {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.cores[0]
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.cores[0]
    }
}

impl Host {
    /// A host with this Ethernet address, at this time; the stacks draw their secrets from `secrets`.
    pub(crate) fn new(
        config: HostConfig,
        mac: MacAddr,
        stock: &Stock,
        mut secrets: Random,
        chance: Random,
        now: Instant,
    ) -> Result<Host, DeviceError> {
        let queues = config.queues.max(1);
        let spreader = Rc::new(RefCell::new(Spreader::new(queues, config.spread.clone(), chance)));
        // Cookies of one stack are good at the others.
        let seed = secrets.bytes32();
        let mut cores = Vec::new();
        for index in 0..queues {
            let mut nic = config.nic.clone();
            nic.rx_buffers = (nic.rx_buffers / usize::from(queues)).max(1);
            let nic = SimNic::new(mac, nic, stock.clone(), index, Rc::clone(&spreader));
            let memory = config.stack.memory / usize::from(queues);
            let seat = Seat { index, seats: queues };
            let stack = StackConfig { memory, seat, ..config.stack.clone() };
            let pools = StackPools::for_memory(memory).with_receive(nic.pool().clone());
            let mut port = Port::new(nic, config.port)?;
            port.set_offloads(config.offloads)?;
            let sizes = NodeConfig { tx_queue: config.tx_queue, ..NodeConfig::default() };
            let node = Node::new(port, stack, seed, pools, sizes);
            cores.push(Core::new(node, config.cpu, config.file_len));
        }
        let mut host = Host {
            name: config.name,
            cores,
            homes: Vec::new(),
            spreader,
            spreads: VecDeque::new(),
            letter_delay: config.letter_delay,
            transmitter: Transmitter::default(),
            next_queue: 0,
        };
        // What a program does before it lets its cores run: all know the addresses.
        host.tell_spread();
        host.carry_letters(0, now, Duration::ZERO);
        for core in &mut host.cores {
            core.read_letters(now);
        }
        Ok(host)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its cores, one for each queue of the interface.
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// The core of a queue. Panics if there are not so many.
    pub fn core_mut(&mut self, queue: usize) -> &mut Core {
        &mut self.cores[queue]
    }

    /// What all queues of the interface have counted.
    pub fn nic_stats(&self) -> NicStats {
        self.cores.iter().fold(NicStats::default(), |sum, core| sum + core.nic().stats())
    }

    pub(crate) fn touch(&mut self, now: Instant) {
        for core in &mut self.cores {
            core.stack.set_now(now);
            core.is_touched = true;
        }
    }

    /// Gives each queue with its core a pen for the journal.
    pub(crate) fn set_pens(&mut self, pen: impl Fn(u16) -> Pen) {
        for (queue, core) in (0..).zip(&mut self.cores) {
            core.pen = pen(queue);
            core.nic_mut().pen = pen(queue);
        }
    }

    /// Adds an application to a core, the last one where there are not so many.
    pub(crate) fn add_app(&mut self, queue: usize, app: Box<dyn App>) -> Owner {
        let queue = queue.min(self.cores.len() - 1);
        let owner = self.homes.len() as u16;
        self.homes.push(queue);
        self.cores[queue].apps.insert(owner, app);
        Owner(owner)
    }

    /// The core on which an application runs; the first, where there is no such application.
    pub fn home(&self, owner: Owner) -> &Core {
        &self.cores[self.homes.get(usize::from(owner.0)).copied().unwrap_or(0)]
    }

    pub(crate) fn app(&self, owner: Owner) -> Option<&dyn App> {
        self.home(owner).apps.get(&owner.0).map(|app| &**app)
    }

    /// Calls an application, with the stack at hand.
    pub(crate) fn with_app<R>(
        &mut self,
        now: Instant,
        owner: Owner,
        work: impl FnOnce(&mut dyn App, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let home = *self.homes.get(usize::from(owner.0))?;
        let core = self.cores.get_mut(home)?;
        let app = core.apps.get_mut(&owner.0)?;
        Some(work(&mut **app, &mut Context { now, owner, stack: &mut core.node.stack }))
    }

    /// Where segments wait that will come in on the queue that the interface chooses for them.
    pub(crate) fn inbound_for(&mut self, parcel: &Parcel) -> &mut Timeline {
        let queue = self.spreader.borrow_mut().queue_of(parcel);
        &mut self.cores[queue].nic_mut().inbound
    }

    /// Spreads frames in another way from a time to come.
    pub(crate) fn schedule_spread(&mut self, at: Instant, spread: Spread) {
        let behind = self.spreads.iter().rev().take_while(|(other, _)| *other > at).count();
        self.spreads.insert(self.spreads.len() - behind, (at, spread));
    }

    /// Changes how frames are spread, if that is due: also those on their way here.
    fn change_spread(&mut self, now: Instant) {
        while self.spreads.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, spread)) = self.spreads.pop_front() else { return };
            self.spreader.borrow_mut().spread = spread;
            self.tell_spread();
            let due: Vec<_> =
                self.cores.iter_mut().flat_map(|core| core.nic_mut().inbound.take_all()).collect();
            for entry in due {
                self.inbound_for(entry.parcel()).place(entry);
            }
        }
    }

    /// Tells the stacks how frames are spread, so that they open connections whose answers come in at their own queue.
    fn tell_spread(&mut self) {
        let rss = self.spreader.borrow().spread.rss(self.cores.len() as u16);
        for core in &mut self.cores {
            core.stack.set_rss(rss.clone());
        }
    }

    /// When the host, its interface included, has something to do without anything coming from outside.
    pub(crate) fn poll_timeout(&self, now: Instant, line_is_paused: bool) -> Option<Instant> {
        let line = Some(self.transmitter.free_at).filter(|_| !line_is_paused);
        let core = |core: &Core| {
            let due = if core.is_touched { Some(now) } else { core.poll_timeout() };
            let due = due.map(|at| at.max(core.busy_until));
            let nic = core.nic().poll_timeout(line, core.busy_until);
            [nic, due].into_iter().flatten().min()
        };
        let spread = self.spreads.front().map(|(at, _)| *at);
        self.cores.iter().filter_map(core).chain(spread).min()
    }

    /// Lets the interface bring what has come, at most `most` segments at once, and gives each core its turn; true if
    /// anything came of it. `seen` is told of what comes in.
    pub(crate) fn run(&mut self, now: Instant, most: u16, mut seen: impl FnMut(&Parcel, Instant)) -> bool {
        self.change_spread(now);
        let mut moved = false;
        for index in 0..self.cores.len() {
            let core = &mut self.cores[index];
            let wakes = core.nic_mut().advance(now, most, &mut seen);
            core.is_touched |= wakes;
            moved |= wakes;
            if core.is_due(now) {
                let turn = core.turn(now);
                core.is_touched = turn.has_more;
                moved |= turn.moved;
                self.carry_letters(index, now, self.letter_delay);
            }
        }
        moved
    }

    /// Sends the letters of a core on their way.
    fn carry_letters(&mut self, from: usize, now: Instant, delay: Duration) {
        let sender = self.cores[from].stack.seat();
        while let Some(letter) = self.cores[from].stack.poll_letter() {
            for seat in letter.to.seats(sender) {
                self.cores[usize::from(seat)].deliver(now + delay, letter.message.clone());
            }
        }
    }

    /// For how long bits have left the interface by `now`, where it has a rate.
    pub fn line_busy_by(&self, now: Instant) -> Duration {
        self.transmitter.busy_by(now)
    }

    /// Begins to send what can be begun by `now`, from one queue after the other; `seen` is told of each packet.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        line: &mut LinkPath,
        out: &mut Output,
        mut seen: impl FnMut(&Parcel, Leaving),
    ) {
        let mut idle = 0;
        while idle < self.cores.len() && self.transmitter.free_at <= now && !line.is_paused() {
            let nic = self.cores[self.next_queue].nic_mut();
            let has_sent = nic.start(now, &mut self.transmitter, line, out, &mut seen);
            self.next_queue = (self.next_queue + 1) % self.cores.len();
            idle = if has_sent { 0 } else { idle + 1 };
        }
    }
}
