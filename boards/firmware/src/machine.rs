//! Stack, servers and files of a machine, and the loop that turns them.

use crate::board::Board;
use crate::caller::Caller;
use crate::capture::Capture;
use crate::company::Company;
use crate::console;
use crate::counting::Counting;
use crate::disk::{Disk, FlashFile, Live};
use crate::exchange::{Exchange, Several, Spread, iperf3_port, several};
use crate::held::Held;
use crate::probe::Probe;
use crate::report::{self, Told};
use crate::reserve::Reserve;
use crate::settings::Settings;
use crate::trace::{self, Tracer};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use linerate_nic::{
    AdaptiveConfig, Capabilities, DeviceError, GroConfig, Interface, MacAddr, Paced, Pool, Port, PortConfig,
    QueuePair as _,
};
use linerate_serve::{Change, Changes, Group, Host, Loop, Service, StartError, ftp, http, iperf3};
use linerate_stack::{Cidr, Node, NodeConfig, Seat, StackConfig, StackPools};
use linerate_transport::{AcceptBacklog, BufferSize, ListenAddr, ListenOptions, Owner, SocketOptions};
use linerate_wire::units::Instant;

/// Bytes of a page, for what servers write and for small segments: of a machine with little memory, and of others.
const PAGES: [usize; 2] = [512, 2_048];
/// Bytes of a datagram that comes in fragments, its headers included, at most; and how many may be under way.
const DATAGRAMS: [(usize, usize); 2] = [(4, 9_216), (8, 65_580)];
/// What sockets hold together in a machine with little memory, at most.
const LITTLE: usize = 1 << 20;
/// What a machine is built from.
pub struct Parts<D> {
    /// The interface.
    pub device: D,
    /// The pool that it receives into.
    pub receive: Pool,
    /// Frames that wait in it beyond the pool's buffers.
    pub device_queue: usize,
    /// Frames taken in at once, and packets on their way to the interface.
    pub batch: usize,
    /// The files of the image.
    pub flash: &'static [FlashFile],
    /// When the image was built, in ns since 1970.
    pub built_ns: i64,
    /// Where the trace is kept; its ring has the room that it will ever have.
    pub tracer: &'static dyn Tracer,
    /// What cores share that serve together, and the seat of this one; `None` on a machine with one, and of no effect without the
    /// feature `cores`.
    pub exchange: Option<(&'static Exchange, u16)>,
}

/// Why a machine ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The interface failed.
    Device(DeviceError),
    /// A server did not start.
    Start(StartError),
    /// A setting is wrong: which, and why.
    Setting(&'static str, String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Device(error) => write!(f, "the interface failed: {error}"),
            Error::Start(error) => error.fmt(f),
            Error::Setting(what, why) => write!(f, "{what}: {why}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Error::Device(error)
    }
}

/// Serves until the interface fails, on a board whose sleep comes back when it is over.
pub fn run<D: Interface + Counting>(
    board: &mut impl Board,
    settings: &Settings,
    parts: Parts<D>,
) -> Result<Infallible, Error> {
    match pin!(serve(board, settings, parts)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ended) => ended,
        Poll::Pending => panic!("this board sleeps by an executor: it wants `serve`"),
    }
}

