//! Addresses on both ends of a TAP device.

use crate::output;
use crate::settings::Settings;
use linerate_linux::tap::{TX_QUEUE_LEN, TapQueue};
use linerate_stack::Cidr;
use std::net::{IpAddr, UdpSocket};

/// Addresses for a TAP where the host already has a network of the default one: of the range for benchmarks
/// (RFC 2544), which no real network uses.
const OTHER_ADDRESS: &str = "198.18.108.4/24";
/// The same for IPv6: a unique local address beside the default one (RFC 4193).
const OTHER_ADDRESS6: &str = "fd00:6c73::4/64";

/// The addresses of the settings. A default one whose network the host has already gives way, so that starting a demo
/// never cuts a host off from its own network.
///
/// Where nothing is asked for and the host has addresses on the TAP (`given`) already, ours are in the same networks.
pub fn addresses(settings: &Settings, given: &[(IpAddr, u8)]) -> Vec<Cidr> {
    if !settings.default_addresses {
        return settings.addresses.clone();
    }
    let beside: Vec<Cidr> = given.iter().filter_map(|(ip, len)| beside(*ip, *len)).collect();
    if !beside.is_empty() {
        return beside;
    }
    let replace = |cidr: &Cidr| {
        if !reaches_directly(cidr) {
            return *cidr;
        }
        let other = if cidr.address().is_ipv4() { OTHER_ADDRESS } else { OTHER_ADDRESS6 };
        output::note(format_args!("This host has a network of {cidr} already; {other} is used instead."));
        other.parse().unwrap_or(*cidr)
    };
    settings.addresses.iter().map(replace).collect()
}

/// Whether the host would reach `cidr`'s address from an address in the same network.
pub fn reaches_directly(cidr: &Cidr) -> bool {
    let any: IpAddr = if cidr.address().is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    // Connecting a UDP socket sends nothing; it only looks up the route.
    let local = UdpSocket::bind((any, 0))
        .and_then(|socket| socket.connect((cidr.address(), 9)).and_then(|()| socket.local_addr()));
    local.is_ok_and(|local| cidr.contains(local.ip()))
}

/// Says that the queue of a TAP that was there before keeps windows small. It is not ours to change.
pub fn tell_of_short_queue(device: &TapQueue) {
    let (name, len) = (device.name(), device.queue_len());
    if device.existed() && len < TX_QUEUE_LEN as usize {
        log::info!(
            "{name} holds {len} frames until they are read, and clients are invited to send no more than it holds, which \
             slows uploads over long paths: ip link set {name} txqueuelen {TX_QUEUE_LEN}"
        );
    }
}

/// Our address beside the host's own: number 4 of the network as by default, or the first that is free. `None` where there
/// is no room for two.
fn beside(host: IpAddr, prefix_len: u8) -> Option<Cidr> {
    let network = Cidr::new(host, prefix_len)?.network();
    let number = |n: u32| match network.address() {
        IpAddr::V4(net) => IpAddr::V4((net.to_bits() | n).into()),
        IpAddr::V6(net) => IpAddr::V6((net.to_bits() | u128::from(n)).into()),
    };
    let host_bits = u32::from(if host.is_ipv4() { 32 } else { 128 } - prefix_len);
    // The first and, with IPv4, the last address of a network are nobody's.
    let free = |n: u32| n < (1u32 << host_bits.min(16)) - 1 && number(n) != host;
    let n = [4, 1, 2, 3].into_iter().find(|n| host_bits >= 2 && free(*n))?;
    Cidr::new(number(n), prefix_len)
}

/// The host's address on a TAP device: the first one of the network, or the second where the first is our own.
pub fn neighbor(cidr: &Cidr) -> IpAddr {
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
    fn we_take_an_address_beside_the_host_s() {
        for (host, len, ours) in [
            ("10.1.2.1", 24, Some("10.1.2.4/24")),
            ("10.1.2.4", 24, Some("10.1.2.1/24")),
            ("10.1.2.1", 30, Some("10.1.2.2/30")),
            ("10.1.2.2", 30, Some("10.1.2.1/30")),
            ("10.1.2.1", 31, None),
            ("fd00:1::1", 64, Some("fd00:1::4/64")),
            ("fd00:1::1", 128, None),
        ] {
            let cidr = beside(host.parse().unwrap(), len).map(|cidr| cidr.to_string());
            assert_eq!(cidr.as_deref(), ours, "{host}/{len}");
        }
    }

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
