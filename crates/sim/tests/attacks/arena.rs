//! The place of an attack: victim, bystander, newcomers and attacker at one switch; the same without the attack; and
//! what must hold of both.

use super::frames::*;
use super::script::{Attacker, Script, Traffic};
use super::server::{PORT, Server};
use linerate_sim::*;
use linerate_stack::{Counters, MemoryStats, StackConfig};
use linerate_transport::{CloseReason, Owner, SocketOptions};
use linerate_wire::arp::Operation;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Which way the bystander's data goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// From the bystander to the victim.
    Up,
    /// From the victim to the bystander.
    Down,
}

/// The size of a world and of an attack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setup {
    /// Rate of every cable, in bits per second.
    pub rate_bps: u64,
    /// Delay between bystander and switch, each way, in microseconds.
    pub delay_us: u64,
    /// How long the attack lasts, in milliseconds.
    pub attack_ms: u64,
    /// The bystander's and the newcomers' family.
    pub ipv6: bool,
    /// Whether the attacker sees the bystander's segments.
    pub is_on_path: bool,
    /// Bytes of the object that the victim serves.
    pub object: u64,
    /// The victim's memory for sockets in bytes.
    pub memory: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            rate_bps: 1_000_000_000,
            delay_us: 500,
            attack_ms: 1_000,
            ipv6: false,
            is_on_path: false,
            object: 100_000,
            memory: StackConfig::default().memory,
        }
    }
}

/// What the victim's processor takes for each packet in or out, and for each kilobyte. A SYN and its answer are two
/// packets, which were measured at about a microsecond together (example `syn_flood` of the stack): this is twice that.
const CPU: CpuCost =
    CpuCost { packet: Duration::from_micros(1), kilobyte: Duration::from_nanos(100), ..CpuCost::NONE };

/// How long the bystander transfers before the attack.
const WARM: Duration = Duration::from_millis(500);
/// How long all that an attack left behind may take to go: the user timeout of 60 s and TIME-WAIT of as much.
const SETTLE: Duration = Duration::from_secs(150);

/// What somebody on the path knows of the bystander's connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// The number after its last segment to the victim.
    pub next: u32,
    /// Its last acknowledgement.
    pub ack: u32,
    /// Its last timestamp, if it sends any.
    pub timestamp: u32,
}

/// What an attacker can know when it begins.
pub struct Scene {
    /// The bystander's end of its connection.
    pub bystander: SocketAddr,
    /// The victim's end of it.
    pub victim: SocketAddr,
    /// What passes, if the setup has the attacker on the path.
    pub seen: Rc<Cell<Seen>>,
}

/// What came of an attack, or of the same time without.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub way: Way,
    /// The bystander's goodput during the attack in bits per second.
    pub goodput_bps: f64,
    /// Share of what was fair; see the crate's root.
    pub share: f64,
    /// The attacker's packets and the victim's packets to it.
    pub traffic: Traffic,
    /// Connections reset for want of memory during the attack; afterwards all that are left are silent.
    pub shed: u64,
    /// What the victim counted from the beginning of the attack to the end of the world.
    pub counted: BTreeMap<&'static str, u64>,
    /// Most connections at a time.
    pub most_connections: usize,
    /// Most memory used at a time.
    pub most_used: usize,
    /// Fewest free receive buffers at a time, as a share of all.
    pub least_receive: f64,
    /// How long newcomers during the attack took to be served, in milliseconds.
    pub newcomers_ms: Vec<f64>,
}

impl Outcome {
    /// A counter's increase.
    pub fn count(&self, name: &str) -> u64 {
        self.counted.get(name).copied().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// What was counted, without zeros, for messages.
    pub fn shown(&self) -> BTreeMap<&'static str, u64> {
        self.counted.iter().filter(|(_, count)| **count > 0).map(|(name, count)| (*name, *count)).collect()
    }

