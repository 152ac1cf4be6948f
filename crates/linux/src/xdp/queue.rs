//! From the name of an interface to the sockets of its queues, with their memory: they may go to the threads that are to work with
//! them.

use super::XdpDevice;
use super::error::XdpError;
use super::program::{self, Attached};
use super::transmit::{FRONT, METADATA};
use crate::mac;
use crate::netconfig::{Link, Netlink};
use crate::sys::bpf::Mode;
use crate::sys::map::{self, Mapping};
use crate::sys::packet;
use crate::sys::xdp::{self as sys, Memory, Rings};
use linerate_nic::{Capabilities, MacAddr};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;

const ETHERNET_HARDWARE: u16 = 1;
/// Ethernet and VLAN header.
const LINK_HEADER: usize = 18;
/// Free bytes that the kernel leaves in front of a received frame (XDP_PACKET_HEADROOM).
const KERNEL_HEADROOM: usize = 256;
/// Free bytes beside those: they align the IP header to four.
const HEADROOM: usize = 2;
/// Bytes of a buffer that holds a frame of an MTU of 1,500.
const USUAL_CHUNK: usize = 2 << 10;
/// Bytes of the largest buffer: a page.
const LARGEST_CHUNK: usize = 4 << 10;
/// Least and most entries of a ring.
const RING: (usize, usize) = (64, 4 << 10);
/// Least buffers to receive into: four rings of the least length.
const LEAST_BUFFERS: usize = 4 * RING.0;
/// Frames of the smallest size that wait in the kernel to be sent; it counts some hundred bytes of its own for each.
const SEND_BUFFER: usize = 16 << 20;

/// How often binding is tried, and how long after each other.
const BIND_TRIES: usize = 50;
const BIND_PAUSE: Duration = Duration::from_millis(10);

/// Most queues.
pub const MOST_QUEUES: usize = 64;

/// How to take frames off an interface by AF_XDP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpOptions {
    /// Its name.
    pub interface: String,
    /// Our address on it; `None` makes a random one, locally administered.
    pub mac: Option<MacAddr>,
    /// Largest IP packet in bytes, at most that of the interface; `None` takes the interface's.
    pub mtu: Option<usize>,
    /// Bytes of the buffers of each queue, in both directions, at least 1 MiB. They are locked in memory.
    pub memory: usize,
}

impl XdpOptions {
    /// The interface `name` with 16 MiB of buffers for each queue.
    pub fn new(name: &str) -> Self {
        XdpOptions { interface: name.to_owned(), mac: None, mtu: None, memory: 16 << 20 }
    }
}

/// What all queues hold on to.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    index: u32,
    pub(super) mac: MacAddr,
    pub(super) mtu: usize,
    /// Frames may have been sent by this machine, with checksums that nobody has filled in.
    pub(super) is_software: bool,
    /// The program on the interface.
    attached: Attached,
    /// Keeps the interface in promiscuous mode.
    promiscuous: OwnedFd,
}

impl Shared {
    /// Whether the interface is there. An AF_XDP socket cannot be asked.
    pub(super) fn is_there(&self) -> bool {
        rustix::net::netdevice::index_to_name(&self.promiscuous, self.index).is_ok()
    }
}

/// How buffers and rings of a queue are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// Bytes of a buffer.
    pub(super) chunk: usize,
    /// Buffers to receive into, and to send from.
    pub(super) buffers: (usize, usize),
    /// Buffers that the kernel is given at most: as many frames may wait for us.
    pub(super) lent: usize,
    /// Entries of the receiving and the transmitting rings.
    pub(super) rings: (usize, usize),
    /// Buffers that the longest frame takes.
    pub(super) pieces: usize,
}

