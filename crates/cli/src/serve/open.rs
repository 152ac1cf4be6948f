//! The engine that the settings ask for, or the best that can be had.

use super::engine::HostEngine;
use super::own::{self, HostDevice};
use super::plugged::Plugged;
use super::record::watched::Watched;
use super::services::Ports;
use super::shares;
use super::tap;
use super::worker::Random;
use crate::output;
use crate::settings::{KERNEL_ADDRESS, MIN_MEMORY, Settings};
use crate::values::DeviceChoice;
use linerate_linux::RxPools;
use linerate_linux::files::AnyFiles;
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_linux::netconfig::{HostInterface, NetconfigError, Netlink};
use linerate_linux::packet::{PacketDevice, PacketError, PacketOptions, PacketQueue};
use linerate_linux::privileges::Kept;
use linerate_linux::tap::{Tap, TapError, TapOptions, TapQueue};
use linerate_linux::uio::{UioDevice, UioError, UioOptions, UioQueue};
use linerate_linux::xdp::{XdpDevice, XdpError, XdpOptions, XdpQueue};
use linerate_nic::{Capabilities, DeviceError, Port, PortConfig};
use linerate_stack::memory::StackPools;
use linerate_stack::{Cidr, Node, NodeConfig, Seat, StackConfig};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// The name of the TAP device when none is given.
const TAP_NAME: &str = "linerate0";
/// The MTU of an Ethernet interface that nobody has changed, in bytes.
const USUAL_MTU: usize = 1_500;

/// Why the device asked for cannot be had.
#[derive(Debug)]
pub enum OpenError {
    /// No TAP device.
    Tap(TapError),
    /// No packet socket.
    Packet(PacketError),
    /// No AF_XDP socket.
    Xdp(XdpError),
    /// No interface in programmable logic.
    Uio(UioError),
    /// The host's side of the TAP device cannot be configured.
    Host(NetconfigError),
    /// The device refuses the offloads.
    Device(DeviceError),
    /// The simulated interface.
    Rtl(String),
    /// No kernel sockets.
    Kernel(std::io::Error),
    /// Nobody on a TAP device of our own could give addresses.
    Private,
    /// The host has the network of this address on another interface.
    Taken(Cidr),
    /// The TAP device of this name is down, and we may not bring it up.
    Down(String),
}

impl OpenError {
    /// Whether a name or number that the user gave is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            OpenError::Tap(TapError::Name(_) | TapError::NotTap(_))
                | OpenError::Packet(
                    PacketError::NoSuchInterface(_) | PacketError::NotEthernet(_) | PacketError::Mtu { .. }
                )
                | OpenError::Xdp(
                    XdpError::NoSuchInterface(_)
                        | XdpError::NotEthernet(_)
                        | XdpError::Mtu { .. }
                        | XdpError::Queues { .. }
                )
                | OpenError::Uio(UioError::NoSuchDevice { .. })
                | OpenError::Private
                | OpenError::Taken(_)
        )
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Tap(error) => write!(f, "no TAP device: {error}"),
            OpenError::Packet(error) => write!(f, "no packet socket: {error}"),
            OpenError::Xdp(error) => write!(f, "no AF_XDP socket: {error}"),
            OpenError::Uio(error) => write!(f, "no interface by UIO: {error}"),
            OpenError::Host(error) => write!(f, "the host's side of the TAP device: {error}"),
            OpenError::Device(error) => error.fmt(f),
            OpenError::Rtl(error) => write!(f, "no simulated interface: {error}"),
            OpenError::Kernel(error) => write!(f, "no kernel sockets: {error}"),
            OpenError::Private => f.write_str(
                "invalid value 'dhcp' or 'slaac' for '--address': on a TAP device made for the run there is nobody to give \
                 an address; expected ADDRESS/PREFIX, or a TAP device that is part of a network already, or \
                 --device packet:INTERFACE",
            ),
            OpenError::Taken(cidr) => write!(
                f,
                "invalid value '{cidr}' for '--address': this host has a network with that address on another interface, \
                 and would be cut off from it; expected an address of a network of its own, or --device packet:INTERFACE \
                 to serve in that network"
            ),
            OpenError::Down(name) => write!(
                f,
                "the TAP device {name} is down, and bringing it up needs root: ip link set {name} up"
            ),
        }
    }
}

