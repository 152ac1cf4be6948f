//! Makes a world of a scenario.

use super::file::{
    ChangeTable, EcnName, FlowTable, HostTable, PathTable, ProcessorTable, Scenario, Side, TcpTable,
};
use super::models::{QueueModel, ReaderModel, WriterModel, time};
use linerate_fabric::units::{BitsPerSecond, Bytes, Nanoseconds};
use linerate_nic::PacingConfig;
use linerate_sim::{
    Amount, Change, CpuCost, Direction, FlowConfig, FlowId, HostConfig, HostId, Loss, NicConfig, PairConfig,
    Path, Queue, Reader, TooLong, World, Writer,
};
use linerate_stack::TcpOptions;
use linerate_transport::{BufferSize, Ecn, SocketOptions};
use linerate_wire::units::Instant;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use toml::Spanned;

/// Rate of an interface where neither it nor the link says more.
const LINE_RATE_BPS: u64 = 1_000_000_000;
/// Virtual time unless the scenario says otherwise.
const DURATION: Duration = Duration::from_secs(10);
/// Memory of a host that needs no more.
const MEMORY: u64 = 64 << 20;

/// A world that is ready to run.
pub struct Setup {
    /// The world.
    pub world: World,
    /// The hosts.
    pub hosts: Pair<HostId>,
    /// Their interfaces' rates in bits per second.
    pub line_rates_bps: Pair<u64>,
    /// What each host sends into.
    pub paths: Pair<Path>,
    /// The transfers.
    pub flows: Vec<Flow>,
    /// How long it may run.
    pub duration: Duration,
}

/// One of something for each host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pair<T> {
    /// The client's.
    pub client: T,
    /// The server's.
    pub server: T,
}

