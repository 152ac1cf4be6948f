//! One random world: what its hosts, interfaces, paths and flow are like.

use linerate_sim::{
    Amount, Capabilities, Change, CodelConfig, Direction, FlowConfig, FlowId, HostConfig, HostId, Instant,
    Jitter, Loss, NicConfig, PacingConfig, PacingMode, PairConfig, Path, Queue, Random, Reader, Spread,
    TooLong, World,
};
use linerate_transport::{BufferSize, Congestion, DelayedAck, Ecn, Pacing, SocketOptions};
use std::time::Duration;

/// Probability that a segment is lost after one was, above which a connection may give up.
const HEAVY_LOSS: f64 = 0.05;

/// A change of a path.
#[derive(Clone, Debug)]
struct Event {
    at: Instant,
    by_a: bool,
    change: Change,
}

/// See the module.
#[derive(Debug)]
pub struct Plan {
    seed: u64,
    pair: PairConfig,
    options: [SocketOptions; 2],
    readers: [Reader; 2],
    amounts: [Amount; 2],
    ipv6: bool,
    events: Vec<Event>,
}

impl Plan {
    /// The world of this seed.
    pub fn new(seed: u64) -> Plan {
        let mut random = Random::stream(seed, 1 << 40);
        let random = &mut random;
        let mtu = *random.choose(&[576, 1_280, 1_400, 1_500, 1_500, 4_000, 9_000]).unwrap_or(&1_500);
        let mut pair = PairConfig { a_to_b: path(random), b_to_a: path(random), ..PairConfig::default() };
        for config in &mut pair.hosts {
            host(random, config, mtu);
        }
        let fragile = pair.a_to_b.rate_bps.is_some_and(|rate| rate < 1_000_000);
        let most = if fragile { 30_000 } else { 400_000 };
        let amounts = [(); 2].map(|()| match random.below(4) {
            0 => Amount::Nothing,
            1 => Amount::Bytes(random.range(1..=2_000)),
            _ => Amount::Bytes(random.range(1..=most)),
        });
        let options = [(); 2].map(|()| options(random));
        let readers = [(); 2].map(|()| reader(random));
        let events = events(random, mtu);
        // A third of the hosts have several queues; drawn apart, so that the others are as they were.
        let mut random = Random::stream(seed, 1 << 41);
        for config in &mut pair.hosts {
            if random.chance(1.0 / 3.0) {
                queues(&mut random, config);
            }
        }
        Plan { seed, pair, options, readers, amounts, ipv6: mtu >= 1_280 && random.chance(0.4), events }
    }

    /// Whether a connection of this world may end without having carried everything: so much is lost that a segment
    /// may be lost eight times in a row, which is what fits into the user timeout.
    pub fn may_fail(&self) -> bool {
        [&self.pair.a_to_b, &self.pair.b_to_a].into_iter().any(|path| {
            let again = match path.loss {
                Loss::GilbertElliott { leave, bad, .. } => (1.0 - leave) * bad,
                ref other => other.mean().unwrap_or(1.0),
            };
            again + path.corrupt > HEAVY_LOSS
        })
    }

    /// Whether a connection of this world may fail to be opened: besides losses, neighbours are asked three times in
    /// three seconds, and a pause may be longer.
    pub fn may_stay_closed(&self) -> bool {
        self.may_fail() || !self.events.is_empty() || self.pair.hosts.iter().any(|host| host.nic.rx_ring < 4)
    }

    /// Builds it.
    pub fn world(&self) -> (World, HostId, HostId, FlowId) {
        let (mut world, a, b) = World::pair(self.seed, self.pair.clone());
        for event in &self.events {
            let host = if event.by_a { a } else { b };
            world.change_at(event.at, host, Direction::Up, event.change.clone());
        }
        let flow = world.add_flow(FlowConfig {
            ipv6: self.ipv6,
            upload: self.amounts[0],
            download: self.amounts[1],
            client_reader: self.readers[0],
            server_reader: self.readers[1],
            client_options: self.options[0].clone(),
            server_options: self.options[1].clone(),
            ..FlowConfig::new(a, b)
        });
        (world, a, b, flow)
    }
}