/// Makes the engine of a queue, in the thread that is to own it. Its offloads are off.
pub type Maker = Box<dyn FnOnce(&AnyFiles, Seat) -> Result<Box<dyn HostEngine>, OpenError> + Send>;

/// Engines, and what to tell of them.
pub struct Opened {
    /// Makes the engine of each queue; there is one at least.
    pub makers: Vec<Maker>,
    /// The host's side of the device, which must outlive it.
    pub interface: Option<HostInterface>,
    /// One line that describes it.
    pub what: String,
    /// Addresses to listen on; `None` for all of the stack's.
    pub bind: Vec<Option<IpAddr>>,
    /// Addresses that clients use.
    pub addresses: Vec<IpAddr>,
    /// Whether these are the host's sockets.
    pub kernel: bool,
    /// Rights of root that are needed to the end.
    pub kept: Kept,
    /// Most connections at once, of all queues together.
    pub table: usize,
}

/// Memory that a queue has by default at least, in bytes: with less there are fewer queues.
const LEAST_FOR_QUEUE: u64 = 16 << 20;
/// Most queues by default.
const MOST_BY_DEFAULT: u16 = 4;

/// Queues that are asked for, or else one for each processor that this process may use, within bounds.
fn queues(settings: &Settings) -> u16 {
    let by_default = || {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let by_memory = settings.memory / LEAST_FOR_QUEUE;
        u16::try_from(by_memory.min(processors as u64)).unwrap_or(u16::MAX).clamp(1, MOST_BY_DEFAULT)
    };
    settings.queues.unwrap_or_else(by_default).max(1)
}

/// What one of so many queues has of the memory.
fn memory_of_queue(settings: &Settings, queues: u16) -> u64 {
    settings.memory / u64::from(queues.max(1))
}

/// Connections that one of so many queues can hold where all hold `table`: an equal part, and what chance puts on top of it.
fn table_of_queue(table: usize, queues: u16) -> usize {
    if queues <= 1 {
        return table;
    }
    (table.div_ceil(usize::from(queues)) + 2 * table.isqrt() + 16).min(table)
}

/// Opens what the settings ask for. Where they ask for nothing, a TAP device is tried, and the host's sockets serve
/// where it cannot be had.
pub fn engine(settings: &Settings, random: &mut Random) -> Result<Opened, OpenError> {
    match &settings.device {
        Some(DeviceChoice::Kernel) => Ok(kernel(settings)),
        Some(DeviceChoice::Packet(interface)) => packet(settings, interface, random),
        Some(DeviceChoice::Xdp(interface)) => xdp(settings, interface, random),
        Some(DeviceChoice::Uio { name, root }) => uio(settings, name, root, random),
        Some(DeviceChoice::Tap(name)) => {
            tap(settings, name, queues(settings), "", |queue: TapQueue| queue, random)
        }
        Some(DeviceChoice::Rtl(name)) => rtl(settings, name, random),
        None => match tap(settings, TAP_NAME, queues(settings), "", |queue: TapQueue| queue, random) {
            Err(error @ OpenError::Tap(_)) => {
                output::note(format_args!("{error}. The same servers run on the host's sockets instead."));
                Ok(kernel(settings))
            }
            result => result,
        },
    }
}