impl<T> Pair<T> {
    /// Of one of them.
    pub fn of(&self, side: Side) -> &T {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// A transfer of the world.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name in the world.
    pub id: FlowId,
    /// Who sends.
    pub from: Side,
    /// Who opened the connection.
    pub opens: Side,
    /// Its sender's send buffer.
    pub send_buffer: BufferSize,
    /// Its receiver's receive buffer.
    pub receive_buffer: BufferSize,
    /// How its receiver reads.
    pub reader: Option<ReaderModel>,
    /// How its sender writes.
    pub writer: Option<WriterModel>,
    /// When it opens, since the start.
    pub start: Duration,
    /// Whether its segments have timestamps: where both ends have them.
    pub timestamps: bool,
}

/// The world of a scenario.
pub fn build(scenario: &Scenario, seed: Option<u64>) -> Setup {
    let seed = seed.or(scenario.world.seed).unwrap_or(1);
    let mut down = scenario.from_server.clone().over(&scenario.link);
    let mut up = scenario.from_client.clone().over(&scenario.link);
    let paths = Pair { client: path(&up), server: path(&down) };
    let fastest = paths.client.rate_bps.max(paths.server.rate_bps).unwrap_or(0);
    let line_rate = |host: &HostTable| host.line_rate.map_or(LINE_RATE_BPS.max(2 * fastest), bps);
    let line_rates_bps = Pair { client: line_rate(&scenario.client), server: line_rate(&scenario.server) };
    let (mut world, client, server) = World::pair(
        seed,
        PairConfig {
            hosts: [
                host(scenario, Side::Client, line_rates_bps.client),
                host(scenario, Side::Server, line_rates_bps.server),
            ],
            a_to_b: paths.client.clone(),
            b_to_a: paths.server.clone(),
        },
    );
    let hosts = Pair { client, server };
    let begin = world.now();
    let changes = scenario.changes();
    for (host, whole, of) in [
        (server, &mut down, (|c| &c.from_server) as fn(&ChangeTable) -> &PathTable),
        (client, &mut up, |c| &c.from_client),
    ] {
        pause(&mut world, begin, host, whole);
        for change in &changes {
            let keys = of(change).clone().over(&change.link);
            let at = begin + time(change.at);
            *whole = keys.clone().over(whole);
            apply(&mut world, at, host, &keys, whole);
            pause(&mut world, at, host, &keys);
        }
    }
    for change in &changes {
        for (host, of) in [(client, change.client), (server, change.server)] {
            if let Some(spread) = of.spread {
                world.set_spread_at(begin + time(change.at), host, spread.into());
            }
        }
    }
    let duration = scenario.world.duration.as_ref().map_or(DURATION, |span| time(*span.get_ref()));
    let default = [FlowTable::default()];
    let tables = if scenario.flow.is_empty() { &default } else { scenario.flow.as_slice() };
    let flows = tables.iter().map(|table| flow(&mut world, hosts, scenario, table, duration)).collect();
    Setup { world, hosts, line_rates_bps, paths, flows, duration }
}

/// For which directions changes are scheduled: by which host sends.
pub fn changes(scenario: &Scenario) -> Pair<bool> {
    let any = |of: fn(&ChangeTable) -> &PathTable| {
        scenario.change.iter().any(|change| [of(change), &change.link].iter().any(|keys| !keys.is_empty()))
    };
    Pair { client: any(|change| &change.from_client), server: any(|change| &change.from_server) }
}

fn bps(rate: BitsPerSecond) -> u64 {
    rate.value() as u64
}

fn host(scenario: &Scenario, side: Side, line_rate_bps: u64) -> HostConfig {
    let (table, addresses) = match side {
        Side::Client => (&scenario.client, ["10.0.0.1/24", "fd00::1/64"]),
        Side::Server => (&scenario.server, ["10.0.0.2/24", "fd00::2/64"]),
    };
    let mut config = HostConfig::new(side.name(), &addresses);
    let nic = NicConfig::default();
    let options = scenario.flow.iter().map(|flow| sockets(&table.tcp, &flow.tcp));
    let options: Vec<SocketOptions> = options.chain([sockets(&table.tcp, &TcpTable::default())]).collect();
    let most = |buffer: fn(&SocketOptions) -> BufferSize| {
        options.iter().map(|options| largest(buffer(options))).max().unwrap_or(0) as u64
    };
    let (send, receive) = (most(|options| options.send_buffer), most(|options| options.receive_buffer));
    let flows = scenario.flow.len().max(1) as u64;
    // Enough for every buffer to be full, with the slack of frames in larger buffers.
    let wanted = (2 * (send + receive) * flows).max(MEMORY);
    config.stack.memory = number(&table.memory).map_or(wanted, |bytes| bytes.value() as u64) as usize;
    config.stack.tcp_options = TcpOptions {
        timestamps: table.timestamps.unwrap_or(true),
        sack: table.sack.unwrap_or(true),
        window_scaling: table.window_scaling.unwrap_or(true),
    };
    if let Some(offload) = table.offload {
        config.offloads = offload.0;
    }
    let mtu = scenario.world.mtu.as_ref().map_or(nic.mtu, |mtu| *mtu.get_ref());
    let buffers = (2 * receive * flows / mtu as u64) as usize;
    config.cpu = processor(&table.processor);
    config.queues = number(&table.queues).unwrap_or(config.queues);
    config.spread = table.spread.map_or(config.spread, Into::into);
    config.letter_delay = number(&table.letter_delay).map_or(config.letter_delay, time);
    config.nic = NicConfig {
        rate_bps: Some(line_rate_bps),
        mtu,
        tx_ring: number(&table.tx_ring).unwrap_or(nic.tx_ring),
        rx_ring: number(&table.rx_ring).unwrap_or(nic.rx_ring),
        rx_buffers: number(&table.rx_buffers).unwrap_or(nic.rx_buffers.max(buffers)),
        pacing: pacing(table, nic.pacing),
        completion_delay: table.completion_delay.map_or(nic.completion_delay, time),
        ..nic
    };
    config
}

/// A value without its place in the file.
fn number<T: Copy>(value: &Option<Spanned<T>>) -> Option<T> {
    value.as_ref().map(|value| *value.get_ref())
}

fn processor(table: &ProcessorTable) -> CpuCost {
    let cost = |value: &Option<Spanned<Nanoseconds>>| number(value).map_or(Duration::ZERO, time);
    CpuCost {
        packet: cost(&table.packet),
        kilobyte: cost(&table.kilobyte),
        checksum: cost(&table.checksum),
        transmit: cost(&table.transmit),
        receive: cost(&table.receive),
        interrupt: cost(&table.interrupt),
        call: cost(&table.call),
        give_way: cost(&table.give_way),
        copy: cost(&table.copy),
    }
}

fn pacing(table: &HostTable, default: PacingConfig) -> PacingConfig {
    let mode = table.interrupt_mode.map_or(default.mode, Into::into);
    let default = PacingConfig { mode, ..default };
    let threshold = number(&table.interrupt_packets).unwrap_or(default.threshold);
    match number(&table.interrupt_timer) {
        None => PacingConfig { threshold, ..default },
        Some(timer) => PacingConfig {
            timer_ticks: u32::from(timer.value() > 0.0),
            tick_ns: timer.value().min(f64::from(u32::MAX)) as u32,
            threshold,
            ..default
        },
    }
}

fn largest(size: BufferSize) -> usize {
    match size {
        BufferSize::Fixed(bytes) => bytes,
        BufferSize::Auto { max } => max,
    }
}

/// The settings of a socket: those of its flow over those of its host.
fn sockets(host: &TcpTable, flow: &TcpTable) -> SocketOptions {
    let default = SocketOptions::default();
    let size = |fixed: [Option<f64>; 2], most: [Option<f64>; 2], default| match (fixed, most) {
        ([Some(bytes), _], _) => BufferSize::Fixed(bytes as usize),
        (_, [Some(max), _]) => BufferSize::Auto { max: max as usize },
        ([None, Some(bytes)], _) => BufferSize::Fixed(bytes as usize),
        (_, [None, Some(max)]) => BufferSize::Auto { max: max as usize },
        _ => default,
    };
    let value = |f: fn(&TcpTable) -> &Option<Spanned<Bytes>>| {
        [flow, host].map(|t| number(f(t)).map(|bytes| bytes.value()))
    };
    let mut delayed_ack = default.delayed_ack;
    if let Some(segments) = number(&flow.delayed_ack_segments).or(number(&host.delayed_ack_segments)) {
        delayed_ack.segments = segments;
    }
    if let Some(timeout) = flow.delayed_ack_timeout.or(host.delayed_ack_timeout) {
        delayed_ack.timeout = time(timeout);
    }
    SocketOptions {
        send_buffer: size(value(|t| &t.send_buffer), value(|t| &t.send_buffer_max), default.send_buffer),
        receive_buffer: size(
            value(|t| &t.receive_buffer),
            value(|t| &t.receive_buffer_max),
            default.receive_buffer,
        ),
        mss: number(&flow.mss).or(number(&host.mss)),
        no_delay: flow.no_delay.or(host.no_delay).unwrap_or(default.no_delay),
        delayed_ack,
        user_timeout: number(&flow.user_timeout)
            .or(number(&host.user_timeout))
            .map_or(default.user_timeout, time),
        congestion: flow.congestion.or(host.congestion).map_or(default.congestion, |name| name.0),
        ecn: match flow.ecn.or(host.ecn) {
            None => default.ecn,
            Some(EcnName::Off) => Ecn::Off,
            Some(EcnName::Accept) => Ecn::Accept,
            Some(EcnName::Request) => Ecn::Request,
        },
        pacing: flow.pacing.or(host.pacing).map_or(default.pacing, |model| model.0),
        ..default
    }
}

/// A direction of the cable.
pub fn path(table: &PathTable) -> Path {
    let rate_bps = table.rate.map(bps);
    let queue = match table.queue.as_ref().map(|queue| *queue.get_ref()) {
        None => Queue::default(),
        Some(QueueModel::Of(queue)) => queue,
        Some(QueueModel::Time(time)) => {
            Queue::bytes((rate_bps.unwrap_or(0) as f64 / 8.0 * time.as_secs_f64()) as usize)
        }
    };
    let router =
        TooLong::Tell { v4: Ipv4Addr::new(10, 0, 0, 254), v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe) };
    Path {
        rate_bps,
        queue,
        delay: table.delay.map_or(Duration::ZERO, time),
        jitter: table.jitter.map(|model| model.0).unwrap_or_default(),
        jitter_reorders: table.jitter_reorders.unwrap_or(false),
        loss: loss(table),
        reorder: table.reorder.unwrap_or_default().0,
        reorder_delay: table.reorder_delay.map_or(Duration::from_millis(1), time),
        duplicate: table.duplicate.unwrap_or_default().0,
        corrupt: table.corrupt.unwrap_or_default().0,
        mtu: table.mtu.as_ref().map(|mtu| *mtu.get_ref()),
        too_long: if table.too_long_is_told == Some(true) { router } else { TooLong::Drop },
    }
}

