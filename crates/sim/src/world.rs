//! The world: nodes, the network between them, and virtual time.

use crate::apps::{App, Context, EndReport, Endpoint, EndpointConfig, Role};
use crate::capture::Capture;
use crate::flow::{FlowConfig, FlowId, FlowReport};
use crate::host::{Host, HostConfig};
use crate::journal::{Entry, Journal, Pen};
use crate::link::{LinkPath, Output, Script};
use crate::node::{Kind, Node, Raw, mac_of};
use crate::parcel::Stock;
use crate::path::{Change, Path, PathStats};
use crate::random::Random;
use crate::raw::Peer;
use crate::recorder::{FlowSamples, QueueSample, Recorder};
use crate::schedule::Schedule;
use crate::spread::Spread;
use linerate_nic::MacAddr;
use linerate_transport::Owner;
use linerate_wire::units::Instant;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// A host of a world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct HostId(pub(crate) usize);

/// A scripted node of a world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RawId(pub(crate) usize);

/// Any node of a world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub(crate) usize);

impl From<HostId> for NodeId {
    fn from(host: HostId) -> NodeId {
        NodeId(host.0)
    }
}

impl From<RawId> for NodeId {
    fn from(raw: RawId) -> NodeId {
        NodeId(raw.0)
    }
}

/// A direction of a node's cable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// From the node to the network.
    Up,
    /// From the network to the node.
    Down,
}

/// How to build a world of two hosts.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// The hosts. Default: `a` with 10.0.0.1/24 and fd00::1/64, `b` with 10.0.0.2/24 and fd00::2/64.
    pub hosts: [HostConfig; 2],
    /// What the cable does from the first to the second.
    pub a_to_b: Path,
    /// What it does from the second to the first.
    pub b_to_a: Path,
}

impl Default for PairConfig {
    fn default() -> Self {
        PairConfig {
            hosts: [
                HostConfig::new("a", &["10.0.0.1/24", "fd00::1/64"]),
                HostConfig::new("b", &["10.0.0.2/24", "fd00::2/64"]),
            ],
            a_to_b: Path::default(),
            b_to_a: Path::default(),
        }
    }
}

impl PairConfig {
    /// The default hosts with interfaces of this rate, and this delay each way.
    pub fn with_rate_and_delay(rate_bps: u64, delay: Duration) -> PairConfig {
        let path = Path::with_delay(delay);
        let mut config = PairConfig { a_to_b: path.clone(), b_to_a: path, ..PairConfig::default() };
        for host in &mut config.hosts {
            host.nic.rate_bps = Some(rate_bps);
        }
        config
    }
}

/// A deterministic network. See the crate's documentation.
pub struct World {
    pub(crate) seed: u64,
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) schedule: Schedule,
    pub(crate) stock: Stock,
    /// What the switch has learnt: where each station is.
    pub(crate) stations: HashMap<[u8; 6], usize>,
    pub(crate) flows: Vec<FlowEnds>,
    pub(crate) capture: Capture,
    pub(crate) recorder: Recorder,
    journal: Journal,
    pub(crate) output: Output,
    /// Parts run at this point in time.
    pub(crate) steps: usize,
    /// Something came of running them.
    pub(crate) moved: bool,
    /// Where paths behind the switch put what they give out.
    pub(crate) passed: Output,
    events: u64,
}

/// Where a flow's applications are.
#[derive(Clone, Debug)]
pub(crate) struct FlowEnds {
    pub(crate) client: (HostId, Owner),
    /// One on each core of the server, of which one gets the connection.
    pub(crate) servers: (HostId, Vec<Owner>),
}

/// The things of a node that have a time of their own: itself, and the two directions of its cable.
pub(crate) const PARTS: usize = 3;

/// The number of a node's part in the schedule; 0 is the recorder's.
pub(crate) fn part(node: usize, which: usize) -> usize {
    1 + PARTS * node + which
}

/// The first of the random streams by which hosts spread frames over queues.
const SPREADS: u64 = 1 << 48;

