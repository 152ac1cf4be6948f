//! A host: our stack, the loop around it, and its applications.

use crate::apps::{App, Context};
use crate::nic::{NicConfig, SimNic};
use linerate_nic::{Capabilities, DeviceError, MacAddr, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{Engine as _, Event, Owner, Source, Transport as _};
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The owner of sockets that a test opens by itself, without an application; their events are in [`Host::events`].
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
}

impl CpuTimes {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.packets + self.bytes + self.checksums
    }
}

/// What went through an offload layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Work {
    packets: u64,
    bytes: u64,
    /// Checksums that software has done.
    sums: u64,
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
    /// Time that the processor takes. Default: none.
    pub cpu: CpuCost,
    /// Length of the only file there is, in bytes; it holds [`Pattern`](crate::Pattern) 0. Default: without end.
    pub file_len: u64,
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

/// See the module.
pub struct Host {
    /// The stack, to be used as an application would, and the interface with its offload layer. The world gives the host
    /// its turn afterwards.
    pub node: Node<SimNic>,
    /// Events of sockets that belong to no application of this host.
    pub events: VecDeque<Event>,
    name: String,
    apps: Vec<Box<dyn App>>,
    file_len: u64,
    /// It may have something to do at the present time.
    pub(crate) is_touched: bool,
    cpu: CpuCost,
    cpu_times: CpuTimes,
    worked: Work,
    /// When the processor is free again.
    pub(crate) busy_until: Instant,
}

/// A host is a node with applications.
impl Deref for Host {
    type Target = Node<SimNic>;

    fn deref(&self) -> &Node<SimNic> {
        &self.node
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Node<SimNic> {
        &mut self.node
    }
}

impl Host {
    pub(crate) fn new(config: HostConfig, nic: SimNic, seed: [u8; 32]) -> Result<Host, DeviceError> {
        let pools = StackPools::for_memory(config.stack.memory).with_receive(nic.pool().clone());
        let mut port = Port::new(nic, config.port)?;
        port.set_offloads(config.offloads)?;
        let sizes = NodeConfig { tx_queue: config.tx_queue, ..NodeConfig::default() };
        Ok(Host {
            node: Node::new(port, config.stack, seed, pools, sizes),
            events: VecDeque::new(),
            name: config.name,
            apps: Vec::new(),
            file_len: config.file_len,
            is_touched: true,
            cpu: config.cpu,
            cpu_times: CpuTimes::default(),
            worked: Work::default(),
            busy_until: Instant::ZERO,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface.
    pub fn nic(&self) -> &SimNic {
        self.node.port.device()
    }

    /// Time that the processor has spent so far.
    pub fn cpu_times(&self) -> CpuTimes {
        self.cpu_times
    }

    pub(crate) fn nic_mut(&mut self) -> &mut SimNic {
        self.node.port.device_mut()
    }

    pub(crate) fn add_app(&mut self, app: Box<dyn App>) -> Owner {
        self.apps.push(app);
        Owner((self.apps.len() - 1) as u16)
    }

    pub(crate) fn app(&self, owner: Owner) -> Option<&dyn App> {
        self.apps.get(usize::from(owner.0)).map(|app| &**app)
    }

    /// Calls an application, with the stack at hand.
    pub(crate) fn with_app<R>(
        &mut self,
        now: Instant,
        owner: Owner,
        work: impl FnOnce(&mut dyn App, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let app = self.apps.get_mut(usize::from(owner.0))?;
        Some(work(&mut **app, &mut Context { now, owner, stack: &mut self.node.stack }))
    }

    /// When the host has something to do without anything coming from outside.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.apps.iter().filter_map(|app| app.poll_timeout()).min();
        [self.node.poll_timeout(), apps].into_iter().flatten().min()
    }

    /// One turn of the loop.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        let before = self.worked;
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
        self.busy_until = now + self.spend(before, after);
        let nic = self.nic();
        let sends = self.node.wants_transmit() && !nic.is_full();
        let has_more = ran || told_late || sends || nic.has_news();
        Turn { has_more, moved: ran || told || after != before }
    }

    /// What went through the offload layer so far.
    fn work(&self) -> Work {
        let stats = self.node.port.stats();
        let (rx, tx) = (stats.rx, stats.tx);
        Work {
            packets: rx.frames + tx.packets,
            bytes: rx.bytes + tx.bytes,
            sums: rx.software_good + rx.software_bad + tx.software_checksums,
        }
    }

    /// What a turn costs the processor. The packets whose checksums software did have the mean length of the turn.
    fn spend(&mut self, before: Work, after: Work) -> Duration {
        let of = |cost: Duration, bytes: u64| {
            Duration::from_nanos(bytes.saturating_mul(cost.as_nanos() as u64) / 1_000)
        };
        let (packets, bytes) = (after.packets - before.packets, after.bytes - before.bytes);
        let sums = (after.sums - before.sums).min(packets);
        let summed = (sums * bytes).checked_div(packets).unwrap_or(0);
        let turn = CpuTimes {
            packets: self.cpu.packet * u32::try_from(packets).unwrap_or(u32::MAX),
            bytes: of(self.cpu.kilobyte, bytes),
            checksums: of(self.cpu.checksum, summed),
        };
        self.cpu_times.packets += turn.packets;
        self.cpu_times.bytes += turn.bytes;
        self.cpu_times.checksums += turn.checksums;
        turn.total()
    }

    /// Hands out events; true if there were any.
    fn run_events(&mut self, now: Instant) -> bool {
        let mut told = false;
        while let Some(event) = self.node.stack.poll_event() {
            told = true;
            let owner = event.owner;
            match self.apps.get_mut(usize::from(owner.0)) {
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
        for (index, app) in self.apps.iter_mut().enumerate() {
            if app.poll_timeout().is_some_and(|at| at <= now) {
                let owner = Owner(index as u16);
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

    /// The next event of a socket opened with owner [`TEST`] on this source, if there is one.
    pub fn take_event(&mut self, source: Source) -> Option<Event> {
        let at = self.events.iter().position(|event| event.source == source)?;
        self.events.remove(at)
    }
}
