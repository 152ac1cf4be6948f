//! Datagrams and writes of one size over loopback, and over a pair of virtual Ethernet devices where the user may make one.

use super::sample::{Effort, Sampled, cluster};
use crate::measure::place::{Place, SERVER, Wire};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// A way that packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Datagrams over the loopback device.
    UdpLoopback,
    /// Writes to a TCP connection over the loopback device.
    TcpLoopback,
    /// Datagrams over a pair of virtual Ethernet devices between two network namespaces, which take root to make.
    UdpVeth,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::UdpLoopback, Way::TcpLoopback, Way::UdpVeth];

    /// Its name as a port of the chip.
    pub fn port(self) -> &'static str {
        match self {
            Way::UdpLoopback => "udp_loopback",
            Way::TcpLoopback => "tcp_loopback",
            Way::UdpVeth => "udp_veth",
        }
    }

    /// What it is.
    pub fn title(self) -> &'static str {
        match self {
            Way::UdpLoopback => "UDP, loopback",
            Way::TcpLoopback => "TCP, loopback",
            Way::UdpVeth => "UDP, virtual Ethernet",
        }
    }
}

/// Datagrams that are on their way at once: few enough for every receive buffer.
const WINDOW_BYTES: usize = 65_536;
/// The most datagrams of a window.
const WINDOW: usize = 64;
/// How long a packet may take before the way counts as broken.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much longer than a figure of memory a figure of packets is measured.
const LONGER: u64 = 4;

/// Nanoseconds a packet of so many bytes, sent and received by one thread: what a system call and its data cost there and back.
///
/// # Errors
/// What the system says.
pub fn ask(way: Way, bytes: usize, effort: Effort) -> io::Result<Sampled> {
    match way {
        Way::UdpLoopback => {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            datagrams(&UdpSocket::bind(any)?, &UdpSocket::bind(any)?, bytes, effort)
        }
        Way::TcpLoopback => writes(bytes, effort),
        Way::UdpVeth => Err(io::Error::other("expected sockets in two namespaces")),
    }
}

/// Samples of `turn`, which moves so many packets.
fn samples(effort: Effort, mut turn: impl FnMut() -> io::Result<u64>) -> io::Result<Sampled> {
    let mut taken: Vec<(f64, bool)> = Vec::new();
    let mut found = None;
    turn()?;
    while taken.len() < effort.most {
        let start = Instant::now();
        let mut packets = 0;
        while start.elapsed() < Duration::from_nanos(effort.sample_ns * LONGER) {
            packets += turn()?;
        }
        taken.push((start.elapsed().as_nanos() as f64 / packets.max(1) as f64, true));
        if taken.len() >= effort.samples {
            found = cluster(&taken.iter().map(|(ns, _)| *ns).collect::<Vec<_>>());
            if found.is_some() {
                break;
            }
        }
    }
    Ok(Sampled::of(&taken, found))
}

/// Sockets at both ends of a pair of virtual Ethernet devices, and the namespaces that they are in.
pub struct Veth {
    _place: Place,
    to: UdpSocket,
    from: UdpSocket,
}

impl Veth {
    /// Makes the namespaces.
    ///
    /// # Errors
    /// Where the user may not, or a program is missing.
    pub fn new() -> Result<Veth, String> {
        let place = Place::new(Wire::Kernel).map_err(|error| format!("{error:#}"))?;
        let (client, server) = place.names();
        let to = socket_in(server.unwrap_or(client), SERVER)?;
        let from = socket_in(client, "0.0.0.0")?;
        Ok(Veth { _place: place, to, from })
    }

    /// Nanoseconds a datagram of so many bytes.
    ///
    /// # Errors
    /// What the system says.
    pub fn ask(&self, bytes: usize, effort: Effort) -> io::Result<Sampled> {
        datagrams(&self.to, &self.from, bytes, effort)
    }
}

/// A socket of a namespace; it stays there whoever uses it.
fn socket_in(namespace: &str, address: &str) -> Result<UdpSocket, String> {
    let path = format!("/run/netns/{namespace}");
    let failed = |error: &dyn std::fmt::Display| format!("{path}: {error}");
    let make = || {
        let file = std::fs::File::open(&path).map_err(|error| failed(&error))?;
        // The thread ends when it has made the socket, and no other has moved.
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| failed(&error))?;
        UdpSocket::bind((address, 0)).map_err(|error| failed(&error))
    };
    std::thread::scope(|scope| scope.spawn(make).join())
        .unwrap_or_else(|_| Err(format!("{path}: the thread that makes a socket failed")))
}

fn datagrams(to: &UdpSocket, from: &UdpSocket, bytes: usize, effort: Effort) -> io::Result<Sampled> {
    from.connect(to.local_addr()?)?;
    to.set_read_timeout(Some(PATIENCE))?;
    let data = vec![1u8; bytes];
    let mut room = vec![0u8; bytes + 1];
    let window = (WINDOW_BYTES / bytes.max(1)).clamp(1, WINDOW);
    samples(effort, || {
        for _ in 0..window {
            from.send(&data)?;
        }
        for _ in 0..window {
            let received = to.recv(&mut room)?;
            if received != bytes {
                return Err(io::Error::other(format!("{received} B came of {bytes} B")));
            }
        }
        Ok(window as u64)
    })
}

fn writes(bytes: usize, effort: Effort) -> io::Result<Sampled> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let mut from = TcpStream::connect(listener.local_addr()?)?;
    let (mut to, _) = listener.accept()?;
    from.set_nodelay(true)?;
    to.set_read_timeout(Some(PATIENCE))?;
    let data = vec![1u8; bytes];
    let mut room = vec![0u8; bytes];
    samples(effort, || {
        from.write_all(&data)?;
        to.read_exact(&mut room)?;
        Ok(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_every_size_arrive() {
        let effort = Effort { sample_ns: 1000, samples: 1, most: 1 };
        for way in [Way::UdpLoopback, Way::TcpLoopback] {
            for bytes in [1, 64, 1500, 60_000] {
                let found = ask(way, bytes, effort).unwrap();
                assert!(found.ns > 0.0, "{way:?} {bytes}: {found:?}");
            }
        }
        assert!(ask(Way::UdpLoopback, 70_000, effort).is_err());
    }
}
