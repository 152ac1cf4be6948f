//! The engine that the settings ask for, or the best that can be had.

use super::engine::Engine;
use super::own::{self, HostDevice, OwnStack};
use super::turn::Random;
use crate::settings::{KERNEL_ADDRESS, Settings};
use crate::values::DeviceChoice;
use linerate_linux::RxPools;
use linerate_linux::files::AnyFiles;
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_linux::netconfig::{HostInterface, NetconfigError};
use linerate_linux::packet::{PacketConfig, PacketDevice, PacketError};
use linerate_linux::tap::{Tap, TapConfig, TapError};
use linerate_nic::{Capabilities, Device as _, DeviceError};
use linerate_stack::memory::StackPools;
use linerate_stack::{Cidr, Stack, StackConfig};
use std::fmt;
use std::net::{IpAddr, UdpSocket};

/// The name of the TAP device when none is given.
const TAP_NAME: &str = "linerate0";
/// MTU of a TAP when none is given, in bytes.
const TAP_MTU: u16 = 1500;
/// Addresses for a TAP where the host already has a network of the default one: of the range for benchmarks
/// (RFC 2544), which no real network uses.
const OTHER_ADDRESS: &str = "198.18.108.4/24";

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
        }
    }
}

/// An engine, and what to tell of it.
pub struct Opened {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// One line that describes it.
    pub what: String,
    /// Addresses to listen on; `None` for all of the stack's.
    pub bind: Vec<Option<IpAddr>>,
    /// Addresses that clients use.
    pub addresses: Vec<IpAddr>,
    /// Whether these are the host's sockets.
    pub kernel: bool,
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
                println!("{error}");
                println!("The same servers run on the host's sockets instead.");
                kernel(settings, files)
            }
            result => result,
        },
    }
}

fn kernel(settings: &Settings, files: &AnyFiles) -> Result<Opened, OpenError> {
    let memory_max = usize::try_from(settings.memory).unwrap_or(usize::MAX);
    let config = KernelConfig { memory_max, ..KernelConfig::default() };
    let transport = KernelTransport::new(config, files.access()).map_err(OpenError::Kernel)?;
    let asked = settings.device == Some(DeviceChoice::Kernel) && !settings.addresses.is_empty();
    let addresses: Vec<IpAddr> = match asked {
        true => settings.addresses.iter().map(Cidr::address).collect(),
        false => vec![KERNEL_ADDRESS],
    };
    Ok(Opened {
        engine: Box::new(transport),
        what: "the host's own sockets".to_owned(),
        bind: addresses.iter().copied().map(Some).collect(),
        addresses,
        kernel: true,
    })
}

fn tap(settings: &Settings, name: &str, random: &mut Random) -> Result<Opened, OpenError> {
    let mtu = settings.mtu.unwrap_or(TAP_MTU);
    let pools = own::receive_pools(settings.memory);
    let config = TapConfig {
        name: name.to_owned(),
        mtu: Some(u32::from(mtu)),
        mac: None,
        enabled: Capabilities::NONE,
        pools: pools.clone(),
    };
    let device = Tap::open(config).map_err(OpenError::Tap)?;
    let addresses = addresses(settings);
    let mut host = HostInterface::open(device.name()).map_err(OpenError::Host)?;
    for cidr in &addresses {
        host.add_address(neighbor(cidr), cidr.prefix_len()).map_err(OpenError::Host)?;
    }
    host.up().map_err(OpenError::Host)?;
    let mut stack = stack_config(settings, addresses);
    if settings.gateways.is_empty() {
        stack.gateways = stack.addresses.iter().map(neighbor).collect();
    }
    // Nobody else is on this cable, so addresses are used at once.
    stack.dad_transmits = 0;
    let what = format!("TAP device {}, MTU {mtu}", device.name());
    own(settings, stack, device, pools, Some(host), what, random)
}