fn loss(table: &PathTable) -> Loss {
    table.loss.clone().map(|model| model.0).unwrap_or_default()
}

/// Schedules the change of `keys`, after which the path is `whole`.
fn apply(world: &mut World, at: Instant, host: HostId, keys: &PathTable, whole: &PathTable) {
    let new = path(whole);
    let mut change = |change| world.change_at(at, host, Direction::Up, change);
    // A queue in time has as many bytes as the rate carries in it.
    let is_timed = matches!(whole.queue.as_ref().map(Spanned::get_ref), Some(QueueModel::Time(_)));
    let is_rebuilt = keys.queue.is_some()
        || (keys.rate.is_some() && is_timed)
        || keys.jitter.is_some()
        || keys.jitter_reorders.is_some()
        || keys.too_long_is_told.is_some();
    if is_rebuilt {
        change(Change::All(Box::new(new.clone())));
    }
    // Whatever else changes, a model of loss that is named begins anew, and one that is not goes on.
    if keys.loss.is_some() {
        change(Change::Loss(new.loss));
    }
    if is_rebuilt {
        return;
    }
    if keys.rate.is_some() {
        change(Change::Rate(new.rate_bps));
    }
    if keys.delay.is_some() {
        change(Change::Delay(new.delay));
    }
    if keys.mtu.is_some() {
        change(Change::Mtu(new.mtu));
    }
    let has_faults = [keys.reorder, keys.duplicate, keys.corrupt].iter().any(Option::is_some);
    if has_faults || keys.reorder_delay.is_some() {
        let Path { reorder, reorder_delay, duplicate, corrupt, .. } = new;
        change(Change::Faults { reorder, reorder_delay, duplicate, corrupt });
    }
}