fn millis(random: &mut Random, most: u64) -> Duration {
    Duration::from_micros(random.below(most * 1_000))
}

/// Two to four queues, with an interface that knows where flows belong or does not, and letters that take their time.
fn queues(random: &mut Random, config: &mut HostConfig) {
    config.queues = random.range(2..=4) as u16;
    config.spread = match random.below(3) {
        0 => Spread::shifted(random.below(4) as u16),
        1 => Spread::Follow,
        _ => Spread::Random,
    };
    config.letter_delay = Duration::from_nanos(*random.choose(&[0, 1_000, 100_000]).unwrap_or(&0));
    // Each has what one would have.
    config.nic.rx_buffers *= usize::from(config.queues);
    config.stack.memory *= usize::from(config.queues);
}

/// Half of all paths have a given fault.
fn often(random: &mut Random, most: f64) -> f64 {
    if random.chance(0.5) { random.unit() * most } else { 0.0 }
}

fn path(random: &mut Random) -> Path {
    let rate_bps = random.chance(0.6).then(|| 10u64.pow(random.range(5..=9) as u32) * random.range(1..=9));
    let queue = match random.below(4) {
        0 => Queue::packets(random.range(2..=8) as usize),
        1 => Queue::bytes(random.range(20_000..=500_000) as usize),
        2 => Queue::Threshold { mark_bytes: random.range(3_000..=60_000) as usize, bytes: 200_000 },
        _ => Queue::Codel(CodelConfig { ecn: random.chance(0.5), mtu: 9_014, ..CodelConfig::default() }),
    };
    let delay = *random.choose(&[0, 100, 1_000, 10_000, 50_000]).unwrap_or(&0);
    let jitter = match random.below(4) {
        0 => Jitter::Uniform(millis(random, 20)),
        1 => Jitter::Normal(millis(random, 5)),
        _ => Jitter::None,
    };
    Path {
        rate_bps,
        queue,
        delay: Duration::from_micros(delay),
        jitter,
        jitter_reorders: random.chance(0.3),
        loss: loss(random),
        reorder: often(random, 0.2),
        reorder_delay: millis(random, 20),
        duplicate: often(random, 0.1),
        corrupt: often(random, 0.02),
        too_long: if random.chance(0.5) { router() } else { TooLong::Drop },
        ..Path::default()
    }
}

/// Up to one in five.
fn loss(random: &mut Random) -> Loss {
    match random.below(8) {
        0..=2 => Loss::None,
        3 => Loss::Random(random.unit() * 0.01),
        4 => Loss::Random(random.unit() * 0.2),
        5 => Loss::EveryNth(random.range(5..=100)),
        6 => Loss::List((0..random.below(20)).map(|n| n * 3 + random.below(3)).collect()),
        _ => Loss::GilbertElliott {
            enter: 0.01 * random.unit(),
            leave: 0.1 + 0.4 * random.unit(),
            good: 0.0,
            bad: 0.8,
        },
    }
}