/// The same as a task of an executor.
pub async fn serve<D: Interface + Counting>(
    board: &mut impl Board,
    settings: &Settings,
    parts: Parts<D>,
) -> Result<Infallible, Error> {
    let exchange = parts.exchange.zip(several());
    let mut company = Company::new(exchange);
    let seat = company.seat();
    let settings = &share(settings, seat);
    let options = socket_options(settings);
    let mut http = http::Server::new(Owner(1), http_config(settings, &options));
    let ftp = || ftp::Server::new(Owner(2), ftp_config(settings, seat, &options));
    let ftp = (!settings.ftp.is_empty()).then(ftp).transpose();
    let mut ftp = ftp.map_err(|error| Error::Setting("ftp", alloc::format!("{error}")))?;
    let iperf3_config = iperf3_config(settings, seat, &options);
    let has_iperf3 = !iperf3_config.listen.is_empty();
    let mut iperf3 = iperf3::Server::new(iperf3_config);
    let caller = Caller::new(Owner(4), options.clone(), settings.socket_memory / 4);
    let mut calling = caller.clone();
    let mut services: [Option<&mut dyn Service>; 4] = [
        (!settings.http.is_empty()).then_some(&mut http as &mut dyn Service),
        ftp.as_mut().map(|ftp| ftp as &mut dyn Service),
        has_iperf3.then_some(&mut iperf3 as &mut dyn Service),
        Some(&mut calling),
    ];
    // For the other cores, which may hold a file open that is removed here.
    let mut changes = Changes::default();
    let services = match exchange {
        Some(_) => Group::noting(&mut services, &mut changes),
        None => Group::new(&mut services),
    };
    let mut machine = assemble(board, settings, parts, exchange, seat, services)?;
    let machine = &mut *machine;
    let mut turn = Turn { now: board.now(), wall_ns: None, board, company: &mut company };
    let mut reserve = Reserve::new(settings.interrupts.reserve, turn.now);
    machine.with(&mut turn, |services, ctx| services.start(ctx)).map_err(Error::Start)?;
    if !seat.is_member() {
        turn.board.answer(console::greeting(settings, seat.seats));
    }
    let mut command = None;
    loop {
        (turn.now, turn.wall_ns) = (reserve.begin(turn.board).await, None);
        turn.board.turns();
        let taken = machine.take_in(&mut turn)?;
        let Turn { now, board, company, .. } = &mut turn;
        let mailed = company.take_post(*now, machine, |node| Told::of(*board, node));
        let mut answered = answer(*board, company, settings, machine, &mut command);
        if let Some(line) = command.take_if(|line| Reserve::takes(line)) {
            turn.board.answer(reserve.command(&line));
            answered = true;
        }
        if let Some(line) = command.take_if(|line| Caller::takes(line)) {
            let text = machine.with(&mut turn, |_, ctx| caller.begin(&line, ctx));
            turn.board.answer(text);
            answered = true;
        }
        if machine.files.has_work() {
            machine.files.set_wall(turn.wall_ns());
        }
        let moved = machine.serve(&mut turn)?;
        if let Some(report) = caller.poll_report() {
            turn.board.answer(report);
        }
        turn.company.send_letters(&mut machine.engine);
        let wants_live = machine.files.wants_live().is_some() && !turn.company.waits();
        // Behind a command there may be another one, which no interrupt tells of any more.
        if taken || mailed || moved || answered || wants_live || machine.arm(turn.now) {
            turn.board.give_way().await;
            continue;
        }
        reserve.sleep(turn.board, machine.poll_timeout()).await;
    }
}

/// A machine of this interface.
type Machine<'a, 'b, D> = Loop<Node<Spread<Probe<Paced<D>>>>, Disk, Group<'a, 'b>>;