impl Plan {
    /// For frames of this MTU, with so many bytes of buffers.
    fn new(mtu: usize, memory: usize) -> Plan {
        let frame = LINK_HEADER + mtu;
        let room = |chunk: usize| chunk - KERNEL_HEADROOM - HEADROOM;
        let chunk = if frame <= room(USUAL_CHUNK) { USUAL_CHUNK } else { LARGEST_CHUNK };
        let receive = (memory / 5 * 4 / chunk).max(LEAST_BUFFERS);
        // The stack is at its ease with more than three quarters of them.
        let lent = (receive / 32 * 7).clamp(RING.0 * 7 / 8, RING.1);
        let ring = lent.next_power_of_two();
        let transmit = previous_power_of_two(memory / 5 / chunk).clamp(RING.0, RING.1 / 2);
        Plan {
            chunk,
            buffers: (receive, transmit),
            lent,
            rings: (ring, transmit),
            pieces: frame.div_ceil(room(chunk)),
        }
    }

    /// Bytes of all buffers.
    fn bytes(&self) -> usize {
        (self.buffers.0 + self.buffers.1) * self.chunk
    }

    /// Whether a frame may need several buffers.
    pub(super) fn has_pieces(&self) -> bool {
        self.pieces > 1
    }
}

fn previous_power_of_two(number: usize) -> usize {
    if number == 0 { 0 } else { 1 << number.ilog2() }
}

/// One queue of an interface.
#[derive(Debug)]
pub struct XdpQueue {
    pub(super) fd: OwnedFd,
    pub(super) rings: Rings,
    pub(super) area: Mapping,
    pub(super) plan: Plan,
    /// The kernel fills in checksums.
    pub(super) fills_checksums: bool,
    is_zero_copy: bool,
    pub(super) shared: Arc<Shared>,
}

impl XdpQueue {
    /// Queues that the interface receives into: each needs one of ours.
    pub fn count(interface: &str) -> Result<usize, XdpError> {
        let link = Netlink::open()?.link(interface)?;
        let count = sys::receive_queues(&link.name)
            .map_err(|error| step_error("asking how many queues the interface has", error))?;
        Ok(count as usize)
    }

    /// Opens all queues of the interface, which must be up. From now on frames to our address and to groups come to them, and no
    /// more to the kernel. All have the same address.
    ///
    /// Their memory stays mapped to the end of the process.
    pub fn open_all(options: &XdpOptions) -> Result<Vec<XdpQueue>, XdpError> {
        let link = Netlink::open()?.link(&options.interface)?;
        let mtu = usable_mtu(&link, options.mtu)?;
        let count = XdpQueue::count(&options.interface)?;
        if count > MOST_QUEUES {
            let name = link.name;
            return Err(XdpError::Queues { name, has: count, wanted: MOST_QUEUES });
        }
        let mac = match options.mac {
            Some(mac) => mac,
            None => mac::random().map_err(|error| step_error("making a random address", error))?,
        };
        let plan = Plan::new(mtu, options.memory);
        let mut sockets = Vec::new();
        for queue in 0..count as u32 {
            sockets.push(Socket::open(&link, queue, &plan, mtu)?);
        }
        let promiscuous = promiscuous(link.index)?;
        let fds: Vec<_> = sockets.iter().map(|socket| socket.fd.as_fd()).collect();
        let attached = program::attach(&link.name, link.index, mac, &fds, plan.has_pieces())?;
        let shared = Arc::new(Shared {
            name: link.name,
            index: link.index,
            mac,
            mtu,
            is_software: link.is_software,
            attached,
            promiscuous,
        });
        let queue = |socket: Socket| XdpQueue {
            fd: socket.fd,
            rings: socket.rings,
            area: socket.area,
            plan,
            // Where frames are copied, the kernel does it for interfaces that cannot; a driver that shares our memory may not.
            fills_checksums: socket.has_metadata && !socket.is_zero_copy,
            is_zero_copy: socket.is_zero_copy,
            shared: Arc::clone(&shared),
        };
        Ok(sockets.into_iter().map(queue).collect())
    }

    /// The queue as a device, for the thread that this is called in.
    pub fn into_device(self, enabled: Capabilities) -> XdpDevice {
        XdpDevice::over(self, enabled)
    }

