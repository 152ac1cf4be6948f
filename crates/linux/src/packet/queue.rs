//! The sockets through which an interface is shared, as the kernel gives them: they may go to the threads that are to work
//! with them.

use super::{PacketDevice, PacketError};
use crate::mac;
use crate::netconfig::{Link, Netlink};
use crate::rx::RxPools;
use crate::sys::fanout;
use crate::sys::packet::{self as sys, MAX_BATCH};
use linerate_nic::{Capabilities, MacAddr};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

const ETHERNET_HARDWARE: u16 = 1;
/// Room for some hundred super-frames on their way out; the kernel charges their pages to it.
const SEND_BUFFER: usize = 8 << 20;

/// Most queues.
const MOST_QUEUES: usize = 64;

/// How to share an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketOptions {
    /// Its name.
    pub interface: String,
    /// Our address on it; `None` makes a random one, locally administered.
    pub mac: Option<MacAddr>,
    /// Largest IP packet in bytes, at most that of the interface; `None` takes the interface's.
    pub mtu: Option<usize>,
    /// Bytes that may wait for us in the kernel, its own bookkeeping included, in all queues together.
    pub receive_buffer: usize,
    /// Frames per system call, 1 to 32. With 16, frames of 1,514 bytes cost three quarters of what they cost one by one
    /// (`examples/device_cost.rs` measures it); super-frames cost little less, and are taken up to four at once.
    pub batch: usize,
    /// Whether to use virtio-net headers. Without them nothing is offloaded and no super-frame can be told from a large
    /// frame; it is what happens on a kernel that lacks them.
    pub virtio_headers: bool,
    /// Queues, 1 to 64: sockets that share what comes in.
    pub queues: usize,
    /// Our ports whose flows are spread over the queues by their peer. Flows to another port are in the queue of that port
    /// modulo the number of queues; fragments and what is neither TCP nor UDP in queue 0. At most 64; more count as others.
    pub shared_ports: Vec<u16>,
}

impl PacketOptions {
    /// The interface `name` through one socket.
    pub fn new(name: &str) -> Self {
        PacketOptions {
            interface: name.to_owned(),
            mac: None,
            mtu: None,
            receive_buffer: 32 << 20,
            batch: 16,
            virtio_headers: true,
            queues: 1,
            shared_ports: Vec::new(),
        }
    }
}

/// One queue of a shared interface.
#[derive(Debug)]
pub struct PacketQueue {
    pub(super) fd: OwnedFd,
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mtu: usize,
    pub(super) mac: MacAddr,
    pub(super) has_virtio: bool,
    pub(super) batch: usize,
}

impl PacketQueue {
    /// Opens the queues of the interface, which must be up. All have the same address.
    pub fn open_all(options: &PacketOptions) -> Result<Vec<PacketQueue>, PacketError> {
        let link = Netlink::open()?.link(&options.interface)?;
        let mtu = usable_mtu(&link, options.mtu)?;
        let mac = match options.mac {
            Some(mac) => mac,
            None => mac::random().map_err(|error| step_error("making a random address", error))?,
        };
        let count = options.queues.clamp(1, MOST_QUEUES);
        let mut queues = Vec::new();
        for _ in 0..count {
            let (fd, has_virtio) = open_socket(options, count, link.index)?;
            queues.push(PacketQueue {
                fd,
                name: link.name.clone(),
                index: link.index,
                mtu,
                mac,
                has_virtio,
                batch: options.batch.clamp(1, MAX_BATCH),
            });
        }
        if count > 1 {
            let sockets: Vec<_> = queues.iter().map(|queue| queue.fd.as_fd()).collect();
            fanout::join(&sockets, &options.shared_ports)
                .map_err(|error| step_error("sharing the interface among several sockets", error))?;
        }
        for queue in &queues {
            sys::set_destination_filter(queue.fd.as_fd(), mac)
                .map_err(|error| step_error("setting the filter", error))?;
        }
        Ok(queues)
    }

    /// The queue as a device, for the thread that this is called in.
    pub fn into_device(self, enabled: Capabilities, pools: RxPools) -> Result<PacketDevice, PacketError> {
        PacketDevice::over(self, enabled, pools)
    }

    /// Our address.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Largest IP packet in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }
}

fn usable_mtu(link: &Link, wanted: Option<usize>) -> Result<usize, PacketError> {
    let has = link.mtu as usize;
    if link.hardware != ETHERNET_HARDWARE {
        return Err(PacketError::NotEthernet(link.name.clone()));
    }
    if !link.up {
        return Err(PacketError::Down(link.name.clone()));
    }
    match wanted {
        Some(wanted) if wanted > has => Err(PacketError::Mtu { wanted, has }),
        Some(wanted) => Ok(wanted),
        None => Ok(has),
    }
}

/// The socket of one of `count` queues, bound, and whether it has virtio-net headers. Nothing comes in yet: before a group
/// is complete, a frame would be in several queues, or in a wrong one.
fn open_socket(options: &PacketOptions, count: usize, index: u32) -> Result<(OwnedFd, bool), PacketError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
        .map_err(|error| step_error("opening a packet socket", error))?;
    let step = |name, result: Result<(), Errno>| result.map_err(|error| step_error(name, error));
    let virtio = options.virtio_headers && sys::set_virtio_header(fd.as_fd()).is_ok();
    step("asking for auxiliary data", sys::set_auxdata(fd.as_fd()))?;
    step("ignoring outgoing frames", sys::set_ignore_outgoing(fd.as_fd()))?;
    step("setting a filter that lets nothing in", fanout::close(fd.as_fd()))?;
    // Without CAP_NET_ADMIN the buffers are as large as the system's limits allow.
    let receive_buffer = options.receive_buffer / count;
    if sockopt::set_socket_recv_buffer_size_force(&fd, receive_buffer).is_err() {
        let plain = sockopt::set_socket_recv_buffer_size(&fd, receive_buffer);
        step("setting the receive buffer", plain)?;
    }
    if sockopt::set_socket_send_buffer_size_force(&fd, SEND_BUFFER).is_err() {
        step("setting the send buffer", sockopt::set_socket_send_buffer_size(&fd, SEND_BUFFER))?;
    }
    step("entering promiscuous mode", sys::set_promiscuous(fd.as_fd(), index))?;
    step("binding to the interface", sys::bind(fd.as_fd(), index))?;
    Ok((fd, virtio))
}

pub(super) fn step_error(step: &'static str, error: Errno) -> PacketError {
    match error {
        Errno::PERM | Errno::ACCESS => PacketError::Permission,
        other => PacketError::Io { step, source: other.into() },
    }
}