fn kernel(settings: &Settings) -> Opened {
    let queues = queues(settings);
    let memory_max = usize::try_from(memory_of_queue(settings, queues)).unwrap_or(usize::MAX);
    let descriptors = linerate_linux::descriptors::raise_limit();
    let table = shares::kernel_table(settings.memory, descriptors, &settings.limits);
    if descriptors < shares::DESCRIPTORS {
        log::warn!(
            "the limit of {descriptors} descriptors is low: connections may be refused for some seconds where few are idle; \
             {} are enough for {table} (ulimit -n)",
            shares::DESCRIPTORS
        );
    }
    if settings.limits.connections.is_some_and(|wanted| wanted > table) {
        log::warn!(
            "the limit of {descriptors} descriptors allows {table} connections, fewer than limits.connections"
        );
    }
    let connections_max = table_of_queue(table, queues);
    let config = KernelConfig { memory_max, connections_max, ..KernelConfig::default() };
    let shared_ports = Ports::new(settings, true).shared(settings, true, queues);
    let maker = || -> Maker {
        let shared_ports = shared_ports.clone();
        Box::new(move |files, seat| {
            let mut transport = KernelTransport::new(config, files.access()).map_err(OpenError::Kernel)?;
            if seat.is_shared() {
                transport.share_ports(&shared_ports, !seat.is_member());
            }
            Ok(Box::new(transport))
        })
    };
    let asked = settings.device == Some(DeviceChoice::Kernel) && !settings.addresses.is_empty();
    let addresses: Vec<IpAddr> = match asked {
        true => settings.addresses.iter().map(Cidr::address).collect(),
        false => vec![KERNEL_ADDRESS],
    };
    Opened {
        makers: (0..queues).map(|_| maker()).collect(),
        interface: None,
        what: format!("the host's own sockets{}", in_queues(usize::from(queues))),
        bind: addresses.iter().copied().map(Some).collect(),
        addresses,
        kernel: true,
        kept: Kept::default(),
        table,
    }
}

fn in_queues(count: usize) -> String {
    if count > 1 { format!(", {count} queues") } else { String::new() }
}

/// A TAP device, or what stands at the end of it as a cable.
fn tap<Q: Queue>(
    settings: &Settings,
    name: &str,
    wanted: u16,
    before: &str,
    over: impl FnMut(TapQueue) -> Q,
    random: &mut Random,
) -> Result<Opened, OpenError> {
    let options = TapOptions {
        name: name.to_owned(),
        mtu: settings.mtu.map(u32::from),
        mac: settings.mac.map(|mac| mac.0),
        frames: own::receive_pools(memory_of_queue(settings, wanted), expected_mtu(settings, name))
            .small
            .len(),
        queues: usize::from(wanted),
    };
    let devices = TapQueue::open_all(&options).map_err(OpenError::Tap)?;
    if settings.queues.is_some() && devices.len() < usize::from(wanted) {
        log::warn!(
            "the TAP device {name} was made for one queue, and has one: ip tuntap add {name} mode tap multi_queue"
        );
    }
    let Some(device) = devices.first() else { return Err(OpenError::Down(name.to_owned())) };
    let was_there = device.existed();
    if !was_there && (settings.dhcp || settings.slaac) {
        return Err(OpenError::Private);
    }
    let mut host = HostInterface::open(device.name()).map_err(OpenError::Host)?;
    let given = if was_there { host.addresses().map_err(OpenError::Host)? } else { Vec::new() };
    let mut addresses = tap::addresses(settings, &given);
    let gateways = connect(&mut host, &mut addresses, &given, was_there, settings.default_addresses)?;
    host.up().map_err(|error| match error {
        NetconfigError::Permission { .. } => OpenError::Down(device.name().to_owned()),
        error => OpenError::Host(error),
    })?;
    let mut stack = stack_config(settings, addresses);
    if settings.gateways.is_empty() {
        stack.gateways = gateways;
    }
    if !was_there {
        // It goes with us, and so do its addresses; until then they stay.
        host.keep_addresses();
        host.leave_as_it_is();
        // Nobody else is on this cable, so addresses are used at once.
        stack.dad_transmits = 0;
    }
    let kept = Kept { net_admin: host.has_added() };
    let made = if was_there { ", which was there before" } else { "" };
    let what = format!("{before}TAP device {}{made}, MTU {}", device.name(), device.mtu());
    tap::tell_of_short_queue(device);
    let interface = device.name().to_owned();
    let opened =
        own(settings, stack, devices.into_iter().map(over).collect(), what, Some(&interface), random);
    Ok(Opened { kept, interface: Some(host), ..opened })
}