fn pause(world: &mut World, at: Instant, host: HostId, keys: &PathTable) {
    match keys.pause {
        Some(true) => world.change_at(at, host, Direction::Up, Change::Pause),
        Some(false) => world.change_at(at, host, Direction::Up, Change::Resume),
        None => {}
    }
}

fn flow(
    world: &mut World,
    hosts: Pair<HostId>,
    scenario: &Scenario,
    table: &FlowTable,
    duration: Duration,
) -> Flow {
    let opens = table.opens.unwrap_or(Side::Client);
    let start = world.now() + table.start.map_or(Duration::ZERO, time);
    let amount = match (number(&table.bytes), table.duration) {
        (Some(bytes), _) => Amount::Bytes(bytes.value() as u64),
        (None, Some(span)) => Amount::Until(start + time(span)),
        (None, None) => Amount::Until(world.now() + duration),
    };
    let options = Pair {
        client: sockets(&scenario.client.tcp, &table.tcp),
        server: sockets(&scenario.server.tcp, &table.tcp),
    };
    let mut config = FlowConfig {
        ipv6: scenario.world.ip.as_ref().is_some_and(|ip| *ip.get_ref() == 6),
        start,
        client_options: options.of(opens).clone(),
        server_options: options.of(opens.other()).clone(),
        ..FlowConfig::new(*hosts.of(opens), *hosts.of(opens.other()))
    };
    if table.from == opens {
        config.upload = amount;
        config.server_reader = reader(table.reader, world.now());
        config.client_writer = writer(table.writer);
    } else {
        config.download = amount;
        config.client_reader = reader(table.reader, world.now());
        config.server_writer = writer(table.writer);
    }
    Flow {
        id: world.add_flow(config),
        from: table.from,
        opens,
        send_buffer: options.of(table.from).send_buffer,
        receive_buffer: options.of(table.from.other()).receive_buffer,
        reader: table.reader,
        writer: table.writer,
        start: table.start.map_or(Duration::ZERO, time),
        timestamps: [&scenario.client, &scenario.server].iter().all(|host| host.timestamps.unwrap_or(true)),
    }
}

fn reader(model: Option<ReaderModel>, begin: Instant) -> Reader {
    match model {
        None => Reader::Eager,
        Some(ReaderModel::Never) => Reader::Never,
        Some(ReaderModel::From(at)) => Reader::From(begin + at),
        Some(ReaderModel::Rate(rate)) => {
            let (bytes, every) = pieces(rate);
            Reader::Paced { bytes: bytes as usize, every }
        }
    }
}

fn writer(model: Option<WriterModel>) -> Writer {
    match model {
        None => Writer::Eager,
        Some(WriterModel::Rate(rate)) => {
            let (bytes, every) = pieces(rate);
            Writer::Paced { bytes, every }
        }
        Some(WriterModel::Pieces { bytes, every }) => Writer::Paced { bytes, every },
        Some(WriterModel::Calls { bytes, gives_way }) => Writer::Calls { bytes, gives_way },
        Some(WriterModel::Request { bytes }) => Writer::Exchange { bytes },
    }
}

/// A rate as pieces of at least one segment, a millisecond or more apart.
fn pieces(rate: BitsPerSecond) -> (u64, Duration) {
    let bytes_per_second = rate.value() / 8.0;
    let bytes = (bytes_per_second / 1_000.0).max(1_448.0).floor();
    (bytes as u64, Duration::from_secs_f64((bytes / bytes_per_second).min(3_600.0)))
}