/// Files, interface and stack put together, in a frame of their own: what is moved on the way is not to lie on the stack for good.
#[inline(never)]
fn assemble<'a, 'b, D: Interface + Counting>(
    board: &mut impl Board,
    settings: &Settings,
    parts: Parts<D>,
    exchange: Option<((&'static Exchange, u16), Several)>,
    seat: Seat,
    services: Group<'a, 'b>,
) -> Result<Box<Machine<'a, 'b, D>>, Error> {
    let (mut disk, capture) = files(settings, &parts, exchange);
    disk.set_instruments(parts.tracer, capture.clone());
    let paced = paced(parts.device, settings, board.now())?;
    let device = Probe::new(paced, settings.interrupts.pacing, parts.tracer, capture);
    let device = match exchange {
        None => Spread::alone(device),
        Some(place) => Spread::shared(device, place, parts.receive.clone(), parts.batch),
    };
    let seed = exchange.map(|((exchange, _), _)| exchange.seed);
    let node = node(board, settings, device, parts.receive, (parts.device_queue, parts.batch), (seat, seed))?;
    Ok(Box::new(Loop::new(node, disk, services)))
}

/// The interface with the pacing that is set.
fn paced<D: Interface>(device: D, settings: &Settings, now: Instant) -> Result<Paced<D>, Error> {
    let interrupts = settings.interrupts;
    let mut device = Paced::new(device);
    let set = if interrupts.adaptive {
        // Among so few frames as a threshold is, one is little and half is much.
        let high = interrupts.pacing.threshold.div_ceil(2).max(2);
        device.set_adaptive(
            now,
            interrupts.pacing,
            AdaptiveConfig { low: 1, high, ..AdaptiveConfig::default() },
        )
    } else {
        device.set_pacing(interrupts.pacing)
    };
    set.map_err(|_| {
        let (mode, threshold) = (interrupts.pacing.mode.name(), interrupts.pacing.threshold);
        let expected = device.most_counted().unwrap_or(1);
        let why = alloc::format!(
            "mode {mode:?} with a threshold of {threshold} given, 1 to {expected} expected by this interface"
        );
        Error::Setting("interrupts", why)
    })?;
    Ok(device)
}

/// Makes what somebody has asked for: a file of what the machine knows, the answer to a command; whether it has answered one. With
/// several cores that takes until all have told.
fn answer<D: Interface + Counting, S: Service>(
    board: &mut impl Board,
    company: &mut Company,
    settings: &Settings,
    machine: &mut Loop<Node<Spread<Probe<D>>>, Disk, S>,
    command: &mut Option<String>,
) -> bool {
    if let Some(live) = machine.files.wants_live()
        && let Some(all) = company.all(|| Told::of(board, &machine.engine))
    {
        let text = match live {
            Live::Stats => report::json(board, settings, &machine.engine, &machine.files, &all),
            Live::Trace => {
                let tasks: Vec<_> = all.into_iter().flat_map(|told| told.tasks).collect();
                trace::head(settings.name, &tasks)
            }
        };
        machine.files.supply(live, text);
    }
    if command.is_none() {
        *command = board.command();
    }
    // What all tell is asked for where it is shown: to look through the stacks of tasks takes its time.
    let shows_all = command.as_deref().is_some_and(console::shows_all);
    if command.as_deref().is_some_and(|line| !Caller::takes(line) && !Reserve::takes(line))
        && let Some(all) =
            if shows_all { company.all(|| Told::of(board, &machine.engine)) } else { Some(Vec::new()) }
        && let Some(line) = command.take()
    {
        let text = console::run(&line, board, settings, &mut machine.engine, &machine.files, &all);
        board.answer(text);
        return true;
    }
    false
}

/// The part of the settings that is this core's: what there is for all is divided evenly, and connections, which chance spreads, with
/// a quarter on top. Only the first has FTP, and the ports of iperf3 that are not one core's.
fn share(settings: &Settings, seat: Seat) -> Settings {
    let seats = usize::from(seat.seats);
    if seats == 1 {
        return *settings;
    }
    let socket_memory = settings.socket_memory / seats;
    let (ftp, iperf3): (&[u16], &[u16]) =
        if seat.is_member() { (&[], &[]) } else { (settings.ftp, settings.iperf3) };
    Settings {
        connections: (settings.connections.div_ceil(seats) * 5).div_ceil(4),
        socket_memory,
        send_buffer: settings.send_buffer.min(socket_memory / 2),
        receive_buffer: settings.receive_buffer.min(socket_memory / 2),
        ftp,
        iperf3,
        ..*settings
    }
}

/// The files, and what the interface has captured: each core's, or shared by all.
fn files<D>(
    settings: &Settings,
    parts: &Parts<D>,
    exchange: Option<((&'static Exchange, u16), Several)>,
) -> (Disk, Held<Capture>) {
    match exchange {
        None => {
            let capture = Capture::with_bytes(settings.capture, settings.name, settings.mac);
            (Disk::new(parts.flash, parts.built_ns, settings.ram_disk), Held::own(capture))
        }
        Some(((exchange, _), several)) => {
            let ram = Held::Shared(Arc::clone(&exchange.ram), several);
            let capture = Held::Shared(Arc::clone(&exchange.capture), several);
            (Disk::over(parts.flash, parts.built_ns, ram), capture)
        }
    }
}

/// A turn of the loop: time and date are read once each, however many events there are.
struct Turn<'a, B> {
    now: Instant,
    wall_ns: Option<i64>,
    board: &'a mut B,
    company: &'a mut Company,
}

impl<B: Board> Host for Turn<'_, B> {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wall_ns(&mut self) -> i64 {
        *self.wall_ns.get_or_insert_with(|| self.board.wall_ns())
    }

    fn random(&mut self) -> u64 {
        self.board.random()
    }

    fn handle_change(&mut self, change: Change) {
        self.company.tell(&change);
    }
}

fn node<D: Interface>(
    board: &mut impl Board,
    settings: &Settings,
    device: D,
    receive: Pool,
    (device_queue, batch): (usize, usize),
    (seat, seed): (Seat, Option<[u8; 32]>),
) -> Result<Node<D>, Error> {
    let gro = GroConfig { flows: 2, frames: 4, segments: 8 };
    let config = PortConfig { rx_batch: batch, rx_budget: 2 * batch, tx_segments: batch, gro };
    // Frames are coalesced where the device does it.
    let rx_coalescing = device.capabilities().rx_coalescing;
    let mut port = Port::new(device, config)?;
    port.set_offloads(Capabilities { rx_coalescing, ..Capabilities::ALL })?;
    let seed = seed.unwrap_or_else(|| {
        let mut seed = [0; 32];
        seed.as_chunks_mut::<8>().0.iter_mut().for_each(|piece| *piece = board.random().to_le_bytes());
        seed
    });
    let has_much = usize::from(settings.socket_memory > LITTLE);
    let (page, (datagrams, longest)) = (PAGES[has_much], DATAGRAMS[has_much]);
    let pools = StackPools {
        pages: Pool::new(settings.socket_memory / 2 / page, page),
        datagrams: Pool::on_demand(datagrams, longest),
        receive: Some(receive),
        device_queue: Some(device_queue),
    };
    let sizes = NodeConfig { rx_batch: batch, tx_queue: batch, tx_rounds: 4 };
    Ok(Node::new(port, stack_config(settings, seat, batch)?, seed, pools, sizes))
}

fn stack_config(settings: &Settings, seat: Seat, batch: usize) -> Result<StackConfig, Error> {
    let mut addresses = Vec::new();
    for (address, len) in settings.addresses {
        let wrong = || Error::Setting("address", alloc::format!("{address}/{len}: the prefix is too long"));
        addresses.push(Cidr::new(*address, *len).ok_or_else(wrong)?);
    }
    let has_ipv4 = settings.addresses.iter().any(|(address, _)| address.is_ipv4());
    let listeners = settings.http.len() + settings.ftp.len() + settings.iperf3.len() + 1;
    Ok(StackConfig {
        mac: MacAddr(settings.mac),
        seat,
        addresses,
        gateways: settings.gateways.to_vec(),
        dhcp: !has_ipv4,
        ipv6: settings.ipv6,
        slaac: settings.ipv6,
        memory: settings.socket_memory,
        max_connections: settings.connections,
        max_half_open: settings.connections / 2,
        max_orphans: settings.connections / 2,
        max_time_wait: settings.connections / 2,
        max_listeners: listeners + settings.connections,
        max_udp_sockets: 4,
        max_neighbors: 16,
        max_parked: 8,
        max_paths: 8,
        max_file_reads: settings.connections,
        control_queue: 16,
        datagram_queue: 16,
        receive_budget: 2 * batch,
        // Half a buffer is sent while the other half is acknowledged.
        send_quantum: (settings.send_buffer / 2).min(128 << 10),
        max_super_segment: (settings.send_buffer / 2).clamp(1_500, 65_535),
        ..StackConfig::default()
    })
}

fn socket_options(settings: &Settings) -> SocketOptions {
    SocketOptions {
        send_buffer: BufferSize::Auto { max: settings.send_buffer },
        receive_buffer: BufferSize::Auto { max: settings.receive_buffer },
        ..SocketOptions::default()
    }
}

/// Listeners on these ports of all addresses.
fn listen(ports: &[u16]) -> Vec<ListenAddr> {
    ports.iter().map(|port| ListenAddr { ip: None, port: *port }).collect()
}

fn backlog(settings: &Settings) -> AcceptBacklog {
    AcceptBacklog(u16::try_from(settings.connections).unwrap_or(u16::MAX))
}

fn http_config(settings: &Settings, socket: &SocketOptions) -> http::Config {
    let defaults = http::Config::default();
    http::Config {
        listen: listen(settings.http),
        options: ListenOptions { backlog: backlog(settings), fast_open: None, socket: socket.clone() },
        access_log: None,
        limits: http::Limits {
            request_line: 1 << 10,
            header_fields: 4 << 10,
            connections: settings.connections,
            connections_per_address: settings.connections,
            head_memory: 16 << 10,
            open_files: 8,
            // What is in flash needs no copy in RAM.
            cache_entries: 4,
            cached_file: 0,
            cache_memory: 0,
            ready_answers: 4,
            listings: 2,
            ..defaults.limits
        },
        ..defaults
    }
}

fn ftp_config(settings: &Settings, seat: Seat, socket: &SocketOptions) -> ftp::Config {
    let defaults = ftp::Config::default();
    let user =
        |(name, hash): &(&str, &str)| ftp::User { name: (*name).into(), password_hash: (*hash).into() };
    ftp::Config {
        listen: listen(settings.ftp),
        users: settings.ftp_users.iter().map(user).collect(),
        anonymous: settings.ftp_anonymous,
        writable: true,
        // Frames to these come to this seat.
        passive_share: ftp::PortShare { index: seat.index, servers: seat.seats },
        backlog: backlog(settings),
        socket: socket.clone(),
        limits: ftp::Limits {
            sessions: settings.connections,
            sessions_per_address: settings.connections,
            password_checks: 1,
            line_len: 512,
            path_line_len: 1_024,
            queued_commands: 8,
            write_chunk_len: 4 << 10,
            writes_under_way: 2,
            sorted_entries: 64,
            ..defaults.limits
        },
        ..defaults
    }
}

fn iperf3_config(settings: &Settings, seat: Seat, socket: &SocketOptions) -> iperf3::Config {
    let mut ports = settings.iperf3.to_vec();
    ports.extend(iperf3_port(settings, seat.index));
    iperf3::Config {
        owner: Owner(3),
        listen: listen(&ports),
        socket: socket.clone(),
        backlog: backlog(settings),
        max_connections: settings.connections,
        connections_per_address: settings.connections,
        tests_per_address: 2,
        max_tests: 2,
        udp_buffer: settings.socket_memory / 4,
        ..iperf3::Config::default()
    }
}