    /// Our address.
    pub fn mac(&self) -> MacAddr {
        self.shared.mac
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> usize {
        self.shared.mtu
    }

    /// Whether the interface's driver reads and writes our buffers; otherwise the kernel copies each frame.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Whether the program runs in the interface's driver; otherwise it runs in the kernel's receive path.
    pub fn is_native(&self) -> bool {
        self.shared.attached.mode == Mode::Native
    }

    /// Whether frames may lie in several buffers.
    pub fn has_pieces(&self) -> bool {
        self.plan.has_pieces()
    }
}

/// A bound socket.
struct Socket {
    fd: OwnedFd,
    rings: Rings,
    area: Mapping,
    has_metadata: bool,
    is_zero_copy: bool,
}

impl Socket {
    fn open(link: &Link, queue: u32, plan: &Plan, mtu: usize) -> Result<Socket, XdpError> {
        let fd = sys::socket().map_err(|error| match error {
            Errno::AFNOSUPPORT => XdpError::Kernel { lacks: "AF_XDP sockets" },
            Errno::PERM | Errno::ACCESS => {
                XdpError::Permission { step: "opening an AF_XDP socket", capability: "CAP_NET_RAW" }
            }
            other => XdpError::Io { step: "opening an AF_XDP socket", source: other.into() },
        })?;
        let bytes = plan.bytes();
        let area = map::anonymous(bytes)
            .map_err(|source| XdpError::Io { step: "mapping memory for frames", source })?;
        let has_metadata = register(&fd, &area, plan)?;
        // Without CAP_NET_ADMIN the buffer is as large as the system's limits allow.
        if sockopt::set_socket_send_buffer_size_force(&fd, SEND_BUFFER).is_err() {
            sockopt::set_socket_send_buffer_size(&fd, SEND_BUFFER)
                .map_err(|error| step_error("setting the send buffer", error))?;
        }
        let (receive, transmit) = (plan.rings.0 as u32, plan.rings.1 as u32);
        let rings = sys::rings(fd.as_fd(), receive, transmit)
            .map_err(|error| step_error("making the rings", error))?;
        // Older kernels do not know it, and some refuse a ring's length: more calls then.
        let _ = sys::set_most_at_once(fd.as_fd(), transmit);
        bind(&fd, link.index, queue, plan.has_pieces()).map_err(|error| match error {
            Errno::BUSY => XdpError::InUse { name: link.name.clone(), what: "a queue" },
            Errno::INVAL | Errno::OPNOTSUPP if plan.has_pieces() => {
                let most = LARGEST_CHUNK - KERNEL_HEADROOM - HEADROOM - LINK_HEADER;
                XdpError::MtuTooLarge { name: link.name.clone(), mtu, most }
            }
            other => step_error("binding to a queue of the interface", other),
        })?;
        let is_zero_copy = sys::is_zero_copy(fd.as_fd())
            .map_err(|error| step_error("asking whether frames are copied", error))?;
        Ok(Socket { fd, rings, area, has_metadata, is_zero_copy })
    }
}

/// Binds, and waits for the kernel if need be: it takes a queue back a moment after its last socket was closed.
fn bind(fd: &OwnedFd, interface: u32, queue: u32, pieces: bool) -> Result<(), Errno> {
    let mut result = sys::bind(fd.as_fd(), interface, queue, pieces);
    for _ in 0..BIND_TRIES {
        if result != Err(Errno::BUSY) {
            break;
        }
        std::thread::sleep(BIND_PAUSE);
        result = sys::bind(fd.as_fd(), interface, queue, pieces);
    }
    result
}

/// Shares the memory with the kernel; returns whether frames to transmit may have metadata.
fn register(fd: &OwnedFd, area: &Mapping, plan: &Plan) -> Result<bool, XdpError> {
    let plain = Memory { chunk: plan.chunk as u32, headroom: HEADROOM as u32, metadata: 0 };
    let with = Memory { metadata: METADATA as u32, ..plain };
    const { assert!(METADATA <= FRONT) };
    let mut result = sys::register(fd.as_fd(), area, &with);
    if let Err(Errno::NOBUFS) = result {
        raise_memlock();
        result = sys::register(fd.as_fd(), area, &with);
    }
    let result = match result {
        // A kernel that does not know of metadata.
        Err(Errno::INVAL) => sys::register(fd.as_fd(), area, &plain).map(|()| false),
        other => other.map(|()| true),
    };
    result.map_err(|error| match error {
        Errno::NOBUFS | Errno::PERM => {
            let limit = getrlimit(Resource::Memlock).current;
            XdpError::Memlock { needs: plan.bytes(), limit }
        }
        other => step_error("sharing memory with the kernel", other),
    })
}

/// Raises the limit of locked memory to the highest that the process may set.
fn raise_memlock() {
    let mut limit = getrlimit(Resource::Memlock);
    limit.current = limit.maximum;
    // An error leaves the old limit, which the caller runs into again.
    let _ = setrlimit(Resource::Memlock, limit);
}

/// Puts the interface into promiscuous mode for as long as the descriptor is open: its own address is not ours.
fn promiscuous(index: u32) -> Result<OwnedFd, XdpError> {
    let step = |error: Errno| match error {
        Errno::PERM | Errno::ACCESS => {
            XdpError::Permission { step: "entering promiscuous mode", capability: "CAP_NET_RAW" }
        }
        other => step_error("entering promiscuous mode", other),
    };
    // Of no protocol: no frame comes to it.
    let flags = SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(step)?;
    packet::set_promiscuous(fd.as_fd(), index).map_err(step)?;
    Ok(fd)
}

fn usable_mtu(link: &Link, wanted: Option<usize>) -> Result<usize, XdpError> {
    let has = link.mtu as usize;
    if link.hardware != ETHERNET_HARDWARE {
        return Err(XdpError::NotEthernet(link.name.clone()));
    }
    if !link.up {
        return Err(XdpError::Down(link.name.clone()));
    }
    match wanted {
        Some(wanted) if wanted > has => Err(XdpError::Mtu { wanted, has }),
        // What comes is as long as the interface lets it be.
        Some(_) | None if has > 65_535 => Err(XdpError::Mtu { wanted: has, has: 65_535 }),
        Some(wanted) => Ok(wanted),
        None => Ok(has),
    }
}

fn step_error(step: &'static str, error: Errno) -> XdpError {
    XdpError::Io { step, source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_hold_the_longest_frame_and_leave_most_buffers_to_the_stack() {
        for memory in [0, 1 << 20, 20 << 20, 40 << 20, 1 << 30] {
            for mtu in [1_280, 1_500, 1_772, 1_773, 3_500, 9_000, 9_216, 65_535] {
                let plan = Plan::new(mtu, memory);
                let Plan { chunk, buffers, lent, rings, pieces } = plan;
                assert!(chunk == 2_048 || chunk == 4_096, "{plan:?}");
                assert!(pieces * (chunk - 258) >= mtu + 18 && (pieces == 1 || chunk == 4_096), "{plan:?}");
                assert!(rings.0.is_power_of_two() && rings.1.is_power_of_two(), "{plan:?}");
                assert!(lent * 4 < buffers.0 && lent <= rings.0 && rings.1 <= buffers.1, "{plan:?}");
                // The least that there is may be more than was given.
                assert!(plan.bytes() <= memory.max(2 << 20), "{plan:?} of {memory}");
            }
        }
        assert_eq!(
            (Plan::new(1_500, 40 << 20).lent, Plan::new(1_500, 40 << 20).rings),
            (3_584, (4_096, 2_048))
        );
        assert!(!Plan::new(1_772, 0).has_pieces() && Plan::new(1_772, 0).chunk == 2_048);
        assert!(!Plan::new(1_773, 0).has_pieces() && Plan::new(9_000, 0).pieces == 3);
    }
}