fn packet(settings: &Settings, interface: &str, random: &mut Random) -> Result<Opened, OpenError> {
    let pools = own::receive_pools(settings.memory);
    let config = PacketConfig {
        mtu: settings.mtu.map(usize::from),
        enabled: Capabilities::NONE,
        ..PacketConfig::new(interface, pools.clone())
    };
    let device = PacketDevice::open(config).map_err(OpenError::Packet)?;
    let stack = stack_config(settings, settings.addresses.clone());
    let what = format!("interface {interface}, address {}, MTU {}", device.mac(), device.mtu());
    own(settings, stack, device, pools, None, what, random)
}

fn own<D: HostDevice + 'static>(
    settings: &Settings,
    mut config: StackConfig,
    device: D,
    pools: RxPools,
    host: Option<HostInterface>,
    what: String,
    random: &mut Random,
) -> Result<Opened, OpenError> {
    config.mac = device.mac();
    config.mtu = device.mtu();
    let addresses = config.addresses.iter().map(Cidr::address).collect();
    let mut seed = [0; 32];
    for piece in seed.chunks_exact_mut(8) {
        piece.copy_from_slice(&random.next().to_le_bytes());
    }
    let stack_pools = StackPools::for_memory(config.memory).with_receive(pools.large.clone());
    let stack = Stack::new(config, seed, stack_pools);
    let mut engine =
        OwnStack::new(stack, device, pools, settings.offload, host).map_err(OpenError::Device)?;
    let enabled = engine.set_offloads(settings.offload).map_err(OpenError::Device)?;
    Ok(Opened {
        engine: Box::new(engine),
        what: format!("{what}, offloads {}", crate::values::Offload(enabled)),
        bind: vec![None],
        addresses,
        kernel: false,
    })
}

fn stack_config(settings: &Settings, addresses: Vec<Cidr>) -> StackConfig {
    StackConfig {
        addresses,
        gateways: settings.gateways.clone(),
        dhcp: settings.dhcp,
        slaac: settings.slaac,
        // What sockets may hold: the receive buffers (half) and as much again in pages and files.
        memory: usize::try_from(settings.memory / 4 * 3).unwrap_or(usize::MAX),
        ..StackConfig::default()
    }
}

/// The addresses of the settings. A default one whose network the host has already gives way, so that starting a demo
/// never cuts a host off from its own network.
fn addresses(settings: &Settings) -> Vec<Cidr> {
    if !settings.default_addresses {
        return settings.addresses.clone();
    }
    let replace = |cidr: &Cidr| match (reaches_directly(cidr), cidr.address().is_ipv4()) {
        (true, true) => {
            println!("This host has a network of {cidr} already; {OTHER_ADDRESS} is used instead.");
            OTHER_ADDRESS.parse().unwrap_or(*cidr)
        }
        _ => *cidr,
    };
    settings.addresses.iter().map(replace).collect()
}

/// Whether the host would reach `cidr`'s address from an address in the same network.
fn reaches_directly(cidr: &Cidr) -> bool {
    let any: IpAddr = if cidr.address().is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    // Connecting a UDP socket sends nothing; it only looks up the route.
    let local = UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect((cidr.address(), 9)).and_then(|()| socket.local_addr()));
    local.is_ok_and(|local| cidr.contains(local.ip()))
}

/// The host's address on a TAP device: the first one of the network, or the second where the first is our own.
fn neighbor(cidr: &Cidr) -> IpAddr {
    let pick = |first: IpAddr, second: IpAddr| if cidr.address() == first { second } else { first };
    match cidr.network().address() {
        IpAddr::V4(net) => {
            let bits = net.to_bits();
            pick(IpAddr::V4((bits | 1).into()), IpAddr::V4((bits | 2).into()))
        }
        IpAddr::V6(net) => {
            let bits = net.to_bits();
            pick(IpAddr::V6((bits | 1).into()), IpAddr::V6((bits | 2).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_takes_the_first_free_address() {
        for (ours, host) in [
            ("192.168.1.4/24", "192.168.1.1"),
            ("10.0.0.1/8", "10.0.0.2"),
            ("fd00:6c72::4/64", "fd00:6c72::1"),
            ("192.168.1.129/25", "192.168.1.130"),
        ] {
            assert_eq!(neighbor(&ours.parse().unwrap()).to_string(), host, "{ours}");
        }
    }
}
