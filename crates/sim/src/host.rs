//! A host: our stack, the loop around it, and its applications.

use crate::apps::{App, Context};
use crate::nic::{NicConfig, SimNic};
use linerate_nic::{Capabilities, DeviceError, MacAddr, Port, PortConfig, RxBatch, TxQueue};
use linerate_stack::{Stack, StackConfig, StackFileRequest, StackPools};
use linerate_transport::{Event, Owner, Source, Transport};
use linerate_wire::units::Instant;
use std::collections::VecDeque;

/// The owner of sockets that a test opens by itself, without an application; their events are in [`Host::events`].
pub const TEST: Owner = Owner(0x7fff);

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
            file_len: u64::MAX / 2,
        }
    }
}

/// See the module.
pub struct Host {
    /// The stack, to be used as an application would. The world gives the host its turn afterwards.
    pub stack: Stack,
    /// The interface and its offload layer.
    pub port: Port<SimNic>,
    /// Events of sockets that belong to no application of this host.
    pub events: VecDeque<Event>,
    name: String,
    batch: RxBatch,
    queue: TxQueue,
    apps: Vec<Box<dyn App>>,
    requests: VecDeque<StackFileRequest>,
    file_len: u64,
    /// It may have something to do at the present time.
    pub(crate) is_touched: bool,
}

impl Host {
    pub(crate) fn new(config: HostConfig, nic: SimNic, seed: [u8; 32]) -> Result<Host, DeviceError> {
        let stack =
            StackConfig { mac: linerate_nic::Device::mac(&nic), mtu: nic.config().mtu, ..config.stack };
        let pools = StackPools::for_memory(stack.memory).with_receive(nic.pool().clone());
        let mut port = Port::new(nic, config.port)?;
        port.set_offloads(config.offloads)?;
        Ok(Host {
            stack: Stack::new(stack, seed, pools),
            port,
            events: VecDeque::new(),
            name: config.name,
            batch: RxBatch::with_limit(256),
            queue: TxQueue::with_capacity(config.tx_queue),
            apps: Vec::new(),
            requests: VecDeque::new(),
            file_len: config.file_len,
            is_touched: true,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface.
    pub fn nic(&self) -> &SimNic {
        self.port.device()
    }

    pub(crate) fn nic_mut(&mut self) -> &mut SimNic {
        self.port.device_mut()
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
        Some(work(&mut **app, &mut Context { now, owner, stack: &mut self.stack }))
    }

    /// When the host has something to do without anything coming from outside.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.apps.iter().filter_map(|app| app.poll_timeout()).min();
        [self.stack.poll_timeout(), apps].into_iter().flatten().min()
    }

    /// One turn of the loop. True when anything moved.
    pub(crate) fn turn(&mut self, now: Instant) -> bool {
        self.stack.set_now(now);
        // A simulated interface never fails.
        let mut moved = self.port.receive(now, &mut self.batch).unwrap_or(0) > 0;
        while !self.batch.is_empty() {
            self.stack.handle_frames(now, &mut self.batch);
        }
        while let Some(token) = self.port.poll_completion() {
            self.stack.handle_completion(now, token);
            moved = true;
        }
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
            moved = true;
        }
        moved |= self.run_apps(now);
        moved |= self.answer_files(now);
        self.stack.poll_transmit(now, &mut self.queue);
        moved | (self.port.transmit(now, &mut self.queue).unwrap_or(0) > 0)
    }

    fn run_apps(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(event) = self.stack.poll_event() {
            moved = true;
            let owner = event.owner;
            match self.apps.get_mut(usize::from(owner.0)) {
                Some(app) => app.handle_event(&mut Context { now, owner, stack: &mut self.stack }, event),
                None => self.events.push_back(event),
            }
        }
        for (index, app) in self.apps.iter_mut().enumerate() {
            if app.poll_timeout().is_some_and(|at| at <= now) {
                let owner = Owner(index as u16);
                app.handle_timeout(&mut Context { now, owner, stack: &mut self.stack });
                moved = true;
            }
        }
        moved
    }

    fn answer_files(&mut self, now: Instant) -> bool {
        while let Some(request) = self.stack.poll_file_request() {
            self.requests.push_back(request);
        }
        let moved = !self.requests.is_empty();
        while let Some(request) = self.requests.pop_front() {
            let left = self.file_len.saturating_sub(request.offset);
            let mut bytes = vec![0; request.len.min(usize::try_from(left).unwrap_or(usize::MAX))];
            crate::Pattern::new(0).fill(request.offset, &mut bytes);
            self.stack.handle_file_data(now, request.token, Ok(bytes.into()));
        }
        moved
    }

    /// The next event of a socket opened with owner [`TEST`] on this source, if there is one.
    pub fn take_event(&mut self, source: Source) -> Option<Event> {
        let at = self.events.iter().position(|event| event.source == source)?;
        self.events.remove(at)
    }
}
