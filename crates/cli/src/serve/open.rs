//! The engine that the settings ask for, or the best that can be had.

use super::engine::HostEngine;
use super::own::{self, HostDevice};
use super::shares;
use super::tap;
use super::turn::Random;
use crate::output;
use crate::settings::{KERNEL_ADDRESS, Settings};
use crate::values::DeviceChoice;
use linerate_linux::RxPools;
use linerate_linux::files::AnyFiles;
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_linux::netconfig::{HostInterface, NetconfigError, Netlink};
use linerate_linux::packet::{PacketConfig, PacketDevice, PacketError};
use linerate_linux::privileges::Kept;
use linerate_linux::tap::{Tap, TapConfig, TapError};
use linerate_nic::{Capabilities, Device as _, DeviceError, Port, PortConfig};
use linerate_stack::memory::StackPools;
use linerate_stack::{Cidr, Node, NodeConfig, StackConfig};
use std::fmt;
use std::net::IpAddr;

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
    /// The host's side of the TAP device cannot be configured.
    Host(NetconfigError),
    /// The device refuses the offloads.
    Device(DeviceError),
    /// No kernel sockets.
    Kernel(std::io::Error),
    /// Nobody on a TAP device of our own could give addresses.
    Private,
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
                | OpenError::Private
        )
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Tap(error) => write!(f, "no TAP device: {error}"),
            OpenError::Packet(error) => write!(f, "no packet socket: {error}"),
            OpenError::Host(error) => write!(f, "the host's side of the TAP device: {error}"),
            OpenError::Device(error) => error.fmt(f),
            OpenError::Kernel(error) => write!(f, "no kernel sockets: {error}"),
            OpenError::Private => f.write_str(
                "invalid value 'dhcp' or 'slaac' for '--address': on a TAP device made for the run there is nobody to give \
                 an address; expected ADDRESS/PREFIX, or a TAP device that is part of a network already, or \
                 --device packet:INTERFACE",
            ),
            OpenError::Down(name) => write!(
                f,
                "the TAP device {name} is down, and bringing it up needs root: ip link set {name} up"
            ),
        }
    }
}

/// An engine, and what to tell of it.
pub struct Opened {
    /// The engine.
    pub engine: Box<dyn HostEngine>,
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
    /// Most connections at once.
    pub table: usize,
}

/// Opens what the settings ask for. Where they ask for nothing, a TAP device is tried, and the host's sockets serve
/// where it cannot be had.
pub fn engine(settings: &Settings, files: &AnyFiles, random: &mut Random) -> Result<Opened, OpenError> {
    match &settings.device {
        Some(DeviceChoice::Kernel) => kernel(settings, files),
        Some(DeviceChoice::Packet(interface)) => packet(settings, interface, random),
        Some(DeviceChoice::Tap(name)) => tap(settings, name, random),
        None => match tap(settings, TAP_NAME, random) {
            Err(error @ OpenError::Tap(_)) => {
                output::note(format_args!("{error}. The same servers run on the host's sockets instead."));
                kernel(settings, files)
            }
            result => result,
        },
    }
}

fn kernel(settings: &Settings, files: &AnyFiles) -> Result<Opened, OpenError> {
    let memory_max = usize::try_from(settings.memory).unwrap_or(usize::MAX);
    let descriptors = linerate_linux::descriptors::raise_limit();
    let table = shares::kernel_table(settings.memory, descriptors, &settings.limits);
    if settings.limits.connections.is_some_and(|wanted| wanted > table) {
        log::warn!(
            "the limit of {descriptors} descriptors allows {table} connections, fewer than limits.connections"
        );
    }
    let config = KernelConfig { memory_max, connections_max: table, ..KernelConfig::default() };
    let transport = KernelTransport::new(config, files.access()).map_err(OpenError::Kernel)?;
    let asked = settings.device == Some(DeviceChoice::Kernel) && !settings.addresses.is_empty();
    let addresses: Vec<IpAddr> = match asked {
        true => settings.addresses.iter().map(Cidr::address).collect(),
        false => vec![KERNEL_ADDRESS],
    };
    Ok(Opened {
        engine: Box::new(transport),
        interface: None,
        what: "the host's own sockets".to_owned(),
        bind: addresses.iter().copied().map(Some).collect(),
        addresses,
        kernel: true,
        kept: Kept { low_ports: sends_from_low_port(settings), ..Kept::default() },
        table,
    })
}

/// Whether the FTP server opens data connections from a port that needs a right: the one below its own (RFC 959 section
/// 3.2).
fn sends_from_low_port(settings: &Settings) -> bool {
    settings.ftp_port.is_some_and(|port| (2..=1024).contains(&port))
}