    /// All challenge ACKs, ICMP and so on that the victim sent beside its own traffic: what the attack made it send.
    pub fn answers(&self) -> u64 {
        self.traffic.answers.packets + self.count("tcp_challenge_acks")
    }
}

/// What makes a script from what the attacker knows.
pub type MakeScript<'a> = &'a dyn Fn(&Scene) -> Box<dyn Script>;

/// An attack: a name for the table, a size, and what makes the script from what the attacker knows.
pub struct Attack<'a> {
    pub name: &'a str,
    pub setup: Setup,
    pub script: MakeScript<'a>,
}

impl Attack<'_> {
    /// Runs the attack against an uploading and a downloading bystander. What must hold of every attack is checked here.
    pub fn run(&self) -> [Outcome; 2] {
        [self.run_one(Way::Up), self.run_one(Way::Down)]
    }

    /// The same for one way.
    pub fn run_one(&self, way: Way) -> Outcome {
        let without = baseline(self.setup, way);
        let mut outcome = Arena::new(self.setup, way).run(Some(self.script));
        let seconds = self.setup.attack_ms as f64 / 1e3;
        let taken = match way {
            Way::Up => outcome.traffic.sent,
            Way::Down => outcome.traffic.answers,
        };
        let taken = taken.wire_bytes as f64 * 8.0 / seconds / self.setup.rate_bps as f64;
        outcome.share = outcome.goodput_bps / (without * (1.0 - taken));
        println!("{}", self.row(&outcome, without, taken));
        assert!(outcome.share >= 0.8, "{}, {way:?}: the bystander keeps {:.3}", self.name, outcome.share);
        outcome
    }

    fn row(&self, outcome: &Outcome, without: f64, taken: f64) -> String {
        let Traffic { sent, answers } = outcome.traffic;
        let mut row = format!(
            "| {} | {:?} | {} | {:.1} % | {} | {:.1} | {:.1} | {:.1} % | {} | {} | {:.0} % | {:.1} |",
            self.name,
            outcome.way,
            sent.packets,
            taken * 100.0,
            answers.packets,
            without / 1e6,
            outcome.goodput_bps / 1e6,
            outcome.share * 100.0,
            outcome.most_connections,
            outcome.most_used >> 10,
            outcome.least_receive * 100.0,
            outcome.newcomers_ms.iter().copied().fold(0.0, f64::max),
        );
        for (name, count) in outcome.counted.iter().filter(|(name, count)| **count > 0 && is_telling(name)) {
            let _ = write!(row, " {name}={count}");
        }
        row
    }
}

/// Whether a counter says something of an attack, rather than of any traffic.
fn is_telling(name: &str) -> bool {
    let plain = ["frames_", "bytes_", "completions", "ipv4_", "ipv6_", "tcp_in", "tcp_out", "tcp_bytes"];
    !plain.iter().any(|plain| name.starts_with(plain))
}

/// The bystander's goodput without an attack, in bits per second. The same world gives the same figure.
fn baseline(setup: Setup, way: Way) -> f64 {
    static KNOWN: Mutex<BTreeMap<(Setup, Way), f64>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(goodput) = known().get(&(setup, way)) {
        return *goodput;
    }
    let goodput = Arena::new(setup, way).run(None).goodput_bps;
    known().insert((setup, way), goodput);
    goodput
}

struct Arena {
    setup: Setup,
    way: Way,
    world: World,
    victim: HostId,
    bystander: HostId,
    newcomer: HostId,
    attacker: RawId,
    traffic: Rc<Cell<Traffic>>,
}