/// Interfaces with some of the offloads, small rings, few buffers, and little memory behind them.
fn host(random: &mut Random, config: &mut HostConfig, mtu: usize) {
    let mut flag = || random.chance(0.6);
    config.nic.capabilities = Capabilities {
        tx_checksum4: flag(),
        tx_checksum6: flag(),
        rx_checksum: flag(),
        tso4: flag(),
        tso6: flag(),
        rx_coalescing: flag(),
        gather: flag(),
    };
    let ring = |random: &mut Random| match random.below(3) {
        0 => random.range(1..=4) as usize,
        _ => random.range(8..=256) as usize,
    };
    let timers = [PacingMode::LastInterrupt, PacingMode::FirstNewPacket, PacingMode::LastNewPacket];
    config.nic = NicConfig {
        rate_bps: random.chance(0.7).then(|| 10u64.pow(random.range(6..=9) as u32) * random.range(1..=9)),
        mtu,
        tx_ring: ring(random),
        rx_ring: ring(random),
        pacing: PacingConfig {
            mode: *random.choose(&timers).unwrap_or(&PacingMode::FirstNewPacket),
            timer_ticks: random.below(8) as u32,
            tick_ns: 25_000,
            threshold: random.range(1..=64) as u32,
        },
        completion_delay: millis(random, 2),
        rx_buffers: *random.choose(&[24, 64, 256, 1_024]).unwrap_or(&64),
        rx_buffer_size: *random.choose(&[2_048, 4_096]).unwrap_or(&2_048),
        capabilities: config.nic.capabilities,
    };
    config.tx_queue = random.range(8..=128) as usize;
    config.stack.memory = *random.choose(&[512 << 10, 2 << 20, 8 << 20]).unwrap_or(&(2 << 20));
    config.stack.send_quantum = random.range(1_460..=128 << 10) as usize;
    config.stack.completions = random.chance(0.9);
}

fn options(random: &mut Random) -> SocketOptions {
    let buffer = |random: &mut Random| match random.below(4) {
        0 => BufferSize::Fixed(random.range(600..=8_000) as usize),
        1 => BufferSize::Fixed(random.range(8_000..=200_000) as usize),
        _ => BufferSize::Auto { max: random.range(4_096..=1 << 20) as usize },
    };
    SocketOptions {
        send_buffer: buffer(random),
        receive_buffer: buffer(random),
        mss: random.chance(0.2).then(|| random.range(64..=1_460) as u16),
        no_delay: random.chance(0.7),
        delayed_ack: DelayedAck { segments: random.range(1..=4) as u8, timeout: millis(random, 40) },
        congestion: *random.choose(&[Congestion::Cubic, Congestion::NewReno]).unwrap_or(&Congestion::Cubic),
        ecn: *random.choose(&[Ecn::Off, Ecn::Accept, Ecn::Request]).unwrap_or(&Ecn::Off),
        pacing: match random.below(4) {
            0 => Pacing::Auto,
            1 => Pacing::Rate(random.range(20_000..=10_000_000)),
            _ => Pacing::Off,
        },
        ..SocketOptions::default()
    }
}

fn reader(random: &mut Random) -> Reader {
    match random.below(6) {
        0 => Reader::Paced { bytes: random.range(100..=20_000) as usize, every: millis(random, 30) },
        1 => Reader::From(Instant::from_millis(random.range(1..=20_000))),
        _ => Reader::Eager,
    }
}

/// Pauses of a few seconds, and MTUs that change while data flows, told or not.
fn events(random: &mut Random, mtu: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut add = |at: u64, by_a: bool, change: Change| {
        events.push(Event { at: Instant::from_millis(at), by_a, change });
    };
    if random.chance(0.2) {
        let (at, by_a) = (random.range(1..=3_000), random.chance(0.5));
        add(at, by_a, Change::Pause);
        add(at + random.range(1..=8_000), by_a, Change::Resume);
    }
    if random.chance(0.2) {
        add(random.range(1..=500), random.chance(0.5), Change::Delay(millis(random, 300)));
    }
    if mtu >= 1_400 && random.chance(0.2) {
        let (at, by_a) = (random.range(1..=500), random.chance(0.5));
        add(at, by_a, Change::Mtu(Some(random.range(1_280..=mtu as u64 - 1) as usize)));
        if random.chance(0.5) {
            add(at + random.range(1_000..=30_000), by_a, Change::Mtu(None));
        }
    }
    events
}

/// A router that tells of MTUs.
fn router() -> TooLong {
    TooLong::Tell {
        v4: [10, 0, 0, 254].into(),
        v6: "fd00::fe".parse().unwrap_or(std::net::Ipv6Addr::LOCALHOST),
    }
}