fn tap(settings: &Settings, name: &str, random: &mut Random) -> Result<Opened, OpenError> {
    let pools = receive_pools(settings, name);
    let config = TapConfig {
        name: name.to_owned(),
        mtu: settings.mtu.map(u32::from),
        mac: None,
        enabled: Capabilities::NONE,
        pools,
    };
    let device = Tap::open(config).map_err(OpenError::Tap)?;
    let was_there = device.existed();
    if !was_there && (settings.dhcp || settings.slaac) {
        return Err(OpenError::Private);
    }
    let mut host = HostInterface::open(device.name()).map_err(OpenError::Host)?;
    let given = if was_there { host.addresses().map_err(OpenError::Host)? } else { Vec::new() };
    let addresses = tap::addresses(settings, &given);
    let gateways = connect(&mut host, &addresses, &given, was_there)?;
    host.up().map_err(|error| match error {
        NetconfigError::Permission { .. } => OpenError::Down(device.name().to_owned()),
        error => OpenError::Host(error),
    })?;
    let mut stack = stack_config(settings, addresses);
    if settings.gateways.is_empty() {
        stack.gateways = gateways;
    }
    if !was_there {
        // It goes with us, and so do its addresses.
        host.leave_as_it_is();
        // Nobody else is on this cable, so addresses are used at once.
        stack.dad_transmits = 0;
    }
    let kept = Kept { net_admin: host.has_added(), ..Kept::default() };
    let made = if was_there { ", which was there before" } else { "" };
    let what = format!("TAP device {}{made}, MTU {}", device.name(), device.mtu());
    let opened = own(settings, stack, device, what, random)?;
    Ok(Opened { kept, interface: Some(host), ..opened })
}

/// Sees to it that the host has an address in each of our networks; returns these addresses. A TAP that was there before
/// and that we may not change is taken as it is: it may lead somewhere else, as over a bridge.
fn connect(
    host: &mut HostInterface,
    addresses: &[Cidr],
    given: &[(IpAddr, u8)],
    was_there: bool,
) -> Result<Vec<IpAddr>, OpenError> {
    let mut gateways = Vec::new();
    for cidr in addresses {
        if let Some((ip, _)) = given.iter().find(|(ip, _)| cidr.contains(*ip)) {
            gateways.push(*ip);
            continue;
        }
        let neighbor = tap::neighbor(cidr);
        match host.add_address(neighbor, cidr.prefix_len()) {
            Ok(()) => gateways.push(neighbor),
            Err(NetconfigError::Permission { .. }) if was_there => log::warn!(
                "the host has no address in the network of {cidr} on {name}, and giving it one needs root: \
                 ip addr add {neighbor}/{len} dev {name}",
                name = host.link().name,
                len = cidr.prefix_len()
            ),
            Err(error) => return Err(OpenError::Host(error)),
        }
    }
    Ok(gateways)
}

/// Receive buffers for the MTU that is asked for, or else the interface's; one that is not there yet has the usual one.
fn receive_pools(settings: &Settings, interface: &str) -> RxPools {
    let link = || Netlink::open().and_then(|mut netlink| netlink.link(interface));
    let its = || link().map_or(USUAL_MTU, |link| link.mtu as usize);
    own::receive_pools(settings.memory, settings.mtu.map_or_else(its, usize::from))
}

fn packet(settings: &Settings, interface: &str, random: &mut Random) -> Result<Opened, OpenError> {
    let pools = receive_pools(settings, interface);
    let config = PacketConfig {
        mtu: settings.mtu.map(usize::from),
        enabled: Capabilities::NONE,
        ..PacketConfig::new(interface, pools)
    };
    let device = PacketDevice::open(config).map_err(OpenError::Packet)?;
    let stack = stack_config(settings, settings.addresses.clone());
    let what = format!("interface {interface}, address {}, MTU {}", device.mac(), device.mtu());
    own(settings, stack, device, what, random)
}

fn own<D: HostDevice + 'static>(
    settings: &Settings,
    config: StackConfig,
    device: D,
    what: String,
    random: &mut Random,
) -> Result<Opened, OpenError> {
    let addresses = config.addresses.iter().map(Cidr::address).collect();
    let mut seed = [0; 32];
    for piece in seed.chunks_exact_mut(8) {
        piece.copy_from_slice(&random.next().to_le_bytes());
    }
    let stack_pools = StackPools::for_memory(config.memory)
        .with_receive(device.pools().small.clone())
        .with_device_queue(device.queue_len());
    let table = config.max_connections;
    let mut port = Port::new(device, PortConfig::default()).map_err(OpenError::Device)?;
    let enabled = port.set_offloads(settings.offload).map_err(OpenError::Device)?;
    let node = Node::new(port, config, seed, stack_pools, NodeConfig::default());
    Ok(Opened {
        engine: Box::new(node),
        interface: None,
        what: format!("{what}, offloads {}", crate::values::Offload(enabled)),
        bind: vec![None],
        addresses,
        kernel: false,
        kept: Kept::default(),
        table,
    })
}

fn stack_config(settings: &Settings, addresses: Vec<Cidr>) -> StackConfig {
    let table = shares::own_table(settings.memory, &settings.limits);
    StackConfig {
        vlan: settings.vlan,
        max_connections: table,
        max_half_open: table / 4,
        max_orphans: table / 4,
        max_time_wait: table / 4,
        // A passive port for each FTP session, and the servers' own.
        max_listeners: table / 4,
        addresses,
        gateways: settings.gateways.clone(),
        dhcp: settings.dhcp,
        slaac: settings.slaac,
        // What sockets may hold: the receive buffers (half) and as much again in pages and files.
        memory: usize::try_from(settings.memory / 4 * 3).unwrap_or(usize::MAX),
        ..StackConfig::default()
    }
}