impl Arena {
    fn new(setup: Setup, way: Way) -> Arena {
        let mut world = World::new(3);
        let host = |name: &str, last: u8| {
            let addresses = [format!("10.0.0.{last}/24"), format!("fd00::{last}/64")];
            let mut config = HostConfig::new(name, &addresses.each_ref().map(|text| text.as_str()));
            config.stack.gateways = vec![ROUTER4.into(), ROUTER6.into()];
            config.nic.rate_bps = Some(setup.rate_bps);
            config
        };
        let mut victim = host("victim", 1);
        victim.cpu = CPU;
        victim.stack.memory = setup.memory;
        let victim = world.add_host(victim);
        assert_eq!(world.mac(victim), VICTIM_MAC);
        let (bystander, newcomer) =
            (world.add_host(host("bystander", 2)), world.add_host(host("newcomer", 3)));
        let attacker = world.add_raw("attacker", ROUTER_MAC);
        world.keep_received(attacker, false);
        // The switch's port to each host has the rate of the cable and half a megabyte of buffer.
        let port = |delay_us| Path {
            rate_bps: Some(setup.rate_bps),
            queue: Queue::bytes(512 << 10),
            delay: Duration::from_micros(delay_us),
            ..Path::default()
        };
        world.set_path(victim, Direction::Down, port(0));
        world.set_path(bystander, Direction::Down, port(setup.delay_us));
        world.set_path(bystander, Direction::Up, Path::with_delay(Duration::from_micros(setup.delay_us)));
        world.set_path(newcomer, Direction::Down, port(0));
        let traffic = Rc::<Cell<Traffic>>::default();
        world.set_peer(attacker, Attacker::silent(traffic.clone()));
        world.add_app(victim, Server::new(setup.object));
        // The victim knows its router, as a host on a network does.
        world.send(attacker, arp(Operation::REQUEST, (ROUTER_MAC, ROUTER4), VICTIM4));
        Arena { setup, way, world, victim, bystander, newcomer, attacker, traffic }
    }

    fn memory(&self) -> MemoryStats {
        self.world.host(self.victim).stack.memory()
    }

    fn counters(&self) -> Counters {
        *self.world.host(self.victim).stack.counters()
    }

    /// Bytes that came to the bystander's receiver.
    fn received(&self, flow: FlowId) -> u64 {
        let report = self.world.flow(flow);
        report.client.bytes_received + report.server.bytes_received
    }

    /// A client that fetches the object at this time.
    fn add_newcomer(&mut self, at: Instant) -> Owner {
        let ip: IpAddr = if self.setup.ipv6 { VICTIM6.into() } else { VICTIM4.into() };
        let config = EndpointConfig {
            role: Role::Client { remote: SocketAddr::new(ip, PORT), at },
            send: Amount::Nothing,
            sends: 1,
            expects: 0,
            reader: Reader::Eager,
            writer: Writer::Eager,
            peer_writer: Writer::Eager,
            options: SocketOptions::default(),
        };
        self.world.add_app(self.newcomer, Endpoint::new(config))
    }

    /// How long after `at` a newcomer was served, in milliseconds; panics if it was not, or got the wrong bytes.
    fn served_ms(&self, newcomer: Owner, at: Instant) -> f64 {
        let end = self.world.app::<Endpoint>(self.newcomer, newcomer).unwrap().seen();
        assert_eq!(
            (end.closed, &end.error),
            (Some(CloseReason::Done), &None),
            "a newcomer at {at:?}: {end:?}"
        );
        assert_eq!(end.bytes_received, self.setup.object);
        (end.finished_at.unwrap() - at).as_secs_f64() * 1e3
    }

    /// What an observer on the path sees from now on.
    fn observe(&mut self, seen: Rc<Cell<Seen>>) {
        let script = move |_: Instant, frame: &[u8]| {
            if let Some(heard) = hear(frame) {
                seen.set(Seen {
                    next: (heard.seq + heard.payload_len as u32).0,
                    ack: heard.ack.0,
                    timestamp: heard.options.timestamps.map_or(0, |stamp| stamp.value),
                });
            }
            Verdict::Deliver
        };
        self.world.set_script(self.bystander, Direction::Up, Some(Box::new(script)));
    }