/// Sees to it that the host has an address in each of our networks; returns these addresses. A TAP that was there before
/// and that we may not change is taken as it is: it may lead somewhere else, as over a bridge. On a host without IPv6, as
/// containers often are, an address of IPv6 that is ours by default is left out.
fn connect(
    host: &mut HostInterface,
    addresses: &mut Vec<Cidr>,
    given: &[(IpAddr, u8)],
    was_there: bool,
    by_default: bool,
) -> Result<Vec<IpAddr>, OpenError> {
    let mut gateways = Vec::new();
    let mut has_ipv6 = true;
    for cidr in &*addresses {
        if let Some((ip, _)) = given.iter().find(|(ip, _)| cidr.contains(*ip)) {
            gateways.push(*ip);
            continue;
        }
        let neighbor = tap::neighbor(cidr);
        if tap::reaches_directly(cidr) {
            if was_there {
                // Over a bridge that the TAP is part of, as it seems: it needs no address of its own, and whose this one is nobody knows.
                log::info!(
                    "the host has a network of {cidr} already: {name} gets no address",
                    name = host.link().name
                );
                continue;
            }
            return Err(OpenError::Taken(*cidr));
        }
        match host.add_address(neighbor, cidr.prefix_len()) {
            Ok(()) => gateways.push(neighbor),
            Err(NetconfigError::Permission { .. }) if was_there => log::warn!(
                "the host has no address in the network of {cidr} on {name}, and giving it one needs root: \
                 ip addr add {neighbor}/{len} dev {name}",
                name = host.link().name,
                len = cidr.prefix_len()
            ),
            Err(NetconfigError::NoIpv6) if by_default => has_ipv6 = false,
            Err(error) => return Err(OpenError::Host(error)),
        }
    }
    if !has_ipv6 {
        log::warn!("IPv6 is switched off on this host: serving on IPv4 alone");
        addresses.retain(|cidr| cidr.address().is_ipv4());
    }
    Ok(gateways)
}

/// The MTU that is asked for, or else the interface's; one that is not there yet has the usual one.
fn expected_mtu(settings: &Settings, interface: &str) -> usize {
    let link = || Netlink::open().and_then(|mut netlink| netlink.link(interface));
    let its = || link().map_or(USUAL_MTU, |link| link.mtu as usize);
    settings.mtu.map_or_else(its, usize::from)
}

fn packet(settings: &Settings, interface: &str, random: &mut Random) -> Result<Opened, OpenError> {
    let queues = queues(settings);
    let options = PacketOptions {
        mtu: settings.mtu.map(usize::from),
        mac: settings.mac.map(|mac| mac.0),
        queues: usize::from(queues),
        shared_ports: Ports::new(settings, false).shared(settings, false, queues),
        ..PacketOptions::new(interface)
    };
    let devices = PacketQueue::open_all(&options).map_err(OpenError::Packet)?;
    let stack = stack_config(settings, settings.addresses.clone());
    let Some(device) = devices.first() else {
        return Err(OpenError::Packet(PacketError::NoSuchInterface(interface.to_owned())));
    };
    let what = format!("interface {interface}, address {}, MTU {}", device.mac(), device.mtu());
    Ok(own(settings, stack, devices, what, Some(interface), random))
}

