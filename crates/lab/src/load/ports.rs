//! Local addresses and descriptors: what a client runs out of first.

use super::fault::Fault;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many ports are tried before there is said to be none.
const TRIES: u32 = 200;

/// Which port is next, over all threads and levels: the longer one has rested the better.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where connections come from.
///
/// Ports are chosen here and not by the system. A socket that is bound to a port before it connects may take one whose last
/// connection to the same server is still in TIME-WAIT, as long as both sides send timestamps (RFC 6191); one without would
/// find its 28,000 ports used up after a few seconds of short connections.
#[derive(Clone, Debug)]
pub struct Ports {
    server: SocketAddr,
    sources: Vec<IpAddr>,
    range: RangeInclusive<u16>,
}

impl Ports {
    /// Towards a server, from these addresses, or from any without.
    pub fn new(server: SocketAddr, sources: &[IpAddr]) -> Ports {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let range = range(&text).unwrap_or(32_768..=60_999);
        let sources = match (sources, server) {
            ([], SocketAddr::V4(_)) => vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
            ([], SocketAddr::V6(_)) => vec![IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
            (sources, _) => sources.to_vec(),
        };
        // Another run's ports shall rest as well.
        let count = u64::from(range.end() - range.start()) + 1;
        let begin = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9) % count;
        let _ = NEXT.compare_exchange(0, begin.max(1), Ordering::Relaxed, Ordering::Relaxed);
        Ports { server, sources, range }
    }

    /// A socket whose connection is under way; whether it is there already.
    pub fn connect(&self) -> Result<(OwnedFd, bool), Fault> {
        let mut last = Errno::ADDRNOTAVAIL;
        for _ in 0..TRIES {
            let socket = self.socket().map_err(Fault::of)?;
            match bind(&socket, &self.next()) {
                Ok(()) => {}
                Err(error @ Errno::ADDRINUSE) => {
                    last = error;
                    continue;
                }
                Err(error) => return Err(Fault::of(error)),
            }
            match connect(&socket, &self.server) {
                Ok(()) => return Ok((socket, true)),
                Err(Errno::INPROGRESS | Errno::INTR) => return Ok((socket, false)),
                // The four of addresses and ports are in use.
                Err(error @ (Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)) => last = error,
                Err(error) => return Err(Fault::of(error)),
            }
        }
        Err(Fault::of(last))
    }

    fn socket(&self) -> Result<OwnedFd, Errno> {
        let family = if self.server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(socket)
    }

    fn next(&self) -> SocketAddr {
        let count = u64::from(self.range.end() - self.range.start()) + 1;
        let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut port = self.range.start() + (number % count) as u16;
        // To its own port a socket would connect to itself where nobody listens.
        if port == self.server.port() && count > 1 {
            number += 1;
            port = self.range.start() + (number % count) as u16;
        }
        // Each time round the ports begin with the next address: else a port would always meet the same one where the number of ports is a
        // multiple of that of addresses.
        let source = (number % count + number / count) as usize % self.sources.len();
        SocketAddr::new(self.sources[source], port)
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut words = text.split_whitespace().map(|word| word.parse::<u16>().ok());
    let (first, last) = (words.next()??, words.next()??);
    (first <= last && first > 0).then_some(first..=last)
}

/// Lets the process have as many descriptors as its hard limit grants, and returns that number.
pub fn allow_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|current| current < most)
        && setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).is_err()
    {
        return limit.current.unwrap_or(u64::MAX);
    }
    most
}

/// Descriptors that the process may have.
pub fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ranges() {
        assert_eq!(range("32768\t60999\n"), Some(32_768..=60_999));
        for bad in ["", "1", "a b", "9 8", "0 5"] {
            assert_eq!(range(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn each_address_has_every_port() {
        let sources: Vec<IpAddr> = (1..=4).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect();
        for count in [4, 7, 8, 9] {
            let range = 40_000..=39_999 + count;
            let ports = Ports { range, ..Ports::new("127.0.0.1:80".parse().unwrap(), &sources) };
            // Other tests may take numbers between ours; as many more are enough.
            let found: HashSet<SocketAddr> = (0..100 * count).map(|_| ports.next()).collect();
            assert_eq!(found.len(), 4 * usize::from(count), "{count} ports");
        }
    }

    #[test]
    fn a_socket_never_takes_the_port_that_it_connects_to() {
        let ports = Ports { range: 40_000..=40_001, ..Ports::new("127.0.0.1:40001".parse().unwrap(), &[]) };
        for _ in 0..4 {
            assert_eq!(ports.next().port(), 40_000);
        }
    }
}