    fn run(mut self, script: Option<MakeScript<'_>>) -> Outcome {
        let before = self.memory();
        let begin = self.world.now() + WARM;
        let attack = Duration::from_millis(self.setup.attack_ms);
        let end = begin + attack;
        let amount = Amount::Until(end + Duration::from_millis(200));
        let (bystander, victim) = (self.bystander, self.victim);
        let flow = match self.way {
            Way::Up => FlowConfig::upload(bystander, victim, amount),
            Way::Down => FlowConfig::download(bystander, victim, amount),
        };
        let flow = self.world.add_flow(FlowConfig { ipv6: self.setup.ipv6, ..flow });
        let seen = Rc::<Cell<Seen>>::default();
        if self.setup.is_on_path {
            self.observe(seen.clone());
        }
        self.world.run_for(WARM);
        let info = self.world.flow(flow).client.info.expect("the bystander is connected");
        let scene = Scene { bystander: info.local, victim: info.remote, seen };
        if let Some(script) = script {
            let attacker = Attacker::new(script(&scene), begin, end, self.traffic.clone());
            self.world.set_peer(self.attacker, attacker);
        }
        let times = [1, 2, 3].map(|quarter| begin + attack * quarter / 4);
        let newcomers = times.map(|at| (at, self.add_newcomer(at)));
        let late = end + Duration::from_secs(1);
        let late = (late, self.add_newcomer(late));
        let counters = self.counters();
        let received = self.received(flow);
        let traffic = self.traffic.get();
        let peaks = self.watch(end);
        let goodput_bps = (self.received(flow) - received) as f64 * 8.0 / attack.as_secs_f64();
        let shed = self.counters().tcp_stalled_shed - counters.tcp_stalled_shed;
        let now = self.traffic.get();
        let traffic =
            Traffic { sent: now.sent.since(traffic.sent), answers: now.answers.since(traffic.answers) };
        self.world.run_for(SETTLE);
        assert_eq!(self.world.flow(flow).verdict(), Ok(()), "the bystander's transfer");
        self.served_ms(late.1, late.0);
        check_memory(&before, &self.memory());
        let after = self.counters();
        let counted = after.iter().zip(counters.iter()).map(|((name, a), (_, b))| (name, a - b)).collect();
        Outcome {
            way: self.way,
            goodput_bps,
            share: 1.0,
            traffic,
            shed,
            counted,
            most_connections: peaks.connections,
            most_used: peaks.used,
            least_receive: peaks.receive as f64 / before.receive.unwrap().total as f64,
            newcomers_ms: newcomers.iter().map(|(at, owner)| self.served_ms(*owner, *at)).collect(),
        }
    }

    /// Runs to the end of the attack and looks at the victim's memory every 5 ms.
    fn watch(&mut self, end: Instant) -> Peaks {
        let mut peaks = Peaks { connections: 0, used: 0, receive: usize::MAX };
        while self.world.now() < end {
            self.world.run_for(Duration::from_millis(5).min(end - self.world.now()));
            let memory = self.memory();
            peaks.connections = peaks.connections.max(memory.connections);
            peaks.used = peaks.used.max(memory.used);
            peaks.receive = peaks.receive.min(memory.receive.unwrap().free);
        }
        peaks
    }
}

struct Peaks {
    connections: usize,
    used: usize,
    receive: usize,
}

/// All that was held is free again.
fn check_memory(before: &MemoryStats, after: &MemoryStats) {
    assert_eq!((after.used, after.connections, after.time_wait), (0, 0, 0), "{after:?}");
    for (before, after) in [(before.pages, after.pages), (before.datagrams, after.datagrams)] {
        assert_eq!((before.total, before.free), (after.total, after.free), "{after:?}");
    }
    let free = |memory: &MemoryStats| memory.receive.map(|pool| pool.free);
    assert_eq!(free(before), free(after));
}
