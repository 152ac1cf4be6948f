//! Which process of this machine serves an address: by its listening socket, or by the TAP device that leads to it.

use super::place::run;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Command;

/// The process, or the oldest of those that share the socket; `None` where it is on another machine, in another network
/// namespace, or not to be seen.
pub fn of(address: SocketAddr) -> Option<u32> {
    let is_local = UdpSocket::bind((address.ip(), 0)).is_ok();
    let holders = if is_local {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
        let sockets: BTreeSet<u64> = tables.iter().flat_map(|table| listening(table, address)).collect();
        holders(|link, _| {
            let inode = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            inode.and_then(|inode| inode.parse().ok()).is_some_and(|inode| sockets.contains(&inode))
        })
    } else {
        let device = device(address.ip())?;
        fs::metadata(format!("/sys/class/net/{device}/tun_flags")).ok()?;
        holders(|link, info| {
            link == "/dev/net/tun"
                && fs::read_to_string(info).is_ok_and(|text| {
                    text.lines()
                        .any(|line| line.strip_prefix("iff:").is_some_and(|name| name.trim() == device))
                })
        })
    };
    oldest(&holders)
}

/// The device through which an address is reached, as the system routes.
pub fn device(address: IpAddr) -> Option<String> {
    let text = run(Command::new("ip").args(["-o", "route", "get", &address.to_string()])).ok()?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1).map(str::to_owned)
}

/// Bits per second that a device's link carries; `None` for one without hardware, whose figure means nothing.
pub fn link_bps(device: &str) -> Option<f64> {
    let folder = format!("/sys/class/net/{device}");
    fs::metadata(format!("{folder}/device")).ok()?;
    let speed = fs::read_to_string(format!("{folder}/speed")).ok()?;
    speed.trim().parse::<f64>().ok().filter(|speed| *speed > 0.0).map(|speed| speed * 1e6)
}

/// Inodes of the sockets in a table of `/proc/net` that listen at an address.
fn listening(table: &str, address: SocketAddr) -> Vec<u64> {
    let wanted = plain(address.ip());
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (ip, port) = fields.get(1)?.split_once(':')?;
        let ip = plain(hex_address(ip)?);
        let is_it = u16::from_str_radix(port, 16).ok()? == address.port()
            && *fields.get(3)? == "0A"
            && (ip == wanted || ip.is_unspecified());
        is_it.then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

/// An address without the form in which IPv6 sockets show IPv4.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        ip => ip,
    }
}

/// An address as the kernel prints it: words of 32 bits as this processor reads them from memory.
fn hex_address(text: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = text
        .as_bytes()
        .chunks(8)
        .map(|chunk| {
            let word = std::str::from_utf8(chunk).ok()?;
            u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
        })
        .collect();
    match words?.as_slice() {
        [word] => Some(IpAddr::V4(Ipv4Addr::from(*word))),
        words @ [_, _, _, _] => {
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}

/// Processes that have a descriptor of which `is_it`, by where it leads and the file that describes it.
fn holders(is_it: impl Fn(&str, &str) -> bool) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.into_iter().any(|entry| {
            let info = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
            fs::read_link(entry.path()).is_ok_and(|link| is_it(&link.to_string_lossy(), &info))
        })
    })
    .collect()
}

/// The one whose parent is none of them.
fn oldest(pids: &[u32]) -> Option<u32> {
    let parent = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok())
    };
    pids.iter().find(|pid| parent(pid).is_none_or(|parent| !pids.contains(&parent))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn our_own_listeners_are_found() {
        for host in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
            // A machine without IPv6 has no such listener.
            let Ok(listener) = TcpListener::bind((host, 0)) else { continue };
            let port = listener.local_addr().unwrap().port();
            let asked = if host.contains(':') { "[::1]" } else { "127.0.0.1" };
            assert_eq!(of(format!("{asked}:{port}").parse().unwrap()), Some(std::process::id()), "{host}");
            drop(listener);
            assert_eq!(of(format!("{asked}:{port}").parse().unwrap()), None);
        }
        assert_eq!(of("192.0.2.1:80".parse().unwrap()), None, "another machine");
    }

    #[test]
    fn tables_of_the_kernel() {
        if cfg!(target_endian = "big") {
            return;
        }
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 71 1 0 100 0 0 10 0\n   \
                     1: 0100007F:1F90 0100007F:0001 01 00000000:00000000 00:00000000 00000000     0        0 72 1 0 100 0 0 10 0\n   \
                     2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 73 1 0 100 0 0 10 0\n";
        let check = |address: &str, expected: &[u64]| {
            assert_eq!(listening(table, address.parse().unwrap()), expected, "{address}");
        };
        check("127.0.0.1:8080", &[71]);
        check("127.0.0.2:8080", &[]);
        check("127.0.0.2:80", &[73]);
        check("[::ffff:127.0.0.1]:8080", &[71]);
    }
}