fn xdp(settings: &Settings, interface: &str, random: &mut Random) -> Result<Opened, OpenError> {
    // Each receive queue of the interface has a socket, and each socket a queue of ours.
    let has = XdpQueue::count(interface).map_err(OpenError::Xdp)?;
    let most = usize::try_from(settings.memory / MIN_MEMORY).unwrap_or(usize::MAX);
    let wanted = settings.queues.map_or(has.min(most), usize::from);
    if wanted != has {
        return Err(OpenError::Xdp(XdpError::Queues { name: interface.to_owned(), has, wanted }));
    }
    let memory = memory_of_queue(settings, u16::try_from(has).unwrap_or(u16::MAX));
    let options = XdpOptions {
        mtu: settings.mtu.map(usize::from),
        memory: own::buffer_memory(memory),
        mac: settings.mac.map(|mac| mac.0),
        ..XdpOptions::new(interface)
    };
    let devices = XdpQueue::open_all(&options).map_err(OpenError::Xdp)?;
    let stack = stack_config(settings, settings.addresses.clone());
    let Some(device) = devices.first() else {
        return Err(OpenError::Xdp(XdpError::NoSuchInterface(interface.to_owned())));
    };
    let place = if device.is_native() { "native" } else { "generic" };
    let copies = if device.is_zero_copy() { "zero-copy" } else { "copy mode" };
    let pieces = if device.has_pieces() { ", multi-buffer" } else { "" };
    let what = format!(
        "interface {interface} by AF_XDP ({place}, {copies}{pieces}), address {}, MTU {}",
        device.mac(),
        device.mtu()
    );
    log::info!("{what}: frames to this address and to groups no longer reach the kernel's own stack");
    Ok(own(settings, stack, devices, what, Some(interface), random))
}

fn uio(settings: &Settings, name: &str, root: &Path, random: &mut Random) -> Result<Opened, OpenError> {
    let wanted = queues(settings);
    let options = UioOptions {
        root: root.to_owned(),
        mtu: settings.mtu.map_or(USUAL_MTU, usize::from),
        queues: usize::from(wanted),
        ..UioOptions::new(name)
    };
    let devices = UioQueue::open_all(&options).map_err(OpenError::Uio)?;
    if settings.queues.is_some() && devices.len() < usize::from(wanted) {
        log::warn!("the interface {name} has {} of {wanted} queues", devices.len());
    }
    let stack = stack_config(settings, settings.addresses.clone());
    let about = devices.first().map(|device| format!(", address {}, MTU {}", device.mac(), device.mtu()));
    let what = format!("UIO device {name}{}", about.unwrap_or_default());
    Ok(own(settings, stack, devices, what, None, random))
}

/// The interface in simulation, at the end of a cable that is a TAP device.
#[cfg(feature = "rtl")]
fn rtl(settings: &Settings, name: &str, random: &mut Random) -> Result<Opened, OpenError> {
    if !linerate_rtl_sim::is_available() {
        return Err(OpenError::Rtl(linerate_rtl_sim::Unavailable::NoVerilator.to_string()));
    }
    if settings.queues.is_some_and(|queues| queues > 1) {
        log::warn!("the simulated interface has one queue here");
    }
    tap(settings, name, 1, "simulated interface, its cable ", Cable, random)
}

#[cfg(not(feature = "rtl"))]
fn rtl(_settings: &Settings, _name: &str, _random: &mut Random) -> Result<Opened, OpenError> {
    let how = "built without it: `cargo xtask rtl setup`, then build with `--features rtl`";
    Err(OpenError::Rtl(how.to_owned()))
}

/// The queue of a TAP device as the cable of the simulated interface.
#[cfg(feature = "rtl")]
struct Cable(TapQueue);

#[cfg(feature = "rtl")]
impl Queue for Cable {
    type Device = super::rtl::RtlDevice;

    fn mtu(&self) -> usize {
        self.0.mtu()
    }

    fn into_device(self, pools: RxPools) -> Result<Self::Device, OpenError> {
        super::rtl::RtlDevice::new(self.0, pools).map_err(|error| OpenError::Rtl(error.to_string()))
    }
}

/// A queue of a device, on its way to its thread.
trait Queue: Send + 'static {
    type Device: HostDevice + 'static;

    fn mtu(&self) -> usize;

    /// The device, with everything switched off.
    fn into_device(self, pools: RxPools) -> Result<Self::Device, OpenError>;
}

impl Queue for TapQueue {
    type Device = Tap;

    fn mtu(&self) -> usize {
        Self::mtu(self)
    }

    fn into_device(self, pools: RxPools) -> Result<Tap, OpenError> {
        Self::into_device(self, Capabilities::NONE, pools).map_err(OpenError::Tap)
    }
}

impl Queue for PacketQueue {
    type Device = PacketDevice;

    fn mtu(&self) -> usize {
        Self::mtu(self)
    }