/// Stations that the switch remembers; beyond them it forgets all and learns anew.
pub(crate) const MAX_STATIONS: usize = 8_192;

impl World {
    /// An empty world at time 1 ms (so that zero is before everything).
    pub fn new(seed: u64) -> World {
        World {
            seed,
            now: Instant::from_millis(1),
            nodes: Vec::new(),
            schedule: Schedule::default(),
            stock: Stock::default(),
            stations: HashMap::new(),
            flows: Vec::new(),
            capture: Capture::default(),
            recorder: Recorder::default(),
            journal: Journal::default(),
            output: Output::default(),
            steps: 0,
            moved: false,
            passed: Output::default(),
            events: 0,
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Steps of parts of the world so far: a measure of work.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A stream of random numbers of this world for a test's own use; other streams than those of the world itself.
    pub fn random(&self, stream: u64) -> Random {
        Random::stream(self.seed, (1 << 32) + stream)
    }

    /// Adds a host. Panics if its interface cannot switch to what it has, which none of ours does.
    pub fn add_host(&mut self, config: HostConfig) -> HostId {
        let index = self.nodes.len();
        let mac = config.mac.unwrap_or_else(|| mac_of(index));
        let name = config.name.clone();
        let secrets = Random::stream(self.seed, PARTS as u64 * index as u64);
        let chance = Random::stream(self.seed, SPREADS + index as u64);
        let addresses = config.stack.addresses.iter().map(|cidr| cidr.address()).collect();
        let host = match Host::new(config, mac, &self.stock, secrets, chance, self.now) {
            Ok(host) => host,
            Err(error) => panic!("host {name}: {error}"),
        };
        self.add(name, mac, addresses, Kind::Host(Box::new(host)));
        HostId(index)
    }

    /// Adds a node that a test or a [`Peer`] speaks for, with this Ethernet address.
    pub fn add_raw(&mut self, name: &str, mac: MacAddr) -> RawId {
        let index = self.nodes.len();
        self.add(name.to_string(), mac, Vec::new(), Kind::Raw(Box::default()));
        RawId(index)
    }

    fn add(&mut self, name: String, mac: MacAddr, addresses: Vec<std::net::IpAddr>, kind: Kind) {
        let index = self.nodes.len();
        let stream = |part: u64| Random::stream(self.seed, PARTS as u64 * index as u64 + part);
        let up = LinkPath::new(Path::default(), stream(1));
        let down = LinkPath::new(Path::default(), stream(2));
        self.stations.insert(mac.0, index);
        let pen = Pen::default();
        self.nodes.push(Node { name, mac, addresses, kind, up, down, pen });
        self.schedule.grow(part(self.nodes.len(), 0));
        self.schedule.set(part(index, 0), Some(self.now));
    }

    /// Two hosts, `a` and `b`, with a cable between them.
    pub fn pair(seed: u64, config: PairConfig) -> (World, HostId, HostId) {
        let mut world = World::new(seed);
        let [a, b] = config.hosts;
        let (a, b) = (world.add_host(a), world.add_host(b));
        world.set_path(a, Direction::Up, config.a_to_b);
        world.set_path(b, Direction::Up, config.b_to_a);
        (world, a, b)
    }

    /// A host.
    pub fn host(&self, id: HostId) -> &Host {
        match &self.nodes[id.0].kind {
            Kind::Host(host) => host,
            Kind::Raw(_) => unreachable!("a HostId is only made for hosts"),
        }
    }

    /// A host, to be used; it gets its turn at the present time.
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
        self.schedule.set(part(id.0, 0), Some(self.now));
        match &mut self.nodes[id.0].kind {
            Kind::Host(host) => {
                host.touch(self.now);
                host
            }
            Kind::Raw(_) => unreachable!("a HostId is only made for hosts"),
        }
    }

    /// The Ethernet address of a node.
    pub fn mac(&self, node: impl Into<NodeId>) -> MacAddr {
        self.nodes[node.into().0].mac
    }

    /// Lets `peer` speak for a scripted node from now on.
    pub fn set_peer(&mut self, raw: RawId, peer: impl Peer + 'static) {
        self.raw_mut(raw).peer = Some(Box::new(peer));
        self.schedule.set(part(raw.0, 0), Some(self.now));
    }

    /// Sends a frame (Ethernet header to payload, checksums filled in) from a scripted node, now.
    pub fn send(&mut self, raw: RawId, frame: Vec<u8>) {
        self.transmit_raw(raw.0, frame);
    }

    /// Takes the frames that a scripted node has received since the last call, with their times.
    pub fn received(&mut self, raw: RawId) -> Vec<(Instant, Vec<u8>)> {
        std::mem::take(&mut self.raw_mut(raw).received)
    }

    /// Whether a scripted node keeps received frames for [`World::received`] (it does at first). Off for floods.
    pub fn keep_received(&mut self, raw: RawId, keep: bool) {
        self.raw_mut(raw).discards = !keep;
    }

    fn raw_mut(&mut self, raw: RawId) -> &mut Raw {
        match &mut self.nodes[raw.0].kind {
            Kind::Raw(raw) => raw,
            Kind::Host(_) => unreachable!("a RawId is only made for scripted nodes"),
        }
    }

    /// Adds an application to a host, on its first core. Its socket events name the owner that is returned.
    pub fn add_app(&mut self, host: HostId, app: impl App) -> Owner {
        self.add_app_at(host, 0, app)
    }

    /// Adds an application to the core of this queue of a host; to the last one, where there are not so many.
    pub fn add_app_at(&mut self, host: HostId, queue: usize, app: impl App) -> Owner {
        self.host_mut(host).add_app(queue, Box::new(app))
    }

    /// Lets the interface of a host spread what it receives in another way from now on.
    pub fn set_spread(&mut self, host: HostId, spread: Spread) {
        self.set_spread_at(self.now, host, spread);
    }

    /// Lets the interface of a host spread what it receives in another way from a time to come on.
    pub fn set_spread_at(&mut self, at: Instant, host: HostId, spread: Spread) {
        self.host_mut(host).schedule_spread(at, spread);
    }

    /// An application of a host, by the owner that [`World::add_app`] returned and its type.
    pub fn app<A: App>(&self, host: HostId, owner: Owner) -> Option<&A> {
        let app: &dyn std::any::Any = self.host(host).app(owner)?;
        app.downcast_ref()
    }

    /// Calls an application of a host with the stack at hand.
    pub fn with_app<A: App, R>(
        &mut self,
        host: HostId,
        owner: Owner,
        work: impl FnOnce(&mut A, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let now = self.now;
        let found = self.host_mut(host).with_app(now, owner, |app, context| {
            let app: &mut dyn std::any::Any = app;
            app.downcast_mut().map(|app| work(app, context))
        });
        found.flatten()
    }

    /// Changes a direction of a node's cable now. What is under way keeps its time.
    pub fn set_path(&mut self, node: impl Into<NodeId>, direction: Direction, path: Path) {
        self.change(node, direction, Change::All(Box::new(path)));
    }

    /// Changes a direction of a node's cable now.
    pub fn change(&mut self, node: impl Into<NodeId>, direction: Direction, change: Change) {
        self.change_at(self.now, node, direction, change);
    }

    /// Changes a direction of a node's cable at a time to come.
    pub fn change_at(&mut self, at: Instant, node: impl Into<NodeId>, direction: Direction, change: Change) {
        let index = node.into().0;
        self.path_mut(index, direction).schedule(at, change);
        self.run_path(index, direction);
    }

    /// Lets `script` decide about each segment that comes to a direction of a node's cable, before anything else;
    /// `None` takes it away.
    pub fn set_script(&mut self, node: impl Into<NodeId>, direction: Direction, script: Option<Script>) {
        self.path_mut(node.into().0, direction).set_script(script);
    }

    /// What a direction of a node's cable has counted. While a segment is being sent, those that came behind it may not
    /// be counted yet.
    pub fn path_stats(&self, node: impl Into<NodeId>, direction: Direction) -> PathStats {
        self.path(node.into().0, direction).stats
    }

    /// For how long bits have left the rate of a direction of a node's cable so far; no time at all where there is no rate.
    pub fn busy_time(&self, node: impl Into<NodeId>, direction: Direction) -> Duration {
        self.path(node.into().0, direction).busy_by(self.now)
    }

    /// Segments and bytes that wait in the queue of a direction of a node's cable.
    pub fn queue_len(&mut self, node: impl Into<NodeId>, direction: Direction) -> (usize, usize) {
        let index = node.into().0;
        self.run_path(index, direction);
        self.path(index, direction).queue_len()
    }

    fn path(&self, index: usize, direction: Direction) -> &LinkPath {
        match direction {
            Direction::Up => &self.nodes[index].up,
            Direction::Down => &self.nodes[index].down,
        }
    }

    pub(crate) fn path_mut(&mut self, index: usize, direction: Direction) -> &mut LinkPath {
        match direction {
            Direction::Up => &mut self.nodes[index].up,
            Direction::Down => &mut self.nodes[index].down,
        }
    }

    /// Sets up a flow: an application on either host. Panics if the server has no address of the family.
    pub fn add_flow(&mut self, config: FlowConfig) -> FlowId {
        let number = self.flows.len();
        let port = config.port.unwrap_or((10_000 + number % 50_000) as u16);
        let addresses = &self.nodes[config.server.0].addresses;
        let Some(ip) = addresses.iter().find(|ip| ip.is_ipv6() == config.ipv6).copied() else {
            panic!("{} has no address for the flow", self.nodes[config.server.0].name);
        };
        let patterns = [1, 2].map(|end| (number as u64) << 2 | end);
        let server = EndpointConfig {
            role: Role::Server { port },
            send: config.download,
            sends: patterns[1],
            expects: patterns[0],
            reader: config.server_reader,
            writer: config.server_writer,
            peer_writer: config.client_writer,
            options: config.server_options,
        };
        let client = Endpoint::new(EndpointConfig {
            role: Role::Client { remote: SocketAddr::new(ip, port), at: config.start },
            send: config.upload,
            sends: patterns[0],
            expects: patterns[1],
            reader: config.client_reader,
            writer: config.client_writer,
            peer_writer: config.server_writer,
            options: config.client_options,
        });
        // Whichever core sees the handshake has the connection.
        let queues = [config.server, config.client].map(|host| self.host(host).cores().len());
        let servers = (0..queues[0])
            .map(|queue| self.add_app_at(config.server, queue, Endpoint::new(server.clone())))
            .collect();
        let queue = number % queues[1];
        let client = (config.client, self.add_app_at(config.client, queue, client));
        self.flows.push(FlowEnds { client, servers: (config.server, servers) });
        FlowId(number)
    }

    /// The server's application that has the connection of a flow, or the first while none has.
    pub(crate) fn serving(&self, ends: &FlowEnds) -> (HostId, Owner) {
        let (host, owners) = &ends.servers;
        let has_begun = |owner: &&Owner| {
            let app = self.app::<Endpoint>(*host, **owner);
            app.is_some_and(|app| app.seen().opened_at.is_some() || app.seen().error.is_some())
        };
        let owner = owners.iter().find(has_begun).or(owners.first());
        (*host, owner.copied().unwrap_or(Owner(u16::MAX)))
    }

    /// The queue of the server that has the connection of a flow; 0 while none has.
    pub fn flow_queue(&self, flow: FlowId) -> usize {
        let (host, owner) = self.serving(&self.flows[flow.0]);
        usize::from(self.host(host).home(owner).stack.seat().index)
    }

    /// What came of a flow so far.
    pub fn flow(&self, flow: FlowId) -> FlowReport {
        let end = |(host, owner): (HostId, Owner)| {
            let app = self.app::<Endpoint>(host, owner);
            app.map(|app| app.report(&self.host(host).home(owner).stack)).unwrap_or_default()
        };
        let ends = &self.flows[flow.0];
        FlowReport { client: end(ends.client), server: end(self.serving(ends)) }
    }

    /// What the client's and the server's end of a flow have seen so far, without measurements of a live connection. Cheap: to
    /// be asked after every step.
    pub fn flow_seen(&self, flow: FlowId) -> [Option<&EndReport>; 2] {
        let ends = &self.flows[flow.0];
        [ends.client, self.serving(ends)]
            .map(|(host, owner)| self.app::<Endpoint>(host, owner).map(Endpoint::seen))
    }

    /// Whether both ends of a flow are over. Cheap: to be asked after every step.
    pub fn is_flow_done(&self, flow: FlowId) -> bool {
        let end = |(host, owner)| self.app::<Endpoint>(host, owner).is_none_or(Endpoint::is_done);
        let ends = &self.flows[flow.0];
        end(ends.client) && end(self.serving(ends))
    }

    /// Notes what happens at the nodes that there are, from now on; the last `room` entries are kept. Changes nothing for the
    /// nodes.
    pub fn keep_journal(&mut self, room: usize) {
        self.journal = Journal::new(room);
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.keep_journal(&self.journal, index);
        }
    }

    /// What the journal holds, in the order of times, and how many older entries are gone.
    pub fn journal(&self) -> (Vec<Entry>, u64) {
        self.journal.entries()
    }

    /// The name of a node.
    pub fn name(&self, node: impl Into<NodeId>) -> &str {
        &self.nodes[node.into().0].name
    }

    /// Samples all flows and queues every so often from now on (see [`World::samples`], [`World::queue_samples`]); `None`
    /// stops it. Sampling changes nothing for the nodes.
    pub fn record(&mut self, every: Option<Duration>) {
        self.schedule.grow(part(self.nodes.len(), 0));
        self.recorder.next = every.filter(|every| !every.is_zero()).map(|every| (every, self.now));
        self.schedule.set(0, self.recorder.next.map(|(_, at)| at));
    }

    /// What was sampled of a flow.
    pub fn samples(&self, flow: FlowId) -> FlowSamples {
        self.recorder.flows.get(flow.0).cloned().unwrap_or_default()
    }

    /// What was sampled of the queue of a direction of a node's cable.
    pub fn queue_samples(&self, node: impl Into<NodeId>, direction: Direction) -> &[QueueSample] {
        let queues = self.recorder.queues.get(node.into().0);
        queues.map_or(&[], |queues| &queues[usize::from(direction == Direction::Down)])
    }

    /// A hash over times, places and lengths of everything that passed an interface so far: equal for equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.capture.hash()
    }