    fn into_device(self, pools: RxPools) -> Result<PacketDevice, OpenError> {
        Self::into_device(self, Capabilities::NONE, pools).map_err(OpenError::Packet)
    }
}

impl Queue for XdpQueue {
    type Device = XdpDevice;

    fn mtu(&self) -> usize {
        Self::mtu(self)
    }

    /// It receives into memory that the kernel shares; the pools have taken no memory yet.
    fn into_device(self, _pools: RxPools) -> Result<XdpDevice, OpenError> {
        Ok(Self::into_device(self, Capabilities::NONE))
    }
}

impl Queue for UioQueue {
    type Device = UioDevice;

    fn mtu(&self) -> usize {
        Self::mtu(self)
    }

    /// It receives into its DMA buffer; the pools have taken no memory yet.
    fn into_device(self, _pools: RxPools) -> Result<UioDevice, OpenError> {
        Self::into_device(self).map_err(OpenError::Uio)
    }
}

fn own<Q: Queue>(
    settings: &Settings,
    config: StackConfig,
    queues: Vec<Q>,
    what: String,
    interface: Option<&str>,
    random: &mut Random,
) -> Opened {
    let addresses = config.addresses.iter().map(Cidr::address).collect();
    let mut seed = [0; 32];
    for piece in seed.chunks_exact_mut(8) {
        piece.copy_from_slice(&random.next().to_le_bytes());
    }
    let count = u16::try_from(queues.len()).unwrap_or(u16::MAX);
    let memory = memory_of_queue(settings, count);
    let table = config.max_connections;
    let config = of_queue(config, memory, table_of_queue(table, count));
    let what = format!("{what}{}", in_queues(queues.len()));
    let interface = interface.map(str::to_owned);
    let maker = |queue: Q| -> Maker {
        let (config, interface) = (config.clone(), interface.clone());
        Box::new(move |_, seat| {
            let pools = own::receive_pools(memory, queue.mtu());
            let device = queue.into_device(pools)?;
            // What is said of the link is said to its owner.
            let interface = interface.as_deref().filter(|_| !seat.is_member());
            let device = Watched::new(Plugged::new(device, interface));
            let stack_pools = StackPools::for_memory(config.memory)
                .with_receive(device.pools().small.clone())
                .with_device_queue(device.queue_len());
            let port = Port::new(device, PortConfig::default()).map_err(OpenError::Device)?;
            let config = StackConfig { seat, ..config };
            Ok(Box::new(Node::new(port, config, seed, stack_pools, NodeConfig::default())))
        })
    };
    Opened {
        makers: queues.into_iter().map(maker).collect(),
        interface: None,
        what,
        bind: vec![None],
        addresses,
        kernel: false,
        kept: Kept::default(),
        table,
    }
}

fn stack_config(settings: &Settings, addresses: Vec<Cidr>) -> StackConfig {
    StackConfig {
        vlan: settings.vlan,
        max_connections: shares::own_table(settings.memory, &settings.limits),
        addresses,
        gateways: settings.gateways.clone(),
        dhcp: settings.dhcp,
        slaac: settings.slaac,
        ..StackConfig::default()
    }
}

/// The same for a stack with this memory in bytes and so many connections.
fn of_queue(config: StackConfig, memory: u64, table: usize) -> StackConfig {
    StackConfig {
        max_connections: table,
        max_half_open: table / 4,
        max_orphans: table / 4,
        max_time_wait: table / 4,
        // A passive port for each FTP session, and the servers' own.
        max_listeners: table / 4,
        // What sockets may hold: the receive buffers (half) and as much again in pages and files.
        memory: usize::try_from(memory / 4 * 3).unwrap_or(usize::MAX),
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_share_the_table_with_room_for_chance() {
        for (table, queues, expected) in
            [(4_096, 1, 4_096), (4_096, 2, 2_192), (1_000, 4, 328), (64, 4, 48), (64, 64, 33)]
        {
            assert_eq!(table_of_queue(table, queues), expected, "{table} on {queues}");
        }
    }
}