    /// Runs until both ends of the flow are over, `limit` from now at most; true if they are.
    pub fn run_flow(&mut self, flow: FlowId, limit: Duration) -> bool {
        self.run_until(limit, |world| world.is_flow_done(flow))
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until `done`, `limit` from now at most; true if it was done. `done` is asked before the first and
    /// after every point in time at which something happened, and may act on the world.
    ///
    /// Panics when a node does not come to rest at one point in time, naming node and seed.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            if done(self) {
                return true;
            }
            let now = self.now;
            // What `done` did may want to move before time does; if nothing comes of it, `done` need not be asked again.
            if self.run_instant(now) {
                continue;
            }
            match self.next_event() {
                Some(at) if at <= end => {
                    self.run_instant(at);
                }
                _ => {
                    self.now = end;
                    return false;
                }
            }
        }
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.schedule.next().map(|at| at.max(self.now))
    }

    /// Goes to the next point in time at which something happens, and does all that happens then; false if there is
    /// none.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next_event() else { return false };
        self.run_instant(at);
        true
    }

    /// Does all that happens at a point in time; false if nothing came of it.
    fn run_instant(&mut self, at: Instant) -> bool {
        if at > self.now {
            self.steps = 0;
        }
        self.now = at;
        self.moved = false;
        while let Some(part) = self.schedule.pop(at) {
            self.events += 1;
            self.run_part(part);
        }
        self.moved
    }
}
